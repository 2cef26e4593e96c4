package gemini

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// jsonSchemaKeywords are what responseJsonSchema and parametersJsonSchema
// understand of JSON schema.
//
// Source: the reference of GenerationConfig.responseJsonSchema, 2026, which
// also says that only names with a $ may stand beside a $ref.
var jsonSchemaKeywords = []string{
	"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
	"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering",
}

// openAPIKeywords are what the Schema message of the API has.
//
// Source: the reference of Schema, 2026.
var openAPIKeywords = []string{
	"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
	"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum",
}

// stringFormats are the formats that the API takes for strings.
var stringFormats = []string{"date-time", "enum"}

// jsonSchema is a schema without what the API does not understand. One that it
// understands stays as it is. A const becomes an enum of one, and beside a
// reference nothing may stand.
func jsonSchema(schema []byte, drop []string) []byte {
	changed := false
	edited := rawjson.EditKeywords(schema, func(within []byte, m rawjson.Member) (rawjson.Member, bool) {
		name := string(m.Name)
		if name == "const" && rawjson.Get(within, "enum") == nil && !slices.Contains(drop, "enum") {
			changed = true
			list := slices.Concat([]byte{'['}, m.Value, []byte{']'})
			return rawjson.Member{Name: []byte("enum"), Value: list, Raw: append([]byte(`"enum":`), list...)}, true
		}
		ok := slices.Contains(jsonSchemaKeywords, name) && !slices.Contains(drop, name)
		if ok && name[0] != '$' && rawjson.Get(within, "$ref") != nil {
			ok = false
		}
		changed = changed || !ok
		return m, ok
	})
	if !changed {
		return schema
	}
	return edited
}

// openAPISchema writes a JSON schema as the API's own Schema: references are
// put in where they stand, a list of types becomes one type that may be null,
// const becomes an enum of one, and oneOf becomes anyOf. One that is such a
// Schema already stays as it is.
func openAPISchema(schema []byte, drop []string) []byte {
	keep := func(keyword string) bool {
		return slices.Contains(openAPIKeywords, keyword) && !slices.Contains(drop, keyword)
	}
	c := converter{root: schema, keep: keep}
	c.write(schema, nil)
	if !c.changed {
		return schema
	}
	return c.w.B
}

// maxSchema ends the writing out of references, in bytes: they may multiply.
const maxSchema = 256 << 10

// converter writes a schema in the API's own form.
type converter struct {
	w       rawjson.Writer
	root    []byte
	keep    func(string) bool
	changed bool
}

// write writes one schema. within are the references that lead to it: one that
// comes back to itself becomes an object of anything.
func (c *converter) write(schema []byte, within []string) {
	if rawjson.Kind(schema) != '{' {
		c.changed = true
		c.w.RawString("{}") // true and false have no form
		return
	}
	if ref := rawjson.String(rawjson.Get(schema, "$ref")); ref != "" {
		c.changed = true
		target, ok := c.resolve(ref)
		if !ok || slices.Contains(within, ref) || len(within) > 16 || len(c.w.B) > maxSchema {
			c.w.RawString(`{"type":"object"}`)
			return
		}
		c.write(merge(target, schema), append(slices.Clone(within), ref))
		return
	}
	if list := rawjson.Get(schema, "allOf"); rawjson.Kind(list) == '[' {
		c.changed = true
		c.write(c.mergeAll(schema, list), within)
		return
	}
	c.w.Open('{')
	c.members(schema, within)
	c.w.Close('}')
}

func (c *converter) members(schema []byte, within []string) {
	w := &c.w
	isString := rawjson.Is(rawjson.Get(schema, "type"), "string")
	for m := range rawjson.Members(schema) {
		name := string(m.Name)
		kind := rawjson.Kind(m.Value)
		switch {
		case name == "type" && kind == '[':
			c.changed = true
			c.types(m.Value)
		case name == "const" && c.keep("enum"):
			c.changed = true
			if kind == '"' {
				w.Name("enum")
				w.Open('[')
				w.Raw(m.Value)
				w.Close(']')
			}
		case name == "enum" && !allStrings(m.Value):
			c.changed = true // the API takes texts only
		case name == "format" && isString && !slices.ContainsFunc(stringFormats, func(f string) bool { return rawjson.Is(m.Value, f) }):
			c.changed = true
		case name == "properties" && kind == '{' && c.keep(name):
			w.Name(name)
			w.Open('{')
			for sub := range rawjson.Members(m.Value) {
				w.Name(string(sub.Name))
				c.write(sub.Value, within)
			}
			w.Close('}')
		case name == "items" && c.keep(name):
			w.Name(name)
			c.write(m.Value, within)
		case (name == "anyOf" || name == "oneOf") && kind == '[' && c.keep("anyOf"):
			c.changed = c.changed || name == "oneOf"
			c.anyOf(m.Value, within)
		case c.keep(name):
			w.Raw(m.Raw)
		default:
			c.changed = true
		}
	}
}

// types writes a list of types: null means that the value may be null.
func (c *converter) types(list []byte) {
	w := &c.w
	var types []string
	nullable := false
	for el := range rawjson.Elements(list) {
		if t := rawjson.String(el); t == "null" {
			nullable = true
		} else if t != "" {
			types = append(types, t)
		}
	}
	switch len(types) {
	case 0:
	case 1:
		w.StringMember("type", types[0])
	default:
		w.Name("anyOf")
		w.Open('[')
		for _, t := range types {
			w.Open('{')
			w.StringMember("type", t)
			w.Close('}')
		}
		w.Close(']')
	}
	if nullable && c.keep("nullable") {
		w.BoolMember("nullable", true)
	}
}

// anyOf writes alternatives. One that is null makes the whole nullable.
func (c *converter) anyOf(list []byte, within []string) {
	w := &c.w
	nullable := false
	w.Name("anyOf")
	w.Open('[')
	for el := range rawjson.Elements(list) {
		if rawjson.Is(rawjson.Get(el, "type"), "null") {
			nullable, c.changed = true, true
			continue
		}
		c.write(el, within)
	}
	w.Close(']')
	if nullable && c.keep("nullable") {
		w.BoolMember("nullable", true)
	}
}

// resolve follows a reference inside the schema.
func (c *converter) resolve(ref string) ([]byte, bool) {
	if ref == "#" {
		return c.root, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	v := c.root
	for _, name := range strings.Split(path, "/") {
		v = rawjson.Get(v, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return v, v != nil
}

// merge is target with the other members that stand beside the reference to it.
func merge(target, schema []byte) []byte {
	if rawjson.Kind(target) != '{' {
		return target
	}
	var w rawjson.Writer
	at := w.Open('{')
	for m := range rawjson.Members(schema) {
		if string(m.Name) != "$ref" {
			w.Raw(m.Raw)
		}
	}
	w.Rest(at, target, nil)
	w.Close('}')
	return w.B
}

// mergeAll makes one schema of all that have to hold. Properties and required
// names are joined; of anything else that is said twice the first one stays.
func (c *converter) mergeAll(schema, list []byte) []byte {
	var all [][]byte
	for s := range rawjson.Elements(list) {
		if ref := rawjson.String(rawjson.Get(s, "$ref")); ref != "" {
			if target, ok := c.resolve(ref); ok {
				s = merge(target, s)
			}
		}
		all = append(all, s)
	}
	var properties, required rawjson.Writer
	propertiesAt, requiredAt := properties.Open('{'), required.Open('[')
	add := func(s []byte) {
		properties.Rest(propertiesAt, rawjson.Get(s, "properties"), nil)
		for el := range rawjson.Elements(rawjson.Get(s, "required")) {
			if !bytes.Contains(required.B[requiredAt:], el) {
				required.Raw(el)
			}
		}
	}
	add(schema)
	for _, s := range all {
		add(s)
	}
	properties.Close('}')
	required.Close(']')
	var w rawjson.Writer
	at := w.Open('{')
	if !rawjson.Empty(properties.B) {
		w.RawMember("properties", properties.B)
	}
	if !rawjson.Empty(required.B) {
		w.RawMember("required", required.B)
	}
	w.Rest(at, schema, []string{"allOf"})
	for _, s := range all {
		w.Rest(at, s, []string{"allOf"})
	}
	w.Close('}')
	return w.B
}

func allStrings(list []byte) bool {
	for el := range rawjson.Elements(list) {
		if rawjson.Kind(el) != '"' {
			return false
		}
	}
	return true
}

// readSchema gives one of the API's own schemas as a JSON schema: types in
// small letters, null as a type, numbers as numbers. One that is a JSON schema
// already stays as it is.
func readSchema(schema []byte) []byte {
	var c lowering
	if !c.needed(schema) {
		return bytes.Clone(schema)
	}
	c.write(schema)
	return c.w.B
}

type lowering struct{ w rawjson.Writer }

// needed reports whether a schema is in the API's own spelling anywhere.
func (c *lowering) needed(schema []byte) bool {
	for m := range rawjson.Members(schema) {
		switch name := string(m.Name); name {
		case "nullable":
			return true
		case "type":
			if t := rawjson.String(m.Value); t != strings.ToLower(t) {
				return true
			}
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			if rawjson.Kind(m.Value) == '"' {
				return true
			}
		case "properties":
			for sub := range rawjson.Members(m.Value) {
				if c.needed(sub.Value) {
					return true
				}
			}
		case "items":
			if c.needed(m.Value) {
				return true
			}
		case "anyOf":
			for sub := range rawjson.Elements(m.Value) {
				if c.needed(sub) {
					return true
				}
			}
		}
	}
	return false
}

func (c *lowering) write(schema []byte) {
	w := &c.w
	if rawjson.Kind(schema) != '{' {
		w.Raw(schema)
		return
	}
	nullable, _ := rawjson.Bool(rawjson.Get(schema, "nullable"))
	w.Open('{')
	for m := range rawjson.Members(schema) {
		switch name := string(m.Name); name {
		case "nullable":
			if rawjson.Get(schema, "type") == nil {
				w.Raw(m.Raw)
			}
		case "type":
			t := strings.ToLower(rawjson.String(m.Value))
			if !nullable {
				w.StringMember(name, t)
				continue
			}
			w.Name(name)
			w.Open('[')
			w.String(t)
			w.String("null")
			w.Close(']')
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			w.Name(name)
			if text := rawjson.String(m.Value); text != "" && rawjson.Valid([]byte(text)) {
				w.RawString(text)
			} else {
				w.Raw(m.Value)
			}
		case "properties":
			w.Name(name)
			w.Open('{')
			for sub := range rawjson.Members(m.Value) {
				w.Name(string(sub.Name))
				c.write(sub.Value)
			}
			w.Close('}')
		case "items":
			w.Name(name)
			c.write(m.Value)
		case "anyOf":
			w.Name(name)
			w.Open('[')
			for sub := range rawjson.Elements(m.Value) {
				c.write(sub)
			}
			w.Close(']')
		default:
			w.Raw(m.Raw)
		}
	}
	w.Close('}')
}
