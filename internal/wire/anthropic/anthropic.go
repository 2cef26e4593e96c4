// Package anthropic translates between the vocabulary and Anthropic's Messages
// protocol, in both directions, streamed and not. Bedrock and Vertex speak it
// too; their differences are data (wire.Dialect), and the frames around a
// Bedrock stream are package bedrock's.
//
// What the protocol says and the vocabulary has no word for rides along: the
// unknown members of an object in the Extra of the part, message, request or
// response that it became, blocks of unknown kinds (server tools, and those to
// come) as Opaque parts. Both go back byte for byte.
package anthropic

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

const protocol = ninelives.AnthropicMessages

// The wire fields that reasoning is read from (Provenance.Field).
const (
	fieldThinking = "thinking"
	fieldRedacted = "redacted_thinking"
)

// extra tags raw JSON with the protocol; nothing is nothing.
func extra(raw []byte) ninelives.Extra {
	if raw == nil {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: protocol, JSON: raw}
}

// finishes gives the normalised reasons. Source: the stop_reason values of the
// Messages reference, 2026; the last two are those of compatible servers.
var finishes = map[string]ninelives.FinishReason{
	"end_turn":                      ninelives.FinishStop,
	"stop_sequence":                 ninelives.FinishStop,
	"max_tokens":                    ninelives.FinishLength,
	"model_context_window_exceeded": ninelives.FinishLength,
	"tool_use":                      ninelives.FinishToolCalls,
	"refusal":                       ninelives.FinishRefusal,
	"pause_turn":                    ninelives.FinishOther, // a server tool is not done: send the answer back to go on
	"compaction":                    ninelives.FinishOther,
	"content_filter":                ninelives.FinishContentFilter,
	"tool_calls":                    ninelives.FinishToolCalls,
}

// finishOf normalises a stop reason.
func finishOf(word string) ninelives.FinishReason {
	if word == "" {
		return ""
	}
	if f, ok := finishes[word]; ok {
		return f
	}
	return ninelives.FinishOther
}

// stopReason is finishOf the other way round. The provider's own word is kept
// where it is one of this protocol's and means the same.
func stopReason(f ninelives.FinishReason, raw string) string {
	switch raw {
	case "end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "pause_turn", "compaction":
		if finishes[raw] == f {
			return raw
		}
	}
	switch f {
	case ninelives.FinishLength:
		return "max_tokens"
	case ninelives.FinishToolCalls:
		return "tool_use"
	case ninelives.FinishContentFilter, ninelives.FinishRefusal:
		return "refusal"
	}
	return "end_turn"
}

// cacheHint reads cache_control. It reports false for a form that a CacheHint
// cannot give back.
func cacheHint(raw []byte) (*ninelives.CacheHint, bool) {
	var hint ninelives.CacheHint
	for m := range rawjson.Members(raw) {
		switch {
		case string(m.Name) == "type" && rawjson.Is(m.Value, "ephemeral"):
		case string(m.Name) == "ttl" && rawjson.Kind(m.Value) == '"':
			hint.TTL = rawjson.String(m.Value)
		default:
			return nil, false
		}
	}
	return &hint, rawjson.Kind(raw) == '{'
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// has reports whether the object raw has the member name.
func has(raw []byte, name string) bool { return rawjson.Get(raw, name) != nil }

// without gives the object raw without the named members; nil if none is left.
func without(raw []byte, names ...string) []byte {
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		if !slices.Contains(names, string(m.Name)) {
			kept.Add(m)
		}
	}
	return kept.Object()
}
