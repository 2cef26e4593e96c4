package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var quotaTime = time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)

func TestRatesHoldInEveryMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &Key{Rate: Rate{Requests: rapid.IntRange(1, 5).Draw(t, "limit")}}
		var u usage
		now := quotaTime
		var passed []time.Time
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
			v := admit(&u, k, estimate{}, now)
			if v.limit == limitNone {
				u.settle(k, u.reserve(k, estimate{}, now), spend{}, now)
				passed = append(passed, now)
				continue
			}
			if v.wait <= 0 || v.wait > minute*time.Second {
				t.Fatalf("refused, to come back in %v", v.wait)
			}
			if again := admit(&u, k, estimate{}, now.Add(v.wait)); again.limit != limitNone {
				t.Fatalf("told to come back in %v, and refused then", v.wait)
			}
		}
		for i := range passed {
			if j := i + k.Rate.Requests; j < len(passed) && passed[j].Sub(passed[i]) < time.Minute {
				t.Fatalf("%d requests within %v", k.Rate.Requests+1, passed[j].Sub(passed[i]))
			}
		}
	})
}

func TestABudgetIsNeverOverspent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &Key{Budget: Budget{Money: 1, Tokens: 1000, Per: "total"}}
		var u usage
		var open []reservation
		money, tokens := 0.0, 0
		for range 40 {
			if len(open) > 0 && rapid.Bool().Draw(t, "settle") {
				r := open[0]
				open = open[1:]
				s := spend{money: r.money * rapid.Float64Range(0, 1).Draw(t, "share"), tokens: r.tokens / 2}
				u.settle(k, r, s, quotaTime)
				money, tokens = money+s.money, tokens+s.tokens
				continue
			}
			e := estimate{input: rapid.IntRange(0, 400).Draw(t, "input"), money: rapid.Float64Range(0, 0.4).Draw(t, "money")}
			if admit(&u, k, e, quotaTime).limit == limitNone {
				open = append(open, u.reserve(k, e, quotaTime))
			}
		}
		for _, r := range open {
			money, tokens = money+r.money, tokens+r.tokens
		}
		if money > 1+1e-9 || tokens > 1000 {
			t.Fatalf("%v dollars and %d tokens of a budget of 1 and 1000", money, tokens)
		}
	})
}

func TestABudgetBeginsAnewWithItsPeriod(t *testing.T) {
	k := &Key{Budget: Budget{Money: 1, Per: "day"}}
	var u usage
	u.settle(k, u.reserve(k, estimate{money: 1}, quotaTime), spend{money: 1}, quotaTime)
	v := admit(&u, k, estimate{money: 0.1}, quotaTime)
	if v.limit != limitMoney || !v.until.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("spent: %+v", v)
	}
	if v := admit(&u, k, estimate{money: 0.1}, v.until); v.limit != limitNone {
		t.Errorf("the next day: %+v", v)
	}
	for per, want := range map[string]time.Time{
		"day": time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), "week": time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		"month": time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), "total": {},
	} {
		if start, _ := period(per, quotaTime); !start.Equal(want) {
			t.Errorf("%s begins at %v", per, start)
		}
	}
}

func TestCallsAtOnceAreCounted(t *testing.T) {
	q := newQuotas(nil)
	c := &client{Key{Name: "k", Rate: Rate{Concurrent: 1}}}
	first, v, err := q.admit(context.Background(), c, estimate{}, quotaTime)
	if first == nil || v.limit != limitNone || err != nil {
		t.Fatal(v, err)
	}
	if second, v, _ := q.admit(context.Background(), c, estimate{}, quotaTime); second != nil || v.limit != limitConcurrent {
		t.Errorf("a second one: %+v", v)
	}
	first.settle(spend{}, quotaTime)
	first.settle(spend{}, quotaTime) // once is enough
	if third, v, _ := q.admit(context.Background(), c, estimate{}, quotaTime); third == nil {
		t.Errorf("after the first has ended: %+v", v)
	}
}

// ledger has what was spent before, or an error.
type ledger struct {
	money float64
	err   error
	asked int
}

func (l *ledger) Spent(context.Context, string, time.Time) (float64, int, error) {
	l.asked++
	return l.money, 0, l.err
}

func TestWhatWasSpentBeforeCountsAndABrokenLedgerStopsNobody(t *testing.T) {
	c := &client{Key{Name: "k", Budget: Budget{Money: 1}}}
	kept := &ledger{money: 0.95}
	q := newQuotas(kept)
	for range 2 {
		if got, v, err := q.admit(context.Background(), c, estimate{money: 0.1}, quotaTime); got != nil || v.limit != limitMoney || err != nil {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if kept.asked != 1 {
		t.Errorf("the ledger was asked %d times", kept.asked)
	}
	broken := newQuotas(&ledger{err: errors.New("disk")})
	if got, _, err := broken.admit(context.Background(), c, estimate{money: 0.1}, quotaTime); got == nil || err == nil {
		t.Errorf("with a broken ledger: %v, %v", got, err)
	}
}
