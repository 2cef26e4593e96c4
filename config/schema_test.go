package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	nodes "github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/heal"
)

var update = flag.Bool("update", false, "write docs/config.schema.json")

const schemaFile = "../docs/config.schema.json"

// schema is the published schema of the configuration file.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	candidate, err := jsonschema.For[Candidate](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[secret](): {Type: "string"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	enum := func(s *jsonschema.Schema, name string, words []string) {
		for _, w := range words {
			s.Properties[name].Enum = append(s.Properties[name].Enum, w)
		}
	}
	enum(candidate, "protocol", protocols)
	enum(candidate, "schema", schemas)
	enum(candidate, "replay", replays)
	model := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Ref: "#/$defs/candidate"}}}
	s, err := jsonschema.For[file](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[duration]():  {Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
		reflect.TypeFor[secret]():    {Type: "string"},
		reflect.TypeFor[ref]():       model,
		reflect.TypeFor[Candidate](): model,
	}})
	if err != nil {
		t.Fatal(err)
	}
	enum(s.Properties["policy"], "preset", heal.PresetNames())
	enum(s.Properties["policy"], "mode", modes)
	enum(s.Properties["policy"], "retry_mode", retryModes)
	agent := s.Properties["agent"]
	enum(agent.Properties["permissions"], "mode", permissionModes)
	enum(agent.Properties["permissions"], "profile", profiles)
	enum(agent.Properties["search"], "engine", engines)
	enum(agent.Properties["hooks"].Items, "on", wordsOf(nodes.HookPoints()...))
	plain(s)
	plain(candidate)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "ninelives.yaml"
	s.Description = "Configuration of Nine Lives. Texts may refer to environment variables: ${NAME}, ${NAME:-default}."
	s.Defs = map[string]*jsonschema.Schema{"candidate": candidate}
	return s
}

// plain takes null out of what may be: a setting is left out instead.
func plain(s *jsonschema.Schema) {
	if i := slices.Index(s.Types, "null"); i >= 0 {
		if s.Types = slices.Delete(s.Types, i, i+1); len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	}
	for _, p := range s.Properties {
		plain(p)
	}
	if s.Items != nil {
		plain(s.Items)
	}
	if s.AdditionalProperties != nil {
		plain(s.AdditionalProperties)
	}
}

func TestThePublishedSchemaIsUpToDate(t *testing.T) {
	text, err := json.MarshalIndent(schema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(schemaFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(schemaFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != string(text) {
		t.Errorf("%s is out of date: run go test ./config -update", schemaFile)
	}
}

func TestTheSchemaTakesWhatLoadTakes(t *testing.T) {
	resolved, err := schema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for source, good := range map[string]bool{
		whole: true,
		"model: openai/gpt-4o\npolicy: {preset: hardened, deadline: 1m30s, budget: {requests: 3}}\n": true,
		"modle: x":                            false,
		"policy: {deadline: 30}":              false,
		"policy: {preset: hardend}":           false,
		"modelPresets: {p: {protocol: soap}}": false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(source), &v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var instance any
		if err := json.Unmarshal(text, &instance); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(instance); (err == nil) != good {
			t.Errorf("schema on %q: %v, want good %v", strings.TrimSpace(source), err, good)
		}
	}
}
