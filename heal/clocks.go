package heal

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// slopeUnit is the number of input tokens that one slope stands for.
const slopeUnit = 10_000

// ClocksFor gives the clocks of one attempt at a candidate: a large prompt gets
// more time before the first token, a local server more of everything.
func (p *Policy) ClocksFor(c ninelives.Candidate, f Facts) ninelives.Clocks {
	k := &p.Clocks
	clocks := ninelives.Clocks{
		Dial:       k.Dial,
		Headers:    sloped(k.Headers, k.HeadersSlope, f.Input),
		FirstEvent: sloped(k.FirstEvent, k.FirstSlope, f.Input),
		Liveness:   k.Liveness,
		Progress:   k.Progress,
		MinRate:    k.MinRate,
		RateWindow: k.RateWindow,
		Total:      k.Attempt,
	}
	if c.LocalModel && k.LocalFactor > 0 {
		for _, clock := range [...]*time.Duration{&clocks.Dial, &clocks.Headers, &clocks.FirstEvent,
			&clocks.Liveness, &clocks.Progress, &clocks.Total} {
			*clock = times(*clock, k.LocalFactor)
		}
		clocks.MinRate /= k.LocalFactor
	}
	return clocks
}

// hedgeAfter is the silence after which another candidate starts beside c;
// zero means that none does.
func (p *Policy) hedgeAfter(c ninelives.Candidate, f Facts) time.Duration {
	soft := sloped(p.Clocks.SoftFirst, p.Clocks.FirstSlope, f.Input)
	if c.LocalModel && p.Clocks.LocalFactor > 0 {
		soft = times(soft, p.Clocks.LocalFactor)
	}
	if after := p.Hedge.After; after > 0 && (soft <= 0 || after < soft) {
		return after
	}
	return soft
}

// sloped adds the slope for so many input tokens to a clock that is set.
func sloped(clock, slope time.Duration, tokens int) time.Duration {
	if clock <= 0 {
		return clock
	}
	return clock + time.Duration(int64(slope)*int64(tokens)/slopeUnit)
}

// times multiplies a clock; "no limit" and "the default" stay what they are.
func times(clock time.Duration, factor float64) time.Duration {
	if clock <= 0 {
		return clock
	}
	return time.Duration(float64(clock) * factor)
}
