package rawjson

import "bytes"

// Mold is the shape of an object of which nothing changes but one string: the
// pieces of a stream mostly differ in their text alone, so that what all the
// rest of a piece means need not be found out again for each. The zero value
// fits nothing.
type Mold struct {
	before, after []byte // of the string, its quotes included
}

// Take makes data the shape. text is the string in it that may change: a part
// of the same slice, quotes included. data must be valid.
func (m *Mold) Take(data, text []byte) {
	at := cap(data) - cap(text)
	m.before = append(m.before[:0], data[:at+1]...)
	m.after = append(m.after[:0], data[at+len(text)-1:]...)
}

// Break makes it fit nothing.
func (m *Mold) Break() { m.before, m.after = m.before[:0], m.after[:0] }

// Fits gives the string of data, quotes included, if data is of the shape: it is
// then valid, and all but this string is as it was. A string with an escape in
// it fits never, for a quote in it might be its end.
func (m *Mold) Fits(data []byte) (text []byte, ok bool) {
	n := len(data) - len(m.before) - len(m.after)
	if len(m.before) == 0 || n < 0 || !bytes.HasPrefix(data, m.before) || !bytes.HasSuffix(data, m.after) {
		return nil, false
	}
	from := len(m.before)
	for _, c := range data[from : from+n] {
		if c < ' ' || c == '"' || c == '\\' {
			return nil, false
		}
	}
	return data[from-1 : from+n+1], true
}
