package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// before puts an upstream of another protocol in front of the fortress's own.
func before(t *testing.T, p ninelives.Protocol, upstream http.HandlerFunc) func(*Settings) {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	base := up.URL
	if p == ninelives.OpenAIResponses {
		base += "/v1"
	}
	m, err := provider.Open("m", provider.Provider("other"), provider.BaseURL(base), provider.Protocol(p), provider.Key(provider.NewSecret("sk-other")))
	if err != nil {
		t.Fatal(err)
	}
	return func(set *Settings) { set.Routes[0].Targets = []Target{{Model: m}} }
}

// faces are the paths of calls, each with a body that holds WORD as the prompt.
var faces = map[string]string{
	"/v1/chat/completions":             `{"model":"x","messages":[{"role":"user","content":"WORD"}]}`,
	"/v1/responses":                    `{"model":"x","input":"WORD"}`,
	"/v1/messages":                     `{"model":"x","max_tokens":9,"messages":[{"role":"user","content":"WORD"}]}`,
	"/v1beta/models/x:generateContent": `{"contents":[{"role":"user","parts":[{"text":"WORD"}]}]}`,
}

// What decides where a request goes and what it holds stands once, in one
// spelling, or nobody is asked: the server behind might obey the other one.
func TestWhatIsRelayedIsWhatWasJudged(t *testing.T) {
	up := &echoing{}
	f := newFortress(t, up.ServeHTTP, nil)
	for _, body := range []string{
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"model":"secret"}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"mod\u0065l":"secret"}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"Model":"secret"}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"MODEL":"secret"}`,
		`{"stream":false,"model":"x","messages":[{"role":"user","content":"hi"}],"stream":true}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"\u017ftream":true}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"messages":[{"role":"user","content":"ho"}]}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"max_tokens":1,"max_tokens":100000}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}],"tools":[],"tools":[{"type":"function"}]}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}]}{"model":"secret"}`,
		`{"model":"x","messages":[{"role":"user","content":"hi"}]}` + "\x00",
		"\ufeff" + hi,
	} {
		resp, text := post(t, "http://"+f.address+"/v1/chat/completions", body)
		if resp.StatusCode != 400 || !strings.Contains(text, `"type":"invalid_request_error"`) || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s %s", body, resp.Status, text)
		}
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("the upstream was asked %q", asked)
	}
	// What decides nothing may stand twice, and is relayed as it is.
	body := `{"model":"x","messages":[{"role":"user","content":"hi","content":"hi"}],"user":"a","user":"b","metadata":{"model":"y"}}`
	if resp, text := post(t, "http://"+f.address+"/v1/chat/completions", body); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, text)
	}
	if asked := up.asked(); len(asked) != 1 || asked[0] != strings.Replace(body, `"x"`, `"m"`, 1) {
		t.Errorf("the upstream was asked %q", asked)
	}
}

// A stream that is asked for in a way that only some servers understand is a
// whole answer or an error for the client, never half of one.
func TestAStreamThatNobodyAskedForIsReadAsOne(t *testing.T) {
	f := newFortress(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{"Hel", "lo"} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
		}
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}, nil)
	for _, stream := range []string{`1`, `"true"`, `"yes"`, `[true]`, `null`} {
		resp, text := post(t, "http://"+f.address+"/v1/chat/completions", strings.Replace(hi, "{", `{"stream":`+stream+`,`, 1))
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || resp.StatusCode != 200 || len(answer.Choices) != 1 || answer.Choices[0].Message.Content != "Hello" {
			t.Errorf("stream %s: %s %s", stream, resp.Status, text)
		}
	}
}

// Bytes that are no text reach a provider of the same protocol as they are, are
// translated as what JSON makes of them, and go nowhere else.
func TestBytesThatAreNoTextDoNoHarm(t *testing.T) {
	words := map[string]string{
		"half of a character": "a\xe2\x82 b", "no character": "a\xff\xfe\x80b", "an escaped NUL": `a\u0000b`, "half of a pair": `a\ud800b`,
		"a NUL": "a\x00b", "a bell": "a\x07b", "an escape": "a\x1b[31mb", "DEL": "a\x7fb", "a line feed": "a\nb",
	}
	up := &echoing{}
	f := newFortress(t, up.ServeHTTP, nil)
	var mu sync.Mutex
	var sent []string
	translated := newFortress(t, nil, before(t, ninelives.AnthropicMessages, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	for name, word := range words {
		body := strings.Replace(faces["/v1/chat/completions"], "WORD", word, 1)
		resp, text := post(t, "http://"+f.address+"/v1/chat/completions", body)
		if asked := up.asked(); resp.StatusCode != 200 || len(asked) != 1 || asked[0] != strings.Replace(body, `"x"`, `"m"`, 1) {
			t.Errorf("%s, relayed: %s %s after %q", name, resp.Status, text, asked)
		}
		resp, text = post(t, "http://"+translated.address+"/v1/chat/completions", body)
		switch mu.Lock(); {
		case resp.StatusCode == 400 && strings.Contains(text, "invalid_request_error") && len(sent) == 0:
		case resp.StatusCode == 200 && len(sent) == 1 && json.Valid([]byte(sent[0])) && utf8.ValidString(sent[0]):
		default:
			t.Errorf("%s, translated: %s %s after %q", name, resp.Status, text, sent)
		}
		sent = nil
		mu.Unlock()
		// As the name of a model, of a user, of a path.
		for _, evil := range []string{`{"model":"` + word + `","messages":[],"user":"` + word + `"}`, `{"model":"x","` + word + `":1}`} {
			if resp, text := post(t, "http://"+f.address+"/v1/chat/completions", evil); resp.StatusCode != 200 && resp.StatusCode != 400 && resp.StatusCode != 404 || strings.ContainsAny(fmt.Sprint(resp.Header), "\x00\x07\x1b\x7f\xff") {
				t.Errorf("%s as a name: %s %v %s", name, resp.Status, resp.Header, text)
			}
			up.asked()
		}
	}
	for _, path := range []string{"/v1/models/a%00b", "/v1/models/%ff%fe", "/v1beta/models/%1b%5b31m:generateContent", "/v1beta/models/a%0d%0aX-Evil:%20b:generateContent", "/v1/responses/%00", "/ninelives/v1/calls/%ff", "/%00%ff", "/v1beta/models/%2e%2e%2f:generateContent"} {
		method := "GET"
		if strings.HasSuffix(path, "generateContent") {
			method = "POST"
		}
		answer := f.raw(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		if status, _, _ := strings.Cut(answer, "\r\n"); !strings.HasPrefix(status, "HTTP/1.1 4") && !strings.HasPrefix(status, "HTTP/1.1 2") || strings.Contains(answer, "\r\nX-Evil") || strings.ContainsAny(answer, "\x00\x1b") {
			t.Errorf("%s: %.600q", path, answer)
		}
	}
	for _, header := range []string{"X-Ninelives-Session: a\x80\xffb", "Idempotency-Key: \xff", "X-Request-Id: \xff\xfe", "User-Agent: codex\xff", "X-Ninelives-Route: \xe2\x82", "Anthropic-Beta: \xff", "Authorization: Bearer \xff"} {
		answer := f.raw(chatOf(hi, header+"\r\n"))
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") && !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !utf8.ValidString(answer) {
			t.Errorf("%q: %.600q", header, answer)
		}
	}
	for _, fort := range []*fortress{f, translated} {
		for line := range strings.Lines(fort.said()) {
			if !json.Valid([]byte(line)) || !utf8.ValidString(line) || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\x00\x07\x1b\x7f\n") {
				t.Errorf("the log has %q", line)
			}
		}
		// All of it can be read again.
		resp, text := get(t, "http://"+fort.address+"/ninelives/v1/calls")
		var list struct{ Calls []struct{ ID string } }
		if err := json.Unmarshal([]byte(text), &list); err != nil || resp.StatusCode != 200 || len(list.Calls) == 0 {
			t.Fatalf("%v: %s", err, text)
		}
		for _, c := range list.Calls {
			if resp, text := get(t, "http://"+fort.address+"/ninelives/v1/calls/"+c.ID); resp.StatusCode != 200 || !utf8.ValidString(text) {
				t.Errorf("%s: %s %q", c.ID, resp.Status, text)
			}
		}
	}
}

// Compressed bodies are refused at every path in the words of its protocol, and
// never unpacked, whatever they would unpack to.
func TestCompressedBodiesAreRefused(t *testing.T) {
	f := newFortress(t, nil, nil)
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip", "x"} {
		for path := range faces {
			resp, text := post(t, "http://"+f.address+path, "\x1f\x8b\x08\x00garbage", "Content-Encoding", encoding)
			if resp.StatusCode != 400 || !strings.Contains(text, "Compressed requests are not read. Send the body as it is.") || !json.Valid([]byte(text)) || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s, %s: %s %s", encoding, path, resp.Status, text)
			}
		}
	}
	for path, body := range faces {
		if resp, text := post(t, "http://"+f.address+path, body, "Content-Encoding", "identity"); resp.StatusCode != 200 {
			t.Errorf("%s, identity: %s %s", path, resp.Status, text)
		}
	}
	if n := f.asked.Load(); int(n) != len(faces) {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// Shapes of JSON that are small and cost much are bounded, relayed and
// translated.
func TestShapesOfJSONAreBounded(t *testing.T) {
	nest := func(n int, open, inside, close string) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(close, n)
	}
	tool := func(schema string) string {
		return `,"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`
	}
	in := func(more string) string { return strings.TrimSuffix(hi, "}") + more }
	relayed := newFortress(t, nil, nil)
	made := newFortress(t, nil, before(t, ninelives.AnthropicMessages, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	for name, c := range map[string]struct{ body, relayed, made string }{
		"too deep a prompt":       {`{"model":"x","messages":` + nest(1001, "[", "", "]") + `}`, "400", "400"},
		"too deep a schema":       {in(tool(nest(1000, `{"a":`, "1", "}"))), "400", "400"},
		"a deep schema":           {in(tool(nest(400, `{"type":"object","properties":{"a":`, `{}`, "}}"))), "200", "200"},
		"a deep list of schemas":  {in(tool(nest(400, `{"anyOf":[`, `{}`, "]}"))), "200", "200"},
		"many members":            {in(strings.Repeat(`,"a":1`, 50_000) + "}"), "200", "200"},
		"many messages":           {`{"model":"x","messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 30_000) + `{"role":"user","content":"a"}]}`, "200", "200"},
		"many parts":              {`{"model":"x","messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, 30_000) + `{"type":"text","text":"a"}]}]}`, "200", "200"},
		"many backslashes":        {`{"model":"x","messages":[{"role":"user","content":"` + strings.Repeat(`\\`, 500_000) + `"}]}`, "200", "200"},
		"many quotes":             {`{"model":"x","messages":[{"role":"user","content":"` + strings.Repeat(`\"`, 500_000) + `"}]}`, "200", "200"},
		"a long number":           {in(`,"seed":` + strings.Repeat("9", 1_000_000) + "}"), "200", ""},
		"a long limit":            {in(`,"max_tokens":` + strings.Repeat("9", 1_000_000) + "}"), "200", ""},
		"a number out of bounds":  {in(`,"max_tokens":1e999999}`), "200", ""},
		"a negative limit":        {in(`,"max_tokens":-5}`), "200", ""},
		"a name of a megabyte":    {in(`,"` + strings.Repeat("a", 1<<20) + `":1}`), "200", "200"},
		"a model of a megabyte":   {strings.Replace(hi, `"x"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1), "200", "200"},
		"many answers at once":    {in(`,"n":1000000000}`), "200", ""},
		"arguments that are JSON": {`{"model":"x","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"` + nest(100_000, "[", "", "]") + `"}}]},{"role":"tool","tool_call_id":"1","content":"b"}]}`, "200", ""},
	} {
		for way, f := range map[string]*fortress{"relayed": relayed, "made": made} {
			want := c.relayed
			if way == "made" {
				want = c.made
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer := f.raw(chatOf(c.body))
			runtime.ReadMemStats(&after)
			status, _, _ := strings.Cut(answer, "\r\n")
			if _, status, _ = strings.Cut(status, " "); want != "" && !strings.HasPrefix(status, want) || want == "" && !strings.HasPrefix(status, "200") && !strings.HasPrefix(status, "400") {
				t.Errorf("%s, %s: %.400s", name, way, answer)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 100*uint64(len(c.body))+8<<20 {
				t.Errorf("%s, %s: %d MB were taken for %d KB", name, way, used>>20, len(c.body)>>10)
			}
		}
	}
}
