package chaos

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// answer is one answer, ready to be written in any protocol.
type answer struct {
	id        string // a short unique tail for the protocol's ids
	model     string
	created   int64
	reasoning []string // tokens
	text      []string // tokens
	refusal   []string // tokens
	calls     []made
	fault     ToolFault
	proof     string // the signature of the reasoning, or its encrypted form
	empty     Empty
	finish    string // stop, length, tool_calls, content_filter, refusal
	input     int    // tokens
	scripted  Usage  // in place of what is counted
	usage     bool   // chat: usage was asked for
}

// made is a call as it is written.
type made struct {
	Call
	cut bool // the arguments end in mid-JSON
}

func (a *answer) output() int {
	if a.scripted.Output > 0 {
		return a.scripted.Output
	}
	n := len(a.reasoning) + len(a.text) + len(a.refusal)
	for _, c := range a.calls {
		n += 1 + len(c.Arguments)/4
	}
	return n
}

// thought is the number of tokens of reasoning.
func (a *answer) thought() int {
	if a.scripted.Reasoning > 0 {
		return a.scripted.Reasoning
	}
	return len(a.reasoning)
}

var wantsMore = regexp.MustCompile(`(?i)\bcontinue\b`)

// compose makes the answer of a step to a request.
func compose(step Step, a *ask, seq int, now time.Time) *answer {
	ans := &answer{
		id:      "sim" + strconv.Itoa(seq),
		model:   "sim/" + strings.TrimPrefix(a.model, "sim/"),
		created: now.Unix(),
		fault:   step.ToolFault,
		empty:   step.Empty,
		finish:  "stop",
		input:   a.tokens,
		usage:   a.usage,
	}
	if step.Usage != nil {
		ans.scripted = *step.Usage
	}
	if ans.scripted.Input > 0 {
		ans.input = ans.scripted.Input
	}
	ans.think(step.Reasoning, a)
	switch {
	case step.Empty == EmptyReasoning && step.Reasoning == "":
		ans.think("Let me think about that for a while.", a)
		return ans.ending(step)
	case step.Empty == EmptyWhitespace:
		ans.text = []string{"  ", "\n"}
		return ans.ending(step)
	case step.Empty != "":
		return ans.ending(step)
	case step.Refusal != "":
		ans.refusal, ans.finish = tokens(step.Refusal), "refusal"
		return ans.ending(step)
	}

	said, calls := step.Text, step.Calls
	if step.Coder {
		said, calls = code(a)
	}
	switch {
	case step.Coder && len(calls) > 0:
	case step.Coder && a.schema == nil:
	case step.Echo:
		said = a.said("user")
	case said == "" && len(calls) > 0:
	case (said == "" || step.Coder) && a.schema != nil && a.forced == "":
		said = instanceJSON(a.schema)
	case said == "" && a.json:
		said = `{"sim":true}`
	case said == "":
		said = Answer
	}

	if a.last().role != "tool" || step.Insist || step.Coder {
		if len(calls) == 0 && a.forced != "" && len(a.tools) > 0 {
			calls = []Call{{Name: a.forced}}
			if step.Coder && a.forced == "*" {
				// Its work is done: what is left is the tool that takes the answer, which
				// clients put last. Any other one would do something that nobody asked for.
				calls[0].Name = a.tools[len(a.tools)-1].name
			}
			if step.Text != "" && json.Valid([]byte(step.Text)) {
				calls[0].Arguments = step.Text // the scripted text is meant as the content of the call
			}
			said = ""
		}
		ans.calls = resolve(calls, a, ans.id, step)
	} else if said == "" {
		said = Answer
	}
	if len(ans.calls) > 0 {
		ans.finish = "tool_calls"
	}

	ans.text = tokens(a.remainder(said))
	limit := step.Truncate
	if a.limit > 0 && (limit == 0 || a.limit < limit) {
		limit = a.limit
	}
	if limit > 0 {
		ans.cutAt(limit)
	}
	return ans.ending(step)
}

// think puts reasoning before the answer, and proves it.
func (a *answer) think(reasoning string, ask *ask) {
	a.reasoning = tokens(reasoning)
	said := reasoning
	if ask.protocol != messages { // the others sign no text
		said = ""
	}
	a.proof = ask.signer.sign(ask.protocol, a.id, said)
}

// cutAt ends the answer after so many tokens of text and calls; a call has one
// for its name and one for each piece of its arguments that is streamed.
func (a *answer) cutAt(limit int) {
	if limit < len(a.text) {
		a.text, a.calls, a.finish = a.text[:limit], nil, "length"
		return
	}
	left := limit - len(a.text)
	for i, c := range a.calls {
		pieces := fragments(c.Arguments)
		if left >= 1+len(pieces) {
			left -= 1 + len(pieces)
			continue
		}
		a.finish = "length"
		if left == 0 {
			a.calls = a.calls[:i]
			return
		}
		a.calls = a.calls[:i+1]
		a.calls[i].Arguments, a.calls[i].cut = strings.Join(pieces[:left-1], ""), true
		return
	}
}

// ending applies the step's own reason over the natural one.
func (a *answer) ending(step Step) *answer {
	if step.Finish != "" {
		a.finish = step.Finish
	}
	return a
}

// remainder is what is left to say of a text when the request asks for the
// rest of it, by ending with its beginning (prefill) or in words.
func (a *ask) remainder(said string) string {
	n := len(a.turns)
	partial := ""
	switch {
	case n > 0 && a.turns[n-1].role == "assistant":
		partial = a.turns[n-1].text
	case n > 1 && a.turns[n-1].role == "user" && wantsMore.MatchString(a.turns[n-1].text) && a.turns[n-2].role == "assistant":
		partial = a.turns[n-2].text
	}
	if partial == said {
		return said
	}
	rest, ok := strings.CutPrefix(said, partial)
	if !ok {
		return said
	}
	return rest
}

// resolve fills in what a scripted call leaves open, and cuts what is to be cut.
func resolve(calls []Call, a *ask, id string, step Step) []made {
	var out []made
	for i, c := range calls {
		if c.Name == "*" && len(a.tools) > 0 {
			c.Name = a.tools[0].name
		}
		if c.Arguments == "" {
			c.Arguments = "{}"
			for _, t := range a.tools {
				if t.name == c.Name && t.schema != nil {
					c.Arguments = instanceJSON(t.schema)
				}
			}
		}
		if c.ID == "" {
			c.ID = "call_" + id + "_" + strconv.Itoa(i+1)
			if slices.Contains(step.Reject, MistralIDs) { // a server gives what it takes
				c.ID = strings.TrimPrefix(hash(c.ID), "sha256:") + strconv.Itoa(i%10)
			}
		}
		m := made{Call: c}
		if step.ToolFault == Unclosed {
			m.Arguments, m.cut = unclosed(c.Arguments), true
		}
		out = append(out, m)
	}
	return out
}

// tokens cuts a text into words, each with the space before it; joined they
// are the text.
func tokens(s string) []string {
	var out []string
	start, inWord := 0, false
	for i, r := range s {
		space := unicode.IsSpace(r)
		if space && inWord {
			out = append(out, s[start:i])
			start = i
		}
		inWord = !space
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// fragments cuts the arguments of a call as they are streamed.
func fragments(s string) []string {
	const size = 12
	var out []string
	for len(s) > size {
		n := size
		for n > 1 && s[n]&0xC0 == 0x80 { // not inside a rune
			n--
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

// arguments writes the JSON value of a call's arguments where the protocol has
// them in a string.
func (a *answer) arguments(c made) string {
	switch a.fault {
	case ObjectArgs:
		if json.Valid([]byte(c.Arguments)) {
			return c.Arguments
		}
	case DoubleEncoded:
		return quote(quote(c.Arguments))
	case NullArgs:
		return "null"
	}
	return quote(c.Arguments)
}

// unclosed loses the end of a JSON text.
func unclosed(s string) string {
	if s = strings.TrimSpace(s); len(s) < 3 {
		return "{\"path\": \"/tmp/x"
	}
	return s[:len(s)*2/3]
}

// quote writes a JSON string, without the escapes that are only meant for HTML.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func quoteOrNull(s string) string {
	if s == "" {
		return "null"
	}
	return quote(s)
}
