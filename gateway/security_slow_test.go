package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// endless is a model whose answer has no end.
type endless struct {
	given atomic.Int64 // bytes
	asked atomic.Int32
	ended chan time.Time // when it was stopped
}

func (*endless) Name() string { return "up/m" }

func (m *endless) Stream(ctx context.Context, _ *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		m.asked.Add(1)
		defer func() { m.ended <- time.Now() }()
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Sprint(n, " ", strings.Repeat("words ", 200))
			m.given.Add(int64(len(text)))
			if !yield(ninelives.TextDelta{Attempt: 1, Text: text}, nil) {
				return
			}
		}
		yield(nil, ctx.Err())
	}
}

// servedBy is a whole gateway before a model, on connections whose time is
// virtual. It has ended when the test has.
func servedBy(t *testing.T, m ninelives.Model, change func(*Settings)) (*Server, *pipe) {
	t.Helper()
	set := Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}
	if change != nil {
		change(&set)
	}
	g, p := New(set, Options{}), newPipe()
	serving(t, g, p)
	return g, p
}

// patience is Limits.Write in these tests: less than the first sign of life
// takes, whose timer would wait for a lock, and so would the time.
const patience = 20 * time.Second

// A client that takes nothing of its stream holds no more than what is on its
// way, and counts as gone when its time is up: so long and no longer.
func TestAClientThatTakesNothingIsCutInTime(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"x","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":        `{"model":"x","stream":true,"input":"hi"}`,
		"/v1/messages":         `{"model":"x","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1beta/models/x:streamGenerateContent?alt=sse": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &endless{ended: make(chan time.Time, 9)}
			g, p := servedBy(t, m, func(set *Settings) { set.Limits.Write = patience })
			conn := p.dial()
			defer conn.Close()
			began := time.Now()
			go io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
			if status, err := bufio.NewReaderSize(conn, 16).ReadString(' '); err != nil || status != "HTTP/1.1 " {
				t.Fatal(status, err)
			}
			took := (<-m.ended).Sub(began)
			if took < patience*7/8 || took > patience {
				t.Errorf("%s: it was cut after %v, want %v", path, took, patience)
			}
			if n := m.given.Load(); n > 64<<10 {
				t.Errorf("%s: the model could give %d bytes", path, n)
			}
			synctest.Wait()
			if n := g.drain.inFlight(); n != 0 || m.asked.Load() != 1 {
				t.Errorf("%s: %d calls are under way, the model was asked %d times", path, n, m.asked.Load())
			}
		})
	}
}

// A call that goes on without its client ends where what is kept of it is full.
func TestACallThatNobodyReadsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &endless{ended: make(chan time.Time, 9)}
		g, p := servedBy(t, m, func(set *Settings) { set.Limits.Write = patience })
		conn := p.dial()
		defer conn.Close()
		began := time.Now()
		body := strings.Replace(hi, "{", `{"stream":true,`, 1)
		go io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
		if _, err := bufio.NewReaderSize(conn, 16).ReadString(' '); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := m.given.Load(); n > 2*liveLead {
			t.Errorf("%d bytes are ahead of the client", n)
		}
		took := (<-m.ended).Sub(began)
		if took < patience*7/8 || took > patience {
			t.Errorf("the client was dropped after %v, want %v", took, patience)
		}
		if n := m.given.Load(); n > liveBytes {
			t.Errorf("%d bytes were made for nobody", n)
		}
		synctest.Wait()
		if n := g.drain.inFlight(); n != 0 || m.asked.Load() != 1 {
			t.Errorf("%d calls are under way, the model was asked %d times", n, m.asked.Load())
		}
	})
}

// wordy is a model with one long answer.
type wordy struct{ text string }

func (wordy) Name() string { return "up/m" }
func (m wordy) Stream(context.Context, *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		if yield(ninelives.TextDelta{Attempt: 1, Text: m.text}, nil) {
			yield(ninelives.Done{Attempt: 1, Response: &ninelives.Response{Message: ninelives.AssistantText(m.text), Finish: ninelives.FinishStop}}, nil)
		}
	}
}

// A slow client that takes something now and then has all the time it needs,
// also for an answer in one piece.
func TestAClientThatIsSlowGetsAllOfIt(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			text := strings.Repeat("words ", 20_000)
			_, p := servedBy(t, wordy{text}, func(set *Settings) { set.Limits.Write = patience })
			conn := p.dial()
			defer conn.Close()
			began := time.Now()
			body := fmt.Sprintf(`{"model":"x","stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
			go io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
			var got bytes.Buffer
			var err error
			for err == nil {
				_, err = io.CopyN(&got, conn, 32<<10)
				time.Sleep(9 * time.Second)
			}
			if took := time.Since(began); err != io.EOF || took < patience*3/2 {
				t.Errorf("stream %v: %v after %v and %d bytes", stream, err, took, got.Len())
			}
			resp, err := http.ReadResponse(bufio.NewReader(&got), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			if err != nil || strings.Count(string(answer), "words ") != 20_000 || stream && !strings.HasSuffix(string(answer), "data: [DONE]\n\n") {
				t.Errorf("stream %v: %v, %d bytes", stream, err, len(answer))
			}
		})
	}
}

// A client that takes nothing of what is no call is cut as well.
func TestAClientThatTakesNoPageIsCut(t *testing.T) {
	for _, path := range []string{"/", "/metrics", "/v1/models", "/healthz", "/ninelives/v1/health", "/ninelives/v1/calls", "/nowhere", "/v1/responses/resp_1"} {
		synctest.Test(t, func(t *testing.T) {
			_, p := servedBy(t, wordy{"hi"}, nil)
			conn := p.dial()
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(defaultWrite + time.Second)
			if n, err := io.Copy(io.Discard, conn); n != 0 || err != nil {
				t.Errorf("%s: after so long it gets %d bytes, %v", path, n, err)
			}
		})
	}
}

// A request that comes byte by byte is answered when its time is up, without
// anybody being asked, and holds nothing then.
func TestARequestByteByByteIsEndedInTime(t *testing.T) {
	for name, c := range map[string]struct {
		head   string
		status string
		after  time.Duration
	}{
		"a body":                    {"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 400 Bad Request", defaultReadTimeout},
		"chunks":                    {"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n", "HTTP/1.1 400 Bad Request", defaultReadTimeout},
		"a chunk's end":             {"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;", "HTTP/1.1 400 Bad Request", defaultReadTimeout},
		"a body that is not read":   {"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 404 Not Found", headerTime},
		"a body where none belongs": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 200 OK", headerTime},
		"a body of a stranger":      {"POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 403 Forbidden", headerTime},
		"headers":                   {"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: ", "", headerTime},
		"a first line":              {"POST /v1/", "", headerTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &endless{ended: make(chan time.Time, 9)}
			g, p := servedBy(t, m, nil)
			conn := p.dial()
			began := time.Now()
			var sending sync.WaitGroup
			defer sending.Wait()
			defer conn.Close()
			sending.Go(func() {
				for _, err := io.WriteString(conn, c.head); err == nil; _, err = io.WriteString(conn, "a") {
					time.Sleep(time.Second)
				}
			})
			answer, _ := io.ReadAll(conn)
			took := time.Since(began)
			if took < c.after || took > c.after+2*time.Second || !strings.HasPrefix(string(answer), c.status) || strings.Contains(c.status, "400") != strings.Contains(string(answer), "did not come to its end in time") {
				t.Errorf("%s: after %v, want %v: %s", name, took, c.after, answer)
			}
			synctest.Wait()
			if g.drain.inFlight() != 0 || g.memory.Load() != 0 || m.asked.Load() != 0 {
				t.Errorf("%s: %d calls, %d bytes, %d times asked", name, g.drain.inFlight(), g.memory.Load(), m.asked.Load())
			}
		})
	}
}

// An HTTP/2 stream is not reset while nothing is there to be taken.
func TestSilenceIsNotTheClientsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := func(w http.ResponseWriter, r *http.Request) {
			out := newConnection(w, r, time.Second)
			out.Start(http.StatusOK, http.Header{})
			for range 3 {
				if out.Flush() != nil {
					t.Error("it cannot be flushed")
				}
				time.Sleep(time.Minute)
				if _, err := out.Write([]byte("x")); err != nil {
					t.Error(err)
				}
			}
		}
		p := newPipe()
		srv := newServer(http.HandlerFunc(handler), Limits{}, slog.New(slog.DiscardHandler))
		srv.Protocols = &http.Protocols{}
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
		go srv.Serve(p)
		defer srv.Close()
		for _, two := range []bool{false, true} {
			client := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil }}
			client.Protocols.SetHTTP1(!two)
			client.Protocols.SetUnencryptedHTTP2(two)
			request, err := http.NewRequest("GET", "http://localhost/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != "xxx" || err != nil || (resp.ProtoMajor == 2) != two {
				t.Errorf("%s: %q, %v", resp.Proto, body, err)
			}
			_ = resp.Body.Close()
			client.CloseIdleConnections()
		}
	})
}
