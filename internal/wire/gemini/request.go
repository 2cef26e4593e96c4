package gemini

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeRequest writes the body of generateContent and of
// streamGenerateContent, which is the same; see Path for the URL. All
// instructions go into the system instruction. An Output that the target does
// not enforce by itself is asked for in words, too.
//
// Members of the generation config can be dropped by their own names.
//
// The error is a *ninelives.Fault of class format if nothing of the request
// can be sent.
func EncodeRequest(req *ninelives.Request, t wire.Target) (wire.Encoded, error) {
	support := wire.OutputSupport(req.Output, t)
	if req.Output != nil && (support == ninelives.SchemaNone || support == ninelives.SchemaObject) {
		req = wire.Instruct(req, wire.OutputInstruction(req.Output))
	}
	prepared := wire.Prepare(req, t)
	e := request{req: prepared.Request, target: t, support: support, notes: prepared.Notes}
	e.w = writer{skip: t.Dialect.StripFields, note: e.notes.Add}
	e.w.B = make([]byte, 0, t.Room)
	if len(e.req.Messages) == 0 {
		return wire.Encoded{}, &ninelives.Fault{
			Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
			Candidate: t.Candidate.Name(), Message: "the request has no message that can be sent",
		}
	}
	e.write()
	return wire.Encoded{Body: e.w.B, Names: prepared.Names, Notes: e.notes, OutputTool: e.forced}, nil
}

// request writes one request.
type request struct {
	req     *ninelives.Request
	target  wire.Target
	support ninelives.SchemaSupport
	forced  string // the tool that stands in for a schema
	w       writer
	notes   wire.Notes
}

// param begins a parameter; false if the server rejects it.
func (e *request) param(name string) bool {
	name, ok := e.target.Dialect.Param(name)
	if ok {
		e.w.Name(name)
	}
	return ok
}

func (e *request) write() {
	w := &e.w
	extra := e.req.Extra.For(ninelives.Gemini)
	at := w.Open('{')
	e.contents()
	e.tools(rawjson.Get(extra, "toolConfig"))
	e.generation(rawjson.Get(extra, "generationConfig"))
	w.Rest(at, extra, e.target.Dialect.Drop)
	w.Close('}')
}

// contents writes the messages. A request of nothing but instructions sends
// them as the user's text, because there has to be one.
func (e *request) contents() {
	w := &e.w
	var system, rest []ninelives.Message
	for _, m := range e.req.Messages {
		if m.Role != ninelives.RoleSystem && m.Role != ninelives.RoleDeveloper {
			rest = append(rest, m)
			continue
		}
		system = append(system, m)
	}
	if len(rest) == 0 {
		e.notes.Add("the instructions were sent as the user's text: there is no other message")
		for _, m := range system {
			m.Role = ninelives.RoleUser
			rest = append(rest, m)
		}
		system = nil
	}
	if len(system) > 0 {
		w.Name("systemInstruction")
		at := w.Open('{')
		w.Name("parts")
		w.Open('[')
		for _, m := range system {
			w.parts(m.Parts, nil)
		}
		w.Close(']')
		w.Rest(at, system[0].Extra.For(ninelives.Gemini), w.skip)
		w.Close('}')
	}
	own := ownIDs(rest)
	var calls []ninelives.ToolCall
	w.Name("contents")
	w.Open('[')
	for i := 0; i < len(rest); i++ {
		m := rest[i]
		switch m.Role {
		case ninelives.RoleAssistant:
			calls = m.ToolCalls()
		case ninelives.RoleTool: // all results of a turn have to be in one content
			for ; i+1 < len(rest) && rest[i+1].Role == ninelives.RoleTool; i++ {
				m.Parts = append(slices.Clip(m.Parts), rest[i+1].Parts...)
			}
			m.Parts = inOrder(m.Parts, calls)
		}
		e.content(m, own)
	}
	w.Close(']')
}

func (e *request) content(m ninelives.Message, own map[string]bool) {
	w := &e.w
	at := w.Open('{')
	role := "user"
	if m.Role == ninelives.RoleAssistant {
		role = "model"
	}
	w.StringMember("role", role)
	w.Name("parts")
	w.Open('[')
	w.parts(m.Parts, own)
	w.Close(']')
	w.Rest(at, m.Extra.For(ninelives.Gemini), w.skip)
	w.Close('}')
}

// tools writes the tools and the choice between them. config are the other
// members of the tool config.
func (e *request) tools(config []byte) {
	req, w := e.req, &e.w
	var functions, own []ninelives.Tool
	for _, t := range req.Tools {
		switch {
		case t.Kind == "":
			functions = append(functions, t)
		case t.Extra.For(ninelives.Gemini) != nil:
			own = append(own, t)
		default:
			e.notes.Add("tool %s was not sent: %s has none of that kind", t.Kind, e.target.Candidate.Name())
		}
	}
	choice := req.ToolChoice
	if e.support == ninelives.SchemaTool {
		functions, choice, e.forced = wire.ForceOutput(functions, req.Output)
	}
	if len(functions)+len(own) == 0 || !e.param("tools") {
		return
	}
	w.Open('[')
	if len(functions) > 0 {
		w.Open('{')
		w.Name("functionDeclarations")
		w.Open('[')
		for _, t := range functions {
			e.tool(t)
		}
		w.Close(']')
		w.Close('}')
	}
	for _, t := range own {
		w.Raw(t.Extra.JSON)
	}
	w.Close(']')
	if p := req.ParallelTools; p != nil && !*p {
		e.notes.Add("several calls at once cannot be forbidden: %s has no such parameter", e.target.Candidate.Name())
	}
	e.toolChoice(choice, config)
}

func (e *request) tool(t ninelives.Tool) {
	w, extra := &e.w, t.Extra.For(ninelives.Gemini)
	at := w.Open('{')
	w.StringMember("name", t.Name)
	w.StringMember("description", t.Description)
	if t.Schema != nil {
		if rawjson.Get(extra, "parametersJsonSchema") != nil {
			w.RawMember("parametersJsonSchema", jsonSchema(t.Schema, e.target.Dialect.SchemaDrop))
		} else if schema := openAPISchema(t.Schema, e.target.Dialect.SchemaDrop); !takesNothing(schema) {
			w.RawMember("parameters", schema)
		}
	}
	w.Rest(at, extra, nil)
	w.Close('}')
}

// takesNothing: an object without properties is rejected as a declaration of
// parameters; a tool that takes none declares none.
func takesNothing(schema []byte) bool {
	return rawjson.Is(rawjson.Get(schema, "type"), "object") && rawjson.Empty(rawjson.Get(schema, "properties"))
}

func (e *request) toolChoice(c ninelives.ToolChoice, config []byte) {
	w, raw := &e.w, c.Extra.For(ninelives.Gemini)
	mode := map[ninelives.ToolChoiceMode]string{
		ninelives.ToolChoiceAuto: "AUTO", ninelives.ToolChoiceNone: "NONE", ninelives.ToolChoiceRequired: "ANY", ninelives.ToolChoiceTool: "ANY",
	}[c.Mode]
	if raw == nil && mode == "" || !e.param("toolConfig") {
		return
	}
	at := w.Open('{')
	w.Name("functionCallingConfig")
	if raw != nil {
		w.Raw(raw)
	} else {
		w.Open('{')
		w.StringMember("mode", mode)
		if c.Mode == ninelives.ToolChoiceTool {
			w.Name("allowedFunctionNames")
			w.Open('[')
			w.String(c.Name)
			w.Close(']')
		}
		w.Close('}')
	}
	w.Rest(at, config, nil)
	w.Close('}')
}

// generation writes what bounds and steers the answer. extra are the other
// members of the generation config.
func (e *request) generation(extra []byte) {
	w, req := &e.w, e.req
	if slices.Contains(e.target.Dialect.Drop, "generationConfig") {
		return
	}
	before := len(w.B)
	w.Name("generationConfig")
	at := w.Open('{')
	if n := req.MaxTokens; n > 0 {
		if most := e.target.Dialect.MaxTokensCap; most > 0 && n > most {
			e.notes.Add("the limit of %d tokens was lowered to %d, which is the most that %s takes", n, most, e.target.Candidate.Name())
			n = most
		}
		if e.param("maxOutputTokens") {
			w.Int(int64(n))
		}
	}
	for _, p := range []struct {
		name  string
		value *float64
	}{
		{"temperature", req.Temperature}, {"topP", req.TopP}, {"presencePenalty", req.PresencePenalty}, {"frequencyPenalty", req.FrequencyPenalty},
	} {
		if p.value != nil && e.param(p.name) {
			w.Float(*p.value)
		}
	}
	if req.TopK != nil && e.param("topK") {
		w.Int(int64(*req.TopK))
	}
	if req.Seed != nil && e.param("seed") {
		w.Int(*req.Seed)
	}
	if len(req.Stop) > 0 && e.param("stopSequences") {
		w.Open('[')
		for _, s := range req.Stop {
			w.String(s)
		}
		w.Close(']')
	}
	if req.N > 1 && e.param("candidateCount") {
		w.Int(int64(req.N))
	}
	if req.Logprobs && e.param("responseLogprobs") {
		w.Bool(true)
	}
	if req.TopLogprobs > 0 && e.param("logprobs") {
		w.Int(int64(req.TopLogprobs))
	}
	e.output(extra)
	e.thinking()
	skip := e.target.Dialect.Drop
	if rawjson.Null(rawjson.Get(extra, "responseSchema")) {
		skip = append([]string{"responseSchema"}, skip...) // says which form was the client's, and nothing else
	}
	w.Rest(at, extra, skip)
	if len(w.B) == at+1 {
		w.B = w.B[:before] // there is nothing to say
		return
	}
	w.Close('}')
}

// output writes the form of the answer. A server that rejects JSON schema gets
// the API's older Schema.
func (e *request) output(extra []byte) {
	w, out := &e.w, e.req.Output
	if e.support != ninelives.SchemaNative && e.support != ninelives.SchemaObject || !e.param("responseMimeType") {
		return
	}
	w.String("application/json")
	if e.support == ninelives.SchemaObject {
		return
	}
	drop := e.target.Dialect.SchemaDrop
	older := rawjson.Get(extra, "responseSchema") != nil // the client's own form
	switch {
	case !older && e.param("responseJsonSchema"):
		w.Raw(jsonSchema(out.Schema, drop))
	case e.param("responseSchema"):
		w.Raw(openAPISchema(out.Schema, drop))
	}
}

// Budgets stand for efforts where a model takes no thinking level.
//
// Source: the table of the API's own OpenAI compatibility, 2026.
var budgets = map[string]int{"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}

// thinking writes how much is to be thought: a level, or a budget in tokens
// where the dialect's EffortParam is "thinkingBudget" (models before Gemini 3),
// for an effort of none, and for whoever asks for a budget.
func (e *request) thinking() {
	w, r, d := &e.w, e.req.Reasoning, e.target.Dialect
	extra := r.Extra.For(ninelives.Gemini)
	effort := r.Effort
	if d.NoThinking {
		effort = "none"
	}
	if effort == "" && r.Budget == 0 && r.Summary == "" && extra == nil || !e.param("thinkingConfig") {
		return
	}
	if name, ok := d.Efforts[effort]; ok {
		effort = name
	}
	at := w.Open('{')
	if r.Summary != "" {
		w.BoolMember("includeThoughts", true)
	}
	budget, known := budgets[effort]
	switch {
	case effort == "none":
		w.IntMember("thinkingBudget", 0)
	case r.Budget > 0:
		w.IntMember("thinkingBudget", int64(r.Budget))
	case effort != "" && d.EffortParam == "thinkingBudget" && known:
		w.IntMember("thinkingBudget", int64(budget))
	case effort == "xhigh":
		e.notes.Add("the effort xhigh was sent as high, which is the most that %s has", e.target.Candidate.Name())
		w.StringMember("thinkingLevel", "high")
	case effort != "":
		w.StringMember("thinkingLevel", strings.ToLower(effort))
	}
	w.Rest(at, extra, nil)
	w.Close('}')
}
