package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

func TestMembersKeepOrderSpellingAndRepeats(t *testing.T) {
	obj := []byte("{ \"a\" : [1, {\"}\":\"]\"}] ,\"\\u0062\":\"x\\\"y\",\"a\":-1.5e3 , \"\": {} }")
	var names, values, raws []string
	for m := range rawjson.Members(obj) {
		names = append(names, string(m.Name))
		values = append(values, string(m.Value))
		raws = append(raws, string(m.Raw))
	}
	equal(t, names, []string{"a", "b", "a", ""})
	equal(t, values, []string{`[1, {"}":"]"}]`, `"x\"y"`, "-1.5e3", "{}"})
	equal(t, raws, []string{`"a" : [1, {"}":"]"}]`, `"\u0062":"x\"y"`, `"a":-1.5e3`, `"": {}`})
}

func TestReadersGiveNothingForOtherKinds(t *testing.T) {
	for range rawjson.Members([]byte(`[1]`)) {
		t.Error("an array has no members")
	}
	for range rawjson.Elements([]byte(`{"a":1}`)) {
		t.Error("an object has no elements")
	}
	if s := rawjson.String([]byte(`12`)); s != "" {
		t.Errorf("a number is no string: %q", s)
	}
	if _, ok := rawjson.Int([]byte(`"12"`)); ok {
		t.Error("a string is no number")
	}
	if _, ok := rawjson.Int([]byte(`1.5`)); ok {
		t.Error("1.5 is not whole")
	}
	if n, ok := rawjson.Int([]byte(`1787150055.0`)); !ok || n != 1787150055 {
		t.Errorf("1787150055.0 is whole: %d %v", n, ok)
	}
	if !rawjson.Is([]byte(`"a\u0062"`), "ab") || rawjson.Is([]byte(`"a\\b"`), `a\\b`) {
		t.Error("Is compares the text, not the spelling")
	}
}

func TestRestSkipsWhatIsWrittenAlready(t *testing.T) {
	var w rawjson.Writer
	at := w.Open('{')
	w.StringMember("model", "m")
	w.Name("nested")
	w.Open('{')
	w.IntMember("b", 1)
	w.Close('}')
	w.Rest(at, []byte(`{"a" : 1, "model":"x","b":[ 2 ],"drop":0}`), []string{"drop"})
	w.Close('}')
	if got, want := string(w.B), `{"model":"m","nested":{"b":1},"a" : 1,"b":[ 2 ]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever encoding/json writes, the readers take apart and Kept puts together.
func TestTakingApartAndPuttingTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := rapid.MapOf(rapid.String(), anyValue(3)).Draw(t, "object")
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		if rapid.Bool().Draw(t, "indent") {
			enc.SetIndent(" ", "\t")
		}
		if err := enc.Encode(obj); err != nil {
			t.Fatal(err)
		}
		if !rawjson.Valid(buf.Bytes()) {
			t.Fatalf("not valid: %s", buf.Bytes())
		}
		var kept rawjson.Kept
		n := 0
		for m := range rawjson.Members(buf.Bytes()) {
			kept.Add(m)
			if s, ok := obj[string(m.Name)].(string); ok && rawjson.String(m.Value) != s {
				t.Fatalf("string %q, want %q", rawjson.String(m.Value), s)
			}
			n++
		}
		if n != len(obj) {
			t.Fatalf("%d members, want %d", n, len(obj))
		}
		if n > 0 {
			var a, b any
			_ = json.Unmarshal(buf.Bytes(), &a)
			if err := json.Unmarshal(kept.Object(), &b); err != nil {
				t.Fatal(err)
			}
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if !bytes.Equal(x, y) {
				t.Fatalf("%s became %s", x, y)
			}
		}
	})
}

// The readers never run past their input, valid or not.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\u00e9",{}],"b":null}`))
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{"a":`))
	f.Add([]byte(`["\`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for m := range rawjson.Members(b) {
			_ = rawjson.String(m.Value)
			for v := range rawjson.Elements(m.Value) {
				_, _ = rawjson.Int(v)
				_ = rawjson.Empty(v)
			}
		}
		for v := range rawjson.Elements(b) {
			_ = rawjson.Get(v, "a")
		}
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64().AsAny(), rapid.Int32().AsAny(), rapid.String().AsAny(),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.SliceOfN(anyValue(depth-1), 0, 3).AsAny(),
		rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 3).AsAny())
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%d: got %q, want %q", i, got[i], want[i])
		}
	}
}

func BenchmarkReadDelta(b *testing.B) {
	frame := []byte(`{"type":"response.output_text.delta","sequence_number":42,"item_id":"msg_049350089f7281c400698f7182e06481918ec2314235083b47","output_index":4,"content_index":0,"delta":" large \"signal\"","logprobs":[],"obfuscation":"Vk0HCjd5u0Ukrjt"}`)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if !rawjson.Valid(frame) {
			b.Fatal("not valid")
		}
		for m := range rawjson.Members(frame) {
			switch string(m.Name) {
			case "delta":
				buf = rawjson.AppendString(buf[:0], m.Value)
			case "output_index":
				_, _ = rawjson.Int(m.Value)
			}
		}
	}
}

func TestDropKeywordsLeavesDataAlone(t *testing.T) {
	schema := `{"type":"object","title":"T","properties":{"title":{"type":"string","title":"x"},"list":{"type":"array","items":[{"title":"y"},true]}},"enum":[{"title":1}],"anyOf":[{"title":"z","const":{"title":2}}],"additionalProperties":false,"$defs":{"title":{"not":{"title":"n"}}}}`
	want := `{"type":"object","properties":{"title":{"type":"string"},"list":{"type":"array","items":[{},true]}},"enum":[{"title":1}],"anyOf":[{"const":{"title":2}}],"additionalProperties":false,"$defs":{"title":{"not":{}}}}`
	if got := string(rawjson.DropKeywords([]byte(schema), []string{"title"})); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := string(rawjson.DropKeywords([]byte(" "+schema), nil)); got != " "+schema {
		t.Errorf("with nothing to drop the schema changed: %s", got)
	}
}

// Text is written and read as the library does it, whatever is in it.
func TestTextIsQuotedAndReadAsByTheLibrary(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,40}`), rapid.SampledFrom([]string{"\"", "\\", "\n", "\t", "\r", "\b", "\f", "\x00", "\x1f", "\x7f", "/", "é", "\u2028", "\U0001f600", "\xff", "\xed\xa0\x80", "\ufffd"}))
	escape := rapid.SampledFrom([]string{`\n`, `\"`, `\\`, `\/`, `\b`, `\f`, `\r`, `\t`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\u0000`, `x`, "é", "\xff", "plain text of some length"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		want, _ := jsontext.AppendQuote(nil, s)
		if got := rawjson.Quote(s); string(got) != string(want) {
			t.Fatalf("%q is written %s, want %s", s, got, want)
		}
		quoted := `"` + strings.Join(rapid.SliceOfN(escape, 0, 12).Draw(t, "escapes"), "") + `"`
		want, _ = jsontext.AppendUnquote([]byte("x"), quoted)
		if got := rawjson.AppendString([]byte("x"), []byte(quoted)); string(got) != string(want) {
			t.Fatalf("%s is read %q, want %q", quoted, got, want)
		}
	})
}

// lenient is what Valid lets pass.
var lenient = json2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// FuzzValid holds Valid to what the library says of the same bytes.
func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"x\\\"\\u00e9",true,false,null,{}],"":[]}`, ` [ ] `, `"`, `"\\`, `01`, `-`, `1.`, `1e`, `[1,]`, `{"a":1,}`, `{,}`, `tru`, "\"\x01\"", `{"a"}`, `[1 2]`, `1 2`, `]`, `{"a":1]`, "\"\xff\"", `"\\ud800"`, `"12345678\\x"`, "\"1234567\n\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := rawjson.Valid(b), jsontext.Value(b).IsValid(lenient); got != want {
			t.Errorf("%q is valid: %t, want %t", b, got, want)
		}
	})
}

func TestValidAsTheLibrarySays(t *testing.T) {
	tokens := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"a"`, `"long plain text of some length"`, `"\\n\\u00e9"`, `"\\x"`, `"`, "\\", "1", "-", "0", ".5", "e9", "E+", "true", "nul", "null", "false", " ", "\n", "\x00", "\x1f", "\u00a0", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(strings.Join(rapid.SliceOfN(tokens, 0, 14).Draw(t, "tokens"), ""))
		if got, want := rawjson.Valid(b), jsontext.Value(b).IsValid(lenient); got != want {
			t.Fatalf("%q is valid: %t, want %t", b, got, want)
		}
	})
	for _, nested := range []int{10_000, 10_001} {
		for _, open := range []string{"[", `{"":`} {
			shut := map[string]string{"[": "]", `{"":`: "0}"}[open]
			b := []byte(strings.Repeat(open, nested) + shut + strings.Repeat(shut[len(shut)-1:], nested-1))
			if got, want := rawjson.Valid(b), jsontext.Value(b).IsValid(lenient); got != want {
				t.Errorf("%d of %s: %t, want %t", nested, open, got, want)
			}
		}
	}
}
