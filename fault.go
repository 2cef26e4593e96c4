package ninelives

import (
	"fmt"
	"strings"
	"time"
)

// Class is the kind of a fault; it decides what is done about it.
type Class string

// The fault classes. What is done by default for each is the policy table in
// package heal.
const (
	ClassRateLimit     Class = "rate_limit"
	ClassBilling       Class = "billing"
	ClassAuth          Class = "auth"
	ClassOverloaded    Class = "overloaded"
	ClassTimeout       Class = "timeout"
	ClassNetwork       Class = "network"
	ClassModelNotFound Class = "model_not_found"
	ClassContextLength Class = "context_length"
	ClassContentFilter Class = "content_filter"
	ClassRefusal       Class = "refusal"
	ClassFormat        Class = "format"
	ClassStreamBroken  Class = "stream_broken"
	ClassEmpty         Class = "empty"
	ClassTruncated     Class = "truncated"
	ClassInvalidOutput Class = "invalid_output"
	ClassUnknown       Class = "unknown"
	ClassCanceled      Class = "canceled"
	ClassGuard         Class = "guard"
)

// Scope is whose fault it is: what else is affected by it.
type Scope string

// The scopes, from narrow to wide.
const (
	ScopeRequest Scope = "request"
	ScopeModel   Scope = "model"
	ScopeKey     Scope = "key"
	ScopeAccount Scope = "account"
	ScopeHost    Scope = "host"
)

// Phase is where in an attempt a fault happened.
type Phase string

// The phases of an attempt, in order.
const (
	PhasePrepare    Phase = "prepare" // nothing was sent
	PhaseDial       Phase = "dial"
	PhaseWrite      Phase = "write"
	PhaseHeaders    Phase = "headers"
	PhaseFirstToken Phase = "first_token"
	PhaseStream     Phase = "stream"
	PhaseAnswer     Phase = "answer" // the answer was whole, its content is the fault
)

// Billed says whether a failed attempt is paid for.
type Billed string

// The billing states; the empty one means maybe.
const (
	BilledNo    Billed = "no"
	BilledMaybe Billed = "maybe"
	BilledYes   Billed = "yes"
)

// Fault is the one form of every failure. It is made once, where the failure
// is seen (package internal/wire for what providers send), and never holds a
// credential.
type Fault struct {
	Class Class `json:"class"`
	Scope Scope `json:"scope,omitzero"`
	Phase Phase `json:"phase,omitzero"`
	// Status is the HTTP status; 0 if there was no response.
	Status int `json:"status,omitzero"`
	// Code and Type are the provider's own words.
	Code string `json:"code,omitzero"`
	Type string `json:"type,omitzero"`
	// Message is the provider's message, or ours; one line, redacted.
	Message string `json:"message,omitzero"`
	// Candidate is the name of the candidate that failed.
	Candidate string `json:"candidate,omitzero"`
	// RequestID is the provider's id of the request, for its support.
	RequestID string `json:"request_id,omitzero"`
	// RetryAfter is the provider's wait hint as parsed; 0 means none.
	RetryAfter time.Duration `json:"retry_after_ms,omitzero"`
	// ResetAt is when a quota or cooldown ends, if told; zero means unknown.
	ResetAt time.Time `json:"reset_at,omitzero"`
	// ShouldRetry is the provider's explicit word (x-should-retry); nil means none.
	ShouldRetry *bool  `json:"should_retry,omitzero"`
	Billed      Billed `json:"billed,omitzero"`
	// Final says that waiting cannot help although the class would allow a
	// retry (DNS says no such host, a certificate is wrong, a daily quota is spent).
	Final bool `json:"final,omitzero"`
	// Repairs are the changes of the request that would avoid the fault.
	Repairs []Repair `json:"repairs,omitzero"`
	// Window and Requested are the numbers of a context overflow, in tokens; 0 if not told.
	Window    int `json:"window,omitzero"`
	Requested int `json:"requested,omitzero"`
	// Partial is what the failed attempt had produced, as voided evidence;
	// never a message of the conversation.
	Partial *Response `json:"partial,omitzero"`
	// Hint says what the user can do about it.
	Hint string `json:"hint,omitzero"`
	// Err is the cause.
	Err error `json:"-"`
}

// Error is one line: what failed, where, why.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Candidate != "" {
		b.WriteString(f.Candidate)
		b.WriteString(": ")
	}
	b.WriteString(string(f.Class))
	if f.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d", f.Status)
		if f.Code != "" {
			fmt.Fprintf(&b, ", %s", f.Code)
		}
		b.WriteByte(')')
	} else if f.Code != "" {
		fmt.Fprintf(&b, " (%s)", f.Code)
	}
	switch {
	case f.Message != "":
		b.WriteString(": ")
		b.WriteString(f.Message)
	case f.Err != nil:
		b.WriteString(": ")
		b.WriteString(f.Err.Error())
	}
	if f.Hint != "" {
		b.WriteString(" – ")
		b.WriteString(f.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Repair is a named change of how requests are written for one candidate. It
// is plain data: the wire finds it in a provider's complaint, the healing
// driver decides on it and remembers it, the wire applies it.
type Repair struct {
	// Name is one of the repairs in package internal/wire, such as
	// "drop_parameter" or "replay_reasoning".
	Name string `json:"name"`
	// Param is the parameter, role or field concerned, if any.
	Param string `json:"param,omitzero"`
	// Value is the new name or value, if any.
	Value string `json:"value,omitzero"`
	// Once says that it holds for this call only and is not remembered.
	Once bool `json:"once,omitzero"`
}

// String writes the repair for a human.
func (r Repair) String() string {
	s := strings.ReplaceAll(r.Name, "_", " ")
	if r.Param != "" {
		s += " " + r.Param
	}
	if r.Value != "" {
		s += " → " + r.Value
	}
	return s
}

// Outcome is how an attempt ended. Only OutcomeComplete is accepted.
type Outcome string

// The outcomes.
const (
	OutcomeComplete      Outcome = "complete"
	OutcomeTruncated     Outcome = "truncated"
	OutcomeRefused       Outcome = "refused"
	OutcomeFiltered      Outcome = "filtered"
	OutcomeEmpty         Outcome = "empty"
	OutcomeThinkingOnly  Outcome = "thinking_only"
	OutcomeMalformedCall Outcome = "malformed_call"
	OutcomeInvalidOutput Outcome = "invalid_output"
	OutcomeStreamBroken  Outcome = "stream_broken"
	OutcomeStalled       Outcome = "stalled"
	OutcomeFaulted       Outcome = "faulted"
)
