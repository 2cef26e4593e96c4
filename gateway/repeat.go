package gateway

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// What is refused as a repetition. Most clients ask again by themselves when a
// call has failed, whatever they are told: 3, 6, 7 or 30 times. What the
// gateway has just found out for them it need not find out again.
//
// Source: notes/clients.md §3 and §5, measured.

const (
	// longestMemory is how long an exhausted request is remembered at most.
	longestMemory = 30 * time.Second
	maxMemories   = 4096
)

// repeatKey is what makes two requests the same: the client, its conversation,
// what it wants done and the bytes that it sent.
type repeatKey struct {
	client, session string
	plan            string
	body            [sha256.Size]byte
}

// repeatOf is the key of a request. client is the name of its key, empty where
// none is asked for.
func repeatOf(client string, p ninelives.Protocol, path string, c *control, body []byte) repeatKey {
	return repeatKey{client: client, session: c.Session, body: sha256.Sum256(body),
		plan: strings.Join([]string{string(p), path, c.Route, strings.Join(c.Fallbacks, ",")}, "\n")}
}

// repeats are what the gateway knows of requests that came before. The zero
// value is ready.
type repeats struct {
	exhausted exhaustedCalls
	overflow  overflowGuard
}

// memory is an exhausted request: its error and until when it stands.
type memory struct {
	route string
	err   error
	until time.Time
}

// remembering says whether a failed call is remembered, and as what: only one
// for which everything was tried and whose candidates rest, and not for want of
// time, which the next request may bring more of. Where nobody rests (the
// answers were empty, say), asking again may help. What is kept holds nothing of
// the request, and names the time at which somebody is back, so that what it
// says becomes shorter with the time that passes.
func remembering(route string, err error, now time.Time) (memory, bool) {
	var e *heal.Exhausted
	if !errors.As(err, &e) || e == nil || e.Deadline {
		return memory{}, false
	}
	kept := heal.Exhausted{Fault: bare(e.Fault), Why: e.Why, Took: e.Took, Back: e.Back}
	for _, t := range e.Trail {
		t.Fault = bare(t.Fault)
		kept.Trail = append(kept.Trail, t)
	}
	if kept.Back.IsZero() && e.Fault != nil && e.Fault.RetryAfter > 0 {
		kept.Back = now.Add(e.Fault.RetryAfter)
	}
	if !kept.Back.After(now) {
		return memory{}, false
	}
	return memory{route: route, err: &kept, until: now.Add(min(kept.Back.Sub(now), longestMemory))}, true
}

// bare is a fault without what it holds of answers.
func bare(f *ninelives.Fault) *ninelives.Fault {
	if f == nil {
		return nil
	}
	b := *f
	b.Partial, b.Repairs, b.Err = nil, nil, nil
	return &b
}

// exhaustedCalls remembers the requests that nobody could answer. The zero
// value is ready; it is safe for concurrent use.
type exhaustedCalls struct {
	mu  sync.Mutex
	lru lru[repeatKey, memory]
}

// remember keeps the error of a failed call, if it is one to be remembered.
func (x *exhaustedCalls) remember(key func() repeatKey, route string, err error, now time.Time) {
	m, ok := remembering(route, err, now)
	if !ok {
		return
	}
	same := key()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lru.entries, x.lru.ttl = maxMemories, longestMemory
	x.lru.put(now, same, m, 0)
}

// recall gives the error of the same request, if it still stands: then nobody
// need be asked. It asks for the key only if anything is remembered.
func (x *exhaustedCalls) recall(key func() repeatKey, now time.Time) (error, bool) {
	if x.none() {
		return nil, false
	}
	same := key() // which takes its time: not with the lock held
	x.mu.Lock()
	defer x.mu.Unlock()
	m, ok := x.lru.get(now, same)
	if !ok {
		return nil, false
	}
	if !now.Before(m.until) {
		x.lru.drop(same)
		return nil, false
	}
	return m.err, true
}

func (x *exhaustedCalls) none() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.lru.index) == 0
}

// healthy forgets what was found out about a route: a candidate of it can
// answer again.
func (x *exhaustedCalls) healthy(route string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, at := range x.lru.index {
		if at.Value.(*lruEntry[repeatKey, memory]).value.route == route {
			x.lru.drop(key)
		}
	}
}

const (
	// maxOverflows is how many times a session is told that its request is too
	// long without having made it shorter.
	maxOverflows = 2
	// shrunk is the part of its size to which a request must have come down.
	shrunk = 0.9
	// progress is how many answered calls between show that a session goes on:
	// a client that only shortens and asks again makes one or two.
	progress = 3
	// overflowMemory is how long a session is remembered.
	overflowMemory = 10 * time.Minute
)

// overflows is what is known of a session whose requests were too long.
type overflows struct {
	size  int // of the smallest that was refused
	times int // that it was told so without having become smaller
	since int // answered calls since
}

// after is a further refusal of a request of size bytes.
func (o overflows) after(size int) overflows {
	if o.times == 0 || o.since >= progress || float64(size) < shrunk*float64(o.size) {
		return overflows{size: size, times: 1}
	}
	return overflows{size: min(o.size, size), times: o.times + 1}
}

// overflowGuard ends the loops of clients that shorten a request which was too
// long and ask again, for ever: opencode did so 316 times in three minutes. It
// is safe for concurrent use; the zero value is ready.
//
// Source: notes/clients.md §1.6, measured.
type overflowGuard struct {
	mu  sync.Mutex
	lru lru[repeatKey, overflows]
}

// sessionOnly is the key of a request's session; where there is none, of the
// request itself.
func (k repeatKey) sessionOnly() repeatKey {
	if k.session == "" {
		return k
	}
	return repeatKey{client: k.client, session: k.session}
}

// refuses notes that a request of size bytes was too long, and says that the
// client is not to be told so once more (clientAnswer.plain).
func (g *overflowGuard) refuses(key repeatKey, size int, now time.Time) bool {
	key = key.sessionOnly()
	if key == (repeatKey{client: key.client, plan: key.plan}) {
		return false // its bytes were not read, and nothing says whose it is
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lru.entries, g.lru.ttl = maxMemories, overflowMemory
	o, _ := g.lru.get(now, key)
	o = o.after(size)
	g.lru.put(now, key, o, 0)
	return o.times > maxOverflows
}

func (g *overflowGuard) none() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lru.index) == 0
}

// answered notes that a call of the session was answered. It asks for the key
// only if any session is known.
func (g *overflowGuard) answered(key func() repeatKey, now time.Time) {
	if g.none() {
		return
	}
	session := key().sessionOnly()
	g.mu.Lock()
	defer g.mu.Unlock()
	if o, ok := g.lru.get(now, session); ok {
		o.since++
		g.lru.put(now, session, o, 0)
	}
}
