package openai_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func TestChatRecordedEventsOfOneShapeMeanWhatEachMeans(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIChat) {
		if ex.Stream && ex.Status == 200 {
			o := chatRecordingOptions(ex)
			t.Run(ex.Name, func(t *testing.T) {
				wiretest.Unhurried(t, strings.NewReader(string(ex.Body)), func() wire.Decoder { return openai.NewChatDecoder(o) })
			})
		}
	}
}

func TestChatRandomEventsOfOneShapeMeanWhatEachMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		text := func() string {
			return pick("text", `"a"`, `" b"`, `""`, `"ü"`, `"\n"`, `"x\"y"`, `"\ud83d"`, `"\ude00"`, `null`, `"<think>"`, `"</think>"`, "\"\xc3\"", "\"\xbc\"", `[{"type":"text","text":"c"}]`)
		}
		var stream strings.Builder
		frame := `{"choices":[]}`
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			if rapid.IntRange(0, 3).Draw(t, "shape") == 0 {
				choice := `{"index":` + pick("index", "0", "0", "1") + pick("before", "", `,"x":1`, `,"x":null`, `,"error":"e"`, `,"message":{"content":"m"}`, `,"text":"t"`) +
					`,"delta":{"content":TEXT` + pick("beside", "", "", `,"role":"assistant"`, `,"reasoning_content":null`, `,"reasoning_content":"r"`, `,"refusal":"no"`, `,"content":"z"`, `,"tool_calls":[]`,
					`,"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{"}}]`, `,"annotations":[{"url":"u"}]`, `,"reasoning_details":[{"type":"reasoning.text","text":"d"}]`, `,"y":2`) + `}` +
					pick("after", "", `,"logprobs":null`, `,"logprobs":{"content":[{"token":"a"}]}`, `,"finish_reason":null`, `,"finish_reason":"stop"`, `,"usage":{"prompt_tokens":1}`) + `}`
				frame = `{"id":"i","model":"m"` + pick("member", "", `,"z":1`, `,"z":null`, `,"usage":{"completion_tokens":3}`, `,"x_groq":{"usage":{"prompt_tokens":1}}`, `,"error":{"message":"bad"}`) +
					`,"choices":[` + choice + pick("second", "", "", "", `,{"index":2,"delta":{"content":"other"}}`) + `]}`
			}
			stream.WriteString(pick("event", "", "", "", "event: message\n") + "data: " + strings.Replace(frame, "TEXT", text(), 1) + "\n\n")
		}
		stream.WriteString(pick("end", "", "data: [DONE]\n\n"))
		o := wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: "p", Model: "m"}}
		o.Dialect.ThinkTags = rapid.Bool().Draw(t, "tags")
		wiretest.Unhurried(t, strings.NewReader(stream.String()), func() wire.Decoder { return openai.NewChatDecoder(o) })
	})
}
