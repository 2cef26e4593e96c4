package anthropic

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// maxCacheHints is how many blocks of a request may be marked for the cache.
// Source: the prompt caching page, 2026.
const maxCacheHints = 4

// limitCacheHints keeps the marks of the tools and the instructions and the
// latest ones of the conversation; more than the protocol takes are rejected.
func (e *request) limitCacheHints() {
	over := -maxCacheHints
	if has(e.req.Extra.For(protocol), "cache_control") {
		over++ // the server sets one by itself
	}
	for _, t := range e.req.Tools {
		if t.Cache != nil {
			over++
		}
	}
	for _, m := range e.req.Messages {
		for _, p := range m.Parts {
			if cached(p) {
				over++
			}
			if r, ok := p.(ninelives.ToolResult); ok {
				for _, c := range r.Content {
					if cached(c) {
						over++
					}
				}
			}
		}
	}
	if over <= 0 {
		return
	}
	e.w.notes.Add("the earliest %d cache hint(s) of the conversation were not sent: the protocol takes %d", over, maxCacheHints)
	for i, m := range e.req.Messages {
		if m.Role == ninelives.RoleSystem && m.Extra.For(protocol) == nil {
			continue
		}
		for j, p := range m.Parts {
			if r, ok := p.(ninelives.ToolResult); ok {
				r.Content = append([]ninelives.Part(nil), r.Content...)
				for k, c := range r.Content {
					if over > 0 && cached(c) {
						r.Content[k] = uncached(c)
						over--
					}
				}
				p = r
			}
			if over > 0 && cached(p) {
				p = uncached(p)
				over--
			}
			e.req.Messages[i].Parts[j] = p
		}
	}
}

// cached reports that a part carries a cache hint that is written.
func cached(part ninelives.Part) bool {
	switch p := part.(type) {
	case ninelives.Text:
		return p.Cache != nil
	case ninelives.Refusal:
		return p.Cache != nil
	case ninelives.Image:
		return p.Cache != nil
	case ninelives.File:
		return p.Cache != nil
	case ninelives.ToolCall:
		return p.Cache != nil
	case ninelives.ToolResult:
		return p.Cache != nil
	case ninelives.Opaque:
		return has(p.Raw.For(protocol), "cache_control")
	}
	return false
}

// uncached is the part without its hint.
func uncached(part ninelives.Part) ninelives.Part {
	switch p := part.(type) {
	case ninelives.Text:
		p.Cache = nil
		return p
	case ninelives.Refusal:
		p.Cache = nil
		return p
	case ninelives.Image:
		p.Cache = nil
		return p
	case ninelives.File:
		p.Cache = nil
		return p
	case ninelives.ToolCall:
		p.Cache = nil
		return p
	case ninelives.ToolResult:
		p.Cache = nil
		return p
	case ninelives.Opaque:
		p.Raw = extra(without(p.Raw.JSON, "cache_control"))
		return p
	}
	return part
}
