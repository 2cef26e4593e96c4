package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// message gives the message so far.
func (c *chatChoice) message() ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleAssistant}
	provenance := ninelives.Provenance{Provider: c.d.o.Candidate.Provider, Model: c.d.o.Candidate.Model}
	details := c.details.array()
	lastText := -1
	for _, p := range c.parts {
		switch p.kind {
		case chatKindText:
			lastText = len(m.Parts)
			m.Parts = append(m.Parts, ninelives.Text{Text: string(p.text)})
		case chatKindRefusal:
			m.Parts = append(m.Parts, ninelives.Refusal{Text: string(p.text)})
		case chatKindReasoning:
			r := ninelives.Reasoning{Text: string(p.text), Provenance: provenance, Meta: ninelives.Meta{Extra: chatExtra(p.raw)}}
			r.Provenance.Field = p.field
			if details != nil {
				r.Provenance.Field, r.Provenance.Blob = chatDetailsField, string(details)
				r.Redacted = r.Text == ""
				details = nil
			}
			m.Parts = append(m.Parts, r)
		case chatKindOpaque:
			m.Parts = append(m.Parts, ninelives.Opaque{Kind: p.field, Raw: chatExtra(p.raw)})
		case chatKindCall:
			call := c.calls.At(p.call)
			if c.isOutput(call.Name) {
				lastText = len(m.Parts)
				m.Parts = append(m.Parts, ninelives.Text{Text: string(call.Arguments)})
				continue
			}
			m.Parts = append(m.Parts, c.callOf(p, provenance))
		}
	}
	if len(c.citations) > 0 {
		if lastText >= 0 {
			t := m.Parts[lastText].(ninelives.Text)
			t.Citations = chatCitations(c.citations)
			m.Parts[lastText] = t
		} else {
			raw := append([]byte(`"annotations":[`), bytes.Join(c.citations, []byte(","))...)
			raw = append(raw, ']')
			c.members.add(rawjson.Member{Name: []byte("annotations"), Value: raw[len(`"annotations":`):], Raw: raw})
		}
	}
	m.Extra = c.members.extra()
	return m
}

// chatCitations reads annotations, which keep their own form.
func chatCitations(annotations [][]byte) []ninelives.Citation {
	var list []ninelives.Citation
	for _, raw := range annotations {
		c := ninelives.Citation{Raw: chatExtra(raw)}
		from := rawjson.Get(raw, "url_citation")
		if from == nil {
			from = raw
		}
		c.URL = rawjson.String(rawjson.Get(from, "url"))
		c.Title = rawjson.String(rawjson.Get(from, "title"))
		c.Quote = rawjson.String(rawjson.Get(from, "content"))
		list = append(list, c)
	}
	return list
}
