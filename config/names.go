package config

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// otherNames are names of the same settings in other tools, and our own in
// snake case. Sources: design 000 (apiKey, apiBase), design 001 (contextWindow).
var otherNames = map[string]string{
	"fallback_models": "fallbackModels",
	"fallbacks":       "fallbackModels",
	"model_presets":   "modelPresets",
	"presets":         "modelPresets",
	"context_window":  "window",
	"api_base":        "base_url",
	"api_key":         "key",
	"api_key_env":     "key_env",
	"max_tokens":      "max_output",
	"default_model":   "model",
	"mcp_servers":     "mcpServers",
}

// adopt brings a tree under our names: camel case or snake case, the names of
// other tools, and where the source designs keep the same settings deeper
// (agents.defaults of 000; codebuddy.failover.providers and
// codebuddy.contextWindow of 001).
func (s *source) adopt() {
	s.lift("codebuddy.failover.providers", "fallbackModels")
	s.lift("codebuddy.contextWindow", "window")
	s.adoptAgent()
	s.lift("agents.defaults", "")
	rename(s.root, true)
}

// namesOfUsers are the settings whose own settings have names that users chose.
var namesOfUsers = []string{"modelPresets", "catalogue", "headers", "mcpServers", "env", "per_tool", "routes"}

// rename writes the names of settings as we know them. Names that the user
// chose (of presets, of headers) stay as they are.
func rename(n ast.Node, settings bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			t := pair.Key.GetToken()
			if settings {
				if name := snake(t.Value); otherNames[name] != "" {
					t.Value = otherNames[name]
				} else {
					t.Value = name
				}
				if k, ok := pair.Key.(*ast.StringNode); ok {
					k.Value = t.Value
				}
			}
			rename(pair.Value, !settings || !slices.Contains(namesOfUsers, t.Value))
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			rename(v, settings)
		}
	}
}

// written is a name as it stands in the file, whatever we call it.
func written(key ast.Node) string {
	t := key.GetToken()
	if name := strings.Trim(strings.TrimSpace(t.Origin), `"'`); name != "" {
		return name
	}
	return t.Value
}

// snake turns camelCase into snake_case.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 && !strings.HasSuffix(b.String(), "_") && !unicode.IsUpper(rune(name[i-1])) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "-", "_")
}

// lift moves what a path holds to the top, under a new name; without one, the
// settings of the mapping that it holds. Either spelling of a path is taken:
// nested, or with dots in one name.
func (s *source) lift(path, name string) {
	value := take(s.root, path)
	if value == nil {
		return
	}
	if name != "" {
		s.root.Values = append(s.root.Values, pairOf(value, name))
		return
	}
	if m, ok := value.(*ast.MappingNode); ok {
		s.mergeDefaults(m)
	}
}

// mergeDefaults takes over agents.defaults, where the provider stands beside
// the model.
func (s *source) mergeDefaults(m *ast.MappingNode) {
	var providerPair, modelPair *ast.MappingValueNode
	for _, pair := range m.Values {
		switch pair.Key.GetToken().Value {
		case "provider":
			providerPair = pair
		case "model":
			modelPair = pair
		}
	}
	if providerPair == nil || modelPair == nil {
		s.root.Values = append(s.root.Values, m.Values...)
		return
	}
	both := ast.Mapping(m.GetToken(), true, providerPair, modelPair)
	for _, pair := range m.Values {
		if pair != providerPair && pair != modelPair {
			s.root.Values = append(s.root.Values, pair)
		}
	}
	s.root.Values = append(s.root.Values, pairOf(both, "model"))
}

// pairOf makes a setting whose name stands where its value does.
func pairOf(value ast.Node, name string) *ast.MappingValueNode {
	t := *value.GetToken()
	t.Type, t.Value, t.Origin = token.StringType, name, name
	return ast.MappingValue(&t, ast.String(&t), value)
}

// take removes what a dotted path holds and gives it.
func take(m *ast.MappingNode, path string) ast.Node {
	for i, pair := range m.Values {
		key := pair.Key.GetToken().Value
		if key == path {
			m.Values = slices.Delete(m.Values, i, i+1)
			return pair.Value
		}
		rest, ok := strings.CutPrefix(path, key+".")
		if !ok {
			continue
		}
		inner, ok := pair.Value.(*ast.MappingNode)
		if !ok {
			continue
		}
		value := take(inner, rest)
		if value != nil {
			if len(inner.Values) == 0 {
				m.Values = slices.Delete(m.Values, i, i+1)
			}
			return value
		}
	}
	return nil
}
