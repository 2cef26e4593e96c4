package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/tool"
)

// reached starts a site and describes how it is reached.
func reached(t *testing.T, h http.Handler) (*site, *httptest.Server, Server) {
	t.Helper()
	where := &site{handler: h}
	web := httptest.NewServer(where)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return where, web, Server{Name: "web", URL: web.URL + "/mcp?key=sk-not-for-anyone", Headers: map[string]string{"Authorization": "Bearer hush-hush-hush"}}
}

func TestToolsOverHTTP(t *testing.T) {
	where, _, cfg := reached(t, serving(t, newTestServer(nil)))
	s := begin(t, quick, cfg)
	if r := call(t, s, "web__echo", "hello"); r.Text() != "hello" || r.IsError {
		t.Errorf("%+v", r)
	}
	if r := call(t, s, "web__refuse", ""); r.Text() != "Error: web/refuse: not today" || r.Unknown {
		t.Errorf("%+v", r)
	}
	call(t, s, "web__grow", "")
	await(t, s, "larger", func(st Status) bool { return st.Tools == 14 })
	s.Close()
	where.mu.Lock()
	defer where.mu.Unlock()
	methods := ""
	for _, r := range where.seen {
		if r.Header.Get("Authorization") != "Bearer hush-hush-hush" || r.URL.Query().Get("key") == "" {
			t.Errorf("%s without its headers", r.Method)
		}
		if !strings.Contains(methods, r.Method) {
			methods += r.Method + " "
		}
	}
	if methods != "POST GET DELETE " {
		t.Errorf("methods: %s", methods)
	}
}

// The server goes away and comes back without knowing the session: what was
// under way is unknown, what comes after finds the new one.
func TestAServerOverHTTPComesBack(t *testing.T) {
	where, web, cfg := reached(t, nil)
	h := newHolding()
	where.set(serving(t, newTestServer(h)))
	s := begin(t, quick, cfg)
	t.Cleanup(h.end) // before the server and its client are closed
	done := make(chan tool.Result)
	go func() { done <- call(t, s, "web__hold", "") }()
	<-h.started
	where.set(nil) // every connection is cut
	web.CloseClientConnections()
	r := <-done
	if !r.Unknown || !strings.HasPrefix(r.Text(), "Error: the connection broke while web/hold was called (") {
		t.Errorf("%+v", r)
	}
	st := await(t, s, "away", func(st Status) bool { return st.Failures > 3 })
	if len(s.Tools()) != 13 || strings.Contains(st.Error, "sk-not") || strings.Contains(st.Error, "hush") || st.Error == "" {
		t.Errorf("status: %+v", st)
	}
	where.set(serving(t, newTestServer(nil)))
	if r := call(t, s, "web__echo", "back"); r.Text() != "back" {
		t.Errorf("%+v", r)
	}
}

// A session that the server has forgotten is no broken call: it was turned
// away unread and is made again.
func TestAForgottenSession(t *testing.T) {
	where, _, cfg := reached(t, serving(t, newTestServer(nil)))
	s := begin(t, quick, cfg)
	await(t, s, "ready", isReady)
	where.set(serving(t, newTestServer(nil)))
	if r := call(t, s, "web__echo", "hello"); r.Text() != "hello" || r.Unknown {
		t.Errorf("%+v", r)
	}
}

func TestAReadOnlyCallOverHTTPIsMadeOnceAgain(t *testing.T) {
	where, web, cfg := reached(t, nil)
	cfg.Trust = true
	h := newHolding()
	where.set(serving(t, newTestServer(h)))
	s := begin(t, quick, cfg)
	t.Cleanup(h.end) // before the server and its client are closed
	file := lines(t)
	done := make(chan tool.Result)
	go func() { done <- call(t, s, "web__peek", file) }()
	<-h.started
	web.CloseClientConnections()
	if r := <-done; r.Text() != "seen" || r.IsError {
		t.Errorf("%+v", r)
	}
}

// Addresses where no server of this kind is.
func TestSitesThatAreNoServer(t *testing.T) {
	status := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if code >= 300 && code < 400 {
				w.Header().Set("Location", "https://elsewhere.example/")
			}
			w.WriteHeader(code)
			w.Write([]byte(body))
		})
	}
	for name, c := range map[string]struct {
		h     http.Handler
		state State
		want  string
	}{
		"refused":   {status(401, ""), Failed, "it refuses the credentials (HTTP 401): check the headers of server web"},
		"moved":     {status(302, ""), Failed, "it redirects to another address (HTTP 302): put that into the url of server web"},
		"not found": {status(404, "<html>"), Down, "Not Found"},
		"down":      {status(503, ""), Down, "Service Unavailable"},
		"a page":    {status(200, "<html>Welcome"), Down, `unsupported content type "text/html"`},
		"no JSON": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{"))
		}), Down, "failed to decode response"},
		"endless": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				w.Write([]byte(strings.Repeat(" ", 1<<20)))
			}
		}), Down, "it sent more than 16 MiB at once"},
		"silent": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // else the end of the connection goes unnoticed
			<-r.Context().Done()
		}), Down, "it did not answer within 200ms"},
	} {
		_, web, cfg := reached(t, c.h)
		tm := quick
		tm.tries = 1
		if name == "silent" {
			tm.connect = 200 * time.Millisecond
		}
		s := begin(t, tm, cfg)
		st := await(t, s, string(c.state), func(st Status) bool { return st.State == c.state })
		if !strings.Contains(st.Error, c.want) || strings.Contains(st.Error, "sk-not") {
			t.Errorf("%s: %+v, want %q", name, st, c.want)
		}
		s.Close()
		web.CloseClientConnections()
	}
	s := begin(t, timing{tries: 1, first: 1, longest: 1, connect: 20 * time.Second}, Server{Name: "web", URL: "http://127.0.0.1:1/mcp"})
	if st := await(t, s, "down", func(st Status) bool { return st.State == Down }); !strings.Contains(st.Error, "connection refused") {
		t.Errorf("%+v", st)
	}
}

// A server need not have a stream of notifications, nor say so in time.
func TestNotificationsThatNeverBegin(t *testing.T) {
	inner := serving(t, newTestServer(nil))
	_, _, cfg := reached(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	tm := quick
	tm.listen = 50 * time.Millisecond
	s := begin(t, tm, cfg)
	if r := call(t, s, "web__echo", "hello"); r.Text() != "hello" {
		t.Errorf("%+v", r)
	}
}

// When the stream of notifications ends, the connection is replaced, but not
// under a call that is still going on.
func TestAStaleConnectionIsReplacedWhenItIsIdle(t *testing.T) {
	inner := serving(t, newTestServer(nil))
	listening := make(chan func(), 9)
	held, answer := make(chan struct{}, 9), make(chan struct{})
	where, _, cfg := reached(t, nil)
	where.set(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			end := make(chan struct{})
			listening <- func() { close(end) }
			select {
			case <-end:
			case <-r.Context().Done():
			}
			return
		}
		if r.Header.Get("X-Hold") == "" && r.ContentLength > 0 {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = http.NoBody
			r2 := r.Clone(r.Context())
			r2.Body = readCloser(body)
			if strings.Contains(string(body), "please wait") {
				held <- struct{}{}
				<-answer
			}
			inner.ServeHTTP(w, r2)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s := begin(t, quick, cfg)
	await(t, s, "ready", isReady)
	end := <-listening
	one := s.all[0]
	one.mu.Lock()
	first := one.link
	one.mu.Unlock()

	done := make(chan tool.Result)
	go func() { done <- call(t, s, "web__echo", "please wait") }()
	<-held
	end()
	for stale := false; !stale; time.Sleep(time.Millisecond) {
		one.mu.Lock()
		stale = first.stale
		one.mu.Unlock()
	}
	select {
	case <-first.dead:
		t.Fatal("the connection was ended under a call")
	default:
	}
	close(answer)
	if r := <-done; r.Text() != "please wait" {
		t.Errorf("%+v", r)
	}
	<-listening // the new connection
	<-first.dead
	if r := call(t, s, "web__echo", "hello"); r.Text() != "hello" {
		t.Errorf("%+v", r)
	}
	if st := s.Status()[0]; st.Error != "" || st.Failures != 0 {
		t.Errorf("a replacement counts as a failure: %+v", st)
	}
}
