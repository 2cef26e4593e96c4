package openai

import (
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// ChatEncoder writes a streamed answer for a client of chat completions. It is
// a wire.Encoder.
//
// Deltas are written as they come; reasoning goes into reasoning_content, which
// most clients read. What only the finished answer has (unknown members,
// citations, signatures, logprobs, further choices) follows in the last chunks,
// then the usage if the client asked for it, then [DONE].
type ChatEncoder struct {
	o     wire.EncodeOptions
	w     chatWriter
	began bool
	parts map[int]*chatSent
	calls int
}

// chatSent is what was written of a part.
type chatSent struct {
	n    int // bytes
	call int // its index among the calls
}

// NewChatEncoder gives an encoder of one answer.
func NewChatEncoder(o wire.EncodeOptions) *ChatEncoder {
	return &ChatEncoder{o: o, w: chatAnswerWriter(), parts: map[int]*chatSent{}}
}

// Event implements wire.Encoder.
func (e *ChatEncoder) Event(dst []byte, ev ninelives.Event) []byte {
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		return e.text(dst, ev.Part, "content", ev.Text)
	case ninelives.ReasoningDelta:
		return e.text(dst, ev.Part, chatReasoningFields[0], ev.Text)
	case ninelives.RefusalDelta:
		return e.text(dst, ev.Part, "refusal", ev.Text)
	case ninelives.ToolCallDelta:
		return e.call(dst, ev)
	case ninelives.Discard:
		clear(e.parts) // what was written stays written; the next attempt counts anew
	case ninelives.Done:
		return e.done(dst, ev.Response)
	}
	return dst
}

// KeepAlive implements wire.Encoder: a comment, which every client of this
// protocol reads over, as they do not with events.
func (e *ChatEncoder) KeepAlive(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }

// Fail implements wire.Encoder.
func (e *ChatEncoder) Fail(dst []byte, fault *ninelives.Fault) []byte {
	return sse.Append(dst, wire.Frame{Data: EncodeError(wire.ErrorOf(fault))})
}

// chatPlaces are where the objects of a chunk begin.
type chatPlaces struct{ chunk, choice, delta int }

// begin begins a chunk with one choice, up to the inside of its delta.
func (e *ChatEncoder) begin(index int) chatPlaces {
	w := &e.w
	w.B = w.B[:0]
	var at chatPlaces
	at.chunk = w.Open('{')
	w.head(e.o.ID, e.o.Model, e.o.Created, "chat.completion.chunk")
	w.Name("choices")
	w.Open('[')
	at.choice = w.Open('{')
	w.IntMember("index", int64(index))
	w.Name("delta")
	at.delta = w.Open('{')
	if !e.began || index > 0 {
		w.StringMember("role", "assistant")
		e.began = true
	}
	return at
}

// end closes a chunk that is nothing but a delta.
func (e *ChatEncoder) end(dst []byte) []byte {
	w := &e.w
	w.Close('}')
	w.Name("finish_reason")
	w.Raw(chatNull)
	w.Close('}')
	w.Close(']')
	w.Close('}')
	return sse.Append(dst, wire.Frame{Data: w.B})
}

var chatNull = []byte("null")

func (e *ChatEncoder) text(dst []byte, part int, field, text string) []byte {
	if text == "" {
		return dst
	}
	e.sent(part).n += len(text)
	e.begin(0)
	e.w.StringMember(field, text)
	return e.end(dst)
}

// sent is what was written of a part.
func (e *ChatEncoder) sent(part int) *chatSent {
	s, ok := e.parts[part]
	if !ok {
		s = &chatSent{call: -1}
		e.parts[part] = s
	}
	return s
}

func (e *ChatEncoder) call(dst []byte, ev ninelives.ToolCallDelta) []byte {
	s := e.sent(ev.Part)
	w := &e.w
	e.begin(0)
	w.Name("tool_calls")
	w.Open('[')
	w.Open('{')
	first := s.call < 0
	if first {
		s.call = e.calls
		e.calls++
	}
	w.IntMember("index", int64(s.call))
	if first {
		w.StringMember("id", ev.ID)
		w.StringMember("type", "function")
	}
	w.Name("function")
	w.Open('{')
	if first {
		w.StringMember("name", ev.Name)
	}
	w.StringMember("arguments", ev.Arguments)
	w.Close('}')
	w.Close('}')
	w.Close(']')
	s.n += len(ev.Arguments)
	return e.end(dst)
}

// done writes the rest of an answer.
func (e *ChatEncoder) done(dst []byte, r *ninelives.Response) []byte {
	if e.o.ID == "" {
		e.o.ID = r.ID
	}
	if e.o.Model == "" {
		e.o.Model = r.Model
	}
	if e.o.Created.IsZero() {
		e.o.Created = r.Created
	}
	for i, part := range chatCarry(r.Message.Parts) {
		dst = e.rest(dst, i, part)
	}
	dst = e.last(dst, 0, r.Message, r.Finish, r.Logprobs, r.ChoiceExtra, r.Extra)
	for i, c := range r.Choices {
		dst = e.further(dst, i+1, c)
	}
	if e.o.Usage && (wire.Counted(r.Usage) || r.Usage.Extra.For(ninelives.OpenAIChat) != nil) {
		w := &e.w
		w.B = w.B[:0]
		w.Open('{')
		w.head(e.o.ID, e.o.Model, e.o.Created, "chat.completion.chunk")
		w.RawMember("choices", []byte("[]"))
		w.Name("usage")
		chatWriteUsage(&w.Writer, r.Usage)
		w.Close('}')
		dst = sse.Append(dst, wire.Frame{Data: w.B})
	}
	return sse.Append(dst, wire.Frame{Data: []byte("[DONE]")})
}

// rest writes what no delta had of a part.
func (e *ChatEncoder) rest(dst []byte, i int, part ninelives.Part) []byte {
	w := &e.w
	unsent := func(text string) string { return text[min(e.sent(i).n, len(text)):] }
	switch p := part.(type) {
	case ninelives.Text:
		return e.text(dst, i, "content", unsent(p.Text))
	case ninelives.Refusal:
		return e.text(dst, i, "refusal", unsent(p.Text))
	case ninelives.Reasoning:
		if e.sent(i).n == 0 && w.fieldOf(p) == wire.FieldThinkingPart {
			e.begin(0)
			w.Name("content")
			w.Open('[')
			w.thinking(p)
			w.Close(']')
			return e.end(dst)
		}
		field := w.fieldOf(p)
		if field == chatDetailsField {
			field = "reasoning"
		}
		if !strings.HasPrefix(field, "reasoning") {
			field = chatReasoningFields[0]
		}
		dst = e.text(dst, i, field, unsent(p.Text))
		if p.Provenance.Blob != "" && p.Provenance.Field == chatDetailsField && rawjson.Valid([]byte(p.Provenance.Blob)) {
			e.begin(0)
			w.RawMember(chatDetailsField, []byte(p.Provenance.Blob))
			dst = e.end(dst)
		}
	case ninelives.ToolCall:
		s := e.sent(i)
		switch {
		case s.call < 0:
			e.begin(0)
			w.Name("tool_calls")
			w.Open('[')
			w.call(p, e.calls)
			w.Close(']')
			s.call = e.calls
			e.calls++
			return e.end(dst)
		case s.n < len(p.Arguments):
			dst = e.call(dst, ninelives.ToolCallDelta{Part: i, Arguments: unsent(p.Arguments)})
		}
		return e.callExtra(dst, s.call, p)
	case ninelives.Opaque:
		if raw := p.Raw.For(ninelives.OpenAIChat); raw != nil {
			e.begin(0)
			w.Name("content")
			w.Open('[')
			w.Raw(raw)
			w.Close(']')
			return e.end(dst)
		}
	}
	return dst
}

// callExtra writes what a call has beside its name and arguments.
func (e *ChatEncoder) callExtra(dst []byte, index int, c ninelives.ToolCall) []byte {
	extra := c.Extra.For(ninelives.OpenAIChat)
	if extra == nil && c.Signature == "" {
		return dst
	}
	w := &e.w
	e.begin(0)
	w.Name("tool_calls")
	w.Open('[')
	at := w.Open('{')
	w.IntMember("index", int64(index))
	w.signature(c, extra)
	w.Rest(at, extra, nil)
	w.Close('}')
	w.Close(']')
	return e.end(dst)
}

// last writes the chunk that tells the end of a choice.
func (e *ChatEncoder) last(dst []byte, index int, m ninelives.Message, finish ninelives.FinishReason, logprobs, own, top ninelives.Extra) []byte {
	w := &e.w
	at := e.begin(index)
	e.annotations(m)
	w.rest(at.delta, m.Extra)
	w.Close('}')
	if raw := logprobs.For(ninelives.OpenAIChat); raw != nil {
		w.RawMember("logprobs", raw)
	}
	w.StringMember("finish_reason", chatFinishWord(finish, m.Refusal() != ""))
	w.rest(at.choice, own)
	w.Close('}')
	w.Close(']')
	w.rest(at.chunk, top)
	w.Close('}')
	return sse.Append(dst, wire.Frame{Data: w.B})
}

func (e *ChatEncoder) annotations(m ninelives.Message) {
	var list []ninelives.Citation
	for _, part := range m.Parts {
		if t, ok := part.(ninelives.Text); ok {
			list = append(list, t.Citations...)
		}
	}
	if len(list) == 0 {
		return
	}
	e.w.Name("annotations")
	e.w.Open('[')
	for _, c := range list {
		e.w.citation(c)
	}
	e.w.Close(']')
}

// further writes one of the further choices, whole.
func (e *ChatEncoder) further(dst []byte, index int, c ninelives.Choice) []byte {
	w := &e.w
	e.begin(index)
	w.answer(c.Message)
	w.Close('}')
	w.Name("finish_reason")
	w.Raw(chatNull)
	w.Close('}')
	w.Close(']')
	w.Close('}')
	dst = sse.Append(dst, wire.Frame{Data: w.B})
	rest := ninelives.Message{Extra: c.Message.Extra} // the others are written
	if refusal := c.Message.Refusal(); refusal != "" {
		rest.Parts = []ninelives.Part{ninelives.Refusal{Text: refusal}}
	}
	return e.last(dst, index, rest, c.Finish, c.Logprobs, c.Extra, ninelives.Extra{})
}
