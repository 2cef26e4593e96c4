package heal

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// content decides what an answer asks for whose content is not good enough. It
// reports false when there is nothing to do but what any failure gets.
func (d *decider) content(a *Attempt) (Decision, bool) {
	c := &d.p.Content
	switch a.Outcome {
	case ninelives.OutcomeEmpty, ninelives.OutcomeThinkingOnly:
		change := d.carried(a, a.Candidate)
		if a.Fault.Class != ninelives.ClassEmpty || change.Prompt == PromptContinue {
			return Decision{}, false
		}
		n := d.count(func(a *Attempt) bool { return a.Fault != nil && a.Fault.Class == ninelives.ClassEmpty })
		if n > c.Empty {
			return Decision{}, false
		}
		dec := Decision{Reason: ReasonEmpty, Change: change}
		switch {
		case n <= c.EmptyPlain:
			dec.Why = "nothing came: it is asked once more"
		case n <= c.EmptyPlain+c.EmptyNudges || !d.s.Facts.Tools:
			dec.Change.Prompt = PromptNudge
			dec.Why = "nothing came: it is asked for the answer"
		default:
			dec.Change = Change{Prompt: PromptNudge, NoTools: true}
			dec.Why = "nothing came: it is asked to answer without tools"
		}
		return d.start(a.Candidate, dec), true

	case ninelives.OutcomeTruncated:
		free := d.s.Facts.MaxTokens == 0 || c.ContinueAlways
		if !free || !a.Continuable || d.s.Facts.Output || d.s.Facts.N > 1 {
			return Decision{}, false
		}
		if d.count(func(a *Attempt) bool { return a.Outcome == ninelives.OutcomeTruncated }) > c.Continuations {
			return Decision{}, false
		}
		return d.start(a.Candidate, Decision{Reason: ReasonContinue, Change: Change{Prompt: PromptContinue},
			Why: "the answer was cut at the limit: it is continued"}), true

	case ninelives.OutcomeInvalidOutput:
		if d.count(func(a *Attempt) bool { return a.Outcome == ninelives.OutcomeInvalidOutput }) > c.Repairs {
			return Decision{}, false
		}
		return d.start(a.Candidate, Decision{Reason: ReasonCorrect, Change: Change{Prompt: PromptCorrect},
			Why: "the answer misses the form: it is asked once to correct it"}), true
	}
	return Decision{}, false
}

// news are the repairs that the fault names and that are not in force yet: a
// complaint that comes again after its repair has none.
func (d *decider) news(a *Attempt) []ninelives.Repair {
	if len(a.Fault.Repairs) == 0 {
		return nil
	}
	var news []ninelives.Repair
	known := d.s.Candidates[a.Candidate].Repairs
	for _, r := range a.Fault.Repairs {
		if !hasRepair(known, r) && !hasRepair(news, r) {
			news = append(news, r)
		}
	}
	return news
}

// hasRepair compares what a repair does, not how long it is remembered.
func hasRepair(list []ninelives.Repair, r ninelives.Repair) bool {
	for _, have := range list {
		have.Once = r.Once
		if have == r {
			return true
		}
	}
	return false
}

func (d *decider) count(is func(*Attempt) bool) int {
	n := 0
	for i := range d.s.Attempts {
		if is(&d.s.Attempts[i]) {
			n++
		}
	}
	return n
}
