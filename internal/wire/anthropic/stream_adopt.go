package anthropic

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// Adopt implements wire.Encoder. Every block is a part of the answer, in the
// order of their beginnings; a block whose beginning was read as a delta (a
// call, redacted thinking) is known by its end.
func (e *encoder) Adopt(heads []byte, told []ninelives.Event, frames int) {
	if frames == 0 {
		return
	}
	e.started = true
	var blocks []*sentPart
	at := func(index int) *sentPart {
		for _, s := range blocks {
			if s.block == index {
				return s
			}
		}
		s := &sentPart{kind: otherBlock, block: index}
		blocks = append(blocks, s)
		return s
	}
	open := -1 // the index of the block that is open
	events := sse.NewReader(bytes.NewReader(heads))
	for f, err := events.Next(); err == nil; f, err = events.Next() {
		if !rawjson.Valid(f.Data) {
			continue
		}
		index := -1
		if n, ok := rawjson.Int(rawjson.Get(f.Data, "index")); ok {
			index = int(n)
		}
		switch kind := rawjson.Get(f.Data, "type"); {
		case rawjson.Is(kind, "message_start"):
			message := rawjson.Get(f.Data, "message")
			e.o.ID, e.o.Model = rawjson.String(rawjson.Get(message, "id")), rawjson.String(rawjson.Get(message, "model"))
		case rawjson.Is(kind, "content_block_start"):
			at(index).kind = kindOf(rawjson.Path(f.Data, "content_block", "type"))
			open = index
		case rawjson.Is(kind, "content_block_stop"):
			at(index)
			if open == index {
				open = -1
			}
		}
	}
	for _, ev := range told {
		part, kind, text, signed := toldPart(ev)
		for len(blocks) <= part { // begun in a frame that a delta was read from, and not ended
			open = 0
			if n := len(blocks); n > 0 {
				open = blocks[n-1].block + 1
			}
			at(open)
		}
		if part >= 0 {
			s := blocks[part]
			s.kind, s.length, s.signed = kind, s.length+len(text), s.signed || signed
		}
	}
	for part, s := range blocks {
		e.sent[part] = s
		e.next = max(e.next, s.block+1)
		if s.block == open {
			e.current = part
		}
	}
}

// kindOf reads the type of a block.
func kindOf(kind []byte) blockKind {
	switch {
	case rawjson.Is(kind, "text"):
		return textBlock
	case rawjson.Is(kind, "thinking"):
		return thinkingBlock
	}
	return otherBlock
}

// toldPart reads a delta; part is -1 for what is none, or a call.
func toldPart(ev ninelives.Event) (part int, kind blockKind, text string, signed bool) {
	switch v := ev.(type) {
	case ninelives.TextDelta:
		return v.Part, textBlock, v.Text, false
	case ninelives.RefusalDelta:
		return v.Part, textBlock, v.Text, false
	case ninelives.ReasoningDelta:
		return v.Part, thinkingBlock, v.Text, v.Proof != nil && v.Proof.Signature != ""
	}
	return -1, otherBlock, "", false
}
