package anthropic_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func raw(s string) ninelives.Extra {
	return ninelives.Extra{Protocol: ninelives.AnthropicMessages, JSON: []byte(s)}
}

// Generators of what the vocabulary can say in this protocol.
var (
	words = rapid.SampledFrom([]string{"a", "Hi there.", "ü\n\"quoted\" \\ </s>", " lead", "雪 ☃ 𝄞", "{\"json\":true}", "x\u2028y", "\x00"})
	// unknown are members that nobody knows yet, in a spelling of their own.
	unknown = rapid.SampledFrom([]ninelives.Extra{{}, raw(`{"future":1.50,"deep":{"a":[null,{"b":"\u00e9"}]}}`), raw(`{"x_1":null}`)})
	cache   = rapid.SampledFrom([]*ninelives.CacheHint{nil, {}, {TTL: "5m"}, {TTL: "1h"}})
	schemas = rapid.SampledFrom([]string{`{"type":"object"}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}, "type" : "object"}`})
	objects = rapid.SampledFrom([]string{`{}`, `{"city":"Bergen"}`, `{"n":1e3,"n":2,"s":"\u0041"}`, `{ "spaced" : [ 1 , 2 ] }`})
)

// meta draws what a part may carry beside its content. Cache hints are rare
// here: the protocol takes four of them.
func meta(t *rapid.T) ninelives.Meta {
	return ninelives.Meta{Extra: unknown.Draw(t, "unknown")}
}

// textPart draws a text; not blank, for such a one is not sent.
var textPart = rapid.Custom(func(t *rapid.T) ninelives.Part {
	p := ninelives.Text{Text: words.Draw(t, "text"), Meta: meta(t)}
	if rapid.Bool().Draw(t, "cited") {
		p.Citations = []ninelives.Citation{
			{URL: "https://x/y", Title: "T", Quote: "q", Raw: raw(`{"type":"web_search_result_location","url":"https://x/y","title":"T","cited_text":"q","encrypted_index":"E"}`)},
			{Title: "Doc", Quote: "z", Raw: raw(`{"type":"char_location","cited_text":"z","document_index":0,"document_title":"Doc","start_char_index":0,"end_char_index":3}`)},
		}
	}
	return p
})

var mediaPart = rapid.Custom(func(t *rapid.T) ninelives.Part {
	switch rapid.IntRange(0, 6).Draw(t, "media") {
	case 0:
		return ninelives.Image{MediaType: "image/png", Data: []byte{0x89, 'P'}, Meta: meta(t)}
	case 1:
		return ninelives.Image{URL: "https://x/y.png", Meta: meta(t)}
	case 2:
		return ninelives.Image{FileID: "file_1", Meta: meta(t)}
	case 3:
		return ninelives.File{Name: "a.pdf", MediaType: "application/pdf", Data: []byte("%PDF"), Meta: meta(t)}
	case 4:
		return ninelives.File{MediaType: "text/plain", Data: []byte(words.Draw(t, "document")), Meta: meta(t)}
	case 5:
		return ninelives.File{Name: "b", URL: "https://x/b.pdf", Meta: meta(t)}
	}
	return ninelives.File{FileID: "file_2", Meta: meta(t)}
})

var opaquePart = rapid.SampledFrom([]ninelives.Part{
	ninelives.Opaque{Kind: "server_tool_use", Raw: raw(`{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":"x"}}`)},
	ninelives.Opaque{Kind: "web_search_tool_result", Raw: raw(`{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`)},
	ninelives.Opaque{Kind: "from_the_future", Raw: raw(`{"type":"from_the_future","v":{"w":1}}`)},
})

// thinkingPart draws signed or redacted thinking of the candidate's own.
var thinkingPart = rapid.Custom(func(t *rapid.T) ninelives.Part {
	c := generous().Candidate
	o := ninelives.Provenance{Provider: c.Provider, Model: c.Model}
	if rapid.IntRange(0, 3).Draw(t, "redacted") == 0 {
		o.Field, o.Blob = "redacted_thinking", "EncRypted=="
		return ninelives.Reasoning{Redacted: true, Provenance: o, Meta: ninelives.Meta{Extra: unknown.Draw(t, "unknown")}}
	}
	o.Field, o.Signature = "thinking", rapid.SampledFrom([]string{"sig+/=", "EpAD"}).Draw(t, "signature")
	return ninelives.Reasoning{Text: rapid.SampledFrom([]string{"", "hm\n", "let me see"}).Draw(t, "thought"), Provenance: o, Meta: ninelives.Meta{Extra: unknown.Draw(t, "unknown")}}
})

// anonymous takes the origin off the reasoning: a request does not tell it.
func anonymous(parts []ninelives.Part) []ninelives.Part {
	for i, p := range parts {
		if r, ok := p.(ninelives.Reasoning); ok {
			r.Provenance.Provider, r.Provenance.Model = "", ""
			parts[i] = r
		}
	}
	return parts
}

// conversations draws histories that are valid as they are.
var conversations = rapid.Custom(func(t *rapid.T) []ninelives.Message {
	var messages []ninelives.Message
	if rapid.Bool().Draw(t, "system") {
		messages = append(messages, ninelives.Message{Role: ninelives.RoleSystem, Parts: rapid.SliceOfN(textPart, 1, 2).Draw(t, "instructions")})
	}
	calls := 0
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		userParts := rapid.SliceOfN(rapid.OneOf(textPart, mediaPart, opaquePart), 1, 3).Draw(t, "user")
		messages = append(messages, ninelives.Message{Role: ninelives.RoleUser, Parts: userParts, Extra: unknown.Draw(t, "unknown")})
		if rapid.IntRange(0, 4).Draw(t, "inside") == 0 {
			inside := raw("{}")
			if rapid.Bool().Draw(t, "config") {
				inside = raw(`{"output_config":{"effort":"low"}}`)
			}
			messages = append(messages, ninelives.Message{Role: ninelives.RoleSystem, Parts: []ninelives.Part{textPart.Draw(t, "reminder")}, Extra: inside})
		}
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			parts := anonymous(rapid.SliceOfN(thinkingPart, 0, 2).Draw(t, "thinking"))
			parts = append(parts, rapid.SliceOfN(rapid.OneOf(textPart, opaquePart), 0, 2).Draw(t, "says")...)
			var results []ninelives.Part
			for range rapid.IntRange(1, 2).Draw(t, "calls") {
				calls++
				c := ninelives.ToolCall{ID: fmt.Sprintf("toolu_%d", calls), Name: "get_weather", Arguments: objects.Draw(t, "arguments"), Meta: meta(t)}
				parts = append(parts, c)
				results = append(results, ninelives.ToolResult{CallID: c.ID, Name: c.Name, IsError: rapid.Bool().Draw(t, "error"),
					Content: rapid.SliceOfN(rapid.OneOf(textPart, mediaPart, opaquePart), 0, 2).Draw(t, "result"), Meta: meta(t)})
			}
			messages = append(messages, ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts, Extra: unknown.Draw(t, "unknown")},
				ninelives.Message{Role: ninelives.RoleTool, Parts: results})
		}
	}
	return messages
})

func pointer[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		v := g.Draw(t, "value")
		return &v
	})
}

var requests = rapid.Custom(func(t *rapid.T) *ninelives.Request {
	r := &ninelives.Request{
		Model: "claude-test", Messages: conversations.Draw(t, "messages"),
		MaxTokens: rapid.IntRange(1, 100_000).Draw(t, "limit"),
		Stop:      rapid.SliceOfN(rapid.SampledFrom([]string{"END", "\n\nHuman:"}), 0, 2).Draw(t, "stop"),
		User:      rapid.SampledFrom([]string{"", `{"session_id":"s"}`}).Draw(t, "user id"),
		Extra: rapid.SampledFrom([]ninelives.Extra{{}, raw(`{"service_tier":"auto"}`), raw(`{"context_management":{"edits":[{"type":"x"}]},"container":null}`),
			raw(`{"cache_control":{"type":"ephemeral"},"metadata":{"user_id":null}}`)}).Draw(t, "extra"),
	}
	if r.User != "" && bytes.Contains(r.Extra.JSON, []byte("metadata")) {
		r.Extra = ninelives.Extra{}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tools") {
		tool := ninelives.Tool{Name: fmt.Sprintf("tool-%d", i), Description: words.Draw(t, "description"), Schema: []byte(schemas.Draw(t, "schema")),
			Strict: pointer(rapid.Bool()).Draw(t, "strict"), Meta: meta(t)}
		if rapid.IntRange(0, 4).Draw(t, "own") == 0 {
			tool = ninelives.Tool{Kind: "web_search_20250305", Name: "web_search", Meta: ninelives.Meta{Extra: raw(`{"type":"web_search_20250305","name":"web_search","max_uses":3}`)}}
		}
		r.Tools = append(r.Tools, tool)
	}
	if len(r.Tools) > 0 {
		r.ToolChoice.Mode = rapid.SampledFrom([]ninelives.ToolChoiceMode{"", ninelives.ToolChoiceAuto, ninelives.ToolChoiceNone, ninelives.ToolChoiceRequired, ninelives.ToolChoiceTool}).Draw(t, "choice")
		if r.ToolChoice.Mode == ninelives.ToolChoiceTool {
			r.ToolChoice.Name = r.Tools[0].Name
		}
		if m := r.ToolChoice.Mode; m != "" && m != ninelives.ToolChoiceNone {
			r.ParallelTools = pointer(rapid.Bool()).Draw(t, "parallel")
		}
	}
	for _, at := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(r.Messages)-1), 0, 4, rapid.ID[int]).Draw(t, "cached") {
		if p, ok := r.Messages[at].Parts[0].(ninelives.Text); ok {
			p.Cache = cache.Draw(t, "cache")
			r.Messages[at].Parts[0] = p
		}
	}
	r.Temperature = pointer(rapid.Float64Range(0, 1)).Draw(t, "temperature")
	r.TopP = pointer(rapid.Float64Range(0, 1)).Draw(t, "top_p")
	r.TopK = pointer(rapid.IntRange(0, 500)).Draw(t, "top_k")
	forced := r.ToolChoice.Mode == ninelives.ToolChoiceRequired || r.ToolChoice.Mode == ninelives.ToolChoiceTool
	if r.Temperature == nil && r.TopP == nil && r.TopK == nil && !forced {
		r.Reasoning = rapid.SampledFrom([]ninelives.ReasoningOptions{{},
			{Effort: "none", Extra: raw(`{"type":"disabled"}`)},
			{Extra: raw(`{"type":"adaptive","display":"omitted"}`)},
			{Effort: "high", Extra: raw(`{"type":"adaptive"}`)},
			{Effort: "low", Extra: raw(`{}`)},
		}).Draw(t, "reasoning")
	}
	if rapid.Bool().Draw(t, "output") {
		r.Output = &ninelives.Output{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)}
	}
	return r
})

// cacheHints counts the marks of a request, the server's own included.
func cacheHints(r *ninelives.Request) int {
	n := strings.Count(string(r.Extra.JSON), "cache_control")
	for _, tool := range r.Tools {
		if tool.Cache != nil {
			n++
		}
	}
	var count func([]ninelives.Part)
	count = func(parts []ninelives.Part) {
		for _, part := range parts {
			switch p := part.(type) {
			case ninelives.Text:
				n += hinted(p.Meta)
			case ninelives.Image:
				n += hinted(p.Meta)
			case ninelives.File:
				n += hinted(p.Meta)
			case ninelives.ToolCall:
				n += hinted(p.Meta)
			case ninelives.ToolResult:
				n += hinted(p.Meta)
				count(p.Content)
			}
		}
	}
	for _, m := range r.Messages {
		count(m.Parts)
	}
	return n
}

func hinted(m ninelives.Meta) int {
	if m.Cache == nil {
		return 0
	}
	return 1
}

func TestRequestsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, target := requests.Draw(t, "request"), generous()
		target.Stream = rapid.Bool().Draw(t, "stream")
		if cacheHints(req) > 4 {
			t.Skip("more cache hints than the protocol takes: a test of its own")
		}
		out, err := anthropic.EncodeRequest(req, target)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Notes) > 0 {
			t.Fatalf("a valid request was changed: %q", out.Notes)
		}
		in, err := anthropic.DecodeRequest(out.Body)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.Body)
		}
		if in.Stream != target.Stream {
			t.Fatalf("stream is %v", in.Stream)
		}
		// The protocol does not carry the names of results.
		for i, m := range req.Messages {
			for j, p := range m.Parts {
				if r, ok := p.(ninelives.ToolResult); ok {
					r.Name = ""
					req.Messages[i].Parts[j] = r
				}
			}
		}
		if diff := different(req, in.Request); diff != "" {
			t.Fatalf("%s\n%s", diff, out.Body)
		}
	})
}

var responses = rapid.Custom(func(t *rapid.T) *ninelives.Response {
	parts := rapid.SliceOfN(rapid.OneOf(textPart, thinkingPart, opaquePart), 0, 4).Draw(t, "parts")
	finish := rapid.SampledFrom([]string{"end_turn", "stop_sequence", "max_tokens", "pause_turn"}).Draw(t, "finish")
	r := &ninelives.Response{ID: "msg_1", Model: "claude-test-20260101", Candidate: generous().Candidate.Name()}
	for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
		finish = "tool_use"
		parts = append(parts, ninelives.ToolCall{ID: fmt.Sprintf("toolu_%d", i), Name: "get_weather", Arguments: objects.Draw(t, "arguments"), Meta: meta(t)})
	}
	r.Message = ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}
	r.FinishRaw = finish
	r.Finish = map[string]ninelives.FinishReason{"end_turn": ninelives.FinishStop, "stop_sequence": ninelives.FinishStop, "max_tokens": ninelives.FinishLength,
		"pause_turn": ninelives.FinishOther, "tool_use": ninelives.FinishToolCalls}[finish]
	r.Usage = rapid.SampledFrom([]ninelives.Usage{
		{Input: 3, Output: 5, Reported: ninelives.UsageInput | ninelives.UsageOutput, InputExcludesCached: true, Extra: raw(`{"input_tokens":3,"output_tokens":5}`)},
		{Input: 3, Output: 5, Cached: 7, CacheWrite: 9, Reasoning: 2,
			Reported:            ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached | ninelives.UsageCacheWrite | ninelives.UsageReasoning,
			InputExcludesCached: true,
			Extra:               raw(`{"input_tokens":3,"cache_creation_input_tokens":9,"cache_read_input_tokens":7,"output_tokens":5,"output_tokens_details":{"thinking_tokens":2},"service_tier":"standard"}`)},
	}).Draw(t, "usage")
	if finish == "stop_sequence" {
		r.Extra = raw(`{"stop_sequence":"END"}`)
	} else {
		r.Extra = rapid.SampledFrom([]ninelives.Extra{{}, raw(`{"container":{"id":"c"}}`)}).Draw(t, "extra")
	}
	return r
})

func TestResponsesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := responses.Draw(t, "response")
		body, err := anthropic.EncodeResponse(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := anthropic.DecodeResponse(body, decodeOptions())
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if diff := different(want, got); diff != "" {
			t.Fatalf("%s\n%s", diff, body)
		}
	})
}

// eventsOf tells an answer as events, in pieces of a few bytes.
func eventsOf(t *rapid.T, r *ninelives.Response) []ninelives.Event {
	var events []ninelives.Event
	pieces := func(s string, emit func(string)) {
		for len(s) > 0 {
			n := min(len(s), rapid.IntRange(1, 9).Draw(t, "piece"))
			for n < len(s) && s[n]&0xc0 == 0x80 {
				n++ // not inside a rune
			}
			emit(s[:n])
			s = s[n:]
		}
	}
	for i, p := range r.Message.Parts {
		if rapid.IntRange(0, 5).Draw(t, "only in the end") == 0 && i == len(r.Message.Parts)-1 {
			continue
		}
		switch v := p.(type) {
		case ninelives.Text:
			pieces(v.Text, func(s string) { events = append(events, ninelives.TextDelta{Part: i, Text: s}) })
		case ninelives.Reasoning:
			pieces(v.Text, func(s string) { events = append(events, ninelives.ReasoningDelta{Part: i, Text: s}) })
			events = append(events, ninelives.ReasoningDelta{Part: i, Proof: &v.Provenance})
		case ninelives.ToolCall:
			events = append(events, ninelives.ToolCallDelta{Part: i, ID: v.ID, Name: v.Name})
			pieces(v.Arguments, func(s string) { events = append(events, ninelives.ToolCallDelta{Part: i, Arguments: s}) })
		}
	}
	return append(events, ninelives.Done{Response: r})
}

func encodeStream(events []ninelives.Event) []byte {
	e := anthropic.NewEncoder(wire.EncodeOptions{ID: "msg_1", Model: "claude-test-20260101"})
	var stream []byte
	for _, ev := range events {
		stream = e.Event(stream, ev)
	}
	return stream
}

// streamable takes from an answer what deltas cannot carry: a block of another
// kind has no delta, so that it comes at the end, and what stands beside the
// content of a block is only known when the block is over.
func streamable(r *ninelives.Response) {
	var parts, last []ninelives.Part
	for _, p := range r.Message.Parts {
		switch v := p.(type) {
		case ninelives.Opaque:
			last = append(last, v)
			continue
		case ninelives.Text:
			v.Citations, v.Meta = nil, ninelives.Meta{}
			p = v
		case ninelives.Reasoning:
			v.Meta = ninelives.Meta{}
			p = v
		case ninelives.ToolCall:
			v.Meta = ninelives.Meta{}
			p = v
		}
		parts = append(parts, p)
	}
	r.Message.Parts = append(parts, last...)
}

func TestStreamsSurviveTheWireHoweverTheyAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := responses.Draw(t, "response")
		if rapid.Bool().Draw(t, "held back") {
			checkStream(t, want, encodeStream([]ninelives.Event{ninelives.Done{Response: want}}))
			return
		}
		streamable(want)
		checkStream(t, want, encodeStream(eventsOf(t, want)))
	})
}

func checkStream(t *rapid.T, want *ninelives.Response, stream []byte) {
	var pieces [][]byte
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), rapid.IntRange(1, 400).Draw(t, "read"))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	r := sse.NewReader(wiretest.Pieces(pieces))
	d := anthropic.NewDecoder(decodeOptions())
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = d.Frame(f, func(ninelives.Event) bool { return true })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if d.State() != wire.Closed {
		t.Fatalf("the stream is not closed:\n%s", stream)
	}
	got, err := d.Response(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := different(want, got); diff != "" {
		t.Fatalf("%s\n%s", diff, stream)
	}
}

// TestParallelCallsAreWrittenOneAfterAnother: clients expect a block to stop
// before the next one starts, however the calls came.
func TestParallelCallsAreWrittenOneAfterAnother(t *testing.T) {
	e := anthropic.NewEncoder(wire.EncodeOptions{})
	var stream []byte
	for _, ev := range []ninelives.Event{
		ninelives.ToolCallDelta{Part: 0, ID: "a", Name: "f"},
		ninelives.ToolCallDelta{Part: 1, ID: "b", Name: "g"},
		ninelives.ToolCallDelta{Part: 0, Arguments: `{"x":`},
		ninelives.ToolCallDelta{Part: 1, Arguments: `{}`},
		ninelives.ToolCallDelta{Part: 0, Arguments: `1}`},
		ninelives.Done{Response: &ninelives.Response{Finish: ninelives.FinishToolCalls, Message: ninelives.Message{Parts: []ninelives.Part{
			ninelives.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}, ninelives.ToolCall{ID: "b", Name: "g", Arguments: `{}`}}}}},
	} {
		stream = e.Event(stream, ev)
	}
	var kinds []string
	for _, line := range strings.Split(string(stream), "\n") {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, strings.TrimPrefix(kind, "content_block_"))
		}
	}
	want := "message_start start delta delta stop start delta stop message_delta message_stop"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, stream)
	}
}
