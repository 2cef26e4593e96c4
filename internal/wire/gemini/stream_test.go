package gemini_test

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
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// chunks frames chunks as a server does.
func chunks(list ...string) []byte {
	var b []byte
	for _, c := range list {
		b = append(append(append(b, "data: "...), c...), "\r\n\r\n"...)
	}
	return b
}

// chunk is a chunk of the first candidate.
func chunk(parts, rest string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0` + rest + `}],"responseId":"r1"}`
}

const stop = `,"finishReason":"STOP"`

func TestStreams(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		parts  []ninelives.Part
		finish ninelives.FinishReason
	}{
		{
			"pieces of text are one text",
			[]string{chunk(`{"text":"Hel"}`, ""), chunk(`{"text":"lo"}`, ""), chunk(`{"text":""}`, stop)},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}}, ninelives.FinishStop,
		},
		{
			"a reason in every chunk does not end the answer",
			[]string{chunk(`{"text":"Hel"}`, stop), chunk(`{"text":"lo"}`, stop)},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}}, ninelives.FinishStop,
		},
		{
			"thinking, text, thinking",
			[]string{chunk(`{"text":"A","thought":true}`, ""), chunk(`{"text":"B","thought":true},{"text":"C"}`, ""), chunk(`{"text":"D","thought":true}`, stop)},
			[]ninelives.Part{ninelives.Reasoning{Text: "AB"}, ninelives.Text{Text: "C"}, ninelives.Reasoning{Text: "D"}}, ninelives.FinishStop,
		},
		{
			"a proof at the end of a text stands after it",
			[]string{chunk(`{"text":"Hel"}`, ""), chunk(`{"text":"lo","thoughtSignature":"s"}`, stop)},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}, ninelives.Reasoning{}}, ninelives.FinishStop,
		},
		{
			"a proof in a chunk of its own",
			[]string{chunk(`{"text":"Hello"}`, ""), chunk(`{"text":"","thoughtSignature":"s"}`, stop)},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}, ninelives.Reasoning{}}, ninelives.FinishStop,
		},
		{
			"a proof of a thought ends it",
			[]string{chunk(`{"text":"A","thought":true}`, ""), chunk(`{"text":"B","thought":true,"thoughtSignature":"s"}`, ""), chunk(`{"text":"C","thought":true}`, stop)},
			[]ninelives.Part{ninelives.Reasoning{Text: "AB"}, ninelives.Reasoning{Text: "C"}}, ninelives.FinishStop,
		},
		{
			"calls in two chunks, and in one",
			[]string{chunk(`{"functionCall":{"name":"a","args":{"q":1},"id":"1"}}`, ""), chunk(`{"functionCall":{"name":"b","args":{},"id":"2"}},{"functionCall":{"name":"c","id":"3"}}`, stop)},
			[]ninelives.Part{ninelives.ToolCall{ID: "1", Name: "a", Arguments: `{"q":1}`}, ninelives.ToolCall{ID: "2", Name: "b", Arguments: `{}`}, ninelives.ToolCall{ID: "3", Name: "c", Arguments: `{}`}}, ninelives.FinishToolCalls,
		},
		{
			"text around code",
			[]string{chunk(`{"text":"A"}`, ""), chunk(`{"executableCode":{"code":"1"}}`, ""), chunk(`{"text":"B"}`, stop)},
			[]ninelives.Part{ninelives.Text{Text: "A"}, ninelives.Opaque{Kind: "executableCode"}, ninelives.Text{Text: "B"}}, ninelives.FinishStop,
		},
		{
			"usage after the end, heartbeats and a sentinel",
			[]string{`ping`, chunk(`{"text":"Hello"}`, stop), `{"usageMetadata":{"promptTokenCount":3}}`, `[DONE]`},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}}, ninelives.FinishStop,
		},
		{
			"a prompt that was blocked",
			[]string{`{"promptFeedback":{"blockReason":"SAFETY"}}`},
			nil, ninelives.FinishContentFilter,
		},
		{
			"an array of chunks in one frame",
			[]string{"[" + chunk(`{"text":"Hel"}`, "") + "," + chunk(`{"text":"lo"}`, stop) + "]"},
			[]ninelives.Part{ninelives.Text{Text: "Hello"}}, ninelives.FinishStop,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := chunks(tt.chunks...)
			for _, pieces := range [][][]byte{{body}, wiretest.Every(body, 1)} {
				r, err := read(t, gemini.NewDecoder(options), wiretest.Pieces(pieces), &told{})
				if err != nil {
					t.Fatal(err)
				}
				if got := readable(r.Message.Parts); !reflect.DeepEqual(got, tt.parts) {
					t.Errorf("\n got %s\nwant %s", show(got), show(tt.parts))
				}
				if r.Finish != tt.finish {
					t.Errorf("finish %q, want %q", r.Finish, tt.finish)
				}
			}
		})
	}
}

// readable is parts without what only a server reads.
func readable(parts []ninelives.Part) []ninelives.Part {
	var list []ninelives.Part
	for _, part := range parts {
		switch p := part.(type) {
		case ninelives.Text:
			list = append(list, ninelives.Text{Text: p.Text})
		case ninelives.Reasoning:
			list = append(list, ninelives.Reasoning{Text: p.Text})
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

// Without alt=sse the server answers an array, which is read as a whole.
func TestArrays(t *testing.T) {
	body := "[" + chunk(`{"text":"Hel"}`, "") + ",\r\n" + chunk(`{"text":"lo"}`, stop) + "\n]"
	r, err := gemini.DecodeResponse([]byte(body), options)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Message.Parts) != 1 || r.Text() != "Hello" || r.Finish != ninelives.FinishStop {
		t.Errorf("%s", show(r))
	}
	// Nor is it lost when it comes where events are waited for.
	reader := sse.NewReader(strings.NewReader(body))
	if _, err := reader.Next(); err != io.EOF {
		t.Fatalf("an event: %v", err)
	}
	if r, err = gemini.DecodeResponse(reader.Body(), options); err != nil || r.Text() != "Hello" {
		t.Errorf("%v %v", r, err)
	}
}

func TestLastUsageCounts(t *testing.T) {
	r, err := read(t, gemini.NewDecoder(options), bytes.NewReader(chunks(
		`{"candidates":[{"content":{"parts":[{"text":"A"}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":9,"cachedContentTokenCount":2},"modelVersion":"m"}`,
		`{"candidates":[{"content":{"parts":[{"text":"B"}]},"finishReason":"STOP","safetyRatings":[1]}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":4}}`,
	)), &told{})
	if err != nil {
		t.Fatal(err)
	}
	u := r.Usage
	if u.Input != 3 || u.Output != 2 || u.Reasoning != 4 || u.Has(ninelives.UsageCached) || u.TotalOutput() != 6 {
		t.Errorf("%+v", u)
	}
	if r.Model != "m" || string(r.ChoiceExtra.JSON) != `{"safetyRatings":[1]}` {
		t.Errorf("%s", show(r))
	}
}

func TestSeveralCandidates(t *testing.T) {
	d := gemini.NewDecoder(options)
	var told told
	r, err := read(t, d, bytes.NewReader(chunks(
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"X"}]}},{"index":0,"content":{"parts":[{"text":"A"}]}}]}`,
		`{"candidates":[{"index":0,"content":{"parts":[{"text":"B"}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"Y"}]},"finishReason":"MAX_TOKENS"}]}`,
	)), &told)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "AB" || len(r.Choices) != 1 || r.Choices[0].Message.Text() != "XY" || r.Choices[0].Finish != ninelives.FinishLength {
		t.Errorf("%s", show(r))
	}
	if strings.Join(told.text, "|") != "A|B" {
		t.Errorf("told %q", told.text)
	}
}

// A stream that reports a failure, or ends without its end, is never an answer.
func TestStreamsThatFail(t *testing.T) {
	head := chunk(`{"text":"Hel"}`, "")
	tests := []struct {
		name   string
		chunks []string
		cause  error
		class  ninelives.Class
		phase  ninelives.Phase
		text   string
	}{
		{"it ends", []string{head}, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"it is cut", []string{head}, io.ErrUnexpectedEOF, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"it ends in thought", []string{chunk(`{"text":"Hm.","thought":true}`, "")}, nil, ninelives.ClassStreamBroken, ninelives.PhaseFirstToken, ""},
		{"a sentinel is no end", []string{head, `[DONE]`}, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"there is nothing", nil, nil, ninelives.ClassEmpty, ninelives.PhaseFirstToken, ""},
		{"there is no candidate", []string{`{"candidates":[]}`, `{"usageMetadata":{"promptTokenCount":1}}`}, nil, ninelives.ClassEmpty, ninelives.PhaseFirstToken, ""},
		{"there is nothing, cut", nil, io.ErrUnexpectedEOF, ninelives.ClassStreamBroken, ninelives.PhaseFirstToken, ""},
		{"a reason that is none", []string{chunk(`{"text":"Hel"}`, `,"finishReason":"FINISH_REASON_UNSPECIFIED"`)}, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"one of two candidates", []string{chunk(`{"text":"Hel"}`, stop), `{"candidates":[{"index":1,"content":{"parts":[{"text":"X"}]}}]}`}, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"garbage", []string{head, `{"candidates":[`}, nil, ninelives.ClassStreamBroken, ninelives.PhaseStream, "Hel"},
		{"an error", []string{head, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`}, nil, ninelives.ClassOverloaded, ninelives.PhaseStream, "Hel"},
		{"an error in an array", []string{`[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`}, nil, ninelives.ClassRateLimit, ninelives.PhaseFirstToken, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := io.Reader(bytes.NewReader(chunks(tt.chunks...)))
			if tt.cause != nil {
				r = io.MultiReader(r, failing{tt.cause})
			}
			_, err := read(t, gemini.NewDecoder(options), r, &told{})
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
				t.Errorf("partial %s, want text %q", show(fault.Partial), tt.text)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWhatBreaksAfterTheEndIsNoted(t *testing.T) {
	d := gemini.NewDecoder(options)
	for i, c := range []string{chunk(`{"text":"Hi"}`, stop), `{"error":{"code":500,"message":"Late trouble","status":"INTERNAL"}}`} {
		if want := []wire.State{wire.Open, wire.Finished}[i]; d.State() != want {
			t.Errorf("state %v before chunk %d", d.State(), i)
		}
		if err := d.Frame(wire.Frame{Data: []byte(c)}, func(ninelives.Event) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	r, err := d.Response(io.ErrUnexpectedEOF)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "Hi" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "Late trouble") {
		t.Errorf("text %q, warnings %q", r.Text(), r.Warnings)
	}
}

func TestConsumerMayStopAFrame(t *testing.T) {
	d := gemini.NewDecoder(options)
	n := 0
	if err := d.Frame(wire.Frame{Data: []byte(chunk(`{"text":"A"},{"text":"B"}`, stop))}, func(ninelives.Event) bool { n++; return false }); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d events after the consumer had enough", n-1)
	}
}

// A client reads from a stream what the answer is, however it was told and
// however its bytes were cut.
func TestStreamRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genResponse(t)
		want.Choices = nil
		array := rapid.Bool().Draw(t, "array")
		enc := gemini.NewEncoder(wire.EncodeOptions{ID: want.ID, Model: want.Model})
		if array {
			enc = gemini.NewArrayEncoder(wire.EncodeOptions{ID: want.ID, Model: want.Model})
		}
		var stream []byte
		for _, ev := range genDeltas(t, want.Message.Parts) {
			stream = enc.Event(stream, ev)
		}
		stream = enc.Event(stream, ninelives.Done{Response: want})
		var got *ninelives.Response
		var err error
		if array {
			got, err = gemini.DecodeResponse(stream, options)
		} else {
			var pieces [][]byte
			for rest := stream; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			got, err = read(t, gemini.NewDecoder(options), wiretest.Pieces(pieces), &told{})
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, stream)
		}
		if a, b := seen(got), seen(want); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\n%s", stream, difference(a, b))
		}
	})
}

// seen is an answer as a client reads it from a stream: where a text or a
// thought ends and the next begins is not told, nor are members of their parts.
// Proofs of text may stand elsewhere.
func seen(r *ninelives.Response) *ninelives.Response {
	seen := *r
	seen.Message.Parts = nil
	for _, part := range r.Message.Parts {
		last := len(seen.Message.Parts) - 1
		switch p := part.(type) {
		case ninelives.Text:
			p = ninelives.Text{Text: p.Text}
			if last >= 0 {
				if before, ok := seen.Message.Parts[last].(ninelives.Text); ok {
					seen.Message.Parts[last] = ninelives.Text{Text: before.Text + p.Text}
					continue
				}
			}
			seen.Message.Parts = append(seen.Message.Parts, p)
		case ninelives.Reasoning:
			if p.Text == "" {
				continue
			}
			p.Extra, p.Provenance.Signature = ninelives.Extra{}, ""
			if last >= 0 {
				if before, ok := seen.Message.Parts[last].(ninelives.Reasoning); ok {
					before.Text += p.Text
					seen.Message.Parts[last] = before
					continue
				}
			}
			seen.Message.Parts = append(seen.Message.Parts, p)
		default:
			seen.Message.Parts = append(seen.Message.Parts, part)
		}
	}
	return &seen
}

// genDeltas draws how an answer is told: which parts by deltas, and in what
// pieces. A part may be told up to any point.
func genDeltas(t *rapid.T, parts []ninelives.Part) []ninelives.Event {
	var events []ninelives.Event
	if rapid.Bool().Draw(t, "at once") {
		return nil
	}
	for i, part := range parts {
		text := ""
		switch p := part.(type) {
		case ninelives.Text:
			text = p.Text
		case ninelives.Reasoning:
			text = p.Text
		case ninelives.ToolCall:
			events = append(events, ninelives.ToolCallDelta{Part: i, ID: p.ID, Name: p.Name}, ninelives.ToolCallDelta{Part: i, Arguments: p.Arguments})
			continue
		default:
			return events
		}
		for runes := []rune(text); len(runes) > 0; {
			n := rapid.IntRange(0, len(runes)).Draw(t, "piece")
			if n == 0 {
				return events
			}
			piece := string(runes[:n])
			runes = runes[n:]
			if _, ok := part.(ninelives.Text); ok {
				events = append(events, ninelives.TextDelta{Part: i, Text: piece})
			} else {
				events = append(events, ninelives.ReasoningDelta{Part: i, Text: piece})
			}
		}
	}
	return events
}

// An answer goes back to its maker as it came.
func TestAnswersGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := genResponse(t).Message
		req := &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi"), turn}}
		if calls := turn.ToolCalls(); len(calls) > 0 {
			results := ninelives.Message{Role: ninelives.RoleTool}
			for _, c := range calls {
				results.Parts = append(results.Parts, ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: []ninelives.Part{ninelives.Text{Text: "ok"}}})
			}
			req.Messages = append(req.Messages, results)
		}
		req.Messages = append(req.Messages, ninelives.UserText("Go on"))
		enc, err := gemini.EncodeRequest(req, target())
		if err != nil {
			t.Fatal(err)
		}
		back, err := gemini.DecodeRequest("m", enc.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range turn.Parts { // a client does not say who made it
			switch p := part.(type) {
			case ninelives.Reasoning:
				p.Provenance.Provider, p.Provenance.Model = "", ""
				turn.Parts[i] = p
			case ninelives.ToolCall:
				p.Provenance.Provider, p.Provenance.Model = "", ""
				turn.Parts[i] = p
			}
		}
		if got := back.Messages[1]; !reflect.DeepEqual(got, turn) {
			t.Fatalf("%s\n%s", enc.Body, difference(&got, &turn))
		}
	})
}

func TestEncoderFails(t *testing.T) {
	for class, status := range map[ninelives.Class]string{
		ninelives.ClassRateLimit: "RESOURCE_EXHAUSTED", ninelives.ClassAuth: "UNAUTHENTICATED", ninelives.ClassModelNotFound: "NOT_FOUND", ninelives.ClassContextLength: "INVALID_ARGUMENT",
		ninelives.ClassTimeout: "DEADLINE_EXCEEDED", ninelives.ClassOverloaded: "UNAVAILABLE", ninelives.ClassUnknown: "INTERNAL",
	} {
		t.Run(string(class), func(t *testing.T) {
			e := gemini.NewEncoder(wire.EncodeOptions{ID: "r1", Model: "m"})
			b := e.Event(nil, ninelives.TextDelta{Text: "Hel"})
			b = e.Fail(b, &ninelives.Fault{Class: class, Message: "It broke."})
			if !bytes.Contains(b, []byte(`"status":"`+status+`"`)) || bytes.Contains(b, []byte("finishReason")) {
				t.Errorf("%s", b)
			}
			if _, err := read(t, gemini.NewDecoder(options), bytes.NewReader(b), &told{}); err == nil {
				t.Error("our own decoder takes it for an answer")
			}
			a := gemini.NewArrayEncoder(wire.EncodeOptions{})
			b = a.Fail(a.Event(nil, ninelives.TextDelta{Text: "Hel"}), &ninelives.Fault{Class: class, Message: "It broke."})
			if !rawjson.Valid(b) {
				t.Errorf("no array: %s", b)
			}
		})
	}
}

// Thinking may be told before its attempt fails: it stays, and the next
// attempt is told after it.
func TestEncoderAfterADiscard(t *testing.T) {
	e := gemini.NewEncoder(wire.EncodeOptions{})
	b := e.Event(nil, ninelives.ReasoningDelta{Attempt: 1, Part: 0, Text: "Hm."})
	b = e.Event(b, ninelives.ToolCallDelta{Attempt: 1, Part: 1, ID: "c", Name: "look"})
	b = e.Event(b, ninelives.Discard{Attempt: 1})
	b = e.Event(b, ninelives.TextDelta{Attempt: 2, Part: 0, Text: "H"})
	b = e.Event(b, ninelives.Done{Attempt: 2, Response: &ninelives.Response{Message: ninelives.AssistantText("Hi"), Finish: ninelives.FinishStop}})
	r, err := read(t, gemini.NewDecoder(options), bytes.NewReader(b), &told{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != "Hi" || r.Message.Reasoning() != "Hm." || len(r.Message.ToolCalls()) != 0 {
		t.Errorf("%s", show(r.Message))
	}
}

// No stream makes the decoder panic, loop or lie.
func FuzzGeminiDecoder(f *testing.F) {
	f.Add(chunks(chunk(`{"text":"Hi"}`, stop)))
	f.Add(chunks(chunk(`{"text":"Hm.","thought":true,"thoughtSignature":"s"},{"functionCall":{"name":"a","args":{}}}`, ""), `{"usageMetadata":{}}`))
	f.Add(chunks(`{"promptFeedback":{"blockReason":"X"}}`))
	f.Add(chunks(`[{"error":{"message":"x"}}]`))
	f.Add(chunks(chunk(`{"inline_data":{"mime_type":"image/png","data":"AAAA"},"thought_signature":"s"},{"x":1}`, `,"citationMetadata":{"citationSources":[{}]},"finishReason":"STOP"`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := gemini.NewDecoder(options)
		r := sse.NewReader(bytes.NewReader(body))
		for {
			fr, err := r.Next()
			if err != nil {
				break
			}
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
		case err == nil && d.State() == wire.Open:
			t.Fatal("an answer of an open stream")
		}
		if resp != nil && !rawjson.Valid(gemini.EncodeResponse(resp)) {
			t.Fatalf("no JSON: %s", gemini.EncodeResponse(resp))
		}
		if _, err := gemini.DecodeResponse(body, options); err == nil && !rawjson.Valid(body) {
			t.Fatal("an answer of what is no JSON")
		}
	})
}

// A long answer costs about an allocation per chunk: the event itself.
func BenchmarkDecoder(b *testing.B) {
	frame := wire.Frame{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":" word"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":157,"candidatesTokenCount":32,"totalTokenCount":627,"promptTokensDetails":[{"modality":"TEXT","tokenCount":157}],"thoughtsTokenCount":438},"modelVersion":"gemini-x","createTime":"2026-05-27T16:53:45.443719Z","responseId":"r1"}`)}
	last := wire.Frame{Data: []byte(chunk(``, stop))}
	b.ReportAllocs()
	for b.Loop() {
		d := gemini.NewDecoder(options)
		for range 500 {
			if err := d.Frame(frame, func(ninelives.Event) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
		_ = d.Frame(last, func(ninelives.Event) bool { return true })
		if _, err := d.Response(nil); err != nil {
			b.Fatal(err)
		}
	}
}
