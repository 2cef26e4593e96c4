package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// agentNames are the settings of design 001, layer 3, and where they are here.
var agentNames = []struct {
	theirs string
	ours   string
	// minutes: the number is one of minutes.
	minutes bool
}{
	{theirs: "codebuddy.agent.maxEventCount", ours: "agent.limits.events"},
	{theirs: "codebuddy.agent.maxToolInvocations", ours: "agent.limits.calls"},
	{theirs: "codebuddy.agent.maxDurationMinutes", ours: "agent.limits.duration", minutes: true},
	{theirs: "codebuddy.agent.limits.editFile", ours: "agent.limits.per_tool.edit_file"},
	{theirs: "codebuddy.agent.limits.deleteFile", ours: "agent.limits.per_tool.delete_file"},
	{theirs: "codebuddy.agent.limits.runCommand", ours: "agent.limits.per_tool.run_command"},
	{theirs: "codebuddy.agent.limits.runTerminalCommand", ours: "agent.limits.per_tool.run_terminal_command"},
	{theirs: "codebuddy.agent.limits.webSearch", ours: "agent.limits.per_tool.web_search"},
	{theirs: "codebuddy.agent.fileEditLoopThreshold", ours: "agent.limits.same_file"},
}

// adoptAgent moves the agent's settings of design 001 to where ours are. One
// that is set under our name too is ours.
func (s *source) adoptAgent() {
	for _, n := range agentNames {
		value := take(s.root, n.theirs)
		if value == nil {
			continue
		}
		if n.minutes {
			value = minutes(value)
		}
		place(s.root, strings.Split(n.ours, "."), value)
	}
}

// minutes gives a bare number its unit.
func minutes(n ast.Node) ast.Node {
	text := n.GetToken().Value
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.StringNode:
		if !strings.HasPrefix(n.Value, "${") {
			return n
		}
	default:
		return n
	}
	t := *n.GetToken()
	t.Type, t.Value, t.Origin = token.StringType, text+"m", text+"m"
	return ast.String(&t)
}

// place puts a value at a path, unless something is there.
func place(m *ast.MappingNode, path []string, value ast.Node) {
	i := slices.IndexFunc(m.Values, func(p *ast.MappingValueNode) bool {
		name := p.Key.GetToken().Value
		return name == path[0] || snake(name) == path[0]
	})
	if len(path) == 1 {
		if i < 0 {
			m.Values = append(m.Values, pairOf(value, path[0]))
		}
		return
	}
	if i < 0 {
		m.Values = append(m.Values, pairOf(ast.Mapping(value.GetToken(), true), path[0]))
		i = len(m.Values) - 1
	}
	if inner, ok := m.Values[i].Value.(*ast.MappingNode); ok {
		place(inner, path[1:], value)
	}
}
