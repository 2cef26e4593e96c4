package heal

import "time"

// probe is the one place for a call that tries a resting place.
type probe struct {
	taken bool
	last  time.Time // when the last one that proved something began
}

// due is when the next probe may begin: the first one well into the rest, and
// from then on one at a time as often as the policy allows, however much each
// failure lengthens the rest. So a place that has recovered is found out within
// Every, and not only after half of a rest that a long outage made long.
func (p probe) due(r rest, policy ProbePolicy) time.Time {
	at := r.from.Add(time.Duration(policy.From * float64(r.until.Sub(r.from))))
	if policy.Before > 0 {
		at = r.until.Add(-policy.Before)
	}
	if at.Before(r.from) {
		at = r.from
	}
	if next := p.last.Add(policy.Every); policy.Every > 0 && p.last.After(r.since) || at.Before(next) {
		at = next
	}
	if at.Before(r.hint) {
		at = r.hint
	}
	return at
}
