package rawjson

import "slices"

// DropKeywords gives the JSON schema without the named keywords, wherever a
// schema may stand in it. What is data there (property names, enum, const,
// default) is left alone. Without names it gives the schema itself.
func DropKeywords(schema []byte, names []string) []byte {
	if len(names) == 0 {
		return schema
	}
	return KeepKeywords(schema, func(keyword string) bool { return !slices.Contains(names, keyword) })
}

// KeepKeywords is DropKeywords for the keywords that keep does not want.
func KeepKeywords(schema []byte, keep func(keyword string) bool) []byte {
	var w Writer
	writeSchema(&w, schema, keep)
	return w.B
}

func writeSchema(w *Writer, schema []byte, keep func(string) bool) {
	if Kind(schema) != '{' {
		w.Raw(schema) // true and false are schemas too
		return
	}
	w.Open('{')
	for m := range Members(schema) {
		name := string(m.Name)
		if !keep(name) {
			continue
		}
		switch kind := Kind(m.Value); {
		case holdsNamed(name) && kind == '{':
			w.Name(name)
			w.Open('{')
			for sub := range Members(m.Value) {
				w.Name(string(sub.Name))
				writeSchema(w, sub.Value, keep)
			}
			w.Close('}')
		case holdsList(name) && kind == '[':
			w.Name(name)
			w.Open('[')
			for sub := range Elements(m.Value) {
				writeSchema(w, sub, keep)
			}
			w.Close(']')
		case holdsOne(name) && kind == '{':
			w.Name(name)
			writeSchema(w, m.Value, keep)
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
