package ninelives

import "strings"

// Role says who speaks in a Message.
type Role string

// The roles of a conversation. RoleDeveloper is an instruction that some
// providers rank apart from RoleSystem; dialects without it send it as system.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation, in provider-neutral form. Instructions
// are messages with RoleSystem (or RoleDeveloper) at any position; the results
// of tools are [ToolResult] parts of a message with RoleTool.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts,omitzero"`
	// ID is the provider's id of this message or output item, if it gave one.
	ID string `json:"id,omitzero"`
	// Name is the optional participant name that some chat dialects carry.
	Name string `json:"name,omitzero"`
	// Extra holds the wire fields of this message that have no word here.
	Extra Extra `json:"extra,omitzero"`
}

// Text joins the text parts of the message with nothing between them.
func (m Message) Text() string {
	return joinText(m.Parts)
}

// ToolCalls lists the tool calls of the message in order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Reasoning joins the readable reasoning of the message with nothing between.
func (m Message) Reasoning() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if r, ok := p.(Reasoning); ok {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

// Refusal joins the refusal parts of the message.
func (m Message) Refusal() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if r, ok := p.(Refusal); ok {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

func joinText(parts []Part) string {
	if len(parts) == 1 {
		if t, ok := parts[0].(Text); ok {
			return t.Text
		}
	}
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// UserText is a user message of one text part.
func UserText(text string) Message { return textMessage(RoleUser, text) }

// SystemText is an instruction of one text part.
func SystemText(text string) Message { return textMessage(RoleSystem, text) }

// AssistantText is an assistant message of one text part.
func AssistantText(text string) Message { return textMessage(RoleAssistant, text) }

// ToolResultText answers the call with the given id by plain text.
func ToolResultText(callID, name, text string) Message {
	return Message{Role: RoleTool, Parts: []Part{ToolResult{CallID: callID, Name: name, Content: []Part{Text{Text: text}}}}}
}

func textMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{Text{Text: text}}}
}
