package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The bounds of ended answers that are kept for those who come back.
const (
	endedFor   = 10 * time.Minute
	endedBytes = 64 << 20
)

var (
	errKeyReused = &refused{
		Trouble: troubleMalformed, Param: "Idempotency-Key", Code: "idempotency_key_reused",
		Text: "this Idempotency-Key was used for another request: use a new key for each request",
	}
	// errNoCall: there is no such call, or not for this client.
	errNoCall = &refused{
		Trouble: troubleNotFound,
		Text:    "there is no such call: its answer is only kept for a while, and shown to the client who made it",
	}
	// errAbandoned is why a call ends that no client has come back to.
	errAbandoned = errors.New("the client has left and not come back")
)

// liveKey is what a client calls a request; nobody else's key is the same.
type liveKey struct {
	client string
	// idempotency is empty where the client named no key: then nobody can join.
	idempotency string
}

// recalled is an answer from a time before this process, as the journal has it.
type recalled struct {
	id     string   // by which its client knows it (liveCall.named)
	hash   [32]byte // of the request
	status int
	header http.Header
	body   []byte
}

// live holds the calls that go on without their client: those with an
// Idempotency-Key, and background ones. A call is
//
//	attended ◀──attach / last client leaves──▶ alone ──grace──▶ cancelled
//	    └──────────────── end ─────────────────┘
//
// An answer that has ended is kept for endedFor, as long as there is room. Its
// key replays it if it is a good one; what failed is only shown to who asks for
// the rest of it, and its key begins a new call.
type live struct {
	// grace is how long a call goes on alone.
	grace func() time.Duration
	// recall, if set, finds the answer of a key that is not in memory.
	recall func(ctx context.Context, key liveKey) (recalled, bool)

	pool *livePool

	mu    sync.Mutex
	byKey map[liveKey]*liveCall
	byID  map[string]*liveCall // running and ended
	ended lru[*liveCall, struct{}]
	sweep *time.Timer // drops what is over; nil if nothing is kept
}

func newLive(grace func() time.Duration) *live {
	v := &live{
		grace: grace, pool: &livePool{limit: liveTotal},
		byKey: map[liveKey]*liveCall{}, byID: map[string]*liveCall{},
	}
	v.ended = lru[*liveCall, struct{}]{bytes: endedBytes, ttl: endedFor, left: func(l *liveCall, _ struct{}) { v.forget(l) }}
	return v
}

// liveCall is one of these calls.
type liveCall struct {
	v    *live
	key  liveKey
	hash [32]byte
	out  *output

	ctx    context.Context
	cancel context.CancelCauseFunc

	// known is closed when the call has its first name.
	known chan struct{}

	// Guarded by v.mu.
	names    []string
	clients  int
	detached bool
	over     bool
	alone    *time.Timer // nil while attended, detached or over
}

// begin finds the call of a key, running or ended, or begins a new one: joined
// tells which. The new one is the caller's to carry out, in its context, and to
// end; it has no client yet and is cancelled with errAbandoned if none attaches
// within the grace. A detached one never is. The error is errKeyReused, or
// errOutputFull if there is no room for an answer of the journal.
//
// ctx gives the call its values; that it ends means nothing to the call.
func (v *live) begin(ctx context.Context, key liveKey, hash [32]byte, detached bool) (l *liveCall, joined bool, err error) {
	l, err = v.find(key, hash)
	if l != nil || err != nil {
		return l, l != nil, err
	}
	var old recalled
	var kept *output
	if key.idempotency != "" && v.recall != nil {
		var known bool
		if old, known = v.recall(ctx, key); known {
			if old.hash != hash {
				return nil, false, errKeyReused
			}
			if kept, err = v.restore(ctx, old); err != nil {
				return nil, false, err
			}
		}
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	if l = v.byKey[key]; l != nil { // begun while the journal was asked
		if kept != nil {
			kept.release()
		}
		return v.same(l, hash)
	}
	l = &liveCall{v: v, key: key, hash: hash, out: newOutput(v.pool), detached: detached, known: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if key.idempotency != "" {
		v.byKey[key] = l
	}
	if kept != nil {
		l.out = kept
		v.name(l, old.id)
		v.over(l, nil)
		return l, true, nil
	}
	v.leave(l)
	return l, false, nil
}

func (v *live) find(key liveKey, hash [32]byte) (*liveCall, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.byKey[key]
	if l == nil {
		return nil, nil
	}
	l, _, err := v.same(l, hash)
	return l, err
}

func (v *live) same(l *liveCall, hash [32]byte) (*liveCall, bool, error) {
	if l.hash != hash {
		return nil, false, errKeyReused
	}
	if l.over {
		v.ended.get(time.Now(), l) // it was used
	}
	return l, true, nil
}

// restore makes an answer of what the journal had.
func (v *live) restore(ctx context.Context, old recalled) (*output, error) {
	out := newOutput(v.pool)
	out.limit = max(out.limit, 2*len(old.body)) // what was answered once is answered again
	k := &liveSink{out: out, ctx: ctx, id: old.id}
	k.Start(old.status, old.header)
	_, err := k.Write(old.body)
	if err := errors.Join(err, k.rest()); err != nil {
		out.release()
		return nil, err
	}
	out.end(nil)
	return out, nil
}

// named gives the call an id that its client knows it by. The first one comes
// before the first byte, and is in the ids of its events; an answer that bears
// another one may be found by that as well.
func (l *liveCall) named(id string) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.v.name(l, id)
}

func (v *live) name(l *liveCall, id string) {
	if l.names = append(l.names, id); len(l.names) == 1 {
		close(l.known)
	}
	v.byID[id] = l
}

// id is the call's first name; empty before it has one.
func (l *liveCall) id() string {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	if len(l.names) == 0 {
		return ""
	}
	return l.names[0]
}

// context is the call's: it ends when the call has ended, was stopped, or
// nobody came back to it.
func (l *liveCall) context() context.Context { return l.ctx }

// end ends the call: with err, its answer is a broken one. Whoever began the
// call ends it, whatever came of it.
func (l *liveCall) end(err error) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.v.over(l, err)
}

// failed says that the answer tells of a failure, although it has status 200 and
// a proper end: its key is to begin a new call. It comes before the end.
func (l *liveCall) failed() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	if l.v.byKey[l.key] == l {
		delete(l.v.byKey, l.key)
	}
}

func (v *live) over(l *liveCall, err error) {
	if l.over {
		return
	}
	l.over = true
	l.stay()
	l.out.end(err)
	l.cancel(nil)
	if v.byKey[l.key] == l && !(l.out.whole() && l.out.good()) {
		delete(v.byKey, l.key)
	}
	now := time.Now()
	v.ended.put(now, l, struct{}{}, l.out.cost())
	if v.sweep == nil {
		v.sweep = time.AfterFunc(endedFor, v.tidy)
	}
}

// tidy is the timer's: it drops what is over and comes again if something is left.
func (v *live) tidy() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep = nil
	v.ended.sweep(time.Now())
	if next, ok := v.ended.next(); ok {
		v.sweep = time.AfterFunc(time.Until(next), v.tidy)
	}
}

// forget is told of an ended call that leaves. The lock is held.
func (v *live) forget(l *liveCall) {
	if v.byKey[l.key] == l {
		delete(v.byKey, l.key)
	}
	for _, name := range l.names {
		if v.byID[name] == l {
			delete(v.byID, name)
		}
	}
	l.out.release()
}

// leave begins the grace if nobody is with the call. The lock is held.
func (v *live) leave(l *liveCall) {
	if l.clients > 0 || l.over || l.detached {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(v.grace(), func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if l.alone == timer { // else somebody came
			l.alone = nil
			l.cancel(errAbandoned)
		}
	})
	l.alone = timer
}

// stay ends the grace. The lock is held.
func (l *liveCall) stay() {
	if l.alone != nil {
		l.alone.Stop()
		l.alone = nil
	}
}

// attach gives a reader of what follows piece number after, which is one of the
// call's clients until it detaches.
func (l *liveCall) attach(after int) (*outputReader, error) {
	r, err := l.out.reader(after)
	if err != nil {
		return nil, err
	}
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.clients++
	l.stay()
	return r, nil
}

func (l *liveCall) detach(r *outputReader) {
	r.close()
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.clients--
	l.v.leave(l)
}

// call finds a call by its id, for the client who made it; errNoCall otherwise.
func (v *live) call(client, id string) (*liveCall, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.byID[id]
	if l == nil || l.key.client != client {
		return nil, errNoCall
	}
	return l, nil
}

// stop cancels a running call; false if it is over.
func (l *liveCall) stop(cause error) bool {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	if l.over {
		return false
	}
	l.cancel(cause)
	return true
}

// after reads what a client has had of the call: Last-Event-ID names the last
// event. Without the header it is nothing. The error is errPosition.
func (l *liveCall) after(h http.Header) (int, error) {
	last := h.Get("Last-Event-ID")
	if last == "" {
		return 0, nil
	}
	number, ok := strings.CutPrefix(last, l.id()+"-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return 0, errPosition
	}
	return n, nil
}

// follow writes the answer to a client, from behind its Last-Event-ID, until the
// end of the answer (nil), what broke it, or the client leaves (the cause of
// ctx's end, or the error of the connection). Nothing was written where the
// error is errPosition or errPieceGone, or where no head has come.
func (l *liveCall) follow(ctx context.Context, to sink, h http.Header) error {
	after, err := l.after(h)
	if err != nil {
		return err
	}
	r, err := l.attach(after)
	if err != nil {
		return err
	}
	defer l.detach(r)
	status, header, err := r.head(ctx)
	if err != nil {
		return err
	}
	to.Start(status, header)
	if err := to.Flush(); err != nil {
		return err
	}
	for {
		pieces, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, piece := range pieces {
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		if err := to.Flush(); err != nil {
			return err
		}
	}
}

// resume is GET /ninelives/v1/calls/{id}/stream: it is follow for the client who
// made the call. Everybody else gets errNoCall.
func (v *live) resume(ctx context.Context, to sink, h http.Header, client, id string) error {
	l, err := v.call(client, id)
	if err != nil {
		return err
	}
	return l.follow(ctx, to, h)
}

// liveSink writes the answer of a call into its output: an event a piece, with
// its number as its id, where the answer is a stream of events; otherwise as it
// comes. It is for one goroutine at a time.
type liveSink struct {
	l       *liveCall
	out     *output
	ctx     context.Context
	id      string
	number  int
	events  bool
	partial []byte
	lost    error // why a piece was not written
}

// sink gives the sink of the call's only writer, once the call is named.
func (l *liveCall) sink() *liveSink {
	return &liveSink{l: l, out: l.out, ctx: l.ctx, id: l.id()}
}

// Start implements sink.
func (k *liveSink) Start(status int, h http.Header) {
	if k.events = strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"); k.events {
		h = h.Clone()
		h.Del("Content-Length") // the ids come on top
	}
	k.out.begin(status, h)
}

// Write implements sink. It waits while the slowest client is too far behind.
func (k *liveSink) Write(p []byte) (int, error) {
	if !k.events {
		return len(p), k.piece(append([]byte(nil), p...))
	}
	k.partial = append(k.partial, p...)
	for {
		n := eventEnd(k.partial)
		if n == 0 {
			return len(p), nil
		}
		event := appendEventID(nil, k.partial[:n], k.next())
		k.partial = append(k.partial[:0], k.partial[n:]...)
		if err := k.piece(event); err != nil {
			return 0, err
		}
	}
}

// next is the id of the next piece.
func (k *liveSink) next() string { return k.id + "-" + strconv.Itoa(k.number+1) }

func (k *liveSink) piece(b []byte) error {
	k.number++
	err := k.out.write(k.ctx, b)
	if k.lost == nil {
		k.lost = err
	}
	return err
}

// Flush implements sink: what is written is there at once.
func (k *liveSink) Flush() error { return nil }

// end ends the call after what was written: with err, its answer is a broken
// one. So it is, whatever err says, when a piece of it was lost or the call was
// stopped before: nobody knows then that it is whole.
func (k *liveSink) end(err error) {
	_ = k.rest() // lost has its error
	k.l.end(cmp.Or(err, k.lost, context.Cause(k.ctx)))
}

// rest gives out what is left behind the last whole event. A blank line of a
// carriage return waits for what follows it, and nothing does.
func (k *liveSink) rest() error {
	if len(k.partial) == 0 {
		return nil
	}
	event := appendEventID(nil, k.partial, k.next())
	k.partial = nil
	return k.piece(event)
}
