package anthropic_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// The data of usual events.
const (
	start     = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-test","stop_reason":null,"usage":{"input_tokens":12,"cache_read_input_tokens":4,"output_tokens":1}}}`
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	blockStop = `{"type":"content_block_stop","index":0}`
	end       = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`
	toolEnd   = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`
	stop      = `{"type":"message_stop"}`
	callStart = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`
)

func input(index int, piece string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, index, piece)
}

// decode reads events that have no name, as some servers send them.
func decode(t *testing.T, o wire.DecodeOptions, cause error, data ...string) (*ninelives.Response, error) {
	t.Helper()
	var stream []byte
	for _, d := range data {
		stream = sse.Append(stream, wire.Frame{Data: []byte(d)})
	}
	if cause == nil {
		cause = io.EOF
	}
	return decodeStream(t, sse.NewReader(io.MultiReader(bytes.NewReader(stream), errReader{cause})), o)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func says(s string) []ninelives.Part { return []ninelives.Part{ninelives.Text{Text: s}} }

func calls(args string) []ninelives.Part {
	return []ninelives.Part{ninelives.ToolCall{ID: "toolu_1", Name: "f", Arguments: args}}
}

func TestCompleteStreams(t *testing.T) {
	c := generous().Candidate
	own := func(sig string) ninelives.Provenance {
		return ninelives.Provenance{Provider: c.Provider, Model: c.Model, Field: "thinking", Signature: sig}
	}
	for _, tc := range []struct {
		name   string
		events []string
		want   []ninelives.Part
		finish ninelives.FinishReason
	}{
		{"the usual", []string{start, textStart, hello, blockStop, end, stop}, says("Hello"), ninelives.FinishStop},
		{"no message_stop after a reason", []string{start, textStart, hello, blockStop, end}, says("Hello"), ninelives.FinishStop},
		{"message_stop without a reason", []string{start, textStart, hello, blockStop, stop}, says("Hello"), ninelives.FinishStop},
		{"[DONE] after text", []string{start, textStart, hello, blockStop, "[DONE]"}, says("Hello"), ninelives.FinishStop},
		{"[DONE] after the end", []string{start, textStart, hello, blockStop, end, stop, "[DONE]"}, says("Hello"), ninelives.FinishStop},
		{"pings, unknown events and deltas", []string{start, `{"type": "ping"}`, textStart, `{"type":"future_event","x":1}`, hello,
			`{"type":"content_block_delta","index":0,"delta":{"type":"future_delta","v":1}}`, blockStop, end, stop}, says("Hello"), ninelives.FinishStop},
		{"the head twice", []string{start, start, textStart, hello, blockStop, end, stop}, says("Hello"), ninelives.FinishStop},
		{"blocks that come with the head", []string{`{"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}]}}`, toolEnd, stop},
			append(says("Hello"), calls(`{"a":1}`)...), ninelives.FinishToolCalls},
		{"a block begins twice", []string{start, textStart, textStart, hello, blockStop, end, stop}, says("Hello"), ninelives.FinishStop},
		{"a block that never begins", []string{start, hello, end, stop}, says("Hello"), ninelives.FinishStop},
		{"a block that never stops", []string{start, textStart, hello, end, stop}, says("Hello"), ninelives.FinishStop},
		{"text in the block's beginning", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`, blockStop, end, stop}, says("Hello"), ninelives.FinishStop},
		{"a delta without an index", []string{start, textStart, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hello"}}`, end, stop}, says("Hello"), ninelives.FinishStop},
		{"arguments in pieces, empty ones among them", []string{start, callStart, input(0, ""), input(0, `{"a"`), input(0, ""), input(0, `:1}`), blockStop, toolEnd, stop}, calls(`{"a":1}`), ninelives.FinishToolCalls},
		{"arguments that never come are none", []string{start, callStart, input(0, ""), blockStop, toolEnd, stop}, calls(`{}`), ninelives.FinishToolCalls},
		{"arguments in the block's beginning", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}}`, blockStop, toolEnd, stop}, calls(`{"a":1}`), ninelives.FinishToolCalls},
		{"arguments at another index than the only call", []string{start, callStart, input(7, `{"a":1}`), blockStop, toolEnd, stop}, calls(`{"a":1}`), ninelives.FinishToolCalls},
		{"calls although the reason says otherwise", []string{start, callStart, input(0, `{}`), blockStop, end, stop}, calls(`{}`), ninelives.FinishToolCalls},
		{"arguments that do not close were cut", []string{start, callStart, input(0, `{"a":`), blockStop, toolEnd, stop}, calls(`{"a":`), ninelives.FinishLength},
		{"cut before the arguments", []string{start, callStart, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}`, stop}, calls(``), ninelives.FinishLength},
		{"two calls by turns", []string{start, callStart, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_2","name":"g","input":{}}}`,
			input(1, `{"b":`), input(0, `{"a":1}`), input(1, `2}`), blockStop, toolEnd, stop},
			append(calls(`{"a":1}`), ninelives.ToolCall{ID: "toolu_2", Name: "g", Arguments: `{"b":2}`}), ninelives.FinishToolCalls},
		{"thinking with its signature", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Ep+/="}}`, blockStop, end, stop},
			[]ninelives.Part{ninelives.Reasoning{Text: "hm", Provenance: own("Ep+/=")}}, ninelives.FinishStop},
		{"the input of a server's tool", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
			input(0, `{"q":`), input(0, `"x"}`), blockStop, end, stop},
			[]ninelives.Part{ninelives.Opaque{Kind: "server_tool_use", Raw: raw(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":"x"}}`)}}, ninelives.FinishStop},
		{"deltas of an unknown block", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"sum"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"mary","n":1}}`, blockStop, end, stop},
			[]ninelives.Part{ninelives.Opaque{Kind: "compaction", Raw: raw(`{"type":"compaction","content":"summary","n":1}`)}}, ninelives.FinishStop},
		{"a citation", []string{start, textStart, hello, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"page_location","cited_text":"q","document_title":"D"}}}`, blockStop, end, stop},
			[]ninelives.Part{ninelives.Text{Text: "Hello", Citations: []ninelives.Citation{{Title: "D", Quote: "q", Raw: raw(`{"type":"page_location","cited_text":"q","document_title":"D"}`)}}}}, ninelives.FinishStop},
		{"what comes after the end changes nothing", []string{start, textStart, hello, blockStop, end, hello, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "garbage", stop}, says("Hello"), ninelives.FinishStop},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decode(t, decodeOptions(), nil, tc.events...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := different(tc.want, got.Message.Parts); diff != "" {
				t.Error(diff)
			}
			if got.Finish != tc.finish {
				t.Errorf("finish is %q, want %q", got.Finish, tc.finish)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	cut := errors.New("connection reset by peer")
	for _, tc := range []struct {
		name   string
		events []string
		cause  error
		class  ninelives.Class
		want   []ninelives.Part // what the fault keeps as evidence
	}{
		{"nothing at all", nil, nil, ninelives.ClassEmpty, nil},
		{"a polite end without a reason", []string{start, textStart, hello}, nil, ninelives.ClassStreamBroken, says("Hello")},
		{"only a head", []string{start}, nil, ninelives.ClassStreamBroken, nil},
		{"a cut", []string{start, textStart, hello}, cut, ninelives.ClassStreamBroken, says("Hello")},
		{"a cut before the first event", nil, cut, ninelives.ClassStreamBroken, nil},
		{"an error event", []string{start, textStart, hello, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, nil, ninelives.ClassOverloaded, says("Hello")},
		{"an error without a type", []string{start, `{"error":{"message":"Overloaded","type":"overloaded_error"}}`}, nil, ninelives.ClassOverloaded, nil},
		{"garbage", []string{start, textStart, hello, `{"type":"content_bl`}, nil, ninelives.ClassStreamBroken, says("Hello")},
		{"another answer spliced in", []string{start, textStart, hello, strings.Replace(start, "msg_1", "msg_2", 1), textStart, hello, end, stop}, nil, ninelives.ClassStreamBroken, says("Hello")},
		{"[DONE] inside a call", []string{start, callStart, input(0, `{"a":`), "[DONE]"}, nil, ninelives.ClassStreamBroken, calls(`{"a":`)},
		{"[DONE] after nothing", []string{start, "[DONE]"}, nil, ninelives.ClassEmpty, nil},
		{"only [DONE]", []string{"[DONE]"}, nil, ninelives.ClassEmpty, nil},
		{"a piece of a call that could be of two", []string{start, callStart, strings.Replace(callStart, `"index":0`, `"index":1`, 1), input(7, `{"a":1}`)}, nil, ninelives.ClassStreamBroken,
			append(calls(""), calls("")...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decode(t, decodeOptions(), tc.cause, tc.events...)
			var fault *ninelives.Fault
			if got != nil || !errors.As(err, &fault) {
				t.Fatalf("half was presented as whole: %+v, %v", got, err)
			}
			if fault.Class != tc.class {
				t.Errorf("class is %s, want %s: %v", fault.Class, tc.class, fault)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("the cause is lost: %v", err)
			}
			var parts []ninelives.Part
			if fault.Partial != nil {
				parts = fault.Partial.Message.Parts
			}
			if diff := different(tc.want, parts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnErrorAfterTheEndIsAWarning(t *testing.T) {
	got, err := decode(t, decodeOptions(), nil, start, textStart, hello, blockStop, end, `{"type":"error","error":{"type":"api_error","message":"too late"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if w := strings.Join(got.Warnings, "\n"); !strings.Contains(w, "too late") {
		t.Errorf("no warning tells of it: %q", w)
	}
}

func TestUsageIsReplacedAndNotAdded(t *testing.T) {
	got, err := decode(t, decodeOptions(), nil, start, textStart, hello, blockStop,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":20,"cache_read_input_tokens":null,"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}}`, stop)
	if err != nil {
		t.Fatal(err)
	}
	want := ninelives.Usage{Input: 20, Cached: 4, Output: 9, Reasoning: 3, InputExcludesCached: true,
		Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached | ninelives.UsageReasoning,
		Extra:    raw(`{"cache_read_input_tokens":4,"input_tokens":20,"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}`)}
	if diff := different(want, got.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestTheOutputToolIsTheAnswer(t *testing.T) {
	o := decodeOptions()
	o.OutputTool = "f"
	got, err := decode(t, o, nil, start, callStart, input(0, `{"a"`), input(0, `:1}`), blockStop, toolEnd, stop)
	if err != nil {
		t.Fatal(err)
	}
	if diff := different(says(`{"a":1}`), got.Message.Parts); diff != "" {
		t.Error(diff)
	}
	if got.Finish != ninelives.FinishStop {
		t.Errorf("finish is %q", got.Finish)
	}

	body := `{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	got, err = anthropic.DecodeResponse([]byte(body), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := different(says(`{"a":1}`), got.Message.Parts); diff != "" {
		t.Error(diff)
	}
}

func TestMappedToolNamesComeBack(t *testing.T) {
	o := decodeOptions()
	o.Names = map[string]string{"f": "the.caller's"}
	got, err := decode(t, o, nil, start, callStart, input(0, `{}`), blockStop, toolEnd, stop)
	if err != nil {
		t.Fatal(err)
	}
	if name := got.Message.ToolCalls()[0].Name; name != "the.caller's" {
		t.Errorf("the call is of %q", name)
	}
}

func TestAnAnswerAtTheLimitIsTruncated(t *testing.T) {
	o := decodeOptions()
	o.MaxTokens = 5
	got, err := decode(t, o, nil, start, callStart, input(0, `{}`), blockStop, toolEnd, stop)
	if err != nil {
		t.Fatal(err)
	}
	if got.Finish != ninelives.FinishLength {
		t.Errorf("finish is %q", got.Finish)
	}
}

func TestEventsCarryTheirAttempt(t *testing.T) {
	o := decodeOptions()
	o.Attempt = 3
	d := anthropic.NewDecoder(o)
	var got []ninelives.Event
	for _, data := range []string{start, textStart, hello, strings.Replace(callStart, `"index":0`, `"index":1`, 1), input(1, `{}`)} {
		if err := d.Frame(wire.Frame{Data: []byte(data)}, func(ev ninelives.Event) bool { got = append(got, ev); return true }); err != nil {
			t.Fatal(err)
		}
	}
	want := []ninelives.Event{
		ninelives.TextDelta{Attempt: 3, Part: 0, Text: "Hello"},
		ninelives.ToolCallDelta{Attempt: 3, Part: 1, ID: "toolu_1", Name: "f"},
		ninelives.ToolCallDelta{Attempt: 3, Part: 1, Arguments: "{}"},
	}
	if diff := different(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedStreamEndsWithTheErrorEvent(t *testing.T) {
	e := anthropic.NewEncoder(wire.EncodeOptions{ID: "m", Model: "x"})
	stream := e.Event(nil, ninelives.TextDelta{Text: "Hel"})
	before := len(stream)
	stream = e.Fail(stream, &ninelives.Fault{Class: ninelives.ClassOverloaded, Message: "tried twice", RequestID: "req_1"})
	want := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"tried twice\"},\"request_id\":\"req_1\"}\n\n"
	if got := string(stream[before:]); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if more := e.Event(stream, ninelives.Done{Response: &ninelives.Response{}}); len(more) != len(stream) {
		t.Errorf("something follows the error: %s", more[len(stream):])
	}
}

// TestStreamsSayWhatClientsInsistOn: the members without which the official
// clients crash, lose a call or see nothing.
func TestStreamsSayWhatClientsInsistOn(t *testing.T) {
	e := anthropic.NewEncoder(wire.EncodeOptions{ID: "msg_9", Model: "m"})
	stream := e.Event(nil, ninelives.TextDelta{Text: "Hi"})
	stream = e.Event(stream, ninelives.ToolCallDelta{Part: 1, ID: "toolu_1", Name: "f", Arguments: "{}"})
	stream = e.Event(stream, ninelives.Done{Response: &ninelives.Response{
		Message: ninelives.Message{Parts: []ninelives.Part{ninelives.Text{Text: "Hi"}, ninelives.ToolCall{ID: "toolu_1", Name: "f", Arguments: "{}"}}},
		Finish:  ninelives.FinishToolCalls, FinishRaw: "tool_calls",
		Usage: ninelives.Usage{Input: 10, Cached: 4, Output: 7, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached},
	}})
	want := `event: message_start
data: {"type":"message_start","message":{"id":"msg_9","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":6,"cache_read_input_tokens":4,"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

`
	if string(stream) != want {
		t.Errorf("got\n%s", stream)
	}
}
