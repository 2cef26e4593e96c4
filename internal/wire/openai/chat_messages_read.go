package openai

import (
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatMessages reads the messages of a request.
func chatMessages(raw []byte) ([]ninelives.Message, error) {
	var list []ninelives.Message
	names := map[string]string{} // of tools, by call id
	i := 0
	for el := range rawjson.Elements(raw) {
		if rawjson.Kind(el) != '{' {
			return nil, chatBadRequest("", "messages[%d] is not an object", i)
		}
		role := rawjson.String(rawjson.Get(el, "role"))
		if role == "" {
			return nil, chatBadRequest("", "messages[%d] has no role", i)
		}
		if content := rawjson.Kind(rawjson.Get(el, "content")); content != 0 && content != 'n' && content != '"' && content != '[' {
			return nil, chatBadRequest("", "messages[%d].content must be a string or a list of parts", i)
		}
		switch role {
		case "tool", "function":
			r := chatResult(el)
			if role == "function" { // it has no id: the call is the last one of its name
				r.CallID = names["\x00"+r.Name]
			} else if r.Name == "" {
				r.Name = names[r.CallID]
			}
			if n := len(list); n > 0 && list[n-1].Role == ninelives.RoleTool {
				list[n-1].Parts = append(list[n-1].Parts, r)
			} else {
				list = append(list, ninelives.Message{Role: ninelives.RoleTool, Parts: []ninelives.Part{r}})
			}
		case "assistant":
			m := chatAssistant(el, i)
			for _, c := range m.ToolCalls() {
				names[c.ID], names["\x00"+c.Name] = c.Name, c.ID
			}
			list = append(list, m)
		default:
			list = append(list, chatMessage(el, ninelives.Role(role)))
		}
		i++
	}
	return list, nil
}

// chatMessage reads a message of the user, or an instruction.
func chatMessage(raw []byte, role ninelives.Role) ninelives.Message {
	m := ninelives.Message{Role: role}
	var kept rawjson.Kept
	for member := range rawjson.Members(raw) {
		switch string(member.Name) {
		case "role":
		case "content":
			m.Parts = chatContent(member.Value)
		case "name":
			if m.Name = rawjson.String(member.Value); m.Name == "" {
				kept.Add(member)
			}
		default:
			kept.Add(member)
		}
	}
	m.Extra = chatExtra(kept.Object())
	return m
}

// chatResult reads the result of a call.
func chatResult(raw []byte) ninelives.ToolResult {
	var r ninelives.ToolResult
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "role":
		case "content":
			r.Content = chatContent(m.Value)
		case "tool_call_id":
			r.CallID = rawjson.String(m.Value)
		case "name":
			r.Name = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	r.Extra = chatExtra(kept.Object())
	return r
}

// chatAssistant reads an answer of the model in a history.
func chatAssistant(raw []byte, place int) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleAssistant}
	var kept rawjson.Kept
	var content, refusal, calls, old, details, annotations []byte
	reasoning := make([][]byte, len(chatReasoningFields))
	own := func(name string) bool {
		for i, field := range chatReasoningFields {
			if field == name {
				return reasoning[i] != nil
			}
		}
		return false
	}
	for member := range rawjson.Members(raw) {
		switch name := string(member.Name); name {
		case "role":
		case "content":
			content = member.Value
		case "refusal":
			refusal = member.Value
		case "tool_calls":
			calls = member.Value
		case "function_call":
			old = member.Value
		case "reasoning_details":
			details = member.Value
		case "annotations":
			annotations = member.Value
		case "name":
			if m.Name = rawjson.String(member.Value); m.Name == "" {
				kept.Add(member)
			}
		default:
			if rawjson.Kind(member.Value) == '"' {
				for i, field := range chatReasoningFields {
					if field == name {
						reasoning[i] = member.Value
					}
				}
			}
			if !own(name) {
				kept.Add(member)
			}
		}
	}
	if r, ok := chatThought(reasoning, details); ok {
		m.Parts = append(m.Parts, r)
	}
	m.Parts = append(m.Parts, chatContent(content)...)
	if text := rawjson.String(refusal); text != "" {
		m.Parts = append(m.Parts, ninelives.Refusal{Text: text})
	}
	i := 0
	for el := range rawjson.Elements(calls) {
		m.Parts = append(m.Parts, chatCall(el, place, i))
		i++
	}
	if name := rawjson.String(rawjson.Get(old, "name")); name != "" {
		c := ninelives.ToolCall{Name: name, Arguments: rawjson.String(rawjson.Get(old, "arguments"))}
		c.ID = wire.MadeID(fmt.Sprint("history/", place), i, c.Name, c.Arguments)
		m.Parts = append(m.Parts, c)
	}
	chatCite(&m, annotations, &kept)
	m.Extra = chatExtra(kept.Object())
	return m
}

// chatThought reads the reasoning of a message: the first of the fields that
// has any, and the details whole. A field that is there and empty counts too:
// some servers want it back.
func chatThought(fields [][]byte, details []byte) (ninelives.Reasoning, bool) {
	var r ninelives.Reasoning
	found := false
	for i, raw := range fields {
		if raw == nil || found && len(raw) == 2 {
			continue
		}
		if !found || r.Text == "" {
			r.Text, r.Provenance.Field, found = rawjson.String(raw), chatReasoningFields[i], true
		}
	}
	if rawjson.Kind(details) == '[' && !rawjson.Empty(details) {
		if r.Text == "" {
			r.Text = string(chatDetailsText(nil, details))
		}
		r.Provenance.Field, r.Provenance.Blob = chatDetailsField, string(details)
		r.Redacted, found = r.Text == "", true
	}
	return r, found
}

// chatCite puts annotations to the last text of a message.
func chatCite(m *ninelives.Message, annotations []byte, kept *rawjson.Kept) {
	var list [][]byte
	for a := range rawjson.Elements(annotations) {
		list = append(list, append([]byte(nil), a...))
	}
	if len(list) == 0 {
		return
	}
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if t, ok := m.Parts[i].(ninelives.Text); ok {
			t.Citations = chatCitations(list)
			m.Parts[i] = t
			return
		}
	}
	chatKeepNested(kept, "annotations", annotations)
}

// chatCall reads a call of a history.
func chatCall(raw []byte, message, place int) ninelives.ToolCall {
	var c ninelives.ToolCall
	var outer, inner rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "id":
			c.ID = rawjson.String(m.Value)
		case "type", "index":
		case "function":
			for f := range rawjson.Members(m.Value) {
				switch string(f.Name) {
				case "name":
					c.Name = rawjson.String(f.Value)
				case "arguments":
					if rawjson.Kind(f.Value) == '"' {
						c.Arguments = rawjson.String(f.Value)
					} else if !rawjson.Null(f.Value) {
						c.Arguments = string(f.Value)
					}
				default:
					inner.Add(f)
				}
			}
		case "custom":
			c.Name, c.Arguments = rawjson.String(rawjson.Get(m.Value, "name")), string(rawjson.Get(m.Value, "input"))
			outer.Add(m)
		case "extra_content":
			c.Signature = rawjson.String(rawjson.Path(m.Value, "google", "thought_signature"))
			if c.Signature != "" {
				c.Provenance.Field = chatSignatureField
			}
			if c.Signature == "" || !chatOnlySignature(m.Value) {
				outer.Add(m)
			}
		case "cache_control":
			if c.Cache = chatCacheHint(m.Value); c.Cache == nil {
				outer.Add(m)
			}
		default:
			outer.Add(m)
		}
	}
	if c.ID == "" {
		c.ID = wire.MadeID(fmt.Sprint("history/", message), place, c.Name, c.Arguments)
	}
	chatKeepNested(&outer, "function", inner.Object())
	c.Extra = chatExtra(outer.Object())
	return c
}

// chatContent reads the content of a message: a text or a list of parts.
func chatContent(raw []byte) []ninelives.Part {
	if rawjson.Kind(raw) == '"' {
		if len(raw) == 2 {
			return nil
		}
		return []ninelives.Part{ninelives.Text{Text: rawjson.String(raw)}}
	}
	var parts []ninelives.Part
	for el := range rawjson.Elements(raw) {
		parts = append(parts, chatContentPart(el))
	}
	return parts
}

// chatContentPart reads an element of a content array.
func chatContentPart(raw []byte) ninelives.Part {
	kind := rawjson.String(rawjson.Get(raw, "type"))
	body := rawjson.Get(raw, kind)
	switch {
	case kind == "text" && rawjson.Kind(body) == '"':
		return ninelives.Text{Text: rawjson.String(body), Meta: chatMeta(raw, nil, "type", "text")}
	case kind == "refusal" && rawjson.Kind(body) == '"':
		return ninelives.Refusal{Text: rawjson.String(body), Meta: chatMeta(raw, nil, "type", "refusal")}
	case kind == "image_url" && rawjson.Kind(body) == '"': // Mistral
		return chatImage(rawjson.String(body), "", chatMeta(raw, nil, "type", "image_url"))
	case kind == "image_url" && rawjson.Kind(rawjson.Get(body, "url")) == '"':
		rest := chatRest(body, "url", "detail")
		return chatImage(rawjson.String(rawjson.Get(body, "url")), rawjson.String(rawjson.Get(body, "detail")), chatMeta(raw, rest, "type", "image_url"))
	case kind == "input_audio":
		if data, ok := rawjson.Base64(rawjson.String(rawjson.Get(body, "data"))); ok {
			format := rawjson.String(rawjson.Get(body, "format"))
			return ninelives.File{MediaType: "audio/" + format, Data: data, Meta: chatMeta(raw, chatRest(body, "data", "format"), "type", "input_audio")}
		}
	case kind == "file":
		if f, ok := chatFile(body); ok {
			f.Meta = chatMeta(raw, chatRest(body, "filename", "file_id", "file_data"), "type", "file")
			return f
		}
	case kind == "thinking":
		return chatThinking(raw)
	}
	return ninelives.Opaque{Kind: kind, Raw: chatExtra(append([]byte(nil), raw...))}
}

func chatImage(url, detail string, meta ninelives.Meta) ninelives.Image {
	if mediaType, data, ok := rawjson.DataURL(url); ok {
		return ninelives.Image{MediaType: mediaType, Data: data, Detail: detail, Meta: meta}
	}
	return ninelives.Image{URL: url, Detail: detail, Meta: meta}
}

func chatFile(body []byte) (ninelives.File, bool) {
	f := ninelives.File{
		Name:   rawjson.String(rawjson.Get(body, "filename")),
		FileID: rawjson.String(rawjson.Get(body, "file_id")),
	}
	data := rawjson.String(rawjson.Get(body, "file_data"))
	if data != "" {
		var ok bool
		if f.MediaType, f.Data, ok = rawjson.DataURL(data); !ok {
			f.MediaType, f.Data, f.URL = "", nil, data
		}
	}
	return f, (f.FileID == "") != (data == "")
}

// chatThinking reads Mistral's thinking part of a history.
func chatThinking(raw []byte) ninelives.Part {
	thinking := rawjson.Get(raw, "thinking")
	text := rawjson.AppendString(nil, thinking)
	for el := range rawjson.Elements(thinking) {
		text = rawjson.AppendString(text, rawjson.Get(el, "text"))
	}
	return ninelives.Reasoning{
		Text:       string(text),
		Provenance: ninelives.Provenance{Field: wire.FieldThinkingPart},
		Meta:       chatMeta(raw, nil, "type", "thinking"),
	}
}

// chatMeta reads what any part may carry: its cache hint and its unknown
// members; nested are those of the object under the part's own name.
func chatMeta(raw, nested []byte, known ...string) ninelives.Meta {
	var meta ninelives.Meta
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		name := string(m.Name)
		if name == "cache_control" {
			if meta.Cache = chatCacheHint(m.Value); meta.Cache != nil {
				continue
			}
		}
		if !chatIn(known, name) {
			kept.Add(m)
		}
	}
	chatKeepNested(&kept, known[1], nested)
	meta.Extra = chatExtra(kept.Object())
	return meta
}
