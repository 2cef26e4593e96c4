package agent

import (
	"math"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Context is what a model would be sent of a history, and what bounds it.
type Context struct {
	// Messages are the present view, oldest first, without the system prompt.
	Messages []ninelives.Message
	// Through says, for each of Messages, up to which message of
	// [State.Messages] the history is told once it has been read: its own index,
	// or the Through of the compaction that put it there. It never falls.
	Through []int
	// Overhead is what the system prompt and the tools need, in tokens. Best is
	// what was measured: the input that the last answer's usage reports less the
	// Estimate of the messages that were sent.
	Overhead int
	// Window is the context window in tokens (see [CompactionSettings.WindowOf]),
	// Reserve what is kept free of it for the answer (see [ReserveOf]).
	Window, Reserve int
	// Strikes counts the strikes since a summary was last taken or the model was
	// changed.
	Strikes int
}

// Level is how full a window is.
type Level string

// The levels.
const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warn" // say so, and prepare
	LevelAct  Level = "act"  // compact before the next request
)

// Pressure is the share of the window (less the reserve) that x fills, and what
// that asks for. Above 1 the request does not fit.
func (c *CompactionSettings) Pressure(x Context) (share float64, level Level) {
	share = float64(x.tokens()) / float64(x.room())
	switch {
	case share >= c.Act:
		return share, LevelAct
	case share >= c.Warn:
		return share, LevelWarn
	}
	return share, LevelOK
}

// WindowOf is the context window that requests to the candidate are planned
// for, in tokens, and how it is known: "setting", "exact", "family", "learnt"
// or "default". learnt is what a provider's error said of it
// ([ninelives.Fault.Window]); zero for nothing.
//
// Source: design 001, layer 4 (setting, exact match, family, 16k); what was
// learnt comes last, but where it is smaller than what the catalogue says: then
// the provider has shown that the catalogue does not hold for it (package heal
// does the same).
func (c *CompactionSettings) WindowOf(candidate ninelives.Candidate, learnt int) (tokens int, source string) {
	known := candidate.Window > 0 && candidate.WindowSource != "default"
	switch {
	case c.Window > 0:
		return c.Window, "setting"
	case known && (learnt <= 0 || learnt >= candidate.Window || candidate.WindowSource == "setting"):
		if candidate.WindowSource == "" {
			return candidate.Window, "exact"
		}
		return candidate.Window, candidate.WindowSource
	case learnt > 0:
		return learnt, "learnt"
	}
	return c.DefaultWindow, "default"
}

// ReserveOf is what is kept free of a window for the answer, in tokens: limit
// where an output cap is set, else the candidate's largest answer, for providers
// count that against the window before there is an answer. That is a third of
// the window at most; where nobody knows, it is an eighth.
func ReserveOf(candidate ninelives.Candidate, window, limit int) int {
	switch {
	case limit > 0:
		return limit
	case candidate.MaxOutput > 0:
		return min(candidate.MaxOutput, window/3)
	}
	return window / 8
}

func (x *Context) tokens() int { return x.Overhead + Estimate(x.Messages...) }

// room is the part of the window that a request may fill. A reserve that is out
// of all proportion to the window takes half of it, so that something is left.
func (x *Context) room() int {
	if x.Window <= 0 {
		return math.MaxInt32 // nobody set one: only a provider can say that it is full
	}
	return max(x.Window-min(max(x.Reserve, 0), x.Window/2), 1)
}
