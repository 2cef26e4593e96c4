package anthropic

import (
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// outputSupport is how the target enforces the output by itself. A schema that
// the native form cannot express is left to a forced tool; there is no JSON
// mode without a schema.
func outputSupport(o *ninelives.Output, t wire.Target) ninelives.SchemaSupport {
	support := wire.OutputSupport(o, t)
	switch {
	case support == ninelives.SchemaNative && closable(o.Schema), support == ninelives.SchemaTool:
		return support
	case support == ninelives.SchemaNative && !t.Dialect.NoTools:
		return ninelives.SchemaTool
	}
	return ninelives.SchemaNone
}

// outputName is the name of the forced tool where the caller gave none.
const outputName = "structured_output"

// forcedOutput is the tool that stands in for a schema where the target can
// only force a tool; nil otherwise.
func (e *request) forcedOutput() *ninelives.Tool {
	o := e.req.Output
	if e.support != ninelives.SchemaTool {
		return nil
	}
	t := ninelives.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema, Strict: o.Strict}
	if t.Name == "" {
		t.Name = outputName
	}
	for slices.ContainsFunc(e.req.Tools, func(other ninelives.Tool) bool { return other.Name == t.Name }) {
		t.Name += "_"
	}
	if t.Description == "" {
		t.Description = "Give the final answer."
	}
	return &t
}

// outputConfig writes the native form of the output and the effort together
// with what else the caller's own parameter has.
func (e *request) outputConfig(think thinking, own []byte) {
	w, o := &e.w, e.req.Output
	native := e.support == ninelives.SchemaNative
	own = without(own, "effort")
	if o != nil {
		own = without(own, "format")
	}
	if !native && think.effort == "" && rawjson.Empty(own) || !e.param("output_config") {
		return
	}
	at := w.Open('{')
	if think.effort != "" {
		w.StringMember("effort", think.effort)
	}
	if native {
		w.Name("format")
		w.begin("json_schema")
		w.RawMember("schema", closed(o.Schema, e.target.Dialect.SchemaDrop))
		w.Close('}')
	}
	w.Rest(at, own, nil)
	w.Close('}')
}
