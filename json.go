package ninelives

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The vocabulary in JSON, for what is stored and shown. Fields have the names
// of their tags and are left out where they are zero; a part carries its kind
// as "type"; JSON texts stand as they are; durations are in milliseconds; the
// cause of a fault is its text. What is read back equals what was written,
// except that bytes that are no UTF-8 have become U+FFFD and that a request's
// Attempt and Fit are not written.
//
// A later version may know kinds of parts that this one does not: they are
// read as Opaque and written back as they were. Unknown members are ignored.
//
// Request, Message, Response and Notice have this form with encoding/json as
// well as with go-json-experiment, their pieces only with the latter. Fault
// has no MarshalJSON, so that a log writes its one line and not the partial
// answer inside.

// lenient lets any text be stored, whatever a provider or a user put in; what
// is equal is written alike.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), json.Deterministic(true))

type (
	plainMessage    Message
	plainToolResult ToolResult
	plainTool       Tool
	plainOutput     Output
	plainResponse   Response
	plainExtra      Extra
	plainFault      Fault
	plainNotice     Notice
	plainRequest    Request
)

// The forms of the types that need more than their tags: a field here takes
// the place of the field of the same name in the embedded type.
type (
	messageForm struct {
		*plainMessage
		Parts parts `json:"parts,omitzero"`
	}
	toolResultForm struct {
		Type string `json:"type"`
		*plainToolResult
		Content parts `json:"content,omitzero"`
	}
	toolForm struct {
		*plainTool
		Schema rawText `json:"schema,omitzero"`
	}
	outputForm struct {
		*plainOutput
		Schema  rawText `json:"schema,omitzero"`
		Default rawText `json:"default,omitzero"`
	}
	responseForm struct {
		*plainResponse
		Output rawText `json:"output,omitzero"`
	}
	extraForm struct {
		*plainExtra
		JSON rawText `json:"json,omitzero"`
	}
	faultForm struct {
		*plainFault
		RetryAfter millis `json:"retry_after_ms,omitzero"`
		Err        string `json:"err,omitzero"`
	}
	noticeForm struct {
		*plainNotice
		Wait millis `json:"wait_ms,omitzero"`
		Took millis `json:"took_ms,omitzero"`
	}
)

// MarshalJSON implements json.Marshaler.
func (r Request) MarshalJSON() ([]byte, error) { return json.Marshal((*plainRequest)(&r), lenient) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Request) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*plainRequest)(r), lenient)
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return json.Marshal(m.form(), lenient) }

// MarshalJSONTo implements json.MarshalerTo.
func (m Message) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, m.form()) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) error {
	return m.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(b), lenient))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *Message) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := messageForm{plainMessage: (*plainMessage)(m)}
	err := json.UnmarshalDecode(d, &form)
	m.Parts = form.Parts
	return err
}

func (m *Message) form() messageForm { return messageForm{(*plainMessage)(m), m.Parts} }

// MarshalJSON implements json.Marshaler.
func (r Response) MarshalJSON() ([]byte, error) { return json.Marshal(r.form(), lenient) }

// MarshalJSONTo implements json.MarshalerTo.
func (r Response) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, r.form()) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Response) UnmarshalJSON(b []byte) error {
	return r.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(b), lenient))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (r *Response) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := responseForm{plainResponse: (*plainResponse)(r)}
	err := json.UnmarshalDecode(d, &form)
	r.Output = form.Output
	return err
}

func (r *Response) form() responseForm { return responseForm{(*plainResponse)(r), r.Output} }

// MarshalJSON implements json.Marshaler.
func (n Notice) MarshalJSON() ([]byte, error) { return json.Marshal(n.form(), lenient) }

// MarshalJSONTo implements json.MarshalerTo.
func (n Notice) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, n.form()) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Notice) UnmarshalJSON(b []byte) error {
	return n.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(b), lenient))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *Notice) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := noticeForm{plainNotice: (*plainNotice)(n)}
	err := json.UnmarshalDecode(d, &form)
	n.Wait, n.Took = time.Duration(form.Wait), time.Duration(form.Took)
	return err
}

func (n *Notice) form() noticeForm {
	return noticeForm{(*plainNotice)(n), millis(n.Wait), millis(n.Took)}
}

// MarshalJSONTo implements json.MarshalerTo.
func (f Fault) MarshalJSONTo(e *jsontext.Encoder) error {
	form := faultForm{plainFault: (*plainFault)(&f), RetryAfter: millis(f.RetryAfter)}
	if f.Err != nil {
		form.Err = f.Err.Error()
	}
	return json.MarshalEncode(e, form)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *Fault) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := faultForm{plainFault: (*plainFault)(f)}
	err := json.UnmarshalDecode(d, &form)
	f.RetryAfter = time.Duration(form.RetryAfter)
	if form.Err != "" {
		f.Err = errors.New(form.Err)
	}
	return err
}

// MarshalJSONTo implements json.MarshalerTo.
func (t Tool) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, toolForm{(*plainTool)(&t), t.Schema})
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *Tool) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := toolForm{plainTool: (*plainTool)(t)}
	err := json.UnmarshalDecode(d, &form)
	t.Schema = form.Schema
	return err
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Output) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, outputForm{(*plainOutput)(&o), o.Schema, o.Default})
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Output) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := outputForm{plainOutput: (*plainOutput)(o)}
	err := json.UnmarshalDecode(d, &form)
	o.Schema, o.Default = form.Schema, form.Default
	return err
}

// MarshalJSONTo implements json.MarshalerTo.
func (x Extra) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, extraForm{(*plainExtra)(&x), x.JSON})
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (x *Extra) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	form := extraForm{plainExtra: (*plainExtra)(x)}
	err := json.UnmarshalDecode(d, &form)
	x.JSON = form.JSON
	return err
}

// parts are the parts of a message: objects that name their kind.
type parts []Part

// unknownPart marks an Opaque that holds a part of a later version. No wire
// protocol has that name, so it is sent to none.
const unknownPart Protocol = "ninelives"

func (ps parts) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for i, p := range ps {
		var form any
		switch p := p.(type) {
		case Text:
			form = tagged("text", &p)
		case Image:
			form = tagged("image", &p)
		case File:
			form = tagged("file", &p)
		case ToolCall:
			form = tagged("tool_call", &p)
		case ToolResult:
			form = toolResultForm{"tool_result", (*plainToolResult)(&p), p.Content}
		case Reasoning:
			form = tagged("reasoning", &p)
		case Refusal:
			form = tagged("refusal", &p)
		case Opaque:
			if p.Raw.Protocol == unknownPart && jsontext.Value(p.Raw.JSON).IsValid() {
				form = jsontext.Value(p.Raw.JSON)
			} else {
				form = tagged("opaque", &p)
			}
		default:
			return fmt.Errorf("part %d is a %T, which cannot be written: parts are values of the eight kinds", i, p)
		}
		if err := json.MarshalEncode(e, form); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}

func (ps *parts) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var list []jsontext.Value
	if err := json.UnmarshalDecode(d, &list); err != nil || list == nil {
		return err
	}
	*ps = make(parts, len(list))
	for i, v := range list {
		p, err := readPart(v)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		(*ps)[i] = p
	}
	return nil
}

func readPart(v jsontext.Value) (Part, error) {
	kind, err := kindOf(v)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "text":
		return readTagged[Text](v)
	case "image":
		return readTagged[Image](v)
	case "file":
		return readTagged[File](v)
	case "tool_call":
		return readTagged[ToolCall](v)
	case "tool_result":
		var p ToolResult
		form := toolResultForm{plainToolResult: (*plainToolResult)(&p)}
		err := json.Unmarshal(v, &form, lenient)
		p.Content = form.Content
		return p, err
	case "reasoning":
		return readTagged[Reasoning](v)
	case "refusal":
		return readTagged[Refusal](v)
	case "opaque":
		return readTagged[Opaque](v)
	}
	return Opaque{Kind: kind, Raw: Extra{Protocol: unknownPart, JSON: v}}, nil
}

// kindOf is the type of a part. As parts are written it comes first, and the
// rest need not be read for it.
func kindOf(v jsontext.Value) (string, error) {
	if rest, ok := bytes.CutPrefix(v, []byte(`{"type":"`)); ok {
		for _, kind := range partKinds {
			if len(rest) > len(kind) && rest[len(kind)] == '"' && string(rest[:len(kind)]) == kind {
				return kind, nil
			}
		}
	}
	var kind struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(v, &kind, lenient)
	return kind.Type, err
}

// partKinds are the types of parts, the frequent ones first.
var partKinds = []string{"tool_result", "text", "tool_call", "reasoning", "image", "file", "refusal", "opaque"}

// taggedPart is a part with its kind before its own fields.
type taggedPart[T Part] struct {
	Type string `json:"type"`
	Part *T     `json:",embed"`
}

func tagged[T Part](kind string, p *T) taggedPart[T] { return taggedPart[T]{kind, p} }

func readTagged[T Part](v jsontext.Value) (Part, error) {
	var p T
	err := json.Unmarshal(v, &taggedPart[T]{Part: &p}, lenient)
	return p, err
}

// rawText is a JSON text that keeps its bytes. It stands as it is where an
// encoder leaves it as it is; else (spaces, escapes, repeated names, no JSON at
// all) it is wrapped.
type rawText []byte

type wrappedText struct {
	Raw []byte `json:"$raw"`
}

const wrapper = `{"$raw":`

// maxNesting keeps far from the depth that JSON libraries refuse.
const maxNesting = 9000

func (r rawText) MarshalJSONTo(e *jsontext.Encoder) error {
	v := jsontext.Value(r).Clone()
	nested := bytes.Count(r, []byte("[")) + bytes.Count(r, []byte("{"))
	if nested < maxNesting && v.Format() == nil && bytes.Equal(v, r) && !bytes.HasPrefix(r, []byte(wrapper)) {
		return e.WriteValue(v)
	}
	return json.MarshalEncode(e, wrappedText{r})
}

func (r *rawText) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	var wrapped wrappedText
	if v.Kind() == '{' && json.Unmarshal(v, &wrapped, json.RejectUnknownMembers(true)) == nil && wrapped.Raw != nil {
		*r = wrapped.Raw
		return nil
	}
	*r = rawText(v.Clone())
	return nil
}

// millis is a duration as a number of milliseconds, exact to the nanosecond.
type millis time.Duration

func (m millis) MarshalJSONTo(e *jsontext.Encoder) error {
	whole, rest := int64(m)/1e6, int64(m)%1e6
	s := strconv.FormatInt(whole, 10)
	if rest != 0 {
		if whole == 0 && rest < 0 {
			s = "-0"
		}
		s += "." + strings.TrimRight(fmt.Sprintf("%06d", max(rest, -rest)), "0")
	}
	return e.WriteValue(jsontext.Value(s))
}

func (m *millis) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	exact, err := time.ParseDuration(string(v) + "ms")
	if err != nil {
		return fmt.Errorf("%s is no number of milliseconds", v)
	}
	*m = millis(exact)
	return nil
}
