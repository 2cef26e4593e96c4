package heal

import (
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
)

// accept ends the call with an answer.
func (c *call) accept(d Decision) {
	last := c.lastAttempt()
	t := c.last
	resp, number := t.resp, last.Number
	switch {
	case d.Default:
		c.void()
		resp = c.defaulted(last)
		number = c.instead(resp)
	case d.Flagged && !last.Acceptable:
		// The continuation failed: what there was before it stands.
		c.void()
		t.held = nil
		if !t.flush() {
			return
		}
		resp = c.kept.first
		last = c.attemptOf(c.keptBy)
		number = last.Number
	default:
		if !t.complete() {
			return
		}
	}
	answer := *resp
	answer.Candidate = c.links[last.Candidate].name
	answer.IsFallback = last.Candidate != 0
	answer.Attempts = c.requests()
	switch { // whatever the provider called it, the flag says what it is
	case d.Default:
	case last.Outcome == ninelives.OutcomeTruncated:
		answer.Finish = ninelives.FinishLength
	case last.Outcome == ninelives.OutcomeRefused:
		answer.Finish = ninelives.FinishRefusal
	}
	if c.found.output != nil && !d.Default {
		answer.Output = c.found.output
	}
	if warnings := c.found.warnings; len(warnings) > 0 {
		answer.Warnings = append(slices.Clip(answer.Warnings), warnings...)
		for _, w := range warnings {
			c.notice(ninelives.Notice{Kind: ninelives.NoticeWarning, Attempt: last.Number, Candidate: answer.Candidate, Text: w})
		}
	}
	if d.Flagged || d.Default {
		c.notice(ninelives.Notice{Kind: ninelives.NoticeWarning, Attempt: last.Number, Candidate: answer.Candidate,
			Fault: last.Fault, Text: d.Why})
	} else {
		for _, s := range c.h.substitutes {
			s.keep(c.req, &answer)
		}
	}
	c.tellSwitch(last)
	c.done(number, &answer)
}

// instead shows an answer that no attempt gave as that of a further one, whose
// number it returns: what was voided stays void.
func (c *call) instead(resp *ninelives.Response) int {
	number := c.requests() + 1
	if text := resp.Text(); text != "" {
		c.hand(ninelives.TextDelta{Attempt: number, Text: text}, nil)
	}
	return number
}

// defaulted is the caller's stand-in for an answer without form. What the model
// said instead is in the fault of the warning.
func (c *call) defaulted(a *Attempt) *ninelives.Response {
	resp := ninelives.Response{}
	if a.Fault.Partial != nil {
		resp = *a.Fault.Partial
	}
	resp.Message = ninelives.AssistantText(string(c.req.Output.Default))
	resp.Finish, resp.FinishRaw = ninelives.FinishStop, ""
	resp.Choices, resp.Logprobs = nil, ninelives.Extra{}
	resp.Output = c.req.Output.Default
	resp.OutputDefaulted = true
	resp.Warnings = append(slices.Clip(resp.Warnings), "the output is the caller's default: "+a.Fault.Message)
	return &resp
}

// attemptOf finds an attempt by its number.
func (c *call) attemptOf(number int) *Attempt {
	for i := range c.s.Attempts {
		if a := &c.s.Attempts[i]; a.Number == number && !a.Lost && !a.Unsent {
			return a
		}
	}
	return c.lastAttempt()
}

// degrade ends the call with the substitute, or reports that there is none for
// this request: then the decision is made again without it.
func (c *call) degrade(d Decision) bool {
	why := c.exhausted(d)
	resp, err, ok := c.h.substitute(c.req, why)
	if !ok {
		c.s.Degraded = false
		return false
	}
	c.void()
	n := ninelives.Notice{Kind: ninelives.NoticeDegraded, Attempt: c.requests(), Fault: d.Fault, Text: d.Why}
	if err != nil {
		c.notice(n)
		c.fail(err)
		return true
	}
	n.Text = d.Why + ": the " + string(resp.Degraded) + " answer is served"
	c.notice(n)
	answer := *resp
	answer.Attempts = c.requests()
	c.done(c.instead(&answer), &answer)
	return true
}

// surface ends the call with the failure.
func (c *call) surface(d Decision) {
	if t := c.last; t != nil && c.s.Mode == ModeContinue && t.resp != nil && c.endedByReason() && !t.callsInTail() {
		// The answer came to its end, if not to a good one: who relays it is given
		// that end in the provider's own bytes, before the error says what it was.
		if !t.complete() {
			return
		}
	}
	if d.Exhausted {
		c.fail(c.exhausted(d))
		return
	}
	c.fail(d.Fault)
}

// endedByReason says that the last answer ended for a reason that its provider
// gave: its limit, a filter, a refusal.
func (c *call) endedByReason() bool {
	switch c.found.outcome {
	case ninelives.OutcomeTruncated, ninelives.OutcomeFiltered, ninelives.OutcomeRefused:
		return true
	}
	return false
}

// callsInTail says that a tool call waits for the end of the answer.
func (t *take) callsInTail() bool {
	return slices.ContainsFunc(t.tail, func(ev ninelives.Event) bool {
		_, is := ev.(ninelives.ToolCallDelta)
		return is
	})
}

func (c *call) done(number int, resp *ninelives.Response) {
	c.hand(ninelives.Done{Attempt: number, Response: resp}, nil)
	c.stopped = true
}

func (c *call) fail(err error) {
	c.hand(nil, err)
	c.stopped = true
}

// discard voids what the consumer holds of a failed attempt when another one
// starts in its place; what a truncated answer gave is gone on with.
func (c *call) discard(d Decision) {
	if c.shown == nil {
		return
	}
	if d.Change.Prompt == PromptContinue && c.keptBy == c.shown.number {
		c.shown = nil
		return
	}
	c.void()
}

// void tells the consumer to forget the last attempt, if it can.
func (c *call) void() {
	t := c.shown
	if t == nil {
		return
	}
	c.shown = nil
	if c.s.Mode == ModeRestart {
		c.hand(ninelives.Discard{Attempt: t.number, Reason: t.fault}, nil)
	}
}
