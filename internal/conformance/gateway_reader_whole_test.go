package conformance_test

import (
	"cmp"
	"encoding/json"

	ninelives "github.com/ninelives-ai/ninelives"
)

// readWhole reads an answer that came in one piece.
func readWhole(p ninelives.Protocol, v any) understood {
	var u understood
	u.ended, u.marked = true, true
	u.model = cmp.Or(text(v, "model"), text(v, "modelVersion"))
	switch p {
	case ninelives.OpenAIChat:
		c := list(v, "choices")
		if len(c) != 1 {
			u.trip("%d choices", len(c))
			return u
		}
		u.text, u.refusal, u.finish = text(c[0], "message", "content"), text(c[0], "message", "refusal"), text(c[0], "finish_reason")
		for _, call := range list(c[0], "message", "tool_calls") {
			u.calls = append(u.calls, saidCall{text(call, "id"), text(call, "function", "name"), text(call, "function", "arguments")})
		}
		u.usage(at(v, "usage"), "prompt_tokens", "completion_tokens")
	case ninelives.AnthropicMessages:
		if text(v, "type") != "message" || text(v, "role") != "assistant" {
			u.trip("no message: %v", v)
		}
		for _, b := range list(v, "content") {
			u.text += text(b, "text")
			if text(b, "type") == "tool_use" {
				arguments, _ := json.Marshal(at(b, "input"))
				u.calls = append(u.calls, saidCall{text(b, "id"), text(b, "name"), string(arguments)})
			}
		}
		u.finish = text(v, "stop_reason")
		u.usage(at(v, "usage"), "input_tokens", "output_tokens")
		u.input = inputOf(at(v, "usage"))
	case ninelives.OpenAIResponses:
		for _, it := range list(v, "output") {
			for _, c := range list(it, "content") {
				if text(it, "type") == "message" {
					u.text += text(c, "text")
					u.refusal += text(c, "refusal")
				}
			}
			if text(it, "type") == "function_call" {
				u.calls = append(u.calls, saidCall{text(it, "call_id"), text(it, "name"), text(it, "arguments")})
			}
		}
		u.finish = cmp.Or(text(v, "incomplete_details", "reason"), text(v, "status"))
		u.usage(at(v, "usage"), "input_tokens", "output_tokens")
	case ninelives.Gemini:
		for _, c := range list(v, "candidates") {
			for _, part := range list(c, "content", "parts") {
				if thought, _ := at(part, "thought").(bool); !thought {
					u.text += text(part, "text")
				}
				u.geminiCall(part)
			}
			u.finish = text(c, "finishReason")
		}
		u.finish = cmp.Or(u.finish, text(v, "promptFeedback", "blockReason"))
		u.usage(at(v, "usageMetadata"), "promptTokenCount", "candidatesTokenCount")
	}
	if u.finish == "" {
		u.trip("no reason why it ends")
	}
	return u
}

// readError reads an error that came in place of an answer.
func readError(p ninelives.Protocol, status int, body []byte) understood {
	var u understood
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		u.trip("an error that is no JSON: %q", body)
		return u
	}
	e := at(v, "error")
	u.message = text(e, "message")
	switch p {
	case ninelives.OpenAIChat, ninelives.OpenAIResponses:
		if u.failure = text(e, "code"); text(e, "type") == "" {
			u.trip("an error without a type: %s", body)
		}
	case ninelives.AnthropicMessages:
		if u.failure = text(e, "type"); text(v, "type") != "error" || text(v, "request_id") == "" {
			u.trip("no error of the protocol's: %s", body)
		}
	case ninelives.Gemini:
		if u.failure = text(e, "status"); count(e, "code") != status {
			u.trip("the status %d with the code %v", status, at(e, "code"))
		}
	}
	if u.failure == "" || u.message == "" {
		u.trip("an error that says nothing: %s", body)
	}
	if at(v, "choices") != nil || at(v, "content") != nil || at(v, "output") != nil || at(v, "candidates") != nil {
		u.trip("an error that looks like an answer: %s", body)
	}
	return u
}

// at goes down into a JSON value by the names of members.
func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func text(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

func list(v any, path ...string) []any {
	l, _ := at(v, path...).([]any)
	return l
}

func count(v any, path ...string) int {
	n, _ := at(v, path...).(float64)
	return int(n)
}
