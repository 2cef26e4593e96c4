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
		reflect.TypeFor[addresses](): {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}},
		reflect.TypeFor[size]():      {AnyOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "string", Pattern: `^[0-9]+(\.[0-9]+)?\s*([KMG]i?)?[Bb]?$`}}},
		reflect.TypeFor[target]():    {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Ref: "#/$defs/weighted"}}},
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
	s.Properties["catalogue"].AdditionalProperties = &jsonschema.Schema{Ref: "#/$defs/candidate"}
	gateway := s.Properties["gateway"]
	enum(gateway.Properties["keys"].Items.Properties["budget"], "per", periods)
	gateway.Properties["journal"].Properties["retention"].Pattern = "^(none|until_done|[1-9][0-9]*d)$"
	route := gateway.Properties["routes"].AdditionalProperties
	enum(route, "mode", gatewayModes)
	enum(route, "order", orders)
	enum(route.Properties["policy"], "preset", heal.PresetNames())
	enum(route.Properties["policy"], "mode", gatewayModes)
	enum(route.Properties["policy"], "retry_mode", retryModes)
	degraded := route.Properties["degraded"]
	degraded.Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Const: jsonschema.Ptr[any]("unavailable")}, degraded.Items}}
	plain(s)
	plain(candidate)
	weighted := candidate.CloneSchemas()
	weighted.Properties["model"] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Ref: "#/$defs/candidate"}}, Description: "The provider's own model name; alone, any model."}
	weighted.Properties["weight"] = &jsonschema.Schema{Type: "number", ExclusiveMinimum: jsonschema.Ptr(0.0), Description: "Its share under order: weighted. Default: 1."}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "ninelives.yaml"
	s.Description = "Configuration of Nine Lives. Texts may refer to environment variables: ${NAME}, ${NAME:-default}."
	s.Defs = map[string]*jsonschema.Schema{"candidate": candidate, "weighted": weighted}
	return s
}

// plain takes null out of what may be: a setting is left out instead.
func plain(s *jsonschema.Schema) {
	s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "" }) // one of several
	if i := slices.Index(s.Types, "null"); i >= 0 {
		switch s.Types = slices.Delete(s.Types, i, i+1); len(s.Types) {
		case 0:
			s.Types = nil
		case 1:
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
	for _, one := range s.AnyOf {
		plain(one)
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
		wholeGateway:                          true,
		"gateway: {listen: ['127.0.0.1:9009', unix:/run/x.sock], limits: {body: 64 KiB, memory: 1000000}}":         true,
		"gateway: {routes: {a: {models: [{model: {provider: x, base_url: 'http://h/v1', model: m}, weight: 2}]}}}": true,
		"gateway: {routes: {a: {models: [{model: x, weight: 0}]}}}":                                                false,
		"gateway: {routes: {a: {degraded: [perhaps]}}}":                                                            false,
		"gateway: {journal: {retention: 30}}":                                                                      false,
		"gateway: {keys: [{nam: x}]}":                                                                              false,
		"gateway: {limits: {body: 3 pounds}}":                                                                      false,
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
