package provider

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// gap is a place in a stream where an event was no JSON. It may have held a
// piece of the answer, and half an answer must never pass for a whole one: what
// comes after the gap is kept back until the end shows that nothing is missing.
//
// The proof is the provider's own count. Where it counts exactly as many tokens
// as pieces came, each token came in a piece of its own, and the event that
// could not be read had none. Without the proof the stream is broken there, and
// nothing from behind the gap was shown that another attempt would have to go
// on with.
type gap struct {
	open   bool
	skip   bool              // the bytes of the event that is no JSON are not relayed
	pieces int               // that came, in all
	kept   []ninelives.Event // from behind the gap
}

// garbled is asked by the decoder about an event that is no JSON: whether a
// proof may come. A server that is not asked for its count gives none.
func (a *attempt) garbled() bool {
	if a.dialect.NoStreamUsage && !a.gap.open {
		return false
	}
	a.relayDue(true)
	a.gap.open, a.gap.skip = true, true
	return !a.left
}

// pass yields an event of the stream, or keeps it back behind the gap.
func (a *attempt) pass(ev ninelives.Event) bool {
	size, content := contentSize(ev)
	if content {
		a.gap.pieces++
	}
	if _, text := ev.(ninelives.TextDelta); text {
		a.due.text = true
	} else {
		a.due.other = true
		a.relayDue(true)
	}
	if !a.gap.open {
		return !a.left && a.emit(ev)
	}
	if content {
		a.watch.semantic(size)
	}
	a.gap.kept = append(a.gap.kept, ev)
	return true
}

// bridge is what the end of a stream comes to that may have a gap.
func (a *attempt) bridge(answer *ninelives.Response, f *ninelives.Fault) (*ninelives.Response, *ninelives.Fault) {
	if f != nil || !a.gap.open {
		return answer, f
	}
	if u := answer.Usage; !u.Has(ninelives.UsageOutput) || u.Estimated || u.TotalOutput() != a.gap.pieces {
		return nil, &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: a.watch.at(), Status: 200,
			Billed: ninelives.BilledYes, Message: "an event of the stream is no JSON, and what it held is missing", Partial: answer}
	}
	const warning = "an event of the stream was no JSON; by the count of tokens nothing is missing"
	a.gap.kept = append(a.gap.kept, ninelives.Notice{Kind: ninelives.NoticeWarning, Attempt: a.number, Candidate: a.candidate.Name(), Text: warning})
	for _, ev := range a.gap.kept {
		if !a.emit(ev) {
			return nil, nil
		}
	}
	answer.Warnings = append(answer.Warnings, warning)
	return answer, nil
}
