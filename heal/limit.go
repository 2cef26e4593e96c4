package heal

import (
	"context"
	"slices"
	"time"
)

// limit is the concurrency of one candidate: places and a queue, first come
// first served.
type limit struct {
	inFlight int
	queue    []*waiter
}

// waiter is a call in the queue. place is closed when it is given a place.
type waiter struct{ place chan struct{} }

// full says that a call would find neither a place nor room in the queue.
func (l *limit) full(policy Limit) bool {
	return policy.InFlight > 0 && l.inFlight >= policy.InFlight && len(l.queue) >= policy.Queue
}

// take takes a free place.
func (l *limit) take(policy Limit) bool {
	if policy.InFlight > 0 && l.inFlight >= policy.InFlight {
		return false
	}
	l.inFlight++
	return true
}

// line queues up; nil if there is no room.
func (l *limit) line(policy Limit) *waiter {
	if len(l.queue) >= policy.Queue {
		return nil
	}
	w := &waiter{place: make(chan struct{})}
	l.queue = append(l.queue, w)
	return w
}

// give hands the place to the first in the queue, or frees it.
func (l *limit) give() {
	if len(l.queue) == 0 {
		l.inFlight--
		return
	}
	w := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	close(w.place)
}

// abandon takes a call that does not go on out of the queue, or hands on the
// place that it was given.
func (l *limit) abandon(w *waiter) {
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	l.give()
}

// wait waits for the place, at most so long, and tells how long it took.
func (w *waiter) wait(ctx context.Context, atMost time.Duration) (time.Duration, error) {
	start := time.Now()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	var err error
	select {
	case <-w.place:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		select {
		case <-w.place: // just in time
		default:
			err = ErrFull
		}
	}
	return time.Since(start), err
}

// retries is the retry budget of one candidate.
type retries struct {
	inFlight int
	recent   window // calls, and retries
}

// room says whether one more retry is allowed: while few are under way, or
// while retries are few among the recent calls.
func (r retries) room(now time.Time, policy RetryBudget) bool {
	if r.inFlight < policy.Min {
		return true
	}
	calls, again := r.recent.sum(now, policy.Window)
	return float64(again+1) <= policy.Share*float64(calls)
}

func (r retries) enter(now time.Time, policy RetryBudget, retry bool) retries {
	if retry {
		r.inFlight++
		r.recent = r.recent.add(now, policy.Window, 0, 1)
	} else {
		r.recent = r.recent.add(now, policy.Window, 1, 0)
	}
	return r
}

func (r retries) leave(retry bool) retries {
	if retry {
		r.inFlight--
	}
	return r
}
