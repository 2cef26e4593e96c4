package heal

import (
	"cmp"
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Healed is a chain of models with healing around it, and a Model itself. It
// is safe for concurrent use.
type Healed struct {
	name        string
	links       []link
	swaps       bool // a model of the chain can be exchanged from call to call
	policy      *Policy
	mode        Mode
	deadline    time.Duration
	hedge       time.Duration
	health      *Health
	priority    int
	lessons     *lessons
	substitutes []Substitute
	observe     func(ninelives.Notice)
	random      func() float64
	plan        told
}

// link is one model of a chain with the candidate that it speaks for.
type link struct {
	model     ninelives.Model
	candidate ninelives.Candidate
	name      string
	onRefusal bool
	// foreign: it speaks for no candidate, so nobody knows whether it obeys its
	// context. It is kept where it cannot hold up a call.
	foreign bool
	// asking is what is told of a first attempt, made once for all calls.
	asking told
}

// New makes a model that heals what primary does wrong. Healed models among
// its models are taken apart: their chains join this one, under this one's
// policy, options and budget, so that attempts add and never multiply. A nil
// model is left out.
//
// A model that panics or breaks another rule of [ninelives.Model] has failed
// with that attempt. One that ignores its context is cut off at its next
// event; only where it speaks for no candidate ([ninelives.CandidateOf]) does
// it run apart, so that its silence cannot hold up the call either.
//
//	model := heal.New(claude, heal.Fallback(gpt), heal.Deadline(30*time.Second))
func New(primary ninelives.Model, opts ...Option) *Healed {
	h := &Healed{links: []link{{model: primary}}, random: rand.Float64}
	for _, opt := range opts {
		opt(h)
	}
	if h.policy == nil {
		p := DefaultPolicy()
		h.policy = &p
	}
	if h.hedge > 0 {
		p := *h.policy
		p.Hedge.After = h.hedge
		h.policy = &p
	}
	h.mode = cmp.Or(h.mode, h.policy.Mode, ModeRestart)
	if h.health == nil {
		h.health = NewHealth(h.policy)
	}
	h.health = h.health.at(h.priority)
	h.lessons = h.health.lessons
	if h.swaps = swaps(h.links); !h.swaps {
		h.links = h.chain()
		h.plan = tell(h.planOf(h.links))
	}
	return h
}

// swaps says that a model among the links can be exchanged.
func swaps(links []link) bool {
	return slices.ContainsFunc(links, func(l link) bool {
		switch m := l.model.(type) {
		case *Swap:
			return true
		case *Healed:
			return m.swaps
		}
		return false
	})
}

// chain flattens the links: healed models join with their own chains, what can
// be swapped is taken as it is now, and what is nil is left out.
func (h *Healed) chain() []link {
	var chain []link
	var add func(m ninelives.Model, onRefusal bool)
	add = func(m ninelives.Model, onRefusal bool) {
		switch m := m.(type) {
		case *Healed:
			for _, l := range m.links {
				add(l.model, onRefusal || l.onRefusal)
			}
			return
		case *Swap:
			add(m.Current(), onRefusal)
			return
		case nil:
			return
		}
		c, ok := ninelives.CandidateOf(m)
		if !ok {
			c = ninelives.Candidate{Model: m.Name()}
		}
		l := link{model: m, candidate: c, name: m.Name(), onRefusal: onRefusal, foreign: !ok}
		l.asking = tell(ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 1, Candidate: l.name, Text: "asking " + l.name})
		if !h.policy.Failover && !onRefusal && len(chain) > 0 {
			return
		}
		chain = append(chain, l)
	}
	for _, l := range h.links {
		add(l.model, l.onRefusal)
	}
	return chain
}

// Name is the chain's name, or the first model's.
func (h *Healed) Name() string {
	if h.name != "" {
		return h.name
	}
	for _, m := range h.Unwrap() {
		return m.Name()
	}
	return ""
}

// Unwrap gives the models of the chain in order.
func (h *Healed) Unwrap() []ninelives.Model {
	links := h.links
	if h.swaps {
		links = h.chain()
	}
	models := make([]ninelives.Model, len(links))
	for i := range links {
		models[i] = links[i].model
	}
	return models
}

// Health is the record that this chain goes by.
func (h *Healed) Health() *Health { return h.health }

// Stream makes one call and heals it. The error that ends it is a *Fault where
// the request itself is at fault, an *Exhausted where everything was tried,
// and wraps the context's error where the caller or the deadline ended it.
//
// Within another healing driver's attempt, behind a wrapper that hides it, it
// heals nothing and asks its first model: there is one budget per call.
func (h *Healed) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	if req.Attempt != nil {
		if models := h.Unwrap(); len(models) > 0 {
			return models[0].Stream(ctx, req)
		}
	}
	return func(yield func(ninelives.Event, error) bool) {
		c := h.newCall(ctx, req, yield)
		defer c.end()
		c.run()
	}
}

// planOf tells the candidates of a call.
func (h *Healed) planOf(links []link) ninelives.Notice {
	var b strings.Builder
	for _, l := range links {
		switch {
		case b.Len() == 0:
		case l.onRefusal:
			b.WriteString(", after a refusal ")
		default:
			b.WriteString(", then ")
		}
		b.WriteString(l.name)
	}
	b.WriteString(" (policy ")
	b.WriteString(h.policy.Name)
	b.WriteByte(')')
	return ninelives.Notice{Kind: ninelives.NoticePlan, Text: b.String()}
}
