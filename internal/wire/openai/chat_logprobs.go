package openai

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatLogprobs gathers the logprobs of a choice: the object verbatim if it came
// in one piece; else the lists of the pieces are joined, and of other members
// the last one counts.
type chatLogprobs struct {
	raw    []byte
	pieces int

	members chatMembers
	lists   map[string][]byte // the inside of the arrays
}

func (l *chatLogprobs) add(raw []byte) {
	if rawjson.Kind(raw) != '{' {
		return
	}
	l.pieces++
	if l.pieces == 1 {
		l.raw = append([]byte(nil), raw...)
		return
	}
	if l.pieces == 2 {
		l.lists = make(map[string][]byte, 2)
		l.merge(l.raw)
	}
	l.merge(raw)
}

func (l *chatLogprobs) merge(raw []byte) {
	for m := range rawjson.Members(raw) {
		if rawjson.Kind(m.Value) != '[' {
			l.members.add(m)
			continue
		}
		name := string(m.Name)
		list, begun := l.lists[name]
		for e := range rawjson.Elements(m.Value) {
			if len(list) > 0 {
				list = append(list, ',')
			}
			list = append(list, e...)
		}
		l.lists[name] = list
		if !begun {
			l.members.add(m)
		}
	}
}

func (l *chatLogprobs) extra() ninelives.Extra {
	if l.pieces < 2 {
		return chatExtra(l.raw)
	}
	var w rawjson.Writer
	w.Open('{')
	for _, m := range l.members.list {
		list, ok := l.lists[m.name]
		if !ok {
			w.Raw(m.raw)
			continue
		}
		w.Name(m.name)
		w.Open('[')
		w.Raw(list)
		w.Close(']')
	}
	w.Close('}')
	return chatExtra(w.B)
}
