// Package agent carries out the turns of a coding agent so that they survive:
// crashes, outages, cut answers, full windows, loops and a change of model.
//
//	entry.go     what is recorded of a session
//	state.go     what the entries come to
//	decide.go    what next: the pure decider
//	turn.go      the driver that does it
//	guard*.go    the caps and the loop guard
//	compact*.go  keeping the context inside the window
//	event.go     what a turn tells those who watch it
//	hook.go      what can be hung into the loop
//	settings.go  the numbers
//
// A turn is decided by a pure function over the recorded entries and done by a
// thin driver: it asks what next, records the intent, does it, records the
// effect, and asks again. Whoever has the entries can go on, wherever the
// process died; [Replay] asks the decider the same questions again.
package agent

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Option sets one thing of an Agent.
type Option func(*Agent)

// Agent makes sessions of one model, one set of tools and one journal. It is
// safe for concurrent use; each of its sessions has one turn at a time.
type Agent struct {
	model    ninelives.Model
	tools    []tool.Tool
	settings Settings
	hooks    []Hook
}
