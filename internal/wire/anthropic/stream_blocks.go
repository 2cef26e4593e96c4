package anthropic

import (
	"bytes"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// blockKind is what a block is read as.
type blockKind int

const (
	textBlock blockKind = iota
	thinkingBlock
	callBlock
	outputBlock // the call of the output tool: its arguments are text
	otherBlock  // redacted thinking and what has no words here
)

// block is one content block as far as it has come.
type block struct {
	kind  blockKind
	index int64
	open  bool
	// text is the text, the thinking or the arguments so far. It only grows, so
	// that the deltas can share its memory.
	text strings.Builder
	// start is the block as it began, with the deltas of otherBlock in it.
	start     []byte
	signature []byte
	citations []ninelives.Citation
	call      ninelives.ToolCall
}

// blockStart begins a block. One that begins again unchanged is ignored.
func (d *decoder) blockStart(e *event, emit func(ninelives.Event) bool) error {
	if d.state != wire.Open {
		return nil
	}
	kind := rawjson.Get(e.block, "type")
	if old := d.openBlock(e.index); old != nil && e.index >= 0 && old.text.Len() == 0 && bytes.Equal(old.start, e.block) {
		return nil
	}
	b := d.begin(otherBlock, e.index)
	b.start = bytes.Clone(e.block)
	switch {
	case rawjson.Is(kind, "text"):
		b.kind = textBlock
		for c := range rawjson.Elements(rawjson.Get(e.block, "citations")) {
			b.citations = append(b.citations, citation(c))
		}
		d.piece(b, rawjson.Get(e.block, "text"), emit)
	case rawjson.Is(kind, "thinking"):
		b.kind = thinkingBlock
		b.signature = rawjson.AppendString(nil, rawjson.Get(e.block, "signature"))
		d.piece(b, rawjson.Get(e.block, "thinking"), emit)
	case rawjson.Is(kind, "tool_use"):
		name := rawjson.String(rawjson.Get(e.block, "name"))
		if d.o.OutputTool != "" && name == d.o.OutputTool {
			b.kind = outputBlock
			break
		}
		b.kind = callBlock
		b.call.ID, b.call.Name = rawjson.String(rawjson.Get(e.block, "id")), d.read.name(name)
		if b.call.ID == "" {
			b.call.ID = wire.MadeID(d.answer.ID, len(d.blocks)-1, name, "")
		}
		emit(ninelives.ToolCallDelta{Attempt: d.o.Attempt, Part: d.part(b), ID: b.call.ID, Name: b.call.Name})
	case rawjson.Is(kind, "redacted_thinking"):
		proof := d.read.redacted(b.start).Provenance
		emit(ninelives.ReasoningDelta{Attempt: d.o.Attempt, Part: d.part(b), Proof: &proof})
	}
	return nil
}

func (d *decoder) begin(kind blockKind, index int64) *block {
	b := &block{kind: kind, index: index, open: true}
	d.blocks = append(d.blocks, b)
	return b
}

// part is the place of a block's part in the message: every block is one.
func (d *decoder) part(b *block) int {
	for i := len(d.blocks) - 1; i > 0; i-- {
		if d.blocks[i] == b {
			return i
		}
	}
	return 0
}

// openBlock is the open block at an index, or the last open one if the event
// has none.
func (d *decoder) openBlock(index int64) *block {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if b := d.blocks[i]; b.open && (index < 0 || b.index == index) {
			return b
		}
	}
	return nil
}

// delta takes a piece of a block. A piece that does not fit its block belongs
// to one whose beginning was lost.
func (d *decoder) delta(e *event, emit func(ninelives.Event) bool) error {
	if d.state != wire.Open {
		return nil
	}
	kind := rawjson.Get(e.delta, "type")
	b := d.openBlock(e.index)
	switch {
	case rawjson.Is(kind, "text_delta"):
		d.more(d.blockFor(b, textBlock, e.index), e, rawjson.Get(e.delta, "text"), emit)
	case rawjson.Is(kind, "thinking_delta"):
		d.more(d.blockFor(b, thinkingBlock, e.index), e, rawjson.Get(e.delta, "thinking"), emit)
	case rawjson.Is(kind, "signature_delta"):
		d.sign(d.blockFor(b, thinkingBlock, e.index), rawjson.Get(e.delta, "signature"), emit)
	case rawjson.Is(kind, "citations_delta"):
		if c := rawjson.Get(e.delta, "citation"); b != nil && rawjson.Kind(c) == '{' {
			b.citations = append(b.citations, citation(c))
		}
	case rawjson.Is(kind, "input_json_delta"):
		return d.input(b, rawjson.Get(e.delta, "partial_json"), emit)
	case b != nil && b.kind == otherBlock:
		b.start = grow(b.start, e.delta)
	}
	return nil
}

// blockFor is b if it is of the kind, else a new block.
func (d *decoder) blockFor(b *block, kind blockKind, index int64) *block {
	if b != nil && b.kind == kind {
		return b
	}
	return d.begin(kind, index)
}

// more takes an event that adds text to a block and does nothing else.
func (d *decoder) more(b *block, e *event, text []byte, emit func(ninelives.Event) bool) {
	if d.molded = b; b.index == e.index && rawjson.Kind(text) == '"' {
		d.mold.Take(e.raw, text)
	}
	d.piece(b, text, emit)
}

// piece appends a JSON string to a block and emits what it added.
func (d *decoder) piece(b *block, text []byte, emit func(ninelives.Event) bool) {
	d.scratch = rawjson.AppendString(d.scratch[:0], text)
	if len(d.scratch) == 0 {
		return
	}
	from := b.text.Len()
	b.text.Write(d.scratch)
	added := b.text.String()[from:]
	switch b.kind {
	case textBlock, outputBlock:
		emit(ninelives.TextDelta{Attempt: d.o.Attempt, Part: d.part(b), Text: added})
	case thinkingBlock:
		emit(ninelives.ReasoningDelta{Attempt: d.o.Attempt, Part: d.part(b), Text: added})
	case callBlock:
		emit(ninelives.ToolCallDelta{Attempt: d.o.Attempt, Part: d.part(b), Arguments: added})
	}
}

// sign takes the proof of a thinking block. It comes once; should it come in
// pieces, they are joined.
func (d *decoder) sign(b *block, signature []byte, emit func(ninelives.Event) bool) {
	d.scratch = rawjson.AppendString(d.scratch[:0], signature)
	if len(d.scratch) == 0 || bytes.Equal(d.scratch, b.signature) {
		return
	}
	b.signature = append(b.signature, d.scratch...)
	emit(ninelives.ReasoningDelta{Attempt: d.o.Attempt, Part: d.part(b), Proof: &ninelives.Provenance{
		Provider: d.o.Candidate.Provider, Model: d.o.Candidate.Model, Field: fieldThinking, Signature: string(b.signature),
	}})
}

// input takes a piece of arguments. Without a block at its index it goes on
// with the one call that is open; with none or several of them it is lost, and
// with it the answer.
func (d *decoder) input(b *block, piece []byte, emit func(ninelives.Event) bool) error {
	if b == nil || b.kind == textBlock || b.kind == thinkingBlock {
		var calls []*block
		for _, c := range d.blocks {
			if c.open && c.kind != textBlock && c.kind != thinkingBlock {
				calls = append(calls, c)
			}
		}
		if len(calls) != 1 {
			if rawjson.String(piece) == "" {
				return nil
			}
			return d.fail(d.broken("a piece of a tool call belongs to no call", nil))
		}
		b = calls[0]
	}
	d.piece(b, piece, emit)
	return nil
}

// grow adds a delta of a kind that has no words here to its block: strings are
// joined, anything else takes the place of what was there.
func grow(block, delta []byte) []byte {
	var w rawjson.Writer
	at := w.Open('{')
	for m := range rawjson.Members(block) {
		v := rawjson.Get(delta, string(m.Name))
		switch {
		case v == nil || string(m.Name) == "type" || rawjson.Null(v):
			w.Raw(m.Raw)
		case rawjson.Kind(v) == '"' && rawjson.Kind(m.Value) == '"':
			w.StringMember(string(m.Name), rawjson.String(m.Value)+rawjson.String(v))
		default:
			w.RawMember(string(m.Name), v)
		}
	}
	w.Rest(at, delta, nil)
	w.Close('}')
	return w.B
}

// parts makes the parts of the message. In an answer that was cut, arguments
// that never began stay empty.
func (d *decoder) parts(cut bool) []ninelives.Part {
	var parts []ninelives.Part
	for _, b := range d.blocks {
		parts = append(parts, d.made(b, cut))
	}
	return parts
}

func (d *decoder) made(b *block, cut bool) ninelives.Part {
	switch b.kind {
	case textBlock:
		p := ninelives.Text{Text: b.text.String(), Citations: b.citations}
		p.Meta = metaOf(b.start, "text", "citations")
		return p
	case thinkingBlock:
		p := ninelives.Reasoning{Text: b.text.String(), Meta: metaOf(b.start, "thinking", "signature")}
		p.Provenance = ninelives.Provenance{Provider: d.o.Candidate.Provider, Model: d.o.Candidate.Model, Field: fieldThinking, Signature: string(b.signature)}
		return p
	case callBlock:
		p := b.call
		p.Arguments = d.arguments(b, cut)
		p.Meta = metaOf(b.start, "id", "name", "input")
		return p
	case outputBlock:
		return ninelives.Text{Text: d.arguments(b, cut)}
	}
	raw := b.start
	if b.text.Len() > 0 { // the input of a server's tool
		var w rawjson.Writer
		at := w.Open('{')
		w.Rest(at, raw, []string{"input"})
		w.Name("input")
		if text := b.text.String(); rawjson.Valid([]byte(text)) {
			w.RawString(text)
		} else {
			w.String(text)
		}
		w.Close('}')
		raw = w.B
	}
	return d.read.block(raw)
}

// metaOf gives what a block carried beside its known members.
func metaOf(start []byte, known ...string) ninelives.Meta {
	var meta ninelives.Meta
	var kept rawjson.Kept
	known = append(known, "type")
	for m := range rawjson.Members(start) {
		if !slices.Contains(known, string(m.Name)) {
			common(m, &meta, &kept)
		}
	}
	meta.Extra = extra(kept.Object())
	return meta
}

// arguments are the pieces, or what the block began with if there were none.
func (d *decoder) arguments(b *block, cut bool) string {
	if b.text.Len() > 0 {
		return b.text.String()
	}
	if input := rawjson.Get(b.start, "input"); !rawjson.Empty(input) {
		return arguments(input)
	}
	if b.open && cut {
		return ""
	}
	return "{}"
}
