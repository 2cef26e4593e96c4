package rawjson

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes JSON by appending. It sets the commas; names, values and
// brackets are the caller's to balance. The zero value is ready.
type Writer struct{ B []byte }

// next sets the comma before a value or a name that follows another one. No
// value ends in one of the bytes that open or continue an object or array.
func (w *Writer) next() {
	if n := len(w.B); n > 0 {
		switch w.B[n-1] {
		case '{', '[', ':', ',':
		default:
			w.B = append(w.B, ',')
		}
	}
}

// Open begins an object ('{') or array ('[') and gives its place in B.
func (w *Writer) Open(bracket byte) int {
	w.next()
	w.B = append(w.B, bracket)
	return len(w.B) - 1
}

// Close ends an object ('}') or array (']').
func (w *Writer) Close(bracket byte) { w.B = append(w.B, bracket) }

// Name begins a member.
func (w *Writer) Name(name string) {
	w.String(name)
	w.B = append(w.B, ':')
}

// String writes a string; bytes that are no UTF-8 become U+FFFD.
func (w *Writer) String(s string) {
	w.next()
	w.B = appendQuoted(w.B, s)
}

// Raw writes a value, or whole members, as they stand.
func (w *Writer) Raw(v []byte) {
	w.next()
	w.B = append(w.B, v...)
}

// RawString is Raw for a string.
func (w *Writer) RawString(v string) {
	w.next()
	w.B = append(w.B, v...)
}

// Int writes a whole number.
func (w *Writer) Int(n int64) {
	w.next()
	w.B = strconv.AppendInt(w.B, n, 10)
}

// Float writes a number in its shortest form.
func (w *Writer) Float(f float64) {
	w.next()
	w.B = jsontext.AppendFloat(w.B, f, 64)
}

// Bool writes a truth value.
func (w *Writer) Bool(v bool) {
	w.next()
	w.B = strconv.AppendBool(w.B, v)
}

// Quote gives s as a JSON string.
func Quote(s string) []byte {
	var w Writer
	w.String(s)
	return w.B
}

// StringMember, IntMember, BoolMember, FloatMember and RawMember write a whole member.
func (w *Writer) StringMember(name, v string) { w.Name(name); w.String(v) }

// IntMember writes a member that is a whole number.
func (w *Writer) IntMember(name string, v int64) { w.Name(name); w.Int(v) }

// BoolMember writes a member that is a truth value.
func (w *Writer) BoolMember(name string, v bool) { w.Name(name); w.Bool(v) }

// FloatMember writes a member that is a number.
func (w *Writer) FloatMember(name string, v float64) { w.Name(name); w.Float(v) }

// RawMember writes a member whose value is JSON already.
func (w *Writer) RawMember(name string, v []byte) { w.Name(name); w.Raw(v) }

// Rest writes the members of the object extra into the object that was opened
// at place, except those whose names it already has and those in skip.
func (w *Writer) Rest(place int, extra []byte, skip []string) {
	if Empty(extra) {
		return
	}
	var have [32]string
	names := have[:0]
	for m := range Members(w.B[place:]) {
		names = append(names, string(m.Name))
	}
	for m := range Members(extra) {
		if slices.Contains(names, string(m.Name)) || slices.Contains(skip, string(m.Name)) {
			continue
		}
		w.Raw(m.Raw)
	}
}

// Kept gathers members that are to be kept, in their order and spelling.
type Kept struct{ b []byte }

// Add keeps a member.
func (k *Kept) Add(m Member) {
	if k.b == nil {
		k.b = append(make([]byte, 0, len(m.Raw)+2), '{')
	} else {
		k.b = append(k.b, ',')
	}
	k.b = append(k.b, m.Raw...)
}

// Object is the object of the members that were kept; nil if there were none.
func (k *Kept) Object() []byte {
	if k.b == nil {
		return nil
	}
	return append(k.b, '}')
}
