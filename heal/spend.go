package heal

import (
	"cmp"
	"math"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// spent says why no further request may be made; empty means that one may.
func (d *decider) spent(a *Attempt) string {
	b := &d.p.Budget
	switch {
	case !d.s.Deadline.IsZero() && !d.s.Now.Before(d.s.Deadline):
		return "the deadline has passed"
	case b.Requests > 0 && d.requests() >= b.Requests:
		return "the number of requests is spent"
	case b.Faults > 0 && d.faults() >= b.Faults:
		return "the number of failed attempts is spent"
	case b.Same > 0 && d.identical() >= b.Same:
		return "the same failure keeps coming"
	}
	if b.Tokens > 0 || b.Money > 0 {
		tokens, money := 0, 0.0
		for i := range d.s.Attempts {
			u := d.s.Attempts[i].Usage
			tokens += u.TotalInput() + u.TotalOutput()
			money += d.s.Candidates[d.s.Attempts[i].Candidate].Candidate.Price.Cost(u)
		}
		switch {
		case b.Tokens > 0 && tokens >= b.Tokens:
			return "the tokens of this call are spent"
		case b.Money > 0 && money >= b.Money:
			return "the money of this call is spent"
		}
	}
	return ""
}

// requests counts what went out on the wire.
func (d *decider) requests() int {
	n := 0
	for i := range d.s.Attempts {
		if !d.s.Attempts[i].Unsent {
			n++
		}
	}
	return n
}

// countsAsFault says that an attempt failed, as opposed to giving an answer
// whose content is not good enough: those have caps of their own.
func (a *Attempt) countsAsFault() bool {
	if a.Fault == nil {
		return false
	}
	switch a.Fault.Class {
	case ninelives.ClassEmpty, ninelives.ClassTruncated, ninelives.ClassInvalidOutput, ninelives.ClassRefusal:
		return false
	}
	return true
}

// faults counts the failed attempts of the call.
func (d *decider) faults() int {
	n := 0
	for i := range d.s.Attempts {
		if d.s.Attempts[i].countsAsFault() {
			n++
		}
	}
	return n
}

// faulted counts the failed attempts at candidate i, repaired requests left out.
func (d *decider) faulted(i int) int {
	n := 0
	for k := range d.s.Attempts {
		a := &d.s.Attempts[k]
		repaired := a.Fault != nil && a.Fault.Class == ninelives.ClassFormat && len(a.Fault.Repairs) > 0
		if a.Candidate == i && a.countsAsFault() && !repaired {
			n++
		}
	}
	return n
}

// worn says that candidate i has had all the attempts that one candidate gets.
func (d *decider) worn(i int) bool {
	return d.p.Budget.Tries > 0 && d.faulted(i) >= d.p.Budget.Tries
}

// identical counts the equal failures in a row at the candidate that failed
// last, whatever others did in between.
func (d *decider) identical() int {
	like := d.last()
	n := 0
	for i := len(d.s.Attempts) - 1; i >= 0; i-- {
		a := &d.s.Attempts[i]
		switch {
		case a.Lost || a.Candidate != like.Candidate:
			continue
		case a.Fault == nil || a.Fault.Class != like.Fault.Class || a.Fault.Status != like.Fault.Status || a.Fault.Code != like.Fault.Code:
			return n
		}
		n++
	}
	return n
}

// same is how many times the candidate may be asked again after this fault
// while another one could take over.
func (d *decider) same(a *Attempt, rule Rule) int {
	f := a.Fault
	switch {
	case f.Final || a.Probe || a.Unsent || f.ShouldRetry != nil && !*f.ShouldRetry:
		return 0
	case f.ShouldRetry != nil:
		return max(rule.Same, 1)
	}
	return rule.Same
}

// mayAgain says that the last or only candidate may be asked again after f.
func mayAgain(f *ninelives.Fault, rule Rule) bool {
	if f.ShouldRetry != nil {
		return *f.ShouldRetry && !f.Final
	}
	return rule.Again && !f.Final
}

// longer says that the provider's hint is longer than the policy sleeps on
// while another candidate could answer.
func (d *decider) longer(f *ninelives.Fault) bool {
	return d.p.MaxHint > 0 && d.hint(f) > d.p.MaxHint
}

// hint is the provider's own wait; zero if it gave none.
func (d *decider) hint(f *ninelives.Fault) time.Duration {
	if f.RetryAfter > 0 {
		return f.RetryAfter
	}
	if f.Class == ninelives.ClassRateLimit && f.ResetAt.After(d.s.Now) {
		return f.ResetAt.Sub(d.s.Now)
	}
	return 0
}

// pause is the wait before the candidate is asked again, its n-th retry from
// zero, and whether it fits the time that is left. A hint is never shortened;
// a backoff of our own is, so that time is left for the attempt itself.
func (d *decider) pause(f *ninelives.Fault, rule Rule, n int) (wait time.Duration, fits bool) {
	if hint := d.hint(f); hint > 0 {
		if !d.fits(hint) {
			return 0, false
		}
		if wait = hint + time.Duration(d.p.HintJitter*d.s.Draw*float64(hint)); !d.fits(wait) {
			wait = hint
		}
		return wait, true
	}
	if rule.AtOnce && n <= 0 && beforeAnyByte(f.Phase) {
		return 0, true
	}
	wait = d.p.Backoff.wait(n, d.s.Draw)
	if b := d.p.Budget.Wait; b > 0 {
		wait = min(wait, b)
	}
	if !d.s.Deadline.IsZero() {
		wait = min(wait, d.s.Deadline.Sub(d.s.Now)/2)
	}
	return wait, true
}

// turn is how long a retry waits before it looks again whether its candidate's
// retry budget has room, and whether it may: for as long as a single wait may be,
// or a place is queued for. So those who were refused together come back one after
// the other, and nobody is refused who could be answered.
func (d *decider) turn(a *Attempt, wait time.Duration) (time.Duration, bool) {
	waited := d.s.Now.Sub(a.Ended)
	if waited > 0 && d.hint(a.Fault) > 0 {
		wait = max(d.hint(a.Fault)-waited, d.p.Backoff.wait(0, d.s.Draw))
	}
	wait = max(wait, shortestTurn)
	most := cmp.Or(d.p.Budget.Wait, d.p.Limit.Wait)
	return wait, waited < most && (d.s.Deadline.IsZero() || d.s.Now.Add(wait).Before(d.s.Deadline))
}

// shortestTurn keeps the retries that wait from looking all the time.
const shortestTurn = 50 * time.Millisecond

// fits says that a wait ends before the deadline and is no longer than one may be.
func (d *decider) fits(wait time.Duration) bool {
	if b := d.p.Budget.Wait; b > 0 && wait > b {
		return false
	}
	return d.s.Deadline.IsZero() || d.s.Now.Add(wait).Before(d.s.Deadline)
}

// wait is the n-th backoff from zero, given a draw from [0, 1).
func (b Backoff) wait(n int, draw float64) time.Duration {
	n = max(n, 0)
	if len(b.Delays) > 0 {
		return b.Delays[min(n, len(b.Delays)-1)]
	}
	ceiling := float64(b.Cap)
	if grown := float64(b.Base) * math.Pow(2, float64(n)); grown < ceiling {
		ceiling = grown
	}
	return time.Duration(draw * ceiling)
}

// beforeAnyByte says that nothing had been answered in that phase.
func beforeAnyByte(p ninelives.Phase) bool {
	switch p {
	case ninelives.PhaseFirstToken, ninelives.PhaseStream, ninelives.PhaseAnswer:
		return false
	}
	return true
}
