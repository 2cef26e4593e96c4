package agent

import (
	"fmt"
	"time"
)

// rateWindow is the length of the sliding windows. Source: design 001, layer 3
// (ToolRateLimiter: 600/min in all, 200/min per tool).
const rateWindow = time.Minute

// rate makes a call wait that comes too early by no more than RateWait, and
// refuses one that would have to wait longer: the model can do something else.
func (g *GuardSettings) rate(t *Tally, name string, at time.Time) Ruling {
	limit, most := LimitRate, g.Rate
	wait := t.wait("", g.Rate, at)
	if w := t.wait(name, g.RatePerTool, at); w > wait {
		limit, most, wait = LimitOfRate(name), g.RatePerTool, w
	}
	if wait <= 0 {
		return Ruling{}
	}
	what := "tool invocations"
	if limit != LimitRate {
		what = plain(name) + " invocations"
	}
	seconds := (wait + time.Second - 1) / time.Second
	if wait > g.RateWait {
		return Ruling{Verdict: VerdictRefuse, Limit: limit, Message: fmt.Sprintf(
			"this call was not made: the rate limit of %d %s per minute is reached, and there is room again in %d s. Make fewer calls, or go on with something else.",
			most, what, seconds)}
	}
	return Ruling{Verdict: VerdictWait, Limit: limit, Wait: wait, Message: fmt.Sprintf(
		"waiting %d s: the rate limit of %d %s per minute is reached", seconds, most, what)}
}

// wait is how long a call must wait until fewer than most calls of the tool
// (of all tools where name is empty) lie within the window. Calls from the
// future, which a clock that was set back leaves, do not count.
func (t *Tally) wait(name string, most int, at time.Time) time.Duration {
	if most <= 0 || len(t.Started) < most {
		return 0
	}
	begin := at.Add(-rateWindow)
	for i, n := len(t.Started)-1, 0; i >= 0; i-- {
		c := t.Started[i]
		if name != "" && c.Name != name || c.At.After(at) || !c.At.After(begin) {
			continue
		}
		if n++; n == most {
			return c.At.Sub(begin)
		}
	}
	return 0
}
