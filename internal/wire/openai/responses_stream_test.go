package openai_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// responsesEvents frames events as a server does.
func responsesEvents(events ...string) []byte {
	var b []byte
	for _, ev := range events {
		b = append(append(append(b, "data: "...), ev...), "\n\n"...)
	}
	return b
}

const (
	responsesCreated   = `{"type":"response.created","response":{"id":"resp_1","model":"gpt-x","status":"in_progress","output":[]}}`
	responsesCompleted = `{"type":"response.completed","response":{"id":"resp_1","model":"gpt-x","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":2}}}`
	responsesAddedText = `{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[]}}`
	responsesAddedCall = `{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":""}}`
)

func responsesTextDelta(s string) string {
	return `{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":"` + s + `"}`
}

// The streams of servers that leave something out, or say it twice.
func TestResponsesStreams(t *testing.T) {
	text := func(s string) []ninelives.Part { return []ninelives.Part{ninelives.Text{Text: s}} }
	call := func(args string) []ninelives.Part {
		return []ninelives.Part{ninelives.ToolCall{ID: "c1", Name: "look", Arguments: args}}
	}
	tests := []struct {
		name   string
		events []string
		parts  []ninelives.Part // what there is to read of them
		finish ninelives.FinishReason
	}{
		{
			"text of deltas alone",
			[]string{responsesCreated, responsesAddedText, responsesTextDelta("Hel"), responsesTextDelta("lo"), responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"text that is only in the part's end",
			[]string{responsesCreated, responsesAddedText, `{"type":"response.output_text.done","output_index":0,"content_index":0,"item_id":"msg_1","text":"Hello"}`, responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"text that is only in the item's end",
			[]string{responsesCreated, `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hello"}]}}`, responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"text that is only in the last event",
			[]string{`{"type":"response.completed","response":{"status":"completed","output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hello"}]}]}}`},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"the end has more than the deltas",
			[]string{responsesCreated, responsesAddedText, responsesTextDelta("Hel"), `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hello"}]}}`, responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"an item whose end is empty keeps its deltas",
			[]string{responsesCreated, responsesAddedText, responsesTextDelta("Hello"), `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}`, responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"the first content has index 1, and ids change with every event",
			[]string{responsesCreated, responsesAddedText,
				`{"type":"response.output_text.delta","output_index":0,"content_index":1,"item_id":"a","delta":"Hel"}`, `{"type":"response.output_text.delta","output_index":0,"content_index":1,"item_id":"b","delta":"lo"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"c","type":"message","content":[{"type":"output_text","text":"Hello"}]}}`,
				`{"type":"response.completed","response":{"status":"completed","output":[{"id":"d","type":"message","content":[{"type":"output_text","text":"Hello"}]}]}}`},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"no index at all",
			[]string{responsesCreated, `{"type":"response.output_item.added","item":{"id":"msg_1","type":"message","content":[]}}`, `{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hello"}`,
				`{"type":"response.output_item.done","item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hello"}]}}`, responsesCompleted},
			text("Hello"), ninelives.FinishStop,
		},
		{
			"a call in pieces",
			[]string{responsesCreated, responsesAddedCall, `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"q\""}`, `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":":1}"}`, responsesCompleted},
			call(`{"q":1}`), ninelives.FinishToolCalls,
		},
		{
			"arguments that are only in their end",
			[]string{responsesCreated, responsesAddedCall, `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","arguments":"{\"q\":1}"}`, responsesCompleted},
			call(`{"q":1}`), ninelives.FinishToolCalls,
		},
		{
			"arguments whose end is empty keep their deltas",
			[]string{responsesCreated, responsesAddedCall, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"q\":1}"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":""}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":""}}`, responsesCompleted},
			call(`{"q":1}`), ninelives.FinishToolCalls,
		},
		{
			"a call whose name comes last",
			[]string{responsesCreated, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"q\":1}"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"q\":1}"}}`, responsesCompleted},
			call(`{"q":1}`), ninelives.FinishToolCalls,
		},
		{
			"a call without arguments",
			[]string{responsesCreated, responsesAddedCall, `{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":""}}`, responsesCompleted},
			call(`{}`), ninelives.FinishToolCalls,
		},
		{
			"items that end in another order than they began",
			[]string{responsesCreated,
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
				`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Hm."}`,
				`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","content":[]}}`,
				`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"4"}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"4"}]}}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}}`,
				responsesCompleted},
			[]ninelives.Part{ninelives.Reasoning{ID: "rs_1", Text: "Hm."}, ninelives.Text{Text: "4"}}, ninelives.FinishStop,
		},
		{
			"several summaries, and one of them twice announced",
			[]string{responsesCreated,
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
				`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"A"}`,
				`{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":0,"text":"A"}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"B"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}]}}`,
				responsesCompleted},
			[]ninelives.Part{ninelives.Reasoning{ID: "rs_1", Text: "A", Summary: true}, ninelives.Reasoning{ID: "rs_1", Text: "B", Summary: true}}, ninelives.FinishStop,
		},
		{
			"what the server did by itself is known at its end, or as far as it was told",
			[]string{responsesCreated,
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws_1","status":"in_progress"}}`,
				`{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws_1","status":"completed"}}`,
				`{"type":"response.output_item.added","output_index":1,"item":{"type":"mcp_call","id":"mcp_1"}}`,
				responsesCompleted},
			[]ninelives.Part{ninelives.Opaque{Kind: "web_search_call"}, ninelives.Opaque{Kind: "mcp_call"}}, ninelives.FinishStop,
		},
		{
			"a refusal",
			[]string{responsesCreated, responsesAddedText, `{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}`, `{"type":"response.refusal.done","output_index":0,"content_index":0,"refusal":"No."}`, responsesCompleted},
			[]ninelives.Part{ninelives.Refusal{Text: "No."}}, ninelives.FinishRefusal,
		},
		{
			"a call that was cut",
			[]string{responsesCreated, responsesAddedCall, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"q\":"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":"{\"q\":","status":"incomplete"}}`,
				`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`},
			call(`{"q":`), ninelives.FinishLength,
		},
		{
			"events of no known type, heartbeats, and a sentinel",
			[]string{responsesCreated, `ping`, `{"type":"keepalive"}`, responsesAddedText, responsesTextDelta("Hello"), `{"type":"response.output_text.future","x":1}`, `{}`, responsesCompleted, `[DONE]`},
			text("Hello"), ninelives.FinishStop,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := responsesEvents(tt.events...)
			for _, pieces := range [][][]byte{{body}, wiretest.Every(body, 1)} {
				r, err := streamResponses(t, responsesOptions, wiretest.Pieces(pieces))
				if err != nil {
					t.Fatal(err)
				}
				if got := responsesReadable(r.Message.Parts); !reflect.DeepEqual(got, tt.parts) {
					t.Errorf("\n got %s\nwant %s", showResponses(got), showResponses(tt.parts))
				}
				if r.Finish != tt.finish {
					t.Errorf("finish %q, want %q", r.Finish, tt.finish)
				}
			}
		})
	}
}

// responsesReadable is parts without what only a server reads.
func responsesReadable(parts []ninelives.Part) []ninelives.Part {
	var list []ninelives.Part
	for _, part := range parts {
		switch p := part.(type) {
		case ninelives.Text:
			list = append(list, ninelives.Text{Text: p.Text})
		case ninelives.Refusal:
			list = append(list, ninelives.Refusal{Text: p.Text})
		case ninelives.Reasoning:
			list = append(list, ninelives.Reasoning{ID: p.ID, Text: p.Text, Summary: p.Summary, Redacted: p.Redacted})
		case ninelives.ToolCall:
			list = append(list, ninelives.ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments})
		case ninelives.Opaque:
			list = append(list, ninelives.Opaque{Kind: p.Kind})
		default:
			list = append(list, part)
		}
	}
	return list
}

// Where the end contradicts the deltas, the end is the answer. What was told
// cannot be taken back.
func TestResponsesEndWinsOverDeltas(t *testing.T) {
	d := openai.NewResponsesDecoder(responsesOptions)
	var told responsesDeltas
	for _, ev := range []string{
		responsesCreated, responsesAddedCall,
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"q\": 1}"}`,
		`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"q\":2}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":"{\"q\":2}"}}`,
		responsesCompleted,
	} {
		if err := d.Frame(wire.Frame{Data: []byte(ev)}, told.add); err != nil {
			t.Fatal(err)
		}
	}
	r, err := d.Response(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Message.ToolCalls()[0].Arguments; got != `{"q":2}` {
		t.Errorf("arguments %s", got)
	}
	if got := told.parts[0].(ninelives.ToolCall).Arguments; got != `{"q": 1}` {
		t.Errorf("told %s", got)
	}
}

func TestResponsesSourcesAnnouncedByThemselves(t *testing.T) {
	r, err := streamResponses(t, responsesOptions, bytes.NewReader(responsesEvents(
		responsesCreated, responsesAddedText, responsesTextDelta("A"),
		`{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"https://example.org"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"A"}]}}`,
		responsesCompleted)))
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Message.Parts[0].(ninelives.Text).Citations; len(c) != 1 || c[0].URL != "https://example.org" {
		t.Errorf("citations %s", showResponses(c))
	}
}

// A stream that reports a failure, or ends without its end, is never an answer.
func TestResponsesStreamsThatFail(t *testing.T) {
	head := []string{responsesCreated, responsesAddedText, responsesTextDelta("Hel")}
	tests := []struct {
		name   string
		events []string
		cause  error
		class  ninelives.Class
		phase  ninelives.Phase
		text   string
	}{
		{"it ends", head, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"it is cut", head, io.ErrUnexpectedEOF, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"it ends before a word", head[:1], nil, ninelives.ClassStreamBroken, ninelives.PhaseFirstToken, ""},
		{"it ends after the item's end", append(head, `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hello"}]}}`), nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hello"},
		{"a sentinel is no end", append(head, `[DONE]`), nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"there is nothing", nil, nil, ninelives.ClassEmpty, ninelives.PhaseFirstToken, ""},
		{"there is nothing but a sentinel", []string{`[DONE]`}, nil, ninelives.ClassEmpty, ninelives.PhaseFirstToken, ""},
		{"there is nothing, cut", nil, io.ErrUnexpectedEOF, ninelives.ClassStreamBroken, ninelives.PhaseFirstToken, ""},
		{"garbage", append(head, `{"type":"response.output_te`), nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"an error event", append(head, `{"type":"error","error":{"type":"server_error","code":"server_is_overloaded","message":"Overloaded"}}`), nil, ninelives.ClassOverloaded, ninelives.PhaseStream, "Hel"},
		{"a flat error event", append(head, `{"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 2s.","param":null}`), nil, ninelives.ClassRateLimit, ninelives.PhaseStream, "Hel"},
		{"an error without an event", []string{`{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`}, nil, ninelives.ClassAuth, ninelives.PhaseFirstToken, ""},
		{"a failed response", append(head, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","instructions":"You are a rate limit expert. insufficient_quota","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`), nil, ninelives.ClassContextLength, ninelives.PhaseStream, "Hel"},
		{"a failed response that calls itself completed", append(head, `{"type":"response.completed","response":{"id":"resp_1","status":"failed","error":{"code":"server_is_overloaded","message":"Overloaded"},"output":[]}}`), nil, ninelives.ClassOverloaded, ninelives.PhaseStream, "Hel"},
		{"a failure that says nothing", append(head, `{"type":"response.failed","response":{"status":"failed","error":null}}`), nil, ninelives.ClassUnknown, ninelives.PhaseStream, "Hel"},
		{"an error and then the failed response that explains it", append(head, `{"type":"error","error":{"code":"unknown","message":"Oops"}}`, `{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}}`), nil, ninelives.ClassBilling, ninelives.PhaseStream, "Hel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := responsesEvents(tt.events...)
			r := io.Reader(bytes.NewReader(body))
			if tt.cause != nil {
				r = io.MultiReader(r, failing{tt.cause})
			}
			_, err := streamResponses(t, responsesOptions, r)
			var fault *ninelives.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("no Fault: %v", err)
			}
			if fault.Class != tt.class || fault.Phase != tt.phase || fault.Message == "" {
				t.Errorf("class %s in phase %s, want %s in %s: %v", fault.Class, fault.Phase, tt.class, tt.phase, fault)
			}
			if tt.cause != nil && !errors.Is(fault, tt.cause) {
				t.Errorf("the cause is lost: %v", fault)
			}
			if fault.Partial == nil || fault.Partial.Text() != tt.text {
				t.Errorf("partial %s, want text %q", showResponses(fault.Partial), tt.text)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestResponsesStreamStates(t *testing.T) {
	d := openai.NewResponsesDecoder(responsesOptions)
	frame := func(ev string) {
		t.Helper()
		if err := d.Frame(wire.Frame{Data: []byte(ev)}, func(ninelives.Event) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	frame(responsesCreated)
	frame(responsesTextDelta("Hi"))
	if d.State() != wire.Open {
		t.Errorf("state %v before the end", d.State())
	}
	frame(responsesCompleted)
	if d.State() != wire.Closed {
		t.Errorf("state %v after the end", d.State())
	}
	// What breaks now is noted: the answer is whole, and paid for.
	frame(`{"type":"error","error":{"message":"Late trouble","code":"x"}}`)
	frame(responsesTextDelta("more"))
	frame(`{"type":`)
	r, err := d.Response(io.ErrUnexpectedEOF)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "Hi" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "Late trouble") {
		t.Errorf("text %q, warnings %q", r.Text(), r.Warnings)
	}
}

func TestResponsesConsumerMayStopAFrame(t *testing.T) {
	d := openai.NewResponsesDecoder(responsesOptions)
	n := 0
	ev := `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"A"},{"type":"output_text","text":"B"}]}]}}`
	if err := d.Frame(wire.Frame{Data: []byte(ev)}, func(ninelives.Event) bool { n++; return false }); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d events after the consumer had enough", n-1)
	}
}

func TestResponsesDeltasCarryTheirAttemptAndTheCallersNames(t *testing.T) {
	o := responsesOptions
	o.Attempt, o.Names, o.OutputTool = 3, map[string]string{"a_b": "a.b"}, "answer"
	d := openai.NewResponsesDecoder(o)
	var got []ninelives.Event
	for _, ev := range []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"a_b","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c2","name":"answer","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"n\""}`,
		`{"type":"response.function_call_arguments.delta","output_index":1,"delta":":1}"}`,
		responsesCompleted,
	} {
		if err := d.Frame(wire.Frame{Data: []byte(ev)}, func(ev ninelives.Event) bool { got = append(got, ev); return true }); err != nil {
			t.Fatal(err)
		}
	}
	want := []ninelives.Event{
		ninelives.ToolCallDelta{Attempt: 3, Part: 0, ID: "c1", Name: "a.b"},
		ninelives.ToolCallDelta{Attempt: 3, Part: 0, Arguments: "{}"},
		ninelives.TextDelta{Attempt: 3, Part: 1, Text: `{"n"`},
		ninelives.TextDelta{Attempt: 3, Part: 1, Text: `:1}`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	r, err := d.Response(nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != `{"n":1}` || len(r.Message.ToolCalls()) != 1 {
		t.Errorf("%s", showResponses(r.Message))
	}
}

// A client reads from a stream what the answer is, however it was told and
// however its bytes were cut.
func TestResponsesStreamRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := responsesGenResponse(t)
		enc := openai.NewResponsesEncoder(wire.EncodeOptions{ID: want.ID, Model: want.Model, Created: want.Created})
		var stream []byte
		for _, ev := range responsesGenDeltas(t, want.Message.Parts) {
			stream = enc.Event(stream, ev)
		}
		stream = enc.Event(stream, ninelives.Done{Response: want})
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := streamResponses(t, responsesOptions, wiretest.Pieces(pieces))
		if err != nil {
			t.Fatalf("%v\n%s", err, stream)
		}
		a, b := responsesSeen(got), responsesSeen(want)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\n got %s\nwant %s", stream, showResponses(a), showResponses(b))
		}
	})
}

// responsesSeen is an answer as a client sees it in a stream: the items have
// ids that were made for the stream, and what belongs to one is not told.
func responsesSeen(r *ninelives.Response) *ninelives.Response {
	seen := *r
	seen.Message.ID, seen.Message.Parts, seen.Logprobs = "", nil, ninelives.Extra{}
	for _, part := range r.Message.Parts {
		switch p := part.(type) {
		case ninelives.Text:
			part = ninelives.Text{Text: p.Text, Citations: p.Citations}
		case ninelives.Refusal:
			part = ninelives.Refusal{Text: p.Text}
		case ninelives.Reasoning:
			p.ID, p.Extra, p.Provenance.Blob, p.Redacted = "", ninelives.Extra{}, "", false
			if p.Text == "" {
				continue
			}
			p.Summary, p.Provenance.Field = true, "summary"
			part = p
		case ninelives.ToolCall:
			p.Extra = ninelives.Extra{}
			part = p
		}
		seen.Message.Parts = append(seen.Message.Parts, part)
	}
	return &seen
}

// responsesGenDeltas draws how an answer is told: which parts by deltas, and
// in what pieces. A part may be told up to any point.
func responsesGenDeltas(t *rapid.T, parts []ninelives.Part) []ninelives.Event {
	var events []ninelives.Event
	if rapid.Bool().Draw(t, "at once") {
		return nil
	}
	for i, part := range parts {
		if _, ok := part.(ninelives.Opaque); ok {
			return events
		}
		text := ""
		switch p := part.(type) {
		case ninelives.Text:
			text = p.Text
		case ninelives.Refusal:
			text = p.Text
		case ninelives.Reasoning:
			if text = p.Text; text == "" {
				return events
			}
		case ninelives.ToolCall:
			text = p.Arguments
			events = append(events, ninelives.ToolCallDelta{Part: i, ID: p.ID, Name: p.Name})
		}
		whole := true
		for runes := []rune(text); len(runes) > 0; {
			n := rapid.IntRange(0, len(runes)).Draw(t, "piece")
			if n == 0 {
				whole = false
				break
			}
			piece := string(runes[:n])
			runes = runes[n:]
			switch part.(type) {
			case ninelives.Text:
				events = append(events, ninelives.TextDelta{Part: i, Text: piece})
			case ninelives.Refusal:
				events = append(events, ninelives.RefusalDelta{Part: i, Text: piece})
			case ninelives.Reasoning:
				events = append(events, ninelives.ReasoningDelta{Part: i, Text: piece})
			case ninelives.ToolCall:
				events = append(events, ninelives.ToolCallDelta{Part: i, Arguments: piece})
			}
		}
		if !whole {
			return events
		}
	}
	return events
}

// No stream makes the decoder panic, loop or lie: an answer always comes of a
// terminal event, and what is told adds up to it unless the end says otherwise.
func FuzzResponsesDecoder(f *testing.F) {
	f.Add(responsesEvents(responsesCreated, responsesAddedText, responsesTextDelta("Hi"), responsesCompleted))
	f.Add(responsesEvents(responsesCreated, responsesAddedCall, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, `{"type":"response.incomplete","response":{"status":"incomplete"}}`))
	f.Add(responsesEvents(`{"type":"response.reasoning_summary_text.delta","output_index":9,"summary_index":2,"delta":"x"}`, `{"type":"response.failed","response":{"error":{"message":"x"}}}`))
	f.Add(responsesEvents(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"b"}}`, responsesCompleted))
	f.Add([]byte("event: error\ndata: {\"message\":\"x\"}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := openai.NewResponsesDecoder(responsesOptions)
		r := sse.NewReader(bytes.NewReader(body))
		terminal := false
		for {
			fr, err := r.Next()
			if err != nil {
				break
			}
			terminal = terminal || bytes.Contains(fr.Data, []byte("response.")) || strings.HasPrefix(fr.Event, "response.") || bytes.Contains(fr.Data, []byte(`\u`))
			if err := d.Frame(fr, func(ninelives.Event) bool { return true }); err != nil {
				var fault *ninelives.Fault
				if !errors.As(err, &fault) {
					t.Fatalf("no Fault: %v", err)
				}
			}
		}
		resp, err := d.Response(nil)
		switch {
		case (resp == nil) == (err == nil):
			t.Fatalf("response %v and error %v", resp, err)
		case err == nil && !terminal:
			t.Fatal("an answer without a terminal event")
		case err == nil && d.State() == wire.Open:
			t.Fatal("an answer of an open stream")
		}
	})
}

// A long answer costs about an allocation per event: the event itself.
func BenchmarkResponsesDecoder(b *testing.B) {
	events := []string{responsesCreated, responsesAddedText}
	for range 500 {
		events = append(events, responsesTextDelta(" word"))
	}
	events = append(events, responsesCompleted)
	var frames []wire.Frame
	for _, ev := range events {
		frames = append(frames, wire.Frame{Data: []byte(ev)})
	}
	b.ReportAllocs()
	for b.Loop() {
		d := openai.NewResponsesDecoder(responsesOptions)
		for _, f := range frames {
			if err := d.Frame(f, func(ninelives.Event) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := d.Response(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResponsesEncoder(b *testing.B) {
	resp := &ninelives.Response{ID: "resp_1", Message: ninelives.AssistantText(strings.Repeat(" word", 500)), Finish: ninelives.FinishStop}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		e := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "gpt-x"})
		for range 500 {
			buf = e.Event(buf[:0], ninelives.TextDelta{Text: " word"})
		}
		buf = e.Event(buf[:0], ninelives.Done{Response: resp})
	}
}
