package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeResponsesRequest reads the body of POST /responses as a server gets
// it. Who made the reasoning in it is not known: its Provenance has no
// Provider. The error is a *ninelives.Fault of class format, in words for the
// client.
func DecodeResponsesRequest(body []byte) (wire.Incoming, error) {
	if rawjson.Kind(body) != '{' || !rawjson.Valid(body) {
		return wire.Incoming{}, responsesBadRequest("the body is not a JSON object")
	}
	req, stream := &ninelives.Request{}, false
	var kept rawjson.Kept
	var input, instructions []byte
	for m := range rawjson.Members(body) {
		known := true
		switch string(m.Name) {
		case "model":
			req.Model = rawjson.String(m.Value)
		case "input":
			input = m.Value
		case "instructions":
			if known = rawjson.Kind(m.Value) == '"'; known {
				instructions = m.Value
			}
		case "stream":
			stream, known = rawjson.Bool(m.Value)
		case "tools":
			req.Tools = responsesTools(m.Value)
		case "tool_choice":
			known = responsesToolChoice(&req.ToolChoice, m.Value)
		case "parallel_tool_calls":
			req.ParallelTools, known = rawjson.Optional(rawjson.Bool(m.Value))
		case "max_output_tokens":
			req.MaxTokens, known = responsesCount(m.Value)
		case "temperature":
			req.Temperature, known = rawjson.Optional(rawjson.Float(m.Value))
		case "top_p":
			req.TopP, known = rawjson.Optional(rawjson.Float(m.Value))
		case "frequency_penalty":
			req.FrequencyPenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "presence_penalty":
			req.PresencePenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "top_logprobs":
			req.TopLogprobs, known = responsesCount(m.Value)
		case "reasoning":
			known = responsesReasoningOptions(&req.Reasoning, m.Value)
		case "text":
			known = responsesOutput(req, &kept, m.Value)
		case "include":
			n := 0
			for el := range rawjson.Elements(m.Value) {
				n++
				req.Logprobs = req.Logprobs || rawjson.Is(el, responsesIncludeLogprobs)
			}
			known = req.Logprobs && n == 1
		case "metadata":
			req.Metadata, known = responsesMetadata(m.Value)
		case "prompt_cache_key":
			req.CacheKey = rawjson.String(m.Value)
			known = req.CacheKey != ""
		case "user":
			req.User = rawjson.String(m.Value)
			known = req.User != ""
		default:
			known = false
		}
		if !known {
			kept.Add(m)
		}
	}
	req.Extra = responsesExtra(kept.Object())
	messages, err := responsesInput(input)
	if err != nil {
		return wire.Incoming{}, err
	}
	req.Messages = messages
	if wire.Marked(body) {
		wire.Restore(req.Messages)
	}
	if instructions != nil {
		req.Messages = append([]ninelives.Message{ninelives.SystemText(rawjson.String(instructions))}, req.Messages...)
	} else if len(req.Messages) > 0 && isResponsesInstructions(req.Messages[0]) {
		req.Messages[0].Extra = responsesExtra([]byte("{}")) // it came as an item
	}
	return wire.Incoming{Request: req, Stream: stream}, nil
}

// responsesInput reads the input: a text, or a list of items.
func responsesInput(raw []byte) ([]ninelives.Message, error) {
	switch rawjson.Kind(raw) {
	case '"':
		return []ninelives.Message{ninelives.UserText(rawjson.String(raw))}, nil
	case '[':
	case 0, 'n':
		return nil, nil // previous_response_id or a stored prompt may be all there is
	default:
		return nil, responsesBadRequest("input must be a string or a list of items")
	}
	var messages []ninelives.Message
	last := func(role ninelives.Role) *ninelives.Message {
		if n := len(messages); n > 0 && messages[n-1].Role == role {
			return &messages[n-1]
		}
		messages = append(messages, ninelives.Message{Role: role})
		return &messages[len(messages)-1]
	}
	names := map[string]string{} // of tools, by call id
	var r responsesReader
	for el := range rawjson.Elements(raw) {
		if rawjson.Kind(el) != '{' {
			return nil, responsesBadRequest("an item of the input is not an object: %.40s", el)
		}
		kind, role := rawjson.Get(el, "type"), rawjson.String(rawjson.Get(el, "role"))
		switch {
		case rawjson.Is(kind, "function_call_output"):
			p := r.functionResult(el)
			p.Name = names[p.CallID]
			m := last(ninelives.RoleTool)
			m.Parts = append(m.Parts, p)
		case role != "" && role != "assistant" && (kind == nil || rawjson.Is(kind, "message")):
			messages = append(messages, r.userMessage(el, ninelives.Role(role)))
		default:
			parts, id := r.item(el)
			if _, other := parts[0].(ninelives.Opaque); other && len(messages) > 0 && messages[len(messages)-1].Role == ninelives.RoleTool {
				m := last(ninelives.RoleTool)
				m.Parts = append(m.Parts, parts...)
				continue
			}
			m := last(ninelives.RoleAssistant)
			addResponsesItem(m, parts, id)
			for _, c := range (ninelives.Message{Parts: parts}).ToolCalls() {
				names[c.ID] = c.Name
			}
		}
	}
	return messages, nil
}

// addResponsesItem adds the parts of an item to a turn. The id of the turn's first
// message item is the turn's; later ones keep theirs with the item.
func addResponsesItem(m *ninelives.Message, parts []ninelives.Part, id string) {
	if id != "" {
		if m.ID == "" && !hasResponsesMessage(m.Parts) {
			m.ID = id
		} else {
			parts[0] = responsesWithItemID(parts[0], id)
		}
	}
	m.Parts = append(m.Parts, parts...)
}

func hasResponsesMessage(parts []ninelives.Part) bool {
	for _, p := range parts {
		switch p.(type) {
		case ninelives.Text, ninelives.Refusal:
			return true
		}
	}
	return false
}

// responsesWithItemID puts the id among the members of the item that begins with part.
func responsesWithItemID(part ninelives.Part, id string) ninelives.Part {
	change := func(meta *ninelives.Meta) {
		members, _ := responsesItemOf(meta.Extra)
		var item, w rawjson.Writer
		at := item.Open('{')
		item.StringMember("id", id)
		item.Rest(at, members, nil)
		item.Close('}')
		at = w.Open('{')
		w.Rest(at, meta.Extra.JSON, []string{responsesItemKey})
		w.RawMember(responsesItemKey, item.B)
		w.Close('}')
		meta.Extra = responsesExtra(w.B)
	}
	switch p := part.(type) {
	case ninelives.Text:
		change(&p.Meta)
		return p
	case ninelives.Refusal:
		change(&p.Meta)
		return p
	}
	return part
}

// userMessage reads a message item of anybody but the assistant.
func (r *responsesReader) userMessage(raw []byte, role ninelives.Role) ninelives.Message {
	m := ninelives.Message{Role: role}
	var kept rawjson.Kept
	for member := range rawjson.Members(raw) {
		switch string(member.Name) {
		case "type", "role":
		case "id":
			m.ID = rawjson.String(member.Value)
		case "content":
			m.Parts = r.content(member.Value)
		default:
			kept.Add(member)
		}
	}
	members := kept.Object()
	if members == nil && m.ID != "" {
		members = []byte("{}") // the id is one of this protocol
	}
	m.Extra = responsesExtra(members)
	return m
}

func responsesTools(raw []byte) []ninelives.Tool {
	var tools []ninelives.Tool
	for el := range rawjson.Elements(raw) {
		var t ninelives.Tool
		if kind := rawjson.String(rawjson.Get(el, "type")); kind != "function" {
			t.Kind, t.Name, t.Extra = kind, rawjson.String(rawjson.Get(el, "name")), responsesExtra(bytes.Clone(el))
			tools = append(tools, t)
			continue
		}
		var kept rawjson.Kept
		for m := range rawjson.Members(el) {
			known := true
			switch string(m.Name) {
			case "type":
			case "name":
				t.Name = rawjson.String(m.Value)
			case "description":
				t.Description = rawjson.String(m.Value)
			case "parameters":
				if known = rawjson.Kind(m.Value) == '{'; known {
					t.Schema = bytes.Clone(m.Value)
				}
			case "strict":
				t.Strict, known = rawjson.Optional(rawjson.Bool(m.Value))
			default:
				known = false
			}
			if !known {
				kept.Add(m)
			}
		}
		members := kept.Object()
		if members == nil && (t.Strict == nil || t.Schema == nil) {
			members = []byte("{}") // what is missing means what this protocol says
		}
		t.Extra = responsesExtra(members)
		tools = append(tools, t)
	}
	return tools
}

func responsesToolChoice(c *ninelives.ToolChoice, raw []byte) bool {
	switch rawjson.Kind(raw) {
	case '"':
		switch mode := ninelives.ToolChoiceMode(rawjson.String(raw)); mode {
		case ninelives.ToolChoiceAuto, ninelives.ToolChoiceNone, ninelives.ToolChoiceRequired:
			c.Mode = mode
			return true
		}
		return false
	case '{':
	default:
		return false
	}
	kind, members := rawjson.Get(raw, "type"), 0
	for range rawjson.Members(raw) {
		members++
	}
	switch {
	case rawjson.Is(kind, "function"):
		c.Mode, c.Name = ninelives.ToolChoiceTool, rawjson.String(rawjson.Get(raw, "name"))
		if members == 2 && c.Name != "" {
			return true
		}
	case rawjson.Is(kind, "allowed_tools"):
		c.Mode = ninelives.ToolChoiceMode(rawjson.String(rawjson.Get(raw, "mode")))
	}
	c.Extra = responsesExtra(bytes.Clone(raw))
	return true
}

func responsesReasoningOptions(o *ninelives.ReasoningOptions, raw []byte) bool {
	if rawjson.Kind(raw) != '{' {
		return false
	}
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch {
		case string(m.Name) == "effort" && rawjson.Kind(m.Value) == '"':
			o.Effort = rawjson.String(m.Value)
		case string(m.Name) == "summary" && rawjson.Kind(m.Value) == '"':
			o.Summary = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	o.Extra = responsesExtra(kept.Object())
	return true
}

// responsesOutput reads the text parameter. What it says beyond the form of
// the answer is kept.
func responsesOutput(req *ninelives.Request, kept *rawjson.Kept, raw []byte) bool {
	format := rawjson.Get(raw, "format")
	kind := rawjson.Get(format, "type")
	isSchema := rawjson.Is(kind, "json_schema")
	if !isSchema && !rawjson.Is(kind, "json_object") {
		return false
	}
	out := &ninelives.Output{}
	var rest, formatRest rawjson.Kept
	for m := range rawjson.Members(format) {
		known := true
		switch string(m.Name) {
		case "type":
		case "name":
			out.Name = rawjson.String(m.Value)
		case "description":
			out.Description = rawjson.String(m.Value)
		case "schema":
			if known = isSchema; known {
				out.Schema = bytes.Clone(m.Value)
			}
		case "strict":
			out.Strict, known = rawjson.Optional(rawjson.Bool(m.Value))
		default:
			known = false
		}
		if !known {
			formatRest.Add(m)
		}
	}
	for m := range rawjson.Members(raw) {
		if string(m.Name) != "format" {
			rest.Add(m)
			continue
		}
		if o := formatRest.Object(); o != nil {
			rest.Add(rawjson.Member{Raw: append([]byte(`"format":`), o...)})
		}
	}
	if o := rest.Object(); o != nil {
		kept.Add(rawjson.Member{Raw: append([]byte(`"text":`), o...)})
	}
	req.Output = out
	return true
}

func responsesMetadata(raw []byte) (map[string]string, bool) {
	if rawjson.Empty(raw) {
		return nil, false
	}
	var m map[string]string
	for el := range rawjson.Members(raw) {
		if rawjson.Kind(el.Value) != '"' {
			return nil, false
		}
		if m == nil {
			m = map[string]string{}
		}
		m[string(el.Name)] = rawjson.String(el.Value)
	}
	return m, m != nil
}

// responsesCount reads a count; zero and what is no whole number are not taken for one.
func responsesCount(raw []byte) (int, bool) {
	v, ok := rawjson.Int(raw)
	if !ok || v <= 0 {
		return 0, false
	}
	return int(v), true
}
