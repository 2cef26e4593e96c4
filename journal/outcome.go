package journal

import (
	"context"
	"errors"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Outcome is how a call ended.
type Outcome struct {
	// Response is the accepted answer; nil if there is none, or if Raw has it.
	Response *ninelives.Response `json:"response,omitzero"`
	// Fault is the last failure, and Error the whole story in a line; both are
	// zero if there is an answer.
	Fault *ninelives.Fault `json:"fault,omitzero"`
	Error string           `json:"error,omitzero"`

	// Raw is the whole answer in the bytes that the client was sent; nil if it
	// is not kept so.
	Raw []byte `json:"-"`
	// Answered says that the call was answered although neither Response nor Raw
	// is here. It is never set in what is read.
	Answered bool `json:"-"`
	// Partial is what a client had been sent of an answer that it never got
	// whole, as evidence.
	Partial *ninelives.Response `json:"-"`
	// Attempts are the requests on the wire, in the order of their beginning.
	Attempts []Attempt `json:"-"`
	// Usage and Cost (US dollars) are those of the whole call: aborted, hedged
	// and refused attempts included. Usage.Estimated marks counts that are ours.
	Usage ninelives.Usage `json:"-"`
	Cost  float64         `json:"-"`
	// Estimated says that the cost is a guess in part.
	Estimated bool `json:"-"`
	// Status is the HTTP status that the client was sent; 0 if none.
	Status int `json:"-"`
	// Public is the id of the answer that the client saw; with an empty one that
	// of the Call stays. See [Journal.ByPublic].
	Public string `json:"-"`
	// Forget removes what was asked, and keeps nothing of the answer, in the same
	// transaction. What is no content stays. It is never set in what is read.
	Forget bool `json:"-"`
}

// Attempt is one request on the wire.
type Attempt struct {
	Number    int    `json:"number"`
	Candidate string `json:"candidate"`
	// Class is the class of its fault; empty if its answer was accepted.
	Class ninelives.Class `json:"class,omitzero"`
	// Status is the HTTP status of the provider; 0 if there was no response.
	Status int           `json:"status,omitzero"`
	Began  time.Time     `json:"began,omitzero"`
	Took   time.Duration `json:"-"`
	// Usage and Cost (US dollars) are as the provider told them, or guessed:
	// then Estimated is set.
	Usage     ninelives.Usage  `json:"usage,omitzero"`
	Cost      float64          `json:"cost,omitzero"`
	Billed    ninelives.Billed `json:"billed,omitzero"`
	Estimated bool             `json:"estimated,omitzero"`
}

// OutcomeOf is the outcome of a call that returned so.
func OutcomeOf(resp *ninelives.Response, err error) Outcome {
	if err == nil {
		return Outcome{Response: resp}
	}
	o := Outcome{Error: err.Error()}
	errors.As(err, &o.Fault)
	if o.Fault == nil && errors.Is(err, context.Canceled) {
		o.Fault = &ninelives.Fault{Class: ninelives.ClassCanceled, Message: err.Error()}
	}
	return o
}

// state is the state of a call that ended so.
func (o Outcome) state() (State, ninelives.Class) {
	switch {
	case o.Response != nil, o.Answered, o.Raw != nil && o.Fault == nil && o.Error == "":
		return StateComplete, ""
	case o.Fault == nil:
		return StateFailed, ninelives.ClassUnknown
	case o.Fault.Class == ninelives.ClassCanceled:
		return StateCanceled, o.Fault.Class
	}
	return StateFailed, o.Fault.Class
}

// tokens are those of the whole call.
func (o Outcome) tokens() int { return o.Usage.TotalInput() + o.Usage.TotalOutput() }
