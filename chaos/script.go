package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
)

// script is the form of a script file.
type script struct {
	Scenarios []Scenario `yaml:"scenarios"`
}

// Load reads scenarios from a YAML or JSON file; see Parse.
func Load(path string) ([]Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenarios: %w", err)
	}
	scenarios, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return scenarios, nil
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
	var s script
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
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
