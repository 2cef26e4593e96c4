package anthropic

import (
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// defaultMaxTokens is the output limit where neither the caller nor the
// catalogue has one: the protocol requires it. It is ours: enough for a long
// answer, and below the limit of every model since Claude 3.5.
const defaultMaxTokens = 8192

// filesBeta is the switch that uploaded files need. Source: the Files API page, 2026.
const filesBeta = "files-api-2025-04-14"

// EncodeRequest writes a request for POST /v1/messages.
//
// The error is a *ninelives.Fault of class format if the request cannot be
// said in this protocol at all.
func EncodeRequest(req *ninelives.Request, t wire.Target) (wire.Encoded, error) {
	t.Candidate.Protocol = protocol
	t.Dialect.DeveloperRole = false // the protocol has no such role
	support := outputSupport(req.Output, t)
	if req.Output != nil && support == ninelives.SchemaNone {
		req = wire.Instruct(req, wire.OutputInstruction(req.Output))
	}
	prepared := wire.Prepare(req, t)
	e := request{req: prepared.Request, target: t, support: support}
	e.w.B, e.w.notes = make([]byte, 0, t.Room), prepared.Notes
	e.w.strip = t.Dialect.StripFields
	if err := e.check(); err != nil {
		return wire.Encoded{}, err
	}
	e.output = e.forcedOutput()
	e.limitCacheHints()
	e.write()
	enc := wire.Encoded{Body: e.w.B, Names: prepared.Names, Notes: e.w.notes}
	if e.output != nil {
		enc.OutputTool = e.output.Name
	}
	if e.w.fileIDs {
		enc.Header = map[string]string{"anthropic-beta": filesBeta}
	}
	return enc, nil
}

// request writes one request.
type request struct {
	req     *ninelives.Request
	target  wire.Target
	w       writer
	support ninelives.SchemaSupport // of the output
	// output is the tool that is forced to get structured output; nil if none.
	output *ninelives.Tool
}

func (e *request) check() error {
	fail := func(message string) error {
		return &ninelives.Fault{
			Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
			Candidate: e.target.Candidate.Name(), Message: message,
		}
	}
	if !slices.ContainsFunc(e.req.Messages, func(m ninelives.Message) bool { return m.Role != ninelives.RoleSystem }) {
		return fail("the request has no message that can be sent: add one of the user")
	}
	for _, t := range e.req.Tools {
		if t.Schema != nil && rawjson.Kind(t.Schema) != '{' || t.Schema != nil && !rawjson.Valid(t.Schema) {
			return fail("the schema of tool " + t.Name + " is not a JSON object")
		}
	}
	if o := e.req.Output; o != nil && o.Schema != nil && (rawjson.Kind(o.Schema) != '{' || !rawjson.Valid(o.Schema)) {
		return fail("the schema of the output is not a JSON object")
	}
	return nil
}

// param begins a top-level parameter, under the server's own name for it; false
// if the server rejects it. The model and the stream are then in the URL.
func (e *request) param(name string) bool {
	if slices.Contains(e.target.Dialect.Drop, name) {
		if name != "model" && name != "stream" {
			e.w.notes.Add("%s was not sent: %s does not take it", name, e.target.Candidate.Name())
		}
		return false
	}
	if own, ok := e.target.Dialect.Rename[name]; ok {
		name = own
	}
	e.w.Name(name)
	return true
}

func (e *request) write() {
	req, w, d := e.req, &e.w, e.target.Dialect
	own := req.Extra.For(protocol)
	at := w.Open('{')
	if e.param("model") {
		model := e.target.Candidate.Model
		if model == "" {
			model = req.Model
		}
		w.String(model)
	}
	if d.BodyVersion != "" {
		w.StringMember("anthropic_version", d.BodyVersion)
	}
	think := e.thinking()
	field := "max_tokens"
	if d.MaxTokensField != "" {
		field = d.MaxTokensField
	}
	if e.param(field) {
		w.Int(int64(think.maxTokens))
	}
	e.messages()
	e.tools(think)
	e.sampling(think)
	if think.raw != nil && e.param("thinking") {
		w.Raw(think.raw)
	}
	e.outputConfig(think, rawjson.Get(own, "output_config"))
	if req.User != "" && !has(own, "metadata") && e.param("metadata") {
		w.Open('{')
		w.StringMember("user_id", req.User)
		w.Close('}')
	}
	if e.target.Stream && e.param("stream") {
		w.Bool(true)
	}
	w.Rest(at, own, append([]string{"stream", "output_config", "anthropic_version"}, d.Drop...))
	w.Close('}')
}

// messages writes the instructions that come first as the system parameter,
// and the others as messages.
func (e *request) messages() {
	w, all := &e.w, e.req.Messages
	lead := 0
	for lead < len(all) && all[lead].Role == ninelives.RoleSystem && all[lead].Extra.For(protocol) == nil {
		lead++
	}
	if lead > 0 && e.param("system") {
		var parts []ninelives.Part
		for _, m := range all[:lead] {
			parts = append(parts, m.Parts...)
		}
		w.content(parts)
	}
	w.Name("messages")
	w.Open('[')
	for i := lead; i < len(all); {
		i += e.message(all[i:])
	}
	w.Close(']')
}

// message writes the first of the messages and tells how many it took: results
// are blocks of a user message, all those of one turn in one, before what the
// user says after them.
func (e *request) message(all []ninelives.Message) int {
	n := 1
	if all[0].Role == ninelives.RoleTool {
		for n < len(all) && all[n].Role == ninelives.RoleTool {
			n++
		}
		if n < len(all) && all[n].Role == ninelives.RoleUser {
			n++
		}
	}
	w := &e.w
	at := w.Open('{')
	role := all[0].Role
	if role == ninelives.RoleTool {
		role = ninelives.RoleUser
	}
	w.StringMember("role", string(role))
	w.Name("content")
	if n == 1 {
		w.content(all[0].Parts)
	} else {
		w.Open('[')
		for _, m := range all[:n] {
			w.blocks(m.Parts)
		}
		w.Close(']')
	}
	for _, m := range all[:n] {
		w.Rest(at, m.Extra.For(protocol), w.strip)
	}
	w.Close('}')
	return n
}

func (e *request) tools(think thinking) {
	req, w := e.req, &e.w
	var tools []ninelives.Tool
	for _, t := range req.Tools {
		if t.Kind != "" && t.Extra.For(protocol) == nil {
			w.notes.Add("tool %s was not sent: only the provider that offers %s has it", t.Name, t.Kind)
			continue
		}
		tools = append(tools, t)
	}
	if e.output != nil {
		tools = append(tools, *e.output)
	}
	if len(tools) == 0 || !e.param("tools") {
		return
	}
	w.Open('[')
	for _, t := range tools {
		e.tool(t)
	}
	w.Close(']')
	e.toolChoice(think, len(tools))
}

func (e *request) tool(t ninelives.Tool) {
	w := &e.w
	if t.Kind != "" {
		w.Raw(t.Extra.For(protocol))
		return
	}
	at := w.Open('{')
	w.StringMember("name", t.Name)
	if t.Description != "" {
		w.StringMember("description", t.Description)
	}
	schema, merged := toolSchema(t.Schema)
	if merged {
		w.notes.Add("the alternatives in the schema of tool %s were sent as one object: the protocol takes none at the top", t.Name)
	}
	w.RawMember("input_schema", rawjson.DropKeywords(schema, e.target.Dialect.SchemaDrop))
	if t.Strict != nil && !e.target.Dialect.NoStrict && w.allows("strict") {
		w.BoolMember("strict", *t.Strict)
	}
	w.end(at, t.Meta)
}

// toolChoice writes the choice. With a forced output, a request with tools of
// its own may still call them: any one tool must be called then.
func (e *request) toolChoice(think thinking, tools int) {
	req, w := e.req, &e.w
	choice := req.ToolChoice
	if e.output != nil {
		choice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: e.output.Name}
		if tools > 1 {
			choice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}
		}
	}
	parallel := req.ParallelTools
	if e.target.Dialect.NoParallelFlag {
		parallel = nil
	}
	if own := choice.Extra.For(protocol); own != nil && e.param("tool_choice") {
		w.Raw(own)
		return
	}
	kinds := map[ninelives.ToolChoiceMode]string{
		ninelives.ToolChoiceAuto: "auto", ninelives.ToolChoiceNone: "none",
		ninelives.ToolChoiceRequired: "any", ninelives.ToolChoiceTool: "tool",
	}
	kind := kinds[choice.Mode]
	if kind == "" && parallel != nil {
		kind = "auto"
	}
	if kind == "" || !e.param("tool_choice") {
		return
	}
	w.begin(kind)
	if kind == "tool" {
		w.StringMember("name", choice.Name)
	}
	if parallel != nil && kind != "none" {
		w.BoolMember("disable_parallel_tool_use", !*parallel)
	}
	w.Close('}')
}

// sampling writes the parameters that steer the choice of words. Thinking does
// not go with all of them.
//
// Source: the extended thinking page (temperature, top_k, top_p) and the
// Messages reference (temperature at most 1), 2026.
func (e *request) sampling(think thinking) {
	req, w := e.req, &e.w
	if v := req.Temperature; v != nil {
		switch t := *v; {
		case think.on() && t != 1:
			w.notes.Add("temperature was not sent: thinking only goes with 1")
		case e.param("temperature"):
			if t > 1 {
				w.notes.Add("temperature %g was sent as 1, the protocol's largest", t)
				t = 1
			}
			w.Float(t)
		}
	}
	if v := req.TopP; v != nil {
		if think.on() && *v < 0.95 {
			w.notes.Add("top_p was not sent: thinking only goes with 0.95 or more")
		} else if e.param("top_p") {
			w.Float(*v)
		}
	}
	if v := req.TopK; v != nil {
		if think.on() {
			w.notes.Add("top_k was not sent: it does not go with thinking")
		} else if e.param("top_k") {
			w.Int(int64(*v))
		}
	}
	var stop []string
	for _, s := range req.Stop {
		if blank(s) {
			w.notes.Add("a stop sequence of nothing but white space was not sent: it is rejected")
			continue
		}
		stop = append(stop, s)
	}
	if len(stop) > 0 && e.param("stop_sequences") {
		w.Open('[')
		for _, s := range stop {
			w.String(s)
		}
		w.Close(']')
	}
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"seed", req.Seed != nil}, {"frequency_penalty", req.FrequencyPenalty != nil}, {"presence_penalty", req.PresencePenalty != nil},
		{"n", req.N > 1}, {"logprobs", req.Logprobs}, {"metadata", len(req.Metadata) > 0},
	} {
		if p.set {
			w.notes.Add("%s was not sent: the protocol has no such parameter", p.name)
		}
	}
}
