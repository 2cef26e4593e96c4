package wire_test

import (
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// claudeCode has what bodies of Claude Code 2.1 have and the API of 2023 had not.
const claudeCode = `{"model":"claude-opus-4-8","max_tokens":128000,"stream":true,` +
	`"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.332.abc;"},{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}],` +
	`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"system","content":"A tool was added.","output_config":{"effort":"high"}},{"role":"user","content":[{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}]}],` +
	`"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"medium"},` +
	`"tools":[{"name":"Read","description":"reads","input_schema":{"type":"object"}},{"name":"Late","description":"late","input_schema":{"type":"object"},"defer_loading":true}],` +
	`"metadata":{"user_id":"{\"session_id\":\"s-1\"}"}}`

func TestClaudeCodeIsUnderstoodByAll(t *testing.T) {
	in, err := anthropic.DecodeRequest([]byte(claudeCode))
	if err != nil {
		t.Fatal(err)
	}
	h, err := wire.Peek(ninelives.AnthropicMessages, []byte(claudeCode))
	if err != nil || !h.Billing || !h.Simple || h.Session != "s-1" || !h.Tools || h.MaxTokens != 128000 {
		t.Errorf("peeked %+v, %v", h, err)
	}
	own := []string{`x-anthropic-billing-header`, `{"role":"system","content":"A tool was added.","output_config":{"effort":"high"}}`, `"thinking":{"type":"adaptive","display":"omitted"}`,
		`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`, `"defer_loading":true`, `"output_config":{"effort":"medium"}`, `"cache_control"`}
	for name, tt := range map[string]struct {
		provider, url string
		write         func(*ninelives.Request, wire.Target) (wire.Encoded, error)
		own           bool
	}{
		"Anthropic": {"anthropic", "https://api.anthropic.com", anthropic.EncodeRequest, true},
		"chat":      {"openai", "https://api.openai.com/v1", openai.EncodeChatRequest, false},
		"responses": {"openai", "https://api.openai.com/v1", openai.EncodeResponsesRequest, false},
		"gemini":    {"google", "https://generativelanguage.googleapis.com/v1beta", gemini.EncodeRequest, false},
	} {
		d, p := wire.DialectFor(tt.url, "claude-opus-4-8")
		if name == "responses" {
			p = ninelives.OpenAIResponses
		}
		enc, err := tt.write(in.Request, wire.Target{Candidate: ninelives.Candidate{Provider: tt.provider, Model: "claude-opus-4-8", Protocol: p}, Dialect: d})
		if err != nil {
			t.Fatal(err)
		}
		body := string(enc.Body)
		for _, piece := range own {
			if strings.Contains(body, piece) != tt.own {
				t.Errorf("%s: %s is there: %v\n%s", name, piece, !tt.own, body)
			}
		}
		for _, piece := range []string{"You help.", "A tool was added.", `"hi"`, `"go"`, `"Read"`, `"Late"`, "128000", "medium"} {
			if !strings.Contains(body, piece) {
				t.Errorf("%s: %s was lost\n%s", name, piece, body)
			}
		}
	}
}
