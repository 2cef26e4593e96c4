package gateway

import (
	"context"
	"sync"
	"time"
)

// DrainTime is how long running calls may take to finish once the gateway was
// told to stop, where no setting says otherwise. Service managers give 90 s
// (systemd) or 30 s (Kubernetes, by default) before they kill.
const DrainTime = 30 * time.Second

// drainRetry is the Retry-After, in seconds, of calls that come while the
// gateway stops: long enough for its successor to start.
const drainRetry = "5"

// drain is the way of a gateway from serving to stopped: until start, calls
// enter; from then on none does, and those that are inside finish.
type drain struct {
	mu       sync.Mutex
	stopping bool
	inside   int
	empty    chan struct{} // closed when it is stopping and nobody is inside
}

func newDrain() *drain { return &drain{empty: make(chan struct{})} }

// enter lets a call in, which leaves exactly once, or reports false: the gateway
// stops, and the call is answered with 503 and Retry-After.
func (d *drain) enter() (leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return nil, false
	}
	d.inside++
	return sync.OnceFunc(d.leave), true
}

// enter lets a call into the gateway, which leaves exactly once, or says why not:
// it stops, or has as many under way as it may.
func (s *Server) enter(limits Limits) (leave func(), no *refused) {
	leave, ok := s.drain.enter()
	if !ok {
		return nil, &refused{Trouble: troubleBusy, Text: "This gateway is stopping. Ask again in a moment.", Wait: 5 * time.Second}
	}
	if s.drain.inFlight() > limits.InFlight {
		leave()
		return nil, &refused{Trouble: troubleBusy, Text: "This gateway has as many calls under way as it may have. Ask again in a moment.", Wait: 2 * time.Second}
	}
	return leave, nil
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.stopping && d.inside == 0 {
		close(d.empty)
	}
}

// start closes the door; it may be called again.
func (d *drain) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return
	}
	d.stopping = true
	if d.inside == 0 {
		close(d.empty)
	}
}

// wait waits until the last call has left, or ctx ends, and says how many are
// still inside. It is for after start.
func (d *drain) wait(ctx context.Context) (left int) {
	select {
	case <-d.empty:
		return 0
	case <-ctx.Done():
		return d.inFlight()
	}
}

// inFlight is the number of calls inside.
func (d *drain) inFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside
}

// draining reports that the door is closed.
func (d *drain) draining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}
