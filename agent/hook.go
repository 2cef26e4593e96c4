package agent

import (
	"context"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Hook is called at the nodes of the loop. Any function may be nil. Hooks run
// in the order in which they were given, one after the other within a session,
// after what they are told of is durable; subagents that work beside each other
// have theirs called at the same time. A hook that panics is a Warning; it never
// ends a turn. The user's input is durable before any hook hears of it.
//
// Source: design 000 (the loop's hooks), design 001 (the safety guard's place).
type Hook struct {
	// Name is shown where the hook blocks or fails.
	Name string

	SessionStart func(ctx context.Context, session string, directory string)
	SessionEnd   func(ctx context.Context, session string)

	// TurnStart may add a note for the model, or end the turn before it begins.
	TurnStart func(ctx context.Context, s *State, input string) Intervention
	TurnEnd   func(ctx context.Context, s *State, e Ended)

	// BeforeIteration and AfterIteration enclose one step: a request and the
	// calls of its answer.
	BeforeIteration func(ctx context.Context, s *State) Intervention
	AfterIteration  func(ctx context.Context, s *State) Intervention

	// BeforeModel may change the request, which is a copy.
	BeforeModel func(ctx context.Context, p Purpose, req *ninelives.Request)
	// AfterModel is told of the answer; with an error a has the turn, the step
	// and the purpose of the request, and what it cost as far as that is known.
	// A summary (PurposeCompact) is told of before its compaction is durable.
	AfterModel func(ctx context.Context, a Answer, err error)

	// BeforeTool may block the call; Intervention.Note is then its result.
	BeforeTool func(ctx context.Context, c *tool.Call, spec tool.Spec) Intervention
	AfterTool  func(ctx context.Context, c *tool.Call, e Effect) Intervention

	BeforeCompaction func(ctx context.Context, s *State, why string)
	AfterCompaction  func(ctx context.Context, c Compaction)

	// Stream is told of every event of every stream: text, reasoning, discards,
	// healing notices.
	Stream func(ctx context.Context, m Model)
	// Event is told of every other event of a turn.
	Event func(ctx context.Context, e Event)
}

// Intervention is what a hook wants changed; the zero value is nothing.
type Intervention struct {
	// Block stops what was about to happen: a call is answered with Note, a turn ends.
	Block bool
	// Note is told to the model.
	Note string
}
