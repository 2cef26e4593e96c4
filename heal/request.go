package heal

import (
	"errors"
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/jsonout"
)

// request makes the request of one attempt: the caller's own, with the clocks,
// the repairs and the change that were decided on.
func (c *call) request(d Decision, in *room, number int) *ninelives.Request {
	at := &c.s.Candidates[d.Candidate]
	r := &in.req
	*r = *c.fitted(d.Candidate)
	in.attempt = ninelives.Attempt{
		Number:  number,
		Clocks:  c.h.policy.ClocksFor(at.Candidate, c.s.Facts),
		Repairs: at.Repairs,
	}
	r.Attempt = &in.attempt
	if d.Change == (Change{}) {
		return r
	}
	if whole, err := r.Whole(); err == nil { // else its provider says what is wrong with it
		*r = *whole
	}
	r.Raw = nil
	r.Messages = append(make([]ninelives.Message, 0, len(r.Messages)+2), r.Messages...)
	content := &c.h.policy.Content
	switch d.Change.Prompt {
	case PromptNudge:
		r.Messages = append(r.Messages, ninelives.UserText(content.NudgePrompt))
	case PromptExplain:
		if last := c.lastFault(); last != nil {
			r.Messages = append(r.Messages, ninelives.UserText(explain(last)))
		}
	case PromptContinue:
		if c.kept != nil {
			r.Messages = continued(r.Messages, c.kept.text, content.ContinuePrompt, at.Candidate.Prefill)
		}
	case PromptCorrect:
		if wrong := c.misformed(); wrong != nil {
			r.Messages = append(r.Messages, ninelives.AssistantText(wrong.Partial.Text()), ninelives.UserText(correction(wrong)))
		}
	}
	if d.Change.NoTools {
		r.ToolChoice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceNone}
	}
	return r
}

// lastFault is the fault of the attempt before.
func (c *call) lastFault() *ninelives.Fault {
	for i := len(c.s.Attempts) - 1; i >= 0; i-- {
		if f := c.s.Attempts[i].Fault; f != nil {
			return f
		}
	}
	return nil
}

// misformed is the fault of the last answer that missed the form.
func (c *call) misformed() *ninelives.Fault {
	for i := len(c.s.Attempts) - 1; i >= 0; i-- {
		if a := &c.s.Attempts[i]; a.Outcome == ninelives.OutcomeInvalidOutput && a.Fault.Partial != nil {
			return a.Fault
		}
	}
	return nil
}

// explain tells the model what happened to the attempt before: the class
// alone, which is ours, and no text of a provider.
//
// Source: design 001, layer 2 (each retry carries a message that explains the failure).
func explain(f *ninelives.Fault) string {
	return fmt.Sprintf("The previous attempt to answer failed (%s) and nothing of it was kept. Please answer the conversation above.",
		words(f.Class))
}

// correction asks the model to mend its last answer, and names all that is
// wrong with it.
func correction(f *ninelives.Fault) string {
	var e *ninelives.OutputError
	if !errors.As(f, &e) {
		return jsonout.RepairPrompt("", nil)
	}
	problems := make([]jsonout.Problem, len(e.Problems))
	for i, p := range e.Problems {
		problems[i].Message = p
	}
	return jsonout.RepairPrompt("", problems)
}
