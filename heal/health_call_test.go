package heal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestOutageOfThePrimaryCostsFewDoomedCalls(t *testing.T) {
	// The primary is down for a minute, twenty calls come four seconds apart.
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a"), model("b", says("hello"))
		a.steps = []step{nil}
		h := healed(flapping{a, t0.Add(time.Minute)}, Fallback(b))
		recovered := time.Duration(0)
		for i := range 20 {
			s := ask(t, h)
			if s.err != nil {
				t.Fatalf("call %d: %v", i, s.err)
			}
			if recovered == 0 && !s.resp.IsFallback {
				recovered = time.Since(t0)
			}
			time.Sleep(4 * time.Second)
		}
		doomed := 0
		for _, at := range a.since(t0) {
			if at < time.Minute {
				doomed++
			}
		}
		if doomed > 6 {
			t.Errorf("%d doomed requests", doomed)
		}
		if recovered == 0 || recovered > 90*time.Second {
			t.Errorf("the primary was used again after %s", recovered)
		}
	})
}

// flapping is down until a time.
type flapping struct {
	*scripted
	until time.Time
}

func TestRestingPrimaryIsSkippedAndProbed(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), says("back"))
		b := model("b", says("hello"))
		h := healed(a, Fallback(b))
		ask(t, h) // two failures, then it rests for 15 s
		rested := time.Now()
		equal(t, "skipped", ask(t, h).text, "hello")
		equal(t, "asked", len(a.asked), 2)
		time.Sleep(ms(7500)) // half of the rest
		s := ask(t, h)
		equal(t, "a failed probe is not repeated", len(a.asked), 3)
		equal(t, "and the call is answered", s.text, "hello")
		equal(t, "the rest doubled", h.Health().Standing(a.candidate, time.Now()).Until.Sub(rested), ms(7500)+30*time.Second)
		time.Sleep(15 * time.Second)
		equal(t, "the next probe", ask(t, h).text, "back")
		equal(t, "probe told", h.Health().Standing(a.candidate, time.Now()).State, StateHealthy)
	})
}

func TestRetryIsReconsideredWhereOtherCallsHaveGivenUpMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", fails(ninelives.ClassOverloaded)), model("b", says("hello"))
		h := healed(a, Fallback(b))
		var all sync.WaitGroup
		all.Go(func() { ask(t, h) }) // asks again after 250 ms, and gives a up
		time.Sleep(ms(100))
		all.Go(func() {
			s := ask(t, h)
			equal(t, "text", s.text, "hello")
			equal(t, "steps", s.kinds(), []ninelives.NoticeKind{ninelives.NoticePlan, ninelives.NoticeAttempt, ninelives.NoticeFault,
				ninelives.NoticeRetry, ninelives.NoticeWait, ninelives.NoticeFailover, ninelives.NoticeAttempt, ninelives.NoticeSwitch})
		})
		all.Wait()
		equal(t, "a asked", a.since(t0), []time.Duration{0, ms(100), ms(250)})
		equal(t, "b asked", b.since(t0), []time.Duration{ms(250), ms(350)})
	})
}

func TestOneCallAtATimeProbes(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), slow(time.Second, "back"))
		b := model("b", says("hello"))
		h := healed(a, Fallback(b))
		ask(t, h)
		time.Sleep(8 * time.Second)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { ask(t, h) })
		}
		wg.Wait()
		equal(t, "probes", len(a.asked), 3)
	})
}

func TestSilentCandidateIsProbedBesideTheTraffic(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassTimeout), says("pong"))
		b := model("b", slow(5*time.Second, "hello"))
		h := healed(a, Fallback(b))
		ask(t, h)
		time.Sleep(10 * time.Second)
		s := ask(t, h)
		equal(t, "no user's request waits for it", s.text, "hello")
		equal(t, "a synthetic request", a.requests[1].MaxTokens, 1)
		equal(t, "one of its own", a.requests[1].Messages[0].Text(), "ping")
		equal(t, "it is back", ask(t, h).text, "pong")
		synctest.Wait()
	})
}

func TestSyntheticProbeEndsWithItsCall(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassTimeout), step{hang()})
		b := model("b", slow(ms(100), "hello"))
		h := healed(a, Fallback(b))
		ask(t, h)
		time.Sleep(20 * time.Second)
		ask(t, h)
		synctest.Wait()
		equal(t, "running", a.running, 0)
		time.Sleep(time.Second)
		ask(t, h)
		synctest.Wait()
		equal(t, "a cancelled probe gives its place back", len(a.asked), 3)
	})
}

func TestFullCandidateIsPassedByAndALoneOneQueues(t *testing.T) {
	p := DefaultPolicy()
	p.Limit = Limit{InFlight: 1, Queue: 0, Wait: time.Second}
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", slow(10*time.Second, "slow")), model("b", says("hello"))
		h := healed(a, Fallback(b), With(p))
		done := make(chan seen)
		go func() { done <- ask(t, h) }()
		time.Sleep(time.Second)
		equal(t, "passed by", ask(t, h).text, "hello")
		equal(t, "the first", (<-done).text, "slow")
	})
	p.Limit.Queue, p.Limit.Wait = 1, 5*time.Second
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", slow(3*time.Second, "slow"))
		h := healed(a, With(p))
		done := make(chan seen)
		go func() { done <- ask(t, h) }()
		time.Sleep(time.Second)
		s := ask(t, h)
		<-done
		equal(t, "queued", a.since(t0), []time.Duration{0, 3 * time.Second})
		equal(t, "text", s.text, "slow")
	})
	p.Limit.Queue = 0
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{hang()})
		h := healed(a, With(p), Deadline(10*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan seen)
		go func() { done <- watch(ctx, h, ninelives.Prompt("hi")) }()
		time.Sleep(time.Second)
		s := ask(t, h)
		var e *Exhausted
		equal(t, "ends typed", errors.As(s.err, &e), true)
		equal(t, "never sent", len(a.since(t0)), 1)
		cancel()
		<-done
	})
}

func TestBreakerOfALoneCandidateMakesTheCallWait(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var steps []step
		for range 5 {
			steps = append(steps, fails(ninelives.ClassStreamBroken))
		}
		a := model("a", append(steps, says("hello"))...)
		h := healed(a)
		ask(t, h) // four failures
		mid := time.Now()
		s := ask(t, h) // the fifth trips it, and the call waits for the probe
		equal(t, "text", s.text, "hello")
		equal(t, "waited", time.Since(mid), 15*time.Second)
	})
}

// A cut or declined answer, or one that misses its form, is not what the caller
// wanted, but the candidate is well: such answers close a rest, and stand
// between failures.
func TestCandidateThatAnswersIsWellWhateverItSays(t *testing.T) {
	short := ninelives.Prompt("yes or no?")
	short.MaxTokens = 1
	form := ninelives.Prompt("a number")
	form.Output = &ninelives.Output{}
	refusal := step{declines("no"), end(&ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Refusal{Text: "no"})})}
	for name, tc := range map[string]struct {
		req    *ninelives.Request
		answer step
	}{
		"cut":      {short, step{text("y"), end(cut("y"))}},
		"declined": {ninelives.Prompt("hi"), refusal},
		"no form":  {form, says("none")},
	} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			var steps []step
			for range 8 {
				steps = append(steps, fails(ninelives.ClassStreamBroken), tc.answer)
				if name == "no form" {
					steps = append(steps, tc.answer) // its correction
				}
			}
			a := model("a", steps...)
			h := healed(a)
			for range 8 {
				watch(t.Context(), h, tc.req)
				equal(t, name+": no failures in a row", h.Health().Standing(a.candidate, time.Now()).State, StateHealthy)
			}
		})
		bubble(t, func(t *testing.T, t0 time.Time) {
			a, b := model("a", fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), tc.answer), model("b", says(`{"n":1}`))
			h := healed(a, Fallback(b))
			watch(t.Context(), h, tc.req)
			time.Sleep(8 * time.Second)
			watch(t.Context(), h, tc.req)
			equal(t, name+": the probe closes it", h.Health().Standing(a.candidate, time.Now()).State, StateHealthy)
		})
	}
}

func TestSharedHealthSparesTheSecondChain(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		health := NewHealth(nil)
		a, b := model("a", fails(ninelives.ClassAuth)), model("b", says("hello"))
		ask(t, healed(a, Fallback(b), SharedHealth(health)))
		ask(t, healed(a, Fallback(b), SharedHealth(health)))
		equal(t, "a asked", len(a.asked), 1)
	})
}

func TestSwapFinishesOnTheOldAndGoesOnWithTheNew(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		old, new := model("old", slow(10*time.Second, "old")), model("new", says("new"))
		swap := NewSwap("v1", old)
		h := healed(swap, Fallback(model("z", says("z"))))
		done := make(chan seen)
		go func() { done <- ask(t, h) }()
		time.Sleep(time.Second)
		opened := 0
		open := func() (ninelives.Model, error) { opened++; return New(new), nil }
		changed, err := swap.To("v1", open)
		equal(t, "unchanged", changed || err != nil || opened != 0, false)
		changed, err = swap.To("v2", open)
		equal(t, "changed", changed && err == nil, true)
		s := ask(t, h)
		equal(t, "the next call", s.text, "new")
		equal(t, "plan", s.notices[0].Text, "new/m, then z/m (policy default)")
		equal(t, "the running call", (<-done).text, "old")
		_, err = swap.To("v3", func() (ninelives.Model, error) { return nil, errors.New("no key") })
		equal(t, "a failed exchange keeps the model", err != nil && swap.Signature() == "v2", true)
		c, ok := ninelives.CandidateOf(h)
		equal(t, "candidate", ok && c.Provider == "new", true)
	})
}

func TestModelIsExchangedHoweverDeepItLies(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		swap := NewSwap("v1", New(model("old", says("old"))))
		h := healed(New(New(model("a", fails(ninelives.ClassAuth)), Fallback(swap))))
		equal(t, "before", ask(t, h).text, "old")
		if _, err := swap.To("v2", func() (ninelives.Model, error) { return model("new", says("new")), nil }); err != nil {
			t.Fatal(err)
		}
		equal(t, "after", ask(t, h).text, "new")
		equal(t, "name", healed(swap).Name(), "new/m")
		_, err := swap.To("v3", func() (ninelives.Model, error) { return nil, nil })
		equal(t, "nothing is no model", err != nil && swap.Signature() == "v2", true)
	})
}

func TestExhaustedTellsTheWholeTrail(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{wait(1500 * time.Millisecond), {err: fault(ninelives.ClassOverloaded)}})
		b := model("b", fails(ninelives.ClassAuth))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "message", s.err.Error(), AllFailed+" Tried 4 times in 12.3s: a/m overloaded (HTTP 503) after 1.5s; "+
			"a/m overloaded (HTTP 503) after 1.5s; b/m auth after 0s; a/m overloaded (HTTP 503) after 1.5s. "+
			"Last: as the script says. Ended because the number of failed attempts is spent. "+
			"Try again after "+t0.Add(26*time.Second).Format(time.RFC3339)+", or add a fallback.") // in the zone of the machine
		var e *Exhausted
		errors.As(s.err, &e)
		equal(t, "first", e.Trail[0].Took, 1500*time.Millisecond)
	})
}
