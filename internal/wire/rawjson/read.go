// Package rawjson reads and writes JSON one object at a time without losing
// what it does not know: what is read stays in the spelling it came in, so
// that unknown members can be kept and written again byte for byte.
//
// The readers take valid JSON (see [Valid]) and allocate nothing; the slices
// that they give are parts of their input.
package rawjson

import (
	"bytes"
	"iter"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of an object. Raw is name, colon and value as they stand.
type Member struct {
	Name  []byte
	Value []byte
	Raw   []byte
}

// Kind is the first byte of a value: '{', '[', '"', 't', 'f', 'n', '-' or a
// digit; 0 for nothing.
func Kind(v []byte) byte {
	v = trim(v)
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// Null reports whether v is absent or null.
func Null(v []byte) bool {
	k := Kind(v)
	return k == 0 || k == 'n'
}

// Members yields the members of the valid object obj in order; nothing if it
// is no object. A name that is repeated comes up each time.
func Members(obj []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := space(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i++; ; i++ {
			i = space(obj, i)
			if i >= len(obj) || obj[i] != '"' {
				return
			}
			start := i
			i = endString(obj, i)
			if i < start+2 {
				return
			}
			name := obj[start+1 : i-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				name, _ = jsontext.AppendUnquote(nil, obj[start:i])
			}
			i = space(obj, i)
			i = space(obj, i+1)
			from := i
			i = end(obj, i)
			if i > len(obj) || from >= i {
				return
			}
			if !yield(Member{Name: name, Value: obj[from:i], Raw: obj[start:i]}) {
				return
			}
			i = space(obj, i)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
		}
	}
}

// Elements yields the elements of the valid array arr in order; nothing if it
// is no array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := space(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i++; ; i++ {
			i = space(arr, i)
			if i >= len(arr) || arr[i] == ']' {
				return
			}
			from := i
			i = end(arr, i)
			if i > len(arr) || from >= i {
				return
			}
			if !yield(arr[from:i]) {
				return
			}
			i = space(arr, i)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
		}
	}
}

// Get is the value of the last member called name, nil if there is none.
func Get(obj []byte, name string) []byte {
	var v []byte
	for m := range Members(obj) {
		if string(m.Name) == name {
			v = m.Value
		}
	}
	return v
}

// Path follows names through nested objects.
func Path(v []byte, names ...string) []byte {
	for _, name := range names {
		v = Get(v, name)
	}
	return v
}

// String is the text of a JSON string, "" for anything else.
func String(v []byte) string {
	v = trim(v)
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if plain := v[1 : len(v)-1]; plainText(plain) {
		return string(plain)
	}
	return unquoted(v)
}

// AppendString appends the text of a JSON string to dst; anything else
// appends nothing.
func AppendString(dst, v []byte) []byte {
	v = trim(v)
	if len(v) < 2 || v[0] != '"' {
		return dst
	}
	if plain := v[1 : len(v)-1]; plainText(plain) {
		return append(dst, plain...)
	}
	return appendUnquoted(dst, v)
}

// Is reports whether v is the JSON string s.
func Is(v []byte, s string) bool {
	v = trim(v)
	if len(v) == len(s)+2 && v[0] == '"' && string(v[1:len(v)-1]) == s {
		return bytes.IndexByte(v, '\\') < 0
	}
	return len(v) > 0 && v[0] == '"' && bytes.IndexByte(v, '\\') >= 0 && String(v) == s
}

// Optional makes a pointer of what Bool, Float or Int read, nil where they
// report false.
func Optional[T any](v T, ok bool) (*T, bool) {
	if !ok {
		return nil, false
	}
	return &v, true
}

// Int is a whole number; a fraction of zero counts as whole. It reports false
// for anything else.
func Int(v []byte) (int64, bool) {
	v = trim(v)
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, ok := Float(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Float is a number; it reports false for anything else.
func Float(v []byte) (float64, bool) {
	v = trim(v)
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// Bool is a truth value; it reports false for anything else.
func Bool(v []byte) (value, ok bool) {
	switch string(trim(v)) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// Empty reports whether v is absent, null, "", [] or {}.
func Empty(v []byte) bool {
	v = trim(v)
	switch Kind(v) {
	case 0, 'n':
		return true
	case '"':
		return len(v) == 2
	case '[', '{':
		return space(v, 1) == len(v)-1
	}
	return false
}

// plainText: the inside of a JSON string that means itself. Bytes above ASCII
// are left to the careful reader, which replaces what is no UTF-8.
func plainText(s []byte) bool {
	for _, c := range s {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

func trim(v []byte) []byte {
	v = v[space(v, 0):]
	for len(v) > 0 && isSpace(v[len(v)-1]) {
		v = v[:len(v)-1]
	}
	return v
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func space(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// endString gives the index after the string that begins at b[i]. A quote ends
// it unless an odd number of backslashes stands before.
func endString(b []byte, i int) int {
	first := i + 1
	for i = first; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		escape := i
		for escape > first && b[escape-1] == '\\' {
			escape--
		}
		if (i-escape)%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

// end gives the index after the value that begins at b[i].
func end(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return endString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = endString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) && !isSpace(b[i]) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}
