package heal

import (
	"context"
	"errors"
	"fmt"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// call is one call under way: it asks the decider, does what it says, records
// what came of it, and asks again.
type call struct {
	h      *Healed
	req    *ninelives.Request
	yield  func(ninelives.Event, error) bool
	parent context.Context
	ctx    context.Context // parent with the deadline
	cancel context.CancelFunc

	links []link
	s     Situation
	began time.Time

	// stopped: the consumer has gone, or has its end; nothing more is yielded.
	stopped bool
	// outside: the caller's own code is running, the consumer or the observer.
	outside bool
	// shown is the last attempt that the consumer has seen something of and
	// that is not voided; nil if there is none.
	shown *take
	// reasoned: the consumer holds reasoning that it cannot unsee.
	reasoned bool
	// last is the attempt that ended last, found what its answer was found to be.
	last  *take
	found verdict
	// kept is what there is of an answer that is being continued, keptBy the
	// attempt whose truncated answer it is; zero after a broken stream.
	kept   *kept
	keptBy int
	// heldBack is what ModeHold has not delivered of it yet.
	heldBack []ninelives.Event
	// fits are the forms of the request for candidates with a small window; nil
	// where none was needed yet.
	fits []fit
	// misfits counts the places that were refused in a row.
	misfits int
	judge   judge

	// The room that a healthy call needs, in one piece.
	candidates [2]Contender
	attempts   [1]Attempt
	first      room
}

// room is what one attempt needs.
type room struct {
	take    take
	req     ninelives.Request
	attempt ninelives.Attempt
}

func (h *Healed) newCall(ctx context.Context, req *ninelives.Request, yield func(ninelives.Event, error) bool) *call {
	c := &call{h: h, req: req, yield: yield, parent: ctx, ctx: ctx, began: time.Now(), links: h.links}
	if h.swaps {
		c.links = h.chain()
	}
	c.judge.req = req
	c.s.Facts = FactsOf(req)
	c.s.Lot = h.random()
	c.s.Degraded = len(h.substitutes) > 0
	c.s.Mode = h.mode
	if req.Output != nil && (c.s.Mode == ModeContinue || c.s.Mode == ModeFail) {
		c.s.Mode = ModeHold // nothing of an answer counts before its form is checked
	}
	c.s.Attempts = c.attempts[:0]
	c.s.Candidates = c.candidates[:]
	if len(c.links) > len(c.candidates) {
		c.s.Candidates = make([]Contender, len(c.links))
	}
	c.s.Candidates = c.s.Candidates[:len(c.links)]
	for i := range c.links {
		at := &c.s.Candidates[i]
		at.Candidate, at.OnRefusal = c.links[i].candidate, c.links[i].onRefusal
		h.lessons.apply(at)
	}
	limit := h.deadline
	if limit == 0 && !req.Background {
		if limit = h.policy.Streamed; req.Buffered {
			limit = h.policy.Buffered
		}
	}
	if limit != 0 {
		c.s.Deadline = c.began.Add(limit)
	}
	if d, ok := ctx.Deadline(); limit == 0 || ok && d.Before(c.s.Deadline) {
		c.s.Deadline = d // the caller's, with the caller's cause
		c.ctx, c.cancel = context.WithCancel(ctx)
	} else {
		c.ctx, c.cancel = context.WithDeadline(ctx, c.s.Deadline)
	}
	return c
}

// end leaves nothing behind.
func (c *call) end() { c.cancel() }

// run is the loop.
func (c *call) run() {
	plan := c.h.plan
	if c.h.swaps {
		plan = tell(c.h.planOf(c.links))
	}
	c.tell(plan)
	if err := c.judge.compile(); err != nil {
		c.fail(unsent(err, "correct the schema"))
		return
	}
	if !c.s.Mode.known() {
		c.fail(unsent(fmt.Errorf("there is no rescue mode %q", c.s.Mode), "use restart, continue, hold or fail"))
		return
	}
	c.see(c.began)
	c.probes()
	for first := true; !c.stopped; first = false {
		if errors.Is(c.parent.Err(), context.Canceled) {
			c.fail(c.canceled())
			return
		}
		if !first && (c.last == nil || c.last.fault != nil) {
			c.s.Now = time.Now() // a wait has passed, or the consumer has taken its time
		}
		c.s.Draw = c.h.random()
		d := Decide(c.h.policy, c.s)
		switch d.Do {
		case ActAccept:
			c.accept(d)
			return
		case ActDegrade:
			if c.degrade(d) {
				return
			}
			continue
		case ActSurface:
			c.surface(d)
			return
		}
		c.start(d)
	}
}

// unsent is the fault of a call that cannot be made as it was asked for.
func unsent(err error, hint string) *ninelives.Fault {
	return &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare,
		Message: err.Error(), Hint: "nothing was sent: " + hint, Billed: ninelives.BilledNo, Err: err}
}

// start makes the attempt that was decided on, as far as it gets.
func (c *call) start(d Decision) {
	if !c.fit(d) {
		return
	}
	c.discard(d)
	c.announce(d)
	if c.stopped || !c.sleep(d.Wait) {
		return
	}
	if d.Wait > 0 {
		if d.Reason == ReasonTurn {
			c.s.Candidates[d.Candidate].NoRetry = false // as far as is known: entering tells
		}
		c.look()
		if (d.Reason == ReasonRetry || d.Reason == ReasonTurn) && !c.s.Candidates[d.Candidate].Standing.Healthy() {
			return // other calls have given it up meanwhile: this one decides anew
		}
	}
	leave, err := c.enter(d.Candidate, d.Probe)
	if err != nil {
		c.misfit(d, err)
		return
	}
	c.misfits = 0
	if last := c.lastAttempt(); d.Reason == ReasonTurn && last != nil {
		c.notice(ninelives.Notice{Kind: ninelives.NoticeRetry, Attempt: c.requests() + 1, Candidate: c.links[d.Candidate].name,
			Fault: last.Fault, Text: "its turn to be asked again has come"})
	}
	if len(d.Repairs) > 0 {
		at := &c.s.Candidates[d.Candidate]
		at.Repairs = append(at.Repairs[:len(at.Repairs):len(at.Repairs)], d.Repairs...)
	}
	settled := false
	defer func() {
		if !settled { // the consumer panicked
			leave(Verdict{Kind: VerdictCanceled, Now: time.Now()})
		}
	}()
	c.tellFit(d.Candidate)
	t := c.take(d, c.requests()+1, leave)
	if d.HedgeAfter > 0 || c.links[d.Candidate].foreign {
		t = c.race(t, d)
	} else {
		t.run(c.ctx)
	}
	c.record(t)
	c.settle(t)
	settled = true
}

// settle gives the place of the attempt back, and tells its candidate's health
// what came of it. Whether the call gives the candidate up follows from what
// is decided next; the decision itself is made anew by run, which sees what
// the verdict has changed.
func (c *call) settle(t *take) {
	now := c.s.Attempts[len(c.s.Attempts)-1].Ended
	if c.stopped || t.fault != nil && t.fault.Class == ninelives.ClassCanceled {
		t.leave(Verdict{Kind: VerdictCanceled, Now: now})
		return
	}
	if t.well() {
		t.leave(Verdict{Kind: VerdictOK, Now: now})
		if t.fault != nil {
			c.look()
			c.tellFault(t, false)
		}
		return
	}
	if c.overdue() && !t.silent(now) {
		t.leave(Verdict{Kind: VerdictCanceled, Now: now})
		c.look()
		return
	}
	c.s.Now, c.s.Draw = now, c.h.random()
	d := Decide(c.h.policy, c.s)
	gaveUp := d.Do != ActStart || d.Candidate != t.index
	t.leave(Verdict{Kind: VerdictFailed, Fault: t.fault, GaveUp: gaveUp, Now: now})
	c.look()
	c.tellFault(t, gaveUp)
}

// look reads how all candidates stand now.
func (c *call) look() { c.see(time.Now()) }

func (c *call) see(now time.Time) {
	c.s.Now = now
	for i := range c.s.Candidates {
		at := &c.s.Candidates[i]
		at.Standing = c.h.health.Standing(at.Candidate, c.s.Now)
		at.NoRetry = at.NoRetry || len(c.s.Attempts) > 0 && !c.h.health.MayRetry(at.Candidate, c.s.Now)
	}
}

// enter takes a place at the candidate.
func (c *call) enter(i int, probe bool) (func(Verdict), error) {
	candidate := c.s.Candidates[i].Candidate
	for k := range c.s.Attempts {
		if a := &c.s.Attempts[k]; a.Candidate == i && a.countsAsFault() && len(a.Fault.Repairs) == 0 {
			return c.h.health.Retry(c.ctx, candidate, c.s.Now, probe)
		}
	}
	return c.h.health.Enter(c.ctx, candidate, c.s.Now, probe)
}

// misfit handles that there was no place: the next decision sees why.
func (c *call) misfit(d Decision, err error) {
	c.misfits++
	switch {
	case c.ctx.Err() != nil:
		return
	case errors.Is(err, ErrRetryBudget):
		c.s.Candidates[d.Candidate].NoRetry = true
		c.look()
		return
	case !errors.Is(err, ErrFull) && c.misfits < 3:
		c.look()
		return
	}
	began := c.s.Now
	c.look()
	c.misfits = 0
	a := Attempt{Number: c.requests() + 1, Candidate: d.Candidate, Unsent: true, Change: d.Change,
		Outcome: ninelives.OutcomeFaulted, Began: began, Ended: c.s.Now,
		Fault: &ninelives.Fault{Class: ninelives.ClassOverloaded, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare,
			Candidate: c.links[d.Candidate].name, Message: err.Error(), Billed: ninelives.BilledNo, Err: err}}
	c.s.Attempts = append(c.s.Attempts, a)
	c.notice(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: a.Number, Candidate: a.Fault.Candidate, Fault: a.Fault,
		Took: a.Ended.Sub(a.Began), Text: a.Fault.Error()})
}

// requests counts the attempts that went out.
func (c *call) requests() int {
	n := 0
	for i := range c.s.Attempts {
		if !c.s.Attempts[i].Unsent {
			n++
		}
	}
	return n
}

// sleep waits and reports whether the call is still wanted.
func (c *call) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// overdue says that the call's deadline, or its context's, has passed. The
// clock may be a moment ahead of the context.
func (c *call) overdue() bool {
	return errors.Is(c.ctx.Err(), context.DeadlineExceeded) || !c.s.Deadline.IsZero() && !c.s.Now.Before(c.s.Deadline)
}

// hand gives the consumer an event, or its error, unless it has gone.
func (c *call) hand(ev ninelives.Event, err error) bool {
	if c.stopped {
		return false
	}
	c.outside = true
	c.stopped = !c.yield(ev, err)
	c.outside = false
	return !c.stopped
}

// canceled is the fault of a call whose caller went away.
func (c *call) canceled() *ninelives.Fault {
	cause := context.Cause(c.parent)
	return &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "the caller cancelled the call", Billed: c.billed(),
		Err: errors.Join(context.Canceled, notCanceled(cause))}
}

// notCanceled leaves out a cause that says nothing new.
func notCanceled(cause error) error {
	if cause == context.Canceled {
		return nil
	}
	return cause
}

// billed says whether anything of this call may be paid for.
func (c *call) billed() ninelives.Billed {
	if c.requests() == 0 {
		return ninelives.BilledNo
	}
	return ninelives.BilledMaybe
}
