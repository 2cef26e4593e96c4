package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// read is the full decoder of a protocol.
func read(p ninelives.Protocol, body []byte) (wire.Incoming, error) {
	switch p {
	case ninelives.OpenAIChat:
		return openai.DecodeChatRequest(body)
	case ninelives.OpenAIResponses:
		return openai.DecodeResponsesRequest(body)
	case ninelives.AnthropicMessages:
		return anthropic.DecodeRequest(body)
	}
	req, err := gemini.DecodeRequest("", body)
	return wire.Incoming{Request: req}, err
}

func peek(t *testing.T, p ninelives.Protocol, body string) wire.Head {
	t.Helper()
	h, err := wire.Peek(p, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return h
}

func TestPeekReadsTheHead(t *testing.T) {
	yes := true
	tests := map[string]struct {
		p    ninelives.Protocol
		body string
		want wire.Head
	}{
		"chat": {ninelives.OpenAIChat,
			`{"model":"gpt \u0035","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"n":1,"tools":[{"type":"function"}],"user":"u","prompt_cache_key":"k"}`,
			wire.Head{Model: "gpt 5", ModelAt: [2]int{9, 21}, Stream: true, Usage: true, MaxTokens: 7, N: 1, Tools: true, Text: 32 + 21, Session: "k", Simple: true}},
		"chat, newer limit": {ninelives.OpenAIChat, `{"max_completion_tokens":9,"max_tokens":7,"tools":[],"n":2}`,
			wire.Head{MaxTokens: 9, N: 2, Text: 2}},
		"chat, no tool may be called": {ninelives.OpenAIChat, `{"tools":[1],"tool_choice":"none"}`, wire.Head{Text: 3, Simple: true}},
		"responses": {ninelives.OpenAIResponses, ` {"input":"hi","previous_response_id":"resp_1","store":true,"background":true,"max_output_tokens":3,"model":null} `,
			wire.Head{ModelAt: [2]int{108, 112}, Text: 4, PreviousID: "resp_1", Store: &yes, Background: true, MaxTokens: 3, Simple: true}},
		"messages": {ninelives.AnthropicMessages, `{"model":"claude","max_tokens":5,"system":"s","messages":[],"metadata":{"user_id":"{\"session_id\":\"abc\"}"},"tool_choice":{"type":"none"},"tools":[{}],"thread":null}`,
			wire.Head{Model: "claude", ModelAt: [2]int{9, 17}, MaxTokens: 5, Text: 3 + 2 + 4, Session: "abc", Simple: true}},
		"messages, an older session and a thread": {ninelives.AnthropicMessages, `{"metadata":{"user_id":"user_1_account__session_def"},"thread":{"type":"create"}}`,
			wire.Head{Session: "def", Thread: true, Simple: true}},
		"a user is no session": {ninelives.AnthropicMessages, `{"metadata":{"user_id":"someone"}}`, wire.Head{Simple: true}},
		"gemini": {ninelives.Gemini, `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":8,"candidateCount":1},"tools":[{"a":1}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`,
			wire.Head{MaxTokens: 8, N: 1, Text: 28 + 8, Simple: true}},
		"nothing": {ninelives.OpenAIChat, "{}", wire.Head{Simple: true}},
	}
	for name, tt := range tests {
		got := peek(t, tt.p, tt.body)
		store := got.Store
		got.Store, tt.want.Store = nil, nil
		if got != tt.want || name == "responses" && (store == nil || !*store) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tt.want)
		}
	}
}

func TestPeekTellsWhatMustBeReadInFull(t *testing.T) {
	for body, p := range map[string]ninelives.Protocol{
		`{"messages":[{"content":[{"type":"image_url"}]}]}`:     ninelives.OpenAIChat,
		`{"messages":[{"content":[{"type" : "input_audio"}]}]}`: ninelives.OpenAIChat,
		`{"response_format":{"type":"json_object"}}`:            ninelives.OpenAIChat,
		`{"n":2}`: ninelives.OpenAIChat,
		`{"input":[{"content":[{"type":"input_file"}]}]}`:                                  ninelives.OpenAIResponses,
		`{"text":{"format":{"type":"json_schema"}}}`:                                       ninelives.OpenAIResponses,
		`{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`: ninelives.AnthropicMessages,
		`{"output_config":{"format":{"type":"json_schema"}}}`:                              ninelives.AnthropicMessages,
		`{"contents":[{"parts":[{"inlineData":{}}]}]}`:                                     ninelives.Gemini,
		`{"contents":[{"parts":[{"file_data":{}}]}]}`:                                      ninelives.Gemini,
		`{"generationConfig":{"responseMimeType":"application/json"}}`:                     ninelives.Gemini,
		`{"generation_config":{"response_schema":{}}}`:                                     ninelives.Gemini,
		`{"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`:                     ninelives.Gemini,
	} {
		if peek(t, p, body).Simple {
			t.Errorf("%s: simple", body)
		}
	}
	for body, p := range map[string]ninelives.Protocol{
		`{"messages":[{"content":"an image_url of type image"}]}`:                              ninelives.OpenAIChat,
		`{"tools":[{"parameters":{"properties":{"a":{"type":"file"}}}}]}`:                      ninelives.OpenAIChat,
		`{"response_format":{"type":"text"},"text":{"verbosity":"low"}}`:                       ninelives.OpenAIChat,
		`{"text":{"format":{"type":"text"}}}`:                                                  ninelives.OpenAIResponses,
		`{"output_config":{"effort":"high"},"messages":[{"content":"\"type\":\"image\""}]}`:    ninelives.AnthropicMessages,
		`{"generationConfig":{"responseModalities":["text"],"responseMimeType":"text/plain"}}`: ninelives.Gemini,
	} {
		if !peek(t, p, body).Simple {
			t.Errorf("%s: not simple", body)
		}
	}
}

func TestPeekRefusesWhatIsNoRequest(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	peek(t, ninelives.OpenAIChat, deep(1000))
	for _, body := range []string{
		"", " ", "[]", "null", `"a"`, "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":"b`, `{"a":"b\"}`, `{"a":[}`, `{"a":[1}`, `{"a":{]}`,
		`{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{} {}`, `{}x`, `{"a":1}]`, `{"a":x}`, deep(1001),
		`{"model":"a","model":"b"}`, `{"model":"a","mod\u0065l":"b"}`, `{"stream":true,"stream":false}`,
		`{"messages":[],"messages":[]}`, `{"tools":[],"tools":[]}`, `{"tool_choice":"none","tool_choice":"auto"}`,
		`{"model":"a","Model":"b"}`, `{"MODEL":"b"}`, `{"\u017ftream":true}`, `{"Messages":[]}`, `{"Max_Tokens":5}`,
	} {
		_, err := wire.Peek(ninelives.OpenAIChat, []byte(body))
		var fault *ninelives.Fault
		if !errors.As(err, &fault) || fault.Class != ninelives.ClassFormat || fault.Status != 400 {
			t.Errorf("%.60q: %v", body, err)
		}
	}
}

func TestSpliceExchangesTheModelAlone(t *testing.T) {
	body := []byte(`{ "a": 1.0 , "model" : "old" ,"b":"\u00e9"}`)
	before := bytes.Clone(body)
	h := peek(t, ninelives.OpenAIChat, string(body))
	if got := string(wire.Splice(body, h.ModelAt, `n"ew`)); got != `{ "a": 1.0 , "model" : "n\"ew" ,"b":"\u00e9"}` {
		t.Errorf("spliced %s", got)
	}
	if !bytes.Equal(body, before) {
		t.Errorf("the input was changed to %s", body)
	}
	if got := wire.Splice(body, h.ModelAt, "old"); &got[0] != &body[0] {
		t.Error("the same name made a copy")
	}
	if got := wire.Splice(body, [2]int{}, "new"); &got[0] != &body[0] {
		t.Error("a body without a model was changed")
	}
}

// FuzzPeek: whatever both the look and the full reader take, they read alike.
func FuzzPeek(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":5,"max_completion_tokens":0}`,
		`{"model":"m\n","input":"hi","stream":false,"max_output_tokens":-5}`,
		`{"contents":[],"generation_config":{"max_output_tokens":5},"generationConfig":{}}`,
		`{"model":7,"messages":[{"role":"user","content":[]}],"max_tokens":1e2,"stream":null}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini} {
			h, err := wire.Peek(p, body)
			in, errRead := read(p, body)
			if err != nil || errRead != nil {
				continue
			}
			if h.Model != in.Request.Model || h.Stream != in.Stream || h.MaxTokens != in.Request.MaxTokens {
				t.Fatalf("%s: peeked %q %v %d, read %q %v %d", p, h.Model, h.Stream, h.MaxTokens, in.Request.Model, in.Stream, in.Request.MaxTokens)
			}
			if h.ModelAt[1] > 0 {
				again, err := wire.Peek(p, wire.Splice(body, h.ModelAt, "another \"name\""))
				if err != nil || again.Model != "another \"name\"" {
					t.Fatalf("%s: after splicing %q, %v", p, again.Model, err)
				}
			}
		}
	})
}

func BenchmarkPeek(b *testing.B) {
	turn := `{"role":"user","content":[{"type":"text","text":"` + strings.Repeat(`Some text with \"quotes\" and\nlines that go on for a while, as prose and code do. `, 10) + `"}]},`
	body := []byte(`{"model":"m","stream":true,"max_tokens":5,"tools":[{"name":"read","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"messages":[` +
		strings.Repeat(turn, 80) + turn[:len(turn)-1] + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Peek(ninelives.AnthropicMessages, body); err != nil {
			b.Fatal(err)
		}
	}
}
