package heal

import (
	"reflect"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Decisions about situations that are hard to bring about with a real call. A
// decision is a function of its situation alone, so each case is a value.

var noonTime = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func contender(name string, change ...func(*Contender)) Contender {
	c := Contender{
		Candidate: ninelives.Candidate{Provider: name, Model: "m", Capabilities: ninelives.Capabilities{Tools: true, Images: true}},
		Standing:  Standing{State: StateHealthy, Share: 1},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func situation(candidates ...Contender) Situation {
	return Situation{Now: noonTime, Deadline: noonTime.Add(time.Minute), Candidates: candidates, Draw: 0.5, Lot: 0.5}
}

func (s Situation) after(attempts ...Attempt) Situation {
	for i := range attempts {
		attempts[i].Number = i + 1
		if attempts[i].Outcome == "" && attempts[i].Fault != nil {
			attempts[i].Outcome = outcomeOf(attempts[i].Fault)
		}
		attempts[i].Ended = s.Now
	}
	s.Attempts = attempts
	return s
}

func failed(candidate int, class ninelives.Class) Attempt {
	return Attempt{Candidate: candidate, Fault: fault(class)}
}

func resting(class ninelives.Class, probe ProbeKind, probeIn, backIn time.Duration) func(*Contender) {
	return func(c *Contender) {
		c.Standing = Standing{State: StateCooling, Class: class, Probe: probe, ProbeAt: noonTime.Add(probeIn), Until: noonTime.Add(backIn)}
		if probe == ProbeNone {
			c.Standing.ProbeAt = time.Time{}
		}
	}
}

func TestDecide(t *testing.T) {
	p := DefaultPolicy()
	full := func(c *Contender) { c.Standing.Full = true }
	share := func(v float64) func(*Contender) { return func(c *Contender) { c.Standing.Share = v } }
	window := func(n int) func(*Contender) {
		return func(c *Contender) { c.Candidate.Window, c.Candidate.WindowSource = n, "exact" }
	}
	blind := func(c *Contender) { c.Candidate.Images, c.Candidate.Tools = false, false }
	noRetry := func(c *Contender) { c.NoRetry = true }
	probing := func(c *Contender) {
		c.Standing = Standing{State: StateProbing, Class: ninelives.ClassOverloaded, Probe: ProbeTraffic, ProbeAt: noonTime, Until: noonTime.Add(10 * time.Second)}
	}
	a, b, c := contender("a"), contender("b"), contender("c")

	for _, tc := range []struct {
		name   string
		s      Situation
		change func(*Situation)
		policy func(*Policy)
		want   Decision
	}{
		{name: "the first of the chain", s: situation(a, b), want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst}},
		{name: "past one that is full", s: situation(contender("a", full), b), want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "past one that rests", s: situation(contender("a", resting(ninelives.ClassAuth, ProbeNone, 0, time.Hour)), b), want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "past one whose probe is not due", s: situation(contender("a", resting(ninelives.ClassOverloaded, ProbeTraffic, 5*time.Second, 10*time.Second)), b),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "past one that is being probed", s: situation(contender("a", probing), b), want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "past one that is probed beside the traffic", s: situation(contender("a", resting(ninelives.ClassTimeout, ProbeSynthetic, 0, 10*time.Second)), b),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "one whose probe is due is probed", s: situation(contender("a", resting(ninelives.ClassOverloaded, ProbeTraffic, 0, 10*time.Second)), b),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst, Probe: true}},
		{name: "under load one that came back takes its share", s: situation(contender("a", share(0.6)), b), want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst}},
		{name: "and no more than its share", s: situation(contender("a", share(0.4)), b), want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "unless nobody else can", s: situation(contender("a", share(0.4)), contender("b", full)), want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst}},
		{name: "capability comes before order", s: situation(contender("a", blind), b), change: func(s *Situation) { s.Facts.Images = true },
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},
		{name: "but less capable is better than none", s: situation(contender("a", blind), contender("b", full)), change: func(s *Situation) { s.Facts.Tools = true },
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst}},
		{name: "a window that is too small comes last", s: situation(contender("a", window(10)), contender("b", blind)),
			change: func(s *Situation) { s.Facts.Input, s.Facts.Images = 100, true }, want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFirst}},

		{name: "all out: the first to come back is waited for",
			s:    situation(contender("a", resting(ninelives.ClassAuth, ProbeNone, 0, 50*time.Second)), contender("b", resting(ninelives.ClassOverloaded, ProbeTraffic, 20*time.Second, 40*time.Second))),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonReturn, Wait: 20 * time.Second, Probe: true}},
		{name: "all out: by its rest, where that ends before a probe would be due",
			s:    situation(contender("a", resting(ninelives.ClassAuth, ProbeNone, 0, 10*time.Second)), contender("b", resting(ninelives.ClassOverloaded, ProbeTraffic, 20*time.Second, 40*time.Second))),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonReturn, Wait: 10 * time.Second}},
		{name: "all out, none in time: the least bad is one that may come back by itself",
			s:    situation(contender("a", resting(ninelives.ClassBilling, ProbeNone, 0, 2*time.Minute)), contender("b", resting(ninelives.ClassRateLimit, ProbeTraffic, 3*time.Minute, 5*time.Minute))),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonLeastBad}},
		{name: "all out: a substitute is served at once", s: situation(contender("a", resting(ninelives.ClassOverloaded, ProbeTraffic, time.Second, 10*time.Second))),
			change: func(s *Situation) { s.Degraded = true }, want: Decision{Do: ActDegrade, Exhausted: true, Back: noonTime.Add(time.Second)}},
		{name: "all out: a wait is no longer than one may be", s: situation(contender("a", resting(ninelives.ClassOverloaded, ProbeTraffic, 20*time.Second, 40*time.Second))),
			policy: func(p *Policy) { p.Budget.Wait = 10 * time.Second }, want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonLeastBad}},

		{name: "a failed probe is given up at once", s: situation(a, b).after(Attempt{Candidate: 0, Probe: true, Fault: fault(ninelives.ClassOverloaded)}),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFailover}},
		{name: "a spent retry budget moves on", s: situation(contender("a", noRetry), b).after(failed(0, ninelives.ClassOverloaded)),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFailover}},
		{name: "a spent retry budget of the only one is waited for", s: situation(contender("a", noRetry)).after(failed(0, ninelives.ClassOverloaded)),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonTurn, Wait: 250 * time.Millisecond}},
		{name: "and so is its hint", s: situation(contender("a", noRetry)).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, 3*time.Second)[0].err.(*ninelives.Fault)}),
			change: func(s *Situation) { s.Draw, s.Now = 0, s.Now.Add(time.Second) }, want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonTurn, Wait: 2 * time.Second}},
		{name: "but not for ever", s: situation(contender("a", noRetry)).after(failed(0, ninelives.ClassOverloaded)),
			change: func(s *Situation) { s.Now = s.Now.Add(5 * time.Second) }, want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "and for longer where a wait may be longer", s: situation(contender("a", noRetry)).after(failed(0, ninelives.ClassOverloaded)),
			policy: func(p *Policy) { p.Budget.Wait = 20 * time.Second },
			change: func(s *Situation) { s.Draw, s.Now = 0, s.Now.Add(5*time.Second) }, want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonTurn, Wait: 50 * time.Millisecond}},
		{name: "what fails for good gets no turn", s: situation(contender("a", noRetry)).after(failed(0, ninelives.ClassBilling)),
			want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "a resting fallback is passed by", s: situation(a, contender("b", resting(ninelives.ClassAuth, ProbeNone, 0, time.Hour)), c).after(failed(0, ninelives.ClassBilling)),
			want: Decision{Do: ActStart, Candidate: 2, Reason: ReasonFailover}},
		{name: "two others at most", s: situation(a, b, c, contender("d")).after(failed(0, ninelives.ClassBilling), failed(1, ninelives.ClassBilling), failed(2, ninelives.ClassBilling)),
			want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "after a dead end an earlier one is gone back to", s: situation(contender("a", resting(ninelives.ClassOverloaded, ProbeTraffic, 8*time.Second, 15*time.Second)), b).
			after(failed(0, ninelives.ClassOverloaded), failed(0, ninelives.ClassOverloaded), failed(1, ninelives.ClassAuth)),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonReturn, Wait: 8 * time.Second, Probe: true}},
		{name: "a hint longer than the policy sleeps on moves on", s: situation(a, b).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, 20*time.Second)[0].err.(*ninelives.Fault)}),
			policy: func(p *Policy) { p.MaxHint = 10 * time.Second }, want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFailover}},
		{name: "but is slept on where there is nobody else", s: situation(a).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, 20*time.Second)[0].err.(*ninelives.Fault)}),
			policy: func(p *Policy) { p.MaxHint = 10 * time.Second }, want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 22 * time.Second}},
		{name: "jitter on a hint gives way to the deadline", s: situation(a).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, 58*time.Second)[0].err.(*ninelives.Fault)}),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 58 * time.Second}},
		{name: "a hint that ends at the deadline leaves no time for the attempt", s: situation(a).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, time.Minute)[0].err.(*ninelives.Fault)}),
			want: Decision{Do: ActSurface, Exhausted: true, Back: noonTime.Add(time.Minute)}},
		{name: "a hint that ends a moment before is slept on, without jitter", s: situation(a).after(Attempt{Candidate: 0, Fault: hinted(ninelives.ClassRateLimit, time.Minute-1)[0].err.(*ninelives.Fault)}),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: time.Minute - 1}},
		{name: "a backoff leaves half of the time to the attempt", s: situation(a).after(failed(0, ninelives.ClassUnknown)), change: func(s *Situation) { s.Deadline = noonTime.Add(100 * time.Millisecond) },
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 50 * time.Millisecond}},
		{name: "a queue is not stood in twice while another can answer", s: situation(a, b).after(Attempt{Candidate: 0, Unsent: true, Fault: fault(ninelives.ClassOverloaded)}),
			want: Decision{Do: ActStart, Candidate: 1, Reason: ReasonFailover}},
		{name: "a reset time is a hint as well", s: situation(a).after(Attempt{Candidate: 0, Fault: &ninelives.Fault{Class: ninelives.ClassRateLimit, ResetAt: noonTime.Add(10 * time.Second)}}),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 11 * time.Second}},
		{name: "a reset after a byte had come is not retried at once", s: situation(a).after(Attempt{Candidate: 0, Fault: &ninelives.Fault{Class: ninelives.ClassNetwork, Phase: ninelives.PhaseFirstToken}}),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 250 * time.Millisecond}},

		{name: "before one is asked oftener than while there is another, one that rests is asked",
			s:    situation(a, contender("b", resting(ninelives.ClassBilling, ProbeNone, 0, time.Hour)), contender("c", resting(ninelives.ClassOverloaded, ProbeTraffic, 20*time.Second, 40*time.Second))).after(failed(0, ninelives.ClassUnknown), failed(0, ninelives.ClassUnknown)),
			want: Decision{Do: ActStart, Candidate: 2, Reason: ReasonLeastBad}},
		{name: "but not before", s: situation(a, contender("b", resting(ninelives.ClassBilling, ProbeNone, 0, time.Hour))).after(failed(0, ninelives.ClassUnknown)),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonRetry, Wait: 250 * time.Millisecond}},
		{name: "and once in a call", s: situation(a, contender("b", resting(ninelives.ClassBilling, ProbeNone, 0, time.Hour)), contender("c", resting(ninelives.ClassAuth, ProbeNone, 0, time.Hour))).
			after(failed(0, ninelives.ClassUnknown), failed(0, ninelives.ClassUnknown), Attempt{Candidate: 2, LeastBad: true, Fault: fault(ninelives.ClassAuth)}),
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonReturn, Wait: 500 * time.Millisecond}},

		{name: "the tokens of a call", s: situation(a, b).after(Attempt{Candidate: 0, Fault: fault(ninelives.ClassOverloaded), Usage: ninelives.Usage{Input: 900, Output: 200}}),
			policy: func(p *Policy) { p.Budget.Tokens = 1000 }, want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "the money of a call", s: situation(contender("a", func(c *Contender) { c.Candidate.Price.Output = 1000 }), b).after(Attempt{Candidate: 0, Fault: fault(ninelives.ClassOverloaded), Usage: ninelives.Usage{Output: 1000}}),
			policy: func(p *Policy) { p.Budget.Money = 1 }, want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "the time of a call", s: situation(a, b).after(failed(0, ninelives.ClassOverloaded)), change: func(s *Situation) { s.Now = s.Deadline },
			want: Decision{Do: ActSurface, Exhausted: true}},
		{name: "a lost race says nothing", s: situation(a, b).after(Attempt{Candidate: 0, Outcome: ninelives.OutcomeComplete}, Attempt{Candidate: 1, Lost: true}),
			want: Decision{Do: ActAccept}},

		{name: "a race needs somebody who is free", s: situation(a, contender("b", full)), policy: func(p *Policy) { p.Hedge.After = time.Second },
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst}},
		{name: "a race with the next in the chain", s: situation(a, b, c), policy: func(p *Policy) { p.Hedge.After = time.Second },
			want: Decision{Do: ActStart, Candidate: 0, Reason: ReasonFirst, Hedge: 1, HedgeAfter: time.Second}},
		{name: "no race in which two failures would be one too many", s: situation(a, b, c).after(failed(0, ninelives.ClassUnknown), failed(0, ninelives.ClassUnknown), failed(1, ninelives.ClassAuth)),
			policy: func(p *Policy) { p.Hedge.After = time.Second }, want: Decision{Do: ActStart, Candidate: 2, Reason: ReasonFailover}},
		{name: "no race that the budget of candidates forbids", s: situation(a, b, c, contender("d")).after(failed(0, ninelives.ClassBilling), failed(1, ninelives.ClassBilling)),
			policy: func(p *Policy) { p.Hedge.After = time.Second }, want: Decision{Do: ActStart, Candidate: 2, Reason: ReasonFailover}},

		{name: "nobody at all", s: situation(), want: Decision{Do: ActSurface, Exhausted: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, s := p, tc.s
			if tc.policy != nil {
				tc.policy(&p)
			}
			if tc.change != nil {
				tc.change(&s)
			}
			got := Decide(&p, s)
			if got.Why == "" {
				t.Error("it does not say why")
			}
			got.Why = ""
			if tc.want.Do == ActSurface || tc.want.Do == ActDegrade {
				if got.Fault == nil {
					t.Error("a failure without a fault")
				}
				got.Fault = nil
				if tc.want.Back.IsZero() {
					got.Back = time.Time{}
				}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("\ngot  %+v\nwant %+v\nin\n%s", got, tc.want, s)
			}
		})
	}
}

func TestDecisionChangesNothingItWasGiven(t *testing.T) {
	p := DefaultPolicy()
	s := situation(contender("a"), contender("b")).after(failed(0, ninelives.ClassFormat))
	s.Attempts[0].Fault.Repairs = []ninelives.Repair{{Name: "merge_roles"}}
	before := s
	before.Candidates = append([]Contender(nil), s.Candidates...)
	before.Attempts = append([]Attempt(nil), s.Attempts...)
	first := Decide(&p, s)
	if second := Decide(&p, s); !reflect.DeepEqual(first, second) {
		t.Errorf("the same situation gave %+v and %+v", first, second)
	}
	if !reflect.DeepEqual(before, s) || !reflect.DeepEqual(p, DefaultPolicy()) {
		t.Error("the situation or the policy was changed")
	}
}
