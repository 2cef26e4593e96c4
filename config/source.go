package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/provider"
)

// Problem is something wrong in a file, with its place.
type Problem struct {
	File string
	// Line and Column count from 1; 0 means the file as a whole.
	Line    int
	Column  int
	Message string
	// Err is the cause, such as a *provider.KeyError; nil if the file itself is.
	Err error
}

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }

// Error is "file:line:column: message".
func (p Problem) Error() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// source is one file as a tree.
type source struct {
	name string
	env  provider.Env
	root *ast.MappingNode // nil: the file is empty
	// filled are the values that were filled in, by value: they may be keys,
	// and a problem must not tell them.
	filled map[string]string
}

// parse reads a file's text into a tree, under our names and with its
// environment references still in place.
func parse(name string, text []byte, env provider.Env) (*source, error) {
	s := &source{name: name, env: env}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, s.problem(err)
	}
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if s.root != nil {
			return nil, s.at(doc.Body, "a configuration is one document: remove the line ---")
		}
		body, err := (&resolver{anchors: map[string]ast.Node{}}).resolve(doc.Body)
		if err != nil {
			return nil, s.problem(err)
		}
		root, ok := body.(*ast.MappingNode)
		if !ok {
			return nil, s.at(doc.Body, "a configuration is made of settings like \"model: …\"")
		}
		s.root = root
	}
	if s.root != nil {
		s.adopt()
	}
	return s, nil
}

// at is a problem at a node.
func (s *source) at(n ast.Node, format string, args ...any) Problem {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // the mapping itself stands at its first colon
	}
	return s.atToken(n.GetToken(), fmt.Sprintf(format, args...))
}

func (s *source) atToken(t *token.Token, message string) Problem {
	for value, name := range s.filled {
		message = strings.ReplaceAll(message, value, "${"+name+"}")
	}
	p := Problem{File: s.name, Message: message}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return p
}

// problem gives a decoder's error its place and plain words.
func (s *source) problem(err error) Problem {
	var own *placed
	if errors.As(err, &own) {
		return s.atToken(own.token, own.message)
	}
	var y yaml.Error
	if errors.As(err, &y) {
		message := y.GetMessage()
		var mismatch *yaml.TypeError
		if errors.As(err, &mismatch) {
			message = "expected " + kindName(mismatch.DstType) + ", not " + article(y.GetToken())
		}
		return s.atToken(y.GetToken(), message)
	}
	return Problem{File: s.name, Message: err.Error()}
}

func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "settings of its own"
	}
	return "a text"
}

func article(t *token.Token) string {
	if t == nil || len(t.Value) > 40 || strings.TrimSpace(t.Value) == "" {
		return "this"
	}
	return `"` + t.Value + `"`
}

// placed is an error with its place, made while decoding.
type placed struct {
	token   *token.Token
	message string
}

func (p *placed) Error() string { return p.message }

// decode reads a node strictly into v, after filling in the environment. Every
// setting that is not known is told, not only the first.
func (s *source) decode(n ast.Node, v any) []Problem {
	n, err := s.expand(n)
	if err != nil {
		return []Problem{s.problem(err)}
	}
	if unknown := s.unknown(n, reflect.TypeOf(v).Elem()); unknown != nil {
		return unknown
	}
	if err := yaml.NodeToValue(n, v); err != nil {
		return []Problem{s.problem(err)}
	}
	return nil
}

// unknown lists the settings below n that the type t has no field for.
func (s *source) unknown(n ast.Node, t reflect.Type) []Problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var problems []Problem
	switch n := n.(type) {
	case *ast.MappingNode:
		switch t.Kind() {
		case reflect.Struct:
			names := fieldNames(t)
			for _, pair := range n.Values {
				name := pair.Key.GetToken().Value
				i := slices.Index(names, name)
				if i < 0 {
					problems = append(problems, s.at(pair.Key, "there is no setting %q here%s", name, nearest.Hint(name, names)))
					continue
				}
				problems = append(problems, s.unknown(pair.Value, t.Field(i).Type)...)
			}
		case reflect.Map:
			for _, pair := range n.Values {
				problems = append(problems, s.unknown(pair.Value, t.Elem())...)
			}
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for _, v := range n.Values {
				problems = append(problems, s.unknown(v, t.Elem())...)
			}
		}
	}
	return problems
}

// fieldNames are the settings of a struct, by index of its fields.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

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
}

// adopt brings a tree under our names: camel case or snake case, the names of
// other tools, and where the source designs keep the same settings deeper
// (agents.defaults of 000; codebuddy.failover.providers and
// codebuddy.contextWindow of 001).
func (s *source) adopt() {
	s.lift("codebuddy.failover.providers", "fallbackModels")
	s.lift("codebuddy.contextWindow", "window")
	s.lift("agents.defaults", "")
	rename(s.root, true)
}

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
			rename(pair.Value, !settings || !slices.Contains([]string{"modelPresets", "catalogue", "headers"}, t.Value))
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			rename(v, settings)
		}
	}
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

// reference is ${NAME} or ${NAME:-default}; $${ is a plain ${.
var reference = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

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

// duration is a time with its unit.
type duration time.Duration

// UnmarshalYAML reads "30s", "1m30s", "500ms".
func (d *duration) UnmarshalYAML(n ast.Node) error {
	text, ok := n.(*ast.StringNode)
	if !ok {
		return &placed{n.GetToken(), fmt.Sprintf("%s needs a unit: write it like 30s or 2m", article(n.GetToken()))}
	}
	t, err := time.ParseDuration(strings.TrimSpace(text.Value))
	if err != nil || t < 0 {
		return &placed{n.GetToken(), fmt.Sprintf("%s is no duration: write it like 30s or 2m", article(n.GetToken()))}
	}
	*d = duration(t)
	return nil
}

// secret is a credential in a file.
type secret struct{ provider.Secret }

// UnmarshalYAML reads the text of a credential.
func (s *secret) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.StringNode:
		s.Secret = provider.NewSecret(n.Value)
	case *ast.IntegerNode:
		s.Secret = provider.NewSecret(n.GetToken().Value)
	default:
		return &placed{n.GetToken(), "expected a key as text"}
	}
	return nil
}

// IsZero reports that there is none.
func (s secret) IsZero() bool { return s.Empty() }

// ref is a model by name or written out.
type ref struct {
	name      string
	candidate *Candidate
	where     Problem // its place, without a message
}
