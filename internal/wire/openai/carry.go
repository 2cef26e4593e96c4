package openai

import (
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// responsesCarry marks the reasoning in an answer that other protocols' models
// made, and the signatures of calls, which have no place in the protocol.
func responsesCarry(parts []ninelives.Part) []ninelives.Part {
	return wire.Carry(parts, isResponsesReasoning, true, func(text, mark string) ninelives.Reasoning {
		r := ninelives.Reasoning{Text: text, Provenance: ninelives.Provenance{Field: responsesEncrypted, Blob: mark}}
		if r.Redacted = text == ""; !r.Redacted {
			r.Summary, r.Provenance.Field = true, responsesSummary
		}
		return r
	})
}

// chatCarry adds to an answer whose reasoning other protocols' models have
// signed a part with the marks of all of it: an element of reasoning_details,
// which some clients send back as it is. To the others it is plain text.
func chatCarry(parts []ninelives.Part) []ninelives.Part {
	var marks []string
	signed := false
	for _, part := range parts {
		p, ok := part.(ninelives.Reasoning)
		if !ok || p.Provenance.Provider == "" {
			continue
		}
		own := p.Provenance.Field == chatDetailsField || chatKnownReasoning(p.Provenance.Field)
		signed = signed || !own && (p.Provenance.Signature != "" || p.Provenance.Blob != "")
		marks = append(marks, wire.Mark(p))
	}
	if !signed {
		return parts
	}
	var w rawjson.Writer
	w.Open('[')
	w.Open('{')
	w.StringMember("type", "reasoning.encrypted")
	w.StringMember("data", wire.JoinMarks(marks))
	w.Close('}')
	w.Close(']')
	return append(slices.Clip(parts), ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: chatDetailsField, Blob: string(w.B)}})
}
