package ollama_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/ollama"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func TestRecordings(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.OllamaNative) {
		t.Run(ex.Name, func(t *testing.T) {
			o := wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: ex.Provider, Model: ex.Model, Protocol: ninelives.OllamaNative}}
			if ex.Status != 200 {
				wiretest.Compare(t, ex, nil, wire.Classify(wire.Answer{Status: ex.Status, Header: ex.Header, Body: ex.Body, Candidate: o.Candidate}))
				return
			}
			if !ex.Stream {
				resp, err := ollama.DecodeResponse(ex.Body, o)
				wiretest.Compare(t, ex, resp, err)
				return
			}
			for _, replay := range ex.Replays() {
				_, resp, err := decode(replay.Reader(), o)
				wiretest.Compare(t, ex, resp, err)
			}
		})
	}
}

// decode reads a stream to its end.
func decode(src io.Reader, o wire.DecodeOptions) ([]ninelives.Event, *ninelives.Response, error) {
	lines, d := ollama.NewFramer(src), ollama.NewDecoder(o)
	var events []ninelives.Event
	for d.State() == wire.Open {
		f, err := lines.Next()
		if err != nil {
			if body := lines.Body(); body != nil {
				resp, err := ollama.DecodeResponse(body, o)
				return events, resp, err
			}
			if err == io.EOF {
				err = nil
			}
			resp, err := d.Response(err)
			return events, resp, err
		}
		if err := d.Frame(f, func(ev ninelives.Event) bool { events = append(events, ev); return true }); err != nil {
			return events, nil, err
		}
	}
	resp, err := d.Response(nil)
	return events, resp, err
}

func lines(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func replay(t *testing.T, stream string, o wire.DecodeOptions) ([]ninelives.Event, *ninelives.Response, error) {
	t.Helper()
	events, resp, err := decode(strings.NewReader(stream), o)
	again, resp2, err2 := decode(iotest.OneByteReader(strings.NewReader(stream)), o)
	if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(resp, resp2) || !reflect.DeepEqual(err, err2) {
		t.Fatalf("byte by byte:\n%+v %+v %v\nat once:\n%+v %+v %v", again, resp2, err2, events, resp, err)
	}
	return events, resp, err
}

func TestStreamedAnswer(t *testing.T) {
	stream := lines(
		`{"model":"m","created_at":"2026-01-02T03:04:05.678Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}`,
		``,
		`{"model":"m","created_at":"2026-01-02T03:04:05.678Z","message":{"role":"assistant","content":"Hel"},"done":false}`,
		`{"model":"m","created_at":"2026-01-02T03:04:05.678Z","message":{"role":"assistant","content":"lo","tool_calls":[{"id":"a","function":{"name":"f_x","arguments":{"x": 1}}},{"function":{"name":"g","arguments":"{\"y\":2}"}},{"function":{"name":"g"}}]},"done":false}`,
		`{"model":"m","created_at":"2026-01-02T03:04:06Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":5,"prompt_eval_count":7,"eval_count":3}`,
		`{"ignored":true}`,
	)
	events, got, err := replay(t, stream, wire.DecodeOptions{
		Candidate: ninelives.Candidate{Provider: "ollama", Model: "m"}, Names: map[string]string{"f_x": "f.x"}, Attempt: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := got.Message.ToolCalls()
	for _, c := range calls {
		if c.ID == "" {
			t.Errorf("call %s has no id", c.Name)
		}
	}
	second, third := calls[1].ID, calls[2].ID
	if second == third {
		t.Error("two calls have the same id")
	}
	want := &ninelives.Response{
		Model: "m", Created: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Finish: ninelives.FinishToolCalls, FinishRaw: "stop",
		Usage: ninelives.Usage{Input: 7, Output: 3, Reported: ninelives.UsageInput | ninelives.UsageOutput},
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "ollama", Model: "m", Field: "thinking"}},
			ninelives.Text{Text: "Hello"},
			ninelives.ToolCall{ID: "a", Name: "f.x", Arguments: `{"x": 1}`},
			ninelives.ToolCall{ID: second, Name: "g", Arguments: `{"y":2}`},
			ninelives.ToolCall{ID: third, Name: "g", Arguments: `{}`},
		}},
		Extra: ninelives.Extra{Protocol: ninelives.OllamaNative, JSON: []byte(`{"total_duration":5,"prompt_eval_count":7,"eval_count":3}`)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	wantEvents := []ninelives.Event{
		ninelives.ReasoningDelta{Attempt: 2, Part: 0, Text: "hm"},
		ninelives.TextDelta{Attempt: 2, Part: 1, Text: "Hel"},
		ninelives.TextDelta{Attempt: 2, Part: 1, Text: "lo"},
		ninelives.ToolCallDelta{Attempt: 2, Part: 2, ID: "a", Name: "f.x", Arguments: `{"x": 1}`},
		ninelives.ToolCallDelta{Attempt: 2, Part: 3, ID: second, Name: "g", Arguments: `{"y":2}`},
		ninelives.ToolCallDelta{Attempt: 2, Part: 4, ID: third, Name: "g", Arguments: `{}`},
	}
	if !reflect.DeepEqual(events, wantEvents) {
		t.Errorf("\n got %+v\nwant %+v", events, wantEvents)
	}
}

func TestHowAnAnswerEnds(t *testing.T) {
	text := `{"message":{"content":"Hel"},"done":false}`
	for _, c := range []struct {
		name, stream string
		class        ninelives.Class // of the fault; empty if it is an answer
		text         string
		finish       ninelives.FinishReason
	}{
		{"done", lines(text, `{"message":{"content":"lo"},"done":true,"done_reason":"stop"}`), "", "Hello", ninelives.FinishStop},
		{"done without a reason", lines(text, `{"done":true}`), "", "Hel", ninelives.FinishStop},
		{"done without a line end", text + "\r\n" + `{"done":true}`, "", "Hel", ninelives.FinishStop},
		{"cut", lines(text, `{"done":true,"done_reason":"length"}`), "", "Hel", ninelives.FinishLength},
		{"cut at the limit", lines(text, `{"done":true,"done_reason":"stop","eval_count":16}`), "", "Hel", ninelives.FinishLength},
		{"a polite end", lines(text), ninelives.ClassStreamBroken, "Hel", ""},
		{"nothing", "\n\n", ninelives.ClassEmpty, "", ""},
		{"garbage", lines(text, `{"message":{"cont`), ninelives.ClassStreamBroken, "Hel", ""},
		{"an error", lines(`{"error":"model 'x' not found"}`), ninelives.ClassModelNotFound, "", ""},
		{"an error under way", lines(text, `{"error":"an error was encountered while running the model"}`), ninelives.ClassStreamBroken, "Hel", ""},
		{"a page", "<html>\n<body>Sign in</body>\n</html>\n", ninelives.ClassFormat, "", ""},
		{"an error over several lines", "{\n \"error\": \"server busy, please try again. maximum pending requests exceeded\"\n}\n", ninelives.ClassOverloaded, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, resp, err := replay(t, c.stream, wire.DecodeOptions{MaxTokens: 16})
			if c.class == "" {
				if err != nil || resp.Text() != c.text || resp.Finish != c.finish {
					t.Fatalf("%+v, %v", resp, err)
				}
				return
			}
			var f *ninelives.Fault
			if !errors.As(err, &f) || f.Class != c.class {
				t.Fatalf("%+v, %v; want class %s", resp, err, c.class)
			}
			if f.Partial != nil && (f.Partial.Text() != c.text || f.Partial.Finish != "") || f.Partial == nil && c.text != "" {
				t.Errorf("partial %+v", f.Partial)
			}
		})
	}
}

func TestThinkingAndCallsInText(t *testing.T) {
	o := wire.DecodeOptions{Dialect: wire.Dialect{ThinkTags: true, TextToolCalls: true}, Tools: []ninelives.Tool{{Name: "f"}}, OutputTool: "answer"}
	_, resp, err := replay(t, lines(`{"message":{"content":"<think>hm</th"}}`, `{"message":{"content":"ink>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}"}}`, `{"message":{"content":"</tool_call>","tool_calls":[{"function":{"name":"answer","arguments":{"n":1}}}]},"done":true}`), o)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Message.Reasoning() != "hm" || resp.Text() != `{"n":1}` || len(resp.Message.ToolCalls()) != 1 || resp.Message.ToolCalls()[0].Name != "f" {
		t.Errorf("%+v", resp.Message)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	_, resp, err := replay(t, lines(`{"message":{"content":"`+long+`"}}`, `{"done":true}`), wire.DecodeOptions{})
	if err != nil || resp.Text() != long {
		t.Errorf("%v", err)
	}
	f := ollama.NewFramer(io.MultiReader(strings.NewReader(lines(`{"done":false}`)), strings.NewReader(`{"a":"`), zeros{}))
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Next(); !errors.Is(err, ollama.ErrTooLong) {
			t.Errorf("got %v, want ErrTooLong", err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestBrokenStreamLosesItsUnfinishedLine(t *testing.T) {
	reset := errors.New("connection reset")
	_, resp, err := decode(io.MultiReader(strings.NewReader(`{"message":{"content":"Hel"}}`+"\n"+`{"done":true`), iotest.ErrReader(reset)), wire.DecodeOptions{})
	var f *ninelives.Fault
	if !errors.As(err, &f) || f.Class != ninelives.ClassStreamBroken || !errors.Is(err, reset) || f.Partial.Text() != "Hel" {
		t.Errorf("%+v, %v", resp, err)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte(lines(`{"message":{"content":"a","thinking":"b","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}`, `{"done":true,"eval_count":1}`)), uint8(1))
	f.Add([]byte("{\n\"error\":1}\n"), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		o := wire.DecodeOptions{Dialect: wire.Dialect{ThinkTags: n&1 != 0}}
		events, resp, err := decode(bytes.NewReader(stream), o)
		again, resp2, err2 := decode(wiretest.Pieces(wiretest.Every(stream, int(n%16)+1)), o)
		if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(resp, resp2) || !reflect.DeepEqual(err, err2) {
			t.Fatalf("a split makes a difference:\n%+v %+v %v\n%+v %+v %v", events, resp, err, again, resp2, err2)
		}
	})
}
