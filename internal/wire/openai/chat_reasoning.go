package openai

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatDetailsField is the field whose content goes back as it came.
const chatDetailsField = "reasoning_details"

// fieldOf is the wire field that a piece of reasoning goes to: the one it came
// from if that is the target's, else the target's, else that which most
// clients and servers know.
func (w *chatWriter) fieldOf(r ninelives.Reasoning) string {
	own := r.Provenance.Field
	switch {
	case r.Provenance.Blob != "" && own == chatDetailsField:
		return own
	case w.replayField == chatDetailsField: // plain text has a field beside it
		return "reasoning"
	case w.replayField != "":
		return w.replayField
	case chatKnownReasoning(own):
		return own
	}
	return chatReasoningFields[0]
}

// chatKnownReasoning: the fields of this protocol. "thinking" is also the name
// of Anthropic's, and only read.
func chatKnownReasoning(field string) bool {
	switch field {
	case wire.FieldThinkTags, wire.FieldThinkingPart:
		return true
	}
	return field != "thinking" && slices.Contains(chatReasoningFields, field)
}

// thoughts writes reasoning that has a field of its own, one member per field;
// what belongs into the text goes to the head of the content.
func (w *chatWriter) thoughts(thoughts []ninelives.Reasoning, content *[]ninelives.Part) {
	var order []string
	texts := map[string]string{}
	for _, r := range thoughts {
		field := w.fieldOf(r)
		if field == chatDetailsField {
			w.details(r)
			continue
		}
		if _, ok := texts[field]; !ok {
			order = append(order, field)
		}
		texts[field] += r.Text
	}
	for _, field := range order {
		if field == wire.FieldThinkTags {
			if texts[field] != "" {
				*content = chatWithTags(texts[field], *content)
			}
			continue
		}
		w.StringMember(field, texts[field])
	}
}

// details writes reasoning_details as they came, and beside them the text that
// they do not hold.
func (w *chatWriter) details(r ninelives.Reasoning) {
	blob := []byte(r.Provenance.Blob)
	if !rawjson.Valid(blob) {
		return
	}
	if text := string(chatDetailsText(nil, blob)); r.Text != "" && (text != r.Text || !w.request) {
		w.StringMember("reasoning", r.Text)
	}
	w.RawMember(chatDetailsField, blob)
}

// chatWithTags puts thinking before the text, in tags.
func chatWithTags(thought string, content []ninelives.Part) []ninelives.Part {
	tagged := "<think>\n" + thought + "\n</think>\n\n"
	if len(content) > 0 {
		if t, ok := content[0].(ninelives.Text); ok {
			t.Text = tagged + t.Text
			return append([]ninelives.Part{t}, content[1:]...)
		}
	}
	return append([]ninelives.Part{ninelives.Text{Text: strings.TrimRight(tagged, "\n")}}, content...)
}

// thinking writes reasoning as a part of the content.
func (w *chatWriter) thinking(r ninelives.Reasoning) {
	at := w.Open('{')
	w.StringMember("type", "thinking")
	w.Name("thinking")
	w.Open('[')
	w.Open('{')
	w.StringMember("type", "text")
	w.StringMember("text", r.Text)
	w.Close('}')
	w.Close(']')
	w.end(at, r.Meta)
}
