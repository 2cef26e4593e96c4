package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeResponse reads a whole answer with status 200. The error is a
// *ninelives.Fault: of class empty for no body at all, and what the classifier
// makes of an error or a page that pretends to be an answer.
func DecodeResponse(body []byte, o wire.DecodeOptions) (*ninelives.Response, error) {
	if blank(string(body)) {
		return nil, &ninelives.Fault{
			Class: ninelives.ClassEmpty, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseAnswer, Status: 200,
			Candidate: o.Candidate.Name(), Message: "the answer has no body",
		}
	}
	if !rawjson.Valid(body) || !has(body, "content") {
		return nil, wire.Classify(wire.Answer{Status: 200, Body: body, Candidate: o.Candidate, InBand: true, Now: o.Now})
	}
	r := &ninelives.Response{Candidate: o.Candidate.Name(), Message: ninelives.Message{Role: ninelives.RoleAssistant}}
	var content []byte
	var kept rawjson.Kept
	for m := range rawjson.Members(body) {
		if string(m.Name) == "content" {
			content = m.Value
			continue
		}
		answerMember(r, m, &kept)
	}
	r.Extra = extra(kept.Object())
	blocks := blockReader(o)
	if rawjson.Kind(content) == '"' || rawjson.Kind(content) == '[' {
		r.Message.Parts = blocks.content(content)
	}
	if err := finish(r, o); err != nil {
		return nil, err
	}
	return r, nil
}

func blockReader(o wire.DecodeOptions) reader {
	return reader{provider: o.Candidate.Provider, model: o.Candidate.Model, names: o.Names, outputTool: o.OutputTool}
}

// answerMember reads a member of an answer or of its parts in a stream, except
// the content.
func answerMember(r *ninelives.Response, m rawjson.Member, kept *rawjson.Kept) {
	switch string(m.Name) {
	case "type", "role", "content":
	case "id":
		r.ID = rawjson.String(m.Value)
	case "model":
		r.Model = rawjson.String(m.Value)
	case "stop_reason":
		if word := rawjson.String(m.Value); word != "" {
			r.FinishRaw, r.Finish = word, finishOf(word)
		}
	case "stop_sequence", "stop_details":
		if !rawjson.Null(m.Value) {
			kept.Add(m)
		}
	case "usage":
		readUsage(&r.Usage, m.Value)
	default:
		kept.Add(m)
	}
}

// finish puts the whole answer in order: the arguments of its calls, what it
// says about its end, and what the caller should know.
func finish(r *ninelives.Response, o wire.DecodeOptions) error {
	cut := r.Finish == ninelives.FinishLength
	for i, part := range r.Message.Parts {
		if c, ok := part.(ninelives.ToolCall); ok {
			c.Arguments = wire.Arguments(c.Arguments, o.Tools, c.Name, cut)
			if c.ID == "" {
				c.ID = wire.MadeID(r.ID, i, c.Name, c.Arguments)
			}
			r.Message.Parts[i] = c
		}
	}
	if r.Finish == ninelives.FinishToolCalls && o.OutputTool != "" && len(r.Message.ToolCalls()) == 0 && r.Message.Text() != "" {
		r.Finish = ninelives.FinishStop // the only call was the answer
	}
	r.Finish = wire.Ending(r, o)
	if r.Finish == ninelives.FinishRefusal {
		r.Warnings = append(r.Warnings, refusalText(rawjson.Get(r.Extra.For(protocol), "stop_details")))
	}
	if f := wire.Overflow(r, o); f != nil {
		return f
	}
	return nil
}

// refusalText says why the model declined, as far as the provider tells.
func refusalText(details []byte) string {
	text := "the model declined"
	if c := rawjson.String(rawjson.Get(details, "category")); c != "" {
		text += " (" + c + ")"
	}
	if e := rawjson.String(rawjson.Get(details, "explanation")); e != "" {
		text += ": " + e
	}
	return text
}

// readUsage takes over the counts that raw gives; what it does not give stays.
func readUsage(u *ninelives.Usage, raw []byte) {
	if rawjson.Kind(raw) != '{' {
		return
	}
	u.InputExcludesCached = true
	count := func(into *int, v []byte, field ninelives.UsageField) {
		if n, ok := rawjson.Int(v); ok && n >= 0 {
			*into = int(n)
			u.Reported |= field
		}
	}
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "input_tokens":
			count(&u.Input, m.Value, ninelives.UsageInput)
		case "output_tokens":
			count(&u.Output, m.Value, ninelives.UsageOutput)
		case "cache_read_input_tokens":
			count(&u.Cached, m.Value, ninelives.UsageCached)
		case "cache_creation_input_tokens":
			count(&u.CacheWrite, m.Value, ninelives.UsageCacheWrite)
		case "output_tokens_details":
			count(&u.Reasoning, rawjson.Get(m.Value, "thinking_tokens"), ninelives.UsageReasoning)
		}
	}
	u.Extra = extra(mergeObjects(u.Extra.For(protocol), raw))
}

// mergeObjects gives the members of before with those of after in their place;
// null takes no place that a value has.
func mergeObjects(before, after []byte) []byte {
	if before == nil {
		return bytes.Clone(after)
	}
	var kept rawjson.Kept
	for m := range rawjson.Members(before) {
		if v := rawjson.Get(after, string(m.Name)); v == nil || rawjson.Null(v) {
			kept.Add(m)
		}
	}
	for m := range rawjson.Members(after) {
		if !rawjson.Null(m.Value) || !has(before, string(m.Name)) {
			kept.Add(m)
		}
	}
	return kept.Object()
}

// EncodeResponse writes a whole answer for a client. It fails on a call whose
// arguments are no JSON object: the protocol has no form for it, and to make
// one up would be a lie.
func EncodeResponse(r *ninelives.Response) ([]byte, error) {
	w := writer{answer: true}
	own := r.Extra.For(protocol)
	at := w.Open('{')
	w.StringMember("id", answerID(r))
	w.StringMember("type", "message")
	w.StringMember("role", "assistant")
	w.StringMember("model", r.Model)
	w.Name("content")
	w.Open('[')
	for _, part := range marksFirst(carry(r.Message.Parts), len(r.Message.Parts)) {
		if c, ok := part.(ninelives.ToolCall); ok && !isObject(c.Arguments) {
			return nil, fmt.Errorf("the answer cannot be written: %w", errArguments(c))
		}
		w.block(part)
	}
	w.Close(']')
	w.StringMember("stop_reason", stopReason(r.Finish, r.FinishRaw))
	w.nullOr("stop_sequence", own)
	w.Name("usage")
	w.usage(r.Usage)
	w.Rest(at, own, nil)
	w.Close('}')
	return w.B, nil
}

func errArguments(c ninelives.ToolCall) error {
	return errors.New("the arguments of the call of " + c.Name + " are not a JSON object")
}

func isObject(s string) bool {
	return rawjson.Kind([]byte(s)) == '{' && rawjson.Valid([]byte(s))
}

// nullOr writes the member of own, or null: clients look for its name.
func (w *writer) nullOr(name string, own []byte) {
	w.Name(name)
	if v := rawjson.Get(own, name); v != nil {
		w.Raw(v)
	} else {
		w.RawString("null")
	}
}

// usage writes counts in this protocol's sense: what was read from and written
// to the cache comes on top of the input.
func (w *writer) usage(u ninelives.Usage) {
	at := w.Open('{')
	input := u.Input
	if !u.InputExcludesCached {
		input = max(0, u.Input-u.Cached-u.CacheWrite)
	}
	own := u.Extra.For(protocol)
	w.IntMember("input_tokens", int64(input))
	if u.Has(ninelives.UsageCacheWrite) {
		w.IntMember("cache_creation_input_tokens", int64(u.CacheWrite))
	}
	if u.Has(ninelives.UsageCached) {
		w.IntMember("cache_read_input_tokens", int64(u.Cached))
	}
	w.IntMember("output_tokens", int64(u.TotalOutput()))
	if u.Has(ninelives.UsageReasoning) && !has(own, "output_tokens_details") {
		w.Name("output_tokens_details")
		w.Open('{')
		w.IntMember("thinking_tokens", int64(u.Reasoning))
		w.Close('}')
	}
	w.Rest(at, own, nil)
	w.Close('}')
}

// answerID is the answer's id; clients expect one that begins with msg_.
func answerID(r *ninelives.Response) string {
	if r.ID != "" {
		return r.ID
	}
	sum := sha256.Sum256([]byte(r.Model + "\x00" + r.Text() + "\x00" + r.Message.Reasoning()))
	return "msg_" + hex.EncodeToString(sum[:12])
}
