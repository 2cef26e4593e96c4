package heal

import (
	"context"
	"slices"
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
	// returned: it was waited for while all were out of service
	returned bool
	began    time.Time

	held      []ninelives.Event
	heldBytes int
	heldSince time.Time
	// heldEvents counts what is held but for frames, frameBytes the frames' bytes.
	heldEvents, frameBytes int
	// owing: the consumer puts off flushing until the next frame.
	owing bool

	// alive: a token of any kind has come that says something; shown: the
	// consumer has seen one; released: it has seen one that binds.
	alive    bool
	shown    bool
	released bool
	// called, declined: a piece of a tool call, or of a refusal after text, was
	// delivered: nobody can go on with that.
	called, declined bool
	// tail waits for the end of the answer under ModeContinue: a tool call,
	// which is delivered whole or not at all, and what follows it.
	tail []ninelives.Event
	// told is what came of the answer before the tail, under ModeContinue alone.
	told  []passage
	joint *joint // of a continuation
	resp  *ninelives.Response

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
		change: d.Change, probe: d.Probe, bad: d.Reason == ReasonLeastBad, returned: d.Reason == ReasonReturn, began: time.Now()}
	t.req = c.request(d, r, number)
	if d.Change.Prompt == PromptContinue && c.kept != nil {
		t.joint = c.kept.joint(c.s.Candidates[d.Candidate].Candidate.Prefill)
	}
	asking := c.links[d.Candidate].asking
	if number > 1 {
		asking.notice.Attempt = number
		asking = tell(asking.notice)
	}
	c.tell(asking)
	return t
}

// run makes the attempt to its end.
func (t *take) run(ctx context.Context) {
	if t.c.stopped {
		return
	}
	defer func() {
		if !t.c.outside { // the panic of a consumer passes through
			t.recovered(recover())
		}
	}()
	for ev, err := range t.model.Stream(ctx, t.req) {
		if !t.on(ev, err) {
			return
		}
	}
	t.close()
}

// recovered takes the panic of the model, if any, for a failed attempt. What
// has its end already keeps it.
func (t *take) recovered(panic any) {
	if panic != nil && t.resp == nil && t.fault == nil {
		t.on(nil, panicked(panic))
	}
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
	e, done := ev.(ninelives.Done)
	switch {
	case err != nil:
		t.fault = t.c.faultOf(err, t)
		return false
	case done:
		t.finish(e.Response)
		return false
	case t.c.ctx.Err() != nil: // the model does not care
		t.fault = t.c.faultOf(t.c.ctx.Err(), t)
		return false
	}
	switch e := ev.(type) {
	case nil:
		return true
	case ninelives.TextDelta:
		t.alive = t.alive || !blank(e.Text)
		if t.joint != nil {
			if !t.through(&e) {
				return t.fault == nil && !t.c.stopped
			}
			ev = e
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		return t.text(ev, e.Part, e.Text)
	case ninelives.ToolCallDelta:
		t.alive = true
		if t.joint != nil {
			if !t.part() {
				return false
			}
			e.Part = t.joint.place(e.Part, false)
			ev = e
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		if t.c.s.Mode == ModeContinue {
			t.tail = append(t.tail, ev)
			return true
		}
		t.called = true
		return t.release(ev, len(e.Arguments))
	case ninelives.ReasoningDelta:
		if e.Text == "" && e.Proof == nil {
			return true
		}
		t.alive = true
		if t.joint != nil {
			t.joint.leave(e.Part)
			return true // a continuation's own thinking is no part of the answer
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		return t.reason(ev, e.Part, e.Text)
	case ninelives.RefusalDelta:
		if t.joint != nil {
			if !t.part() {
				return false
			}
			e.Part = t.joint.place(e.Part, false)
			ev = e
		}
		if e.Attempt != t.number {
			e.Attempt = t.number
			ev = e
		}
		return t.refuse(ev, len(e.Text))
	case *ninelives.Frame:
		e.Attempt = t.number
		return t.frame(e)
	case ninelives.Notice:
		if e.Attempt != t.number || e.Candidate == "" {
			e.Attempt, e.Candidate = t.number, t.c.links[t.index].name
		}
		return t.c.notice(e)
	default:
		return t.deliver(ev)
	}
}

// finish takes the answer, and what the seam still keeps back.
func (t *take) finish(resp *ninelives.Response) {
	if t.resp = resp; resp == nil {
		t.on(nil, ninelives.ErrNoEnd)
		return
	}
	t.part()
}

// text takes a piece of the answer.
func (t *take) text(ev ninelives.Event, part int, s string) bool {
	if len(t.tail) > 0 {
		t.tail = append(t.tail, ev)
		return true
	}
	t.tell(part, false, s)
	if !t.released && t.joint == nil && blank(s) {
		return t.hold(ev, len(s), t.c.h.policy.Hold.Bytes)
	}
	return t.release(ev, len(s))
}

// reason takes reasoning: people watch it, but it does not bind. A consumer
// that cannot unsee gets that of one attempt only.
func (t *take) reason(ev ninelives.Event, part int, s string) bool {
	switch {
	case t.c.s.Mode == ModeHold:
		t.held = append(t.held, ev)
		return true
	case len(t.tail) > 0:
		if !t.c.reasoned {
			t.tail = append(t.tail, ev)
		}
		return true
	}
	t.tell(part, true, s)
	return t.c.reasoned || t.precede() && t.deliver(ev)
}

// precede delivers the frames that come before reasoning. Where there is more
// among what is held, its order binds.
func (t *take) precede() bool {
	if len(t.held) == 0 || t.released {
		return true
	}
	if t.heldEvents > 0 {
		return t.flush()
	}
	held := t.held
	t.held = nil
	for _, ev := range held {
		if !t.deliver(ev) {
			return false
		}
	}
	return true
}

// refuse takes a piece of a refusal, which is held back for a while: another
// candidate may do what this one would not.
func (t *take) refuse(ev ninelives.Event, bytes int) bool {
	switch {
	case len(t.tail) > 0:
		t.tail = append(t.tail, ev)
		return true
	case t.released:
		t.declined = true
		return t.deliver(ev)
	}
	return t.hold(ev, bytes, t.c.h.policy.Hold.Refusal)
}

// frame takes the provider's own bytes of what has come since the last frame.
// They go where that went: those of what is held back wait with it, and those
// of the end until the answer is accepted, unless all can be taken back. What
// carries nothing is held until something comes that does; it never releases by
// itself.
func (t *take) frame(f *ninelives.Frame) bool {
	switch {
	case t.c.s.Mode == ModeHold, !t.released && (!t.shown || t.heldEvents > 0) && !f.End:
		if n := t.c.h.policy.Hold.Bytes; n > 0 && t.frameBytes > n && t.heldEvents == 0 && t.c.s.Mode != ModeHold {
			return true // an endless row of heartbeats
		}
		t.frameBytes += len(f.Data)
		t.held = append(t.held, frameCopy(f))
	case f.End && t.c.s.Mode != ModeRestart || len(t.tail) > 0:
		t.tail = append(t.tail, frameCopy(f))
	default:
		t.owing = f.More
		return t.c.hand(f, nil)
	}
	if !t.owing || f.More {
		return true
	}
	t.owing = false // the one before promised another
	return t.c.hand(&ninelives.Frame{Attempt: t.number}, nil)
}

// frameCopy is a frame that outlives the provider's next one.
func frameCopy(f *ninelives.Frame) *ninelives.Frame {
	c := *f
	c.Data = append([]byte(nil), f.Data...)
	return &c
}

// hold keeps an event back that buys nothing by itself, within bounds.
func (t *take) hold(ev ninelives.Event, bytes, limit int) bool {
	now := time.Now()
	if t.heldEvents == 0 {
		t.heldSince = now
	}
	t.held = append(t.held, ev)
	t.heldEvents++
	t.heldBytes += bytes
	if t.c.s.Mode == ModeHold {
		return true
	}
	bound := &t.c.h.policy.Hold
	full := bound.Events > 0 && t.heldEvents > bound.Events || limit > 0 && t.heldBytes > limit
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
		if t.number != t.c.keptBy {
			t.c.heldBack = endless(t.c.heldBack)
		}
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

// endless is what was held of an answer that another one goes on with, which is
// not its end.
func endless(held []ninelives.Event) []ninelives.Event {
	return slices.DeleteFunc(held, func(ev ninelives.Event) bool {
		f, ok := ev.(*ninelives.Frame)
		return ok && f.End
	})
}

// complete delivers all that is still held back of an answer that is accepted.
func (t *take) complete() bool {
	t.held = append(t.held, t.tail...)
	return t.flush()
}

// deliver hands an event to the consumer.
func (t *take) deliver(ev ninelives.Event) bool {
	t.shown = true
	return t.c.hand(ev, nil)
}

// well says that the candidate did what it is there for: it came to the end of
// an answer, if not of one that the caller wanted.
func (t *take) well() bool {
	switch t.c.found.outcome {
	case ninelives.OutcomeTruncated, ninelives.OutcomeRefused, ninelives.OutcomeFiltered, ninelives.OutcomeInvalidOutput:
		return t.resp != nil
	}
	return t.fault == nil
}

// silent says that the candidate has not given a token for so long that the
// call's deadline is no excuse.
func (t *take) silent(now time.Time) bool {
	return !t.alive && now.Sub(t.began) >= t.c.h.policy.Clocks.Dial
}

// blank says that text holds nothing to read.
func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}
