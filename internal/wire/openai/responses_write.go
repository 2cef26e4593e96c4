package openai

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// responsesWriter writes messages as items.
type responsesWriter struct {
	rawjson.Writer
	skip []string // member names that are not written
	// answer: the items are the output of a server, not the input of a client.
	// Then every item has an id and a status, and foreign reasoning is shown.
	answer bool
	// ids are made of this stem where an item of an answer has none; fixed is
	// the id of the next one, whatever it had.
	stem  string
	fixed string
	items int
	// cut: the answer was cut, so that its last item is incomplete.
	cut bool
	// last: no item follows the one that is written.
	last bool
	// ownReasoning: reasoning of any wire field is written, as the target wants.
	ownReasoning bool
	// noIDs: items do not name what they were on the server, because the
	// reasoning that belongs to them is missing.
	noIDs bool
	note  func(format string, args ...any)

	place   int  // of the open message item
	inItem  bool // a message item is open
	content int  // of it
	head    []byte
	id      string
}

// conversation writes messages as the elements of an input array.
func (w *responsesWriter) conversation(messages []ninelives.Message) {
	for _, m := range messages {
		switch m.Role {
		case ninelives.RoleAssistant:
			w.turn(m)
		case ninelives.RoleTool:
			for _, part := range m.Parts {
				switch p := part.(type) {
				case ninelives.ToolResult:
					w.result(p)
				case ninelives.Opaque:
					w.opaque(p)
				}
			}
		default:
			w.message(m)
		}
	}
}

// message writes a message of the user, or an instruction.
func (w *responsesWriter) message(m ninelives.Message) {
	at := w.Open('{')
	w.StringMember("type", "message")
	extra := m.Extra.For(ninelives.OpenAIResponses)
	if m.ID != "" && extra != nil {
		w.StringMember("id", m.ID)
	}
	w.StringMember("role", string(m.Role))
	w.Name("content")
	w.body(m.Parts, "input_text")
	w.Rest(at, extra, w.skip)
	w.Close('}')
}

// body writes content: one plain text as a string, anything else as a list.
func (w *responsesWriter) body(parts []ninelives.Part, textType string) {
	if len(parts) == 0 {
		w.String("")
		return
	}
	if t, ok := parts[0].(ninelives.Text); ok && len(parts) == 1 && t.Extra.For(ninelives.OpenAIResponses) == nil && len(t.Citations) == 0 {
		w.String(t.Text)
		return
	}
	w.Open('[')
	for _, part := range parts {
		w.contentPart(part, textType)
	}
	w.Close(']')
}

func (w *responsesWriter) contentPart(part ninelives.Part, textType string) {
	switch p := part.(type) {
	case ninelives.Text:
		at := w.Open('{')
		w.StringMember("type", textType)
		w.StringMember("text", p.Text)
		if textType == "output_text" {
			w.Name("annotations")
			w.Open('[')
			for _, c := range p.Citations {
				w.citation(c, len(p.Text))
			}
			w.Close(']')
		}
		w.rest(at, p.Extra)
	case ninelives.Refusal:
		at := w.Open('{')
		w.StringMember("type", "refusal")
		w.StringMember("refusal", p.Text)
		w.rest(at, p.Extra)
	case ninelives.Image:
		at := w.Open('{')
		w.StringMember("type", "input_image")
		switch {
		case p.Data != nil:
			w.StringMember("image_url", string(rawjson.AppendDataURL(nil, p.MediaType, p.Data)))
		case p.URL != "":
			w.StringMember("image_url", p.URL)
		default:
			w.StringMember("file_id", p.FileID)
		}
		if p.Detail != "" {
			w.StringMember("detail", p.Detail)
		}
		w.rest(at, p.Extra)
	case ninelives.File:
		w.file(p)
	case ninelives.Opaque:
		if raw := p.Raw.For(ninelives.OpenAIResponses); raw != nil {
			w.Raw(raw)
		}
	}
}

func (w *responsesWriter) file(p ninelives.File) {
	at := w.Open('{')
	if format, ok := strings.CutPrefix(p.MediaType, "audio/"); ok && p.Data != nil && p.Name == "" {
		w.StringMember("type", "input_audio")
		w.Name("input_audio")
		w.Open('{')
		w.StringMember("data", rawjson.EncodeBase64(p.Data))
		w.StringMember("format", format)
		w.Close('}')
		w.rest(at, p.Extra)
		return
	}
	w.StringMember("type", "input_file")
	if p.Name != "" {
		w.StringMember("filename", p.Name)
	}
	switch {
	case p.Data != nil:
		w.StringMember("file_data", string(rawjson.AppendDataURL(nil, p.MediaType, p.Data)))
	case p.URL != "":
		w.StringMember("file_url", p.URL)
	default:
		w.StringMember("file_id", p.FileID)
	}
	w.rest(at, p.Extra)
}

// citation writes a source. One of another protocol is told as a URL, to
// readers of an answer only.
func (w *responsesWriter) citation(c ninelives.Citation, textLen int) {
	if raw := c.Raw.For(ninelives.OpenAIResponses); raw != nil {
		w.Raw(raw)
		return
	}
	if !w.answer || c.URL == "" {
		return
	}
	w.Open('{')
	w.StringMember("type", "url_citation")
	w.StringMember("url", c.URL)
	w.StringMember("title", c.Title)
	w.IntMember("start_index", 0)
	w.IntMember("end_index", int64(textLen))
	w.Close('}')
}

// rest ends a content part.
func (w *responsesWriter) rest(at int, extra ninelives.Extra) {
	if raw := extra.For(ninelives.OpenAIResponses); raw != nil {
		w.Rest(at, raw, append([]string{responsesItemKey}, w.skip...))
	}
	w.Close('}')
}

// turn writes the message of an assistant as a run of items.
func (w *responsesWriter) turn(m ninelives.Message) {
	w.id = ""
	if m.ID != "" {
		w.id = m.ID
	}
	for i := 0; i < len(m.Parts); i++ {
		w.last = false
		switch p := m.Parts[i].(type) {
		case ninelives.Text:
			w.said(p, p.Extra)
		case ninelives.Refusal:
			w.said(p, p.Extra)
		case ninelives.Image:
			w.said(p, p.Extra)
		case ninelives.File:
			w.said(p, p.Extra)
		case ninelives.Reasoning:
			w.endMessage()
			i += w.reasoning(m.Parts[i:]) - 1
		case ninelives.ToolCall:
			w.endMessage()
			w.last = i == len(m.Parts)-1
			w.call(p)
		case ninelives.Opaque:
			if isResponsesContent(p.Kind) {
				w.said(p, ninelives.Extra{})
				continue
			}
			w.endMessage()
			w.opaque(p)
		}
	}
	w.last = true
	w.endMessage()
}

// said writes a part into the open message item, or into a new one.
func (w *responsesWriter) said(part ninelives.Part, extra ninelives.Extra) {
	switch p := part.(type) {
	case ninelives.Image:
		if w.answer && p.Data != nil {
			w.endMessage()
			w.made(p)
			return
		}
		w.noted("an image that the assistant made was not sent: this protocol takes images from the user only")
		return
	case ninelives.File:
		w.noted("a file that the assistant made was not sent: this protocol takes files from the user only")
		return
	}
	members, begins := responsesItemOf(extra)
	if begins {
		w.endMessage()
	}
	if !w.inItem {
		w.beginMessage(members, begins)
		if t, ok := part.(ninelives.Text); ok && t.Text == "" && rawjson.Get(members, "content") != nil {
			return // it stands for an item without a first part
		}
	}
	w.content++
	w.contentPart(part, "output_text")
}

func (w *responsesWriter) beginMessage(members []byte, own bool) {
	w.place = w.Open('{')
	w.inItem, w.content, w.head = true, 0, members
	w.StringMember("type", "message")
	id := ""
	if own && rawjson.Get(members, "id") == nil {
		id, w.id = w.id, ""
	}
	w.itemID(id, "msg", rawjson.String(rawjson.Get(members, "id")))
	w.StringMember("role", "assistant")
	w.Name("content")
	w.Open('[')
}

func (w *responsesWriter) endMessage() {
	if !w.inItem {
		return
	}
	w.inItem = false
	w.Close(']')
	w.endItem(w.place, w.head, "content")
}

// itemID writes the id of an item: its own, or in an answer a made one.
func (w *responsesWriter) itemID(id, prefix, later string) {
	n := w.items
	w.items++
	switch {
	case w.fixed != "":
		id = w.fixed
	case w.answer && id == "" && later == "":
		id = responsesMadeID(prefix, w.stem, n)
	case w.answer:
	case w.noIDs && prefix != "rs", !validResponsesID(id, prefix):
		return
	}
	if id != "" {
		w.StringMember("id", id)
	}
}

// validResponsesID: an id of an item is refused if it does not begin with the
// item's prefix, or is longer than 64 characters. One that was made here says
// nothing to a provider.
func validResponsesID(id, prefix string) bool {
	return strings.HasPrefix(id, prefix) && len(id) <= 64 && !strings.HasPrefix(id, prefix+responsesMade)
}

// responsesMade follows the prefix of an id that was made here.
const responsesMade = "_9l_"

func responsesMadeID(prefix, stem string, n int) string {
	return fmt.Sprintf("%s%s%s_%d", prefix, responsesMade, stem, n)
}

// endItem writes the other members of an item and ends it.
func (w *responsesWriter) endItem(at int, members []byte, skip ...string) {
	skip = append(skip, w.skip...)
	if id := rawjson.Get(members, "id"); id != nil && !w.answer && (w.noIDs || !validResponsesID(rawjson.String(id), responsesIDPrefix(w.B[at:]))) {
		skip = append(skip, "id")
	}
	if w.fixed != "" {
		skip = append(skip, "id")
	}
	if w.answer && rawjson.Get(members, "status") == nil {
		status := "completed"
		if w.cut && w.last {
			status = "incomplete"
		}
		w.StringMember("status", status)
	}
	w.Rest(at, members, skip)
	w.Close('}')
}

// responsesIDPrefix is what the id of an item of this type begins with.
func responsesIDPrefix(item []byte) string {
	switch kind := rawjson.Get(item, "type"); {
	case rawjson.Is(kind, "message"):
		return "msg"
	case rawjson.Is(kind, "function_call"):
		return "fc"
	}
	return ""
}

func (w *responsesWriter) call(p ninelives.ToolCall) {
	at := w.Open('{')
	w.StringMember("type", "function_call")
	members := p.Extra.For(ninelives.OpenAIResponses)
	w.itemID("", "fc", rawjson.String(rawjson.Get(members, "id")))
	w.StringMember("call_id", p.ID)
	w.StringMember("name", p.Name)
	w.StringMember("arguments", p.Arguments)
	w.endItem(at, members)
}

func (w *responsesWriter) result(p ninelives.ToolResult) {
	at := w.Open('{')
	w.StringMember("type", "function_call_output")
	w.StringMember("call_id", p.CallID)
	w.Name("output")
	w.body(p.Content, "input_text")
	w.Rest(at, p.Extra.For(ninelives.OpenAIResponses), w.skip)
	w.Close('}')
}

// made writes an image of the assistant as the item of the tool that makes images.
func (w *responsesWriter) made(p ninelives.Image) {
	at := w.Open('{')
	w.StringMember("type", "image_generation_call")
	w.itemID("", "ig", "")
	w.StringMember("result", rawjson.EncodeBase64(p.Data))
	w.endItem(at, nil)
}

func (w *responsesWriter) opaque(p ninelives.Opaque) {
	if raw := p.Raw.For(ninelives.OpenAIResponses); raw != nil {
		w.items++
		w.Raw(raw)
	}
}

// reasoning writes the reasoning item that parts begin with and tells how many
// of them belong to it.
func (w *responsesWriter) reasoning(parts []ninelives.Part) int {
	first := parts[0].(ninelives.Reasoning)
	members, begins := responsesItemOf(first.Extra)
	n := 1
	for ; n < len(parts); n++ {
		p, ok := parts[n].(ninelives.Reasoning)
		if !ok || p.ID != first.ID || p.Provenance.Blob != first.Provenance.Blob {
			break
		}
		if _, again := responsesItemOf(p.Extra); again || !begins && p.ID == "" && p.Provenance.Blob == "" {
			break
		}
	}
	if !w.mayShow(first) {
		w.noted("reasoning of another protocol was left out: %q has no place here", first.Provenance.Field)
		return n
	}
	at := w.Open('{')
	w.StringMember("type", "reasoning")
	own := isResponsesReasoning(first.Provenance.Field)
	if id := first.ID; id != "" && own || w.answer {
		w.itemID(id, "rs", "")
	}
	w.Name("summary")
	w.Open('[')
	for _, part := range parts[:n] {
		if p := part.(ninelives.Reasoning); w.isSummary(p) {
			w.thought(p, "summary_text")
		}
	}
	w.Close(']')
	list := false
	for _, part := range parts[:n] {
		p := part.(ninelives.Reasoning)
		if w.isSummary(p) || p.Provenance.Field == responsesEncrypted {
			continue
		}
		if !list {
			list = true
			w.Name("content")
			w.Open('[')
		}
		w.thought(p, "reasoning_text")
	}
	if list {
		w.Close(']')
	}
	if own && first.Provenance.Blob != "" {
		w.StringMember("encrypted_content", first.Provenance.Blob)
	}
	w.Rest(at, members, w.skip)
	w.Close('}')
	return n
}

// mayShow: a client's request shows the target the reasoning of this
// protocol, and any other only where the target asks for it; an answer shows
// all that can be read.
func (w *responsesWriter) mayShow(p ninelives.Reasoning) bool {
	switch {
	case isResponsesReasoning(p.Provenance.Field):
		return true
	case w.answer:
		return p.Text != ""
	}
	return w.ownReasoning && p.Provenance.Blob == "" && p.Provenance.Signature == ""
}

// isSummary: an answer shows the reasoning of other protocols as a summary,
// which every client knows how to show.
func (w *responsesWriter) isSummary(p ninelives.Reasoning) bool {
	return p.Summary || w.answer && !isResponsesReasoning(p.Provenance.Field)
}

func isResponsesReasoning(field string) bool {
	return field == responsesSummary || field == responsesContent || field == responsesEncrypted
}

func (w *responsesWriter) thought(p ninelives.Reasoning, kind string) {
	at := w.Open('{')
	w.StringMember("type", kind)
	w.StringMember("text", p.Text)
	w.rest(at, p.Extra)
}

func (w *responsesWriter) noted(format string, args ...any) {
	if w.note != nil {
		w.note(format, args...)
	}
}
