package config

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// maxNodes bounds a file with its aliases written out.
const maxNodes = 20_000

// resolver writes aliases (*name) and merges (<<: *name) out, so that the rest
// of this package sees settings only.
type resolver struct {
	anchors map[string]ast.Node
	nodes   int
}

func (r *resolver) resolve(n ast.Node) (ast.Node, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, &placed{n.GetToken(), "the file is too large with its aliases written out"}
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		v, err := r.resolve(n.Value)
		if err == nil {
			r.anchors[n.Name.GetToken().Value] = v
		}
		return v, err
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		v, ok := r.anchors[name]
		if !ok {
			return nil, &placed{n.GetToken(), fmt.Sprintf("*%s: there is no &%s before this place", name, name)}
		}
		return r.copy(v)
	case *ast.TagNode:
		return r.resolve(n.Value)
	case *ast.LiteralNode:
		return n.Value, nil
	case *ast.SequenceNode:
		for i, v := range n.Values {
			v, err := r.resolve(v)
			if err != nil {
				return nil, err
			}
			n.Values[i] = v
		}
	case *ast.MappingNode:
		return n, r.mapping(n)
	}
	return n, nil
}

func (r *resolver) mapping(n *ast.MappingNode) error {
	var own, merged []*ast.MappingValueNode
	for _, pair := range n.Values {
		v, err := r.resolve(pair.Value)
		if err != nil {
			return err
		}
		pair.Value = v
		if _, merge := pair.Key.(*ast.MergeKeyNode); !merge {
			own = append(own, pair)
			continue
		}
		m, ok := v.(*ast.MappingNode)
		if !ok {
			return &placed{pair.Key.GetToken(), "<< merges settings, like <<: *name"}
		}
		merged = append(merged, m.Values...)
	}
	for _, pair := range merged {
		same := func(p *ast.MappingValueNode) bool { return p.Key.GetToken().Value == pair.Key.GetToken().Value }
		if !slices.ContainsFunc(own, same) {
			own = append(own, pair)
		}
	}
	n.Values = own
	return nil
}

// copy copies what is changed in place later.
func (r *resolver) copy(n ast.Node) (ast.Node, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, &placed{n.GetToken(), "the file is too large with its aliases written out"}
	}
	switch n := n.(type) {
	case *ast.SequenceNode:
		c := *n
		c.Values = slices.Clone(n.Values)
		for i, v := range c.Values {
			v, err := r.copy(v)
			if err != nil {
				return nil, err
			}
			c.Values[i] = v
		}
		return &c, nil
	case *ast.MappingNode:
		c := *n
		c.Values = make([]*ast.MappingValueNode, len(n.Values))
		for i, pair := range n.Values {
			p := *pair
			v, err := r.copy(pair.Value)
			if err != nil {
				return nil, err
			}
			p.Value = v
			c.Values[i] = &p
		}
		return &c, nil
	}
	return n, nil
}
