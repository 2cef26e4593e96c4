package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// The bounds of a connection that settings do not name.
const (
	headerTime = 10 * time.Second // for the headers of a request
	idleTime   = 2 * time.Minute  // of a connection between two requests
	h2Streams  = 250              // requests at a time on one HTTP/2 connection
	h2Ping     = 30 * time.Second // of silence, after which an HTTP/2 client has to show that it lives
)

// The defaults of Limits that concern connections.
const (
	defaultHeaders     = 64 << 10
	defaultConnections = 4096
	defaultReadTimeout = 60 * time.Second
	defaultWrite       = 60 * time.Second
)

const unixPrefix = "unix:"

// Exposed reports whether an address to listen on can be reached by others than
// this machine's users: it is neither a loopback address nor a unix socket. What
// cannot be read counts as exposed.
func Exposed(listen string) bool {
	if strings.HasPrefix(listen, unixPrefix) {
		return false
	}
	host, _, err := net.SplitHostPort(listen)
	return err != nil || !loopbackName(host)
}

// loopbackName reports that a host is this machine and is reached by nobody else.
func loopbackName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// MayListen says no to a gateway that strangers could use: on an address that
// is Exposed it wants client keys or TLS, unless it was told that it may do
// without (insecure).
func MayListen(listen string, keys, secured, insecure bool) error {
	if !Exposed(listen) || keys || secured || insecure {
		return nil
	}
	return fmt.Errorf("%s can be reached from other machines, and without client keys anybody there could spend your money: "+
		"add keys to the configuration, or serve TLS, or listen on 127.0.0.1, or add --insecure if something in front keeps strangers out",
		visible.EscapedLine(listen))
}

// Listen listens on "host:port", ":port" or "unix:/path". A unix socket is for
// its owner alone (0600); one that nobody answers at any more is replaced, and
// it is removed when the listener closes. With secure, connections speak TLS 1.2
// or later and HTTP/2. Only so many connections are open at a time (0 means
// 4096); further ones wait until one of them closes.
func Listen(ctx context.Context, listen string, secure *tls.Config, connections int) (net.Listener, error) {
	l, err := listenPlain(ctx, listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", visible.EscapedLine(listen), err)
	}
	l = netutil.LimitListener(l, cmp.Or(connections, defaultConnections))
	if secure != nil {
		l = tls.NewListener(l, hardened(secure))
	}
	return l, nil
}

// hardened is a copy of the configuration with what a gateway insists on.
func hardened(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	for _, p := range []string{"h2", "http/1.1"} {
		if !slices.Contains(c.NextProtos, p) {
			c.NextProtos = append(c.NextProtos, p)
		}
	}
	return c
}

func listenPlain(ctx context.Context, listen string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(listen, unixPrefix); ok {
		return listenUnix(ctx, path)
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return nil, errors.New("this is no address: write it like 127.0.0.1:9009, :9009 or unix:/run/ninelives.sock")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	var op *net.OpError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.New("something listens there already, maybe another ninelives serve: use that one, stop it, or take another port (127.0.0.1:0 takes a free one)")
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.New("this port is reserved for the system: take one above 1023")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, errors.New("this machine has no such address: take one of its own, or :PORT for all of them")
	case errors.As(err, &op):
		return nil, op.Err
	}
	return nil, err
}

// listenUnix makes the socket in a directory that only we can enter and moves
// it to its place when its mode is right, so that nobody can slip in before.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if path == "" {
		return nil, errors.New("this names no file: write it like unix:/run/ninelives.sock")
	}
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".nl")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it will not be there any more
	socket := &unixSocket{Listener: l, path: path}
	if err = os.Chmod(made, 0o600); err == nil {
		if socket.file, err = os.Lstat(made); err == nil {
			err = os.Rename(made, path)
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return socket, nil
}

// clearSocket removes a socket that a dead process has left, and nothing else.
func clearSocket(ctx context.Context, path string) error {
	at, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case at.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file of another kind: remove it, or choose another path")
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return errors.New("something answers there already, maybe another ninelives serve: use that one, stop it, or choose another path")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("it cannot be told whether somebody uses this socket (%w): remove it if not", err)
	}
	return os.Remove(path)
}

// unixSocket removes its file at the end, unless that is another one by now.
type unixSocket struct {
	net.Listener
	path string
	file fs.FileInfo
	once sync.Once
}

// Addr is where clients find it, not where it was made.
func (s *unixSocket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

func (s *unixSocket) Close() error {
	err := s.Listener.Close()
	s.once.Do(func() {
		if at, e := os.Lstat(s.path); e == nil && os.SameFile(at, s.file) {
			err = errors.Join(err, os.Remove(s.path))
		}
	})
	return err
}

// newServer is a server that slow and malformed clients cannot hold up. The
// bodies of requests are bounded one by one, by bodyDeadline: a timeout for the
// whole connection would end long streams as well.
func newServer(handler http.Handler, limits Limits, to *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    cmp.Or(limits.Headers, defaultHeaders),
		ErrorLog:          log.New(errorLog{to}, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: h2Streams,
			SendPingTimeout:      h2Ping,
			WriteByteTimeout:     cmp.Or(limits.Write, defaultWrite),
		},
	}
}

// errorLog passes the complaints of net/http on, which quote clients.
type errorLog struct{ to *slog.Logger }

func (e errorLog) Write(p []byte) (int, error) {
	e.to.Warn("connection", "error", visible.EscapedLine(strings.TrimSpace(string(p))))
	return len(p), nil
}

// bodyDeadline gives a client so long to send the rest of its request (0 means
// 60 s), whether anybody reads it or not: net/http reads what is left of a body
// before it sends the answer. bodyRead must be called once the body is read.
func bodyDeadline(w http.ResponseWriter, limit time.Duration, now time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(now.Add(cmp.Or(limit, defaultReadTimeout))) // some have no connection
}

// bodyRead takes the deadline back: one that passes later would look as if the
// client had gone.
func bodyRead(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}
