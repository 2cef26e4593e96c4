package gateway

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// DefaultPolicy is how a route heals that says nothing else. It differs from
// the library's where a gateway's callers do: they cannot take back what they
// have seen, there are many of them, and their own limits of an answer are
// theirs.
func DefaultPolicy() heal.Policy {
	p := heal.DefaultPolicy()
	p.Mode = heal.ModeContinue
	p.Limit = heal.Limit{InFlight: 512, Queue: 512, Wait: 5 * time.Second}
	p.Buffered = p.Streamed
	// A client that hears nothing for longer asks anew, or gives up: better an
	// error that says when to come back.
	p.Budget.Wait, p.Budget.Returns = 20*time.Second, 1
	return ForClients(p)
}

// ForClients makes any policy one for a gateway's callers: "length" is passed
// on as it is.
func ForClients(p heal.Policy) heal.Policy {
	if !p.Content.ContinueAlways {
		p.Content.Continuations = 0
	}
	return p
}

// The bounds of an answer that comes in one piece: nothing is seen of it before
// it is done, so that silence alone says little.
const (
	wholeAttempt = 5 * time.Minute
	wholeHedge   = 30 * time.Second
)

// chain is a route made ready: a healed model for calls that want nothing of
// their own.
type chain struct {
	*Route
	policy heal.Policy
	// buffered is the policy of answers that nobody watches.
	buffered heal.Policy
	health   *heal.Health
	cache    *answerCache // nil if answers are not kept

	// streamed and whole are made for each protocol of clients.
	streamed, whole map[ninelives.Protocol]*heal.Healed
}

// ready makes the chains of the routes. All share one record of health, each
// with a view of its own. Kept answers of the chains before stay kept.
func ready(routes []Route, health *heal.Health, before []*chain) []*chain {
	chains := make([]*chain, len(routes))
	for i := range routes {
		r := &routes[i]
		c := &chain{Route: r, health: health.Route(r.Name), cache: newAnswerCache(r.Cache)}
		for _, old := range before {
			if old.Name == r.Name && old.Cache == r.Cache {
				c.cache = old.cache
			}
		}
		if r.Policy != nil {
			c.policy = ForClients(*r.Policy)
		} else {
			c.policy = DefaultPolicy()
		}
		if r.Continue {
			c.policy.Content.ContinueAlways = true
			if c.policy.Content.Continuations == 0 {
				c.policy.Content.Continuations = heal.DefaultPolicy().Content.Continuations
			}
		}
		if r.Mode != "" {
			c.policy.Mode = r.Mode
		}
		if c.policy.Mode == heal.ModeRestart {
			c.policy.Mode = heal.ModeContinue // nobody here can take anything back
		}
		if r.Hedge > 0 {
			c.policy.Hedge.After = r.Hedge
		}
		if r.Deadline > 0 {
			c.policy.Buffered, c.policy.Streamed = r.Deadline, r.Deadline
		}
		c.buffered = wholeOf(c.policy)
		models := c.models()
		if len(models) == 0 {
			chains[i] = c
			continue // nobody can be asked: calls are told so
		}
		c.streamed, c.whole = map[ninelives.Protocol]*heal.Healed{}, map[ninelives.Protocol]*heal.Healed{}
		for _, k := range []*codec{chat, responses, messages, generate} {
			spoken := speaking(models, k.protocol)
			c.streamed[k.protocol] = c.heal(&c.policy, spoken)
			c.whole[k.protocol] = c.heal(&c.buffered, spoken)
		}
		chains[i] = c
	}
	return chains
}

// wholeOf is a policy for answers that come in one piece.
func wholeOf(p heal.Policy) heal.Policy {
	p.Mode = heal.ModeRestart // what is not out yet can be taken back
	if p.Clocks.Attempt == 0 {
		p.Clocks.Attempt = wholeAttempt
	}
	if p.Hedge.After == 0 && p.Clocks.SoftFirst == 0 {
		p.Hedge.After = wholeHedge
	}
	return p
}

func (c *chain) models() []ninelives.Model {
	models := make([]ninelives.Model, len(c.Targets))
	for i, t := range c.Targets {
		models[i] = t.Model
	}
	return models
}

// speaking gives the models in a protocol, as far as their servers speak it:
// then nothing need be translated.
func speaking(models []ninelives.Model, p ninelives.Protocol) []ninelives.Model {
	spoken := make([]ninelives.Model, len(models))
	for i, m := range models {
		spoken[i] = m
		if many, ok := m.(interface {
			Speaking(ninelives.Protocol) ninelives.Model
		}); ok {
			if same := many.Speaking(p); same != nil {
				spoken[i] = same
			}
		}
	}
	return spoken
}

// heal puts the healing around models of this route.
func (c *chain) heal(p *heal.Policy, models []ninelives.Model, more ...heal.Option) *heal.Healed {
	opts := append([]heal.Option{
		heal.With(*p), heal.Fallback(models[1:]...), heal.SharedHealth(c.health),
		heal.Degraded(c.Route.Degraded...), heal.Named(c.Name),
	}, more...)
	return heal.New(models[0], opts...)
}
