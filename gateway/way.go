package gateway

import (
	"math/rand/v2"
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// way is where a call goes: the route's chain, in the order for this call, with
// what the call asks for.
type way struct {
	*chain
	models []ninelives.Model
	// plain says that the chain does as it is.
	plain    bool
	priority int
	sticky   stickyKey
}

// way finds where a call goes. The error is a *refused.
func (s *Server) way(p *plan, who *client, k *call) (*way, error) {
	ch, ok := find(p.Routes, k.head.Model, k.asks.Route)
	if !ok {
		return nil, noRoute(p.Routes, k.head.Model, k.asks.Route)
	}
	var opened ninelives.Model
	if ch.open() {
		if p.Open != nil {
			opened, _ = p.Open(ch.given) // what cannot be opened is nobody's: the default route takes it
		}
		if opened == nil {
			ch = ch.closed()
		}
	}
	if !who.mayUse(ch) {
		return nil, forbidden(ch)
	}
	c := p.chains[slices.IndexFunc(p.chains, func(c *chain) bool { return c.Name == ch.route.Name })]
	if len(c.Targets) == 0 && opened == nil {
		return nil, &refused{Trouble: troubleBusy, Text: "The route " + shownName(c.Name) + " has no models. Look at the gateway's configuration."}
	}
	w := &way{chain: c, plain: true, priority: c.Priority + who.Priority + k.asks.Priority}
	w.sticky = stickyKey{client: who.Name, route: c.Name, session: k.asks.Session}
	s.arrange(w, ch, k)
	if opened != nil && !who.mayFallBack(ch) {
		w.models = nil
	}
	if opened != nil {
		w.models, w.plain = append([]ninelives.Model{opened}, w.models...), false
	}
	if len(k.asks.Fallbacks) > 0 {
		w.models, w.plain = w.models[:1:1], false
		for _, name := range k.asks.Fallbacks {
			m, err := s.fallback(p, who, name)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(w.models, m) {
				w.models = append(w.models, m)
			}
		}
	}
	if w.priority != 0 || k.asks.wants() {
		w.plain = false
	}
	return w, nil
}

// arrange puts the targets of the route in the order for this call.
func (s *Server) arrange(w *way, ch choice, k *call) {
	r := w.Route
	now := time.Now()
	a := asking{named: ch.first, session: k.asks.Session, last: -1}
	if r.Sticky {
		a.last = s.sticky.last(w.sticky, r.Targets, now)
	}
	if len(r.Targets) < 2 || a.named <= 0 && a.last <= 0 && (r.Order == OrderListed || r.Order == "") {
		w.models = w.chain.models()
		return
	}
	a.lot = rand.Float64()
	a.size = k.size()
	seq := order(r, statsOf(r.Targets, w.health, s.latency, now), a)
	w.models = make([]ninelives.Model, len(seq))
	for i, t := range seq {
		w.models[i] = r.Targets[t].Model
		w.plain = w.plain && i == t
	}
}

// fallback is the model that a client names in place of the route's own.
func (s *Server) fallback(p *plan, who *client, name string) (ninelives.Model, error) {
	ch, ok := find(p.Routes, name, "")
	if !ok {
		return nil, noRoute(p.Routes, name, "")
	}
	if ch.open() {
		if p.Open != nil && who.mayUse(ch) {
			if m, err := p.Open(name); err == nil {
				return m, nil
			}
		}
		return nil, &refused{Trouble: troubleNoModel, Param: "x-ninelives-fallbacks", Text: "There is no model " + shownName(name) + " to fall back to. GET /v1/models lists those there are."}
	}
	if !who.mayUse(ch) {
		return nil, forbidden(ch)
	}
	if len(ch.route.Targets) == 0 {
		return nil, noRoute(p.Routes, name, "")
	}
	return ch.route.Targets[max(ch.first, 0)].Model, nil
}

// wants says that the call is to be healed in another way than its route says.
func (c *control) wants() bool {
	return c.Deadline > 0 || c.FirstToken > 0 || c.Idle > 0 || c.Mode != "" || c.Attempts > 0
}

// change makes a policy that of the call.
func (c *control) change(p *heal.Policy, stream bool) {
	if c.Deadline > 0 {
		p.Buffered, p.Streamed = c.Deadline, c.Deadline
	}
	if c.FirstToken > 0 {
		p.Clocks.FirstEvent, p.Clocks.FirstSlope = c.FirstToken, 0
		p.Clocks.Headers, p.Clocks.HeadersSlope = c.FirstToken, 0
	}
	if c.Idle > 0 {
		p.Clocks.Liveness, p.Clocks.Progress = c.Idle, c.Idle
	}
	if c.Mode != "" && stream {
		p.Mode = c.Mode
	}
	if c.Attempts > 0 {
		p.Budget.Requests = c.Attempts
	}
}

// model is who is asked.
func (k *call) model() *heal.Healed {
	c := k.way.chain
	p := &c.policy
	if !k.head.Stream {
		p = &c.buffered
	}
	switch {
	case k.way.plain && k.head.Stream:
		return c.streamed[k.codec.protocol]
	case k.way.plain:
		return c.whole[k.codec.protocol]
	}
	changed := *p
	k.asks.change(&changed, k.head.Stream)
	return c.heal(&changed, speaking(k.way.models, k.codec.protocol), heal.Priority(k.way.priority))
}
