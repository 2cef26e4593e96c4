package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// predicate is a condition under which the fake upstream rejects a request.
type predicate struct {
	Rule     string     `json:"rule"`
	Path     string     `json:"path"`
	Key      string     `json:"key"`
	Value    any        `json:"value"`
	Pattern  string     `json:"pattern"`
	Role     string     `json:"role"`
	Roles    []string   `json:"roles"`
	Pairs    [][]string `json:"pairs"`
	Type     string     `json:"type"`
	Field    string     `json:"field"`
	WhereHas string     `json:"where_has"`
}

type object = map[string]any

// rejects reports whether the predicate holds for a request.
func (p predicate) rejects(body []byte) bool {
	var req object
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&req); err != nil {
		return true // no request at all
	}
	rule, ok := rules[p.Rule]
	if !ok {
		panic(fmt.Sprintf("the corpus has a rule that is not known here: %q", p.Rule))
	}
	return rule(p, req)
}

var rules = map[string]func(p predicate, req object) bool{
	"num_gt": func(p predicate, req object) bool {
		n, ok := lookupOne(req, p.name()).(float64)
		limit, _ := number(p.Value)
		return ok && n > limit
	},
	"key_present": func(p predicate, req object) bool { return len(lookup(req, p.name())) > 0 },
	"path_eq": func(p predicate, req object) bool {
		return slices.ContainsFunc(lookup(req, p.name()), func(v any) bool { return same(v, p.Value) })
	},
	"path_not_true": func(p predicate, req object) bool {
		values := lookup(req, p.name())
		return len(values) == 0 || slices.ContainsFunc(values, func(v any) bool { return v != true })
	},
	"role_present": func(p predicate, req object) bool { return slices.Contains(roles(req), p.Role) },
	"last_role_is": func(p predicate, req object) bool {
		r := roles(req)
		return len(r) > 0 && r[len(r)-1] == p.Role
	},
	"adjacent_same_role": func(p predicate, req object) bool {
		r := roles(req)
		for i := 1; i < len(r); i++ {
			if r[i] == r[i-1] && (len(p.Roles) == 0 || slices.Contains(p.Roles, r[i])) {
				return true
			}
		}
		return false
	},
	"adjacent_roles": func(p predicate, req object) bool {
		r := roles(req)
		for i := 1; i < len(r); i++ {
			for _, pair := range p.Pairs {
				if len(pair) == 2 && r[i-1] == pair[0] && r[i] == pair[1] {
					return true
				}
			}
		}
		return false
	},
	"part_type_present": func(p predicate, req object) bool {
		return slices.ContainsFunc(allParts(req), func(part object) bool { return part["type"] == p.Type })
	},
	"empty_text_block": func(p predicate, req object) bool {
		return slices.ContainsFunc(allParts(req), func(part object) bool {
			text, ok := part["text"].(string)
			return ok && part["type"] == "text" && strings.TrimSpace(text) == ""
		})
	},
	"last_assistant_trailing_ws": func(p predicate, req object) bool {
		m := messages(req)
		if len(m) == 0 || m[len(m)-1]["role"] != "assistant" {
			return false
		}
		text, _ := m[len(m)-1]["content"].(string)
		if parts := parts(m[len(m)-1]); len(parts) > 0 {
			text, _ = parts[len(parts)-1]["text"].(string)
		}
		return text != strings.TrimRight(text, " \t\r\n")
	},
	"tool_name_not": func(p predicate, req object) bool {
		re := regexp.MustCompile(p.Pattern)
		return slices.ContainsFunc(toolNames(req), func(name string) bool { return !re.MatchString(name) })
	},
	"schema_key_present": func(p predicate, req object) bool {
		for _, schema := range schemas(req) {
			if hasKey(schema, p.name()) {
				return true
			}
		}
		return false
	},
	"field_present": func(p predicate, req object) bool {
		return slices.ContainsFunc(p.selected(req), func(m object) bool { _, ok := m[p.Field]; return ok })
	},
	"field_missing": func(p predicate, req object) bool {
		return slices.ContainsFunc(p.selected(req), func(m object) bool { _, ok := m[p.Field]; return !ok })
	},
	"tool_call_field_present": func(p predicate, req object) bool {
		return slices.ContainsFunc(toolCalls(req), func(c object) bool { _, ok := c[p.Field]; return ok })
	},
	"tool_call_field_missing": func(p predicate, req object) bool {
		return slices.ContainsFunc(toolCalls(req), func(c object) bool { _, ok := c[p.Field]; return !ok })
	},
	"tool_args_not_string": func(p predicate, req object) bool {
		return slices.ContainsFunc(arguments(req), func(v any) bool { _, ok := v.(string); return !ok })
	},
	"tool_args_not_object": func(p predicate, req object) bool {
		return slices.ContainsFunc(arguments(req), func(v any) bool { _, ok := v.(object); return !ok })
	},
	"tool_args_invalid_json": func(p predicate, req object) bool {
		return slices.ContainsFunc(arguments(req), func(v any) bool {
			s, ok := v.(string)
			return ok && !json.Valid([]byte(s))
		})
	},
	"openai_unanswered_tool_call": func(p predicate, req object) bool {
		msgs := messages(req)
		for i, m := range msgs {
			for _, c := range list(m["tool_calls"]) {
				answered := false
				for _, next := range msgs[i+1:] {
					if next["role"] != "tool" {
						break
					}
					answered = answered || next["tool_call_id"] == c["id"]
				}
				if !answered {
					return true
				}
			}
		}
		return false
	},
	"anthropic_unanswered_tool_use": func(p predicate, req object) bool {
		msgs := messages(req)
		for i, m := range msgs {
			for _, use := range parts(m) {
				if use["type"] != "tool_use" {
					continue
				}
				answered := false
				if i+1 < len(msgs) {
					answered = slices.ContainsFunc(parts(msgs[i+1]), func(r object) bool {
						return r["type"] == "tool_result" && r["tool_use_id"] == use["id"]
					})
				}
				if !answered {
					return true
				}
			}
		}
		return false
	},
	"anthropic_tool_use_without_thinking": func(p predicate, req object) bool {
		if thinking, ok := req["thinking"].(object); ok && thinking["type"] == "disabled" {
			return false
		}
		for _, m := range messages(req) {
			kinds := kindsOf(parts(m))
			if m["role"] == "assistant" && slices.Contains(kinds, "tool_use") &&
				!slices.Contains(kinds, "thinking") && !slices.Contains(kinds, "redacted_thinking") {
				return thinkingOn(req)
			}
		}
		return false
	},
	"thinking_signature_eq": func(p predicate, req object) bool {
		return slices.ContainsFunc(allParts(req), func(part object) bool {
			return part["type"] == "thinking" && same(part["signature"], p.Value)
		})
	},
	"thinking_text_regex": func(p predicate, req object) bool {
		re := regexp.MustCompile(p.Pattern)
		return slices.ContainsFunc(allParts(req), func(part object) bool {
			text, ok := part["thinking"].(string)
			return ok && part["type"] == "thinking" && re.MatchString(text)
		})
	},
}

// thinkingOn: an assistant's turn must begin with thinking only while it is
// switched on.
func thinkingOn(req object) bool {
	thinking, ok := req["thinking"].(object)
	return ok && thinking["type"] != "disabled"
}

// name is the operand that names a place.
func (p predicate) name() string {
	if p.Path != "" {
		return p.Path
	}
	if p.Key != "" {
		return p.Key
	}
	return p.Field
}

// selected are the messages that a rule speaks of.
func (p predicate) selected(req object) []object {
	var out []object
	for _, m := range messages(req) {
		if p.Role != "" && m["role"] != p.Role {
			continue
		}
		if p.WhereHas != "" {
			v, ok := m[p.WhereHas]
			if l, list := v.([]any); !ok || v == nil || list && len(l) == 0 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// lookup finds the values at a path of names, indices and [*].
func lookup(v any, path string) []any {
	found := []any{v}
	for step := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(path), ".") {
		var next []any
		for _, v := range found {
			switch v := v.(type) {
			case object:
				if e, ok := v[step]; ok {
					next = append(next, e)
				}
			case []any:
				if step == "*" {
					next = append(next, v...)
				} else if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
					next = append(next, v[i])
				}
			}
		}
		found = next
	}
	return found
}

func lookupOne(v any, path string) any {
	if found := lookup(v, path); len(found) > 0 {
		return found[0]
	}
	return nil
}

func number(v any) (float64, bool) { n, ok := v.(float64); return n, ok }

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

func list(v any) []object {
	var out []object
	l, _ := v.([]any)
	for _, e := range l {
		if o, ok := e.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func messages(req object) []object { return list(req["messages"]) }

func roles(req object) []string {
	var out []string
	for _, m := range messages(req) {
		role, _ := m["role"].(string)
		out = append(out, role)
	}
	return out
}

func parts(m object) []object { return list(m["content"]) }

// allParts are the parts of all messages, of the results of tools, and of the
// instructions.
func allParts(req object) []object {
	out := list(req["system"])
	for _, m := range messages(req) {
		for _, p := range parts(m) {
			out = append(out, p)
			out = append(out, list(p["content"])...)
		}
	}
	return out
}

func kindsOf(parts []object) []string {
	var out []string
	for _, p := range parts {
		kind, _ := p["type"].(string)
		out = append(out, kind)
	}
	return out
}

func toolCalls(req object) []object {
	var out []object
	for _, m := range messages(req) {
		out = append(out, list(m["tool_calls"])...)
	}
	return out
}

// arguments are those of all calls of the history.
func arguments(req object) []any {
	var out []any
	for _, c := range toolCalls(req) {
		if f, ok := c["function"].(object); ok {
			out = append(out, f["arguments"])
		}
	}
	return out
}

func toolNames(req object) []string {
	var out []string
	add := func(v any) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	for _, tool := range list(req["tools"]) {
		add(tool["name"])
		if f, ok := tool["function"].(object); ok {
			add(f["name"])
		}
	}
	for _, c := range toolCalls(req) {
		if f, ok := c["function"].(object); ok {
			add(f["name"])
		}
	}
	return out
}

// schemas are those of the tools and of the answer.
func schemas(req object) []any {
	var out []any
	for _, tool := range list(req["tools"]) {
		out = append(out, tool["input_schema"], lookupOne(tool, "function.parameters"))
	}
	return append(out, lookupOne(req, "response_format.json_schema.schema"))
}

func hasKey(v any, key string) bool {
	switch v := v.(type) {
	case object:
		if _, ok := v[key]; ok {
			return true
		}
		for _, e := range v {
			if hasKey(e, key) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return hasKey(e, key) })
	}
	return false
}

func TestRulesTellGoodRequestsFromBadOnes(t *testing.T) {
	for _, c := range []struct {
		rule      string
		good, bad []string
	}{
		{`{"rule":"num_gt","key":"max_tokens","value":10}`, []string{`{}`, `{"max_tokens":10}`}, []string{`{"max_tokens":11}`}},
		{`{"rule":"key_present","key":"stream_options"}`, []string{`{}`}, []string{`{"stream_options":null}`}},
		{`{"rule":"path_eq","path":"tools[*].function.strict","value":true}`, []string{`{}`, `{"tools":[{"function":{"strict":false}}]}`}, []string{`{"tools":[{"function":{}},{"function":{"strict":true}}]}`}},
		{`{"rule":"path_not_true","path":"stream"}`, []string{`{"stream":true}`}, []string{`{}`, `{"stream":false}`}},
		{`{"rule":"role_present","role":"developer"}`, []string{`{"messages":[{"role":"user"}]}`}, []string{`{"messages":[{"role":"developer"}]}`}},
		{`{"rule":"last_role_is","role":"assistant"}`, []string{`{"messages":[{"role":"assistant"},{"role":"user"}]}`}, []string{`{"messages":[{"role":"user"},{"role":"assistant"}]}`}},
		{`{"rule":"adjacent_same_role","roles":["user"]}`, []string{`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"assistant"}]}`}, []string{`{"messages":[{"role":"user"},{"role":"user"}]}`}},
		{`{"rule":"adjacent_roles","pairs":[["tool","user"]]}`, []string{`{"messages":[{"role":"user"},{"role":"tool"}]}`}, []string{`{"messages":[{"role":"tool"},{"role":"user"}]}`}},
		{`{"rule":"part_type_present","type":"image_url"}`, []string{`{"messages":[{"content":"image_url"}]}`}, []string{`{"messages":[{"content":[{"type":"image_url"}]}]}`}},
		{`{"rule":"empty_text_block"}`, []string{`{"messages":[{"content":[{"type":"text","text":"x"}]}]}`}, []string{`{"messages":[{"content":[{"type":"text","text":" "}]}]}`, `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"text","text":""}]}]}]}`}},
		{`{"rule":"last_assistant_trailing_ws"}`, []string{`{"messages":[{"role":"user","content":"x "}]}`, `{"messages":[{"role":"assistant","content":"x"}]}`}, []string{`{"messages":[{"role":"assistant","content":"x "}]}`, `{"messages":[{"role":"assistant","content":[{"type":"text","text":"x\n"}]}]}`}},
		{`{"rule":"tool_name_not","pattern":"^[a-z]+$"}`, []string{`{"tools":[{"function":{"name":"a"}}]}`}, []string{`{"tools":[{"name":"a.b"}]}`, `{"messages":[{"tool_calls":[{"function":{"name":"a.b"}}]}]}`}},
		{`{"rule":"schema_key_present","key":"$schema"}`, []string{`{"$schema":1}`}, []string{`{"tools":[{"function":{"parameters":{"properties":{"a":{"$schema":1}}}}}]}`, `{"tools":[{"input_schema":{"$schema":1}}]}`}},
		{`{"rule":"field_present","role":"assistant","field":"reasoning"}`, []string{`{"messages":[{"role":"user","reasoning":1}]}`}, []string{`{"messages":[{"role":"assistant","reasoning":null}]}`}},
		{`{"rule":"field_missing","role":"assistant","where_has":"tool_calls","field":"r"}`, []string{`{"messages":[{"role":"assistant"},{"role":"assistant","tool_calls":[]},{"role":"assistant","tool_calls":[{}],"r":""}]}`}, []string{`{"messages":[{"role":"assistant","tool_calls":[{}]}]}`}},
		{`{"rule":"tool_call_field_present","field":"name"}`, []string{`{"messages":[{"tool_calls":[{"id":"x"}]}]}`}, []string{`{"messages":[{"tool_calls":[{"name":null}]}]}`}},
		{`{"rule":"tool_call_field_missing","field":"extra"}`, []string{`{"messages":[{"tool_calls":[{"extra":{}}]}]}`}, []string{`{"messages":[{"tool_calls":[{}]}]}`}},
		{`{"rule":"tool_args_not_string"}`, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":"{}"}}]}]}`}, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":{}}}]}]}`}},
		{`{"rule":"tool_args_not_object"}`, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":{}}}]}]}`}, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":"{}"}}]}]}`}},
		{`{"rule":"tool_args_invalid_json"}`, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":"{}"}}]}]}`}, []string{`{"messages":[{"tool_calls":[{"function":{"arguments":"{"}}]}]}`}},
		{`{"rule":"openai_unanswered_tool_call"}`, []string{`{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}`}, []string{`{"messages":[{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]},{"role":"tool","tool_call_id":"a"},{"role":"user"}]}`}},
		{`{"rule":"anthropic_unanswered_tool_use"}`, []string{`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`}, []string{`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":"x"}]}`, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}]}`}},
		{`{"rule":"anthropic_tool_use_without_thinking"}`, []string{`{"thinking":{"type":"enabled"},"messages":[{"role":"assistant","content":[{"type":"thinking"},{"type":"tool_use"}]}]}`, `{"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}`}, []string{`{"thinking":{"type":"enabled"},"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}`}},
		{`{"rule":"thinking_signature_eq","value":"s"}`, []string{`{"messages":[{"content":[{"type":"thinking","signature":"t"}]}]}`}, []string{`{"messages":[{"content":[{"type":"thinking","signature":"s"}]}]}`}},
		{`{"rule":"thinking_text_regex","pattern":"^x"}`, []string{`{"messages":[{"content":[{"type":"thinking","thinking":"y"}]}]}`}, []string{`{"messages":[{"content":[{"type":"thinking","thinking":"xy"}]}]}`}},
	} {
		var p predicate
		if err := json.Unmarshal([]byte(c.rule), &p); err != nil {
			t.Fatal(err)
		}
		for _, req := range c.good {
			if p.rejects([]byte(req)) {
				t.Errorf("%s rejects %s", c.rule, req)
			}
		}
		for _, req := range c.bad {
			if !p.rejects([]byte(req)) {
				t.Errorf("%s takes %s", c.rule, req)
			}
		}
	}
}

// The examples that a case gives must agree with its rule; else the fake
// upstream would judge by something else than the case means.
func TestExamplesAgreeWithTheirRules(t *testing.T) {
	for _, c := range allFaults(t) {
		if c.RejectIf == nil {
			continue
		}
		if len(c.Request) > 0 && !c.RejectIf.rejects(c.Request) {
			t.Errorf("%s: the rejected example is accepted: %s", c.ID, c.Request)
		}
		if len(c.Healed) > 0 && c.RejectIf.rejects(c.Healed) {
			t.Errorf("%s: the healed example is rejected: %s", c.ID, c.Healed)
		}
	}
}
