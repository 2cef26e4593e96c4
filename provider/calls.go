package provider

import "github.com/ninelives-ai/ninelives/internal/wire"

// calls keeps the bytes of a stream back from its first tool call on, until all of
// its calls are known: where one of them is written so that its decoder understands
// it and clients do not, none of them may be relayed. Nobody waits for them: a call
// is delivered whole or not at all.
type calls struct {
	of interface {
		// Calling tells whether a call has begun, and whether one is odd.
		Calling() (begun, odd bool)
	}
	data   []byte
	events int // in data
}

// callsOf is for streams whose decoder mends calls.
func callsOf(d wire.Decoder) (c calls) {
	c.of, _ = d.(interface{ Calling() (begun, odd bool) })
	return c
}

// What becomes of an event's bytes.
type callsState int

const (
	callsNone  callsState = iota // they have no call before them
	callsHeld                    // they wait
	callsWhole                   // all that waits may go
	callsOdd                     // none of it, and nothing that follows
)

// take takes the bytes of the event that was read last; state is how far it has
// brought the stream.
func (c *calls) take(raw []byte, state wire.State) callsState {
	if c.of == nil {
		return callsNone
	}
	begun, odd := c.of.Calling()
	if !begun {
		return callsNone
	}
	c.data = append(c.data, raw...)
	c.events++
	if state == wire.Open {
		return callsHeld
	}
	c.of = nil
	if odd {
		return callsOdd
	}
	return callsWhole
}
