package ninelives

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// fill draws a value of any type of the vocabulary, field by field, so that a
// field that is added later is covered as well.
func fill(t *rapid.T, v reflect.Value, depth int) {
	if rapid.IntRange(0, 2).Draw(t, "zero") == 0 {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1e9, 1e10).Draw(t, "unix"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()))
		return
	case time.Duration:
		v.SetInt(rapid.Int64().Draw(t, "duration"))
		return
	case []byte:
		v.SetBytes(drawBytes(t))
		return
	}
	switch v.Type() {
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(errors.New("cause: " + rapid.String().Draw(t, "error"))))
		return
	case reflect.TypeFor[Part]():
		v.Set(reflect.ValueOf(drawPart(t, depth)))
		return
	case reflect.TypeFor[*Raw]():
		return // the bytes of a client are kept as bytes
	case reflect.TypeFor[*Attempt]():
		return // written by a healing driver for one attempt, and never stored
	case reflect.TypeFor[func(int) (*Request, error)]():
		return // what a caller can do is not stored either
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), depth)
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "len")
		if depth == 0 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			if v.Index(i).Kind() == reflect.Interface {
				v.Index(i).Set(reflect.ValueOf(drawPart(t, depth-1)))
			} else {
				fill(t, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map")))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8().Draw(t, "uint8")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e300, 1e300).Draw(t, "float"))
	default:
		t.Fatalf("the codec's test does not know how to draw a %s", v.Type())
	}
}

func drawBytes(t *rapid.T) []byte {
	return rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{
			``, `null`, `{}`, `[]`, `"x"`, `1`, `1.50e+05`, `{"type":"object","properties":{"a":{"type":"string"}}}`,
			`{ "a" : 1 }`, `"\u0041"`, `{"a":1,"a":2}`, `{"b":1,"a":2}`, `{"$raw":"abc"}`, `{"$raw":"YWJj"}`, `{"$raw":1}`, `{"$raw":null}`,
			`{"unclosed"`, `["base64","x"]`, "\"\xff\"", `"\ud800"`, `<b>&</b>`, `12345678901234567890123`,
		}), func(s string) []byte { return []byte(s) }),
		rapid.SliceOfN(rapid.Byte(), 0, 20),
	).Draw(t, "bytes")
}

func drawPart(t *rapid.T, depth int) Part {
	kinds := []Part{Text{}, Image{}, File{}, ToolCall{}, ToolResult{}, Reasoning{}, Refusal{}, Opaque{}}
	p := reflect.New(reflect.TypeOf(rapid.SampledFrom(kinds).Draw(t, "kind"))).Elem()
	fill(t, p, depth)
	return p.Interface().(Part)
}

func roundTrip[T any](t *testing.T) {
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var in, out, std T
			fill(t, reflect.ValueOf(&in).Elem(), 4)
			b, err := json.Marshal(in, lenient)
			if err != nil {
				t.Fatalf("write %+v: %v", in, err)
			}
			if err := json.Unmarshal(b, &out, lenient); err != nil {
				t.Fatalf("read %s: %v", b, err)
			}
			if !reflect.DeepEqual(in, out) {
				t.Fatalf("wrote %#v\nread  %#v\nfrom  %s", in, out, b)
			}
			again, err := json.Marshal(out, lenient)
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("written twice:\n%s\n%s (%v)", b, again, err)
			}
			switch any(in).(type) {
			case Request, Message, Response, Notice:
				b, err := stdjson.Marshal(in)
				if err != nil {
					t.Fatal(err)
				}
				if err := stdjson.Unmarshal(b, &std); err != nil {
					t.Fatalf("encoding/json: read %s: %v", b, err)
				}
				if !reflect.DeepEqual(in, std) {
					t.Fatalf("encoding/json: wrote %#v\nread  %#v\nfrom  %s", in, std, b)
				}
			}
		})
	})
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	roundTrip[Request](t)
	roundTrip[Message](t)
	roundTrip[Response](t)
	roundTrip[Fault](t)
	roundTrip[Notice](t)
}

func TestTheFormIsReadable(t *testing.T) {
	yes := true
	req := Request{
		Model: "claude",
		Messages: []Message{
			SystemText("be brief"),
			{Role: RoleAssistant, Parts: []Part{
				Reasoning{Text: "hm", Provenance: Provenance{Provider: "deepseek", Field: "reasoning_content"}},
				ToolCall{ID: "c1", Name: "f", Arguments: `{"a":`},
			}},
			ToolResultText("c1", "f", "5 °C"),
			{Role: RoleUser, Parts: []Part{Image{MediaType: "image/png", Data: []byte{1, 2, 3}}, Opaque{Kind: "web", Raw: Extra{Protocol: Gemini, JSON: []byte(`{"type":"web"}`)}}}},
		},
		Tools:  []Tool{{Name: "f", Schema: []byte(`{"type":"object"}`), Strict: &yes}},
		Output: &Output{Name: "o", Schema: []byte("{\n}")},
		Stop:   []string{"x"},
	}
	const want = `{"model":"claude","messages":[` +
		`{"role":"system","parts":[{"type":"text","text":"be brief"}]},` +
		`{"role":"assistant","parts":[{"type":"reasoning","text":"hm","provenance":{"provider":"deepseek","field":"reasoning_content"}},{"type":"tool_call","id":"c1","name":"f","arguments":"{\"a\":"}]},` +
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c1","name":"f","content":[{"type":"text","text":"5 °C"}]}]},` +
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","data":"AQID"},{"type":"opaque","kind":"web","raw":{"protocol":"gemini","json":{"type":"web"}}}]}],` +
		`"tools":[{"name":"f","strict":true,"schema":{"type":"object"}}],` +
		`"stop":["x"],"output":{"name":"o","schema":{"$raw":"ewp9"}}}`
	if got, err := json.Marshal(req); err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}

	n := Notice{Kind: NoticeWait, Attempt: 2, Wait: 1500*time.Microsecond + 7, Took: -time.Microsecond / 2, Fault: &Fault{
		Class: ClassRateLimit, RetryAfter: 2 * time.Second, Err: fmt.Errorf("read: %w", errors.New("reset")),
	}}
	const wantNotice = `{"kind":"wait","attempt":2,"fault":{"class":"rate_limit","retry_after_ms":2000,"err":"read: reset"},"wait_ms":1.500007,"took_ms":-0.0005}`
	if got, err := json.Marshal(n); err != nil || string(got) != wantNotice {
		t.Errorf("%v\n got %s\nwant %s", err, got, wantNotice)
	}
}

func TestPartsOfALaterVersionAreKept(t *testing.T) {
	const later = `{"role":"user","parts":[{"type":"text","text":"see"},{"type":"hologram","depth":3,"new":[1,{"a":null}]},{"text":"no type"}],"mood":"calm"}`
	var m Message
	if err := json.Unmarshal([]byte(later), &m); err != nil {
		t.Fatal(err)
	}
	o, ok := m.Parts[1].(Opaque)
	if !ok || o.Kind != "hologram" {
		t.Fatalf("%#v", m.Parts[1])
	}
	for _, p := range []Protocol{OpenAIChat, OpenAIResponses, AnthropicMessages, Gemini, OllamaNative} {
		if o.Raw.For(p) != nil {
			t.Errorf("%s would be sent a part of this product's own form", p)
		}
	}
	got, err := json.Marshal(m)
	if want := strings.Replace(later, `,"mood":"calm"`, ``, 1); err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func TestNoTextIsRefused(t *testing.T) {
	in := UserText("caf\xe9 \xed\xa0\x80 end")
	in.Extra = Extra{Protocol: OpenAIChat, JSON: []byte(strings.Repeat("[", 20000))}
	b, err := json.Marshal(in, lenient)
	if err != nil {
		t.Fatal(err)
	}
	var out Message
	if err := json.Unmarshal(b, &out, lenient); err != nil {
		t.Fatal(err)
	}
	if got := out.Text(); !utf8.ValidString(got) || !strings.HasPrefix(got, "caf\uFFFD ") || !strings.HasSuffix(got, " end") {
		t.Errorf("%q", got)
	}
	if !bytes.Equal(out.Extra.JSON, in.Extra.JSON) {
		t.Error("a deep JSON text is not what it was")
	}
	deep := []byte(strings.Repeat("[", 8000) + strings.Repeat("]", 8000))
	in.Extra.JSON = deep
	b, err = json.Marshal(Request{Messages: []Message{in}}, lenient)
	if err != nil {
		t.Fatal(err)
	}
	var req Request
	if err := json.Unmarshal(b, &req, lenient); err != nil || !bytes.Equal(req.Messages[0].Extra.JSON, deep) {
		t.Errorf("a deep valid JSON text is not what it was: %v", err)
	}
}

func TestWhatIsNoPartIsAnError(t *testing.T) {
	for name, p := range map[string]Part{"nil": nil, "a pointer": &Text{Text: "x"}} {
		if b, err := json.Marshal(Message{Parts: []Part{p}}); err == nil {
			t.Errorf("%s was written as %s", name, b)
		}
	}
	for _, bad := range []string{`{"parts":[1]}`, `{"parts":{}}`, `{"parts":[{"type":"text","text":5}]}`, `{"role":7}`, `[`, ``} {
		var m Message
		if err := json.Unmarshal([]byte(bad), &m); err == nil {
			t.Errorf("%s was read as %+v", bad, m)
		}
	}
	var n Notice
	if err := json.Unmarshal([]byte(`{"wait_ms":"long"}`), &n); err == nil {
		t.Error("a wait of \"long\" was read")
	}
}

func TestALogShowsAFaultAsALine(t *testing.T) {
	var b bytes.Buffer
	f := &Fault{Class: ClassStreamBroken, Message: "cut", Partial: &Response{Message: AssistantText("half an answer")}}
	slog.New(slog.NewJSONHandler(&b, nil)).Info("failed", "fault", f)
	if !strings.Contains(b.String(), `"fault":"stream_broken: cut"`) || strings.Contains(b.String(), "half an answer") {
		t.Error(b.String())
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","parts":[{"type":"text","text":"hi"},{"type":"new"}]}],"tools":[{"schema":{"$raw":"e30="}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out Request
		if json.Unmarshal(b, &in, lenient) != nil {
			return
		}
		w, err := json.Marshal(in, lenient)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if err := json.Unmarshal(w, &out, lenient); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if again, _ := json.Marshal(out, lenient); !bytes.Equal(w, again) {
			t.Fatalf("written twice:\n%s\n%s", w, again)
		}
	})
}
