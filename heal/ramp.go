package heal

import "time"

// rateSpan is how far back the load of a route is measured.
const rateSpan = 5 * time.Second

// rate is what was counted per second.
func (w window) rate(now time.Time) float64 {
	n, _ := w.sum(now, rateSpan)
	return float64(n) / rateSpan.Seconds()
}

// share is the part of the calls for a place that has come back at the given
// time (zero: it never was away): the steps take turns in equal parts of Over,
// the last one stays.
func (r Ramp) share(now, back time.Time, rate float64) float64 {
	n := len(r.Steps)
	if n == 0 || back.IsZero() || rate <= r.Above {
		return 1
	}
	since := now.Sub(back)
	if since < 0 || since >= r.Over {
		return r.Steps[n-1]
	}
	return r.Steps[int(since*time.Duration(n-1)/r.Over)]
}
