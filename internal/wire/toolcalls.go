package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// CallPiece is one piece of a tool call of a stream, as it came.
type CallPiece struct {
	// Index is the call's index; -1 if the piece has none.
	Index int
	ID    string
	Name  string
	// Arguments is a piece of the arguments' JSON text, unquoted; nil if none.
	Arguments []byte
}

// OpenCall is a tool call that is being put together.
type OpenCall struct {
	ID        string
	Name      string
	Arguments []byte

	index int
}

// Closed reports whether the arguments are whole: JSON that closes. Arguments
// that have not begun are not.
func (c *OpenCall) Closed() bool { return jsonEnd(c.Arguments) == jsonWhole }

// Calls puts tool calls together by index and id, because neither can be
// relied upon: servers leave out the index, give every call index 0, repeat
// ids and names in every piece, or cut names in two.
//
// The rules, in their order:
//   - a piece with the id of a call belongs to it;
//   - a piece with another id than the call at its index is a new call;
//   - a piece at the index of a call belongs to it, unless it names a tool
//     although that call is whole: then it is a new call;
//   - a piece at an unknown index with an id or a name is a new call; without
//     either it goes on with the one call that is open, and is rejected if
//     none or several are;
//   - a piece without an index is a new call if it has an id or a name, else
//     it belongs to the last one.
//
// An equal name, and arguments that repeat what is whole already, are ignored.
type Calls struct {
	tools []ninelives.Tool
	calls []*OpenCall
}

// NewCalls gives an assembler that knows the request's tools.
func NewCalls(tools []ninelives.Tool) Calls { return Calls{tools: tools} }

// Len is the number of calls so far.
func (c *Calls) Len() int { return len(c.calls) }

// At gives a call, in order of first appearance.
func (c *Calls) At(i int) *OpenCall { return c.calls[i] }

// Open takes in a whole call, which no other piece belongs to, and gives its place.
func (c *Calls) Open(p CallPiece) int {
	c.calls = append(c.calls, &OpenCall{ID: p.ID, Name: p.Name, index: p.Index, Arguments: append([]byte(nil), p.Arguments...)})
	return len(c.calls) - 1
}

// Add takes in a piece and tells which call it belongs to. It reports false
// for a piece that could belong to several calls: whatever is made of such an
// answer would be a guess.
func (c *Calls) Add(p CallPiece) (int, bool) {
	i := c.find(p)
	if i == ambiguous {
		return 0, false
	}
	if i == another {
		return c.Open(p), true
	}
	call := c.calls[i]
	if call.ID == "" {
		call.ID = p.ID
	}
	if call.index < 0 {
		call.index = p.Index
	}
	call.Name = c.joinName(call, p.Name)
	if len(p.Arguments) > 1 && bytes.Equal(call.Arguments, p.Arguments) && call.Closed() {
		return i, true
	}
	call.Arguments = append(call.Arguments, p.Arguments...)
	return i, true
}

// What find gives besides the place of a call.
const (
	another   = -1
	ambiguous = -2
)

func (c *Calls) find(p CallPiece) int {
	if p.ID != "" {
		for i := len(c.calls) - 1; i >= 0; i-- {
			if c.calls[i].ID == p.ID {
				// One id for several calls: only the index tells them apart.
				if p.Index >= 0 && c.calls[i].index >= 0 && p.Index != c.calls[i].index && c.begins(c.calls[i], p) {
					continue
				}
				return i
			}
		}
	}
	last := len(c.calls) - 1
	if p.Index < 0 {
		switch {
		case last < 0:
			return another
		case p.ID != "":
			if c.calls[last].ID == "" && c.calls[last].Name == "" {
				return last
			}
			return another
		case p.Name != "" && c.calls[last].Name != "" && !c.isTool(c.calls[last].Name+p.Name):
			return another
		}
		return last
	}
	for i := last; i >= 0; i-- {
		if c.calls[i].index != p.Index {
			continue
		}
		if p.ID != "" && c.calls[i].ID != "" || c.begins(c.calls[i], p) {
			return another
		}
		return i
	}
	if p.ID != "" || p.Name != "" || last < 0 {
		return another
	}
	open := another
	for i, call := range c.calls {
		if !call.Closed() {
			if open >= 0 {
				return ambiguous
			}
			open = i
		}
	}
	if open < 0 {
		if len(bytes.TrimSpace(p.Arguments)) == 0 {
			return last
		}
		return ambiguous
	}
	return open
}

// begins reports that a piece names a tool although the call is whole, and
// does not merely repeat it: a second call in the place of the first.
func (c *Calls) begins(call *OpenCall, p CallPiece) bool {
	return p.Name != "" && call.Name != "" && call.Closed() &&
		!(p.Name == call.Name && (len(p.Arguments) == 0 || bytes.Equal(p.Arguments, call.Arguments)))
}

// joinName puts the pieces of a name together. A server may cut a name,
// repeat it, or tell all of it so far each time.
func (c *Calls) joinName(call *OpenCall, piece string) string {
	name := call.Name
	switch {
	case piece == "" || piece == name:
		return name
	case name == "" || strings.HasPrefix(piece, name) && !c.isTool(name+piece):
		return piece
	case c.isTool(name) && !c.isTool(name+piece):
		return name
	}
	return name + piece
}

func (c *Calls) isTool(name string) bool { return toolNamed(c.tools, name) != nil }

func toolNamed(tools []ninelives.Tool, name string) *ninelives.Tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

// MadeID makes an id for a call that came without one, from what tells it
// apart from others: the answer it is in, its place, and what it says.
func MadeID(response string, place int, name, arguments string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", response, place, name, arguments))
	return "call_" + hex.EncodeToString(sum[:12])
}
