package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// Errors of a session that callers tell apart with errors.Is.
var (
	// ErrBusy: a turn is running.
	ErrBusy = errors.New("a turn is running in this session – steer it, queue the message, or stop it first")
	// ErrNothing: there is nothing to go on with, to undo or to begin.
	ErrNothing = errors.New("there is nothing to do")
	// ErrClosed: the session was closed.
	ErrClosed = errors.New("the session is closed")
)

// Session is one conversation: a sequence of turns over one journal. It is safe
// for concurrent use; one turn runs at a time. A crash, a panic or a broken
// journal in one session touches no other.
type Session struct {
	a       *Agent
	log     recorder
	dir     string
	damaged []journal.Damage

	parent *Session // whose turn this one was opened for; nil for none
	shared *Tally   // what that turn had counted by then
	pool   *pool    // what is counted with it

	mu      sync.Mutex // guards what follows
	st      *State
	staged  []journal.Entry // in st, not yet durable
	head    journal.Head
	headNew bool
	broken  error // why nothing can be recorded any more
	closed  bool
	busy    chan struct{} // closed when what keeps the session busy is over; nil if nothing does
	turn    *turn         // the running one
	chosen  tool.Mode     // by SetMode; a session that is resumed begins with the agent's own
	said    []string      // warnings that no turn has shown yet
	printed fingerprint   // of the view, as far as it was sent
}

// recorder is where the entries go: a session of the journal, or nowhere.
type recorder interface {
	ID() string
	Append(ctx context.Context, h *journal.Head, entries ...journal.Entry) error
	Close() error
}

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
	// Running: a turn runs, since Since, and has had Step answers and Calls calls.
	Running bool
	Since   time.Time
	Step    int
	Calls   int
	// Failed is how the last turn ended if [Session.Continue] can go on with it;
	// nil otherwise, and while a turn runs.
	Failed *End
	// Waiting is how many inputs of the user wait for a turn; see [Session.Next].
	Waiting int
	// Todo is the list of tasks as the model last wrote it; empty if it wrote none.
	Todo []tool.Task
}

// Open begins a session and holds it until Close. It is recorded with its
// first entry.
func (a *Agent) Open(ctx context.Context) (*Session, error) { return a.open(ctx, Opening{}) }

// open begins a session, as a child of another one where the opening says so.
func (a *Agent) open(ctx context.Context, opening Opening) (*Session, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(a.dir)
	if err != nil {
		return nil, fmt.Errorf("the workspace %q cannot be found: %w", a.dir, err)
	}
	s := &Session{a: a, dir: dir, st: &State{}, pool: newPool()}
	opening.Directory, opening.Version = dir, a.version
	s.head = journal.Head{State: headOpen, Labels: opening.labels()}
	at := now()
	first, err := encode(at, opening)
	if err != nil {
		return nil, err
	}
	if a.journal == nil {
		s.log = unrecorded(newID())
	} else if s.log, err = a.journal.NewSession(ctx, s.head, first); err != nil {
		return nil, err
	}
	s.st.add(at, opening)
	s.started(ctx)
	return s, nil
}

// labels are what lists of sessions are filtered by.
func (o Opening) labels() map[string]string {
	labels := map[string]string{"directory": o.Directory}
	if o.Parent != "" {
		labels["parent"] = o.Parent
	}
	if o.Call != "" {
		labels[LabelCall] = o.Call
	}
	return labels
}

// check says what is wrong with the agent's tools; each is needed by its name.
func (a *Agent) check() error {
	have := map[string]bool{}
	for _, t := range a.tools {
		name := t.Spec().Name
		switch {
		case name == "":
			return errors.New("a tool has no name")
		case have[name]:
			return fmt.Errorf("two tools are called %q", name)
		}
		have[name] = true
	}
	return nil
}

// ID is the session's id in the journal.
func (s *Session) ID() string { return s.log.ID() }

// Damaged lists what of the session's record was damaged and left out when it
// was resumed.
func (s *Session) Damaged() []journal.Damage { return s.damaged }

// State is what the session's entries come to at this moment. The value does
// not change any more.
func (s *Session) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.clone()
}

// Status is what a status line shows.
func (s *Session) Status() Status {
	model, signature := s.a.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	v := Status{
		Session: s.ID(), Directory: s.dir, Model: model.Name(), Signature: signature,
		Mode: s.mode(), Window: st.window, Tokens: st.overhead + st.tokens,
		Usage: st.usage, Cost: st.cost, Todo: st.Todo(),
	}
	for _, in := range st.waiting {
		if !in.Note {
			v.Waiting++
		}
	}
	if len(st.turns) > 0 {
		t := st.turn()
		v.Turn, v.Step, v.Calls, v.Since = t.Number, t.Steps, t.Calls, t.Began
	}
	if s.turn != nil {
		v.Running = true
		v.Model, v.Signature = st.model, st.signature
	} else {
		v.Failed = st.resumable()
	}
	if v.Window == 0 {
		c, _ := ninelives.CandidateOf(model)
		v.Window, _ = s.a.settings.Compaction.WindowOf(c, st.learnt)
	}
	return v
}

// mode is the permission mode of the next call. What an earlier process was
// allowed does not hold for this one.
func (s *Session) mode() tool.Mode {
	if s.parent != nil {
		// Never more than the parent may, also when that changes meanwhile.
		s.parent.mu.Lock()
		defer s.parent.mu.Unlock()
		return s.parent.mode()
	}
	if s.chosen != "" {
		return s.chosen
	}
	return s.a.settings.Permissions.Mode
}

// resumable is the end of the last turn, if one can go on with it; one that was
// cut off ends as interrupted.
func (s *State) resumable() *End {
	if len(s.turns) == 0 || s.turn().Rewound {
		return nil
	}
	t := s.turn()
	if t.End == nil {
		return &End{Turn: t.Number, Reason: ReasonInterrupted, FailedTurn: true, Message: "the turn was cut off: its process died"}
	}
	if t.End.Reason.Failed() || t.End.Limit != "" || t.End.Reason == ReasonCanceled || t.End.Reason == ReasonDenied {
		return t.End
	}
	return nil
}

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
	return func(yield func(Event, error) bool) {
		s.drive(ctx, yield, func(t *turn) error {
			// First of all, so that nothing that follows can lose it.
			if _, err := s.accept(ctx, Input{Via: ViaTurn, Message: msg}); err != nil {
				return err
			}
			if err := t.closeInterrupted(); err != nil {
				return err
			}
			return t.start(s.missed())
		})
	}
}

// Continue goes on with the last turn where it was left: cut off by a crash,
// failed, or stopped by the user or a limit, of which it grants another quota.
// Where an input was accepted whose turn never began, it begins it. If there is
// nothing to go on with, the error is ErrNothing.
func (s *Session) Continue(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s.drive(ctx, yield, func(t *turn) error { return t.resume() })
	}
}

// Next begins a turn with what waits: steered input that missed its turn, else
// the first that was queued. If nothing waits, the error is ErrNothing.
func (s *Session) Next(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s.drive(ctx, yield, func(t *turn) error {
			if err := t.closeInterrupted(); err != nil {
				return err
			}
			inputs := s.next()
			if len(inputs) == 0 {
				return ErrNothing
			}
			return t.start(inputs)
		})
	}
}

// SetMode sets the permission mode from the next call on.
func (s *Session) SetMode(ctx context.Context, m tool.Mode) error {
	if !slices.Contains(tool.Modes(), m) {
		return fmt.Errorf("there is no permission mode %q; the modes are %v", m, tool.Modes())
	}
	if err := s.record(ctx, ModeChange{Mode: m}); err != nil {
		return err
	}
	s.mu.Lock()
	s.chosen = m
	s.mu.Unlock()
	return nil
}

// Close stops the running turn, waits for its end, and lets go of the session.
// It must not be called from within the loop over a turn's events.
func (s *Session) Close() error {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil
		}
		busy := s.busy
		if busy == nil {
			s.closed = true
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		s.Stop()
		<-busy
	}
	if m := s.a.memory; m != nil {
		m.OnTurn(s.ID())() // nothing of it can be recorded any more
	}
	s.ended(context.Background())
	s.a.mu.Lock()
	if s.a.own == s {
		s.a.own = nil
	}
	s.a.mu.Unlock()
	return s.log.Close()
}

// occupy makes the session busy; free is to be called when that is over.
func (s *Session) occupy(t *turn) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.broken != nil:
		return nil, s.broken
	case s.busy != nil:
		return nil, ErrBusy
	}
	done := make(chan struct{})
	s.busy, s.turn = done, t
	return func() {
		s.mu.Lock()
		s.busy, s.turn = nil, nil
		s.mu.Unlock()
		close(done)
	}, nil
}

// working keeps the memory away from the session until idle is called, which
// hands over what it has left.
func (s *Session) working() (idle func()) {
	m := s.a.memory
	if m == nil {
		return func() {}
	}
	ended := m.OnTurn(s.ID())
	return func() {
		ended()
		s.idle(now())
	}
}

// idle hands the memory what it has not taken up yet: what a compaction has
// dropped from the view at once, everything when the session has been idle.
func (s *Session) idle(since time.Time) {
	m := s.a.memory
	if m == nil {
		return
	}
	st := s.State()
	h := History{
		Session: s.ID(), Messages: st.Messages(), From: st.archived, Through: len(st.messages) - 1, Since: since,
		Record: func(a Archive) error { return s.record(context.Background(), a) },
	}
	if n := len(st.compactions); n > 0 {
		if c := st.compactions[n-1]; c.View != nil && c.Through >= st.archived {
			h.Through, h.Since = c.Through, time.Time{}
		}
	}
	m.OnIdle(h)
}

// stage adds entries to the state; they become durable with the next commit.
func (s *Session) stage(entries ...Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stageLocked(entries...)
}

func (s *Session) stageLocked(entries ...Entry) {
	for _, e := range entries {
		at := now()
		written, err := encode(at, e)
		if err != nil && s.broken == nil {
			s.broken = err
		}
		if bytes.Contains(written.Data, []byte("\uFFFD")) {
			// Bytes that are no UTF-8 are lost in the record, which is what counts.
			if read, err := Decode(written); err == nil {
				e = read
			}
		}
		s.st.add(at, e)
		s.staged = append(s.staged, written)
		s.lead(e)
	}
}

// commit makes what was staged durable, in one transaction. After a failure
// nothing can be recorded any more: what is on the disk is what counts, and the
// session must be resumed from there.
func (s *Session) commit(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLocked(ctx)
}

func (s *Session) commitLocked(ctx context.Context) error {
	if s.broken != nil {
		return s.broken
	}
	if len(s.staged) == 0 && !s.headNew {
		return nil
	}
	var head *journal.Head
	if s.headNew {
		h := s.head
		head = &h
	}
	// What has happened is recorded, also when nobody wants more of it.
	if err := s.log.Append(context.WithoutCancel(ctx), head, s.staged...); err != nil {
		s.broken = fmt.Errorf("the session can go no further, because it cannot be recorded – resume it when that is mended: %w", err)
		return s.broken
	}
	s.staged, s.headNew = nil, false
	return nil
}

// record makes entries durable at once.
func (s *Session) record(ctx context.Context, entries ...Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.stageLocked(entries...)
	return s.commitLocked(ctx)
}

// What lists show of a session whose last turn has not ended; after it they
// show its [Reason].
const (
	headOpen    = "open"    // nothing was said yet
	headWaiting = "waiting" // something was, and no turn has begun with it
	headRunning = "running"
)

// lead keeps what lists show of the session.
func (s *Session) lead(e Entry) {
	h := s.head
	switch e := e.(type) {
	case Input:
		if e.Note {
			return
		}
		if h.Title == "" {
			h.Title = cmp.Or(title(e.Message.Text()), "(no words)")
		}
		if h.State == headOpen {
			h.State = headWaiting
		}
	case Start:
		h.State = headRunning
		labels := map[string]string{"model": e.Model}
		for k, v := range h.Labels {
			if k != "model" {
				labels[k] = v
			}
		}
		h.Labels = labels
	case End:
		h.State = string(e.Reason)
	default:
		return
	}
	s.head, s.headNew = h, true
}

// title is the first line of a text.
func title(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return line
		}
	}
	return ""
}

// now is the time as the journal keeps it.
func now() time.Time { return time.Now().Truncate(time.Millisecond) }

// unrecorded is the recorder of an agent without a journal: its id.
type unrecorded string

func (u unrecorded) ID() string { return string(u) }
func (u unrecorded) Append(context.Context, *journal.Head, ...journal.Entry) error {
	return nil
}
func (u unrecorded) Close() error { return nil }
