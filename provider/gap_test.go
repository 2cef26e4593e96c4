package provider

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// An event that is no JSON may have held a piece of the answer. The answer
// stands where the provider's own count shows that it did not; else the stream
// is broken, and nothing from behind the gap has been shown.
func TestGapInAStreamIsBridgedOnlyWhereNothingIsMissing(t *testing.T) {
	const garbled = `data: {"id":"c1","choices":[{"index":0,"delta":{"content":` + "\n\n"
	counted := func(tokens string) string {
		return strings.Replace(usage, `"completion_tokens":2`, `"completion_tokens":`+tokens, 1)
	}
	for _, c := range []struct {
		name   string
		pieces []any
		repair string
		whole  bool
		shown  string
		took   time.Duration
	}{
		{name: "an event too many", pieces: []any{text("Hel"), garbled, text("lo"), time.Second, finish, usage, done}, whole: true, shown: "Hello", took: time.Second},
		{name: "two of them", pieces: []any{garbled, text("Hel"), text("lo"), garbled, finish, usage, done}, whole: true, shown: "Hello"},
		{name: "no mark after the count", pieces: []any{text("Hel"), garbled, text("lo"), finish, usage}, whole: true, shown: "Hello"},
		{name: "a piece is missing", pieces: []any{text("Hel"), garbled, text("!"), finish, counted("3"), done}, shown: "Hel"},
		{name: "the last piece is missing", pieces: []any{text("Hel"), garbled, finish, usage, done}, shown: "Hel"},
		{name: "pieces of several tokens prove nothing", pieces: []any{text("Hel"), garbled, text("lo"), finish, counted("4"), done}, shown: "Hel"},
		{name: "nor do pieces of less than one", pieces: []any{text("Hel"), garbled, text("lo"), finish, counted("1"), done}, shown: "Hel"},
		{name: "no count", pieces: []any{text("Hel"), garbled, text("lo"), finish, done}, shown: "Hel"},
		{name: "no end", pieces: []any{text("Hel"), garbled, text("lo"), usage}, shown: "Hel"},
		{name: "no count is asked for, so that none is waited for", pieces: []any{text("Hel"), garbled, forever}, repair: "no_stream_usage", shown: "Hel"},
		{name: "after the end it does not matter", pieces: []any{text("Hello"), finish, garbled, done}, whole: true, shown: "Hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, r, c.pieces...) })
				req := prompt(ninelives.Clocks{})
				if c.repair != "" {
					req.Attempt.Repairs = []ninelives.Repair{{Name: c.repair}}
				}
				o := call(t, context.Background(), m, req, nil)
				if o.text != c.shown || o.took != c.took {
					t.Errorf("shown %q after %s", o.text, o.took)
				}
				switch {
				case c.whole && (o.resp == nil || o.resp.Text() != c.shown || len(o.resp.Warnings) != 1):
					t.Errorf("%+v, %v", o.resp, o.fault)
				case !c.whole && (o.fault == nil || o.fault.Class != ninelives.ClassStreamBroken || o.fault.Partial == nil):
					t.Errorf("%+v, %v", o.resp, o.fault)
				}
			})
		})
	}
}

// What is kept back behind a gap is progress all the same: the clock that waits
// for progress goes on from each piece.
func TestGapDoesNotStopTheClocks(t *testing.T) {
	const garbled = "data: {\"choices\":[\n\n"
	pause := 80 * time.Second
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text("Hel"), garbled, pause, text("lo"), pause, finish, usage, done)
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{Liveness: -1}), nil)
		if o.text != "Hello" || o.took != 2*pause {
			t.Errorf("%q after %s, %v", o.text, o.took, o.fault)
		}
	})
}
