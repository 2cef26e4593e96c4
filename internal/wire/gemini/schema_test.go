package gemini_test

import (
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// The parameters of a tool are sent in the API's own form of a schema.
func TestParametersInTheAPIsForm(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"what the API knows stays as it is spelt", `{"type" : "object","properties":{"q":{"type":"string", "enum":["a"],"default": 1.0}},"required":["q"]}`, `{"type" : "object","properties":{"q":{"type":"string", "enum":["a"],"default": 1.0}},"required":["q"]}`},
		{"keywords that it does not know", `{"$schema":"x","type":"object","properties":{"$schema":{"type":"string","x-y":1}},"additionalProperties":{"type":"string"}}`, `{"type":"object","properties":{"$schema":{"type":"string"}}}`},
		{"formats of texts that it does not know", `{"type":"object","properties":{"u":{"type":"string","format":"uri"},"d":{"type":"string","format":"date-time"},"i":{"type":"integer","format":"int32"}}}`, `{"type":"object","properties":{"u":{"type":"string"},"d":{"type":"string","format":"date-time"},"i":{"type":"integer","format":"int32"}}}`},
		{"values that are no texts", `{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]},"c":{"const":1},"d":{"const":"x"}}}`, `{"type":"object","properties":{"n":{"type":"integer"},"c":{},"d":{"enum":["x"]}}}`},
		{"several types", `{"type":"object","properties":{"a":{"type":["string","integer"]},"b":{"type":["null"]},"c":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{"nullable":true},"c":{"anyOf":[{"type":"string"}],"nullable":true}}}`},
		{"references, with what stands beside them", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b","description":"mine"}},"$defs":{"a/b":{"type":"string","description":"its"}}}`, `{"type":"object","properties":{"a":{"description":"mine","type":"string"}}}`},
		{"references that lead nowhere or back", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"},"b":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}}}}`, `{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"object","properties":{"t":{"type":"object"}}}}}`},
		{"all of several", `{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{"type":"string"}},"required":["b","a"]}],"type":"object","$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"]}}}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`},
		{"schemas that are true", `{"type":"object","properties":{"a":true,"b":{"type":"array","items":true}}}`, `{"type":"object","properties":{"a":{},"b":{"type":"array","items":{}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parameters(t, tt.schema); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func parameters(t *testing.T, schema string) string {
	t.Helper()
	enc, err := gemini.EncodeRequest(&ninelives.Request{
		Messages: []ninelives.Message{ninelives.UserText("Hi")}, Tools: []ninelives.Tool{{Name: "look", Schema: []byte(schema)}},
	}, target())
	if err != nil {
		t.Fatal(err)
	}
	if !rawjson.Valid(enc.Body) {
		t.Fatalf("not valid: %s", enc.Body)
	}
	for tool := range rawjson.Elements(rawjson.Get(enc.Body, "tools")) {
		for f := range rawjson.Elements(rawjson.Get(tool, "functionDeclarations")) {
			return string(rawjson.Get(f, "parameters"))
		}
	}
	return ""
}

// References that multiply do not make a small schema a huge one.
func TestReferencesThatMultiplyEnd(t *testing.T) {
	var defs []string
	for i := range 24 {
		next := string(rune('a' + i + 1))
		defs = append(defs, `"`+string(rune('a'+i))+`":{"type":"object","properties":{"x":{"$ref":"#/$defs/`+next+`"},"y":{"$ref":"#/$defs/`+next+`"}}}`)
	}
	defs = append(defs, `"y":{"type":"string"}`)
	got := parameters(t, `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{`+strings.Join(defs, ",")+`}}`)
	if len(got) > 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
}

// The form of an answer is sent as a JSON schema, as far as the API knows it.
func TestOutputAsJSONSchema(t *testing.T) {
	schema := `{"type":"object","properties":{"kind":{"const":"cat"},"both":{"const":1,"enum":[1,2]},"t":{"$ref":"#/$defs/t","description":"mine"}},"patternProperties":{},"$defs":{"t":{"type":"string","pattern":"x"}}}`
	want := `{"type":"object","properties":{"kind":{"enum":["cat"]},"both":{"enum":[1,2]},"t":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`
	enc, err := gemini.EncodeRequest(&ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Output: &ninelives.Output{Schema: []byte(schema)}}, target())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rawjson.Path(enc.Body, "generationConfig", "responseJsonSchema")); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
