package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatChoice puts one choice of an answer together, from the deltas of a
// stream or from a whole message. The parts of its message are in the order in
// which they began, so that a delta knows its part at once.
type chatChoice struct {
	d     *chatDecoder
	index int64
	first bool // it is the answer: its events are wanted
	whole bool // it comes in one message, not in deltas

	parts    []*chatPart
	calls    wire.Calls
	callPart []*chatPart // of each call
	places   int64       // one more than the highest index of a call
	splitter *wire.TextSplitter

	content, thought, refusal chatTail
	arguments                 []chatPlacedTail

	details   chatDetails
	citations [][]byte
	members   chatMembers // of the message
	own       chatMembers // of the choice
	logprobs  chatLogprobs

	reasoned bool // a text field carried reasoning: details repeat it

	finishRaw string
	finished  bool
}

// chatPlacedTail is the tail of the arguments at one index.
type chatPlacedTail struct {
	place int
	chatTail
}

// chatPart is a part of the message that is being put together.
type chatPart struct {
	index int
	kind  chatKind
	text  []byte
	field string // reasoning: where it came from
	raw   []byte // opaque: all of it; thinking: the unknown members
	call  int    // of calls

	custom bool // the call is one of a custom tool: its arguments are text

	// Of a call: what was told of it.
	told     bool
	sent     int
	extra    chatMembers
	function chatMembers // the unknown members of its function
}

type chatKind int

const (
	chatKindText chatKind = iota
	chatKindReasoning
	chatKindRefusal
	chatKindCall
	chatKindOpaque
)

// chatReasoningFields are the string fields that carry reasoning, in the order
// in which they are looked for. Some servers send several with the same text.
var chatReasoningFields = []string{"reasoning_content", "reasoning", "reasoning_text", "thinking"}

// chatDelta is the known members of a delta or a message, still raw.
type chatDelta struct {
	content, refusal, toolCalls, functionCall, details, annotations []byte
	reasoning                                                       [8][]byte // by the order of the fields
}

// alone says that the content is all that the delta adds.
func (d *chatDelta) alone() bool {
	for _, raw := range d.reasoning {
		if !rawjson.Empty(raw) {
			return false
		}
	}
	return rawjson.Kind(d.refusal) != '"' && rawjson.Empty(d.toolCalls) && rawjson.Kind(d.functionCall) != '{' &&
		rawjson.Empty(d.details) && rawjson.Empty(d.annotations)
}

// delta takes in a delta or a whole message. It reports false for a piece of a
// call that could belong to several.
func (c *chatChoice) delta(raw []byte) bool {
	var d chatDelta
	fields := chatReasoningFields
	if len(c.d.o.Dialect.ReasoningFields) > 0 {
		fields = c.d.o.Dialect.ReasoningFields
	}
members:
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "role":
			continue
		case "content":
			d.content = m.Value
			continue
		case "refusal":
			d.refusal = m.Value
			continue
		case "tool_calls":
			d.toolCalls = m.Value
			continue
		case "function_call":
			d.functionCall = m.Value
			continue
		case "reasoning_details":
			d.details = m.Value
			continue
		case "annotations":
			d.annotations = m.Value
			continue
		}
		for i, field := range fields {
			if i < len(d.reasoning) && field == string(m.Name) && (rawjson.Kind(m.Value) == '"' || rawjson.Null(m.Value)) {
				d.reasoning[i] = m.Value
				continue members
			}
		}
		c.members.add(m)
	}
	c.reason(&d, fields)
	switch rawjson.Kind(d.content) {
	case '"':
		if d.alone() {
			c.d.piece = d.content
		}
		c.text(d.content)
	case '[':
		for part := range rawjson.Elements(d.content) {
			c.contentPart(part)
		}
	}
	if rawjson.Kind(d.refusal) == '"' {
		c.d.scratch = c.refusal.append(c.d.scratch[:0], d.refusal)
		c.add(chatKindRefusal, "", c.d.scratch)
	}
	for a := range rawjson.Elements(d.annotations) {
		c.citations = append(c.citations, append([]byte(nil), a...))
	}
	ok := true
	for call := range rawjson.Elements(d.toolCalls) {
		ok = c.toolCall(call) && ok
	}
	if rawjson.Kind(d.functionCall) == '{' {
		ok = c.functionCall(d.functionCall) && ok
	}
	return ok
}

// reason takes in the reasoning of a delta: from one field, and the details
// whole beside it.
func (c *chatChoice) reason(d *chatDelta, fields []string) {
	c.d.scratch = c.d.scratch[:0]
	field := ""
	for i, raw := range d.reasoning {
		if rawjson.Kind(raw) == '"' && len(raw) > 2 {
			c.d.scratch = c.thought.append(c.d.scratch, raw)
			field, c.reasoned = fields[i], true
			break
		}
	}
	if rawjson.Kind(d.details) == '[' && !rawjson.Empty(d.details) {
		c.details.add(d.details, c.whole)
		if field == "" {
			field = chatDetailsField
			if !c.reasoned {
				c.d.scratch = chatDetailsText(c.d.scratch, d.details)
			}
			if !c.thinks() { // it may be encrypted: it has no text, but a place
				c.begin(chatKindReasoning, field)
			}
		}
	}
	c.add(chatKindReasoning, field, c.d.scratch)
}

// thinks reports that the message has reasoning, which details belong to.
func (c *chatChoice) thinks() bool {
	for _, p := range c.parts {
		if p.kind == chatKindReasoning {
			return true
		}
	}
	return false
}

// text takes in a piece of the answer's text, a JSON string.
func (c *chatChoice) text(raw []byte) {
	c.d.scratch = c.content.append(c.d.scratch[:0], raw)
	c.plain(c.d.scratch)
}

func (c *chatChoice) plain(text []byte) {
	if len(text) == 0 {
		return
	}
	if c.splitter != nil {
		c.splitter.Write(string(text), c.segment)
		return
	}
	c.add(chatKindText, "", text)
}

// segment takes in what the splitter made of the text.
func (c *chatChoice) segment(s wire.Segment) {
	switch {
	case s.Name != "":
		i := c.calls.Open(wire.CallPiece{Index: -1, Name: s.Name, Arguments: []byte(s.Arguments)})
		c.opened(i)
		c.tell(i, false)
	case s.Reasoning:
		c.add(chatKindReasoning, wire.FieldThinkTags, []byte(s.Text))
	default:
		c.add(chatKindText, "", []byte(s.Text))
	}
}

// contentPart takes in an element of a content array.
func (c *chatChoice) contentPart(raw []byte) {
	switch kind := rawjson.Get(raw, "type"); {
	case rawjson.Is(kind, "text"), kind == nil && rawjson.Kind(rawjson.Get(raw, "text")) == '"':
		if text := rawjson.Get(raw, "text"); rawjson.Kind(text) == '"' {
			c.text(text)
		}
	case rawjson.Is(kind, "thinking"):
		c.thinkingPart(raw)
	case rawjson.Is(kind, "refusal"):
		if text := rawjson.Get(raw, "refusal"); rawjson.Kind(text) == '"' {
			c.d.scratch = c.refusal.append(c.d.scratch[:0], text)
			c.add(chatKindRefusal, "", c.d.scratch)
		}
	default:
		p := c.begin(chatKindOpaque, rawjson.String(kind))
		p.raw = append([]byte(nil), raw...)
	}
}

// thinkingPart takes in Mistral's form of reasoning: a part whose "thinking" is
// a list of texts, or one text.
func (c *chatChoice) thinkingPart(raw []byte) {
	thinking := rawjson.Get(raw, "thinking")
	c.d.scratch = c.d.scratch[:0]
	if rawjson.Kind(thinking) == '"' {
		c.d.scratch = c.thought.append(c.d.scratch, thinking)
	}
	for e := range rawjson.Elements(thinking) {
		if text := rawjson.Get(e, "text"); rawjson.Kind(text) == '"' {
			c.d.scratch = c.thought.append(c.d.scratch, text)
		}
	}
	c.add(chatKindReasoning, wire.FieldThinkingPart, c.d.scratch)
	if rest := chatRest(raw, "type", "thinking"); rest != nil {
		c.last(chatKindReasoning, wire.FieldThinkingPart).raw = rest
	}
}

// finish emits what was held back, once the end has been told. A rune that
// never got its rest is U+FFFD in text; in arguments it is left out, for they
// do not close without it anyway.
func (c *chatChoice) finish() {
	c.plain(c.content.flush(nil))
	if c.splitter != nil {
		c.splitter.Flush(c.segment)
	}
	c.add(chatKindReasoning, "", c.thought.flush(nil))
	c.add(chatKindRefusal, "", c.refusal.flush(nil))
	cut := chatFinish(c.finishRaw) == ninelives.FinishLength
	for i := range c.calls.Len() {
		c.tell(i, true)
		call, p := c.calls.At(i), c.callPart[i]
		if p.sent > 0 || !p.told || !c.heard() {
			continue
		}
		rest := ""
		if p.custom {
			rest = chatQuoted(string(call.Arguments))
		} else {
			rest = wire.Arguments(string(call.Arguments), c.d.o.Tools, c.callerName(call.Name), cut)
		}
		if p.sent = len(rest); rest == "" {
			continue
		}
		if c.isOutput(call.Name) {
			c.give(ninelives.TextDelta{Attempt: c.d.o.Attempt, Part: p.index, Text: rest})
		} else {
			c.give(ninelives.ToolCallDelta{Attempt: c.d.o.Attempt, Part: p.index, Arguments: rest})
		}
	}
}

// add adds text to the last part if it is of the kind, else to a new one, and
// emits it.
func (c *chatChoice) add(kind chatKind, field string, text []byte) {
	if len(text) == 0 {
		return
	}
	p := c.last(kind, field)
	p.text = append(p.text, text...)
	if !c.heard() {
		return
	}
	s := c.d.arena.string(text)
	switch kind {
	case chatKindText:
		c.give(ninelives.TextDelta{Attempt: c.d.o.Attempt, Part: p.index, Text: s})
	case chatKindReasoning:
		c.give(ninelives.ReasoningDelta{Attempt: c.d.o.Attempt, Part: p.index, Text: s})
	case chatKindRefusal:
		c.give(ninelives.RefusalDelta{Attempt: c.d.o.Attempt, Part: p.index, Text: s})
	}
}

// heard reports that somebody wants the choice's events.
func (c *chatChoice) heard() bool { return c.first && c.d.emit != nil }

func (c *chatChoice) give(ev ninelives.Event) {
	if !c.heard() {
		return
	}
	c.d.told = true
	if !c.d.emit(ev) {
		c.d.emit = nil
	}
}

// last is the last part if it is of the kind, else a new one.
func (c *chatChoice) last(kind chatKind, field string) *chatPart {
	if n := len(c.parts); n > 0 && c.parts[n-1].kind == kind {
		return c.parts[n-1]
	}
	return c.begin(kind, field)
}

func (c *chatChoice) begin(kind chatKind, field string) *chatPart {
	p := &chatPart{index: len(c.parts), kind: kind, field: field}
	c.parts = append(c.parts, p)
	return p
}

// said reports that something was answered: text, a call or a refusal.
func (c *chatChoice) said() bool {
	for _, p := range c.parts {
		switch p.kind {
		case chatKindText:
			if len(bytes.TrimSpace(p.text)) > 0 {
				return true
			}
		case chatKindReasoning:
		default:
			return true
		}
	}
	return false
}
