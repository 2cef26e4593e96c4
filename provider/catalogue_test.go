package provider

import (
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The source design's own table, and its rule for a name that is not listed.
func TestWindowsAreThoseOfTheSourceDesign(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		window          int
		source          string
	}{
		{"anthropic", "claude-sonnet-4-20250514", 200_000, "family"},
		{"anthropic", "claude-sonnet-4-5", 200_000, "exact"},
		{"anthropic", "claude-opus-4", 200_000, "exact"},
		{"openai", "gpt-4o", 128_000, "exact"},
		{"openai", "gpt-4", 8_192, "exact"},
		{"gemini", "gemini-1.5-pro", 2_097_152, "exact"},
		{"qwen", "qwen-plus", 131_072, "exact"},
		// 64k in the source design's table, which is out of date.
		{"deepseek", "deepseek-chat", 131_072, "exact"},
		// The incident that its family rule was made for.
		{"anthropic", "claude-sonnet-4-6", 200_000, "exact"},
		{"anthropic", "claude-sonnet-4-9-20270101", 200_000, "family"},
		{"gemini", "gemini-99-ultra", 1_048_576, "family"},
		{"openai", "nobody-knows", 16_000, "default"},
	} {
		got := Known(c.provider, c.model)
		if got.Window != c.window || got.WindowSource != c.source {
			t.Errorf("%s/%s: %d (%s), want %d (%s)", c.provider, c.model, got.Window, got.WindowSource, c.window, c.source)
		}
	}
}

func TestHostsOwnSpellingsFindTheModel(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		window          int
	}{
		{"openrouter", "anthropic/claude-sonnet-4.6", 200_000},
		{"openrouter", "openai/gpt-4o", 128_000},
		{"openrouter", "meta-llama/llama-3.3-70b-instruct:free", 131_072},
		{"bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000},
		{"vertex", "claude-3-7-sonnet@20250219", 200_000},
		{"azure", "gpt-4o-2024-11-20", 128_000},
		{"fireworks", "accounts/fireworks/models/kimi-k2p6", 262_144},
		{"cerebras", "zai-glm-4.7", 131_072},
		{"together", "deepseek-ai/DeepSeek-R1", 163_840},
		{"openai", "gpt-4-0613", 8_192},
		{"openai", "gpt-4.1-2025-04-14", 1_047_576},
		{"ollama", "qwen3:8b", 131_072},
		{"azure", "deepseek-v4", 1_000_000},
		{"minimax", "minimax-m2.5", 200_000},
	} {
		if got := Known(c.provider, c.model); got.Window != c.window {
			t.Errorf("%s/%s: window %d (%s), want %d", c.provider, c.model, got.Window, got.WindowSource, c.window)
		}
	}
}

func TestPricesHoldAtTheirOwnProviderOnly(t *testing.T) {
	if p := Known("openai", "gpt-4o").Price; p != (ninelives.Price{Input: 2.5, Output: 10, CacheRead: 1.25}) {
		t.Errorf("price %+v", p)
	}
	if p := Known("azure", "gpt-4o").Price; p != (ninelives.Price{}) {
		t.Errorf("another host's price was taken over: %+v", p)
	}
}

func TestAbilitiesComeFromModelFamilyAndProvider(t *testing.T) {
	if c := Known("anthropic", "claude-3-haiku-20240307"); !c.Prefill || c.Schema != ninelives.SchemaTool || c.MaxOutput != 4096 {
		t.Errorf("claude-3-haiku: %+v", c)
	}
	if c := Known("anthropic", "claude-sonnet-4-6"); c.Prefill {
		t.Error("claude-sonnet-4-6 takes no prefill")
	}
	if c := Known("deepseek", "deepseek-v4-pro"); c.Images || c.Replay != ninelives.ReplayRequireAlways || c.ReplayField != "reasoning_content" {
		t.Errorf("deepseek-v4-pro: %+v", c)
	}
	if c := Known("openai", "gpt-4"); c.Schema != ninelives.SchemaNone || c.Images {
		t.Errorf("gpt-4: %+v", c)
	}
	if c := Known("openai", "nobody-knows"); !c.Tools || !c.Images || c.Schema != ninelives.SchemaNative {
		t.Errorf("an unknown model is assumed able: %+v", c)
	}
	for model, images := range map[string]bool{"qwen2.5-vl-7b": true, "llama3.2-vision:11b": true, "glm-4.1v-thinking": true, "qwen2.5:7b": false, "deepseek-v3": false} {
		if c := Known("ollama", model); c.Images != images {
			t.Errorf("%s: images %v, want %v", model, c.Images, images)
		}
	}
	if c := Known("perplexity", "sonar-pro"); c.Tools {
		t.Error("sonar takes no tools")
	}
}

func TestCatalogueHoldsItsShape(t *testing.T) {
	c := theCatalogue()
	if _, err := time.Parse(time.DateOnly, c.AsOf); err != nil {
		t.Errorf("asOf: %v", err)
	}
	if n := len(c.Models); n < 100 {
		t.Errorf("%d models, want about a hundred or more", n)
	}
	seen := map[string]bool{}
	for _, m := range c.Models {
		key := m.Provider + "/" + strings.ToLower(m.Name)
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
		if _, ok := vendorNamed(m.Provider); !ok {
			t.Errorf("%s: no such provider", key)
		}
		if m.Window < 4_096 || m.Window > 4_000_000 || m.MaxOutput < 0 || m.MaxOutput > m.Window {
			t.Errorf("%s: window %d, output %d", key, m.Window, m.MaxOutput)
		}
		p := m.Price
		if p.Input < 0 || p.Output < p.Input || p.Output > 200 || p.CacheRead > p.Input || p.CacheWrite != 0 && p.CacheWrite < p.Input {
			t.Errorf("%s: implausible price %+v", key, p)
		}
		if got := Known(m.Provider, m.Name); got.WindowSource != windowExact || got.Window != m.Window {
			t.Errorf("%s does not find itself: %+v", key, got)
		}
		if _, ok := knownSchemas[Known(m.Provider, m.Name).Schema]; !ok {
			t.Errorf("%s: unknown schema support", key)
		}
	}
	prefixes := map[string]bool{}
	for _, f := range c.Families {
		if prefixes[f.Prefix] {
			t.Errorf("family %s is listed twice", f.Prefix)
		}
		prefixes[f.Prefix] = true
		if f.Provider != "" {
			if _, ok := vendorNamed(f.Provider); !ok {
				t.Errorf("family %s: no provider %s", f.Prefix, f.Provider)
			}
		}
		got := c.family(f.Prefix + "zzz")
		if got == nil || got.Prefix != f.Prefix {
			t.Errorf("family %s does not find itself", f.Prefix)
		}
	}
	for _, p := range c.Providers {
		if _, ok := vendorNamed(p.Name); !ok {
			t.Errorf("no provider %s", p.Name)
		}
	}
	for _, v := range vendors {
		if v.model == "" {
			continue
		}
		if got := Known(v.name, v.model); got.WindowSource == windowDefault {
			t.Errorf("%s: its default model %s is not known", v.name, v.model)
		}
	}
}

var knownSchemas = map[ninelives.SchemaSupport]bool{
	ninelives.SchemaNone: true, ninelives.SchemaObject: true, ninelives.SchemaTool: true, ninelives.SchemaNative: true,
}
