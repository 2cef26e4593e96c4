package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/agent/hookcmd"
	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/tool"
	"github.com/ninelives-ai/ninelives/tool/mcp"
)

// work is what flags say about an agent.
type work struct {
	choice choice
	mode   string
	allow  []string
	deny   []string
	// servers are those of an editor, beside the configuration's.
	servers []mcp.Server
	// remember: the command lasts long enough for sessions to become idle.
	remember bool
	// settled is when servers of tools are no longer waited for; zero: what they
	// have comes to a later turn.
	settled time.Time
}

// flags adds the flags that every command with an agent has.
func (w *work) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.choice.model, "model", "", "model to ask first: provider/model, a provider, or a preset of the configuration")
	f.StringArrayVar(&w.choice.fallbacks, "fallback", nil, "model to ask next (repeatable)")
	f.StringVar(&w.choice.preset, "preset", "", "how to heal: default, interactive, background, catbuddy, codebuddy or hardened")
	f.Var(&w.choice.deadline, "deadline", "total time of a turn, such as 10m (default: the configuration's)")
	f.StringVar(&w.choice.config, "config", "", "configuration file instead of ninelives.yaml and the user's own")
	f.StringVar(&w.mode, "permission-mode", "", "what is done without asking: "+strings.Join(modes(), ", ")+" (default: the configuration's)")
	f.StringArrayVar(&w.allow, "allow", nil, "tool that needs no asking, such as edit_file or \"run_command(go test *)\" (repeatable)")
	f.StringArrayVar(&w.deny, "deny", nil, "tool that is never run, in the same form (repeatable)")
}

// mistakes are what is wrong with the values of these flags.
func (w *work) mistakes(cmd *cobra.Command) error {
	errs := []error{w.choice.deadline.mistake}
	errs = append(errs, w.choice.mistakes(cmd)...)
	if cmd.Flags().Changed("permission-mode") {
		known := false
		for _, m := range tool.Modes() {
			known = known || w.mode == string(m)
		}
		if !known {
			errs = append(errs, usagef("--permission-mode %q is unknown%s: use one of %s", w.mode, nearest.Hint(w.mode, modes()), strings.Join(modes(), ", ")))
		}
	}
	_, err := w.rules()
	return errors.Join(append(errs, err)...)
}

// rules are what --allow and --deny say.
func (w *work) rules() ([]tool.Rule, error) {
	var rules []tool.Rule
	var errs []error
	for _, list := range []struct {
		flag   string
		action tool.Action
		texts  []string
	}{{"allow", tool.ActionAllow, w.allow}, {"deny", tool.ActionDeny, w.deny}} {
		for _, text := range list.texts {
			rule, err := config.ParseRule(list.action, text)
			if err != nil {
				errs = append(errs, usagef("--%s: %v", list.flag, err))
				continue
			}
			rules = append(rules, rule)
		}
	}
	return rules, errors.Join(errs...)
}

// shop is an agent with everything that it works with.
type shop struct {
	p         *process
	work      *work
	directory string
	chain     *chain
	settings  agent.Settings
	agent     *agent.Agent
	servers   *mcp.Servers
	memory    *agent.Memory
	warnings  []string

	closers []func()
}

// open opens everything: whom to ask, what may be done, the tools, the servers.
// The caller closes it. Tune has the last word on the settings.
func (w *work) open(ctx context.Context, p *process, kept *kept, tune func(*agent.Settings), opts ...agent.Option) (_ *shop, err error) {
	s := &shop{p: p, work: w}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.directory = w.choice.dir; s.directory == "" {
		if s.directory, err = workDirectory(); err != nil {
			return nil, err
		}
	}
	if s.chain, err = p.open(ctx, w.choice, demoCoder); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.chain.close)
	s.warnings = append(append(s.warnings, kept.warnings...), s.chain.warnings...)

	conf := s.chain.config.Agent()
	s.settings = conf.Settings
	if w.mode != "" {
		s.settings.Permissions.Mode = tool.Mode(w.mode)
	}
	rules, err := w.rules()
	if err != nil {
		return nil, err
	}
	s.settings.Permissions.Rules = append(s.settings.Permissions.Rules, rules...)
	home, _ := p.env("HOME")
	s.settings.Permissions.Home = home
	s.settings.Permissions.Workspace = s.directory
	s.settings.Permissions.Private = p.private(kept)
	if w.choice.deadline.Duration > 0 {
		s.settings.Deadline = w.choice.deadline.Duration
	}
	tools, restorer, outputs, err := s.tools(ctx, kept, conf)
	if err != nil {
		return nil, err
	}
	if s.servers != nil && !w.settled.IsZero() {
		ctx, cancel := context.WithDeadline(ctx, w.settled)
		s.servers.Settle(ctx)
		cancel()
	}
	if tune != nil {
		tune(&s.settings)
	}
	if free := s.chain.unpriced(); s.settings.Guard.Cost > 0 && len(free) > 0 {
		s.warnings = append(s.warnings, "the limit of cost does not hold for "+few(free, ", ")+": no price is known (give it one as price in the configuration)")
	}
	if err := s.checkRules(tools, len(s.settings.Permissions.Rules)-len(rules)); err != nil {
		return nil, err
	}
	options := []agent.Option{
		agent.Tools(tools...), agent.With(s.settings), agent.Workspace(s.directory), agent.Restorer(restorer),
		agent.Outputs(outputs), agent.Version(buildVersion()), agent.Signature(s.chain.signature()),
	}
	if s.servers != nil {
		options = append(options, agent.ToolsFrom(s.servers.Tools))
	}
	if kept.j != nil {
		options = append(options, agent.Journal(kept.j))
	}
	if len(conf.Hooks) > 0 {
		hooks, err := hookcmd.New(hookcmd.Options{Directory: s.directory, Hide: s.chain.config.KeyVariables(), Warn: s.warn}, conf.Hooks...)
		if err != nil {
			return nil, &usageError{err}
		}
		options = append(options, agent.Hooks(hooks))
	}
	options = append(options, s.telemetry(ctx)...)
	if w.remember {
		s.memory = agent.NewMemory(func() ninelives.Model { return s.agent.Model() }, agent.MemoryDirsOf(s.directory, home), s.settings.Memory)
		s.closers = append(s.closers, func() { _ = s.memory.Close() })
		options = append(options, agent.Remember(s.memory))
	}
	s.agent = agent.New(s.chain.healed(0), append(options, opts...)...)
	return s, nil
}

// checkRules finds rules for tools that there are not: who misspells what is
// never to be run must hear of it. The rules from a number on are those of
// flags; of the others it is a warning. What servers offer ("server__tool") is not known yet.
func (s *shop) checkRules(tools []tool.Tool, flags int) error {
	names := []string{agent.SubagentTool}
	for _, t := range tools {
		names = append(names, t.Spec().Name)
	}
	for i, r := range s.settings.Permissions.Rules {
		if r.Tool == "" || strings.Contains(r.Tool, "*") || strings.Contains(r.Tool, "__") || slices.Contains(names, r.Tool) {
			continue
		}
		what := fmt.Sprintf("there is no tool %q%s", r.Tool, nearest.Hint(r.Tool, names))
		if i >= flags {
			return usagef("--%s: %s", r.Action, what)
		}
		s.warnings = append(s.warnings, fmt.Sprintf("a rule to %s has no effect: %s", r.Action, what))
	}
	return nil
}

// private are the program's own files: no tool has business with them.
func (p *process) private(kept *kept) []string {
	var paths []string
	if dir := config.UserDir(p.env); dir != "" {
		paths = append(paths, dir)
	}
	if kept.j != nil {
		paths = append(paths, kept.path, kept.path+"-wal", kept.path+"-shm", kept.path+".owners", kept.path+".blobs")
	}
	return paths
}

// tools opens what the agent can do in the directory.
func (s *shop) tools(ctx context.Context, kept *kept, conf config.Agent) ([]tool.Tool, *tool.Workspace, func(string) (string, error), error) {
	var blobs tool.Blobs
	if kept.j != nil {
		blobs = kept.j.Blobs()
	}
	ws, err := tool.OpenWorkspace(s.directory, blobs)
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	s.closers = append(s.closers, func() { _ = ws.Close() })
	state, err := s.state()
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	outputs, err := ws.Outputs(filepath.Join(state, "outputs"), time.Now())
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	shell, err := tool.NewShell(ws, s.shellOptions(state, conf.Sandbox))
	if err != nil {
		return nil, nil, nil, &usageError{err}
	}
	s.closers = append(s.closers, func() { _ = shell.Close() })
	if box := shell.Sandbox(); !box.On {
		s.warnings = append(s.warnings, box.Why)
	}
	tools := append(tool.Files(ws), shell.Tools()...)
	tools = append(tools, tool.Web(tool.WebOptions{Hosts: conf.Hosts, Search: tool.SearchOptions{
		Engine: conf.Search.Engine, URL: conf.Search.URL, Key: conf.Search.Key.Reveal(),
	}})...)
	tools = append(tools, tool.Todo())
	if servers := append(serversOf(conf.MCP, s.directory), s.work.servers...); len(servers) > 0 {
		s.servers = mcp.Connect(ctx, servers)
		s.closers = append(s.closers, s.servers.Close)
	}
	return tools, ws, outputs, nil
}

// state is the directory for what tools leave behind. Where nothing can be kept,
// it lasts as long as the agent.
func (s *shop) state() (string, error) {
	dir, err := s.p.statePath()
	if err == nil {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			var probe *os.File
			if probe, err = os.CreateTemp(dir, ".probe-*"); err == nil {
				_ = probe.Close()
				return dir, os.Remove(probe.Name())
			}
		}
	}
	temporary, failed := os.MkdirTemp("", "ninelives-")
	if failed != nil {
		return "", errors.Join(err, failed)
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(temporary) })
	s.warnings = append(s.warnings, "long outputs and the ends of commands are kept only until the end: "+err.Error())
	return temporary, nil
}

// shellOptions are how commands are run: under this binary as their supervisor,
// without the keys of providers.
func (s *shop) shellOptions(state string, box config.Sandbox) tool.ShellOptions {
	o := tool.ShellOptions{Records: filepath.Join(state, "commands"), Secrets: s.chain.config.KeyVariables(),
		NoSandbox: box.Off, Writable: box.Writable, Pass: box.Pass}
	o.Home, _ = s.p.env("HOME")
	if self, err := os.Executable(); err == nil {
		o.Supervisor = []string{self, supervisorArgument}
	} else {
		s.warnings = append(s.warnings, "commands run without a supervisor, because this program cannot be found: "+err.Error())
	}
	return o
}

// serversOf are the configured servers of the Model Context Protocol.
func serversOf(list []config.MCPServer, dir string) []mcp.Server {
	servers := make([]mcp.Server, len(list))
	for i, c := range list {
		servers[i] = mcp.Server{Name: c.Name, Env: c.Env, Dir: dir, URL: c.URL, Headers: c.Headers, Timeout: c.Timeout, Trust: c.Trust}
		if c.Command != "" {
			servers[i].Command = append([]string{c.Command}, c.Args...)
		}
	}
	return servers
}

// warn notes something that the user should know.
func (s *shop) warn(text string) { fmt.Fprintln(s.p.stderr, "ninelives: "+oneLine(text)) }

// close ends everything that the agent worked with, what was opened last first.
func (s *shop) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

// swap exchanges the model from the next turn on. Warnings are what is to be
// known about the new one.
func (s *shop) swap(ctx context.Context, name string) (changed bool, warnings []string, err error) {
	choice := s.work.choice
	choice.model, choice.fallbacks = name, nil
	chain, err := s.p.open(ctx, choice, demoCoder)
	if err != nil {
		return false, nil, err
	}
	changed, err = s.agent.Swap(chain.signature(), func() (ninelives.Model, error) { return chain.healed(0), nil })
	if err != nil || !changed {
		chain.close()
		return changed, nil, err
	}
	s.closers = append(s.closers, chain.close) // a turn that runs still asks the old one
	s.chain = chain
	return true, chain.warnings, nil
}

// workDirectory is the directory that is worked in, absolute and as it is
// reached without symbolic links.
func workDirectory() (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", usagef("the current directory cannot be used: %v", err)
	}
	return dir, nil
}
