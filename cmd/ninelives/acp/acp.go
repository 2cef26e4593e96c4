// Package acp serves the Agent Client Protocol: editors (Zed, the IDEs of
// JetBrains and others) drive the agent over standard input and output.
//
//	acp.go      what the package needs of the program, and Serve
//	rpc.go      JSON-RPC: one message a line, in the order of arrival
//	server.go   the methods of the protocol
//	choice.go   modes and models to choose from
//	session.go  one conversation: its prompt, its end, its questions
//	turn.go     a turn's events as updates; ending.go how it ended
//	call.go     calls of tools; diff.go their diffs
//	prompt.go   what the user sends; command.go the commands in it
//	history.go  a recorded session as updates
//
// The messages are the types of the protocol's Go SDK. The connection is this
// package's own: the SDK's starts requests in goroutines of their own, so that
// a cancel can overtake the prompt that it is for; it says nothing to a line
// that is no JSON, and hangs up on one that is too long.
//
// What was sent to an editor cannot be taken back. So the text of an answer is
// sent when the answer is durable, whole; what an attempt wrote that failed is
// never seen. Thoughts, calls of tools and what they write are sent as they come.
package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// Config is what the editor's side works with. Open is needed; what a missing
// function would do is not offered to the editor.
type Config struct {
	// Version is the program's.
	Version string
	// Images: the model can be shown pictures.
	Images bool
	// Open begins a session, with an agent of its own.
	Open func(ctx context.Context, o Opening) (Handle, error)
	// Resume takes a session up by its whole id. An error that is ErrNoSession
	// says that there is none.
	Resume func(ctx context.Context, id string, o Opening) (Handle, error)
	// Sessions lists the sessions of a directory, or of all if it is empty, the
	// newest first.
	Sessions func(ctx context.Context, dir string) ([]Listed, error)
}

// ErrNoSession: there is no session with this id.
var ErrNoSession = errors.New("there is no such session")

// Opening is what an editor wants of a session.
type Opening struct {
	// Directory is the workspace, absolute.
	Directory string
	// Servers are those of the Model Context Protocol that the editor has for
	// the session, beside the program's own.
	Servers []Server
	// Approve asks the user for a call: it is for agent.Approve.
	Approve func(ctx context.Context, q agent.Question) agent.Decision
}

// Server is a server of the Model Context Protocol: a command, or a URL.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
}

// Handle is an open session and what was opened for it.
type Handle struct {
	Session Session
	// History gives the session's entries from the first; nil where there are none.
	History func(ctx context.Context) ([]agent.Entry, error)
	// Models can be chosen from; Model is the id of the present one. Switch makes
	// another the model of the turns to come, of this session alone.
	Models []Model
	Model  string
	Switch func(ctx context.Context, id string) error
	// Notices are shown with the first turn, each in a line.
	Notices []string
	// Close lets go of what was opened for the session, its child processes
	// too. It is called once, after Session.Close.
	Close func() error
}

// Model is a model to choose.
type Model struct{ ID, Name, Description string }

// Listed is a session that can be taken up.
type Listed struct {
	ID        string
	Directory string
	Title     string
	Updated   time.Time
}

// Session is what an editor needs of a conversation; [agent.Session] is one.
type Session interface {
	ID() string
	State() *agent.State
	Status() agent.Status
	Turn(ctx context.Context, msg ninelives.Message) iter.Seq2[agent.Event, error]
	Continue(ctx context.Context) iter.Seq2[agent.Event, error]
	Stop()
	SetMode(ctx context.Context, m tool.Mode) error
	Compact(ctx context.Context) (agent.Compaction, error)
	Undo(ctx context.Context) (agent.Undo, error)
	Redo(ctx context.Context) (agent.Undo, error)
	Rewind(ctx context.Context, turn int) error
	Close() error
}

var _ Session = (*agent.Session)(nil)

// How long the end may take: answers that are nearly there are given in soon,
// turns that were told to stop have unwound in late.
const (
	soon = 5 * time.Second
	late = 30 * time.Second
)

// Serve speaks with the editor until it has closed in, which is a clean end
// (nil), until out takes nothing more, or until the context ends; the error says
// which. Turns that run by then are stopped, and their work is kept; when Serve
// returns, every session is closed.
//
// Nothing but the protocol is written to out. If in does not end, a goroutine
// is left that waits for it.
func Serve(ctx context.Context, in io.Reader, out io.Writer, cfg Config) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s := &server{cfg: cfg, base: base, sessions: map[string]*session{}}
	s.conn = newConn(out, s.admit, cancel)
	read := make(chan error, 1)
	go func() { read <- s.conn.read(base, in) }()
	var why error
	select {
	case why = <-read:
	case <-base.Done():
		why = context.Cause(base)
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	if err := s.end(cancel); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// errOver is why what still runs ends.
var errOver = errors.New("the editor has closed the connection")

// end stops what runs and closes every session.
func (s *server) end(cancel context.CancelCauseFunc) error {
	s.conn.close()
	s.mu.Lock()
	s.over = true
	var open []*session
	for _, one := range s.sessions {
		open = append(open, one)
	}
	s.mu.Unlock()
	for _, one := range open {
		one.cancel()
	}
	if !waited(&s.conn.handlers, soon) {
		cancel(errOver)
		if !waited(&s.conn.handlers, late) {
			return fmt.Errorf("what the editor had asked for did not end within %s", soon+late)
		}
	}
	errs := make([]error, len(open))
	var wg sync.WaitGroup
	for i, one := range open {
		wg.Go(func() { errs[i] = one.close() })
	}
	if !waited(&wg, late) {
		return fmt.Errorf("a session did not end within %s; it can be resumed", late)
	}
	return errors.Join(errs...)
}

// waited reports that the group was done in time.
func waited(wg *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
