package openai

import (
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
// system message becomes the instructions, unless it came as an item. An
// Output that the target does not enforce by itself is asked for in words, too.
//
// The error is a *ninelives.Fault of class format if the request cannot be
// said in this protocol at all.
func EncodeResponsesRequest(req *ninelives.Request, t wire.Target) (wire.Encoded, error) {
	support := wire.OutputSupport(req.Output, t)
	if req.Output != nil && (support == ninelives.SchemaNone || support == ninelives.SchemaObject) {
		req = wire.Instruct(req, wire.OutputInstruction(req.Output))
	}
	req = responsesStateful(req)
	prepared := wire.Prepare(req, t)
	prepared.Request.Messages = responsesStateless(prepared.Request)
	e := responsesRequest{req: prepared.Request, target: t, support: support, notes: prepared.Notes}
	e.w = responsesWriter{
		skip:         t.Dialect.StripFields,
		ownReasoning: responsesWantsReasoning(t),
		noIDs:        responsesReasoningParts(prepared.Request) < responsesReasoningParts(req),
	}
	e.w.B, e.w.note = make([]byte, 0, t.Room), e.notes.Add
	if len(e.req.Messages) == 0 {
		fault := responsesBadRequest("the request has no message that can be sent")
		fault.Candidate = t.Candidate.Name()
		return wire.Encoded{}, fault
	}
	e.write()
	return wire.Encoded{Body: e.w.B, Names: prepared.Names, Notes: e.notes, OutputTool: e.forced}, nil
}

func responsesBadRequest(format string, args ...any) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Message: fmt.Sprintf(format, args...),
	}
}

// responsesStateful keeps the results of calls that the server remembers: where
// the request goes on from an earlier response, a result without a call in the
// request is none that was lost.
func responsesStateful(req *ninelives.Request) *ninelives.Request {
	extra := req.Extra.For(ninelives.OpenAIResponses)
	if rawjson.Null(rawjson.Get(extra, "previous_response_id")) && rawjson.Null(rawjson.Get(extra, "conversation")) {
		return req
	}
	calls := map[string]bool{}
	c := req.Clone()
	for _, m := range c.Messages {
		for _, call := range m.ToolCalls() {
			calls[call.ID] = true
		}
		for i, part := range m.Parts {
			if p, ok := part.(ninelives.ToolResult); ok && !calls[p.CallID] {
				var w responsesWriter
				w.result(p)
				m.Parts[i] = ninelives.Opaque{Kind: "function_call_output", Raw: responsesExtra(w.B)}
			}
		}
	}
	return c
}

// responsesStateless leaves out reasoning of which there is only the id or a
// summary, where the server was told not to remember it (store: false): it
// would look for it in vain.
func responsesStateless(req *ninelives.Request) []ninelives.Message {
	store, said := rawjson.Bool(rawjson.Get(req.Extra.For(ninelives.OpenAIResponses), "store"))
	if store || !said {
		return req.Messages
	}
	messages := slices.Clone(req.Messages)
	for i := range messages {
		m := &messages[i]
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(part ninelives.Part) bool {
			p, ok := part.(ninelives.Reasoning)
			return ok && p.Provenance.Blob == "" && (p.Provenance.Field == responsesSummary || p.Provenance.Field == responsesEncrypted)
		})
	}
	return slices.DeleteFunc(messages, func(m ninelives.Message) bool { return len(m.Parts) == 0 })
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
	req     *ninelives.Request
	target  wire.Target
	support ninelives.SchemaSupport
	forced  string // the tool that stands in for a schema
	w       responsesWriter
	notes   wire.Notes
}

// param begins a top-level parameter; false if the server rejects it.
func (e *responsesRequest) param(name string) bool {
	name, ok := e.target.Dialect.Param(name)
	if ok {
		e.w.Name(name)
	}
	return ok
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
		e.notes.Add("%d tool(s) of another provider were not sent: %s has none of that kind", foreign, e.target.Candidate.Name())
	}
	choice := req.ToolChoice
	if e.support == ninelives.SchemaTool {
		tools, choice, e.forced = wire.ForceOutput(tools, req.Output)
	}
	if len(tools) == 0 || !e.param("tools") {
		return
	}
	w.Open('[')
	for _, t := range tools {
		e.tool(t)
	}
	w.Close(']')
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
	// The dialect's name of the limit is one of chat completions.
	if n := req.MaxTokens; n > 0 && e.param("max_output_tokens") {
		if d.MaxTokensCap > 0 && n > d.MaxTokensCap {
			e.notes.Add("the output limit was lowered from %d to %d tokens", n, d.MaxTokensCap)
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
			e.notes.Add("%s was not sent: the Responses protocol has no such parameter", p.name)
		}
	}
}

func (e *responsesRequest) reasoning() {
	w, r, d := &e.w, e.req.Reasoning, e.target.Dialect
	extra := r.Extra.For(ninelives.OpenAIResponses)
	if r.Effort == "" && r.Budget > 0 {
		e.notes.Add("the reasoning budget of %d tokens was not sent: the Responses protocol knows efforts only", r.Budget)
	}
	if r.Effort == "" && r.Summary == "" && extra == nil && !d.NoThinking || !e.param("reasoning") {
		return
	}
	effort := r.Effort
	if d.NoThinking {
		effort = "none"
	}
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
	if out == nil {
		return // an extra of its own is written with the others
	}
	formatExtra := rawjson.Get(extra, "format")
	if e.support != ninelives.SchemaNative && e.support != ninelives.SchemaObject {
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
	if e.support == ninelives.SchemaObject {
		w.StringMember("type", "json_object")
	} else {
		w.StringMember("type", "json_schema")
		w.StringMember("name", wire.OutputName(out))
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
