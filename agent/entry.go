package agent

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Entry is one thing that is recorded of a session: what was said, decided and
// done, in the order in which it became durable. The entries are the session;
// [State] is what they come to. Nothing recorded is ever rewritten: what takes
// something back is an entry of its own.
//
// The kinds are [Opening], [Input], [Start], [Answer], [Failure], [Intent],
// [Effect], [Settled], [Healing], [Compaction], [Ruled], [Stopped], [Grant], [End],
// [ModelChange], [ModeChange], [Permission], [Undo], [Rewind] and [Archive].
// Durations are written in milliseconds, bytes in base64.
type Entry interface {
	// Kind is the word that the journal keeps it under ("input").
	Kind() string
}

// Opening is the first entry of a session.
type Opening struct {
	// Directory is the workspace, absolute.
	Directory string `json:"directory"`
	// Parent is the session whose turn this one was started for (a subagent) or
	// that it was forked from; empty for neither.
	Parent string `json:"parent,omitzero"`
	// Call is the call of Parent that a subagent's session was begun by.
	Call string `json:"call,omitzero"`
	// Version is the program that opened it.
	Version string `json:"version,omitzero"`
}

// Via is how an input came.
type Via string

// The ways of an input.
const (
	ViaTurn  Via = "turn"  // it begins a turn
	ViaSteer Via = "steer" // it goes into the running turn at its next step
	ViaQueue Via = "queue" // it begins a turn when the running one has ended
)

// Input is what the user said. It is durable before anything else happens to it.
type Input struct {
	// Number counts the inputs of the session from 1: the order of acceptance.
	Number int `json:"number"`
	Via    Via `json:"via"`
	// Message is the user's message as typed, with what @file and ! added.
	Message ninelives.Message `json:"message"`
	// Note: not the user said it but the program, to put the model right (after
	// a loop, a hook's context). It is shown as such.
	Note bool `json:"note,omitzero"`
}

// Start says that a turn begins, or goes on after it was interrupted or failed.
type Start struct {
	Turn int `json:"turn"`
	// Inputs are the numbers of the inputs that it takes up.
	Inputs []int `json:"inputs,omitzero"`
	// Resumes: the turn goes on where it was left.
	Resumes bool `json:"resumes,omitzero"`
	// Model is the name, Signature the configuration, of the model of this
	// turn; it ends on the model that it began on. Window is the model's context.
	Model     string    `json:"model"`
	Signature string    `json:"signature,omitzero"`
	Window    int       `json:"window,omitzero"`
	Mode      tool.Mode `json:"mode,omitzero"`
	// Settings are the numbers that the turn is decided by; it keeps those that
	// it began with. Instructions are left out: they are in System.
	Settings Settings `json:"settings,omitzero"`
	// Shared is what the turn that this one was started for had counted by then: a
	// subagent goes on counting, so that both have one quota.
	Shared *Tally `json:"shared,omitzero"`
	// Overhead is what System and the tools need of the window, in tokens; Reserve
	// is what is kept free of it for the answer.
	Overhead int `json:"overhead,omitzero"`
	Reserve  int `json:"reserve,omitzero"`
	// System is the instruction that the turn works under; it is the same for
	// all of its requests, so that the provider's cache holds.
	System string `json:"system,omitzero"`
}

// Purpose is what a request to the model is for.
type Purpose string

// The purposes.
const (
	PurposeStep     Purpose = "step"     // the next step of the turn
	PurposeFinal    Purpose = "final"    // no tools: what was done, what remains
	PurposeCompact  Purpose = "compact"  // a summary of older messages
	PurposeRemember Purpose = "remember" // memory work
)

// Answer is one accepted answer of the model. What failed attempts left is in
// Healing, as evidence, and never a message.
type Answer struct {
	Turn int `json:"turn"`
	// Step counts the answers of the turn from 1.
	Step    int     `json:"step"`
	Purpose Purpose `json:"purpose,omitzero"`
	// Inputs are the numbers of the inputs that the request took up besides what
	// was in the history already: they stand before Message.
	Inputs []int `json:"inputs,omitzero"`
	// Message has call ids that are unique within the session.
	Message ninelives.Message      `json:"message"`
	Finish  ninelives.FinishReason `json:"finish,omitzero"`
	Usage   ninelives.Usage        `json:"usage,omitzero"`
	// Cost is in US dollars, as far as prices are known.
	Cost float64 `json:"cost,omitzero"`
	// Candidate served it; IsFallback: it was not the first of the chain.
	Candidate  string   `json:"candidate,omitzero"`
	IsFallback bool     `json:"is_fallback,omitzero"`
	Attempts   int      `json:"attempts,omitzero"`
	Events     int      `json:"events,omitzero"` // stream events, for the guard
	Warnings   []string `json:"warnings,omitzero"`
	// Request is the hash of what was asked (instruction and messages, as they
	// were before any hook changed them), for replay.
	Request string `json:"request,omitzero"`
	// Output is the validated JSON where the request asked for a form.
	Output []byte        `json:"output,omitzero"`
	Took   time.Duration `json:"took_ms,omitzero"`
}

// Failure is a request to the model that gave no answer.
type Failure struct {
	Turn    int     `json:"turn"`
	Step    int     `json:"step"`
	Purpose Purpose `json:"purpose,omitzero"`
	// Fault is what no healing could help; what the model had said by then is in
	// its Partial, as evidence. Text says it in one line.
	Fault *ninelives.Fault `json:"fault,omitzero"`
	Text  string           `json:"text,omitzero"`
	// Cut: an answer ended too early, or in a call that does not close: the
	// model can be told to send smaller pieces.
	Cut bool `json:"cut,omitzero"`
	// Broken says what was wrong with a call that was finished and is no JSON.
	Broken string `json:"broken,omitzero"`
	// Canceled: the user, the caller or the guard stopped it (see Stopped, Ruled).
	Canceled bool            `json:"canceled,omitzero"`
	Usage    ninelives.Usage `json:"usage,omitzero"`
	Cost     float64         `json:"cost,omitzero"`
	Events   int             `json:"events,omitzero"`
	Took     time.Duration   `json:"took_ms,omitzero"`
}

// Intent says that a call is about to run. It is durable before the call does.
type Intent struct {
	Call string `json:"call"` // the id of the call
	Name string `json:"name"`
	// Arguments are canonical: sorted, without blanks, repaired where the model
	// wrote what only needed reading twice.
	Arguments []byte `json:"arguments,omitzero"`
	// Mark is what the tool needs to find out later whether it ran (tool.Prober).
	Mark []byte `json:"mark,omitzero"`
	// Files are those that it would write or delete, for the guard.
	Files []string `json:"files,omitzero"`
}

// Effect is what came of a call: every call of an Answer gets exactly one,
// whether it ran or not.
type Effect struct {
	Call string `json:"call"`
	Name string `json:"name,omitzero"`
	// Result is what the model reads.
	Result ninelives.ToolResult `json:"result"`
	// Ran: it had an Intent and ran to its end. Else it was refused, cut off, or
	// never started.
	Ran bool `json:"ran,omitzero"`
	// Unknown: it was cut off and nobody can say whether it had its effect.
	Unknown bool `json:"unknown,omitzero"`
	// Found: it was cut off, and what came of it was found out later.
	Found bool `json:"found,omitzero"`
	// Denied: the permissions, the user or a hook said no.
	Denied bool `json:"denied,omitzero"`
	// Polls: asking the same again is what the tool is for.
	Polls   bool          `json:"polls,omitzero"`
	Changes []tool.Change `json:"changes,omitzero"`
	Summary string        `json:"summary,omitzero"`
	Diff    string        `json:"diff,omitzero"`
	Saved   string        `json:"saved,omitzero"`
	// Spent is what a subagent has used of the turn's quotas.
	Spent *Spent        `json:"spent,omitzero"`
	Took  time.Duration `json:"took_ms,omitzero"`
}

// Spent is what a subagent has used of the quotas of the turn that started it.
type Spent struct {
	Events  int             `json:"events,omitzero"`
	Calls   int             `json:"calls,omitzero"`
	PerTool map[string]int  `json:"per_tool,omitzero"`
	PerFile map[string]int  `json:"per_file,omitzero"`
	Usage   ninelives.Usage `json:"usage,omitzero"`
	Cost    float64         `json:"cost,omitzero"`
}

// Settled says that a call which was cut off turned out not to have begun: it
// may simply run.
type Settled struct {
	Call string `json:"call"`
}

// Healing is what was done to get an answer, or in vain.
type Healing struct {
	Turn    int                `json:"turn"`
	Purpose Purpose            `json:"purpose,omitzero"`
	Notices []ninelives.Notice `json:"notices"`
}

// Compaction is a shorter view of the history. The messages stay in the
// journal; only what the model is sent changes.
type Compaction struct {
	Turn int `json:"turn,omitzero"`
	// Tier is 1 to 4, and 5 for the raw archive; 0: there was nothing to do.
	Tier int `json:"tier"`
	// Why is "threshold", "overflow", "smaller_window" or "asked".
	Why string `json:"why"`
	// Before and After are estimates in tokens.
	Before int `json:"before"`
	After  int `json:"after"`
	// View is what takes the place of the history up to and including the
	// message Through (an index into [State.Messages], which never shrinks); what
	// follows it stands as it is. A compaction without a View has no Through.
	Through int                 `json:"through"`
	View    []ninelives.Message `json:"view,omitzero"`
	// The results of tools in what stands as it is, up to and including the
	// message Strip, are stripped if they are longer than StripOver characters;
	// StripOver is zero where nothing is stripped. Tier 1 does this and no more.
	Strip     int `json:"strip,omitzero"`
	StripOver int `json:"strip_over,omitzero"`
	// Strike: a summary was made that did not shrink the context by 5 %. It was
	// not taken; what is done here was done instead of it, without a model.
	Strike bool `json:"strike,omitzero"`
	// Archive is the hash of what was put away as it was, if it was.
	Archive string  `json:"archive,omitzero"`
	Cost    float64 `json:"cost,omitzero"`
}

// Ruled is what the safety guard said of a turn: a stop, or a word to the model.
type Ruled struct {
	Turn    int    `json:"turn"`
	Limit   string `json:"limit"`
	Message string `json:"message,omitzero"`
	// Stop: the turn ends, unless the user grants another quota.
	Stop bool `json:"stop,omitzero"`
}

// Stopped says that somebody wants the turn to end.
type Stopped struct {
	Turn int `json:"turn"`
	// Hook is the hook that wants it; empty for the user and for the caller,
	// whose time was up if Deadline is set.
	Hook     string `json:"hook,omitzero"`
	Note     string `json:"note,omitzero"`
	Deadline bool   `json:"deadline,omitzero"`
	// Through is the number of the last input that had been accepted when the
	// user said stop: what waits by then begins no turn any more. It becomes
	// part of the history.
	Through int `json:"through,omitzero"`
}

// Grant gives a turn another full quota: the user said "continue".
type Grant struct {
	Turn int `json:"turn"`
	// Limit is the limit that had stopped it.
	Limit string `json:"limit"`
}

// Reason is why a turn ended.
type Reason string

// The reasons. Each has an exit code (docs/cli.md).
const (
	ReasonComplete    Reason = "complete"
	ReasonRefused     Reason = "refused"
	ReasonTruncated   Reason = "truncated"
	ReasonEmpty       Reason = "empty"
	ReasonLimit       Reason = "limit"            // a cap of the guard, of turns or of money
	ReasonLoop        Reason = "loop"             // it went round in circles
	ReasonDenied      Reason = "denied"           // the user or a hook ended it
	ReasonOverflow    Reason = "context_overflow" // it could not be made to fit
	ReasonDeadline    Reason = "deadline"
	ReasonCanceled    Reason = "canceled"    // the user stopped it
	ReasonFailed      Reason = "failed"      // no model could answer, see Fault
	ReasonInterrupted Reason = "interrupted" // its process died
)

// Failed reports that the turn is to be shown as a failed one, and can be
// resumed. Source: design 001 ("failedTurn").
func (r Reason) Failed() bool {
	switch r {
	case ReasonFailed, ReasonInterrupted, ReasonDeadline, ReasonOverflow, ReasonEmpty:
		return true
	}
	return false
}

// End ends a turn.
type End struct {
	Turn   int    `json:"turn"`
	Reason Reason `json:"reason"`
	// Message says why in a line, with the counters where a guard stopped it.
	Message string `json:"message,omitzero"`
	// Limit is the limit that stopped it (see Grant).
	Limit string `json:"limit,omitzero"`
	// FailedTurn marks a turn that is shown as failed and can be resumed.
	FailedTurn bool `json:"failedTurn,omitzero"`
	// Fault is what no healing could help.
	Fault *ninelives.Fault `json:"fault,omitzero"`
	// Output is the validated answer where the turn had to satisfy a schema.
	Output []byte        `json:"output,omitzero"`
	Took   time.Duration `json:"took_ms,omitzero"`
}

// ModelChange names the model of the turns that follow.
type ModelChange struct {
	Model     string `json:"model"`
	Signature string `json:"signature"`
}

// ModeChange sets the permission mode from now on.
type ModeChange struct {
	Mode tool.Mode `json:"mode"`
}

// Permission is what the user answered when asked for a call.
type Permission struct {
	Call    string       `json:"call"`
	Verdict tool.Verdict `json:"verdict"`
	Answer  Reply        `json:"answer"`
	// Rule holds for the rest of the session, if the user said "always".
	Rule *tool.Rule `json:"rule,omitzero"`
	// Waited is how long the person took; the guard does not count it.
	Waited time.Duration `json:"waited_ms,omitzero"`
}

// Undo takes the file changes of a turn back, or does them again. The
// conversation stays; the model is told.
type Undo struct {
	Turn int `json:"turn"`
	// Redo: the changes were made again.
	Redo bool `json:"redo,omitzero"`
	// Changes are what was restored; Conflicts say, each in a line that begins with
	// the path, what was left alone and why.
	Changes   []tool.Change `json:"changes,omitzero"`
	Conflicts []string      `json:"conflicts,omitzero"`
	// Unknown are the names of the tools whose calls in this turn, or later, were
	// cut off: what they changed, if anything, is not known and was left as it is.
	Unknown []string `json:"unknown,omitzero"`
}

// Rewind forgets, for the model, everything from a turn on.
type Rewind struct {
	// Turn is the first turn that is forgotten.
	Turn int `json:"turn"`
}

// Archive says that memory has taken up the history through a message.
type Archive struct {
	Through int `json:"through"` // an index into State.Messages
	// Raw: no summary could be had, and the history was put away as it was.
	Raw bool `json:"raw,omitzero"`
}

// The kinds of entries.
func (Opening) Kind() string     { return "opening" }
func (Input) Kind() string       { return "input" }
func (Start) Kind() string       { return "start" }
func (Answer) Kind() string      { return "answer" }
func (Failure) Kind() string     { return "failure" }
func (Ruled) Kind() string       { return "ruling" }
func (Stopped) Kind() string     { return "stopped" }
func (Intent) Kind() string      { return "intent" }
func (Effect) Kind() string      { return "effect" }
func (Settled) Kind() string     { return "settled" }
func (Healing) Kind() string     { return "healing" }
func (Compaction) Kind() string  { return "compaction" }
func (Grant) Kind() string       { return "grant" }
func (End) Kind() string         { return "end" }
func (ModelChange) Kind() string { return "model" }
func (ModeChange) Kind() string  { return "mode" }
func (Permission) Kind() string  { return "permission" }
func (Undo) Kind() string        { return "undo" }
func (Rewind) Kind() string      { return "rewind" }
func (Archive) Kind() string     { return "archive" }
