package chaos

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// heard is what a client makes of an answer.
type heard struct {
	Text   string
	Calls  []heardCall
	Finish string // in the protocol's words
	In     int    // tokens, all of the prompt
	Out    int
	Cached int
}

type heardCall struct{ ID, Name, Args string }

var everyProtocol = []protocol{chat, responses, messages, gemini}

// listen reads an answer, whole or streamed, in any of the protocols.
func listen(t *testing.T, p protocol, stream bool, got string) heard {
	t.Helper()
	var evs []map[string]any
	if stream {
		evs = events(t, got)
	} else {
		var v map[string]any
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Fatalf("no JSON: %s", got)
		}
		evs = []map[string]any{v}
	}
	var h heard
	n := func(v any) int { f, _ := v.(float64); return int(f) }
	call := func(i int) *heardCall {
		for len(h.Calls) <= i {
			h.Calls = append(h.Calls, heardCall{})
		}
		return &h.Calls[i]
	}
	jsonOf := func(v any) string {
		if s, ok := v.(string); ok {
			return s
		}
		b, _ := json.Marshal(v)
		return string(b)
	}
	for _, ev := range evs {
		switch p {
		case chat:
			u := object(ev["usage"])
			if u != nil {
				h.In, h.Out, h.Cached = n(u["prompt_tokens"]), n(u["completion_tokens"]), n(object(u["prompt_tokens_details"])["cached_tokens"])
			}
			for _, c := range list(ev["choices"]) {
				c := object(c)
				m := object(first(c, "delta", "message"))
				h.Text += text(m["content"])
				if f := text(c["finish_reason"]); f != "" {
					h.Finish = f
				}
				for i, tc := range list(m["tool_calls"]) {
					tc := object(tc)
					if stream {
						i = n(tc["index"])
					}
					at, f := call(i), object(tc["function"])
					at.ID += text(tc["id"])
					at.Name += text(f["name"])
					at.Args += text(f["arguments"])
				}
			}
		case messages:
			m := object(ev["message"])
			if !stream {
				m = ev
			}
			if u := object(m["usage"]); u != nil {
				h.Cached = n(u["cache_read_input_tokens"])
				h.In, h.Out = n(u["input_tokens"])+h.Cached, n(u["output_tokens"])
			}
			if u := object(ev["usage"]); u != nil {
				h.Out = n(u["output_tokens"])
			}
			for _, b := range list(ev["content"]) {
				b := object(b)
				h.Text += text(b["text"])
				if b["type"] == "tool_use" {
					h.Calls = append(h.Calls, heardCall{text(b["id"]), text(b["name"]), jsonOf(b["input"])})
				}
			}
			if b := object(ev["content_block"]); b["type"] == "tool_use" {
				h.Calls = append(h.Calls, heardCall{ID: text(b["id"]), Name: text(b["name"])})
			}
			d := object(ev["delta"])
			h.Text += text(d["text"])
			if s := text(d["partial_json"]); s != "" {
				h.Calls[len(h.Calls)-1].Args += s
			}
			if s := text(first(ev, "stop_reason")) + text(d["stop_reason"]); s != "" {
				h.Finish = s
			}
		case responses:
			r := object(ev["response"])
			if !stream {
				r = ev
			}
			if u := object(r["usage"]); u != nil {
				h.In, h.Out, h.Cached = n(u["input_tokens"]), n(u["output_tokens"]), n(object(u["input_tokens_details"])["cached_tokens"])
				h.Finish = text(r["status"])
				for _, item := range list(r["output"]) {
					item := object(item)
					if item["type"] == "function_call" {
						h.Calls = append(h.Calls, heardCall{text(item["call_id"]), text(item["name"]), jsonOf(item["arguments"])})
					}
					if item["type"] == "message" {
						h.Text += joined(item["content"])
					}
				}
			}
		case gemini:
			u := object(ev["usageMetadata"])
			h.In, h.Cached = n(u["promptTokenCount"]), n(u["cachedContentTokenCount"])
			h.Out = n(u["candidatesTokenCount"]) + n(u["thoughtsTokenCount"])
			for _, c := range list(ev["candidates"]) {
				c := object(c)
				for _, part := range list(object(c["content"])["parts"]) {
					part := object(part)
					if fc := object(part["functionCall"]); fc != nil {
						h.Calls = append(h.Calls, heardCall{"", text(fc["name"]), jsonOf(fc["args"])})
					} else if part["thought"] != true {
						h.Text += text(part["text"])
					}
				}
				if f := text(c["finishReason"]); f != "" {
					h.Finish = f
				}
			}
		}
	}
	return h
}

// hear asks a model and reads its answer.
func hear(t *testing.T, srv *Server, p protocol, model string, stream bool) heard {
	t.Helper()
	path, body := request(p, model, stream, "Go on.")
	if p == chat && stream {
		body = strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	}
	resp, got, err := post(t, srv, path, body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: %v %v %s", p, err, resp, got)
	}
	return listen(t, p, stream, got)
}

// everywhere plays the steps in every protocol, streamed and whole.
func everywhere(t *testing.T, steps []Step, test func(t *testing.T, srv *Server, p protocol, stream bool)) {
	t.Helper()
	for _, p := range everyProtocol {
		for _, stream := range []bool{true, false} {
			t.Run(string(p)+" stream="+strconv.FormatBool(stream), func(t *testing.T) {
				inBubble(t, one(steps...), func(t *testing.T, srv *Server) { test(t, srv, p, stream) })
			})
		}
	}
}

// A list of steps plays a model that works through calls, says something
// beside them, and asks for tools that nobody has.
func TestAListOfStepsPlaysAnAgentsModel(t *testing.T) {
	args := `{"path":"a.txt","lines":3}`
	steps := []Step{
		{Text: "I look first.", Insist: true, Calls: []Call{{Name: "look", Arguments: args}, {Name: "look", Arguments: args}}},
		{Insist: true, Calls: []Call{{Name: "unheard_of", Arguments: `{}`}}},
		{Insist: true, Calls: []Call{{Name: "unheard_of", Arguments: `{}`}}},
		{Text: "Done."},
	}
	finish := map[protocol][2]string{chat: {"tool_calls", "stop"}, responses: {"completed", "completed"}, messages: {"tool_use", "end_turn"}, gemini: {"STOP", "STOP"}}
	everywhere(t, steps, func(t *testing.T, srv *Server, p protocol, stream bool) {
		h := hear(t, srv, p, "x", stream)
		if h.Text != "I look first." || len(h.Calls) != 2 || h.Calls[1].Name != "look" || !sameJSON(h.Calls[1].Args, args) || h.Finish != finish[p][0] {
			t.Errorf("first: %+v", h)
		}
		if p != gemini && h.Calls[0].ID == h.Calls[1].ID {
			t.Errorf("two calls with one id: %+v", h.Calls)
		}
		second, third := hear(t, srv, p, "x", stream), hear(t, srv, p, "x", stream)
		if second.Calls[0].Name != "unheard_of" || second.Calls[0].Args != "{}" || third.Calls[0].Name != "unheard_of" {
			t.Errorf("the same again: %+v, %+v", second, third)
		}
		if p != gemini && second.Calls[0].ID == third.Calls[0].ID {
			t.Error("the id of a call comes twice in a conversation")
		}
		if h := hear(t, srv, p, "x", stream); h.Text != "Done." || len(h.Calls) != 0 || h.Finish != finish[p][1] {
			t.Errorf("last: %+v", h)
		}
	})
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && valueJSON(x) == valueJSON(y)
}

// A length limit strikes inside the second call: its arguments end in mid-JSON
// and the reason says so. Gemini sends no such call.
func TestALimitCutsACall(t *testing.T) {
	whole, long := `{"a":1}`, `{"path":"a.txt","content":"a long text"}`
	calls := []Call{{Name: "one", Arguments: whole}, {Name: "two", Arguments: long}, {Name: "three", Arguments: whole}}
	finish := map[protocol]string{chat: "length", responses: "incomplete", messages: "max_tokens", gemini: "MAX_TOKENS"}
	// Two words, two tokens of the first call, a name and two pieces of the second.
	everywhere(t, []Step{{Text: "I write.", Truncate: 2 + 2 + 3, Calls: calls}}, func(t *testing.T, srv *Server, p protocol, stream bool) {
		h := hear(t, srv, p, "x", stream)
		if h.Text != "I write." || h.Finish != finish[p] {
			t.Errorf("%+v", h)
		}
		if p == gemini {
			if len(h.Calls) != 1 || h.Calls[0].Args != whole {
				t.Errorf("calls: %+v", h.Calls)
			}
			return
		}
		if len(h.Calls) != 2 || h.Calls[0].Args != whole || h.Calls[1].Name != "two" || h.Calls[1].Args != long[:24] {
			t.Errorf("calls: %+v", h.Calls)
		}
	})
	// With room for all of it nothing is cut.
	everywhere(t, []Step{{Text: "I write.", Truncate: 2 + 2 + 1 + 4 + 2, Calls: calls}}, func(t *testing.T, srv *Server, p protocol, stream bool) {
		if h := hear(t, srv, p, "x", stream); len(h.Calls) != 3 || h.Finish == finish[p] {
			t.Errorf("%+v", h)
		}
	})
	// In the text, no call is begun.
	everywhere(t, []Step{{Text: "I write.", Truncate: 1, Calls: calls}}, func(t *testing.T, srv *Server, p protocol, stream bool) {
		if h := hear(t, srv, p, "x", stream); h.Text != "I" || len(h.Calls) != 0 || h.Finish != finish[p] {
			t.Errorf("%+v", h)
		}
	})
}

// A finished call may still have arguments that are no JSON.
func TestBrokenArgumentsOfAFinishedCall(t *testing.T) {
	broken := `{"path": a.txt}`
	everywhere(t, []Step{{Calls: []Call{{Name: "look", Arguments: broken}}}}, func(t *testing.T, srv *Server, p protocol, stream bool) {
		h := hear(t, srv, p, "x", stream)
		if p == gemini {
			if len(h.Calls) != 0 || h.Finish != "MALFORMED_FUNCTION_CALL" {
				t.Errorf("%+v", h)
			}
			return
		}
		if len(h.Calls) != 1 || h.Calls[0].Args != broken {
			t.Errorf("%+v", h)
		}
	})
}

func TestUsageIsWhatTheScriptSays(t *testing.T) {
	everywhere(t, []Step{{Text: "Hi", Usage: &Usage{Input: 9000, Output: 70, Cached: 8000, Reasoning: 50}}}, func(t *testing.T, srv *Server, p protocol, stream bool) {
		h := hear(t, srv, p, "x", stream)
		if h.In != 9000 || h.Out != 70 || h.Cached != 8000 {
			t.Errorf("%+v", h)
		}
	})
}
