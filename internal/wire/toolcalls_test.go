package wire

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// piece is a CallPiece that is easy to write; index -1 is written as none.
func piece(index int, id, name, arguments string) CallPiece {
	p := CallPiece{Index: index, ID: id, Name: name}
	if arguments != "" {
		p.Arguments = []byte(arguments)
	}
	return p
}

const none = -1

type call struct{ id, name, arguments string }

func TestCallsArePutTogetherByIndexAndID(t *testing.T) {
	weather := []ninelives.Tool{{Name: "get_weather"}, {Name: "get_time"}, {Name: "get"}}
	for _, c := range []struct {
		name   string
		pieces []CallPiece
		want   []call
	}{
		{"as documented", []CallPiece{
			piece(0, "a", "get_weather", ""), piece(0, "", "", `{"city":`), piece(0, "", "", `"Oslo"}`),
			piece(1, "b", "get_time", ""), piece(1, "", "", `{}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}, {"b", "get_time", `{}`}}},
		{"interleaved", []CallPiece{
			piece(0, "a", "get_weather", ""), piece(1, "b", "get_time", ""),
			piece(0, "", "", `{"x":`), piece(1, "", "", `{"y":`), piece(1, "", "", `2}`), piece(0, "", "", `1}`),
		}, []call{{"a", "get_weather", `{"x":1}`}, {"b", "get_time", `{"y":2}`}}},
		{"no index", []CallPiece{
			piece(none, "a", "get_weather", `{"city":`), piece(none, "", "", `"Oslo"}`), piece(none, "b", "get_time", `{}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}, {"b", "get_time", `{}`}}},
		{"no index, ids repeated and interleaved", []CallPiece{
			piece(none, "a", "get_weather", `{"x":`), piece(none, "b", "get_time", `{"y":`), piece(none, "a", "", `1}`), piece(none, "b", "", `2}`),
		}, []call{{"a", "get_weather", `{"x":1}`}, {"b", "get_time", `{"y":2}`}}},
		{"no index and no id", []CallPiece{
			piece(none, "", "get_weather", `{"city":"Oslo"}`), piece(none, "", "get_time", `{}`),
		}, []call{{"", "get_weather", `{"city":"Oslo"}`}, {"", "get_time", `{}`}}},
		{"every index is 0", []CallPiece{
			piece(0, "a", "get_weather", `{"city":"Oslo"}`), piece(0, "b", "get_time", `{}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}, {"b", "get_time", `{}`}}},
		{"every index is 0, pieces come back to the first", []CallPiece{
			piece(0, "a", "get_weather", `{"x":`), piece(0, "b", "get_time", `{"y":`), piece(0, "a", "", `1}`), piece(0, "b", "", `2}`),
		}, []call{{"a", "get_weather", `{"x":1}`}, {"b", "get_time", `{"y":2}`}}},
		{"every index is 0 and there are no ids", []CallPiece{
			piece(0, "", "get_weather", `{"city":"Oslo"}`), piece(0, "", "get_weather", `{"city":"Rome"}`), piece(0, "", "get_time", `{}`),
		}, []call{{"", "get_weather", `{"city":"Oslo"}`}, {"", "get_weather", `{"city":"Rome"}`}, {"", "get_time", `{}`}}},
		{"one id for all, indexes differ", []CallPiece{
			piece(0, "x", "get_weather", `{"city":"Oslo"}`), piece(1, "x", "get_time", `{}`),
		}, []call{{"x", "get_weather", `{"city":"Oslo"}`}, {"x", "get_time", `{}`}}},
		{"the index jumps", []CallPiece{
			piece(1, "a", "get_weather", `{"x":`), piece(1, "", "", `1}`), piece(5, "b", "get_time", ""), piece(5, "", "", `{}`),
		}, []call{{"a", "get_weather", `{"x":1}`}, {"b", "get_time", `{}`}}},
		{"the rest comes at another index", []CallPiece{
			piece(0, "a", "get_weather", `{"city":`), piece(1, "", "", `"Oslo"}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}}},
		{"the rest comes at another index beside a whole call", []CallPiece{
			piece(0, "a", "get_time", `{}`), piece(1, "b", "get_weather", `{"city":`), piece(2, "", "", `"Oslo"}`),
		}, []call{{"a", "get_time", `{}`}, {"b", "get_weather", `{"city":"Oslo"}`}}},
		{"id, name and type in every piece", []CallPiece{
			piece(0, "a", "get_weather", ""), piece(0, "a", "get_weather", `{"city":`), piece(0, "a", "get_weather", `"Oslo"}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}}},
		{"the name in pieces", []CallPiece{
			piece(0, "a", "get_wea", ""), piece(0, "", "ther", `{}`),
		}, []call{{"a", "get_weather", `{}`}}},
		{"the name so far, each time", []CallPiece{
			piece(0, "a", "get_wea", ""), piece(0, "a", "get_weather", `{}`),
		}, []call{{"a", "get_weather", `{}`}}},
		{"a name that is another's head", []CallPiece{
			piece(0, "a", "get", ""), piece(0, "", "_weather", `{}`),
		}, []call{{"a", "get_weather", `{}`}}},
		{"arguments before the name", []CallPiece{
			piece(none, "a", "", `{"city":`), piece(none, "a", "get_weather", `"Oslo"}`),
		}, []call{{"a", "get_weather", `{"city":"Oslo"}`}}},
		{"the id comes late", []CallPiece{
			piece(0, "", "get_weather", `{"x":`), piece(0, "a", "", `1}`),
		}, []call{{"a", "get_weather", `{"x":1}`}}},
		{"the whole call again at the end", []CallPiece{
			piece(0, "a", "get_weather", `{"x":`), piece(0, "", "", `1}`), piece(0, "a", "get_weather", `{"x":1}`),
		}, []call{{"a", "get_weather", `{"x":1}`}}},
		{"the whole call again without an id", []CallPiece{
			piece(0, "", "get_weather", `{"x":1}`), piece(0, "", "get_weather", `{"x":1}`),
		}, []call{{"", "get_weather", `{"x":1}`}}},
		{"an empty piece at an unknown index after whole calls", []CallPiece{
			piece(0, "a", "get_time", `{}`), piece(3, "", "", " "),
		}, []call{{"a", "get_time", `{} `}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := NewCalls(weather)
			for _, p := range c.pieces {
				if _, ok := calls.Add(p); !ok {
					t.Fatalf("piece %+v is rejected", p)
				}
			}
			var got []call
			for i := range calls.Len() {
				got = append(got, call{calls.At(i).ID, calls.At(i).Name, string(calls.At(i).Arguments)})
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestPieceThatCouldBelongToSeveralCallsIsRejected(t *testing.T) {
	for name, first := range map[string][]CallPiece{
		"two are open":  {piece(0, "a", "x", `{"a":`), piece(1, "b", "y", `{"b":`)},
		"none is open":  {piece(0, "a", "x", `{}`)},
		"all are whole": {piece(0, "a", "x", `{}`), piece(1, "b", "y", `{}`)},
	} {
		calls := NewCalls(nil)
		for _, p := range first {
			if _, ok := calls.Add(p); !ok {
				t.Fatalf("%s: piece %+v is rejected", name, p)
			}
		}
		if i, ok := calls.Add(piece(7, "", "", `1}`)); ok {
			t.Errorf("%s: the piece was given to call %d", name, i)
		}
	}
}

func TestNoSplitChangesACall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "calls")
		withIndex := rapid.Bool().Draw(t, "index")
		withID := rapid.Bool().Draw(t, "id") || !withIndex
		repeat := rapid.Bool().Draw(t, "repeat")
		var want []call
		pending := make([][]CallPiece, n)
		for i := range n {
			c := call{name: "tool_" + string(rune('a'+i)), arguments: `{"text":"` + rapid.StringMatching(`[a-z{}\[\]:, ]{0,20}`).Draw(t, "text") + `"}`}
			index := none
			if withIndex {
				index = i
			}
			if withID {
				c.id = "id" + string(rune('0'+i))
			}
			want = append(want, c)
			for at := 0; at < len(c.arguments); {
				size := rapid.IntRange(1, len(c.arguments)-at).Draw(t, "size")
				p := piece(index, "", "", c.arguments[at:at+size])
				if at == 0 || repeat || !withIndex {
					p.ID, p.Name = c.id, c.name
				}
				pending[i] = append(pending[i], p)
				at += size
			}
		}
		calls := NewCalls(nil)
		add := func(p CallPiece) {
			if _, ok := calls.Add(p); !ok {
				t.Fatalf("%+v is rejected", p)
			}
		}
		for i := range pending { // each call is begun in its turn
			add(pending[i][0])
			pending[i] = pending[i][1:]
		}
		for {
			var rest []int
			for i := range pending {
				if len(pending[i]) > 0 {
					rest = append(rest, i)
				}
			}
			if len(rest) == 0 {
				break
			}
			i := rapid.SampledFrom(rest).Draw(t, "next")
			add(pending[i][0])
			pending[i] = pending[i][1:]
		}
		var got []call
		for i := range calls.Len() {
			got = append(got, call{calls.At(i).ID, calls.At(i).Name, string(calls.At(i).Arguments)})
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %q\nwant %q", got, want)
		}
	})
}

func TestArgumentsInEveryForm(t *testing.T) {
	tools := []ninelives.Tool{{Name: "set", Schema: []byte(`{
		"type": "object",
		"properties": {
			"list": {"type": "array", "items": {"type": "object", "properties": {"inner": {"type": ["array", "null"]}}}},
			"map": {"type": "object"},
			"title": {"type": "string"},
			"either": {"anyOf": [{"type": "array"}, {"type": "string"}]},
			"maybe": {"anyOf": [{"type": "array"}, {"type": "null"}]},
			"ref": {"$ref": "#/$defs/Point"},
			"any": {}
		},
		"$defs": {"Point": {"type": "object", "properties": {"xs": {"type": "array"}}}}
	}`)}}
	for _, c := range []struct{ name, in, want string }{
		{"as it should be", `{"title":"x"}`, `{"title":"x"}`},
		{"spelling stays", `{ "title" :"x" }`, `{ "title" :"x" }`},
		{"nothing", ``, `{}`},
		{"white space", " \n", `{}`},
		{"null", `null`, `{}`},
		{"an object in a string", `"{\"title\":\"x\"}"`, `{"title":"x"}`},
		{"nothing in a string", `""`, `{}`},
		{"a string stays one", `"hello"`, `"hello"`},
		{"a number stays one", `5`, `5`},
		{"an array stays one", `[1]`, `[1]`},
		{"cut", `{"title":"x`, `{"title":"x`},
		{"two objects", `{}{"title":"x"}`, `{}{"title":"x"}`},
		{"an array in a string", `{"list":"[{\"t\":\"a\"}]","title":"42"}`, `{"list":[{"t":"a"}],"title":"42"}`},
		{"an object in a string, further in", `{"map":"{\"a\":1}"}`, `{"map":{"a":1}}`},
		{"two levels", `{"list":"[{\"inner\":\"[1]\"}]"}`, `{"list":[{"inner":[1]}]}`},
		{"a string that may be one", `{"either":"[1]","title":"[1]","any":"[1]"}`, `{"either":"[1]","title":"[1]","any":"[1]"}`},
		{"one of several kinds", `{"maybe":"[1]"}`, `{"maybe":[1]}`},
		{"behind a reference", `{"ref":"{\"xs\":\"[2]\"}"}`, `{"ref":{"xs":[2]}}`},
		{"of the other kind", `{"list":"{}","map":"[]"}`, `{"list":"{}","map":"[]"}`},
		{"no JSON", `{"list":"[one, two]"}`, `{"list":"[one, two]"}`},
		{"unknown members stay", `{"x":"[1]","list":"[2]"}`, `{"x":"[1]","list":[2]}`},
	} {
		if got := Arguments(c.in, tools, "set", false); got != c.want {
			t.Errorf("%s: %s became %s, want %s", c.name, c.in, got, c.want)
		}
	}
	if got := Arguments(`{"list":"[1]"}`, nil, "set", false); got != `{"list":"[1]"}` {
		t.Errorf("without a schema: %s", got)
	}
	for _, in := range []string{"", "null", `{"a`} {
		if got := Arguments(in, tools, "set", true); got != in {
			t.Errorf("in an answer that was cut %q became %q: it may just not have begun", in, got)
		}
	}
}

func TestUnclosed(t *testing.T) {
	for in, want := range map[string]bool{
		`{"a":1`: true, `{"a":"x`: true, `{`: true, `[1,`: true, `{"a":tr`: true, ` {"a":"\u00`: true,
		``: false, `{}`: false, `{"a":1} `: false, `{}{`: false, `hello`: false, `{"a" 1`: false,
	} {
		if got := Unclosed(in); got != want {
			t.Errorf("Unclosed(%q) = %v", in, got)
		}
	}
}

func TestMadeIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{
		MadeID("r", 0, "a", "{}"), MadeID("r", 1, "a", "{}"), MadeID("s", 0, "a", "{}"), MadeID("r", 0, "b", "{}"), MadeID("r", 0, "a", `{"x":1}`),
	} {
		if seen[id] || !strings.HasPrefix(id, "call_") || len(id) > 40 {
			t.Errorf("id %q", id)
		}
		seen[id] = true
	}
}

func TestEndingTellsWhatTheProviderDoesNot(t *testing.T) {
	const stop, length, calls, other = ninelives.FinishStop, ninelives.FinishLength, ninelives.FinishToolCalls, ninelives.FinishOther
	text := func(s string) []ninelives.Part { return []ninelives.Part{ninelives.Text{Text: s}} }
	tool := func(args string) []ninelives.Part {
		return []ninelives.Part{ninelives.ToolCall{Name: "f", Arguments: args}}
	}
	spent := ninelives.Usage{Output: 100, Reported: ninelives.UsageOutput}
	apart := ninelives.Usage{Output: 40, Reasoning: 60, Reported: ninelives.UsageOutput | ninelives.UsageReasoning, OutputExcludesReasoning: true}
	for _, c := range []struct {
		name  string
		said  ninelives.FinishReason
		parts []ninelives.Part
		usage ninelives.Usage
		limit int
		out   string
		want  ninelives.FinishReason
	}{
		{name: "an answer", said: stop, parts: text("x"), want: stop},
		{name: "calls with stop", said: stop, parts: tool(`{}`), want: calls},
		{name: "calls with another word", said: other, parts: tool(`{}`), want: calls},
		{name: "no calls with tool_calls", said: calls, parts: text("x"), want: calls},
		{name: "arguments that do not close", said: calls, parts: tool(`{"a":"`), want: length},
		{name: "arguments that are broken", said: calls, parts: tool(`{}{"a":1}`), want: calls},
		{name: "no arguments", said: calls, parts: tool(``), want: calls},
		{name: "calls at the limit", said: calls, parts: tool(`{}`), usage: spent, limit: 100, want: length},
		{name: "text at the limit", said: stop, parts: text("x"), usage: spent, limit: 100, want: length},
		{name: "text below the limit", said: stop, parts: text("x"), usage: spent, limit: 101, want: stop},
		{name: "reasoning counts", said: stop, parts: text("x"), usage: apart, limit: 100, want: length},
		{name: "no usage", said: stop, parts: text("x"), limit: 1, want: stop},
		{name: "filtered", said: ninelives.FinishContentFilter, parts: tool(`{"a`), want: ninelives.FinishContentFilter},
		{name: "a refusal with stop", said: stop, parts: []ninelives.Part{ninelives.Refusal{Text: "no"}}, want: ninelives.FinishRefusal},
		{name: "a refusal beside text", said: stop, parts: append(text("x"), ninelives.Refusal{Text: "no"}), want: stop},
		{name: "a call in text that is cut", said: stop, parts: text("Let me see.\n<tool_call>\n{\"name\": \"f\", \"arg"), want: length},
		{name: "prose about the tag", said: stop, parts: text("It begins with <tool_call> {"), want: stop},
		{name: "an open tag without JSON", said: stop, parts: text("<tool_call>"), want: stop},
		{name: "a forced output that is cut", said: stop, parts: text(`{"a":[1,`), out: "answer", want: length},
		{name: "an answer in JSON that nobody forced", said: stop, parts: text(`{"a":[1,`), want: stop},
	} {
		r := &ninelives.Response{Finish: c.said, Usage: c.usage, Message: ninelives.Message{Parts: c.parts}}
		if got := Ending(r, DecodeOptions{MaxTokens: c.limit, OutputTool: c.out}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOverflowInTheGuiseOfAnAnswer(t *testing.T) {
	usage := func(in, out int) ninelives.Usage {
		return ninelives.Usage{Input: in, Output: out, Reported: ninelives.UsageInput | ninelives.UsageOutput}
	}
	for _, c := range []struct {
		name     string
		finish   ninelives.FinishReason
		text     string
		usage    ninelives.Usage
		window   int
		overflow bool
	}{
		{"the window is full and nothing was said", ninelives.FinishLength, "", usage(1000, 0), 1000, true},
		{"almost full", ninelives.FinishLength, " ", usage(991, 0), 1000, true},
		{"half full", ninelives.FinishLength, "", usage(500, 0), 1000, false},
		{"something was said", ninelives.FinishLength, "x", usage(999, 0), 1000, false},
		{"something was written", ninelives.FinishLength, "", usage(999, 5), 1000, false},
		{"stop", ninelives.FinishStop, "", usage(1000, 0), 1000, false},
		{"the window is not known", ninelives.FinishLength, "", usage(1000, 0), 0, false},
		{"no counts", ninelives.FinishLength, "", ninelives.Usage{}, 1000, false},
	} {
		r := &ninelives.Response{Finish: c.finish, Usage: c.usage, Message: ninelives.AssistantText(c.text)}
		o := DecodeOptions{Candidate: ninelives.Candidate{Provider: "p", Model: "m", Capabilities: ninelives.Capabilities{Window: c.window}}}
		f := Overflow(r, o)
		if (f != nil) != c.overflow {
			t.Errorf("%s: %v", c.name, f)
		}
		if f != nil && (f.Class != ninelives.ClassContextLength || f.Window != c.window || f.Requested != c.usage.Input || f.Partial != r) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
