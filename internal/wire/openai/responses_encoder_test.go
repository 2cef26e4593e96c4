package openai_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

var _ wire.Encoder = (*openai.ResponsesEncoder)(nil)

// responsesTold reads the events of a stream and checks that each is named by
// its type and that they are numbered.
func responsesTold(t *testing.T, stream []byte) []wire.Frame {
	t.Helper()
	var frames []wire.Frame
	r := sse.NewReader(bytes.NewReader(stream))
	for {
		f, err := r.Next()
		if err != nil {
			return frames
		}
		if !rawjson.Valid(f.Data) {
			t.Fatalf("no JSON: %s", f.Data)
		}
		if kind := rawjson.String(rawjson.Get(f.Data, "type")); kind != f.Event {
			t.Errorf("event %q is of type %q", f.Event, kind)
		}
		if n, ok := rawjson.Int(rawjson.Get(f.Data, "sequence_number")); !ok || int(n) != len(frames) {
			t.Errorf("event %d has number %d", len(frames), n)
		}
		f.Data = bytes.Clone(f.Data)
		frames = append(frames, f)
	}
}

// An answer of any protocol becomes the events that clients wait for, in
// their order: each item is added before it is told of and done after, calls
// are done at the very end, and the last event has all of it.
func TestResponsesEncoderTellsWhatClientsNeed(t *testing.T) {
	e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "m", Created: time.Unix(1767225600, 0)})
	var b []byte
	for _, ev := range []ninelives.Event{
		ninelives.Notice{Kind: ninelives.NoticeAttempt},
		ninelives.ReasoningDelta{Attempt: 1, Part: 0, Text: "Hm."},
		ninelives.TextDelta{Attempt: 1, Part: 1, Text: "I lo"},
		ninelives.TextDelta{Attempt: 1, Part: 1, Text: "ok."},
		ninelives.ToolCallDelta{Attempt: 1, Part: 2, ID: "c1", Name: "look"},
		ninelives.ToolCallDelta{Attempt: 1, Part: 2, Arguments: `{"q":1}`},
	} {
		b = e.Event(b, ev)
	}
	if bytes.Contains(b, []byte("output_item.done")) {
		t.Error("an item is done before the answer is")
	}
	b = e.Event(b, ninelives.Done{Attempt: 1, Response: &ninelives.Response{
		Finish: ninelives.FinishToolCalls, FinishRaw: "tool_use", Usage: ninelives.Usage{Input: 3, Output: 2, Reported: ninelives.UsageInput | ninelives.UsageOutput},
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "Hm.", Provenance: ninelives.Provenance{Field: "thinking", Signature: "s"}},
			ninelives.Text{Text: "I look."},
			ninelives.ToolCall{ID: "c1", Name: "look", Arguments: `{"q":1}`},
		}},
	}})
	frames := responsesTold(t, b)
	var kinds []string
	for _, f := range frames {
		kinds = append(kinds, strings.TrimPrefix(f.Event, "response."))
		if id := rawjson.Get(f.Data, "item_id"); id != nil && rawjson.String(id) == "" {
			t.Errorf("an event without an item: %s", f.Data)
		}
	}
	want := []string{
		"created", "in_progress",
		"output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
		"output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done",
		"output_item.added", "function_call_arguments.delta",
		"output_item.done", "output_item.done", "function_call_arguments.done", "output_item.done",
		"completed",
	}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("\n got %q\nwant %q", kinds, want)
	}
	last := frames[len(frames)-1]
	wantLast := `{"id":"resp_1","object":"response","created_at":1767225600,"status":"completed","model":"m","incomplete_details":null,` +
		`"error":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"output":[` +
		`{"type":"reasoning","id":"rs_9l_1_0","summary":[{"type":"summary_text","text":"Hm."}]},` +
		`{"type":"message","id":"msg_9l_1_1","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}],"status":"completed"},` +
		`{"type":"function_call","id":"fc_9l_1_2","call_id":"c1","name":"look","arguments":"{\"q\":1}","status":"completed"}],` +
		`"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}}`
	if got := string(rawjson.Get(last.Data, "response")); got != wantLast {
		t.Errorf("\n got %s\nwant %s", got, wantLast)
	}
}

func TestResponsesEncoderEndsACutAnswerAsIncomplete(t *testing.T) {
	e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1"})
	frames := responsesTold(t, e.Event(nil, ninelives.Done{Response: &ninelives.Response{
		Model: "m", Finish: ninelives.FinishLength,
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.ToolCall{ID: "c", Name: "look", Arguments: `{"q":`}}},
	}}))
	last := frames[len(frames)-1]
	if last.Event != "response.incomplete" || rawjson.String(rawjson.Path(last.Data, "response", "incomplete_details", "reason")) != "max_output_tokens" {
		t.Errorf("%s %s", last.Event, last.Data)
	}
	if done := frames[len(frames)-2]; rawjson.String(rawjson.Path(done.Data, "item", "status")) != "incomplete" {
		t.Errorf("%s", done.Data)
	}
}

// A failure is told in both forms that clients listen for, and nothing that
// looks like an end comes with it.
func TestResponsesEncoderFails(t *testing.T) {
	tests := map[ninelives.Class]string{
		ninelives.ClassRateLimit: "rate_limit_exceeded", ninelives.ClassBilling: "insufficient_quota", ninelives.ClassOverloaded: "server_is_overloaded",
		ninelives.ClassTimeout: "server_is_overloaded", ninelives.ClassContextLength: "context_length_exceeded", ninelives.ClassFormat: "invalid_prompt", ninelives.ClassUnknown: "server_error",
	}
	for class, code := range tests {
		t.Run(string(class), func(t *testing.T) {
			e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "m"})
			b := e.Event(nil, ninelives.TextDelta{Text: "Hel"})
			b = e.Fail(b, &ninelives.Fault{Class: class, Message: "It broke."})
			frames := responsesTold(t, b)
			failed, before := frames[len(frames)-1], frames[len(frames)-2]
			if failed.Event != "response.failed" || before.Event != "error" || bytes.Contains(b, []byte("completed")) {
				t.Fatalf("%s", b)
			}
			if got := rawjson.String(rawjson.Path(failed.Data, "response", "error", "code")); got != code {
				t.Errorf("code %q, want %q", got, code)
			}
			if got := rawjson.String(rawjson.Get(before.Data, "message")); got != "It broke." {
				t.Errorf("message %q", got)
			}
			if _, err := streamResponses(t, responsesOptions, bytes.NewReader(b)); err == nil {
				t.Error("our own decoder takes it for an answer")
			}
		})
	}
}

func TestResponsesEncoderKeepsAlive(t *testing.T) {
	e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "m"})
	b := e.KeepAlive(e.KeepAlive(nil))
	b = e.Event(b, ninelives.Done{Response: &ninelives.Response{Message: ninelives.AssistantText("Hi"), Finish: ninelives.FinishStop}})
	frames := responsesTold(t, b)
	var kinds []string
	for _, f := range frames[:4] {
		kinds = append(kinds, f.Event)
	}
	if want := []string{"response.created", "response.in_progress", "response.in_progress", "response.output_item.added"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("%q", kinds)
	}
}

// Reasoning may be told before its attempt fails: it stays, and the next
// attempt is told after it.
func TestResponsesEncoderAfterADiscard(t *testing.T) {
	e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "m"})
	b := e.Event(nil, ninelives.ReasoningDelta{Attempt: 1, Part: 0, Text: "Hm."})
	b = e.Event(b, ninelives.Discard{Attempt: 1})
	b = e.Event(b, ninelives.TextDelta{Attempt: 2, Part: 0, Text: "Hi"})
	b = e.Event(b, ninelives.Done{Attempt: 2, Response: &ninelives.Response{Message: ninelives.AssistantText("Hi"), Finish: ninelives.FinishStop}})
	responsesTold(t, b)
	r, err := streamResponses(t, responsesOptions, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "Hi" || r.Message.Reasoning() != "Hm." {
		t.Errorf("%s", showResponses(r.Message))
	}
}

// An answer goes back to its maker as it came.
func TestResponsesAnswersGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := responsesGenResponse(t)
		turn := r.Message
		req := &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi"), turn}}
		if calls := turn.ToolCalls(); len(calls) > 0 {
			results := ninelives.Message{Role: ninelives.RoleTool}
			for _, c := range calls {
				results.Parts = append(results.Parts, ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: []ninelives.Part{ninelives.Text{Text: "ok"}}})
			}
			req.Messages = append(req.Messages, results)
		}
		req.Messages = append(req.Messages, ninelives.UserText("Go on"))
		enc, err := openai.EncodeResponsesRequest(req, responsesTarget())
		if err != nil {
			t.Fatal(err)
		}
		in, err := openai.DecodeResponsesRequest(enc.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range turn.Parts { // a client does not say who made it
			if p, ok := part.(ninelives.Reasoning); ok {
				p.Provenance.Provider, p.Provenance.Model = "", ""
				turn.Parts[i] = p
			}
		}
		if !reflect.DeepEqual(in.Request.Messages[1], turn) {
			t.Fatalf("%s\n got %s\nwant %s", enc.Body, showResponses(in.Request.Messages[1]), showResponses(turn))
		}
	})
}

// The ids that an encoder made are not sent to a provider, which would look
// for them in vain.
func TestResponsesMadeIDsAreNotSent(t *testing.T) {
	e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1"})
	b := e.Event(nil, ninelives.Done{Response: &ninelives.Response{
		Finish: ninelives.FinishStop,
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "Hm.", Summary: true, ID: "rs_1", Provenance: ninelives.Provenance{Field: "summary", Blob: "gAAA"}}, ninelives.Text{Text: "Hello."},
		}},
	}})
	frames := responsesTold(t, b)
	output := rawjson.Path(frames[len(frames)-1].Data, "response", "output")
	body := fmt.Sprintf(`{"model":"gpt-x","input":[{"role":"user","content":"Hi"},%s,{"role":"user","content":"Bye"}]}`, output[1:len(output)-1])
	in, err := openai.DecodeResponsesRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := openai.EncodeResponsesRequest(in.Request, responsesTarget())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAA"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[]}],"status":"completed"},{"type":"message","role":"user","content":"Bye"}]}`
	if string(enc.Body) != want {
		t.Errorf("\n got %s\nwant %s", enc.Body, want)
	}
}
