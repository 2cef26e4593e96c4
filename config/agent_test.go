package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// everything sets every number of the agent to another than its default.
const everything = `
agent:
  instructions: Write short commit messages.
  limits:
    events: 1
    calls: 2
    duration: 3m
    cost: 4.5
    per_tool: {edit_file: 5, MyTool: 6}
    same_file: 7
    rate: 8
    rate_per_tool: 9
    rate_wait: 10s
    iterations: 11
    denials: 12
    deadline: 13m
  loops: {window: 14, notice: 15, stop: 16, cycle_length: 17, cycle_repeats: 18, chant_length: 19, chant_repeats: 20}
  compaction:
    warn: 0.21
    act: 0.22
    protected: 23
    minimum: 24
    strip_over: 25
    keep_user: 26
    gain: 0.27
    strikes: 28
    overlap: 29
    chunk: 30
    window: 31
    default_window: 32
  memory: {enabled: false, idle: 33m, every: 34h, max_bytes: 35}
  permissions:
    mode: auto-edit
    profile: trusted
    allow: [read_file, run_command(go test *)]
    ask: ["*"]
    deny: ["run_command(git push (force))"]
  tools: {timeout: 36s, parallel: 37, result_lines: 38, result_bytes: 39}
  subagents: {depth: 40}
`

func TestEverySettingOfTheAgentIsRead(t *testing.T) {
	c, problems, fatal := load(t, everything, environ())
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	want := agent.Settings{
		Guard: agent.GuardSettings{
			Events: 1, Calls: 2, Duration: 3 * time.Minute, Cost: 4.5,
			PerTool:  map[string]int{"edit_file": 5, "MyTool": 6, "delete_file": 30, "run_command": 100, "run_terminal_command": 500, "web_search": 60},
			SameFile: 7, Rate: 8, RatePerTool: 9, RateWait: 10 * time.Second, Denials: 12,
			LoopWindow: 14, LoopNotice: 15, LoopStop: 16, CycleLength: 17, CycleRepeats: 18, ChantLength: 19, ChantRepeats: 20,
		},
		Compaction: agent.CompactionSettings{
			Warn: 0.21, Act: 0.22, Protected: 23, Minimum: 24, StripOver: 25, KeepUser: 26, Gain: 0.27, Strikes: 28,
			Overlap: 29, Chunk: 30, Window: 31, DefaultWindow: 32,
		},
		Memory: agent.MemorySettings{Off: true, Idle: 33 * time.Minute, Every: 34 * time.Hour, MaxBytes: 35},
		Permissions: tool.Permissions{Mode: tool.ModeAutoEdit, Profile: tool.ProfileTrusted, Rules: []tool.Rule{
			{Action: tool.ActionAllow, Tool: "read_file"},
			{Action: tool.ActionAllow, Tool: "run_command", Target: "go test *"},
			{Action: tool.ActionAsk, Tool: "*"},
			{Action: tool.ActionDeny, Tool: "run_command", Target: "git push (force)"},
		}},
		Iterations: 11, Deadline: 13 * time.Minute, ToolTimeout: 36 * time.Second, ParallelCalls: 37, ResultLines: 38, ResultBytes: 39,
		Instructions: "Write short commit messages.", Depth: 40,
	}
	got := c.Agent().Settings
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// A number that is added to the settings is missing here, and so in a file.
	unset(t, "Settings", reflect.ValueOf(got), reflect.ValueOf(agent.DefaultSettings()))
}

// unset finds the settings that the file has left as they are.
func unset(t *testing.T, name string, got, before reflect.Value) {
	switch name {
	case "Settings.Output", "Settings.Permissions.Home", "Settings.Permissions.Workspace", "Settings.Permissions.Private":
		return // what a caller brings, and where he is
	}
	if got.Kind() == reflect.Struct {
		for i := range got.NumField() {
			unset(t, name+"."+got.Type().Field(i).Name, got.Field(i), before.Field(i))
		}
		return
	}
	if reflect.DeepEqual(got.Interface(), before.Interface()) {
		t.Errorf("no file can set %s", name)
	}
}

// The defaults that the schema tells are those that hold.
func TestTheSchemaTellsTheDefaults(t *testing.T) {
	told := regexp.MustCompile(`Default: ([^ ]+)\.$`)
	n := 0
	var lines func(s *jsonschema.Schema, indent string) string
	lines = func(s *jsonschema.Schema, indent string) (text string) {
		for _, name := range slices.Sorted(keysOf(s.Properties)) {
			p := s.Properties[name]
			if m := told.FindStringSubmatch(p.Description); m != nil {
				text += indent + name + ": " + m[1] + "\n"
				n++
			} else if inner := lines(p, indent+"  "); inner != "" {
				text += indent + name + ":\n" + inner
			}
		}
		return text
	}
	text := "agent:\n" + lines(schema(t).Properties["agent"], "  ")
	c, problems, fatal := load(t, text, environ())
	if fatal != "" || problems != nil {
		t.Fatalf("%s %q\n%s", fatal, problems, text)
	}
	if got, want := c.Agent().Settings, agent.DefaultSettings(); !reflect.DeepEqual(got, want) || n < 35 {
		t.Errorf("%d defaults:\n%s\ngot  %+v\nwant %+v", n, text, got, want)
	}
}

func keysOf(m map[string]*jsonschema.Schema) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestTheNamesOfDesign001 is its table of settings, layer 3.
func TestTheNamesOfDesign001(t *testing.T) {
	guard := func(change func(*agent.Settings)) agent.Settings {
		s := agent.DefaultSettings()
		change(&s)
		return s
	}
	for text, want := range map[string]agent.Settings{
		"codebuddy.agent.maxEventCount: 10":                                   guard(func(s *agent.Settings) { s.Guard.Events = 10 }),
		"codebuddy.agent.maxToolInvocations: 10":                              guard(func(s *agent.Settings) { s.Guard.Calls = 10 }),
		"codebuddy.agent.maxDurationMinutes: 10":                              guard(func(s *agent.Settings) { s.Guard.Duration = 10 * time.Minute }),
		"codebuddy.agent.maxDurationMinutes: 1.5":                             guard(func(s *agent.Settings) { s.Guard.Duration = 90 * time.Second }),
		"codebuddy.agent.maxDurationMinutes: ${MINUTES}":                      guard(func(s *agent.Settings) { s.Guard.Duration = 7 * time.Minute }),
		"codebuddy.agent.limits.editFile: 10":                                 guard(func(s *agent.Settings) { s.Guard.PerTool["edit_file"] = 10 }),
		"codebuddy.agent.limits.deleteFile: 10":                               guard(func(s *agent.Settings) { s.Guard.PerTool["delete_file"] = 10 }),
		"codebuddy.agent.limits.runCommand: 10":                               guard(func(s *agent.Settings) { s.Guard.PerTool["run_command"] = 10 }),
		"codebuddy.agent.limits.runTerminalCommand: 10":                       guard(func(s *agent.Settings) { s.Guard.PerTool["run_terminal_command"] = 10 }),
		"codebuddy.agent.limits.webSearch: 10":                                guard(func(s *agent.Settings) { s.Guard.PerTool["web_search"] = 10 }),
		"codebuddy.agent.fileEditLoopThreshold: 10":                           guard(func(s *agent.Settings) { s.Guard.SameFile = 10 }),
		"codebuddy: {agent: {limits: {editFile: 10}}}":                        guard(func(s *agent.Settings) { s.Guard.PerTool["edit_file"] = 10 }),
		"codebuddy:\n  agent:\n    limits.editFile: 10\n    maxEventCount: 9": guard(func(s *agent.Settings) { s.Guard.PerTool["edit_file"], s.Guard.Events = 10, 9 }),
		"codebuddy.agent.maxEventCount: 10\nagent: {limits: {calls: 3}}":      guard(func(s *agent.Settings) { s.Guard.Events, s.Guard.Calls = 10, 3 }),
		"agent: {limits: {events: 3}}\ncodebuddy.agent.maxEventCount: 10":     guard(func(s *agent.Settings) { s.Guard.Events = 3 }),
		"agent: {limits: {perTool: {edit_file: 3}, sameFile: 4}}":             guard(func(s *agent.Settings) { s.Guard.PerTool["edit_file"], s.Guard.SameFile = 3, 4 }),
	} {
		c, problems, fatal := load(t, text, environ("MINUTES", "7"))
		if fatal != "" || problems != nil {
			t.Errorf("%s: %s %q", text, fatal, problems)
			continue
		}
		if got := c.Agent().Settings; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", text, got.Guard, want.Guard)
		}
	}
	// Its mapping names every one of them.
	mapping, err := os.ReadFile("../docs/source-mapping.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range agentNames {
		_, last, _ := strings.Cut(n.theirs, "codebuddy.agent.")
		if !strings.Contains(string(mapping), "`"+n.theirs+"`") || !strings.Contains(string(mapping), "`"+n.ours+"`") {
			t.Errorf("docs/source-mapping.md does not tell where %s went (%s)", last, n.ours)
		}
	}
}

func TestHooksServersAndSearchAreData(t *testing.T) {
	c, problems, fatal := load(t, `
agent:
  hooks:
    - {on: before_tool, match: edit_file|write_file, run: [./check, --strict], timeout: 10s}
    - {on: turn_end, run: [notify]}
  mcpServers:
    github: {command: github-mcp-server, args: [stdio], env: {GITHUB_TOKEN: "${GH}"}, timeout: 30s, trust: true}
    Docs: {url: "https://mcp.example.com/mcp?key=${GH}", headers: {Authorization: "Bearer ${GH}"}}
  search: {engine: brave, key: "${BRAVE}"}
`, environ("GH", "hush-one", "BRAVE", "hush-two"))
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	a := c.Agent()
	if want := []agent.CommandHook{
		{On: agent.PointBeforeTool, Match: "edit_file|write_file", Run: []string{"./check", "--strict"}, Timeout: 10 * time.Second},
		{On: agent.PointTurnEnd, Run: []string{"notify"}},
	}; !reflect.DeepEqual(a.Hooks, want) {
		t.Errorf("hooks %+v", a.Hooks)
	}
	if want := []MCPServer{
		{Name: "Docs", URL: "https://mcp.example.com/mcp?key=hush-one", Headers: map[string]string{"Authorization": "Bearer hush-one"}},
		{Name: "github", Command: "github-mcp-server", Args: []string{"stdio"}, Env: map[string]string{"GITHUB_TOKEN": "hush-one"}, Timeout: 30 * time.Second, Trust: true},
	}; !reflect.DeepEqual(a.MCP, want) {
		t.Errorf("servers %#v", a.MCP[0].Headers)
	}
	if a.Search.Engine != "brave" || a.Search.Key.Fingerprint() != provider.NewSecret("hush-two").Fingerprint() {
		t.Errorf("search %+v", a.Search)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, a); strings.Contains(text, "hush") {
			t.Errorf("%s reveals a key: %s", verb, text)
		}
	}
}

func TestBothFilesHold(t *testing.T) {
	dir := t.TempDir()
	own := write(t, dir, "own.yaml", `
agent:
  instructions: Own.
  limits: {calls: 10, per_tool: {grep: 1}}
  permissions: {deny: [web_fetch]}
  hooks: [{on: turn_end, run: [own]}]
  mcpServers: {a: {command: one}, b: {command: two}}
  search: {engine: tavily, key: k}
  web: {hosts: [wiki.internal]}
  sandbox: {writable: [cache], pass: [GH_TOKEN]}
`)
	other := write(t, dir, "other.yaml", `
agent:
  instructions: Other.
  limits: {events: 20, per_tool: {glob: 2}}
  permissions: {mode: full, allow: [read_file]}
  hooks: [{on: turn_end, run: [other]}]
  mcpServers: {b: {command: three}}
  search: {engine: searxng, url: "https://s.example"}
  web: {hosts: ["localhost:8080"]}
  sandbox: {enabled: false, writable: [/srv]}
`)
	c, problems, err := Load([]string{other, own}, environ())
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	a := c.Agent()
	if want := []string{"wiki.internal", "localhost:8080"}; !slices.Equal(a.Hosts, want) {
		t.Errorf("hosts %q", a.Hosts)
	}
	if want := (Sandbox{Off: true, Writable: []string{filepath.Join(dir, "cache"), "/srv"}, Pass: []string{"GH_TOKEN"}}); !reflect.DeepEqual(a.Sandbox, want) {
		t.Errorf("sandbox %+v", a.Sandbox)
	}
	if a.Settings.Instructions != "Own.\n\nOther." || a.Settings.Guard.Calls != 10 || a.Settings.Guard.Events != 20 ||
		a.Settings.Guard.PerTool["grep"] != 1 || a.Settings.Guard.PerTool["glob"] != 2 || a.Settings.Guard.PerTool["edit_file"] != 75 {
		t.Errorf("%+v", a.Settings)
	}
	if p := a.Settings.Permissions; p.Mode != tool.ModeFull || !reflect.DeepEqual(p.Rules, []tool.Rule{{Action: tool.ActionDeny, Tool: "web_fetch"}, {Action: tool.ActionAllow, Tool: "read_file"}}) {
		t.Errorf("%+v", p)
	}
	if len(a.Hooks) != 2 || a.Hooks[0].Run[0] != "own" || a.Hooks[1].Run[0] != "other" {
		t.Errorf("%+v", a.Hooks)
	}
	if len(a.MCP) != 2 || a.MCP[0].Command != "one" || a.MCP[1].Command != "three" || a.Search.Engine != "searxng" || !a.Search.Key.Empty() {
		t.Errorf("%+v %+v", a.MCP, a.Search)
	}
	// What is handed out is nobody else's.
	a.Settings.Guard.PerTool["grep"] = 99
	a.Settings.Permissions.Rules[0].Tool = "changed"
	if b := c.Agent(); b.Settings.Guard.PerTool["grep"] != 1 || b.Settings.Permissions.Rules[0].Tool != "web_fetch" || agent.DefaultSettings().Guard.PerTool["grep"] != 0 {
		t.Error("a change of what was handed out changed the configuration")
	}
}

func TestWhatIsWrongWithTheAgentsSettings(t *testing.T) {
	for text, want := range map[string]string{
		"agent: 3":                                             `f.yaml:1:8: agent: expected settings of its own, not "3"`,
		"agent: {limit: {}}":                                   `f.yaml:1:9: there is no setting "limit" here (did you mean "limits"?)`,
		"agent: {limits: {calls: -1}}":                         "f.yaml:1:25: -1 is below zero",
		"agent: {limits: {duration: 60}}":                      `f.yaml:1:28: "60" needs a unit: write it like 30s or 2m`,
		"agent: {limits: {per_tool: {edit_file: many}}}":       `f.yaml:1:40: expected a whole number, not "many"`,
		"agent: {permissions: {mode: yolo}}":                   `f.yaml:1:29: mode: there is no "yolo": use one of plan, ask, auto-edit, full`,
		"agent: {permissions: {profile: trust}}":               `f.yaml:1:32: profile: there is no "trust" (did you mean "trusted"?): use one of restricted, standard, trusted`,
		"agent: {permissions: {deny: [rm -rf]}}":               `f.yaml:1:30: "rm -rf" is no rule: it begins with the name of a tool, like edit_file or run_command(go test *)`,
		"agent: {permissions: {deny: [read_file, 'grep(']}}":   `f.yaml:1:41: "grep(" is no rule: write it like run_command(go test *)`,
		"agent: {permissions: {deny: read_file}}":              `f.yaml:1:29: expected a list, not "read_file"`,
		"agent: {compaction: {act: 90}}":                       "f.yaml:1:27: compaction: act is a share of the window, at most 1",
		"agent: {hooks: [{on: before_tool}]}":                  `f.yaml:1:17: a hook needs a command: run: ["name", "argument"]`,
		"agent: {hooks: [{on: turn_end, run: [x], match: y}]}": "f.yaml:1:17: match is for before_tool and after_tool, not for turn_end",
		"agent: {hooks: {on: turn_end}}":                       "f.yaml:1:16: expected a list, not settings",
		"agent: {search: {engine: google}}":                    `f.yaml:1:26: engine: there is no "google": use one of searxng, brave, tavily`,
		"agent: {search: {engine: searxng}}":                   "f.yaml:1:17: search: searxng needs the url of your instance",
		"agent: {search: {engine: brave}}":                     "f.yaml:1:17: search: brave needs a key",
		"agent: {search: {url: 'https://x.example'}}":          "f.yaml:1:17: search: which engine? engine: searxng, brave, tavily",
		"agent: {search: {engine: searxng, url: 'file:///x'}}": "f.yaml:1:40: search: the url is none: write it like https://search.example.com",
		"agent: {mcpServers: [a]}":                             "f.yaml:1:21: mcpServers: expected servers by name, like github: {command: github-mcp-server}",
		"codebuddy.agent.maxEventCount: lots":                  `f.yaml:1:32: expected a whole number, not "lots"`,
		"codebuddy.agent.maxDurationMinutes: [1]":              "f.yaml:1:37: expected a duration like 30s or 2m, not a list",
		"codebuddy.agent.maxSomething: 3":                      `f.yaml:1:1: there is no setting "codebuddy.agent.maxSomething"`,
	} {
		if _, _, got := load(t, text, environ()); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{"agent:", "agent: {}", "agent: {limits: }", "agent: {hooks: , mcpServers: , permissions: {}}"} {
		if _, problems, fatal := load(t, text, environ()); fatal != "" || problems != nil {
			t.Errorf("%s: %s %q", text, fatal, problems)
		}
	}
}

func TestABrokenServerIsSkipped(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                                   "it needs a command or a url",
		"{command: x, url: 'https://a.b'}":     "command and url are both set: keep one",
		"{url: 'https://a.b', args: [x]}":      "args and env are for a command, not for a url",
		"{command: x, headers: {a: b}}":        "headers are for a url, not for a command",
		"{url: 'a.b'}":                         "the url is none: write it like https://mcp.example.com/mcp",
		"{comand: x}":                          `there is no setting "comand" here (did you mean "command"?)`,
		"{command: x, env: {T: '${MISSING}'}}": "${MISSING}: this variable is not set (write ${MISSING:-…} for a default)",
	} {
		c, problems, fatal := load(t, "agent: {mcpServers: {good: {command: y}, bad: "+text+"}}", environ())
		if fatal != "" || len(problems) != 1 || !strings.HasSuffix(problems[0], `: MCP server "bad" skipped: `+want) {
			t.Errorf("%s: %s %q", text, fatal, problems)
			continue
		}
		if a := c.Agent(); len(a.MCP) != 1 || a.MCP[0].Name != "good" {
			t.Errorf("%s: %v", text, a.MCP)
		}
	}
	if _, problems, _ := load(t, "agent: {mcpServers: {'a b': {command: y}}}", environ()); len(problems) != 1 || !strings.HasSuffix(problems[0], "its name stands before those of its tools: at most 40 letters, digits, - and _") {
		t.Errorf("%q", problems)
	}
}

func TestRulesAreReadAsWritten(t *testing.T) {
	for text, want := range map[string]tool.Rule{
		"edit_file":                     {Tool: "edit_file"},
		" mcp__git*__read ":             {Tool: "mcp__git*__read"},
		"run_command(go test ./...)":    {Tool: "run_command", Target: "go test ./..."},
		"run_command(echo $(date) (x))": {Tool: "run_command", Target: "echo $(date) (x)"},
		"write_file( docs/** )":         {Tool: "write_file", Target: "docs/**"},
		"*":                             {Tool: "*"},
	} {
		want.Action = tool.ActionDeny
		if got, err := ParseRule(tool.ActionDeny, text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "  ", "(x)", "run_command(", "run_command()", "run_command( )", "run_command(x) y", "rm -rf /", "a\nb", "größe"} {
		if got, err := ParseRule(tool.ActionDeny, text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

func TestKeysOfAFileAreHiddenFromPrograms(t *testing.T) {
	c, _, fatal := load(t, `
model: {provider: openai, model: gpt-4o, key_env: TEAM_KEY}
fallbackModels: [{provider: groq, apiKey: "x${ONE:-a}${TWO:-b}$${NONE}"}]
agent: {search: {engine: tavily, key: "${SEARCH_KEY:-k}"}}
`, environ())
	if fatal != "" {
		t.Fatal(fatal)
	}
	got := c.KeyVariables()
	for _, name := range []string{"TEAM_KEY", "ONE", "TWO", "SEARCH_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not among %q", name, got)
		}
	}
	if slices.Contains(got, "NONE") || slices.Contains(got, "") {
		t.Errorf("%q", got)
	}
	environ := []string{"PATH=/bin", "TEAM_KEY=a", "ANTHROPIC_API_KEY=b", "ONE=c", "EMPTY="}
	if bare := provider.WithoutKeys(environ, got...); !slices.Equal(bare, []string{"PATH=/bin", "EMPTY="}) {
		t.Errorf("%q", bare)
	}
}
