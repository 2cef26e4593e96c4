package openai

import (
	"bytes"
	"io"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// DecodeChatResponse reads the whole body of a 200 answer of POST
// /chat/completions. The error is a *ninelives.Fault: for a body that is an
// error object, a page or nothing, and for an answer without a choice. A body
// that turns out to be a stream is read as one.
func DecodeChatResponse(body []byte, o wire.DecodeOptions) (*ninelives.Response, error) {
	d := newChatDecoder(o)
	data := bytes.TrimSpace(body)
	switch {
	case rawjson.Valid(data) && rawjson.Empty(data), len(data) == 0:
		return nil, d.newFault(ninelives.ClassEmpty, "the body of the answer is empty")
	case rawjson.Valid(data) && data[0] == '{' && chatIsAnswer(data):
		return d.whole(data)
	case chatIsStream(data):
		return d.streamed(data)
	}
	f := wire.Classify(wire.Answer{Status: 200, Body: data, Candidate: o.Candidate, InBand: true, Now: o.Now})
	return nil, f
}

// whole reads a completion that is one object. It needs no terminal marker:
// its JSON has closed.
func (d *chatDecoder) whole(data []byte) (*ninelives.Response, error) {
	d.frames++
	if err := d.chunk(data); err != nil {
		return nil, err
	}
	if len(d.choices) == 0 {
		f := d.newFault(ninelives.ClassEmpty, "the answer has no choices")
		f.Partial = d.response()
		return nil, f
	}
	for _, c := range d.choices {
		c.finished = true
	}
	return d.Response(nil)
}

// chatIsStream tells a stream from a page and from plain text.
func chatIsStream(data []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(data, []byte(field)) {
			return true
		}
	}
	return false
}

func (d *chatDecoder) streamed(body []byte) (*ninelives.Response, error) {
	r := sse.NewReader(bytes.NewReader(body))
	for {
		f, err := r.Next()
		if err == io.EOF {
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

// EncodeChatResponse writes a whole answer for a client of POST
// /chat/completions. The reasons why it ended are in the words that clients of
// this protocol know.
func EncodeChatResponse(r *ninelives.Response) []byte {
	w := chatAnswerWriter()
	at := w.Open('{')
	w.head(r.ID, r.Model, r.Created, "chat.completion")
	w.Name("choices")
	w.Open('[')
	w.choice(0, r.Message, r.Finish, r.Logprobs, r.ChoiceExtra)
	for i, c := range r.Choices {
		w.choice(i+1, c.Message, c.Finish, c.Logprobs, c.Extra)
	}
	w.Close(']')
	if wire.Counted(r.Usage) || r.Usage.Extra.For(ninelives.OpenAIChat) != nil {
		w.Name("usage")
		chatWriteUsage(&w.Writer, r.Usage)
	}
	w.rest(at, r.Extra)
	w.Close('}')
	return w.B
}

// chatAnswerWriter writes for clients, who take everything.
func chatAnswerWriter() chatWriter {
	return chatWriter{dialect: &wire.Dialect{CacheControl: true}}
}

// head writes what an answer, or a chunk of it, begins with.
func (w *chatWriter) head(id, model string, created time.Time, object string) {
	if id != "" {
		w.StringMember("id", id)
	}
	w.StringMember("object", object)
	if !created.IsZero() {
		w.IntMember("created", created.Unix())
	}
	if model != "" {
		w.StringMember("model", model)
	}
}

func (w *chatWriter) choice(index int, m ninelives.Message, finish ninelives.FinishReason, logprobs, extra ninelives.Extra) {
	at := w.Open('{')
	w.IntMember("index", int64(index))
	w.Name("message")
	inner := w.Open('{')
	w.StringMember("role", "assistant")
	m.Parts = chatCarry(m.Parts)
	w.answer(m)
	w.rest(inner, m.Extra)
	w.Close('}')
	if raw := logprobs.For(ninelives.OpenAIChat); raw != nil {
		w.RawMember("logprobs", raw)
	}
	w.StringMember("finish_reason", chatFinishWord(finish, m.Refusal() != ""))
	w.rest(at, extra)
	w.Close('}')
}
