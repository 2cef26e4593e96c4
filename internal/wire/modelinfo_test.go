package wire_test

import (
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

func TestModelsAreListedAsEachProtocolHasThem(t *testing.T) {
	known := wire.ModelInfo{ID: "a/b", Name: "A \"B\"", Created: time.Unix(1767225600, 0), Window: 200000, MaxOutput: 64000, Owner: "a"}
	models := []wire.ModelInfo{known, {ID: "c"}}
	const (
		openaiKnown    = `{"id":"a/b","object":"model","created":1767225600,"owned_by":"a","context_length":200000,"max_output_tokens":64000}`
		anthropicKnown = `{"type":"model","id":"a/b","display_name":"A \"B\"","created_at":"2026-01-01T00:00:00Z","max_input_tokens":200000,"max_tokens":64000}`
		geminiMethods  = `"supportedGenerationMethods":["generateContent","streamGenerateContent"]}`
		geminiKnown    = `{"name":"models/a/b","displayName":"A \"B\"","inputTokenLimit":200000,"outputTokenLimit":64000,` + geminiMethods
	)
	for what, pair := range map[string][2]string{
		"OpenAI, one":    {string(openai.EncodeModel(known)), openaiKnown},
		"OpenAI":         {string(openai.EncodeModels(models)), `{"object":"list","data":[` + openaiKnown + `,{"id":"c","object":"model","created":0,"owned_by":"unknown"}]}`},
		"Anthropic, one": {string(anthropic.EncodeModel(known)), anthropicKnown},
		"Anthropic": {string(anthropic.EncodeModels(models)), `{"data":[` + anthropicKnown +
			`,{"type":"model","id":"c","display_name":"c","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"a/b","last_id":"c"}`},
		"Gemini, one":     {string(gemini.EncodeModel(known)), geminiKnown},
		"Gemini":          {string(gemini.EncodeModels(models)), `{"models":[` + geminiKnown + `,{"name":"models/c","displayName":"c",` + geminiMethods + `]}`},
		"OpenAI, none":    {string(openai.EncodeModels(nil)), `{"object":"list","data":[]}`},
		"Anthropic, none": {string(anthropic.EncodeModels(nil)), `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
		"Gemini, none":    {string(gemini.EncodeModels(nil)), `{"models":[]}`},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s:\n got %s\nwant %s", what, pair[0], pair[1])
		}
	}
}
