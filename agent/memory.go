package agent

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// MemoryDirs are the directories that hold a MEMORY.md; an empty one is not used.
type MemoryDirs struct {
	// Project is .ninelives in the workspace.
	Project string
	// User is ninelives in XDG_DATA_HOME.
	User string
}

// Memory remembers what is worth it beyond a session. All that it does, it does
// in the background, and lets be as soon as a turn begins.
type Memory struct{}

// NewMemory makes the memory of an agent. model gives the model that the agent
// has at the time of the question.
func NewMemory(model func() ninelives.Model, dirs MemoryDirs, settings MemorySettings) *Memory {
	return &Memory{}
}

// History is a piece of a session's history that is to be remembered.
type History struct {
	Session string
	// Messages are [State.Messages]; those from From up to and including Through
	// have not been archived yet.
	Messages      []ninelives.Message
	From, Through int
	// Since is when the session became idle; it is archived [MemorySettings.Idle]
	// later. Zero: at once, when no turn runs (compaction has dropped it).
	Since time.Time
	// Record makes it durable that it has been archived. It is called at most
	// once, from a goroutine of the memory, and not after Close.
	Record func(Archive) error
}

// OnIdle hands over history that nobody works on. A later piece of the same
// session takes the place of one that still waits.
func (m *Memory) OnIdle(h History) {}

// OnTurn says that a turn begins: what the memory is doing ends at once, and
// nothing begins before every turn has ended. session is taken off the list.
func (m *Memory) OnTurn(session string) (ended func()) { return func() {} }

// Close ends all work at once and waits until it has ended.
func (m *Memory) Close() error { return nil }
