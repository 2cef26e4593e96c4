package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// chatLongStream is a stream of 500 chunks of the size and mix of a real one:
// 120 of reasoning, 300 of text, two calls in 77 pieces, the end, usage and
// [DONE], with the unknown members that servers send with every chunk.
func chatLongStream() []byte {
	var b bytes.Buffer
	chunk := func(i int, choice string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-8f1c0d5a7b3e4c2f","object":"chat.completion.chunk","created":1760000000,"model":"bench-model-2026-10-01","provider":"Bench","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":%s,"logprobs":null,"native_finish_reason":null}],"obfuscation":"%08x"}`+"\n\n", choice, i*2654435761)
	}
	n := 0
	for range 120 {
		chunk(n, fmt.Sprintf(`{"role":"assistant","content":"","reasoning":" the cat weighs %d things"},"finish_reason":null`, n))
		n++
	}
	for range 300 {
		chunk(n, fmt.Sprintf(`{"content":" and lands on \"paw\" %d,\n"},"finish_reason":null`, n))
		n++
	}
	for i := range 77 {
		call := fmt.Sprintf(`{"index":%d,"function":{"arguments":"\"k%d\":%d,"}}`, i/39, i, i)
		switch i {
		case 0, 39:
			call = fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":"write_file","arguments":"{"}}`, i/39, i)
		case 38, 76:
			call = fmt.Sprintf(`{"index":%d,"function":{"arguments":"\"end\":true}"}}`, i/39)
		}
		chunk(n, `{"tool_calls":[`+call+`]},"finish_reason":null`)
		n++
	}
	chunk(n, `{},"finish_reason":"tool_calls"`)
	b.WriteString(`data: {"id":"chatcmpl-8f1c0d5a7b3e4c2f","object":"chat.completion.chunk","created":1760000000,"model":"bench-model-2026-10-01","choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":900,"total_tokens":2100,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens_details":{"reasoning_tokens":400}}}` + "\n\n")
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// chatRace says that the race detector is on.
var chatRace bool

// chatConsume decodes a stream as a provider does, and counts its events.
func chatConsume(stream []byte) (*ninelives.Response, int, error) {
	r := sse.NewReader(bytes.NewReader(stream))
	d := openai.NewChatDecoder(wire.DecodeOptions{})
	events := 0
	emit := func(ninelives.Event) bool { events++; return true }
	for {
		f, err := r.Next()
		if err == io.EOF {
			resp, err := d.Response(nil)
			return resp, events, err
		}
		if err != nil {
			return nil, events, err
		}
		if err := d.Frame(f, emit); err != nil {
			return nil, events, err
		}
	}
}

func TestChatStreamCostsAtMostOneAllocationPerEvent(t *testing.T) {
	stream := chatLongStream()
	resp, events, err := chatConsume(stream)
	if err != nil || events != 120+300+77 || len(resp.Message.ToolCalls()) != 2 || !bytes.Contains(resp.Extra.JSON, []byte(`"obfuscation"`)) {
		t.Fatalf("%d events, %v: %+v", events, err, resp)
	}
	got := testing.AllocsPerRun(20, func() {
		if _, _, err := chatConsume(stream); err != nil {
			t.Fatal(err)
		}
	})
	// One for each event, which is boxed, and what the whole answer grows by.
	limit := float64(events + 150)
	if chatRace {
		limit = 2400 // the race detector empties the pools now and then
	}
	if got > limit {
		t.Errorf("%v allocations for %d events, want at most %v", got, events, limit)
	}
}

func BenchmarkChatStream(b *testing.B) {
	stream := chatLongStream()
	b.Run("ninelives", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := chatConsume(stream); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		b.ReportAllocs()
		for b.Loop() {
			if text, extra := chatPlainDecode(b, stream); text == "" || len(extra) == 0 {
				b.Fatal("nothing")
			}
		}
	})
	b.Run("encoding-json-unknown-dropped", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		b.ReportAllocs()
		for b.Loop() {
			if chatPlainDrop(b, stream) == "" {
				b.Fatal("nothing")
			}
		}
	})
}

// chatPlainChunk is how a plain decoder has a chunk.
type chatPlainChunk struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Role      string `json:"role"`
			Content   string `json:"content"`
			Reasoning string `json:"reasoning"`
			ToolCalls []struct {
				Index    *int   `json:"index"`
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

func chatPlainLines(stream []byte, line func(data []byte)) {
	s := bufio.NewScanner(bytes.NewReader(stream))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if data, ok := bytes.CutPrefix(s.Bytes(), []byte("data: ")); ok && !bytes.Equal(data, []byte("[DONE]")) {
			line(data)
		}
	}
}

func chatPlainAdd(text *strings.Builder, c *chatPlainChunk) {
	for _, choice := range c.Choices {
		text.WriteString(choice.Delta.Reasoning)
		text.WriteString(choice.Delta.Content)
		for _, call := range choice.Delta.ToolCalls {
			text.WriteString(call.Function.Arguments)
		}
	}
}

// chatPlainDecode is the baseline: encoding/json into structs, and a second
// pass for the top-level members that the structs do not know.
func chatPlainDecode(b *testing.B, stream []byte) (string, map[string]json.RawMessage) {
	var text strings.Builder
	extra := map[string]json.RawMessage{}
	chatPlainLines(stream, func(data []byte) {
		var c chatPlainChunk
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &c); err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(data, &all); err != nil {
			b.Fatal(err)
		}
		for name, raw := range all {
			switch name {
			case "id", "object", "created", "model", "choices", "usage":
			default:
				extra[name] = raw
			}
		}
		chatPlainAdd(&text, &c)
	})
	return text.String(), extra
}

// chatPlainDrop is the baseline of those who lose what they do not know.
func chatPlainDrop(b *testing.B, stream []byte) string {
	var text strings.Builder
	chatPlainLines(stream, func(data []byte) {
		var c chatPlainChunk
		if err := json.Unmarshal(data, &c); err != nil {
			b.Fatal(err)
		}
		chatPlainAdd(&text, &c)
	})
	return text.String()
}
