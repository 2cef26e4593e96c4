package heal

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Option sets one thing of a healed model.
type Option func(*Healed)

// Fallback adds models to the end of the chain. They are asked in this order
// when those before them cannot answer. A healed model adds its whole chain.
func Fallback(models ...ninelives.Model) Option {
	return func(h *Healed) {
		for _, m := range models {
			h.links = append(h.links, link{model: m})
		}
	}
}

// RefusalRoute adds a model that is asked only when another one has refused,
// in place of the rest of the chain.
func RefusalRoute(m ninelives.Model) Option {
	return func(h *Healed) { h.links = append(h.links, link{model: m, onRefusal: true}) }
}

// Deadline bounds every call from its start to its end, whatever is done to
// heal it. The default is the policy's: 2 minutes for Generate, 10 minutes for
// a stream that is watched. An earlier deadline of the context wins.
func Deadline(d time.Duration) Option {
	return func(h *Healed) { h.deadline = d }
}

// With sets the policy; the default is DefaultPolicy.
func With(p Policy) Option {
	return func(h *Healed) { h.policy = &p }
}

// Rescue sets what happens to a stream that breaks after something of it was
// delivered; the default is the policy's, ModeRestart.
func Rescue(m Mode) Option {
	return func(h *Healed) { h.mode = m }
}

// Hedged starts the next candidate beside one that has given no token for so
// long; the first to answer wins and the other is cancelled (and paid for).
// The default is off.
func Hedged(after time.Duration) Option {
	return func(h *Healed) { h.hedge = after }
}

// Degraded says what is served when all candidates are out of service, in this
// order of preference. It is served at once while they rest.
func Degraded(substitutes ...Substitute) Option {
	return func(h *Healed) { h.substitutes = append(h.substitutes, substitutes...) }
}

// Observer is told of every healing step of every call, from whatever
// goroutine the call runs in; the same notices are in the stream.
func Observer(f func(ninelives.Notice)) Option {
	return func(h *Healed) { h.observe = f }
}

// SharedHealth lets several healed models share what is known of their
// candidates: how they stand, and what calls have taught about the requests
// that they take. The default is a record of its own.
func SharedHealth(health *Health) Option {
	return func(h *Healed) { h.health = health }
}

// Named sets the name of the chain; the default is the first model's.
func Named(name string) Option {
	return func(h *Healed) { h.name = name }
}

// Priority says who goes first where calls queue for a candidate: the higher.
// A step is worth half of Limit.Wait, so that nobody waits for ever behind those
// who come later. The default is 0; calls below that (batch work) never hold
// more than three quarters of a candidate's places, which leaves some to those
// who watch. It counts between -1000 and 1000.
func Priority(n int) Option {
	return func(h *Healed) { h.priority = max(-1000, min(n, 1000)) }
}
