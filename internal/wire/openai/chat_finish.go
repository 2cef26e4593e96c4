package openai

import (
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// chatFinish puts a server's word for the end into ours.
func chatFinish(raw string) ninelives.FinishReason {
	switch chatWord(raw) {
	case "":
		return ""
	case "stop", "end_turn", "eos", "eos_token", "end_of_text", "end_of_turn", "stop_sequence", "stop_token",
		"end", "ended", "done", "complete", "completed", "finish", "finished", "success", "natural":
		return ninelives.FinishStop
	case "length", "max_tokens", "max_token", "max_output_tokens", "max_length", "max_new_tokens", "max_completion_tokens",
		"model_length", "token_limit", "limit", "incomplete", "truncated", "model_context_window_exceeded":
		return ninelives.FinishLength
	case "tool_calls", "tool_call", "tool_use", "function_call", "function_calls":
		return ninelives.FinishToolCalls
	case "content_filter", "content_filtered", "contentfilter", "filter", "filtered", "sensitive", "safety", "moderation",
		"prohibited_content", "recitation", "blocklist", "spii", "image_safety", "guardrail_intervened", "policy_violation", "blocked":
		return ninelives.FinishContentFilter
	case "refusal", "refused":
		return ninelives.FinishRefusal
	case "malformed_function_call", "malformed_tool_call", "unexpected_tool_call", "too_many_tool_calls":
		return ninelives.FinishMalformedCall
	}
	return ninelives.FinishOther
}

// chatFinishFault tells the words for an end that is a failure. said reports
// that something was answered before it.
func chatFinishFault(raw string, said bool) (ninelives.Class, string) {
	switch word := chatWord(raw); word {
	case "error", "errored", "failed", "failure", "abort", "aborted", "cancelled", "canceled":
		return ninelives.ClassStreamBroken, "the server ended its answer with finish_reason " + word
	case "network_error", "insufficient_system_resource", "overloaded", "server_overloaded", "engine_overloaded":
		return ninelives.ClassOverloaded, "the server gave its answer up with finish_reason " + word
	case "timeout":
		return ninelives.ClassTimeout, "the server gave its answer up with finish_reason " + word
	case "model_context_window_exceeded":
		if !said {
			return ninelives.ClassContextLength, "the prompt does not fit the window (finish_reason " + word + ")"
		}
	}
	return "", ""
}

// chatWord brings FinishReason, finish-reason and FINISH_REASON into one form.
// What a server adds after a colon (Gemini names its own reason there) is left.
func chatWord(raw string) string {
	word, _, _ := strings.Cut(strings.ToLower(raw), ":")
	word = strings.TrimSpace(word)
	if word == "null" || word == "none" {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return '_'
		}
		return r
	}, word)
}

// chatFinishWord is the word for an end that clients of this protocol know.
func chatFinishWord(r ninelives.FinishReason, refused bool) string {
	switch r {
	case ninelives.FinishLength, ninelives.FinishToolCalls, ninelives.FinishContentFilter:
		return string(r)
	case ninelives.FinishRefusal:
		if !refused {
			return string(ninelives.FinishContentFilter)
		}
	}
	return string(ninelives.FinishStop)
}
