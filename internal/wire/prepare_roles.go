package wire

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// placeInstructions writes the developer role as system where it is not known
// and, for Anthropic Messages and Gemini, brings system messages to the front:
// they go into a parameter of their own. Those that came inside the messages of
// the former stay where they are, unless the target has refused them there.
func (p *preparer) placeInstructions() {
	if !p.dialect.DeveloperRole {
		for i := range p.req.Messages {
			if p.req.Messages[i].Role == ninelives.RoleDeveloper {
				p.req.Messages[i].Role = ninelives.RoleSystem
			}
		}
	}
	if !p.anthropic() && p.candidate.Protocol != ninelives.Gemini {
		return
	}
	var front, rest []ninelives.Message
	for _, m := range p.req.Messages {
		if m.Role == ninelives.RoleSystem || m.Role == ninelives.RoleDeveloper {
			inside := p.anthropic() && m.Extra.For(ninelives.AnthropicMessages) != nil
			if inside && p.dialect.NoSystemRole {
				m.Extra, inside = ninelives.Extra{}, false
			}
			if !inside {
				if len(rest) > 0 && !p.anthropic() {
					p.notes.Add("an instruction in the middle of the conversation was sent at its head: %s has no other place for it", p.candidate.Name())
				}
				front = append(front, m)
				continue
			}
		}
		rest = append(rest, m)
	}
	if len(front) > 0 {
		p.req.Messages = append(front, rest...)
	}
}

// instructionsToUser moves instructions into user messages where there is no
// system role: those that come first to the head of the first user message,
// later ones as user messages of their own.
func (p *preparer) instructionsToUser() {
	if !p.dialect.NoSystemRole || p.anthropic() {
		return
	}
	system := func(m ninelives.Message) bool {
		return m.Role == ninelives.RoleSystem || m.Role == ninelives.RoleDeveloper
	}
	messages := p.req.Messages
	lead := 0
	for lead < len(messages) && system(messages[lead]) {
		lead++
	}
	if !slices.ContainsFunc(messages, system) {
		return
	}
	p.notes.Add("system instructions were sent as user text: %s has no system role", p.candidate.Name())
	var out []ninelives.Message
	if lead > 0 {
		head := ninelives.Message{Role: ninelives.RoleUser}
		for _, m := range messages[:lead] {
			head.Parts = joinParts(head.Parts, m.Parts)
		}
		if lead < len(messages) && messages[lead].Role == ninelives.RoleUser {
			first := messages[lead]
			first.Parts = joinParts(head.Parts, first.Parts)
			head, lead = first, lead+1
		}
		out = append(out, head)
	}
	for _, m := range messages[lead:] {
		if system(m) {
			m.Role = ninelives.RoleUser
		}
		out = append(out, m)
	}
	p.req.Messages = out
}

// mergeRoles joins neighbours of one role. Messages with results stay apart:
// each result is one by itself on the wire. Gemini takes the user twice in a
// row, and the model not.
func (p *preparer) mergeRoles() {
	if !p.dialect.MergeRoles && p.candidate.Protocol != ninelives.Gemini {
		return
	}
	var out []ninelives.Message
	for _, m := range p.req.Messages {
		last := len(out) - 1
		if last < 0 || out[last].Role != m.Role || m.Role == ninelives.RoleTool || !p.dialect.MergeRoles && m.Role != ninelives.RoleAssistant {
			out = append(out, m)
			continue
		}
		out[last].Parts = joinParts(out[last].Parts, m.Parts)
		if out[last].Name != m.Name {
			out[last].Name = ""
		}
	}
	p.req.Messages = out
}

// joinParts appends b to a, with an empty line between the texts that meet.
func joinParts(a, b []ninelives.Part) []ninelives.Part {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	if len(b) == 0 {
		return a
	}
	joined := slices.Clone(a)
	left, lok := a[len(a)-1].(ninelives.Text)
	right, rok := b[0].(ninelives.Text)
	if !lok || !rok {
		return append(joined, b...)
	}
	if plain(left) && len(right.Citations) == 0 && right.Extra.JSON == nil {
		right.Text = left.Text + "\n\n" + right.Text
		joined[len(a)-1] = right
		return append(joined, b[1:]...)
	}
	return append(joined, b...)
}

// plain reports that a text carries nothing but itself.
func plain(t ninelives.Text) bool {
	return len(t.Citations) == 0 && t.Cache == nil && t.Extra.JSON == nil
}

// endWithUser sees to the end of the history: an assistant message that ends
// it is an answer to be continued. White space at its end is rejected by some
// (Anthropic, also behind others); where an answer cannot be continued, the
// model is asked to.
func (p *preparer) endWithUser() {
	for {
		last := len(p.req.Messages) - 1
		if last < 0 || p.req.Messages[last].Role != ninelives.RoleAssistant {
			return
		}
		m := &p.req.Messages[last]
		end := len(m.Parts) - 1
		t, ok := m.Parts[end].(ninelives.Text)
		if !ok {
			break
		}
		trimmed := strings.TrimRight(t.Text, " \t\r\n\v\f\u00a0")
		if trimmed == t.Text {
			break
		}
		if t.Text = trimmed; trimmed != "" {
			m.Parts[end] = t
			break
		}
		if m.Parts = m.Parts[:end]; len(m.Parts) == 0 || p.saysNothing(*m) {
			p.req.Messages = p.req.Messages[:last]
		}
	}
	prefill := p.candidate.Prefill
	if p.dialect.PrefillSet {
		prefill = p.dialect.Prefill
	}
	if !prefill {
		p.req.Messages = append(p.req.Messages, ninelives.UserText(continueAnswer))
		p.notes.Add("%s cannot continue an answer by itself: it was asked to", p.candidate.Name())
	}
}

// beginWithUser puts a user message before an assistant message that begins
// the conversation, where the first one must be the user's.
func (p *preparer) beginWithUser() {
	if p.candidate.Protocol != ninelives.Gemini && !p.dialect.MergeRoles {
		return
	}
	for i, m := range p.req.Messages {
		switch m.Role {
		case ninelives.RoleSystem, ninelives.RoleDeveloper:
			continue
		case ninelives.RoleAssistant:
			p.req.Messages = slices.Insert(p.req.Messages, i, ninelives.UserText(conversationStart))
			p.notes.Add("a user message was put before the assistant's first: %s wants to begin with one", p.candidate.Name())
		}
		return
	}
}

// bridge puts a short assistant message between a result and a user message
// where one must not follow the other.
func (p *preparer) bridge() {
	if !p.dialect.BridgeToolUser {
		return
	}
	for i := len(p.req.Messages) - 1; i > 0; i-- {
		if p.req.Messages[i].Role == ninelives.RoleUser && p.req.Messages[i-1].Role == ninelives.RoleTool {
			p.req.Messages = slices.Insert(p.req.Messages, i, ninelives.AssistantText(bridgeText))
			p.notes.Add("an assistant message was put between a tool result and the user's text: %s does not take one after the other", p.candidate.Name())
		}
	}
}
