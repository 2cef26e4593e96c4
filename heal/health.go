package heal

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Health is the record of how candidates stand. It is safe for concurrent use
// and may be shared by any number of healed models. docs/health.md has the
// picture.
//
// What rests is not a candidate but a place that it shares with others: its
// model (at this route, with this key, at this host), its key, its account,
// its host. A fault rests the place that its Scope names, or the one of the
// policy's rule where it names none; a fault of the request alone rests
// nothing. A candidate is healthy when all four of its places are.
//
// A place is in one of four states:
//
//	healthy  Calls go there. It is left when a call gives the candidate up for
//	         a class with a cooldown (to cooling), or when the breaker trips
//	         (to open).
//	cooling  It rests until the provider's hint, or its reset time, or for the
//	         rule's cooldown, which doubles up to the cap with every new
//	         failure. Cooling again while it cools may lengthen the rest and
//	         never shortens it.
//	open     So many failed attempts in a row, or such a share of those in the
//	         window, that the next one is most likely to fail as well. It is a
//	         rest like cooling, for Breaker.Open.
//	probing  Cooling or open, and exactly one call is trying it. Success
//	         closes: everything held against the place is forgotten. Failure
//	         rests it anew. A cancelled probe proves nothing: it gives its
//	         place back and leaves no trace, so the next call may probe at
//	         once. A failure that is the request's own (format, refusal, …)
//	         proves as little, but counts as the probe of its time.
//
// A rest ends by itself at Until: nothing runs for it, a place is simply
// healthy again from then on. What led to the rest is kept until a success, so
// one more failure opens a tripped breaker again, and doubles a cooldown.
//
// Probes are allowed from half of the rest on (ProbePolicy), never before the
// provider's hint, then one every ProbePolicy.Every, and only as traffic asks
// for them. After a timeout the probe is a synthetic one, beside the traffic.
// Rests after auth, billing and model_not_found are not probed.
//
// Only what happened after the rest began speaks about it: a success of an
// attempt that was under way before does not close it, and the failures of
// such attempts neither trip the breaker nor double the cooldown, else one
// outage would be counted as often as calls were under way. The policy says
// which faults count for the breaker; what a caller cancels, and faults of the
// request or of the answer's content, never do. An HTTP answer of any status
// shows that the host is up, unless the fault is the host's.
//
// A place that has come back takes its full share at once, except under load:
// above Ramp.Above calls per second on the route it gets Ramp.Steps of them
// one after the other over Ramp.Over.
//
// Beside the state, Health keeps each candidate's concurrency (Limit: so many
// attempts at a time, a short queue by priority) and its retry budget
// (RetryBudget).
//
// Every decision is a method on a small value that is given the time (rest,
// breaker, probe, ramp, retries); Health locks, applies them and tells
// OnChange. It starts no goroutine and reads the clock only to measure how
// long a call has queued.
type Health struct {
	*book
	route    string
	priority int // of the calls that come this way
}

// book is what all routes of one Health share.
type book struct {
	policy *Policy

	mu       sync.Mutex
	places   map[placeID]*place
	entries  map[entryID]*entry
	limits   map[entryID]*limit // by candidate, whatever the route
	rates    map[string]*window // attempts by route
	onChange func(HealthChange)

	// lessons is what calls have taught about the candidates' dialects and windows.
	lessons *lessons
}

// entry is one candidate of one route.
type entry struct {
	route     string
	candidate ninelives.Candidate
	places    [scopes]*place
	rate      *window // attempts of the route
	limit     *limit
	retries   retries
}

type entryID struct{ route, provider, model, key, account, host string }

// NewHealth makes an empty record that goes by the policy, which must not be
// changed afterwards; nil means DefaultPolicy.
func NewHealth(p *Policy) *Health {
	if p == nil {
		d := DefaultPolicy()
		p = &d
	}
	return &Health{book: &book{
		policy:  p,
		places:  map[placeID]*place{},
		entries: map[entryID]*entry{},
		limits:  map[entryID]*limit{},
		rates:   map[string]*window{},
		lessons: newLessons(),
	}}
}

// Route gives a view of the same record in which models stand apart from those
// of other routes, while keys, accounts, hosts and the candidates' concurrency
// are shared. The record made by NewHealth is the route "".
func (h *Health) Route(name string) *Health { return &Health{book: h.book, route: name} }

// at gives a view of the same route for calls of a priority.
func (h *Health) at(priority int) *Health {
	if h.priority == priority {
		return h
	}
	return &Health{book: h.book, route: h.route, priority: priority}
}

// OnChange sets the function that is told of every change, after the fact and
// without a lock held; calls may come from several goroutines at once.
func (h *Health) OnChange(f func(HealthChange)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onChange = f
}

// Standing tells how the candidate stands; it changes nothing.
func (h *Health) Standing(c ninelives.Candidate, now time.Time) Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.standing(c, now)
}

// NeedsSyntheticProbe says that a one-token call beside the traffic should
// find out now whether the candidate is back. Ask at every call of the route;
// make the probe with Enter and probe true.
func (h *Health) NeedsSyntheticProbe(c ninelives.Candidate, now time.Time) bool {
	s := h.Standing(c, now)
	return s.Probe == ProbeSynthetic && s.probeDue(now)
}

// MayRetry says whether the candidate's retry budget has room; it changes
// nothing. Retry takes from it.
func (h *Health) MayRetry(c ninelives.Candidate, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entries[h.entryID(c)]
	return e == nil || e.retries.room(now, h.policy.Retry)
}

// Enter takes a place at the candidate for the first attempt of a call there.
// It waits at most Limit.Wait, or until ctx ends, in a short queue. A probe
// also takes the one probe place (of a traffic or a synthetic probe alike); if
// the candidate has become healthy meanwhile it is an ordinary attempt.
//
// The caller must call leave exactly once; more calls do nothing. The error is
// ErrFull, ErrProbed, ErrResting, or the context's.
func (h *Health) Enter(ctx context.Context, c ninelives.Candidate, now time.Time, probe bool) (leave func(Verdict), err error) {
	return h.enter(ctx, c, now, entering{probe: probe})
}

// Retry is Enter for the second and later attempts of a call at a candidate:
// they count against its retry budget, and ErrRetryBudget says that it is spent.
func (h *Health) Retry(ctx context.Context, c ninelives.Candidate, now time.Time, probe bool) (leave func(Verdict), err error) {
	return h.enter(ctx, c, now, entering{probe: probe, retry: true})
}

// Clear forgets what is held against the candidate, its key, its account and
// its host: after a changed key or configuration.
func (h *Health) Clear(c ninelives.Candidate, now time.Time) {
	h.mu.Lock()
	var changes []HealthChange
	for _, id := range h.placeIDs(c) {
		if p := h.places[id]; p != nil {
			from := p.mark(now)
			p.clear()
			changes = h.changed(changes, &c, p, from, now)
		}
	}
	h.unlockAndTell(changes)
}

// Snapshot lists all candidates that were ever entered, by route and name.
func (h *Health) Snapshot(now time.Time) []CandidateHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := make([]CandidateHealth, 0, len(h.entries))
	for _, e := range h.entries {
		ok, failed := e.places[scopeModel].breaker.recent.sum(now, h.policy.Breaker.Window)
		rows = append(rows, CandidateHealth{
			Route:     e.route,
			Candidate: e.candidate,
			Standing:  h.standingAt(&e.places, e.limit, e.rate, now),
			InFlight:  e.limit.inFlight,
			Queued:    len(e.limit.queue),
			Calls:     ok + failed,
			Failures:  failed,
		})
	}
	slices.SortFunc(rows, func(a, b CandidateHealth) int {
		for _, d := range [...]int{
			strings.Compare(a.Route, b.Route),
			strings.Compare(a.Candidate.Name(), b.Candidate.Name()),
			strings.Compare(a.Candidate.Host, b.Candidate.Host),
			strings.Compare(a.Candidate.Key, b.Candidate.Key),
		} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return rows
}

func (h *Health) entryID(c ninelives.Candidate) entryID {
	return entryID{h.route, c.Provider, c.Model, c.Key, c.Account, c.Host}
}

// entry finds the candidate's entry or makes it.
func (h *Health) entry(c ninelives.Candidate) *entry {
	id := h.entryID(c)
	e := h.entries[id]
	if e == nil {
		e = &entry{route: h.route, candidate: c, rate: h.rate(h.route), limit: h.limit(id)}
		for i, id := range h.placeIDs(c) {
			p := h.places[id]
			if p == nil {
				p = &place{scope: id.scope}
				h.places[id] = p
			}
			e.places[i] = p
		}
		h.entries[id] = e
	}
	return e
}

// standing looks at places that may be known through other candidates only.
func (h *Health) standing(c ninelives.Candidate, now time.Time) Standing {
	if e := h.entries[h.entryID(c)]; e != nil {
		return h.standingAt(&e.places, e.limit, e.rate, now)
	}
	var places [scopes]*place
	for i, id := range h.placeIDs(c) {
		places[i] = h.places[id]
	}
	id := h.entryID(c)
	id.route = ""
	return h.standingAt(&places, h.limits[id], h.rate(h.route), now)
}

// limit is the concurrency of a candidate, which its routes share.
func (b *book) limit(id entryID) *limit {
	id.route = ""
	l := b.limits[id]
	if l == nil {
		l = &limit{}
		b.limits[id] = l
	}
	return l
}

// rate is the load of a route.
func (b *book) rate(route string) *window {
	w := b.rates[route]
	if w == nil {
		w = &window{}
		b.rates[route] = w
	}
	return w
}

func (h *Health) standingAt(places *[scopes]*place, l *limit, rate *window, now time.Time) Standing {
	s := Standing{State: StateHealthy, Share: 1}
	for _, p := range places {
		if p != nil && (p.rest.resting(now) || !p.returned().IsZero()) {
			s = s.and(p.standing(now, h.policy, rate.rate(now)))
		}
	}
	s.Full = l != nil && l.full(h.policy.Limit, h.priority)
	return s
}

// healthy is the one question of a Standing that is asked on every entering.
func (e *entry) healthy(now time.Time) bool {
	for _, p := range e.places {
		if p.rest.resting(now) {
			return false
		}
	}
	return true
}

// mark is what a place is like for those who are told of changes.
type mark struct {
	state State
	until time.Time
}

func (p *place) mark(now time.Time) mark { return mark{p.state(now), p.rest.until} }

// changed notes what has become of a place, if anything has.
func (b *book) changed(changes []HealthChange, c *ninelives.Candidate, p *place, from mark, now time.Time) []HealthChange {
	if b.onChange == nil {
		return changes
	}
	to := p.mark(now)
	if from.state == to.state && (from.until.Equal(to.until) || to.state == StateHealthy) {
		return changes
	}
	change := HealthChange{Now: now, Candidate: *c, Scope: p.scope, From: from.state, To: to.state}
	if to.state != StateHealthy {
		change.Class, change.Reason, change.Until = p.rest.class, p.rest.reason, p.rest.until
	}
	return append(changes, change)
}

// unlockAndTell ends the critical section and reports what changed in it.
func (b *book) unlockAndTell(changes []HealthChange) {
	tell := b.onChange
	b.mu.Unlock()
	for _, c := range changes {
		tell(c)
	}
}
