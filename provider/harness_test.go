package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROVIDER_TEST_CHILD") != "" {
		os.Exit(child())
	}
	code := m.Run()
	for _, t := range shared.transports {
		t.CloseIdleConnections()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// memory is a network in memory: what is dialled is accepted.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemory() *memory {
	return &memory{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80} }

// serve runs a real HTTP server in memory and opens a chat model of it. It is
// for use inside a synctest bubble.
func serve(t *testing.T, h http.HandlerFunc, opts ...Option) *Model {
	t.Helper()
	network := newMemory()
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(network) }()
	m, err := Open("test-model", append([]Option{Provider("testing"), BaseURL("http://llm.test/v1"), Key(NewSecret(testKey)),
		Protocol(ninelives.OpenAIChat), Dial(network.dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.(*Model).CloseIdleConnections()
		srv.Close()
		network.Close()
	})
	return m.(*Model)
}

// text is a chunk of a chat stream that carries text.
func text(s string) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"test-model","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, s) + "\n\n"
}

const (
	finish = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"test-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"test-model","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"
	done   = "data: [DONE]\n\n"
	ping   = ": ping\n\n"
	answer = `{"id":"c1","object":"chat.completion","created":1,"model":"test-model","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}`
)

// say writes pieces, each flushed; a time.Duration among them is waited for,
// unless the client leaves.
func say(w http.ResponseWriter, r *http.Request, pieces ...any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for _, p := range pieces {
		switch p := p.(type) {
		case string:
			_, _ = w.Write([]byte(p))
			w.(http.Flusher).Flush()
		case time.Duration:
			select {
			case <-time.After(p):
			case <-r.Context().Done():
				return
			}
		}
	}
}

const forever = 1000 * time.Hour

// outcome is what a consumer saw of one call.
type outcome struct {
	text    string
	notes   []string
	numbers map[int]bool
	resp    *ninelives.Response
	fault   *ninelives.Fault
	ends    int
	took    time.Duration
}

// call makes one call and reads it to its end; each, if set, is run on every event.
func call(t *testing.T, ctx context.Context, m ninelives.Model, req *ninelives.Request, each func(ninelives.Event)) outcome {
	t.Helper()
	o := outcome{numbers: map[int]bool{}}
	var b strings.Builder
	start := time.Now()
	for ev, err := range m.Stream(ctx, req) {
		if o.ends > 0 {
			t.Error("the stream goes on after its end")
		}
		if err != nil {
			o.ends++
			if !errors.As(err, &o.fault) {
				t.Errorf("the error is no fault: %v", err)
			}
			continue
		}
		if each != nil {
			each(ev)
		}
		switch e := ev.(type) {
		case ninelives.TextDelta:
			b.WriteString(e.Text)
			o.numbers[e.Attempt] = true
		case ninelives.Notice:
			o.notes = append(o.notes, e.Text)
			o.numbers[e.Attempt] = true
		case ninelives.Done:
			o.ends++
			o.resp = e.Response
			o.numbers[e.Attempt] = true
		}
	}
	if o.ends != 1 {
		t.Errorf("the stream has %d ends", o.ends)
	}
	o.took, o.text = time.Since(start), b.String()
	return o
}

func prompt(clocks ninelives.Clocks) *ninelives.Request {
	r := ninelives.Prompt("Why do cats land on their feet?")
	r.Attempt = &ninelives.Attempt{Number: 3, Clocks: clocks}
	return r
}
