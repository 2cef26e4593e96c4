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

// Counted says that a usage holds counts of a provider. In an answer that several
// attempts have given together nothing is called reported that not all of them
// did; what some of them told is in it all the same, and is what a client gets
// that has asked for it.
func Counted(u ninelives.Usage) bool {
	return u.Reported != 0 || !u.Estimated && u.TotalInput()+u.TotalOutput() > 0
}

// windowExceeded is the finish of a prompt that filled the window.
const windowExceeded = "model_context_window_exceeded"

// Overflow finds the context overflow that pretends to be an answer: nothing
// was said, for the prompt filled the window. It gives nil for anything else.
//
// Source: wire-faults, MiMo answers 200 with length and no output then, GLM
// and Anthropic say so in their finish.
func Overflow(r *ninelives.Response, o DecodeOptions) *ninelives.Fault {
	u, window := r.Usage, o.Candidate.Window
	if len(r.Message.ToolCalls()) > 0 || strings.TrimSpace(r.Message.Text()) != "" {
		return nil
	}
	full := r.Finish == ninelives.FinishLength && u.Has(ninelives.UsageInput|ninelives.UsageOutput) && u.TotalOutput() == 0 &&
		window > 0 && u.TotalInput() >= window-window/100
	if !full && (r.FinishRaw != windowExceeded || r.Message.Reasoning() != "") {
		return nil
	}
	message := "the prompt left no room for an answer in the window"
	if full {
		message = fmt.Sprintf("the prompt of %d tokens left no room for an answer in a window of %d", u.TotalInput(), window)
	}
	return &ninelives.Fault{
		Class:     ninelives.ClassContextLength,
		Scope:     ninelives.ScopeRequest,
		Phase:     ninelives.PhaseAnswer,
		Status:    200,
		Message:   message,
		Candidate: o.Candidate.Name(),
		Window:    window,
		Requested: u.TotalInput(),
		Billed:    ninelives.BilledMaybe,
		Partial:   r,
	}
}
