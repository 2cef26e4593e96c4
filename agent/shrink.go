package agent

import (
	"context"
	"fmt"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Compact makes the context smaller now. It fails with ErrBusy during a turn.
func (s *Session) Compact(ctx context.Context) (Compaction, error) {
	t := &turn{s: s, a: s.a, set: s.a.settings, yield: func(Event, error) bool { return true }, stopAt: -1}
	t.ctx, t.cancel = context.WithCancelCause(For(ctx, s.ID(), 0))
	defer t.cancel(nil)
	free, err := s.occupy(nil)
	if err != nil {
		return Compaction{}, err
	}
	defer free()
	t.model, _ = s.a.current()
	c, err := t.shrink(t.ctx, WhyAsked, true)
	if err != nil {
		return Compaction{}, err
	}
	return c, t.commit()
}

// compact makes the context of the running turn smaller.
func (t *turn) compact(a Action) error {
	if err := t.commit(); err != nil {
		return err
	}
	ctx, cancel := t.bounded()
	defer cancel()
	c, err := t.shrink(ctx, a.Why, a.Force)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the turn was stopped, or its time is up: that comes next
		}
		return err
	}
	t.after = append(t.after, Compacted{c})
	return t.commit()
}

// shrink makes the view smaller and stages what was done.
func (t *turn) shrink(ctx context.Context, why string, force bool) (Compaction, error) {
	for i := range t.a.hooks {
		if h := &t.a.hooks[i]; h.BeforeCompaction != nil {
			t.guard(h, "BeforeCompaction", func() { h.BeforeCompaction(t.ctx, t.s.State(), why) })
		}
	}
	st := t.s.State()
	x := st.context()
	if x.Window == 0 {
		candidate, _ := ninelives.CandidateOf(t.model)
		x.Window, _ = t.set.Compaction.WindowOf(candidate, st.learnt)
	}
	var cost float64
	number := 0
	if st.open() {
		number = st.turn().Number
	}
	c, _, err := t.set.Compaction.Compact(ctx, x, why, force, func(ctx context.Context, messages []ninelives.Message, instruction string) (string, error) {
		text, spent, notices, err := t.summarise(ctx, messages, instruction)
		cost += spent
		if notices = worthKeeping(notices); len(notices) > 0 {
			t.s.stage(Healing{Turn: number, Purpose: PurposeCompact, Notices: notices})
		}
		return text, err
	})
	if err != nil {
		return c, err
	}
	c.Turn, c.Cost = number, cost
	t.s.stage(c)
	for i := range t.a.hooks {
		if h := &t.a.hooks[i]; h.AfterCompaction != nil {
			if err := t.commit(); err != nil {
				return c, err
			}
			t.guard(h, "AfterCompaction", func() { h.AfterCompaction(t.ctx, c) })
		}
	}
	return c, nil
}

// summarise asks the model of the turn for a summary.
func (t *turn) summarise(ctx context.Context, messages []ninelives.Message, instruction string) (text string, cost float64, notices []ninelives.Notice, err error) {
	req := &ninelives.Request{
		Messages: append([]ninelives.Message{ninelives.SystemText(instruction)}, messages...),
		Buffered: true,
	}
	for i := range t.a.hooks {
		if h := &t.a.hooks[i]; h.BeforeModel != nil {
			t.guard(h, "BeforeModel", func() { h.BeforeModel(ctx, PurposeCompact, req) })
		}
	}
	a, notices, err := t.summary(ctx, req)
	for i := range t.a.hooks {
		if h := &t.a.hooks[i]; h.AfterModel != nil {
			t.guard(h, "AfterModel", func() { h.AfterModel(ctx, a, err) })
		}
	}
	if err != nil {
		return "", a.Cost, notices, err
	}
	return a.Message.Text(), a.Cost, notices, nil
}

// summary makes the request. An answer that cannot be taken is an error, with
// what it cost.
func (t *turn) summary(ctx context.Context, req *ninelives.Request) (a Answer, notices []ninelives.Notice, err error) {
	_, a.Turn = Whose(ctx)
	a.Purpose = PurposeCompact
	began := time.Now()
	defer func() {
		a.Took = time.Since(began)
		if r := recover(); r != nil {
			err = caught("the model", r)
		}
	}()
	for ev, err := range t.model.Stream(ctx, req) {
		if err != nil {
			return a, notices, err
		}
		switch e := ev.(type) {
		case ninelives.Notice:
			notices = append(notices, e)
		case ninelives.Done:
			resp := e.Response
			if resp == nil {
				return a, notices, errNoResponse
			}
			a.Finish, a.Usage, a.Cost = resp.Finish, resp.Usage, priceOf(t.model, resp.Candidate).Cost(resp.Usage)
			a.Candidate, a.IsFallback, a.Attempts, a.Warnings = resp.Candidate, resp.IsFallback, resp.Attempts, resp.Warnings
			if f := assess(req, resp); f != nil {
				return a, notices, f
			}
			switch resp.Finish {
			case ninelives.FinishLength, ninelives.FinishRefusal:
				return a, notices, fmt.Errorf("the summary is not whole (%s)", resp.Finish)
			}
			a.Message = resp.Message
			return a, notices, nil
		}
	}
	return a, notices, errNoResponse
}
