package openai

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// toolCall takes in a piece of a call.
func (c *chatChoice) toolCall(raw []byte) bool {
	var index, id, function, custom, name, arguments []byte
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "index":
			index = m.Value
		case "id":
			id = m.Value
		case "function":
			function = m.Value
		case "custom":
			custom = m.Value
		case "name":
			name = m.Value
		case "arguments":
			arguments = m.Value
		}
	}
	if function == nil {
		function = custom // of a tool whose input is text, not JSON
	}
	flat := function == nil && (name != nil || arguments != nil)
	if !flat {
		name, arguments = nil, nil
		for m := range rawjson.Members(function) {
			switch string(m.Name) {
			case "name":
				name = m.Value
			case "arguments", "input":
				arguments = m.Value
			}
		}
	}
	place := int64(-1)
	if n, ok := chatIndex(index); ok && !c.whole {
		place = n
	}
	n := c.calls.Len()
	p, ok := c.callPiece(int(place), id, name, arguments)
	if !ok {
		return false
	}
	if !c.whole && c.calls.Len() > 0 {
		begins := c.calls.Len() > n
		c.d.called = true
		c.d.odd = c.d.odd || place < 0 || begins && (place < c.places || rawjson.String(id) == "") ||
			rawjson.Kind(arguments) == '{' || rawjson.Kind(arguments) == '['
		c.places = max(c.places, place+1)
	}
	p.custom = p.custom || custom != nil
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "index", "id", "type", "function", "custom":
		case "name", "arguments":
			if !flat {
				p.extra.add(m)
			}
		default:
			p.extra.add(m)
		}
	}
	for m := range rawjson.Members(function) {
		if n := string(m.Name); n != "name" && n != "arguments" && !(p.custom && n == "input") {
			p.function.add(m)
		}
	}
	return true
}

// functionCall takes in the form that calls had before there were several.
func (c *chatChoice) functionCall(raw []byte) bool {
	_, ok := c.callPiece(0, nil, rawjson.Get(raw, "name"), rawjson.Get(raw, "arguments"))
	return ok
}

func (c *chatChoice) callPiece(index int, id, name, arguments []byte) (*chatPart, bool) {
	piece := wire.CallPiece{Index: index, ID: rawjson.String(id), Name: rawjson.String(name)}
	if rawjson.Kind(id) != '"' && !rawjson.Null(id) {
		piece.ID = string(id) // a number
	}
	switch rawjson.Kind(arguments) {
	case '"':
		c.d.scratch = c.argumentsTail(index).append(c.d.scratch[:0], arguments)
		piece.Arguments = c.d.scratch
	case 0, 'n':
	default:
		piece.Arguments = arguments
	}
	if piece.ID == "" && piece.Name == "" && len(piece.Arguments) == 0 && (c.whole || c.calls.Len() == 0) {
		return &chatPart{}, true // an empty form, filled in by some serialisers
	}
	n := c.calls.Len()
	i, ok := n, true
	if c.whole {
		i = c.calls.Open(piece)
	} else if i, ok = c.calls.Add(piece); !ok {
		return nil, false
	}
	for before := range n {
		if i == n { // whatever came before the new call is told by now
			c.tell(before, true)
		}
	}
	p := c.opened(i)
	c.tell(i, false)
	return p, true
}

func (c *chatChoice) argumentsTail(place int) *chatTail {
	for i := range c.arguments {
		if c.arguments[i].place == place {
			return &c.arguments[i].chatTail
		}
	}
	c.arguments = append(c.arguments, chatPlacedTail{place: place})
	return &c.arguments[len(c.arguments)-1].chatTail
}

// opened is the part of a call; it is begun with it.
func (c *chatChoice) opened(i int) *chatPart {
	if i == len(c.callPart) {
		p := c.begin(chatKindCall, "")
		p.call = i
		c.callPart = append(c.callPart, p)
	}
	return c.callPart[i]
}

// tell emits what is new of a call. Nothing is told before its name is whole,
// which is when its arguments begin, another call begins or the answer ends.
// Arguments that are no object as they stand are told at the end.
func (c *chatChoice) tell(i int, end bool) {
	call, p := c.calls.At(i), c.callPart[i]
	if call.Name == "" || !c.heard() {
		return
	}
	arguments := bytes.TrimLeft(call.Arguments, " \t\r\n")
	if !p.told && len(arguments) == 0 && !end {
		return
	}
	streamed := len(arguments) > 0 && arguments[0] == '{' && !p.custom
	news := ""
	if streamed && len(call.Arguments) > p.sent {
		news = c.d.arena.string(call.Arguments[p.sent:])
		p.sent = len(call.Arguments)
	}
	if c.isOutput(call.Name) {
		p.told = true
		if news != "" {
			c.give(ninelives.TextDelta{Attempt: c.d.o.Attempt, Part: p.index, Text: news})
		}
		return
	}
	if p.told && news == "" {
		return
	}
	ev := ninelives.ToolCallDelta{Attempt: c.d.o.Attempt, Part: p.index, Arguments: news}
	if !p.told {
		p.told = true
		ev.ID, ev.Name = c.callID(i), c.callerName(call.Name)
	}
	c.give(ev)
}

func (c *chatChoice) isOutput(name string) bool {
	return c.d.o.OutputTool != "" && name == c.d.o.OutputTool
}

// callerName is the caller's own name of a tool.
func (c *chatChoice) callerName(name string) string {
	if own, ok := c.d.o.Names[name]; ok {
		return own
	}
	return name
}

// callID is the id of a call; one that came without gets one.
func (c *chatChoice) callID(i int) string {
	call := c.calls.At(i)
	if call.ID == "" {
		call.ID = wire.MadeID(c.d.answer(), i, call.Name, string(call.Arguments))
	}
	return call.ID
}

// open reports that a call is not whole.
func (c *chatChoice) open() bool {
	for i := range c.calls.Len() {
		if !c.calls.At(i).Closed() {
			return true
		}
	}
	return false
}

// callOf gives a call with its arguments as they came.
func (c *chatChoice) callOf(p *chatPart, provenance ninelives.Provenance) ninelives.ToolCall {
	call := ninelives.ToolCall{ID: c.callID(p.call), Name: c.callerName(c.calls.At(p.call).Name), Arguments: string(c.calls.At(p.call).Arguments)}
	var kept rawjson.Kept
	for m := range rawjson.Members(p.extra.object()) {
		if string(m.Name) == "extra_content" {
			signature := rawjson.String(rawjson.Path(m.Value, "google", "thought_signature"))
			if signature != "" {
				call.Signature = signature
				call.Provenance = provenance
				call.Provenance.Field = chatSignatureField
				if chatOnlySignature(m.Value) {
					continue
				}
			}
		}
		kept.Add(m)
	}
	if p.custom {
		var w rawjson.Writer
		at := w.Open('{')
		w.StringMember("name", call.Name)
		w.StringMember("input", call.Arguments)
		w.Rest(at, p.function.object(), nil)
		w.Close('}')
		chatKeepNested(&kept, "custom", w.B)
		call.Arguments = chatQuoted(call.Arguments)
	} else {
		chatKeepNested(&kept, "function", p.function.object())
	}
	call.Extra = chatExtra(kept.Object())
	return call
}

// chatQuoted is the input of a custom tool as JSON text.
func chatQuoted(input string) string {
	b, _ := jsontext.AppendQuote(nil, input) // what is no UTF-8 becomes U+FFFD
	return string(b)
}

// chatSignatureField is where Gemini's compatible endpoint has the thought
// signature of a call.
const chatSignatureField = "extra_content.google.thought_signature"

// chatOnlySignature reports that extra_content holds nothing but a signature.
func chatOnlySignature(raw []byte) bool {
	for m := range rawjson.Members(raw) {
		if string(m.Name) != "google" {
			return false
		}
		for inner := range rawjson.Members(m.Value) {
			if string(inner.Name) != "thought_signature" {
				return false
			}
		}
	}
	return true
}

// finishArguments brings the arguments of a message's calls into their final
// form, once it is known how the answer ended.
func (c *chatChoice) finishArguments(m *ninelives.Message, cut bool) {
	for i, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.ToolCall:
			if i < len(c.parts) && c.parts[i].custom {
				continue
			}
			p.Arguments = wire.Arguments(p.Arguments, c.d.o.Tools, p.Name, cut)
			m.Parts[i] = p
		case ninelives.Text:
			if i < len(c.parts) && c.parts[i].kind == chatKindCall {
				p.Text = wire.Arguments(p.Text, nil, "", cut)
				m.Parts[i] = p
			}
		}
	}
}
