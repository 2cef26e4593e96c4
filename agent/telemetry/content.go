package telemetry

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
)

// message and part are the form in which the conventions want messages.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitzero"`
}

type part struct {
	Type      string         `json:"type"`
	Content   string         `json:"content,omitzero"`
	ID        string         `json:"id,omitzero"`
	Name      string         `json:"name,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Response  string         `json:"response,omitzero"`
}

// content writes messages as JSON. Of pictures and files it tells that they
// were there.
func content(finish ninelives.FinishReason, messages ...ninelives.Message) string {
	all := make([]message, 0, len(messages))
	for _, m := range messages {
		out := message{Role: string(m.Role), Parts: []part{}, Finish: string(finish)}
		for _, p := range m.Parts {
			out.Parts = append(out.Parts, partOf(p))
		}
		all = append(all, out)
	}
	text, err := json.Marshal(all, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return ""
	}
	return string(text)
}

func partOf(p ninelives.Part) part {
	switch p := p.(type) {
	case ninelives.Text:
		return part{Type: "text", Content: p.Text}
	case ninelives.Reasoning:
		return part{Type: "reasoning", Content: p.Text}
	case ninelives.Refusal:
		return part{Type: "refusal", Content: p.Text}
	case ninelives.ToolCall:
		out := part{Type: "tool_call", ID: p.ID, Name: p.Name}
		if v := jsontext.Value(p.Arguments); v.IsValid() {
			out.Arguments = v
		}
		return out
	case ninelives.ToolResult:
		return part{Type: "tool_call_response", ID: p.CallID, Name: p.Name, Response: p.Text()}
	case ninelives.Image:
		return part{Type: "image"}
	case ninelives.File:
		return part{Type: "file", Name: p.Name}
	}
	return part{Type: "other"}
}
