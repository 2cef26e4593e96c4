package main

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/jsonout"
)

// readSchema takes the JSON schema of a flag from a file and makes sure that it is one
// that an answer can satisfy.
func readSchema(ctx context.Context, flag, name string) (*ninelives.Output, error) {
	data, err := readFile(ctx, flag, name, maxSchema)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, usagef("%s %s is no JSON schema: it is no text in UTF-8", flag, name)
	}
	compiled, err := jsonout.Compile(data)
	if err != nil {
		return nil, usagef("%s %s is no JSON schema: %s", flag, name, schemaWords(err))
	}
	if why := senseless(data, compiled); why != "" {
		return nil, usagef("%s %s %s", flag, name, why)
	}
	return &ninelives.Output{Name: schemaName(name), Schema: data}, nil
}

// schemaWords is an error of the compiler, to follow the name of the file.
func schemaWords(err error) string {
	return strings.NewReplacer("the output schema is not a JSON schema: ", "", "the output schema is not JSON", "it is not JSON").Replace(err.Error())
}

// senseless says why a schema, although it is one, cannot be meant.
func senseless(data []byte, compiled *jsonout.Schema) string {
	var members map[string]jsontext.Value
	_ = json.Unmarshal(data, &members, jsontext.AllowDuplicateNames(true)) // true and false have none
	if len(members) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(members)), isKeyword) {
		if _, wrapped := members["schema"]; wrapped {
			return "has the schema in its member \"schema\": give that alone"
		}
		if _, wrapped := members["json_schema"]; wrapped {
			return "has the schema in its member \"json_schema\": give that alone"
		}
		return "has no keyword of a JSON schema, such as \"type\": is it an example of the answer?"
	}
	for _, p := range jsonout.Check("null", compiled).Problems {
		if strings.Contains(p.Message, "reference cycle") {
			return "refers to itself in a circle: no answer can be held against it"
		}
		if p.Path == "" && p.Message == "false schema" {
			return "is false: no answer satisfies it"
		}
	}
	return ""
}

// keywords of JSON schema, of any draft. Source: json-schema.org,
// specifications draft-04 to 2020-12.
var keywords = strings.Fields(`type enum const properties patternProperties additionalProperties items prefixItems
	additionalItems unevaluatedItems unevaluatedProperties contains required dependencies dependentRequired
	dependentSchemas propertyNames allOf anyOf oneOf not if then else minLength maxLength pattern format minimum
	maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems minContains maxContains
	minProperties maxProperties contentEncoding contentMediaType title description default examples deprecated
	readOnly writeOnly definitions`)

func isKeyword(name string) bool {
	return strings.HasPrefix(name, "$") || slices.Contains(keywords, name)
}

// schemaName makes a file's name one that providers take.
func schemaName(path string) string {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, base)
	if name == "" {
		return "answer"
	}
	return name[:min(len(name), 64)]
}
