package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ninelives-ai/ninelives/tool"
)

// server is one server and what is known of it. Its goroutine (own) alone
// changes the state; everybody else reads it, waits for a change, or asks.
type server struct {
	cfg    Server
	timing timing
	output tail

	settled chan struct{} // closed when the first attempt is over
	wake    chan struct{} // a call wants a server that is down
	relist  chan struct{} // the list of tools has changed
	idle    chan struct{} // a stale connection has no call any more, or has become stale

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change of state
	state    State
	link     *link // in state ready
	tools    []tool.Tool
	info     string
	failures int
	next     time.Time
	problem  string
}

func newServer(cfg Server, t timing) *server {
	return &server{
		cfg: cfg, timing: t, state: Connecting,
		settled: make(chan struct{}), changed: make(chan struct{}),
		wake: make(chan struct{}, 1), relist: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
}

// permanent marks a failure that trying again does not cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// refuse is for a server that is not even tried.
func (s *server) refuse(err error) {
	s.to(Failed, func() { s.problem = oneLine(err.Error(), 300) })
	close(s.settled)
}

// to changes the state and tells those who wait.
func (s *server) to(state State, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.next = state, time.Time{}
	if state != Ready {
		s.link = nil
	}
	if change != nil {
		change()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// own runs the server's states until ctx ends.
func (s *server) own(ctx context.Context) {
	settle := sync.OnceFunc(func() { close(s.settled) })
	defer settle()
	defer s.to(Closed, nil)
	for ctx.Err() == nil {
		s.to(Connecting, nil)
		l, err := s.dial(ctx)
		if err == nil {
			err = s.serve(ctx, l, settle)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // replaced at leisure
		}
		failures := s.failed(err)
		settle()
		var never permanent
		switch {
		case errors.As(err, &never):
			s.to(Failed, nil)
			<-ctx.Done()
		case failures >= s.timing.tries:
			s.to(Down, nil)
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
		default:
			s.rest(ctx, failures)
		}
	}
}

// failed counts a failure and keeps its reason.
func (s *server) failed(err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.problem = s.cfg.harmless(err)
	return s.failures
}

// rest waits out the backoff.
func (s *server) rest(ctx context.Context, failures int) {
	d := min(s.timing.longest, s.timing.first<<min(failures-1, 20))
	d += time.Duration(rand.Int64N(int64(d)/5 + 1)) // servers that fell together do not rise together
	s.to(Waiting, func() { s.next = time.Now().Add(d) })
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// dial connects and lists the tools.
func (s *server) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.connect)
	defer cancel()
	l, err := s.open(ctx)
	if err == nil {
		err = s.list(ctx, l)
		if err != nil {
			l.end(err)
		}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s", s.timing.connect)
	}
	return l, err
}

// serve is the state ready. It gives the reason why the connection broke, or
// nil if it is only to be replaced.
func (s *server) serve(ctx context.Context, l *link, settle func()) error {
	began := time.Now()
	s.to(Ready, func() { s.link, s.info = l, l.info })
	settle()
	defer l.end(nil)
	var pause <-chan time.Time // until the list may be asked for again
	again := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.dead:
			s.to(Connecting, nil) // no call finds it any more
			if time.Since(began) >= s.timing.stable {
				s.mu.Lock()
				s.failures = 0
				s.mu.Unlock()
			}
			return l.why
		case <-s.idle:
			if s.retire(l) {
				return nil
			}
		case <-s.relist:
			if again = pause != nil; again {
				continue
			}
			pause = s.refresh(ctx, l)
		case <-pause:
			if pause = nil; again {
				again = false
				pause = s.refresh(ctx, l)
			}
		}
	}
}

// refresh asks for the list of tools anew. One that cannot be had leaves the
// old one in place.
func (s *server) refresh(ctx context.Context, l *link) <-chan time.Time {
	ctx, cancel := context.WithTimeout(ctx, s.timing.connect)
	defer cancel()
	if err := s.list(ctx, l); err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.problem = s.cfg.harmless(fmt.Errorf("the list of tools: %w", err))
		s.mu.Unlock()
	}
	return time.After(s.timing.relist)
}

// acquire gives the connection for a call, which release gives back. It waits
// for a server that is on its way, but not for long.
func (s *server) acquire(ctx context.Context) (*link, error) {
	t := time.NewTimer(s.timing.patient)
	defer t.Stop()
	for woken := false; ; {
		s.mu.Lock()
		l, state, changed, problem := s.link, s.state, s.changed, s.problem
		if l != nil {
			select {
			case <-l.dead:
				l = nil // the owner is about to learn of it
			default:
				l.calls++
			}
		}
		s.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case state == Failed, state == Closed, state == Down && woken:
			return nil, fmt.Errorf("the MCP server %s is %s%s", s.cfg.Name, state, reason(problem))
		case state == Down:
			woken = true
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
		select {
		case <-changed:
		case <-t.C:
			return nil, fmt.Errorf("the MCP server %s is not connected%s; it is tried again by itself", s.cfg.Name, reason(problem))
		case <-ctx.Done():
			return nil, fmt.Errorf("the call ended while it waited for the MCP server %s%s", s.cfg.Name, reason(problem))
		}
	}
}

func reason(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}

// release gives a connection back.
func (s *server) release(l *link) {
	s.mu.Lock()
	l.calls--
	tell := l.stale && l.calls == 0
	s.mu.Unlock()
	if tell {
		s.nudge(s.idle)
	}
}

// outdate marks a connection whose notifications have ended.
func (s *server) outdate(l *link) {
	s.mu.Lock()
	l.stale = true
	s.mu.Unlock()
	s.nudge(s.idle)
}

// retire takes a stale connection out of use if no call is on it.
func (s *server) retire(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.stale || l.calls > 0 {
		return false
	}
	s.link = nil
	return true
}

// nudge tells the owner something that it need not hear twice.
func (s *server) nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *server) listed() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: oneLine(s.cfg.Name, 64), State: s.state, Tools: len(s.tools), Server: s.info, Failures: s.failures, Next: s.next, Error: s.problem}
	if s.state == Ready {
		st.Failures = 0
	}
	st.Output = s.cfg.harmless(errors.New(s.output.last()))
	return st
}
