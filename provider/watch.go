package provider

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// clock is one of the bounds of an attempt.
type clock int

const (
	clockDial clock = iota
	clockHeaders
	clockFirst
	clockLiveness
	clockProgress
	clockRate
	clockTotal
	clockLinger
	clocks
)

// clockNames are the clocks as an error names them.
var clockNames = [clocks]string{
	clockDial: wire.ClockDial, clockHeaders: wire.ClockHeaders, clockFirst: wire.ClockFirstEvent,
	clockLiveness: wire.ClockLiveness, clockProgress: wire.ClockProgress, clockRate: wire.ClockRate,
	clockTotal: wire.ClockTotal, clockLinger: "linger",
}

// watch knows how far one attempt has come and ends it when a clock runs out.
//
// A clock is an amount of waiting that is left. It is used up only between
// enter and leave, while the provider is being waited for: a consumer that
// takes its time with an event takes it from no clock. Ending the attempt is
// cancelling its context, with a *wire.ClockError as the cause.
type watch struct {
	limits ninelives.Clocks
	cancel context.CancelCauseFunc
	conn   *dialing

	mu      sync.Mutex
	timer   *time.Timer
	phase   ninelives.Phase
	waiting bool
	over    bool
	since   time.Time // up to here waiting has been accounted for
	left    [clocks]time.Duration
	running [clocks]bool
	reused  bool
	rate    rateWindow
}

func newWatch(limits ninelives.Clocks, cancel context.CancelCauseFunc, conn *dialing) *watch {
	w := &watch{limits: limits, cancel: cancel, conn: conn, phase: ninelives.PhaseDial}
	w.start(clockDial)
	w.start(clockTotal)
	return w
}

func (w *watch) limit(c clock) time.Duration {
	switch c {
	case clockDial:
		return w.limits.Dial
	case clockHeaders:
		return w.limits.Headers
	case clockFirst:
		return w.limits.FirstEvent
	case clockLiveness:
		return w.limits.Liveness
	case clockProgress:
		return w.limits.Progress
	case clockRate:
		return w.limits.RateWindow
	case clockTotal:
		return w.limits.Total
	default:
		return linger
	}
}

// start sets a clock to its full length; a limit that is not positive is none.
func (w *watch) start(c clock) {
	if d := w.limit(c); d > 0 {
		w.left[c], w.running[c] = d, true
	}
}

func (w *watch) stop(c clock) { w.running[c] = false }

// enter begins a wait.
func (w *watch) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.since = true, time.Now()
	w.arm()
}

// leave ends it. heard says that the provider has given a sign of life.
func (w *watch) leave(heard bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account()
	w.waiting = false
	if w.timer != nil {
		w.timer.Stop()
	}
	if heard && w.running[clockLiveness] {
		w.start(clockLiveness)
	}
}

// account takes the time waited since the last look from the running clocks.
func (w *watch) account() {
	if !w.waiting {
		return
	}
	now := time.Now()
	waited := now.Sub(w.since)
	w.since = now
	for c := range clocks {
		if w.running[c] {
			w.left[c] -= waited
		}
	}
	w.rate.pass(waited)
}

// arm sets the timer to the clock that runs out first.
func (w *watch) arm() {
	if !w.waiting || w.over {
		return
	}
	c, ok := w.next()
	if !ok {
		if w.timer != nil {
			w.timer.Stop()
		}
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.left[c], w.ring)
	} else {
		w.timer.Reset(w.left[c])
	}
}

func (w *watch) next() (first clock, any bool) {
	for c := range clocks {
		if w.running[c] && (!any || w.left[c] < w.left[first]) {
			first, any = c, true
		}
	}
	return first, any
}

// ring is the timer's: it ends the attempt if a clock has really run out.
func (w *watch) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting || w.over {
		return // the wait ended while the timer fired
	}
	w.account()
	c, ok := w.next()
	if !ok {
		return
	}
	if w.left[c] > 0 {
		w.arm()
		return
	}
	w.over = true
	w.cancel(&wire.ClockError{Clock: clockNames[c], Limit: w.limit(c)})
}

// end stops everything; no clock fires after it.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// step moves to a later phase, whose clocks the caller starts and stops in change.
func (w *watch) step(p ninelives.Phase, change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account()
	w.phase = p
	change()
	w.arm()
}

// trace follows the request through Go's transport.
func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			w.conn.got()
			w.step(ninelives.PhaseWrite, func() {
				w.reused = info.Reused
				w.stop(clockDial)
				w.start(clockFirst)
			})
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err != nil || !w.writing() {
				return // an answer may come before the request is written
			}
			w.step(ninelives.PhaseHeaders, func() { w.start(clockHeaders) })
		},
	}
}

func (w *watch) writing() bool { return w.at() == ninelives.PhaseWrite }

// headers says that the response's headers have come.
func (w *watch) headers() {
	w.step(ninelives.PhaseFirstToken, func() {
		w.stop(clockDial)
		w.stop(clockHeaders)
		w.start(clockLiveness)
	})
}

// semantic says that the answer has grown by so many bytes.
func (w *watch) semantic(bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = ninelives.PhaseStream
	w.stop(clockFirst)
	w.start(clockProgress)
	if w.limits.MinRate > 0 && w.limits.RateWindow > 0 {
		w.left[clockRate] = w.rate.add(bytes, w.limits.MinRate, w.limits.RateWindow)
		w.running[clockRate] = true
	}
}

// finished says that the answer stands: only what may follow it is waited for.
func (w *watch) finished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range clocks {
		w.stop(c)
	}
	w.start(clockLinger)
}

// stalled says that the provider has given no sign of life for at least half of
// the time that it has for one.
func (w *watch) stalled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[clockLiveness] && w.left[clockLiveness] <= w.limit(clockLiveness)/2
}

func (w *watch) at() ninelives.Phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// rateWindow finds out when a stream becomes too slow. Its time is the time
// waited, which only passes while the provider is being waited for.
type rateWindow struct {
	now     time.Duration
	first   time.Duration
	samples []rateSample
}

type rateSample struct {
	at    time.Duration
	bytes int
}

func (r *rateWindow) pass(d time.Duration) { r.now += d }

// add takes in bytes and tells how much longer the stream may say nothing:
// until fewer than rate×window bytes lie within the last window, but not before
// a whole window has passed since the first bytes.
func (r *rateWindow) add(bytes int, rate float64, window time.Duration) time.Duration {
	if len(r.samples) == 0 {
		r.first = r.now
	}
	if n := len(r.samples); n > 0 && r.samples[n-1].at == r.now {
		r.samples[n-1].bytes += bytes
	} else {
		r.samples = append(r.samples, rateSample{r.now, bytes})
	}
	need := rate * window.Seconds()
	sum := 0.0
	i := len(r.samples) - 1
	for ; i >= 0; i-- {
		sum += float64(r.samples[i].bytes)
		if sum >= need {
			break
		}
	}
	until := r.first + window
	if i >= 0 {
		// The window stays full until its sample i leaves it; older ones no
		// longer matter.
		until = max(until, r.samples[i].at+window)
		r.samples = append(r.samples[:0], r.samples[i:]...)
	}
	return max(until-r.now, 1)
}
