package wire

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// split gives the segments of a text that comes in pieces, neighbours of one
// kind joined: where they are cut is not promised.
func split(o DecodeOptions, pieces []string) []Segment {
	s := NewTextSplitter(o)
	var got []Segment
	out := func(seg Segment) {
		if n := len(got); n > 0 && seg.Name == "" && got[n-1].Name == "" && got[n-1].Reasoning == seg.Reasoning {
			got[n-1].Text += seg.Text
			return
		}
		got = append(got, seg)
	}
	for _, p := range pieces {
		s.Write(p, out)
	}
	s.Flush(out)
	return got
}

func TestTextIsTakenApart(t *testing.T) {
	tags := Dialect{ThinkTags: true}
	open := Dialect{ReasoningOpen: true}
	calls := Dialect{TextToolCalls: true}
	both := Dialect{ThinkTags: true, TextToolCalls: true}
	text := func(s string) Segment { return Segment{Text: s} }
	thought := func(s string) Segment { return Segment{Text: s, Reasoning: true} }
	weather := func(args string) Segment { return Segment{Name: "get_weather", Arguments: args} }
	for _, c := range []struct {
		name    string
		dialect Dialect
		in      string
		want    []Segment
	}{
		{"thinking first", tags, "<think>\nhm, a < b\n</think>\n\nHello", []Segment{thought("hm, a < b"), text("Hello")}},
		{"white space before it", tags, "\n<think>x</think>y", []Segment{thought("x"), text("y")}},
		{"no thinking", tags, "Hello", []Segment{text("Hello")}},
		{"white space only", tags, " \n", []Segment{text(" \n")}},
		{"empty thinking", tags, "<think>\n\n</think>\n\nHello", []Segment{text("Hello")}},
		{"prose about the tag", tags, "The <think> tag: <think>x</think>", []Segment{text("The <think> tag: <think>x</think>")}},
		{"thinking that does not end", tags, "<think>and then", []Segment{thought("and then")}},
		{"an almost tag", tags, "<thin", []Segment{text("<thin")}},
		{"an almost end", tags, "<think>a</thin b</think>c", []Segment{thought("a</thin b"), text("c")}},

		{"begun without a tag", open, "think\n</think>\n\nHello", []Segment{thought("think"), text("Hello")}},
		{"begun with a tag after all", open, "<think>think</think>Hello", []Segment{thought("think"), text("Hello")}},
		{"never ended", open, "still thinking", []Segment{thought("still thinking")}},

		{"a call", calls, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>", []Segment{weather(`{"city": "Oslo"}`)}},
		{"text and two calls", calls, "Let me look.\n\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"a\":1}}</tool_call>\n<tool_call>{\"name\":\"get_weather\",\"parameters\":{\"a\":2}}</tool_call>\nDone.",
			[]Segment{text("Let me look."), weather(`{"a":1}`), weather(`{"a":2}`), text("Done.")}},
		{"a list of calls", calls, "<tool_call>[{\"name\":\"get_weather\",\"arguments\":{}},{\"name\":\"get_weather\",\"arguments\":\"{}\"}]</tool_call>", []Segment{weather(`{}`), weather(`"{}"`)}},
		{"no such tool", calls, "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>", []Segment{text("<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>")}},
		{"no JSON", calls, "<tool_call>get_weather</tool_call> x", []Segment{text("<tool_call>get_weather</tool_call> x")}},
		{"white space before what is no call", calls, "a\n\n<tool_call>no</tool_call>", []Segment{text("a\n\n<tool_call>no</tool_call>")}},
		{"white space before what is not closed", calls, "a\n\n<tool_call>{", []Segment{text("a\n\n<tool_call>{")}},
		{"not closed", calls, "<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}", []Segment{text("<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}")}},
		{"within a line", calls, "Write <tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>", []Segment{text("Write <tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>")}},
		{"white space at the end", calls, "a \n", []Segment{text("a \n")}},
		{"thinking about a call", both, "<think>\n<tool_call>{\"name\":\"get_weather\"}</tool_call></think>no", []Segment{thought("<tool_call>{\"name\":\"get_weather\"}</tool_call>"), text("no")}},
		{"thinking, then a call", both, "<think>x</think>\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>", []Segment{thought("x"), weather(`{}`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DecodeOptions{Dialect: c.dialect, Tools: []ninelives.Tool{{Name: "get_weather"}}}
			if got := split(o, []string{c.in}); !reflect.DeepEqual(got, c.want) {
				t.Errorf("at once:\n got %+v\nwant %+v", got, c.want)
			}
			var bytes []string
			for i := range len(c.in) {
				bytes = append(bytes, c.in[i:i+1])
			}
			if got := split(o, bytes); !reflect.DeepEqual(got, c.want) {
				t.Errorf("byte by byte:\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestPlainDialectsHaveNoSplitter(t *testing.T) {
	if NewTextSplitter(DecodeOptions{Tools: []ninelives.Tool{{Name: "x"}}}) != nil {
		t.Error("text is only text here")
	}
	if NewTextSplitter(DecodeOptions{Dialect: Dialect{TextToolCalls: true}}) != nil {
		t.Error("without tools there is nothing to call")
	}
}

func TestNoCutChangesTheSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DecodeOptions{
			Dialect: Dialect{
				ThinkTags:     rapid.Bool().Draw(t, "tags"),
				ReasoningOpen: rapid.Bool().Draw(t, "open"),
				TextToolCalls: true,
			},
			Tools: []ninelives.Tool{{Name: "f"}},
		}
		words := rapid.SampledFrom([]string{"<think>", "</think>", "<tool_call>", "</tool_call>", `{"name":"f","arguments":{"a":"`, `"}}`, "<", "tool", "\n", " ", "x", "é"})
		var whole string
		var pieces []string
		for range rapid.IntRange(0, 14).Draw(t, "words") {
			w := words.Draw(t, "word")
			whole += w
		}
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "size")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if a, b := split(o, []string{whole}), split(o, pieces); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q\nat once   %+v\nin pieces %q: %+v", whole, a, pieces, b)
		}
	})
}
