package gemini

import (
	"cmp"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeModels writes the answer to GET /models: all of them on one page.
func EncodeModels(models []wire.ModelInfo) []byte {
	var w rawjson.Writer
	w.Open('{')
	w.Name("models")
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
	w.StringMember("name", "models/"+m.ID)
	w.StringMember("displayName", cmp.Or(m.Name, m.ID))
	if m.Window > 0 {
		w.IntMember("inputTokenLimit", int64(m.Window))
	}
	if m.MaxOutput > 0 {
		w.IntMember("outputTokenLimit", int64(m.MaxOutput))
	}
	w.RawString(`"supportedGenerationMethods":["generateContent","streamGenerateContent"]`)
	w.Close('}')
}
