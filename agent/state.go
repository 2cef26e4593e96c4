package agent

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// State is what the entries of a session come to. It is built by adding
// entries one after the other and by nothing else. A State that is handed out
// does not change any more.
type State struct{}

// Turn is what is known of one turn.
type Turn struct {
	Number int
	// First is the index of its first message in [State.Messages].
	First int
	// Text is what the user said to begin it.
	Text  string
	Model string
	Began time.Time
	// Steps, Calls and Events count its answers, calls and stream events.
	Steps, Calls, Events int
	Usage                ninelives.Usage
	Cost                 float64
	// Changes are the file changes of its calls, in order.
	Changes []tool.Change
	// End is how it ended; nil while it is open: it runs, or its process died.
	End *End
	// Rewound: the model has forgotten it. Undone: its file changes were taken back.
	Rewound bool
	Undone  bool
}

// Messages are the whole history, as it was said: it only grows. What the model
// is sent is the View.
func (s *State) Messages() []ninelives.Message { return nil }

// View is what the model is sent of the history.
func (s *State) View() []ninelives.Message { return nil }

// Turns are the turns, oldest first.
func (s *State) Turns() []Turn { return nil }
