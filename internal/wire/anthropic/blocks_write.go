package anthropic

import (
	"net/http"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// writer writes content blocks.
type writer struct {
	rawjson.Writer
	// strip are members that the server forbids.
	strip []string
	// answer: the blocks are a server's answer, not a client's request.
	answer bool
	// fileIDs is set when a block names an uploaded file.
	fileIDs bool
	notes   wire.Notes
}

func (w *writer) allows(name string) bool { return !slices.Contains(w.strip, name) }

// content writes parts as content: one plain text as a string, all else as a
// list of blocks.
func (w *writer) content(parts []ninelives.Part) {
	if len(parts) == 1 && !w.answer {
		if t, ok := parts[0].(ninelives.Text); ok && len(t.Citations) == 0 && t.Cache == nil && t.Extra.For(protocol) == nil {
			w.String(t.Text)
			return
		}
	}
	w.Open('[')
	w.blocks(parts)
	w.Close(']')
}

func (w *writer) blocks(parts []ninelives.Part) {
	for _, part := range parts {
		w.block(part)
	}
}

func (w *writer) block(part ninelives.Part) {
	switch p := part.(type) {
	case ninelives.Text:
		w.text(p)
	case ninelives.Refusal:
		w.text(ninelives.Text{Text: p.Text, Meta: p.Meta})
	case ninelives.Reasoning:
		w.reasoning(p)
	case ninelives.ToolCall:
		w.toolUse(p)
	case ninelives.ToolResult:
		w.toolResult(p)
	case ninelives.Image:
		w.image(p)
	case ninelives.File:
		w.document(p)
	case ninelives.Opaque:
		if raw := p.Raw.For(protocol); raw != nil {
			w.Raw(raw)
		}
	}
}

// begin opens a block of a type.
func (w *writer) begin(kind string) int {
	at := w.Open('{')
	w.StringMember("type", kind)
	return at
}

// end closes a block with what any block may have.
func (w *writer) end(at int, meta ninelives.Meta) {
	if meta.Cache != nil && w.allows("cache_control") && !w.answer {
		w.Name("cache_control")
		w.begin("ephemeral")
		if meta.Cache.TTL != "" {
			w.StringMember("ttl", meta.Cache.TTL)
		}
		w.Close('}')
	}
	w.Rest(at, meta.Extra.For(protocol), w.strip)
	w.Close('}')
}

func (w *writer) text(p ninelives.Text) {
	at := w.begin("text")
	w.StringMember("text", p.Text)
	if w.allows("citations") {
		open := false
		for _, c := range p.Citations {
			raw := c.Raw.For(protocol)
			if raw == nil && !w.answer {
				continue // another protocol's citation has no form here
			}
			if !open {
				w.Name("citations")
				w.Open('[')
				open = true
			}
			w.citation(c)
		}
		if open {
			w.Close(']')
		}
	}
	w.end(at, p.Meta)
}

// citation writes a source as it came; one of another protocol as a web source.
func (w *writer) citation(c ninelives.Citation) {
	if raw := c.Raw.For(protocol); raw != nil {
		w.Raw(raw)
		return
	}
	w.begin("web_search_result_location")
	w.StringMember("url", c.URL)
	w.StringMember("title", c.Title)
	w.StringMember("cited_text", c.Quote)
	w.StringMember("encrypted_index", "")
	w.Close('}')
}

// reasoning writes thinking. Redacted thinking is only what this protocol
// redacted itself; another's encrypted reasoning has no form here.
func (w *writer) reasoning(p ninelives.Reasoning) {
	if p.Redacted {
		if p.Provenance.Field == fieldRedacted {
			at := w.begin("redacted_thinking")
			w.StringMember("data", p.Provenance.Blob)
			w.end(at, p.Meta)
		}
		return
	}
	p.Meta.Cache = nil // thinking cannot carry one
	signature := p.Provenance.Signature
	if f := p.Provenance.Field; f != "" && f != fieldThinking {
		signature = "" // of another protocol
	}
	if w.answer && p.Text == "" && signature == "" {
		return
	}
	at := w.begin("thinking")
	w.StringMember("thinking", p.Text)
	if w.allows("signature") {
		w.StringMember("signature", signature)
	}
	w.end(at, p.Meta)
}

func (w *writer) toolUse(p ninelives.ToolCall) {
	at := w.begin("tool_use")
	w.StringMember("id", p.ID)
	w.StringMember("name", p.Name)
	w.Name("input")
	w.RawString(p.Arguments)
	w.end(at, p.Meta)
}

func (w *writer) toolResult(p ninelives.ToolResult) {
	at := w.begin("tool_result")
	w.StringMember("tool_use_id", p.CallID)
	if len(p.Content) > 0 {
		w.Name("content")
		w.content(p.Content)
	}
	if p.IsError && w.allows("is_error") {
		w.BoolMember("is_error", true)
	}
	w.end(at, p.Meta)
}

func (w *writer) image(p ninelives.Image) {
	if mediaType, data, ok := rawjson.DataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	at := w.begin("image")
	w.Name("source")
	switch {
	case len(p.Data) > 0:
		if p.MediaType == "" {
			p.MediaType = http.DetectContentType(p.Data)
		}
		w.base64(p.MediaType, p.Data)
	default:
		w.reference(p.URL, p.FileID)
	}
	w.end(at, p.Meta)
}

// document writes a file. The protocol takes PDF and plain text.
//
// Source: the document source types of the Messages reference, 2026.
func (w *writer) document(p ninelives.File) {
	if mediaType, data, ok := rawjson.DataURL(p.URL); ok {
		p.URL, p.MediaType, p.Data = "", mediaType, data
	}
	mediaType, _, _ := strings.Cut(p.MediaType, ";")
	if len(p.Data) > 0 && mediaType == "" {
		mediaType, _, _ = strings.Cut(http.DetectContentType(p.Data), ";")
	}
	readable := strings.HasPrefix(mediaType, "text/") || slices.Contains(textTypes, mediaType)
	if len(p.Data) > 0 && !readable && mediaType != "application/pdf" {
		w.notes.Add("a file of type %s was not sent: the protocol takes PDF and text", mediaType)
		w.text(ninelives.Text{Text: "[attached file not sent: this provider does not accept files of its type] " + p.Name})
		return
	}
	at := w.begin("document")
	w.Name("source")
	switch {
	case len(p.Data) > 0 && readable:
		w.begin("text")
		w.StringMember("media_type", plainText)
		w.StringMember("data", string(p.Data))
		w.Close('}')
	case len(p.Data) > 0:
		w.base64(mediaType, p.Data)
	default:
		w.reference(p.URL, p.FileID)
	}
	if p.Name != "" {
		w.StringMember("title", p.Name)
	}
	w.end(at, p.Meta)
}

// textTypes are texts that are not named so.
var textTypes = []string{"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/toml"}

func (w *writer) base64(mediaType string, data []byte) {
	w.begin("base64")
	w.StringMember("media_type", mediaType)
	w.StringMember("data", rawjson.EncodeBase64(data))
	w.Close('}')
}

func (w *writer) reference(url, fileID string) {
	if fileID != "" {
		w.fileIDs = true
		w.begin("file")
		w.StringMember("file_id", fileID)
	} else {
		w.begin("url")
		w.StringMember("url", url)
	}
	w.Close('}')
}
