package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// placeholder is the key of clients that insist on one where the gateway asks
// for none.
const placeholder = "ninelives"

// client is a program that launch can start.
type client struct {
	name    string
	install string
	models  bool // it wants to be told the names of models
	files   bool // it takes its settings from files alone
	way     func(*launching) (*way, error)
}

// launching is what the way of a client depends on.
type launching struct {
	base   string // of the gateway, without /v1
	key    string // of this client at the gateway; empty if none is known
	models []string
	dir    string // for files, removed at the end
	env    func(name string) string
}

var clients = []client{
	{name: "claude", install: "npm install -g @anthropic-ai/claude-code", way: claudeWay},
	{name: "codex", install: "npm install -g @openai/codex", way: codexWay},
	{name: "opencode", install: "npm install -g opencode-ai", models: true, way: opencodeWay},
	{name: "crush", install: "npm install -g @charmland/crush", models: true, files: true, way: crushWay},
}

func clientNamed(name string) *client {
	for i := range clients {
		if clients[i].name == name {
			return &clients[i]
		}
	}
	return nil
}

func clientNames() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// local reports that the gateway is on this machine.
func (l *launching) local() bool {
	u, err := url.Parse(l.base)
	return err == nil && loopback(u.Hostname())
}

// direct keeps a proxy of the environment from what is on this machine.
func (l *launching) direct(set map[string]string) map[string]string {
	proxied := false
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		proxied = proxied || l.env(name) != ""
	}
	if proxied && l.local() {
		but := "127.0.0.1,localhost,::1"
		if has := cmp.Or(l.env("NO_PROXY"), l.env("no_proxy")); has != "" {
			but = has + "," + but
		}
		set["NO_PROXY"], set["no_proxy"] = but, but
	}
	return set
}

// claudeWay: Claude Code takes its URL from the environment. Without streams it
// would send the whole request again each time that one breaks.
//
// Source: Claude Code's settings; the fallback was measured.
func claudeWay(l *launching) (*way, error) {
	w := &way{set: l.direct(map[string]string{"ANTHROPIC_BASE_URL": l.base})}
	if l.env("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK") == "" {
		w.set["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] = "1"
	}
	// These would lead past the gateway.
	w.unset = []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}
	own := l.env("ANTHROPIC_API_KEY") != "" || l.env("ANTHROPIC_AUTH_TOKEN") != ""
	if l.key != "" || !own || !l.local() { // a provider's key leaves this machine for that provider alone
		w.set["ANTHROPIC_AUTH_TOKEN"] = cmp.Or(l.key, placeholder)
		w.unset = append(w.unset, "ANTHROPIC_API_KEY")
	}
	return w, nil
}

// codexWay: Codex takes any setting by -c, as TOML. It tries 5 × 6 times by
// itself, which only multiplies what the gateway does.
//
// Source: Codex's config.toml.
func codexWay(l *launching) (*way, error) {
	const at = "model_providers.ninelives."
	w := &way{set: l.direct(map[string]string{keyVariable: cmp.Or(l.key, placeholder)})}
	for _, s := range []string{
		`model_provider="ninelives"`,
		at + `name="Nine Lives"`,
		at + "base_url=" + strconv.Quote(l.base+"/v1"),
		at + `wire_api="responses"`,
		at + "env_key=" + strconv.Quote(keyVariable),
		at + "request_max_retries=1",
		at + "stream_max_retries=2",
	} {
		w.args = append(w.args, "-c", s)
	}
	return w, nil
}

// opencodeWay: opencode merges the object in this variable over its files.
//
// Source: https://opencode.ai/docs/config (Precedence order).
func opencodeWay(l *launching) (*way, error) {
	const variable = "OPENCODE_CONFIG_CONTENT"
	config, err := asObject(variable, l.env(variable))
	if err != nil {
		return nil, usagef("%v", err)
	}
	models := map[string]any{}
	for _, name := range l.models {
		models[name] = map[string]any{"name": name}
	}
	providers, _ := config["provider"].(map[string]any)
	providers = maps.Clone(providers)
	if providers == nil {
		providers = map[string]any{}
	}
	providers["ninelives"] = map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "Nine Lives", "models": models,
		"options": map[string]any{"baseURL": l.base + "/v1", "apiKey": "{env:" + keyVariable + "}"},
	}
	config["provider"] = providers
	config["model"] = "ninelives/" + l.models[0]
	config["small_model"] = config["model"]
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return &way{set: l.direct(map[string]string{variable: string(text), keyVariable: cmp.Or(l.key, placeholder)})}, nil
}

// What Crush is told of models whose sizes the gateway does not tell.
const (
	crushWindow = 128_000
	crushAnswer = 8_192
)

// crushWay: Crush reads a directory of settings and one of what was chosen in
// it, which goes before. It is given copies of both, with the user's settings
// and our provider; a project's own crush.json still goes before them.
//
// Source: Crush's README, CRUSH_GLOBAL_CONFIG and CRUSH_GLOBAL_DATA.
func crushWay(l *launching) (*way, error) {
	home := l.env("CRUSH_GLOBAL_CONFIG")
	if home == "" {
		base := l.env("XDG_CONFIG_HOME")
		if base == "" && runtime.GOOS == "windows" {
			base = l.env("LOCALAPPDATA")
		}
		home = filepath.Join(cmp.Or(base, filepath.Join(l.env("HOME"), ".config")), "crush")
	}
	config, err := readObject(filepath.Join(home, "crush.json"))
	if err != nil {
		return nil, usagef("%v", err)
	}
	var models []any
	for _, name := range l.models {
		models = append(models, map[string]any{"id": name, "name": name, "context_window": crushWindow, "default_max_tokens": crushAnswer})
	}
	providers, _ := config["providers"].(map[string]any)
	if providers == nil {
		providers = map[string]any{}
	}
	providers["ninelives"] = map[string]any{"name": "Nine Lives", "type": "openai-compat", "base_url": l.base + "/v1", "api_key": "$" + keyVariable, "models": models}
	config["providers"] = providers
	chosen := map[string]any{"provider": "ninelives", "model": l.models[0]}
	config["models"] = map[string]any{"large": chosen, "small": chosen}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, err
	}
	settings, data := filepath.Join(l.dir, "config"), filepath.Join(l.dir, "data")
	for _, dir := range []string{settings, data} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("no place for the settings of crush: %w", err)
		}
	}
	copySettings(home, settings, "crush.json")
	if err := os.WriteFile(filepath.Join(settings, "crush.json"), text, 0o600); err != nil {
		return nil, fmt.Errorf("no place for the settings of crush: %w", err)
	}
	return &way{set: l.direct(map[string]string{
		"CRUSH_GLOBAL_CONFIG": settings, "CRUSH_GLOBAL_DATA": data, keyVariable: cmp.Or(l.key, placeholder),
	})}, nil
}
