package gemini

import (
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EmbedBatch is how many texts one request may hold.
//
// Source: the API's limit of batchEmbedContents, "at most 100 requests can be
// in one batch".
const EmbedBatch = 100

// EmbedPath is the path of a request for the vectors of so many texts, below
// the API's version.
func EmbedPath(model string, texts int) string {
	path := Path(model, false)
	path = path[:len(path)-len(":generateContent")]
	if texts == 1 {
		return path + ":embedContent"
	}
	return path + ":batchEmbedContents"
}

// EncodeEmbedRequest writes a request for the vectors of some of a request's texts.
func EncodeEmbedRequest(req *ninelives.EmbedRequest, model string, texts []string) ([]byte, error) {
	if len(req.Tokens) > 0 {
		return nil, fmt.Errorf("Gemini takes texts, not tokens")
	}
	name := EmbedPath(model, 1)
	name = name[1 : len(name)-len(":embedContent")]
	var w rawjson.Writer
	one := func(text string) {
		place := w.Open('{')
		w.StringMember("model", name)
		w.Name("content")
		w.Open('{')
		w.Name("parts")
		w.Open('[')
		w.Open('{')
		w.StringMember("text", text)
		w.Close('}')
		w.Close(']')
		w.Close('}')
		if req.Dimensions > 0 {
			w.IntMember("outputDimensionality", int64(req.Dimensions))
		}
		w.Rest(place, req.Extra.For(ninelives.Gemini), nil)
		w.Close('}')
	}
	if len(texts) == 1 {
		one(texts[0])
		return w.B, nil
	}
	w.Open('{')
	w.Name("requests")
	w.Open('[')
	for _, text := range texts {
		one(text)
	}
	w.Close(']')
	w.Close('}')
	return w.B, nil
}

// DecodeEmbedResponse reads the vectors of so many texts out of body, which must
// be valid JSON and not change as long as they are used. One that is missing is nil.
func DecodeEmbedResponse(body []byte, texts int) *ninelives.EmbedResponse {
	resp := &ninelives.EmbedResponse{Vectors: make([][]byte, texts)}
	for m := range rawjson.Members(body) {
		switch string(m.Name) {
		case "embedding":
			if texts > 0 {
				resp.Vectors[0] = rawjson.Get(m.Value, "values")
			}
		case "embeddings":
			i := 0
			for el := range rawjson.Elements(m.Value) {
				if i < texts {
					resp.Vectors[i] = rawjson.Get(el, "values")
				}
				i++
			}
		case "usageMetadata", "usage_metadata":
			resp.Usage.Extra = extraOf(m.Value)
			if n, ok := rawjson.Int(rawjson.Get(m.Value, "promptTokenCount")); ok {
				resp.Usage.Input, resp.Usage.Reported = int(n), ninelives.UsageInput
			}
		}
	}
	return resp
}
