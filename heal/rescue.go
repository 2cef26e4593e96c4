package heal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// kept is an answer that is being continued: what there is of it so far.
type kept struct {
	// parts are the parts of the answer; the last one is text.
	parts []ninelives.Part
	// text is all its text, to which the continuation is joined.
	text string
	// first is the answer whose beginning this is; nil after a broken stream.
	first *ninelives.Response
	usage ninelives.Usage
	// rounds counts the continuations.
	rounds int
}

// seam begins a joint.
func (k *kept) seam(prefill bool) *seam {
	return &seam{told: k.text, prefill: prefill, first: len(k.parts) - 1}
}

// keep makes a truncated answer the beginning of a longer one.
func (c *call) keep(resp *ninelives.Response) {
	c.kept = &kept{parts: resp.Message.Parts, text: resp.Text(), first: resp, usage: resp.Usage, rounds: resp.Continued}
}

// keepTold makes what the consumer holds of a broken stream the beginning.
func (c *call) keepTold(t *take) {
	text := t.told.String()
	k := &kept{parts: []ninelives.Part{ninelives.Text{Text: text}}, text: text}
	if c.kept != nil {
		*k = *c.kept
		k.parts = append([]ninelives.Part(nil), k.parts...)
		k.extend(text)
	}
	c.kept = k
}

// extend adds text at the end.
func (k *kept) extend(text string) {
	last := len(k.parts) - 1
	t, _ := k.parts[last].(ninelives.Text)
	t.Text += text
	k.parts[last] = t
	k.text += text
}

// join stitches a continuation to what there is. The continuation's thinking
// is no part of the answer, and its usage comes on top.
func (k *kept) join(resp *ninelives.Response, prefill bool) (*ninelives.Response, *ninelives.Fault) {
	skip, fault := overlap(k.text, resp.Text(), prefill)
	if fault != nil {
		return nil, fault
	}
	whole := *resp
	whole.Message.Parts = append(make([]ninelives.Part, 0, len(k.parts)+len(resp.Message.Parts)), k.parts...)
	joint := true
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case ninelives.Reasoning:
			continue
		case ninelives.Text:
			n := min(skip, len(p.Text))
			skip -= n
			p.Text = p.Text[n:]
			if joint {
				head, _ := whole.Message.Parts[len(k.parts)-1].(ninelives.Text)
				head.Text += p.Text
				head.Citations = append(head.Citations[:len(head.Citations):len(head.Citations)], p.Citations...)
				whole.Message.Parts[len(k.parts)-1] = head
				joint = false
				continue
			}
			whole.Message.Parts = append(whole.Message.Parts, p)
		default:
			joint = false
			whole.Message.Parts = append(whole.Message.Parts, p)
		}
	}
	whole.Usage = sum(k.usage, resp.Usage)
	whole.Logprobs = ninelives.Extra{} // they would cover a part of the text only
	whole.Continued = k.rounds + 1
	return &whole, nil
}

// sum adds what two attempts used. Counts that only one of them reported are
// not called reported.
func sum(a, b ninelives.Usage) ninelives.Usage {
	if a.Reported == 0 {
		return b
	}
	return ninelives.Usage{
		Input: a.Input + b.Input, Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		Cached: a.Cached + b.Cached, CacheWrite: a.CacheWrite + b.CacheWrite,
		Reported:            a.Reported & b.Reported,
		InputExcludesCached: b.InputExcludesCached, OutputExcludesReasoning: b.OutputExcludesReasoning,
		Estimated: a.Estimated || b.Estimated,
	}
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
