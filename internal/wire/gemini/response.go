package gemini

import (
	"bytes"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeResponse reads the whole answer of generateContent, or the array of
// chunks that streamGenerateContent answers when it is not asked for events.
// The error is a *ninelives.Fault.
//
// A prompt that was blocked is an answer that ends in content_filter.
func DecodeResponse(body []byte, o wire.DecodeOptions) (*ninelives.Response, error) {
	d := newDecoder(o)
	kind := rawjson.Kind(body)
	if kind != '{' && kind != '[' || !rawjson.Valid(body) {
		return nil, d.classify(body)
	}
	if kind == '[' {
		if err := d.Frame(wire.Frame{Data: body}, func(ninelives.Event) bool { return true }); err != nil {
			return nil, err
		}
		return d.Response(nil)
	}
	d.whole = true
	if err := d.chunk(body); err != nil {
		return nil, err
	}
	r := d.response()
	if fault := wire.Overflow(r, o); fault != nil {
		return nil, fault
	}
	return r, nil
}

func (d *decoder) classify(body []byte) *ninelives.Fault {
	f := wire.Classify(wire.Answer{Status: 200, Body: body, Candidate: d.o.Candidate, InBand: true, Now: d.o.Now})
	f.Phase = d.phase()
	return f
}

// lastMembers are members that come in every chunk: of those of one name the
// last one stays.
type lastMembers struct{ list []lastMember }

type lastMember struct {
	name string
	raw  []byte
}

func (l *lastMembers) set(m rawjson.Member) {
	for i := range l.list {
		if l.list[i].name == string(m.Name) {
			l.list[i].raw = append(l.list[i].raw[:0], m.Raw...)
			return
		}
	}
	l.list = append(l.list, lastMember{string(m.Name), bytes.Clone(m.Raw)})
}

func (l *lastMembers) get(name string) []byte {
	for _, m := range l.list {
		if m.name == name {
			for v := range rawjson.Members(append(append([]byte{'{'}, m.raw...), '}')) {
				return v.Value
			}
		}
	}
	return nil
}

func (l *lastMembers) extra() ninelives.Extra {
	var kept rawjson.Kept
	for _, m := range l.list {
		kept.Add(rawjson.Member{Raw: m.raw})
	}
	return extraOf(kept.Object())
}

// finishOf normalises why a candidate ended.
//
// Source: the reference of Candidate.FinishReason, 2026.
func finishOf(reason string) ninelives.FinishReason {
	switch reason {
	case "":
		return ""
	case "STOP":
		return ninelives.FinishStop
	case "MAX_TOKENS":
		return ninelives.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return ninelives.FinishContentFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		return ninelives.FinishMalformedCall
	}
	return ninelives.FinishOther
}

// readUsage reads the usage. Output excludes what was thought; input includes
// what was cached.
func readUsage(raw []byte) ninelives.Usage {
	u := ninelives.Usage{OutputExcludesReasoning: true, Extra: extraOf(bytes.Clone(raw))}
	count := func(field ninelives.UsageField, to *int, v []byte) {
		if n, ok := rawjson.Int(v); ok && n >= 0 {
			*to, u.Reported = int(n), u.Reported|field
		}
	}
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "promptTokenCount", "prompt_token_count":
			count(ninelives.UsageInput, &u.Input, m.Value)
		case "candidatesTokenCount", "candidates_token_count":
			count(ninelives.UsageOutput, &u.Output, m.Value)
		case "thoughtsTokenCount", "thoughts_token_count":
			count(ninelives.UsageReasoning, &u.Reasoning, m.Value)
		case "cachedContentTokenCount", "cached_content_token_count":
			count(ninelives.UsageCached, &u.Cached, m.Value)
		}
	}
	return u
}

// citations lists the sources of a candidate: what it quotes, and what it was
// grounded on.
func citations(own *lastMembers) []ninelives.Citation {
	var list []ninelives.Citation
	add := func(raw []byte, source []byte) {
		list = append(list, ninelives.Citation{
			URL: rawjson.String(rawjson.Get(source, "uri")), Title: rawjson.String(rawjson.Get(source, "title")),
			Raw: extraOf(bytes.Clone(raw)),
		})
	}
	meta := own.get("citationMetadata")
	for _, name := range []string{"citationSources", "citations"} {
		for el := range rawjson.Elements(rawjson.Get(meta, name)) {
			add(el, el)
		}
	}
	for el := range rawjson.Elements(rawjson.Get(own.get("groundingMetadata"), "groundingChunks")) {
		for m := range rawjson.Members(el) { // web, retrievedContext, maps, …
			add(el, m.Value)
			break
		}
	}
	return list
}

// EncodeResponse writes a whole answer for a client. A call whose arguments
// are no object has no form in this protocol: the answer then ends in
// MALFORMED_FUNCTION_CALL, as the API's own would.
func EncodeResponse(r *ninelives.Response) []byte {
	e := NewEncoder(wire.EncodeOptions{ID: r.ID, Model: r.Model, Created: r.Created}).(*encoder)
	e.w.Open('{')
	e.candidates(r)
	e.tail(r)
	e.w.Close('}')
	return e.w.B
}

// responseTime reads createTime; zero if it is none.
func responseTime(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339Nano, rawjson.String(raw))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
