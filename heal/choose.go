package heal

import (
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// first chooses whom to ask at the start of a call.
func (d *decider) first() Decision {
	if !d.s.Deadline.IsZero() && !d.s.Now.Before(d.s.Deadline) {
		return Decision{Do: ActSurface, Exhausted: true, Why: "the deadline has passed",
			Fault: &ninelives.Fault{Class: ninelives.ClassTimeout, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare,
				Message: "the deadline had passed before a candidate could be asked", Billed: ninelives.BilledNo}}
	}
	if i, probe, ok := d.choose(func(i int) bool { return !d.s.Candidates[i].OnRefusal }); ok {
		why := "it is the first that can answer"
		if probe {
			why = "it rests, and this call finds out whether it is back"
		}
		return d.start(i, Decision{Reason: ReasonFirst, Probe: probe, Why: why})
	}
	if dec, ok := d.allOut(nil); ok {
		return dec
	}
	return Decision{Do: ActSurface, Exhausted: true, Back: d.back(), Why: "there is no candidate",
		Fault: &ninelives.Fault{Class: ninelives.ClassModelNotFound, Phase: ninelives.PhasePrepare,
			Message: "the chain has no candidate", Hint: "give heal.New a model"}}
}

// next chooses another candidate after a failed attempt.
func (d *decider) next(a *Attempt, rule Rule) (i int, probe, ok bool) {
	if rule.Next == NextNever || !d.roomForOther() {
		return 0, false, false
	}
	if rule.Next == NextOnce || rule.Next == NextOther {
		if d.candidatesWith(a.Fault.Class) > 1 {
			return 0, false, false
		}
	}
	if a.Outcome == ninelives.OutcomeRefused && d.hasRefusalRoute() {
		return d.choose(func(i int) bool { return d.s.Candidates[i].OnRefusal && !d.asked(i) })
	}
	from := &d.s.Candidates[a.Candidate].Candidate
	return d.choose(func(i int) bool {
		c := &d.s.Candidates[i].Candidate
		switch {
		case d.asked(i) || d.s.Candidates[i].OnRefusal:
			return false
		case rule.Next == NextLarger:
			return larger(c, from, a.Fault) || !windowKnown(c) && d.candidatesWith(a.Fault.Class) == 1
		case rule.Next == NextOther:
			return c.Provider != from.Provider
		}
		return true
	})
}

// choose finds the best candidate among those that may be asked: capability
// first, then the order of the chain. One that has just come back under load
// takes only its share, unless nobody else can answer.
func (d *decider) choose(may func(i int) bool) (best int, probe, ok bool) {
	for _, all := range [...]bool{false, true} {
		rank := 3
		for i := range d.s.Candidates {
			c := &d.s.Candidates[i]
			if r := d.rank(c); r < rank && may(i) {
				switch {
				case c.Standing.Takes(d.s.Lot), all && c.Standing.Available():
					best, probe, ok, rank = i, false, true, r
				case c.Standing.CanProbe(d.s.Now):
					best, probe, ok, rank = i, true, true, r
				}
			}
		}
		if ok {
			return best, probe, true
		}
	}
	return 0, false, false
}

// rank orders candidates by what they can do for this request: 0 can do it
// all, 1 lacks tools or sight, 2 has a window that is too small and cannot be
// helped by a smaller request.
func (d *decider) rank(at *Contender) int {
	f := &d.s.Facts
	switch c := &at.Candidate; {
	case windowKnown(c) && f.Input > c.Window && (!f.CanFit || at.Unfit):
		return 2
	case f.Tools && !c.Tools, f.Images && !c.Images:
		return 1
	}
	return 0
}

// windowKnown says that the window is more than a guess. A window that nobody
// knows may be larger than the one that overflowed: it is tried once.
func windowKnown(c *ninelives.Candidate) bool {
	return c.Window > 0 && c.WindowSource != "default"
}

// larger says that c is known to have more room than a candidate whose window
// overflowed.
func larger(c, from *ninelives.Candidate, f *ninelives.Fault) bool {
	if !windowKnown(c) {
		return false
	}
	window := from.Window
	if f.Window > 0 {
		window = f.Window
	}
	return c.Window > window && c.Window >= f.Requested
}

// allOut decides when no candidate can be asked now: the substitute, else the
// first to come back if that fits the deadline, else the least bad, once, and
// after it those that rest for what time does not heal: nobody else would ever
// find out that they are well. The attempt a is nil at the start of a call.
func (d *decider) allOut(a *Attempt) (Decision, bool) {
	if d.degradable() {
		dec := Decision{Do: ActDegrade, Exhausted: true, Back: d.back(), Why: "all candidates are out of service"}
		if dec.Fault = d.restFault(); a != nil {
			dec.Fault = a.Fault
		}
		return dec, true
	}
	first, firstBack := -1, time.Time{}
	bad := -1
	for i := range d.s.Candidates {
		c := &d.s.Candidates[i]
		if c.OnRefusal || d.dead(i) || d.worn(i) || !d.asked(i) && !d.roomForOther() {
			continue
		}
		if d.asked(i) && c.NoRetry {
			continue
		}
		back, asked := d.returns(i)
		if first < 0 || back.Before(firstBack) {
			first, firstBack = i, back
		}
		if asked && back.After(d.s.Now) && !d.hinted(i).IsZero() {
			continue // it said itself when it may be asked again
		}
		if d.leastBadAsked() && (asked || !c.Standing.forGood()) {
			continue // once is enough, but for whom time alone brings nothing
		}
		if bad < 0 || d.better(i, bad) {
			bad = i
		}
	}
	if first < 0 {
		return Decision{}, false
	}
	change := Change{}
	if a != nil {
		change = d.carried(a, first)
	}
	if wait := firstBack.Sub(d.s.Now); wait >= 0 && d.fits(wait) && d.mayAwait(wait) {
		c := &d.s.Candidates[first].Standing
		return d.start(first, Decision{Reason: ReasonReturn, Wait: wait, Change: change,
			Probe: !c.Healthy() && firstBack.Before(c.Until),
			Why:   "all candidates are out of service: this is the first to come back"}), true
	}
	if bad < 0 {
		return Decision{}, false
	}
	if a != nil {
		change = d.carried(a, bad)
	}
	return d.start(bad, Decision{Reason: ReasonLeastBad, Change: change,
		Why: "all candidates are out of service and none comes back in time: this is the least bad"}), true
}

// lastResort chooses, once in a call, the least bad of those that rest and were
// not asked in it: it may answer where somebody in service has failed as often as
// one is asked again while there is another.
func (d *decider) lastResort(rule Rule) (best int, ok bool) {
	if rule.Next != NextThen && rule.Next != NextAtOnce || !d.roomForOther() || d.leastBadAsked() {
		return 0, false
	}
	for i := range d.s.Candidates {
		c := &d.s.Candidates[i]
		if d.asked(i) || c.OnRefusal || c.Standing.Healthy() || c.Standing.Full {
			continue
		}
		if !ok || d.better(i, best) {
			best, ok = i, true
		}
	}
	return best, ok
}

// mayAwait says that one more candidate may be waited for.
func (d *decider) mayAwait(wait time.Duration) bool {
	most := d.p.Budget.Returns
	return wait == 0 || most == 0 || d.count(func(a *Attempt) bool { return a.Returned }) < most
}

// returns is when candidate i may be asked (again): when its rest allows, when
// its own hint has passed, and after the backoff that a repetition gets.
func (d *decider) returns(i int) (back time.Time, asked bool) {
	back = d.s.Candidates[i].Standing.Back(d.s.Now)
	for k := len(d.s.Attempts) - 1; k >= 0; k-- {
		if a := &d.s.Attempts[k]; a.Candidate == i && a.Fault != nil {
			if hint := d.hinted(i); hint.After(back) {
				return hint, true
			}
			wait, _ := d.pause(a.Fault, Rule{}, d.faulted(i)-1)
			if again := a.Ended.Add(wait); again.After(back) {
				back = again
			}
			return back, true
		}
	}
	return back, false
}

// restFault is why the first candidate rests, as a fault: nobody is asked.
func (d *decider) restFault() *ninelives.Fault {
	for i := range d.s.Candidates {
		c := &d.s.Candidates[i]
		if s := &c.Standing; !s.Healthy() && !c.OnRefusal {
			return &ninelives.Fault{Class: s.Class, Scope: s.Scope, Phase: ninelives.PhasePrepare, Candidate: c.Candidate.Name(),
				Message: "it is out of service: " + s.Reason, ResetAt: d.back(), Billed: ninelives.BilledNo}
		}
	}
	return &ninelives.Fault{Class: ninelives.ClassOverloaded, Phase: ninelives.PhasePrepare,
		Message: ErrFull.Error(), Billed: ninelives.BilledNo, Err: ErrFull}
}

// badness orders resting candidates: one that may come back by itself is
// better than one that only a change by its owner can clear, and any is better
// than one that has failed in this very call.
func (d *decider) badness(i int) int {
	n := 0
	if d.asked(i) {
		n = 3
	}
	switch s := &d.s.Candidates[i].Standing; {
	case s.Healthy():
		return n
	case s.Probe != ProbeNone:
		return n + 1
	}
	return n + 2
}

// better says that candidate i is less bad than candidate j. Of two that are alike
// it is the one whose rest ends first: it was not asked for longer, so that calls
// do not all ask the same one, over which its rest begins anew each time.
func (d *decider) better(i, j int) bool {
	if a, b := d.badness(i), d.badness(j); a != b {
		return a < b
	}
	return d.s.Candidates[i].Standing.Until.Before(d.s.Candidates[j].Standing.Until)
}

// leastBadAsked says that this call has asked the least bad one already.
func (d *decider) leastBadAsked() bool {
	for i := range d.s.Attempts {
		if d.s.Attempts[i].LeastBad {
			return true
		}
	}
	return false
}

// back is when the first candidate may answer again; zero if all could now.
func (d *decider) back() time.Time {
	var first time.Time
	for i := range d.s.Candidates {
		c := &d.s.Candidates[i]
		if c.OnRefusal {
			continue
		}
		back := c.Standing.Back(d.s.Now)
		if hint := d.hinted(i); hint.After(back) {
			back = hint
		}
		if !back.After(d.s.Now) {
			continue
		}
		if first.IsZero() || back.Before(first) {
			first = back
		}
	}
	return first
}

// hinted is when candidate i itself last asked to be left alone until.
func (d *decider) hinted(i int) time.Time {
	for k := len(d.s.Attempts) - 1; k >= 0; k-- {
		a := &d.s.Attempts[k]
		if a.Candidate != i || a.Fault == nil {
			continue
		}
		if a.Fault.RetryAfter > 0 {
			return a.Ended.Add(a.Fault.RetryAfter)
		}
		return a.Fault.ResetAt
	}
	return time.Time{}
}

// hedge adds the candidate that starts beside a silent one: the next in the
// chain that is free, for a plain request only.
func (d *decider) hedge(dec *Decision) {
	after := d.p.hedgeAfter(d.s.Candidates[dec.Candidate].Candidate, d.s.Facts)
	if after <= 0 || !d.p.Failover || dec.Change != (Change{}) || !d.roomForTwo(dec.Candidate) {
		return
	}
	i, probe, ok := d.choose(func(i int) bool {
		_, shortened := tight(&d.s.Candidates[i].Candidate, &d.s.Facts) // an answer to less is no gain
		return i != dec.Candidate && !d.asked(i) && !d.s.Candidates[i].OnRefusal && !(shortened && d.s.Facts.CanFit)
	})
	if ok && !probe {
		dec.Hedge, dec.HedgeAfter = i, after
	}
}

// asked says that the call has made an attempt at candidate i.
func (d *decider) asked(i int) bool {
	for k := range d.s.Attempts {
		if d.s.Attempts[k].Candidate == i {
			return true
		}
	}
	return false
}

// dead says that candidate i last failed in a way that no repetition helps, or
// gave an answer whose own steps are spent.
func (d *decider) dead(i int) bool {
	for k := len(d.s.Attempts) - 1; k >= 0; k-- {
		if a := &d.s.Attempts[k]; a.Candidate == i && a.Fault != nil {
			return !a.countsAsFault() || !mayAgain(a.Fault, d.p.rule(a.Fault))
		}
	}
	return false
}

// others counts the candidates besides the first one asked.
func (d *decider) others() int {
	n := 0
	for i := range d.s.Candidates {
		if d.asked(i) {
			n++
		}
	}
	return max(n-1, 0)
}

// roomForOther says that one more candidate may be asked.
func (d *decider) roomForOther() bool {
	if len(d.s.Attempts) == 0 {
		return true
	}
	return d.p.Failover && (d.p.Budget.Others == 0 || d.others() < d.p.Budget.Others)
}

// roomForTwo says that candidate i may be asked and another one beside it, even
// if both of them fail.
func (d *decider) roomForTwo(i int) bool {
	b := &d.p.Budget
	if b.Requests > 0 && d.requests()+2 > b.Requests || b.Faults > 0 && d.faults()+2 > b.Faults {
		return false
	}
	if b.Others == 0 {
		return true
	}
	n := d.others() + 1
	if !d.asked(i) && len(d.s.Attempts) > 0 {
		n++
	}
	return n <= b.Others
}

// candidatesWith counts the candidates that failed with the class.
func (d *decider) candidatesWith(class ninelives.Class) int {
	n := 0
	for i := range d.s.Candidates {
		for k := range d.s.Attempts {
			a := &d.s.Attempts[k]
			if a.Candidate == i && a.Fault != nil && a.Fault.Class == class {
				n++
				break
			}
		}
	}
	return n
}

// hasRefusalRoute says that refusals have a candidate of their own.
func (d *decider) hasRefusalRoute() bool {
	for i := range d.s.Candidates {
		if d.s.Candidates[i].OnRefusal {
			return true
		}
	}
	return false
}

// whyNext says why another candidate is asked.
func (d *decider) whyNext(a *Attempt, rule Rule, same, tried int) string {
	class := words(a.Fault.Class)
	switch {
	case rule.Next == NextLarger:
		return "the request needs a larger window"
	case rule.Next == NextOther:
		return "no repair is known for what this provider rejects"
	case same == 0:
		return "it is not asked again after " + class
	case tried > same:
		return "its retries are spent: " + class
	case d.hint(a.Fault) > 0:
		return "the wait that it asks for does not fit: " + class
	}
	return "it is out of service: " + class
}

// words writes a class for a human.
func words(c ninelives.Class) string { return strings.ReplaceAll(string(c), "_", " ") }
