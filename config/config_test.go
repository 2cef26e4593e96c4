package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

const testKey = "sk-live-0123456789abcdef"

// environ is an environment of its own, without servers on this machine.
func environ(pairs ...string) provider.Env {
	pairs = append(pairs, provider.LocalVariable, "off")
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// write puts a file into a directory and gives its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads one file, whose name in problems is "f.yaml".
func load(t *testing.T, text string, env provider.Env) (*Config, []string, string) {
	t.Helper()
	dir := t.TempDir()
	path := write(t, dir, "f.yaml", text)
	c, problems, err := Load([]string{path}, env)
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.ReplaceAll(p.Error(), dir+"/", ""))
	}
	message := ""
	if err != nil {
		message = strings.ReplaceAll(err.Error(), dir+"/", "")
	}
	return c, lines, message
}

func names(models []ninelives.Model) []string {
	var list []string
	for _, m := range models {
		list = append(list, m.Name())
	}
	return list
}

func chain(t *testing.T, c *Config, env provider.Env) ([]string, []string, error) {
	t.Helper()
	models, problems, err := c.Chain(context.Background(), env)
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	return names(models), lines, err
}

const whole = `
model: claude
fallbackModels:
  - fast
  - {model: gpt-4o, provider: openai}
  - deepseek/deepseek-v4-pro
modelPresets:
  claude: {provider: anthropic, model: claude-sonnet-4-6}
  fast:
    provider: groq
    model: openai/gpt-oss-120b
    window: 100000
    max_output: 4096
    price: {input: 0.15, output: 0.6}
    images: true
    schema: none
  house:
    provider: mycorp
    model: big
    base_url: ${HOUSE_URL:-https://llm.house.example/v1}
    key: ${HOUSE_KEY}
    dialect: vllm
    headers: {X-Team: cats}
`

func TestAChainIsReadAsWritten(t *testing.T) {
	env := environ("ANTHROPIC_API_KEY", testKey, "GROQ_API_KEY", testKey, "OPENAI_API_KEY", testKey, "DEEPSEEK_API_KEY", testKey, "HOUSE_KEY", "k-house")
	c, problems, fatal := load(t, whole, env)
	if fatal != "" || problems != nil {
		t.Fatalf("problems %q, error %s", problems, fatal)
	}
	models, problems2, err := c.Chain(context.Background(), env)
	if err != nil || problems2 != nil {
		t.Fatalf("problems %v, error %v", problems2, err)
	}
	want := []string{"anthropic/claude-sonnet-4-6", "groq/openai/gpt-oss-120b", "openai/gpt-4o", "deepseek/deepseek-v4-pro"}
	if got := names(models); !slices.Equal(got, want) {
		t.Errorf("chain %q, want %q", got, want)
	}
	fast, _ := ninelives.CandidateOf(models[1])
	if fast.Window != 100_000 || fast.WindowSource != "setting" || fast.MaxOutput != 4096 || !fast.Images || fast.Schema != ninelives.SchemaNone ||
		fast.Price != (ninelives.Price{Input: 0.15, Output: 0.6}) {
		t.Errorf("fast: %+v", fast)
	}
	c.Use("house", nil)
	models, _, err = c.Chain(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	house, _ := ninelives.CandidateOf(models[0])
	if house.Name() != "mycorp/big" || house.Host != "llm.house.example:443" || house.Key != provider.NewSecret("k-house").Fingerprint() {
		t.Errorf("house: %+v", house)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		for _, p := range c.Presets {
			if text := fmt.Sprintf(verb, *p); strings.Contains(text, "k-house") {
				t.Errorf("%s reveals a key: %s", verb, text)
			}
		}
	}
}

func TestABrokenFallbackCostsOnlyItself(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey)
	c, problems, fatal := load(t, `model: openai/gpt-4o
fallbackModels:
  - fats
  - anthropic/claude-sonnet-4-6
  - {model: gpt-4o-mini, provider: openai, windw: 5}
  - {model: x, provider: openai, key: "${NOT_SET}"}
  - openai/gpt-4.1
  - 42
modelPresets:
  fast: {provider: openai, model: gpt-4.1-mini}
  bad: {provider: openai, protocol: soap}
`, env)
	if fatal != "" {
		t.Fatal(fatal)
	}
	want := []string{
		`f.yaml:5:44: fallback skipped: there is no setting "windw" here (did you mean "window"?)`,
		"f.yaml:6:39: fallback skipped: ${NOT_SET}: this variable is not set (write ${NOT_SET:-…} for a default)",
		`f.yaml:11:37: preset "bad" skipped: protocol: there is no "soap": use one of openai-chat, openai-responses, anthropic-messages, gemini`,
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
	got, problems, err := chain(t, c, env)
	if err != nil {
		t.Fatal(err)
	}
	if wantChain := []string{"openai/gpt-4o", "openai/gpt-4.1"}; !slices.Equal(got, wantChain) {
		t.Errorf("chain %q, want %q", got, wantChain)
	}
	dir := filepath.Dir(c.Files[0])
	for i, p := range problems {
		problems[i] = strings.ReplaceAll(p, dir+"/", "")
	}
	want = []string{
		`f.yaml:3:5: fallback skipped: there is no preset "fats" (did you mean "fast"?)`,
		"f.yaml:4:5: fallback skipped: no key for anthropic: set ANTHROPIC_API_KEY",
		`f.yaml:8:5: fallback skipped: unknown model "42": write it as provider/model, such as "openai/42"`,
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
}

func TestErrorsPointIntoTheFile(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"modle: x", `f.yaml:1:1: there is no setting "modle" (did you mean "model"?)`},
		{"fallbackModls: [x]", `f.yaml:1:1: there is no setting "fallbackModls" (did you mean "fallbackModels"?)`},
		{"policy:\n  \"deadLin\" : 3s", `f.yaml:2:3: there is no setting "deadLin" here (did you mean "deadline"?)`},
		{"policy:\n  deadlin: 3s", `f.yaml:2:3: there is no setting "deadlin" here (did you mean "deadline"?)`},
		{"policy:\n  deadline: 30", `f.yaml:2:13: "30" needs a unit: write it like 30s or 2m`},
		{"policy:\n  deadline: soon", `f.yaml:2:13: "soon" is no duration: write it like 30s or 2m`},
		{"policy:\n  preset: hardend", `f.yaml:2:11: preset: there is no "hardend" (did you mean "hardened"?): use one of ` + strings.Join(heal.PresetNames(), ", ")},
		{"policy:\n  mode: undo", `f.yaml:2:9: mode: there is no "undo": use one of restart, continue, hold, fail`},
		{"policy:\n  budget: {requests: many}", `f.yaml:2:22: expected a whole number, not "many"`},
		{"policy:\n  budget: {requests: -1}", `f.yaml:2:22: -1 is below zero`},
		{"window: wide", `f.yaml:1:9: expected a whole number, not "wide"`},
		{"model: {provider: openai, key: a, key_env: B}", `f.yaml:1:44: key and key_env are both set: keep one`},
		{"model: {window: 5}", `f.yaml:1:8: a candidate needs a provider or a model`},
		{"model: ${NOPE}", `f.yaml:1:8: ${NOPE}: this variable is not set (write ${NOPE:-…} for a default)`},
		{"- a\n- b", `f.yaml:1:1: a configuration is made of settings like "model: …"`},
		{"fallbackModels: fast", `f.yaml:1:17: expected a list of models, like [fast, openai/gpt-5.4]`},
		{"modelPresets: [a]", `f.yaml:1:15: expected presets by name`},
		{"consent: {vendors: [antropic]}", `f.yaml:1:10: vendors: there is no provider "antropic" (did you mean "anthropic"?)`},
		{"consent:\n  allow_remote_fallback: perhaps", `f.yaml:2:26: expected true or false, not "perhaps"`},
		{"model: a\nmodel: b", `f.yaml:2:1: mapping key "model" already defined at [1:1]`},
		{"a: b\n---\nc: d", `f.yaml:3:1: a configuration is one document: remove the line ---`},
		{"x: 1\ny: 2", "f.yaml:1:1: there is no setting \"x\"\nf.yaml:2:1: there is no setting \"y\""},
	} {
		_, _, got := load(t, c.text, environ())
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
	if _, _, got := load(t, "model: [a\nx: }", environ()); !strings.HasPrefix(got, "f.yaml:") {
		t.Errorf("a syntax error has no place: %s", got)
	}
}

func TestPolicyIsAPresetWithWhatIsSetDifferently(t *testing.T) {
	c, _, fatal := load(t, `policy:
  preset: hardened
  deadline: 45s
  mode: continue
  failover: false
  budget: {requests: 3, money: 0.5}
  clocks: {liveness: 5s, min_rate: 10}
  breaker: {consecutive: 2}
  content: {continuations: 0}
`, environ())
	if fatal != "" {
		t.Fatal(fatal)
	}
	want := heal.Hardened()
	want.Buffered, want.Streamed = 45*time.Second, 45*time.Second
	want.Mode, want.Failover = heal.ModeContinue, false
	want.Budget.Requests, want.Budget.Money = 3, 0.5
	want.Clocks.Liveness, want.Clocks.MinRate, want.Clocks.RateWindow = 5*time.Second, 10, 10*time.Second
	want.Breaker.Consecutive = 2
	want.Content.Continuations = 0
	if got, wanted := fmt.Sprintf("%+v", c.Policy), fmt.Sprintf("%+v", want); got != wanted {
		t.Errorf("policy\n%s\nwant\n%s", got, wanted)
	}
	c, _, _ = load(t, "", environ())
	if got, want := fmt.Sprintf("%+v", c.Policy), fmt.Sprintf("%+v", heal.DefaultPolicy()); got != want {
		t.Errorf("an empty file changes the policy: %s", got)
	}
	c, _, _ = load(t, "policy: {retry_mode: persistent}", environ())
	if !c.Policy.Persistent {
		t.Error("persistent is not persistent")
	}
}

func TestProjectFilesGoOverTheUsersOwn(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "ninelives"), 0o700); err != nil {
		t.Fatal(err)
	}
	user := write(t, home, "ninelives/config.yaml", "model: openai/gpt-4o\nfallbackModels: [fast]\nmodelPresets:\n  fast: openai/gpt-4o-mini\n  slow: openai/gpt-4.1\npolicy: {preset: hardened, deadline: 10s}\nconsent: {vendors: [openai]}\n")
	own := write(t, project, "ninelives.yaml", "modelPresets:\n  fast: openai/gpt-4.1-mini\npolicy: {deadline: 20s}\n")
	env := environ("XDG_CONFIG_HOME", home, "OPENAI_API_KEY", testKey)
	paths := Paths(project, env)
	if want := []string{own, user}; !slices.Equal(paths, want) {
		t.Fatalf("paths %q, want %q", paths, want)
	}
	c, problems, err := Load(paths, env)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	if !slices.Equal(c.Files, []string{own, user}) {
		t.Errorf("files %q", c.Files)
	}
	if c.Policy.Name != "hardened" || c.Policy.Buffered != 20*time.Second {
		t.Errorf("policy %s, %v", c.Policy.Name, c.Policy.Buffered)
	}
	got, _, err := chain(t, c, env)
	if want := []string{"openai/gpt-4o", "openai/gpt-4.1-mini"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("chain %q (%v), want %q", got, err, want)
	}
	if c, _, err := Load(Paths(t.TempDir(), environ("HOME", t.TempDir())), environ()); err != nil || len(c.Files) != 0 {
		t.Errorf("no file at all: %v, %v", c, err)
	}
}

func TestTheSourceDesignsSettingsAreUnderstood(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "DEEPSEEK_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey)
	for name, text := range map[string]string{
		"000": `agents:
  defaults:
    model: deepseek-chat
    provider: deepseek
    fallbackModels:
      - fast
      - {model: gpt-4o, provider: openai}
modelPresets:
  fast: {model: claude-sonnet-4-6, provider: anthropic, apiBase: "https://api.anthropic.com"}
`,
		"001 nested": `model: deepseek/deepseek-chat
codebuddy:
  contextWindow: 50000
  failover:
    providers: [anthropic/claude-sonnet-4-6, openai/gpt-4o]
`,
		"001 dotted": `model: deepseek/deepseek-chat
codebuddy.contextWindow: 50000
codebuddy.failover.providers: [anthropic/claude-sonnet-4-6, openai/gpt-4o]
`,
		"snake case": `model: deepseek/deepseek-chat
fallback_models: [fast, openai/gpt-4o]
model_presets: {fast: {provider: anthropic, model: claude-sonnet-4-6}}
`,
	} {
		c, problems, fatal := load(t, text, env)
		if fatal != "" || problems != nil {
			t.Errorf("%s: %q, %s", name, problems, fatal)
			continue
		}
		models, _, err := c.Chain(context.Background(), env)
		want := []string{"deepseek/deepseek-chat", "anthropic/claude-sonnet-4-6", "openai/gpt-4o"}
		if err != nil || !slices.Equal(names(models), want) {
			t.Errorf("%s: chain %q (%v), want %q", name, names(models), err, want)
			continue
		}
		if first, _ := ninelives.CandidateOf(models[0]); strings.HasPrefix(name, "001") && (first.Window != 50_000 || first.WindowSource != "setting") {
			t.Errorf("%s: window %d (%s)", name, first.Window, first.WindowSource)
		}
	}
}

func TestTheCatalogueCanBeSetOtherwise(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey)
	c, problems, fatal := load(t, `catalogue:
  openai/GPT-5.4: {window: 272000, price: {input: 2, output: 9}, images: false}
  openai/brand-new: {window: 64000, schema: json_object}
modelPresets: {small: {provider: openai, model: gpt-5.4, window: 1000}}
fallbackModels: [openai/brand-new, small]
`, env)
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	models, _, err := c.Chain(context.Background(), env) // the first one is found in the environment
	if err != nil || len(models) != 2 {
		t.Fatal(names(models), err)
	}
	first, _ := ninelives.CandidateOf(models[0])
	if first.Name() != "openai/gpt-5.4" || first.Window != 272_000 || first.WindowSource != "setting" || first.Images || first.Price != (ninelives.Price{Input: 2, Output: 9}) {
		t.Errorf("%+v", first)
	}
	second, _ := ninelives.CandidateOf(models[1])
	if second.Window != 64_000 || second.Schema != ninelives.SchemaObject {
		t.Errorf("%+v", second)
	}
	for text, want := range map[string]string{
		"catalogue: {a/b: {key: x}}":        "f.yaml:1:19: key says how a model is reached, not what it can do: set it in a preset",
		"catalogue: {a/b: {schema: xml}}":   `f.yaml:1:27: schema: there is no "xml": use one of json_schema, tool, json_object, none`,
		"catalogue: [a]":                    "f.yaml:1:12: expected models by name, like openai/gpt-5.4: {window: 100000}",
		"catalogue: {a/b: {windows: 5000}}": `f.yaml:1:19: there is no setting "windows" here (did you mean "window"?)`,
	} {
		if _, _, got := load(t, text, env); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAValueThatWasFilledInIsNotTold(t *testing.T) {
	env := environ("K", testKey)
	for _, text := range []string{"window: ${K}", "policy: {mode: '${K}'}", "policy: {deadline: '${K}'}", "modelPresets: {a: {provider: openai, protocol: 'x${K}'}}"} {
		_, problems, fatal := load(t, text, env)
		said := fatal + strings.Join(problems, "\n")
		if said == "" || strings.Contains(said, testKey) {
			t.Errorf("%q: %s", text, said)
		}
	}
}

func TestAliasesAndMergesAreWrittenOut(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "K", "k-alias")
	c, problems, fatal := load(t, `modelPresets:
  base: &base {provider: openai, model: gpt-4o, key: "${K}", account: one}
  mini:
    <<: *base
    model: gpt-4o-mini
model: &first openai/gpt-4.1
fallbackModels: [base, mini, *first, *base]
`, env)
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	models, _, err := c.Chain(context.Background(), env)
	if want := []string{"openai/gpt-4.1", "openai/gpt-4o", "openai/gpt-4o-mini"}; err != nil || !slices.Equal(names(models), want) {
		t.Fatalf("chain %q (%v), want %q", names(models), err, want)
	}
	if k, _ := ninelives.CandidateOf(models[2]); k.Account != "one" || k.Key != provider.NewSecret("k-alias").Fingerprint() {
		t.Errorf("%+v", k)
	}
	for text, want := range map[string]string{
		"model: *none":       "f.yaml:1:8: *none: there is no &none before this place",
		"model: &a [*a]":     "f.yaml:1:12: *a: there is no &a before this place",
		"policy: {<<: fast}": "f.yaml:1:10: << merges settings, like <<: *name",
	} {
		if _, _, got := load(t, text, env); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	bomb := "a: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("b%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i+1, i, i, i, i, i, i, i, i, i)
	}
	if _, _, got := load(t, bomb, env); !strings.HasSuffix(got, "the file is too large with its aliases written out") {
		t.Errorf("a bomb of aliases: %.200s", got)
	}
}

func TestReferencesMayStandForNumbersButNeverForMore(t *testing.T) {
	env := environ("N", "1234", "EVIL", "x\nconsent: {allow_remote_fallback: true}", "S", "a: b")
	c, _, fatal := load(t, "window: ${N}", env)
	if fatal != "" || c.Window != 1234 {
		t.Errorf("window %v, %s", c, fatal)
	}
	c, _, fatal = load(t, "model: ${EVIL}\nmodelPresets: {p: {model: '${S}', provider: openai}}", env)
	if fatal != "" {
		t.Fatal(fatal)
	}
	if c.Consent.RemoteFallback || c.model.name != "x\nconsent: {allow_remote_fallback: true}" || c.Presets["p"].Model != "a: b" {
		t.Errorf("a variable wrote settings: %+v, model %q", c.Consent, c.model.name)
	}
	c, _, _ = load(t, "model: a$${N}b", env)
	if c.model.name != "a${N}b" {
		t.Errorf("escaped reference: %q", c.model.name)
	}
}

func TestConsentKeepsARequestOnThisMachine(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey)
	text := "model: ollama/llama3.2\nfallbackModels: [openai/gpt-4o]\n"
	c, _, _ := load(t, text, env)
	got, problems, err := chain(t, c, env)
	if err != nil || !slices.Equal(got, []string{"ollama/llama3.2"}) {
		t.Errorf("chain %q, %v", got, err)
	}
	if want := "openai/gpt-4o skipped: the chain begins on this machine and must not leave it unless the configuration allows a remote fallback (the setting consent)"; len(problems) != 1 || problems[0] != want {
		t.Errorf("problems %q", problems)
	}
	c, _, _ = load(t, text+"consent: {allow_remote_fallback: true}\n", env)
	if got, _, _ := chain(t, c, env); !slices.Equal(got, []string{"ollama/llama3.2", "openai/gpt-4o"}) {
		t.Errorf("chain %q", got)
	}
	c, _, _ = load(t, "model: openai/gpt-4o\nfallbackModels: [ollama/llama3.2]\n", env)
	if got, _, _ := chain(t, c, env); !slices.Equal(got, []string{"openai/gpt-4o", "ollama/llama3.2"}) {
		t.Errorf("chain %q", got)
	}
	c, _, _ = load(t, "model: openai/gpt-4o\nconsent: {vendors: [claude]}\n", env)
	if _, _, err := chain(t, c, env); err == nil || err.Error() != "openai/gpt-4o skipped: openai is not among the allowed vendors (claude) (the setting consent)" {
		t.Errorf("error %v", err)
	}
}

func TestWithoutAModelTheEnvironmentIsAsked(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey)
	c, _, _ := load(t, "consent: {vendors: [openai, deepseek]}", env)
	got, problems, err := chain(t, c, env)
	if err != nil || !slices.Equal(got, []string{"openai/gpt-5.4"}) || len(problems) != 1 {
		t.Errorf("chain %q, problems %q, %v", got, problems, err)
	}
	if _, _, err := chain(t, Default(), environ()); err != ErrNoModel {
		t.Errorf("error %v, want ErrNoModel", err)
	}
}

func TestAMissingKeyIsFoundThroughItsPlace(t *testing.T) {
	for text, variable := range map[string]string{
		"model: anthropic/claude-sonnet-4-6":                          "ANTHROPIC_API_KEY",
		"model: {provider: openai, model: gpt-4o, key_env: TEAM_KEY}": "TEAM_KEY",
	} {
		c, _, _ := load(t, text, environ())
		_, _, err := chain(t, c, environ())
		var missing *provider.KeyError
		if !errors.As(err, &missing) || missing.Variable != variable || !strings.HasPrefix(err.Error(), c.Files[0]+":1:8: no key for ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAModelNamedTwiceIsAskedOnce(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey)
	c := Default()
	c.Use("openai/gpt-4o", []string{"openai/gpt-4o", "gpt-4o", "openai/gpt-4.1"})
	got, problems, err := chain(t, c, env)
	if err != nil || problems != nil || !slices.Equal(got, []string{"openai/gpt-4o", "openai/gpt-4.1"}) {
		t.Errorf("chain %q, problems %q, %v", got, problems, err)
	}
}
