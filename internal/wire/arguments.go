package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// Arguments gives the arguments of a finished call in the form that callers
// rely on: "" and null become {}, an object in a string is unwrapped once, and
// where the tool's schema says array or object, a string that holds one is
// decoded. Everything else stays as the model wrote it; what does not parse is
// left alone, and never becomes {}. In an answer that was cut, "" and null are
// left alone too: the arguments may just not have begun.
//
// tools are the request's tools, name is as they have it.
func Arguments(text string, tools []ninelives.Tool, name string, cut bool) string {
	v := bytes.TrimSpace([]byte(text))
	if len(v) == 0 || string(v) == "null" {
		if cut {
			return text
		}
		return "{}"
	}
	if !rawjson.Valid(v) {
		return text
	}
	if v[0] == '"' {
		inner := bytes.TrimSpace([]byte(rawjson.String(v)))
		switch {
		case len(inner) == 0 && !cut:
			return "{}"
		case rawjson.Kind(inner) != '{' || !rawjson.Valid(inner):
			return text
		}
		text, v = string(inner), inner
	}
	if tool := toolNamed(tools, name); tool != nil && v[0] == '{' && rawjson.Valid(tool.Schema) {
		if decoded, changed := unnest(v, tool.Schema, tool.Schema, 0); changed {
			return string(decoded)
		}
	}
	return text
}

// unnest decodes JSON in strings where schema wants an array or an object. It
// reports whether anything changed; if not, v is to be kept as it is. root is
// where references of the schema point.
func unnest(v, schema, root []byte, depth int) ([]byte, bool) {
	if depth > 32 {
		return v, false
	}
	schema = resolve(schema, root)
	kinds := kindsOf(schema, root, 0)
	switch rawjson.Kind(v) {
	case '"':
		if len(kinds) == 0 || slices.Contains(kinds, '"') || bytes.IndexAny(v, "[{") < 0 {
			return v, false
		}
		inner := bytes.TrimSpace([]byte(rawjson.String(v)))
		kind := rawjson.Kind(inner)
		if (kind != '[' && kind != '{') || !slices.Contains(kinds, kind) || !rawjson.Valid(inner) {
			return v, false
		}
		if deeper, changed := unnest(inner, schema, root, depth+1); changed {
			inner = deeper
		}
		return inner, true
	case '{':
		properties := rawjson.Get(schema, "properties")
		if properties == nil {
			return v, false
		}
		return rebuild(v, '{', func(name string, member []byte) ([]byte, bool) {
			sub := rawjson.Get(properties, name)
			if sub == nil {
				return member, false
			}
			return unnest(member, sub, root, depth+1)
		})
	case '[':
		items := rawjson.Get(schema, "items")
		if rawjson.Kind(items) != '{' {
			return v, false
		}
		return rebuild(v, '[', func(_ string, element []byte) ([]byte, bool) {
			return unnest(element, items, root, depth+1)
		})
	}
	return v, false
}

// rebuild writes an object or array with its values replaced by what change
// gives; it reports false if none was.
func rebuild(v []byte, bracket byte, change func(name string, value []byte) ([]byte, bool)) ([]byte, bool) {
	var w rawjson.Writer
	changed := false
	w.Open(bracket)
	if bracket == '{' {
		for m := range rawjson.Members(v) {
			value, ok := change(string(m.Name), m.Value)
			changed = changed || ok
			w.Raw(m.Raw[:len(m.Raw)-len(m.Value)])
			w.B = append(w.B, value...)
		}
		w.Close('}')
	} else {
		for e := range rawjson.Elements(v) {
			value, ok := change("", e)
			changed = changed || ok
			w.Raw(value)
		}
		w.Close(']')
	}
	return w.B, changed
}

// resolve follows a local reference of a schema.
func resolve(schema, root []byte) []byte {
	for range 8 {
		ref := rawjson.String(rawjson.Get(schema, "$ref"))
		path, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			return schema
		}
		schema = rawjson.Path(root, strings.Split(path, "/")...)
	}
	return schema
}

// kindsOf gives the kinds of value that a schema allows, by their first byte;
// nothing if it does not say.
func kindsOf(schema, root []byte, depth int) []byte {
	schema = resolve(schema, root)
	var kinds []byte
	add := func(name []byte) {
		switch rawjson.String(name) {
		case "array":
			kinds = append(kinds, '[')
		case "object":
			kinds = append(kinds, '{')
		case "string":
			kinds = append(kinds, '"')
		}
	}
	for m := range rawjson.Members(schema) {
		switch string(m.Name) {
		case "type":
			add(m.Value)
			for name := range rawjson.Elements(m.Value) {
				add(name)
			}
		case "anyOf", "oneOf", "allOf":
			for sub := range rawjson.Elements(m.Value) {
				if depth < 8 {
					kinds = append(kinds, kindsOf(sub, root, depth+1)...)
				}
			}
		}
	}
	return kinds
}

// jsonState is how far a JSON text goes.
type jsonState int

const (
	jsonNone   jsonState = iota // nothing but white space
	jsonOpen                    // it ends in the middle
	jsonWhole                   // one whole value
	jsonBroken                  // no JSON
)

// jsonEnd tells how far a JSON text goes.
func jsonEnd(text []byte) jsonState {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return jsonNone
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch err := d.SkipValue(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return jsonOpen
	case err != nil:
		return jsonBroken
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return jsonBroken
	}
	return jsonWhole
}

// Unclosed reports that arguments, or an answer in JSON, end in the middle.
// Such a text was cut; it is never run and never completed by guessing.
func Unclosed(text string) bool { return jsonEnd([]byte(text)) == jsonOpen }
