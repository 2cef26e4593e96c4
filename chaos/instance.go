package chaos

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// instanceJSON makes a value that satisfies a JSON schema, always the same
// one for the same schema. It covers what schemas of tools and answers use;
// patterns are not solved.
func instanceJSON(schema map[string]any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(instance(schema, schema, 0)); err != nil {
		return "null"
	}
	return strings.TrimSpace(buf.String())
}

func instance(s, root map[string]any, depth int) any {
	if depth > 12 { // a schema that refers to itself
		return nil
	}
	if ref := text(s["$ref"]); ref != "" {
		return instance(resolveRef(ref, root), root, depth+1)
	}
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok {
			return v
		}
	}
	if examples := list(s["examples"]); len(examples) > 0 {
		return examples[0]
	}
	if enum := list(s["enum"]); len(enum) > 0 {
		return enum[0]
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if options := list(s[key]); len(options) > 0 {
			return instance(merge(s, object(options[0])), root, depth+1)
		}
	}
	if all := list(s["allOf"]); len(all) > 0 {
		merged := s
		for _, part := range all {
			part := object(part)
			if ref := text(part["$ref"]); ref != "" {
				part = resolveRef(ref, root)
			}
			merged = merge(merged, part)
		}
		return instance(merged, root, depth+1)
	}
	switch schemaType(s) {
	case "object":
		return objectInstance(s, root, depth)
	case "array":
		return arrayInstance(s, root, depth)
	case "string":
		return stringInstance(s)
	case "integer", "number":
		return numberInstance(s)
	case "boolean":
		return true
	}
	return nil
}

// schemaType is the first type that is not null, in lower case (Gemini writes
// capitals), guessed where none is told.
func schemaType(s map[string]any) string {
	if t := text(s["type"]); t != "" {
		return strings.ToLower(t)
	}
	for _, t := range list(s["type"]) {
		if t := strings.ToLower(text(t)); t != "null" && t != "" {
			return t
		}
	}
	switch {
	case s["properties"] != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	}
	return ""
}

func objectInstance(s, root map[string]any, depth int) any {
	out := map[string]any{}
	required := list(s["required"])
	for name, prop := range object(s["properties"]) {
		// A property that may be left out is left out in the depth, where a
		// schema may repeat itself.
		if depth > 6 && !slices.Contains(required, any(name)) {
			continue
		}
		out[name] = instance(object(prop), root, depth+1)
	}
	return out
}

func arrayInstance(s, root map[string]any, depth int) any {
	n := max(1, number(s["minItems"]))
	if depth > 6 {
		n = number(s["minItems"])
	}
	out := []any{}
	for i, prefix := range list(s["prefixItems"]) {
		out = append(out, instance(object(prefix), root, depth+1))
		n = max(n, i+1)
	}
	for len(out) < n {
		out = append(out, instance(object(s["items"]), root, depth+1))
	}
	return out
}

var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "email": "cat@example.com",
	"uri": "https://example.com/cat", "uuid": "00000000-0000-4000-8000-000000000009", "ipv4": "127.0.0.1", "hostname": "example.com",
}

func stringInstance(s map[string]any) any {
	if v, ok := formats[text(s["format"])]; ok {
		return v
	}
	v := "cat"
	if n := number(s["minLength"]); n > len(v) {
		v += strings.Repeat("t", n-len(v))
	}
	if limit, ok := s["maxLength"]; ok && number(limit) < len(v) {
		v = v[:max(0, number(limit))]
	}
	return v
}

func numberInstance(s map[string]any) any {
	switch {
	case s["minimum"] != nil:
		return s["minimum"]
	case s["exclusiveMinimum"] != nil:
		return number(s["exclusiveMinimum"]) + 1
	case s["multipleOf"] != nil:
		return s["multipleOf"]
	case s["maximum"] != nil:
		return s["maximum"]
	}
	return 9
}

func resolveRef(ref string, root map[string]any) map[string]any {
	at := root
	for _, name := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if name == "" {
			continue
		}
		at = object(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)])
	}
	return at
}

// merge lays b over a; properties and required are joined, and the key that
// led here is left behind.
func merge(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range a {
		if k != "anyOf" && k != "oneOf" && k != "allOf" {
			out[k] = v
		}
	}
	for k, v := range b {
		switch k {
		case "properties":
			props := map[string]any{}
			for name, p := range object(out[k]) {
				props[name] = p
			}
			for name, p := range object(v) {
				props[name] = p
			}
			out[k] = props
		case "required":
			out[k] = append(slices.Clone(list(out[k])), list(v)...)
		default:
			out[k] = v
		}
	}
	return out
}
