package jsonout

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

const invoice = `{"type":"object","properties":{"number":{"type":"string"},"total":{"type":"number"}},"required":["number","total"],"additionalProperties":false}`

func compile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheValueIsFoundWhereverItStands(t *testing.T) {
	s := compile(t, invoice)
	const want = `{"number":"A1","total":12.50}`
	for name, text := range map[string]string{
		"alone":                       want,
		"white space and a BOM":       "\ufeff\n " + want + " \n",
		"fence":                       "```json\n" + want + "\n```",
		"fence without label":         "Sure:\n```\n" + want + "\n```\nDone.",
		"fence on one line":           "```json" + want + "```",
		"fence that is not closed":    "```json\n" + want,
		"fence after another's":       "```python\nx = {'number': 1}\n```\nand\n```json\n" + want + "\n```",
		"prose on both sides":         "Here it is [as asked]: " + want + " – anything else?",
		"prose with a brace":          "Fill the {placeholder}: " + want,
		"prose with an open brace":    "A { opens, so: " + want,
		"prose with an open interval": "For x in [0, 1) take " + want,
		"second, where it fits":       `An example is {"number":"X"}. Yours is ` + want,
		"tags":                        "<tool_call>\n" + want + "\n</tool_call>",
		"tags with name":              `<tool_call>{"name":"answer","arguments":` + want + `}</tool_call>`,
		"after thinking":              `<think>maybe {"number":"draft","total":0}</think>` + want,
	} {
		r := Check(text, s)
		if !r.OK() || string(r.JSON) != want || r.Repaired || r.Truncated {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestLooseSyntaxIsRepaired(t *testing.T) {
	s := compile(t, invoice)
	for _, text := range []string{
		`{'number': 'A1', 'total': 12}`,
		`{number: "A1", total: 12}`,
		`{"number": "A1", "total": 12,}`,
		"{\"number\": \"A1\", // the number\n \"total\": 12 /* euros */}",
		`{“number”: “A1”, “total”: 12}`,
		"{\"number\": \"A1\"\n \"total\": 12}",
		"Take this: {'number': 'A1', 'total': 12} and go.",
	} {
		r := Check(text, s)
		if !r.OK() || !r.Repaired {
			t.Errorf("%s: %+v %s", text, r, r.JSON)
		}
	}
}

// A value that is cut may lack anything; completing it would present half an
// answer as a whole one.
func TestACutValueIsNeverCompleted(t *testing.T) {
	whole := `{"items":[{"number":"A1","total":1},{"number":"B\"2","total":22}],"note":"it's {done}"}`
	for _, frame := range []string{"%", "```json\n%", "Here: %", "<tool_call>%"} {
		for i := 1; i < len(whole); i++ {
			text := strings.Replace(frame, "%", whole[:i], 1)
			if r := Check(text, nil); r.JSON != nil || !r.Truncated {
				t.Fatalf("%q: %+v %s", text, r, r.JSON)
			}
		}
	}
	loose := `{'items': [{number: 'A1', 'total': 1}], note: "x"}`
	for i := len(`{'`); i < len(loose); i++ {
		if r := Check(loose[:i], nil); r.JSON != nil || !r.Truncated {
			t.Fatalf("%q: %+v %s", loose[:i], r, r.JSON)
		}
	}
}

func TestWhatIsLeftOutIsNotPaperedOver(t *testing.T) {
	for _, text := range []string{`{"items": [1, 2, ...]}`, `{"a": 1, … }`} {
		r := Check(text, nil)
		if r.JSON != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "left out") {
			t.Errorf("%s: %+v", text, r)
		}
	}
	if r := Check(`{'a': "to be continued..."}`, nil); !r.OK() {
		t.Errorf("an ellipsis in a string: %+v", r)
	}
}

func TestNoValueIsSaidSo(t *testing.T) {
	for _, text := range []string{"", "   ", "I cannot do that.", "See [1] or {this}.", "<think>hm {\"a\":1}"} {
		r := Check(text, compile(t, invoice))
		if r.OK() || r.Truncated || len(r.Problems) == 0 {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestAllProblemsAreToldWithTheirPlaces(t *testing.T) {
	s := compile(t, `{"type":"object","required":["a","b"],"properties":{"a":{"type":"array","items":{"type":"integer","minimum":3}},"x/y":{"enum":["p","q"]}}}`)
	r := Check(`{"a":[1,"two",5],"x/y":"r"}`, s)
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.String())
	}
	want := []string{
		"missing property 'b'",
		"/a/0: minimum: got 1, want 3",
		"/a/1: got string, want integer",
		"/x~1y: value must be one of 'p', 'q'",
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || g == w
		}
		if !found {
			t.Errorf("%q is missing in %q", w, got)
		}
	}
	if len(got) != len(want) || r.JSON == nil || r.OK() {
		t.Errorf("%q, JSON %s", got, r.JSON)
	}
}

func TestScalarsAreValuesToo(t *testing.T) {
	if r := Check(" 42\n", compile(t, `{"type":"integer"}`)); !r.OK() || string(r.JSON) != "42" {
		t.Errorf("%+v", r)
	}
	if r := Check("```json\n\"yes\"\n```", compile(t, `{"enum":["yes","no"]}`)); !r.OK() || string(r.JSON) != `"yes"` {
		t.Errorf("%+v", r)
	}
}

func TestDigitsAndDuplicatesStayAsWritten(t *testing.T) {
	const text = `{"id":12345678901234567890123,"id":0.10000000000000000000001,"n":1E+2}`
	if r := Check(text, compile(t, `{"type":"object"}`)); !r.OK() || string(r.JSON) != text {
		t.Errorf("%+v %s", r, r.JSON)
	}
	r := Check(`{'id': 12345678901234567890123, 'x': 1.10}`, nil)
	if got, want := string(r.JSON), `{"id": 12345678901234567890123, "x": 1.10}`; got != want {
		t.Errorf("%s", got)
	}
}

func TestANumberBeyondAllBoundsIsAProblemAndNotAHang(t *testing.T) {
	r := Check(`{"a":[1e999999999]}`, compile(t, `{"type":"object"}`))
	if want := []Problem{{"/a/0", "the number is out of range"}}; !reflect.DeepEqual(r.Problems, want) {
		t.Errorf("%+v", r)
	}
}

func TestASchemaThatIsNoneIsRejectedInOneLine(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":`:                              "not JSON",
		`5`:                                     "must be an object",
		`["object"]`:                            "must be an object",
		`{"type":"objekt"}`:                     "/type",
		`{"type":"object","properties":[]}`:     "/properties",
		`{"$ref":"https://example.com/s.json"}`: "references to other documents are not followed",
		`{"$ref":"file:///etc/passwd"}`:         "references to other documents are not followed",
		`{"properties":{"a":{"minimum":"three"}}}`: "/properties/a/minimum",
		`{"$ref":"#/$defs/none"}`:                  "none",
		`{"pattern":"["}`:                          "",
	} {
		s, err := Compile([]byte(schema))
		if err == nil {
			t.Errorf("%s compiles to %v", schema, s)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\t") || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "the output schema is not") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for _, schema := range []string{`{}`, `true`, `{"$defs":{"p":{"type":"string"}},"$ref":"#/$defs/p"}`, `{"type":"string","pattern":"^(?!x)"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`} {
		if _, err := Compile([]byte(schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// A schema may refer to itself wherever the program runs.
func TestTheWorkingDirectoryIsNoPartOfASchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my projects, 100% #1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if _, err := Compile([]byte(`{"$defs":{"p":{"type":"string"}},"$ref":"#/$defs/p"}`)); err != nil {
		t.Error(err)
	}
	if _, err := Compile([]byte(`{"$ref":"other.json"}`)); err == nil || err.Error() != "the output schema is not a JSON schema: it refers to other.json, and references to other documents are not followed" {
		t.Error(err)
	}
}

func TestTheRepairPromptNamesEveryProblem(t *testing.T) {
	got := RepairPrompt("{}", []Problem{{"/a", "got null"}, {"", "missing property 'b'"}})
	for _, want := range []string{"{}", "- /a: got null", "- missing property 'b'", "JSON value alone"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(RepairPrompt("", nil), "The answer was") {
		t.Error("an empty answer is quoted")
	}
}

// Whatever prose stands around a value, the value comes out as it went in.
func TestAnyValueSurvivesAnyProse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := object(t, 3)
		prose := rapid.StringMatching("[a-zA-Z ,.!\\n]{0,30}")
		text := prose.Draw(t, "before") + value + prose.Draw(t, "after")
		if r := Check(text, nil); string(r.JSON) != value || !r.OK() || r.Repaired {
			t.Fatalf("%q: %+v %s", text, r, r.JSON)
		}
	})
}

// object draws a JSON object as text.
func object(t *rapid.T, depth int) string {
	str := func(name string) string {
		b, err := jsontext.AppendQuote(nil, rapid.String().Draw(t, name))
		if err != nil {
			b = []byte(`"x"`)
		}
		return string(b)
	}
	var members []string
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		v := ""
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			v = object(t, depth-1)
		case kind == 1 && depth > 0:
			v = "[" + object(t, depth-1) + ", 1]"
		case kind == 2:
			v = rapid.SampledFrom([]string{"0", "-1.50", "1e3", "true", "null", "[]"}).Draw(t, "scalar")
		default:
			v = str("text")
		}
		members = append(members, str("key")+":"+v)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func FuzzExtract(f *testing.F) {
	s := compile(f, invoice)
	for _, seed := range []string{
		`{"number":"A1","total":1}`, "```json\n{'a':1}\n```", "a [b] {c", `<tool_call>{"name":"x","arguments":{}}</tool_call>`,
		"{\"a\":\"\\u12\"}", "[[[[{", `{a:/*x*/1,//y` + "\n}", "<think>", `{“a”:‘b’}`, "{\"a\":1e400}", "{'\\", "/*{*/{}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Check(text, s)
		if r.JSON != nil && !whole(string(r.JSON)) {
			t.Errorf("%q is not JSON", r.JSON)
		}
		if r.Truncated && (r.JSON != nil || r.OK()) {
			t.Errorf("%q is cut and yet has a value: %+v", text, r)
		}
		if r.JSON == nil && len(r.Problems) == 0 {
			t.Errorf("%q has neither value nor problem", text)
		}
		if r.JSON != nil && !r.Repaired && !strings.Contains(text, string(r.JSON)) {
			t.Errorf("%q was changed to %q although nothing was repaired", text, r.JSON)
		}
		for _, p := range r.Problems {
			if strings.ContainsAny(p.Message, "\n\r") {
				t.Errorf("%q: a problem of two lines: %q", text, p.Message)
			}
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{invoice, `true`, `{"$ref":"#"}`, `{"$id":"x","$ref":"y"}`, `{"pattern":"(?=a)"}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		s, err := Compile(schema)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("two lines: %q", err)
			}
			return
		}
		Check(`{"number":"A1","total":[1,2,{"a":null}]}`, s)
	})
}
