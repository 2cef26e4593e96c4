package anthropic_test

import (
	"encoding/json"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
)

// stream500 is an answer of 500 pieces with members that nobody knows.
func stream500() [][]byte {
	events := [][]byte{[]byte(start), []byte(textStart)}
	for range 500 {
		events = append(events, []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" and so on"},"x_trace":{"id":17}}`))
	}
	return append(events, []byte(blockStop), []byte(end), []byte(stop))
}

func decodeAll(events [][]byte, emit func(ninelives.Event) bool) *ninelives.Response {
	d := anthropic.NewDecoder(decodeOptions())
	for _, e := range events {
		if err := d.Frame(wire.Frame{Data: e}, emit); err != nil {
			panic(err)
		}
	}
	r, err := d.Response(nil)
	if err != nil {
		panic(err)
	}
	return r
}

func BenchmarkDecodeStream500(b *testing.B) {
	events := stream500()
	n := 0
	emit := func(ninelives.Event) bool { n++; return true }
	b.ReportAllocs()
	for b.Loop() {
		decodeAll(events, emit)
	}
}

// TestAPieceCostsLittle: one allocation, for the event itself; the race
// detector adds some.
func TestAPieceCostsLittle(t *testing.T) {
	events := stream500()
	emit := func(ninelives.Event) bool { return true }
	if got := testing.AllocsPerRun(5, func() { decodeAll(events, emit) }); got > 1000 {
		t.Errorf("a stream of 500 pieces costs %.0f allocations", got)
	}
}

// BenchmarkPlainJSON500 is the yardstick: the same stream through the standard
// library, with neither the checks nor the unknown members kept.
func BenchmarkPlainJSON500(b *testing.B) {
	events := stream500()
	b.ReportAllocs()
	for b.Loop() {
		var text string
		for _, e := range events {
			var ev struct {
				Type  string `json:"type"`
				Index int    `json:"index"`
				Delta struct {
					Type string `json:"type"`
					Text string `json:"text"`
				} `json:"delta"`
			}
			if err := json.Unmarshal(e, &ev); err != nil {
				b.Fatal(err)
			}
			text += ev.Delta.Text
		}
	}
}
