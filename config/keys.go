package config

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/ninelives-ai/ninelives/provider"
)

// KeyVariables are the environment variables that hold keys: those of the
// providers, and those that the files take keys from. Programs that an agent
// starts have no business with them (provider.WithoutKeys).
func (c *Config) KeyVariables() []string {
	all := append(provider.KeyVariables(), c.keys...)
	slices.Sort(all)
	return slices.Compact(all)
}

// keysIn lists the variables that the settings key and key_env below n name.
func keysIn(n ast.Node) (names []string) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			value, isText := pair.Value.(*ast.StringNode)
			switch {
			case !isText:
				names = append(names, keysIn(pair.Value)...)
			case pair.Key.GetToken().Value == "key_env":
				names = append(names, value.Value)
			case pair.Key.GetToken().Value == "key":
				for _, m := range reference.FindAllStringSubmatch(value.Value, -1) {
					if m[1] != "" {
						names = append(names, m[1])
					}
				}
			}
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			names = append(names, keysIn(v)...)
		}
	}
	return names
}
