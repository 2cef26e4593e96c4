package openai

import (
	"bytes"
	"fmt"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// The values of "include" that have a meaning here.
const (
	responsesIncludeLogprobs  = "message.output_text.logprobs"
	responsesIncludeReasoning = "reasoning.encrypted_content"
)

// EncodeResponsesRequest writes a request for POST /responses. A leading
// system message becomes the instructions, unless it came as an item.
//
// The error is a *ninelives.Fault of class format if the request cannot be
// said in this protocol at all.
func EncodeResponsesRequest(req *ninelives.Request, t wire.Target) (wire.Encoded, error) {
	prepared := wire.Prepare(req, t)
	e := responsesRequest{req: prepared.Request, target: t, notes: prepared.Notes}
	e.w = responsesWriter{
		skip:         t.Dialect.StripFields,
		ownReasoning: responsesWantsReasoning(t),
		noIDs:        responsesReasoningParts(prepared.Request) < responsesReasoningParts(req),
		note:         e.note,
	}
	e.w.note = e.note
	if len(e.req.Messages) == 0 {
		return wire.Encoded{}, &ninelives.Fault{
			Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
			Candidate: t.Candidate.Name(), Message: "the request has no message that can be sent",
		}
	}
	e.write()
	return wire.Encoded{Body: e.w.B, Names: prepared.Names, Notes: e.notes}, nil
}

// responsesWantsReasoning reports that the target asks for earlier reasoning, whatever
// protocol it came by.
func responsesWantsReasoning(t wire.Target) bool {
	rule := t.Candidate.Replay
	if t.Dialect.Replay != "" {
		rule = t.Dialect.Replay
	}
	return rule == ninelives.ReplayRequireAlways || rule == ninelives.ReplayRequireOnToolCalls
}

func responsesReasoningParts(req *ninelives.Request) int {
	n := 0
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if _, ok := p.(ninelives.Reasoning); ok {
				n++
			}
		}
	}
	return n
}

// responsesRequest writes one request.
type responsesRequest struct {
	req    *ninelives.Request
	target wire.Target
	w      responsesWriter
	notes  []string
}

func (e *responsesRequest) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(e.notes, n) {
		e.notes = append(e.notes, n)
	}
}

// param begins a top-level parameter; false if the server rejects it.
func (e *responsesRequest) param(name string) bool {
	if slices.Contains(e.target.Dialect.Drop, name) {
		return false
	}
	e.w.Name(name)
	return true
}

func (e *responsesRequest) write() {
	req, w := e.req, &e.w
	extra := req.Extra.For(ninelives.OpenAIResponses)
	at := w.Open('{')
	model := e.target.Candidate.Model
	if model == "" {
		model = req.Model
	}
	w.StringMember("model", model)
	e.messages()
	e.tools()
	e.limits()
	e.reasoning()
	e.text(rawjson.Get(extra, "text"))
	e.include(rawjson.Get(extra, "include"))
	if len(req.Metadata) > 0 && e.param("metadata") {
		w.stringMap(req.Metadata)
	}
	if req.CacheKey != "" && e.param("prompt_cache_key") {
		w.String(req.CacheKey)
	}
	if req.User != "" && e.param("user") {
		w.String(req.User)
	}
	if e.target.Stream && e.param("stream") {
		w.Bool(true)
	}
	w.Rest(at, extra, append([]string{"stream"}, e.target.Dialect.Drop...))
	w.Close('}')
}

func (e *responsesRequest) messages() {
	w, messages := &e.w, e.req.Messages
	if m := messages[0]; isResponsesInstructions(m) && len(messages) > 1 && !slices.Contains(e.target.Dialect.Drop, "instructions") {
		w.StringMember("instructions", m.Text())
		messages = messages[1:]
	}
	w.Name("input")
	w.Open('[')
	w.conversation(messages)
	w.Close(']')
}

// isResponsesInstructions: a system message of a single plain text that did not come as an item.
func isResponsesInstructions(m ninelives.Message) bool {
	if m.Role != ninelives.RoleSystem || len(m.Parts) != 1 || m.Extra.For(ninelives.OpenAIResponses) != nil {
		return false
	}
	t, ok := m.Parts[0].(ninelives.Text)
	return ok && t.Extra.For(ninelives.OpenAIResponses) == nil
}

func (e *responsesRequest) tools() {
	w, req := &e.w, e.req
	var tools []ninelives.Tool
	foreign := 0
	for _, t := range req.Tools {
		if t.Kind != "" && t.Extra.For(ninelives.OpenAIResponses) == nil {
			foreign++
			continue
		}
		tools = append(tools, t)
	}
	if foreign > 0 {
		e.note("%d tool(s) of another provider were not sent: %s has none of that kind", foreign, e.target.Candidate.Name())
	}
	forced := e.forcedOutput()
	if forced != nil {
		tools = append(tools, *forced)
	}
	if len(tools) > 0 && e.param("tools") {
		w.Open('[')
		for _, t := range tools {
			e.tool(t)
		}
		w.Close(']')
	}
	if len(tools) == 0 {
		return
	}
	choice := req.ToolChoice
	if forced != nil && len(tools) == 1 {
		choice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: forced.Name}
	} else if forced != nil {
		choice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}
	}
	e.toolChoice(choice)
	if p := req.ParallelTools; p != nil && !e.target.Dialect.NoParallelFlag && e.param("parallel_tool_calls") {
		w.Bool(*p)
	}
}

func (e *responsesRequest) toolChoice(c ninelives.ToolChoice) {
	w := &e.w
	raw := c.Extra.For(ninelives.OpenAIResponses)
	if raw == nil && c.Mode == "" || !e.param("tool_choice") {
		return
	}
	switch {
	case raw != nil:
		w.Raw(raw)
	case c.Mode == ninelives.ToolChoiceTool:
		w.Open('{')
		w.StringMember("type", "function")
		w.StringMember("name", c.Name)
		w.Close('}')
	default:
		w.String(string(c.Mode))
	}
}

// tool writes one tool. This protocol takes a missing strict flag for true
// and then makes optional arguments mandatory, which no other one does: a tool
// that does not say is sent as not strict, unless it came by this protocol.
func (e *responsesRequest) tool(t ninelives.Tool) {
	w, raw := &e.w, t.Extra.For(ninelives.OpenAIResponses)
	if t.Kind != "" {
		w.Raw(raw)
		return
	}
	at := w.Open('{')
	w.StringMember("type", "function")
	w.StringMember("name", t.Name)
	if t.Description != "" {
		w.StringMember("description", t.Description)
	}
	if t.Schema != nil {
		w.RawMember("parameters", rawjson.DropKeywords(t.Schema, e.target.Dialect.SchemaDrop))
	} else if raw == nil {
		w.RawMember("parameters", []byte(`{"type":"object","properties":{}}`))
	}
	switch {
	case e.target.Dialect.NoStrict:
	case t.Strict != nil:
		w.BoolMember("strict", *t.Strict)
	case raw == nil:
		w.BoolMember("strict", false)
	}
	w.Rest(at, raw, nil)
	w.Close('}')
}

// limits writes what bounds and steers sampling, and tells what has no place.
func (e *responsesRequest) limits() {
	w, req, d := &e.w, e.req, e.target.Dialect
	field := "max_output_tokens"
	if d.MaxTokensField != "" {
		field = d.MaxTokensField
	}
	if n := req.MaxTokens; n > 0 && e.param(field) {
		if d.MaxTokensCap > 0 && n > d.MaxTokensCap {
			e.note("the output limit was lowered from %d to %d tokens", n, d.MaxTokensCap)
			n = d.MaxTokensCap
		}
		w.Int(int64(n))
	}
	for _, p := range []struct {
		name  string
		value *float64
	}{
		{"temperature", req.Temperature}, {"top_p", req.TopP},
		{"frequency_penalty", req.FrequencyPenalty}, {"presence_penalty", req.PresencePenalty},
	} {
		if p.value != nil && e.param(p.name) {
			w.Float(*p.value)
		}
	}
	if req.TopLogprobs > 0 && e.param("top_logprobs") {
		w.Int(int64(req.TopLogprobs))
	}
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"top_k", req.TopK != nil}, {"seed", req.Seed != nil}, {"stop", len(req.Stop) > 0}, {"n", req.N > 1},
	} {
		if p.set {
			e.note("%s was not sent: the Responses protocol has no such parameter", p.name)
		}
	}
}

func (e *responsesRequest) reasoning() {
	w, r, d := &e.w, e.req.Reasoning, e.target.Dialect
	extra := r.Extra.For(ninelives.OpenAIResponses)
	if r.Effort == "" && r.Budget > 0 {
		e.note("the reasoning budget of %d tokens was not sent: the Responses protocol knows efforts only", r.Budget)
	}
	if r.Effort == "" && r.Summary == "" && extra == nil || !e.param("reasoning") {
		return
	}
	effort := r.Effort
	if name, ok := d.Efforts[effort]; ok {
		effort = name
	}
	at := w.Open('{')
	if effort != "" {
		w.StringMember("effort", effort)
	}
	if r.Summary != "" {
		w.StringMember("summary", r.Summary)
	}
	w.Rest(at, extra, nil)
	w.Close('}')
}

// text writes the form of the answer together with the other members that the
// request's own text parameter has.
func (e *responsesRequest) text(extra []byte) {
	w, out := &e.w, e.req.Output
	support := e.schemaSupport()
	if out == nil {
		return // an extra of its own is written with the others
	}
	formatExtra := rawjson.Get(extra, "format")
	if support != ninelives.SchemaNative && support != ninelives.SchemaObject {
		if formatExtra != nil && e.param("text") { // of a format that is not asked for
			at := w.Open('{')
			w.Rest(at, extra, []string{"format"})
			w.Close('}')
		}
		return
	}
	if !e.param("text") {
		return
	}
	at := w.Open('{')
	w.Name("format")
	inner := w.Open('{')
	if out.Schema == nil || support == ninelives.SchemaObject {
		w.StringMember("type", "json_object")
	} else {
		w.StringMember("type", "json_schema")
		w.StringMember("name", responsesOutputName(out))
		if out.Description != "" {
			w.StringMember("description", out.Description)
		}
		w.RawMember("schema", rawjson.DropKeywords(out.Schema, e.target.Dialect.SchemaDrop))
		if out.Strict != nil && !e.target.Dialect.NoStrict {
			w.BoolMember("strict", *out.Strict)
		}
	}
	w.Rest(inner, formatExtra, nil)
	w.Close('}')
	w.Rest(at, extra, nil)
	w.Close('}')
}

func (e *responsesRequest) schemaSupport() ninelives.SchemaSupport {
	if e.target.Dialect.SchemaSet {
		return e.target.Dialect.Schema
	}
	return e.target.Candidate.Schema
}

// forcedOutput is the tool that stands in for a schema where the target can
// only force a tool.
func (e *responsesRequest) forcedOutput() *ninelives.Tool {
	out := e.req.Output
	if out == nil || out.Schema == nil || e.schemaSupport() != ninelives.SchemaTool {
		return nil
	}
	return &ninelives.Tool{Name: responsesOutputName(out), Description: out.Description, Schema: out.Schema, Strict: out.Strict}
}

func responsesOutputName(out *ninelives.Output) string {
	if out.Name != "" {
		return out.Name
	}
	return "answer"
}

// include asks for what is needed beyond the caller's own list: logprobs, and
// the encrypted reasoning of a model that reasons, without which its turn
// could not be sent back.
func (e *responsesRequest) include(own []byte) {
	var want []string
	if e.req.Logprobs {
		want = append(want, responsesIncludeLogprobs)
	}
	if r := e.target.Candidate.Replay; r != "" && r != ninelives.ReplayForbid && !e.target.Dialect.DropReasoning {
		want = append(want, responsesIncludeReasoning)
	}
	var have []string
	for el := range rawjson.Elements(own) {
		have = append(have, rawjson.String(el))
	}
	want = slices.DeleteFunc(want, func(s string) bool { return slices.Contains(have, s) })
	if len(want) == 0 || !e.param("include") {
		return
	}
	e.w.Open('[')
	for _, s := range append(have, want...) {
		e.w.String(s)
	}
	e.w.Close(']')
}

func (w *responsesWriter) stringMap(m map[string]string) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	w.Open('{')
	for _, k := range keys {
		w.StringMember(k, m[k])
	}
	w.Close('}')
}

// DecodeResponsesRequest reads the body of POST /responses as a server gets
// it. stream says that the client wants a stream. The error is a
// *ninelives.Fault of class format that says what is wrong with the body.
func DecodeResponsesRequest(body []byte) (req *ninelives.Request, stream bool, err error) {
	if rawjson.Kind(body) != '{' || !rawjson.Valid(body) {
		return nil, false, responsesBadRequest("the body is not a JSON object")
	}
	req = &ninelives.Request{}
	var kept rawjson.Kept
	var input, instructions []byte
	for m := range rawjson.Members(body) {
		known := true
		switch string(m.Name) {
		case "model":
			req.Model = rawjson.String(m.Value)
		case "input":
			input = m.Value
		case "instructions":
			if known = rawjson.Kind(m.Value) == '"'; known {
				instructions = m.Value
			}
		case "stream":
			stream, known = rawjson.Bool(m.Value)
		case "tools":
			req.Tools = responsesTools(m.Value)
		case "tool_choice":
			known = responsesToolChoice(&req.ToolChoice, m.Value)
		case "parallel_tool_calls":
			req.ParallelTools, known = responsesBool(m.Value)
		case "max_output_tokens":
			req.MaxTokens, known = responsesCount(m.Value)
		case "temperature":
			req.Temperature, known = responsesFloat(m.Value)
		case "top_p":
			req.TopP, known = responsesFloat(m.Value)
		case "frequency_penalty":
			req.FrequencyPenalty, known = responsesFloat(m.Value)
		case "presence_penalty":
			req.PresencePenalty, known = responsesFloat(m.Value)
		case "top_logprobs":
			req.TopLogprobs, known = responsesCount(m.Value)
		case "reasoning":
			known = responsesReasoningOptions(&req.Reasoning, m.Value)
		case "text":
			known = responsesOutput(req, &kept, m.Value)
		case "include":
			n := 0
			for el := range rawjson.Elements(m.Value) {
				n++
				req.Logprobs = req.Logprobs || rawjson.Is(el, responsesIncludeLogprobs)
			}
			known = req.Logprobs && n == 1
		case "metadata":
			req.Metadata, known = responsesMetadata(m.Value)
		case "prompt_cache_key":
			req.CacheKey = rawjson.String(m.Value)
			known = req.CacheKey != ""
		case "user":
			req.User = rawjson.String(m.Value)
			known = req.User != ""
		default:
			known = false
		}
		if !known {
			kept.Add(m)
		}
	}
	req.Extra = responsesExtra(kept.Object())
	if req.Messages, err = responsesInput(input); err != nil {
		return nil, false, err
	}
	if instructions != nil {
		req.Messages = append([]ninelives.Message{ninelives.SystemText(rawjson.String(instructions))}, req.Messages...)
	} else if len(req.Messages) > 0 && isResponsesInstructions(req.Messages[0]) {
		req.Messages[0].Extra = responsesExtra([]byte("{}")) // it came as an item
	}
	return req, stream, nil
}

func responsesBadRequest(format string, args ...any) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Message: fmt.Sprintf(format, args...),
	}
}

// responsesInput reads the input: a text, or a list of items.
func responsesInput(raw []byte) ([]ninelives.Message, error) {
	switch rawjson.Kind(raw) {
	case '"':
		return []ninelives.Message{ninelives.UserText(rawjson.String(raw))}, nil
	case '[':
	case 0, 'n':
		return nil, nil // previous_response_id or a stored prompt may be all there is
	default:
		return nil, responsesBadRequest("input must be a string or a list of items")
	}
	var messages []ninelives.Message
	last := func(role ninelives.Role) *ninelives.Message {
		if n := len(messages); n > 0 && messages[n-1].Role == role {
			return &messages[n-1]
		}
		messages = append(messages, ninelives.Message{Role: role})
		return &messages[len(messages)-1]
	}
	names := map[string]string{} // of tools, by call id
	var r responsesReader
	for el := range rawjson.Elements(raw) {
		if rawjson.Kind(el) != '{' {
			return nil, responsesBadRequest("an item of the input is not an object: %.40s", el)
		}
		kind, role := rawjson.Get(el, "type"), rawjson.String(rawjson.Get(el, "role"))
		switch {
		case rawjson.Is(kind, "function_call_output"):
			p := r.functionResult(el)
			p.Name = names[p.CallID]
			m := last(ninelives.RoleTool)
			m.Parts = append(m.Parts, p)
		case role != "" && role != "assistant" && (kind == nil || rawjson.Is(kind, "message")):
			messages = append(messages, r.userMessage(el, ninelives.Role(role)))
		default:
			parts, id := r.item(el)
			if _, other := parts[0].(ninelives.Opaque); other && len(messages) > 0 && messages[len(messages)-1].Role == ninelives.RoleTool {
				m := last(ninelives.RoleTool)
				m.Parts = append(m.Parts, parts...)
				continue
			}
			m := last(ninelives.RoleAssistant)
			addResponsesItem(m, parts, id)
			for _, c := range (ninelives.Message{Parts: parts}).ToolCalls() {
				names[c.ID] = c.Name
			}
		}
	}
	return messages, nil
}

// addResponsesItem adds the parts of an item to a turn. The id of the turn's first
// message item is the turn's; later ones keep theirs with the item.
func addResponsesItem(m *ninelives.Message, parts []ninelives.Part, id string) {
	if id != "" {
		if m.ID == "" && !hasResponsesMessage(m.Parts) {
			m.ID = id
		} else {
			parts[0] = responsesWithItemID(parts[0], id)
		}
	}
	m.Parts = append(m.Parts, parts...)
}

func hasResponsesMessage(parts []ninelives.Part) bool {
	for _, p := range parts {
		switch p.(type) {
		case ninelives.Text, ninelives.Refusal:
			return true
		}
	}
	return false
}

// responsesWithItemID puts the id among the members of the item that begins with part.
func responsesWithItemID(part ninelives.Part, id string) ninelives.Part {
	change := func(meta *ninelives.Meta) {
		members, _ := responsesItemOf(meta.Extra)
		var item, w rawjson.Writer
		at := item.Open('{')
		item.StringMember("id", id)
		item.Rest(at, members, nil)
		item.Close('}')
		at = w.Open('{')
		w.Rest(at, meta.Extra.JSON, []string{responsesItemKey})
		w.RawMember(responsesItemKey, item.B)
		w.Close('}')
		meta.Extra = responsesExtra(w.B)
	}
	switch p := part.(type) {
	case ninelives.Text:
		change(&p.Meta)
		return p
	case ninelives.Refusal:
		change(&p.Meta)
		return p
	}
	return part
}

// userMessage reads a message item of anybody but the assistant.
func (r *responsesReader) userMessage(raw []byte, role ninelives.Role) ninelives.Message {
	m := ninelives.Message{Role: role}
	var kept rawjson.Kept
	for member := range rawjson.Members(raw) {
		switch string(member.Name) {
		case "type", "role":
		case "id":
			m.ID = rawjson.String(member.Value)
		case "content":
			m.Parts = r.content(member.Value)
		default:
			kept.Add(member)
		}
	}
	members := kept.Object()
	if members == nil && m.ID != "" {
		members = []byte("{}") // the id is one of this protocol
	}
	m.Extra = responsesExtra(members)
	return m
}

func responsesTools(raw []byte) []ninelives.Tool {
	var tools []ninelives.Tool
	for el := range rawjson.Elements(raw) {
		var t ninelives.Tool
		if kind := rawjson.String(rawjson.Get(el, "type")); kind != "function" {
			t.Kind, t.Name, t.Extra = kind, rawjson.String(rawjson.Get(el, "name")), responsesExtra(bytes.Clone(el))
			tools = append(tools, t)
			continue
		}
		var kept rawjson.Kept
		for m := range rawjson.Members(el) {
			known := true
			switch string(m.Name) {
			case "type":
			case "name":
				t.Name = rawjson.String(m.Value)
			case "description":
				t.Description = rawjson.String(m.Value)
			case "parameters":
				if known = rawjson.Kind(m.Value) == '{'; known {
					t.Schema = bytes.Clone(m.Value)
				}
			case "strict":
				t.Strict, known = responsesBool(m.Value)
			default:
				known = false
			}
			if !known {
				kept.Add(m)
			}
		}
		members := kept.Object()
		if members == nil && (t.Strict == nil || t.Schema == nil) {
			members = []byte("{}") // what is missing means what this protocol says
		}
		t.Extra = responsesExtra(members)
		tools = append(tools, t)
	}
	return tools
}

func responsesToolChoice(c *ninelives.ToolChoice, raw []byte) bool {
	switch rawjson.Kind(raw) {
	case '"':
		switch mode := ninelives.ToolChoiceMode(rawjson.String(raw)); mode {
		case ninelives.ToolChoiceAuto, ninelives.ToolChoiceNone, ninelives.ToolChoiceRequired:
			c.Mode = mode
			return true
		}
		return false
	case '{':
	default:
		return false
	}
	kind, members := rawjson.Get(raw, "type"), 0
	for range rawjson.Members(raw) {
		members++
	}
	switch {
	case rawjson.Is(kind, "function"):
		c.Mode, c.Name = ninelives.ToolChoiceTool, rawjson.String(rawjson.Get(raw, "name"))
		if members == 2 && c.Name != "" {
			return true
		}
	case rawjson.Is(kind, "allowed_tools"):
		c.Mode = ninelives.ToolChoiceMode(rawjson.String(rawjson.Get(raw, "mode")))
	}
	c.Extra = responsesExtra(bytes.Clone(raw))
	return true
}

func responsesReasoningOptions(o *ninelives.ReasoningOptions, raw []byte) bool {
	if rawjson.Kind(raw) != '{' {
		return false
	}
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch {
		case string(m.Name) == "effort" && rawjson.Kind(m.Value) == '"':
			o.Effort = rawjson.String(m.Value)
		case string(m.Name) == "summary" && rawjson.Kind(m.Value) == '"':
			o.Summary = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	o.Extra = responsesExtra(kept.Object())
	return true
}

// responsesOutput reads the text parameter. What it says beyond the form of
// the answer is kept.
func responsesOutput(req *ninelives.Request, kept *rawjson.Kept, raw []byte) bool {
	format := rawjson.Get(raw, "format")
	kind := rawjson.Get(format, "type")
	isSchema := rawjson.Is(kind, "json_schema")
	if !isSchema && !rawjson.Is(kind, "json_object") {
		return false
	}
	out := &ninelives.Output{}
	var rest, formatRest rawjson.Kept
	for m := range rawjson.Members(format) {
		known := true
		switch string(m.Name) {
		case "type":
		case "name":
			out.Name = rawjson.String(m.Value)
		case "description":
			out.Description = rawjson.String(m.Value)
		case "schema":
			if known = isSchema; known {
				out.Schema = bytes.Clone(m.Value)
			}
		case "strict":
			out.Strict, known = responsesBool(m.Value)
		default:
			known = false
		}
		if !known {
			formatRest.Add(m)
		}
	}
	for m := range rawjson.Members(raw) {
		if string(m.Name) != "format" {
			rest.Add(m)
			continue
		}
		if o := formatRest.Object(); o != nil {
			rest.Add(rawjson.Member{Raw: append([]byte(`"format":`), o...)})
		}
	}
	if o := rest.Object(); o != nil {
		kept.Add(rawjson.Member{Raw: append([]byte(`"text":`), o...)})
	}
	req.Output = out
	return true
}

func responsesMetadata(raw []byte) (map[string]string, bool) {
	if rawjson.Empty(raw) {
		return nil, false
	}
	var m map[string]string
	for el := range rawjson.Members(raw) {
		if rawjson.Kind(el.Value) != '"' {
			return nil, false
		}
		if m == nil {
			m = map[string]string{}
		}
		m[string(el.Name)] = rawjson.String(el.Value)
	}
	return m, m != nil
}

func responsesBool(raw []byte) (*bool, bool) {
	v, ok := rawjson.Bool(raw)
	if !ok {
		return nil, false
	}
	return &v, true
}

func responsesFloat(raw []byte) (*float64, bool) {
	v, ok := rawjson.Float(bytes.TrimSpace(raw))
	if !ok {
		return nil, false
	}
	return &v, true
}

// responsesCount reads a count; zero and what is no whole number are not taken for one.
func responsesCount(raw []byte) (int, bool) {
	v, ok := rawjson.Int(raw)
	return int(v), ok && v > 0
}
