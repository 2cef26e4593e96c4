package ninelives

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
)

// fixed answers every request with the same response.
type fixed struct {
	resp *Response
	err  error
	got  []*Request
}

func (f *fixed) Name() string { return "fixed/m" }

func (f *fixed) Stream(_ context.Context, req *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f.got = append(f.got, req)
		if f.err != nil {
			yield(nil, f.err)
			return
		}
		yield(Done{Response: f.resp}, nil)
	}
}

func saying(text string) *fixed {
	return &fixed{resp: &Response{Message: AssistantText(text), Finish: FinishStop}}
}

type invoice struct {
	Number string   `json:"number" jsonschema:"the number on the invoice"`
	Total  float64  `json:"total"`
	Items  []string `json:"items"`
	Note   string   `json:"note,omitempty"`
}

func TestGenerateAsAsksForTheSchemaOfTheType(t *testing.T) {
	m := saying("Here you are:\n```json\n{\"number\": \"A1\", \"total\": 12.5, \"items\": [\"cat\"]}\n```")
	req := Prompt("read the invoice")
	got, err := GenerateAs[invoice](t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if want := (invoice{Number: "A1", Total: 12.5, Items: []string{"cat"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	const schema = `{"type":"object","properties":{"number":{"type":"string","description":"the number on the invoice"},"total":{"type":"number"},"items":{"type":"array","items":{"type":"string"}},"note":{"type":"string"}},"required":["number","total","items"],"additionalProperties":false}`
	if got := string(m.got[0].Output.Schema); got != schema {
		t.Errorf("schema %s\nwant   %s", got, schema)
	}
	if req.Output != nil {
		t.Error("the caller's request was changed")
	}
	if !m.got[0].Buffered {
		t.Error("the request is not marked as buffered")
	}
}

func TestGenerateAsFailsTypedWithAllProblemsAndTheRawText(t *testing.T) {
	const raw = `{"number": 7, "items": "none"}`
	m := saying(raw)
	_, err := GenerateAs[invoice](t.Context(), m, Prompt("read"))
	var e *OutputError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.Raw != raw || len(e.Problems) != 3 {
		t.Errorf("raw %q, problems %q", e.Raw, e.Problems)
	}
	if strings.Contains(err.Error(), raw) {
		t.Error("the error line holds the whole answer")
	}
	if len(m.got) != 1 {
		t.Errorf("%d requests: nothing but healing may ask again", len(m.got))
	}
}

func TestGenerateAsNeverTakesACutAnswer(t *testing.T) {
	m := saying(`{"number": "A1", "total": 12, "items": []}`)
	m.resp.Finish = FinishLength
	_, err := GenerateAs[invoice](t.Context(), m, Prompt("read"))
	var e *OutputError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "cut") {
		t.Errorf("got %v", err)
	}
}

func TestGenerateAsBoxesWhatIsNoObject(t *testing.T) {
	m := saying(`{"value": ["a", "b"]}`)
	got, err := GenerateAs[[]string](t.Context(), m, Prompt("list"))
	if err != nil || !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("got %v, %v", got, err)
	}
	m = &fixed{resp: &Response{Output: []byte(`[]`), OutputDefaulted: true}}
	got, err = GenerateAs[[]string](t.Context(), m, Prompt("list"))
	if err != nil || len(got) != 0 {
		t.Errorf("a bare default: %v, %v", got, err)
	}
}

func TestGenerateAsUsesWhatTheModelHasChecked(t *testing.T) {
	m := &fixed{resp: &Response{Message: AssistantText("not JSON"), Output: []byte(`{"number":"A1","total":1,"items":[]}`)}}
	got, err := GenerateAs[invoice](t.Context(), m, Prompt("read"))
	if err != nil || got.Number != "A1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestGenerateAsTellsARefusalApart(t *testing.T) {
	m := &fixed{resp: &Response{Finish: FinishRefusal, Message: Message{Parts: []Part{Refusal{Text: "no"}}}}}
	_, err := GenerateAs[invoice](t.Context(), m, Prompt("read"))
	var f *Fault
	if !errors.As(err, &f) || f.Class != ClassRefusal {
		t.Errorf("got %v", err)
	}
}

func TestGenerateAsRejectsATypeWithoutSchema(t *testing.T) {
	m := saying("{}")
	_, err := GenerateAs[func()](t.Context(), m, Prompt("read"))
	if err == nil || len(m.got) != 0 {
		t.Errorf("got %v after %d requests", err, len(m.got))
	}
}

func TestGenerateJSONChecksAgainstTheSchema(t *testing.T) {
	m := saying(`{"n": 1, "extra": true}`)
	out, err := GenerateJSON(t.Context(), m, Prompt("n"), []byte(`{"type":"object","required":["n"]}`))
	if err != nil || string(out) != `{"n": 1, "extra": true}` {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err = GenerateJSON(t.Context(), m, Prompt("n"), []byte(`{"type":"object","required":["x"]}`)); err == nil {
		t.Error("a missing member passed")
	}
	if _, err = GenerateJSON(t.Context(), m, Prompt("n"), []byte(`{"type":7}`)); err == nil || len(m.got) != 2 {
		t.Errorf("a schema that is none: %v after %d requests", err, len(m.got))
	}
	if out, err = GenerateJSON(t.Context(), m, Prompt("n"), nil); err != nil || len(out) == 0 {
		t.Errorf("any JSON: %s, %v", out, err)
	}
}
