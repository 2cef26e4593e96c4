package provider

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// contentSize is how many bytes of the answer an event carries; false for an
// event that is none of the answer.
func contentSize(ev ninelives.Event) (int, bool) {
	switch e := ev.(type) {
	case ninelives.TextDelta:
		return len(e.Text), true
	case ninelives.ReasoningDelta:
		return len(e.Text), true
	case ninelives.RefusalDelta:
		return len(e.Text), true
	case ninelives.ToolCallDelta:
		return len(e.Name) + len(e.Arguments), true
	}
	return 0, false
}

// numbered gives an event its attempt's number, where its maker has not.
func numbered(ev ninelives.Event, attempt int) ninelives.Event {
	switch e := ev.(type) {
	case ninelives.TextDelta:
		if e.Attempt != attempt {
			e.Attempt = attempt
			return e
		}
	case ninelives.ReasoningDelta:
		if e.Attempt != attempt {
			e.Attempt = attempt
			return e
		}
	case ninelives.RefusalDelta:
		if e.Attempt != attempt {
			e.Attempt = attempt
			return e
		}
	case ninelives.ToolCallDelta:
		if e.Attempt != attempt {
			e.Attempt = attempt
			return e
		}
	}
	return ev
}

// delta is the one event that a whole part comes to; nil for a part that no
// event shows.
func delta(part ninelives.Part, index int) ninelives.Event {
	switch p := part.(type) {
	case ninelives.Text:
		if p.Text != "" {
			return ninelives.TextDelta{Part: index, Text: p.Text}
		}
	case ninelives.Reasoning:
		d := ninelives.ReasoningDelta{Part: index, Text: p.Text}
		if p.Provenance.Signature != "" || p.Provenance.Blob != "" {
			proof := p.Provenance
			d.Proof = &proof
		}
		if d.Text != "" || d.Proof != nil {
			return d
		}
	case ninelives.Refusal:
		if p.Text != "" {
			return ninelives.RefusalDelta{Part: index, Text: p.Text}
		}
	case ninelives.ToolCall:
		return ninelives.ToolCallDelta{Part: index, ID: p.ID, Name: p.Name, Arguments: p.Arguments}
	}
	return nil
}
