package heal

import (
	"context"
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
	// told is the text that was delivered or is held, kept under ModeContinue alone.
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
		if t.c.s.Mode == ModeContinue {
			t.told.WriteString(e.Text)
		}
		if !t.released && t.seam == nil && blank(e.Text) {
			return t.hold(ev, len(e.Text), t.c.h.policy.Hold.Bytes)
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
	default:
		return t.deliver(ev)
	}
}

// finish takes the answer, and what the seam still keeps back.
func (t *take) finish(resp *ninelives.Response) {
	t.resp = resp
	switch {
	case resp == nil:
		t.on(nil, ninelives.ErrNoEnd)
		return
	case t.seam == nil:
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
	return t.c.hand(ev, nil)
}

// silent says that the candidate has not given a token for so long that the
// call's deadline is no excuse.
func (t *take) silent(now time.Time) bool {
	return !t.alive && now.Sub(t.began) >= t.c.h.policy.Clocks.Dial
}

// blank says that text holds nothing to read.
func blank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }
