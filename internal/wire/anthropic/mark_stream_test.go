package anthropic_test

import (
	"bytes"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
)

// Where it is known from the beginning whose thinking it is, its block is signed
// by a mark when it ends, and calls need not wait for the end of the answer.
func TestThinkingOfAKnownMakerIsMarkedInItsPlace(t *testing.T) {
	maker := ninelives.Provenance{Provider: "deepseek", Model: "deepseek-v4", Field: "reasoning_content"}
	enc := anthropic.NewEncoder(wire.EncodeOptions{ID: "msg_1", Model: "m", Maker: maker})
	out := enc.Event(nil, ninelives.ReasoningDelta{Text: "Let me think."})
	if bytes.Contains(out, []byte("signature_delta")) {
		t.Error("it is signed before it is whole")
	}
	out = enc.Event(nil, ninelives.ToolCallDelta{Part: 1, ID: "c", Name: "look", Arguments: "{}"})
	if !bytes.Contains(out, []byte("signature_delta")) || !bytes.Contains(out, []byte(`"name":"look"`)) {
		t.Errorf("the call waits, or the thinking is not signed: %s", out)
	}
	body := []byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"Let me think.","signature":"` +
		wire.MarkOf(maker, len("Let me think.")) + `"},{"type":"tool_use","id":"c","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y"}]}]}`)
	in, err := anthropic.DecodeRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := in.Request.Messages[1].Parts[0].(ninelives.Reasoning)
	if !ok || r.Text != "Let me think." || r.Provenance != maker {
		t.Errorf("it comes back as %#v", in.Request.Messages[1].Parts[0])
	}
}
