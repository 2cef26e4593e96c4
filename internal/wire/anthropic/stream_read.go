package anthropic

import (
	"bytes"
	"errors"
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// NewDecoder gives a decoder of one streamed answer.
//
// An event is known by the type in its data; its own name only counts where
// there is none. Unknown events, deltas and blocks are let pass or kept.
func NewDecoder(o wire.DecodeOptions) wire.Decoder {
	return &decoder{o: o, read: blockReader(o)}
}

type decoder struct {
	o      wire.DecodeOptions
	read   reader
	state  wire.State
	frames int
	// answer holds all but the parts, which blocks become in their order.
	answer  ninelives.Response
	started bool // message_start was seen
	kept    []byte
	blocks  []*block
	scratch []byte
	silent  bool // [DONE] came before anything was said
	fault   *ninelives.Fault

	// mold is the last event if it was a piece of molded: an event that differs
	// from it in its text alone is another one.
	mold   rawjson.Mold
	molded *block
	name   string // of the event
}

func (d *decoder) State() wire.State { return d.state }

// event is one event, as parts of its data.
type event struct {
	kind, delta, block, message, usage, err []byte
	index                                   int64
	raw                                     []byte
}

func (d *decoder) Frame(f wire.Frame, emit func(ninelives.Event) bool) error {
	d.frames++
	if d.fault != nil {
		return d.fault
	}
	data := bytes.TrimSpace(f.Data)
	if text, ok := d.mold.Fits(data); ok && f.Event == d.name {
		d.piece(d.molded, text, emit)
		return nil
	}
	d.mold.Break()
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]":
		d.vouch()
		return nil
	case !rawjson.Valid(data) || data[0] != '{':
		if f.Event == "error" {
			return d.fail(d.classify(data))
		}
		if f.Event != "" && f.Event != "message" && !known(f.Event) {
			return nil // an event of someone else's
		}
		if d.state == wire.Open && d.o.ReadOn() {
			return nil
		}
		return d.fail(d.broken("a frame of the stream is not JSON", nil))
	}
	e := event{index: -1, raw: data}
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "type":
			e.kind = m.Value
		case "index":
			if n, ok := rawjson.Int(m.Value); ok {
				e.index = n
			}
		case "delta":
			e.delta = m.Value
		case "content_block":
			e.block = m.Value
		case "message":
			e.message = m.Value
		case "usage":
			e.usage = m.Value
		case "error":
			e.err = m.Value
		}
	}
	return d.event(f.Event, &e, emit)
}

// known tells the names of the protocol's own events.
func known(name string) bool {
	switch name {
	case "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
		return true
	}
	return false
}

func (d *decoder) event(name string, e *event, emit func(ninelives.Event) bool) error {
	is := func(kind string) bool {
		return rawjson.Is(e.kind, kind) || rawjson.Kind(e.kind) != '"' && name == kind
	}
	switch {
	case name == "error", is("error"), rawjson.Kind(e.kind) != '"' && !rawjson.Null(e.err):
		return d.fail(d.classify(e.raw))
	case is("content_block_delta"):
		d.name = name
		return d.delta(e, emit)
	case is("content_block_start"):
		return d.blockStart(e, emit)
	case is("content_block_stop"):
		if b := d.openBlock(e.index); b != nil {
			b.open = false
		}
	case is("message_start"):
		return d.messageStart(e.message, emit)
	case is("message_delta"):
		d.messageDelta(e)
	case is("message_stop"):
		d.state = wire.Closed
	}
	return nil
}

// messageStart takes the head of the answer. A head that comes again is
// ignored; the head of another answer inside an open one means that two
// streams were spliced.
func (d *decoder) messageStart(message []byte, emit func(ninelives.Event) bool) error {
	if d.state != wire.Open {
		d.warn("another answer began after the end of this one")
		return nil
	}
	if d.started {
		if id := rawjson.String(rawjson.Get(message, "id")); id != d.answer.ID && len(d.blocks) > 0 {
			return d.fail(d.broken("another answer began inside this one", nil))
		}
		return nil
	}
	d.started = true
	d.head(message)
	// An answer that goes on where code stopped to call a tool brings its first
	// blocks whole, in its head.
	for b := range rawjson.Elements(rawjson.Get(message, "content")) {
		n := len(d.blocks)
		if err := d.blockStart(&event{index: int64(n), block: b}, emit); err != nil {
			return err
		}
		d.blocks[n].open = false
	}
	return nil
}

// head takes the members of the answer that message has.
func (d *decoder) head(message []byte) {
	var kept rawjson.Kept
	for m := range rawjson.Members(message) {
		answerMember(&d.answer, m, &kept)
	}
	if object := kept.Object(); object != nil {
		d.kept = mergeObjects(d.kept, object)
	}
}

// messageDelta takes the end of the answer: the reason is the terminal marker.
func (d *decoder) messageDelta(e *event) {
	d.head(e.delta)
	readUsage(&d.answer.Usage, e.usage)
	if more := without(e.raw, "type", "delta", "usage", "index"); more != nil {
		d.kept = mergeObjects(d.kept, more)
	}
	if d.answer.FinishRaw != "" && d.state == wire.Open {
		d.state = wire.Finished
	}
}

// vouch takes [DONE] for the end of an answer that said something and has no
// call open.
func (d *decoder) vouch() {
	if d.state != wire.Open {
		d.state = wire.Closed
		return
	}
	said := false
	for _, b := range d.blocks {
		switch b.kind {
		case callBlock, outputBlock:
			if b.open || wire.Unclosed(b.text.String()) {
				return
			}
			said = true
		case textBlock:
			said = said || !blank(b.text.String())
		}
	}
	if said {
		d.state = wire.Closed
	} else {
		d.silent = true
	}
}

func (d *decoder) warn(text string) { d.answer.Warnings = append(d.answer.Warnings, text) }

func (d *decoder) classify(data []byte) *ninelives.Fault {
	return wire.Classify(wire.Answer{Status: 200, Body: data, Candidate: d.o.Candidate, InBand: true, Now: d.o.Now})
}

func (d *decoder) broken(message string, cause error) *ninelives.Fault {
	f := &ninelives.Fault{
		Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseStream, Status: 200,
		Candidate: d.o.Candidate.Name(), Billed: ninelives.BilledMaybe, Message: message, Err: cause,
	}
	if len(d.blocks) == 0 {
		f.Phase = ninelives.PhaseFirstToken
	}
	return f
}

// fail ends the stream with a fault; after the end it is only worth a warning.
func (d *decoder) fail(f *ninelives.Fault) error {
	if d.state != wire.Open {
		d.warn("after the end of the answer: " + f.Message)
		return nil
	}
	f.Partial = d.partial()
	d.fault = f
	return f
}

// partial is the answer so far, as evidence.
func (d *decoder) partial() *ninelives.Response {
	r := d.answer
	r.Warnings = nil
	r.Candidate = d.o.Candidate.Name()
	r.Message = ninelives.Message{Role: ninelives.RoleAssistant, Parts: d.parts(true)}
	r.Extra = extra(d.kept)
	return &r
}

func (d *decoder) Response(cause error) (*ninelives.Response, error) {
	if d.fault != nil {
		return nil, d.fault
	}
	if d.state == wire.Open {
		return nil, d.unfinished(cause)
	}
	r := d.answer
	r.Candidate = d.o.Candidate.Name()
	r.Extra = extra(d.kept)
	r.Message = ninelives.Message{Role: ninelives.RoleAssistant, Parts: d.parts(r.Finish == ninelives.FinishLength)}
	if r.FinishRaw == "" {
		r.Finish = ninelives.FinishStop
		r.Warnings = append(r.Warnings, "the provider gave no reason for the end of its answer")
	}
	if cause != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("after the end of the answer: %v", cause))
	}
	if err := finish(&r, d.o); err != nil {
		return nil, err
	}
	return &r, nil
}

// unfinished is the fault of a stream that ended before its answer did.
func (d *decoder) unfinished(cause error) *ninelives.Fault {
	var f *ninelives.Fault
	switch {
	case errors.As(cause, &f):
		told := *f
		f = &told
	case cause == nil && (d.frames == 0 || d.silent):
		f = &ninelives.Fault{
			Class: ninelives.ClassEmpty, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseFirstToken, Status: 200,
			Candidate: d.o.Candidate.Name(), Message: "the stream ended before anything was said",
		}
	case cause == nil:
		f = d.broken("the stream ended before the answer did: no stop reason came", nil)
	default:
		f = d.broken("the stream broke off before the answer was complete: "+cause.Error(), cause)
	}
	if f.Partial == nil && d.frames > 0 {
		f.Partial = d.partial()
	}
	return f
}
