package wire

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Ending corrects what a provider says about the end of its answer by what the
// answer shows. r.Finish is what was said, in our words.
//
//   - An answer that ends inside the arguments of a call, inside a call written
//     as text, inside the JSON of a forced output, or at the limit that was
//     sent was cut: length, whatever was said.
//   - Calls make it tool_calls, although some servers say stop.
//   - A refusal with nothing else is a refusal, although OpenAI says stop.
//
// tool_calls without a call is left as it was said: such an answer is not whole.
func Ending(r *ninelives.Response, o DecodeOptions) ninelives.FinishReason {
	calls := r.Message.ToolCalls()
	text := r.Message.Text()
	switch r.Finish {
	case ninelives.FinishContentFilter, ninelives.FinishRefusal, ninelives.FinishLength, ninelives.FinishMalformedCall:
		return r.Finish
	}
	for _, c := range calls {
		if Unclosed(c.Arguments) {
			return ninelives.FinishLength
		}
	}
	switch {
	case o.MaxTokens > 0 && r.Usage.Has(ninelives.UsageOutput) && r.Usage.TotalOutput() >= o.MaxTokens,
		textCallCut(text),
		o.OutputTool != "" && Unclosed(text):
		return ninelives.FinishLength
	case len(calls) > 0:
		return ninelives.FinishToolCalls
	case r.Message.Refusal() != "" && strings.TrimSpace(text) == "":
		return ninelives.FinishRefusal
	}
	return r.Finish
}

// Overflow finds the context overflow that pretends to be an answer: nothing
// was said, for the prompt filled the window. It gives nil for anything else.
//
// Source: wire-faults, MiMo answers 200 with length and no output then.
func Overflow(r *ninelives.Response, o DecodeOptions) *ninelives.Fault {
	u, window := r.Usage, o.Candidate.Window
	said := r.Finish == ninelives.FinishLength && u.Has(ninelives.UsageInput|ninelives.UsageOutput) && u.TotalOutput() == 0
	if !said || window <= 0 || len(r.Message.ToolCalls()) > 0 || strings.TrimSpace(r.Message.Text()) != "" {
		return nil
	}
	if u.TotalInput() < window-window/100 {
		return nil
	}
	return &ninelives.Fault{
		Class:     ninelives.ClassContextLength,
		Scope:     ninelives.ScopeRequest,
		Phase:     ninelives.PhaseAnswer,
		Status:    200,
		Message:   fmt.Sprintf("the prompt of %d tokens left no room for an answer in a window of %d", u.TotalInput(), window),
		Candidate: o.Candidate.Name(),
		Window:    window,
		Requested: u.TotalInput(),
		Billed:    ninelives.BilledMaybe,
		Partial:   r,
	}
}
