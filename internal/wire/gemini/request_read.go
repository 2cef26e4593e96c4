package gemini

import (
	"bytes"
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeRequest reads the body of generateContent and streamGenerateContent as
// a server gets it; the model and whether the answer is to be streamed are in
// the URL (see ParsePath). Who made the reasoning in it is not known: its
// Provenance has no Provider.
//
// The error is a *ninelives.Fault of class format, in words for the client.
func DecodeRequest(model string, body []byte) (*ninelives.Request, error) {
	if rawjson.Kind(body) != '{' || !rawjson.Valid(body) {
		return nil, badRequest("the body is not a JSON object")
	}
	d := requestReader{req: &ninelives.Request{Model: model}}
	for m := range rawjson.Members(body) {
		known := true
		switch word(m.Name) {
		case "contents":
			if kind := rawjson.Kind(m.Value); kind != '[' && kind != '{' {
				return nil, badRequest("contents must be a list of contents")
			}
			d.contents(m.Value)
		case "systemInstruction":
			d.system(m.Value)
		case "tools":
			d.tools(m.Value)
		case "toolConfig":
			known = d.toolConfig(m.Value)
		case "generationConfig":
			known = d.generation(m.Value)
		default:
			known = false
		}
		if !known {
			d.kept.Add(m)
		}
	}
	if d.instructions != nil {
		d.req.Messages = append([]ninelives.Message{*d.instructions}, d.req.Messages...)
	}
	d.pair()
	if wire.Marked(body) {
		wire.Restore(d.req.Messages)
	}
	d.req.Extra = extraOf(d.kept.Object())
	return d.req, nil
}

func badRequest(format string, args ...any) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Message: fmt.Sprintf(format, args...),
	}
}

// requestReader reads one request.
type requestReader struct {
	req          *ninelives.Request
	instructions *ninelives.Message
	kept         rawjson.Kept
}

func (d *requestReader) contents(raw []byte) {
	if rawjson.Kind(raw) == '{' { // a single content is let pass
		d.content(raw)
		return
	}
	for el := range rawjson.Elements(raw) {
		d.content(el)
	}
}

// content reads one content. Results become a message of their own; what else
// stands beside them is the user's.
func (d *requestReader) content(raw []byte) {
	m := ninelives.Message{Role: ninelives.RoleUser}
	results := ninelives.Message{Role: ninelives.RoleTool}
	var r reader
	var kept rawjson.Kept
	for member := range rawjson.Members(raw) {
		switch word(member.Name) {
		case "role":
			if rawjson.Is(member.Value, "model") {
				m.Role = ninelives.RoleAssistant
			}
		case "parts":
			list := member.Value
			if rawjson.Kind(list) == '{' {
				list = append(append([]byte{'['}, list...), ']')
			}
			for el := range rawjson.Elements(list) {
				for _, part := range r.parts(el) {
					if _, ok := part.(ninelives.ToolResult); ok {
						results.Parts = append(results.Parts, part)
					} else {
						m.Parts = append(m.Parts, part)
					}
				}
			}
		default:
			kept.Add(member)
		}
	}
	if len(results.Parts) > 0 {
		results.Extra = extraOf(kept.Object())
		d.req.Messages = append(d.req.Messages, results)
		if len(m.Parts) == 0 {
			return
		}
	} else {
		m.Extra = extraOf(kept.Object())
	}
	d.req.Messages = append(d.req.Messages, m)
}

func (d *requestReader) system(raw []byte) {
	m := ninelives.Message{Role: ninelives.RoleSystem}
	if rawjson.Kind(raw) == '"' { // a bare text is let pass
		m.Parts = []ninelives.Part{ninelives.Text{Text: rawjson.String(raw)}}
		d.instructions = &m
		return
	}
	var r reader
	var kept rawjson.Kept
	for member := range rawjson.Members(raw) {
		switch word(member.Name) {
		case "role":
		case "parts":
			list := member.Value
			if rawjson.Kind(list) == '{' {
				list = append(append([]byte{'['}, list...), ']')
			}
			for el := range rawjson.Elements(list) {
				m.Parts = append(m.Parts, r.parts(el)...)
			}
		default:
			kept.Add(member)
		}
	}
	m.Extra = extraOf(kept.Object())
	if len(m.Parts) > 0 {
		d.instructions = &m
	}
}

// pair gives every call an id, and every result the id of its call. Where the
// client gave none, results answer the calls of their name in order.
func (d *requestReader) pair() {
	var open []ninelives.ToolCall
	for i := range d.req.Messages {
		m := &d.req.Messages[i]
		for j, part := range m.Parts {
			switch p := part.(type) {
			case ninelives.ToolCall:
				if p.ID == "" {
					p.ID = wire.MadeID(fmt.Sprint(i), j, p.Name, p.Arguments)
					m.Parts[j] = p
				}
				open = append(open, p)
			case ninelives.ToolResult:
				for k, c := range open {
					if p.CallID == c.ID || p.CallID == "" && p.Name == c.Name {
						p.CallID = c.ID
						if p.Name == "" {
							p.Name = c.Name
						}
						m.Parts[j] = p
						open = append(open[:k:k], open[k+1:]...)
						break
					}
				}
			}
		}
	}
}

func (d *requestReader) tools(raw []byte) {
	for el := range rawjson.Elements(raw) {
		functions, others := []byte(nil), 0
		var rest rawjson.Kept
		for m := range rawjson.Members(el) {
			if word(m.Name) == "functionDeclarations" {
				functions = m.Value
			} else {
				others++
				rest.Add(m)
			}
		}
		for f := range rawjson.Elements(functions) {
			d.req.Tools = append(d.req.Tools, readTool(f))
		}
		if others > 0 {
			t := ninelives.Tool{Meta: ninelives.Meta{Extra: extraOf(rest.Object())}}
			for m := range rawjson.Members(t.Extra.JSON) {
				t.Kind = string(m.Name)
				break
			}
			d.req.Tools = append(d.req.Tools, t)
		}
	}
}

func readTool(raw []byte) ninelives.Tool {
	var t ninelives.Tool
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "name":
			t.Name = rawjson.String(m.Value)
		case "description":
			t.Description = rawjson.String(m.Value)
		case "parameters":
			t.Schema = readSchema(m.Value)
		case "parametersJsonSchema":
			t.Schema = bytes.Clone(m.Value)
			kept.Add(rawjson.Member{Raw: []byte(`"parametersJsonSchema":null`)})
		default:
			kept.Add(m)
		}
	}
	t.Extra = extraOf(kept.Object())
	return t
}

func (d *requestReader) toolConfig(raw []byte) bool {
	if rawjson.Kind(raw) != '{' {
		return false
	}
	var rest rawjson.Kept
	for m := range rawjson.Members(raw) {
		if word(m.Name) == "functionCallingConfig" {
			d.req.ToolChoice = readToolChoice(m.Value)
		} else {
			rest.Add(m)
		}
	}
	d.keep("toolConfig", rest)
	return true
}

func (d *requestReader) keep(name string, rest rawjson.Kept) {
	if o := rest.Object(); o != nil {
		d.kept.Add(rawjson.Member{Raw: append([]byte(`"`+name+`":`), o...)})
	}
}

func readToolChoice(raw []byte) ninelives.ToolChoice {
	var c ninelives.ToolChoice
	var mode string
	var allowed []string
	plain := true
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "mode":
			mode = strings.ToUpper(rawjson.String(m.Value))
		case "allowedFunctionNames":
			for el := range rawjson.Elements(m.Value) {
				allowed = append(allowed, rawjson.String(el))
			}
		default:
			plain = false
		}
	}
	switch mode {
	case "AUTO":
		c.Mode = ninelives.ToolChoiceAuto
	case "NONE":
		c.Mode = ninelives.ToolChoiceNone
	case "ANY":
		c.Mode = ninelives.ToolChoiceRequired
		if len(allowed) == 1 {
			c.Mode, c.Name = ninelives.ToolChoiceTool, allowed[0]
		}
	default:
		plain = false
	}
	if !plain || len(allowed) > 0 && c.Mode != ninelives.ToolChoiceTool {
		c.Extra = extraOf(bytes.Clone(raw))
	}
	return c
}

func (d *requestReader) generation(raw []byte) bool {
	if rawjson.Kind(raw) != '{' {
		return false
	}
	req := d.req
	var rest rawjson.Kept
	var mimeType, schema rawjson.Member
	for m := range rawjson.Members(raw) {
		known := true
		switch word(m.Name) {
		case "maxOutputTokens":
			req.MaxTokens, known = count(m.Value)
		case "temperature":
			req.Temperature, known = rawjson.Optional(rawjson.Float(m.Value))
		case "topP":
			req.TopP, known = rawjson.Optional(rawjson.Float(m.Value))
		case "topK":
			var n int64
			if n, known = rawjson.Int(m.Value); known {
				k := int(n)
				req.TopK = &k
			}
		case "seed":
			var n int64
			if n, known = rawjson.Int(m.Value); known {
				req.Seed = &n
			}
		case "presencePenalty":
			req.PresencePenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "frequencyPenalty":
			req.FrequencyPenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "stopSequences":
			for el := range rawjson.Elements(m.Value) {
				req.Stop = append(req.Stop, rawjson.String(el))
			}
			known = len(req.Stop) > 0
		case "candidateCount":
			if req.N, known = count(m.Value); req.N == 1 {
				req.N, known = 0, false // said, and the same as nothing
			}
		case "responseLogprobs":
			req.Logprobs, known = rawjson.Bool(m.Value)
			known = known && req.Logprobs
		case "logprobs":
			req.TopLogprobs, known = count(m.Value)
		case "thinkingConfig":
			known = readThinking(&req.Reasoning, m.Value)
		case "responseMimeType":
			mimeType = m
		case "responseSchema", "responseJsonSchema":
			schema = m
		default:
			known = false
		}
		if !known {
			rest.Add(m)
		}
	}
	switch {
	case !rawjson.Is(mimeType.Value, "application/json"):
		for _, m := range []rawjson.Member{mimeType, schema} {
			if m.Value != nil {
				rest.Add(m)
			}
		}
	case rawjson.Kind(schema.Value) != '{':
		req.Output = &ninelives.Output{}
	case word(schema.Name) == "responseSchema":
		req.Output = &ninelives.Output{Schema: readSchema(schema.Value)}
		rest.Add(rawjson.Member{Raw: []byte(`"responseSchema":null`)}) // the client's own form
	default:
		req.Output = &ninelives.Output{Schema: bytes.Clone(schema.Value)}
	}
	d.keep("generationConfig", rest)
	return true
}

func readThinking(o *ninelives.ReasoningOptions, raw []byte) bool {
	if rawjson.Kind(raw) != '{' {
		return false
	}
	var rest rawjson.Kept
	for m := range rawjson.Members(raw) {
		known := false
		switch word(m.Name) {
		case "includeThoughts":
			if v, _ := rawjson.Bool(m.Value); v {
				o.Summary, known = "auto", true
			}
		case "thinkingLevel":
			o.Effort = strings.ToLower(rawjson.String(m.Value))
			known = o.Effort != ""
		case "thinkingBudget":
			n, ok := rawjson.Int(m.Value)
			switch {
			case ok && n == 0:
				o.Effort, known = "none", true
			case ok && n > 0:
				o.Budget, known = int(n), true
			}
		}
		if !known {
			rest.Add(m)
		}
	}
	o.Extra = extraOf(rest.Object())
	return true
}

// count is a whole number above zero.
func count(raw []byte) (int, bool) {
	v, ok := rawjson.Int(raw)
	if !ok || v <= 0 {
		return 0, false
	}
	return int(v), true
}
