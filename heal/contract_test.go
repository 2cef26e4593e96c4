package heal

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Models that break the contract of ninelives.Model, each in its own way: the
// call ends typed, in time, and nothing is lost or asked for ever.

// rogue is a model that does what the function does.
type rogue struct {
	*scripted
	stream func(ctx context.Context, yield func(ninelives.Event, error) bool)
	asked  *int
}

func newRogue(stream func(ctx context.Context, yield func(ninelives.Event, error) bool)) rogue {
	return rogue{model("rogue"), stream, new(int)}
}

func (r rogue) Stream(ctx context.Context, _ *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		*r.asked++
		r.stream(ctx, yield)
	}
}

func TestModelThatBreaksItsContractIsOneFailedAttempt(t *testing.T) {
	var none *ninelives.Fault
	for _, tc := range []struct {
		name   string
		stream func(ctx context.Context, yield func(ninelives.Event, error) bool)
		class  ninelives.Class
		says   string
	}{
		{"it ends without a result", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(ninelives.TextDelta{Text: "half"}, nil)
		}, ninelives.ClassStreamBroken, "ended without a result"},
		{"it yields nothing at all", func(context.Context, func(ninelives.Event, error) bool) {}, ninelives.ClassStreamBroken, "ended without a result"},
		{"its result is none", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(ninelives.Done{}, nil)
		}, ninelives.ClassStreamBroken, "ended without a result"},
		{"an event is none", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(nil, nil)
		}, ninelives.ClassStreamBroken, "ended without a result"},
		{"its fault is none", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(nil, none)
		}, ninelives.ClassUnknown, "without saying why"},
		{"its error is no fault", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(nil, errors.New("odd"))
		}, ninelives.ClassUnknown, "odd"},
		{"it panics", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(ninelives.TextDelta{Text: "half"}, nil)
			panic("index out of range")
		}, ninelives.ClassUnknown, "the attempt panicked: index out of range"},
		{"it goes on after an error", func(_ context.Context, yield func(ninelives.Event, error) bool) {
			yield(nil, fault(ninelives.ClassOverloaded))
			yield(ninelives.TextDelta{Text: "more"}, nil)
		}, ninelives.ClassOverloaded, "as the script says"},
	} {
		for way, opts := range map[string][]Option{"": nil, " in a race": {Hedged(time.Hour)}} {
			t.Run(tc.name+way, func(t *testing.T) {
				bubble(t, func(t *testing.T, t0 time.Time) {
					r, b := newRogue(tc.stream), model("b", says("hello"))
					s := ask(t, healed(r, append(opts, Fallback(b))...))
					if s.err != nil {
						t.Fatal(s.err)
					}
					equal(t, "the other one answers", s.text, "hello")
					equal(t, "ends", s.ends, 1)
				})
				bubble(t, func(t *testing.T, t0 time.Time) {
					r := newRogue(tc.stream)
					s := ask(t, healed(r, opts...))
					var f *ninelives.Fault
					if !errors.As(s.err, &f) || f.Class != tc.class || !strings.Contains(f.Message, tc.says) {
						t.Errorf("got %v", s.err)
					}
					equal(t, "asked as often as for any such fault", *r.asked, 4)
					equal(t, "ends", s.ends, 1)
				})
			})
		}
	}
}

func TestModelThatGoesOnAfterItsAnswerHasAnswered(t *testing.T) {
	for way, opts := range map[string][]Option{"": nil, " in a race": {Fallback(model("b", says("other"))), Hedged(time.Hour)}} {
		for name, after := range map[string]func(yield func(ninelives.Event, error) bool){
			"more text": func(yield func(ninelives.Event, error) bool) { yield(ninelives.TextDelta{Text: "more"}, nil) },
			"an error":  func(yield func(ninelives.Event, error) bool) { yield(nil, fault(ninelives.ClassStreamBroken)) },
			"a panic":   func(func(ninelives.Event, error) bool) { panic("too late") },
		} {
			t.Run(name+way, func(t *testing.T) {
				bubble(t, func(t *testing.T, t0 time.Time) {
					r := newRogue(func(_ context.Context, yield func(ninelives.Event, error) bool) {
						yield(ninelives.TextDelta{Text: "hello"}, nil)
						yield(ninelives.Done{Response: answer("hello")}, nil)
						after(yield)
					})
					s := ask(t, healed(r, opts...))
					equal(t, "shown", s.shown(), []string{"text:hello", "done"})
					equal(t, "asked", *r.asked, 1)
				})
			})
		}
	}
}

func TestPanicOfAModelKeepsItsTrace(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		s := ask(t, healed(newRogue(func(context.Context, func(ninelives.Event, error) bool) { panic("boom") })))
		var p *PanicError
		if !errors.As(s.err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "contract_test.go") {
			t.Errorf("got %v", s.err)
		}
		if strings.ContainsAny(s.err.Error(), "\n\t") {
			t.Errorf("not one line: %q", s.err)
		}
	})
}

func TestModelThatTalksOnPastTheDeadlineIsCutOff(t *testing.T) {
	for _, mode := range []Mode{ModeRestart, ModeHold, ModeContinue} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			r := newRogue(func(_ context.Context, yield func(ninelives.Event, error) bool) {
				for yield(ninelives.TextDelta{Text: "la "}, nil) {
					time.Sleep(time.Second)
				}
			})
			s := ask(t, healed(r, Rescue(mode), Deadline(9500*time.Millisecond)))
			equal(t, "took", time.Since(t0), 10*time.Second) // its next word
			equal(t, "deadline", errors.Is(s.err, context.DeadlineExceeded), true)
			equal(t, "asked", *r.asked, 1)
		})
	}
}

// foreign is a model that speaks for no candidate.
type foreign struct{ rogue }

func (foreign) Candidate() {}

func TestForeignModelThatIgnoresItsContextCannotHoldUpTheCall(t *testing.T) {
	deaf := func(words ...string) foreign {
		return foreign{newRogue(func(_ context.Context, yield func(ninelives.Event, error) bool) {
			for _, w := range words {
				if !yield(ninelives.TextDelta{Text: w}, nil) {
					return
				}
			}
			time.Sleep(time.Hour)
		})}
	}
	bubble(t, func(t *testing.T, t0 time.Time) {
		s := ask(t, healed(deaf("half "), Deadline(5*time.Second)))
		equal(t, "took", time.Since(t0), 5*time.Second)
		equal(t, "deadline", errors.Is(s.err, context.DeadlineExceeded), true)
		equal(t, "ends", s.ends, 1)
		time.Sleep(time.Hour) // until it is done
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		s := watch(ctx, healed(deaf("half "), Fallback(model("b", says("hello")))), ninelives.Prompt("hi"))
		equal(t, "took", time.Since(t0), 3*time.Second)
		equal(t, "canceled", errors.Is(s.err, context.Canceled), true)
		time.Sleep(time.Hour)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		for range healed(deaf("half ")).Stream(t.Context(), ninelives.Prompt("hi")) {
			break
		}
		equal(t, "took", time.Since(t0), 0)
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

func TestChainWithoutAModelSaysSo(t *testing.T) {
	for name, h := range map[string]*Healed{"nil": New(nil), "nil twice": New(New(nil), Fallback(nil)), "an empty exchange": New(NewSwap("", nil))} {
		t.Run(name, func(t *testing.T) {
			s := ask(t, h)
			var f *ninelives.Fault
			if !errors.As(s.err, &f) || f.Hint == "" || s.ends != 1 {
				t.Errorf("got %v", s.err)
			}
		})
	}
	t.Run("nil beside one", func(t *testing.T) {
		s := ask(t, New(nil, Fallback(model("b", says("hello")))))
		equal(t, "text", s.text, "hello")
	})
}

func TestRequestOfNothingIsSentAsItIs(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		req := &ninelives.Request{Messages: []ninelives.Message{{}, {Role: ninelives.RoleUser, Parts: []ninelives.Part{nil}}},
			Tools: []ninelives.Tool{{}}, Output: nil}
		s := watch(t.Context(), healed(a, Degraded(Stale(1, 0))), req)
		equal(t, "text", s.text, "hello")
	})
}

// A mode that nobody knows could neither be unseen nor be gone on with.
func TestUnknownModeIsToldBeforeAnythingIsSent(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("half"), broken}, says("hello"))
		s := ask(t, healed(a, Rescue("Continue")))
		var f *ninelives.Fault
		equal(t, "fault", errors.As(s.err, &f) && f.Class == ninelives.ClassFormat && f.Phase == ninelives.PhasePrepare, true)
		equal(t, "asked", len(a.asked), 0)
	})
}
