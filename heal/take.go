package heal

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	ninelives "github.com/ninelives-ai/ninelives"
)

// take is one attempt under way. It holds back what buys nothing, numbers the
// events, and hands on to the consumer what the rescue mode allows.
type take struct {
	c      *call
	leave  func(Verdict)
	model  ninelives.Model
	req    *ninelives.Request
	number int
	index  int
	change Change
	probe  bool
	bad    bool // asked as the least bad
	began  time.Time

	held      []ninelives.Event
	heldBytes int
	heldSince time.Time

	// alive: a token of any kind has come; shown: the consumer has seen one;
	// released: it has seen one that binds.
	alive    bool
	shown    bool
	released bool
	// called: a piece of a tool call was delivered. calls are the pieces that
	// wait for the end of the answer under ModeContinue: whole or not at all.
	called bool
	calls  []ninelives.Event
	// told is the text that was delivered, kept under ModeContinue alone.
	told strings.Builder
	seam *seam
	resp *ninelives.Response

	fault *ninelives.Fault
	lost  bool
}

// take prepares an attempt.
func (c *call) take(d Decision, number int, leave func(Verdict)) *take {
	r := &c.first
	if number > 1 || r.take.c != nil {
		r = new(room)
	}
	t := &r.take
	*t = take{c: c, leave: leave, model: c.links[d.Candidate].model, number: number, index: d.Candidate,
		change: d.Change, probe: d.Probe, bad: d.Reason == ReasonLeastBad, began: time.Now()}
	t.req = c.request(d, r, number)
	if d.Change.Prompt == PromptContinue && c.kept != nil {
		t.seam = c.kept.seam(c.s.Candidates[d.Candidate].Candidate.Prefill)
	}
	c.notice(ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: t.number, Candidate: c.links[d.Candidate].name,
		Text: c.links[d.Candidate].asking})
	return t
}

// run makes the attempt to its end.
func (t *take) run(ctx context.Context) {
	if t.c.stopped {
		return
	}
	for ev, err := range t.model.Stream(ctx, t.req) {
		if !t.on(ev, err) {
			return
		}
	}
	t.close()
}

// close ends an attempt whose stream has ended: without a result and without
// an error that is a broken stream.
func (t *take) close() {
	if t.resp == nil && t.fault == nil && !t.c.stopped {
		t.on(nil, ninelives.ErrNoEnd)
	}
}

// on takes one event and reports whether more are wanted.
func (t *take) on(ev ninelives.Event, err error) bool {
	if err != nil {
		t.fault = t.c.faultOf(err, t)
		return false
	}
	switch e := ev.(type) {
	case ninelives.TextDelta:
		t.alive = true
		if t.seam != nil {
			if t.fault = t.seam.feed(&e); t.fault != nil || e.Text == "" {
				return t.fault == nil
			}
			ev = e
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		if !t.released && t.seam == nil && blank(e.Text) {
			return t.hold(ev, len(e.Text), t.c.h.policy.Hold.Bytes)
		}
		if t.c.s.Mode == ModeContinue {
			t.told.WriteString(e.Text)
		}
		return t.release(ev, len(e.Text))
	case ninelives.ToolCallDelta:
		t.alive = true
		if t.seam != nil {
			e.Part = t.seam.part(e.Part)
			ev = e
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		if t.c.s.Mode == ModeContinue {
			t.calls = append(t.calls, ev)
			return true
		}
		t.called = true
		return t.release(ev, len(e.Arguments))
	case ninelives.ReasoningDelta:
		t.alive = true
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		return t.reason(ev)
	case ninelives.RefusalDelta:
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		if t.released {
			return t.deliver(ev)
		}
		return t.hold(ev, len(e.Text), t.c.h.policy.Hold.Refusal)
	case ninelives.Notice:
		if e.Attempt != t.number || e.Candidate == "" {
			e.Attempt, e.Candidate = t.number, t.c.links[t.index].name
		}
		return t.c.notice(e)
	case ninelives.Done:
		t.finish(e.Response)
		return false
	default:
		return t.deliver(ev)
	}
}

// finish takes the answer, and what the seam still keeps back.
func (t *take) finish(resp *ninelives.Response) {
	t.resp = resp
	if t.seam == nil {
		return
	}
	rest, fault := t.seam.rest()
	if t.fault = fault; fault != nil || rest == "" {
		return
	}
	if t.c.s.Mode == ModeContinue {
		t.told.WriteString(rest)
	}
	t.release(ninelives.TextDelta{Attempt: t.number, Part: t.seam.first, Text: rest}, len(rest))
}

// hold keeps an event back that buys nothing by itself, within bounds.
func (t *take) hold(ev ninelives.Event, bytes, limit int) bool {
	now := time.Now()
	if len(t.held) == 0 {
		t.heldSince = now
	}
	t.held = append(t.held, ev)
	t.heldBytes += bytes
	if t.c.s.Mode == ModeHold {
		return true
	}
	bound := &t.c.h.policy.Hold
	full := bound.Events > 0 && len(t.held) > bound.Events || limit > 0 && t.heldBytes > limit
	if full || bound.For > 0 && now.Sub(t.heldSince) >= bound.For {
		return t.flush()
	}
	return true
}

// release delivers an event that binds, after what was held back.
func (t *take) release(ev ninelives.Event, bytes int) bool {
	if t.c.s.Mode == ModeHold {
		t.held = append(t.held, ev)
		t.heldBytes += bytes
		return true
	}
	if t.released {
		return t.deliver(ev)
	}
	return t.flush() && t.deliver(ev)
}

// flush delivers what was held back, of the answer that this one continues first.
func (t *take) flush() bool {
	held := t.held
	if t.c.heldBack != nil {
		held = append(t.c.heldBack, held...)
		t.c.heldBack = nil
	}
	t.held = nil
	t.released = true
	for _, ev := range held {
		if !t.deliver(ev) {
			return false
		}
	}
	return true
}

// complete delivers all that is still held back of an answer that is accepted.
func (t *take) complete() bool {
	t.held = append(t.held, t.calls...)
	return t.flush()
}

// reason delivers reasoning: people watch it, but it does not bind. A consumer
// that cannot unsee gets that of one attempt only, and a continuation's own
// thinking is no part of the answer.
func (t *take) reason(ev ninelives.Event) bool {
	switch {
	case t.c.s.Mode == ModeHold:
		if t.seam == nil {
			t.held = append(t.held, ev)
		}
		return true
	case t.seam != nil, t.c.reasoned:
		return true
	}
	return t.deliver(ev)
}

// deliver hands an event to the consumer.
func (t *take) deliver(ev ninelives.Event) bool {
	t.shown = true
	if !t.c.yield(ev, nil) {
		t.c.stopped = true
		return false
	}
	return true
}

// silent says that the candidate has not given a token for so long that the
// call's deadline is no excuse.
func (t *take) silent(now time.Time) bool {
	return !t.alive && now.Sub(t.began) >= t.c.h.policy.Clocks.Dial
}

// blank says that text holds nothing to read.
func blank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

// record judges the attempt and enters it into the history.
func (c *call) record(t *take) {
	a := Attempt{Number: t.number, Candidate: t.index, Began: t.began, Ended: time.Now(), Change: t.change,
		Probe: t.probe, LeastBad: t.bad, Lost: t.lost}
	c.last, c.found = t, verdict{}
	switch {
	case t.lost:
	case t.fault != nil:
		a.Outcome, a.Fault = outcomeOf(t.fault), t.fault
		if p := t.fault.Partial; p != nil {
			a.Usage = p.Usage
			if a.Outcome == ninelives.OutcomeRefused || a.Outcome == ninelives.OutcomeTruncated {
				t.resp = p // the provider's own words, if as an error
			}
		}
	case t.resp != nil:
		a.Usage = t.resp.Usage
		c.found = c.judge.judge(t.resp, c.s.Candidates[t.index].Candidate)
		c.join(t)
		if a.Outcome, t.fault = c.found.outcome, c.found.fault; t.fault != nil {
			t.fault.Candidate = c.links[t.index].name
			a.Fault = t.fault
		}
	default: // the consumer stopped
		a.Lost = true
	}
	a.Released = t.released
	a.Continuable, a.Acceptable = c.left(t, a.Outcome)
	switch {
	case a.Continuable && a.Outcome == ninelives.OutcomeTruncated:
		c.keep(t.resp)
		c.keptBy = t.number
		c.heldBack, t.held = append(c.heldBack, t.held...), nil
	case a.Continuable && a.Released && c.s.Mode == ModeContinue:
		c.keepTold(t)
		c.keptBy = 0
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
	if t.seam == nil {
		return
	}
	switch c.found.outcome {
	case ninelives.OutcomeComplete, ninelives.OutcomeTruncated, ninelives.OutcomeRefused:
	default:
		return
	}
	whole, fault := c.kept.join(t.resp, t.seam.prefill)
	if fault != nil {
		fault.Partial = t.resp
		c.found = verdict{outcome: ninelives.OutcomeStreamBroken, fault: fault}
		return
	}
	t.resp = whole
}

// left says what a failed attempt leaves: text that can be gone on with, and
// an answer that can be given with its flag.
func (c *call) left(t *take, o ninelives.Outcome) (continuable, acceptable bool) {
	switch {
	case o == ninelives.OutcomeRefused:
		return false, t.resp != nil
	case o == ninelives.OutcomeTruncated && t.resp != nil:
		text := textOnly(t.resp)
		return text, text && c.req.Output == nil
	case t.fault != nil && t.released:
		partial := t.fault.Partial
		return !t.called && (partial == nil || !opaque(partial.Message.Parts)), false
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
	var f *ninelives.Fault
	ours := errors.As(err, &f)
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
