package heal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// A call that is cancelled ends at that instant, wherever it is, tells so, and
// leaves nothing running.
func TestCancelPassesThroughEveryLayerAtOnce(t *testing.T) {
	long := hinted(ninelives.ClassRateLimit, time.Minute)
	for _, tc := range []struct {
		name string
		a    []step
		opts []Option
	}{
		{"while waiting for headers", []step{{hang()}}, nil},
		{"in mid-stream", []step{{text("x"), hang()}}, nil},
		{"between deltas", []step{{text("x"), wait(7 * time.Second), text("y"), hang()}}, nil},
		{"while a hint is slept on", []step{long}, nil},
		{"in the second attempt", []step{fails(ninelives.ClassUnknown), {hang()}}, nil},
		{"in a continuation", []step{{text("x"), end(cut("x"))}, {hang()}}, nil},
		{"while events are held", []step{{declines("n"), hang()}}, nil},
		{"under hold", []step{{text("x"), hang()}}, []Option{Rescue(ModeHold)}},
		{"behind another healed model", []step{{hang()}}, []Option{Fallback(wrapped{New(model("z", step{hang()}))})}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", tc.a...)
				h := healed(a, tc.opts...)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel)
				s := watch(ctx, h, ninelives.Prompt("hi"))
				equal(t, "took", time.Since(t0), 10*time.Second)
				equal(t, "ends", s.ends, 1)
				var f *ninelives.Fault
				if !errors.As(s.err, &f) || f.Class != ninelives.ClassCanceled || !errors.Is(s.err, context.Canceled) {
					t.Errorf("got %v, want a cancelled call", s.err)
				}
				synctest.Wait()
				equal(t, "running", a.running, 0)
				equal(t, "time after the cancel", time.Since(t0), 10*time.Second)
				equal(t, "it is not held against the candidate", h.Health().Standing(a.candidate, time.Now()).Healthy(), true)
				for _, row := range h.Health().Snapshot(time.Now()) {
					equal(t, "places given back", row.InFlight+row.Queued, 0)
				}
			})
		})
	}
}

func TestCancelledBeforeItBeginsAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user pressed stop")
		cancel(cause)
		s := watch(ctx, healed(a), ninelives.Prompt("hi"))
		equal(t, "asked", len(a.asked), 0)
		equal(t, "the cause is told", errors.Is(s.err, cause), true)
		equal(t, "and that it was cancelled", errors.Is(s.err, context.Canceled), true)
	})
}

func TestConsumerThatStopsEndsTheCallWithoutAWord(t *testing.T) {
	for stop := range 6 {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", fails(ninelives.ClassUnknown), step{text("1"), text("2"), text("3"), hang()})
			h := healed(a)
			n := 0
			for range h.Stream(t.Context(), ninelives.Prompt("hi")) {
				if n++; n > stop {
					break
				}
			}
			synctest.Wait()
			equal(t, "running", a.running, 0)
			for _, row := range h.Health().Snapshot(time.Now()) {
				equal(t, "places given back", row.InFlight, 0)
			}
		})
	}
}

func TestProviderThatCancelsByItselfIsATimeout(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{{err: &ninelives.Fault{Class: ninelives.ClassCanceled, Status: 499}}}), model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "text", s.text, "hello")
		equal(t, "a asked", len(a.asked), 1)
	})
}

func TestConsumerThatPanicsLeavesNoPlaceTaken(t *testing.T) {
	for name, opts := range map[string][]Option{"alone": nil, "in a race": {Fallback(model("b", step{hang()})), Hedged(time.Second)}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", step{wait(2 * time.Second), text("x"), hang()})
				h := healed(a, opts...)
				func() {
					defer func() { _ = recover() }()
					for ev := range h.Stream(t.Context(), ninelives.Prompt("hi")) {
						if _, ok := ev.(ninelives.TextDelta); ok {
							panic("as a handler does whose client has gone")
						}
					}
				}()
				synctest.Wait()
				equal(t, "running", a.running, 0)
				for _, row := range h.Health().Snapshot(time.Now()) {
					equal(t, "places given back", row.InFlight, 0)
				}
			})
		})
	}
}
