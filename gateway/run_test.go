package gateway

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// yields is a model that yields what is written here.
type yields struct {
	events []ninelives.Event
	err    error
}

func (yields) Name() string { return "up/m" }
func (y yields) Stream(context.Context, *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		for _, ev := range y.events {
			if !yield(ev, nil) {
				return
			}
		}
		if y.err != nil {
			yield(nil, y.err)
		}
	}
}

func frameOf(attempt int, data string) ninelives.Event {
	return &ninelives.Frame{Attempt: attempt, Data: []byte(data), End: true}
}

// cutAt is the fault of an answer that its limit has cut.
func cutAt(parts ...ninelives.Part) *ninelives.Fault {
	return &ninelives.Fault{Class: ninelives.ClassTruncated, Phase: ninelives.PhaseAnswer,
		Partial: &ninelives.Response{Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}}}
}

// An answer in one piece goes out in the bytes of the attempt that gave it, if
// it is what that attempt said and nothing else.
func TestWhoseBytesAWholeAnswerHas(t *testing.T) {
	done := func(attempt int, change func(*ninelives.Response)) ninelives.Event {
		d := doneWith(attempt, "Hello")
		change(d.Response)
		return d
	}
	asIs := func(*ninelives.Response) {}
	half := ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{"a`}
	for name, c := range map[string]struct {
		model yields
		want  string // empty: it is written anew
	}{
		"the one that answered":            {yields{events: []ninelives.Event{says(1, "Hello"), frameOf(1, "one"), done(1, asIs)}}, "one"},
		"in two frames":                    {yields{events: []ninelives.Event{frameOf(1, "o"), frameOf(1, "ne"), done(1, asIs)}}, "one"},
		"the second":                       {yields{events: []ninelives.Event{attempt(1, "a/m"), frameOf(1, "one"), ninelives.Discard{Attempt: 1}, attempt(2, "b/m"), frameOf(2, "two"), done(2, asIs)}}, "two"},
		"a second that was translated":     {yields{events: []ninelives.Event{attempt(1, "a/m"), frameOf(1, "one"), attempt(2, "b/m"), done(2, asIs)}}, ""},
		"an answer of two":                 {yields{events: []ninelives.Event{frameOf(2, "two"), done(2, func(r *ninelives.Response) { r.Continued = 1 })}}, ""},
		"a substitute":                     {yields{events: []ninelives.Event{frameOf(1, "one"), done(1, func(r *ninelives.Response) { r.Degraded = ninelives.DegradedCanned })}}, ""},
		"a default":                        {yields{events: []ninelives.Event{frameOf(1, "one"), done(1, func(r *ninelives.Response) { r.OutputDefaulted = true })}}, ""},
		"cut":                              {yields{events: []ninelives.Event{attempt(1, "a/m"), frameOf(1, "one")}, err: cutAt(ninelives.Text{Text: "He"})}, "one"},
		"cut in a call":                    {yields{events: []ninelives.Event{attempt(1, "a/m"), frameOf(1, "one")}, err: cutAt(ninelives.Text{Text: "He"}, half)}, ""},
		"cut by another than spoke before": {yields{events: []ninelives.Event{attempt(1, "a/m"), frameOf(1, "one"), attempt(2, "b/m")}, err: cutAt(ninelives.Text{Text: "He"})}, ""},
	} {
		end := runWhole(t.Context(), c.model, &ninelives.Request{}, func(ninelives.Notice) {})
		if end.err != nil || end.response == nil || string(end.raw) != c.want {
			t.Errorf("%s: bytes %q, want %q (%v)", name, end.raw, c.want, end.err)
		}
	}
}

// A stream that its limit has cut ends in the provider's own end, or in one that
// is written; a call that is not whole is in neither.
func TestACutStreamEndsAsItWasCut(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		partial := doneWith(1, "One ")
		partial.Response.Finish = ninelives.FinishLength
		b := said(s.codec, says(1, "One "), partial)
		fault := cutAt(ninelives.Text{Text: "One "})
		if end := s.run(t.Context(), yields{events: relayed(t, s.codec, 1, b, true), err: fault}, &ninelives.Request{}, func(ninelives.Notice) {}); end.err != nil || end.response.Finish != ninelives.FinishLength {
			t.Errorf("it ended with %+v", end)
		}
		if h.String() != string(b) {
			t.Errorf("got\n%s\nwant\n%s", h.String(), b)
		}
		if r := read(); r.Finish != ninelives.FinishLength || r.Text() != "One " {
			t.Errorf("the client holds %+v", r)
		}
	})
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		fault := cutAt(ninelives.Text{Text: "One "}, ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{"a`})
		s.run(t.Context(), yields{events: relayed(t, s.codec, 1, said(s.codec, says(1, "One ")), true), err: fault}, &ninelives.Request{}, func(ninelives.Notice) {})
		if r := read(); r.Finish != ninelives.FinishLength || r.Text() != "One " || len(r.Message.ToolCalls()) > 0 {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
	})
}

// Nothing goes out for a call that failed before anything came: its error has a
// real status.
func TestACallThatFailsAtOnceHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hearer{}
		s := &stream{codec: chat, out: h, head: func(http.Header) {}, options: wire.EncodeOptions{}}
		end := s.run(t.Context(), yields{err: &ninelives.Fault{Class: ninelives.ClassAuth}}, &ninelives.Request{}, func(ninelives.Notice) {})
		if end.err == nil || end.broke || h.Len() > 0 || h.starts > 0 {
			t.Errorf("it ended with %+v, %q went out", end, h.String())
		}
	})
}
