package config

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// Agent is what the files say of the agent.
type Agent struct {
	Settings agent.Settings
	// Hooks are the commands of all files, the user's own first.
	Hooks []agent.CommandHook
	// MCP are the servers of the Model Context Protocol, by name.
	MCP    []MCPServer
	Search Search
	// Hosts may be fetched by web_fetch although they are not public.
	Hosts   []string
	Sandbox Sandbox
}

// Sandbox is what is set about the confinement of commands.
type Sandbox struct {
	// Off: commands are not confined.
	Off bool
	// Writable are directories that commands may write to beside the workspace;
	// a file names them relative to itself.
	Writable []string
	// Pass are variables that commands get although their names say that they
	// hold credentials.
	Pass []string
}

// MCPServer is a server of the Model Context Protocol and how it is reached:
// a command that speaks it over its standard input and output, or a URL.
type MCPServer struct {
	// Name stands before the names of its tools: letters, digits, - and _.
	Name string
	// Command is the program, Args its arguments and Env what its environment
	// has besides ours; empty with URL.
	Command string
	Args    []string
	Env     map[string]string
	// URL is its address, Headers are sent with every request.
	URL     string
	Headers map[string]string
	// Timeout bounds a call; zero means the default of those who call.
	Timeout time.Duration
	// Trust believes the server where it says that a tool only reads.
	Trust bool
}

// Format writes the name and where the server is: what its environment, its
// headers and the rest of its URL hold may be secret.
func (m MCPServer) Format(f fmt.State, _ rune) {
	at := m.Command
	if u, err := url.Parse(m.URL); err == nil && m.URL != "" {
		at = u.Host
	}
	_, _ = io.WriteString(f, m.Name+" ("+at+")")
}

// Search is who is asked to search the web.
type Search struct {
	// Engine is "searxng", "brave" or "tavily"; empty means that none is set.
	Engine string
	// URL is the engine's address; empty means its maker's.
	URL string
	Key provider.Secret
}

// Agent is the agent's part of the configuration: the defaults with what the
// files set differently.
func (c *Config) Agent() Agent {
	a := c.agent
	a.Settings.Guard = cloned(a.Settings.Guard)
	a.Settings.Permissions.Rules = slices.Clone(a.Settings.Permissions.Rules)
	a.Hooks = slices.Clone(a.Hooks)
	a.MCP = slices.Clone(a.MCP)
	a.Hosts = slices.Clone(a.Hosts)
	a.Sandbox.Writable = slices.Clone(a.Sandbox.Writable)
	a.Sandbox.Pass = slices.Clone(a.Sandbox.Pass)
	return a
}

// ParseRule reads a permission rule: the name of a tool, with * for any
// characters, and in brackets what it may touch: "edit_file",
// "run_command(go test *)", "web_fetch(docs.example.com)".
func ParseRule(action tool.Action, text string) (tool.Rule, error) {
	name, target, bracket := strings.Cut(strings.TrimSpace(text), "(")
	name = strings.TrimSpace(name)
	if bracket {
		var closed bool
		if target, closed = strings.CutSuffix(target, ")"); !closed || strings.TrimSpace(target) == "" {
			return tool.Rule{}, fmt.Errorf("%q is no rule: write it like run_command(go test *)", text)
		}
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.*", r))
	}) {
		return tool.Rule{}, fmt.Errorf("%q is no rule: it begins with the name of a tool, like edit_file or run_command(go test *)", text)
	}
	return tool.Rule{Action: action, Tool: name, Target: strings.TrimSpace(target)}, nil
}

// agentFile is what a file may say of the agent.
type agentFile struct {
	Instructions string               `json:"instructions,omitempty" jsonschema:"Text that is added to the system prompt; that of all files is."`
	Limits       limits               `json:"limits,omitzero" jsonschema:"The caps of a turn. 0 means no cap."`
	Loops        loops                `json:"loops,omitzero" jsonschema:"When a turn goes round in circles. 0 switches a check off."`
	Compaction   compaction           `json:"compaction,omitzero" jsonschema:"How the context is kept inside the model's window."`
	Memory       memory               `json:"memory,omitzero" jsonschema:"What is remembered beyond a session."`
	Permissions  permissions          `json:"permissions,omitzero" jsonschema:"What may be done without asking. The rules of all files hold, and the strictest that matches wins."`
	Tools        tools                `json:"tools,omitzero" jsonschema:"How tools are run."`
	Subagents    subagents            `json:"subagents,omitzero" jsonschema:"Agents that an agent starts."`
	Hooks        []hook               `json:"hooks,omitempty" jsonschema:"Commands that are run at the nodes of the loop (docs/hooks.md); those of all files are."`
	MCPServers   map[string]mcpServer `json:"mcpServers,omitempty" jsonschema:"Servers of the Model Context Protocol, by name. A broken one is skipped with a warning."`
	Search       search               `json:"search,omitzero" jsonschema:"Who searches the web for web_search."`
	Web          web                  `json:"web,omitzero" jsonschema:"What of the network web_fetch may reach."`
	Sandbox      sandbox              `json:"sandbox,omitzero" jsonschema:"How commands are confined (docs/sandbox.md)."`
}

type web struct {
	Hosts []string `json:"hosts,omitempty" jsonschema:"Hosts that may be fetched although their addresses are not public, like wiki.internal or localhost:8080."`
}

type sandbox struct {
	Enabled  *bool    `json:"enabled,omitempty" jsonschema:"Whether commands are confined where the system can. Default: true."`
	Writable []string `json:"writable,omitempty" jsonschema:"Directories that commands may write to beside the workspace, absolute or relative to this file."`
	Pass     []string `json:"pass,omitempty" jsonschema:"Environment variables that commands get although their names say that they hold credentials."`
}

type limits struct {
	Events      *int           `json:"events,omitempty" jsonschema:"Stream events. Default: 15000."`
	Calls       *int           `json:"calls,omitempty" jsonschema:"Calls of tools. Default: 2000."`
	Duration    *duration      `json:"duration,omitempty" jsonschema:"Time at work. Default: 1h."`
	Cost        *float64       `json:"cost,omitempty" jsonschema:"US dollars, as far as prices are known. Default: no cap."`
	PerTool     map[string]int `json:"per_tool,omitempty" jsonschema:"Calls of single tools, by name. Default: edit_file 75, delete_file 30, run_command 100, run_terminal_command 500, web_search 60."`
	SameFile    *int           `json:"same_file,omitempty" jsonschema:"Edits of one file. Default: 20."`
	Rate        *int           `json:"rate,omitempty" jsonschema:"Calls of tools in any minute. Default: 600."`
	RatePerTool *int           `json:"rate_per_tool,omitempty" jsonschema:"Calls of one tool in any minute. Default: 200."`
	RateWait    *duration      `json:"rate_wait,omitempty" jsonschema:"Longest wait for the rates; a call that would wait longer is refused to the model. Default: 5s."`
	Iterations  *int           `json:"iterations,omitempty" jsonschema:"Answers of the model; after the last it is asked what was done and what remains. Default: 500."`
	Denials     *int           `json:"denials,omitempty" jsonschema:"Denied calls in a row. Default: 5."`
	Deadline    *duration      `json:"deadline,omitempty" jsonschema:"Time after which a turn and everything in it is ended. Default: none of its own."`
}

type loops struct {
	Window       *int `json:"window,omitempty" jsonschema:"How many of the last calls are looked at for the same call with the same result. Default: 10."`
	Notice       *int `json:"notice,omitempty" jsonschema:"Repetitions after which the model is told. Default: 3."`
	Stop         *int `json:"stop,omitempty" jsonschema:"Repetitions after which the turn is stopped. Default: 5."`
	CycleLength  *int `json:"cycle_length,omitempty" jsonschema:"Longest cycle of calls that is looked for. Default: 5."`
	CycleRepeats *int `json:"cycle_repeats,omitempty" jsonschema:"Rounds of a cycle after which the turn is stopped. Default: 5."`
	ChantLength  *int `json:"chant_length,omitempty" jsonschema:"Length in characters of a repeated piece of text. Default: 50."`
	ChantRepeats *int `json:"chant_repeats,omitempty" jsonschema:"Repetitions of a piece of text after which an answer is stopped. Default: 10."`
}

type compaction struct {
	Warn          *float64 `json:"warn,omitempty" jsonschema:"Share of the window at which it is logged and prepared. Default: 0.8."`
	Act           *float64 `json:"act,omitempty" jsonschema:"Share of the window at which the context is made smaller. Default: 0.9."`
	Protected     *int     `json:"protected,omitempty" jsonschema:"Last messages that are never summarised. Default: 4."`
	Minimum       *int     `json:"minimum,omitempty" jsonschema:"Messages below which nothing is summarised. Default: 6."`
	StripOver     *int     `json:"strip_over,omitempty" jsonschema:"Characters over which old results of tools are stripped. Default: 200."`
	KeepUser      *int     `json:"keep_user,omitempty" jsonschema:"Tokens of user messages that stay word for word. Default: 20000."`
	Gain          *float64 `json:"gain,omitempty" jsonschema:"Share by which a summary must shrink the context, or it is a strike. Default: 0.05."`
	Strikes       *int     `json:"strikes,omitempty" jsonschema:"Strikes after which nothing is summarised any more. Default: 2."`
	Overlap       *int     `json:"overlap,omitempty" jsonschema:"Messages that chunks to be summarised share. Default: 2."`
	Chunk         *int     `json:"chunk,omitempty" jsonschema:"Tokens of a chunk to be summarised. Default: 12000."`
	Window        *int     `json:"window,omitempty" jsonschema:"Context window in tokens to plan for. Default: that of the model."`
	DefaultWindow *int     `json:"default_window,omitempty" jsonschema:"Context window of a model of which none is known. Default: 16000."`
}

type memory struct {
	Enabled  *bool     `json:"enabled,omitempty" jsonschema:"Whether anything is remembered. Default: true."`
	Idle     *duration `json:"idle,omitempty" jsonschema:"How long a session must be idle before its history is archived. Default: 10m."`
	Every    *duration `json:"every,omitempty" jsonschema:"Least time between two refinements of what is remembered. Default: 24h."`
	MaxBytes *int      `json:"max_bytes,omitempty" jsonschema:"How much of MEMORY.md is put before the model. Default: 16384."`
}

type permissions struct {
	Mode    string   `json:"mode,omitempty" jsonschema:"plan, ask, auto-edit or full. Default: ask."`
	Profile string   `json:"profile,omitempty" jsonschema:"restricted, standard or trusted. Default: standard."`
	Allow   []string `json:"allow,omitempty" jsonschema:"Calls that are made without asking, like edit_file or run_command(go test *)."`
	Ask     []string `json:"ask,omitempty" jsonschema:"Calls that are asked for."`
	Deny    []string `json:"deny,omitempty" jsonschema:"Calls that are never made."`
}

type tools struct {
	Timeout     *duration `json:"timeout,omitempty" jsonschema:"Time of a call whose tool sets none. Default: 2m."`
	Parallel    *int      `json:"parallel,omitempty" jsonschema:"Calls that only read and run at once. Default: 8."`
	ResultLines *int      `json:"result_lines,omitempty" jsonschema:"Lines of a result that are put before the model; the rest is in a file. Default: 2000."`
	ResultBytes *int      `json:"result_bytes,omitempty" jsonschema:"Bytes of a result that are put before the model. Default: 51200."`
}

type subagents struct {
	Depth *int `json:"depth,omitempty" jsonschema:"How deep subagents may start subagents; 0 means that there are none. Default: 1."`
}

type hook struct {
	On      string   `json:"on,omitempty" jsonschema:"The node: session_start, turn_start, before_tool, after_tool, turn_end and so on."`
	Match   string   `json:"match,omitempty" jsonschema:"Names of tools, separated by |, with * for any characters. Default: every tool."`
	Run     []string `json:"run,omitempty" jsonschema:"The command and its arguments; no shell reads them."`
	Timeout duration `json:"timeout,omitzero" jsonschema:"How long it may take. Default: 1m."`
}

type mcpServer struct {
	Command string            `json:"command,omitempty" jsonschema:"The program that is started."`
	Args    []string          `json:"args,omitempty" jsonschema:"Its arguments."`
	Env     map[string]string `json:"env,omitempty" jsonschema:"Variables that its environment has besides."`
	URL     string            `json:"url,omitempty" jsonschema:"The address of a server that is reached over HTTP."`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"Headers of every request to it."`
	Timeout duration          `json:"timeout,omitzero" jsonschema:"How long a call may take."`
	Trust   bool              `json:"trust,omitempty" jsonschema:"Believe the server where it says that a tool only reads: such tools run beside others, and again after a broken connection. Default: false."`
}

type search struct {
	Engine string `json:"engine,omitempty" jsonschema:"searxng, brave or tavily."`
	URL    string `json:"url,omitempty" jsonschema:"The engine's address; searxng needs one."`
	Key    secret `json:"key,omitzero" jsonschema:"The engine's key, best written as ${VARIABLE}; brave and tavily need one."`
}
