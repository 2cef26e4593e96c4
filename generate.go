package ninelives

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ninelives-ai/ninelives/internal/jsonout"
)

// OutputError says that an answer is not in the form that was asked for.
// errors.As finds it in the error of a healed model as well, which has then
// asked once for a correction; nothing here asks again.
type OutputError struct {
	// Raw is the answer as the model wrote it.
	Raw string
	// Problems are all the ways in which it misses the form, "/path: what".
	Problems []string
	// Response is the whole answer.
	Response *Response
}

// Error is one line with the first problems. It leaves the answer out: that
// may be long, and is in Raw.
func (e *OutputError) Error() string {
	const shown = 3
	list := strings.Join(e.Problems[:min(shown, len(e.Problems))], "; ")
	if more := len(e.Problems) - shown; more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}
	return "the answer does not have the form that was asked for: " + list
}

// GenerateAs makes one call and returns its answer as a value of type T. The
// schema of T is the form that the answer must satisfy: fields are named by
// their json tags, described by their jsonschema tags, and required unless
// they are omitempty.
//
// Where req.Output is set, its name, its strictness and its default hold; its
// schema is replaced by T's. An answer that misses the form is an *OutputError,
// a refusal a *Fault.
func GenerateAs[T any](ctx context.Context, m Model, req *Request) (T, error) {
	var value T
	schema, boxed, err := schemaOf[T]()
	if err != nil {
		return value, err
	}
	out, resp, err := generateOutput(ctx, m, req, schema)
	if err != nil {
		return value, err
	}
	if boxed {
		box := struct {
			Value T `json:"value"`
		}{}
		if err = json.Unmarshal(out, &box); err == nil {
			return box.Value, nil
		}
		if resp.OutputDefaulted { // the caller's default may well be the bare value
			err = json.Unmarshal(out, &value)
		}
	} else {
		err = json.Unmarshal(out, &value)
	}
	if err != nil {
		return value, &OutputError{Raw: string(out), Problems: []string{"it does not fit the Go type: " + err.Error()}, Response: resp}
	}
	return value, nil
}

// GenerateJSON makes one call and returns its answer as JSON that satisfies
// schema; a nil schema takes any JSON value. Where req.Output is set, its
// name, its strictness and its default hold. Errors are those of GenerateAs.
func GenerateJSON(ctx context.Context, m Model, req *Request, schema []byte) ([]byte, error) {
	out, _, err := generateOutput(ctx, m, req, schema)
	return out, err
}

// generateOutput makes the call and checks what no healing model has checked.
func generateOutput(ctx context.Context, m Model, req *Request, schema []byte) ([]byte, *Response, error) {
	var compiled *jsonout.Schema
	if schema != nil {
		var err error
		if compiled, err = jsonout.Compile(schema); err != nil {
			return nil, nil, err
		}
	}
	asked := *req
	output := Output{}
	if req.Output != nil {
		output = *req.Output
	}
	output.Schema = schema
	if output.Name == "" {
		output.Name = "answer"
	}
	asked.Output = &output
	resp, err := Generate(ctx, m, &asked)
	switch {
	case err != nil:
		return nil, nil, err
	case resp.Output != nil:
		return resp.Output, resp, nil
	case resp.Finish == FinishRefusal || resp.Text() == "" && resp.Message.Refusal() != "":
		return nil, nil, &Fault{Class: ClassRefusal, Scope: ScopeRequest, Phase: PhaseAnswer, Candidate: resp.Candidate,
			Message: "the model declined: " + resp.Message.Refusal(), Billed: BilledYes, Partial: resp}
	}
	checked := jsonout.Check(resp.Text(), compiled)
	if resp.Finish == FinishLength {
		checked.Problems = []jsonout.Problem{{Message: "the answer was cut at its limit of tokens"}}
	}
	if checked.OK() {
		return checked.JSON, resp, nil
	}
	e := &OutputError{Raw: resp.Text(), Response: resp}
	for _, p := range checked.Problems {
		e.Problems = append(e.Problems, p.String())
	}
	return nil, nil, e
}

// schemaOf gives the schema of T. Providers want an object at the root: any
// other type is boxed into one as its member "value".
func schemaOf[T any]() (schema []byte, boxed bool, err error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, false, fmt.Errorf("type %s has no JSON schema: %w", reflect.TypeFor[T](), err)
	}
	settle(s)
	if s.Type != "object" {
		s = &jsonschema.Schema{
			Type:                 "object",
			Properties:           map[string]*jsonschema.Schema{"value": s},
			Required:             []string{"value"},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		}
		boxed = true
	}
	schema, err = json.Marshal(s)
	return schema, boxed, err
}

// settle takes back that a slice may be null, all the way down: providers'
// strict modes dislike it, and a model that has nothing to list says [].
func settle(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	for _, p := range s.Properties {
		settle(p)
	}
	settle(s.Items)
	settle(s.AdditionalProperties)
}
