package agent

import (
	"context"
	"errors"
	"iter"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Errors of a session that callers tell apart with errors.Is.
var (
	// ErrBusy: a turn is running.
	ErrBusy = errors.New("a turn is running")
	// ErrNothing: there is nothing to go on with, to undo or to begin.
	ErrNothing = errors.New("there is nothing to do")
	// ErrClosed: the session was closed.
	ErrClosed = errors.New("the session is closed")
)

// Session is one conversation: a sequence of turns over one journal. It is safe
// for concurrent use; one turn runs at a time. A crash, a panic or a broken
// journal in one session touches no other.
type Session struct{}

// Status is what a status line shows.
type Status struct {
	Session   string
	Directory string
	// Model and Signature are those of the running turn, else of the next one.
	Model     string
	Signature string
	Mode      tool.Mode
	// Window is the context window in tokens, Tokens how much of it the next
	// request would fill, as far as can be estimated.
	Window int
	Tokens int
	// Usage and Cost (US dollars) are those of the session. The counts of Usage
	// are totals: input with what came from the cache, output with reasoning.
	Usage ninelives.Usage
	Cost  float64
	// Turn is the number of the last turn; zero before the first.
	Turn int
	// Running: a turn runs, since Since, and is at its Step-th request.
	Running bool
	Since   time.Time
	Step    int
	Calls   int
	// Failed is how the last turn ended if [Session.Continue] can go on with it;
	// nil otherwise, and while a turn runs.
	Failed *End
	// Waiting is how many inputs wait for a turn; see [Session.Next].
	Waiting int
	// Todo is the list of tasks as the model last wrote it; empty if it wrote none.
	Todo string
}

// Open begins a session. It holds it until Close.
func (a *Agent) Open(ctx context.Context) (*Session, error) { return nil, ErrNothing }

// Resume takes up a session by the beginning of its id, and says what of its
// record was damaged and left out. If a living process holds it, the error is
// journal.ErrTaken and says which.
//
// An input whose turn never began, or a turn that was cut off, is in
// [Session.Status]; Continue goes on with it, Turn closes it and begins anew.
func (a *Agent) Resume(ctx context.Context, id string) (*Session, error) { return nil, ErrNothing }

// ID is the session's id in the journal.
func (s *Session) ID() string { return "" }

// State is what the session's entries come to at this moment. The value does
// not change any more.
func (s *Session) State() *State { return nil }

// Status is what a status line shows.
func (s *Session) Status() Status { return Status{} }

// Turn carries out one turn: the message is recorded, then everything else
// happens, and [Ended] is the last event. The iterator's error, which comes
// instead of it, is for what no turn can end in: another turn is running
// (ErrBusy), or the journal cannot be written. A failed model is no error but
// an end (Ended.Reason).
//
// A turn that was cut off or failed before is closed first. Steered input that
// missed its turn is taken up with the message. Leaving the loop stops the turn,
// as Stop does.
func (s *Session) Turn(ctx context.Context, msg ninelives.Message) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(nil, ErrNothing) }
}

// Continue goes on with the last turn where it was left: cut off by a crash,
// failed, or stopped by the user or a limit, of which it grants another quota.
// Where an input was accepted whose turn never began, it begins it. If there is
// nothing to go on with, the error is ErrNothing.
func (s *Session) Continue(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(nil, ErrNothing) }
}

// Next begins a turn with what waits: steered input that missed its turn, else
// the first that was queued. If nothing waits, the error is ErrNothing.
func (s *Session) Next(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(nil, ErrNothing) }
}

// Steer adds a message to the running turn: the model reads it with its next
// request. It is durable when Steer returns; number is its place in the order
// of acceptance. One that misses the end of the turn waits for the next.
func (s *Session) Steer(ctx context.Context, msg ninelives.Message) (number int, err error) {
	return 0, ErrNothing
}

// Queue adds a message that begins a turn of its own when the running one has
// ended (see Next). It is durable when Queue returns.
func (s *Session) Queue(ctx context.Context, msg ninelives.Message) (number int, err error) {
	return 0, ErrNothing
}

// Queued lists what waits for a turn, in the order of acceptance.
func (s *Session) Queued() []Input { return nil }

// Stop ends the running turn: the stream of the model, the tools and what they
// started. What was done stays done, and the history is valid. It covers what
// was steered and queued before it: that begins no turn any more, but stands in
// the history. What comes after it is not covered. Without a turn it does nothing.
func (s *Session) Stop() {}

// SetMode sets the permission mode from the next call on.
func (s *Session) SetMode(ctx context.Context, m tool.Mode) error { return ErrNothing }

// Compact makes the context smaller now. It fails with ErrBusy during a turn.
func (s *Session) Compact(ctx context.Context) (Compaction, error) { return Compaction{}, ErrNothing }

// Undo takes back the file changes of the last turn that has some and was not
// undone. The conversation stays, and the model is told.
func (s *Session) Undo(ctx context.Context) (Undo, error) { return Undo{}, ErrNothing }

// Redo makes the changes again that Undo took back last.
func (s *Session) Redo(ctx context.Context) (Undo, error) { return Undo{}, ErrNothing }

// Rewind makes the model forget the turns from number turn on. Files are left
// alone: see Undo.
func (s *Session) Rewind(ctx context.Context, turn int) error { return ErrNothing }

// Close stops the running turn, waits for its end, and lets go of the session.
func (s *Session) Close() error { return nil }
