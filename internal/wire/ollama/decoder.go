package ollama

import (
	"bytes"
	"io"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// decoder reads the lines of one answer. The terminal marker is "done": true.
type decoder struct {
	o        wire.DecodeOptions
	emit     func(ninelives.Event) bool
	splitter *wire.TextSplitter

	parts   []ninelives.Part
	texts   [][]byte // of the parts that grow
	model   string
	created string
	raw     string // done_reason
	usage   ninelives.Usage
	rest    rawjson.Kept // of the last line
	message rawjson.Kept

	frames int
	done   bool
	fault  *ninelives.Fault
}

// NewDecoder reads the frames of a streamed answer of POST /api/chat.
func NewDecoder(o wire.DecodeOptions) wire.Decoder {
	return &decoder{o: o, splitter: wire.NewTextSplitter(o)}
}

// DecodeResponse reads the whole body of a 200 answer of POST /api/chat. The
// error is a *ninelives.Fault. A body of several lines is read as a stream.
func DecodeResponse(body []byte, o wire.DecodeOptions) (*ninelives.Response, error) {
	d := &decoder{o: o, splitter: wire.NewTextSplitter(o)}
	data := bytes.TrimSpace(body)
	if rawjson.Valid(data) && data[0] == '{' {
		if err := d.Frame(wire.Frame{Data: data}, nil); err != nil {
			return nil, err
		}
		return d.Response(nil)
	}
	lines := NewFramer(bytes.NewReader(data))
	for {
		f, err := lines.Next()
		if err == io.EOF {
			if page := lines.Body(); page != nil {
				return nil, d.classify(page)
			}
			return d.Response(nil)
		}
		if err != nil {
			return d.Response(err)
		}
		if err := d.Frame(f, nil); err != nil {
			return nil, err
		}
	}
}

// State implements wire.Decoder. Nothing follows the line that is done.
func (d *decoder) State() wire.State {
	if d.done || d.fault != nil {
		return wire.Closed
	}
	return wire.Open
}

// Frame implements wire.Decoder.
func (d *decoder) Frame(f wire.Frame, emit func(ninelives.Event) bool) error {
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 || d.State() == wire.Closed {
		return nil
	}
	d.frames++
	d.emit = emit
	defer func() { d.emit = nil }()
	if data[0] != '{' || !rawjson.Valid(data) {
		return d.fail(d.newFault(ninelives.ClassStreamBroken, "a line of the stream is no JSON"))
	}
	var message []byte
	d.rest = rawjson.Kept{}
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "error":
			if !rawjson.Empty(m.Value) {
				return d.fail(d.classify(data))
			}
		case "model":
			d.model = rawjson.String(m.Value)
		case "created_at":
			d.created = rawjson.String(m.Value)
		case "message":
			message = m.Value
		case "done":
			d.done, _ = rawjson.Bool(m.Value)
		case "done_reason":
			d.raw = rawjson.String(m.Value)
		case "prompt_eval_count":
			d.count(m.Value, &d.usage.Input, ninelives.UsageInput)
			d.rest.Add(m)
		case "eval_count":
			d.count(m.Value, &d.usage.Output, ninelives.UsageOutput)
			d.rest.Add(m)
		default:
			d.rest.Add(m)
		}
	}
	d.read(message)
	if d.done {
		if d.splitter != nil {
			d.splitter.Flush(d.segment)
		}
	}
	return nil
}

func (d *decoder) count(v []byte, into *int, field ninelives.UsageField) {
	if n, ok := rawjson.Int(v); ok {
		*into = int(n)
		d.usage.Reported |= field
	}
}

// read takes in the message of a line: thinking, then text, then calls.
func (d *decoder) read(message []byte) {
	var content, thinking, calls []byte
	for m := range rawjson.Members(message) {
		switch string(m.Name) {
		case "role":
		case "content":
			content = m.Value
		case "thinking":
			thinking = m.Value
		case "tool_calls":
			calls = m.Value
		default:
			d.message.Add(m)
		}
	}
	d.reasoning(rawjson.String(thinking), "thinking")
	if text := rawjson.String(content); d.splitter != nil {
		d.splitter.Write(text, d.segment)
	} else {
		d.text(text)
	}
	for c := range rawjson.Elements(calls) {
		function := rawjson.Get(c, "function")
		arguments := rawjson.Get(function, "arguments")
		text := string(arguments)
		if rawjson.Kind(arguments) == '"' {
			text = rawjson.String(arguments)
		}
		d.call(rawjson.String(rawjson.Get(c, "id")), rawjson.String(rawjson.Get(function, "name")), text)
	}
}

func (d *decoder) segment(s wire.Segment) {
	switch {
	case s.Name != "":
		d.call("", s.Name, s.Arguments)
	case s.Reasoning:
		d.reasoning(s.Text, wire.FieldThinkTags)
	default:
		d.text(s.Text)
	}
}

func (d *decoder) text(text string) {
	if text == "" {
		return
	}
	n := len(d.parts) - 1
	if n < 0 || !isText(d.parts[n]) {
		n = d.begin(ninelives.Text{})
	}
	d.texts[n] = append(d.texts[n], text...)
	d.give(ninelives.TextDelta{Attempt: d.o.Attempt, Part: n, Text: text})
}

func isText(p ninelives.Part) bool { _, ok := p.(ninelives.Text); return ok }

func isReasoning(p ninelives.Part) bool { _, ok := p.(ninelives.Reasoning); return ok }

func (d *decoder) reasoning(text, field string) {
	if text == "" {
		return
	}
	n := len(d.parts) - 1
	if n < 0 || !isReasoning(d.parts[n]) {
		n = d.begin(ninelives.Reasoning{Provenance: ninelives.Provenance{Provider: d.o.Candidate.Provider, Model: d.o.Candidate.Model, Field: field}})
	}
	d.texts[n] = append(d.texts[n], text...)
	d.give(ninelives.ReasoningDelta{Attempt: d.o.Attempt, Part: n, Text: text})
}

// call takes in a call, which always comes whole.
func (d *decoder) call(id, name, arguments string) {
	if name == "" {
		return
	}
	if own, ok := d.o.Names[name]; ok {
		name = own
	}
	arguments = wire.Arguments(arguments, d.o.Tools, name, false)
	if d.o.OutputTool != "" && name == d.o.OutputTool {
		n := d.begin(ninelives.Text{})
		d.texts[n] = []byte(arguments)
		d.give(ninelives.TextDelta{Attempt: d.o.Attempt, Part: n, Text: arguments})
		return
	}
	if id == "" {
		id = wire.MadeID(d.model+"/"+d.created, len(d.parts), name, arguments)
	}
	c := ninelives.ToolCall{ID: id, Name: name, Arguments: arguments}
	n := d.begin(c)
	d.give(ninelives.ToolCallDelta{Attempt: d.o.Attempt, Part: n, ID: id, Name: name, Arguments: arguments})
}

func (d *decoder) begin(p ninelives.Part) int {
	d.parts = append(d.parts, p)
	d.texts = append(d.texts, nil)
	return len(d.parts) - 1
}

func (d *decoder) give(ev ninelives.Event) {
	if d.emit != nil && !d.emit(ev) {
		d.emit = nil
	}
}

func (d *decoder) classify(data []byte) *ninelives.Fault {
	f := wire.Classify(wire.Answer{Status: 200, Body: data, Candidate: d.o.Candidate, InBand: true, Now: d.o.Now})
	if f.Class == ninelives.ClassUnknown && len(d.parts) > 0 {
		f.Class, f.Scope = ninelives.ClassStreamBroken, ninelives.ScopeModel // an answer was under way
	}
	return f
}

func (d *decoder) fail(f *ninelives.Fault) error {
	d.done = false
	f.Partial = d.response()
	d.fault = f
	return f
}

func (d *decoder) newFault(class ninelives.Class, message string) *ninelives.Fault {
	return &ninelives.Fault{
		Class: class, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseStream, Status: 200,
		Message: message, Candidate: d.o.Candidate.Name(), Billed: ninelives.BilledMaybe,
	}
}

// Response implements wire.Decoder.
func (d *decoder) Response(cause error) (*ninelives.Response, error) {
	if d.fault != nil {
		return nil, d.fault
	}
	if d.done {
		r := d.response()
		r.Finish = d.finish()
		r.Finish = wire.Ending(r, d.o)
		if f := wire.Overflow(r, d.o); f != nil {
			return nil, f
		}
		return r, nil
	}
	var f *ninelives.Fault
	switch {
	case cause != nil:
		f = d.newFault(ninelives.ClassStreamBroken, "the stream broke off: "+wire.Redact(cause.Error()))
	case d.frames == 0:
		return nil, d.newFault(ninelives.ClassEmpty, "the stream ended without a line")
	default:
		f = d.newFault(ninelives.ClassStreamBroken, `the stream ended without a line that is "done"`)
	}
	f.Err = cause
	if d.frames > 0 {
		f.Partial = d.response()
	}
	return nil, f
}

// finish puts done_reason into our words. Old servers give none.
func (d *decoder) finish() ninelives.FinishReason {
	switch d.raw {
	case "", "stop", "load", "unload":
		return ninelives.FinishStop
	case "length":
		return ninelives.FinishLength
	}
	return ninelives.FinishOther
}

// response gives the answer so far.
func (d *decoder) response() *ninelives.Response {
	r := &ninelives.Response{
		Model:     d.model,
		FinishRaw: d.raw,
		Usage:     d.usage,
		Message:   ninelives.Message{Role: ninelives.RoleAssistant, Extra: extra(d.message.Object())},
		Extra:     extra(d.rest.Object()),
	}
	if t, err := time.Parse(time.RFC3339Nano, d.created); err == nil {
		r.Created = t.UTC()
	}
	for i, p := range d.parts {
		switch p := p.(type) {
		case ninelives.Text:
			p.Text = string(d.texts[i])
			r.Message.Parts = append(r.Message.Parts, p)
		case ninelives.Reasoning:
			p.Text = string(d.texts[i])
			r.Message.Parts = append(r.Message.Parts, p)
		default:
			r.Message.Parts = append(r.Message.Parts, p)
		}
	}
	return r
}

func extra(raw []byte) ninelives.Extra {
	if raw == nil {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: ninelives.OllamaNative, JSON: raw}
}
