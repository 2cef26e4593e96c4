package anthropic

import (
	"bytes"
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeRequest reads a client's request. Where reasoning in it comes from is
// not known: its Provenance has no Provider.
//
// A system message inside the messages has an Extra of this protocol, if only
// an empty one: it goes back there and not into the system parameter.
//
// The error is a *ninelives.Fault of class format, in words for the client.
func DecodeRequest(body []byte) (wire.Incoming, error) {
	if !rawjson.Valid(body) || rawjson.Kind(body) != '{' {
		return wire.Incoming{}, malformed("the body is not a JSON object")
	}
	d := requestReader{in: wire.Incoming{Request: &ninelives.Request{}}}
	for m := range rawjson.Members(body) {
		if err := d.member(m); err != nil {
			return wire.Incoming{}, err
		}
	}
	req := d.in.Request
	if len(d.messages) == 0 {
		return wire.Incoming{}, malformed("messages: at least one message is required")
	}
	req.Messages = append(d.system, d.messages...)
	if wire.Marked(body) {
		wire.Restore(req.Messages)
	}
	d.config()
	req.Extra = extra(d.kept.Object())
	return d.in, nil
}

func malformed(format string, args ...any) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Status: 400, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...),
	}
}

// requestReader reads the members of a request.
type requestReader struct {
	in               wire.Incoming
	blocks           reader
	system, messages []ninelives.Message
	thinking         []byte
	outputConfig     []byte
	kept             rawjson.Kept
}

func (d *requestReader) member(m rawjson.Member) error {
	req := d.in.Request
	known := true
	switch string(m.Name) {
	case "model":
		req.Model = rawjson.String(m.Value)
	case "stream":
		d.in.Stream, _ = rawjson.Bool(m.Value)
	case "max_tokens":
		n, ok := rawjson.Int(m.Value)
		if known = ok && n > 0; known {
			req.MaxTokens = int(n)
		}
	case "system":
		if parts := d.blocks.content(m.Value); len(parts) > 0 {
			d.system = []ninelives.Message{{Role: ninelives.RoleSystem, Parts: parts}}
		}
	case "messages":
		if rawjson.Kind(m.Value) != '[' {
			return malformed("messages: a list is required")
		}
		i := 0
		for raw := range rawjson.Elements(m.Value) {
			if err := d.message(raw, i); err != nil {
				return err
			}
			i++
		}
	case "temperature":
		known = floatInto(&req.Temperature, m.Value)
	case "top_p":
		known = floatInto(&req.TopP, m.Value)
	case "top_k":
		n, ok := rawjson.Int(m.Value)
		if known = ok; ok {
			k := int(n)
			req.TopK = &k
		}
	case "stop_sequences":
		for s := range rawjson.Elements(m.Value) {
			req.Stop = append(req.Stop, rawjson.String(s))
		}
		known = len(req.Stop) > 0
	case "tools":
		for raw := range rawjson.Elements(m.Value) {
			req.Tools = append(req.Tools, tool(raw))
		}
		known = len(req.Tools) > 0
	case "tool_choice":
		known = d.choice(m.Value)
	case "thinking":
		if known = rawjson.Kind(m.Value) == '{'; known {
			d.thinking = m.Value
		}
	case "output_config":
		if known = rawjson.Kind(m.Value) == '{'; known {
			d.outputConfig = m.Value
		}
	case "output_format":
		known = d.format(m.Value)
	case "metadata":
		known = d.user(m.Value)
	default:
		known = false
	}
	if !known {
		d.kept.Add(m)
	}
	return nil
}

func floatInto(p **float64, v []byte) bool {
	f, ok := rawjson.Float(v)
	if ok {
		*p = &f
	}
	return ok
}

// user reads metadata that only names the end user; any other is kept.
func (d *requestReader) user(raw []byte) bool {
	id := rawjson.Get(raw, "user_id")
	d.in.Request.User = rawjson.String(id)
	return rawjson.Kind(id) == '"' && without(raw, "user_id") == nil
}

// message reads one message; results of tools in it become one of their own.
func (d *requestReader) message(raw []byte, i int) error {
	var role string
	var content []byte
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "role":
			role = rawjson.String(m.Value)
		case "content":
			content = m.Value
		default:
			kept.Add(m)
		}
	}
	m := ninelives.Message{Role: ninelives.Role(role), Parts: d.blocks.content(content), Extra: extra(kept.Object())}
	switch m.Role {
	case ninelives.RoleAssistant:
	case ninelives.RoleSystem:
		if m.Extra.JSON == nil {
			m.Extra = extra([]byte("{}"))
		}
	case ninelives.RoleUser:
		var results, rest []ninelives.Part
		for _, p := range m.Parts {
			if _, ok := p.(ninelives.ToolResult); ok {
				results = append(results, p)
			} else {
				rest = append(rest, p)
			}
		}
		if len(results) > 0 {
			answer := ninelives.Message{Role: ninelives.RoleTool, Parts: results}
			if len(rest) == 0 {
				answer.Extra = m.Extra
			}
			d.messages = append(d.messages, answer)
			if len(rest) == 0 {
				return nil
			}
		}
		m.Parts = rest
	default:
		return malformed("messages.%d.role: %q is none of user, assistant and system", i, role)
	}
	d.messages = append(d.messages, m)
	return nil
}

// tool reads a tool. One of the provider's own is kept whole.
func tool(raw []byte) ninelives.Tool {
	var t ninelives.Tool
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
			if t.Kind = rawjson.String(m.Value); t.Kind == "custom" {
				t.Kind = ""
			}
		case "name":
			t.Name = rawjson.String(m.Value)
		case "description":
			t.Description = rawjson.String(m.Value)
		case "input_schema":
			t.Schema = bytes.Clone(m.Value)
		case "strict":
			if b, ok := rawjson.Bool(m.Value); ok {
				t.Strict = &b
			}
		default:
			common(m, &t.Meta, &kept)
		}
	}
	if t.Kind != "" {
		return ninelives.Tool{Kind: t.Kind, Name: t.Name, Meta: ninelives.Meta{Extra: extra(bytes.Clone(raw))}}
	}
	t.Extra = extra(kept.Object())
	return t
}

func (d *requestReader) choice(raw []byte) bool {
	req := d.in.Request
	modes := map[string]ninelives.ToolChoiceMode{
		"auto": ninelives.ToolChoiceAuto, "none": ninelives.ToolChoiceNone,
		"any": ninelives.ToolChoiceRequired, "tool": ninelives.ToolChoiceTool,
	}
	mode, ok := modes[rawjson.String(rawjson.Get(raw, "type"))]
	if !ok {
		return false
	}
	req.ToolChoice = ninelives.ToolChoice{Mode: mode, Name: rawjson.String(rawjson.Get(raw, "name"))}
	if disable, ok := rawjson.Bool(rawjson.Get(raw, "disable_parallel_tool_use")); ok {
		parallel := !disable
		req.ParallelTools = &parallel
	}
	if without(raw, "type", "name", "disable_parallel_tool_use") != nil {
		req.ToolChoice.Extra = extra(bytes.Clone(raw))
	}
	return true
}

// format reads the form of the answer.
func (d *requestReader) format(raw []byte) bool {
	schema := rawjson.Get(raw, "schema")
	if !rawjson.Is(rawjson.Get(raw, "type"), "json_schema") || rawjson.Kind(schema) != '{' {
		return false
	}
	d.in.Request.Output = &ninelives.Output{Schema: bytes.Clone(schema)}
	return true
}

// config reads thinking, effort and format. Thinking is kept in its own form
// too: it says more than an effort.
func (d *requestReader) config() {
	r := &d.in.Request.Reasoning
	if d.thinking != nil {
		r.Extra = extra(bytes.Clone(d.thinking))
		n, _ := rawjson.Int(rawjson.Get(d.thinking, "budget_tokens"))
		r.Budget = int(n)
	}
	if d.thinking == nil && has(d.outputConfig, "effort") {
		r.Extra = extra([]byte("{}")) // an effort by itself asks for no thinking
	}
	disabled := rawjson.Is(rawjson.Get(d.thinking, "type"), "disabled")
	if disabled {
		r.Effort = "none"
	}
	var rest rawjson.Kept
	for m := range rawjson.Members(d.outputConfig) {
		switch string(m.Name) {
		case "effort":
			if !disabled && rawjson.Kind(m.Value) == '"' {
				r.Effort = rawjson.String(m.Value)
				continue
			}
		case "format":
			if d.format(m.Value) {
				continue
			}
		}
		rest.Add(m)
	}
	if left := rest.Object(); left != nil {
		d.kept.Add(rawjson.Member{Raw: append([]byte(`"output_config":`), left...)})
	}
}
