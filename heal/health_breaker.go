package heal

import (
	"fmt"
	"time"
)

// buckets is how finely a window slides: it forgets a tenth at a time, so it
// holds between nine tenths and the whole of its span, and nothing older.
const buckets = 10

// window counts two kinds of things over the last span of time.
type window struct {
	head int64 // number of the newest bucket since the epoch
	n    [buckets][2]uint32
}

func bucket(now time.Time, span time.Duration) int64 {
	return now.UnixNano() / max(int64(span)/buckets, 1)
}

// add counts a of the first kind and b of the second. A clock that went
// backwards counts into the newest bucket.
func (w window) add(now time.Time, span time.Duration, a, b uint32) window {
	if at := bucket(now, span); at > w.head {
		for i := max(w.head+1, at-buckets+1); i <= at; i++ {
			w.n[slot(i)] = [2]uint32{}
		}
		w.head = at
	}
	n := &w.n[slot(w.head)]
	n[0] += a
	n[1] += b
	return w
}

func (w window) sum(now time.Time, span time.Duration) (a, b int) {
	at := max(bucket(now, span), w.head)
	for i := at - buckets + 1; i <= w.head; i++ {
		n := w.n[slot(i)]
		a += int(n[0])
		b += int(n[1])
	}
	return a, b
}

func slot(bucket int64) int64 { return (bucket%buckets + buckets) % buckets }

// breaker counts what became of the attempts at a place.
type breaker struct {
	inRow  int // failures since the last success
	recent window
}

func (b breaker) count(ok bool, now time.Time, policy Breaker) breaker {
	if ok {
		b.inRow = 0
		b.recent = b.recent.add(now, policy.Window, 1, 0)
	} else {
		b.inRow++
		b.recent = b.recent.add(now, policy.Window, 0, 1)
	}
	return b
}

// tripped says why the circuit opens; empty if it does not.
func (b breaker) tripped(now time.Time, policy Breaker) string {
	if policy.Consecutive > 0 && b.inRow >= policy.Consecutive {
		return fmt.Sprintf("%d failures in a row", b.inRow)
	}
	ok, failed := b.recent.sum(now, policy.Window)
	if policy.MinCalls > 0 && policy.Ratio > 0 && ok+failed >= policy.MinCalls &&
		float64(failed) >= policy.Ratio*float64(ok+failed) {
		return fmt.Sprintf("%d of the last %d attempts failed", failed, ok+failed)
	}
	return ""
}
