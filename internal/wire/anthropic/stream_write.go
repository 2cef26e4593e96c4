package anthropic

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// NewEncoder gives an encoder of one streamed answer. It writes what clients
// insist on: named events, message_start with usage, an index everywhere, a
// stop for every block before the next one starts, usage and a reason in
// message_delta, message_stop.
//
// Blocks follow one another. A second tool call that comes while the first is
// open is therefore written when the first one is done.
func NewEncoder(o wire.EncodeOptions) wire.Encoder {
	return &encoder{o: o, sent: map[int]*sentPart{}, current: -1}
}

type encoder struct {
	o       wire.EncodeOptions
	w       writer
	started bool
	ended   bool
	next    int // index of the next block
	current int // the part whose block is open; -1 if none is
	sent    map[int]*sentPart
	waiting []int // calls that wait for the open one to end
	held    []int // calls that wait for the end of the answer: see holds
}

// sentPart is what has been written of a part.
type sentPart struct {
	kind   blockKind
	block  int // its index on the wire
	length int // bytes of text, thinking or arguments that were written
	signed bool
	call   ninelives.ToolCall // one that waits: it has no block yet
}

func (e *encoder) Event(dst []byte, ev ninelives.Event) []byte {
	if e.ended {
		return dst
	}
	switch v := ev.(type) {
	case ninelives.TextDelta:
		dst = e.text(dst, v.Part, v.Text, ninelives.Meta{})
	case ninelives.RefusalDelta:
		dst = e.text(dst, v.Part, v.Text, ninelives.Meta{})
	case ninelives.ReasoningDelta:
		dst = e.reasoning(dst, v, ninelives.Meta{})
	case ninelives.ToolCallDelta:
		dst = e.call(dst, v)
	case ninelives.Done:
		dst = e.done(dst, v.Response)
	}
	return dst
}

// Fail writes the error event; nothing follows it.
func (e *encoder) Fail(dst []byte, f *ninelives.Fault) []byte {
	if e.ended {
		return dst
	}
	e.ended = true
	return sse.Append(dst, wire.Frame{Event: "error", Data: EncodeError(wire.ErrorOf(f))})
}

// KeepAlive implements wire.Encoder: a ping, which every client of this
// protocol reads over, before message_start as well.
func (e *encoder) KeepAlive(dst []byte) []byte {
	if e.ended {
		return dst
	}
	e.begin("ping")
	return e.flush(dst, "ping")
}

// begin starts the data of an event.
func (e *encoder) begin(kind string) *writer {
	e.w.B = e.w.B[:0]
	e.w.answer = true
	e.w.begin(kind)
	return &e.w
}

// flush ends the data of an event and appends it.
func (e *encoder) flush(dst []byte, kind string) []byte {
	e.w.Close('}')
	return sse.Append(dst, wire.Frame{Event: kind, Data: e.w.B})
}

// start writes the head of the answer, once.
func (e *encoder) start(dst []byte, r *ninelives.Response) []byte {
	if e.started {
		return dst
	}
	e.started = true
	id, model := e.o.ID, e.o.Model
	var usage ninelives.Usage
	if r != nil {
		if id == "" {
			id = answerID(r)
		}
		if model == "" {
			model = r.Model
		}
		usage = r.Usage
	}
	w := e.begin("message_start")
	w.Name("message")
	w.Open('{')
	w.StringMember("id", id)
	w.StringMember("type", "message")
	w.StringMember("role", "assistant")
	w.StringMember("model", model)
	w.Name("content")
	w.Open('[')
	w.Close(']')
	w.nullOr("stop_reason", nil)
	w.nullOr("stop_sequence", nil)
	w.Name("usage")
	usage.Extra = ninelives.Extra{}
	w.usage(usage)
	w.Close('}')
	return e.flush(dst, "message_start")
}

// open makes the part's block the open one and gives it. A part that was
// closed before gets another block. head is what a new block says of the call
// that it is, and beside its content.
func (e *encoder) open(dst []byte, part int, kind blockKind, head ninelives.ToolCall) ([]byte, *sentPart) {
	dst = e.start(dst, nil)
	if s := e.sent[part]; s != nil && e.current == part && s.kind == kind {
		return dst, s
	}
	dst = e.close(dst)
	s := &sentPart{kind: kind, block: e.next}
	e.next++
	e.sent[part], e.current = s, part
	w := e.begin("content_block_start")
	w.IntMember("index", int64(s.block))
	w.Name("content_block")
	at := 0
	switch kind {
	case textBlock:
		at = w.begin("text")
		w.StringMember("text", "")
	case thinkingBlock:
		at = w.begin("thinking")
		w.StringMember("thinking", "")
		w.StringMember("signature", "")
	case callBlock:
		at = w.begin("tool_use")
		w.StringMember("id", head.ID)
		w.StringMember("name", head.Name)
		w.RawMember("input", []byte("{}"))
	}
	w.end(at, head.Meta)
	return e.flush(dst, "content_block_start"), s
}

// close ends the open block, and writes the calls that waited for that.
func (e *encoder) close(dst []byte) []byte {
	if e.current >= 0 {
		s := e.sent[e.current]
		if maker := e.o.Maker; s.kind == thinkingBlock && !s.signed && maker.Provider != "" {
			s.signed = true
			dst = e.delta(dst, s, "signature_delta", "signature", func(w *writer) { w.String(wire.MarkOf(maker, s.length)) })
		}
		dst = e.stop(dst, s)
		e.current = -1
	}
	waiting := e.waiting
	e.waiting = nil
	for _, part := range waiting {
		s := e.sent[part]
		var opened *sentPart
		dst, opened = e.open(dst, part, callBlock, s.call)
		dst = e.arguments(dst, opened, s.call.Arguments)
		dst = e.stop(dst, opened)
		e.current = -1
	}
	return dst
}

func (e *encoder) stop(dst []byte, s *sentPart) []byte {
	w := e.begin("content_block_stop")
	w.IntMember("index", int64(s.block))
	return e.flush(dst, "content_block_stop")
}

// delta writes one piece of a block.
func (e *encoder) delta(dst []byte, s *sentPart, kind, member string, write func(*writer)) []byte {
	w := e.begin("content_block_delta")
	w.IntMember("index", int64(s.block))
	w.Name("delta")
	w.begin(kind)
	w.Name(member)
	write(w)
	w.Close('}')
	return e.flush(dst, "content_block_delta")
}

func (e *encoder) text(dst []byte, part int, text string, meta ninelives.Meta) []byte {
	dst, s := e.open(dst, part, textBlock, ninelives.ToolCall{Meta: meta})
	s.length += len(text)
	return e.delta(dst, s, "text_delta", "text", func(w *writer) { w.String(text) })
}

func (e *encoder) arguments(dst []byte, s *sentPart, text string) []byte {
	s.length += len(text)
	return e.delta(dst, s, "input_json_delta", "partial_json", func(w *writer) { w.String(text) })
}

func (e *encoder) reasoning(dst []byte, v ninelives.ReasoningDelta, meta ninelives.Meta) []byte {
	if p := v.Proof; p != nil && p.Blob != "" && v.Text == "" {
		if e.sent[v.Part] == nil && p.Field == fieldRedacted {
			return e.whole(dst, v.Part, ninelives.Reasoning{Redacted: true, Provenance: *p})
		}
		return dst
	}
	if v.Text != "" {
		var s *sentPart
		dst, s = e.open(dst, v.Part, thinkingBlock, ninelives.ToolCall{Meta: meta})
		s.length += len(v.Text)
		dst = e.delta(dst, s, "thinking_delta", "thinking", func(w *writer) { w.String(v.Text) })
	}
	if v.Proof != nil {
		dst = e.sign(dst, v.Part, *v.Proof, meta)
	}
	return dst
}

// sign writes the proof of a thinking block, if it is one of this protocol.
func (e *encoder) sign(dst []byte, part int, p ninelives.Provenance, meta ninelives.Meta) []byte {
	if p.Signature == "" || p.Field != fieldThinking {
		return dst
	}
	dst, s := e.open(dst, part, thinkingBlock, ninelives.ToolCall{Meta: meta})
	if s.signed {
		return dst
	}
	s.signed = true
	return e.delta(dst, s, "signature_delta", "signature", func(w *writer) { w.String(p.Signature) })
}

func (e *encoder) call(dst []byte, v ninelives.ToolCallDelta) []byte {
	s := e.sent[v.Part]
	if s == nil && e.o.Maker.Provider != "" && e.current >= 0 && e.sent[e.current].kind == thinkingBlock {
		dst = e.close(dst) // with whose it is
	}
	if s == nil && e.holds() {
		e.sent[v.Part] = &sentPart{kind: callBlock, block: -1, call: ninelives.ToolCall{ID: v.ID, Name: v.Name, Arguments: v.Arguments}}
		e.held = append(e.held, v.Part)
		return dst
	}
	if s == nil {
		if e.current >= 0 && e.sent[e.current].kind == callBlock {
			e.sent[v.Part] = &sentPart{kind: callBlock, block: -1, call: ninelives.ToolCall{ID: v.ID, Name: v.Name, Arguments: v.Arguments}}
			e.waiting = append(e.waiting, v.Part)
			return dst
		}
		dst, s = e.open(dst, v.Part, callBlock, ninelives.ToolCall{ID: v.ID, Name: v.Name})
	}
	switch {
	case s.block < 0:
		s.call.Arguments += v.Arguments
	case v.Arguments != "" && e.current == v.Part:
		dst = e.arguments(dst, s, v.Arguments)
	}
	return dst
}

// holds: there is thinking without a signature, which another protocol's model
// made. Whose it is will be said at the end, and has to stand before the calls:
// some clients drop thinking that ends an answer.
func (e *encoder) holds() bool {
	for _, s := range e.sent {
		if s.kind == thinkingBlock && !s.signed {
			return true
		}
	}
	return false
}

// whole writes a part that no delta told of.
func (e *encoder) whole(dst []byte, part int, p ninelives.Part) []byte {
	switch v := p.(type) {
	case ninelives.Text:
		if v.Text == "" && len(v.Citations) == 0 {
			return dst
		}
		return e.cite(e.text(dst, part, v.Text, v.Meta), part, v.Citations)
	case ninelives.Refusal:
		return e.text(dst, part, v.Text, v.Meta)
	case ninelives.Reasoning:
		if !v.Redacted {
			return e.reasoning(dst, ninelives.ReasoningDelta{Part: part, Text: v.Text, Proof: &v.Provenance}, v.Meta)
		}
	case ninelives.ToolCall:
		dst, s := e.open(dst, part, callBlock, v)
		return e.arguments(dst, s, v.Arguments)
	}
	block := writer{answer: true}
	block.block(p)
	if len(block.B) == 0 {
		return dst
	}
	dst = e.close(e.start(dst, nil))
	s := &sentPart{kind: otherBlock, block: e.next}
	e.sent[part] = s
	e.next++
	w := e.begin("content_block_start")
	w.IntMember("index", int64(s.block))
	w.RawMember("content_block", block.B)
	return e.stop(e.flush(dst, "content_block_start"), s)
}

// cite writes the sources of a text whose block is open.
func (e *encoder) cite(dst []byte, part int, citations []ninelives.Citation) []byte {
	if len(citations) == 0 || e.current != part {
		return dst
	}
	for _, c := range citations {
		dst = e.delta(dst, e.sent[part], "citations_delta", "citation", func(w *writer) { w.citation(c) })
	}
	return dst
}

// done writes what the deltas left over, and the end.
func (e *encoder) done(dst []byte, r *ninelives.Response) []byte {
	dst = e.start(dst, r)
	parts := carry(r.Message.Parts)
	var late []string // the marks of blocks that were closed before it was known whose they are
	for i, part := range parts {
		s := e.sent[i]
		switch v := part.(type) {
		case ninelives.Text:
			if s != nil {
				dst = e.cite(dst, i, v.Citations)
				continue
			}
		case ninelives.Reasoning:
			switch {
			case s != nil && !v.Redacted && e.current == i:
				dst = e.sign(dst, i, v.Provenance, v.Meta)
			case s != nil && !s.signed && wire.IsMark(v.Provenance.Signature):
				late = append(late, wire.MarkWhole(r.Message.Parts[i].(ninelives.Reasoning)))
			}
		case ninelives.ToolCall:
			if s != nil && s.block >= 0 && s.length == 0 && e.current == i {
				dst = e.arguments(dst, s, v.Arguments)
			} else if s != nil && s.block < 0 && s.call.Arguments == "" {
				s.call.Arguments = v.Arguments
			}
		}
		if s == nil {
			dst = e.whole(dst, i, part)
		}
	}
	for i, mark := range late {
		dst = e.whole(dst, len(parts)+i, marked("", mark))
	}
	e.waiting, e.held = append(e.waiting, e.held...), nil
	dst = e.close(dst)
	own := r.Extra.For(protocol)
	w := e.begin("message_delta")
	w.Name("delta")
	w.Open('{')
	w.StringMember("stop_reason", stopReason(r.Finish, r.FinishRaw))
	w.nullOr("stop_sequence", own)
	if v := rawjson.Get(own, "stop_details"); v != nil {
		w.RawMember("stop_details", v)
	}
	w.Close('}')
	w.Name("usage")
	w.usage(r.Usage)
	if rest := without(own, "stop_sequence", "stop_details"); rest != nil {
		w.Raw(rest[1 : len(rest)-1])
	}
	dst = e.flush(dst, "message_delta")
	e.ended = true
	e.begin("message_stop")
	return e.flush(dst, "message_stop")
}
