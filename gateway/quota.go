package gateway

import (
	"fmt"
	"math"
	"strconv"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// estimate is what a call may come to, before it is made.
type estimate struct {
	input, output int // tokens
	money         float64
}

// defaultOutput is how many tokens an answer is taken to have whose caller has
// set no limit. Most have fewer; what was too much is given back at the end.
const defaultOutput = 1024

// estimateOf is the estimate of a request: its input as heal counts it
// (heal.FactsOf), and an answer as long as the caller allows. Its money is that
// of the dearest of the prices that may be asked.
func estimateOf(input, maxTokens int, prices ...ninelives.Price) estimate {
	e := estimate{input: max(input, 0), output: maxTokens}
	if maxTokens <= 0 {
		e.output = defaultOutput
	}
	for _, p := range prices {
		e.money = max(e.money, e.cost(p))
	}
	return e
}

func (e estimate) tokens() int { return e.input + e.output }

// cost is what so many tokens cost.
func (e estimate) cost(p ninelives.Price) float64 {
	return (float64(e.input)*p.Input + float64(e.output)*p.Output) / 1e6
}

// spend is what a call has come to: the sum over all its attempts, failed and
// abandoned ones included.
type spend struct {
	money  float64 // US dollars
	tokens int     // input and output
	// estimated says that a part of it was not reported but reckoned.
	estimated bool
}

// limitKind says which limit of a key stands in the way.
type limitKind string

const (
	limitNone       limitKind = ""
	limitConcurrent limitKind = "concurrent"
	limitRequests   limitKind = "requests"
	limitTokens     limitKind = "tokens"
	limitMoney      limitKind = "budget_money"
	limitSpent      limitKind = "budget_tokens"
)

// verdict says whether a call may be made.
type verdict struct {
	limit limitKind
	// wait is when asking again helps, for the limits of a minute and of calls
	// at a time.
	wait time.Duration
	// until is when the period of a budget ends; zero if it never does.
	until time.Time
	// left is what is left of a budget, in dollars or tokens.
	left float64
}

// usage is what one key has used: the state that admit decides on. The zero
// value is a key that was never used.
type usage struct {
	// seconds are the requests and tokens of the last minute, the oldest in front.
	seconds    []second
	concurrent int
	// period begins when the spending of a budget counts from.
	period time.Time
	spent  spend
	// guessed is the part of spent.money that was reckoned.
	guessed float64
	// held is what the calls under way may come to.
	held estimateSum
}

type estimateSum struct {
	money  float64
	tokens int
}

// second is one second of the minute.
type second struct {
	at       int64 // Unix
	requests int
	tokens   int
}

// reservation is the place of one call in the counts.
type reservation struct {
	at     int64
	tokens int
	money  float64
}

// minute is for how many seconds one counts: 60 and itself, so that no 60
// seconds, wherever they begin, hold more than the limit.
const minute = 61

// admit decides whether a call may be made. It changes nothing.
//
// A call that alone comes to more than the tokens of a minute is let through
// when nothing else was in that minute: its estimate is the most that it can
// be, and it would else never be possible. A budget is a promise, so there the
// estimate binds: what is reserved and spent is never more than the budget.
func admit(u *usage, k *Key, e estimate, now time.Time) verdict {
	b, r := &k.Budget, &k.Rate
	if b.Money > 0 || b.Tokens > 0 {
		var spent spend
		start, until := period(b.Per, now)
		if !u.period.Before(start) {
			spent = u.spent
		}
		if left := b.Money - spent.money - u.held.money; b.Money > 0 && (left <= 0 || e.money > left) {
			return verdict{limit: limitMoney, until: until, left: max(b.Money-spent.money, 0)}
		}
		if left := b.Tokens - spent.tokens - u.held.tokens; b.Tokens > 0 && (left <= 0 || e.tokens() > left) {
			return verdict{limit: limitSpent, until: until, left: float64(max(b.Tokens-spent.tokens, 0))}
		}
	}
	if r.Concurrent > 0 && u.concurrent >= r.Concurrent {
		return verdict{limit: limitConcurrent, wait: time.Second}
	}
	if r.Requests > 0 {
		if wait := u.wait(now, r.Requests, 1, func(s second) int { return s.requests }); wait > 0 {
			return verdict{limit: limitRequests, wait: wait}
		}
	}
	if r.Tokens > 0 {
		if wait := u.wait(now, r.Tokens, e.tokens(), func(s second) int { return s.tokens }); wait > 0 {
			return verdict{limit: limitTokens, wait: wait}
		}
	}
	return verdict{}
}

// wait is how long it takes until there is room for so much more; 0 if there is.
func (u *usage) wait(now time.Time, limit, more int, of func(second) int) time.Duration {
	held := 0
	for _, s := range u.seconds {
		if s.counts(now) {
			held += of(s)
		}
	}
	if held == 0 || held+more <= limit {
		return 0
	}
	for _, s := range u.seconds {
		if !s.counts(now) || of(s) == 0 {
			continue
		}
		if held -= of(s); held <= 0 || held+more <= limit {
			return time.Unix(s.at+minute, 0).Sub(now)
		}
	}
	return minute * time.Second
}

func (s second) counts(now time.Time) bool { return s.at+minute > now.Unix() }

// reserve counts a call that is admitted.
func (u *usage) reserve(k *Key, e estimate, now time.Time) reservation {
	u.roll(k.Budget.Per, now)
	r := reservation{at: now.Unix(), tokens: e.tokens(), money: e.money}
	u.add(now, 1, r.tokens)
	u.concurrent++
	u.held.tokens += r.tokens
	u.held.money += r.money
	return r
}

// settle puts what a call has come to in the place of its reservation. It is
// called once per call, whatever became of that.
func (u *usage) settle(k *Key, r reservation, s spend, now time.Time) {
	u.roll(k.Budget.Per, now)
	s.tokens, s.money = max(s.tokens, 0), positive(s.money)
	u.concurrent--
	u.held.tokens -= r.tokens
	u.held.money -= r.money
	if u.concurrent == 0 {
		u.held = estimateSum{} // sums of floating point do not come back to zero
	}
	u.spent.tokens += s.tokens
	u.spent.money += s.money
	if s.estimated {
		u.spent.estimated = true
		u.guessed += s.money
	}
	switch {
	case s.tokens > r.tokens:
		u.add(now, 0, s.tokens-r.tokens)
	case s.tokens < r.tokens:
		for i := range u.seconds {
			if u.seconds[i].at == r.at {
				u.seconds[i].tokens -= r.tokens - s.tokens
			}
		}
	}
}

// positive is an amount of money that can be added.
func positive(money float64) float64 {
	if math.IsNaN(money) || math.IsInf(money, 0) || money < 0 {
		return 0
	}
	return money
}

// add counts in the present second. A clock that went back counts in the last.
func (u *usage) add(now time.Time, requests, tokens int) {
	for len(u.seconds) > 0 && !u.seconds[0].counts(now) {
		u.seconds = u.seconds[1:]
	}
	n := len(u.seconds)
	if n == 0 || u.seconds[n-1].at < now.Unix() {
		u.seconds = append(u.seconds, second{at: now.Unix()})
		n++
	}
	u.seconds[n-1].requests += requests
	u.seconds[n-1].tokens += tokens
}

// roll begins a new period of the budget if the last one is over.
func (u *usage) roll(per string, now time.Time) {
	if start, _ := period(per, now); u.period.Before(start) {
		u.period, u.spent, u.guessed = start, spend{}, 0
	}
}

// learn takes in what was spent before, as somebody has kept it. It may hold
// some of what is counted here already, so the larger of the two is true.
func (u *usage) learn(money float64, tokens int) {
	u.spent.money = max(u.spent.money, positive(money))
	u.spent.tokens = max(u.spent.tokens, tokens)
}

// period is the part of the calendar (UTC) that a time lies in, and when it
// ends; "total" has neither. Weeks begin on Monday.
//
// Source: ISO 8601.
func period(per string, now time.Time) (start, end time.Time) {
	y, m, d := now.UTC().Date()
	switch per {
	case "total":
		return time.Time{}, time.Time{}
	case "day":
		start = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		return start, start.AddDate(0, 0, 1)
	case "week":
		start = time.Date(y, m, d-(int(now.UTC().Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
		return start, start.AddDate(0, 0, 7)
	}
	start = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return start, start.AddDate(0, 1, 0)
}

// refused is what a client is told whose call may not be made.
func (v verdict) refused(k *Key, e estimate) *refused {
	again := "ask again when a call of this key has ended"
	if v.limit != limitConcurrent {
		again = "ask again in " + strconv.Itoa(int(math.Ceil(v.wait.Seconds()))) + " s"
	}
	switch v.limit {
	case limitConcurrent:
		return &refused{Trouble: troubleLimited, Wait: v.wait,
			Text: fmt.Sprintf("this key may have %d calls under way at once and has: %s", k.Rate.Concurrent, again)}
	case limitRequests:
		return &refused{Trouble: troubleLimited, Wait: v.wait,
			Text: fmt.Sprintf("this key may make %d requests a minute and has: %s", k.Rate.Requests, again)}
	case limitTokens:
		return &refused{Trouble: troubleLimited, Wait: v.wait,
			Text: fmt.Sprintf("this key may use %d tokens a minute, and this call may need %d: %s", k.Rate.Tokens, e.tokens(), again)}
	case limitMoney:
		return &refused{Trouble: troubleQuota,
			Text: fmt.Sprintf("the budget of this key, %s US dollars %s, has %s left, and this call may cost %s: %s",
				dollars(k.Budget.Money), per(k.Budget.Per), dollars(v.left), dollars(e.money), v.then())}
	}
	return &refused{Trouble: troubleQuota,
		Text: fmt.Sprintf("the budget of this key, %d tokens %s, has %.0f left, and this call may need %d: %s",
			k.Budget.Tokens, per(k.Budget.Per), v.left, e.tokens(), v.then())}
}

// then says what is to be done about a budget.
func (v verdict) then() string {
	if v.until.IsZero() {
		return "have it raised in the gateway's configuration"
	}
	return "the next period begins at " + v.until.Format("2006-01-02 15:04 UTC") + ", or have it raised in the gateway's configuration"
}

func per(p string) string {
	switch p {
	case "total":
		return "in all"
	case "":
		return "a month"
	}
	return "a " + p
}

func dollars(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
