package openai

import (
	"bytes"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeResponsesResponse reads the whole answer of POST /responses. The error
// is a *ninelives.Fault: the body reports a failure, is no JSON, or tells of an
// answer that is not there yet.
func DecodeResponsesResponse(body []byte, o wire.DecodeOptions) (*ninelives.Response, error) {
	if rawjson.Kind(body) != '{' || !rawjson.Valid(body) {
		return nil, wire.Classify(wire.Answer{Status: 200, Body: body, Candidate: o.Candidate, InBand: true, Now: o.Now})
	}
	a := readResponsesAnswer(body)
	if fault := a.failure(body, o); fault != nil {
		fault.Partial = a.response(a.message(o), o)
		return nil, fault
	}
	r := a.response(a.message(o), o)
	if a.output == nil && a.status == "" {
		r.Warnings = append(r.Warnings, "the answer is none of the Responses protocol: it has no output and no status")
	}
	if fault := wire.Overflow(r, o); fault != nil {
		return nil, fault
	}
	return r, nil
}

// responsesAnswer is a response object, its values still raw.
type responsesAnswer struct {
	id, model, status string
	created           time.Time
	output            []byte
	usage             []byte
	reason            string // of incomplete_details
	err               []byte
	extra             []byte
}

// readResponsesAnswer reads a response object: the body of an answer, or what
// the first and last events of a stream carry.
func readResponsesAnswer(raw []byte) responsesAnswer {
	var a responsesAnswer
	var kept rawjson.Kept
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "id":
			a.id = rawjson.String(m.Value)
		case "model":
			a.model = rawjson.String(m.Value)
		case "status":
			a.status = rawjson.String(m.Value)
		case "created_at":
			if n, ok := rawjson.Int(m.Value); ok && n > 0 {
				a.created = time.Unix(n, 0).UTC()
			}
		case "output":
			if rawjson.Kind(m.Value) == '[' {
				a.output = m.Value
			}
		case "usage":
			a.usage = m.Value
		case "incomplete_details":
			a.reason = rawjson.String(rawjson.Get(m.Value, "reason"))
			kept.Add(m)
		case "error":
			a.err = m.Value
			kept.Add(m)
		default:
			kept.Add(m)
		}
	}
	a.extra = kept.Object()
	return a
}

// failure tells the fault that the object reports; nil if it is an answer.
func (a responsesAnswer) failure(body []byte, o wire.DecodeOptions) *ninelives.Fault {
	switch {
	case a.status == "failed", a.status == "" && a.output == nil && !rawjson.Null(a.err):
		if a.status == "" {
			return responsesFault(body, o)
		}
		return responsesFault(responsesErrorBody(a.err, "the provider reports that the response failed, and not why"), o)
	case a.status == "queued", a.status == "in_progress":
		f := responsesBadRequest("the answer is still %s: a background response would have to be polled, ask without background", a.status)
		f.Phase, f.Candidate, f.Billed = ninelives.PhaseAnswer, o.Candidate.Name(), ninelives.BilledMaybe
		f.Repairs = []ninelives.Repair{{Name: wire.RepairDropParameter, Param: "background", Once: true}}
		return f
	case a.status == "cancelled":
		return responsesFault(responsesErrorBody(a.err, "the provider cancelled the response"), o)
	}
	return nil
}

// responsesFault classifies an error that came in place of an answer.
func responsesFault(body []byte, o wire.DecodeOptions) *ninelives.Fault {
	return wire.Classify(wire.Answer{Status: 200, Body: body, Candidate: o.Candidate, InBand: true, Now: o.Now})
}

// responsesErrorBody puts an error into the form of an error answer.
func responsesErrorBody(raw []byte, otherwise string) []byte {
	var w rawjson.Writer
	w.Open('{')
	w.Name("error")
	if rawjson.Empty(raw) {
		w.Open('{')
		w.StringMember("message", otherwise)
		w.Close('}')
	} else {
		w.Raw(raw)
	}
	w.Close('}')
	return w.B
}

// message reads the output.
func (a responsesAnswer) message(o wire.DecodeOptions) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleAssistant}
	r := newResponsesReader(o)
	for el := range rawjson.Elements(a.output) {
		parts, id := r.item(el)
		addResponsesItem(&m, parts, id)
	}
	return m
}

func newResponsesReader(o wire.DecodeOptions) responsesReader {
	return responsesReader{
		provenance: ninelives.Provenance{Provider: o.Candidate.Provider, Model: o.Candidate.Model},
		names:      o.Names,
		outputTool: o.OutputTool,
	}
}

// response puts the answer together from its head and its message.
func (a responsesAnswer) response(m ninelives.Message, o wire.DecodeOptions) *ninelives.Response {
	r := &ninelives.Response{
		ID: a.id, Message: m, Model: a.model, Created: a.created,
		Usage: responsesUsage(a.usage), Extra: responsesExtra(a.extra),
		FinishRaw: a.status, Candidate: o.Candidate.Name(),
	}
	if a.status == "incomplete" && a.reason != "" {
		r.FinishRaw = a.reason
	}
	r.Finish = responsesFinish(a.status, a.reason)
	if a.status == "" && len(m.Parts) > 0 {
		r.Finish = ninelives.FinishStop
	}
	for i, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.Text:
			if l := rawjson.Get(p.Extra.For(ninelives.OpenAIResponses), "logprobs"); r.Logprobs.JSON == nil && !rawjson.Empty(l) {
				r.Logprobs = responsesExtra(l)
			}
		case ninelives.ToolCall:
			cut := r.Finish != ninelives.FinishStop || rawjson.Is(rawjson.Get(p.Extra.For(ninelives.OpenAIResponses), "status"), "incomplete")
			p.Arguments = wire.Arguments(p.Arguments, o.Tools, p.Name, cut)
			if p.ID == "" {
				p.ID = wire.MadeID(a.id, i, p.Name, p.Arguments)
			}
			m.Parts[i] = p
		}
	}
	r.Finish = wire.Ending(r, o)
	return r
}

// responsesFinish is what a status says about the end. A completed answer does
// not say that it ended in calls or in a refusal: its parts do.
func responsesFinish(status, reason string) ninelives.FinishReason {
	switch status {
	case "":
		return ""
	case "completed":
		return ninelives.FinishStop
	case "incomplete":
		switch reason {
		case "max_output_tokens", "max_tokens", "length":
			return ninelives.FinishLength
		case "content_filter":
			return ninelives.FinishContentFilter
		}
	}
	return ninelives.FinishOther
}

// responsesUsage reads the usage object. Output includes reasoning, and input
// includes what was cached.
func responsesUsage(raw []byte) ninelives.Usage {
	var u ninelives.Usage
	if rawjson.Kind(raw) != '{' {
		return u
	}
	count := func(field ninelives.UsageField, to *int, v []byte) {
		if n, ok := rawjson.Int(v); ok {
			*to, u.Reported = int(n), u.Reported|field
		}
	}
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "input_tokens":
			count(ninelives.UsageInput, &u.Input, m.Value)
		case "output_tokens":
			count(ninelives.UsageOutput, &u.Output, m.Value)
		case "cached_tokens":
			if !u.Has(ninelives.UsageCached) {
				count(ninelives.UsageCached, &u.Cached, m.Value)
			}
		case "reasoning_tokens":
			if !u.Has(ninelives.UsageReasoning) {
				count(ninelives.UsageReasoning, &u.Reasoning, m.Value)
			}
		case "input_tokens_details":
			count(ninelives.UsageCached, &u.Cached, rawjson.Get(m.Value, "cached_tokens"))
			count(ninelives.UsageCacheWrite, &u.CacheWrite, rawjson.Get(m.Value, "cache_write_tokens"))
		case "output_tokens_details":
			count(ninelives.UsageReasoning, &u.Reasoning, rawjson.Get(m.Value, "reasoning_tokens"))
		}
	}
	u.Extra = responsesExtra(bytes.Clone(raw))
	return u
}

// EncodeResponsesResponse writes a whole answer for a client.
func EncodeResponsesResponse(r *ninelives.Response) []byte {
	w := responsesWriter{answer: true, stem: responsesStem(r.ID), cut: r.Finish == ninelives.FinishLength}
	m := r.Message
	m.Parts = responsesCarry(m.Parts)
	w.response(responsesHead{id: r.ID, model: r.Model, created: r.Created}, r, func() { w.conversation([]ninelives.Message{m}) })
	return w.B
}

// responsesHead is what a response object says of itself from the start.
type responsesHead struct {
	id, model string
	created   time.Time
}

// response writes a response object; r is nil before its end. output writes
// the items.
func (w *responsesWriter) response(h responsesHead, r *ninelives.Response, output func()) {
	var extra []byte
	if r != nil {
		extra = r.Extra.For(ninelives.OpenAIResponses)
	}
	at := w.Open('{')
	w.StringMember("id", h.id)
	if extra == nil {
		w.StringMember("object", "response")
	}
	w.IntMember("created_at", responsesTime(h.created))
	status, reason := "in_progress", ""
	if r != nil {
		status, reason = responsesStatus(r)
	}
	w.StringMember("status", status)
	w.StringMember("model", h.model)
	if own := rawjson.Get(extra, "incomplete_details"); (own == nil || rawjson.Null(own)) && (extra == nil || reason != "") {
		w.Name("incomplete_details")
		if reason == "" {
			w.RawString("null")
		} else {
			w.Open('{')
			w.StringMember("reason", reason)
			w.Close('}')
		}
	}
	if extra == nil {
		// What a client may expect to find; the request's own values are not known here.
		w.RawString(`"error":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[]`)
	}
	w.Name("output")
	w.Open('[')
	if output != nil {
		output()
	}
	w.Close(']')
	if r != nil {
		w.usage(r.Usage)
	} else {
		w.RawString(`"usage":null`)
	}
	w.Rest(at, extra, nil)
	w.Close('}')
}

// responsesTime is a time on the wire; 0 where it is not known.
func responsesTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// responsesStatus gives the status and, for an incomplete answer, the reason.
func responsesStatus(r *ninelives.Response) (status, reason string) {
	switch r.Finish {
	case ninelives.FinishLength:
		return "incomplete", "max_output_tokens"
	case ninelives.FinishContentFilter:
		return "incomplete", "content_filter"
	case ninelives.FinishRefusal:
		if r.Message.Refusal() == "" { // without a word of its own it would look like an answer
			return "incomplete", "content_filter"
		}
	case ninelives.FinishOther:
		return "incomplete", r.FinishRaw
	}
	return "completed", ""
}

func (w *responsesWriter) usage(u ninelives.Usage) {
	w.Name("usage")
	if raw := u.Extra.For(ninelives.OpenAIResponses); raw != nil {
		w.Raw(raw)
		return
	}
	if !wire.Counted(u) {
		w.RawString("null")
		return
	}
	w.Open('{')
	w.IntMember("input_tokens", int64(u.TotalInput()))
	w.Name("input_tokens_details")
	w.Open('{')
	w.IntMember("cached_tokens", int64(u.Cached))
	if u.Has(ninelives.UsageCacheWrite) {
		w.IntMember("cache_write_tokens", int64(u.CacheWrite))
	}
	w.Close('}')
	w.IntMember("output_tokens", int64(u.TotalOutput()))
	w.Name("output_tokens_details")
	w.Open('{')
	w.IntMember("reasoning_tokens", int64(u.Reasoning))
	w.Close('}')
	w.IntMember("total_tokens", int64(u.TotalInput()+u.TotalOutput()))
	w.Close('}')
}

// responsesStem is what the ids of an answer's items are made of, so that they
// are not the same in two answers.
func responsesStem(id string) string {
	if len(id) > 5 && id[:5] == "resp_" {
		id = id[5:]
	}
	if len(id) > 40 {
		id = id[len(id)-40:]
	}
	return id
}
