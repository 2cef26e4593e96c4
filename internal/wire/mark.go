package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// A client sends the reasoning of an answer back with its next request, in the
// only field that its protocol has for it. What another protocol's model made
// has no place there: its maker, its proof. Both are carried as a mark, which
// stands where the protocol has an opaque proof (signature, encrypted_content,
// thoughtSignature), and which clients hand back untouched. The reader of a
// request takes it apart again, so that each maker is shown its own reasoning,
// byte for byte, and nobody else's.
//
// A mark is base64 throughout, because some clients decode and encode it, and
// begins with the same letters whatever it says. It proves nothing: a client
// can write one, as it can write any signature.
const markPrefix = "bmluZWxpdmVz" // "ninelives" in base64

// Marked reports whether a body may hold a mark. Such a body must not be sent
// to a provider as it is.
func Marked(body []byte) bool { return bytes.Contains(body, []byte(markPrefix)) }

// IsMark reports that s is a mark, or several.
func IsMark(s string) bool { return strings.HasPrefix(s, markPrefix) }

// Mark gives the mark of a piece of reasoning.
func Mark(r ninelives.Reasoning) string { return mark(r, "", "") }

// MarkWhole is Mark with the text in it, for a mark that stands apart from a
// text that some clients do not send back.
func MarkWhole(r ninelives.Reasoning) string { return mark(r, r.Text, "") }

// JoinMarks makes one of several, for a place that has room for one.
func JoinMarks(marks []string) string { return strings.Join(marks, ".") }

// MarkOf is the mark of reasoning without a proof, of so many bytes of text.
func MarkOf(maker ninelives.Provenance, length int) string {
	return markLength(ninelives.Reasoning{Provenance: maker}, "", "", length)
}

func mark(r ninelives.Reasoning, text, call string) string {
	return markLength(r, text, call, len(r.Text))
}

func markLength(r ninelives.Reasoning, text, call string, n int) string {
	var w rawjson.Writer
	w.B = append(w.B, "ninelives"...)
	at := len(w.B)
	w.B = append(w.B, '{')
	add := func(name, v string) {
		if v != "" {
			w.StringMember(name, v)
		}
	}
	add("p", r.Provenance.Provider)
	add("m", r.Provenance.Model)
	add("f", r.Provenance.Field)
	add("s", r.Provenance.Signature)
	add("b", r.Provenance.Blob)
	add("i", r.ID)
	add("c", call)
	add("t", text)
	if r.Summary {
		w.BoolMember("u", true)
	}
	if r.Redacted {
		w.BoolMember("r", true)
	}
	if n > 0 {
		w.IntMember("n", int64(n))
	}
	w.Close('}')
	for (len(w.B)-at)%3 != 0 { // no padding: it is what clients differ in
		w.B = append(w.B, ' ')
	}
	return base64.StdEncoding.EncodeToString(w.B)
}

// carried is what a mark says.
type carried struct {
	part   ninelives.Reasoning // without its text, but for one that stands apart from it
	length int                 // of the text, in bytes
	call   string              // the call whose signature it is; empty for reasoning
}

// readMarks takes apart what is one mark, or several, or the reasoning_details
// that hold some. It gives nil for anything else.
func readMarks(s string) []carried {
	if strings.HasPrefix(s, "[") {
		for e := range rawjson.Elements([]byte(s)) {
			if data := rawjson.String(rawjson.Get(e, "data")); IsMark(data) {
				return readMarks(data)
			}
		}
		return nil
	}
	if !IsMark(s) {
		return nil
	}
	var list []carried
	for one := range strings.SplitSeq(s, ".") {
		one = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(one, "="))
		b, err := base64.RawStdEncoding.DecodeString(one)
		b, ok := bytes.CutPrefix(b, []byte("ninelives"))
		if err != nil || !ok || !rawjson.Valid(b) {
			return nil
		}
		get := func(name string) string { return rawjson.String(rawjson.Get(b, name)) }
		c := carried{call: get("c")}
		c.part.ID, c.part.Text = get("i"), get("t")
		c.part.Provenance = ninelives.Provenance{Provider: get("p"), Model: get("m"), Field: get("f"), Signature: get("s"), Blob: get("b")}
		c.part.Summary, _ = rawjson.Bool(rawjson.Get(b, "u"))
		c.part.Redacted, _ = rawjson.Bool(rawjson.Get(b, "r"))
		n, _ := rawjson.Int(rawjson.Get(b, "n"))
		c.length = int(n)
		list = append(list, c)
	}
	return list
}

// Carry gives the parts of an answer with marks on the reasoning that is not
// the protocol's own, which own tells by its field; shape makes a part that
// holds a text and a mark in the protocol's way. Where calls is set, the
// signatures of calls are carried as well, in parts of their own that follow
// all others. Reasoning whose maker is not known is left as it is.
//
// The places of the parts that there were stay the same.
func Carry(parts []ninelives.Part, own func(field string) bool, calls bool, shape func(text, mark string) ninelives.Reasoning) []ninelives.Part {
	var out []ninelives.Part
	for i, part := range parts {
		switch p := part.(type) {
		case ninelives.Reasoning:
			if p.Provenance.Provider == "" || own(p.Provenance.Field) {
				continue
			}
			if out == nil {
				out = slices.Clone(parts)
			}
			out[i] = shape(p.Text, Mark(p))
		case ninelives.ToolCall:
			if !calls || p.Signature == "" || p.Provenance.Provider == "" {
				continue
			}
			if out == nil {
				out = slices.Clone(parts)
			}
			proof := p.Provenance
			proof.Signature = p.Signature
			out = append(out, shape("", mark(ninelives.Reasoning{Provenance: proof}, "", p.ID)))
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// Restore takes the marks in the messages of a client's request apart: the
// reasoning becomes what its maker gave, the calls get their signatures back.
// Reasoning that was changed since keeps its text and loses its proof.
func Restore(messages []ninelives.Message) {
	signed := map[string]ninelives.Provenance{}
	for i := range messages {
		if m := &messages[i]; m.Role == ninelives.RoleAssistant {
			m.Parts = restore(m.Parts, signed)
		}
	}
	if len(signed) == 0 {
		return
	}
	for i := range messages {
		for j, part := range messages[i].Parts {
			c, ok := part.(ninelives.ToolCall)
			proof, is := signed[c.ID]
			if !ok || !is {
				continue
			}
			c.Signature, c.Provenance = proof.Signature, proof
			c.Provenance.Signature = ""
			messages[i].Parts[j] = c
		}
	}
}

// restore does it for one message. A mark that stands with its text is put in
// its place; the others belong to the texts that are left, in order.
func restore(parts []ninelives.Part, signed map[string]ninelives.Provenance) []ninelives.Part {
	var out []ninelives.Part
	var pool loose
	for _, part := range parts {
		r, ok := part.(ninelives.Reasoning)
		if !ok {
			out = append(out, part)
			continue
		}
		proof := r.Provenance.Blob
		if proof == "" {
			proof = r.Provenance.Signature
		}
		marks := readMarks(proof)
		var own []carried
		for _, c := range marks {
			if c.call != "" {
				signed[c.call] = c.part.Provenance
			} else {
				own = append(own, c)
			}
		}
		switch {
		case len(marks) == 0 && proof != "": // of this protocol's own maker
			out = append(out, r)
		case len(own) == 1 && own[0].length == len(r.Text):
			own[0].part.Text = r.Text
			out = append(out, own[0].part)
		default:
			pool.add(len(out), r, proof, own)
		}
	}
	return pool.into(out)
}

// loose is the reasoning of a message that stands apart from its marks.
type loose struct {
	place  int // of the first text
	parts  []ninelives.Part
	places []int
	text   strings.Builder
	marks  []carried
	proof  string
}

func (l *loose) add(place int, r ninelives.Reasoning, proof string, marks []carried) {
	if l.text.Len() == 0 {
		l.place = place
	}
	l.text.WriteString(r.Text)
	if r.Text != "" || proof == "" {
		l.parts, l.places = append(l.parts, r), append(l.places, place)
	}
	if proof == "" || proof != l.proof { // the parts of one item all carry the same
		l.marks = append(l.marks, marks...)
	}
	l.proof = proof
}

// into puts the reasoning back among the other parts of its message.
func (l *loose) into(out []ninelives.Part) []ninelives.Part {
	text := l.text.String()
	if len(l.marks) == 0 { // nothing of it was marked
		for i := len(l.parts) - 1; i >= 0; i-- {
			out = slices.Insert(out, l.places[i], l.parts[i])
		}
		return out
	}
	whole, own := 0, ""
	for _, c := range l.marks {
		whole += c.length
		own += c.part.Text
	}
	if text == "" {
		text = own
	}
	if whole != len(text) {
		of := l.marks[0].part.Provenance
		r := ninelives.Reasoning{Text: text, Provenance: ninelives.Provenance{Provider: of.Provider, Model: of.Model, Field: of.Field}}
		return slices.Insert(out, l.place, ninelives.Part(r))
	}
	var list []ninelives.Part
	for _, c := range l.marks {
		c.part.Text, text = text[:c.length], text[c.length:]
		list = append(list, c.part)
	}
	return slices.Insert(out, l.place, list...)
}
