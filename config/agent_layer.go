package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

var (
	permissionModes = wordsOf(tool.ModePlan, tool.ModeAsk, tool.ModeAutoEdit, tool.ModeFull) // the strictest first
	profiles        = wordsOf(tool.ProfileRestricted, tool.ProfileStandard, tool.ProfileTrusted)
	engines         = []string{"searxng", "brave", "tavily"}
)

func wordsOf[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

func cloned(g agent.GuardSettings) agent.GuardSettings {
	g.PerTool = maps.Clone(g.PerTool)
	return g
}

// layerAgent puts a file's agent section over what is there: numbers one by
// one, servers by name; rules, hooks and instructions are added. Of a file that
// is not trusted it takes only what makes things stricter.
func (c *Config) layerAgent(s *source, n ast.Node) (problems, fatal []Problem) {
	if _, null := n.(*ast.NullNode); null {
		return nil, nil
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, []Problem{s.at(n, "agent: expected settings of its own, not %s", article(n.GetToken()))}
	}
	if twice := s.twice(m); twice != nil {
		return nil, twice
	}
	if !s.trusted {
		problems = append(s.withhold(m), s.unfilled(m)...)
	}
	p, f := c.layerServers(s, cut(m, "mcpServers"))
	problems, fatal = append(problems, p...), append(fatal, f...)
	if len(m.Values) == 0 {
		return problems, fatal
	}
	var set agentFile
	f = s.decode(m, &set)
	if f == nil {
		f = append(set.check(s, m), negatives(s, m)...)
	}
	if f != nil {
		return problems, append(fatal, f...)
	}
	if !s.trusted {
		problems = append(problems, set.tame(s, m, c.agent.Settings)...)
	}
	return problems, append(fatal, set.apply(s, m, &c.agent)...)
}

// layerServers reads the servers, each by itself.
func (c *Config) layerServers(s *source, n ast.Node) (problems, fatal []Problem) {
	if _, null := n.(*ast.NullNode); n == nil || null {
		return nil, nil
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, []Problem{s.at(n, "mcpServers: expected servers by name, like github: {command: github-mcp-server}")}
	}
	for _, pair := range m.Values {
		name := pair.Key.GetToken().Value
		var set mcpServer
		p := s.decode(pair.Value, &set)
		if p == nil {
			p = append(set.check(s, name, pair), negatives(s, pair.Value)...)
		}
		if p != nil {
			problems = append(problems, skipped(fmt.Sprintf("MCP server %q", name), p)...)
			continue
		}
		c.agent.MCP = slices.DeleteFunc(c.agent.MCP, func(m MCPServer) bool { return m.Name == name })
		c.agent.MCP = append(c.agent.MCP, MCPServer{
			Name: name, Command: set.Command, Args: set.Args, Env: set.Env,
			URL: set.URL, Headers: set.Headers, Timeout: time.Duration(set.Timeout), Trust: set.Trust,
		})
	}
	slices.SortFunc(c.agent.MCP, func(a, b MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return problems, nil
}

func (m mcpServer) check(s *source, name string, pair *ast.MappingValueNode) []Problem {
	var problems []Problem
	wrong := func(n ast.Node, format string, args ...any) { problems = append(problems, s.at(n, format, args...)) }
	n := pair.Value
	if name == "" || len(name) > 40 || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) {
		wrong(pair.Key, "its name stands before those of its tools: at most 40 letters, digits, - and _")
	}
	switch {
	case m.Command == "" && m.URL == "":
		wrong(n, "it needs a command or a url")
	case m.Command != "" && m.URL != "":
		wrong(n, "command and url are both set: keep one")
	case m.Command == "" && (len(m.Args) > 0 || len(m.Env) > 0):
		wrong(n, "args and env are for a command, not for a url")
	case m.URL == "" && len(m.Headers) > 0:
		wrong(valueOf(n, "headers"), "headers are for a url, not for a command")
	case m.URL != "" && !isAddress(m.URL):
		wrong(valueOf(n, "url"), "the url is none: write it like https://mcp.example.com/mcp")
	}
	return problems
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// check finds what is no value for its setting.
func (a *agentFile) check(s *source, n ast.Node) []Problem {
	permissions, search := valueOf(n, "permissions"), valueOf(n, "search")
	problems := words(s, permissions,
		word{"mode", a.Permissions.Mode, permissionModes},
		word{"profile", a.Permissions.Profile, profiles},
	)
	problems = append(problems, words(s, search, word{"engine", a.Search.Engine, engines})...)
	switch {
	case a.Search.unset():
	case a.Search.Engine == "":
		problems = append(problems, s.at(search, "search: which engine? engine: %s", strings.Join(engines, ", ")))
	case a.Search.URL == "" && a.Search.Engine == "searxng":
		problems = append(problems, s.at(search, "search: searxng needs the url of your instance"))
	case a.Search.Key.Empty() && (a.Search.Engine == "brave" || a.Search.Engine == "tavily"):
		problems = append(problems, s.at(search, "search: %s needs a key", a.Search.Engine))
	case a.Search.URL != "" && !isAddress(a.Search.URL):
		problems = append(problems, s.at(valueOf(search, "url"), "search: the url is none: write it like https://search.example.com"))
	}
	for name, share := range map[string]*float64{"warn": a.Compaction.Warn, "act": a.Compaction.Act, "gain": a.Compaction.Gain} {
		if share != nil && *share > 1 {
			problems = append(problems, s.at(valueOf(valueOf(n, "compaction"), name), "compaction: %s is a share of the window, at most 1", name))
		}
	}
	for i, h := range a.Hooks {
		if err := h.command().Check(); err != nil {
			problems = append(problems, s.at(element(valueOf(n, "hooks"), i), "%s", err))
		}
	}
	return problems
}

func (s search) unset() bool { return s.Engine == "" && s.URL == "" && s.Key.Empty() }

func (h hook) command() agent.CommandHook {
	return agent.CommandHook{On: agent.HookPoint(h.On), Match: h.Match, Run: h.Run, Timeout: time.Duration(h.Timeout)}
}

// element is one of a list, or what stands for the list.
func element(n ast.Node, i int) ast.Node {
	if list, ok := n.(*ast.SequenceNode); ok && i < len(list.Values) {
		return list.Values[i]
	}
	return n
}

// apply puts what is set over a.
func (f *agentFile) apply(s *source, n ast.Node, a *Agent) []Problem {
	t := &a.Settings
	g := cloned(t.Guard)
	l, o, c, m := f.Limits, f.Loops, f.Compaction, f.Memory
	put(&g.Events, l.Events)
	put(&g.Calls, l.Calls)
	set(&g.Duration, l.Duration)
	put(&g.Cost, l.Cost)
	maps.Copy(g.PerTool, l.PerTool)
	put(&g.SameFile, l.SameFile)
	put(&g.Rate, l.Rate)
	put(&g.RatePerTool, l.RatePerTool)
	set(&g.RateWait, l.RateWait)
	put(&g.Denials, l.Denials)
	put(&g.LoopWindow, o.Window)
	put(&g.LoopNotice, o.Notice)
	put(&g.LoopStop, o.Stop)
	put(&g.CycleLength, o.CycleLength)
	put(&g.CycleRepeats, o.CycleRepeats)
	put(&g.ChantLength, o.ChantLength)
	put(&g.ChantRepeats, o.ChantRepeats)
	t.Guard = g
	put(&t.Iterations, l.Iterations)
	set(&t.Deadline, l.Deadline)

	put(&t.Compaction.Warn, c.Warn)
	put(&t.Compaction.Act, c.Act)
	put(&t.Compaction.Protected, c.Protected)
	put(&t.Compaction.Minimum, c.Minimum)
	put(&t.Compaction.StripOver, c.StripOver)
	put(&t.Compaction.KeepUser, c.KeepUser)
	put(&t.Compaction.Gain, c.Gain)
	put(&t.Compaction.Strikes, c.Strikes)
	put(&t.Compaction.Overlap, c.Overlap)
	put(&t.Compaction.Chunk, c.Chunk)
	put(&t.Compaction.Window, c.Window)
	put(&t.Compaction.DefaultWindow, c.DefaultWindow)

	if m.Enabled != nil {
		t.Memory.Off = !*m.Enabled
	}
	set(&t.Memory.Idle, m.Idle)
	set(&t.Memory.Every, m.Every)
	put(&t.Memory.MaxBytes, m.MaxBytes)

	set(&t.ToolTimeout, f.Tools.Timeout)
	put(&t.ParallelCalls, f.Tools.Parallel)
	put(&t.ResultLines, f.Tools.ResultLines)
	put(&t.ResultBytes, f.Tools.ResultBytes)
	put(&t.Depth, f.Subagents.Depth)

	if text := strings.TrimSpace(f.Instructions); text != "" {
		t.Instructions = strings.TrimSpace(t.Instructions + "\n\n" + text)
	}
	for _, h := range f.Hooks {
		a.Hooks = append(a.Hooks, h.command())
	}
	if !f.Search.unset() {
		a.Search = Search{Engine: f.Search.Engine, URL: f.Search.URL, Key: f.Search.Key.Secret}
	}
	a.Hosts = append(slices.Clip(a.Hosts), f.Web.Hosts...)
	if f.Sandbox.Enabled != nil {
		a.Sandbox.Off = !*f.Sandbox.Enabled
	}
	for _, dir := range f.Sandbox.Writable {
		a.Sandbox.Writable = append(slices.Clip(a.Sandbox.Writable), s.beside(dir))
	}
	a.Sandbox.Pass = append(slices.Clip(a.Sandbox.Pass), f.Sandbox.Pass...)
	return f.Permissions.apply(s, valueOf(n, "permissions"), &t.Permissions)
}

func (p permissions) apply(s *source, n ast.Node, to *tool.Permissions) []Problem {
	var problems []Problem
	if p.Mode != "" {
		to.Mode = tool.Mode(p.Mode)
	}
	if p.Profile != "" {
		to.Profile = tool.Profile(p.Profile)
	}
	rules := slices.Clone(to.Rules)
	add := func(action tool.Action, list []string) {
		for i, text := range list {
			r, err := ParseRule(action, text)
			if err != nil {
				problems = append(problems, s.at(element(valueOf(n, string(action)), i), "%s", err))
				continue
			}
			rules = append(rules, r)
		}
	}
	add(tool.ActionAllow, p.Allow)
	add(tool.ActionAsk, p.Ask)
	add(tool.ActionDeny, p.Deny)
	to.Rules = rules
	return problems
}

// twice finds settings that stand in one mapping under two of their names: what
// is taken out under one must not be left under another.
func (s *source) twice(n ast.Node) (problems []Problem) {
	switch n := n.(type) {
	case *ast.MappingNode:
		seen := map[string]*ast.MappingValueNode{}
		for _, pair := range n.Values {
			name := pair.Key.GetToken().Value
			if other := seen[name]; other != nil {
				problems = append(problems, s.at(pair.Key, "%q is the same setting as %q: keep one", written(pair.Key), written(other.Key)))
			}
			seen[name] = pair
			problems = append(problems, s.twice(pair.Value)...)
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			problems = append(problems, s.twice(v)...)
		}
	}
	return problems
}

// cut takes a setting out of a mapping and gives its value; nil if there is none.
func cut(m *ast.MappingNode, name string) ast.Node {
	for i, pair := range m.Values {
		if pair.Key.GetToken().Value == name {
			m.Values = slices.Delete(m.Values, i, i+1)
			return pair.Value
		}
	}
	return nil
}

// withhold takes out of an agent section what a file that is not trusted must
// not say at all.
func (s *source) withhold(m *ast.MappingNode) []Problem {
	var problems []Problem
	take := func(m *ast.MappingNode, name, called string) {
		for _, pair := range m.Values {
			if pair.Key.GetToken().Value == name {
				problems = append(problems, s.untrusted(pair.Key, called+" are"+onlyTrusted))
			}
		}
		cut(m, name)
	}
	take(m, "hooks", "hooks")
	take(m, "mcpServers", "MCP servers")
	take(m, "search", "the settings of search")
	take(m, "web", "the settings of web")
	take(m, "sandbox", "the settings of sandbox")
	take(m, "loops", "the settings of loops")
	if p, ok := valueOf(m, "permissions").(*ast.MappingNode); ok && p != m {
		take(p, "allow", "rules that allow")
		if len(p.Values) == 0 {
			cut(m, "permissions")
		}
	}
	return problems
}

// untrusted is a problem about something that was left out.
func (s *source) untrusted(n ast.Node, why string) Problem {
	p := s.at(n, "left out: %s: read the file, then run \"ninelives trust\"", why)
	p.Err = ErrUntrusted
	return p
}

// tame takes out of the set what would lift what holds now.
func (set *agentFile) tame(s *source, n ast.Node, now agent.Settings) []Problem {
	var problems []Problem
	refuse := func(section, name string, own any) {
		problems = append(problems, s.stricter(valueOf(valueOf(n, section), name), section+"."+name, own))
	}
	l, g := &set.Limits, now.Guard
	for _, c := range []struct {
		section, name string
		set           **int
		now           int
	}{
		{"limits", "events", &l.Events, g.Events},
		{"limits", "calls", &l.Calls, g.Calls},
		{"limits", "same_file", &l.SameFile, g.SameFile},
		{"limits", "rate", &l.Rate, g.Rate},
		{"limits", "rate_per_tool", &l.RatePerTool, g.RatePerTool},
		{"limits", "iterations", &l.Iterations, now.Iterations},
		{"limits", "denials", &l.Denials, g.Denials},
	} {
		if *c.set != nil && lifts(**c.set, c.now) {
			refuse(c.section, c.name, c.now)
			*c.set = nil
		}
	}
	for _, c := range []struct {
		section, name string
		set           **duration
		now           time.Duration
	}{
		{"limits", "duration", &l.Duration, g.Duration},
		{"limits", "rate_wait", &l.RateWait, g.RateWait},
		{"limits", "deadline", &l.Deadline, now.Deadline},
		{"tools", "timeout", &set.Tools.Timeout, now.ToolTimeout},
	} {
		if *c.set != nil && lifts(time.Duration(**c.set), c.now) {
			refuse(c.section, c.name, c.now)
			*c.set = nil
		}
	}
	if l.Cost != nil && lifts(*l.Cost, g.Cost) {
		refuse("limits", "cost", g.Cost)
		l.Cost = nil
	}
	for _, name := range slices.Sorted(maps.Keys(l.PerTool)) {
		if lifts(l.PerTool[name], g.PerTool[name]) {
			refuse("limits", "per_tool", fmt.Sprintf("%s %d", name, g.PerTool[name]))
			delete(l.PerTool, name)
		}
	}
	if d := set.Subagents.Depth; d != nil && *d > now.Depth {
		refuse("subagents", "depth", now.Depth)
		set.Subagents.Depth = nil
	}
	if e := set.Memory.Enabled; e != nil && *e && now.Memory.Off {
		refuse("memory", "enabled", false)
		set.Memory.Enabled = nil
	}
	looser := func(known []string, set, now string) bool {
		return set != "" && slices.Index(known, set) > slices.Index(known, now)
	}
	if looser(permissionModes, set.Permissions.Mode, string(now.Permissions.Mode)) {
		refuse("permissions", "mode", now.Permissions.Mode)
		set.Permissions.Mode = ""
	}
	if looser(profiles, set.Permissions.Profile, string(now.Permissions.Profile)) {
		refuse("permissions", "profile", now.Permissions.Profile)
		set.Permissions.Profile = ""
	}
	return problems
}

// lifts reports that a cap is over the one that holds; zero is no cap.
func lifts[T int | float64 | time.Duration](set, now T) bool {
	return now > 0 && (set == 0 || set > now)
}
