package wire

import (
	"fmt"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Prepared is a request that its target can take.
type Prepared struct {
	// Request is a copy; the one that was prepared is untouched.
	Request *ninelives.Request
	// Names maps tool names as they are now to the caller's own; nil if all are alike.
	Names map[string]string
	// Notes tell, a line each, what had to be changed.
	Notes Notes
}

// Prepare repairs a copy of req so that the target takes it: what a history
// lost (results of tools that were interrupted), what only its maker may see
// again (signed reasoning), and what the dialect has no place for (roles,
// images, names). Every encoder calls it first.
//
// A request that the target would take is left as it is, and preparing twice
// is the same as preparing once. Nothing false is written into the history: a
// call without a result gets one that says that the outcome is unknown.
//
// It guarantees the encoders:
//   - every ToolCall of an assistant message is answered by exactly one
//     ToolResult, in RoleTool messages right after it, and no other results exist;
//   - call ids are unique, not empty, and of the form that the target takes;
//     a ToolResult has its call's name;
//   - Arguments are a JSON object;
//   - for Anthropic Messages and Gemini, system messages come first, except those
//     that arrived inside the messages of a request in the former (they carry an
//     Extra of it);
//   - only reasoning that the target may see is left, with an empty Reasoning
//     part where it insists on one.
func Prepare(req *ninelives.Request, t Target) Prepared {
	p := preparer{req: req.Clone(), target: t, dialect: t.Dialect, candidate: t.Candidate}
	p.dropMisplaced()
	p.dropBillingHeader()
	p.dropForeignParts()
	p.stripFields()
	p.placeInstructions()
	p.pairResults()
	p.repairArguments()
	p.limitTools()
	p.mapToolNames()
	p.replaceMedia()
	p.filterReasoning()
	p.dropEmpty()
	p.instructionsToUser()
	p.mergeRoles()
	p.endWithUser()
	p.beginWithUser()
	p.bridge()
	p.requireReasoning()
	return Prepared{Request: p.req, Names: p.names, Notes: p.notes}
}

// The texts that repairs put into a history. They are written for the model:
// plain, and never more than is known.
const (
	interruptedResult = "[No result: the call was interrupted. It may or may not have taken effect; check before repeating it.]"
	invalidArguments  = "[The arguments of this call were not a JSON object. As written: %s]"
	continueAnswer    = "Continue your last message exactly where it ends. Do not repeat any of it."
	conversationStart = "[The conversation begins with the assistant's message.]"
	bridgeText        = "Noted."
)

// preparer holds the copy while the steps of Prepare work on it.
type preparer struct {
	req       *ninelives.Request
	target    Target
	dialect   Dialect
	candidate ninelives.Candidate
	names     map[string]string
	notes     Notes
}

func (p *preparer) anthropic() bool {
	return p.candidate.Protocol == ninelives.AnthropicMessages
}

// billingHeader begins the first instruction that Claude Code gives. It is for
// Anthropic, says nothing to a model, and differs from session to session.
//
// Source: bodies of Claude Code 2.1, November 2026.
const billingHeader = "x-anthropic-billing-header:"

// dropBillingHeader leaves Claude Code's header out for everybody but its maker:
// no prefix of two sessions would be the same, and nothing be found in a cache.
func (p *preparer) dropBillingHeader() {
	if p.candidate.Provider == "anthropic" || len(p.req.Messages) == 0 || p.req.Messages[0].Role != ninelives.RoleSystem {
		return
	}
	m := &p.req.Messages[0]
	m.Parts = slices.DeleteFunc(m.Parts, func(part ninelives.Part) bool {
		t, ok := part.(ninelives.Text)
		return ok && strings.HasPrefix(t.Text, billingHeader)
	})
}

// dropMisplaced leaves out the parts that a role cannot have: only an
// assistant calls, thinks and refuses, only tools and users give results.
func (p *preparer) dropMisplaced() {
	misplaced := func(role ninelives.Role, part ninelives.Part) bool {
		switch part.(type) {
		case ninelives.ToolCall, ninelives.Reasoning, ninelives.Refusal:
			return role != ninelives.RoleAssistant
		case ninelives.ToolResult:
			return role != ninelives.RoleTool && role != ninelives.RoleUser
		}
		return false
	}
	dropped := 0
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		n := len(m.Parts)
		m.Parts = slices.DeleteFunc(m.Parts, func(part ninelives.Part) bool { return misplaced(m.Role, part) })
		dropped += n - len(m.Parts)
	}
	if dropped > 0 {
		p.notes.Add("%d part(s) were left out that a message of their role cannot have", dropped)
	}
}

// dropForeignParts leaves out the parts that only another protocol knows.
func (p *preparer) dropForeignParts() {
	kinds := map[string]int{}
	foreign := func(part ninelives.Part) bool {
		o, ok := part.(ninelives.Opaque)
		if !ok || o.Raw.Protocol == p.candidate.Protocol {
			return false
		}
		kinds[o.Kind]++
		return true
	}
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		m.Parts = slices.DeleteFunc(m.Parts, foreign)
		for j, part := range m.Parts {
			r, ok := part.(ninelives.ToolResult)
			if ok && slices.ContainsFunc(r.Content, func(c ninelives.Part) bool { _, o := c.(ninelives.Opaque); return o }) {
				r.Content = slices.DeleteFunc(slices.Clone(r.Content), foreign)
				m.Parts[j] = r
			}
		}
	}
	for _, kind := range sortedKeys(kinds) {
		p.notes.Add("%d part(s) of type %s were not sent: %s has no such part", kinds[kind], kind, p.candidate.Protocol)
	}
}

// replaceMedia puts a plain statement in the place of images and files that
// the target does not take, inside tool results too. Anthropic takes them from
// users and tools only.
func (p *preparer) replaceMedia() {
	noImages := p.dialect.NoImages || !p.candidate.Images
	noFiles := !p.candidate.Files
	images, files := 0, 0
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		if p.anthropic() && m.Role == ninelives.RoleAssistant {
			m.Parts = replaceParts(m.Parts, assistantImage, assistantFile, &images, &files)
			continue
		}
		image, file := "", ""
		if noImages {
			image = ImagePlaceholder
		}
		if noFiles {
			file = filePlaceholder
		}
		m.Parts = replaceParts(m.Parts, image, file, &images, &files)
		for j, part := range m.Parts {
			if r, ok := part.(ninelives.ToolResult); ok {
				r.Content = replaceParts(r.Content, image, file, &images, &files)
				m.Parts[j] = r
			}
		}
	}
	if images > 0 {
		p.notes.Add("%d image(s) were not sent: %s does not take them there", images, p.candidate.Name())
	}
	if files > 0 {
		p.notes.Add("%d file(s) were not sent: %s does not take them there", files, p.candidate.Name())
	}
}

// replaceParts puts text in the place of images (once for all of them, with
// their number) and files (with their name); an empty text keeps them.
func replaceParts(parts []ninelives.Part, image, file string, images, files *int) []ninelives.Part {
	count, change := 0, false
	for _, part := range parts {
		switch part.(type) {
		case ninelives.Image:
			count++
			change = change || image != ""
		case ninelives.File:
			change = change || file != ""
		}
	}
	if !change {
		return parts
	}
	out := make([]ninelives.Part, 0, len(parts))
	for _, part := range parts {
		switch v := part.(type) {
		case ninelives.Image:
			if image == "" {
				break
			}
			if count > 0 {
				out = append(out, ninelives.Text{Text: fmt.Sprintf(image, count)})
			}
			*images, count = *images+count, 0
			continue
		case ninelives.File:
			if file == "" {
				break
			}
			*files++
			name := v.Name
			if name == "" {
				name = v.MediaType
			}
			out = append(out, ninelives.Text{Text: strings.TrimSpace(fmt.Sprintf(file, name))})
			continue
		}
		out = append(out, part)
	}
	return out
}

// What stands for images and a file of the assistant's own making.
const (
	assistantImage = "[%d image(s) that the assistant made here are not sent again]"
	assistantFile  = "[a file that the assistant made here is not sent again] %s"
)

// filePlaceholder stands for a file that the target is not sent.
const filePlaceholder = "[attached file not sent: this provider does not accept files] %s"

// dropEmpty leaves out empty texts and the messages that are emptied by that.
// Anthropic also rejects texts of nothing but white space. Elsewhere an empty
// text stays if it has more to say in the target's protocol.
func (p *preparer) dropEmpty() {
	empty := func(part ninelives.Part) bool {
		switch v := part.(type) {
		case ninelives.Text:
			if p.anthropic() {
				return blank(v.Text)
			}
			return v.Text == "" && v.Extra.For(p.candidate.Protocol) == nil
		case ninelives.Refusal:
			return v.Text == "" || p.anthropic() && blank(v.Text)
		}
		return false
	}
	texts, messages := 0, 0
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		n := len(m.Parts)
		m.Parts = slices.DeleteFunc(m.Parts, empty)
		texts += n - len(m.Parts)
		for j, part := range m.Parts {
			if r, ok := part.(ninelives.ToolResult); ok && slices.ContainsFunc(r.Content, empty) {
				n := len(r.Content)
				r.Content = slices.DeleteFunc(slices.Clone(r.Content), empty)
				texts += n - len(r.Content)
				m.Parts[j] = r
			}
		}
		if m.Role == ninelives.RoleAssistant && p.signedOnly() {
			m.Parts = trimReasoning(m.Parts)
		}
	}
	p.req.Messages = slices.DeleteFunc(p.req.Messages, func(m ninelives.Message) bool {
		drop := len(m.Parts) == 0 || m.Role == ninelives.RoleAssistant && p.saysNothing(m)
		if drop {
			messages++
		}
		return drop
	})
	if texts > 0 {
		p.notes.Add("%d empty text(s) were left out", texts)
	}
	if messages > 0 {
		p.notes.Add("%d empty message(s) were left out", messages)
	}
}

// trimReasoning takes the reasoning off the end: Anthropic rejects a message
// that ends in thinking.
func trimReasoning(parts []ninelives.Part) []ninelives.Part {
	for n := len(parts); n > 0; n-- {
		if _, ok := parts[n-1].(ninelives.Reasoning); !ok {
			return parts[:n]
		}
	}
	return nil
}

// saysNothing reports that an assistant message holds only reasoning or white
// space. In the Responses protocol a reasoning item stands by itself.
func (p *preparer) saysNothing(m ninelives.Message) bool {
	for _, part := range m.Parts {
		switch v := part.(type) {
		case ninelives.Text:
			if !blank(v.Text) || v.Extra.For(p.candidate.Protocol) != nil {
				return false
			}
		case ninelives.Reasoning:
			if p.candidate.Protocol == ninelives.OpenAIResponses {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
