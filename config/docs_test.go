package config

import (
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
	c, problems, fatal := load(t, text, env)
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	c.CAFile = "" // its certificates are not here
	got, problems, err := chain(t, c, env)
	want := []string{"anthropic/claude-sonnet-4-6", "groq/openai/gpt-oss-120b", "openai/gpt-5.4", "deepseek/deepseek-v4-pro"}
	if err != nil || problems != nil || !slices.Equal(got, want) {
		t.Errorf("chain %q, problems %q, %v; want %q", got, problems, err, want)
	}
}
