package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// typed is a Tool whose arguments are an A: its schema is drawn from the type.
type typed[A any] struct {
	spec  Spec
	needs func(args A) ([]Need, error)
	run   func(ctx context.Context, call *Call, args A) Result
}

func (t *typed[A]) Spec() Spec { return t.spec }

func (t *typed[A]) Needs(raw []byte) ([]Need, error) {
	args, err := arguments[A](raw)
	if err != nil || t.needs == nil {
		return nil, err
	}
	return t.needs(args)
}

func (t *typed[A]) Run(ctx context.Context, call *Call) Result {
	args, err := arguments[A](call.Arguments)
	if err != nil {
		return failure(err)
	}
	r := t.run(ctx, call, args)
	if r.IsError && r.Summary == "" {
		r.Summary = firstLine(r.Text())
	}
	return r
}

// failure is the result of a call that failed, for the model and for people.
func failure(err error) Result {
	r := ErrorResult(err.Error())
	r.Summary = firstLine(err.Error())
	return r
}

// firstLine is what people are shown of a text of several lines.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, ErrorPrefix), "\n")
	return visible.EscapedLine(line)
}

// arguments reads what the model wrote.
func arguments[A any](raw []byte) (A, error) {
	var args A
	if err := json.Unmarshal(raw, &args, jsontext.AllowInvalidUTF8(true)); err != nil {
		return args, fmt.Errorf("the arguments do not fit the schema: %s", visible.EscapedLine(err.Error()))
	}
	return args, nil
}

// describe tells the model of a tool whose arguments are an A.
func describe[A any](name, description string) ninelives.Tool {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: its arguments have no schema: %v", name, err))
	}
	plain(schema)
	text, err := json.Marshal(schema, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("tool %s: its schema cannot be written: %v", name, err))
	}
	return ninelives.Tool{Name: name, Description: description, Schema: text}
}

// plain takes null from the types of lists: an empty list is left out instead,
// and some providers know no list of types.
func plain(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	if s.Items != nil {
		plain(s.Items)
	}
}
