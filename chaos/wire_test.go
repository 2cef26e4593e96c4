package chaos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// The bytes of a two-word answer, written out once more by hand: what the
// simulator sends is a promise of its own, not what some encoder makes of it.
func TestBytesOfAShortAnswer(t *testing.T) {
	const created = "946684800" // the date of a bubble's first moment
	usage := `"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}`
	want := map[protocol][2]string{
		chat: {`{"id":"chatcmpl-sim1","object":"chat.completion","created":` + created + `,"model":"sim/x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],` + usage + `}`,
			`data: {"id":"chatcmpl-sim1","object":"chat.completion.chunk","created":` + created + `,"model":"sim/x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-sim1","object":"chat.completion.chunk","created":` + created + `,"model":"sim/x","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-sim1","object":"chat.completion.chunk","created":` + created + `,"model":"sim/x","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-sim1","object":"chat.completion.chunk","created":` + created + `,"model":"sim/x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
				"data: [DONE]\n\n"},
		messages: {`{"id":"msg_sim1","type":"message","role":"assistant","model":"sim/x","content":[{"type":"text","text":"Hi there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}`,
			"event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_sim1","type":"message","role":"assistant","model":"sim/x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}` + "\n\n" +
				"event: ping\n" + `data: {"type": "ping"}` + "\n\n" +
				"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}` + "\n\n" +
				"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}` + "\n\n" +
				"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
				"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}` + "\n\n" +
				"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"},
		gemini: {`{"candidates":[{"content":{"parts":[{"text":"Hi there"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":2,"totalTokenCount":13},"modelVersion":"sim/x","responseId":"sim1"}`,
			`data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":11,"totalTokenCount":11},"modelVersion":"sim/x","responseId":"sim1"}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"text":" there"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":11,"totalTokenCount":11},"modelVersion":"sim/x","responseId":"sim1"}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":2,"totalTokenCount":13},"modelVersion":"sim/x","responseId":"sim1"}` + "\n\n"},
	}
	for p, forms := range want {
		for i, stream := range []bool{false, true} {
			inBubble(t, one(Step{Text: "Hi there"}), func(t *testing.T, srv *Server) {
				resp, got, err := srv.say(t, p, "x", stream)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%s: %v %v", p, resp, err)
				}
				if got != forms[i] {
					t.Errorf("%s, stream %v:\ngot  %s\nwant %s", p, stream, got, forms[i])
				}
				if resp.Header.Get("X-Simulator") != "ninelives-chaos" {
					t.Errorf("%s: the answer does not say that it is simulated", p)
				}
			})
		}
	}
}

// The order of the events of a Responses stream is what its clients rely on.
func TestResponsesEventsInOrder(t *testing.T) {
	steps := one(Step{Text: "Hi", Reasoning: "Hm", Calls: []Call{{Name: "look", Arguments: `{"at":"me"}`}}})
	inBubble(t, steps, func(t *testing.T, srv *Server) {
		_, got, err := srv.say(t, responses, "x", true)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, ev := range events(t, got) {
			names = append(names, strings.TrimPrefix(ev["type"].(string), "response."))
			if ev["sequence_number"] != float64(i) {
				t.Errorf("event %d has the number %v", i, ev["sequence_number"])
			}
		}
		want := "created in_progress " +
			"output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done " +
			"output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done " +
			"output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed"
		if s := strings.Join(names, " "); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	})
}

// events parses the data of server-sent events that are all JSON.
func events(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, block := range strings.Split(strings.ReplaceAll(stream, "\r\n", "\n"), "\n\n") {
		for _, line := range strings.Split(block, "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			var v map[string]any
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Errorf("no JSON: %s: %v", data, err)
				continue
			}
			out = append(out, v)
		}
	}
	return out
}

// Whatever a scenario bends, only those that promise broken JSON send it.
func TestEveryScenarioSendsJSONUnlessItPromisesOtherwise(t *testing.T) {
	broken := []string{"malformed", "not-json", "cut-inside", "garbage", "fb-s10-malformed-chunk", "html-200", "wrong-path", "bad-gateway"}
	tools := `,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}]}`
	for _, sc := range Catalogue() {
		for _, p := range []protocol{chat, responses, messages, gemini} {
			for _, stream := range []bool{true, false} {
				inBubble(t, nil, func(t *testing.T, srv *Server) {
					path, body := request(p, sc.Name, stream, "Hello")
					if p == chat {
						body = strings.TrimSuffix(body, "}") + tools
					}
					client := srv.Client()
					client.Timeout = 3 * time.Minute // those that never end
					defer client.CloseIdleConnections()
					resp, err := client.Post(MemoryURL+path, "application/json", strings.NewReader(body))
					if err != nil {
						return // no answer at all is what such a scenario promises
					}
					defer resp.Body.Close()
					got := readAll(resp.Body)
					if slices.Contains(broken, sc.Name) {
						return
					}
					if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
						events(t, got)
					} else if got != "" && !json.Valid([]byte(got)) && !strings.Contains(sc.Name, "cut") && !strings.Contains(sc.Name, "stall") && sc.Name != "clean-end" && sc.Name != "only-alive" {
						t.Errorf("%s %s stream=%v: no JSON: %s", sc.Name, p, stream, got)
					}
				})
			}
		}
	}
}
