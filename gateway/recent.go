package gateway

import "sync"

// recentCalls is how many calls the page shows.
const recentCalls = 100

// recent keeps what is known of the last calls, in memory alone.
type recent struct {
	mu   sync.Mutex
	ring [recentCalls]callStats
	next int
	full bool
}

// add takes a call that has ended; it must not change any more.
func (r *recent) add(c callStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = c
	r.next = (r.next + 1) % recentCalls
	r.full = r.full || r.next == 0
}

// list gives them, the last one first.
func (r *recent) list() []callStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.next
	if r.full {
		n = recentCalls
	}
	calls := make([]callStats, n)
	for i := range calls {
		calls[i] = r.ring[(r.next-1-i+recentCalls)%recentCalls]
	}
	return calls
}
