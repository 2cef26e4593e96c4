package gateway

import (
	"math"
	"sync"
	"time"
)

// The bounds of what is remembered of sessions. A prompt cache lives for five
// minutes to an hour; after that there is nothing to return to.
const (
	stickySessions = 10_000
	stickyFor      = time.Hour
)

// sticky remembers which target has served a session last, by the name of the
// target, so that a changed configuration is no trouble. It is safe for
// concurrent use.
type sticky struct {
	mu       sync.Mutex
	sessions lru[stickyKey, string]
}

// stickyKey is a session of one client on one route: nobody else's is the same.
type stickyKey struct{ client, route, session string }

func newSticky() *sticky {
	return &sticky{sessions: lru[stickyKey, string]{entries: stickySessions, ttl: stickyFor}}
}

// served is told after each call which target has answered.
func (s *sticky) served(key stickyKey, target string, now time.Time) {
	if key.session == "" || target == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.put(now, key, target, 0)
}

// last is the target that has served a session last; -1 if none has, or it is
// in the route no more.
func (s *sticky) last(key stickyKey, targets []Target, now time.Time) int {
	if key.session == "" {
		return -1
	}
	s.mu.Lock()
	name, ok := s.sessions.get(now, key)
	s.mu.Unlock()
	if !ok {
		return -1
	}
	for i := range targets {
		if isFull(targets[i].Model, name) {
			return i
		}
	}
	return -1
}

// The weight of a new time to the first token in the mean: at least so much,
// and the more the longer ago the last one was.
const (
	latencyShare = 0.2
	latencyAge   = time.Minute
)

// latencies are the times to the first token of late, by target. It is safe
// for concurrent use.
type latencies struct {
	mu   sync.Mutex
	mean map[string]latency
}

type latency struct {
	first time.Duration // 0 if not known
	at    time.Time
}

// observe is told how long the first token of a target took.
func (l *latencies) observe(target string, first time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mean == nil {
		l.mean = map[string]latency{}
	}
	l.mean[target] = l.mean[target].with(first, now)
}

// asked is told that a target is asked: it is not unknown any more.
func (l *latencies) asked(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mean[target]; ok {
		return
	}
	if l.mean == nil {
		l.mean = map[string]latency{}
	}
	l.mean[target] = latency{}
}

// of is how long a target takes, 0 if that is not known, and whether it was
// asked at all.
func (l *latencies) of(target string) (first time.Duration, tried bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, tried := l.mean[target]
	return m.first, tried
}

// with is the mean with one more time.
func (l latency) with(first time.Duration, now time.Time) latency {
	first = max(first, 1) // what is known is more than nothing
	if l.first == 0 {
		return latency{first, now}
	}
	share := max(latencyShare, 1-math.Exp(-float64(now.Sub(l.at))/float64(latencyAge)))
	return latency{l.first + time.Duration(share*float64(first-l.first)), now}
}
