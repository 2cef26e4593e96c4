// Package agent carries out the turns of a coding agent so that they survive:
// crashes, outages, cut answers, full windows, loops and a change of model.
//
//	entry.go     what is recorded of a session; codec.go in which form
//	state.go     what the entries come to; lost.go where some are missing
//	decide.go    what next: the pure decider; replay.go asks it again
//	turn.go      the driver that does it
//	ask.go       one request to the model; prompt.go, instructions.go
//	calls.go     the calls of an answer; toolbox.go, permit.go
//	resume.go    taking up what was cut off
//	session.go   what can be done with a session; steer.go while a turn runs,
//	             shrink.go and undo.go between turns
//	subagent.go  turns that a call begins, in one budget (pool.go)
//	guard.go     the caps; rate.go, and the loop guard: loop.go, chant.go
//	compact*.go  keeping the context inside the window; window.go, tokens.go,
//	             and fit.go for one request
//	memory*.go   what is kept for later sessions; recollect.go, markdown.go
//	notes.go     what the program tells the model
//	event.go     what a turn tells those who watch it
//	hook*.go     what can be hung into the loop
//	settings.go  the numbers
//
// A turn is decided by a pure function over the recorded entries and done by a
// thin driver: it asks what next, records the intent, does it, records the
// effect, and asks again. Whoever has the entries can go on, wherever the
// process died; [Replay] asks the decider the same questions again.
package agent

import (
	"context"
	"errors"
	"iter"
	"sync"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// Option sets one thing of an Agent.
type Option func(*Agent)

// Agent makes sessions of one model, one set of tools and one journal. It is
// safe for concurrent use; each of its sessions has one turn at a time.
type Agent struct {
	tools    []tool.Tool
	sources  []func() []tool.Tool
	settings Settings
	hooks    []Hook
	journal  *journal.Journal
	dir      string
	restorer FileRestorer
	approve  func(context.Context, Question) Decision
	grant    func(context.Context, Ended) bool
	save     func(text string) (path string, err error)
	memory   *Memory
	version  string
	reads    bool // a subagent that only reads

	mu        sync.Mutex // guards what follows
	model     ninelives.Model
	signature string
	own       *Session // of Agent.Turn

	swapping sync.Mutex // one exchange of the model at a time
}

// FileRestorer takes the file changes of a turn back, or makes them again
// (redo). Restored are the changes that it made; conflicts say, each in a line
// that begins with the path, what it left alone and why. tool.Workspace is one.
type FileRestorer interface {
	Restore(ctx context.Context, changes []tool.Change, redo bool) (restored []tool.Change, conflicts []string, err error)
}

// New makes an agent of a model, with the settings of [DefaultSettings], no
// tools and no journal.
func New(model ninelives.Model, opts ...Option) *Agent {
	a := &Agent{model: model, settings: DefaultSettings(), dir: "."}
	for _, o := range opts {
		o(a)
	}
	return a
}

// Tools adds tools that the model can call.
func Tools(tools ...tool.Tool) Option {
	return func(a *Agent) { a.tools = append(a.tools, tools...) }
}

// ToolsFrom adds tools that come and go, such as those of outside servers: the
// source is asked when a turn begins, and the turn keeps what it gave. One whose
// name is taken already is left out.
func ToolsFrom(source func() []tool.Tool) Option {
	return func(a *Agent) { a.sources = append(a.sources, source) }
}

// Journal is where the sessions are recorded. Without one they live in memory
// and end with the process.
func Journal(j *journal.Journal) Option { return func(a *Agent) { a.journal = j } }

// With sets all numbers at once.
func With(s Settings) Option { return func(a *Agent) { a.settings = s } }

// Hooks adds hooks; they run in the order in which they were added.
func Hooks(hooks ...Hook) Option { return func(a *Agent) { a.hooks = append(a.hooks, hooks...) } }

// Workspace is the directory that the sessions work in; the default is the
// current one.
func Workspace(dir string) Option { return func(a *Agent) { a.dir = dir } }

// Restorer is what takes file changes back ([Session.Undo]).
func Restorer(r FileRestorer) Option { return func(a *Agent) { a.restorer = r } }

// Outputs keeps what is too long for a result, and says where it can be read
// (tool.Workspace.Outputs). Without it what is too long is lost, and the model is
// told so.
func Outputs(save func(text string) (path string, err error)) Option {
	return func(a *Agent) { a.save = save }
}

// Remember hands what sessions leave to a memory, once they are idle. The memory
// is the caller's to close, after the sessions.
func Remember(m *Memory) Option { return func(a *Agent) { a.memory = m } }

// Approve asks a person for a call. It may take as long as the person does; it
// must return when the context ends. Without it nobody can be asked: what would
// be asked for is denied, and the model is told so.
func Approve(ask func(ctx context.Context, q Question) Decision) Option {
	return func(a *Agent) { a.approve = ask }
}

// GrantMore asks the user, when the safety guard is about to stop a turn,
// whether it gets another full quota. Without it the turn ends, and
// [Session.Continue] is the user's word.
func GrantMore(ask func(ctx context.Context, e Ended) bool) Option {
	return func(a *Agent) { a.grant = ask }
}

// Version is the program's version, as it is recorded.
func Version(v string) Option { return func(a *Agent) { a.version = v } }

// Signature stands for the configuration that the model was opened from; see
// [Agent.Swap].
func Signature(s string) Option { return func(a *Agent) { a.signature = s } }

// Model is the model of the turns to come, for everything that asks one beside
// the turns (memory, subagents).
func (a *Agent) Model() ninelives.Model {
	m, _ := a.current()
	return m
}

func (a *Agent) current() (ninelives.Model, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.model, a.signature
}

// Swap exchanges the model for the one that open gives, from the next turn of
// every session on: the runner, compaction, memory and subagents switch
// together, and a turn that is running ends on the model that it began with. If
// the signature is the present one, nothing is opened and changed is false. If
// open fails, the old model stays.
//
// Source: design 000 §2.3.
func (a *Agent) Swap(signature string, open func() (ninelives.Model, error)) (changed bool, err error) {
	a.swapping.Lock()
	defer a.swapping.Unlock()
	if _, old := a.current(); old == signature {
		return false, nil
	}
	m, err := open()
	switch {
	case err != nil:
		return false, err
	case m == nil:
		return false, errors.New("no model was opened: the one in use stays")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.model, a.signature = m, signature
	return true, nil
}

// Turn carries out a turn in a session of the agent's own, which is opened at
// the first one. See [Session.Turn].
func (a *Agent) Turn(ctx context.Context, text string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s, err := a.ownSession(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		s.Turn(ctx, ninelives.UserText(text))(yield)
	}
}

func (a *Agent) ownSession(ctx context.Context) (*Session, error) {
	a.mu.Lock()
	s := a.own
	a.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := a.Open(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own != nil { // another turn was faster
		return a.own, s.Close()
	}
	a.own = s
	return s, nil
}
