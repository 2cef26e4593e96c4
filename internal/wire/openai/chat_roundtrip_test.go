package openai_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func TestChatRequestComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRequest().Draw(t, "request")
		target := chatTarget()
		target.Stream = rapid.Bool().Draw(t, "stream")
		encoded, err := openai.EncodeChatRequest(want, target)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(encoded.Body) {
			t.Fatalf("no JSON: %s", encoded.Body)
		}
		if len(encoded.Notes) > 0 {
			t.Fatalf("something was left out: %q", encoded.Notes)
		}
		in, err := openai.DecodeChatRequest(encoded.Body)
		if err != nil {
			t.Fatal(err)
		}
		if in.Stream != target.Stream || in.Usage != target.Stream {
			t.Fatalf("stream %v, usage %v", in.Stream, in.Usage)
		}
		if !reflect.DeepEqual(in.Request, want) {
			t.Fatalf("%s\n got %s\nwant %s", encoded.Body, dump(in.Request), dump(want))
		}
		again, err := openai.EncodeChatRequest(in.Request, target)
		if err != nil || !bytes.Equal(again.Body, encoded.Body) {
			t.Fatalf("encoded again, it differs: %v\n%s\n%s", err, encoded.Body, again.Body)
		}
	})
}

func dump(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestChatResponseComesBackAsItWas(t *testing.T) {
	o := wire.DecodeOptions{Candidate: chatTarget().Candidate}
	rapid.Check(t, func(t *rapid.T) {
		want := genResponse().Draw(t, "response")
		body := openai.EncodeChatResponse(want)
		got, err := openai.DecodeChatResponse(body, o)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %s\nwant %s", body, dump(got), dump(want))
		}
	})
}

// A stream decodes to what was encoded, whichever deltas it was written in and
// however its bytes are cut.
func TestChatStreamComesBackAsItWas(t *testing.T) {
	o := wire.DecodeOptions{Candidate: chatTarget().Candidate}
	rapid.Check(t, func(t *rapid.T) {
		want := genResponse().Draw(t, "response")
		for i, part := range want.Message.Parts { // deltas go into one field
			if r, ok := part.(ninelives.Reasoning); ok && r.Provenance.Blob == "" {
				r.Provenance.Field = "reasoning_content"
				want.Message.Parts[i] = r
			}
		}
		e := openai.NewChatEncoder(wire.EncodeOptions{ID: want.ID, Model: want.Model, Created: want.Created, Usage: true})
		var stream []byte
		for _, ev := range genDeltas(t, want.Message.Parts) {
			stream = e.Event(stream, ev)
		}
		if rapid.Bool().Draw(t, "alive") {
			stream = e.KeepAlive(stream)
		}
		stream = e.Event(stream, ninelives.Done{Response: want})
		size := rapid.IntRange(1, 200).Draw(t, "size")
		events, got, err := chatDecode(wiretest.Pieces(wiretest.Every(stream, size)), o)
		if err != nil {
			t.Fatalf("%s: %v", stream, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %s\nwant %s", stream, dump(got), dump(want))
		}
		chatCompareEvents(t, events, got)
	})
}

// genDeltas are the deltas of some of the parts, up to somewhere.
func genDeltas(t *rapid.T, parts []ninelives.Part) []ninelives.Event {
	var events []ninelives.Event
	cut := func(text string) []string {
		var pieces []string
		for text != "" && rapid.IntRange(0, 4).Draw(t, "more") > 0 {
			runes := []rune(text)
			n := rapid.IntRange(1, len(runes)).Draw(t, "length")
			pieces = append(pieces, string(runes[:n]))
			text = string(runes[n:])
		}
		return pieces
	}
	for i, part := range parts {
		whole := 0
		switch p := part.(type) {
		case ninelives.Text:
			for _, s := range cut(p.Text) {
				events = append(events, ninelives.TextDelta{Part: i, Text: s})
				whole += len(s)
			}
			whole -= len(p.Text)
		case ninelives.Reasoning:
			if p.Redacted {
				return events // it has no delta, and its place is told with Done
			}
			for _, s := range cut(p.Text) {
				events = append(events, ninelives.ReasoningDelta{Part: i, Text: s})
				whole += len(s)
			}
			whole -= len(p.Text)
		case ninelives.Refusal:
			for _, s := range cut(p.Text) {
				events = append(events, ninelives.RefusalDelta{Part: i, Text: s})
				whole += len(s)
			}
			whole -= len(p.Text)
		case ninelives.ToolCall:
			id, name := p.ID, p.Name
			for _, s := range cut(p.Arguments) {
				events = append(events, ninelives.ToolCallDelta{Part: i, ID: id, Name: name, Arguments: s})
				id, name = "", ""
				whole += len(s)
			}
			whole -= len(p.Arguments)
		}
		if whole < 0 {
			return events // the rest comes with Done
		}
	}
	return events
}

func TestChatKeepsUnknownFieldsByteForByte(t *testing.T) {
	members := []string{
		`"top_x" : { "a":[1.0,"\u00e9" ] }`, `"msg_x":  1e400`, `"part_x":"\/"`, `"call_x":null`, `"fn_x":[ ]`, `"res_x":{"b" :2}`, `"tool_x": -0`, `"toolfn_x":"é"`,
	}
	body := `{"model":"m","messages":[
		{"role":"user","content":[{"type":"text","text":"hi","part_x":"\/"}],"msg_x":  1e400},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","call_x":null,"function":{"name":"f","arguments":"{}","fn_x":[ ]}}]},
		{"role":"tool","tool_call_id":"a","content":"ok","res_x":{"b" :2}},
		{"role":"user","content":"go on"}
	],"tools":[{"type":"function","tool_x": -0,"function":{"name":"f","toolfn_x":"é"}}],"top_x" : { "a":[1.0,"\u00e9" ] }}`
	in, err := openai.DecodeChatRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := openai.EncodeChatRequest(in.Request, chatTarget())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if !strings.Contains(string(encoded.Body), m) {
			t.Errorf("%s is lost in\n%s", m, encoded.Body)
		}
	}

	answer := `{"id":"1","choices":[{"index":0,"choice_x":[ 1 ],"message":{"role":"assistant","content":"hi","msg_x":{ }},"finish_reason":"stop"}],"top_x" :1.50}`
	resp, err := openai.DecodeChatResponse([]byte(answer), wire.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := string(openai.EncodeChatResponse(resp))
	for _, m := range []string{`"choice_x":[ 1 ]`, `"msg_x":{ }`, `"top_x" :1.50`} {
		if !strings.Contains(out, m) {
			t.Errorf("%s is lost in\n%s", m, out)
		}
	}
	e := openai.NewChatEncoder(wire.EncodeOptions{})
	out = string(e.Event(nil, ninelives.Done{Response: resp}))
	for _, m := range []string{`"choice_x":[ 1 ]`, `"msg_x":{ }`, `"top_x" :1.50`} {
		if !strings.Contains(out, m) {
			t.Errorf("%s is lost in the stream\n%s", m, out)
		}
	}
}
