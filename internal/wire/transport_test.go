package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func dialed(err error) error {
	return &url.Error{Op: "Post", URL: "https://host/v1?key=SECRET", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

func TestGoTransportErrorsAreToldApart(t *testing.T) {
	const (
		dial    = ninelives.PhaseDial
		write   = ninelives.PhaseWrite
		headers = ninelives.PhaseHeaders
		first   = ninelives.PhaseFirstToken
		stream  = ninelives.PhaseStream
	)
	h2 := func(s string) error { return errors.New(s) }
	for _, c := range []struct {
		name  string
		err   error
		phase ninelives.Phase
		want  ninelives.Class
		final bool
	}{
		{"no such host", dialed(&net.DNSError{Err: "no such host", Name: "host", IsNotFound: true}), dial, ninelives.ClassNetwork, true},
		{"DNS that may come back", dialed(&net.DNSError{Err: "server misbehaving", Name: "host", IsTemporary: true}), dial, ninelives.ClassNetwork, false},
		{"refused", dialed(os.NewSyscallError("connect", syscall.ECONNREFUSED)), dial, ninelives.ClassNetwork, false},
		{"unreachable", dialed(os.NewSyscallError("connect", syscall.ENETUNREACH)), dial, ninelives.ClassNetwork, false},
		{"dial timeout", dialed(os.ErrDeadlineExceeded), dial, ninelives.ClassNetwork, false},
		{"dial timeout that looks like a deadline", dialed(context.DeadlineExceeded), dial, ninelives.ClassNetwork, false},
		{"certificate", dialed(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), dial, ninelives.ClassNetwork, true},
		{"certificate of another host", dialed(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "host"}), dial, ninelives.ClassNetwork, true},
		{"TLS stall", errors.New("net/http: TLS handshake timeout"), headers, ninelives.ClassNetwork, false},
		{"plain HTTP where TLS was asked for", errors.New("http: server gave HTTP response to HTTPS client"), dial, ninelives.ClassNetwork, true},
		{"proxy", errors.New("proxyconnect tcp: dial tcp: refused"), dial, ninelives.ClassNetwork, false},
		{"scheme", errors.New(`unsupported protocol scheme "htp"`), ninelives.PhasePrepare, ninelives.ClassFormat, true},
		{"headers that do not come", errors.New("net/http: timeout awaiting response headers"), headers, ninelives.ClassTimeout, false},
		{"stale connection", io.EOF, headers, ninelives.ClassNetwork, false},
		{"stale connection that Go notices", errors.New("http: server closed idle connection"), headers, ninelives.ClassNetwork, false},
		{"reset before a byte", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, headers, ninelives.ClassNetwork, false},
		{"broken pipe", &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, write, ninelives.ClassNetwork, false},
		{"reset in the stream", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, stream, ninelives.ClassStreamBroken, false},
		{"reset after the headers", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, first, ninelives.ClassStreamBroken, false},
		{"chunks without an end", io.ErrUnexpectedEOF, stream, ninelives.ClassStreamBroken, false},
		{"damaged gzip", errors.New("gzip: invalid checksum"), stream, ninelives.ClassStreamBroken, false},
		{"HTTP/2 reset in the stream", h2("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), stream, ninelives.ClassStreamBroken, false},
		{"HTTP/2 reset before a byte", h2("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), headers, ninelives.ClassNetwork, false},
		{"HTTP/2 refusal", h2("stream error: stream ID 3; REFUSED_STREAM; received from peer"), headers, ninelives.ClassNetwork, false},
		{"HTTP/2 call for calm on a stream", h2("stream error: stream ID 3; ENHANCE_YOUR_CALM; received from peer"), stream, ninelives.ClassOverloaded, false},
		{"GOAWAY, calm", h2(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM, debug=""`), stream, ninelives.ClassOverloaded, false},
		{"GOAWAY, calm, refused", h2(`http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM`), headers, ninelives.ClassOverloaded, false},
		{"GOAWAY, drain", h2(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`), stream, ninelives.ClassNetwork, false},
		{"GOAWAY, drain before a byte", h2(`http2: Transport received Server's graceful shutdown GOAWAY`), headers, ninelives.ClassNetwork, false},
		{"GOAWAY, error", h2(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=INTERNAL_ERROR, debug=""`), stream, ninelives.ClassStreamBroken, false},
		{"our clock: dial", &ClockError{Clock: ClockDial, Limit: time.Second}, dial, ninelives.ClassNetwork, false},
		{"our clock: headers", &ClockError{Clock: ClockHeaders, Limit: time.Second}, headers, ninelives.ClassTimeout, false},
		{"our clock: stall", fmt.Errorf("read: %w", &ClockError{Clock: ClockLiveness, Limit: time.Second}), stream, ninelives.ClassTimeout, false},
		{"our clock: progress", &ClockError{Clock: ClockProgress, Limit: time.Second}, stream, ninelives.ClassTimeout, false},
	} {
		f := Transport(context.Background(), c.err, c.phase)
		if f.Class != c.want || f.Final != c.final || f.Phase != c.phase || f.Message == "" {
			t.Errorf("%s: %s final %v in %s: %v\nwant %s final %v", c.name, f.Class, f.Final, f.Phase, f, c.want, c.final)
		}
		if strings.Contains(fmt.Sprintf("%v %v %+v", f, f.Err, *f), "SECRET") {
			t.Errorf("%s: the key in the URL is shown: %+v", c.name, f)
		}
		checkShape(t, f)
	}
}

func TestNothingIsBilledBeforeARequestIsSent(t *testing.T) {
	for phase, want := range map[ninelives.Phase]ninelives.Billed{
		ninelives.PhasePrepare: ninelives.BilledNo, ninelives.PhaseDial: ninelives.BilledNo,
		ninelives.PhaseHeaders: ninelives.BilledMaybe, ninelives.PhaseStream: ninelives.BilledMaybe,
	} {
		if f := Transport(context.Background(), io.EOF, phase); f.Billed != want {
			t.Errorf("%s: %s, want %s", phase, f.Billed, want)
		}
	}
}

func TestOurOwnContextIsLookedAtFirst(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	past, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	clock, run := context.WithCancelCause(context.Background())
	run(&ClockError{Clock: ClockProgress, Limit: time.Minute})
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want ninelives.Class
		is   error
	}{
		{"the caller cancelled", canceled, dialed(context.Canceled), ninelives.ClassCanceled, context.Canceled},
		{"the caller cancelled, the connection says something else", canceled, io.ErrUnexpectedEOF, ninelives.ClassCanceled, context.Canceled},
		{"the caller's deadline", past, dialed(context.DeadlineExceeded), ninelives.ClassCanceled, context.DeadlineExceeded},
		{"our clock cancelled", clock, context.Canceled, ninelives.ClassTimeout, nil},
		{"our clock ran out and then the caller cancelled", canceled, &ClockError{Clock: ClockHeaders}, ninelives.ClassTimeout, nil},
		{"nobody cancelled", context.Background(), dialed(context.DeadlineExceeded), ninelives.ClassNetwork, nil},
		{"no context", nil, io.EOF, ninelives.ClassNetwork, nil},
	} {
		f := Transport(c.ctx, c.err, ninelives.PhaseDial)
		if f.Class != c.want || c.is != nil && !errors.Is(f, c.is) {
			t.Errorf("%s: %s (%v), want %s", c.name, f.Class, f.Err, c.want)
		}
		var ours *ClockError
		if c.want == ninelives.ClassTimeout && !errors.As(f, &ours) {
			t.Errorf("%s: the clock is not named: %v", c.name, f)
		}
	}
}

func TestTheChainOfCausesIsWalkedFiveDeep(t *testing.T) {
	err := error(&net.DNSError{Err: "no such host", IsNotFound: true})
	for range 4 {
		err = fmt.Errorf("wrapped: %w", err)
	}
	if f := Transport(context.Background(), err, ninelives.PhaseDial); !f.Final {
		t.Errorf("the fifth cause is not seen: %v", f)
	}
	if f := Transport(context.Background(), fmt.Errorf("wrapped: %w", err), ninelives.PhaseDial); f.Final {
		t.Errorf("the sixth cause is seen: %v", f)
	}
	if f := Transport(context.Background(), errors.Join(err, io.EOF), ninelives.PhaseDial); f.Class != ninelives.ClassNetwork {
		t.Errorf("%v", f)
	}
}

// The errors as Go's own client gives them.
func TestErrorsOfARealClient(t *testing.T) {
	get := func(url string, client *http.Client) error {
		resp, err := client.Get(url)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if f := Transport(context.Background(), get("http://127.0.0.1:1", http.DefaultClient), ninelives.PhaseDial); f.Class != ninelives.ClassNetwork || f.Final || f.Hint != "is the server running?" {
		t.Errorf("refused: %+v", f)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = discard
	secure.StartTLS()
	defer secure.Close()
	if f := Transport(context.Background(), get(secure.URL, &http.Client{Transport: &http.Transport{}}), ninelives.PhaseDial); f.Class != ninelives.ClassNetwork || !f.Final || !strings.Contains(f.Hint, "certificate") {
		t.Errorf("certificate: %+v", f)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if f := Transport(context.Background(), get(strings.Replace(plain.URL, "http:", "https:", 1), http.DefaultClient), ninelives.PhaseDial); f.Class != ninelives.ClassNetwork || !f.Final || !strings.Contains(f.Hint, "http://") {
		t.Errorf("no TLS: %+v", f)
	}
	if f := Transport(context.Background(), get("ftp://127.0.0.1/", http.DefaultClient), ninelives.PhasePrepare); f.Class != ninelives.ClassFormat || !f.Final {
		t.Errorf("scheme: %+v", f)
	}
}

var discard = log.New(io.Discard, "", 0)
