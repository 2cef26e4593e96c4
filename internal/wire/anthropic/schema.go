package anthropic

import (
	"slices"

	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

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

// toolSchema brings the schema of a tool's arguments into the form that the
// protocol takes: an object, without alternatives at its top level. Their
// properties are offered together, which it reports; the tool itself knows
// which go together.
//
// Source: the complaints "input_schema.type: Field required" and "input_schema
// does not support oneOf, allOf, or anyOf at the top level".
func toolSchema(schema []byte) (object []byte, merged bool) {
	if schema == nil {
		return []byte(`{"type":"object"}`), false
	}
	var alternatives [][]byte
	isObject := false
	for m := range rawjson.Members(schema) {
		switch string(m.Name) {
		case "type":
			isObject = rawjson.Is(m.Value, "object")
		case "anyOf", "oneOf", "allOf":
			for s := range rawjson.Elements(m.Value) {
				alternatives = append(alternatives, s)
			}
		}
	}
	if isObject && alternatives == nil {
		return schema, false
	}
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("type", "object")
	var properties rawjson.Kept
	var names []string
	add := func(s []byte) {
		for p := range rawjson.Members(rawjson.Get(s, "properties")) {
			if !slices.Contains(names, string(p.Name)) {
				names = append(names, string(p.Name))
				properties.Add(p)
			}
		}
	}
	add(schema)
	for _, s := range alternatives {
		add(s)
	}
	for m := range rawjson.Members(schema) {
		switch string(m.Name) {
		case "type", "anyOf", "oneOf", "allOf", "properties":
		default:
			w.Raw(m.Raw)
		}
	}
	if all := properties.Object(); all != nil {
		w.RawMember("properties", all)
	}
	w.Close('}')
	return w.B, alternatives != nil
}
