package provider

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
)

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// Every protocol from the request's path and headers to Done, streamed and whole.
func TestEveryProtocolIsSpokenFromEndToEnd(t *testing.T) {
	for _, c := range []struct {
		protocol ninelives.Protocol
		base     string
		stream   string // path and query
		whole    string
		auth     string
		body     string // a part of it
		events   string
		answer   string
	}{
		{
			protocol: ninelives.OpenAIChat, base: "http://llm.test/v1", stream: "/v1/chat/completions", whole: "/v1/chat/completions",
			auth: "Authorization", body: `"messages"`,
			events: text("Hel") + text("lo") + finish + usage + done, answer: answer,
		},
		{
			protocol: ninelives.OpenAIResponses, base: "http://llm.test/v1", stream: "/v1/responses", whole: "/v1/responses",
			auth: "Authorization", body: `"input"`,
			events: event("response.created", `{"type":"response.created","response":{"id":"r1","object":"response","status":"in_progress","model":"test-model","output":[]}}`) +
				event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"id":"m1","type":"message","role":"assistant","status":"in_progress","content":[]}}`) +
				event("response.content_part.added", `{"type":"response.content_part.added","item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`) +
				event("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":"Hello"}`) +
				event("response.completed", `{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"test-model","output":[{"id":"m1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":7,"output_tokens":1,"total_tokens":8}}}`),
			answer: `{"id":"r1","object":"response","status":"completed","model":"test-model","output":[{"id":"m1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":7,"output_tokens":1,"total_tokens":8}}`,
		},
		{
			protocol: ninelives.AnthropicMessages, base: "http://llm.test", stream: "/v1/messages", whole: "/v1/messages",
			auth: "X-Api-Key", body: `"max_tokens"`,
			events: event("message_start", `{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"model":"test-model","stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
				event("ping", `{"type":"ping"}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`) +
				event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
				event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`) +
				event("message_stop", `{"type":"message_stop"}`),
			answer: `{"id":"m1","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"model":"test-model","stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}`,
		},
		{
			protocol: ninelives.Gemini, base: "http://llm.test", stream: "/v1beta/models/test-model:streamGenerateContent?alt=sse", whole: "/v1beta/models/test-model:generateContent",
			auth: "X-Goog-Api-Key", body: `"contents"`,
			events: `data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}]}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8}}` + "\n\n",
			answer: `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8}}`,
		},
	} {
		for _, whole := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					want := c.stream
					if whole {
						want = c.whole
					}
					if got := r.URL.RequestURI(); got != want {
						t.Errorf("%s: %s, want %s", c.protocol, got, want)
					}
					if !strings.Contains(r.Header.Get(c.auth), testKey) || !strings.Contains(string(body), c.body) {
						t.Errorf("%s: header %v, body %s", c.protocol, r.Header, body)
					}
					if version := r.Header.Get("Anthropic-Version"); (version != "") != (c.protocol == ninelives.AnthropicMessages) {
						t.Errorf("%s: version %q", c.protocol, version)
					}
					if whole {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, c.answer)
						return
					}
					say(w, r, c.events)
				}, Protocol(c.protocol), BaseURL(c.base))
				req := prompt(ninelives.Clocks{})
				if whole {
					req.Attempt.Repairs = []ninelives.Repair{{Name: "no_stream"}}
				}
				o := call(t, context.Background(), m, req, nil)
				if o.text != "Hello" || o.resp == nil || o.resp.Text() != "Hello" || o.resp.Finish != ninelives.FinishStop || o.resp.Usage.Input != 7 {
					t.Errorf("%s, whole %v: text %q, %+v, fault %v", c.protocol, whole, o.text, o.resp, o.fault)
				}
			})
		}
	}
}
