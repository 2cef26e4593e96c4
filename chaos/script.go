package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// script is the form of a script file.
type script struct {
	Scenarios []Scenario `yaml:"scenarios"`
}

// maxScript bounds a script: the YAML parser takes time that grows with the
// square of some files.
const maxScript = 256 << 10

// Load reads scenarios from a YAML or JSON file; see Parse.
func Load(path string) ([]Scenario, error) {
	data, err := readScript(path)
	if err == nil {
		var scenarios []Scenario
		if scenarios, err = Parse(data); err == nil {
			return scenarios, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxScript+1))
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("it cannot be read: %w", failed.Err)
	}
	return data, err
}

// Parse reads scenarios from YAML or JSON:
//
//	scenarios:
//	  - name: shaky
//	    steps:
//	      - {error: rate_limit, hint: seconds, wait: 2s}
//	      - {after: 10, end: cut}
//	      - text: Third time lucky.
//
// The fields are those of [Scenario] and [Step]; durations are written "1.5s".
// Unknown fields and words are errors that point into the file.
func Parse(data []byte) ([]Scenario, error) {
	switch {
	case len(data) > maxScript:
		return nil, fmt.Errorf("the script is larger than %d KB", maxScript>>10)
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("the script is no text in UTF-8")
	}
	var s script
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, plainly(err)
	}
	if len(s.Scenarios) == 0 {
		return nil, errors.New("there are no scenarios: the file needs a list named scenarios")
	}
	seen := map[string]bool{}
	for i, sc := range s.Scenarios {
		if sc.Name == "" {
			return nil, fmt.Errorf("scenario %d has no name: the name is the model that a client asks for; use \"*\" for every model", i+1)
		}
		if seen[sc.Name] {
			return nil, fmt.Errorf("scenario %q is there twice", sc.Name)
		}
		seen[sc.Name] = true
		if err := sc.Validate(); err != nil {
			return nil, err
		}
	}
	return s.Scenarios, nil
}

// plainly gives an error of the parser as one line: line, column, message.
func plainly(err error) error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return err
	}
	at, message := y.GetToken().Position, y.GetMessage()
	var mismatch *yaml.TypeError
	var misplaced *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &mismatch):
		message = "expected " + kindName(mismatch.DstType)
	case errors.As(err, &misplaced) && misplaced.Expected == ast.SequenceType:
		message = "expected a list"
	case errors.As(err, &misplaced) && misplaced.Expected == ast.MappingType:
		message = "expected fields of its own"
	}
	return fmt.Errorf("line %d, column %d: %s", at.Line, at.Column, message)
}

func kindName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 1.5s"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "fields of its own"
	}
	return "a text"
}
