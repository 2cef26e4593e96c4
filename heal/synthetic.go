package heal

import (
	"context"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// probes starts a synthetic probe, beside this call, of each candidate that is
// due for one: after a timeout nobody's request should wait to find out. A
// probe ends with the call at the latest; one that is cancelled proves nothing.
func (c *call) probes() {
	now := c.s.Now
	for i := range c.s.Candidates {
		at := &c.s.Candidates[i]
		if at.Standing.Healthy() || !c.h.health.NeedsSyntheticProbe(at.Candidate, now) {
			continue
		}
		leave, err := c.h.health.enter(c.ctx, at.Candidate, now, entering{probe: true, atOnce: true})
		if err != nil {
			continue // another call was quicker, or no place is free
		}
		c.notice(ninelives.Notice{Kind: ninelives.NoticeProbe, Candidate: c.links[i].name,
			Text: "a one-token request beside this call asks whether " + c.links[i].name + " is back"})
		go probeOnce(c.ctx, c.links[i].model, &ninelives.Request{
			Messages:  []ninelives.Message{ninelives.UserText("ping")},
			MaxTokens: 1,
			Attempt: &ninelives.Attempt{
				Clocks:  c.h.policy.ClocksFor(at.Candidate, Facts{}),
				Repairs: at.Repairs,
			},
		}, leave)
	}
}

// probeOnce makes the request. Any answer shows that the candidate is back,
// and so does any fault that is the request's own; Health knows which are.
func probeOnce(ctx context.Context, m ninelives.Model, req *ninelives.Request, leave func(Verdict)) {
	err := ctx.Err()
	if err == nil {
		err = ping(ctx, m, req)
	}
	v := Verdict{Kind: VerdictOK, Now: time.Now()}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		v.Kind = VerdictCanceled
	default:
		v.Kind, v.Fault, v.GaveUp = VerdictFailed, faultIn(err), true
	}
	leave(v)
}

// ping asks for an answer, whatever it is.
func ping(ctx context.Context, m ninelives.Model, req *ninelives.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	_, err = ninelives.Collect(m.Stream(ctx, req))
	return err
}
