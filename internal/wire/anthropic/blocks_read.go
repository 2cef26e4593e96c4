package anthropic

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// reader reads content blocks. The zero value reads those of a request.
type reader struct {
	// provider and model are the origin of what is read; empty in a request,
	// where it is not known.
	provider, model string
	// names maps the names of tools as they were sent to the caller's own.
	names map[string]string
	// outputTool is the tool whose arguments are the text of the answer.
	outputTool string
}

// content reads the content of a message or a tool's result: a string or a
// list of blocks.
func (r reader) content(raw []byte) []ninelives.Part {
	if rawjson.Kind(raw) == '"' {
		return []ninelives.Part{ninelives.Text{Text: rawjson.String(raw)}}
	}
	var parts []ninelives.Part
	for block := range rawjson.Elements(raw) {
		parts = append(parts, r.block(block))
	}
	return parts
}

// block reads one block. What it cannot say in words becomes Opaque.
func (r reader) block(raw []byte) ninelives.Part {
	kind := rawjson.Get(raw, "type")
	switch {
	case rawjson.Is(kind, "text"):
		return r.text(raw)
	case rawjson.Is(kind, "thinking"):
		return r.thinking(raw)
	case rawjson.Is(kind, "redacted_thinking"):
		return r.redacted(raw)
	case rawjson.Is(kind, "tool_use"):
		return r.toolUse(raw)
	case rawjson.Is(kind, "tool_result"):
		return r.toolResult(raw)
	case rawjson.Is(kind, "image"):
		if p, ok := r.image(raw); ok {
			return p
		}
	case rawjson.Is(kind, "document"):
		if p, ok := r.document(raw); ok {
			return p
		}
	}
	return opaque(raw)
}

func opaque(raw []byte) ninelives.Opaque {
	return ninelives.Opaque{Kind: rawjson.String(rawjson.Get(raw, "type")), Raw: extra(bytes.Clone(raw))}
}

// common takes a member that any block may have; others are kept as they are.
func common(m rawjson.Member, meta *ninelives.Meta, kept *rawjson.Kept) {
	if string(m.Name) == "cache_control" {
		if rawjson.Null(m.Value) {
			return
		}
		if hint, ok := cacheHint(m.Value); ok {
			meta.Cache = hint
			return
		}
	}
	kept.Add(m)
}

func (r reader) text(raw []byte) ninelives.Text {
	var p ninelives.Text
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "text":
			p.Text = rawjson.String(m.Value)
		case "citations":
			for c := range rawjson.Elements(m.Value) {
				p.Citations = append(p.Citations, citation(c))
			}
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.Extra = extra(kept.Object())
	return p
}

func citation(raw []byte) ninelives.Citation {
	c := ninelives.Citation{Raw: extra(bytes.Clone(raw))}
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "url":
			c.URL = rawjson.String(m.Value)
		case "title", "document_title":
			if t := rawjson.String(m.Value); t != "" {
				c.Title = t
			}
		case "cited_text":
			c.Quote = rawjson.String(m.Value)
		}
	}
	return c
}

func (r reader) thinking(raw []byte) ninelives.Reasoning {
	p := ninelives.Reasoning{Provenance: ninelives.Provenance{Provider: r.provider, Model: r.model, Field: fieldThinking}}
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "thinking":
			p.Text = rawjson.String(m.Value)
		case "signature":
			p.Provenance.Signature = rawjson.String(m.Value)
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.Extra = extra(kept.Object())
	return p
}

func (r reader) redacted(raw []byte) ninelives.Reasoning {
	p := ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: r.provider, Model: r.model, Field: fieldRedacted}}
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "data":
			p.Provenance.Blob = rawjson.String(m.Value)
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.Extra = extra(kept.Object())
	return p
}

// toolUse reads a call; the call of the output tool is the text of the answer.
func (r reader) toolUse(raw []byte) ninelives.Part {
	var p ninelives.ToolCall
	var kept rawjson.Kept
	var input []byte
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "id":
			p.ID = rawjson.String(m.Value)
		case "name":
			p.Name = rawjson.String(m.Value)
		case "input":
			input = m.Value
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.Arguments = arguments(input)
	if r.outputTool != "" && p.Name == r.outputTool {
		return ninelives.Text{Text: p.Arguments}
	}
	p.Name = r.name(p.Name)
	p.Extra = extra(kept.Object())
	return p
}

// name gives a tool's name as the caller knows it.
func (r reader) name(sent string) string {
	if own, ok := r.names[sent]; ok {
		return own
	}
	return sent
}

// arguments are those of a whole call: none are {}, and an object that was
// written into a string is unwrapped.
func arguments(input []byte) string {
	switch rawjson.Kind(input) {
	case 0, 'n':
		return "{}"
	case '"':
		text := rawjson.String(input)
		if blank(text) {
			return "{}"
		}
		return text
	}
	return string(input)
}

func (r reader) toolResult(raw []byte) ninelives.ToolResult {
	var p ninelives.ToolResult
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "tool_use_id":
			p.CallID = rawjson.String(m.Value)
		case "content":
			if !rawjson.Empty(m.Value) {
				p.Content = r.content(m.Value)
			}
		case "is_error":
			p.IsError, _ = rawjson.Bool(m.Value)
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.Extra = extra(kept.Object())
	return p
}

// image reads a picture; one whose source has more to say stays as it is.
func (r reader) image(raw []byte) (ninelives.Image, bool) {
	var p ninelives.Image
	var kept rawjson.Kept
	var s source
	ok := false
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "source":
			s, ok = readSource(m.Value)
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.URL, p.MediaType, p.Data, p.FileID = s.url, s.mediaType, s.data, s.fileID
	p.Extra = extra(kept.Object())
	return p, ok && !s.text
}

// document reads a file. Its title is its name.
func (r reader) document(raw []byte) (ninelives.File, bool) {
	var p ninelives.File
	var kept rawjson.Kept
	var s source
	ok := false
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "type":
		case "source":
			s, ok = readSource(m.Value)
		case "title":
			p.Name = rawjson.String(m.Value)
		default:
			common(m, &p.Meta, &kept)
		}
	}
	p.URL, p.MediaType, p.Data, p.FileID = s.url, s.mediaType, s.data, s.fileID
	p.Extra = extra(kept.Object())
	return p, ok
}

// source is where an image or document comes from.
type source struct {
	url, mediaType, fileID string
	data                   []byte
	text                   bool // data was written as plain text
}

// readSource reports false for a source that cannot be written again from
// what is understood of it.
func readSource(raw []byte) (source, bool) {
	var s source
	var kind, data string
	for m := range rawjson.Members(raw) {
		if rawjson.Kind(m.Value) != '"' {
			return s, false
		}
		v := rawjson.String(m.Value)
		switch string(m.Name) {
		case "type":
			kind = v
		case "media_type":
			s.mediaType = v
		case "data":
			data = v
		case "url":
			s.url = v
		case "file_id":
			s.fileID = v
		default:
			return s, false
		}
	}
	ok := false
	switch kind {
	case "base64":
		s.data, ok = rawjson.Base64(data)
		ok = ok && s.mediaType != "" && s.url == "" && s.fileID == ""
	case "text":
		s.data, s.text = []byte(data), true
		ok = data != "" && s.mediaType == plainText && s.url == "" && s.fileID == ""
	case "url":
		ok = s.url != "" && s.mediaType == "" && data == "" && s.fileID == ""
	case "file":
		ok = s.fileID != "" && s.mediaType == "" && data == "" && s.url == ""
	}
	return s, ok
}

// plainText is the only type that a document's text source may have.
const plainText = "text/plain"
