package openai

import (
	"bytes"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

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
		d.complete(p, v.Arguments)
		v.Arguments = p.text.String()
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
