package gemini

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// decoder reads the chunks of a streamed answer, or the one of a whole answer.
//
// Pieces of text that follow each other make one part, and so do pieces of
// thinking. A proof that comes with a piece of text stands after the text, as
// the API itself often sends it.
//
// A finish reason does not end the reading: older models write one into every
// chunk, and the usage of the last chunk counts.
type decoder struct {
	o      wire.DecodeOptions
	reader reader
	whole  bool // one chunk is the whole answer: its parts are not joined

	frames   int
	semantic bool // text or a call has been emitted
	id       string
	model    string
	own      lastMembers // top-level members that have no word here
	usage    []byte
	blocked  []byte // promptFeedback
	choices  []*choice
	fault    *ninelives.Fault
	warnings []string
	scratch  []byte
	emit     func(ninelives.Event) bool // of the frame being read; nil once it wants no more
}

// choice is a candidate.
type choice struct {
	index    int // of the wire
	parts    []*streamPart
	finish   string
	own      lastMembers // of the candidate
	content  lastMembers // of its content
	finished bool
}

// streamPart is a part that may go on.
type streamPart struct {
	index int
	part  ninelives.Part
	text  strings.Builder // of an open text or thought
	open  bool
	sent  int
}

// NewDecoder reads the frames of a streamed answer of streamGenerateContent.
// A frame is a chunk, or an array of chunks.
func NewDecoder(o wire.DecodeOptions) wire.Decoder { return newDecoder(o) }

func newDecoder(o wire.DecodeOptions) *decoder {
	return &decoder{o: o, reader: newReader(o)}
}

// State implements wire.Decoder.
func (d *decoder) State() wire.State {
	if len(d.choices) == 0 {
		if rawjson.Get(d.blocked, "blockReason") != nil {
			return wire.Finished
		}
		return wire.Open
	}
	for _, c := range d.choices {
		if !c.finished {
			return wire.Open
		}
	}
	return wire.Finished
}

// Frame implements wire.Decoder.
func (d *decoder) Frame(f wire.Frame, emit func(ninelives.Event) bool) error {
	d.emit = emit
	defer func() { d.emit = nil }()
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return nil // heartbeats, [DONE]
	}
	if string(data) == "[DONE]" {
		return nil
	}
	d.frames++
	if !rawjson.Valid(data) {
		if d.State() == wire.Open && d.o.ReadOn() {
			return nil
		}
		return d.failed(d.broken("a chunk of the stream is no JSON", nil))
	}
	if data[0] == '{' {
		return d.chunk(data)
	}
	for el := range rawjson.Elements(data) {
		if err := d.chunk(el); err != nil {
			return err
		}
	}
	return nil
}

// failed takes note of a fault; after the end of the answer it is a warning.
func (d *decoder) failed(f *ninelives.Fault) error {
	if d.State() != wire.Open {
		d.warnings = append(d.warnings, "an error followed the end of the answer: "+f.Message)
		return nil
	}
	d.fault = f
	f.Partial = d.response()
	return f
}

// chunk reads one chunk.
func (d *decoder) chunk(raw []byte) error {
	var candidates, failure []byte
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "candidates":
			candidates = m.Value
		case "error":
			failure = m.Value
		case "usageMetadata", "usage_metadata":
			if rawjson.Kind(m.Value) == '{' {
				d.usage = append(d.usage[:0], m.Value...)
			}
		case "modelVersion", "model_version":
			if d.model == "" {
				d.model = rawjson.String(m.Value)
			}
		case "responseId", "response_id":
			if d.id == "" {
				d.id = rawjson.String(m.Value)
			}
		case "promptFeedback", "prompt_feedback":
			d.blocked = append(d.blocked[:0], m.Value...)
			d.own.set(m)
		default:
			d.own.set(m)
		}
	}
	if !rawjson.Null(failure) {
		return d.failed(d.classify(raw))
	}
	for el := range rawjson.Elements(candidates) {
		d.candidate(el)
	}
	return nil
}

func (d *decoder) candidate(raw []byte) {
	c := d.choice(raw)
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "index":
		case "content":
			d.content(c, m.Value)
		case "finishReason", "finish_reason":
			if reason := rawjson.String(m.Value); reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
				c.finish, c.finished = reason, true
			}
		default:
			c.own.set(m)
		}
	}
}

// choice finds the candidate that raw is of, by its index.
func (d *decoder) choice(raw []byte) *choice {
	n, _ := rawjson.Int(rawjson.Get(raw, "index"))
	at := 0
	for _, c := range d.choices {
		if c.index == int(n) {
			return c
		}
		if c.index < int(n) {
			at++
		}
	}
	c := &choice{index: int(n)}
	d.choices = slices.Insert(d.choices, at, c)
	return c
}

func (d *decoder) content(c *choice, raw []byte) {
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "role":
		case "parts":
			for el := range rawjson.Elements(m.Value) {
				d.piece(c, el)
			}
		default:
			c.content.set(m)
		}
	}
}

// piece reads a part of a chunk.
func (d *decoder) piece(c *choice, raw []byte) {
	if !d.whole && d.goesOn(c, raw) {
		return
	}
	parts := d.reader.parts(raw)
	if t, ok := parts[0].(ninelives.Text); ok && t.Text == "" && t.Extra.JSON == nil {
		return // a last chunk often has an empty text
	}
	if len(parts) == 2 && !d.whole { // a proof with a text: it stands after it
		if _, ok := parts[1].(ninelives.Text); ok {
			proof := parts[0].(ninelives.Reasoning)
			proof.Extra = extraOf([]byte(`{"text":""}`))
			d.add(c, parts[1])
			d.add(c, proof)
			return
		}
	}
	for _, part := range parts {
		d.add(c, part)
	}
}

// goesOn takes in a plain piece of text or of thinking that goes on with the
// last part, without making a part of it.
func (d *decoder) goesOn(c *choice, raw []byte) bool {
	if len(c.parts) == 0 {
		return false
	}
	last := c.parts[len(c.parts)-1]
	if !last.open {
		return false
	}
	var text []byte
	thought := false
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "text":
			text = m.Value
		case "thought":
			thought, _ = rawjson.Bool(m.Value)
		default:
			return false
		}
	}
	_, thinking := last.part.(ninelives.Reasoning)
	if text == nil || thought != thinking {
		return false
	}
	d.scratch = rawjson.AppendString(d.scratch[:0], text)
	last.text.Write(d.scratch)
	d.tell(c, last)
	return true
}

// add adds a part, and tells of it.
func (d *decoder) add(c *choice, part ninelives.Part) {
	// A piece with a proof, or with members of its own, is joined to what it
	// goes on with only if it is text.
	if !d.whole && len(c.parts) > 0 {
		last := c.parts[len(c.parts)-1]
		switch v := part.(type) {
		case ninelives.Text:
			if _, ok := last.part.(ninelives.Text); ok && last.open && v.Extra.JSON == nil {
				last.text.WriteString(v.Text)
				d.tell(c, last)
				return
			}
		case ninelives.Reasoning:
			if r, ok := last.part.(ninelives.Reasoning); ok && last.open && v.Provenance.Field == fieldThought && v.Extra.JSON == nil {
				last.text.WriteString(v.Text)
				r.Provenance.Signature = v.Provenance.Signature
				last.part, last.open = r, v.Provenance.Signature == ""
				d.tell(c, last)
				return
			}
		}
	}
	p := &streamPart{index: len(c.parts), part: part}
	switch v := part.(type) {
	case ninelives.Text:
		p.text.WriteString(v.Text)
		p.open = v.Extra.JSON == nil
	case ninelives.Reasoning:
		p.text.WriteString(v.Text)
		p.open = v.Provenance.Field == fieldThought && v.Provenance.Signature == "" && v.Extra.JSON == nil
	case ninelives.ToolCall:
		v.Arguments = wire.Arguments(v.Arguments, d.o.Tools, v.Name, false)
		if v.ID == "" {
			v.ID = wire.MadeID(d.id, p.index, v.Name, v.Arguments)
		}
		p.part = v
	}
	c.parts = append(c.parts, p)
	d.tell(c, p)
}

// tell emits what has not been told of a part of the first candidate; the
// others are only in the answer.
func (d *decoder) tell(c *choice, p *streamPart) {
	if c.index != 0 {
		return
	}
	attempt := d.o.Attempt
	text := p.text.String()[p.sent:]
	p.sent = p.text.Len()
	switch v := p.part.(type) {
	case ninelives.Text:
		if text != "" {
			d.semantic = true
			d.send(ninelives.TextDelta{Attempt: attempt, Part: p.index, Text: text})
		}
	case ninelives.Reasoning:
		if text != "" {
			d.send(ninelives.ReasoningDelta{Attempt: attempt, Part: p.index, Text: text})
		}
	case ninelives.ToolCall:
		d.semantic = true
		d.send(ninelives.ToolCallDelta{Attempt: attempt, Part: p.index, ID: v.ID, Name: v.Name, Arguments: v.Arguments})
	}
}

func (d *decoder) send(ev ninelives.Event) {
	if d.emit != nil && !d.emit(ev) {
		d.emit = nil
	}
}

func (d *decoder) phase() ninelives.Phase {
	if d.semantic {
		return ninelives.PhaseStream
	}
	return ninelives.PhaseFirstToken
}

func (d *decoder) broken(message string, cause error) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: d.phase(), Status: 200,
		Message: message, Candidate: d.o.Candidate.Name(), Billed: ninelives.BilledMaybe, Err: cause,
	}
}

// Response implements wire.Decoder.
func (d *decoder) Response(cause error) (*ninelives.Response, error) {
	if d.fault != nil {
		return nil, d.fault
	}
	if d.State() != wire.Open {
		r := d.response()
		if fault := wire.Overflow(r, d.o); fault != nil {
			return nil, fault
		}
		return r, nil
	}
	var f *ninelives.Fault
	switch {
	case cause != nil:
		f = d.broken("the stream broke off: "+wire.Redact(cause.Error()), cause)
	case d.frames == 0:
		f = d.broken("the stream ended without a single chunk", nil)
		f.Class = ninelives.ClassEmpty
	case len(d.choices) == 0:
		f = d.broken("the stream ended without a candidate", nil)
		f.Class = ninelives.ClassEmpty
	default:
		f = d.broken("the stream ended before a finishReason", nil)
	}
	f.Partial = d.response()
	return nil, f
}

// response puts together what has come.
func (d *decoder) response() *ninelives.Response {
	r := &ninelives.Response{
		ID: d.id, Model: d.model, Candidate: d.o.Candidate.Name(), Warnings: d.warnings,
		Message: ninelives.Message{Role: ninelives.RoleAssistant},
		Created: responseTime(d.own.get("createTime")), Extra: d.own.extra(),
	}
	if d.usage != nil {
		r.Usage = readUsage(d.usage)
	}
	for i, c := range d.choices {
		o := d.o
		if len(d.choices) > 1 {
			o.MaxTokens = 0 // usage counts all candidates together
		}
		answer := c.choice(o, r.Usage)
		if i > 0 {
			r.Choices = append(r.Choices, answer)
			continue
		}
		r.Message, r.Finish, r.FinishRaw = answer.Message, answer.Finish, answer.FinishRaw
		r.Logprobs, r.ChoiceExtra = answer.Logprobs, answer.Extra
		if message := rawjson.String(c.own.get("finishMessage")); message != "" && answer.Finish != ninelives.FinishStop && len(answer.Message.ToolCalls()) == 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the answer ended in %s: %s", c.finish, message))
		}
	}
	if reason := rawjson.String(rawjson.Get(d.blocked, "blockReason")); reason != "" && len(d.choices) == 0 {
		r.Finish = ninelives.FinishContentFilter
		warning := "the prompt was blocked: " + reason
		if message := rawjson.String(rawjson.Get(d.blocked, "blockReasonMessage")); message != "" {
			warning += ": " + message
		}
		r.Warnings = append(r.Warnings, warning)
	}
	return r
}

// choice puts a candidate together.
func (c *choice) choice(o wire.DecodeOptions, usage ninelives.Usage) ninelives.Choice {
	m := ninelives.Message{Role: ninelives.RoleAssistant, Extra: c.content.extra()}
	text := -1 // the last one
	for i, p := range c.parts {
		switch v := p.part.(type) {
		case ninelives.Text:
			v.Text = p.text.String()
			m.Parts = append(m.Parts, v)
			text = i
		case ninelives.Reasoning:
			v.Text = p.text.String()
			m.Parts = append(m.Parts, v)
		default:
			m.Parts = append(m.Parts, v)
		}
	}
	if list := citations(&c.own); list != nil && text >= 0 {
		t := m.Parts[text].(ninelives.Text)
		t.Citations = list
		m.Parts[text] = t
	}
	a := ninelives.Choice{Message: m, FinishRaw: c.finish, Extra: c.own.extra()}
	if l := c.own.get("logprobsResult"); !rawjson.Empty(l) {
		a.Logprobs = extraOf(l)
	}
	if c.finished {
		a.Finish = wire.Ending(&ninelives.Response{Message: m, Finish: finishOf(c.finish), Usage: usage}, o)
	}
	return a
}
