package provider

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// relay yields the provider's own bytes.
func (a *attempt) relay(data []byte, end, more bool) {
	if len(data) == 0 {
		return
	}
	if a.gap.open {
		if !a.gap.skip {
			a.gap.kept = append(a.gap.kept, &ninelives.Frame{Attempt: a.number, Data: bytes.Clone(data), Events: a.due.events, End: end})
		}
		a.gap.skip, a.due.events = false, 0
		return
	}
	a.frame.Data, a.frame.Events, a.frame.End, a.frame.More = data, a.due.events, end, more
	a.due.events = 0
	if !a.yield(&a.frame, nil) {
		a.left = true
	}
}

// due is what was read of a stream and not relayed yet: bytes of events that
// give text and nothing else, where the next event is at hand. They go together:
// each frame costs all who handle it as much as a long one does.
type due struct {
	data   []byte
	events int // in data
	// text, other: what the event that was read last has given.
	text, other bool
	begun       bool // bytes of text were relayed: what comes first goes by itself
}

// relayEvent relays the bytes of the event that was read last, or keeps them for
// the next one.
func (a *attempt) relayEvent(raw []byte, end, more bool) {
	plain := a.due.text && !a.due.other && !end
	switch held := a.due.data; {
	case !plain || len(held) > 0 && !follows(held, raw):
		a.relayDue(true)
	case len(held) > 0:
		raw = held[:len(held)+len(raw)]
	}
	a.due.data = nil
	if a.left {
		return
	}
	if a.due.events++; plain && more && a.due.begun && !a.gap.open {
		a.due.data = raw
		return
	}
	a.due.begun = a.due.begun || plain
	a.relay(raw, end, more)
}

// relayDue relays what is due; more says that other bytes follow at once.
func (a *attempt) relayDue(more bool) {
	if data := a.due.data; len(data) > 0 && !a.left {
		a.due.data = nil
		a.relay(data, false, more)
	}
}

// follows says that b lies behind a in the same buffer.
func follows(a, b []byte) bool { return cap(a)-len(a) == cap(b) }

// relayRest relays what has come behind the event that ended the answer: what is
// in the buffer, unless the stream broke (broke), and where nothing more can be
// expected (closed) what is still on its way. failed says that a failure came
// behind the end, which is not relayed.
func (a *attempt) relayRest(events *sse.Reader, in *body, closed, broke, failed bool) {
	var rest []byte
	if !broke {
		rest = events.Rest()
	}
	if bytes.HasSuffix(rest, []byte("\n\n")) { // it holds no half of an event
		a.relay(inTime(rest), true, false)
		rest = nil
	}
	if closed && !a.left {
		a.watch.end()
		rest = append(bytes.Clone(rest), in.settle(func() { a.cancel(nil) })...)
	}
	if !a.left {
		a.relay(inTime(rest), true, false)
	}
	if a.left || closed || a.gap.open {
		return
	}
	a.frame.Data, a.frame.Events, a.frame.End, a.frame.More, a.frame.Unclosed, a.frame.Broken = nil, 0, true, false, true, failed || broke
	if !a.yield(&a.frame, nil) {
		a.left = true
	}
}
