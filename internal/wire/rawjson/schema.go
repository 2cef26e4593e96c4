package rawjson

import "slices"

// DropKeywords gives the JSON schema without the named keywords, wherever a
// schema may stand in it. What is data there (property names, enum, const,
// default) is left alone. Without names it gives the schema itself.
func DropKeywords(schema []byte, names []string) []byte {
	if len(names) == 0 {
		return schema
	}
	return EditKeywords(schema, func(_ []byte, m Member) (Member, bool) { return m, !slices.Contains(names, string(m.Name)) })
}

// EditKeywords gives the JSON schema with each keyword, wherever a schema may
// stand in it, as edit wants it; false leaves it out. edit is also told the
// schema that the keyword is in. What is data there is left alone.
func EditKeywords(schema []byte, edit func(schema []byte, keyword Member) (Member, bool)) []byte {
	var w Writer
	writeSchema(&w, schema, edit)
	return w.B
}

func writeSchema(w *Writer, schema []byte, edit func([]byte, Member) (Member, bool)) {
	if Kind(schema) != '{' {
		w.Raw(schema) // true and false are schemas too
		return
	}
	w.Open('{')
	for m := range Members(schema) {
		m, ok := edit(schema, m)
		if !ok {
			continue
		}
		name := string(m.Name)
		switch kind := Kind(m.Value); {
		case holdsNamed(name) && kind == '{':
			w.Name(name)
			w.Open('{')
			for sub := range Members(m.Value) {
				w.Name(string(sub.Name))
				writeSchema(w, sub.Value, edit)
			}
			w.Close('}')
		case holdsList(name) && kind == '[':
			w.Name(name)
			w.Open('[')
			for sub := range Elements(m.Value) {
				writeSchema(w, sub, edit)
			}
			w.Close(']')
		case holdsOne(name) && kind == '{':
			w.Name(name)
			writeSchema(w, m.Value, edit)
		default:
			w.Raw(m.Raw)
		}
	}
	w.Close('}')
}

// The keywords of JSON schema 2020-12 (and the drafts before it) under which
// there are schemas again: by name, in a list, or one.
func holdsNamed(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return true
	}
	return false
}

func holdsList(keyword string) bool {
	switch keyword {
	case "allOf", "anyOf", "oneOf", "prefixItems", "items":
		return true
	}
	return false
}

func holdsOne(keyword string) bool {
	switch keyword {
	case "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"contains", "propertyNames", "not", "if", "then", "else", "contentSchema":
		return true
	}
	return false
}
