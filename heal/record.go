package heal

import (
	"context"
	"errors"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// record judges the attempt and enters it into the history.
func (c *call) record(t *take) {
	a := Attempt{Number: t.number, Candidate: t.index, Began: t.began, Ended: time.Now(), Change: t.change,
		Probe: t.probe, LeastBad: t.bad, Returned: t.returned, Lost: t.lost}
	c.last, c.found = t, verdict{}
	switch {
	case t.lost:
	case t.fault != nil:
		c.found.outcome, c.found.fault = outcomeOf(t.fault), t.fault
		if p := t.fault.Partial; p != nil {
			a.Usage = p.Usage
			if c.found.outcome == ninelives.OutcomeRefused || c.found.outcome == ninelives.OutcomeTruncated {
				t.resp = p // the provider's own words, if as an error
				c.join(t)
			}
		}
	case t.resp != nil:
		a.Usage = t.resp.Usage
		c.found = c.judge.judge(t.resp, c.s.Candidates[t.index].Candidate)
		c.join(t)
	default: // the consumer stopped
		a.Lost = true
	}
	a.Outcome, a.Fault, t.fault = c.found.outcome, c.found.fault, c.found.fault
	if t.fault != nil && t.fault.Candidate == "" {
		t.fault.Candidate = c.links[t.index].name
	}
	a.Released = t.released
	a.Continuable, a.Acceptable = c.left(t, a.Outcome)
	switch {
	case a.Continuable && a.Outcome == ninelives.OutcomeTruncated:
		c.keep(t.resp)
		c.keptBy = t.number
		c.heldBack, t.held = append(endless(c.heldBack), t.held...), nil
	case a.Continuable && a.Released && c.s.Mode == ModeContinue:
		var next *kept
		if next, a.Continuable = c.kept.with(t.told, t.fault.Partial); a.Continuable {
			c.kept, c.keptBy = next, 0
		}
	}
	if t.shown {
		c.shown = t
		c.reasoned = c.s.Mode != ModeRestart
	}
	c.learn(t)
	c.s.Attempts = append(c.s.Attempts, a)
}

// join stitches an answer that continues another one to it.
func (c *call) join(t *take) {
	if t.joint == nil {
		return
	}
	switch c.found.outcome {
	case ninelives.OutcomeComplete, ninelives.OutcomeTruncated, ninelives.OutcomeRefused:
	default:
		return
	}
	whole, fault := c.kept.join(t.resp, t.joint.prefill)
	if fault != nil {
		fault.Partial = t.resp
		c.found = verdict{outcome: ninelives.OutcomeStreamBroken, fault: fault}
		return
	}
	t.resp = whole
}

// left says what a failed attempt leaves: text that can be gone on with, and
// an answer that can be given with its flag. Neither has a call in it: nobody
// can tell whether that is whole.
func (c *call) left(t *take, o ninelives.Outcome) (continuable, acceptable bool) {
	called := t.called || t.callsInTail()
	switch {
	case o == ninelives.OutcomeRefused:
		return false, t.resp != nil && !called && !callsTools(t.resp.Message.Parts)
	case o == ninelives.OutcomeTruncated && t.resp != nil:
		return !called && textOnly(t.resp), !called && c.req.Output == nil && readable(t.resp)
	case t.fault != nil && t.released:
		partial := t.fault.Partial
		return !t.called && !t.declined && (partial == nil || !opaque(partial.Message.Parts)), false
	}
	return false, false
}

// outcomeOf names the end of an attempt that failed.
func outcomeOf(f *ninelives.Fault) ninelives.Outcome {
	switch {
	case f.Class == ninelives.ClassStreamBroken:
		return ninelives.OutcomeStreamBroken
	case f.Class == ninelives.ClassTimeout && f.Phase == ninelives.PhaseStream:
		return ninelives.OutcomeStalled
	case f.Class == ninelives.ClassEmpty:
		return ninelives.OutcomeEmpty
	case f.Class == ninelives.ClassContentFilter:
		return ninelives.OutcomeFiltered
	case f.Class == ninelives.ClassRefusal:
		return ninelives.OutcomeRefused
	case f.Class == ninelives.ClassTruncated:
		return ninelives.OutcomeTruncated
	}
	return ninelives.OutcomeFaulted
}

// faultIn finds the fault in an error, or makes one of no known class.
func faultIn(err error) *ninelives.Fault {
	var f *ninelives.Fault
	if errors.As(err, &f) {
		return f
	}
	return &ninelives.Fault{Class: ninelives.ClassUnknown, Message: err.Error(), Err: err}
}

// faultOf makes the fault of an attempt's error: whatever a model returns, the
// decider sees a *Fault that names its candidate.
func (c *call) faultOf(err error, t *take) *ninelives.Fault {
	if errors.Is(c.parent.Err(), context.Canceled) {
		return c.canceled()
	}
	phase := ninelives.PhaseFirstToken
	if t.alive {
		phase = ninelives.PhaseStream
	}
	if f, ok := err.(*ninelives.Fault); ok && f == nil {
		err = errors.New("the model failed without saying why")
	}
	var f *ninelives.Fault
	ours := errors.As(err, &f) && f != nil
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || ours && f.Class == ninelives.ClassCanceled
	switch {
	case ended && c.overdue():
		made := &ninelives.Fault{Class: ninelives.ClassTimeout, Scope: ninelives.ScopeModel, Phase: phase,
			Message: "the deadline of the call has passed", Err: context.DeadlineExceeded}
		if ours {
			made.Partial, made.RequestID = f.Partial, f.RequestID
		}
		f = made
	case ours && f.Class == ninelives.ClassCanceled, !ours && errors.Is(err, context.Canceled):
		// Nobody here cancelled it: the provider did, or gave up waiting.
		f = &ninelives.Fault{Class: ninelives.ClassTimeout, Scope: ninelives.ScopeModel, Phase: phase,
			Message: "the provider cancelled the request", Err: err}
	case !ours:
		class := ninelives.ClassUnknown
		switch {
		case errors.Is(err, ninelives.ErrNoEnd):
			class, phase = ninelives.ClassStreamBroken, ninelives.PhaseStream
		case errors.Is(err, context.DeadlineExceeded):
			class = ninelives.ClassTimeout
		}
		f = &ninelives.Fault{Class: class, Phase: phase, Message: err.Error(), Err: err}
	}
	if f.Candidate == "" {
		named := *f
		named.Candidate = c.links[t.index].name
		f = &named
	}
	return f
}
