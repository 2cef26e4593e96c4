package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
)

func answer(content, reason, rest string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":` + content + `,"stop_reason":` + reason + `,"stop_sequence":null,"usage":{"input_tokens":50,"output_tokens":2}` + rest + `}`
}

func TestAnswersAreRead(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []ninelives.Part
		finish     ninelives.FinishReason
	}{
		{"text", answer(`[{"type":"text","text":"Hi"}]`, `"end_turn"`, ""), says("Hi"), ninelives.FinishStop},
		{"text as a string", answer(`"Hi"`, `"end_turn"`, ""), says("Hi"), ninelives.FinishStop},
		{"no content", answer(`[]`, `"end_turn"`, ""), nil, ninelives.FinishStop},
		{"null for content", answer(`null`, `"end_turn"`, ""), nil, ninelives.FinishStop},
		{"a stop sequence", answer(`[{"type":"text","text":"Hi"}]`, `"stop_sequence"`, ""), says("Hi"), ninelives.FinishStop},
		{"the window is full", answer(`[{"type":"text","text":"Hi"}]`, `"model_context_window_exceeded"`, ""), says("Hi"), ninelives.FinishLength},
		{"a paused turn", answer(`[{"type":"text","text":"Hi"}]`, `"pause_turn"`, ""), says("Hi"), ninelives.FinishOther},
		{"a reason to come", answer(`[{"type":"text","text":"Hi"}]`, `"bored"`, ""), says("Hi"), ninelives.FinishOther},
		{"a call", answer(`[{"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1}}]`, `"tool_use"`, ""), calls(`{"a": 1}`), ninelives.FinishToolCalls},
		{"a call without input", answer(`[{"type":"tool_use","id":"toolu_1","name":"f"}]`, `"tool_use"`, ""), calls(`{}`), ninelives.FinishToolCalls},
		{"input in a string", answer(`[{"type":"tool_use","id":"toolu_1","name":"f","input":"{\"a\":1}"}]`, `"tool_use"`, ""), calls(`{"a":1}`), ninelives.FinishToolCalls},
		{"a refusal", answer(`[]`, `"refusal"`, `,"stop_details":{"type":"refusal","category":"cyber","explanation":"No."}`), nil, ninelives.FinishRefusal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := anthropic.DecodeResponse([]byte(tc.body), decodeOptions())
			if err != nil {
				t.Fatal(err)
			}
			if diff := different(tc.want, got.Message.Parts); diff != "" {
				t.Error(diff)
			}
			if got.Finish != tc.finish {
				t.Errorf("finish is %q, want %q", got.Finish, tc.finish)
			}
		})
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	body := answer(`[]`, `"refusal"`, `,"stop_details":{"type":"refusal","category":"cyber","explanation":"No."}`)
	got, err := anthropic.DecodeResponse([]byte(body), decodeOptions())
	if err != nil {
		t.Fatal(err)
	}
	if diff := different([]string{"the model declined (cyber): No."}, got.Warnings); diff != "" {
		t.Error(diff)
	}
	if diff := different(raw(`{"stop_details":{"type":"refusal","category":"cyber","explanation":"No."}}`), got.Extra); diff != "" {
		t.Error(diff)
	}
}

func TestWhatOnlyLooksLikeAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		class      ninelives.Class
	}{
		{"nothing", "", ninelives.ClassEmpty},
		{"white space", " \n", ninelives.ClassEmpty},
		{"an error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ninelives.ClassOverloaded},
		{"an error of another shape", `{"error":{"type":"rate_limit_error","message":"slow down"}}`, ninelives.ClassRateLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := anthropic.DecodeResponse([]byte(tc.body), decodeOptions())
			var fault *ninelives.Fault
			if got != nil || !errors.As(err, &fault) || fault.Class != tc.class {
				t.Errorf("got %+v, %v; want class %s", got, err, tc.class)
			}
		})
	}
	for name, body := range map[string]string{"a page": "<html><title>Login</title></html>", "half": `{"id":"m","content":[{"type":"text","te`} {
		t.Run(name, func(t *testing.T) {
			if got, err := anthropic.DecodeResponse([]byte(body), decodeOptions()); got != nil || err == nil {
				t.Errorf("was taken for an answer: %+v", got)
			}
		})
	}
}

func TestAnswersOfOtherProtocolsAreWritten(t *testing.T) {
	r := &ninelives.Response{
		ID: "chatcmpl-1", Model: "m", Finish: ninelives.FinishRefusal, FinishRaw: "stop",
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "x", Field: "reasoning_content", Signature: "theirs"}},
			ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: "x", Field: "encrypted_content", Blob: "theirs"}},
			ninelives.Refusal{Text: "I cannot."},
		}},
		Usage: ninelives.Usage{Input: 10, Cached: 4, Output: 3, Reasoning: 2, OutputExcludesReasoning: true,
			Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached},
	}
	got, err := anthropic.EncodeResponse(r)
	if err != nil {
		t.Fatal(err)
	}
	thought, hidden := wire.Mark(r.Message.Parts[0].(ninelives.Reasoning)), wire.Mark(r.Message.Parts[1].(ninelives.Reasoning))
	want := `{"id":"chatcmpl-1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"` + thought +
		`"},{"type":"redacted_thinking","data":"` + hidden + `"},{"type":"text","text":"I cannot."}],` +
		`"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":6,"cache_read_input_tokens":4,"output_tokens":5}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestACallThatIsCutIsNotWritten(t *testing.T) {
	r := &ninelives.Response{Message: ninelives.Message{Parts: calls(`{"a":`)}}
	if got, err := anthropic.EncodeResponse(r); err == nil || !strings.Contains(err.Error(), "call of f") {
		t.Errorf("got %s, %v", got, err)
	}
}
