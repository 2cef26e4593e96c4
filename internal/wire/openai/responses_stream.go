package openai

import (
	"bytes"
	"slices"
	"strings"

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

// responsesItem is an item of the output.
type responsesItem struct {
	index int // output_index
	id    string
	kind  string
	first *responsesPart // announced with the item, taken by its first piece
	parts []*responsesPart
	raw   []byte // as announced
	final bool   // read in full
}

// responsesPart is a part of the final message.
type responsesPart struct {
	index int // in the message
	kind  responsesKind
	// place is the summary_index or content_index; the contents of a
	// reasoning item come after its summaries.
	place   int
	content bool
	text    strings.Builder
	sent    int // of text
	// A tool call is not told before its name is known.
	id, name string
	told     bool
	notes    [][]byte // annotations that were announced by themselves
	// whole is the part as the finished item has it; nil until then.
	whole     ninelives.Part
	messageID string
}

type responsesKind int

const (
	responsesKindNone responsesKind = iota
	responsesKindText
	responsesKindRefusal
	responsesKindReasoning
	responsesKindCall
	responsesKindOpaque
)

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
	hasChoices                      bool
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
		if d.state != wire.Open {
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
		return d.failed(kind, ev, data)
	case "":
		if !rawjson.Null(ev.err) { // an error without an event around it
			return d.failed(kind, ev, data)
		}
	}
	return nil
}

// item finds the item that an event is about, or begins it.
func (d *responsesDecoder) item(ev *responsesEvent, kind string) *responsesItem {
	index, indexed := rawjson.Int(ev.output)
	id := ev.itemID
	if id == nil && ev.item != nil {
		id = rawjson.Get(ev.item, "id")
	}
	for i := len(d.items) - 1; i >= 0; i-- {
		it := d.items[i]
		switch {
		case indexed && it.index == int(index),
			!indexed && id != nil && rawjson.Is(id, it.id),
			!indexed && id == nil && ev.item == nil && i == len(d.items)-1:
			return it
		}
	}
	it := &responsesItem{index: int(index), id: rawjson.String(id), kind: kind}
	if !indexed {
		it.index = len(d.items)
		for _, other := range d.items {
			it.index = max(it.index, other.index+1)
		}
	}
	d.items = append(d.items, it)
	it.first = d.newPart(it)
	return it
}

func (d *responsesDecoder) newPart(it *responsesItem) *responsesPart {
	p := &responsesPart{index: len(d.parts)}
	d.parts = append(d.parts, p)
	it.parts = append(it.parts, p)
	return p
}

// part finds the part that an event is about, or begins it.
func (d *responsesDecoder) part(ev *responsesEvent, kind responsesKind, content bool) *responsesPart {
	it := d.item(ev, "")
	place, ok := rawjson.Int(ev.content)
	if !content {
		place, ok = rawjson.Int(ev.summary)
	}
	for i := len(it.parts) - 1; i >= 0; i-- {
		p := it.parts[i]
		if p.kind == kind && p.content == content && (!ok || p.place == int(place)) {
			return p
		}
	}
	p := it.first
	if it.first = nil; p == nil {
		p = d.newPart(it)
	}
	p.kind, p.place, p.content = kind, int(place), content
	return p
}

func (d *responsesDecoder) delta(ev *responsesEvent, kind responsesKind, content bool) {
	p := d.part(ev, kind, content)
	if p.whole != nil {
		return // the item is finished
	}
	d.scratch = rawjson.AppendString(d.scratch[:0], ev.delta)
	p.text.Write(d.scratch)
	d.tell(p)
}

// done takes the text of a finished part, where the deltas did not have all of it.
func (d *responsesDecoder) done(ev *responsesEvent, kind responsesKind, content bool) {
	p := d.part(ev, kind, content)
	if p.whole == nil {
		d.complete(p, rawjson.String(ev.text))
		d.tell(p)
	}
}

// complete makes full the text of p, unless full is less than nothing. What
// has been told stays told.
func (d *responsesDecoder) complete(p *responsesPart, full string) {
	have := p.text.String()
	if full == "" || full == have {
		return
	}
	sent := p.sent
	if !strings.HasPrefix(full, have[:sent]) {
		sent = len(full)
	}
	p.text = strings.Builder{}
	p.text.WriteString(full)
	p.sent = sent
}

// tell emits what has not been told of a part.
func (d *responsesDecoder) tell(p *responsesPart) {
	text := p.text.String()[p.sent:]
	attempt := d.o.Attempt
	if p.kind == responsesKindCall && d.o.OutputTool != "" && p.name == d.o.OutputTool {
		if text == "" {
			return
		}
		d.semantic, p.sent = true, p.text.Len()
		d.send(ninelives.TextDelta{Attempt: attempt, Part: p.index, Text: text})
		return
	}
	if p.kind == responsesKindCall {
		if p.name == "" || p.told && text == "" {
			return
		}
		ev := ninelives.ToolCallDelta{Attempt: attempt, Part: p.index, Arguments: text}
		if !p.told {
			p.told, ev.ID, ev.Name = true, p.id, p.name
			if own, ok := d.o.Names[p.name]; ok {
				ev.Name = own
			}
		}
		d.semantic, p.sent = true, p.text.Len()
		d.send(ev)
		return
	}
	if text == "" {
		return
	}
	p.sent = p.text.Len()
	switch p.kind {
	case responsesKindText:
		d.semantic = true
		d.send(ninelives.TextDelta{Attempt: attempt, Part: p.index, Text: text})
	case responsesKindRefusal:
		d.semantic = true
		d.send(ninelives.RefusalDelta{Attempt: attempt, Part: p.index, Text: text})
	case responsesKindReasoning:
		d.send(ninelives.ReasoningDelta{Attempt: attempt, Part: p.index, Text: text})
	}
}

func (d *responsesDecoder) send(ev ninelives.Event) {
	if d.emit != nil && !d.emit(ev) {
		d.emit = nil
	}
}

// added begins an item.
func (d *responsesDecoder) added(ev *responsesEvent) {
	if ev.item == nil {
		return
	}
	kind := rawjson.String(rawjson.Get(ev.item, "type"))
	it := d.item(ev, kind)
	it.kind, it.raw = kind, bytes.Clone(ev.item)
	if kind == "function_call" {
		p := d.part(&responsesEvent{output: ev.output, itemID: ev.itemID, item: ev.item}, responsesKindCall, true)
		d.identify(p, ev.item)
		d.tell(p)
	}
}

// identify reads who a call is and, where they come with it, its arguments.
func (d *responsesDecoder) identify(p *responsesPart, item []byte) {
	if name := rawjson.String(rawjson.Get(item, "name")); name != "" {
		p.name = name
	}
	if id := rawjson.String(rawjson.Get(item, "call_id")); id != "" {
		p.id = id
	} else if p.id == "" {
		p.id = rawjson.String(rawjson.Get(item, "id"))
	}
}

// finish reads an item in full.
func (d *responsesDecoder) finish(it *responsesItem, raw []byte) {
	if it.final {
		return
	}
	it.final = true
	whole, messageID := d.reader.item(raw)
	if rawjson.Is(rawjson.Get(raw, "type"), "function_call") {
		p := it.first
		if it.first = nil; p == nil {
			p = it.parts[0]
		}
		p.kind = responsesKindCall
		d.identify(p, raw)
	}
	slots := slices.Clone(it.parts)
	slices.SortStableFunc(slots, func(a, b *responsesPart) int {
		if a.content != b.content {
			if b.content {
				return -1
			}
			return 1
		}
		return a.place - b.place
	})
	for i, part := range whole {
		if i == len(slots) {
			slots = append(slots, d.newPart(it))
		}
		p := slots[i]
		if i == 0 {
			p.messageID = messageID
		}
		d.settle(p, part)
		d.tell(p)
	}
	it.first = nil
}

// settle makes part the content of p. Where it is empty but deltas came, they stay.
func (d *responsesDecoder) settle(p *responsesPart, part ninelives.Part) {
	switch v := part.(type) {
	case ninelives.Text:
		if v.Text == "" && p.kind == responsesKindRefusal {
			part = ninelives.Refusal{Text: p.text.String(), Meta: v.Meta} // the item says nothing itself
			break
		}
		if p.kind != responsesKindCall { // a forced tool's arguments
			p.kind = responsesKindText
		}
		d.complete(p, v.Text)
		v.Text = p.text.String()
		if len(v.Citations) == 0 {
			v.Citations = p.citations()
		}
		part = v
	case ninelives.Refusal:
		p.kind = responsesKindRefusal
		d.complete(p, v.Text)
		v.Text = p.text.String()
		part = v
	case ninelives.Reasoning:
		p.kind = responsesKindReasoning
		d.complete(p, v.Text)
		if v.Text = p.text.String(); v.Text != "" {
			v.Redacted = false
			if v.Provenance.Field == responsesEncrypted {
				v.Summary, v.Provenance.Field = p.reasoningField()
			}
		}
		part = v
	case ninelives.ToolCall:
		p.kind = responsesKindCall
		if v.Arguments == "{}" && p.text.Len() > 0 {
			v.Arguments = p.text.String() // nothing was said at the end, and something before
		}
		if v.Arguments != "{}" || p.told {
			d.complete(p, v.Arguments)
		}
		if v.ID == "" {
			v.ID = p.id
		}
		part = v
	default:
		if p.kind == responsesKindNone {
			p.kind = responsesKindOpaque
		}
	}
	p.whole = part
}

func (p *responsesPart) citations() []ninelives.Citation {
	var list []ninelives.Citation
	for _, raw := range p.notes {
		list = append(list, responsesCitations(slices.Concat([]byte("["), raw, []byte("]")))...)
	}
	return list
}

func (p *responsesPart) reasoningField() (summary bool, field string) {
	if p.content {
		return false, responsesContent
	}
	return true, responsesSummary
}

// terminal reads the last response object: it completes what no event did.
func (d *responsesDecoder) terminal(ev *responsesEvent) {
	if ev.response != nil {
		d.head = readResponsesAnswer(ev.response)
	}
	d.ended = true
	i := 0
	for el := range rawjson.Elements(d.head.output) {
		if it := d.matching(i, el); it != nil {
			d.finish(it, el)
		}
		i++
	}
	for _, it := range d.items {
		if it.raw != nil { // announced, and never told in full
			d.finish(it, it.raw)
		}
	}
}

// matching finds the item that element i of the final output completes: the
// one at that place, or a new one beyond all that were announced.
func (d *responsesDecoder) matching(i int, raw []byte) *responsesItem {
	kind := rawjson.String(rawjson.Get(raw, "type"))
	id := rawjson.Get(raw, "id")
	for _, it := range d.items {
		if it.id != "" && rawjson.Is(id, it.id) {
			return it
		}
	}
	if i < len(d.items) {
		ordered := slices.Clone(d.items)
		slices.SortStableFunc(ordered, func(a, b *responsesItem) int { return a.index - b.index })
		if it := ordered[i]; it.kind == kind || it.kind == "" {
			return it
		}
		return nil
	}
	it := &responsesItem{index: i, id: rawjson.String(id), kind: kind}
	d.items = append(d.items, it)
	it.first = d.newPart(it)
	return it
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
		return r, nil
	}
	fault := d.fault
	switch {
	case fault != nil:
	case d.frames == 0 && cause == nil:
		fault = d.broken("the stream ended without a single event", nil)
		fault.Class = ninelives.ClassEmpty
	default:
		fault = d.broken("the stream ended before response.completed", cause)
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

// content is the part as far as it is known; nil if it has none.
func (d *responsesDecoder) content(p *responsesPart) ninelives.Part {
	if p.whole != nil {
		return p.whole
	}
	text := p.text.String()
	switch p.kind {
	case responsesKindText:
		return ninelives.Text{Text: text, Citations: p.citations()}
	case responsesKindRefusal:
		return ninelives.Refusal{Text: text}
	case responsesKindReasoning:
		r := ninelives.Reasoning{Text: text, Provenance: d.reader.provenance}
		r.Summary, r.Provenance.Field = p.reasoningField()
		return r
	case responsesKindCall:
		if d.o.OutputTool != "" && p.name == d.o.OutputTool {
			return ninelives.Text{Text: text}
		}
		c := ninelives.ToolCall{ID: p.id, Name: p.name, Arguments: text}
		if own, ok := d.o.Names[p.name]; ok {
			c.Name = own
		}
		return c
	}
	return nil
}
