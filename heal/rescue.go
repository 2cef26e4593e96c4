package heal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// kept is an answer that is being continued: what there is of it so far.
type kept struct {
	// parts are the parts of the answer.
	parts []ninelives.Part
	// text is all its text, to which the continuation is joined.
	text string
	// first is the answer whose beginning this is; nil after a broken stream.
	first *ninelives.Response
	usage ninelives.Usage
	// rounds counts the continuations.
	rounds int
}

// ends is the text that a continuation joins; false if the answer ends in
// something else, which it follows.
func (k *kept) ends() (ninelives.Text, bool) {
	t, ok := k.parts[len(k.parts)-1].(ninelives.Text)
	return t, ok
}

// joint begins a continuation.
func (k *kept) joint(prefill bool) *joint {
	_, text := k.ends()
	return &joint{seam: seam{told: k.text, prefill: prefill}, last: len(k.parts) - 1, text: text}
}

// keep makes a truncated answer the beginning of a longer one.
func (c *call) keep(resp *ninelives.Response) {
	c.kept = &kept{parts: resp.Message.Parts, text: resp.Text(), first: resp, usage: resp.Usage, rounds: resp.Continued}
}

// passage is what came of one part of an answer.
type passage struct {
	part    int
	thought bool
	text    []byte
}

// tell adds to the passages.
func (t *take) tell(part int, thought bool, text string) {
	if t.c.s.Mode != ModeContinue {
		return // there what was told can be taken back, or was never told
	}
	if n := len(t.told); n == 0 || t.told[n-1].part != part || t.told[n-1].thought != thought {
		t.told = append(t.told, passage{part: part, thought: thought})
	}
	last := &t.told[len(t.told)-1]
	last.text = append(last.text, text...)
}

// with is the answer and what a broken attempt has told of it. It is false if
// that lacks a part: one that no event shows is understood by its provider
// alone, and nobody else can go on after it.
func (k *kept) with(told []passage, partial *ninelives.Response) (*kept, bool) {
	next := kept{}
	if k != nil {
		next = *k
		next.parts = append([]ninelives.Part(nil), k.parts...)
		next.rounds++
	}
	if partial != nil {
		next.usage = sum(next.usage, partial.Usage)
	}
	for _, p := range told {
		last := len(next.parts) - 1
		if p.part > last+1 {
			return nil, false
		}
		if p.thought {
			next.parts = append(next.parts, thinking(p, partial))
			continue
		}
		next.text += string(p.text)
		if p.part == last {
			if t, ok := next.ends(); ok {
				t.Text += string(p.text)
				next.parts[last] = t
				continue
			}
		}
		next.parts = append(next.parts, ninelives.Text{Text: string(p.text)})
	}
	return &next, next.text != ""
}

// thinking is that of a broken attempt, with its proof where it was whole.
func thinking(p passage, partial *ninelives.Response) ninelives.Reasoning {
	if partial != nil && p.part < len(partial.Message.Parts) {
		if r, ok := partial.Message.Parts[p.part].(ninelives.Reasoning); ok {
			return r
		}
	}
	return ninelives.Reasoning{Text: string(p.text)}
}

// join stitches a continuation to what there is. The continuation's thinking
// is no part of the answer, and its usage comes on top.
func (k *kept) join(resp *ninelives.Response, prefill bool) (*ninelives.Response, *ninelives.Fault) {
	skip := 0
	opening := opening(resp.Message.Parts)
	if opening >= 0 {
		text, _ := resp.Message.Parts[opening].(ninelives.Text)
		var fault *ninelives.Fault
		if skip, fault = overlap(k.text, text.Text, prefill); fault != nil {
			return nil, fault
		}
	}
	whole := *resp
	whole.Message.Parts = append(make([]ninelives.Part, 0, len(k.parts)+len(resp.Message.Parts)), k.parts...)
	head, joins := k.ends()
	for i, p := range resp.Message.Parts {
		switch p := p.(type) {
		case ninelives.Reasoning:
			continue
		case ninelives.Text:
			if i == opening {
				p.Text = p.Text[skip:]
			}
			if joins {
				head.Text += p.Text
				head.Citations = append(head.Citations[:len(head.Citations):len(head.Citations)], p.Citations...)
				whole.Message.Parts[len(k.parts)-1] = head
				joins = false
				continue
			}
			whole.Message.Parts = append(whole.Message.Parts, p)
		default:
			joins = false
			whole.Message.Parts = append(whole.Message.Parts, p)
		}
	}
	whole.Usage = sum(k.usage, resp.Usage)
	whole.Logprobs = ninelives.Extra{} // they would cover a part of the text only
	whole.Continued = k.rounds + 1
	return &whole, nil
}

// opening is the part of a continuation whose text may repeat what was told:
// the first text, if it comes before any call and any refusal; -1 if there is none.
func opening(parts []ninelives.Part) int {
	for i, p := range parts {
		switch p := p.(type) {
		case ninelives.Text:
			if p.Text != "" {
				return i
			}
		case ninelives.ToolCall, ninelives.Refusal:
			return -1
		}
	}
	return -1
}

// sum adds what two attempts used. Counts that only one of them reported are
// not called reported. Where the two count in different ways, all is counted in
// the totals.
func sum(a, b ninelives.Usage) ninelives.Usage {
	u := ninelives.Usage{
		Input: a.Input + b.Input, Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		Cached: a.Cached + b.Cached, CacheWrite: a.CacheWrite + b.CacheWrite,
		Reported:            a.Reported & b.Reported,
		InputExcludesCached: b.InputExcludesCached, OutputExcludesReasoning: b.OutputExcludesReasoning,
		Estimated: a.Estimated || b.Estimated,
	}
	if a.InputExcludesCached != b.InputExcludesCached {
		u.Input, u.InputExcludesCached = a.TotalInput()+b.TotalInput(), false
	}
	if a.OutputExcludesReasoning != b.OutputExcludesReasoning {
		u.Output, u.OutputExcludesReasoning = a.TotalOutput()+b.TotalOutput(), false
	}
	return u
}

// The quoted tail of a continuation: enough to find the place again.
const tailBytes = 240

// continued is the conversation that asks to go on with text: by prefill where
// the candidate continues a trailing answer by itself, else by instruction.
func continued(messages []ninelives.Message, text, prompt string, prefill bool) []ninelives.Message {
	if prefill {
		// A trailing blank makes some servers refuse a prefill; the seam puts it back.
		return append(messages, ninelives.AssistantText(strings.TrimRightFunc(text, unicode.IsSpace)))
	}
	return append(messages, ninelives.AssistantText(text),
		ninelives.UserText(prompt+"\n\nYour answer so far ends with:\n\n"+tail(text)+"\n\nBegin with the character that follows."))
}

// tail is the end of a text, from a word on where there is one.
func tail(s string) string {
	if len(s) <= tailBytes {
		return s
	}
	cut := len(s) - tailBytes
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	if i := strings.IndexFunc(s[cut:], unicode.IsSpace); i >= 0 && i < tailBytes/2 {
		cut += i
	}
	return "…" + strings.TrimLeftFunc(s[cut:], unicode.IsSpace)
}
