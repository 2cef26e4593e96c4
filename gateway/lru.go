package gateway

import (
	"container/list"
	"time"
)

// lru keeps values for a time, up to a number and a size; what was used longest
// ago leaves first. It is not safe for concurrent use.
type lru[K comparable, V any] struct {
	entries int           // 0 is no limit
	bytes   int           // 0 is no limit
	ttl     time.Duration // from put on; 0 is for ever
	// left, if set, is told of every value that leaves, replaced ones included.
	left func(K, V)

	index map[K]*list.Element
	order list.List // of *lruEntry[K, V], the latest used in front
	held  int       // bytes
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
	size  int
	until time.Time // zero is for ever
}

func (l *lru[K, V]) put(now time.Time, key K, value V, size int) {
	l.drop(key)
	if l.index == nil {
		l.index = map[K]*list.Element{}
	}
	e := &lruEntry[K, V]{key: key, value: value, size: size}
	if l.ttl > 0 {
		e.until = now.Add(l.ttl)
	}
	l.index[key] = l.order.PushFront(e)
	l.held += size
	l.sweep(now)
	for l.entries > 0 && l.order.Len() > l.entries || l.bytes > 0 && l.held > l.bytes {
		l.shed()
	}
}

func (l *lru[K, V]) get(now time.Time, key K) (value V, ok bool) {
	at := l.index[key]
	if at == nil {
		return value, false
	}
	e := at.Value.(*lruEntry[K, V])
	if e.over(now) {
		l.drop(key)
		return value, false
	}
	l.order.MoveToFront(at)
	return e.value, true
}

func (l *lru[K, V]) drop(key K) {
	if at := l.index[key]; at != nil {
		e := l.order.Remove(at).(*lruEntry[K, V])
		delete(l.index, key)
		l.held -= e.size
		if l.left != nil {
			l.left(key, e.value)
		}
	}
}

// shed drops what was used longest ago; false if there is nothing.
func (l *lru[K, V]) shed() bool {
	at := l.order.Back()
	if at == nil {
		return false
	}
	l.drop(at.Value.(*lruEntry[K, V]).key)
	return true
}

// sweep drops what is over.
func (l *lru[K, V]) sweep(now time.Time) {
	for at := l.order.Back(); at != nil; {
		e, next := at.Value.(*lruEntry[K, V]), at.Prev()
		if e.over(now) {
			l.drop(e.key)
		}
		at = next
	}
}

// next is when the next value is over; false if none will be.
func (l *lru[K, V]) next() (first time.Time, ok bool) {
	for at := l.order.Front(); at != nil; at = at.Next() {
		if until := at.Value.(*lruEntry[K, V]).until; !until.IsZero() && (!ok || until.Before(first)) {
			first, ok = until, true
		}
	}
	return first, ok
}

func (e *lruEntry[K, V]) over(now time.Time) bool { return !e.until.IsZero() && !now.Before(e.until) }
