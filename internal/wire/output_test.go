package wire

import (
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestOutputSupportIsWhatTheTargetCanEnforce(t *testing.T) {
	const none, object, tool, native = ninelives.SchemaNone, ninelives.SchemaObject, ninelives.SchemaTool, ninelives.SchemaNative
	form, any := &ninelives.Output{Schema: []byte(`{}`)}, &ninelives.Output{}
	for _, c := range []struct {
		name    string
		output  *ninelives.Output
		can     ninelives.SchemaSupport
		dialect Dialect
		want    ninelives.SchemaSupport
	}{
		{"free text", nil, native, Dialect{}, none},
		{"a schema", form, native, Dialect{}, native},
		{"any JSON", any, native, Dialect{}, object},
		{"a schema by a tool", form, tool, Dialect{}, tool},
		{"any JSON by a tool", any, tool, Dialect{}, none},
		{"a schema by a tool where there are none", form, tool, Dialect{NoTools: true}, none},
		{"found weaker", form, native, Dialect{SchemaSet: true, Schema: object}, object},
		{"found to have nothing", form, native, Dialect{SchemaSet: true}, none},
	} {
		target := Target{Candidate: ninelives.Candidate{Capabilities: ninelives.Capabilities{Schema: c.can}}, Dialect: c.dialect}
		if got := OutputSupport(c.output, target); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestInstructionForAnOutput(t *testing.T) {
	for _, o := range []*ninelives.Output{{}, {Schema: []byte(`{"type":"object"}`), Description: "an invoice"}} {
		text := OutputInstruction(o)
		if !strings.Contains(text, "JSON") || !strings.Contains(text, string(o.Schema)) || !strings.Contains(text, o.Description) {
			t.Errorf("%+v: %q", o, text)
		}
	}
}

func TestInstructJoinsTheLastOfTheLeadingInstructions(t *testing.T) {
	system, developer, user := ninelives.SystemText("a"), ninelives.Message{Role: ninelives.RoleDeveloper, Parts: []ninelives.Part{ninelives.Text{Text: "b"}}}, ninelives.UserText("c")
	for _, c := range []struct{ in, want []ninelives.Message }{
		{[]ninelives.Message{user}, []ninelives.Message{ninelives.SystemText("X"), user}},
		{[]ninelives.Message{system, user, system}, []ninelives.Message{ninelives.SystemText("a\n\nX"), user, system}},
		{[]ninelives.Message{system, developer, user}, []ninelives.Message{system, {Role: ninelives.RoleDeveloper, Parts: []ninelives.Part{ninelives.Text{Text: "b\n\nX"}}}, user}},
	} {
		req := &ninelives.Request{Messages: c.in}
		before := req.Clone()
		if got := Instruct(req, "X"); !reflect.DeepEqual(got.Messages, c.want) {
			t.Errorf("%+v became %+v", c.in, got.Messages)
		}
		if !reflect.DeepEqual(req, before) {
			t.Errorf("the request itself was changed: %+v", req)
		}
	}
}
