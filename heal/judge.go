package heal

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/jsonout"
)

// Judge says how an answer that came to its end is to be taken: the outcome,
// and the fault of every outcome but complete. It is a pure function. The
// fault of an invalid output has an *ninelives.OutputError as its cause; a
// schema that is none takes any JSON.
func Judge(req *ninelives.Request, resp *ninelives.Response, c ninelives.Candidate) (ninelives.Outcome, *ninelives.Fault) {
	j := judge{req: req}
	_ = j.compile()
	v := j.judge(resp, c)
	return v.outcome, v.fault
}

// judge judges the answers to one request.
type judge struct {
	req    *ninelives.Request
	schema *jsonout.Schema
}

// compile reads the schema of the form that the request asks for.
func (j *judge) compile() error {
	if j.req.Output == nil || j.req.Output.Schema == nil {
		return nil
	}
	schema, err := jsonout.Compile(j.req.Output.Schema)
	j.schema = schema
	return err
}

// verdict is what a judge finds.
type verdict struct {
	outcome  ninelives.Outcome
	fault    *ninelives.Fault
	output   []byte // the checked JSON
	warnings []string
}

func (j *judge) judge(resp *ninelives.Response, c ninelives.Candidate) verdict {
	v := j.content(resp, c)
	if v.fault != nil {
		v.fault.Phase = ninelives.PhaseAnswer
		v.fault.Scope = ninelives.ScopeRequest
		v.fault.Billed = ninelives.BilledYes
		v.fault.Partial = resp
	}
	return v
}

// content looks at the finish first, then at what is there.
func (j *judge) content(resp *ninelives.Response, c ninelives.Candidate) verdict {
	has := look(resp.Message.Parts)
	switch {
	case resp.Finish == ninelives.FinishContentFilter:
		return bad(ninelives.OutcomeFiltered, ninelives.ClassContentFilter, "the provider's filter stopped the answer"+itsWords(resp), "")
	case resp.Finish == ninelives.FinishRefusal, has.refusal && !has.text && !has.calls:
		message := "the model declined"
		if said := resp.Message.Refusal(); said != "" {
			message += ": " + oneLine(said, 200)
		}
		return bad(ninelives.OutcomeRefused, ninelives.ClassRefusal, message, "")
	case resp.Finish == ninelives.FinishMalformedCall:
		return unreadable(resp)
	case resp.Finish == ninelives.FinishLength, j.hidden(resp, has, c):
		return j.truncated(resp, has, c)
	}
	if call, why := malformed(resp.Message.Parts); why != "" {
		return bad(ninelives.OutcomeMalformedCall, ninelives.ClassStreamBroken,
			fmt.Sprintf("the call of tool %q is not whole: %s", call.Name, why), "")
	}
	switch {
	case has.text, has.calls, has.opaque:
		return j.form(resp, has)
	case has.reasoning:
		return bad(ninelives.OutcomeThinkingOnly, ninelives.ClassEmpty, "the model thought and gave no answer", "")
	case resp.Finish == ninelives.FinishToolCalls:
		return bad(ninelives.OutcomeEmpty, ninelives.ClassEmpty, "the model announced a tool call and made none", "")
	}
	return bad(ninelives.OutcomeEmpty, ninelives.ClassEmpty, "the answer is empty", "")
}

// form checks an answer against the Output that the request asked for. An
// answer that calls tools is a step on the way and has no form yet.
func (j *judge) form(resp *ninelives.Response, has contents) verdict {
	v := verdict{outcome: ninelives.OutcomeComplete, warnings: j.warnings(resp)}
	if j.req.Output == nil || has.calls {
		return v
	}
	checked := jsonout.Check(resp.Text(), j.schema)
	if checked.OK() {
		v.output = checked.JSON
		return v
	}
	e := &ninelives.OutputError{Raw: resp.Text(), Response: resp}
	for _, p := range checked.Problems {
		e.Problems = append(e.Problems, p.String())
	}
	v = bad(ninelives.OutcomeInvalidOutput, ninelives.ClassInvalidOutput, e.Error(), "")
	v.fault.Err = e
	return v
}

// hidden says that an answer was cut at a limit although its finish says
// otherwise: its tokens are spent to the last one. Seen behind tool_calls and
// behind stop. At the model's own limit only a tool call is doubted; there an
// end that happens to fall on it is likelier for text.
func (j *judge) hidden(resp *ninelives.Response, has contents, c ninelives.Candidate) bool {
	if !resp.Usage.Has(ninelives.UsageOutput) || resp.Usage.Estimated {
		return false
	}
	spent := resp.Usage.TotalOutput()
	if limit := j.req.MaxTokens; limit > 0 && spent >= limit {
		return j.req.Output == nil || has.calls || !jsontext.Value(resp.Text()).IsValid()
	}
	return has.calls && c.MaxOutput > 0 && spent >= c.MaxOutput
}

// truncated tells apart an answer that was cut and a prompt that left no room
// for one.
func (j *judge) truncated(resp *ninelives.Response, has contents, c ninelives.Candidate) verdict {
	if !has.any() && c.Window > 0 && resp.Usage.TotalOutput() == 0 && resp.Usage.TotalInput() >= c.Window-c.Window/50 {
		v := bad(ninelives.OutcomeFaulted, ninelives.ClassContextLength,
			fmt.Sprintf("the prompt of %d tokens fills the window of %d: no room for an answer", resp.Usage.TotalInput(), c.Window),
			"shorten the conversation or use a model with a larger window")
		v.fault.Window, v.fault.Requested = c.Window, resp.Usage.TotalInput()
		return v
	}
	message, hint := "the answer was cut at the limit of its tokens", "raise MaxTokens or ask for less"
	if !has.text && !has.calls && (has.reasoning || resp.Usage.Reasoning > 0) {
		message = "the limit of tokens was spent on thinking before the answer began"
		hint = "raise MaxTokens or lower the reasoning effort"
	}
	return bad(ninelives.OutcomeTruncated, ninelives.ClassTruncated, message, hint)
}

// warnings tell what the caller of a complete answer should know.
func (j *judge) warnings(resp *ninelives.Response) []string {
	if !resp.Usage.Has(ninelives.UsageInput) || resp.Usage.Estimated {
		return nil
	}
	got := resp.Usage.TotalInput()
	sent := sizeOf(j.req)
	if got >= 512 && sent.text/got >= cutBytesPerToken {
		return []string{fmt.Sprintf("the server read only %d tokens of a prompt of about %d: it cut the prompt silently", got, sent.tokens())}
	}
	return nil
}

// cutBytesPerToken: prose and code have 3 to 5 bytes a token; a prompt that
// seems to have so many was not read to its end.
const cutBytesPerToken = 12

// unreadable is a call that the provider could not read and left out: the
// request is in order, so the same one may well succeed.
func unreadable(resp *ninelives.Response) verdict {
	v := bad(ninelives.OutcomeMalformedCall, ninelives.ClassFormat, "the provider could not read the model's tool call"+itsWords(resp), "")
	again := true
	v.fault.ShouldRetry = &again
	return v
}

// itsWords is what the provider itself said about the end of its answer, if that
// is more than its word for it.
func itsWords(resp *ninelives.Response) string {
	if len(resp.Warnings) > 0 {
		return ": " + oneLine(resp.Warnings[0], 200)
	}
	if raw := resp.FinishRaw; raw != "" && raw != string(resp.Finish) {
		return ": " + oneLine(raw, 200)
	}
	return ""
}

func bad(o ninelives.Outcome, class ninelives.Class, message, hint string) verdict {
	return verdict{outcome: o, fault: &ninelives.Fault{Class: class, Message: message, Hint: hint}}
}

// contents are the kinds of content of an answer.
type contents struct{ text, calls, reasoning, refusal, opaque bool }

func (c contents) any() bool { return c.text || c.calls || c.reasoning || c.refusal || c.opaque }

func look(parts []ninelives.Part) contents {
	var has contents
	for _, p := range parts {
		switch p := p.(type) {
		case ninelives.Text:
			has.text = has.text || !blank(p.Text)
		case ninelives.ToolCall:
			has.calls = true
		case ninelives.Reasoning:
			has.reasoning = true
		case ninelives.Refusal:
			has.refusal = has.refusal || !blank(p.Text)
		case ninelives.Opaque:
			has.opaque = true
		case ninelives.Image, ninelives.File:
			has.text = true // an answer, if not in words
		}
	}
	return has
}

// malformed finds a tool call that cannot be run: one without a name, or whose
// arguments are not one whole JSON value. Arguments that are JSON but no
// object, and tools that nobody knows, are for the caller to answer: it can
// tell the model what is wrong.
func malformed(parts []ninelives.Part) (ninelives.ToolCall, string) {
	for _, p := range parts {
		c, ok := p.(ninelives.ToolCall)
		switch {
		case !ok:
		case c.Name == "":
			return c, "it has no name"
		case !jsontext.Value(c.Arguments).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
			return c, "its arguments are not JSON"
		}
	}
	return ninelives.ToolCall{}, ""
}

// textOnly says that an answer is one text, and perhaps the thinking before it.
func textOnly(resp *ninelives.Response) bool {
	for _, p := range resp.Message.Parts {
		switch p.(type) {
		case ninelives.Text, ninelives.Reasoning:
		default:
			return false
		}
	}
	return readable(resp) && len(resp.Choices) == 0
}

// readable says that an answer that was cut may be read as far as it goes: it
// calls no tool and ends in text.
func readable(resp *ninelives.Response) bool {
	parts := resp.Message.Parts
	if len(parts) == 0 || callsTools(parts) || blank(resp.Text()) {
		return false
	}
	_, ok := parts[len(parts)-1].(ninelives.Text)
	return ok
}

// callsTools says that a part is a tool call.
func callsTools(parts []ninelives.Part) bool {
	for _, p := range parts {
		if _, ok := p.(ninelives.ToolCall); ok {
			return true
		}
	}
	return false
}

// opaque says that a part is of a kind that only its provider understands,
// such as the work of a tool that it ran itself.
func opaque(parts []ninelives.Part) bool {
	for _, p := range parts {
		if _, ok := p.(ninelives.Opaque); ok {
			return true
		}
	}
	return false
}

// oneLine shortens text for a message.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
