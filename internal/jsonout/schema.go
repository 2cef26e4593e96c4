package jsonout

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
}

// Compile reads a JSON schema. Nothing is loaded from elsewhere: a $ref must
// point into the schema itself. A pattern that Go's regular expressions cannot
// express is not checked.
func Compile(schema []byte) (s *Schema, err error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("the output schema is not JSON: %s", oneLine(err.Error()))
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("the output schema is not a JSON schema: it must be an object")
	}
	defer func() {
		// The compiler of schemas is not ours, the schema may be anybody's.
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("the output schema is not a JSON schema: %s", oneLine(fmt.Sprint(p)))
		}
	}()
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(lenient)
	if err := c.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("the output schema is not a JSON schema: %s", reason(err))
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("the output schema is not a JSON schema: %s", reason(err))
	}
	return &Schema{compiled: compiled}, nil
}

// location is where the compiler believes the schema to be. It is no file: the
// name of a directory with a blank in it would not be found again.
const (
	place    = "schema:///"
	location = place + "output.json"
)

// placeless is a text of the compiler without the place.
func placeless(text string) string {
	return strings.NewReplacer(location, "", place, "").Replace(text)
}

// nowhere loads nothing.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}

// lenient takes the patterns that Go cannot compile (those that look ahead or
// behind) and matches everything by them.
func lenient(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	if strings.Contains(pattern, "(?") || strings.Contains(pattern, `\`) {
		return unchecked(pattern), nil
	}
	return nil, err
}

type unchecked string

func (unchecked) MatchString(string) bool { return true }
func (u unchecked) String() string        { return string(u) }

// reason is the innermost cause of a schema's rejection, in one line.
func reason(err error) string {
	var invalid *jsonschema.SchemaValidationError
	var v *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &v) {
		if list := flatten(v, nil); len(list) > 0 {
			return list[0].String()
		}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Sprintf("it refers to %s, and %v", placeless(load.URL), load.Err)
	}
	return oneLine(placeless(err.Error()))
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

// problems validates a JSON value and lists all that is wrong with it.
func (s *Schema) problems(value []byte) []Problem {
	if s == nil {
		return nil
	}
	if p := hugeNumber(value); p != nil {
		return []Problem{*p}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return []Problem{{Message: "the JSON is malformed: " + oneLine(err.Error())}}
	}
	err = s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Problem{{Message: oneLine(err.Error())}}
	}
	return flatten(invalid, nil)
}

// flatten lists the leaves of a validation error, each once.
func flatten(e *jsonschema.ValidationError, list []Problem) []Problem {
	if len(list) >= maxProblems {
		return list
	}
	if _, group := e.ErrorKind.(*kind.Group); len(e.Causes) == 0 && !group {
		p := Problem{Path: pointer(e.InstanceLocation), Message: oneLine(e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
		for _, q := range list {
			if p == q {
				return list
			}
		}
		return append(list, p)
	}
	for _, cause := range e.Causes {
		list = flatten(cause, list)
	}
	return list
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(p))
	}
	return b.String()
}

// hugeNumber finds a number whose exact value would fill the memory.
func hugeNumber(value []byte) *Problem {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		t, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		if t.Kind() != '0' {
			continue
		}
		text := t.String()
		if i := strings.IndexAny(text, "eE"); i >= 0 {
			if n, err := strconv.Atoi(text[i+1:]); err != nil || n > maxExponent || n < -maxExponent {
				return &Problem{Path: string(dec.StackPointer()), Message: "the number is out of range"}
			}
		}
	}
}

// maxExponent is beyond every number that a program can hold as a float.
const maxExponent = 400
