package tui

import (
	"context"
	"iter"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// Session is what the terminal needs of a conversation; [agent.Session] is one.
type Session interface {
	ID() string
	State() *agent.State
	Status() agent.Status
	Queued() []agent.Input
	Turn(ctx context.Context, msg ninelives.Message) iter.Seq2[agent.Event, error]
	Continue(ctx context.Context) iter.Seq2[agent.Event, error]
	Next(ctx context.Context) iter.Seq2[agent.Event, error]
	Steer(ctx context.Context, msg ninelives.Message) (number int, err error)
	Queue(ctx context.Context, msg ninelives.Message) (number int, err error)
	Stop()
	SetMode(ctx context.Context, m tool.Mode) error
	Compact(ctx context.Context) (agent.Compaction, error)
	Undo(ctx context.Context) (agent.Undo, error)
	Redo(ctx context.Context) (agent.Undo, error)
	Rewind(ctx context.Context, turn int) error
	Close() error
}

var _ Session = (*agent.Session)(nil)

// standing is what the screen shows of a session at one moment.
type standing struct {
	agent.Status
	branch string
	queued []queued
}

// queued is an input that waits: for the next step of the running turn, or for
// a turn of its own.
type queued struct {
	number int
	via    agent.Via
	text   string
}

// look takes the standing of a session.
func look(s Session) standing {
	st := standing{Status: s.Status()}
	st.branch = branch(st.Directory)
	for _, in := range s.Queued() {
		if !in.Note {
			st.queued = append(st.queued, queued{in.Number, in.Via, said(in.Message.Text())})
		}
	}
	return st
}

// replayed is how much of a session is shown when it is opened.
const replayed = 12

// recall gives the end of a session's history as blocks.
func recall(messages []ninelives.Message, turns []agent.Turn) []block {
	from := max(0, len(messages)-replayed)
	for from > 0 && messages[from].Role == ninelives.RoleTool { // not without its calls
		from--
	}
	rewound := func(index int) bool {
		for i := len(turns) - 1; i >= 0; i-- {
			if turns[i].First <= index {
				return turns[i].Rewound
			}
		}
		return false
	}
	var blocks []block
	if from > 0 {
		blocks = append(blocks, block{kind: blockNote, head: plural(from, "earlier message") + " (/export writes them all)"})
	}
	for i, m := range messages[from:] {
		if rewound(from + i) {
			continue
		}
		switch m.Role {
		case ninelives.RoleUser:
			blocks = append(blocks, block{kind: blockUser, head: said(m.Text())})
		case ninelives.RoleAssistant:
			if text := m.Reasoning(); text != "" {
				blocks = append(blocks, thought(text))
			}
			if text := m.Text() + m.Refusal(); text != "" {
				blocks = append(blocks, block{kind: blockAnswer, head: text})
			}
			for _, c := range m.ToolCalls() {
				b := block{kind: blockCall, head: callLine(c.Name, []byte(c.Arguments), nil)}
				if r, ok := resultOf(messages[from+i+1:], c.ID); ok {
					b.body, b.failed = clip(r.Text()), r.IsError
				} else {
					b.note, b.failed = "no result", true
				}
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}

// resultOf finds the result of a call in the messages that follow it.
func resultOf(messages []ninelives.Message, call string) (ninelives.ToolResult, bool) {
	for _, m := range messages {
		if m.Role != ninelives.RoleTool {
			break
		}
		for _, p := range m.Parts {
			if r, ok := p.(ninelives.ToolResult); ok && r.CallID == call {
				return r, true
			}
		}
	}
	return ninelives.ToolResult{}, false
}

// past gives what was said in a session, and its turns.
func past(s Session) ([]ninelives.Message, []agent.Turn) {
	state := s.State()
	if state == nil {
		return nil, nil
	}
	return state.Messages(), state.Turns()
}
