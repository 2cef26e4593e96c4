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
