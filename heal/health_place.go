package heal

import (
	"fmt"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The places of a candidate, from narrow to wide.
const (
	scopeModel = iota
	scopeKey
	scopeAccount
	scopeHost
	scopes
)

// placeID says what is shared: two candidates that have an id in common rest
// together there.
type placeID struct {
	scope                            ninelives.Scope
	route, provider, name, key, host string
}

func (h *Health) placeIDs(c ninelives.Candidate) [scopes]placeID {
	key := placeID{scope: ninelives.ScopeKey, provider: c.Provider, key: c.Key}
	if c.Key == "" { // servers without keys have none in common
		key.host = c.Host
	}
	account := placeID{scope: ninelives.ScopeAccount, provider: c.Provider, name: c.Account}
	if c.Account == "" {
		account.key, account.host = key.key, key.host
	}
	host := placeID{scope: ninelives.ScopeHost, host: c.Host}
	if c.Host == "" {
		host.provider = c.Provider
	}
	return [scopes]placeID{
		scopeModel:   {scope: ninelives.ScopeModel, route: h.route, provider: c.Provider, name: c.Model, key: c.Key, host: c.Host},
		scopeKey:     key,
		scopeAccount: account,
		scopeHost:    host,
	}
}

// place is the state machine of one model, key, account or host, which judge
// and clear move on.
type place struct {
	scope   ninelives.Scope
	rest    rest
	breaker breaker
	probe   probe
	// back is when a success last ended a rest.
	back time.Time
	// gen counts the rests, so that an attempt knows whether one began after it.
	gen uint64
}

// rest is why and until when a place is out of service. The zero value is a
// place that nothing is held against; one whose time has run out is kept until
// a success.
type rest struct {
	state  State // StateCooling or StateOpen
	class  ninelives.Class
	reason string
	since  time.Time // out of service since
	from   time.Time // start of the part that is running; probes count from here
	until  time.Time
	hint   time.Time // the provider asked not to be called before
	probe  ProbeKind
	streak int // doublings of the cooldown, plus one
	// half: time does not end it, it is half open from until on.
	half bool
}

// stay is what a place needs to know of an attempt that ends.
type stay struct {
	began time.Time
	probe bool // it held the place's probe place
	stale bool // the place began to rest after it had begun
}

func (r *rest) resting(now time.Time) bool { return r.state != "" && (r.half || now.Before(r.until)) }

func (p *place) state(now time.Time) State {
	switch {
	case !p.rest.resting(now):
		return StateHealthy
	case p.probe.taken:
		return StateProbing
	}
	return p.rest.state
}

// standing is the place's part in a candidate's standing; rate is the load of
// the route in calls per second.
func (p *place) standing(now time.Time, policy *Policy, rate float64) Standing {
	s := Standing{State: p.state(now)}
	if s.Healthy() {
		s.Share = policy.Ramp.share(now, p.returned(), rate)
		return s
	}
	s.Class, s.Reason, s.Scope = p.rest.class, p.rest.reason, p.scope
	s.Since, s.Until, s.Probe = p.rest.since, p.rest.until, p.rest.probe
	if s.Probe != ProbeNone {
		s.ProbeAt = p.probe.due(p.rest, policy.Probe)
	}
	return s
}

// returned is when the place last came back; zero if it never was away.
func (p *place) returned() time.Time {
	if p.rest.state != "" {
		return p.rest.until
	}
	return p.back
}

// judge takes in an attempt.
func (p *place) judge(v Verdict, policy *Policy, a stay) {
	if a.probe {
		p.probe.taken = false
	}
	if v.Kind == VerdictOK {
		p.succeed(v.Now, policy, a)
		return
	}
	fault := v.Fault
	if fault == nil {
		fault = &ninelives.Fault{Class: ninelives.ClassUnknown}
	}
	if v.Kind == VerdictCanceled || fault.Class == ninelives.ClassCanceled {
		return
	}
	if a.probe {
		p.probe.last = a.began
	}
	rule := policy.rule(fault)
	scope := fault.Scope
	if scope == "" {
		scope = rule.Scope
	}
	switch {
	case scope == p.scope:
		p.fail(v, fault, rule, policy, a)
	case p.scope == ninelives.ScopeHost && fault.Status != 0:
		p.succeed(v.Now, policy, a)
	}
}

// succeed closes a rest that the attempt was begun in.
func (p *place) succeed(now time.Time, policy *Policy, a stay) {
	if p.rest.state != "" && !a.stale {
		if p.back = p.returned(); p.rest.half || now.Before(p.back) {
			p.back = now
		}
		p.rest, p.breaker = rest{}, breaker{}
	}
	p.breaker = p.breaker.count(true, now, policy.Breaker)
}

// fail counts a fault of this place's own, and rests it where the policy says.
func (p *place) fail(v Verdict, fault *ninelives.Fault, rule Rule, policy *Policy, a stay) {
	news := !a.stale || !p.rest.resting(v.Now)
	again := !a.stale && p.rest.state == StateOpen
	if rule.Cooldown > 0 && (v.GaveUp || a.probe) {
		p.put(p.rest.cooldown(fault, rule, news, v.Now), v.Now)
	}
	if !rule.Breaks {
		return
	}
	p.breaker = p.breaker.count(false, v.Now, policy.Breaker)
	why := p.breaker.tripped(v.Now, policy.Breaker)
	if why == "" && again {
		why = "it failed again"
	}
	if news && why != "" {
		p.put(rest{
			state:  StateOpen,
			class:  fault.Class,
			reason: why + ", the last one " + reason(fault),
			until:  v.Now.Add(policy.Breaker.Open),
			probe:  rule.Probe,
			streak: p.rest.streak,
			half:   policy.Breaker.HalfOpen,
		}, v.Now)
	}
}

// cooldown is the rest that a fault asks for: for as long as the provider's
// hint, till its reset time, or as the rule says.
func (r rest) cooldown(fault *ninelives.Fault, rule Rule, news bool, now time.Time) rest {
	next := rest{state: StateCooling, class: fault.Class, reason: reason(fault), probe: rule.Probe, streak: max(r.streak, 1)}
	if news && rule.CooldownCap > 0 {
		next.streak = r.streak + 1
	}
	switch {
	case fault.RetryAfter > 0:
		next.until = now.Add(fault.RetryAfter)
		next.hint = next.until
	case fault.ResetAt.After(now):
		next.until = fault.ResetAt
		next.hint = next.until
	default:
		wait := rule.Cooldown
		for i := 1; i < next.streak && wait < rule.CooldownCap; i++ {
			wait *= 2
		}
		if rule.CooldownCap > 0 {
			wait = min(wait, max(rule.Cooldown, rule.CooldownCap))
		}
		next.until = now.Add(wait)
	}
	return next
}

// put begins a rest or joins it with the one that runs.
func (p *place) put(next rest, now time.Time) {
	next.since, next.from = now, now
	if next.probe == "" {
		next.probe = ProbeTraffic
	}
	p.rest = p.rest.join(next, now)
	p.gen++
}

// join is two rests at once: what ends last says why and how it is probed, no
// hint is forgotten, and an open circuit stays open.
func (r rest) join(next rest, now time.Time) rest {
	if !r.resting(now) {
		return next
	}
	last := next
	if !next.until.After(r.until) {
		last = r
	}
	if r.state == StateOpen || next.state == StateOpen {
		last.state, last.half = StateOpen, r.half || next.half
	}
	if r.hint.After(last.hint) {
		last.hint = r.hint
	}
	if next.hint.After(last.hint) {
		last.hint = next.hint
	}
	last.since, last.streak = r.since, next.streak
	return last
}

// clear forgets what is held against the place.
func (p *place) clear() {
	p.rest, p.breaker, p.back = rest{}, breaker{}, time.Time{}
}

// reason is a fault in half a line.
func reason(f *ninelives.Fault) string {
	s := string(f.Class)
	if f.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, f.Status)
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	return s
}
