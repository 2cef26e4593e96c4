package openai

import (
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// ResponsesEncoder writes a streamed answer for a client of the Responses
// protocol. It is a wire.Encoder.
//
// Each part of the answer is an output item of its own, except that parts of
// reasoning that follow each other are the summaries of one. An item is only
// told to be done at the end of the answer: clients run a call, and keep a
// piece of reasoning, as soon as its item is done. All reasoning is told as a
// summary, which every client shows.
type ResponsesEncoder struct {
	o       wire.EncodeOptions
	seq     int64
	started bool
	items   []*responsesOut
	parts   map[int]*responsesOutPart
	data    responsesWriter // of the event being written
}

// responsesOut is an output item.
type responsesOut struct {
	kind  string // its type
	id    string
	parts []*responsesOutPart
	json  []byte // once it is done
	ended bool   // the client has been told so
	begun bool   // its first part has
}

// responsesOutPart is a part of the answer as far as it was written.
type responsesOutPart struct {
	item  int
	place int // content_index or summary_index
	part  ninelives.Part
	text  strings.Builder
	ended bool
	// shut: a provider has ended the part; what it has more goes into another
	// item. before is what was told of it in items that were ended so.
	shut   bool
	before string
	// raw: the reasoning is told as itself and not as a summary.
	raw bool
	// bare: the item was announced, and the part within it was not.
	bare bool
}

// NewResponsesEncoder gives an encoder of one answer.
func NewResponsesEncoder(o wire.EncodeOptions) *ResponsesEncoder {
	return &ResponsesEncoder{o: o, parts: map[int]*responsesOutPart{}}
}

// Event implements wire.Encoder.
func (e *ResponsesEncoder) Event(dst []byte, ev ninelives.Event) []byte {
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		return e.text(dst, ev.Part, ninelives.Text{}, ev.Text)
	case ninelives.RefusalDelta:
		return e.text(dst, ev.Part, ninelives.Refusal{}, ev.Text)
	case ninelives.ReasoningDelta:
		return e.text(dst, ev.Part, ninelives.Reasoning{}, ev.Text)
	case ninelives.ToolCallDelta:
		return e.text(dst, ev.Part, ninelives.ToolCall{ID: ev.ID, Name: ev.Name}, ev.Arguments)
	case ninelives.Discard:
		// What was written stays written; the next attempt counts its parts anew.
		clear(e.parts)
	case ninelives.Done:
		return e.done(dst, ev.Response)
	}
	return dst
}

// KeepAlive implements wire.Encoder: the event that says that the answer is
// being made, once more. Some clients do not count a comment.
func (e *ResponsesEncoder) KeepAlive(dst []byte) []byte {
	if !e.started {
		return e.start(dst, e.head(nil))
	}
	return e.about(dst, "response.in_progress", e.head(nil), nil)
}

// Fail implements wire.Encoder. Some clients only hear the error event, others
// only the failed response.
func (e *ResponsesEncoder) Fail(dst []byte, fault *ninelives.Fault) []byte {
	dst = e.start(dst, e.head(nil))
	code, message := responsesErrorCode(fault), wire.ErrorOf(fault).Text()
	w := e.begin("error")
	w.StringMember("code", code)
	w.StringMember("message", message)
	w.RawString(`"param":null`)
	dst = e.end(dst, "error")

	w = e.begin("response.failed")
	w.Name("response")
	w.Open('{')
	w.StringMember("id", e.o.ID)
	w.StringMember("object", "response")
	w.IntMember("created_at", responsesTime(e.o.Created))
	w.StringMember("status", "failed")
	w.StringMember("model", e.o.Model)
	w.Name("error")
	w.Open('{')
	w.StringMember("code", code)
	w.StringMember("message", message)
	w.Close('}')
	w.RawString(`"incomplete_details":null,"output":[],"usage":null`)
	w.Close('}')
	return e.end(dst, "response.failed")
}

// responsesErrorCode is the code of an error in an answer. Clients decide by
// it whether to try again.
//
// Source: what Codex does with them, measured in November 2026.
func responsesErrorCode(f *ninelives.Fault) string {
	switch f.Class {
	case ninelives.ClassRateLimit:
		return "rate_limit_exceeded"
	case ninelives.ClassBilling:
		return "insufficient_quota"
	case ninelives.ClassOverloaded, ninelives.ClassTimeout, ninelives.ClassNetwork:
		return "server_is_overloaded"
	case ninelives.ClassContextLength:
		return "context_length_exceeded"
	case ninelives.ClassFormat, ninelives.ClassContentFilter:
		return "invalid_prompt"
	}
	return "server_error"
}

// head is what the answer says of itself.
func (e *ResponsesEncoder) head(r *ninelives.Response) responsesHead {
	h := responsesHead{id: e.o.ID, model: e.o.Model, created: e.o.Created}
	if r != nil {
		if h.id == "" {
			h.id = r.ID
		}
		if h.model == "" {
			h.model = r.Model
		}
		if h.created.IsZero() {
			h.created = r.Created
		}
	}
	return h
}

// begin begins the data of an event; end appends the event to dst.
func (e *ResponsesEncoder) begin(kind string) *responsesWriter {
	e.data = responsesWriter{Writer: rawjson.Writer{B: e.data.B[:0]}, answer: true, stem: responsesStem(e.o.ID)}
	e.data.Open('{')
	e.data.StringMember("type", kind)
	e.data.IntMember("sequence_number", e.seq)
	e.seq++
	return &e.data
}

func (e *ResponsesEncoder) end(dst []byte, kind string) []byte {
	e.data.Close('}')
	return sse.Append(dst, wire.Frame{Event: kind, Data: e.data.B})
}

// about appends an event about the whole response.
func (e *ResponsesEncoder) about(dst []byte, kind string, h responsesHead, r *ninelives.Response) []byte {
	w := e.begin(kind)
	w.Name("response")
	w.response(h, r, func() {
		for _, it := range e.items {
			if it.json != nil { // it is done
				w.Raw(it.json)
			}
		}
	})
	return e.end(dst, kind)
}

func (e *ResponsesEncoder) start(dst []byte, h responsesHead) []byte {
	if e.started {
		return dst
	}
	e.started = true
	dst = e.about(dst, "response.created", h, nil)
	return e.about(dst, "response.in_progress", h, nil)
}

// text writes a piece of a part; like is what kind of part it is.
func (e *ResponsesEncoder) text(dst []byte, index int, like ninelives.Part, piece string) []byte {
	dst, p := e.at(dst, index, like)
	if p == nil {
		dst = e.start(dst, e.head(nil))
		dst, p = e.open(dst, index, like)
	} else if piece != "" && p.shut {
		before := p.before + p.text.String()
		delete(e.parts, index)
		dst, p = e.open(dst, index, like)
		p.before = before
	}
	if piece == "" {
		return dst
	}
	if p.bare {
		p.bare, p.part = false, like
		dst = e.announcePart(dst, p)
	}
	p.text.WriteString(piece)
	kind := responsesDeltaEvent(p)
	w := e.beginPart(p, kind)
	w.StringMember("delta", piece)
	if _, ok := p.part.(ninelives.Text); ok {
		w.RawString(`"logprobs":[]`)
	}
	return e.end(dst, kind)
}

// at is the part as far as it was written; nil if nothing was. One of another kind
// is what an attempt has left that came to nothing but thoughts: it stays as it
// was told, and this attempt counts its parts anew.
func (e *ResponsesEncoder) at(dst []byte, index int, like ninelives.Part) ([]byte, *responsesOutPart) {
	p := e.parts[index]
	if p == nil || p.bare || responsesKindOf(p.part) == responsesKindOf(like) {
		return dst, p
	}
	dst = e.endPart(dst, p)
	clear(e.parts)
	return dst, nil
}

// responsesKindOf tells the kinds of parts apart that are told in pieces.
func responsesKindOf(part ninelives.Part) responsesKind {
	switch part.(type) {
	case ninelives.Reasoning:
		return responsesKindReasoning
	case ninelives.ToolCall:
		return responsesKindCall
	case ninelives.Refusal:
		return responsesKindRefusal
	}
	return responsesKindText
}

func responsesDeltaEvent(p *responsesOutPart) string {
	switch p.part.(type) {
	case ninelives.Refusal:
		return "response.refusal.delta"
	case ninelives.Reasoning:
		if p.raw {
			return "response.reasoning_text.delta"
		}
		return "response.reasoning_summary_text.delta"
	case ninelives.ToolCall:
		return "response.function_call_arguments.delta"
	}
	return "response.output_text.delta"
}

// beginPart begins an event about a part.
func (e *ResponsesEncoder) beginPart(p *responsesOutPart, kind string) *responsesWriter {
	w := e.begin(kind)
	w.StringMember("item_id", e.items[p.item].id)
	w.IntMember("output_index", int64(p.item))
	switch p.part.(type) {
	case ninelives.Text, ninelives.Refusal:
		w.IntMember("content_index", int64(p.place))
	case ninelives.Reasoning:
		if p.raw {
			w.IntMember("content_index", int64(p.place))
		} else {
			w.IntMember("summary_index", int64(p.place))
		}
	}
	return w
}

// open begins a part, and the item that it is in.
func (e *ResponsesEncoder) open(dst []byte, index int, like ninelives.Part) ([]byte, *responsesOutPart) {
	for i, p := range e.parts { // what was before this part is whole
		if i < index {
			dst = e.endPart(dst, p)
		}
	}
	p := &responsesOutPart{part: like}
	e.parts[index] = p
	if n := len(e.items); n > 0 && isResponsesThought(like) && e.items[n-1].kind == "reasoning" && !e.items[n-1].ended && e.parts[index-1] != nil && e.parts[index-1].item == n-1 {
		it := e.items[n-1]
		p.item, p.place = n-1, len(it.parts)
		it.parts = append(it.parts, p)
	} else {
		p.item = len(e.items)
		it := &responsesOut{parts: []*responsesOutPart{p}}
		e.items = append(e.items, it)
		dst = e.announce(dst, it, p)
	}
	return e.announcePart(dst, p), p
}

// announcePart appends the event that adds a part to its item.
func (e *ResponsesEncoder) announcePart(dst []byte, p *responsesOutPart) []byte {
	switch p.part.(type) {
	case ninelives.Text:
		w := e.beginPart(p, "response.content_part.added")
		w.RawString(`"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`)
		dst = e.end(dst, "response.content_part.added")
	case ninelives.Refusal:
		w := e.beginPart(p, "response.content_part.added")
		w.RawString(`"part":{"type":"refusal","refusal":""}`)
		dst = e.end(dst, "response.content_part.added")
	case ninelives.Reasoning:
		w := e.beginPart(p, "response.reasoning_summary_part.added")
		w.RawString(`"part":{"type":"summary_text","text":""}`)
		dst = e.end(dst, "response.reasoning_summary_part.added")
	}
	return dst
}

func isResponsesThought(part ninelives.Part) bool {
	_, ok := part.(ninelives.Reasoning)
	return ok
}

// announce appends the event that adds an item.
func (e *ResponsesEncoder) announce(dst []byte, it *responsesOut, p *responsesOutPart) []byte {
	w := e.begin("response.output_item.added")
	w.IntMember("output_index", int64(p.item))
	w.Name("item")
	prefix := "msg"
	switch p.part.(type) {
	case ninelives.ToolCall:
		it.kind, prefix = "function_call", "fc"
	case ninelives.Reasoning:
		it.kind, prefix = "reasoning", "rs"
	default:
		it.kind = "message"
	}
	it.id = responsesMadeID(prefix, w.stem, p.item)
	w.Open('{')
	w.StringMember("id", it.id)
	w.StringMember("type", it.kind)
	switch part := p.part.(type) {
	case ninelives.ToolCall:
		w.StringMember("status", "in_progress")
		w.StringMember("call_id", part.ID)
		w.StringMember("name", part.Name)
		w.StringMember("arguments", "")
	case ninelives.Reasoning:
		w.RawString(`"summary":[]`)
	default:
		w.RawString(`"status":"in_progress","role":"assistant","content":[]`)
	}
	w.Close('}')
	return e.end(dst, "response.output_item.added")
}

// endPart tells the text of a part as a whole. That of a call has to wait for
// the end of the answer.
func (e *ResponsesEncoder) endPart(dst []byte, p *responsesOutPart) []byte {
	if p.ended || p.text.Len() == 0 && !isResponsesThought(p.part) {
		return dst
	}
	text := p.text.String()
	switch p.part.(type) {
	case ninelives.Text:
		w := e.beginPart(p, "response.output_text.done")
		w.StringMember("text", text)
		w.RawString(`"logprobs":[]`)
		dst = e.end(dst, "response.output_text.done")
		w = e.beginPart(p, "response.content_part.done")
		w.Name("part")
		w.Open('{')
		w.StringMember("type", "output_text")
		w.StringMember("text", text)
		w.RawString(`"annotations":[],"logprobs":[]`)
		w.Close('}')
		dst = e.end(dst, "response.content_part.done")
	case ninelives.Refusal:
		w := e.beginPart(p, "response.refusal.done")
		w.StringMember("refusal", text)
		dst = e.end(dst, "response.refusal.done")
		w = e.beginPart(p, "response.content_part.done")
		w.Name("part")
		w.Open('{')
		w.StringMember("type", "refusal")
		w.StringMember("refusal", text)
		w.Close('}')
		dst = e.end(dst, "response.content_part.done")
	case ninelives.Reasoning:
		if p.raw {
			w := e.beginPart(p, "response.reasoning_text.done")
			w.StringMember("text", text)
			dst = e.end(dst, "response.reasoning_text.done")
			break
		}
		w := e.beginPart(p, "response.reasoning_summary_text.done")
		w.StringMember("text", text)
		dst = e.end(dst, "response.reasoning_summary_text.done")
		w = e.beginPart(p, "response.reasoning_summary_part.done")
		w.Name("part")
		w.Open('{')
		w.StringMember("type", "summary_text")
		w.StringMember("text", text)
		w.Close('}')
		dst = e.end(dst, "response.reasoning_summary_part.done")
	default:
		return dst
	}
	p.ended = true
	return dst
}

// done writes what no delta had, closes everything, and ends the answer.
func (e *ResponsesEncoder) done(dst []byte, r *ninelives.Response) []byte {
	h := e.head(r)
	dst = e.start(dst, h)
	for i, part := range responsesCarry(r.Message.Parts) {
		dst = e.whole(dst, i, part)
	}
	cut := r.Finish == ninelives.FinishLength
	for i, it := range e.items {
		dst = e.closeItem(dst, i, it, cut && i == len(e.items)-1)
	}
	kind := "response.completed"
	if status, _ := responsesStatus(r); status == "incomplete" {
		kind = "response.incomplete"
	}
	return e.about(dst, kind, h, r)
}

// whole brings a part to what it finally is.
func (e *ResponsesEncoder) whole(dst []byte, index int, part ninelives.Part) []byte {
	p := e.parts[index]
	if p != nil && p.shut && !isResponsesTold(part) {
		return dst
	}
	var text string
	like := part
	switch v := part.(type) {
	case ninelives.Text:
		text, like = v.Text, ninelives.Text{}
	case ninelives.Refusal:
		text, like = v.Text, ninelives.Refusal{}
	case ninelives.Reasoning:
		if v.Text == "" && !isResponsesReasoning(v.Provenance.Field) {
			return dst // nothing that a client of this protocol could read or keep
		}
		if p == nil && v.Text == "" {
			return e.single(dst, part)
		}
		text, like = v.Text, ninelives.Reasoning{}
	case ninelives.ToolCall:
		text, like = v.Arguments, ninelives.ToolCall{ID: v.ID, Name: v.Name}
	default:
		return e.single(dst, part)
	}
	had := ""
	if dst, p = e.at(dst, index, like); p != nil {
		had = p.before + p.text.String()
	}
	rest, ok := strings.CutPrefix(text, had)
	if !ok {
		rest = "" // it was told otherwise: the item's end says how it is
	}
	dst = e.text(dst, index, like, rest)
	p = e.parts[index]
	p.part = part
	if !ok {
		p.text = strings.Builder{}
		p.text.WriteString(strings.TrimPrefix(text, p.before))
	}
	return dst
}

// isResponsesTold: the part is told in pieces.
func isResponsesTold(part ninelives.Part) bool {
	switch part.(type) {
	case ninelives.Text, ninelives.Refusal, ninelives.Reasoning, ninelives.ToolCall:
		return true
	}
	return false
}

// single writes an item that has nothing to be told in pieces.
func (e *ResponsesEncoder) single(dst []byte, part ninelives.Part) []byte {
	index := len(e.items)
	w := responsesWriter{answer: true, stem: responsesStem(e.o.ID), items: index}
	w.turn(ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{part}})
	if w.B == nil {
		return dst
	}
	p := &responsesOutPart{item: index, part: part, ended: true}
	e.items = append(e.items, &responsesOut{parts: []*responsesOutPart{p}, json: w.B})
	ev := e.begin("response.output_item.added")
	ev.IntMember("output_index", int64(index))
	ev.RawMember("item", w.B)
	return e.end(dst, "response.output_item.added")
}

// closeItem ends an item with the events that tell it in full.
func (e *ResponsesEncoder) closeItem(dst []byte, index int, it *responsesOut, cut bool) []byte {
	if it.ended {
		return dst
	}
	it.ended = true
	for _, p := range it.parts {
		dst = e.endPart(dst, p)
	}
	if it.json == nil {
		w := responsesWriter{answer: true, stem: responsesStem(e.o.ID), items: index, fixed: it.id, cut: cut}
		w.turn(ninelives.Message{Role: ninelives.RoleAssistant, Parts: it.message()})
		it.json = w.B
	}
	if call, ok := it.parts[0].part.(ninelives.ToolCall); ok {
		ev := e.beginPart(it.parts[0], "response.function_call_arguments.done")
		ev.StringMember("name", call.Name)
		ev.StringMember("arguments", it.parts[0].text.String())
		dst = e.end(dst, "response.function_call_arguments.done")
	}
	ev := e.begin("response.output_item.done")
	ev.IntMember("output_index", int64(index))
	ev.RawMember("item", it.json)
	return e.end(dst, "response.output_item.done")
}

// message is the parts of an item as they are at its end. The pieces of
// reasoning are one item now, whatever they were.
func (it *responsesOut) message() []ninelives.Part {
	var parts []ninelives.Part
	blob := it.blob()
	for i, p := range it.parts {
		switch v := p.part.(type) {
		case ninelives.Text:
			v.Text = p.text.String()
			parts = append(parts, v)
		case ninelives.Refusal:
			v.Text = p.text.String()
			parts = append(parts, v)
		case ninelives.ToolCall:
			v.Arguments = p.text.String()
			parts = append(parts, v)
		case ninelives.Reasoning:
			v.Text = p.text.String()
			if _, begins := responsesItemOf(v.Extra); begins && i > 0 {
				v.Extra = ninelives.Extra{}
			}
			v.ID, v.Provenance.Blob = it.id, blob
			v.Summary, v.Provenance.Field = !p.raw, responsesSummary // as it was told
			if p.raw {
				v.Provenance.Field = responsesContent
			}
			parts = append(parts, v)
		}
	}
	return parts
}

// blob is the opaque content of an item of reasoning: that of its first part,
// or the marks of all.
func (it *responsesOut) blob() string {
	var marks []string
	for i, p := range it.parts {
		r, _ := p.part.(ninelives.Reasoning)
		if i == 0 && !wire.IsMark(r.Provenance.Blob) {
			return r.Provenance.Blob
		}
		if wire.IsMark(r.Provenance.Blob) {
			marks = append(marks, r.Provenance.Blob)
		}
	}
	return wire.JoinMarks(marks)
}
