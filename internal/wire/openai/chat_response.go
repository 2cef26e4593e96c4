package openai

import (
	"bytes"
	"io"

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
	case len(data) == 0:
		return nil, d.newFault(ninelives.ClassEmpty, "the body of the answer is empty")
	case rawjson.Valid(data) && data[0] == '{' && chatIsAnswer(data):
		return d.whole(data)
	case chatIsStream(data):
		return d.streamed(data)
	}
	f := wire.Classify(wire.Answer{Status: 200, Body: data, Candidate: o.Candidate, InBand: true})
	return nil, f
}

// whole reads a completion that is one object. It needs no terminal marker:
// its JSON has closed.
func (d *chatDecoder) whole(data []byte) (*ninelives.Response, error) {
	d.frames++
	if err := d.chunk(data, nil); err != nil {
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
