package openai

import (
	"bytes"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// An item of the Responses protocol is a message, a piece of reasoning, a call,
// the result of one, or something that the server did by itself. The turn of
// an assistant is a run of items; here it is one Message, whose parts are the
// content parts of its items in order. So that nothing is lost on the way back:
//
//   - The Extra of a part holds the unknown members of its content part. The
//     first part of a message or reasoning item also has there, under
//     responsesItemKey, an object of the unknown members of the item itself.
//     Its presence says that an item begins here.
//   - A function call is an item by itself: its Extra holds the item's members.
//   - Every part of one reasoning item carries the item's ID and Provenance.
//   - Items and content parts of other kinds are Opaque.
const responsesItemKey = "item"

// The wire fields that reasoning is read from (Provenance.Field).
const (
	responsesSummary   = "summary"
	responsesContent   = "content"
	responsesEncrypted = "encrypted_content"
)

// responsesExtra tags raw members with their protocol.
func responsesExtra(raw []byte) ninelives.Extra {
	if raw == nil {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: raw}
}

// responsesReader reads items. names maps the names of tools as they were sent
// to the caller's own, outputTool is the tool whose arguments are the answer.
type responsesReader struct {
	provenance ninelives.Provenance // Provider and Model of what is read
	names      map[string]string
	outputTool string
}

// item reads one item of an assistant's turn. The parts belong to the message
// whose id is messageID, if it is one.
func (r *responsesReader) item(raw []byte) (parts []ninelives.Part, messageID string) {
	switch kind := rawjson.Get(raw, "type"); {
	case rawjson.Is(kind, "message"), kind == nil && rawjson.Get(raw, "role") != nil:
		return r.message(raw)
	case rawjson.Is(kind, "reasoning"):
		return r.reasoning(raw), ""
	case rawjson.Is(kind, "function_call"):
		return []ninelives.Part{r.functionCall(raw)}, ""
	}
	return []ninelives.Part{responsesOpaque(raw)}, ""
}

// message reads a message item of an assistant.
func (r *responsesReader) message(raw []byte) (parts []ninelives.Part, id string) {
	var content []byte
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type", "role":
		case "id":
			id = rawjson.String(m.Value)
		case "content":
			content = m.Value
		default:
			kept.Add(m)
		}
	}
	parts = r.content(content)
	if len(parts) > 0 {
		if _, opaque := parts[0].(ninelives.Opaque); !opaque {
			parts[0] = responsesWithItem(parts[0], kept.Object())
			return parts, id
		}
	}
	// There is no part to note the item on: an empty text stands for it.
	kept.Add(rawjson.Member{Raw: []byte(`"content":[]`)})
	head := responsesWithItem(ninelives.Text{}, kept.Object())
	return append([]ninelives.Part{head}, parts...), id
}

// content reads the content of a message or of a tool's result: a string or
// a list of parts.
func (r *responsesReader) content(raw []byte) []ninelives.Part {
	if rawjson.Kind(raw) == '"' {
		return []ninelives.Part{ninelives.Text{Text: rawjson.String(raw)}}
	}
	var parts []ninelives.Part
	for el := range rawjson.Elements(raw) {
		parts = append(parts, r.contentPart(el))
	}
	return parts
}

func (r *responsesReader) contentPart(raw []byte) ninelives.Part {
	kind := rawjson.Get(raw, "type")
	switch {
	case rawjson.Is(kind, "output_text"), rawjson.Is(kind, "input_text"), rawjson.Is(kind, "text"):
		return responsesText(raw)
	case rawjson.Is(kind, "refusal"):
		var p ninelives.Refusal
		p.Text, p.Extra = responsesOne(raw, "refusal")
		return p
	case rawjson.Is(kind, "input_image"):
		if p, ok := responsesImage(raw); ok {
			return p
		}
	case rawjson.Is(kind, "input_file"):
		if p, ok := responsesFile(raw); ok {
			return p
		}
	case rawjson.Is(kind, "input_audio"):
		if p, ok := responsesAudio(raw); ok {
			return p
		}
	}
	return responsesOpaque(raw)
}

// responsesText reads a content part of text.
func responsesText(raw []byte) ninelives.Text {
	var p ninelives.Text
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "text":
			p.Text = rawjson.String(m.Value)
		case "annotations":
			p.Citations = responsesCitations(m.Value)
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	return p
}

func responsesCitations(raw []byte) []ninelives.Citation {
	var list []ninelives.Citation
	for el := range rawjson.Elements(raw) {
		c := ninelives.Citation{Raw: responsesExtra(bytes.Clone(el))}
		for m := range rawjson.Members(el) {
			switch string(m.Name) {
			case "url":
				c.URL = rawjson.String(m.Value)
			case "title":
				c.Title = rawjson.String(m.Value)
			case "filename":
				if c.Title == "" {
					c.Title = rawjson.String(m.Value)
				}
			case "quote":
				c.Quote = rawjson.String(m.Value)
			}
		}
		list = append(list, c)
	}
	return list
}

// responsesOne reads a part that has one string beside its type.
func responsesOne(raw []byte, name string) (string, ninelives.Extra) {
	var s string
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case name:
			s = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	return s, responsesExtra(kept.Object())
}

func responsesImage(raw []byte) (ninelives.Image, bool) {
	var p ninelives.Image
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "image_url":
			if rawjson.Null(m.Value) {
				continue
			}
			if p.URL = rawjson.String(m.Value); p.URL == "" {
				return p, false
			}
			if mt, data, ok := rawjson.DataURL(p.URL); ok {
				p.URL, p.MediaType, p.Data = "", mt, data
			}
		case "file_id":
			p.FileID = rawjson.String(m.Value)
		case "detail":
			p.Detail = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	return p, exactlyOneOf(p.URL != "", p.Data != nil, p.FileID != "")
}

func responsesFile(raw []byte) (ninelives.File, bool) {
	var p ninelives.File
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "filename":
			p.Name = rawjson.String(m.Value)
		case "file_url":
			p.URL = rawjson.String(m.Value)
		case "file_id":
			p.FileID = rawjson.String(m.Value)
		case "file_data":
			if rawjson.Null(m.Value) {
				continue
			}
			var ok bool
			if p.MediaType, p.Data, ok = rawjson.DataURL(rawjson.String(m.Value)); !ok {
				return p, false
			}
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	return p, exactlyOneOf(p.URL != "", p.Data != nil, p.FileID != "")
}

func responsesAudio(raw []byte) (ninelives.File, bool) {
	var p ninelives.File
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "input_audio":
			for a := range rawjson.Members(m.Value) {
				switch string(a.Name) {
				case "data":
					var ok bool
					if p.Data, ok = rawjson.Base64(rawjson.String(a.Value)); !ok {
						return p, false
					}
				case "format":
					p.MediaType = "audio/" + rawjson.String(a.Value)
				default:
					return p, false
				}
			}
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	return p, p.Data != nil && len(p.MediaType) > len("audio/")
}

// reasoning reads a reasoning item: a part for each summary and each content.
func (r *responsesReader) reasoning(raw []byte) []ninelives.Part {
	base := ninelives.Reasoning{Provenance: r.provenance}
	var summary, content []byte
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "id":
			base.ID = rawjson.String(m.Value)
		case "summary":
			summary = m.Value
		case "content":
			content = m.Value
		case "encrypted_content":
			base.Provenance.Blob = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	var parts []ninelives.Part
	for el := range rawjson.Elements(summary) {
		p := base
		p.Text, p.Extra = responsesOne(el, "text")
		p.Summary, p.Provenance.Field = true, responsesSummary
		parts = append(parts, p)
	}
	for el := range rawjson.Elements(content) {
		p := base
		p.Text, p.Extra = responsesOne(el, "text")
		p.Provenance.Field = responsesContent
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		base.Provenance.Field = responsesEncrypted
		base.Redacted = base.Provenance.Blob != ""
		parts = append(parts, base)
	}
	parts[0] = responsesWithItem(parts[0], kept.Object())
	return parts
}

// functionCall reads a function call. One of the output tool is the text of
// the answer.
func (r *responsesReader) functionCall(raw []byte) ninelives.Part {
	var p ninelives.ToolCall
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "call_id":
			p.ID = rawjson.String(m.Value)
		case "name":
			p.Name = rawjson.String(m.Value)
		case "arguments":
			if rawjson.Kind(m.Value) == '"' {
				p.Arguments = rawjson.String(m.Value)
			} else {
				p.Arguments = string(m.Value)
			}
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	if r.outputTool != "" && p.Name == r.outputTool {
		return ninelives.Text{Text: p.Arguments}
	}
	if own, ok := r.names[p.Name]; ok {
		p.Name = own
	}
	if p.ID == "" { // some servers only give the item an id
		p.ID = rawjson.String(rawjson.Get(raw, "id"))
	}
	return p
}

// functionResult reads the result of a call.
func (r *responsesReader) functionResult(raw []byte) ninelives.ToolResult {
	var p ninelives.ToolResult
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "call_id":
			p.CallID = rawjson.String(m.Value)
		case "output":
			switch rawjson.Kind(m.Value) {
			case '"', '[':
				p.Content = r.content(m.Value)
			case 'n':
			default:
				p.Content = []ninelives.Part{ninelives.Text{Text: string(m.Value)}}
			}
		default:
			kept.Add(m)
		}
	}
	p.Extra = responsesExtra(kept.Object())
	return p
}

func responsesOpaque(raw []byte) ninelives.Opaque {
	return ninelives.Opaque{Kind: rawjson.String(rawjson.Get(raw, "type")), Raw: responsesExtra(bytes.Clone(raw))}
}

// responsesWithItem notes on a part that an item begins with it, and what
// members the item has.
func responsesWithItem(part ninelives.Part, members []byte) ninelives.Part {
	if members == nil {
		members = []byte("{}")
	}
	add := func(meta ninelives.Meta) ninelives.Meta {
		var w rawjson.Writer
		at := w.Open('{')
		w.Rest(at, meta.Extra.JSON, nil)
		w.RawMember(responsesItemKey, members)
		w.Close('}')
		meta.Extra = responsesExtra(w.B)
		return meta
	}
	switch p := part.(type) {
	case ninelives.Text:
		p.Meta = add(p.Meta)
		return p
	case ninelives.Refusal:
		p.Meta = add(p.Meta)
		return p
	case ninelives.Reasoning:
		p.Meta = add(p.Meta)
		return p
	case ninelives.Image:
		p.Meta = add(p.Meta)
		return p
	case ninelives.File:
		p.Meta = add(p.Meta)
		return p
	}
	return part
}

// responsesItemOf gives what responsesWithItem noted.
func responsesItemOf(extra ninelives.Extra) (members []byte, begins bool) {
	members = rawjson.Get(extra.For(ninelives.OpenAIResponses), responsesItemKey)
	return members, members != nil
}

// isResponsesContent tells content parts of a kind without a word here from items.
func isResponsesContent(kind string) bool {
	return strings.HasPrefix(kind, "input_") || strings.HasPrefix(kind, "output_")
}

// exactlyOneOf reports whether exactly one is true.
func exactlyOneOf(conditions ...bool) bool {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n == 1
}
