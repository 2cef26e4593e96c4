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

// nativeDrop are the keywords that native output rejects. The answer is
// checked against the whole schema anyway.
//
// Source: the structured outputs page, 2026 (limits of the schema).
var nativeDrop = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}

// closable reports whether native output can express a schema: every object
// must be closed, so that one with members of any name has no form.
func closable(schema []byte) bool {
	ok := true
	walkSchemas(schema, 0, func(s []byte) {
		extra := rawjson.Get(s, "additionalProperties")
		if extra != nil && !slices.Equal(extra, []byte("false")) || has(s, "patternProperties") {
			ok = false
		}
	})
	return ok
}

// closed closes every object of a schema and drops what native output rejects.
func closed(schema []byte, drop []string) []byte {
	drop = append(slices.Clone(nativeDrop), drop...)
	return closeObjects(rawjson.DropKeywords(schema, drop), 0)
}

// closeObjects writes additionalProperties: false into the objects of a schema
// that do not have it.
func closeObjects(schema []byte, depth int) []byte {
	if rawjson.Kind(schema) != '{' || depth > maxSchemaDepth {
		return schema
	}
	var w rawjson.Writer
	w.Open('{')
	object, isClosed := has(schema, "properties"), has(schema, "additionalProperties")
	for m := range rawjson.Members(schema) {
		if string(m.Name) == "type" && rawjson.Is(m.Value, "object") {
			object = true
		}
		switch role(string(m.Name)) {
		case oneSchema:
			w.RawMember(string(m.Name), closeObjects(m.Value, depth+1))
		case namedSchemas:
			w.Name(string(m.Name))
			w.Open('{')
			for named := range rawjson.Members(m.Value) {
				w.RawMember(string(named.Name), closeObjects(named.Value, depth+1))
			}
			w.Close('}')
		case manySchemas:
			w.Name(string(m.Name))
			w.Open('[')
			for s := range rawjson.Elements(m.Value) {
				w.Raw(closeObjects(s, depth+1))
			}
			w.Close(']')
		default:
			w.Raw(m.Raw)
		}
	}
	if object && !isClosed {
		w.BoolMember("additionalProperties", false)
	}
	w.Close('}')
	return w.B
}

const maxSchemaDepth = 64

// What the member of a schema holds.
const (
	noSchema = iota
	oneSchema
	namedSchemas // an object of schemas
	manySchemas  // an array of schemas
)

func role(keyword string) int {
	switch keyword {
	case "items", "not", "additionalItems", "contains", "if", "then", "else":
		return oneSchema
	case "properties", "$defs", "definitions":
		return namedSchemas
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return manySchemas
	}
	return noSchema
}

// walkSchemas visits a schema and all schemas inside it.
func walkSchemas(schema []byte, depth int, visit func([]byte)) {
	if rawjson.Kind(schema) != '{' || depth > maxSchemaDepth {
		return
	}
	visit(schema)
	for m := range rawjson.Members(schema) {
		switch role(string(m.Name)) {
		case oneSchema:
			walkSchemas(m.Value, depth+1, visit)
		case namedSchemas:
			for named := range rawjson.Members(m.Value) {
				walkSchemas(named.Value, depth+1, visit)
			}
		case manySchemas:
			for s := range rawjson.Elements(m.Value) {
				walkSchemas(s, depth+1, visit)
			}
		}
	}
}
