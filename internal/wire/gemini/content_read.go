package gemini

import (
	"bytes"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// reader reads parts. names maps the names of tools as they were sent to the
// caller's own, outputTool is the tool whose arguments are the answer.
type reader struct {
	provenance ninelives.Provenance // Provider and Model of what is read
	names      map[string]string
	outputTool string
}

func newReader(o wire.DecodeOptions) reader {
	return reader{
		provenance: ninelives.Provenance{Provider: o.Candidate.Provider, Model: o.Candidate.Model},
		names:      o.Names,
		outputTool: o.OutputTool,
	}
}

// rawPart is a part of the wire, its values still raw.
type rawPart struct {
	text, signature, inline, file, call, result []byte
	thought                                     bool
	kept                                        rawjson.Kept
	kind                                        string // the first member that is not known
}

func readPart(raw []byte) rawPart {
	var p rawPart
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "text":
			p.text = m.Value
		case "thought":
			p.thought, _ = rawjson.Bool(m.Value)
		case "thoughtSignature":
			p.signature = m.Value
		case "inlineData":
			p.inline = m.Value
		case "fileData":
			p.file = m.Value
		case "functionCall":
			p.call = m.Value
		case "functionResponse":
			p.result = m.Value
		default:
			if p.kind == "" {
				p.kind = string(m.Name)
			}
			p.kept.Add(m)
		}
	}
	return p
}

// parts reads one part. It is two if a proof came with it that is no call's
// and no thought's.
func (r *reader) parts(raw []byte) []ninelives.Part {
	p := readPart(raw)
	signature := rawjson.String(p.signature)
	meta := func() ninelives.Meta { return ninelives.Meta{Extra: extraOf(p.kept.Object())} }
	switch {
	case p.call != nil:
		return []ninelives.Part{r.call(p, signature)}
	case p.result != nil:
		return []ninelives.Part{r.result(p)}
	case p.thought && p.text != nil:
		return []ninelives.Part{r.thought(p, signature)}
	case p.text != nil:
		text := rawjson.String(p.text)
		if text == "" && signature != "" {
			p.kept.Add(rawjson.Member{Raw: []byte(`"text":""`)})
			return []ninelives.Part{r.proof(signature, p.kept.Object())}
		}
		return r.proven(signature, ninelives.Text{Text: text, Meta: meta()})
	case p.inline != nil:
		if part, ok := inlineData(p.inline, meta); ok {
			return r.proven(signature, part)
		}
	case p.file != nil:
		if part, ok := fileData(p.file, meta); ok {
			return r.proven(signature, part)
		}
	case p.kind == "" && signature != "":
		return []ninelives.Part{r.proof(signature, []byte("{}"))}
	}
	kind := p.kind
	switch {
	case p.inline != nil:
		kind = "inlineData"
	case p.file != nil:
		kind = "fileData"
	}
	return []ninelives.Part{ninelives.Opaque{Kind: kind, Raw: extraOf(bytes.Clone(raw))}}
}

// proven puts a proof before the part that it came with.
func (r *reader) proven(signature string, part ninelives.Part) []ninelives.Part {
	if signature == "" {
		return []ninelives.Part{part}
	}
	return []ninelives.Part{r.proof(signature, nil), part}
}

// proof is a proof of thinking that nobody else can read. own are the members
// of the part that it is of, nil if it came with another one.
func (r *reader) proof(signature string, own []byte) ninelives.Reasoning {
	p := ninelives.Reasoning{Redacted: true, Provenance: r.provenance, Meta: ninelives.Meta{Extra: extraOf(own)}}
	p.Provenance.Field, p.Provenance.Blob = fieldSignature, signature
	return p
}

func (r *reader) thought(p rawPart, signature string) ninelives.Reasoning {
	part := ninelives.Reasoning{Text: rawjson.String(p.text), Summary: true, Provenance: r.provenance}
	part.Provenance.Field, part.Provenance.Signature = fieldThought, signature
	part.Extra = extraOf(p.kept.Object())
	return part
}

// call reads a function call. One of the output tool is the text of the answer.
func (r *reader) call(p rawPart, signature string) ninelives.Part {
	var c ninelives.ToolCall
	var inner rawjson.Kept
	for m := range rawjson.Members(p.call) {
		switch word(m.Name) {
		case "id":
			c.ID = rawjson.String(m.Value)
		case "name":
			c.Name = rawjson.String(m.Value)
		case "args":
			c.Arguments = string(m.Value)
		default:
			inner.Add(m)
		}
	}
	if r.outputTool != "" && c.Name == r.outputTool {
		return ninelives.Text{Text: c.Arguments}
	}
	if own, ok := r.names[c.Name]; ok {
		c.Name = own
	}
	if signature != "" {
		c.Signature, c.Provenance = signature, r.provenance
		c.Provenance.Field = fieldSignature
	}
	if object := inner.Object(); object != nil || c.ID != "" {
		if object == nil {
			object = []byte("{}")
		}
		p.kept.Add(rawjson.Member{Raw: append([]byte(`"functionCall":`), object...)})
	}
	c.Extra = extraOf(p.kept.Object())
	return c
}

// result reads the result of a call. The key "output" holds a plain result,
// "error" one that failed; any other object is the result itself.
//
// Source: the FunctionResponse message of the API reference.
func (r *reader) result(p rawPart) ninelives.ToolResult {
	var t ninelives.ToolResult
	var inner rawjson.Kept
	for m := range rawjson.Members(p.result) {
		switch word(m.Name) {
		case "id":
			t.CallID = rawjson.String(m.Value)
		case "name":
			t.Name = rawjson.String(m.Value)
		case "response":
			var text string
			if text, t.IsError = plainResult(m.Value); text != "" {
				t.Content = []ninelives.Part{ninelives.Text{Text: text}}
			}
		default:
			inner.Add(m)
		}
	}
	if object := inner.Object(); object != nil {
		p.kept.Add(rawjson.Member{Raw: append([]byte(`"functionResponse":`), object...)})
	}
	t.Extra = extraOf(p.kept.Object())
	return t
}

// plainResult gives the text of a result and whether it is an error.
func plainResult(raw []byte) (string, bool) {
	n, name, value := 0, "", []byte(nil)
	for m := range rawjson.Members(raw) {
		n++
		name, value = string(m.Name), m.Value
	}
	if n == 1 && rawjson.Kind(value) == '"' && (name == "output" || name == "error") {
		return rawjson.String(value), name == "error"
	}
	return string(raw), false
}

// inlineData reads a picture or a file that is in the message.
func inlineData(raw []byte, meta func() ninelives.Meta) (ninelives.Part, bool) {
	var mediaType, name string
	var data []byte
	ok := true
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "mimeType":
			mediaType = rawjson.String(m.Value)
		case "data":
			data, ok = rawjson.Base64(rawjson.String(m.Value))
		case "displayName":
			name = rawjson.String(m.Value)
		default:
			return nil, false
		}
	}
	switch {
	case !ok || data == nil || mediaType == "":
		return nil, false
	case strings.HasPrefix(mediaType, "image/") && name == "":
		return ninelives.Image{MediaType: mediaType, Data: data, Meta: meta()}, true
	}
	return ninelives.File{Name: name, MediaType: mediaType, Data: data, Meta: meta()}, true
}

// fileData reads a picture or a file that lies elsewhere.
func fileData(raw []byte, meta func() ninelives.Meta) (ninelives.Part, bool) {
	var mediaType, name, uri string
	for m := range rawjson.Members(raw) {
		switch word(m.Name) {
		case "mimeType":
			mediaType = rawjson.String(m.Value)
		case "fileUri":
			uri = rawjson.String(m.Value)
		case "displayName":
			name = rawjson.String(m.Value)
		default:
			return nil, false
		}
	}
	switch {
	case uri == "":
		return nil, false
	case strings.HasPrefix(mediaType, "image/") && name == "":
		return ninelives.Image{URL: uri, MediaType: mediaType, Meta: meta()}, true
	}
	return ninelives.File{Name: name, URL: uri, MediaType: mediaType, Meta: meta()}, true
}
