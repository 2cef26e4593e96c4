package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// Adopt implements wire.Encoder. Parts are counted as the decoder counts them:
// an item is one when it is announced, and each further piece of it one more.
// An item that a provider has ended stays as it is, byte for byte, and what a
// part of it has more goes into an item of its own.
func (e *ResponsesEncoder) Adopt(heads []byte, told []ninelives.Event, frames int) {
	if frames == 0 {
		return
	}
	e.started, e.seq = true, int64(frames)
	a := responsesAdopter{e: e, items: map[int]*responsesOut{}}
	events := sse.NewReader(bytes.NewReader(heads))
	for f, err := events.Next(); err == nil; f, err = events.Next() {
		if rawjson.Valid(f.Data) {
			a.event(f)
		}
	}
	for _, ev := range told {
		a.told(ev)
	}
	for i, p := range a.parts {
		e.parts[i] = p
	}
	for _, it := range e.items {
		a.settle(it)
	}
}

// settle says what becomes of an item: only a message and reasoning can go on.
func (a *responsesAdopter) settle(it *responsesOut) {
	goesOn := !it.ended && (it.kind == "message" || it.kind == "reasoning")
	it.ended = !goesOn
	for _, p := range it.parts {
		p.ended, p.shut = p.ended || !goesOn, p.shut || !goesOn
		p.bare = goesOn && !it.begun && p.text.Len() == 0
	}
}

// responsesAdopter reads what a provider has told of an answer.
type responsesAdopter struct {
	e     *ResponsesEncoder
	items map[int]*responsesOut // by output_index
	parts []*responsesOutPart
}

func (a *responsesAdopter) event(f wire.Frame) {
	e := a.e
	if n, ok := rawjson.Int(rawjson.Get(f.Data, "sequence_number")); ok {
		e.seq = max(e.seq, n+1)
	}
	kind := rawjson.String(rawjson.Get(f.Data, "type"))
	if kind == "response.created" || kind == "response.in_progress" {
		head := readResponsesAnswer(rawjson.Get(f.Data, "response"))
		e.o.ID, e.o.Model, e.o.Created = head.id, head.model, head.created
		return
	}
	index, ok := rawjson.Int(rawjson.Get(f.Data, "output_index"))
	if !ok || index < 0 || index > int64(e.seq) {
		return
	}
	it := a.item(int(index))
	if id := rawjson.String(rawjson.Get(f.Data, "item_id")); id != "" {
		it.id = id
	}
	switch kind {
	case "response.output_item.added":
		a.name(it, rawjson.Get(f.Data, "item"))
	case "response.content_part.added":
		place, _ := rawjson.Int(rawjson.Get(f.Data, "content_index"))
		part := rawjson.Path(f.Data, "part", "type")
		switch {
		case rawjson.Is(part, "output_text"):
			a.part(it, int(index), int(place), ninelives.Text{}, false)
		case rawjson.Is(part, "refusal"):
			a.part(it, int(index), int(place), ninelives.Refusal{}, false)
		case rawjson.Is(part, "reasoning_text"):
			a.part(it, int(index), int(place), ninelives.Reasoning{}, true)
		}
	case "response.reasoning_summary_part.added":
		place, _ := rawjson.Int(rawjson.Get(f.Data, "summary_index"))
		a.part(it, int(index), int(place), ninelives.Reasoning{}, false)
	case "response.output_text.done", "response.refusal.done", "response.reasoning_text.done", "response.reasoning_summary_text.done":
		summary := kind == "response.reasoning_summary_text.done"
		name := "content_index"
		if summary {
			name = "summary_index"
		}
		place, _ := rawjson.Int(rawjson.Get(f.Data, name))
		for _, p := range it.parts {
			if p.place == int(place) && (summary && !p.raw || !summary && (p.raw || it.kind != "reasoning")) {
				p.ended, p.shut = true, true
			}
		}
	case "response.output_item.done":
		a.done(it, rawjson.Get(f.Data, "item"))
	}
}

// item finds an item, or begins it. Items that were not heard of are taken to
// be ended, so that the indices go on where the provider's ended.
func (a *responsesAdopter) item(index int) *responsesOut {
	e := a.e
	if it := a.items[index]; it != nil {
		return it
	}
	for len(e.items) <= index {
		e.items = append(e.items, &responsesOut{ended: true})
	}
	it := &responsesOut{}
	p := &responsesOutPart{item: index, part: ninelives.Opaque{}}
	it.parts = []*responsesOutPart{p}
	a.parts = append(a.parts, p)
	e.items[index], a.items[index] = it, it
	return it
}

func (a *responsesAdopter) name(it *responsesOut, item []byte) {
	it.id, it.kind = rawjson.String(rawjson.Get(item, "id")), rawjson.String(rawjson.Get(item, "type"))
	switch it.kind {
	case "message":
		it.parts[0].part = ninelives.Text{}
	case "reasoning":
		it.parts[0].part = ninelives.Reasoning{}
	}
}

// part finds a part of an item, or begins it.
func (a *responsesAdopter) part(it *responsesOut, item, place int, like ninelives.Part, raw bool) {
	p := it.parts[len(it.parts)-1]
	if it.begun && (p.place != place || p.raw != raw) {
		p = &responsesOutPart{item: item}
		it.parts = append(it.parts, p)
		a.parts = append(a.parts, p)
	}
	it.begun = true
	p.part, p.place, p.raw = like, place, raw
}

// done takes an item that the provider has ended.
func (a *responsesAdopter) done(it *responsesOut, item []byte) {
	a.name(it, item)
	it.ended, it.json = true, bytes.Clone(item)
	if it.kind == "function_call" {
		p := it.parts[0]
		p.part = ninelives.ToolCall{}
		p.text.WriteString(rawjson.String(rawjson.Get(item, "arguments")))
	}
}

// told takes what the client holds of a part. One that was not heard of was
// announced together with what it says, in an item whose name is not known.
func (a *responsesAdopter) told(ev ninelives.Event) {
	var index int
	var like ninelives.Part
	var text string
	switch v := ev.(type) {
	case ninelives.TextDelta:
		index, like, text = v.Part, ninelives.Text{}, v.Text
	case ninelives.RefusalDelta:
		index, like, text = v.Part, ninelives.Refusal{}, v.Text
	case ninelives.ReasoningDelta:
		index, like, text = v.Part, ninelives.Reasoning{}, v.Text
	default:
		return
	}
	for len(a.parts) <= index {
		it := a.item(len(a.e.items))
		it.ended = true
	}
	p := a.parts[index]
	p.part = like
	p.text.WriteString(text)
}
