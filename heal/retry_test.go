package heal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// bubble runs a test in virtual time and hands it the time of its beginning.
func bubble(t *testing.T, f func(t *testing.T, t0 time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, time.Now()) })
}

func ask(t *testing.T, m ninelives.Model) seen {
	t.Helper()
	return watch(t.Context(), m, ninelives.Prompt("hi"))
}

func preset(t *testing.T, name string) Option {
	t.Helper()
	p, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return With(p)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestHealthyCallIsOneRequestAndTwoNotices(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		s := ask(t, healed(a))
		equal(t, "asked", a.since(t0), []time.Duration{0})
		equal(t, "text", s.text, "hello")
		equal(t, "notices", s.kinds(), []ninelives.NoticeKind{ninelives.NoticePlan, ninelives.NoticeAttempt})
		equal(t, "candidate", s.resp.Candidate, "a/m")
		equal(t, "fallback", s.resp.IsFallback, false)
		equal(t, "attempts", s.resp.Attempts, 1)
		equal(t, "ends", s.ends, 1)
	})
}

// The log of source design 000, section 4: one call, the primary is rate
// limited, the fallback answers, the caller is none the wiser.
func TestLogOfDesign000IsOneCallThatSwitchesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		deepseek := model("deepseek", fails(ninelives.ClassRateLimit))
		claude := model("anthropic", says("hello"))
		s := ask(t, healed(deepseek, Fallback(claude), preset(t, "catbuddy")))
		equal(t, "deepseek asked", deepseek.since(t0), []time.Duration{0})
		equal(t, "anthropic asked", claude.since(t0), []time.Duration{0})
		equal(t, "text", s.text, "hello")
		var log []string
		for _, n := range s.notices {
			switch n.Kind {
			case ninelives.NoticeFault, ninelives.NoticeSwitch:
				log = append(log, string(n.Kind)+": "+n.Text)
			}
		}
		equal(t, "log", log, []string{
			"fault: deepseek/m: rate_limit (HTTP 429): as the script says",
			"switch: switched to fallback #1: anthropic/m",
		})
	})
}

// The first half of source design 001's sequence: 429, 1.5 s, 429, 3 s, 429,
// then the backup provider.
func TestSequenceOfDesign001RetriesTwiceAndThenFailsOver(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassRateLimit))
		b := model("b", says("hello"))
		h := healed(a, Fallback(b), preset(t, "codebuddy"))
		s := ask(t, h)
		equal(t, "a asked", a.since(t0), []time.Duration{0, ms(1500), ms(4500)})
		equal(t, "b asked", b.since(t0), []time.Duration{ms(4500)})
		equal(t, "isFallback", s.resp.IsFallback, true)
		for i, req := range a.requests[1:] {
			last := req.Messages[len(req.Messages)-1]
			if last.Role != ninelives.RoleUser || !strings.Contains(last.Text(), "rate limit") {
				t.Errorf("retry %d does not tell the model what failed: %q", i+1, last.Text())
			}
		}
		if n := len(b.requests[0].Messages); n != 1 {
			t.Errorf("the backup got %d messages, want the caller's one", n)
		}
		standing := h.Health().Standing(a.candidate, time.Now())
		equal(t, "a rests for", standing.Until.Sub(time.Now()), time.Minute)
		equal(t, "a is probed from", standing.ProbeAt.Sub(time.Now()), 30*time.Second)
	})
}

func TestHintIsSleptInFullWithJitterUpwardOnly(t *testing.T) {
	for draw, want := range map[float64]time.Duration{0: 7 * time.Second, 0.5: ms(7700), 0.999: 8398600 * time.Microsecond} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", hinted(ninelives.ClassRateLimit, 7*time.Second), says("hello"))
			h := New(a)
			h.random = func() float64 { return draw }
			s := ask(t, h)
			equal(t, "asked", a.since(t0), []time.Duration{0, want})
			equal(t, "text", s.text, "hello")
		})
	}
}

func TestHintThatDoesNotFitTheDeadlineBecomesTheCooldown(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute))
		b := model("b", says("hello"))
		h := healed(a, Fallback(b), Deadline(time.Minute))
		s := ask(t, h)
		equal(t, "a asked", a.since(t0), []time.Duration{0})
		equal(t, "b asked", b.since(t0), []time.Duration{0})
		equal(t, "text", s.text, "hello")
		standing := h.Health().Standing(a.candidate, time.Now())
		equal(t, "a rests for", standing.Until.Sub(t0), 10*time.Minute)
		equal(t, "never probed before the hint", standing.ProbeAt.Sub(t0) >= 10*time.Minute, true)
	})
}

func TestOnlyCandidateWhoseHintDoesNotFitFailsAtOnceAndSaysWhenItIsBack(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute))
		s := ask(t, healed(a, Deadline(time.Minute)))
		var e *Exhausted
		if !errors.As(s.err, &e) {
			t.Fatalf("got %v, want *Exhausted", s.err)
		}
		equal(t, "asked", a.since(t0), []time.Duration{0})
		equal(t, "took", time.Since(t0), 0)
		equal(t, "back", e.Back.Sub(t0), 10*time.Minute)
	})
}

func TestRetryThatWouldPassTheDeadlineLeavesTimeForTheAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassOverloaded), says("hello"))
		s := ask(t, healed(a, Deadline(ms(300)))) // its backoff would be 250 ms
		equal(t, "asked", a.since(t0), []time.Duration{0, ms(150)})
		equal(t, "text", s.text, "hello")
	})
}

func TestNothingOutlivesTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{hang()})
		b := model("b", step{hang()})
		s := ask(t, healed(a, Fallback(b), Deadline(5*time.Second)))
		equal(t, "took", time.Since(t0), 5*time.Second)
		equal(t, "b asked", len(b.asked), 0)
		if !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("errors.Is does not find the deadline in %v", s.err)
		}
		var f *ninelives.Fault
		if !errors.As(s.err, &f) || f.Class != ninelives.ClassTimeout {
			t.Errorf("got fault %v, want a timeout", f)
		}
	})
}

func TestEarlierDeadlineOfTheContextWins(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", hinted(ninelives.ClassRateLimit, 4*time.Second))
		b := model("b", says("hello"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s := watch(ctx, healed(a, Fallback(b)), ninelives.Prompt("hi"))
		equal(t, "took", time.Since(t0), 0)
		equal(t, "text", s.text, "hello")
	})
}

func TestExpiredContextAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		s := watch(ctx, healed(a), ninelives.Prompt("hi"))
		equal(t, "asked", len(a.asked), 0)
		equal(t, "deadline", errors.Is(s.err, context.DeadlineExceeded), true)
		var f *ninelives.Fault
		equal(t, "fault", errors.As(s.err, &f), true)
	})
}

func TestBufferedCallHasTheShorterDeadline(t *testing.T) {
	for _, tc := range []struct {
		buffered bool
		want     time.Duration
	}{{true, 2 * time.Minute}, {false, 10 * time.Minute}} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			req := ninelives.Prompt("hi")
			req.Buffered = tc.buffered
			watch(t.Context(), healed(model("a", step{hang()})), req)
			equal(t, "took", time.Since(t0), tc.want)
		})
	}
}

func TestAttemptsAddAndNeverMultiply(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b, c, d := model("a", fails(ninelives.ClassUnknown)), model("b", fails(ninelives.ClassUnknown)),
			model("c", fails(ninelives.ClassUnknown)), model("d", fails(ninelives.ClassUnknown))
		s := ask(t, healed(a, Fallback(b, c, d)))
		equal(t, "requests", len(a.asked)+len(b.asked)+len(c.asked)+len(d.asked), 4)
		var e *Exhausted
		if !errors.As(s.err, &e) {
			t.Fatal(s.err)
		}
		equal(t, "trail", len(e.Trail), 4)
	})
}

func TestNestedChainsAreOneChainWithOneBudget(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b, c, d := model("a", fails(ninelives.ClassTimeout)), model("b", fails(ninelives.ClassTimeout)),
			model("c", fails(ninelives.ClassTimeout)), model("d", says("hello"))
		inner := New(a, Fallback(b), Rescue(ModeFail), Deadline(time.Second))
		deep := New(New(New(c)), Fallback(d))
		h := healed(inner, Fallback(deep))
		s := ask(t, h)
		equal(t, "a", len(a.asked), 1)
		equal(t, "b", len(b.asked), 1)
		equal(t, "c", len(c.asked), 2) // the third candidate is the last one that the budget allows
		equal(t, "d", len(d.asked), 0)
		if s.err == nil || s.ends != 1 {
			t.Errorf("ends %d, error %v", s.ends, s.err)
		}
		var names []string
		for _, m := range h.Unwrap() {
			names = append(names, m.Name())
		}
		equal(t, "chain", names, []string{"a/m", "b/m", "c/m", "d/m"})
	})
}

// wrapped hides a healed model from the chain around it.
type wrapped struct{ ninelives.Model }

func TestHealedModelBehindAWrapperDoesNotHealAgain(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassUnknown))
		ask(t, healed(wrapped{New(wrapped{New(a)})}))
		equal(t, "requests", len(a.asked), 4)
	})
}

func TestBackgroundWorkGoesOnUntilTheSameFailureCameTenTimes(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassOverloaded))
		req := ninelives.Prompt("hi")
		req.Background = true
		p := DefaultPolicy()
		p.Breaker = Breaker{} // the waits of the mode itself
		s := watch(t.Context(), healed(a, With(p)), req)
		var want []time.Duration
		at, base := time.Duration(0), 500*time.Millisecond
		for n := range 10 {
			want = append(want, at)
			at += min(base<<n, time.Minute) / 2
		}
		equal(t, "asked", a.since(t0), want)
		equal(t, "error", s.err != nil, true)
	})
}

func TestBackgroundWorkSucceedsAfterManyDifferentFailures(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var steps []step
		for range 9 {
			steps = append(steps, fails(ninelives.ClassOverloaded), fails(ninelives.ClassUnknown))
		}
		a := model("a", append(steps, says("hello"))...)
		req := ninelives.Prompt("hi")
		req.Background = true
		p := DefaultPolicy()
		p.Breaker = Breaker{}
		s := watch(t.Context(), healed(a, With(p)), req)
		equal(t, "text", s.text, "hello")
		equal(t, "requests", len(a.asked), 19)
	})
}

func TestBackgroundWorkEndsThoughItsCandidatesFailByTurns(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", fails(ninelives.ClassOverloaded)), model("b", fails(ninelives.ClassUnknown))
		req := ninelives.Prompt("hi")
		req.Background = true
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		s := watch(ctx, healed(a, Fallback(b)), req)
		var e *Exhausted
		equal(t, "it ends by itself", errors.As(s.err, &e) && !e.Deadline, true)
		equal(t, "ten equal failures of one of them", max(len(a.asked), len(b.asked)), 10)
	})
}

func TestPlaceThatIsNotToBeHadIsToldAsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{hang()}), model("b", says("hello"))
		h := healed(a, Fallback(b), crowded(1, 1), Deadline(time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan seen)
		go func() { done <- watch(ctx, h, ninelives.Prompt("first")) }()
		synctest.Wait()
		s := ask(t, h)
		equal(t, "text", s.text, "hello")
		equal(t, "waited", time.Since(t0), 5*time.Second)
		equal(t, "steps", s.kinds(), []ninelives.NoticeKind{ninelives.NoticePlan, ninelives.NoticeFault, ninelives.NoticeFailover, ninelives.NoticeAttempt, ninelives.NoticeSwitch})
		equal(t, "attempts", s.resp.Attempts, 1)
		cancel()
		<-done
	})
}

// A lone candidate that rests for a reason that time does not heal is asked all
// the same; when it turns out that the reason has gone, what remains is healed
// as ever.
func TestARestThatHasLostItsReasonDoesNotKeepFromRetrying(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		h := New(model("only", fails(ninelives.ClassModelNotFound), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), says("hello")))
		if r := ask(t, h); r.err == nil {
			t.Fatal("an unknown model answered")
		}
		r := ask(t, h)
		if r.err != nil || r.resp.Text() != "hello" || r.resp.Attempts != 3 {
			t.Errorf("got %v, %v", r.resp, r.err)
		}
	})
}

// Whatever a candidate rests for, and however it came to be asked all the same:
// when it says itself how long to wait, it is asked again after just that.
func TestWhoSaysWhenToAskAgainIsAskedThenWhateverItRestsFor(t *testing.T) {
	p := DefaultPolicy()
	p.Budget.Wait, p.Budget.Returns, p.HintJitter = 20*time.Second, 1, 0
	hour := fault(ninelives.ClassRateLimit)
	hour.RetryAfter = time.Hour
	for _, tc := range []struct {
		name  string
		first *ninelives.Fault // why the first of the chain rests; nil if there is but one
		rests *ninelives.Fault
		want  []time.Duration // when it is asked
	}{
		{"alone, for a guess", nil, fault(ninelives.ClassRateLimit), []time.Duration{0, time.Second}},
		{"alone, for what it said before", nil, hour, []time.Duration{0, time.Second}},
		{"alone, for what time does not heal", nil, fault(ninelives.ClassModelNotFound), []time.Duration{0, time.Second}},
		{"after the first was waited for in vain", fault(ninelives.ClassUnknown), fault(ninelives.ClassRateLimit), []time.Duration{15 * time.Second, 16 * time.Second}},
		{"as a probe that was waited for", fault(ninelives.ClassModelNotFound), fault(ninelives.ClassOverloaded), []time.Duration{7500 * time.Millisecond, 8500 * time.Millisecond}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				m := model("it", hinted(ninelives.ClassRateLimit, time.Second), says("hello"))
				h := New(m, With(p))
				if tc.first != nil {
					first := model("first", fails(tc.first.Class))
					h = New(first, Fallback(m), With(p))
					giveUp(t, h, first, tc.first)
				}
				giveUp(t, h, m, tc.rests)
				s := ask(t, h)
				equal(t, "text", s.text, "hello")
				var asked []time.Duration
				for _, at := range m.asked {
					asked = append(asked, at.Sub(t0))
				}
				equal(t, "asked", asked, tc.want)
			})
		})
	}
}

// giveUp rests a candidate as an earlier call has that gave it up for the fault.
func giveUp(t *testing.T, h *Healed, m *scripted, f *ninelives.Fault) {
	t.Helper()
	leave, err := h.Health().Enter(t.Context(), m.candidate, time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	leave(Verdict{Kind: VerdictFailed, Fault: f, GaveUp: true, Now: time.Now()})
}

// A caller that hears nothing meanwhile can bound how often its call waits for
// somebody to come back.
func TestReturnsAreWaitedForAsOftenAsThePolicySays(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		p := DefaultPolicy()
		p.Budget.Wait, p.Budget.Returns = 20*time.Second, 1
		down := func(name string) ninelives.Model {
			return model(name, fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded))
		}
		h := New(down("one"), Fallback(down("two")), With(p))
		ask(t, h) // both rest now
		began := time.Now()
		if r := ask(t, h); r.err == nil {
			t.Fatal("somebody answered")
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v to say that nobody answers", took)
		}
	})
}

// When the one that came back fails again, somebody who was not asked in this
// call is tried, whatever he rests for: he may well answer.
func TestWhoWasNotAskedIsTriedBeforeWhoHasJustFailed(t *testing.T) {
	bubble(t, func(t *testing.T, _ time.Time) {
		p := DefaultPolicy()
		p.Budget.Wait, p.Budget.Returns = 20*time.Second, 1
		dead := model("dead", fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown))
		other := model("other", fails(ninelives.ClassModelNotFound), says("hello"))
		h := New(dead, Fallback(other), With(p))
		if r := ask(t, h); r.err == nil {
			t.Fatal("somebody answered")
		}
		if r := ask(t, h); r.err != nil || r.resp.Text() != "hello" {
			t.Errorf("got %v, %v", r.resp, r.err)
		}
	})
}

// Calls that are refused together come back one after the other: the budget
// spreads their retries, and refuses nobody who could be answered.
func TestAHerdIsAnsweredInTurns(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		const herd = 40
		steps := make([]step, herd)
		for i := range steps {
			steps[i] = fails(ninelives.ClassRateLimit)
		}
		a := model("a", append(steps, slow(time.Second, "hello"))...)
		p := DefaultPolicy()
		p.Budget.Wait = 20 * time.Second
		h := New(a, With(p))
		var all sync.WaitGroup
		for range herd {
			all.Go(func() {
				if s := ask(t, h); s.err != nil || s.text != "hello" {
					t.Errorf("%q, %v", s.text, s.err)
				}
			})
		}
		all.Wait()
		at := a.since(t0)[herd:]
		equal(t, "each is asked for twice", len(at), herd)
		slices.Sort(at)
		for i := range at {
			// Eight are a fifth of the calls, and three more may be under way.
			if last := i + 8 + 3; last < herd && at[last]-at[i] < time.Second {
				t.Errorf("%d retries within %s", last-i, at[last]-at[i])
			}
		}
		if end := time.Since(t0); end > 20*time.Second {
			t.Errorf("it took %s", end)
		}
	})
}
