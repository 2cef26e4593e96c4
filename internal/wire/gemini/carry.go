package gemini

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// carry marks the reasoning in an answer that other protocols' models made.
func carry(parts []ninelives.Part) []ninelives.Part {
	return wire.Carry(parts, func(field string) bool { return field == fieldThought || field == fieldSignature }, false, marked)
}

func marked(text, mark string) ninelives.Reasoning {
	if text == "" {
		return ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: fieldSignature, Blob: mark}}
	}
	return ninelives.Reasoning{Text: text, Provenance: ninelives.Provenance{Field: fieldThought, Signature: mark}}
}
