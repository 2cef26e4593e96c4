package wire

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// replay gives the rule for earlier reasoning and its wire field.
func (p *preparer) replay() (ninelives.ReplayRule, string) {
	rule, field := p.candidate.Replay, p.candidate.ReplayField
	if p.dialect.Replay != "" {
		rule = p.dialect.Replay
	}
	if p.dialect.ReplayField != "" {
		field = p.dialect.ReplayField
	}
	return rule, field
}

func required(rule ninelives.ReplayRule) bool {
	return rule == ninelives.ReplayRequireAlways || rule == ninelives.ReplayRequireOnToolCalls
}

// signedOnly reports that reasoning is only taken with its maker's proof:
// Anthropic Messages, unless the server says otherwise or has asked for its
// reasoning by name.
func (p *preparer) signedOnly() bool {
	return p.anthropic() && !p.dialect.UnsignedThinking && !required(p.dialect.Replay)
}

// foreign reports that a part was made by someone else than the target. A part
// of unknown origin is taken for the target's own: it tells if that is wrong.
func (p *preparer) foreign(o ninelives.Provenance) bool {
	return o.Provider != "" && (o.Provider != p.candidate.Provider || o.Model != "" && o.Model != p.candidate.Model)
}

// filterReasoning leaves out the reasoning that the target must not or cannot
// be shown. Signed and encrypted reasoning is kept byte for byte or left out
// whole; it is never turned into text.
func (p *preparer) filterReasoning() {
	rule, _ := p.replay()
	stripped := slices.ContainsFunc(p.dialect.StripFields, isReasoningField)
	foreign, plain, asked := 0, 0, 0
	drop := func(part ninelives.Part) bool {
		r, ok := part.(ninelives.Reasoning)
		if !ok {
			return false
		}
		signed := r.Redacted || r.Provenance.Signature != "" || r.Provenance.Blob != ""
		switch {
		case p.dialect.DropReasoning:
			asked++
			return true
		case stripped || rule == ninelives.ReplayForbid:
			return true
		case signed && (p.foreign(r.Provenance) || !p.knowsProof(r.Provenance)):
			foreign++
			return true
		case signed:
			return false
		case p.signedOnly(), rule == "" && p.foreign(r.Provenance):
			plain++
			return true
		}
		return false
	}
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		m.Parts = slices.DeleteFunc(m.Parts, drop)
		p.filterSignatures(m)
	}
	if foreign > 0 {
		p.notes.Add("signed reasoning of another model was left out (%d part(s)): only its maker can read it", foreign)
	}
	if plain > 0 {
		p.notes.Add("reasoning of another model was left out (%d part(s)): %s has no place for it", plain, p.candidate.Name())
	}
	if asked > 0 {
		p.notes.Add("no earlier reasoning was sent to %s", p.candidate.Name())
	}
}

// isReasoningField tells the wire fields that only carry reasoning.
func isReasoningField(name string) bool {
	return strings.HasPrefix(name, "reasoning") || name == "thinking"
}

// knowsProof reports whether the target's protocol has the field that a signed
// part was read from. It decides where the maker is unknown.
func (p *preparer) knowsProof(o ninelives.Provenance) bool {
	thinking := o.Field == "thinking" || o.Field == "redacted_thinking"
	switch {
	case o.Provider != "" || o.Field == "":
		return true
	case p.anthropic():
		return thinking
	}
	return !thinking
}

// filterSignatures sees to the proofs that tool calls carry: those of another
// maker are left out, and where the target insists on one, its dummy stands in.
func (p *preparer) filterSignatures(m *ninelives.Message) {
	own := false
	for i, part := range m.Parts {
		c, ok := part.(ninelives.ToolCall)
		if !ok || c.Signature == "" {
			continue
		}
		if p.foreign(c.Provenance) {
			c.Signature, c.Provenance = "", ninelives.Provenance{}
			m.Parts[i] = c
			continue
		}
		own = true
	}
	if own || p.dialect.DummySignature == "" {
		return
	}
	for i, part := range m.Parts {
		if c, ok := part.(ninelives.ToolCall); ok {
			c.Signature = p.dialect.DummySignature
			c.Provenance = ninelives.Provenance{Provider: p.candidate.Provider, Model: p.candidate.Model}
			m.Parts[i] = c
		}
	}
}

// requireReasoning adds an empty reasoning part where the target rejects an
// assistant message without one. A proof cannot be made up, so that nothing is
// added where one is wanted.
func (p *preparer) requireReasoning() {
	rule, field := p.replay()
	if !required(rule) || p.dialect.DropReasoning || p.signedOnly() {
		return
	}
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		if m.Role != ninelives.RoleAssistant || rule == ninelives.ReplayRequireOnToolCalls && len(m.ToolCalls()) == 0 {
			continue
		}
		if slices.ContainsFunc(m.Parts, func(part ninelives.Part) bool { _, ok := part.(ninelives.Reasoning); return ok }) {
			continue
		}
		empty := ninelives.Reasoning{Provenance: ninelives.Provenance{Provider: p.candidate.Provider, Model: p.candidate.Model, Field: field}}
		m.Parts = slices.Insert(m.Parts, 0, ninelives.Part(empty))
	}
}
