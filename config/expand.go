package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// reference is ${NAME} or ${NAME:-default}; $${ is a plain ${.
var reference = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand fills in the environment references below a node. A variable that is
// not set and has no default is an error: an empty key or URL would fail later
// and elsewhere.
func (s *source) expand(n ast.Node) (ast.Node, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			v, err := s.expand(pair.Value)
			if err != nil {
				return nil, err
			}
			pair.Value = v
		}
	case *ast.SequenceNode:
		for i, e := range n.Values {
			v, err := s.expand(e)
			if err != nil {
				return nil, err
			}
			n.Values[i] = v
		}
	case *ast.StringNode:
		return s.expandText(n)
	}
	return n, nil
}

func (s *source) expandText(n *ast.StringNode) (ast.Node, error) {
	if strings.Contains(reference.ReplaceAllString(n.Value, ""), "${") {
		return nil, &placed{n.GetToken(), "a variable is written ${NAME} or ${NAME:-default}, and a plain ${ as $${"}
	}
	var missing string
	text := reference.ReplaceAllStringFunc(n.Value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		m := reference.FindStringSubmatch(found)
		if value, ok := lookup(s.env, m[1]); ok && (value != "" || m[2] == "") {
			if len(value) > 3 {
				if s.filled == nil {
					s.filled = make(map[string]string)
				}
				s.filled[value] = m[1]
			}
			return value
		}
		if m[2] == "" && missing == "" {
			missing = m[1]
		}
		return m[3]
	})
	if missing != "" {
		return nil, &placed{n.GetToken(), fmt.Sprintf("${%s}: this variable is not set (write ${%s:-…} for a default)", missing, missing)}
	}
	if text == n.Value {
		return n, nil
	}
	t := *n.GetToken()
	t.Value, t.Origin = text, text
	// An unquoted reference may stand for a number or a truth value, but
	// never for more than one scalar.
	if n.GetToken().Type == token.StringType {
		if tree, err := parser.ParseBytes([]byte(text), 0); err == nil && len(tree.Docs) == 1 {
			switch v := tree.Docs[0].Body.(type) {
			case *ast.IntegerNode:
				v.Token.Position = t.Position
				return v, nil
			case *ast.FloatNode:
				v.Token.Position = t.Position
				return v, nil
			case *ast.BoolNode:
				v.Token.Position = t.Position
				return v, nil
			}
		}
	}
	t.Type = token.StringType
	return ast.String(&t), nil
}
