package anthropic_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func TestRecordedEventsOfOneShapeMeanWhatEachMeans(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.AnthropicMessages) {
		if ex.Stream && ex.Status == 200 {
			t.Run(ex.Name, func(t *testing.T) {
				wiretest.Unhurried(t, strings.NewReader(string(ex.Body)), func() wire.Decoder { return anthropic.NewDecoder(decodeOptions()) })
			})
		}
	}
}

func TestRandomEventsOfOneShapeMeanWhatEachMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		var stream strings.Builder
		frame := start
		for range rapid.IntRange(1, 14).Draw(t, "frames") {
			if rapid.IntRange(0, 2).Draw(t, "shape") == 0 {
				index := pick("index", `,"index":0`, `,"index":0`, `,"index":1`, "")
				frame = pick("frame", start, `{"type":"content_block_start"`+index+`,"content_block":{"type":"text","text":""}}`,
					`{"type":"content_block_start"`+index+`,"content_block":{"type":"thinking","thinking":""}}`,
					`{"type":"content_block_start"`+index+`,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"text_delta","text":TEXT}}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"text_delta","text":TEXT}}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"thinking_delta","thinking":TEXT},"x":1}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"text_delta","text":"v","text":TEXT}}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"input_json_delta","partial_json":TEXT}}`,
					`{"type":"content_block_delta"`+index+`,"delta":{"type":"signature_delta","signature":TEXT}}`,
					`{"type":"content_block_stop"`+index+`}`, end, stop, `{"type":"ping"}`)
			}
			stream.WriteString(pick("event", "", "", "event: content_block_delta\n", "event: error\n") + "data: " +
				strings.Replace(frame, "TEXT", pick("text", `"a"`, `" b"`, `""`, `"ü"`, `"\n"`, `"x\"y"`, `null`, "\"\xc3\""), 1) + "\n\n")
		}
		wiretest.Unhurried(t, strings.NewReader(stream.String()), func() wire.Decoder { return anthropic.NewDecoder(decodeOptions()) })
	})
}
