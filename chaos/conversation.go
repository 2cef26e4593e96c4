package chaos

import (
	"encoding/json"
	"strings"
)

// message is one entry of a request's conversation as the protocol writes it,
// with what must fit together across entries. Instructions outside of the list
// are left out.
type message struct {
	at    int    // its index in the list of the request
	role  string // the protocol's own word; for items of Responses without one, whose they are
	parts []part
	raw   map[string]any
}

type partKind int

const (
	partOther partKind = iota
	partText
	partCall
	partResult
	partThought
)

// part is a piece of a message.
type part struct {
	kind partKind
	at   int // its index among its kind's list
	// id is that of the call, or of the call that a result answers; name the
	// tool's, as far as the protocol tells it.
	id, name  string
	text      string // of a text, a thought or a result
	arguments string // of a call, as JSON
	signature string
	failed    bool // a result that says of itself that it is an error
	raw       map[string]any
}

// count gives how many parts of a kind the message has.
func (m message) count(k partKind) int { return len(m.of(k)) }

// of lists the parts of a kind.
func (m message) of(k partKind) []part {
	var out []part
	for _, p := range m.parts {
		if p.kind == k {
			out = append(out, p)
		}
	}
	return out
}

// said joins the texts of the message.
func (m message) said() string {
	var b strings.Builder
	for _, p := range m.of(partText) {
		b.WriteString(p.text)
	}
	return b.String()
}

// conversation reads the messages of the request.
func (a *ask) conversation() []message {
	var out []message
	switch a.protocol {
	case chat:
		for i, v := range list(a.body["messages"]) {
			out = append(out, chatMessage(i, object(v)))
		}
	case responses:
		if s := text(a.body["input"]); s != "" {
			return []message{{role: "user", parts: []part{{kind: partText, text: s}}}}
		}
		for i, v := range list(a.body["input"]) {
			out = append(out, responsesItem(i, object(v)))
		}
	case messages:
		for i, v := range list(a.body["messages"]) {
			out = append(out, messagesMessage(i, object(v)))
		}
	case gemini:
		for i, v := range list(a.body["contents"]) {
			out = append(out, geminiContent(i, object(v)))
		}
	}
	return out
}

// texts reads what is a text or a list of typed parts; other is asked about
// every part that is no text.
func texts(v any, other func(typ string, raw map[string]any) part) []part {
	if s, ok := v.(string); ok {
		return []part{{kind: partText, text: s}}
	}
	var out []part
	for i, v := range list(v) {
		raw := object(v)
		p := part{kind: partOther}
		switch typ := text(raw["type"]); typ {
		case "text", "input_text", "output_text":
			p = part{kind: partText, text: text(raw["text"])}
		default:
			if other != nil {
				p = other(typ, raw)
			}
		}
		p.at, p.raw = i, raw
		out = append(out, p)
	}
	return out
}

// joined is the text of a content, other parts left out.
func joined(v any) string { return message{parts: texts(v, nil)}.said() }

func chatMessage(i int, raw map[string]any) message {
	m := message{at: i, role: text(raw["role"]), raw: raw}
	if m.role == "tool" {
		m.parts = []part{{kind: partResult, id: text(raw["tool_call_id"]), name: text(raw["name"]), text: joined(raw["content"]), raw: raw}}
		return m
	}
	if s := text(raw["reasoning_content"]); s != "" {
		m.parts = append(m.parts, part{kind: partThought, text: s, raw: raw})
	}
	m.parts = append(m.parts, texts(raw["content"], nil)...)
	for j, v := range list(raw["tool_calls"]) {
		call := object(v)
		f := object(call["function"])
		m.parts = append(m.parts, part{kind: partCall, at: j, id: text(call["id"]), name: text(f["name"]), arguments: text(f["arguments"]), raw: call})
	}
	return m
}

func responsesItem(i int, raw map[string]any) message {
	m := message{at: i, role: text(raw["role"]), raw: raw}
	switch text(raw["type"]) {
	case "function_call":
		m.role = "assistant"
		m.parts = []part{{kind: partCall, id: text(raw["call_id"]), name: text(raw["name"]), arguments: text(raw["arguments"]), raw: raw}}
	case "function_call_output":
		m.role = "tool"
		m.parts = []part{{kind: partResult, id: text(raw["call_id"]), text: joined(raw["output"]), raw: raw}}
	case "reasoning":
		m.role = "assistant"
		m.parts = []part{{kind: partThought, id: text(raw["id"]), signature: text(raw["encrypted_content"]), raw: raw}}
	default:
		m.parts = texts(raw["content"], nil)
	}
	return m
}

func messagesMessage(i int, raw map[string]any) message {
	m := message{at: i, role: text(raw["role"]), raw: raw}
	m.parts = texts(raw["content"], func(typ string, raw map[string]any) part {
		switch typ {
		case "tool_use":
			return part{kind: partCall, id: text(raw["id"]), name: text(raw["name"]), arguments: valueJSON(raw["input"])}
		case "tool_result":
			return part{kind: partResult, id: text(raw["tool_use_id"]), text: joined(raw["content"]), failed: raw["is_error"] == true}
		case "thinking":
			return part{kind: partThought, text: text(raw["thinking"]), signature: text(raw["signature"])}
		case "redacted_thinking":
			return part{kind: partThought, signature: text(raw["data"])}
		}
		return part{kind: partOther}
	})
	return m
}

func geminiContent(i int, raw map[string]any) message {
	m := message{at: i, role: text(raw["role"]), raw: raw}
	for j, v := range list(raw["parts"]) {
		raw := object(v)
		p := part{at: j, signature: text(first(raw, "thoughtSignature", "thought_signature")), raw: raw}
		if call, ok := first(raw, "functionCall", "function_call").(map[string]any); ok {
			p.kind, p.id, p.name, p.arguments = partCall, text(call["id"]), text(call["name"]), valueJSON(call["args"])
		} else if result, ok := first(raw, "functionResponse", "function_response").(map[string]any); ok {
			p.kind, p.id, p.name = partResult, text(result["id"]), text(result["name"])
			p.text, p.failed = geminiResult(object(result["response"]))
		} else if s, ok := raw["text"].(string); ok {
			p.kind, p.text = partText, s
			if raw["thought"] == true {
				p.kind = partThought
			}
		}
		m.parts = append(m.parts, p)
	}
	return m
}

// geminiResult reads a response by the keys that Google documents, else as JSON.
func geminiResult(r map[string]any) (s string, failed bool) {
	if v, ok := r["error"]; ok {
		if s := text(v); s != "" {
			return s, true
		}
		return valueJSON(v), true
	}
	for _, key := range []string{"output", "result", "content"} {
		if s, ok := r[key].(string); ok {
			return s, false
		}
	}
	return valueJSON(r), false
}

// valueJSON writes a value of a request again.
func valueJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if v == nil || enc.Encode(v) != nil {
		return "{}"
	}
	return strings.TrimSpace(b.String())
}
