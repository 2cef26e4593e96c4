package heal

import "time"

// probe is the one place for a call that tries a resting place.
type probe struct {
	taken bool
	last  time.Time // when the last one that proved something began
}

// due is when the next probe may begin.
func (p probe) due(r rest, policy ProbePolicy) time.Time {
	at := r.from.Add(time.Duration(policy.From * float64(r.until.Sub(r.from))))
	if policy.Before > 0 {
		at = r.until.Add(-policy.Before)
	}
	if at.Before(r.from) {
		at = r.from
	}
	if at.Before(r.hint) {
		at = r.hint
	}
	if next := p.last.Add(policy.Every); !p.last.IsZero() && at.Before(next) {
		at = next
	}
	return at
}
