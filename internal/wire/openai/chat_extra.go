package openai

import (
	"bytes"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatExtra tags raw members with their protocol.
func chatExtra(raw []byte) ninelives.Extra {
	if raw == nil {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: raw}
}

// chatMembers gathers the unknown members of the pieces of one object. A
// member that comes again replaces the one before, unless it is null.
type chatMembers struct{ list []chatMember }

type chatMember struct {
	name string
	raw  []byte // name, colon and value as they stand
	null bool
}

func (c *chatMembers) add(m rawjson.Member) {
	null := rawjson.Null(m.Value)
	for i := range c.list {
		if known := &c.list[i]; known.name == string(m.Name) {
			if !bytes.Equal(known.raw, m.Raw) && (!null || known.null) {
				known.raw, known.null = append(known.raw[:0], m.Raw...), null
			}
			return
		}
	}
	c.list = append(c.list, chatMember{name: string(m.Name), raw: append([]byte(nil), m.Raw...), null: null})
}

// object is the object of the members; nil if there are none.
func (c *chatMembers) object() []byte {
	if len(c.list) == 0 {
		return nil
	}
	obj := []byte("{")
	for i, m := range c.list {
		if i > 0 {
			obj = append(obj, ',')
		}
		obj = append(obj, m.raw...)
	}
	return append(obj, '}')
}

func (c *chatMembers) extra() ninelives.Extra { return chatExtra(c.object()) }

// chatKeepNested keeps the unknown members of an object that lies in another
// one under a known name: {"function":{"x":1}}.
func chatKeepNested(kept *rawjson.Kept, name string, nested []byte) {
	if nested == nil {
		return
	}
	raw := append([]byte(`"`+name+`":`), nested...)
	kept.Add(rawjson.Member{Name: []byte(name), Value: nested, Raw: raw})
}

// chatRest gives the object's members except the named ones; nil if there are none.
func chatRest(object []byte, known ...string) []byte {
	var kept rawjson.Kept
	for m := range rawjson.Members(object) {
		if !chatIn(known, string(m.Name)) {
			kept.Add(m)
		}
	}
	return kept.Object()
}

func chatIn(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
