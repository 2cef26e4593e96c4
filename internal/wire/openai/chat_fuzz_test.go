package openai_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// Whatever comes, the decoder does not panic, no split makes a difference, and
// what it gives can be written again.
func FuzzChatDecoder(f *testing.F) {
	f.Add([]byte(chatStream(`"delta":{"role":"assistant","content":"Hel"}`, `"delta":{"content":"lo\ud83d"},"finish_reason":"stop"`, `data: {"choices":[],"usage":{"prompt_tokens":1}}`, chatDone)), uint8(1))
	f.Add([]byte(chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"f","arguments":{}}}]}`, `"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`, `"delta":{"reasoning":"x","reasoning_details":[{"type":"reasoning.text","text":"y"}]},"logprobs":{"content":[1]}`, `"message":{"content":[{"type":"text","text":"t"},{"type":"x"}]},"finish_reason":"length"`)), uint8(7))
	f.Add([]byte(chatStream(`"delta":{"content":"<think>a</think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"}`, `data: {"error":{"message":"m"}}`)), uint8(3))
	f.Add([]byte(`{"choices":[{"message":{"content":"x","annotations":[{}]}}],"error":null}`), uint8(2))
	f.Add([]byte("event: error\ndata: oops\n\nerror: {}\n"), uint8(5))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		o := wire.DecodeOptions{
			Dialect:    wire.Dialect{ThinkTags: n&1 != 0, TextToolCalls: n&2 != 0},
			Tools:      []ninelives.Tool{{Name: "f", Schema: []byte(`{"properties":{"a":{"type":"array"}}}`)}},
			OutputTool: []string{"", "f"}[n>>2&1],
		}
		events, resp, err := chatDecode(bytes.NewReader(stream), o)
		again, resp2, err2 := chatDecode(wiretest.Pieces(wiretest.Every(stream, int(n%16)+1)), o)
		if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(resp, resp2) || !reflect.DeepEqual(err, err2) {
			t.Fatalf("a split makes a difference:\n%+v %+v %v\n%+v %+v %v", events, resp, err, again, resp2, err2)
		}
		if err != nil {
			return
		}
		if body := openai.EncodeChatResponse(resp); !json.Valid([]byte(strings.ToValidUTF8(string(body), "\uFFFD"))) {
			t.Fatalf("no JSON: %s", body)
		}
	})
}

// Whatever a client sends, reading it does not panic, and what is read can be
// sent on.
func FuzzChatRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"reasoning_content":""},{"role":"tool","tool_call_id":"a","content":"y"}],"tools":[{"type":"function","function":{"name":"f"}}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"stop":"x","reasoning":{"effort":"low"}}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":null},{"role":"developer","content":""}],"functions":[{}],"function_call":{"name":"f"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := openai.DecodeChatRequest(body)
		if err != nil {
			return
		}
		for _, name := range []string{"plain", "openai", "mistral", "deepseek", "minimax", "openrouter"} {
			target := chatTarget()
			target.Dialect, _ = wire.DialectNamed(name)
			encoded, err := openai.EncodeChatRequest(in.Request, target)
			if err == nil && !json.Valid([]byte(strings.ToValidUTF8(string(encoded.Body), "\uFFFD"))) {
				t.Fatalf("%s: no JSON: %s", name, encoded.Body)
			}
		}
	})
}
