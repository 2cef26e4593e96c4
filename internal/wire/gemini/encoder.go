package gemini

import (
	"bytes"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// encoder writes a streamed answer. A call is whole in this protocol, so that
// from the first call on everything waits for the end of the answer.
type encoder struct {
	o     wire.EncodeOptions
	array bool // the chunks are the elements of an array, not events
	begun bool // the array has
	held  bool // a call has come
	told  map[int]string
	w     writer // of the chunk being written
}

// NewEncoder gives an encoder of one answer of streamGenerateContent?alt=sse.
func NewEncoder(o wire.EncodeOptions) wire.Encoder {
	return &encoder{o: o, told: map[int]string{}, w: writer{answer: true}}
}

// NewArrayEncoder gives an encoder of one answer of streamGenerateContent
// without alt=sse: an array of chunks.
func NewArrayEncoder(o wire.EncodeOptions) wire.Encoder {
	e := NewEncoder(o).(*encoder)
	e.array = true
	return e
}

// Event implements wire.Encoder.
func (e *encoder) Event(dst []byte, ev ninelives.Event) []byte {
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		return e.text(dst, ev.Part, ev.Text, false)
	case ninelives.RefusalDelta:
		return e.text(dst, ev.Part, ev.Text, false)
	case ninelives.ReasoningDelta:
		return e.text(dst, ev.Part, ev.Text, true)
	case ninelives.ToolCallDelta:
		e.held = true
	case ninelives.Discard:
		// What was written stays written; the next attempt counts its parts anew.
		clear(e.told)
		e.held = false
	case ninelives.Done:
		e.begin()
		e.candidates(ev.Response)
		e.tail(ev.Response)
		dst = e.end(dst)
		return e.close(dst)
	}
	return dst
}

// Fail implements wire.Encoder.
func (e *encoder) Fail(dst []byte, fault *ninelives.Fault) []byte {
	e.begin()
	writeError(&e.w.Writer, wire.ErrorOf(fault))
	return e.close(e.end(dst))
}

// KeepAlive implements wire.Encoder: a comment, or space before the next
// element of the array.
func (e *encoder) KeepAlive(dst []byte) []byte {
	if !e.array {
		return sse.AppendComment(dst, "keep-alive")
	}
	return append(dst, '\n')
}

// Adopt implements wire.Encoder. A chunk stands for itself in this protocol:
// only id and model make chunks one answer.
func (e *encoder) Adopt(heads []byte, told []ninelives.Event, frames int) {
	e.begun = frames > 0
	events := sse.NewReader(bytes.NewReader(heads))
	for f, err := events.Next(); err == nil; f, err = events.Next() {
		if rawjson.Valid(f.Data) && rawjson.Get(f.Data, "candidates") != nil {
			e.o.ID, e.o.Model = rawjson.String(rawjson.Get(f.Data, "responseId")), rawjson.String(rawjson.Get(f.Data, "modelVersion"))
			break
		}
	}
	for _, ev := range told {
		switch ev := ev.(type) {
		case ninelives.TextDelta:
			e.told[ev.Part] += ev.Text
		case ninelives.RefusalDelta:
			e.told[ev.Part] += ev.Text
		case ninelives.ReasoningDelta:
			e.told[ev.Part] += ev.Text
		}
	}
}

// begin begins a chunk; end appends it to dst.
func (e *encoder) begin() {
	e.w.B = e.w.B[:0]
	e.w.Open('{')
}

func (e *encoder) end(dst []byte) []byte {
	e.w.Close('}')
	if !e.array {
		return sse.Append(dst, wire.Frame{Data: e.w.B})
	}
	if e.begun {
		dst = append(dst, ",\n"...)
	} else {
		dst = append(dst, '[')
	}
	e.begun = true
	return append(dst, e.w.B...)
}

// close ends the array.
func (e *encoder) close(dst []byte) []byte {
	if e.array {
		dst = append(dst, "]\n"...)
	}
	return dst
}

func (e *encoder) text(dst []byte, index int, piece string, thought bool) []byte {
	if e.held || piece == "" {
		return dst
	}
	e.told[index] += piece
	e.begin()
	w := &e.w
	w.Name("candidates")
	w.Open('[')
	w.Open('{')
	w.Name("content")
	w.Open('{')
	w.Name("parts")
	w.Open('[')
	w.Open('{')
	w.StringMember("text", piece)
	if thought {
		w.BoolMember("thought", true)
	}
	w.Close('}')
	w.Close(']')
	w.RawString(`"role":"model"`)
	w.Close('}')
	w.RawString(`"index":0`)
	w.Close('}')
	w.Close(']')
	e.head(e.o.Model, e.o.ID)
	return e.end(dst)
}

func (e *encoder) head(model, id string) {
	if model != "" {
		e.w.StringMember("modelVersion", model)
	}
	if id != "" {
		e.w.StringMember("responseId", id)
	}
}

// candidates writes the candidates as far as they have not been told.
func (e *encoder) candidates(r *ninelives.Response) {
	w := &e.w
	if len(r.Message.Parts) == 0 && r.Finish == ninelives.FinishContentFilter && rawjson.Get(r.Extra.For(ninelives.Gemini), "promptFeedback") != nil {
		return // the prompt was blocked
	}
	w.Name("candidates")
	w.Open('[')
	e.candidate(0, ninelives.Choice{Message: r.Message, Finish: r.Finish, FinishRaw: r.FinishRaw, Extra: r.ChoiceExtra}, e.untold(carry(r.Message.Parts)))
	for i, c := range r.Choices {
		e.candidate(i+1, c, c.Message.Parts)
	}
	w.Close(']')
}

func (e *encoder) candidate(index int, c ninelives.Choice, parts []ninelives.Part) {
	w := &e.w
	own := c.Extra.For(ninelives.Gemini)
	at := w.Open('{')
	w.malformed = false
	w.Name("content")
	content := w.Open('{')
	w.Name("parts")
	w.Open('[')
	w.parts(parts, nil)
	w.Close(']')
	w.StringMember("role", "model")
	w.Rest(content, c.Message.Extra.For(ninelives.Gemini), nil)
	w.Close('}')
	if reason := reasonOf(c, w.malformed); reason != "" {
		w.StringMember("finishReason", reason)
	}
	w.IntMember("index", int64(index))
	if own == nil {
		e.sources(c.Message.Parts)
	}
	w.Rest(at, own, nil)
	w.Close('}')
}

// sources tells the sources that another protocol named.
func (e *encoder) sources(parts []ninelives.Part) {
	var list []ninelives.Citation
	for _, part := range parts {
		if t, ok := part.(ninelives.Text); ok {
			list = append(list, t.Citations...)
		}
	}
	list = slices.DeleteFunc(list, func(c ninelives.Citation) bool { return c.URL == "" })
	if len(list) == 0 {
		return
	}
	w := &e.w
	w.Name("groundingMetadata")
	w.Open('{')
	w.Name("groundingChunks")
	w.Open('[')
	for _, c := range list {
		w.Open('{')
		w.Name("web")
		w.Open('{')
		w.StringMember("uri", c.URL)
		w.StringMember("title", c.Title)
		w.Close('}')
		w.Close('}')
	}
	w.Close(']')
	w.Close('}')
}

// untold is what of the parts no delta has told.
func (e *encoder) untold(parts []ninelives.Part) []ninelives.Part {
	var rest []ninelives.Part
	for i, part := range parts {
		told, begun := e.told[i]
		if !begun {
			rest = append(rest, part)
			continue
		}
		switch p := part.(type) {
		case ninelives.Text:
			if tail, ok := strings.CutPrefix(p.Text, told); ok && tail != "" {
				rest = append(rest, ninelives.Text{Text: tail})
			}
		case ninelives.Refusal:
			if tail, ok := strings.CutPrefix(p.Text, told); ok && tail != "" {
				rest = append(rest, ninelives.Text{Text: tail})
			}
		case ninelives.Reasoning:
			tail, ok := strings.CutPrefix(p.Text, told)
			if ok && tail != "" || p.Provenance.Field == fieldThought && p.Provenance.Signature != "" {
				p.Text, p.Extra = tail, ninelives.Extra{}
				rest = append(rest, p)
			}
		}
	}
	return rest
}

// reasonOf is the API's word for why a candidate ended: its own, if the
// answer came by this protocol and it says the same.
func reasonOf(c ninelives.Choice, malformed bool) string {
	said := finishOf(c.FinishRaw)
	switch {
	case malformed:
		return "MALFORMED_FUNCTION_CALL"
	case said == c.Finish && (said != ninelives.FinishOther || c.FinishRaw == strings.ToUpper(c.FinishRaw)):
		return c.FinishRaw
	}
	switch c.Finish {
	case ninelives.FinishLength:
		return "MAX_TOKENS"
	case ninelives.FinishContentFilter:
		return "SAFETY"
	case ninelives.FinishRefusal:
		if c.Message.Refusal() == "" { // without a word of its own it would look like an answer
			return "SAFETY"
		}
	case ninelives.FinishMalformedCall:
		return "MALFORMED_FUNCTION_CALL"
	case ninelives.FinishOther:
		return "OTHER"
	}
	return "STOP"
}

// tail writes what stands beside the candidates.
func (e *encoder) tail(r *ninelives.Response) {
	w := &e.w
	extra := r.Extra.For(ninelives.Gemini)
	e.usage(r.Usage)
	model, id, created := e.o.Model, e.o.ID, e.o.Created
	if model == "" {
		model = r.Model
	}
	if id == "" {
		id = r.ID
	}
	if created.IsZero() {
		created = r.Created
	}
	e.head(model, id)
	if !created.IsZero() && rawjson.Get(extra, "createTime") == nil {
		w.StringMember("createTime", created.UTC().Format(time.RFC3339Nano))
	}
	w.Rest(0, extra, nil)
}

func (e *encoder) usage(u ninelives.Usage) {
	w := &e.w
	if raw := u.Extra.For(ninelives.Gemini); raw != nil {
		w.RawMember("usageMetadata", raw)
		return
	}
	if !wire.Counted(u) {
		return
	}
	w.Name("usageMetadata")
	w.Open('{')
	w.IntMember("promptTokenCount", int64(u.TotalInput()))
	if u.Has(ninelives.UsageCached) {
		w.IntMember("cachedContentTokenCount", int64(u.Cached))
	}
	w.IntMember("candidatesTokenCount", int64(u.TotalOutput()-u.Reasoning))
	if u.Has(ninelives.UsageReasoning) {
		w.IntMember("thoughtsTokenCount", int64(u.Reasoning))
	}
	w.IntMember("totalTokenCount", int64(u.TotalInput()+u.TotalOutput()))
	w.Close('}')
}
