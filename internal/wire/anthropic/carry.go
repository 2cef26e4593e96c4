package anthropic

import (
	"slices"

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

// marksFirst puts the parts from n on, which carry the signatures of calls,
// before the first call: some clients drop thinking that ends an answer.
func marksFirst(parts []ninelives.Part, n int) []ninelives.Part {
	first := slices.IndexFunc(parts[:n], func(p ninelives.Part) bool { _, ok := p.(ninelives.ToolCall); return ok })
	if n == len(parts) || first < 0 {
		return parts
	}
	return slices.Concat(parts[:first], parts[n:], parts[first:n])
}
