package openai

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatWriter writes messages, for requests and for answers.
type chatWriter struct {
	rawjson.Writer
	dialect *wire.Dialect
	// replayField is where reasoning goes; empty means where it came from.
	replayField string
	// request: what a server would not take back is left out.
	request bool
	note    func(format string, args ...any)
}

// chatBridge stands between a tool's result and the images of it, where a
// user's message must not follow the result.
const chatBridge = "Noted."

// message writes the message at i. A message with results becomes a message
// for each of them. Where results cannot hold images, those of a run of
// results go to the head of the user's message after it.
func (w *chatWriter) message(messages []ninelives.Message, i int) {
	m := messages[i]
	if m.Role == ninelives.RoleTool || slices.ContainsFunc(m.Parts, chatIsResult) {
		for _, part := range m.Parts {
			if r, ok := part.(ninelives.ToolResult); ok {
				w.result(r)
			}
		}
		if i+1 == len(messages) || messages[i+1].Role != ninelives.RoleTool && messages[i+1].Role != ninelives.RoleUser {
			w.attachments(w.imagesBefore(messages, i+1))
		}
		return
	}
	at := w.Open('{')
	w.StringMember("role", string(m.Role))
	if m.Role == ninelives.RoleAssistant {
		w.answer(m)
	} else {
		parts := m.Parts
		if m.Role == ninelives.RoleUser {
			parts = append(w.imagesBefore(messages, i), parts...)
		}
		w.Name("content")
		w.content(parts)
	}
	if m.Name != "" {
		w.StringMember("name", m.Name)
	}
	w.rest(at, m.Extra)
	w.Close('}')
}

func chatIsResult(part ninelives.Part) bool {
	_, ok := part.(ninelives.ToolResult)
	return ok
}

func chatIsImage(part ninelives.Part) bool {
	switch part.(type) {
	case ninelives.Image, ninelives.File:
		return true
	}
	return false
}

// rest writes the unknown members of an object.
func (w *chatWriter) rest(at int, extra ninelives.Extra) {
	w.Rest(at, extra.For(ninelives.OpenAIChat), nil)
}

// result writes the result of one call.
func (w *chatWriter) result(r ninelives.ToolResult) {
	at := w.Open('{')
	w.StringMember("role", "tool")
	w.StringMember("tool_call_id", r.CallID)
	if w.dialect.ToolResultNames && r.Name != "" {
		w.StringMember("name", r.Name)
	}
	content := r.Content
	if !w.dialect.ToolImages {
		content = slices.DeleteFunc(slices.Clone(content), chatIsImage)
		if len(content) == 0 && len(r.Content) > 0 {
			content = []ninelives.Part{ninelives.Text{Text: "[see the attachment below]"}}
		}
	}
	w.Name("content")
	w.content(content)
	w.rest(at, r.Extra)
	w.Close('}')
}

// imagesBefore gives the images of the run of results that ends before i, each
// result's under its name, where the results themselves could not hold them.
func (w *chatWriter) imagesBefore(messages []ninelives.Message, i int) []ninelives.Part {
	if w.dialect.ToolImages {
		return nil
	}
	first := i
	for first > 0 && messages[first-1].Role == ninelives.RoleTool {
		first--
	}
	var parts []ninelives.Part
	for _, m := range messages[first:i] {
		for _, part := range m.Parts {
			r, ok := part.(ninelives.ToolResult)
			if !ok || !slices.ContainsFunc(r.Content, chatIsImage) {
				continue
			}
			of := r.Name
			if of == "" {
				of = r.CallID
			}
			parts = append(parts, ninelives.Text{Text: "[attachment of the result of " + of + "]"})
			for _, c := range r.Content {
				if chatIsImage(c) {
					parts = append(parts, c)
				}
			}
		}
	}
	return parts
}

// attachments writes the images of results as a message of the user.
func (w *chatWriter) attachments(parts []ninelives.Part) {
	if len(parts) == 0 {
		return
	}
	if w.dialect.BridgeToolUser {
		w.Open('{')
		w.StringMember("role", "assistant")
		w.StringMember("content", chatBridge)
		w.Close('}')
	}
	w.Open('{')
	w.StringMember("role", "user")
	w.Name("content")
	w.content(parts)
	w.Close('}')
}

// content writes parts as a string where that says all, else as an array.
func (w *chatWriter) content(parts []ninelives.Part) {
	if len(parts) == 0 {
		w.String("")
		return
	}
	if t, ok := chatPlainText(parts, w.dialect.NoImages); ok {
		w.String(t)
		return
	}
	w.Open('[')
	for _, part := range parts {
		w.part(part)
	}
	w.Close(']')
}

// chatPlainText gives the text of parts that are nothing but one text, or
// several where join is true: the servers that take no images are those that
// like arrays least.
func chatPlainText(parts []ninelives.Part, join bool) (string, bool) {
	if len(parts) > 1 && !join {
		return "", false
	}
	var texts []string
	for _, part := range parts {
		t, ok := part.(ninelives.Text)
		if !ok || t.Cache != nil || t.Extra.For(ninelives.OpenAIChat) != nil {
			return "", false
		}
		texts = append(texts, t.Text)
	}
	return strings.Join(texts, "\n\n"), true
}

// part writes an element of a content array.
func (w *chatWriter) part(part ninelives.Part) {
	switch p := part.(type) {
	case ninelives.Text:
		at := w.Open('{')
		w.StringMember("type", "text")
		w.StringMember("text", p.Text)
		w.end(at, p.Meta)
	case ninelives.Image:
		w.image(p)
	case ninelives.File:
		w.file(p)
	case ninelives.Refusal:
		at := w.Open('{')
		w.StringMember("type", "refusal")
		w.StringMember("refusal", p.Text)
		w.end(at, p.Meta)
	case ninelives.Reasoning:
		w.thinking(p)
	case ninelives.Opaque:
		if raw := p.Raw.For(ninelives.OpenAIChat); raw != nil {
			w.Raw(raw)
		}
	}
}

// end writes what any part may carry, and closes it.
func (w *chatWriter) end(at int, m ninelives.Meta) {
	w.cache(m.Cache)
	w.rest(at, m.Extra)
	w.Close('}')
}

// cache writes a cache hint where the server knows it.
func (w *chatWriter) cache(hint *ninelives.CacheHint) {
	if hint == nil || !w.dialect.CacheControl {
		return
	}
	w.Name("cache_control")
	w.Open('{')
	w.StringMember("type", "ephemeral")
	if hint.TTL != "" {
		w.StringMember("ttl", hint.TTL)
	}
	w.Close('}')
}

func (w *chatWriter) image(p ninelives.Image) {
	if p.FileID != "" {
		w.file(ninelives.File{FileID: p.FileID, Meta: p.Meta})
		return
	}
	url := p.URL
	if url == "" {
		url = string(rawjson.AppendDataURL(nil, p.MediaType, p.Data))
	}
	at := w.Open('{')
	w.StringMember("type", "image_url")
	w.Name("image_url")
	inner := w.Open('{')
	w.StringMember("url", url)
	if p.Detail != "" {
		w.StringMember("detail", p.Detail)
	}
	w.Rest(inner, rawjson.Get(p.Extra.For(ninelives.OpenAIChat), "image_url"), nil)
	w.Close('}')
	w.end(at, p.Meta)
}

// file writes a document, or audio, which has a form of its own.
func (w *chatWriter) file(p ninelives.File) {
	extra := p.Extra.For(ninelives.OpenAIChat)
	at := w.Open('{')
	if format, ok := strings.CutPrefix(p.MediaType, "audio/"); ok && len(p.Data) > 0 {
		if format == "mpeg" {
			format = "mp3"
		}
		w.StringMember("type", "input_audio")
		w.Name("input_audio")
		inner := w.Open('{')
		w.StringMember("data", rawjson.EncodeBase64(p.Data))
		w.StringMember("format", format)
		w.Rest(inner, rawjson.Get(extra, "input_audio"), nil)
	} else {
		w.StringMember("type", "file")
		w.Name("file")
		inner := w.Open('{')
		if p.Name != "" {
			w.StringMember("filename", p.Name)
		}
		switch {
		case p.FileID != "":
			w.StringMember("file_id", p.FileID)
		case p.URL != "":
			w.StringMember("file_data", p.URL)
		default:
			w.StringMember("file_data", string(rawjson.AppendDataURL(nil, p.MediaType, p.Data)))
		}
		w.Rest(inner, rawjson.Get(extra, "file"), nil)
	}
	w.Close('}')
	w.end(at, p.Meta)
}

// answer writes the members of an assistant's message.
func (w *chatWriter) answer(m ninelives.Message) {
	var content []ninelives.Part // what goes into content
	var calls []ninelives.ToolCall
	var thoughts []ninelives.Reasoning
	var citations []ninelives.Citation
	refusal, refused := "", false
	for _, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.ToolCall:
			calls = append(calls, p)
		case ninelives.Reasoning:
			if w.fieldOf(p) == wire.FieldThinkingPart {
				content = append(content, p)
				continue
			}
			thoughts = append(thoughts, p)
		case ninelives.Refusal:
			refusal += p.Text
			refused = true
		case ninelives.Text:
			citations = append(citations, p.Citations...)
			content = append(content, p)
		default:
			content = append(content, p)
		}
	}
	content = chatJoinTexts(content)
	w.thoughts(thoughts, &content)
	w.Name("content")
	switch {
	case len(content) == 0 && (len(calls) > 0 || refused):
		w.Raw([]byte("null"))
	default:
		w.content(content)
	}
	if refused {
		w.StringMember("refusal", refusal)
	}
	if len(citations) > 0 && !w.request {
		w.Name("annotations")
		w.Open('[')
		for _, c := range citations {
			w.citation(c)
		}
		w.Close(']')
	}
	if len(calls) > 0 {
		w.Name("tool_calls")
		w.Open('[')
		for _, c := range calls {
			w.call(c, -1)
		}
		w.Close(']')
	}
}

// chatJoinTexts joins the texts of an answer that are nothing but text: they
// were only parted by what stood between them, and many servers take a string
// alone here.
func chatJoinTexts(parts []ninelives.Part) []ninelives.Part {
	var out []ninelives.Part
	for _, part := range parts {
		t, ok := part.(ninelives.Text)
		if n := len(out); ok && n > 0 && chatOnlyText(t) {
			if before, ok := out[n-1].(ninelives.Text); ok && chatOnlyText(before) {
				out[n-1] = ninelives.Text{Text: before.Text + t.Text}
				continue
			}
		}
		out = append(out, part)
	}
	return out
}

func chatOnlyText(t ninelives.Text) bool {
	return t.Cache == nil && t.Extra.For(ninelives.OpenAIChat) == nil
}

func (w *chatWriter) citation(c ninelives.Citation) {
	if raw := c.Raw.For(ninelives.OpenAIChat); raw != nil {
		w.Raw(raw)
		return
	}
	w.Open('{')
	w.StringMember("type", "url_citation")
	w.Name("url_citation")
	w.Open('{')
	w.StringMember("url", c.URL)
	w.StringMember("title", c.Title)
	w.Close('}')
	w.Close('}')
}

// call writes a call; index -1 means none is wanted.
func (w *chatWriter) call(c ninelives.ToolCall, index int) {
	extra := c.Extra.For(ninelives.OpenAIChat)
	at := w.Open('{')
	if index >= 0 {
		w.IntMember("index", int64(index))
	}
	w.StringMember("id", c.ID)
	if rawjson.Get(extra, "custom") != nil {
		w.StringMember("type", "custom")
		w.Rest(at, extra, nil)
		w.Close('}')
		return
	}
	w.StringMember("type", "function")
	w.Name("function")
	inner := w.Open('{')
	w.StringMember("name", c.Name)
	w.Name("arguments")
	if w.request && w.dialect.ToolArgsObject && rawjson.Valid([]byte(c.Arguments)) {
		w.RawString(c.Arguments)
	} else {
		w.String(c.Arguments)
	}
	w.Rest(inner, rawjson.Get(extra, "function"), nil)
	w.Close('}')
	w.signature(c, extra)
	w.cache(c.Cache)
	w.Rest(at, extra, nil)
	w.Close('}')
}

// signature writes the proof that Gemini's compatible endpoint wants back with
// a call.
func (w *chatWriter) signature(c ninelives.ToolCall, extra []byte) {
	if c.Signature == "" || rawjson.Get(extra, "extra_content") != nil || slices.Contains(w.dialect.StripFields, "extra_content") {
		return
	}
	w.Name("extra_content")
	w.Open('{')
	w.Name("google")
	w.Open('{')
	w.StringMember("thought_signature", c.Signature)
	w.Close('}')
	w.Close('}')
}
