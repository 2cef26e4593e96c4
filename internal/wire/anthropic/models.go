package anthropic

import (
	"cmp"
	"time"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeModels writes the answer to GET /models: all of them on one page.
func EncodeModels(models []wire.ModelInfo) []byte {
	var w rawjson.Writer
	w.Open('{')
	w.Name("data")
	w.Open('[')
	for _, m := range models {
		writeModel(&w, m)
	}
	w.Close(']')
	w.BoolMember("has_more", false)
	first, last := []byte("null"), []byte("null")
	if n := len(models); n > 0 {
		first, last = rawjson.Quote(models[0].ID), rawjson.Quote(models[n-1].ID)
	}
	w.RawMember("first_id", first)
	w.RawMember("last_id", last)
	w.Close('}')
	return w.B
}

// EncodeModel writes the answer to GET /models/{id}.
func EncodeModel(m wire.ModelInfo) []byte {
	var w rawjson.Writer
	writeModel(&w, m)
	return w.B
}

// writeModel writes one model. A date that is not known is the epoch, as the
// API has it.
func writeModel(w *rawjson.Writer, m wire.ModelInfo) {
	if m.Created.IsZero() {
		m.Created = time.Unix(0, 0)
	}
	w.Open('{')
	w.StringMember("type", "model")
	w.StringMember("id", m.ID)
	w.StringMember("display_name", cmp.Or(m.Name, m.ID))
	w.StringMember("created_at", m.Created.UTC().Format(time.RFC3339))
	if m.Window > 0 {
		w.IntMember("max_input_tokens", int64(m.Window))
	}
	if m.MaxOutput > 0 {
		w.IntMember("max_tokens", int64(m.MaxOutput))
	}
	w.Close('}')
}
