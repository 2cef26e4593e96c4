package chaos

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// protocol is one of the four wire protocols.
type protocol string

const (
	chat      protocol = "openai-chat"
	responses protocol = "openai-responses"
	messages  protocol = "anthropic-messages"
	gemini    protocol = "gemini"
)

// family is the column of the protocol in tables of wordings.
func (p protocol) family() int {
	switch p {
	case messages:
		return 1
	case gemini:
		return 2
	}
	return 0
}

// ask is what the simulator understands of a request: enough to answer it and
// to check it, no more.
type ask struct {
	protocol protocol
	model    string
	stream   bool
	usage    bool // chat: usage was asked for in the stream
	array    bool // Gemini: the stream is a JSON array, not server-sent events
	body     map[string]any
	turns    []turn
	limit    int // the largest answer that is wanted, in tokens; 0: none
	schema   map[string]any
	json     bool   // any JSON object is wanted
	forced   string // the tool that must be called; "*": any
	barred   bool   // no tool may be called
	tools    []tool
	tokens   int // estimated size of the prompt
	signer   signer
}

// turn is one message of the conversation.
type turn struct {
	role   string // system, developer, user, assistant or tool
	text   string
	images int
	calls  int
	fields map[string]any
}

// tool is a function that the request offers.
type tool struct {
	name   string
	schema map[string]any
}

// route finds protocol and, for Gemini, model and method in a path. Any
// prefix is taken, so that a base URL works with and without /v1.
func route(path string) (p protocol, model string, stream, ok bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chat, "", false, true
	case strings.HasSuffix(path, "/responses"):
		return responses, "", false, true
	case strings.HasSuffix(path, "/messages"):
		return messages, "", false, true
	}
	i := strings.LastIndex(path, "/models/")
	if i < 0 {
		return "", "", false, false
	}
	model, method, _ := strings.Cut(path[i+len("/models/"):], ":")
	switch method {
	case "generateContent":
		return gemini, model, false, true
	case "streamGenerateContent":
		return gemini, model, true, true
	}
	return "", "", false, false
}

// read understands a request. An error is for the client: its body is no JSON object.
func read(r *http.Request, body []byte) (*ask, error) {
	a := &ask{}
	var model string
	var stream bool
	a.protocol, model, stream, _ = route(r.URL.Path)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&a.body); err != nil {
		return a, err
	}
	if a.protocol == gemini {
		a.model, a.stream, a.array = model, stream, r.URL.Query().Get("alt") != "sse"
	} else {
		a.model, a.stream = text(a.body["model"]), a.body["stream"] == true
	}
	switch a.protocol {
	case chat:
		a.readChat()
	case responses:
		a.readResponses()
	case messages:
		a.readMessages()
	case gemini:
		a.readGemini()
	}
	for _, t := range a.turns {
		a.tokens += len(t.text)/4 + 4
	}
	for _, t := range list(a.body["tools"]) { // what models read of them, too
		a.tokens += len(valueJSON(t)) / 4
	}
	for _, m := range a.conversation() {
		for _, p := range m.of(partCall) {
			a.tokens += len(p.arguments) / 4
		}
		if a.protocol == gemini { // whose turns have no text of results
			for _, p := range m.of(partResult) {
				a.tokens += len(p.text) / 4
			}
		}
	}
	return a, nil
}

func (a *ask) readChat() {
	a.limit = max(number(a.body["max_tokens"]), number(a.body["max_completion_tokens"]))
	a.usage = object(a.body["stream_options"])["include_usage"] == true
	for _, m := range list(a.body["messages"]) {
		m := object(m)
		t := turn{role: text(m["role"]), calls: len(list(m["tool_calls"])), fields: m}
		t.content(m["content"])
		a.turns = append(a.turns, t)
	}
	for _, t := range list(a.body["tools"]) {
		f := object(object(t)["function"])
		a.tools = append(a.tools, tool{text(f["name"]), object(f["parameters"])})
	}
	format := object(a.body["response_format"])
	a.schema = object(object(format["json_schema"])["schema"])
	a.json = strings.HasPrefix(text(format["type"]), "json")
	switch choice := a.body["tool_choice"].(type) {
	case string:
		switch choice {
		case "required":
			a.forced = "*"
		case "none":
			a.barred = true
		}
	case map[string]any:
		a.forced = text(object(choice["function"])["name"])
	}
}

func (a *ask) readResponses() {
	a.limit = number(a.body["max_output_tokens"])
	if s := text(a.body["instructions"]); s != "" {
		a.turns = append(a.turns, turn{role: "system", text: s})
	}
	if s := text(a.body["input"]); s != "" {
		a.turns = append(a.turns, turn{role: "user", text: s})
	}
	for _, m := range list(a.body["input"]) {
		m := object(m)
		t := turn{role: text(m["role"]), fields: m}
		switch text(m["type"]) {
		case "function_call":
			t.role, t.calls = "assistant", 1
		case "function_call_output":
			t.role, t.text = "tool", joined(m["output"])
		case "reasoning":
			t.role = "assistant"
		default:
			t.content(m["content"])
		}
		a.turns = append(a.turns, t)
	}
	for _, t := range list(a.body["tools"]) {
		t := object(t)
		a.tools = append(a.tools, tool{text(t["name"]), object(t["parameters"])})
	}
	format := object(object(a.body["text"])["format"])
	a.schema = object(format["schema"])
	a.json = strings.HasPrefix(text(format["type"]), "json")
	switch choice := a.body["tool_choice"].(type) {
	case string:
		switch choice {
		case "required":
			a.forced = "*"
		case "none":
			a.barred = true
		}
	case map[string]any:
		a.forced = text(choice["name"])
	}
}

func (a *ask) readMessages() {
	a.limit = number(a.body["max_tokens"])
	system := turn{role: "system"}
	system.content(a.body["system"])
	if system.text != "" {
		a.turns = append(a.turns, system)
	}
	for _, m := range list(a.body["messages"]) {
		m := object(m)
		t := turn{role: text(m["role"]), fields: m}
		t.content(m["content"])
		for _, b := range list(m["content"]) {
			switch text(object(b)["type"]) {
			case "tool_use":
				t.calls++
			case "tool_result":
				t.role = "tool"
			}
		}
		a.turns = append(a.turns, t)
	}
	for _, t := range list(a.body["tools"]) {
		t := object(t)
		a.tools = append(a.tools, tool{text(t["name"]), object(t["input_schema"])})
	}
	format := object(object(a.body["output_config"])["format"])
	if len(format) == 0 {
		format = object(a.body["output_format"])
	}
	a.schema = object(format["schema"])
	a.json = len(format) > 0
	choice := object(a.body["tool_choice"])
	switch text(choice["type"]) {
	case "any":
		a.forced = "*"
	case "tool":
		a.forced = text(choice["name"])
	case "none":
		a.barred = true
	}
}

func (a *ask) readGemini() {
	config := object(first(a.body, "generationConfig", "generation_config"))
	a.limit = number(first(config, "maxOutputTokens", "max_output_tokens"))
	if s := object(first(a.body, "systemInstruction", "system_instruction")); len(s) > 0 {
		t := turn{role: "system"}
		t.content(s["parts"])
		a.turns = append(a.turns, t)
	}
	for _, c := range list(a.body["contents"]) {
		c := object(c)
		t := turn{role: text(c["role"]), fields: c}
		if t.role == "model" {
			t.role = "assistant"
		}
		t.content(c["parts"])
		for _, p := range list(c["parts"]) {
			if p := object(p); first(p, "functionResponse", "function_response") != nil {
				t.role = "tool"
			} else if first(p, "functionCall", "function_call") != nil {
				t.calls++
			}
		}
		a.turns = append(a.turns, t)
	}
	for _, t := range list(a.body["tools"]) {
		for _, f := range list(first(object(t), "functionDeclarations", "function_declarations")) {
			f := object(f)
			a.tools = append(a.tools, tool{text(f["name"]), object(first(f, "parametersJsonSchema", "parameters"))})
		}
	}
	a.schema = object(first(config, "responseJsonSchema", "responseSchema", "response_schema"))
	a.json = text(first(config, "responseMimeType", "response_mime_type")) == "application/json"
	calling := object(object(first(a.body, "toolConfig", "tool_config"))["functionCallingConfig"])
	switch text(calling["mode"]) {
	case "NONE":
		a.barred = true
	case "ANY":
		a.forced = "*"
		if names := list(calling["allowedFunctionNames"]); len(names) == 1 {
			a.forced = text(names[0])
		}
	}
}

// content reads text and pictures out of a string or a list of parts.
func (t *turn) content(v any) {
	if s, ok := v.(string); ok {
		t.text += s
		return
	}
	for _, p := range list(v) {
		p := object(p)
		switch typ := text(p["type"]); {
		case typ == "image_url" || typ == "input_image" || typ == "image":
			t.images++
		case first(p, "inlineData", "inline_data", "fileData", "file_data") != nil:
			t.images++
		case typ == "tool_result":
			t.content(p["content"])
		default:
			t.text += text(p["text"])
		}
	}
}

// last is the last turn of the conversation.
func (a *ask) last() turn {
	if len(a.turns) == 0 {
		return turn{}
	}
	return a.turns[len(a.turns)-1]
}

// said is the text of the latest turn of a role.
func (a *ask) said(role string) string {
	for i := len(a.turns) - 1; i >= 0; i-- {
		if a.turns[i].role == role && a.turns[i].text != "" {
			return a.turns[i].text
		}
	}
	return ""
}

// The accessors below give the zero value for what is missing or of another
// type: a request is data of the client and may be anything.

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

func first(m map[string]any, keys ...string) any {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return nil
}
