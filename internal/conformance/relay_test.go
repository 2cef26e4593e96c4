package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
	"github.com/ninelives-ai/ninelives/provider"
)

// upstreamOf answers every request with a recorded answer, in its pieces, and
// keeps what it was sent.
type upstreamOf struct {
	mu     sync.Mutex
	pieces [][]byte
	header http.Header
	status int
	got    [][]byte
}

func (u *upstreamOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got = append(u.got, body)
	for name, values := range u.header {
		if http.CanonicalHeaderKey(name) != "Content-Length" {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
	}
	w.WriteHeader(u.status)
	for _, p := range u.pieces {
		_, _ = w.Write(p)
		w.(http.Flusher).Flush()
	}
}

// askOf is a client's request for an exchange: the recorded one where there is
// one that says whether it streams, else a plain one.
func askOf(ex wiretest.Exchange) []byte {
	if ex.Request != nil && jsontext.Value(ex.Request).IsValid() {
		if head, err := wire.Peek(ex.Protocol, ex.Request); err == nil && (head.Stream == ex.Stream || ex.Protocol == ninelives.Gemini) && head.PreviousID == "" && !head.Background && !head.Thread {
			return ex.Request
		}
	}
	switch ex.Protocol {
	case ninelives.OpenAIResponses:
		return fmt.Appendf(nil, `{"model":"asked","stream":%v,"input":"hi","odd":{"a":[1]}}`, ex.Stream)
	case ninelives.Gemini:
		return []byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"odd":{"a":[1]}}`)
	}
	return fmt.Appendf(nil, `{"model":"asked","stream":%v,"max_tokens":100000,"messages":[{"role":"user","content":"hi"}],"odd":{"a":[1]}}`, ex.Stream)
}

// pathOf is where a client sends it.
func pathOf(ex wiretest.Exchange) string {
	switch ex.Protocol {
	case ninelives.OpenAIChat:
		return "/v1/chat/completions"
	case ninelives.OpenAIResponses:
		return "/v1/responses"
	case ninelives.AnthropicMessages:
		return "/v1/messages"
	}
	if ex.Stream {
		return "/v1beta/models/asked:streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/asked:generateContent"
}

// Whatever the provider answers, a client of its protocol gets it byte for byte,
// and the provider gets the client's bytes but for the name of the model.
func TestRecordingsPassThroughByteForByte(t *testing.T) {
	passed, altered := 0, 0
	for _, p := range []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini} {
		up := &upstreamOf{}
		server := httptest.NewServer(up)
		base := server.URL
		if p == ninelives.OpenAIChat || p == ninelives.OpenAIResponses {
			base += "/v1"
		}
		m, err := provider.Open("served", provider.Provider("test"), provider.BaseURL(base), provider.Protocol(p), provider.Key(provider.NewSecret("k")))
		if err != nil {
			t.Fatal(err)
		}
		for i, ex := range wiretest.Exchanges(t, p) {
			if ex.Status != 200 || !ex.Expect.Complete || strings.HasPrefix(ex.Header.Get("Content-Type"), bedrock.ContentType) {
				continue
			}
			// An answer that the judge does not take is asked for again: that is
			// healing, and no pass-through. One try shows what one answer comes to.
			policy := gateway.DefaultPolicy()
			policy.Budget.Requests = 1
			g := gateway.New(gateway.Settings{Routes: []gateway.Route{{Name: "default", Policy: &policy, Targets: []gateway.Target{{Model: m}}, Mode: heal.ModeContinue}}}, gateway.Options{})
			client := &http.Client{Transport: g.Transport()}
			ask := askOf(ex)
			ways := ex.Replays()
			if i%16 != 0 || len(ex.Body) > 8<<10 {
				ways = ways[:2] // byte by byte a sample
			}
			for _, way := range ways {
				up.mu.Lock()
				up.pieces, up.header, up.status, up.got = nil, ex.Header, ex.Status, nil
				in := way.Reader()
				for buf := make([]byte, 1<<20); ; {
					n, err := in.Read(buf)
					if n > 0 {
						up.pieces = append(up.pieces, append([]byte(nil), buf[:n]...))
					}
					if err != nil {
						break
					}
				}
				up.mu.Unlock()
				resp, err := client.Post("http://gateway"+pathOf(ex), "application/json", bytes.NewReader(ask))
				if err != nil {
					t.Fatalf("%s: %v", ex.Name, err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if why := notRelayed(ex); why != "" {
					altered++
					continue
				}
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%s (%s): status %d, %v: %.300s", ex.Name, way.Name, resp.StatusCode, err, got)
					continue
				}
				head, _ := wire.Peek(p, ask)
				if want := wire.Splice(ask, head.ModelAt, "served"); len(up.got) != 1 || !bytes.Equal(up.got[0], want) {
					t.Errorf("%s: the provider got\n%.300s\nwant\n%.300s", ex.Name, up.got, want)
				}
				if !bytes.Equal(got, ex.Body) {
					t.Errorf("%s (%s): the client got other bytes: %s", ex.Name, way.Name, firstDifference(got, ex.Body))
					continue
				}
				passed++
			}
			g.Close()
		}
		server.Close()
	}
	if passed == 0 {
		t.Error("nothing passed through")
	}
	t.Logf("%d answers passed through byte for byte, %d were not to", passed, altered)
}

// notRelayed says why the bytes of a complete answer are not those that the
// client gets; empty if they are.
func notRelayed(ex wiretest.Exchange) string {
	e := ex.Expect
	for _, c := range e.ToolCalls {
		if !c.Valid {
			return "a call that was cut is not handed on"
		}
	}
	empty := strings.TrimSpace(e.Text) == "" && len(e.ToolCalls) == 0 && e.Refusal == nil && e.BlockReason == nil
	if finish := ""; empty {
		if e.FinishRaw != nil {
			finish = *e.FinishRaw
		}
		switch strings.ToLower(finish) {
		case "length", "max_tokens", "max_output_tokens", "incomplete", "refusal", "content_filter", "safety", "prohibited_content", "recitation", "blocklist":
		default:
			return "an empty answer is asked for again"
		}
	}
	return ""
}

func firstDifference(got, want []byte) string {
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	around := func(b []byte) string { return string(b[max(0, n-60):min(len(b), n+100)]) }
	return fmt.Sprintf("at %d of %d (want %d): %q, want %q", n, len(got), len(want), around(got), around(want))
}
