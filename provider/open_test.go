package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// environ is an environment of its own.
func environ(pairs ...string) Env {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func candidateOf(t *testing.T, spec string, opts ...Option) (ninelives.Candidate, *Model) {
	t.Helper()
	m, err := Open(spec, opts...)
	if err != nil {
		t.Fatalf("Open(%q): %v", spec, err)
	}
	c, ok := ninelives.CandidateOf(m)
	if !ok {
		t.Fatalf("Open(%q): no candidate", spec)
	}
	return c, m.(*Model)
}

func TestOpenFindsProviderModelAndEndpoint(t *testing.T) {
	env := environ("ANTHROPIC_API_KEY", testKey, "OPENAI_API_KEY", testKey, "DEEPSEEK_API_KEY", testKey, "GEMINI_API_KEY", testKey,
		"OPENROUTER_API_KEY", testKey, "GROQ_API_KEY", testKey, "GROQ_BASE_URL", "http://groq.test", "AZURE_OPENAI_API_KEY", testKey,
		"AZURE_OPENAI_ENDPOINT", "https://res.openai.azure.com/", "OLLAMA_HOST", "0.0.0.0:11500")
	for _, c := range []struct {
		spec     string
		opts     []Option
		name     string
		protocol ninelives.Protocol
		url      string
		local    bool
	}{
		{spec: "anthropic/claude-sonnet-4-6", name: "anthropic/claude-sonnet-4-6", protocol: ninelives.AnthropicMessages, url: "https://api.anthropic.com/v1/messages"},
		{spec: "claude-sonnet-4-6", name: "anthropic/claude-sonnet-4-6", protocol: ninelives.AnthropicMessages, url: "https://api.anthropic.com/v1/messages"},
		{spec: "claude/claude-opus-9", name: "anthropic/claude-opus-9", protocol: ninelives.AnthropicMessages, url: "https://api.anthropic.com/v1/messages"},
		{spec: "anthropic", name: "anthropic/claude-sonnet-4-6", protocol: ninelives.AnthropicMessages, url: "https://api.anthropic.com/v1/messages"},
		{spec: "gpt-4o", name: "openai/gpt-4o", protocol: ninelives.OpenAIChat, url: "https://api.openai.com/v1/chat/completions"},
		{spec: "gpt-5.4", opts: []Option{Protocol(ninelives.OpenAIResponses)}, name: "openai/gpt-5.4", protocol: ninelives.OpenAIResponses, url: "https://api.openai.com/v1/responses"},
		{spec: "deepseek-v4-pro", name: "deepseek/deepseek-v4-pro", protocol: ninelives.OpenAIChat, url: "https://api.deepseek.com/chat/completions"},
		{spec: "deepseek/deepseek-v4-pro", opts: []Option{BaseURL("https://api.deepseek.com/anthropic")}, name: "deepseek/deepseek-v4-pro", protocol: ninelives.AnthropicMessages, url: "https://api.deepseek.com/anthropic/v1/messages"},
		{spec: "gemini/gemini-2.5-pro", name: "gemini/gemini-2.5-pro", protocol: ninelives.Gemini, url: "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		{spec: "gemini/gemini-2.5-pro", opts: []Option{BaseURL("https://generativelanguage.googleapis.com/v1beta/openai/")}, name: "gemini/gemini-2.5-pro", protocol: ninelives.OpenAIChat, url: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"},
		{spec: "openrouter/anthropic/claude-sonnet-4.6", name: "openrouter/anthropic/claude-sonnet-4.6", protocol: ninelives.OpenAIChat, url: "https://openrouter.ai/api/v1/chat/completions"},
		{spec: "groq/openai/gpt-oss-120b", name: "groq/openai/gpt-oss-120b", protocol: ninelives.OpenAIChat, url: "http://groq.test/openai/v1/chat/completions"},
		{spec: "ollama/qwen3:8b", name: "ollama/qwen3:8b", protocol: ninelives.OpenAIChat, url: "http://127.0.0.1:11500/v1/chat/completions", local: true},
		{spec: "qwen3:8b", name: "ollama/qwen3:8b", protocol: ninelives.OpenAIChat, url: "http://127.0.0.1:11500/v1/chat/completions", local: true},
		{spec: "Qwen/Qwen3-0.6B", opts: []Option{BaseURL("http://localhost:9000/v1")}, name: "custom/Qwen/Qwen3-0.6B", protocol: ninelives.OpenAIChat, url: "http://localhost:9000/v1/chat/completions", local: true},
		{spec: "m", opts: []Option{Provider("mycorp"), BaseURL("https://llm.corp.example/v1/chat/completions")}, name: "mycorp/m", protocol: ninelives.OpenAIChat, url: "https://llm.corp.example/v1/chat/completions"},
		{spec: "azure/gpt-4o-prod", name: "azure/gpt-4o-prod", protocol: ninelives.OpenAIChat, url: "https://res.openai.azure.com/openai/v1/chat/completions"},
		{spec: "azure/gpt-4o-prod", opts: []Option{APIVersion("2024-10-21")}, name: "azure/gpt-4o-prod", protocol: ninelives.OpenAIChat, url: "https://res.openai.azure.com/openai/deployments/gpt-4o-prod/chat/completions?api-version=2024-10-21"},
		{spec: "azure/x", opts: []Option{BaseURL("https://res.openai.azure.com/openai/deployments/dep/chat/completions?api-version=2024-06-01")}, name: "azure/x", protocol: ninelives.OpenAIChat, url: "https://res.openai.azure.com/openai/deployments/dep/chat/completions?api-version=2024-06-01"},
		{spec: "anthropic/claude-sonnet-4-6", opts: []Option{BaseURL("http://127.0.0.1:4000/v1/")}, name: "anthropic/claude-sonnet-4-6", protocol: ninelives.AnthropicMessages, url: "http://127.0.0.1:4000/v1/messages", local: true},
	} {
		got, m := candidateOf(t, c.spec, append(c.opts, Environment(env))...)
		if got.Name() != c.name || got.Protocol != c.protocol || got.Local != c.local {
			t.Errorf("%s: %s, %s, local %v; want %s, %s, local %v", c.spec, got.Name(), got.Protocol, got.Local, c.name, c.protocol, c.local)
		}
		if u := m.endpoint.url(true).String(); u != c.url {
			t.Errorf("%s: %s, want %s", c.spec, u, c.url)
		}
	}
}

// A model that runs on this machine gets more time; a proxy, or a simulator,
// there does not.
func TestOnlyServersThatRunModelsGetMoreTime(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey)
	for _, c := range []struct {
		spec, base, dialect string
		want                bool
	}{
		{"openai/gpt-5.4", "http://127.0.0.1:4000/v1", "", false},
		{"anthropic/claude-sonnet-4-6", "http://localhost:4000", "", false},
		{"mycorp/m", "http://127.0.0.1:4000/v1", "", false},
		{"ollama/qwen3:8b", "http://127.0.0.1:4000/v1", "", true},
		{"llamacpp/m", "http://127.0.0.1:4000/v1", "", true},
		{"ollama/qwen3:8b", "http://gpu.lan:11434/v1", "", false},
		{"openai/qwen3:8b", "http://127.0.0.1:11434/v1", "", true},
		{"openai/m", "http://localhost:1234/v1", "", true},
		{"mycorp/m", "http://127.0.0.1:8000/v1", "", true},
		{"mycorp/m", "http://127.0.0.1:30000/v1", "", true},
		{"mycorp/m", "http://127.0.0.1:4000/v1", "vllm", true},
		{"mycorp/m", "http://127.0.0.1:11434/anthropic", "", true},
	} {
		opts := []Option{Environment(env), BaseURL(c.base)}
		if c.dialect != "" {
			opts = append(opts, Dialect(c.dialect))
		}
		if got, _ := candidateOf(t, c.spec, opts...); got.LocalModel != c.want {
			t.Errorf("%s at %s %s: a local model %v, want %v", c.spec, c.base, c.dialect, got.LocalModel, c.want)
		}
	}
}

func TestOpenSaysInOneLineWhatToDo(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := environ("OPENAI_API_KEY", testKey)
	for _, c := range []struct {
		spec string
		opts []Option
		want string
	}{
		{"anthropic/claude-sonnet-4-6", nil, "provider: no key for anthropic: set ANTHROPIC_API_KEY"},
		{"claude-sonnet-4-6", nil, "provider: no key for anthropic: set ANTHROPIC_API_KEY"},
		{"antropic/claude-sonnet-4-6", nil, `provider: unknown provider "antropic" (did you mean "anthropic"?)`},
		{"klingon/x", nil, `provider: unknown provider "klingon": use one of anthropic, openai, `},
		{"x", []Option{Provider("klingon")}, `provider: unknown provider "klingon": use one of anthropic, openai, `},
		{"foo", nil, `provider: unknown model "foo": write it as provider/model, such as "openai/foo"`},
		{"", nil, `provider: no model is named: write it as provider/model, such as "anthropic/claude-sonnet-4-6"`},
		{"ollama", nil, "provider: which model of ollama? write ollama/MODEL"},
		{"azure/dep", []Option{Key(NewSecret(testKey))}, "provider: no endpoint for azure: set AZURE_OPENAI_ENDPOINT"},
		{"openai/gpt-4o", []Option{BaseURL("api.example.com/v1")}, `provider: the base URL "api.example.com/v1" is not complete: write it like https://api.example.com/v1`},
		{"openai/gpt-4o", []Option{BaseURL("http://127.0.0.1:99999/v1")}, `provider: the base URL "http://127.0.0.1:99999/v1" has a port that does not exist: use one from 1 to 65535`},
		{"openai/gpt-4o", []Option{Header("X-Team", "a\nb")}, `provider: the header "X-Team" cannot be sent: its name or its value holds a character that no header has`},
		{"openai/gpt-4o", []Option{Header("X Team", "a")}, `provider: the header "X Team" cannot be sent: its name or its value holds a character that no header has`},
		{"openai/gpt-4o", []Option{Environment(environ("OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", "localhost:8080"))}, `provider: the base URL "localhost:8080" is not complete: write it like https://api.example.com/v1 (from OPENAI_BASE_URL)`},
		{"openai/gpt-4o", []Option{Key(NewSecret("sk-…abc"))}, "provider: the key for openai holds a character that no key has: was it copied whole?"},
		{"openai/gpt-4o", []Option{Dialect("klingon"), Environment(key)}, `provider: unknown dialect "klingon"`},
		{"openai/gpt-4o", []Option{Protocol("soap")}, `provider: "soap" is no protocol to send in: use openai-chat, openai-responses, anthropic-messages or gemini`},
		{"openai/gpt-4o", []Option{Header("idempotency-key", "x")}, "provider: the header Idempotency-Key is not sent: with it the HTTP client would repeat paid requests unseen"},
		{"openai/gpt-4o", []Option{CAFile(empty), Environment(key)}, "provider: CA file " + empty + ": there is no PEM certificate in it"},
		{"openai/gpt-4o", []Option{Environment(environ("OPENAI_API_KEY", testKey, "NINELIVES_CA_FILE", empty))}, "provider: CA file " + empty + ": there is no PEM certificate in it (from NINELIVES_CA_FILE)"},
		{"openai/gpt-4o", []Option{CAFile(filepath.Join(dir, "none")), Environment(key)}, "provider: CA file: open " + filepath.Join(dir, "none") + ": no such file or directory"},
		{"openai/gpt-4o", []Option{Proxy("::"), Environment(key)}, "provider: the proxy is no URL: write it like http://host:3128 or socks5://host:1080"},
	} {
		_, err := Open(c.spec, append([]Option{Environment(environ())}, c.opts...)...)
		if err == nil {
			t.Errorf("%s: no error, want %q", c.spec, c.want)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %s\nwant %s", c.spec, err, c.want)
		}
	}
}

func TestKeysComeFromTheEnvironmentAndStaySecret(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "OPENAI_ORG_ID", "org-1")
	c, m := candidateOf(t, "openai/gpt-4o", Environment(env), BaseURL("https://user:"+testKey+"@proxy.test/v1?key="+testKey))
	if c.Key != NewSecret(testKey).Fingerprint() {
		t.Errorf("fingerprint %q", c.Key)
	}
	for _, v := range []any{m, c, struct{ M *Model }{m}, []ninelives.Model{m}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, testKey) {
				t.Errorf("%s of %T reveals the key: %s", verb, v, text)
			}
		}
	}
	if got := m.headers["OpenAI-Organization"]; got != "org-1" {
		t.Errorf("organization header %q", got)
	}
}

func TestHowAKeyIsSentFollowsFromVendorAndProtocol(t *testing.T) {
	env := environ("ANTHROPIC_API_KEY", "k1", "DEEPSEEK_API_KEY", "k2", "GEMINI_API_KEY", "k3", "AZURE_OPENAI_API_KEY", "k4", "AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com", "OPENAI_API_KEY", "k5")
	for _, c := range []struct {
		spec, header, value string
		opts                []Option
	}{
		{"anthropic/claude-opus-5", "X-Api-Key", "k1", nil},
		{"deepseek/deepseek-chat", "Authorization", "Bearer k2", nil},
		{"gemini/gemini-2.5-pro", "X-Goog-Api-Key", "k3", nil},
		{"gemini/gemini-2.5-pro", "Authorization", "Bearer k3", []Option{BaseURL("https://generativelanguage.googleapis.com/v1beta/openai")}},
		{"azure/dep", "Api-Key", "k4", nil},
		{"openai/gpt-4o", "Authorization", "Bearer k5", nil},
		{"m", "X-Api-Key", "k6", []Option{Provider("corp"), BaseURL("https://corp.test/anthropic"), Key(NewSecret("k6"))}},
		{"anthropic/claude-opus-5", "Authorization", "Bearer k7", []Option{Environment(environ("ANTHROPIC_AUTH_TOKEN", "k7"))}},
	} {
		_, m := candidateOf(t, c.spec, append([]Option{Environment(env)}, c.opts...)...)
		if name, value := m.auth.header(m.key.Reveal()); name != c.header || value != c.value {
			t.Errorf("%s: %s: %s, want %s: %s", c.spec, name, value, c.header, c.value)
		}
	}
}

func TestAnUnknownModelIsAWarning(t *testing.T) {
	_, m := candidateOf(t, "openai/nobody-knows", Key(NewSecret(testKey)))
	want := "nothing is known about this model: a context window of 16k tokens is assumed; set its window to change that"
	if w := m.Warnings(); len(w) != 1 || w[0] != want {
		t.Errorf("warnings %q", w)
	}
	for _, opt := range []Option{Window(64_000), Capabilities(func(c *ninelives.Capabilities) { c.Window = 64_000 })} {
		c, m := candidateOf(t, "openai/nobody-knows", Key(NewSecret(testKey)), opt)
		if c.Window != 64_000 || c.WindowSource != "setting" || len(m.Warnings()) != 0 {
			t.Errorf("window %d (%s), warnings %q", c.Window, c.WindowSource, m.Warnings())
		}
	}
}

func TestAKeyInTheClearIsAWarning(t *testing.T) {
	for base, warned := range map[string]bool{"http://llm.lan/v1": true, "https://llm.lan/v1": false, "http://127.0.0.1:1/v1": false} {
		_, m := candidateOf(t, "openai/gpt-4o", Key(NewSecret(testKey)), BaseURL(base))
		if (len(m.Warnings()) > 0) != warned {
			t.Errorf("%s: %q", base, m.Warnings())
		}
	}
	_, m := candidateOf(t, "openai/gpt-4o", Key(Secret{}), BaseURL("http://llm.lan/v1"))
	if len(m.Warnings()) > 0 {
		t.Errorf("without a key: %q", m.Warnings())
	}
}

func TestALearntWindowFillsInAndNarrowsAndNoMore(t *testing.T) {
	for _, c := range []struct {
		model  string
		opts   []Option
		learn  int
		window int
		source string
	}{
		{"nobody-knows", nil, 40_000, 40_000, "learnt"},
		{"gpt-4o", nil, 40_000, 40_000, "learnt"},
		{"gpt-4o", nil, 400_000, 128_000, "exact"},
		{"gpt-4o", []Option{Window(100_000)}, 40_000, 100_000, "setting"},
		{"gpt-4o", nil, 0, 128_000, "exact"},
	} {
		_, m := candidateOf(t, "openai/"+c.model, append(c.opts, Key(NewSecret(testKey)))...)
		m.learn(c.learn)
		if got := m.Candidate(); got.Window != c.window || got.WindowSource != c.source {
			t.Errorf("%s learns %d: %d (%s), want %d (%s)", c.model, c.learn, got.Window, got.WindowSource, c.window, c.source)
		}
	}
}

func TestAVendorsDialectHoldsBehindAProxyToo(t *testing.T) {
	for _, c := range []struct {
		spec, base, dialect string
	}{
		{"deepseek/deepseek-v4-pro", "http://127.0.0.1:9999/v1", "deepseek"},
		{"openai/gpt-5.4", "http://127.0.0.1:9999/v1", "openai"},
		{"openai/my-own-llama", "http://127.0.0.1:9999/v1", ""},
		{"openai/gpt-5.4", "https://api.deepseek.com", "deepseek"}, // the URL knows better
	} {
		_, m := candidateOf(t, c.spec, BaseURL(c.base), Key(NewSecret(testKey)))
		if m.dialect.Name != c.dialect {
			t.Errorf("%s at %s: dialect %q, want %q", c.spec, c.base, m.dialect.Name, c.dialect)
		}
	}
}
