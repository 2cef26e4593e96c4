package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The checks of a conversation: what the vendors' own interfaces refuse of it,
// in their words. Unknown tools in it are no fault to any of them.
const (
	// History stands for ToolPairs, ToolForm, EmptyText, Roles and Signatures:
	// what the protocol's own vendor refuses of every conversation.
	History Check = "history"
	// ToolPairs: every call has its one result where the protocol wants it, and
	// every result its call. The chat and Messages protocols want all results
	// right after the calls, Messages before anything else the user says, Gemini as many
	// of them, of the same names in the same order where they carry no ids;
	// Responses takes them in any place after the call.
	ToolPairs Check = "tool_pairs"
	ToolForm  Check = "tool_form"  // ids, names and arguments of calls in a form that the protocol does not take
	EmptyText Check = "empty_text" // messages and blocks without content
	Roles     Check = "roles"      // unknown roles; Gemini: the first is the model's, or two of its answers in a row
	// Signatures: signed or encrypted reasoning that this server has not issued,
	// or not for this text.
	Signatures Check = "signatures"
	MistralIDs Check = "mistral_ids" // ids of calls that are not nine letters and digits
)

// bundles are checks that stand for several.
var bundles = map[Check][]Check{History: {Roles, EmptyText, ToolForm, ToolPairs, Signatures}}

// complaint is what a request is told that fails a check.
type complaint struct{ param, message string }

func complain(param, format string, args ...any) *complaint {
	return &complaint{param, fmt.Sprintf(format, args...)}
}

// historyChecks find the first thing that is wrong with a conversation; nil: nothing.
var historyChecks = map[Check]func(*ask) *complaint{
	ToolPairs:  toolPairs,
	ToolForm:   toolForm,
	EmptyText:  emptyText,
	Roles:      roles,
	Signatures: signatures,
	MistralIDs: mistralIDs,

	MissingReasoning: missingReasoning,
}

func roles(a *ask) *complaint {
	known := map[protocol][]string{
		chat:      {"system", "assistant", "user", "function", "tool", "developer"},
		responses: {"assistant", "system", "developer", "user", "tool", ""},
		messages:  {"user", "assistant"},
		gemini:    {"user", "model", "function", ""},
	}[a.protocol]
	before := ""
	for i, m := range a.conversation() {
		if !slices.Contains(known, m.role) {
			switch a.protocol {
			case messages:
				return complain("", "messages.%d.role: Input should be 'user' or 'assistant'", m.at)
			case gemini:
				return complain("", "Please use a valid role: user, model.")
			}
			return complain(fmt.Sprintf("messages[%d].role", m.at), "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.role)
		}
		if a.protocol == gemini && (i == 0 && m.role == "model" || i > 0 && m.role == "model" && before == "model") {
			return complain("", "Please ensure that multiturn requests alternate between user and model.")
		}
		before = m.role
	}
	return nil
}

func emptyText(a *ask) *complaint {
	all := a.conversation()
	for i, m := range all {
		var c *complaint
		switch a.protocol {
		case chat:
			c = emptyChat(m)
		case responses:
			if _, there := m.raw["content"]; m.raw != nil && !there && m.raw["type"] == nil {
				c = complain(fmt.Sprintf("input[%d].content", m.at), "Missing required parameter: 'input[%d].content'.", m.at)
			}
		case messages:
			c = emptyMessages(m, i == len(all)-1)
		case gemini:
			c = emptyGemini(m)
		}
		if c != nil {
			return c
		}
	}
	return nil
}

func emptyChat(m message) *complaint {
	at := fmt.Sprintf("messages[%d]", m.at)
	calls, hasCalls := m.raw["tool_calls"]
	content, isList := m.raw["content"].([]any)
	switch {
	case hasCalls && calls != nil && len(list(calls)) == 0:
		return complain(at+".tool_calls", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	case m.raw["content"] == nil && m.count(partCall) == 0 && m.raw["refusal"] == nil && m.raw["function_call"] == nil:
		return complain(at+".content", "Invalid value for 'content': expected a string, got null.")
	case isList && len(content) == 0:
		return complain(at+".content", "Invalid '%s.content': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	return nil
}

func emptyMessages(m message, last bool) *complaint {
	if len(m.parts) == 0 || m.raw["content"] == "" {
		if last && m.role == "assistant" {
			return nil
		}
		return complain("", "messages.%d: all messages must have non-empty content except for the optional final assistant message", m.at)
	}
	for _, p := range m.of(partText) {
		switch {
		case p.text == "":
			return complain("", "messages: text content blocks must be non-empty")
		case strings.TrimSpace(p.text) == "":
			return complain("", "messages: text content blocks must contain non-whitespace text")
		}
	}
	if end := m.parts[len(m.parts)-1]; last && m.role == "assistant" && end.kind == partText && strings.TrimRight(end.text, " \t\r\n") != end.text {
		return complain("", "messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

func emptyGemini(m message) *complaint {
	if len(m.parts) == 0 {
		return complain("", "* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", m.at)
	}
	for _, p := range m.parts {
		if p.kind == partText && p.text == "" && p.signature == "" || p.kind == partOther && len(p.raw) == 0 {
			return complain("", "* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", m.at, p.at)
		}
	}
	return nil
}

var (
	plainID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
)

func toolForm(a *ask) *complaint {
	for _, m := range a.conversation() {
		for _, p := range m.parts {
			var c *complaint
			switch {
			case a.protocol == messages && p.kind == partCall:
				c = messagesCallForm(fmt.Sprintf("messages.%d.content.%d.tool_use", m.at, p.at), p)
			case a.protocol == messages && p.kind == partResult && !plainID.MatchString(p.id):
				c = complain("", "messages.%d.content.%d.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'", m.at, p.at)
			case a.protocol == chat && p.kind == partCall:
				c = openaiCallForm(fmt.Sprintf("messages[%d].tool_calls[%d]", m.at, p.at), ".id", ".function", 40, p, object(p.raw["function"])["arguments"])
			case a.protocol == responses && p.kind == partCall:
				c = openaiCallForm(fmt.Sprintf("input[%d]", m.at), ".call_id", "", 64, p, p.raw["arguments"])
			case a.protocol == gemini && p.kind == partCall && p.name == "":
				c = complain("", "* GenerateContentRequest.contents[%d].parts[%d].function_call.name: Name cannot be empty.\n", m.at, p.at)
			case a.protocol == gemini && p.kind == partResult && p.name == "":
				c = complain("", "* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.\n", m.at, p.at)
			}
			if c != nil {
				return c
			}
		}
	}
	return nil
}

func messagesCallForm(at string, p part) *complaint {
	_, isObject := p.raw["input"].(map[string]any)
	switch {
	case !plainID.MatchString(p.id):
		return complain("", "%s.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
	case !plainID.MatchString(p.name) || len(p.name) > 128:
		return complain("", "%s.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", at)
	case !isObject:
		return complain("", "%s.input: Input should be a valid dictionary", at)
	}
	return nil
}

func openaiCallForm(at, id, function string, longest int, p part, arguments any) *complaint {
	_, isText := arguments.(string)
	switch {
	case p.id == "":
		return complain(at+id, "Missing required parameter: '%s%s'.", at, id)
	case len(p.id) > longest:
		return complain(at+id, "Invalid '%s%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, id, longest, len(p.id))
	case !plainID.MatchString(p.name):
		return complain(at+function+".name", "Invalid '%s%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at, function)
	case !isText:
		return complain(at+function+".arguments", "Invalid type for '%s%s.arguments': expected a string, but got an object instead.", at, function)
	}
	return nil
}

func mistralIDs(a *ask) *complaint {
	for _, m := range a.conversation() {
		for _, p := range m.parts {
			if (p.kind == partCall || p.kind == partResult) && !mistralID.MatchString(p.id) {
				return complain("", "Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", p.id)
			}
		}
	}
	return nil
}

// geminiDummies are the two signatures that Google lets stand for one that is
// not at hand. Source: Google's page on thought signatures.
var geminiDummies = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

func signatures(a *ask) *complaint {
	for _, m := range a.conversation() {
		for _, p := range m.parts {
			switch {
			case a.protocol == messages && p.kind == partThought:
				if text(p.raw["type"]) == "redacted_thinking" {
					if !a.signer.verify(messages, "", p.signature) {
						return complain("", "messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", m.at, p.at)
					}
				} else if _, there := p.raw["signature"]; !there {
					return complain("", "messages.%d.content.%d.thinking.signature: Field required", m.at, p.at)
				} else if !a.signer.verify(messages, p.text, p.signature) {
					return complain("", "messages.%d.content.%d: Invalid `signature` in `thinking` block", m.at, p.at)
				}
			case a.protocol == responses && p.kind == partThought && p.signature != "":
				if !a.signer.verify(responses, "", p.signature) {
					return complain("", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", p.id)
				}
			case a.protocol == gemini && p.signature != "":
				if !slices.Contains(geminiDummies, p.signature) && !a.signer.verify(gemini, "", p.signature) {
					return complain("", "Corrupted thought signature.")
				}
			}
		}
	}
	return nil
}

// missingReasoning is for servers that want what they thought back. Chat: each
// tool call with its reasoning_content (DeepSeek). Messages with thinking
// turned on: the calls whose results end the request begin with a thinking
// block. Gemini: the first call of each step since the user spoke is signed.
// Responses: a reasoning item is followed by what it led to.
func missingReasoning(a *ask) *complaint {
	all := a.conversation()
	switch a.protocol {
	case chat:
		for _, m := range all {
			if _, there := m.raw["reasoning_content"]; !there && m.count(partCall) > 0 {
				return complain("messages", "The `reasoning_content` in the thinking mode must be passed back to the API.")
			}
		}
	case messages:
		return missingThinking(a, all)
	case gemini:
		return missingThoughtSignature(all)
	case responses:
		for i, m := range all {
			if m.count(partThought) > 0 && (i+1 == len(all) || all[i+1].role != "assistant") {
				return complain("input", "Item '%s' of type 'reasoning' was provided without its required following item.", m.parts[0].id)
			}
		}
	}
	return nil
}

func missingThinking(a *ask, all []message) *complaint {
	switch text(object(a.body["thinking"])["type"]) {
	case "enabled", "adaptive":
	default:
		return nil
	}
	n := len(all)
	if n < 2 || all[n-1].count(partResult) == 0 || all[n-2].role != "assistant" || len(all[n-2].parts) == 0 {
		return nil
	}
	if p := all[n-2].parts[0]; p.kind != partThought {
		return complain("", "messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block "+
			"(preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`.", n-2, text(p.raw["type"]))
	}
	return nil
}

func missingThoughtSignature(all []message) *complaint {
	start := 0 // of the present turn: the last content of the user that is no result
	for i, m := range all {
		if m.role != "model" && m.count(partResult) == 0 {
			start = i
		}
	}
	for i, m := range all[start:] {
		if calls := m.of(partCall); len(calls) > 0 && calls[0].signature == "" {
			return complain("", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. "+
				"Additional data, function call `default_api:%s` , position %d.", calls[0].name, start+i+1)
		}
	}
	return nil
}
