package openai

import (
	"cmp"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeModels writes the answer to GET /models. The limits, for which the API
// has no word, are called as most servers of the protocol call them.
func EncodeModels(models []wire.ModelInfo) []byte {
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("object", "list")
	w.Name("data")
	w.Open('[')
	for _, m := range models {
		writeModel(&w, m)
	}
	w.Close(']')
	w.Close('}')
	return w.B
}

// EncodeModel writes the answer to GET /models/{id}.
func EncodeModel(m wire.ModelInfo) []byte {
	var w rawjson.Writer
	writeModel(&w, m)
	return w.B
}

func writeModel(w *rawjson.Writer, m wire.ModelInfo) {
	w.Open('{')
	w.StringMember("id", m.ID)
	w.StringMember("object", "model")
	w.IntMember("created", responsesTime(m.Created))
	w.StringMember("owned_by", cmp.Or(m.Owner, "unknown"))
	if m.Window > 0 {
		w.IntMember("context_length", int64(m.Window))
	}
	if m.MaxOutput > 0 {
		w.IntMember("max_output_tokens", int64(m.MaxOutput))
	}
	w.Close('}')
}
