package openai

import (
	"bytes"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// Adopt implements wire.Encoder. Nothing is ever open in this protocol: id,
// model and date are what makes the chunks one answer.
func (e *ChatEncoder) Adopt(heads []byte, told []ninelives.Event, frames int) {
	e.began = frames > 0
	named := false
	events := sse.NewReader(bytes.NewReader(heads))
	for f, err := events.Next(); err == nil; f, err = events.Next() {
		if !rawjson.Valid(f.Data) || rawjson.Get(f.Data, "choices") == nil {
			continue
		}
		if usage := rawjson.Get(f.Data, "usage"); usage != nil && !rawjson.Null(usage) {
			e.o.Usage = false // clients add up what comes twice
		}
		if named {
			continue
		}
		named = true
		e.o.ID, e.o.Model = rawjson.String(rawjson.Get(f.Data, "id")), rawjson.String(rawjson.Get(f.Data, "model"))
		if n := chatCreated(rawjson.Get(f.Data, "created")); n > 0 {
			e.o.Created = time.Unix(n, 0)
		}
	}
	for _, ev := range told {
		switch ev := ev.(type) {
		case ninelives.TextDelta:
			e.sent(ev.Part).n += len(ev.Text)
		case ninelives.RefusalDelta:
			e.sent(ev.Part).n += len(ev.Text)
		case ninelives.ReasoningDelta:
			e.sent(ev.Part).n += len(ev.Text)
		case ninelives.ToolCallDelta:
			s := e.sent(ev.Part)
			if s.call < 0 {
				s.call = e.calls
				e.calls++
			}
			s.n += len(ev.Arguments)
		}
	}
}
