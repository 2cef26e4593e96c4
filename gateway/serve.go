package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve answers on the listeners until ctx ends. Then new calls are refused and
// those that are under way may finish, for at most patience (0 means
// DrainTime); what is still under way after that is cut, and its clients see
// that it was. The error is the one that ended it; nil after a drain.
func (s *Server) Serve(ctx context.Context, patience time.Duration, listeners ...net.Listener) error {
	if patience <= 0 {
		patience = DrainTime
	}
	server := newServer(s, s.plan.Load().Limits, s.options.Log)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.drain.start()
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if n := s.drain.wait(left); n > 0 {
		s.options.Log.Warn("calls were cut", "calls", n, "after_seconds", patience.Seconds())
	}
	// A call has left before the server has written the end of its body.
	if e := server.Shutdown(left); e != nil && !errors.Is(e, context.DeadlineExceeded) {
		err = errors.Join(err, e)
	}
	err = errors.Join(err, server.Close())
	for range listeners {
		select {
		case e := <-failed:
			if !errors.Is(e, http.ErrServerClosed) {
				err = errors.Join(err, e)
			}
		default: // that one ended it
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
