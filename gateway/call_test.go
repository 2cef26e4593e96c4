package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// served is a gateway before an upstream of the chat protocol.
func served(t *testing.T, upstream http.HandlerFunc, change func(*Settings)) *httptest.Server {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	m, err := provider.Open("m", provider.Provider("up"), provider.BaseURL(up.URL+"/v1"), provider.Protocol(ninelives.OpenAIChat), provider.Key(provider.NewSecret("up-key")))
	if err != nil {
		t.Fatal(err)
	}
	set := Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}
	if change != nil {
		change(&set)
	}
	g := New(set, Options{})
	t.Cleanup(g.Close)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server
}

const chatAnswer = `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func post(t *testing.T, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return exchange(t, http.MethodPost, url, body, header...)
}

func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	return exchange(t, http.MethodGet, url, "", header...)
}

// exchange makes a request and reads its answer; header are names and values in turn.
func exchange(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestATraceGoesOnToTheProvider(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got http.Header
	server := served(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, chatAnswer)
	}, nil)
	resp, text := post(t, server.URL+"/v1/chat/completions", `{"model":"x","messages":[{"role":"user","content":"hi"}]}`,
		"Traceparent", parent, "Authorization", "Bearer client", "Cookie", "a=b", "X-Ninelives-Session", "s")
	if resp.StatusCode != 200 || text != chatAnswer {
		t.Errorf("status %d, %s", resp.StatusCode, text)
	}
	if got.Get("Traceparent") != parent {
		t.Errorf("traceparent %q", got.Get("Traceparent"))
	}
	if got.Get("Authorization") != "Bearer up-key" || got.Get("Cookie") != "" || got.Get("X-Ninelives-Session") != "" {
		t.Errorf("what is for the gateway alone has gone on: %v", got)
	}
}

func TestAStreamThatBreaksSaysSoAndIsNoCleanEnd(t *testing.T) {
	server := served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\""+strings.Repeat("Hello ", 20)+"\"},\"finish_reason\":null}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, func(set *Settings) { set.Routes[0].Mode = heal.ModeFail })
	for _, c := range []struct{ path, body, want, not string }{
		{"/v1/chat/completions", `{"model":"x","stream":true,"messages":[{"role":"user","content":"hi"}]}`, `data: {"error":`, "[DONE]"},
		{"/v1/messages", `{"model":"x","max_tokens":99,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, "event: error\n", "message_stop"},
		{"/v1/responses", `{"model":"x","stream":true,"input":"hi"}`, "event: response.failed\n", "response.completed"},
		{"/v1beta/models/x:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, `data: {"error":`, "finishReason"},
	} {
		resp, err := http.Post(server.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if clean := err == nil; clean != strings.HasSuffix(c.path, "/responses") { // its last event has said it all
			t.Errorf("%s: ended with %v", c.path, err)
		}
		if resp.StatusCode != 200 || !strings.Contains(string(body), "Hello ") || !strings.Contains(string(body), c.want) || strings.Contains(string(body), c.not) {
			t.Errorf("%s: %s\n%s", c.path, resp.Status, body)
		}
	}
}

// A provider's last event is written where it has left it out and the answer
// stands: a stream without it looks cut.
func TestTheLastEventIsNeverMissing(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

`)
	}))
	defer up.Close()
	m, err := provider.Open("m", provider.Provider("up"), provider.BaseURL(up.URL), provider.Protocol(ninelives.AnthropicMessages), provider.Key(provider.NewSecret("k")))
	if err != nil {
		t.Fatal(err)
	}
	g := New(Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}, Options{})
	defer g.Close()
	server := httptest.NewServer(g)
	defer server.Close()
	_, text := post(t, server.URL+"/v1/messages", `{"model":"x","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if n := strings.Count(text, "event: message_stop\n"); n != 1 || !strings.HasSuffix(text, "data: {\"type\":\"message_stop\"}\n\n") || strings.Count(text, "message_delta") != 2 {
		t.Errorf("the client got %s", text)
	}
}

// What one provider says of the request stands, although another could not be
// reached.
func TestAnAnswerAboutTheRequestStandsBesideAnOutage(t *testing.T) {
	var dead, alive *httptest.Server
	open := func(name string, s *httptest.Server) Target {
		m, err := provider.Open("m", provider.Provider(name), provider.BaseURL(s.URL+"/v1"), provider.Protocol(ninelives.OpenAIChat), provider.Key(provider.NewSecret("k")))
		if err != nil {
			t.Fatal(err)
		}
		return Target{Model: m}
	}
	dead = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer dead.Close()
	answer, status := "", 0
	alive = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer alive.Close()
	for _, c := range []struct {
		name, answer string
		status, told int
		holds        string
	}{
		{"bad request", `{"error":{"message":"messages: must not be empty","type":"invalid_request_error","param":"messages","code":null}}`, 400, 400, "must not be empty"},
		{"refusal", `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I will not."},"finish_reason":"stop"}]}`, 200, 200, "I will not."},
	} {
		for _, order := range [][]Target{{open("dead", dead), open("alive", alive)}, {open("alive", alive), open("dead", dead)}} {
			answer, status = c.answer, c.status
			g := New(Settings{Routes: []Route{{Name: "default", Targets: order}}}, Options{})
			server := httptest.NewServer(g)
			resp, text := post(t, server.URL+"/v1/chat/completions", `{"model":"x","messages":[{"role":"user","content":"hi"}]}`)
			if resp.StatusCode != c.told || !strings.Contains(text, c.holds) {
				t.Errorf("%s, %s first: status %d, %s", c.name, order[0].Model.Name(), resp.StatusCode, text)
			}
			server.Close()
			g.Close()
		}
	}
}
