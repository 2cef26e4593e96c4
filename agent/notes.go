package agent

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// What the program tells the model. Each is true of what is known, and no more.

// notePrefix marks a message that the program and not the user has written.
const notePrefix = "[Note of the program, not of the user] "

const (
	lostResult = "the result of this call is missing from the record; it may or may not have had its effect"
	noTwice    = "it was running when the program died, and nobody can say whether it had its effect. Find out before you do it again"
)

// cutOffNote tells the model that nothing of its last answer counts.
func cutOffNote(f *Failure) string {
	if f.Broken != "" {
		return "Your last answer was not kept and none of its calls was run: " + f.Broken + ". Make the call again with arguments that are valid JSON."
	}
	return "Your last answer was cut off at the limit of its length. Nothing of it was kept and none of its calls was run. Send smaller pieces: split long content over several calls."
}

// lastWordNote asks for what the user needs to go on.
func lastWordNote(most int) string {
	return fmt.Sprintf("The most steps that this turn may have (%d) are used up, and no tool can be called any more. Say now what was done and what remains to be done.", most)
}

// endNote tells the model, with the next turn, what it could not see of the end.
func endNote(e End) string {
	switch e.Reason {
	case ReasonCanceled:
		return "The user stopped the turn before it was finished. What was done by then stays done."
	case ReasonDeadline:
		return "The turn was ended before it was finished, because its time was up. What was done by then stays done."
	case ReasonInterrupted:
		return "The turn was cut off before it was finished, because the program died. What was done by then stays done."
	case ReasonLimit, ReasonLoop, ReasonDenied:
		return "The turn was ended before it was finished: " + oneLine(e.Message)
	}
	return ""
}

// blocked says which hook ended a turn.
func blocked(e *Stopped) string {
	text := e.Hook + " ended the turn"
	if e.Note != "" {
		text += ": " + e.Note
	}
	return text
}

// result is the answer to a call.
func result(c ninelives.ToolCall, r tool.Result) ninelives.ToolResult {
	if len(r.Content) == 0 {
		r.Content = []ninelives.Part{ninelives.Text{Text: "(no output)"}}
	}
	return ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: r.Content, IsError: r.IsError}
}

// failed is the effect of a call that never ran.
func failed(c ninelives.ToolCall, text string) Effect {
	return Effect{Call: c.ID, Name: c.Name, Result: result(c, tool.ErrorResult(text))}
}

// notRun is the effect of a call that the end of the turn came before.
func notRun(c ninelives.ToolCall, e End) Effect {
	why := "the turn was ended"
	switch e.Reason {
	case ReasonCanceled:
		why = "the user stopped the turn"
	case ReasonDeadline:
		why = "the time of the turn was up"
	case ReasonInterrupted:
		why = "the program died"
	case ReasonLimit, ReasonLoop:
		why = "the safety guard stopped the turn"
	}
	return failed(c, "not started: "+why+" before this call was made; it had no effect")
}

// stoppedEarly is what a call gives that was told to stop while it ran.
func stoppedEarly(spec tool.Spec, r tool.Result, why string) tool.Result {
	text := why + " before it was finished"
	if spec.ReadOnly {
		text += "; it changes nothing"
	} else {
		text += "; it may have had its effect, or a part of it"
		r.Unknown = true
	}
	if said := strings.TrimPrefix(r.Text(), tool.ErrorPrefix); said != "" {
		text += ". " + said
	}
	e := tool.ErrorResult(text)
	r.Content, r.IsError = e.Content, true
	return r
}
