package openai

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeChatRequest writes a request for POST /chat/completions in the
// target's dialect. An Output that the target does not enforce by itself is
// asked for in words, too.
//
// The error is a *ninelives.Fault of class format if nothing of the request
// can be sent.
func EncodeChatRequest(req *ninelives.Request, t wire.Target) (wire.Encoded, error) {
	support := wire.OutputSupport(req.Output, t)
	if chatAsksInWords(req, support) {
		req = wire.Instruct(req, wire.OutputInstruction(req.Output))
	}
	prepared := wire.Prepare(req, t)
	e := chatRequest{req: prepared.Request, target: t, support: support}
	e.w = chatWriter{dialect: &t.Dialect, replayField: chatReplayField(t), request: true, note: e.notes.Add}
	e.w.B, e.notes = make([]byte, 0, t.Room), prepared.Notes
	if len(e.req.Messages) == 0 {
		return wire.Encoded{}, chatBadRequest(t.Candidate.Name(), "the request has no message that can be sent")
	}
	e.write()
	return wire.Encoded{Body: e.w.B, Names: prepared.Names, Notes: e.notes, OutputTool: e.forced}, nil
}

// chatAsksInWords reports that the form of the answer has to be asked for in
// words. JSON mode without a schema only needs the word JSON somewhere.
func chatAsksInWords(req *ninelives.Request, support ninelives.SchemaSupport) bool {
	switch {
	case req.Output == nil:
		return false
	case support == ninelives.SchemaObject && req.Output.Schema == nil:
		return !slices.ContainsFunc(req.Messages, func(m ninelives.Message) bool {
			return strings.Contains(strings.ToLower(m.Text()), "json")
		})
	}
	return support == ninelives.SchemaNone || support == ninelives.SchemaObject
}

func chatBadRequest(candidate, format string, args ...any) *ninelives.Fault {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Candidate: candidate, Message: fmt.Sprintf(format, args...),
	}
}

// chatReplayField is where the target wants earlier reasoning; empty means
// where it came from.
func chatReplayField(t wire.Target) string {
	if t.Dialect.ReplayField != "" {
		return t.Dialect.ReplayField
	}
	return t.Candidate.ReplayField
}

// chatRequest writes one request.
type chatRequest struct {
	req     *ninelives.Request
	target  wire.Target
	support ninelives.SchemaSupport
	forced  string // the tool that stands in for a schema
	w       chatWriter
	notes   wire.Notes
}

// param begins a top-level parameter; false if the server rejects it.
func (e *chatRequest) param(name string) bool {
	name, ok := e.target.Dialect.Param(name)
	if ok {
		e.w.Name(name)
	}
	return ok
}

func (e *chatRequest) write() {
	req, w, d := e.req, &e.w, e.target.Dialect
	at := w.Open('{')
	model := e.target.Candidate.Model
	if model == "" {
		model = req.Model
	}
	w.StringMember("model", model)
	w.Name("messages")
	w.Open('[')
	for i := 0; i < len(req.Messages); i++ {
		w.message(req.Messages, i)
	}
	w.Close(']')
	e.tools()
	e.limits()
	e.reasoning()
	e.output()
	if len(req.Metadata) > 0 && e.param("metadata") {
		w.Open('{')
		for _, k := range slices.Sorted(maps.Keys(req.Metadata)) {
			w.StringMember(k, req.Metadata[k])
		}
		w.Close('}')
	}
	if req.CacheKey != "" && e.param("prompt_cache_key") {
		w.String(req.CacheKey)
	}
	if req.User != "" && e.param("user") {
		w.String(req.User)
	}
	extra := req.Extra.For(ninelives.OpenAIChat)
	if e.target.Stream && !d.NoStream && e.param("stream") {
		w.Bool(true)
		if !d.NoStreamUsage && e.param("stream_options") {
			inner := w.Open('{')
			w.BoolMember("include_usage", true)
			w.Rest(inner, rawjson.Get(extra, "stream_options"), nil)
			w.Close('}')
		}
	}
	w.Rest(at, extra, append([]string{"stream", "stream_options"}, d.Drop...))
	w.Close('}')
}

func (e *chatRequest) limits() {
	req, w, d := e.req, &e.w, e.target.Dialect
	if n := req.MaxTokens; n > 0 {
		field := d.MaxTokensField
		if field == "" {
			field = "max_tokens"
		}
		if d.MaxTokensCap > 0 && n > d.MaxTokensCap {
			e.notes.Add("the limit of %d tokens was lowered to %d, which is the most that %s takes", n, d.MaxTokensCap, e.target.Candidate.Name())
			n = d.MaxTokensCap
		}
		if e.param(field) {
			w.Int(int64(n))
		}
	}
	e.float("temperature", req.Temperature)
	e.float("top_p", req.TopP)
	if req.TopK != nil && e.param("top_k") {
		w.Int(int64(*req.TopK))
	}
	e.float("frequency_penalty", req.FrequencyPenalty)
	e.float("presence_penalty", req.PresencePenalty)
	if req.Seed != nil && e.param("seed") {
		w.Int(*req.Seed)
	}
	if len(req.Stop) > 0 && e.param("stop") {
		w.Open('[')
		for _, s := range req.Stop {
			w.String(s)
		}
		w.Close(']')
	}
	if req.N > 1 && e.param("n") {
		w.Int(int64(req.N))
	}
	if req.Logprobs && e.param("logprobs") {
		w.Bool(true)
	}
	if req.TopLogprobs > 0 && e.param("top_logprobs") {
		w.Int(int64(req.TopLogprobs))
	}
}

func (e *chatRequest) float(name string, v *float64) {
	if v != nil && e.param(name) {
		e.w.Float(*v)
	}
}

func (e *chatRequest) tools() {
	req, w := e.req, &e.w
	var tools []ninelives.Tool
	for _, t := range req.Tools {
		if t.Kind != "" && t.Extra.For(ninelives.OpenAIChat) == nil {
			e.notes.Add("tool %s was not sent: %s has none of that kind", t.Kind, e.target.Candidate.Name())
			continue
		}
		tools = append(tools, t)
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

func (e *chatRequest) tool(t ninelives.Tool) {
	w, d := &e.w, e.target.Dialect
	extra := t.Extra.For(ninelives.OpenAIChat)
	if t.Kind != "" {
		w.Raw(extra)
		return
	}
	at := w.Open('{')
	w.StringMember("type", "function")
	w.Name("function")
	inner := w.Open('{')
	w.StringMember("name", t.Name)
	if t.Description != "" {
		w.StringMember("description", t.Description)
	}
	if t.Schema != nil {
		w.RawMember("parameters", rawjson.DropKeywords(t.Schema, d.SchemaDrop))
	}
	if t.Strict != nil && !d.NoStrict {
		w.BoolMember("strict", *t.Strict)
	}
	w.Rest(inner, rawjson.Get(extra, "function"), nil)
	w.Close('}')
	w.cache(t.Cache)
	w.Rest(at, extra, nil)
	w.Close('}')
}

func (e *chatRequest) toolChoice(c ninelives.ToolChoice) {
	w, raw := &e.w, c.Extra.For(ninelives.OpenAIChat)
	if raw == nil && c.Mode == "" || !e.param("tool_choice") {
		return
	}
	switch {
	case raw != nil:
		w.Raw(raw)
	case c.Mode == ninelives.ToolChoiceTool:
		w.Open('{')
		w.StringMember("type", "function")
		w.Name("function")
		w.Open('{')
		w.StringMember("name", c.Name)
		w.Close('}')
		w.Close('}')
	default:
		w.String(string(c.Mode))
	}
}

// output writes the form of the answer where the server enforces it.
func (e *chatRequest) output() {
	w, o, d := &e.w, e.req.Output, e.target.Dialect
	switch {
	case e.support == ninelives.SchemaObject:
		if e.param("response_format") {
			w.RawString(`{"type":"json_object"}`)
		}
	case e.support == ninelives.SchemaNative:
		if !e.param("response_format") {
			return
		}
		w.Open('{')
		w.StringMember("type", "json_schema")
		w.Name("json_schema")
		w.Open('{')
		w.StringMember("name", wire.OutputName(o))
		if o.Description != "" {
			w.StringMember("description", o.Description)
		}
		w.RawMember("schema", rawjson.DropKeywords(o.Schema, d.SchemaDrop))
		if o.Strict != nil && !d.NoStrict {
			w.BoolMember("strict", *o.Strict)
		}
		w.Close('}')
		w.Close('}')
	}
}

// reasoning writes how much is to be thought, in the server's own parameter.
func (e *chatRequest) reasoning() {
	w, d, r := &e.w, e.target.Dialect, e.req.Reasoning
	own := r.Extra.For(ninelives.OpenAIChat)
	effort := r.Effort
	if d.NoThinking {
		effort = "none"
	}
	if d.NoThinking && e.switchOff() {
		return
	}
	off := effort == "none"
	word := effort
	if mapped, ok := d.Efforts[effort]; ok {
		word = mapped
	}
	switch d.EffortParam {
	case "thinking": // {"type":"enabled"} or "disabled"
		if effort != "" && e.param("thinking") {
			w.Open('{')
			w.StringMember("type", map[bool]string{true: "disabled", false: "enabled"}[off])
			w.Close('}')
		}
	case "enable_thinking":
		if effort != "" && e.param("enable_thinking") {
			w.Bool(!off)
		}
		if r.Budget > 0 && !off && e.param("thinking_budget") {
			w.Int(int64(r.Budget))
		}
	case "reasoning.effort":
		if effort == "" && r.Budget == 0 && own == nil || !e.param("reasoning") {
			return
		}
		at := w.Open('{')
		switch {
		case off:
			w.BoolMember("enabled", false)
		case r.Budget > 0: // one or the other
			w.IntMember("max_tokens", int64(r.Budget))
		case effort != "":
			w.StringMember("effort", word)
		}
		w.Rest(at, own, chatReasoningMembers)
		w.Close('}')
	default:
		if word != "" && e.param("reasoning_effort") {
			w.String(word)
		}
	}
}

// switchOff turns off a switch of the caller's own that the vocabulary has no
// word for; false if there is none.
func (e *chatRequest) switchOff() bool {
	extra := e.req.Extra.For(ninelives.OpenAIChat)
	switch {
	case rawjson.Get(extra, "enable_thinking") != nil && e.param("enable_thinking"):
		e.w.Bool(false)
	case rawjson.Get(extra, "thinking") != nil && e.param("thinking"):
		e.w.RawString(`{"type":"disabled"}`)
	default:
		return false
	}
	return true
}

// chatReasoningMembers are the members of the reasoning parameter that the
// vocabulary has words for.
var chatReasoningMembers = []string{"effort", "max_tokens", "enabled"}
