package config

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheManualsFileIsOneThatWorks(t *testing.T) {
	manual, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(manual), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("there is no file in the manual")
	}
	env := environ("MYCORP_KEY", testKey, "ANTHROPIC_API_KEY", testKey, "OPENAI_API_KEY", testKey, "GROQ_API_KEY", testKey, "DEEPSEEK_API_KEY", testKey)
	dir := t.TempDir()
	write(t, dir, "corporate-ca.pem", certificate(t))
	c, problems, err := LoadNamed(write(t, dir, "ninelives.yaml", text), env)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	got, skipped, err := chain(t, c, env)
	want := []string{"anthropic/claude-sonnet-4-6", "groq/openai/gpt-oss-120b", "openai/gpt-5.4", "deepseek/deepseek-v4-pro"}
	if err != nil || skipped != nil || !slices.Equal(got, want) {
		t.Errorf("chain %q, problems %q, %v; want %q", got, skipped, err, want)
	}
}

// Every further example of the manuals is one that can be copied.
func TestTheManualsExamplesWork(t *testing.T) {
	for name, want := range map[string]int{"configuration.md": 3, "hooks.md": 1} {
		manual, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		examples := strings.Split(string(manual), "```yaml\n")[1:]
		if len(examples) != want {
			t.Errorf("%s has %d examples, want %d", name, len(examples), want)
		}
		for _, text := range examples {
			text, _, _ = strings.Cut(text, "```")
			if strings.HasPrefix(text, "gateway:") {
				env := gatewayEnv("LAPTOP_KEY", teamKey)
				set, _, problems, fatal := gatewayOf(t, "policy: {deadline: 5m}\n"+text, env)
				if fatal != "" || problems != nil || len(set.Keys) != 2 || len(set.Routes) != 2 || len(set.Routes[1].Degraded) != 3 {
					t.Errorf("%s: %s %q %+v", name, fatal, problems, set)
				}
				continue
			}
			if !strings.HasPrefix(text, "agent:") {
				continue
			}
			c, problems, fatal := load(t, text, environ())
			if fatal != "" || problems != nil {
				t.Errorf("%s: %s %q", name, fatal, problems)
				continue
			}
			if a := c.Agent(); len(a.Hooks) == 0 || name == "configuration.md" && (len(a.MCP) != 2 || len(a.Settings.Permissions.Rules) != 4) {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// certificate is one in PEM.
func certificate(t *testing.T) string {
	srv := httptest.NewTLSServer(nil)
	t.Cleanup(srv.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
}
