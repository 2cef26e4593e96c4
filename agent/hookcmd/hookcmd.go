// Package hookcmd runs the commands that a configuration hangs into the loop.
//
//	hookcmd.go  which commands, when, and what their answers come to
//	input.go    what a command reads
//	run.go      one command, with its bounds
//
// docs/hooks.md is the protocol, for those who write such commands.
package hookcmd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/internal/visible"
	"github.com/ninelives-ai/ninelives/tool"
)

// Timeout bounds a command that sets no bound of its own.
const Timeout = time.Minute

// farewell bounds the commands that are told of an end after the user has
// stopped the turn: nobody waits for them.
const farewell = 5 * time.Second

// Options are what all commands share.
type Options struct {
	// Directory is the workspace, absolute: where the commands run.
	Directory string
	// Hide are environment variables that the commands do not see, besides the
	// keys of providers (provider.KeyVariables).
	Hide []string
	// Warn is told, in a line, of a command that failed; nil tells nobody.
	Warn func(text string)
}

// New makes a hook that runs the commands, in the order given, at their nodes.
// The first that blocks is the last that is run. It is an error if a command is
// not well formed (agent.CommandHook.Check).
func New(o Options, commands ...agent.CommandHook) (agent.Hook, error) {
	r := &runner{Options: o, commands: map[agent.HookPoint][]agent.CommandHook{}, notes: map[string]string{}}
	if r.Warn == nil {
		r.Warn = func(string) {}
	}
	for i, c := range commands {
		if err := c.Check(); err != nil {
			return agent.Hook{}, fmt.Errorf("hook %d: %w", i+1, err)
		}
		r.commands[c.On] = append(r.commands[c.On], c)
	}
	return r.hook(), nil
}

type runner struct {
	Options
	commands map[agent.HookPoint][]agent.CommandHook

	mu    sync.Mutex
	notes map[string]string // of the start of a session, until its next turn
}

// hook has a function for each node that there are commands for.
func (r *runner) hook() agent.Hook {
	h := agent.Hook{Name: "commands"}
	if r.has(agent.PointSessionStart) {
		h.SessionStart = func(ctx context.Context, session, directory string) {
			r.keep(session, r.tell(ctx, input{Event: agent.PointSessionStart, Session: session, Directory: directory}))
		}
	}
	if r.has(agent.PointSessionEnd) {
		h.SessionEnd = func(ctx context.Context, session string) {
			ctx, cancel := parting(ctx)
			defer cancel()
			r.tell(ctx, input{Event: agent.PointSessionEnd, Session: session})
		}
	}
	if r.has(agent.PointTurnStart) || r.has(agent.PointSessionStart) {
		h.TurnStart = func(ctx context.Context, s *agent.State, said string) agent.Intervention {
			in := ofState(ctx, agent.PointTurnStart, s)
			in.Input = said
			note := r.kept(in.Session)
			i := r.ask(ctx, in)
			i.Note = joined(note, i.Note)
			return i
		}
	}
	if r.has(agent.PointTurnEnd) {
		h.TurnEnd = func(ctx context.Context, s *agent.State, e agent.Ended) {
			in := ofState(ctx, agent.PointTurnEnd, s)
			in.Session, in.Turn, in.End = e.Session, e.Turn, endOf(e)
			ctx, cancel := parting(ctx)
			defer cancel()
			r.tell(ctx, in)
		}
	}
	if r.has(agent.PointBeforeIteration) {
		h.BeforeIteration = func(ctx context.Context, s *agent.State) agent.Intervention {
			return r.ask(ctx, ofState(ctx, agent.PointBeforeIteration, s))
		}
	}
	if r.has(agent.PointAfterIteration) {
		h.AfterIteration = func(ctx context.Context, s *agent.State) agent.Intervention {
			return r.ask(ctx, ofState(ctx, agent.PointAfterIteration, s))
		}
	}
	r.modelHooks(&h)
	r.toolHooks(&h)
	return h
}

func (r *runner) modelHooks(h *agent.Hook) {
	if r.has(agent.PointBeforeModel) {
		h.BeforeModel = func(ctx context.Context, p agent.Purpose, req *ninelives.Request) {
			in := of(ctx, agent.PointBeforeModel)
			in.Purpose, in.Messages = p, len(req.Messages)
			r.tell(ctx, in)
		}
	}
	if r.has(agent.PointAfterModel) {
		h.AfterModel = func(ctx context.Context, a agent.Answer, err error) {
			in := of(ctx, agent.PointAfterModel)
			in.Purpose, in.Answer = a.Purpose, answerOf(a, err)
			r.tell(ctx, in)
		}
	}
	if r.has(agent.PointBeforeCompaction) {
		h.BeforeCompaction = func(ctx context.Context, s *agent.State, why string) {
			in := ofState(ctx, agent.PointBeforeCompaction, s)
			in.Why = why
			r.tell(ctx, in)
		}
	}
	if r.has(agent.PointAfterCompaction) {
		h.AfterCompaction = func(ctx context.Context, c agent.Compaction) {
			in := of(ctx, agent.PointAfterCompaction)
			in.Why, in.Compaction = c.Why, &compaction{Tier: c.Tier, Before: c.Before, After: c.After, Strike: c.Strike}
			r.tell(ctx, in)
		}
	}
}

func (r *runner) toolHooks(h *agent.Hook) {
	if r.has(agent.PointBeforeTool) {
		h.BeforeTool = func(ctx context.Context, c *tool.Call, spec tool.Spec) agent.Intervention {
			return r.ask(ctx, ofCall(ctx, agent.PointBeforeTool, c, spec.Name))
		}
	}
	if r.has(agent.PointAfterTool) {
		h.AfterTool = func(ctx context.Context, c *tool.Call, e agent.Effect) agent.Intervention {
			in := ofCall(ctx, agent.PointAfterTool, c, e.Name)
			in.Result = resultOf(e)
			i := r.ask(ctx, in)
			// The call has been made: there is nothing left to stop but the model's
			// ignorance of what the hook found.
			i.Block = false
			return i
		}
	}
}

func (r *runner) has(p agent.HookPoint) bool { return len(r.commands[p]) > 0 }

// ask runs the commands of a node and gives what they want changed.
func (r *runner) ask(ctx context.Context, in input) agent.Intervention {
	var all agent.Intervention
	if in.Directory == "" {
		in.Directory = r.Directory
	}
	for _, c := range r.commands[in.Event] {
		if !c.Matches(in.Tool) || ctx.Err() != nil {
			continue
		}
		i, warning := r.run(ctx, c, in)
		if warning != "" {
			r.Warn(warning)
		}
		all.Note = joined(all.Note, i.Note)
		if i.Block {
			all.Block, all.Note = true, i.Note
			return all
		}
	}
	return all
}

// tell runs the commands of a node at which nothing can be stopped, and gives
// what they had to say.
func (r *runner) tell(ctx context.Context, in input) string {
	i := r.ask(ctx, in)
	if i.Block {
		r.Warn(fmt.Sprintf("a hook wanted to stop something at %s, where nothing can be stopped: %s", in.Event, firstLine(i.Note)))
	}
	return i.Note
}

// keep holds what was said at the start of a session for its first turn.
func (r *runner) keep(session, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if note != "" {
		r.notes[session] = note
	}
}

func (r *runner) kept(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	note := r.notes[session]
	delete(r.notes, session)
	return note
}

// parting is the context of commands that are told of an end: where the turn
// was stopped, they still hear of it, but get little time.
func parting(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), farewell)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return visible.EscapedLine(line)
}
