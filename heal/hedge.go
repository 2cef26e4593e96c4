package heal

import (
	"context"
	"runtime"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// racer is an attempt that runs in a goroutine of its own, so that another one
// can run beside it. It is a few events ahead at the most: a consumer that is
// slow slows it down.
type racer struct {
	*take
	cancel context.CancelFunc
	out    bool // it has lost, or has failed while another one was under way
}

// heat is what a racer hands over.
type heat struct {
	of  *racer
	ev  ninelives.Event
	err error
	end bool
}

// race makes an attempt beside which another candidate starts if no token
// comes in time. The first to give one wins; the other is cancelled, and
// entered into the history as lost. It returns the attempt that decides.
// Without a HedgeAfter it is a race of one, which ends with the call however
// long its model is silent.
func (c *call) race(first *take, d Decision) *take {
	// The events of a whole answer, so that it need not change goroutines for
	// each of them.
	heats := make(chan heat, 4)
	var running []*racer
	run := func(t *take) {
		ctx, cancel := context.WithCancel(c.ctx)
		r := &racer{take: t, cancel: cancel}
		running = append(running, r)
		go r.run(ctx, heats)
	}
	ended := false
	defer func() {
		for _, r := range running {
			r.cancel()
			if !ended { // the consumer panicked
				r.leave(Verdict{Kind: VerdictCanceled, Now: time.Now()})
			}
		}
	}()
	run(first)
	var silence <-chan time.Time
	if d.HedgeAfter > 0 {
		timer := time.NewTimer(d.HedgeAfter)
		defer timer.Stop()
		silence = timer.C
	}
	for {
		select {
		case <-c.ctx.Done():
			for _, r := range running {
				r.fault = c.faultOf(context.Cause(c.ctx), r.take)
			}
			ended = true
			return c.leadOf(running, running[0])
		case <-silence:
			if t := c.beside(first, d); t != nil {
				run(t)
			}
			if c.stopped {
				ended = true
				return c.leadOf(running, running[0])
			}
		case h := <-heats:
			if h.of.out {
				continue
			}
			more := false
			if h.end {
				h.of.close()
			} else {
				more = h.of.on(h.ev, h.err)
			}
			won := h.of.alive || h.of.released || h.of.resp != nil && c.good(h.of.take)
			if won || c.stopped {
				if silence = nil; len(running) > 1 {
					if won {
						c.settleSilent(running, h.of)
					}
					c.leadOf(running, h.of)
					running = []*racer{h.of}
				}
			}
			if more {
				continue
			}
			if len(running) == 1 {
				ended = true
				return h.of.take
			}
			// It failed, and the other one is still under way.
			running = without(running, h.of)
			h.of.out = true
			h.of.cancel()
			c.record(h.of.take)
			c.settleLost(h.of.take)
		}
	}
}

// run hands the events of the attempt over until nobody wants them.
func (r *racer) run(ctx context.Context, heats chan<- heat) {
	hand := func(h heat) bool {
		h.of = r
		select {
		case heats <- h:
			return true
		case <-ctx.Done():
			return false
		}
	}
	spread()
	if ctx.Err() != nil {
		return // lost before it began
	}
	defer func() {
		if p := recover(); p != nil {
			hand(heat{err: panicked(p)})
			return
		}
		hand(heat{end: true})
	}()
	for ev, err := range r.model.Stream(ctx, r.req) {
		if f, ok := ev.(*ninelives.Frame); ok {
			ev = frameCopy(f) // it is taken up while the next one is read
		}
		if _, done := ev.(ninelives.Done); !hand(heat{ev: ev, err: err}) || done || err != nil {
			return
		}
	}
}

// spread makes the stack of a new goroutine as large as an HTTP request needs
// it, while there is nothing on it: it would grow in steps else, and each one
// moves all that is there.
//
//go:noinline
func spread() {
	var room [7 << 10]byte
	runtime.KeepAlive(&room)
}

// beside prepares the second attempt of a race; nil if there is no place.
func (c *call) beside(first *take, d Decision) *take {
	c.s.Now = time.Now()
	leave, err := c.h.health.enter(c.ctx, c.s.Candidates[d.Hedge].Candidate, c.s.Now, entering{atOnce: true})
	if err != nil {
		return nil
	}
	begun := false
	defer func() {
		if !begun { // the consumer panicked
			leave(Verdict{Kind: VerdictCanceled, Now: time.Now()})
		}
	}()
	c.notice(ninelives.Notice{Kind: ninelives.NoticeHedge, Attempt: first.number + 1,
		Candidate: c.links[first.index].name, Next: c.links[d.Hedge].name, Took: time.Since(first.began),
		Text: "no token in " + short(d.HedgeAfter) + ": " + c.links[d.Hedge].name + " starts beside it"})
	t := c.take(Decision{Candidate: d.Hedge}, first.number+1, leave)
	begun = true
	return t
}

// leadOf ends the race in favour of one: the others have lost.
func (c *call) leadOf(running []*racer, winner *racer) *take {
	for _, r := range running {
		if r == winner {
			continue
		}
		r.out, r.lost, r.fault = true, true, nil
		r.cancel()
		c.record(r.take)
		r.leave(Verdict{Kind: VerdictCanceled, Now: time.Now()})
	}
	return winner.take
}

// settleSilent counts it against those who have lost a race by saying nothing:
// losing is no failure, but a silence of so long is, and without this every call
// would wait for it anew. Where the policy sets a soft limit to the silence, it
// rests the candidate like any other timeout. An answer in one piece is silent by
// its nature: there only the breaker counts it.
func (c *call) settleSilent(running []*racer, winner *racer) {
	now := time.Now()
	for _, r := range running {
		if r == winner || !r.silent(now) {
			continue
		}
		v := Verdict{Kind: VerdictFailed, Now: now, GaveUp: c.h.policy.Clocks.SoftFirst > 0 && !r.pieced()}
		v.Fault = &ninelives.Fault{Class: ninelives.ClassTimeout, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseFirstToken,
			Candidate: c.links[r.index].name, Message: "no token in " + short(now.Sub(r.began)) + ", and another candidate has answered"}
		r.leave(v)
		if c.look(); v.GaveUp {
			c.tellRest(r.take, v.Fault)
		}
	}
}

// pieced says that the candidate was asked for an answer in one piece.
func (t *take) pieced() bool {
	raw := t.req.Raw
	return raw != nil && !raw.Stream && raw.Protocol == t.c.links[t.index].candidate.Protocol
}

// settleLost gives the place of an attempt back that failed while another one
// was under way: the call has moved on.
func (c *call) settleLost(t *take) {
	v := Verdict{Kind: VerdictFailed, Fault: t.fault, GaveUp: true, Now: time.Now()}
	if t.well() {
		v = Verdict{Kind: VerdictOK, Now: v.Now}
	}
	t.leave(v)
	c.look()
	c.tellFault(t, true)
}

// good says that an answer is complete.
func (c *call) good(t *take) bool {
	return t.fault == nil && c.judge.judge(t.resp, c.s.Candidates[t.index].Candidate).outcome == ninelives.OutcomeComplete
}

func without(list []*racer, gone *racer) []*racer {
	var rest []*racer
	for _, r := range list {
		if r != gone {
			rest = append(rest, r)
		}
	}
	return rest
}
