package agent

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Event is what a turn yields to whoever shows it: [Started], [Model],
// [Calling], [Output], [Called], [Asking], [Steered], [Compacted], [Guarded],
// [Warning] and, last of all and exactly once, [Ended].
type Event interface{ event() }

// Started: the turn begins. Its input is durable.
type Started struct {
	Session string
	Turn    int
	Resumes bool
	Model   string
	Mode    tool.Mode
	// Text is what the user said.
	Text string
}

// Model is an event of the model's stream: pieces of text and reasoning,
// discards (what attempt k yielded is void: take it off the screen), healing
// notices. Its Done is not passed on: Answered follows.
type Model struct {
	Turn, Step int
	Purpose    Purpose
	ninelives.Event
}

// Answered: an answer was accepted and is durable.
type Answered struct{ Answer }

// Calling: a call is about to run, or to be asked for. Diff is what it would change.
type Calling struct {
	Turn      int
	Call      string
	Name      string
	Arguments []byte
	Needs     []tool.Need
	Diff      string
	// Asked: it runs only if a person says so; Asking follows.
	Asked bool
}

// Output is what a running call has written, for people to watch.
type Output struct {
	Call string
	Text string
}

// Called: a call has ended and its effect is durable.
type Called struct{ Effect }

// Asking: the turn waits for a person's word on a call (see Approve).
type Asking struct {
	Question
}

// Steered: what the user said meanwhile is now part of the turn.
type Steered struct {
	Number int
	Text   string
}

// Compacted: the context was made smaller, or that was tried.
type Compacted struct{ Compaction }

// Guarded: the safety guard says something: a warning to the model, a short
// wait for the rate limiter, or the stop that ends the turn.
type Guarded struct {
	Limit   string
	Message string
	Wait    time.Duration
	Stop    bool
}

// Warning is something that the user should know.
type Warning struct{ Text string }

// Ended ends a turn.
type Ended struct {
	Session string
	End
	// Text is the last answer's.
	Text string
	// Steps, Calls and Events count the turn's answers, calls of tools and
	// stream events. Calls, Events, Usage and Cost include those of its subagents.
	Steps, Calls, Events int
	Usage                ninelives.Usage
	Cost                 float64
	// Changed lists the files that the turn changed.
	Changed []string
}

func (Started) event()   {}
func (Model) event()     {}
func (Answered) event()  {}
func (Calling) event()   {}
func (Output) event()    {}
func (Called) event()    {}
func (Asking) event()    {}
func (Steered) event()   {}
func (Compacted) event() {}
func (Guarded) event()   {}
func (Warning) event()   {}
func (Ended) event()     {}

// Question asks a person for a call.
type Question struct {
	Session string
	Turn    int
	Call    string
	Name    string
	// Arguments is the call's JSON.
	Arguments []byte
	Needs     []tool.Need
	Diff      string
	Verdict   tool.Verdict
	// Agent names the subagent that asks, as its parent described it; empty for
	// the turn that the user began.
	Agent string
}

// Reply is a person's word on a call.
type Reply string

// The replies. The empty one is a no.
const (
	ReplyOnce   Reply = "once"   // this call
	ReplyAlways Reply = "always" // this and those that Verdict.Offer covers, in this session
	ReplyNo     Reply = "no"     // not this call; the turn goes on
	ReplyStop   Reply = "stop"   // not this call, and the turn ends
)

// Decision is a Reply with what the person added to a no, for the model to read.
type Decision struct {
	Reply Reply
	Text  string
}
