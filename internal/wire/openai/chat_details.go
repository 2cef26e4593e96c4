package openai

import (
	"strconv"

	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatDetails puts reasoning_details together. They go back as they came, so
// that an element of a whole answer is kept verbatim; in a stream the pieces
// of an element (same index and type) are joined: their text and summary grow,
// other members are replaced unless by null.
type chatDetails struct{ elements []*chatDetail }

type chatDetail struct {
	index  int64 // -1: none
	kind   string
	raw    []byte // of a single piece
	pieces int

	members chatMembers
	text    map[string][]byte // the members that grow
}

// add takes in an array of elements. In a whole answer no two of them belong
// together.
func (d *chatDetails) add(array []byte, whole bool) {
	for e := range rawjson.Elements(array) {
		if rawjson.Kind(e) != '{' {
			continue
		}
		index, ok := rawjson.Int(rawjson.Get(e, "index"))
		if !ok {
			index = -1
		}
		kind := rawjson.Get(e, "type")
		var at *chatDetail
		if !whole {
			at = d.find(index, kind)
		}
		if at == nil {
			at = &chatDetail{index: index, kind: rawjson.String(kind)}
			d.elements = append(d.elements, at)
		}
		at.add(e)
	}
}

func (d *chatDetails) find(index int64, kind []byte) *chatDetail {
	for i := len(d.elements) - 1; i >= 0; i-- {
		if e := d.elements[i]; e.index == index && (rawjson.Is(kind, e.kind) || kind == nil && e.kind == "") {
			if index < 0 && i != len(d.elements)-1 {
				return nil // without an index only the last one goes on
			}
			return e
		}
	}
	return nil
}

func (e *chatDetail) add(raw []byte) {
	e.pieces++
	if e.pieces == 1 {
		e.raw = append([]byte(nil), raw...)
		return
	}
	if e.pieces == 2 {
		e.text = make(map[string][]byte, 2)
		e.merge(e.raw)
	}
	e.merge(raw)
}

func (e *chatDetail) merge(raw []byte) {
	for m := range rawjson.Members(raw) {
		if rawjson.Kind(m.Value) == '"' && chatGrows(m.Name) {
			name := string(m.Name)
			grown, begun := e.text[name]
			e.text[name] = rawjson.AppendString(grown, m.Value)
			if begun {
				continue
			}
		}
		e.members.add(m)
	}
}

// chatGrows: the members of reasoning_details that grow with the pieces.
func chatGrows(name []byte) bool {
	switch string(name) {
	case "text", "summary", "data":
		return true
	}
	return false
}

// array is the joined array; nil if there are no elements.
func (d *chatDetails) array() []byte {
	if len(d.elements) == 0 {
		return nil
	}
	var w rawjson.Writer
	w.Open('[')
	for _, e := range d.elements {
		if e.pieces == 1 {
			w.Raw(e.raw)
			continue
		}
		w.Open('{')
		for _, m := range e.members.list {
			if grown, ok := e.text[m.name]; ok {
				w.StringMember(m.name, string(grown))
			} else {
				w.Raw(m.raw)
			}
		}
		w.Close('}')
	}
	w.Close(']')
	return w.B
}

// chatDetailsText is the readable text of reasoning_details.
func chatDetailsText(dst, array []byte) []byte {
	for e := range rawjson.Elements(array) {
		text := rawjson.Get(e, "text")
		if rawjson.Kind(text) != '"' {
			text = rawjson.Get(e, "summary")
		}
		dst = rawjson.AppendString(dst, text)
	}
	return dst
}

// chatCreated reads a time stamp: seconds, as a number or in a string.
func chatCreated(v []byte) int64 {
	if n, ok := rawjson.Float(v); ok {
		return int64(n)
	}
	n, _ := strconv.ParseInt(rawjson.String(v), 10, 64)
	return n
}
