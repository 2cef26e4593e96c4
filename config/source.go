package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	// trusted: it is the user's own, or the user trusts it.
	trusted bool
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
		if _, null := body.(*ast.NullNode); null {
			continue
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
		return s.atToken(y.GetToken(), s.words(err, y))
	}
	return Problem{File: s.name, Message: err.Error()}
}

// words says what the parser says in words of a user.
func (s *source) words(err error, y yaml.Error) string {
	var mismatch *yaml.TypeError
	var overflow *yaml.OverflowError
	message := y.GetMessage()
	switch {
	case errors.As(err, &mismatch):
		return "expected " + kindName(mismatch.DstType) + ", not " + article(y.GetToken())
	case errors.As(err, &overflow):
		return article(y.GetToken()) + " is too large a number"
	case strings.HasPrefix(message, "found character '\t'"):
		return "a tab stands here: indent with spaces"
	case strings.HasPrefix(message, "tab character cannot"):
		return "a tab stands in this line: indent with spaces"
	case strings.HasPrefix(message, "mapping value is not allowed"):
		return `a second ":" in one value: put the value in quotes`
	case strings.Contains(message, "must be specified"):
		return message + " (inside { } and [ ] a value such as ${NAME} stands in quotes)"
	}
	return message
}

// kindName says what a setting takes.
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

// article is what stands at a place, if it can be shown in a line.
func article(t *token.Token) string {
	switch {
	case t == nil || len(t.Value) > 40 || strings.TrimSpace(t.Value) == "":
		return "this"
	case t.Type == token.SequenceStartType, t.Type == token.SequenceEntryType:
		return "a list"
	case t.Type == token.MappingStartType, t.Type == token.MappingValueType:
		return "settings"
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
	if misshapen := s.misshapen(n, reflect.TypeOf(v).Elem()); misshapen != nil {
		return misshapen
	}
	if err := yaml.NodeToValue(n, v); err != nil {
		return []Problem{s.problem(err)}
	}
	return nil
}

// readsItself are the types that take a node in their own way.
var readsItself = reflect.TypeFor[yaml.NodeUnmarshaler]()

// misshapen lists what below n does not have the shape of the type t: settings
// that there is no field for, one value where several are expected and the
// other way round, and fractions of what is counted, which the decoder would
// cut off.
func (s *source) misshapen(n ast.Node, t reflect.Type) []Problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, null := n.(*ast.NullNode); null || reflect.PointerTo(t).Implements(readsItself) {
		return nil
	}
	wrong := []Problem{s.at(n, "expected %s, not %s", kindName(t), article(n.GetToken()))}
	var problems []Problem
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		m, ok := n.(*ast.MappingNode)
		if !ok {
			return wrong
		}
		for _, pair := range m.Values {
			inner := t
			if t.Kind() == reflect.Map {
				inner = t.Elem()
			} else {
				names, name := fieldNames(t), pair.Key.GetToken().Value
				i := slices.Index(names, name)
				if i < 0 {
					problems = append(problems, s.at(pair.Key, "there is no setting %q here%s", written(pair.Key), nearest.Hint(name, names)))
					continue
				}
				inner = t.Field(i).Type
			}
			problems = append(problems, s.misshapen(pair.Value, inner)...)
		}
	case reflect.Slice:
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			return wrong
		}
		for _, v := range list.Values {
			problems = append(problems, s.misshapen(v, t.Elem())...)
		}
	default:
		switch n.(type) {
		case *ast.MappingNode, *ast.SequenceNode:
			return wrong
		case *ast.FloatNode, *ast.NanNode, *ast.InfinityNode:
			if t.Kind() == reflect.Int {
				return wrong
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
