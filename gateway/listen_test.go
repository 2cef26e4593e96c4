package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatOthersCanReachNeedsKeysOrTLS(t *testing.T) {
	exposed := map[string]bool{
		"127.0.0.1:9009": false, "127.1.2.3:0": false, "[::1]:9009": false, "localhost:9009": false, "LOCALHOST.:9009": false,
		"a.localhost:1": false, "unix:/run/nl.sock": false, "[::ffff:127.0.0.1]:1": false,
		":9009": true, "0.0.0.0:9009": true, "[::]:9009": true, "192.168.1.5:9009": true, "example.com:80": true,
		"127.0.0.1.example.com:80": true, "localhost.example.com:80": true, "9009": true, "": true,
	}
	for listen, want := range exposed {
		if got := Exposed(listen); got != want {
			t.Errorf("Exposed(%q) = %v", listen, got)
		}
		for i := range 8 {
			keys, secured, insecure := i&1 != 0, i&2 != 0, i&4 != 0
			err := MayListen(listen, keys, secured, insecure)
			if refused := want && i == 0; refused != (err != nil) {
				t.Errorf("MayListen(%q, %v, %v, %v) = %v", listen, keys, secured, insecure, err)
			}
			if err != nil && !strings.Contains(err.Error(), "--insecure") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	}
}

func TestAPortInUseSaysWhatToDo(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for listen, want := range map[string]string{
		l.Addr().String(): "stop it, or take another port",
		"9009":            "write it like 127.0.0.1:9009",
		"unix:":           "names no file",
	} {
		if l, err := Listen(t.Context(), listen, nil, 0); err == nil {
			l.Close()
			t.Errorf("%s is listened on", listen)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", listen, err, want)
		}
	}
}

func TestAUnixSocketIsForItsOwnerAndNeverTakenFromTheLiving(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nl.sock")
	first, err := Listen(t.Context(), "unix:"+path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	at, err := os.Lstat(path)
	if err != nil || at.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("the socket is %v, %v", at.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".nl*")); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	go func() {
		for {
			c, err := first.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "here")
			c.Close()
		}
	}()
	if _, err := Listen(t.Context(), "unix:"+path, nil, 0); err == nil || !strings.Contains(err.Error(), "something answers there already") {
		t.Fatalf("the second one: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); string(got) != "here" || err != nil {
		t.Errorf("the first one answers %q, %v", got, err)
	}

	first.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}

	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	again, err := Listen(t.Context(), "unix:"+path, nil, 0)
	if err != nil {
		t.Fatalf("a dead socket is in the way: %v", err)
	}
	// One that took its place is not removed with it.
	os.Remove(path)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := Listen(t.Context(), "unix:"+path, nil, 0); err == nil || !strings.Contains(err.Error(), "a file of another kind") {
		t.Errorf("a file in the way: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file holds %q", text)
	}
}

func TestTLSSpeaksHTTP2AndNothingOld(t *testing.T) {
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS()
	defer model.Close()
	l, err := Listen(t.Context(), "127.0.0.1:0", &tls.Config{Certificates: model.TLS.Certificates, MinVersion: tls.VersionTLS10}, 0)
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }), Limits{}, slog.New(slog.DiscardHandler))
	go srv.Serve(l)
	defer srv.Close()

	client := model.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "HTTP/2.0" {
		t.Errorf("%s is spoken", body)
	}
	if c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// pipe is a listener without a network, so that its time is virtual.
type pipe struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipe() *pipe { return &pipe{make(chan net.Conn), make(chan struct{})} }

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipe) Close() error   { close(p.done); return nil }
func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
func (p *pipe) dial() net.Conn { a, b := net.Pipe(); p.conns <- b; return a }

func TestASlowClientIsHungUpOnAndALongStreamIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := func(w http.ResponseWriter, r *http.Request) {
			bodyDeadline(w, 0, time.Now())
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
			bodyRead(w)
			for range 10 { // far longer than the body may take
				time.Sleep(time.Minute)
				if r.Context().Err() != nil {
					return
				}
				fmt.Fprint(w, "x")
				http.NewResponseController(w).Flush()
			}
		}
		p := newPipe()
		srv := newServer(http.HandlerFunc(handler), Limits{}, slog.New(slog.DiscardHandler))
		go srv.Serve(p)
		defer srv.Close()

		for _, c := range []struct {
			name, sent, want string
			after            time.Duration
		}{
			{"headers that do not end", "POST / HTTP/1.1\r\nHost: a\r\nX-", "", headerTime},
			{"a body that does not end", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n123", "HTTP/1.1 408", defaultReadTimeout},
			{"an idle connection", "", "", headerTime},
		} {
			began := time.Now()
			conn := p.dial()
			go io.WriteString(conn, c.sent)
			answer, _ := io.ReadAll(conn)
			if took := time.Since(began); took < c.after || took > c.after+time.Second || !strings.HasPrefix(string(answer), c.want) {
				t.Errorf("%s: %q after %v, want %q after %v", c.name, answer, took, c.want, c.after)
			}
			conn.Close()
		}

		conn := p.dial()
		go io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n123")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "xxxxxxxxxx" || err != nil {
			t.Errorf("the stream gave %q, %v", body, err)
		}
		conn.Close()
	})
}

func TestNoMoreConnectionsThanAllowed(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var open, most atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), open.Add(1)))
			go func() { // answers what comes and hangs up
				io.CopyN(c, c, 1)
				open.Add(-1)
				c.Close()
			}()
		}
	}()
	var ends []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends = append(ends, c)
	}
	for _, c := range ends { // each has its turn
		fmt.Fprint(c, "x")
		if got, err := io.ReadAll(c); string(got) != "x" || err != nil {
			t.Fatalf("the answer is %q, %v", got, err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d connections were open at a time", most.Load())
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	local := newOrigin("127.0.0.1:9009", []string{"llm.home"})
	for _, c := range []struct {
		name, method, host string
		header             map[string]string
		refused            bool
	}{
		{"a program", "POST", "127.0.0.1:9009", nil, false},
		{"a program, by name", "POST", "localhost:9009", nil, false},
		{"a program, IPv6", "POST", "[::1]:9009", nil, false},
		{"a configured name", "POST", "LLM.home", nil, false},
		{"a name that was made to point here", "GET", "evil.example:9009", nil, true},
		{"no name", "GET", "", nil, true},
		{"a page of another site", "POST", "127.0.0.1:9009", map[string]string{"Sec-Fetch-Site": "cross-site"}, true},
		{"a page of another port", "POST", "localhost:9009", map[string]string{"Sec-Fetch-Site": "same-site"}, true},
		{"an older browser", "POST", "127.0.0.1:9009", map[string]string{"Origin": "https://evil.example"}, true},
		{"a page without origin", "POST", "127.0.0.1:9009", map[string]string{"Origin": "null"}, true},
		{"our own page", "POST", "127.0.0.1:9009", map[string]string{"Origin": "http://127.0.0.1:9009", "Sec-Fetch-Site": "same-origin"}, false},
		{"a link to the page", "GET", "127.0.0.1:9009", map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
	} {
		r := httptest.NewRequest(c.method, "/v1/messages", nil)
		r.Host = c.host
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		if err := local.check(r); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, listen := range []string{"0.0.0.0:9009", "unix:/run/nl.sock"} {
		r := httptest.NewRequest("POST", "/v1/messages", nil)
		r.Host = "gateway.example"
		if err := newOrigin(listen, nil).check(r); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

func TestWhatNetHTTPComplainsOfStaysOneLine(t *testing.T) {
	var b strings.Builder
	srv := newServer(nil, Limits{}, slog.New(slog.NewTextHandler(&b, nil)))
	srv.ErrorLog.Printf("bad \x1b[2J\nlevel=ERROR msg=forged")
	if got := b.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") || !strings.Contains(got, `level=WARN msg=connection`) {
		t.Errorf("the log has %q", got)
	}
}
