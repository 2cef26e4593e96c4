package heal

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// slow answers after a silence.
func slow(d time.Duration, s string) step { return step{wait(d), text(s), end(answer(s))} }

func TestSilentCandidateGetsCompanyAndTheFirstToAnswerWins(t *testing.T) {
	for _, tc := range []struct {
		name     string
		a, b     step
		text     string
		took     time.Duration
		b0       []time.Duration
		fallback bool
	}{
		{"the second wins", slow(20*time.Second, "late"), slow(2*time.Second, "hello"), "hello", 12 * time.Second, []time.Duration{10 * time.Second}, true},
		{"the first wins after all", slow(12*time.Second, "hello"), slow(5*time.Second, "late"), "hello", 12 * time.Second, []time.Duration{10 * time.Second}, false},
		{"no race without silence", slow(9*time.Second, "hello"), slow(time.Second, "other"), "hello", 9 * time.Second, nil, false},
		{"thinking is no silence", step{wait(9 * time.Second), thought("hm"), wait(20 * time.Second), text("hello"), end(answer("hello"))},
			slow(time.Second, "other"), "hello", 29 * time.Second, nil, false},
		{"blanks win no race", step{wait(time.Second), text(""), text(" \n"), thought(""), wait(20 * time.Second), text("late"), end(answer(" \nlate"))},
			slow(2*time.Second, "hello"), "hello", 12 * time.Second, []time.Duration{10 * time.Second}, true},
		{"the second fails, the first goes on", slow(20*time.Second, "hello"), fails(ninelives.ClassAuth), "hello", 20 * time.Second, []time.Duration{10 * time.Second}, false},
		{"the first fails, the second goes on", step{wait(15 * time.Second), {err: fault(ninelives.ClassTimeout)}}, slow(10*time.Second, "hello"), "hello", 20 * time.Second, []time.Duration{10 * time.Second}, true},
		{"the first fails before", fails(ninelives.ClassTimeout), says("hello"), "hello", 0, []time.Duration{0}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a, b := model("a", tc.a), model("b", tc.b)
				h := healed(a, Fallback(b), preset(t, "interactive"))
				s := ask(t, h)
				if s.err != nil {
					t.Fatal(s.err)
				}
				equal(t, "took", time.Since(t0), tc.took)
				equal(t, "shown", s.text, tc.text)
				equal(t, "answer", s.resp.Text(), tc.text)
				equal(t, "b asked", b.since(t0), tc.b0)
				equal(t, "fallback", s.resp.IsFallback, tc.fallback)
				equal(t, "attempts", s.resp.Attempts, 1+len(tc.b0))
				synctest.Wait()
				equal(t, "the loser is gone", a.running+b.running, 0)
				equal(t, "losing is no failure", h.Health().Standing(b.candidate, time.Now()).Healthy() || tc.name == "the second fails, the first goes on", true)
			})
		})
	}
}

// A race that was lost by silence is not run again by the next call: the silent
// candidate rests as after any timeout, until a request beside the traffic has
// found it back.
func TestASilenceThatLostARaceRests(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{hang()}, says("pong"), says("back")), model("b", slow(2*time.Second, "hello"))
		h := healed(a, Fallback(b), preset(t, "interactive"))
		s := ask(t, h)
		equal(t, "took", time.Since(t0), 12*time.Second)
		equal(t, "told", fmt.Sprint(s.kinds()), "[plan attempt hedge attempt cooldown switch]")
		standing := h.Health().Standing(a.candidate, time.Now())
		equal(t, "rests", []any{standing.State, standing.Class, standing.Until.Sub(t0), standing.Probe},
			[]any{StateCooling, ninelives.ClassTimeout, 42 * time.Second, ProbeSynthetic})
		ask(t, h)
		equal(t, "the next call took", time.Since(t0), 14*time.Second)
		time.Sleep(time.Until(t0.Add(27 * time.Second)))
		ask(t, h)
		equal(t, "and finds out beside it", time.Since(t0), 29*time.Second)
		equal(t, "shown", ask(t, h).text, "back")
		equal(t, "a asked", a.since(t0), []time.Duration{0, 27 * time.Second, 29 * time.Second})
	})
}

// Losing alone says nothing: a hedge of a second is no judgement, and an answer
// in one piece is silent by its nature, so that only the breaker counts it.
func TestALostRaceAloneIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", slow(5*time.Second, "late")), model("b", slow(2*time.Second, "hello"))
		h := healed(a, Fallback(b), Hedged(time.Second))
		for range 9 {
			equal(t, "shown", ask(t, h).text, "hello")
		}
		equal(t, "a asked", len(a.asked), 9)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{hang()}), model("b", slow(2*time.Second, "hello"))
		a.candidate.Protocol = ninelives.OpenAIChat
		h := healed(a, Fallback(b), preset(t, "interactive"))
		req := ninelives.Prompt("hi")
		req.Raw = &ninelives.Raw{Protocol: ninelives.OpenAIChat}
		for range 9 {
			equal(t, "shown", watch(t.Context(), h, req).text, "hello")
		}
		equal(t, "a asked", len(a.asked), 5)
		equal(t, "took", time.Since(t0), 5*12*time.Second+4*2*time.Second)
	})
}

func TestBothRacersFailAndTheCallGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{wait(15 * time.Second), {err: fault(ninelives.ClassTimeout)}})
		b := model("b", step{wait(8 * time.Second), {err: fault(ninelives.ClassTimeout)}})
		c := model("c", says("hello"))
		s := ask(t, healed(a, Fallback(b, c), Hedged(10*time.Second)))
		equal(t, "text", s.text, "hello")
		equal(t, "c asked", c.since(t0), []time.Duration{18 * time.Second})
		equal(t, "attempts", s.resp.Attempts, 3)
		equal(t, "number", s.events[len(s.events)-1].(ninelives.Done).Attempt, 3)
	})
}

func TestRaceIsOffByDefaultAndForALoneCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		b := model("b", says("other"))
		s := ask(t, healed(model("a", slow(50*time.Second, "hello")), Fallback(b)))
		equal(t, "text", s.text, "hello")
		equal(t, "b asked", len(b.asked), 0)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", slow(50*time.Second, "hello"))
		s := ask(t, healed(a, preset(t, "interactive")))
		equal(t, "text", s.text, "hello")
		equal(t, "a asked", len(a.asked), 1)
	})
}

func TestRestingCandidateIsNotRacedWith(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", slow(20*time.Second, "hello")), model("b", fails(ninelives.ClassAuth))
		h := healed(a, Fallback(b), Hedged(time.Second))
		ask(t, h)
		ask(t, h)
		equal(t, "b asked", len(b.asked), 1)
	})
}

func TestRaceEndsAtOnceWithItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{hang()}), model("b", step{hang()})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Second, cancel)
		s := watch(ctx, healed(a, Fallback(b), Hedged(10*time.Second)), ninelives.Prompt("hi"))
		equal(t, "took", time.Since(t0), 15*time.Second)
		equal(t, "canceled", errors.Is(s.err, context.Canceled), true)
		synctest.Wait()
		equal(t, "running", a.running+b.running, 0)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{hang()}), model("b", step{wait(time.Second), text("x"), text("y"), hang()})
		for ev := range healed(a, Fallback(b), Hedged(10*time.Second)).Stream(t.Context(), ninelives.Prompt("hi")) {
			if _, ok := ev.(ninelives.TextDelta); ok {
				break
			}
		}
		synctest.Wait()
		equal(t, "running", a.running+b.running, 0)
		equal(t, "took", time.Since(t0), 11*time.Second)
	})
}

func TestSlowConsumerSlowsTheRacerDown(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var read []time.Duration
		a := model("a", step{text("1"), text("2"), text("3"), end(answer("123"))})
		h := healed(a, Fallback(model("b", says("other"))), Hedged(time.Second))
		for ev, err := range h.Stream(t.Context(), ninelives.Prompt("hi")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ev.(ninelives.TextDelta); ok {
				read = append(read, time.Since(t0))
				time.Sleep(time.Minute)
			}
		}
		equal(t, "read", read, []time.Duration{0, time.Minute, 2 * time.Minute})
	})
}
