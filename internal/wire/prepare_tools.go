package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// place is where a part stands in the history.
type place struct{ message, part int }

// pairResults makes every call of an assistant message be answered once, right
// after it: a result that stands elsewhere is moved there, a missing one is
// filled in, what answers no call is left out. Calls and their results get ids
// that the target takes.
func (p *preparer) pairResults() {
	answers := p.matchResults()
	if answers == nil {
		return
	}
	used := map[string]bool{}
	var out []ninelives.Message
	moved, missing := 0, 0
	for i, m := range p.req.Messages {
		if m.Role == ninelives.RoleTool || m.Role == ninelives.RoleUser {
			out = append(out, withoutResults(m)...)
			continue
		}
		at := len(out)
		out = append(out, m)
		if m.Role != ninelives.RoleAssistant {
			continue
		}
		results := map[place]ninelives.ToolResult{} // where they stood
		var late []ninelives.Part                   // moved or made
		run := i + 1                                // the end of the tool messages right after m
		for run < len(p.req.Messages) && p.req.Messages[run].Role == ninelives.RoleTool {
			run++
		}
		for j, part := range m.Parts {
			call, ok := part.(ninelives.ToolCall)
			if !ok {
				continue
			}
			call.ID = p.freeID(call, place{i, j}, used)
			result := ninelives.ToolResult{Content: []ninelives.Part{ninelives.Text{Text: interruptedResult}}, IsError: true}
			from, found := answers[place{i, j}]
			if found {
				result = p.req.Messages[from.message].Parts[from.part].(ninelives.ToolResult)
			}
			if call.Name == "" {
				call.Name = result.Name
			}
			out[at].Parts[j] = call
			result.CallID, result.Name = call.ID, call.Name
			switch {
			case found && from.message < run:
				results[from] = result
			case found:
				moved++
				late = append(late, result)
			default:
				missing++
				late = append(late, result)
			}
		}
		for k := i + 1; k < run; k++ {
			answer := p.req.Messages[k]
			var parts []ninelives.Part
			for j := range answer.Parts {
				if r, ok := results[place{k, j}]; ok {
					parts = append(parts, r)
				}
			}
			if len(parts) > 0 {
				answer.Parts = parts
				out = append(out, answer)
			}
		}
		if len(late) > 0 {
			out = append(out, ninelives.Message{Role: ninelives.RoleTool, Parts: late})
		}
	}
	p.req.Messages = out
	if moved > 0 {
		p.notes.Add("%d tool result(s) were moved to right after their calls", moved)
	}
	if missing > 0 {
		p.notes.Add("%d tool call(s) had no result: the model is told that they were interrupted and may or may not have taken effect", missing)
	}
}

// withoutResults gives what else a message of results holds: parts of the
// protocol's own in a message of the same role, anything else as the user's.
func withoutResults(m ninelives.Message) []ninelives.Message {
	if m.Role == ninelives.RoleUser && !slices.ContainsFunc(m.Parts, isResult) {
		return []ninelives.Message{m}
	}
	rest := slices.DeleteFunc(slices.Clone(m.Parts), isResult)
	var own []ninelives.Part
	if m.Role == ninelives.RoleTool {
		opaque := func(part ninelives.Part) bool { _, ok := part.(ninelives.Opaque); return ok }
		for _, part := range rest {
			if opaque(part) {
				own = append(own, part)
			}
		}
		rest = slices.DeleteFunc(rest, opaque)
	}
	var out []ninelives.Message
	if len(own) > 0 {
		answer := m
		answer.Parts = own
		out = append(out, answer)
	}
	if len(rest) > 0 {
		m.Role, m.Parts = ninelives.RoleUser, rest
		out = append(out, m)
	}
	return out
}

// matchResults finds the result of each call: the first unused one of its id
// after it. It drops the results that answer no call, and gives nil if there
// are neither calls nor results.
func (p *preparer) matchResults() map[place]place {
	var answers map[place]place
	open := map[string][]place{} // calls that wait for a result, by id
	orphans := 0
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		for j, part := range m.Parts {
			switch v := part.(type) {
			case ninelives.ToolCall:
				if answers == nil {
					answers = map[place]place{}
				}
				// A call of an earlier message that has the same id will not be
				// answered any more.
				open[v.ID] = append(slices.DeleteFunc(open[v.ID], func(c place) bool { return c.message != i }), place{i, j})
			case ninelives.ToolResult:
				if answers == nil {
					answers = map[place]place{}
				}
				waiting := open[v.CallID]
				at := slices.IndexFunc(waiting, func(c place) bool {
					name := p.req.Messages[c.message].Parts[c.part].(ninelives.ToolCall).Name
					return v.CallID != "" || v.Name == "" || v.Name == name
				})
				if at < 0 {
					orphans++
					continue
				}
				answers[waiting[at]] = place{i, j}
				open[v.CallID] = slices.Delete(waiting, at, at+1)
			}
		}
	}
	if orphans > 0 {
		p.notes.Add("%d tool result(s) without a call were left out", orphans)
	}
	return answers
}

func isResult(part ninelives.Part) bool {
	_, ok := part.(ninelives.ToolResult)
	return ok
}

// freeID gives a call an id of the form that the target takes, and of which
// there is no other yet.
func (p *preparer) freeID(call ninelives.ToolCall, at place, used map[string]bool) string {
	id := p.idForm(call.ID)
	if call.ID == "" {
		id = p.idForm("call_" + hash(fmt.Sprintf("%d.%d.%s", at.message, at.part, call.Name), 16))
	}
	for n := 2; used[id]; n++ {
		id = p.idForm(fmt.Sprintf("%s_%s", hash(call.ID, 8), hash(fmt.Sprintf("%s.%d", call.ID, n), 8)))
	}
	used[id] = true
	return id
}

// idForm brings an id into the form that the target takes; one that has it
// already stays as it is.
func (p *preparer) idForm(id string) string {
	if n := p.dialect.ToolIDExact; n > 0 {
		if len(id) == n && strings.IndexFunc(id, func(r rune) bool { return !alphanumeric(r) }) < 0 {
			return id
		}
		return hash(id, n)
	}
	form := id
	if p.anthropic() {
		form = strings.Map(nameRune, form)
	}
	longest := p.dialect.ToolIDMax
	if longest == 0 && p.candidate.Protocol == ninelives.OpenAIResponses {
		longest = responsesIDMax
	}
	if longest > 0 && len(form) > longest {
		form = hash(id, longest)
	}
	return form
}

// responsesIDMax is the longest call_id that the Responses protocol takes.
//
// Source: https://platform.openai.com/docs/api-reference/responses/create
const responsesIDMax = 64

// hash gives n hexadecimal digits that stand for s.
func hash(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:min(n, 2*len(sum))]
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// nameRune keeps what ids and names may be made of.
func nameRune(r rune) rune {
	if alphanumeric(r) || r == '_' || r == '-' {
		return r
	}
	return '_'
}

// repairArguments sees to it that the arguments of past calls are JSON
// objects. Broken ones become {}; their result keeps the text as it was, so
// that the model sees what it did.
func (p *preparer) repairArguments() {
	broken := map[string]string{} // the text, by call id
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		for j, part := range m.Parts {
			switch v := part.(type) {
			case ninelives.ToolCall:
				if rawjson.Get(v.Extra.For(p.candidate.Protocol), "custom") != nil {
					continue // a custom tool of chat takes text
				}
				args, ok := argumentsObject(v.Arguments)
				if args == v.Arguments {
					continue
				}
				if !ok {
					broken[v.ID] = v.Arguments
				}
				v.Arguments = args
				m.Parts[j] = v
			case ninelives.ToolResult:
				raw, ok := broken[v.CallID]
				if !ok {
					continue
				}
				text := ninelives.Text{Text: fmt.Sprintf(invalidArguments, raw)}
				v.Content = append([]ninelives.Part{text}, v.Content...)
				m.Parts[j] = v
			}
		}
	}
	if len(broken) > 0 {
		p.notes.Add("the arguments of %d past tool call(s) were not a JSON object: sent as {}, with their text in the result", len(broken))
	}
}

// argumentsObject gives the arguments as a JSON object: as they are if they
// are one, {} for "" and null, unwrapped once if they are one in a string.
// Anything else is {} and false.
func argumentsObject(s string) (string, bool) {
	v := jsontext.Value(s)
	if v.IsValid(jsontext.AllowDuplicateNames(true)) {
		switch v.Kind() {
		case '{':
			return s, true
		case 'n':
			return "{}", true
		case '"':
			text, err := jsontext.AppendUnquote(nil, strings.TrimSpace(s))
			if inner := jsontext.Value(text); err == nil && inner.Kind() == '{' && inner.IsValid(jsontext.AllowDuplicateNames(true)) {
				return string(text), true
			}
		}
	}
	return "{}", blank(s)
}

// limitTools keeps the tools that the target takes. A name may be declared
// once. Without tools there is no choice between them, and where the target
// knows none at all, past calls and results are told as text.
func (p *preparer) limitTools() {
	seen := map[string]bool{}
	p.req.Tools = slices.DeleteFunc(p.req.Tools, func(t ninelives.Tool) bool {
		if t.Kind != "" {
			return false
		}
		if seen[t.Name] {
			p.notes.Add("tool %s was declared more than once: the first one was sent", t.Name)
			return true
		}
		seen[t.Name] = true
		return false
	})
	if p.dialect.NoTools && len(p.req.Tools) > 0 {
		p.notes.Add("%d tool(s) were not sent: %s knows no tools", len(p.req.Tools), p.candidate.Name())
		p.req.Tools = nil
	}
	if len(p.req.Tools) == 0 {
		p.req.Tools, p.req.ToolChoice, p.req.ParallelTools = nil, ninelives.ToolChoice{}, nil
	}
	if !p.dialect.NoTools {
		return
	}
	for i := range p.req.Messages {
		m := &p.req.Messages[i]
		var parts []ninelives.Part
		for _, part := range m.Parts {
			switch v := part.(type) {
			case ninelives.ToolCall:
				parts = append(parts, ninelives.Text{Text: fmt.Sprintf("[Called tool %s with %s]", v.Name, v.Arguments)})
			case ninelives.ToolResult:
				parts = append(parts, ninelives.Text{Text: fmt.Sprintf("[Result of tool %s:]", v.Name)})
				parts = append(parts, v.Content...)
			default:
				parts = append(parts, part)
			}
		}
		m.Parts = parts
		if m.Role == ninelives.RoleTool {
			m.Role = ninelives.RoleUser
		}
	}
}
