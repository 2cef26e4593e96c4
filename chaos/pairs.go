package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// toolPairs finds a call without its result, or a result without its call.
func toolPairs(a *ask) *complaint {
	all := a.conversation()
	switch a.protocol {
	case chat:
		return chatPairs(all)
	case responses:
		if a.body["previous_response_id"] != nil || a.body["conversation"] != nil {
			return nil // the calls are at the server's
		}
		return responsesPairs(all)
	case messages:
		return messagesPairs(all)
	}
	return geminiPairs(all)
}

func chatPairs(all []message) *complaint {
	var calls, open []string // of the last message that calls; those without a result yet
	unanswered := func(at int) *complaint {
		if len(open) == 0 {
			return nil
		}
		return complain(fmt.Sprintf("messages.[%d].role", at),
			"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	for _, m := range all {
		if m.role == "tool" {
			id := m.parts[0].id
			i := slices.Index(open, id)
			switch {
			case calls == nil:
				return complain(fmt.Sprintf("messages.[%d].role", m.at), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			case i >= 0:
				open = slices.Delete(open, i, i+1)
			case slices.Contains(calls, id):
				return complain(fmt.Sprintf("messages.[%d].tool_call_id", m.at), "Duplicate value for 'tool_call_id' of '%s' in message[%d].", id, m.at)
			default:
				return complain(fmt.Sprintf("messages.[%d].tool_call_id", m.at), "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
			}
			continue
		}
		if c := unanswered(m.at); c != nil {
			return c
		}
		calls, open = nil, nil
		for _, p := range m.of(partCall) {
			if slices.Contains(calls, p.id) {
				return complain(fmt.Sprintf("messages.[%d].tool_calls", m.at), "Duplicate value for 'tool_call_id' of '%s' in message[%d].", p.id, m.at)
			}
			calls, open = append(calls, p.id), append(open, p.id)
		}
	}
	return unanswered(len(all))
}

func responsesPairs(all []message) *complaint {
	called, answered := map[string]bool{}, map[string]bool{}
	var order []string
	for _, m := range all {
		for _, p := range m.parts {
			switch p.kind {
			case partCall:
				if called[p.id] {
					return complain("input", "Duplicate item found with call_id %s. Remove duplicate items from your input and try again.", p.id)
				}
				called[p.id] = true
				order = append(order, p.id)
			case partResult:
				if !called[p.id] || answered[p.id] {
					return complain("input", "No tool call found for function call output with call_id %s.", p.id)
				}
				answered[p.id] = true
			}
		}
	}
	for _, id := range order {
		if !answered[id] {
			return complain("input", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

// messagesPairs goes by the blocks that follow an assistant's message: several
// messages of the user in a row count as one, as the vendor combines them.
func messagesPairs(all []message) *complaint {
	var open []string // the calls without a result yet
	answered, called := map[string]bool{}, map[string]bool{}
	asked := 0 // the message that made them
	unanswered := func() *complaint {
		return complain("", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", asked, strings.Join(open, ", "))
	}
	for _, m := range all {
		if m.role == "assistant" {
			if len(open) > 0 {
				return unanswered()
			}
			asked, answered = m.at, map[string]bool{}
		}
		for _, p := range m.parts {
			switch {
			case p.kind == partCall && m.role == "assistant":
				if called[p.id] {
					return complain("", "messages.%d.content.%d: `tool_use` ids must be unique", m.at, p.at)
				}
				called[p.id] = true
				open = append(open, p.id)
			case p.kind == partResult:
				at := slices.Index(open, p.id)
				switch {
				case answered[p.id]:
					return complain("", "messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", m.at, p.at, p.id)
				case at < 0:
					return complain("", "messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", m.at, p.at, p.id)
				}
				answered[p.id] = true
				open = slices.Delete(open, at, at+1)
			case m.role == "user" && len(open) > 0: // something stands before the results
				return unanswered()
			}
		}
	}
	if len(open) > 0 {
		return unanswered()
	}
	return nil
}

const (
	geminiAfterCall = "Please ensure that function response turn comes immediately after a function call turn."
	geminiCount     = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	geminiBefore    = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)

func geminiPairs(all []message) *complaint {
	ids := map[string]bool{}
	for i, m := range all {
		var calls []part
		if i > 0 {
			calls = all[i-1].of(partCall)
		}
		results := m.of(partResult)
		switch {
		case len(results) > 0 && len(calls) == 0, len(results) == 0 && len(calls) > 0:
			return complain("", geminiAfterCall)
		case len(results) != len(calls), !answers(results, calls):
			return complain("", geminiCount)
		}
		if m.count(partCall) > 0 && (i == 0 || all[i-1].role == "model") {
			return complain("", geminiBefore)
		}
		for _, p := range m.of(partCall) {
			if p.id != "" && ids[p.id] {
				return complain("", "Duplicate function call id: %s", p.id)
			}
			ids[p.id] = true
		}
	}
	if n := len(all); n > 0 && all[n-1].count(partCall) > 0 {
		return complain("", geminiCount)
	}
	return nil
}

// answers reports whether results fit calls of the same number: by id where
// both have one, else by name in the same order.
func answers(results, calls []part) bool {
	calls = slices.Clone(calls)
	for _, r := range results {
		at := slices.IndexFunc(calls, func(c part) bool {
			if r.id != "" && c.id != "" {
				return r.id == c.id
			}
			return true // the next one
		})
		if at < 0 || calls[at].name != r.name {
			return false
		}
		calls = slices.Delete(calls, at, at+1)
	}
	return true
}
