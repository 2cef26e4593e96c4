package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// handshake is the protocol version that is offered: the last one that begins
// with initialize, which every server knows. Source: the specification of
// 2025-11-25.
const handshake = "2025-11-25"

// maxFrame bounds one message of a server.
const maxFrame = 16 << 20

// link is one connection to a server.
type link struct {
	session *sdk.ClientSession
	info    string
	release func() // ends what the connection stands on: the command, or HTTP
	after   func() // tidies up when the connection is closed

	dead chan struct{} // closed when it is over
	why  error         // set before dead is closed

	once  sync.Once
	cause error // why it was ended from here

	// Guarded by the server's lock.
	calls int
	stale bool
}

// open makes a connection and shakes hands.
func (s *server) open(ctx context.Context) (*link, error) {
	l := &link{dead: make(chan struct{})}
	var transport sdk.Transport
	var err error
	if s.cfg.URL != "" {
		transport, l.release, l.after = s.overHTTP(l)
	} else if transport, l.release, err = s.overCommand(); err != nil {
		return nil, err
	} else {
		l.after = func() {}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "ninelives", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		Logger:       slog.New(slog.DiscardHandler),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.nudge(s.relist)
		},
	})
	type connected struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan connected, 1)
	go func() { // it may hang in a write that no context ends
		session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: handshake})
		done <- connected{session, err}
	}()
	select {
	case c := <-done:
		l.session, err = c.session, c.err
	case <-ctx.Done():
		l.release() // which ends the write
		c := <-done
		if c.session != nil {
			c.session.Close()
		}
		l.after()
		return nil, ctx.Err()
	}
	if err != nil {
		l.release()
		l.after()
		return nil, s.explain(err)
	}
	if r := l.session.InitializeResult(); r != nil && r.ServerInfo != nil {
		l.info = oneLine(r.ServerInfo.Name+" "+r.ServerInfo.Version, 80)
	}
	go func() {
		err := l.session.Wait()
		l.once.Do(func() {}) // whoever ended it has said why
		if l.why = l.cause; l.why == nil {
			l.why = s.explain(err)
		}
		close(l.dead)
	}()
	return l, nil
}

// explain says in plain words why a connection did not come about or broke.
func (s *server) explain(err error) error {
	var never permanent
	switch {
	case errors.As(err, &never):
		return err
	case err == nil || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed):
		return fmt.Errorf("it closed the connection%s", reason(s.output.last()))
	}
	if last := s.output.last(); last != "" {
		return fmt.Errorf("%w; it wrote: %s", err, last)
	}
	return err
}

// end closes the connection and returns when all of it is gone. A reason that
// is given becomes the one that is told.
func (l *link) end(why error) {
	l.once.Do(func() { l.cause = why })
	closed := make(chan struct{})
	go func() {
		l.session.Close()
		close(closed)
	}()
	l.release()
	<-closed
	<-l.dead
	l.after()
}
