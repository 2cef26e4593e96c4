package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// network is what a process may set about its way to the providers.
type network struct {
	caFile string // PEM file of further root certificates
	caFrom string // for errors: where its name comes from, unless from an option
	proxy  string // proxy URL; empty: the proxy variables of the environment
}

// Connections are a resource of the process, like file descriptors: models of
// one host share them. There is one transport per setting.
var shared struct {
	sync.Mutex
	transports map[network]*http.Transport
}

// transport gives the process's transport for these settings.
func (n network) transport() (*http.Transport, error) {
	shared.Lock()
	defer shared.Unlock()
	if t, ok := shared.transports[n]; ok {
		return t, nil
	}
	t, err := n.newTransport((&net.Dialer{
		// The attempt's own dial clock is shorter; this one ends a dial that
		// its attempt no longer waits for.
		Timeout:   time.Minute,
		KeepAlive: 15 * time.Second,
	}).DialContext)
	if err != nil {
		return nil, err
	}
	if shared.transports == nil {
		shared.transports = make(map[network]*http.Transport)
	}
	shared.transports[n] = t
	return t, nil
}

func (n network) newTransport(dial DialFunc) (*http.Transport, error) {
	proxy := http.ProxyFromEnvironment
	if n.proxy != "" {
		u, err := url.Parse(n.proxy)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("provider: the proxy is no URL: write it like http://host:3128 or socks5://host:1080")
		}
		proxy = http.ProxyURL(u)
	}
	roots, err := n.roots()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if ofThisMachine(r.URL.Hostname()) {
				return nil, nil // what is asked of this machine does not leave it
			}
			return proxy(r)
		},
		DialContext:       boundDial(dial),
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		// A backstop, see the dialer's.
		TLSHandshakeTimeout:    time.Minute,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		ReadBufferSize:         16 << 10,
		// A dead HTTP/2 connection would otherwise hold every request of its
		// host for minutes: the operating system alone notices late.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 20 * time.Second, PingTimeout: 15 * time.Second},
	}, nil
}

// roots is the system's pool with our own certificates; nil is the system's.
func (n network) roots() (*x509.CertPool, error) {
	if n.caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(n.caFile)
	if err != nil {
		return nil, fmt.Errorf("provider: CA file: %w%s", err, n.caFrom)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("provider: CA file %s: there is no PEM certificate in it%s", n.caFile, n.caFrom)
	}
	return pool, nil
}

// dialing is an attempt's hold on the connection that is opened for it.
type dialing struct {
	// ctx is the attempt's own context.
	ctx context.Context

	mu        sync.Mutex
	connected bool
}

type dialingKey struct{}

// got says that the attempt has a connection: what it dialled meanwhile now
// belongs to the pool.
func (d *dialing) got() {
	d.mu.Lock()
	d.connected = true
	d.mu.Unlock()
}

// closeIfDialing ends a connection that was still being set up (in its TLS
// handshake) when its attempt ended.
func (d *dialing) closeIfDialing(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.connected {
		c.Close()
	}
}

// boundDial ends a dial with the attempt that it was made for. Go's transport
// lets it run on, for a later request may use the connection; but then a dial
// that hangs outlives its call.
func boundDial(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d, ok := ctx.Value(dialingKey{}).(*dialing)
		if !ok {
			return dial(ctx, network, addr)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(d.ctx, cancel)
		c, err := dial(ctx, network, addr)
		stop()
		if err != nil {
			return nil, err
		}
		context.AfterFunc(d.ctx, func() { d.closeIfDialing(c) })
		return c, nil
	}
}
