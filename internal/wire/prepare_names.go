package wire

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// nameLimit is the longest tool name that the target takes, 0 if it takes any
// name. Source: OpenAI 64; Anthropic 128 since 2026.
func (p *preparer) nameLimit() int {
	switch {
	case p.dialect.ToolNames:
		return 64
	case p.anthropic():
		return 128
	}
	return 0
}

// mapToolNames gives tools names that the target takes, everywhere alike. What
// a name becomes depends only on the set of names, not on their order.
func (p *preparer) mapToolNames() {
	limit := p.nameLimit()
	if limit == 0 {
		return
	}
	sent := map[string]string{} // the caller's name to the name as sent
	collect := func(name string) { sent[name] = name }
	for _, t := range p.req.Tools {
		if t.Kind == "" {
			collect(t.Name)
		}
	}
	for _, m := range p.req.Messages {
		for _, part := range m.Parts {
			switch v := part.(type) {
			case ninelives.ToolCall:
				collect(v.Name)
			case ninelives.ToolResult:
				collect(v.Name)
			}
		}
	}
	taken := map[string]bool{}
	var bad []string
	for _, name := range sortedKeys(sent) {
		if validName(name, limit) {
			taken[name] = true
		} else {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return
	}
	p.names = map[string]string{}
	for _, name := range bad {
		short := strings.Map(nameRune, name)
		if short == "" {
			short = "unnamed"
		}
		if len(short) > limit || taken[short] {
			short = short[:min(len(short), limit-9)] + "_" + hash(name, 8)
		}
		for n := name; taken[short]; {
			n += "'"
			short = short[:min(len(short), limit-9)] + "_" + hash(n, 8)
		}
		taken[short] = true
		sent[name], p.names[short] = short, name
	}
	p.notes.Add("%d tool name(s) were rewritten: %s takes letters, digits, _ and -, at most %d", len(bad), p.candidate.Name(), limit)
	for i := range p.req.Tools {
		if p.req.Tools[i].Kind == "" {
			p.req.Tools[i].Name = sent[p.req.Tools[i].Name]
		}
	}
	if name, ok := sent[p.req.ToolChoice.Name]; ok && p.req.ToolChoice.Name != "" {
		p.req.ToolChoice.Name = name
	}
	for i := range p.req.Messages {
		parts := p.req.Messages[i].Parts
		for j, part := range parts {
			switch v := part.(type) {
			case ninelives.ToolCall:
				v.Name = sent[v.Name]
				parts[j] = v
			case ninelives.ToolResult:
				v.Name = sent[v.Name]
				parts[j] = v
			}
		}
	}
}

func validName(name string, limit int) bool {
	return name != "" && len(name) <= limit && strings.Map(nameRune, name) == name
}

// stripFields leaves out names of participants and the unknown fields that the
// target forbids.
func (p *preparer) stripFields() {
	fields := p.dialect.StripFields
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		if p.dialect.NoNames || slices.Contains(fields, "name") {
			m.Name = ""
		}
		if len(fields) == 0 {
			continue
		}
		m.Extra = withoutMembers(m.Extra, fields)
		for j := range m.Parts {
			m.Parts[j] = stripPart(m.Parts[j], fields)
		}
	}
}

func stripPart(part ninelives.Part, fields []string) ninelives.Part {
	switch v := part.(type) {
	case ninelives.Text:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	case ninelives.Image:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	case ninelives.File:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	case ninelives.ToolCall:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	case ninelives.ToolResult:
		v.Extra = withoutMembers(v.Extra, fields)
		v.Content = slices.Clone(v.Content)
		for i := range v.Content {
			v.Content[i] = stripPart(v.Content[i], fields)
		}
		return v
	case ninelives.Reasoning:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	case ninelives.Refusal:
		v.Extra = withoutMembers(v.Extra, fields)
		return v
	}
	return part
}

// withoutMembers gives the extra without the named members of its object; the
// others keep their order and spelling. What is no object stays as it is.
func withoutMembers(e ninelives.Extra, names []string) ninelives.Extra {
	var kept rawjson.Kept
	found := false
	for m := range rawjson.Members(e.JSON) {
		if slices.Contains(names, string(m.Name)) {
			found = true
			continue
		}
		kept.Add(m)
	}
	if !found {
		return e
	}
	if e.JSON = kept.Object(); e.JSON == nil {
		return ninelives.Extra{}
	}
	return e
}
