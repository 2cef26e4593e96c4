package heal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The deadline of a call and the stop of its consumer, at the places where they
// are easily forgotten: queues, races, probes, the consumer's own time.

func crowded(inFlight, queue int) Option {
	p := DefaultPolicy()
	p.Limit = Limit{InFlight: inFlight, Queue: queue, Wait: 5 * time.Second}
	return With(p)
}

func TestDeadlineEndsAWaitInTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{hang()})
		h := healed(a, crowded(1, 1), Deadline(20*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan seen)
		go func() { done <- watch(ctx, h, ninelives.Prompt("first")) }()
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		s := watch(short, h, ninelives.Prompt("second"))
		equal(t, "took", time.Since(t0), 3*time.Second)
		equal(t, "deadline", errors.Is(s.err, context.DeadlineExceeded), true)
		equal(t, "ends", s.ends, 1)
		equal(t, "asked", len(a.asked), 1)
		cancel()
		<-done
	})
}

func TestConsumerWhoOutwaitsTheDeadlineGetsItsEnd(t *testing.T) {
	for name, a := range map[string]*scripted{
		"before the first attempt": model("a", hinted(ninelives.ClassRateLimit, 30*time.Second), says("hello")),
		"before a retry":           model("a", fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown), says("hello")),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				h := healed(a, Deadline(20*time.Second))
				if name == "before the first attempt" {
					ask(t, h) // its hint does not fit: it rests
				}
				asked, ends := len(a.asked), 0
				for ev, err := range h.Stream(t.Context(), ninelives.Prompt("hi")) {
					if n, ok := ev.(ninelives.Notice); ok && n.Kind != ninelives.NoticePlan {
						time.Sleep(21 * time.Second)
					}
					if err != nil {
						ends++
						equal(t, "deadline", errors.Is(err, context.DeadlineExceeded), true)
					}
				}
				equal(t, "ends", ends, 1)
				equal(t, "asked at most once more", len(a.asked)-asked <= 1, true)
			})
		})
	}
}

func TestNegativeDeadlineHasPassed(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		s := ask(t, healed(a, Deadline(-time.Second))) // as time.Until of a moment gone by
		equal(t, "asked", len(a.asked), 0)
		equal(t, "deadline", errors.Is(s.err, context.DeadlineExceeded), true)
		var e *Exhausted
		equal(t, "typed", errors.As(s.err, &e) && e.Deadline, true)
	})
}

func TestCauseOfTheCallersDeadlineIsTold(t *testing.T) {
	cause := errors.New("the meeting begins")
	for name, a := range map[string]step{"in the attempt": {hang()}, "in a wait": hinted(ninelives.ClassRateLimit, 4*time.Second)} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, cause)
			defer cancel()
			s := watch(ctx, healed(model("a", a)), ninelives.Prompt("hi"))
			equal(t, name+": deadline", errors.Is(s.err, context.DeadlineExceeded), name == "in the attempt")
			equal(t, name+": cause", errors.Is(s.err, cause), name == "in the attempt")
		})
	}
}

// A race and a synthetic probe take a place only where one is free: what is
// under way never stands in a queue for them.
func TestRaceDoesNotQueueForItsSecondPlace(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", slow(12*time.Second, "hello")), model("b", step{hang()})
		p := DefaultPolicy()
		p.Limit = Limit{InFlight: 1, Queue: 1, Wait: 5 * time.Second}
		p.Hedge.After = 10 * time.Second
		health := NewHealth(&p)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan seen)
		go func() { done <- watch(ctx, healed(b, With(p), SharedHealth(health)), ninelives.Prompt("other")) }()
		synctest.Wait()
		s := ask(t, healed(a, Fallback(b), With(p), SharedHealth(health)))
		equal(t, "text", s.text, "hello")
		equal(t, "took", time.Since(t0), 12*time.Second)
		equal(t, "b asked", len(b.asked), 1)
		cancel()
		<-done
	})
}

func TestNobodyQueuesForASyntheticProbe(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		p := DefaultPolicy()
		p.Limit = Limit{InFlight: 1, Queue: 1, Wait: 5 * time.Second}
		health := NewHealth(&p)
		a, b := model("a", fails(ninelives.ClassTimeout), step{hang()}), model("b", says("hello"))
		h := healed(a, Fallback(b), With(p), SharedHealth(health))
		ask(t, h)
		time.Sleep(20 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		leave, err := health.Enter(ctx, a.candidate, time.Now(), false) // someone asks it in spite of its rest
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s := ask(t, h)
		equal(t, "text", s.text, "hello")
		equal(t, "took", time.Since(began), 0)
		leave(canceledAt(time.Now()))
		cancel()
	})
}

func TestRacersTogetherStayWithinTheBudgetOfFaults(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		late := step{wait(15 * time.Second), {err: fault(ninelives.ClassUnknown)}}
		a, b := model("a", fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown)), model("b", fails(ninelives.ClassUnknown), late)
		c := model("c", late)
		s := ask(t, healed(a, Fallback(b, c), Hedged(time.Second)))
		equal(t, "requests", len(a.asked)+len(b.asked)+len(c.asked), 4)
		equal(t, "error", s.err != nil, true)
	})
}

// Wherever a consumer stops or panics, nothing is left behind, and nobody
// hands it anything more.
func TestConsumerMayLeaveAtAnyEvent(t *testing.T) {
	refusal := &ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Refusal{Text: "no"})}
	scripts := map[string][]step{
		"a retry":        {fails(ninelives.ClassUnknown), {thought("hm"), text("1"), text("2"), end(answer("12"))}},
		"a broken one":   {{text("1"), broken}, says("12")},
		"a continuation": {{text("1 "), end(cut("1 "))}, {text("2 "), end(cut("2 "))}, says("3")},
		"a refusal":      {{declines("no"), end(refusal)}},
		"an empty one":   {{end(empty())}},
		"a call":         {{text("1"), calls(`{}`), end(&ninelives.Response{Message: message(ninelives.Text{Text: "1"}, ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{}`})})}},
		"silence":        {slow(15*time.Second, "hello")},
		"a dead end":     {fails(ninelives.ClassBilling)},
	}
	for name, steps := range scripts {
		for _, mode := range []Mode{ModeRestart, ModeContinue, ModeHold, ModeFail} {
			for _, panics := range []bool{false, true} {
				for at := range 20 {
					bubble(t, func(t *testing.T, t0 time.Time) {
						a, b := model("a", steps...), model("b", steps...)
						h := healed(a, Fallback(b), Rescue(mode), preset(t, "interactive"), Degraded(Canned("later")))
						n, gone := 0, false
						func() {
							defer func() {
								if r := recover(); r != nil && r != "the consumer" {
									t.Errorf("%s: it panicked by itself: %v", name, r)
								}
							}()
							for range h.Stream(t.Context(), ninelives.Prompt("hi")) {
								if gone {
									t.Fatalf("%s: it goes on", name)
								}
								if n++; n > at {
									if gone = true; panics {
										panic("the consumer")
									}
									break
								}
							}
						}()
						synctest.Wait()
						equal(t, name+": running", a.running+b.running, 0)
						for _, row := range h.Health().Snapshot(time.Now()) {
							equal(t, name+": places given back", row.InFlight+row.Queued, 0)
						}
					})
				}
			}
		}
	}
}
