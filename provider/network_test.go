package provider

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func good(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	say(w, r, text("Hel"), text("lo"), finish, usage, done)
}

// openAt opens a chat model of a server on the loopback.
func openAt(t *testing.T, base string, opts ...Option) *Model {
	t.Helper()
	m, err := Open("test-model", append([]Option{Provider("testing"), BaseURL(base), Key(NewSecret(testKey)), Protocol(ninelives.OpenAIChat), Environment(environ())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.(*Model).CloseIdleConnections)
	return m.(*Model)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"after a stream": good,
		"after a whole answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		},
		"after an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"overloaded"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			srv := httptest.NewUnstartedServer(h)
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			srv.Start()
			defer srv.Close()
			// Two models of one host share its connections.
			a, b := openAt(t, srv.URL+"/v1"), openAt(t, srv.URL+"/v1")
			for range 4 {
				call(t, context.Background(), a, prompt(ninelives.Clocks{}), nil)
				call(t, context.Background(), b, prompt(ninelives.Clocks{}), nil)
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("%d connections for 8 calls, want 1", n)
			}
		})
	}
}

func TestARequestIsNeverSentTwice(t *testing.T) {
	// The server reads the second request of a connection and drops it without
	// an answer. Go's transport would send a request that it may replay again.
	var read atomic.Int32
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 0; ; n++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					read.Add(1)
					if n > 0 {
						return
					}
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
				}
			})
		}
	})
	m := openAt(t, "http://"+ln.Addr().String()+"/v1")
	if o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil); o.text != "Hello" {
		t.Fatalf("%v", o.fault)
	}
	o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
	if o.fault == nil || o.fault.Class != ninelives.ClassNetwork || o.fault.Phase != ninelives.PhaseHeaders {
		t.Errorf("fault %+v", o.fault)
	}
	if n := read.Load(); n != 2 {
		t.Errorf("the server read %d requests for 2 calls", n)
	}
	m.CloseIdleConnections()
	ln.Close()
}

func TestHTTP2AndOwnCertificates(t *testing.T) {
	var protos sync.Map
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos.Store(r.Proto, true)
		good(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()

	o := call(t, context.Background(), openAt(t, srv.URL+"/v1"), prompt(ninelives.Clocks{}), nil)
	if o.fault == nil || o.fault.Class != ninelives.ClassNetwork || !o.fault.Final {
		t.Errorf("an unknown certificate: %+v", o.fault)
	}

	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]Option{
		"option":   CAFile(ca),
		"variable": Environment(environ("NINELIVES_CA_FILE", ca)),
	} {
		m := openAt(t, srv.URL+"/v1", opt)
		for range 3 {
			if o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil); o.text != "Hello" {
				t.Errorf("%s: %v", name, o.fault)
			}
		}
	}
	if _, ok := protos.Load("HTTP/2.0"); !ok {
		t.Error("HTTP/2 was not spoken")
	}
	if _, ok := protos.Load("HTTP/1.1"); ok {
		t.Error("HTTP/1.1 was spoken")
	}
}

func TestLeavingAStreamLeavesItsHTTP2Connection(t *testing.T) {
	var conns atomic.Int32
	left := make(chan bool, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say(w, r, text("a"))
		<-r.Context().Done()
		left <- true
	}))
	srv.EnableHTTP2 = true
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.StartTLS()
	defer srv.Close()
	client := srv.Client().Transport.(*http.Transport)
	m := openAt(t, srv.URL+"/v1", Transport(client))
	for range 3 {
		for ev := range m.Stream(context.Background(), prompt(ninelives.Clocks{})) {
			if _, ok := ev.(ninelives.TextDelta); ok {
				break
			}
		}
		<-left // the upstream has seen it
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 3 calls, want 1", n)
	}
}

// proxy is a plain proxy that counts.
func proxy(t *testing.T) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "llm.test" {
			http.Error(w, "not for me", http.StatusBadGateway)
			return
		}
		asked.Add(1)
		good(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func TestRequestsGoThroughTheProxy(t *testing.T) {
	url, asked := proxy(t)
	t.Run("that is set", func(t *testing.T) {
		m := openAt(t, "http://llm.test/v1", Proxy(url))
		if o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil); o.text != "Hello" {
			t.Errorf("%v", o.fault)
		}
	})
	t.Run("of the environment", func(t *testing.T) {
		// Go reads the variables once in a process.
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PROVIDER_TEST_CHILD=1", "HTTP_PROXY="+url, "http_proxy="+url, "NO_PROXY=", "no_proxy=")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "Hello" {
			t.Errorf("%v: %s", err, out)
		}
	})
	if n := asked.Load(); n != 2 {
		t.Errorf("the proxy was asked %d times, want 2", n)
	}
}

// What is asked of a server on this machine does not leave it by the proxy.
func TestServersOnThisMachineAreAskedWithoutTheProxy(t *testing.T) {
	url, asked := proxy(t)
	srv := httptest.NewServer(http.HandlerFunc(good))
	t.Cleanup(srv.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost"} {
		m := openAt(t, "http://"+host+":"+port+"/v1", Proxy(url))
		if o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil); o.text != "Hello" {
			t.Errorf("%s: %v", host, o.fault)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
}

// child makes one call in a process of its own.
func child() int {
	m, err := Open("test-model", Provider("testing"), BaseURL("http://llm.test/v1"), Protocol(ninelives.OpenAIChat))
	if err == nil {
		var resp *ninelives.Response
		if resp, err = ninelives.Generate(context.Background(), m, ninelives.Prompt("Hi")); err == nil {
			fmt.Println(resp.Text())
			return 0
		}
	}
	fmt.Println(err)
	return 1
}

func TestWhatIsSentAndWhatIsNot(t *testing.T) {
	headers := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		if r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		good(w, r)
	}))
	defer srv.Close()
	call(t, context.Background(), openAt(t, srv.URL+"/v1", Header("X-Team", "cats")), prompt(ninelives.Clocks{}), nil)
	h := <-headers
	for name, want := range map[string]string{
		"Authorization": "Bearer " + testKey, "Content-Type": "application/json", "Accept": "text/event-stream",
		"X-Team": "cats", "Idempotency-Key": "", "Accept-Encoding": "gzip", // Go's own, so that it decodes
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestCompressedStreamsAreRead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for _, piece := range []string{text("Hel"), text("lo"), finish, usage, done} {
			_, _ = io.WriteString(z, piece)
			_ = z.Flush()
			w.(http.Flusher).Flush()
		}
		_ = z.Close()
	}))
	defer srv.Close()
	if o := call(t, context.Background(), openAt(t, srv.URL+"/v1"), prompt(ninelives.Clocks{}), nil); o.text != "Hello" {
		t.Errorf("%v", o.fault)
	}
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "\x1b\x03\x00")
	})
	o := call(t, context.Background(), openAt(t, srv.URL+"/v1"), prompt(ninelives.Clocks{}), nil)
	if o.fault == nil || o.fault.Class != ninelives.ClassFormat || o.fault.Message != `the answer is encoded as "br", which was not asked for` {
		t.Errorf("%v", o.fault)
	}
}

func TestNetworkFaultsAreToldApart(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(good))
	defer plain.Close()
	for name, c := range map[string]struct {
		base  string
		opts  []Option
		class ninelives.Class
		phase ninelives.Phase
		final bool
	}{
		"refused":           {"http://127.0.0.1:1/v1", nil, ninelives.ClassNetwork, ninelives.PhaseDial, false},
		"TLS to plain HTTP": {strings.Replace(plain.URL, "http:", "https:", 1) + "/v1", nil, ninelives.ClassNetwork, ninelives.PhaseDial, true},
		"no such host": {"http://llm.test/v1", []Option{Dial(func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "llm.test", IsNotFound: true}}
		})}, ninelives.ClassNetwork, ninelives.PhaseDial, true},
	} {
		o := call(t, context.Background(), openAt(t, c.base, c.opts...), prompt(ninelives.Clocks{}), nil)
		if o.fault == nil || o.fault.Class != c.class || o.fault.Phase != c.phase || o.fault.Final != c.final || o.fault.Billed != ninelives.BilledNo {
			t.Errorf("%s: %+v", name, o.fault)
		}
	}
}
