package wire

import (
	"reflect"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestClaudeVersionsAreReadFromNames(t *testing.T) {
	for model, want := range map[string]int{
		"claude-3-haiku-20240307":                        300,
		"claude-3-5-sonnet-latest":                       305,
		"claude-3.7-sonnet":                              307,
		"claude-3-7-sonnet@20250219":                     307,
		"claude-sonnet-4-20250514":                       400,
		"claude-opus-4-1-20250805":                       401,
		"us.anthropic.claude-haiku-4-5-20251001-v1:0":    405,
		"us.anthropic.claude-sonnet-4-5-20250929-v1%3A0": 405,
		"anthropic/claude-sonnet-4.6":                    406,
		"claude-fable-5-1":                               501,
		"claude-sonnet-5":                                500,
		"anthropic.claude-v2:1":                          201,
	} {
		if got, ok := claudeVersion(model); !ok || got != want {
			t.Errorf("%s is version %d, want %d", model, got, want)
		}
	}
	for _, model := range []string{"claude", "claude-next", "gpt-5.4", ""} {
		if got, ok := claudeVersion(model); ok {
			t.Errorf("%q is version %d", model, got)
		}
	}
}

func TestClaudeDialects(t *testing.T) {
	sampling := []string{"temperature", "top_p", "top_k"}
	for _, tc := range []struct {
		base, model string
		want        Dialect
	}{
		{"https://api.anthropic.com", "claude-next", Dialect{Name: "anthropic"}},
		{"https://api.anthropic.com", "claude-3-haiku-20240307", Dialect{Name: "anthropic", EffortParam: "thinking", Drop: []string{"thinking"}}},
		{"https://api.anthropic.com", "claude-haiku-4-5", Dialect{Name: "anthropic", EffortParam: "thinking"}},
		{"https://api.anthropic.com", "claude-sonnet-4-6", Dialect{Name: "anthropic", Efforts: map[string]string{"xhigh": "high"}}},
		{"https://api.anthropic.com", "claude-opus-5", Dialect{Name: "anthropic", EffortParam: "adaptive", Drop: sampling}},
		{"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models", "claude-sonnet-4@20250514",
			Dialect{Name: "vertex-anthropic", BodyVersion: "vertex-2023-10-16", Drop: []string{"model"}, EffortParam: "thinking"}},
		{"https://bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-opus-5-v1:0",
			Dialect{Name: "bedrock-anthropic", BodyVersion: "bedrock-2023-05-31", Drop: append([]string{"model", "stream"}, sampling...), EffortParam: "adaptive"}},
	} {
		got, protocol := DialectFor(tc.base, tc.model)
		if protocol != ninelives.AnthropicMessages || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s %s: %s\n got %+v\nwant %+v", tc.base, tc.model, protocol, got, tc.want)
		}
	}
	if d, protocol := DialectFor("https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "openai.gpt-oss-120b"); protocol != ninelives.OpenAIChat {
		t.Errorf("Bedrock's OpenAI endpoint: %s %+v", protocol, d)
	}
}
