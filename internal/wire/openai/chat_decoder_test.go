package openai_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// chatStream writes chunks of one choice: each argument is the inside of a
// choice without its index, or a whole line if it does not begin with ".
func chatStream(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		if strings.HasPrefix(c, `"`) {
			c = `data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` + c + `}]}`
		}
		b.WriteString(c + "\n\n")
	}
	return b.String()
}

const chatDone = "data: [DONE]"

// chatReplay decodes a stream in one read, byte by byte and in sevens, and
// insists that it makes no difference.
func chatReplay(t *testing.T, stream string, o wire.DecodeOptions) (*ninelives.Response, *ninelives.Fault) {
	t.Helper()
	if o.Candidate.Provider == "" {
		o.Candidate.Provider, o.Candidate.Model = "p", "m"
	}
	events, resp, err := chatDecode(strings.NewReader(stream), o)
	for _, n := range []int{1, 7} {
		again, resp2, err2 := chatDecode(wiretest.Pieces(wiretest.Every([]byte(stream), n)), o)
		if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(resp, resp2) || !reflect.DeepEqual(err, err2) {
			t.Fatalf("in pieces of %d:\n%+v %+v %v\nat once:\n%+v %+v %v", n, again, resp2, err2, events, resp, err)
		}
	}
	var fault *ninelives.Fault
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("the error is no fault: %v", err)
	}
	if err == nil {
		chatCompareEvents(t, events, resp)
	}
	return resp, fault
}

func TestChatStreamIsAnAnswer(t *testing.T) {
	tools := []ninelives.Tool{{Name: "f"}, {Name: "g"}}
	type call = ninelives.ToolCall
	for _, c := range []struct {
		name   string
		stream string
		o      wire.DecodeOptions
		text   string
		think  string
		refuse string
		calls  []call
		finish ninelives.FinishReason
		raw    string
	}{
		{
			name:   "text",
			stream: chatStream(`"delta":{"role":"assistant","content":""}`, `"delta":{"content":"Hel"}`, `"delta":{"content":"lo"}`, `"delta":{},"finish_reason":"stop"`, chatDone),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "text after the reason",
			stream: chatStream(`"delta":{"content":"Hel"},"finish_reason":"stop"`, `"delta":{"content":"lo"},"finish_reason":"stop"`),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "the last reason counts, and null is none",
			stream: chatStream(`"delta":{"content":"x"},"finish_reason":""`, `"delta":{},"finish_reason":"length"`, `"delta":{},"finish_reason":"stop"`, `"delta":{},"finish_reason":null`),
			text:   "x", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "[DONE] in place of a reason",
			stream: chatStream(`"delta":{"content":"Hello"}`, chatDone),
			text:   "Hello", finish: ninelives.FinishStop,
		},
		{
			name:   "[DONE] in place of a reason, after whole calls",
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, chatDone),
			calls:  []call{{ID: "a", Name: "f", Arguments: "{}"}}, finish: ninelives.FinishToolCalls,
		},
		{
			name:   "the whole message at the end",
			stream: chatStream(`"delta":{"content":"Hello"}`, `"delta":{},"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"`),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "a reason with the upstream's own behind a colon",
			stream: chatStream(`"delta":{"content":"x"},"finish_reason":"content_filter: RECITATION"`),
			text:   "x", finish: ninelives.FinishContentFilter, raw: "content_filter: RECITATION",
		},
		{
			name: "a further choice begins before the first",
			stream: chatStream(`data: {"choices":[{"index":1,"delta":{"role":"assistant","content":""}}]}`, `"delta":{"content":"Hel"}`,
				`data: {"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"length"}]}`, `"delta":{"content":"lo"},"finish_reason":"stop"`),
			text: "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "the whole message alone",
			stream: chatStream(`"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"`),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "frames that lost the empty line between them",
			stream: "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\ndata: [DONE]\n\n",
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "signs of life, chunks without choices, null errors",
			stream: chatStream(`data: : PROCESSING`, `data: {"id":"","choices":[],"prompt_filter_results":[]}`, "event: ping\ndata: {}", `data: {"choices":null,"error":null}`, `data: {"error":null,"choices":[{"index":0,"delta":{"content":"Hello"}}]}`, `data: keep-alive`, `"delta":{},"finish_reason":"stop"`, `data: {"usage":{"prompt_tokens":1}}`),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "a rune cut between two chunks",
			stream: chatStream(`"delta":{"content":"a\ud83c"}`, `"delta":{"content":"\udf0db"}`, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe4\xbd\"}}]}", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xa0!\"}}]}", `"delta":{"content":"\ud83c"},"finish_reason":"stop"`),
			text:   "a🌍b你!\uFFFD", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "a backslash before what looks like half a rune",
			stream: chatStream(`"delta":{"content":"\\ud83c"}`, `"delta":{},"finish_reason":"stop"`),
			text:   `\ud83c`, finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "reasoning in its fields, once",
			stream: chatStream(`"delta":{"content":"","reasoning":"th","reasoning_content":"th","reasoning_details":[{"type":"reasoning.text","text":"th","index":0}]}`, `"delta":{"reasoning":"ink"}`, `"delta":{"content":"Hello","reasoning":null}`, `"delta":{},"finish_reason":"stop"`),
			text:   "Hello", think: "think", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "reasoning in details alone",
			stream: chatStream(`"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"th"}]}`, `"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"ink"}],"content":"Hello"}`, `"delta":{},"finish_reason":"stop"`),
			text:   "Hello", think: "think", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "thinking parts",
			stream: chatStream(`"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"th"}]}]}`, `"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ink"}]},{"type":"text","text":"Hel"}]}`, `"delta":{"content":"lo"},"finish_reason":"stop"`),
			text:   "Hello", think: "think", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name: "thinking in tags", o: wire.DecodeOptions{Dialect: wire.Dialect{ThinkTags: true}},
			stream: chatStream(`"delta":{"content":"<thi"}`, `"delta":{"content":"nk>\nthink\n</think>\n"}`, `"delta":{"content":"\nHello"}`, `"delta":{},"finish_reason":"stop"`),
			text:   "Hello", think: "think", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name: "a call in tags", o: wire.DecodeOptions{Dialect: wire.Dialect{TextToolCalls: true}, Tools: tools},
			stream: chatStream(`"delta":{"content":"Look.\n<tool_call>{\"name\":\"f\","}`, `"delta":{"content":"\"arguments\":{\"x\":1}}</tool_call>"}`, `"delta":{},"finish_reason":"stop"`),
			text:   "Look.", calls: []call{{Name: "f", Arguments: `{"x":1}`}}, finish: ninelives.FinishToolCalls, raw: "stop",
		},
		{
			name:   "a refusal",
			stream: chatStream(`"delta":{"content":null,"refusal":""}`, `"delta":{"refusal":"I "}`, `"delta":{"refusal":"can't."}`, `"delta":{},"finish_reason":"stop"`),
			refuse: "I can't.", finish: ninelives.FinishRefusal, raw: "stop",
		},
		{
			name:   "text and two calls, interleaved, with stop",
			stream: chatStream(`"delta":{"content":"Let me look."}`, `"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}`, `"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"y\":"}},{"index":0,"function":{"arguments":"{}"}}]}`, `"delta":{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]}`, `"delta":{},"finish_reason":"stop"`),
			text:   "Let me look.", calls: []call{{ID: "a", Name: "f", Arguments: `{}`}, {ID: "b", Name: "g", Arguments: `{"y":2}`}}, finish: ninelives.FinishToolCalls, raw: "stop",
		},
		{
			name:   "arguments in every form",
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}]}`, `"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":null}}]}`, `"delta":{"tool_calls":[{"index":2,"id":"c","function":{"name":"f"}}]}`, `"delta":{"tool_calls":[{"index":"3","id":"d","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}]}`, `"delta":{"tool_calls":[{"index":4,"id":5,"name":"f","arguments":"{}"}]}`, `"delta":{},"finish_reason":"tool_calls"`),
			calls:  []call{{ID: "a", Name: "f", Arguments: `{"x": 1}`}, {ID: "b", Name: "f", Arguments: `{}`}, {ID: "c", Name: "f", Arguments: `{}`}, {ID: "d", Name: "f", Arguments: `{"x":1}`}, {ID: "5", Name: "f", Arguments: `{}`}},
			finish: ninelives.FinishToolCalls, raw: "tool_calls",
		},
		{
			name:   "the call that there was before there were several",
			stream: chatStream(`"delta":{"function_call":{"name":"f","arguments":""}}`, `"delta":{"function_call":{"arguments":"{\"x\":1}"}}`, `"delta":{},"finish_reason":"function_call"`),
			calls:  []call{{Name: "f", Arguments: `{"x":1}`}}, finish: ninelives.FinishToolCalls, raw: "function_call",
		},
		{
			name: "the tool that stands in for a schema", o: wire.DecodeOptions{OutputTool: "answer"},
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"answer","arguments":"{\"x\":"}}]}`, `"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`, `"delta":{},"finish_reason":"tool_calls"`),
			text:   `{"x":1}`, finish: ninelives.FinishStop, raw: "tool_calls",
		},
		{
			name: "the tool that stands in for a schema, cut", o: wire.DecodeOptions{OutputTool: "answer"},
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"answer","arguments":"{\"x\":"}}]}`, `"delta":{},"finish_reason":"stop"`),
			text:   `{"x":`, finish: ninelives.FinishLength, raw: "stop",
		},
		{
			name: "names that were mapped", o: wire.DecodeOptions{Names: map[string]string{"a_b": "a.b"}},
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"a_b","arguments":"{}"}}]}`, `"delta":{},"finish_reason":"tool_calls"`),
			calls:  []call{{ID: "a", Name: "a.b", Arguments: `{}`}}, finish: ninelives.FinishToolCalls, raw: "tool_calls",
		},
		{
			name:   "cut in the arguments, whatever was said",
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"y"}}]}`, `"delta":{},"finish_reason":"tool_calls"`),
			calls:  []call{{ID: "a", Name: "f", Arguments: `{"x":"y`}}, finish: ninelives.FinishLength, raw: "tool_calls",
		},
		{
			name:   "cut before the arguments",
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, `"delta":{},"finish_reason":"length"`),
			calls:  []call{{ID: "a", Name: "f", Arguments: ``}}, finish: ninelives.FinishLength, raw: "length",
		},
		{
			name: "cut at the limit that was sent", o: wire.DecodeOptions{MaxTokens: 16},
			stream: chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `"delta":{},"finish_reason":"tool_calls"`, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":16}}`),
			calls:  []call{{ID: "a", Name: "f", Arguments: `{}`}}, finish: ninelives.FinishLength, raw: "tool_calls",
		},
		{
			name:   "an error after the end",
			stream: chatStream(`"delta":{"content":"Hello"},"finish_reason":"stop"`, `data: {"error":{"message":"late"}}`),
			text:   "Hello", finish: ninelives.FinishStop, raw: "stop",
		},
		{
			name:   "words of other houses",
			stream: chatStream(`"delta":{"content":"x"},"finish_reason":"MAX_TOKENS"`),
			text:   "x", finish: ninelives.FinishLength, raw: "MAX_TOKENS",
		},
		{
			name:   "filtered",
			stream: chatStream(`"delta":{"content":"Here is"}`, `"delta":{},"finish_reason":"SAFETY"`),
			text:   "Here is", finish: ninelives.FinishContentFilter, raw: "SAFETY",
		},
		{
			name:   "a call that the server could not read",
			stream: chatStream(`"delta":{"content":"Let me see."},"finish_reason":"MALFORMED_FUNCTION_CALL"`),
			text:   "Let me see.", finish: ninelives.FinishMalformedCall, raw: "MALFORMED_FUNCTION_CALL",
		},
		{
			name:   "the window is full, after text",
			stream: chatStream(`"delta":{"content":"Here is"}`, `"delta":{},"finish_reason":"model_context_window_exceeded"`),
			text:   "Here is", finish: ninelives.FinishLength, raw: "model_context_window_exceeded",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, fault := chatReplay(t, c.stream, c.o)
			if fault != nil {
				t.Fatalf("a fault: %v", fault)
			}
			var calls []call
			for _, got := range resp.Message.ToolCalls() {
				if got.ID == "" {
					t.Errorf("call %s has no id", got.Name)
				}
				if i := len(calls); i < len(c.calls) && c.calls[i].ID == "" {
					got.ID = "" // made
				}
				calls = append(calls, got)
			}
			if resp.Text() != c.text || resp.Message.Reasoning() != c.think || resp.Message.Refusal() != c.refuse || !reflect.DeepEqual(calls, c.calls) {
				t.Errorf("text %q, reasoning %q, refusal %q, calls %+v", resp.Text(), resp.Message.Reasoning(), resp.Message.Refusal(), calls)
			}
			if resp.Finish != c.finish || resp.FinishRaw != c.raw {
				t.Errorf("finish %q (%q), want %q (%q)", resp.Finish, resp.FinishRaw, c.finish, c.raw)
			}
		})
	}
}

func TestChatStreamIsAFault(t *testing.T) {
	begun := `"delta":{"content":"Hel"}`
	for _, c := range []struct {
		name, stream string
		class        ninelives.Class
		partial      string
	}{
		{"nothing", "", ninelives.ClassEmpty, ""},
		{"comments only", ": keep-alive\n\n: keep-alive\n\n", ninelives.ClassEmpty, ""},
		{"[DONE] only", chatStream(chatDone), ninelives.ClassEmpty, ""},
		{"no choice", chatStream(`data: {"choices":[]}`, chatDone), ninelives.ClassEmpty, ""},
		{"[DONE] in the middle of a call", chatStream(begun, `"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]}`, chatDone), ninelives.ClassStreamBroken, "Hel"},
		{"[DONE] before the arguments of a call", chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, chatDone), ninelives.ClassStreamBroken, ""},
		{"a failure beside choices that are null", chatStream(`data: {"choices":null,"base_resp":{"status_code":1002,"status_msg":"m"}}`), ninelives.ClassRateLimit, ""},
		{"a role and [DONE]", chatStream(`"delta":{"role":"assistant","content":""}`, chatDone), ninelives.ClassEmpty, ""},
		{"a polite end without a marker", chatStream(begun, `"delta":{"content":"lo"}`), ninelives.ClassStreamBroken, "Hello"},
		{"reasoning and then nothing", chatStream(`"delta":{"reasoning":"x"}`), ninelives.ClassStreamBroken, ""},
		{"a chunk that is cut", chatStream(begun, `data: {"choices":[{"index":0,"delta":{"role":"adata: {"choices":[]}`, `"delta":{},"finish_reason":"stop"`), ninelives.ClassStreamBroken, "Hel"},
		{"two chunks in one", chatStream(begun, `data: {"choices":[]}{"choices":[]}`), ninelives.ClassStreamBroken, "Hel"},
		{"no chunk", chatStream(begun, `data: [1,2]`), ninelives.ClassStreamBroken, "Hel"},
		{"a page", "<!DOCTYPE html>\n<html><body>Login</body></html>", ninelives.ClassFormat, ""},
		{"an error in a chunk", chatStream(`data: {"id":"x","choices":[],"error":{"code":502,"message":"Upstream is down"}}`, chatDone), ninelives.ClassOverloaded, ""},
		{"an error beside a choice", chatStream(begun, `data: {"error":{"code":503,"message":"No capacity available"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), ninelives.ClassOverloaded, "Hel"},
		{"an error within a choice", chatStream(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":429,"message":"Rate limit exceeded"}}]}`), ninelives.ClassRateLimit, ""},
		{"an error that is a word", chatStream(`data: {"error":"model is overloaded"}`), ninelives.ClassOverloaded, ""},
		{"an error event", chatStream("event: error\ndata: {\"error\":{\"message\":\"Insufficient balance\",\"code\":\"insufficient_quota\"}}"), ninelives.ClassBilling, ""},
		{"an error in a field of its own", chatStream(begun, `error: {"error":{"message":"failed to decode"}}`), ninelives.ClassStreamBroken, "Hel"},
		{"an error in a list", chatStream(`data: [{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}]`), ninelives.ClassOverloaded, ""},
		{"an error without an envelope", chatStream(`data: {"object":"error","message":"Rate limit exceeded","code":"1300","type":"rate_limited"}`), ninelives.ClassRateLimit, ""},
		{"an error as a bare line", chatStream(begun, `{"error":{"message":"Server overloaded","code":503}}`), ninelives.ClassOverloaded, "Hel"},
		{"an error as the body", `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`, ninelives.ClassAuth, ""},
		{"finish_reason error", chatStream(begun, `"delta":{},"finish_reason":"error"`), ninelives.ClassStreamBroken, "Hel"},
		{"a shortage", chatStream(begun, `"delta":{},"finish_reason":"insufficient_system_resource"`), ninelives.ClassOverloaded, "Hel"},
		{"a broken network behind the server", chatStream(begun, `"delta":{},"finish_reason":"network_error"`), ninelives.ClassOverloaded, "Hel"},
		{"the window is full, before text", chatStream(`"delta":{"role":"assistant"},"finish_reason":"model_context_window_exceeded"`), ninelives.ClassContextLength, ""},
		{"a piece of two possible calls", chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]}`, `"delta":{"tool_calls":[{"index":2,"function":{"arguments":"1}"}}]}`, `"delta":{},"finish_reason":"tool_calls"`), ninelives.ClassStreamBroken, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, fault := chatReplay(t, c.stream, wire.DecodeOptions{})
			if fault == nil {
				t.Fatalf("an answer: %+v", resp)
			}
			if fault.Class != c.class {
				t.Errorf("class %s, want %s: %v", fault.Class, c.class, fault)
			}
			partial := ""
			if fault.Partial != nil {
				partial = fault.Partial.Text()
				if fault.Partial.Finish != "" {
					t.Errorf("half an answer with an end: %q", fault.Partial.Finish)
				}
			}
			if partial != c.partial {
				t.Errorf("partial %q, want %q", partial, c.partial)
			}
			if fault.Candidate != "p/m" {
				t.Errorf("candidate %q", fault.Candidate)
			}
		})
	}
}

// The input of a custom tool is text: it is told as JSON text, and rides along
// as it came.
func TestChatCustomToolIsCalledWithText(t *testing.T) {
	resp, fault := chatReplay(t, chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":""}}]}`,
		`"delta":{"tool_calls":[{"index":0,"custom":{"input":"{ \"x"}}]}`, `"delta":{"tool_calls":[{"index":0,"custom":{"input":"\""}}]}`, `"delta":{},"finish_reason":"tool_calls"`), wire.DecodeOptions{})
	if fault != nil {
		t.Fatal(fault)
	}
	c := resp.Message.ToolCalls()[0]
	if c.ID != "a" || c.Name != "sql" || c.Arguments != `"{ \"x\""` || string(c.Extra.JSON) != `{"custom":{"name":"sql","input":"{ \"x\""}}` || resp.Finish != ninelives.FinishToolCalls {
		t.Errorf("%s %q %s %s, finish %s", c.ID, c.Name, c.Arguments, c.Extra.JSON, resp.Finish)
	}
}

func TestChatWholeAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body string
		class      ninelives.Class // of the fault; empty if it is an answer
		text       string
		calls      int
		finish     ninelives.FinishReason
	}{
		{"text", `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"no finish_reason", `{"choices":[{"message":{"content":"Hello"},"finish_reason":""}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"a delta beside it", `{"object":"chat.completion","choices":[{"delta":{"role":"assistant","content":""},"message":{"content":"Hello"},"finish_reason":"stop"}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"calls with stop", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "", "", 2, ninelives.FinishToolCalls},
		{"a form without calls", `{"choices":[{"message":{"content":"Hello","tool_calls":[],"function_call":{"name":"","arguments":""}},"finish_reason":"stop"}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"tool_calls without calls", `{"choices":[{"message":{"content":"","tool_calls":[]},"finish_reason":"tool_calls"}]}`, "", "", 0, ninelives.FinishToolCalls},
		{"parts", `{"choices":[{"message":{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]},"finish_reason":"stop"}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"choices in another order", `{"choices":[{"index":1,"message":{"content":"other"},"finish_reason":"length"},{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}`, "", "Hello", 0, ninelives.FinishStop},
		{"a stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "", "Hello", 0, ninelives.FinishStop},
		{"white space around it", "\n\n {\"choices\":[{\"message\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n", "", "Hello", 0, ninelives.FinishStop},

		{"nothing", "", ninelives.ClassEmpty, "", 0, ""},
		{"null", "null", ninelives.ClassEmpty, "", 0, ""},
		{"an empty object", "{}", ninelives.ClassEmpty, "", 0, ""},
		{"no choices", `{"choices":[]}`, ninelives.ClassEmpty, "", 0, ""},
		{"null choices", `{"choices":null,"usage":{"prompt_tokens":1}}`, ninelives.ClassEmpty, "", 0, ""},
		{"an error", `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream connect error"}}}`, ninelives.ClassOverloaded, "", 0, ""},
		{"an error beside null choices", `{"choices":null,"error":{"message":"Rate limit exceeded","code":429}}`, ninelives.ClassRateLimit, "", 0, ""},
		{"an error beside empty choices", `{"choices":[],"error":{"message":"Rate limit exceeded","code":429}}`, ninelives.ClassRateLimit, "", 0, ""},
		{"a page", "<html><body>Sign in</body></html>", ninelives.ClassFormat, "", 0, ""},
		{"a call that was cut", `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x"}}]},"finish_reason":"stop"}]}`, "", "", 1, ninelives.FinishLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := openai.DecodeChatResponse([]byte(c.body), wire.DecodeOptions{})
			if c.class != "" {
				var f *ninelives.Fault
				if !errors.As(err, &f) || f.Class != c.class {
					t.Fatalf("got %+v, %v; want class %s", resp, err, c.class)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text() != c.text || len(resp.Message.ToolCalls()) != c.calls || resp.Finish != c.finish {
				t.Errorf("text %q, calls %+v, finish %s", resp.Text(), resp.Message.ToolCalls(), resp.Finish)
			}
		})
	}
}

func TestChatUsageIsWhatWasReported(t *testing.T) {
	const in, out, reasoning, cached, write = ninelives.UsageInput, ninelives.UsageOutput, ninelives.UsageReasoning, ninelives.UsageCached, ninelives.UsageCacheWrite
	for _, c := range []struct {
		name, first, last string
		want              ninelives.Usage
	}{
		{"the usual", "", `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`, ninelives.Usage{Input: 3, Output: 2, Reported: in | out}},
		{"zero is not null", "", `{"prompt_tokens":3,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":null}}`, ninelives.Usage{Input: 3, Reported: in | out | cached}},
		{"the last one counts", `{"prompt_tokens":3,"completion_tokens":1}`, `{"prompt_tokens":3,"completion_tokens":2}`, ninelives.Usage{Input: 3, Output: 2, Reported: in | out}},
		{"null does not undo it", `{"prompt_tokens":3,"completion_tokens":1}`, `null`, ninelives.Usage{Input: 3, Output: 1, Reported: in | out}},
		{"details", "", `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}`, ninelives.Usage{Input: 9, Output: 5, Cached: 4, CacheWrite: 2, Reasoning: 3, Reported: in | out | cached | write | reasoning}},
		{"details at the top", "", `{"prompt_tokens":9,"completion_tokens":5,"cached_tokens":4,"reasoning_tokens":3}`, ninelives.Usage{Input: 9, Output: 5, Cached: 4, Reasoning: 3, Reported: in | out | cached | reasoning}},
		{"hits and misses", "", `{"prompt_tokens":9,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}`, ninelives.Usage{Input: 9, Output: 5, Cached: 4, Reported: in | out | cached}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := chatStream(`"delta":{"content":"x"},"finish_reason":"stop"`)
			if c.first != "" {
				stream = chatStream(`data: {"choices":[],"usage":`+c.first+`}`) + stream
			}
			resp, fault := chatReplay(t, stream+chatStream(`data: {"choices":[],"usage":`+c.last+`}`, chatDone), wire.DecodeOptions{})
			if fault != nil {
				t.Fatal(fault)
			}
			got := resp.Usage
			got.Extra = ninelives.Extra{}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	stream := chatStream(`"delta":{"content":"x"},"finish_reason":"stop"`, `data: {"choices":[],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":2}}}`)
	if resp, fault := chatReplay(t, stream, wire.DecodeOptions{}); fault != nil || resp.Usage.Input != 3 {
		t.Errorf("Groq's own place: %+v, %v", resp, fault)
	}
	stream = chatStream(`"delta":{"content":"x"}`, `"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":4,"completion_tokens":2}`)
	if resp, fault := chatReplay(t, stream, wire.DecodeOptions{}); fault != nil || resp.Usage.Input != 4 {
		t.Errorf("within a choice: %+v, %v", resp, fault)
	}
	apart := wire.DecodeOptions{Dialect: wire.Dialect{OutputExcludesReasoning: true}}
	stream = chatStream(`"delta":{"content":"x"},"finish_reason":"stop"`, `data: {"choices":[],"usage":{"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":7}}}`)
	if resp, fault := chatReplay(t, stream, apart); fault != nil || resp.Usage.TotalOutput() != 9 {
		t.Errorf("reasoning apart: %+v, %v", resp, fault)
	}
}

func TestChatStatesTellWhenToStopReading(t *testing.T) {
	d := openai.NewChatDecoder(wire.DecodeOptions{})
	step := func(data string, want wire.State) {
		t.Helper()
		if err := d.Frame(wire.Frame{Data: []byte(data)}, func(ninelives.Event) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if d.State() != want {
			t.Errorf("after %s: state %d, want %d", data, d.State(), want)
		}
	}
	step(`{"choices":[]}`, wire.Open)
	step(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, wire.Open)
	step(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, wire.Open)
	step(`{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`, wire.Finished)
	step(`{"choices":[],"usage":{"prompt_tokens":1}}`, wire.Finished)
	step(`[DONE]`, wire.Closed)
	resp, err := d.Response(nil)
	if err != nil || resp.Text() != "a" || len(resp.Choices) != 1 || resp.Choices[0].Message.Text() != "b" || resp.Choices[0].Finish != ninelives.FinishLength {
		t.Errorf("%+v, %v", resp, err)
	}
}

func TestChatAnswerStandsWhateverBreaksAfterItsEnd(t *testing.T) {
	d := openai.NewChatDecoder(wire.DecodeOptions{})
	_ = d.Frame(wire.Frame{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`)}, func(ninelives.Event) bool { return true })
	if resp, err := d.Response(errors.New("connection reset")); err != nil || resp.Text() != "a" {
		t.Errorf("%+v, %v", resp, err)
	}
	d = openai.NewChatDecoder(wire.DecodeOptions{})
	_ = d.Frame(wire.Frame{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`)}, func(ninelives.Event) bool { return true })
	reset := errors.New("connection reset")
	var f *ninelives.Fault
	if _, err := d.Response(reset); !errors.As(err, &f) || f.Class != ninelives.ClassStreamBroken || !errors.Is(err, reset) || f.Partial.Text() != "a" {
		t.Errorf("%v", err)
	}
}

func TestChatEventsStopWhenNobodyWantsThem(t *testing.T) {
	d := openai.NewChatDecoder(wire.DecodeOptions{Attempt: 3})
	seen := 0
	for _, text := range []string{"a", "b"} {
		err := d.Frame(wire.Frame{Data: []byte(`{"choices":[{"index":0,"delta":{"reasoning":"r","content":"` + text + `"}}]}`)}, func(ev ninelives.Event) bool {
			seen++
			if r, ok := ev.(ninelives.ReasoningDelta); !ok || r.Attempt != 3 {
				t.Errorf("event %+v", ev)
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != 2 {
		t.Errorf("%d events after the first refusal of each frame", seen)
	}
}

// A consumer of a frame must hear nothing once the frame has been read.
func TestChatNothingIsEmittedBetweenFrames(t *testing.T) {
	d := openai.NewChatDecoder(wire.DecodeOptions{Dialect: wire.Dialect{ThinkTags: true}})
	reading := true
	err := d.Frame(wire.Frame{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"<thi"}}]}`)}, func(ev ninelives.Event) bool {
		if !reading {
			t.Errorf("%+v after the frame", ev)
		}
		return true
	})
	if reading = false; err != nil {
		t.Fatal(err)
	}
	var f *ninelives.Fault
	if _, err := d.Response(nil); !errors.As(err, &f) || f.Partial.Text() != "<thi" {
		t.Errorf("%v", err)
	}
}

func TestChatReasoningDetailsGoBackAsTheyCame(t *testing.T) {
	resp, fault := chatReplay(t, chatStream(
		`"delta":{"reasoning":"th","reasoning_details":[{"type":"reasoning.text","text":"th","index":0,"format":null}]}`,
		`"delta":{"reasoning":"ink","reasoning_details":[{"type":"reasoning.text","text":"ink","index":0,"format":"v1"}]}`,
		`"delta":{"content":"Hello"}`,
		`"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0},{"type":"reasoning.encrypted","data":"ZQ==","index":1 }]}`,
		`"delta":{},"finish_reason":"stop"`,
	), wire.DecodeOptions{})
	if fault != nil {
		t.Fatal(fault)
	}
	want := ninelives.Reasoning{Text: "think", Provenance: ninelives.Provenance{
		Provider: "p", Model: "m", Field: "reasoning_details",
		Blob: `[{"type":"reasoning.text","text":"think","index":0,"format":"v1","signature":"sig"},{"type":"reasoning.encrypted","data":"ZQ==","index":1 }]`,
	}}
	if got := resp.Message.Parts[0]; !reflect.DeepEqual(got, want) || resp.Text() != "Hello" || len(resp.Message.Parts) != 2 {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func TestChatThoughtSignatureIsTheCalls(t *testing.T) {
	resp, fault := chatReplay(t, chatStream(
		`"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]}`,
		`"delta":{},"finish_reason":"tool_calls"`,
	), wire.DecodeOptions{})
	if fault != nil {
		t.Fatal(fault)
	}
	want := ninelives.ToolCall{ID: "a", Name: "f", Arguments: "{}", Signature: "sig", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "extra_content.google.thought_signature"}}
	if got := resp.Message.ToolCalls()[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}
