package heal

import (
	"errors"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func message(parts ...ninelives.Part) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}
}

func used(in, out, thinking int) ninelives.Usage {
	return ninelives.Usage{Input: in, Output: out, Reasoning: thinking,
		Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageReasoning}
}

func TestJudge(t *testing.T) {
	said := ninelives.Text{Text: "hello"}
	thought := ninelives.Reasoning{Text: "hm"}
	call := ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{"a":1}`}
	tools := []ninelives.Tool{{Name: "f"}}
	form := &ninelives.Output{Schema: []byte(`{"type":"object","required":["n"]}`)}
	window := ninelives.Candidate{Capabilities: ninelives.Capabilities{Window: 4096, WindowSource: "exact", MaxOutput: 500}}

	for _, tc := range []struct {
		name    string
		req     ninelives.Request
		resp    ninelives.Response
		c       ninelives.Candidate
		outcome ninelives.Outcome
		class   ninelives.Class
	}{
		{name: "text", resp: ninelives.Response{Message: message(said), Finish: ninelives.FinishStop}, outcome: ninelives.OutcomeComplete},
		{name: "text without a finish", resp: ninelives.Response{Message: message(said)}, outcome: ninelives.OutcomeComplete},
		{name: "text with an odd finish", resp: ninelives.Response{Message: message(said), Finish: ninelives.FinishOther}, outcome: ninelives.OutcomeComplete},
		{name: "a call behind stop", resp: ninelives.Response{Message: message(call), Finish: ninelives.FinishStop}, outcome: ninelives.OutcomeComplete},
		{name: "thinking and a call", resp: ninelives.Response{Message: message(thought, call), Finish: ninelives.FinishToolCalls}, outcome: ninelives.OutcomeComplete},
		{name: "work of a server-side tool", resp: ninelives.Response{Message: message(ninelives.Opaque{Kind: "web_search_tool_result"})}, outcome: ninelives.OutcomeComplete},

		{name: "empty: no part", resp: ninelives.Response{Finish: ninelives.FinishStop}, outcome: ninelives.OutcomeEmpty, class: ninelives.ClassEmpty},
		{name: "empty: an empty part", resp: ninelives.Response{Message: message(ninelives.Text{})}, outcome: ninelives.OutcomeEmpty, class: ninelives.ClassEmpty},
		{name: "empty: white space", resp: ninelives.Response{Message: message(ninelives.Text{Text: " \n\u00a0"})}, outcome: ninelives.OutcomeEmpty, class: ninelives.ClassEmpty},
		{name: "empty: a call announced and not made", resp: ninelives.Response{Finish: ninelives.FinishToolCalls}, outcome: ninelives.OutcomeEmpty, class: ninelives.ClassEmpty},
		{name: "empty: an empty refusal", resp: ninelives.Response{Message: message(ninelives.Refusal{})}, outcome: ninelives.OutcomeEmpty, class: ninelives.ClassEmpty},
		{name: "thinking only", resp: ninelives.Response{Message: message(thought), Finish: ninelives.FinishStop}, outcome: ninelives.OutcomeThinkingOnly, class: ninelives.ClassEmpty},
		{name: "thinking and a blank", resp: ninelives.Response{Message: message(thought, ninelives.Text{Text: "\n"})}, outcome: ninelives.OutcomeThinkingOnly, class: ninelives.ClassEmpty},

		{name: "cut text", resp: ninelives.Response{Message: message(said), Finish: ninelives.FinishLength}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut in the thinking", resp: ninelives.Response{Message: message(thought), Finish: ninelives.FinishLength}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut, the thinking not shown", resp: ninelives.Response{Finish: ninelives.FinishLength, Usage: used(10, 100, 100)}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut, a whole call", resp: ninelives.Response{Message: message(call), Finish: ninelives.FinishLength}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut, hidden behind tool_calls", req: ninelives.Request{MaxTokens: 100, Tools: tools},
			resp: ninelives.Response{Message: message(call), Finish: ninelives.FinishToolCalls, Usage: used(10, 100, 0)}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut, hidden behind stop", req: ninelives.Request{MaxTokens: 100},
			resp: ninelives.Response{Message: message(said), Finish: ninelives.FinishStop, Usage: used(10, 100, 0)}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "cut at the model's own limit behind tool_calls", c: window,
			resp: ninelives.Response{Message: message(call), Finish: ninelives.FinishToolCalls, Usage: used(10, 500, 0)}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "below the limit", req: ninelives.Request{MaxTokens: 100},
			resp: ninelives.Response{Message: message(call), Finish: ninelives.FinishToolCalls, Usage: used(10, 99, 0)}, outcome: ninelives.OutcomeComplete},
		{name: "a whole value at the limit", req: ninelives.Request{MaxTokens: 5, Output: &ninelives.Output{}},
			resp: ninelives.Response{Message: message(ninelives.Text{Text: `{"n":1}`}), Finish: ninelives.FinishStop, Usage: used(10, 5, 0)}, outcome: ninelives.OutcomeComplete},
		{name: "cut output is not repaired", req: ninelives.Request{Output: form},
			resp: ninelives.Response{Message: message(ninelives.Text{Text: `{"n":1}`}), Finish: ninelives.FinishLength}, outcome: ninelives.OutcomeTruncated, class: ninelives.ClassTruncated},
		{name: "no room left in the window", c: window,
			resp: ninelives.Response{Finish: ninelives.FinishLength, Usage: used(4090, 0, 0)}, outcome: ninelives.OutcomeFaulted, class: ninelives.ClassContextLength},

		{name: "refused by its finish", resp: ninelives.Response{Finish: ninelives.FinishRefusal}, outcome: ninelives.OutcomeRefused, class: ninelives.ClassRefusal},
		{name: "refused in words", resp: ninelives.Response{Message: message(ninelives.Refusal{Text: "no"}), Finish: ninelives.FinishStop}, outcome: ninelives.OutcomeRefused, class: ninelives.ClassRefusal},
		{name: "filtered", resp: ninelives.Response{Message: message(said), Finish: ninelives.FinishContentFilter}, outcome: ninelives.OutcomeFiltered, class: ninelives.ClassContentFilter},

		{name: "a call that does not close", resp: ninelives.Response{Message: message(ninelives.ToolCall{Name: "f", Arguments: `{"a":`})}, outcome: ninelives.OutcomeMalformedCall, class: ninelives.ClassStreamBroken},
		{name: "a call that is no JSON", resp: ninelives.Response{Message: message(said, ninelives.ToolCall{Name: "f", Arguments: `a=1`})}, outcome: ninelives.OutcomeMalformedCall, class: ninelives.ClassStreamBroken},
		{name: "a call without arguments", resp: ninelives.Response{Message: message(ninelives.ToolCall{Name: "f"})}, outcome: ninelives.OutcomeMalformedCall, class: ninelives.ClassStreamBroken},
		{name: "a call without a name", resp: ninelives.Response{Message: message(ninelives.ToolCall{Arguments: `{}`})}, outcome: ninelives.OutcomeMalformedCall, class: ninelives.ClassStreamBroken},
		{name: "a call of a tool nobody knows", req: ninelives.Request{Tools: tools}, resp: ninelives.Response{Message: message(ninelives.ToolCall{Name: "g", Arguments: `{}`})}, outcome: ninelives.OutcomeComplete},
		{name: "arguments that are JSON and no object", resp: ninelives.Response{Message: message(ninelives.ToolCall{Name: "f", Arguments: `[1]`})}, outcome: ninelives.OutcomeComplete},

		{name: "output as asked", req: ninelives.Request{Output: form}, resp: ninelives.Response{Message: message(ninelives.Text{Text: "```json\n{\"n\":1}\n```"})}, outcome: ninelives.OutcomeComplete},
		{name: "a call that its provider could not read", resp: ninelives.Response{Message: message(ninelives.Text{Text: "I look."}), Finish: ninelives.FinishMalformedCall}, outcome: ninelives.OutcomeMalformedCall, class: ninelives.ClassFormat},
		{name: "output missed", req: ninelives.Request{Output: form}, resp: ninelives.Response{Message: message(ninelives.Text{Text: `{"m":1}`})}, outcome: ninelives.OutcomeInvalidOutput, class: ninelives.ClassInvalidOutput},
		{name: "output in prose", req: ninelives.Request{Output: form}, resp: ninelives.Response{Message: message(said)}, outcome: ninelives.OutcomeInvalidOutput, class: ninelives.ClassInvalidOutput},
		{name: "a call on the way to the output", req: ninelives.Request{Output: form, Tools: tools}, resp: ninelives.Response{Message: message(said, call), Finish: ninelives.FinishToolCalls}, outcome: ninelives.OutcomeComplete},
	} {
		t.Run(tc.name, func(t *testing.T) {
			outcome, f := Judge(&tc.req, &tc.resp, tc.c)
			equal(t, "outcome", outcome, tc.outcome)
			if tc.class == "" {
				if f != nil {
					t.Errorf("a complete answer has the fault %v", f)
				}
				return
			}
			if f == nil {
				t.Fatal("no fault")
			}
			equal(t, "class", f.Class, tc.class)
			equal(t, "evidence", f.Partial, &tc.resp)
			equal(t, "phase", f.Phase, ninelives.PhaseAnswer)
			equal(t, "billed", f.Billed, ninelives.BilledYes)
		})
	}
}

func TestFilteredAnswerSaysWhatItsProviderSaid(t *testing.T) {
	for want, resp := range map[string]ninelives.Response{
		"the provider's filter stopped the answer":                         {FinishRaw: "content_filter"},
		"the provider's filter stopped the answer: SAFETY":                 {FinishRaw: "SAFETY"},
		"the provider's filter stopped the answer: the prompt was blocked": {Warnings: []string{"the prompt was blocked"}},
	} {
		resp.Finish = ninelives.FinishContentFilter
		_, f := Judge(ninelives.Prompt("hi"), &resp, ninelives.Candidate{})
		equal(t, "message", f.Message, want)
	}
}

func TestMissedOutputCarriesTheRawTextAndAllProblems(t *testing.T) {
	req := &ninelives.Request{Output: &ninelives.Output{Schema: []byte(`{"type":"object","required":["a","b"],"properties":{"c":{"type":"integer"}}}`)}}
	_, f := Judge(req, answer(`{"c":"x"}`), ninelives.Candidate{})
	var e *ninelives.OutputError
	if !errors.As(f, &e) {
		t.Fatal(f)
	}
	equal(t, "raw", e.Raw, `{"c":"x"}`)
	if len(e.Problems) < 2 {
		t.Errorf("problems: %q", e.Problems)
	}
}

func TestSilentlyCutPromptIsAWarningOnly(t *testing.T) {
	long := make([]byte, 100_000)
	for i := range long {
		long[i] = "some words of a long prompt "[i%28]
	}
	resp := answer("hello")
	resp.Usage = used(4096, 2, 0)
	j := judge{req: ninelives.Prompt(string(long))}
	v := j.judge(resp, ninelives.Candidate{})
	equal(t, "outcome", v.outcome, ninelives.OutcomeComplete)
	equal(t, "warnings", v.warnings, []string{"the server read only 4096 tokens of a prompt of about 27027: it cut the prompt silently"})

	resp.Usage = used(24_000, 2, 0)
	equal(t, "a prompt that was read", len(j.judge(resp, ninelives.Candidate{}).warnings), 0)
	resp.Usage = ninelives.Usage{}
	equal(t, "nothing reported", len(j.judge(resp, ninelives.Candidate{}).warnings), 0)
}
