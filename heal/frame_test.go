package heal

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// bytesOf is a frame that is the last of what was read; more has another at hand.
func bytesOf(data string) act {
	return act{ev: &ninelives.Frame{Attempt: 1, Data: []byte(data)}}
}

func more(data string) act {
	return act{ev: &ninelives.Frame{Attempt: 1, Data: []byte(data), More: true}}
}

func lastOf(data string) act {
	return act{ev: &ninelives.Frame{Attempt: 1, Data: []byte(data), End: true}}
}

// relay is what a consumer sees that relays bytes: events and frames in one row,
// each frame as its data, with ! where it asks for a flush.
func relay(t *testing.T, h *Healed) (row string) {
	t.Helper()
	var list []string
	for ev, err := range h.Stream(t.Context(), ninelives.Prompt("hi")) {
		if err != nil {
			list = append(list, "error")
			continue
		}
		switch e := ev.(type) {
		case *ninelives.Frame:
			data := "<" + string(e.Data) + ">"
			if !e.More {
				data += "!"
			}
			list = append(list, data)
		case ninelives.Notice:
		default:
			list = append(list, seen{events: []ninelives.Event{ev}}.shown()...)
		}
	}
	return strings.Join(list, " ")
}

func declined(s string) *ninelives.Response {
	return &ninelives.Response{Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Refusal{Text: s}}}, Finish: ninelives.FinishRefusal}
}

func called(parts ...ninelives.Part) *ninelives.Response {
	return &ninelives.Response{Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}, Finish: ninelives.FinishToolCalls}
}

func TestFramesGoWhereWhatTheySayGoes(t *testing.T) {
	call := ninelives.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
	cutOff := cut("one ")
	for _, tc := range []struct {
		name string
		mode Mode
		a, b step
		want string
	}{
		{"the head waits for the first content, the end for the answer", ModeContinue,
			step{bytesOf("h"), text("one "), bytesOf("1"), text("two"), bytesOf("2"), lastOf("e"), end(answer("one two"))}, nil,
			"<h>! text:one  <1>! text:two <2>! <e>! done"},
		{"an attempt that fails at once shows nothing", ModeContinue,
			step{bytesOf("h"), broken}, step{text("two"), end(answer("two"))},
			"text:two done"},
		{"blanks wait with their frames", ModeContinue,
			step{bytesOf("h"), text("\n"), bytesOf("1"), text("one"), bytesOf("2"), lastOf("e"), end(answer("\none"))}, nil,
			"<h>! text:\n <1>! text:one <2>! <e>! done"},
		{"thinking is shown with its frames", ModeContinue,
			step{bytesOf("h"), thought("hm"), bytesOf("1"), text("one"), bytesOf("2"), lastOf("e"), end(answer("one"))}, nil,
			"<h>! thought:hm <1>! text:one <2>! <e>! done"},
		{"blanks after thinking wait with their frames", ModeContinue,
			step{bytesOf("h"), thought("hm"), bytesOf("1"), text("\n"), bytesOf("2"), text("one"), bytesOf("3"), lastOf("e"), end(answer("\none"))}, nil,
			"<h>! thought:hm <1>! text:\n <2>! text:one <3>! <e>! done"},
		{"a refusal is not shown in bytes either", ModeContinue,
			step{bytesOf("h"), declines("no"), bytesOf("1"), lastOf("e"), end(declined("no"))}, step{text("two"), end(answer("two"))},
			"text:two done"},
		{"nor after thinking", ModeContinue,
			step{bytesOf("h"), thought("hm"), bytesOf("1"), declines("no"), bytesOf("2"), lastOf("e"), end(declined("no"))}, step{text("two"), end(answer("two"))},
			"<h>! thought:hm <1>! text:two done"},
		{"a frame that waits settles the flush that was put off", ModeContinue,
			step{bytesOf("h"), thought("hm"), more("1"), text("\n"), bytesOf("2"), broken}, step{text("two"), end(answer("two"))},
			"<h>! thought:hm <1> <>! text:two done"},
		{"a call waits with its frames", ModeContinue,
			step{bytesOf("h"), text("one "), bytesOf("1"), calls("{"), bytesOf("2"), calls("}"), bytesOf("3"), lastOf("e"), end(called(ninelives.Text{Text: "one "}, call))}, nil,
			"<h>! text:one  <1>! call:{ <2>! call:} <3>! <e>! done"},
		{"the frames of a call that breaks are gone with it", ModeContinue,
			step{bytesOf("h"), text("one "), bytesOf("1"), calls("{"), bytesOf("2"), broken}, step{text("one two"), end(answer("one two"))},
			"<h>! text:one  <1>! text:two done"},
		{"what waits settles the flush that was put off", ModeContinue,
			step{text("one "), more("1"), calls("{}"), bytesOf("2"), lastOf("e"), end(called(ninelives.Text{Text: "one "}, call))}, nil,
			"text:one  <1> <>! call:{} <2>! <e>! done"},
		{"an answer that its limit ends has its own end", ModeContinue,
			step{bytesOf("h"), text("one "), bytesOf("1"), lastOf("e"), end(cutOff)}, nil,
			"<h>! text:one  <1>! <e>! done"},
		{"hold shows all at once", ModeHold,
			step{bytesOf("h"), text("one"), bytesOf("1"), lastOf("e"), end(answer("one"))}, nil,
			"<h>! text:one <1>! <e>! done"},
		{"hold shows the end of an answer that its limit ends", ModeHold,
			step{bytesOf("h"), text("one"), bytesOf("1"), lastOf("e"), end(cut("one"))}, nil,
			"<h>! text:one <1>! <e>! done"},
		{"hold shows nothing of what broke", ModeHold,
			step{bytesOf("h"), text("one"), bytesOf("1"), broken}, step{text("two"), end(answer("two"))},
			"text:two done"},
		{"fail shows what it has", ModeFail,
			step{bytesOf("h"), text("one"), bytesOf("1"), broken}, step{text("two"), end(answer("two"))},
			"<h>! text:one <1>! error"},
		{"a refusal that nobody mends is shown whole", ModeContinue,
			step{bytesOf("h"), declines("no"), bytesOf("1"), lastOf("e"), end(declined("no"))}, step{bytesOf("g"), declines("no"), bytesOf("1"), lastOf("f"), end(declined("no"))},
			"<g>! refusal:no <1>! <f>! done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ time.Time) {
				p := DefaultPolicy()
				p.Mode, p.Content.Continuations = tc.mode, 0
				opts := []Option{With(p)}
				if tc.b != nil {
					opts = append(opts, Fallback(model("b", tc.b)))
				}
				a := model("a", tc.a, fails(ninelives.ClassAuth)) // never twice
				if got := relay(t, healed(a, opts...)); got != tc.want {
					t.Errorf("got  %q\nwant %q", got, tc.want)
				}
			})
		})
	}
}

// The end of a held answer that is gone on with is not its end.
func TestAHeldAnswerThatIsGoneOnWithHasOneEnd(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		p := DefaultPolicy()
		p.Mode = ModeHold
		a := model("a", step{bytesOf("h"), text("one "), bytesOf("1"), lastOf("e"), end(cut("one "))}, step{text("two"), end(answer("two"))})
		if got, want := relay(t, healed(a, With(p))), "<h>! text:one  <1>! text:two done"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		a = model("a", step{bytesOf("h"), text("one "), bytesOf("1"), lastOf("e"), end(cut("one "))}, step{text("two "), end(cut("two "))}, step{text("three"), end(answer("three"))})
		if got, want := relay(t, healed(a, With(p))), "<h>! text:one  <1>! text:two  text:three done"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// An answer that its limit has cut is gone on with where that is asked for,
// relayed or not.
func TestARelayedAnswerThatWasCutIsGoneOnWith(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		a := model("a", step{bytesOf("h"), text("one "), bytesOf("1"), lastOf("e"), end(cut("one "))}, step{text("two"), end(answer("two"))})
		if got, want := relay(t, healed(a, Rescue(ModeContinue))), "<h>! text:one  <1>! text:two done"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// A row of heartbeats neither releases anything nor fills the memory.
func TestHeartbeatsAreHeldWithinBounds(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		beat := strings.Repeat("b", 1<<10)
		s := step{bytesOf("h")}
		for range 1000 {
			s = append(s, act{wait: time.Millisecond}, bytesOf(beat))
		}
		a := model("a", append(s, text("one"), bytesOf("1"), lastOf("e"), end(answer("one"))))
		got := relay(t, healed(a, Rescue(ModeContinue)))
		if n := strings.Count(got, "b") >> 10; n < 250 || n > 260 || !strings.HasPrefix(got, "<h>! <b") || !strings.HasSuffix(got, "b>! text:one <1>! <e>! done") {
			t.Errorf("%d of 1000 heartbeats are held, it ends with %q", n, got[len(got)-60:])
		}
	})
}

// Frames of a race: those of the loser are not seen, and those of the winner are
// what it sent although its model has gone on to the next one.
func TestFramesOfARaceAreTheWinners(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		a := reusing{model("a", step{bytesOf("x"), wait(time.Minute), text("late"), end(answer("late"))})}
		b := reusing{model("b", step{bytesOf("h"), wait(time.Second), text("one"), bytesOf("1"), bytesOf("2"), lastOf("e"), end(answer("one"))})}
		p := DefaultPolicy()
		p.Mode, p.Hedge.After = ModeContinue, 10*time.Second
		if got, want := relay(t, healed(a, With(p), Fallback(b))), "<h>! text:one <1>! <2>! <e>! done"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		synctest.Wait()
	})
}

// reusing gives the same frame again and again, as providers do.
type reusing struct{ *scripted }

func (m reusing) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		var frame ninelives.Frame
		var buf [1]byte
		for ev, err := range m.scripted.Stream(ctx, req) {
			if f, ok := ev.(*ninelives.Frame); ok {
				frame = *f
				frame.Data = buf[:copy(buf[:], f.Data)]
				ev = &frame
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}
