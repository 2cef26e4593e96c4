package ninelives

import "time"

// Event is what a stream yields: [TextDelta], [ReasoningDelta],
// [RefusalDelta], [ToolCallDelta], [Discard], [Notice], [*Frame] and, last of
// all and exactly once in a stream that succeeds, [Done]. A failure is the iterator's
// error, never an event.
type Event interface{ event() }

// TextDelta is a piece of the answer. Attempt is 0 when no healing driver
// numbered it. Part is the index of the part of the final message that it
// belongs to; a part's deltas are contiguous except for parallel tool calls.
type TextDelta struct {
	Attempt int
	Part    int
	Text    string
}

// ReasoningDelta is a piece of the model's thinking.
type ReasoningDelta struct {
	Attempt int
	Part    int
	Text    string
	// Proof comes with the piece that ends a signed or redacted part, so that a
	// server can pass it on in its place; nil in all others.
	Proof *Provenance
}

// RefusalDelta is a piece of a refusal.
type RefusalDelta struct {
	Attempt int
	Part    int
	Text    string
}

// ToolCallDelta is a piece of a tool call: ID and Name come with the first
// piece, Arguments grow by concatenation. Only the call in Done is whole: a
// consumer must never run a call from deltas.
type ToolCallDelta struct {
	Attempt   int
	Part      int
	ID        string
	Name      string
	Arguments string
}

// Frame is a piece of the answer in the bytes of the provider. It follows the
// events that were read from it, and comes only where Request.Raw was sent as
// it is; the frames of an attempt are all of its answer, byte for byte. A stream
// that comes in frames begins with an empty one, before its first event. Who
// does not relay bytes ignores it.
type Frame struct {
	Attempt int
	// Data is only valid until the consumer asks for the next event.
	Data []byte
	// Events is how many events of the stream Data holds; 0 where that is not known.
	Events int
	// End says that the answer stands from here on: the terminal marker is in
	// this frame, or in one before it.
	End bool
	// Unclosed, in a frame without data, says that the stream has ended without
	// the protocol's last event, although the answer stands.
	Unclosed bool
	// Broken, beside Unclosed, says that this was no habit of the provider's: the
	// connection broke, or an error followed.
	Broken bool
	// More says that the next frame is at hand already: a consumer may put off
	// flushing until it comes, with data or without.
	More bool
}

// Discard voids everything that attempt Attempt has yielded so far: a UI
// removes it, a collector forgets it.
type Discard struct {
	Attempt int
	// Reason is the fault that voided it; nil where there was none.
	Reason *Fault
}

// NoticeKind names a healing step.
type NoticeKind string

// The healing steps.
const (
	NoticePlan      NoticeKind = "plan"      // the candidates of this call, before the first attempt
	NoticeAttempt   NoticeKind = "attempt"   // an attempt starts
	NoticeFault     NoticeKind = "fault"     // an attempt failed
	NoticeWait      NoticeKind = "wait"      // waiting before the next attempt
	NoticeRetry     NoticeKind = "retry"     // the same candidate is asked again
	NoticeSwitch    NoticeKind = "switch"    // another candidate has taken over (told once it has succeeded)
	NoticeFailover  NoticeKind = "failover"  // another candidate is asked next
	NoticeRepair    NoticeKind = "repair"    // the request was repaired
	NoticeNudge     NoticeKind = "nudge"     // the model was told what was missing
	NoticeContinue  NoticeKind = "continue"  // a cut answer is continued
	NoticeHedge     NoticeKind = "hedge"     // a second candidate races for the first token
	NoticeProbe     NoticeKind = "probe"     // a cooling candidate is tried
	NoticeCooldown  NoticeKind = "cooldown"  // a candidate is rested
	NoticeDegraded  NoticeKind = "degraded"  // a substitute answer is served
	NoticeTranslate NoticeKind = "translate" // something could not be sent to this candidate as it is
	NoticeWarning   NoticeKind = "warning"   // the answer stands, but the caller should know
)

// Notice is one healing step: its cause, what was done, and the evidence. It
// is the same value in the API, the log, the journal and the UI.
type Notice struct {
	Kind    NoticeKind `json:"kind"`
	Attempt int        `json:"attempt,omitzero"`
	// Candidate is the candidate concerned; Next is the one asked next.
	Candidate string `json:"candidate,omitzero"`
	Next      string `json:"next,omitzero"`
	// Fault is the cause; nil where nothing failed.
	Fault *Fault `json:"fault,omitzero"`
	// Wait is how long is waited now (NoticeWait) or rested (NoticeCooldown).
	Wait time.Duration `json:"wait_ms,omitzero"`
	// Took is how long the attempt took that ended (NoticeFault, NoticeSwitch).
	Took time.Duration `json:"took_ms,omitzero"`
	// Repair is the change of the request (NoticeRepair).
	Repair *Repair `json:"repair,omitzero"`
	// Text says it in one line for a human.
	Text string `json:"text,omitzero"`
}

// Done ends a successful stream.
type Done struct {
	Attempt  int
	Response *Response
}

func (TextDelta) event()      {}
func (ReasoningDelta) event() {}
func (RefusalDelta) event()   {}
func (ToolCallDelta) event()  {}
func (Discard) event()        {}
func (Notice) event()         {}
func (*Frame) event()         {}
func (Done) event()           {}
