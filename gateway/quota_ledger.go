package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Ledger tells what clients have spent before this process began.
type Ledger interface {
	// Spent is what the calls of the key with this name have cost since then, in
	// US dollars and tokens; the zero time means ever. It obeys its context.
	Spent(ctx context.Context, key string, since time.Time) (money float64, tokens int, err error)
}

// The clocks of asking the ledger: calls wait for it, so it gets little time,
// and after a failure some rest.
const (
	ledgerWait  = time.Second
	ledgerAgain = time.Minute
)

// quotas hold what the keys have used, by their names: new settings change what
// they may, not what they have. They are safe for concurrent use.
type quotas struct {
	ledger Ledger // nil if nothing is kept

	mu   sync.Mutex
	keys map[string]*quota
}

// quota is one key's.
type quota struct {
	// reading is held while the ledger is asked, and guards asked, known and per.
	reading sync.Mutex
	asked   time.Time // of the ledger, last
	known   bool      // it has answered
	per     string    // for a budget of this kind

	mu    sync.Mutex
	usage usage
}

func newQuotas(ledger Ledger) *quotas { return &quotas{ledger: ledger, keys: map[string]*quota{}} }

// admitted is a call that counts, until it is settled.
type admitted struct {
	q    *quota
	key  *Key
	r    reservation
	once sync.Once
}

// admit reserves room for a call in the limits of its key, or says which of
// them stands in the way. What it gives must be settled, whatever becomes of
// the call; it is nil if the call may not be made. The error is for the log: the
// ledger could not be read, and what was spent before counts as nothing until it
// can. It stops no call.
func (q *quotas) admit(ctx context.Context, c *client, e estimate, now time.Time) (*admitted, verdict, error) {
	of := q.of(c.Name)
	err := of.read(ctx, q.ledger, &c.Key, now)
	of.mu.Lock()
	defer of.mu.Unlock()
	v := admit(&of.usage, &c.Key, e, now)
	if v.limit != limitNone {
		return nil, v, err
	}
	return &admitted{q: of, key: &c.Key, r: of.usage.reserve(&c.Key, e, now)}, v, err
}

func (q *quotas) of(name string) *quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.keys[name]
	if of == nil {
		of = &quota{}
		q.keys[name] = of
	}
	return of
}

// read asks the ledger once for what the key has spent in the present period,
// if it has a budget at all.
func (q *quota) read(ctx context.Context, ledger Ledger, k *Key, now time.Time) error {
	if ledger == nil || k.Budget.Money <= 0 && k.Budget.Tokens <= 0 {
		return nil
	}
	q.reading.Lock()
	defer q.reading.Unlock()
	if per := per(k.Budget.Per); q.per != per { // at first, and when the settings change
		q.per, q.known, q.asked = per, false, time.Time{}
	}
	if q.known || !q.asked.IsZero() && now.Sub(q.asked) < ledgerAgain {
		return nil
	}
	q.asked = now
	start, _ := period(k.Budget.Per, now)
	// A client that leaves meanwhile is no reason to count from zero.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerWait)
	defer cancel()
	money, tokens, err := ledger.Spent(ctx, k.Name, start)
	if err != nil {
		return fmt.Errorf("what the key %s has spent before is not known, and counts as nothing until it is (asked again in %s): %w", shownName(k.Name), ledgerAgain, err)
	}
	q.known = true
	q.mu.Lock()
	defer q.mu.Unlock()
	q.usage.roll(k.Budget.Per, now)
	q.usage.learn(money, tokens)
	return nil
}

// settle puts what the call has come to in the place of the reservation. Only
// the first time counts.
func (a *admitted) settle(s spend, now time.Time) {
	a.once.Do(func() {
		a.q.mu.Lock()
		defer a.q.mu.Unlock()
		a.q.usage.settle(a.key, a.r, s, now)
	})
}
