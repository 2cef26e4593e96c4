package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// responsesDecoder reads the event stream of a response.
//
// The final message has a part for each piece that the stream announces, in
// the order in which they are announced, so that a delta knows its part at
// once. An item's done event, or failing that the terminal event, gives its
// parts in full: they win over what the deltas added up to, and what they have
// more than the deltas is emitted as a delta.
type responsesDecoder struct {
	o      wire.DecodeOptions
	reader responsesReader
	state  wire.State
	ended  bool // a terminal event has been seen, good or bad

	frames   int
	semantic bool // text, a call or a refusal has been emitted
	items    []*responsesItem
	parts    []*responsesPart
	head     responsesAnswer // of the last response object
	fault    *ninelives.Fault
	warnings []string
	scratch  []byte
	emit     func(ninelives.Event) bool // of the frame being read; nil once it wants no more
}

// NewResponsesDecoder reads the frames of a streamed answer of POST /responses.
func NewResponsesDecoder(o wire.DecodeOptions) wire.Decoder {
	return &responsesDecoder{o: o, reader: newResponsesReader(o)}
}

// State implements wire.Decoder.
func (d *responsesDecoder) State() wire.State { return d.state }

// responsesEvent is the members of an event that matter, still raw.
type responsesEvent struct {
	kind                            []byte
	output, content, summary        []byte // indices
	itemID, delta, text, item, part []byte
	annotation, response, err       []byte
}

// Frame implements wire.Decoder.
func (d *responsesDecoder) Frame(f wire.Frame, emit func(ninelives.Event) bool) error {
	d.emit = emit
	defer func() { d.emit = nil }()
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 || data[0] != '{' {
		return nil // [DONE], heartbeats
	}
	d.frames++
	if !rawjson.Valid(data) {
		if d.state != wire.Open || d.o.ReadOn() {
			return nil
		}
		d.fault = d.broken("an event of the stream is no JSON", nil)
		return d.fault
	}
	var ev responsesEvent
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "type":
			ev.kind = m.Value
		case "output_index":
			ev.output = m.Value
		case "content_index":
			ev.content = m.Value
		case "summary_index":
			ev.summary = m.Value
		case "item_id":
			ev.itemID = m.Value
		case "delta":
			ev.delta = m.Value
		case "text", "refusal", "arguments":
			ev.text = m.Value
		case "item":
			ev.item = m.Value
		case "part":
			ev.part = m.Value
		case "annotation":
			ev.annotation = m.Value
		case "response":
			ev.response = m.Value
		case "error":
			ev.err = m.Value
		}
	}
	kind := responsesEventKind(ev.kind)
	if len(kind) == 0 {
		kind = []byte(f.Event)
	}
	return d.event(kind, &ev, data)
}

// responsesEventKind is the inside of a JSON string that has no escapes.
func responsesEventKind(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}

func (d *responsesDecoder) event(kind []byte, ev *responsesEvent, data []byte) error {
	if d.state != wire.Open {
		if string(kind) == "error" || string(kind) == "response.failed" {
			d.warnings = append(d.warnings, "an error followed the end of the answer: "+d.reported(kind, ev, data).Message)
		}
		return nil
	}
	switch string(kind) {
	case "response.output_text.delta":
		d.delta(ev, responsesKindText, true)
	case "response.refusal.delta":
		d.delta(ev, responsesKindRefusal, true)
	case "response.reasoning_summary_text.delta":
		d.delta(ev, responsesKindReasoning, false)
	case "response.reasoning_text.delta":
		d.delta(ev, responsesKindReasoning, true)
	case "response.function_call_arguments.delta":
		d.delta(ev, responsesKindCall, true)

	case "response.output_text.done":
		d.done(ev, responsesKindText, true)
	case "response.refusal.done":
		d.done(ev, responsesKindRefusal, true)
	case "response.reasoning_summary_text.done":
		d.done(ev, responsesKindReasoning, false)
	case "response.reasoning_text.done":
		d.done(ev, responsesKindReasoning, true)
	case "response.function_call_arguments.done":
		d.done(ev, responsesKindCall, true)

	case "response.output_item.added":
		d.added(ev)
	case "response.output_item.done":
		if ev.item != nil {
			d.finish(d.item(ev, rawjson.String(rawjson.Get(ev.item, "type"))), ev.item)
		}
	case "response.output_text.annotation.added":
		p := d.part(ev, responsesKindText, true)
		p.notes = append(p.notes, bytes.Clone(ev.annotation))

	case "response.created", "response.in_progress", "response.queued":
		if d.head.id == "" {
			d.head = readResponsesAnswer(ev.response)
		}
	case "response.completed", "response.incomplete", "response.done":
		d.terminal(ev)
		if d.head.status == "failed" || d.head.status == "cancelled" {
			return d.failed(kind, ev, data)
		}
		d.state, d.fault = wire.Closed, nil
	case "response.failed", "response.cancelled":
		d.terminal(ev)
		return d.failed(kind, ev, data)
	case "error":
		// The failed response that follows it at OpenAI may say more.
		if err := d.failed(kind, ev, data); d.fault.Class != ninelives.ClassUnknown {
			return err
		}
	case "":
		if !rawjson.Null(ev.err) { // an error without an event around it
			return d.failed(kind, ev, data)
		}
	}
	return nil
}

// failed takes note of an error that the provider reports in the stream.
func (d *responsesDecoder) failed(kind []byte, ev *responsesEvent, data []byte) error {
	d.fault = d.reported(kind, ev, data)
	d.fault.Phase = d.phase()
	return d.fault
}

func (d *responsesDecoder) phase() ninelives.Phase {
	if d.semantic {
		return ninelives.PhaseStream
	}
	return ninelives.PhaseFirstToken
}

// reported classifies the error of an event. It comes as the error of a
// response object, as a member of the event, or as the event itself.
func (d *responsesDecoder) reported(kind []byte, ev *responsesEvent, data []byte) *ninelives.Fault {
	raw := ev.err
	if ev.response != nil {
		raw = rawjson.Get(ev.response, "error")
	} else if rawjson.Null(raw) {
		var kept rawjson.Kept
		for m := range rawjson.Members(data) {
			switch string(m.Name) {
			case "type", "sequence_number", "error":
			default:
				kept.Add(m)
			}
		}
		raw = kept.Object()
	}
	otherwise := "the provider reports an error, and not which"
	if string(kind) == "response.failed" {
		otherwise = "the provider reports that the response failed, and not why"
	}
	return responsesFault(responsesErrorBody(raw, otherwise), d.o)
}

func (d *responsesDecoder) broken(message string, cause error) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: d.phase(), Status: 200,
		Message: message, Candidate: d.o.Candidate.Name(), Billed: ninelives.BilledMaybe, Err: cause,
	}
}

// Response implements wire.Decoder.
func (d *responsesDecoder) Response(cause error) (*ninelives.Response, error) {
	r := d.answer()
	if d.state != wire.Open {
		if f := wire.Overflow(r, d.o); f != nil {
			return nil, f
		}
		return r, nil
	}
	fault := d.fault
	switch {
	case fault != nil:
	case d.frames == 0 && cause == nil:
		fault = d.broken("the stream ended without a single event", nil)
		fault.Class = ninelives.ClassEmpty
	case cause != nil:
		fault = d.broken("the stream broke off: "+wire.Redact(cause.Error()), cause)
	default:
		fault = d.broken("the stream ended before response.completed", nil)
	}
	fault.Partial = r
	return nil, fault
}

// answer puts together what has come.
func (d *responsesDecoder) answer() *ninelives.Response {
	m := ninelives.Message{Role: ninelives.RoleAssistant}
	for _, p := range d.parts {
		if part := d.content(p); part != nil {
			addResponsesItem(&m, []ninelives.Part{part}, p.messageID)
		}
	}
	r := d.head.response(m, d.o)
	if !d.ended {
		r.Finish, r.FinishRaw = "", "" // in_progress is no reason to end
	}
	r.Warnings = append(r.Warnings, d.warnings...)
	return r
}
