package wire

import (
	"reflect"
	"slices"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestDialectFollowsFromTheBaseURL(t *testing.T) {
	for _, c := range []struct {
		url, name string
		protocol  ninelives.Protocol
	}{
		{"https://api.openai.com/v1", "openai", ninelives.OpenAIChat},
		{"https://my-resource.openai.azure.com/openai/v1", "azure", ninelives.OpenAIChat},
		{"https://my-resource.services.ai.azure.com/models", "azure", ninelives.OpenAIChat},
		{"https://API.DeepSeek.com", "deepseek", ninelives.OpenAIChat},
		{"https://api.moonshot.cn/v1", "moonshot", ninelives.OpenAIChat},
		{"https://api.z.ai/api/coding/paas/v4", "zai", ninelives.OpenAIChat},
		{"https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen", ninelives.OpenAIChat},
		{"https://openrouter.ai/api/v1", "openrouter", ninelives.OpenAIChat},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-openai", ninelives.OpenAIChat},
		{"http://localhost:11434/v1", "ollama", ninelives.OpenAIChat},
		{"http://192.168.1.4:8000/v1", "vllm", ninelives.OpenAIChat},
		{"http://127.0.0.1:1234/v1/", "lmstudio", ninelives.OpenAIChat},
		{"https://llm.example.com/v1", "", ninelives.OpenAIChat},
		{"https://notapi.openai.com.example.org/v1", "", ninelives.OpenAIChat},
		{"llm.example.com", "", ninelives.OpenAIChat},

		{"https://api.anthropic.com", "anthropic", ninelives.AnthropicMessages},
		{"https://llm.example.com/anthropic/v1", "anthropic", ninelives.AnthropicMessages},
		{"https://api.deepseek.com/anthropic", "deepseek-anthropic", ninelives.AnthropicMessages},
		{"https://generativelanguage.googleapis.com", "gemini", ninelives.Gemini},
		{"https://generativelanguage.googleapis.com/v1beta", "gemini", ninelives.Gemini},
		{"https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google", "gemini", ninelives.Gemini},
		{"http://localhost:11434/api", "ollama", ninelives.OllamaNative},
		{"https://ollama.com/api/chat", "ollama", ninelives.OllamaNative},
		// Others have an /api too.
		{"http://localhost:3000/api", "", ninelives.OpenAIChat},
	} {
		d, p := DialectFor(c.url, "some-model")
		if d.Name != c.name || p != c.protocol {
			t.Errorf("%s: dialect %q, protocol %s; want %q, %s", c.url, d.Name, p, c.name, c.protocol)
		}
	}
}

func TestModelsOfOneServerDiffer(t *testing.T) {
	const openAI = "https://api.openai.com/v1"
	for _, c := range []struct {
		model                string
		dropsTemperature     bool
		noSystem, noParallel bool
	}{
		{model: "gpt-4o"},
		{model: "gpt-5", dropsTemperature: true},
		{model: "gpt-5-mini-2025-08-07", dropsTemperature: true},
		{model: "gpt-5-chat-latest"},
		{model: "gpt-5.4"},
		{model: "o3-mini", dropsTemperature: true, noParallel: true},
		{model: "o1-mini", dropsTemperature: true, noParallel: true, noSystem: true},
	} {
		d, _ := DialectFor(openAI, c.model)
		if slices.Contains(d.Drop, "temperature") != c.dropsTemperature || d.NoSystemRole != c.noSystem || d.NoParallelFlag != c.noParallel {
			t.Errorf("%s: %+v", c.model, d)
		}
		if d.MaxTokensField != "max_completion_tokens" {
			t.Errorf("%s: limit goes into %q", c.model, d.MaxTokensField)
		}
	}
	old, _ := DialectFor("https://x.openai.azure.com", "gpt-4o")
	young, _ := DialectFor("https://x.openai.azure.com", "gpt-5-mini")
	if old.MaxTokensField != "" || young.MaxTokensField != "max_completion_tokens" {
		t.Errorf("Azure: %q for gpt-4o, %q for gpt-5-mini", old.MaxTokensField, young.MaxTokensField)
	}
	if d, _ := DialectFor("https://api.mistral.ai/v1", "magistral-medium-latest"); d.Replay == ninelives.ReplayForbid {
		t.Error("a model that thinks may see its thinking again")
	}
	if d, _ := DialectFor("https://api.mistral.ai/v1", "mistral-large-latest"); d.Replay != ninelives.ReplayForbid {
		t.Error("a model that does not think must not be sent thinking")
	}
}

func TestGeminiThinksByBudgetBeforeItsThirdGenerationAndBySignatureSince(t *testing.T) {
	const base = "https://generativelanguage.googleapis.com"
	for model, want := range map[string]Dialect{
		"gemini-2.5-flash":      {Name: "gemini", ToolNames: true, EffortParam: "thinkingBudget"},
		"models/gemini-1.5-pro": {Name: "gemini", ToolNames: true, EffortParam: "thinkingBudget"},
		"gemini-3-pro":          {Name: "gemini", ToolNames: true, DummySignature: GeminiDummySignature},
		"gemma-3":               {Name: "gemini", ToolNames: true},
	} {
		if got, _ := DialectFor(base, model); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", model, got)
		}
	}
}

func TestDialectNamed(t *testing.T) {
	for _, s := range servers {
		for _, name := range s.names {
			d, ok := DialectNamed(name)
			if !ok || d.Name != s.names[0] {
				t.Errorf("%s: got %q, %v", name, d.Name, ok)
			}
		}
	}
	if d, ok := DialectNamed("DeepSeek"); !ok || !d.NoImages {
		t.Errorf("case must not matter: %+v, %v", d, ok)
	}
	if _, ok := DialectNamed("nobody"); ok {
		t.Error("an unknown name is found")
	}
}

func TestEveryRepairChangesItsDialect(t *testing.T) {
	for _, c := range []struct {
		repair ninelives.Repair
		want   Dialect
	}{
		{ninelives.Repair{Name: RepairDropParameter, Param: "top_k"}, Dialect{Drop: []string{"top_k"}}},
		{ninelives.Repair{Name: RepairDropParameter, Param: "stream_options"}, Dialect{Drop: []string{"stream_options"}, NoStreamUsage: true}},
		{ninelives.Repair{Name: RepairDropParameter, Param: "parallel_tool_calls"}, Dialect{Drop: []string{"parallel_tool_calls"}, NoParallelFlag: true}},
		{ninelives.Repair{Name: RepairDropParameter, Param: "stream"}, Dialect{Drop: []string{"stream"}, NoStream: true}},
		{ninelives.Repair{Name: RepairRenameMaxTokens, Value: "max_completion_tokens"}, Dialect{MaxTokensField: "max_completion_tokens"}},
		{ninelives.Repair{Name: RepairClampMaxTokens, Value: "8192"}, Dialect{MaxTokensCap: 8192}},
		{ninelives.Repair{Name: RepairClampMaxTokens, Value: "lots"}, Dialect{}},
		{ninelives.Repair{Name: RepairNoStream}, Dialect{NoStream: true}},
		{ninelives.Repair{Name: RepairNoStreamUsage}, Dialect{NoStreamUsage: true}},
		{ninelives.Repair{Name: RepairSystemRole}, Dialect{NoSystemRole: true}},
		{ninelives.Repair{Name: RepairMergeRoles}, Dialect{MergeRoles: true}},
		{ninelives.Repair{Name: RepairBridgeToolUser}, Dialect{BridgeToolUser: true}},
		{ninelives.Repair{Name: RepairStripField, Param: "annotations"}, Dialect{StripFields: []string{"annotations"}}},
		{ninelives.Repair{Name: RepairStripField, Param: "strict"}, Dialect{StripFields: []string{"strict"}, NoStrict: true}},
		{ninelives.Repair{Name: RepairNoImages}, Dialect{NoImages: true}},
		{ninelives.Repair{Name: RepairNoTools}, Dialect{NoTools: true}},
		{ninelives.Repair{Name: RepairNoStrict}, Dialect{NoStrict: true}},
		{ninelives.Repair{Name: RepairToolNames}, Dialect{ToolNames: true}},
		{ninelives.Repair{Name: RepairToolIDMax, Value: "40"}, Dialect{ToolIDMax: 40}},
		{ninelives.Repair{Name: RepairToolIDExact, Value: "9"}, Dialect{ToolIDExact: 9}},
		{ninelives.Repair{Name: RepairToolIDExact, Value: "some"}, Dialect{}},
		{ninelives.Repair{Name: RepairToolArgsObject}, Dialect{ToolArgsObject: true}},
		{ninelives.Repair{Name: RepairSchemaDrop, Param: "format"}, Dialect{SchemaDrop: []string{"format"}}},
		{ninelives.Repair{Name: RepairSchemaWeaker, Value: "json_object"}, Dialect{Schema: ninelives.SchemaObject, SchemaSet: true}},
		{ninelives.Repair{Name: RepairSchemaWeaker}, Dialect{SchemaSet: true}},
		{ninelives.Repair{Name: RepairReplay, Param: "reasoning", Value: "forbid"}, Dialect{Replay: ninelives.ReplayForbid, ReplayField: "reasoning"}},
		{ninelives.Repair{Name: RepairReplay, Param: "reasoning_content"}, Dialect{Replay: ninelives.ReplayRequireAlways, ReplayField: "reasoning_content"}},
		{ninelives.Repair{Name: RepairDropReasoning}, Dialect{DropReasoning: true}},
		{ninelives.Repair{Name: RepairDummySignature, Value: "x"}, Dialect{DummySignature: "x"}},
		{ninelives.Repair{Name: RepairNoPrefill}, Dialect{PrefillSet: true}},
		{ninelives.Repair{Name: RepairThinkingDisabled}, Dialect{NoThinking: true}},
		{ninelives.Repair{Name: RepairHistory}, Dialect{}},
		{ninelives.Repair{Name: "nothing we know"}, Dialect{}},
	} {
		got := (Dialect{}).Apply([]ninelives.Repair{c.repair})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.repair, got, c.want)
		}
		if twice := got.Apply([]ninelives.Repair{c.repair}); !reflect.DeepEqual(twice, got) {
			t.Errorf("%s: twice is not the same as once: %+v", c.repair, twice)
		}
	}
	if d := (Dialect{DeveloperRole: true}).Apply([]ninelives.Repair{{Name: RepairDeveloperRole}}); d.DeveloperRole {
		t.Error("the developer role is still sent")
	}
	if d := (Dialect{ToolArgsObject: true}).Apply([]ninelives.Repair{{Name: RepairToolArgsString}}); d.ToolArgsObject {
		t.Error("arguments are still objects")
	}
	if d := (Dialect{MaxTokensCap: 4096}).Apply([]ninelives.Repair{{Name: RepairClampMaxTokens, Value: "8192"}}); d.MaxTokensCap != 4096 {
		t.Error("a limit was widened")
	}
}

// What is learnt for one candidate must not leak into another's dialect.
func TestApplyLeavesTheTableAlone(t *testing.T) {
	before, _ := DialectNamed("mistral")
	changed := before.Apply([]ninelives.Repair{
		{Name: RepairDropParameter, Param: "n"},
		{Name: RepairStripField, Param: "x"},
		{Name: RepairSchemaDrop, Param: "y"},
	})
	after, _ := DialectNamed("mistral")
	if !reflect.DeepEqual(before, after) || reflect.DeepEqual(before, changed) {
		t.Errorf("before %+v\nafter %+v\nchanged %+v", before, after, changed)
	}
}
