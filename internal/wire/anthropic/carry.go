package anthropic

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// carry marks the reasoning in an answer that this protocol has no place for:
// with text it is thinking that our mark signs, without it is redacted.
func carry(parts []ninelives.Part) []ninelives.Part {
	return wire.Carry(parts, func(field string) bool { return field == fieldThinking || field == fieldRedacted }, true, marked)
}

func marked(text, mark string) ninelives.Reasoning {
	if text == "" {
		return ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: fieldRedacted, Blob: mark}}
	}
	return ninelives.Reasoning{Text: text, Provenance: ninelives.Provenance{Field: fieldThinking, Signature: mark}}
}
