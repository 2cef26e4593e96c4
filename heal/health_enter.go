package heal

import (
	"context"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// pass is one attempt's stay at a candidate.
type pass struct {
	h     *Health
	entry *entry
	began time.Time
	retry bool
	// gens tell at leaving whether a place began to rest after the entering.
	gens [scopes]uint64
	// probes are the places whose probe place this attempt holds.
	probes [scopes]bool
	left   bool
}

// entering says how a place is taken.
type entering struct {
	probe  bool
	retry  bool
	atOnce bool // never in the queue
}

func (h *Health) enter(ctx context.Context, c ninelives.Candidate, now time.Time, how entering) (func(Verdict), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	e := h.entry(c)
	*e.rate = e.rate.add(now, rateSpan, 1, 0)
	if how.retry && !e.retries.room(now, h.policy.Retry) {
		h.mu.Unlock()
		return nil, ErrRetryBudget
	}
	healthy := e.healthy(now)
	pass := &pass{h: h, entry: e, retry: how.retry}
	var changes []HealthChange
	if how.probe && !healthy {
		if s := h.standingAt(&e.places, nil, e.rate, now); s.Probe == ProbeNone || !s.probeDue(now) {
			h.mu.Unlock()
			return nil, ErrProbed
		}
		changes = pass.takeProbes(now)
	}
	if !e.limit.take(h.policy.Limit, h.priority) {
		var w *waiter
		if !how.atOnce {
			w = e.limit.line(h.policy.Limit, h.priority, now)
		}
		if w == nil {
			pass.giveProbesBack(now)
			h.mu.Unlock()
			return nil, ErrFull
		}
		h.unlockAndTell(changes)
		waited, err := w.wait(ctx, h.policy.Limit.Wait)
		h.mu.Lock()
		now, changes = now.Add(waited), nil
		switch { // what held when the wait began may not hold any more
		case err != nil:
		case healthy && !e.healthy(now):
			err = ErrResting
		case how.retry && !e.retries.room(now, h.policy.Retry):
			err = ErrRetryBudget
		}
		if err != nil {
			e.limit.abandon(h.policy.Limit, w)
			h.unlockAndTell(pass.giveProbesBack(now))
			return nil, err
		}
	}
	pass.began = now
	for i, p := range e.places {
		pass.gens[i] = p.gen
	}
	e.retries = e.retries.enter(now, h.policy.Retry, how.retry)
	h.unlockAndTell(changes)
	return pass.leave, nil
}

// leave gives the place back and draws the conclusions.
func (p *pass) leave(v Verdict) {
	h, e := p.h, p.entry
	h.mu.Lock()
	if p.left {
		h.mu.Unlock()
		return
	}
	p.left = true
	e.limit.give(h.policy.Limit, h.priority)
	e.retries = e.retries.leave(p.retry)
	var changes []HealthChange
	for i, at := range e.places {
		from := at.mark(v.Now)
		at.judge(v, h.policy, stay{
			began: p.began,
			probe: p.probes[i],
			stale: p.gens[i] != at.gen,
		})
		changes = h.changed(changes, &e.candidate, at, from, v.Now)
	}
	h.unlockAndTell(changes)
}

func (p *pass) takeProbes(now time.Time) (changes []HealthChange) {
	for i, at := range p.entry.places {
		if at.rest.resting(now) {
			p.probes[i] = true
			from := at.mark(now)
			at.probe.taken = true
			changes = p.h.changed(changes, &p.entry.candidate, at, from, now)
		}
	}
	return changes
}

func (p *pass) giveProbesBack(now time.Time) (changes []HealthChange) {
	for i, at := range p.entry.places {
		if p.probes[i] {
			from := at.mark(now)
			at.probe.taken = false
			changes = p.h.changed(changes, &p.entry.candidate, at, from, now)
		}
	}
	return changes
}
