package heal

import (
	"context"
	"slices"
	"time"
)

// limit is the concurrency of one candidate, for all routes together: places and
// a queue. Calls have a
// priority, 0 unless they say otherwise, and two rules keep work that can wait
// (a negative one) and people who cannot from starving each other:
//
//   - Calls below 0 hold at most three quarters of the places, and of the queue,
//     but always one; the others may hold all. So there is room for a person
//     however much batch work comes.
//   - The queue goes by priority, and first come first served within one. Each
//     step of priority is worth half of Limit.Wait: who has waited so much longer
//     goes before a call that is one step above.
type limit struct {
	inFlight int
	below    int       // of them below 0
	queue    []*waiter // the next in front
}

// waiter is a call in the queue. place is closed when it is given a place.
type waiter struct {
	place    chan struct{}
	priority int
	rank     time.Time // the earlier goes first
}

// share is how much of n calls of a priority may hold in all.
func share(n, priority int) int {
	if priority >= 0 {
		return n
	}
	return min(n, max(1, n*3/4))
}

// room says that there is a place for a call of this priority.
func (l *limit) room(policy Limit, priority int) bool {
	return policy.InFlight <= 0 || l.inFlight < policy.InFlight &&
		(priority >= 0 || l.below < share(policy.InFlight, priority))
}

// queues says that there is room in the queue for a call of this priority.
func (l *limit) queues(policy Limit, priority int) bool {
	if len(l.queue) >= policy.Queue {
		return false
	}
	below := 0
	for _, w := range l.queue {
		if w.priority < 0 {
			below++
		}
	}
	return priority >= 0 || below < share(policy.Queue, priority)
}

// full says that a call would find neither a place nor room in the queue.
func (l *limit) full(policy Limit, priority int) bool {
	return !l.room(policy, priority) && !l.queues(policy, priority)
}

// take takes a free place.
func (l *limit) take(policy Limit, priority int) bool {
	if !l.room(policy, priority) {
		return false
	}
	l.count(priority, 1)
	return true
}

func (l *limit) count(priority, n int) {
	l.inFlight += n
	if priority < 0 {
		l.below += n
	}
}

// line queues up; nil if there is no room.
func (l *limit) line(policy Limit, priority int, now time.Time) *waiter {
	if !l.queues(policy, priority) {
		return nil
	}
	w := &waiter{place: make(chan struct{}), priority: priority, rank: now.Add(-time.Duration(priority) * (policy.Wait / 2))}
	i := len(l.queue)
	for i > 0 && w.rank.Before(l.queue[i-1].rank) {
		i--
	}
	l.queue = slices.Insert(l.queue, i, w)
	return w
}

// give frees the place of a call of this priority, for the first in the queue
// that may have it.
func (l *limit) give(policy Limit, priority int) {
	l.count(priority, -1)
	for i, w := range l.queue {
		if l.take(policy, w.priority) {
			l.queue = slices.Delete(l.queue, i, i+1)
			close(w.place)
			return
		}
	}
}

// abandon takes a call that does not go on out of the queue, or hands on the
// place that it was given.
func (l *limit) abandon(policy Limit, w *waiter) {
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	l.give(policy, w.priority)
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
