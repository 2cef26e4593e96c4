package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// tongue is a protocol, spoken by both sides.
type tongue struct {
	name     string
	url      string // of its first server
	protocol ninelives.Protocol
	// streamed and whole are the same answer of that server: thinking with a
	// proof, text, two calls, usage with tokens from the cache.
	streamed []string
	whole    string
	// proofs have to come back to the server byte for byte.
	proofs []string

	decoder  func(wire.DecodeOptions) wire.Decoder
	decode   func([]byte, wire.DecodeOptions) (*ninelives.Response, error)
	encoder  func(wire.EncodeOptions) wire.Encoder
	encode   func(*ninelives.Response) ([]byte, error)
	readAsk  func([]byte) (wire.Incoming, error)
	writeAsk func(*ninelives.Request, wire.Target) (wire.Encoded, error)
}

const (
	messagesSignature = "EqoBCkYIAhgCKkBmZmY+/w=="
	encryptedContent  = "gAAAAABo-enc_1rypted+/=="
	thoughtSignature  = "CiQB0e2Kb+/x="
	detailsSignature  = "ZGV0YWlscw=="
)

var tongues = []tongue{
	{
		name: "chat", url: "https://openrouter.ai/api/v1", protocol: ninelives.OpenAIChat,
		streamed: []string{
			`{"id":"gen-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"I should look.","reasoning_details":[{"type":"reasoning.text","text":"I should look.","signature":"` + detailsSignature + `","index":0}]},"finish_reason":null}]}`,
			`{"id":"gen-1","choices":[{"index":0,"delta":{"content":"Looking"},"finish_reason":null}]}`,
			`{"id":"gen-1","choices":[{"index":0,"delta":{"content":" twice."},"finish_reason":null}]}`,
			`{"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"look","arguments":"{\"q\":"}}]},"finish_reason":null}]}`,
			`{"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"id":"call_b","type":"function","function":{"name":"look","arguments":"{\"q\":2}"}}]},"finish_reason":null}]}`,
			`{"id":"gen-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"gen-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60}}}`,
			`[DONE]`,
		},
		whole: `{"id":"gen-1","object":"chat.completion","created":1767225600,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Looking twice.","reasoning":"I should look.","reasoning_details":[{"type":"reasoning.text","text":"I should look.","signature":"` + detailsSignature + `","index":0}],` +
			`"tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{\"q\":1}"}},{"id":"call_b","type":"function","function":{"name":"look","arguments":"{\"q\":2}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60}}}`,
		proofs:  []string{`"signature":"` + detailsSignature + `"`},
		decoder: openai.NewChatDecoder, decode: openai.DecodeChatResponse,
		encoder: func(o wire.EncodeOptions) wire.Encoder { return openai.NewChatEncoder(o) },
		encode:  func(r *ninelives.Response) ([]byte, error) { return openai.EncodeChatResponse(r), nil },
		readAsk: openai.DecodeChatRequest, writeAsk: openai.EncodeChatRequest,
	},
	{
		name: "responses", url: "https://api.openai.com/v1", protocol: ninelives.OpenAIResponses,
		streamed: []string{
			`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1767225600,"status":"in_progress","model":"m","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
			`{"type":"response.reasoning_summary_part.added","sequence_number":2,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"I should"}`,
			`{"type":"response.reasoning_summary_part.added","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","sequence_number":5,"item_id":"rs_1","output_index":0,"summary_index":1,"delta":" look."}`,
			`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I should"},{"type":"summary_text","text":" look."}],"encrypted_content":"` + encryptedContent + `"}}`,
			`{"type":"response.output_item.added","sequence_number":7,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","sequence_number":8,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Looking twice."}`,
			`{"type":"response.output_item.done","sequence_number":9,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Looking twice.","annotations":[]}]}}`,
			`{"type":"response.output_item.done","sequence_number":10,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"look","arguments":"{\"q\":1}"}}`,
			`{"type":"response.output_item.done","sequence_number":11,"output_index":3,"item":{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"look","arguments":"{\"q\":2}"}}`,
			`{"type":"response.completed","sequence_number":12,"response":` + responsesAnswer + `}`,
		},
		whole:   responsesAnswer,
		proofs:  []string{`"encrypted_content":"` + encryptedContent + `"`},
		decoder: openai.NewResponsesDecoder, decode: openai.DecodeResponsesResponse,
		encoder: func(o wire.EncodeOptions) wire.Encoder { return openai.NewResponsesEncoder(o) },
		encode:  func(r *ninelives.Response) ([]byte, error) { return openai.EncodeResponsesResponse(r), nil },
		readAsk: openai.DecodeResponsesRequest, writeAsk: openai.EncodeResponsesRequest,
	},
	{
		name: "messages", url: "https://api.anthropic.com", protocol: ninelives.AnthropicMessages,
		streamed: []string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I should look."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + messagesSignature + `"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Looking twice."}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_a","name":"look","input":{}}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`,
			`{"type":"content_block_stop","index":3}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_b","name":"look","input":{}}}`,
			`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"q\":2}"}}`,
			`{"type":"content_block_stop","index":4}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}`,
			`{"type":"message_stop"}`,
		},
		whole: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"I should look.","signature":"` + messagesSignature + `"},{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="},{"type":"text","text":"Looking twice."},` +
			`{"type":"tool_use","id":"toolu_a","name":"look","input":{"q":1}},{"type":"tool_use","id":"toolu_b","name":"look","input":{"q":2}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":20}}`,
		proofs: []string{
			`{"type":"thinking","thinking":"I should look.","signature":"` + messagesSignature + `"}`, `{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="}`,
		},
		decoder: anthropic.NewDecoder, decode: anthropic.DecodeResponse, encoder: anthropic.NewEncoder, encode: anthropic.EncodeResponse,
		readAsk: anthropic.DecodeRequest, writeAsk: anthropic.EncodeRequest,
	},
	{
		name: "gemini", url: "https://generativelanguage.googleapis.com/v1beta", protocol: ninelives.Gemini,
		streamed: []string{
			`{"candidates":[{"content":{"parts":[{"text":"I should look.","thought":true}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r1"}`,
			`{"candidates":[{"content":{"parts":[{"text":"Looking twice."}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r1"}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"q":1}},"thoughtSignature":"` + thoughtSignature + `"},{"functionCall":{"name":"look","args":{"q":2}}}],"role":"model"},"finishReason":"STOP","index":0}],` +
				`"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":15,"thoughtsTokenCount":5,"totalTokenCount":120},"modelVersion":"m","responseId":"r1"}`,
		},
		whole: `{"candidates":[{"content":{"parts":[{"text":"I should look.","thought":true},{"text":"Looking twice."},{"functionCall":{"name":"look","args":{"q":1}},"thoughtSignature":"` + thoughtSignature + `"},{"functionCall":{"name":"look","args":{"q":2}}}],"role":"model"},"finishReason":"STOP","index":0}],` +
			`"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":15,"thoughtsTokenCount":5,"totalTokenCount":120},"modelVersion":"m","responseId":"r1"}`,
		proofs:  []string{`"thoughtSignature":"` + thoughtSignature + `"`},
		decoder: gemini.NewDecoder, decode: gemini.DecodeResponse, encoder: gemini.NewEncoder,
		encode: func(r *ninelives.Response) ([]byte, error) { return gemini.EncodeResponse(r), nil },
		readAsk: func(body []byte) (wire.Incoming, error) {
			req, err := gemini.DecodeRequest("m", body)
			return wire.Incoming{Request: req}, err
		},
		writeAsk: gemini.EncodeRequest,
	},
}

const responsesAnswer = `{"id":"resp_1","object":"response","created_at":1767225600,"status":"completed","model":"m","output":[` +
	`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I should"},{"type":"summary_text","text":" look."}],"encrypted_content":"` + encryptedContent + `"},` +
	`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Looking twice.","annotations":[]}]},` +
	`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"look","arguments":"{\"q\":1}"},` +
	`{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"look","arguments":"{\"q\":2}"}],` +
	`"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}}`

// candidate is the model at the protocol's first server; as a client's view of
// a gateway it has another maker.
func (g tongue) candidate(provider string) ninelives.Candidate {
	return ninelives.Candidate{Provider: provider, Model: "m", Protocol: g.protocol}
}

func (g tongue) target(t *testing.T, provider string) wire.Target {
	t.Helper()
	d, _ := wire.DialectFor(g.url, "m")
	return wire.Target{Candidate: g.candidate(provider), Dialect: d}
}

// read reads a streamed answer, and gives what was told of it as well.
func (g tongue) read(t *testing.T, stream []byte, o wire.DecodeOptions) ([]ninelives.Event, *ninelives.Response) {
	t.Helper()
	d := g.decoder(o)
	var events []ninelives.Event
	r := sse.NewReader(bytes.NewReader(stream))
	for f, err := r.Next(); err == nil; f, err = r.Next() {
		if err := d.Frame(f, func(ev ninelives.Event) bool { events = append(events, ev); return true }); err != nil {
			t.Fatalf("%v in %s", err, f.Data)
		}
	}
	resp, err := d.Response(nil)
	if err != nil {
		t.Fatalf("%v of\n%s", err, stream)
	}
	return events, resp
}

// sameAnswer checks what a client makes of an answer.
func sameAnswer(t *testing.T, got *ninelives.Response) {
	t.Helper()
	if text := got.Message.Text(); text != "Looking twice." {
		t.Errorf("the text is %q", text)
	}
	if thought := got.Message.Reasoning(); thought != "I should look." {
		t.Errorf("the thought is %q", thought)
	}
	if got.Finish != ninelives.FinishToolCalls {
		t.Errorf("it ended with %q", got.Finish)
	}
	calls := got.Message.ToolCalls()
	if len(calls) != 2 || calls[0].Name != "look" || calls[1].Name != "look" || calls[0].Arguments != `{"q":1}` || calls[1].Arguments != `{"q":2}` || calls[0].ID == calls[1].ID {
		t.Errorf("the calls are %+v", calls)
	}
	if u := got.Usage; u.TotalInput() != 100 || u.Cached != 60 || u.TotalOutput() != 20 {
		t.Errorf("the usage is %+v", u)
	}
}

// All sixteen pairs: what a model of one protocol answers reaches a client of
// any other whole, and what it wants back comes back with the client's next
// request, byte for byte, to its maker and to nobody else.
func TestEveryPairOfProtocolsKeepsAnAnswerAndItsProofs(t *testing.T) {
	for _, server := range tongues {
		for _, client := range tongues {
			for _, streamed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s for %s, streamed %v", server.name, client.name, streamed), func(t *testing.T) {
					o := wire.DecodeOptions{Candidate: server.candidate("maker")}
					var frames []byte
					for _, data := range server.streamed {
						frames = sse.Append(frames, wire.Frame{Data: []byte(data)})
					}
					events, answer := server.read(t, frames, o)
					if !streamed {
						var err error
						if answer, err = server.decode([]byte(server.whole), o); err != nil {
							t.Fatal(err)
						}
					}
					sameAnswer(t, answer)

					// What the client hears. It takes the gateway for the maker.
					view := wire.DecodeOptions{Candidate: client.candidate("gateway")}
					var heard *ninelives.Response
					if streamed {
						e := client.encoder(wire.EncodeOptions{ID: "answer_1", Model: "m", Usage: true})
						var stream []byte
						for _, ev := range events {
							stream = e.Event(stream, ev)
						}
						stream = e.Event(stream, ninelives.Done{Response: answer})
						_, heard = client.read(t, stream, view)
					} else {
						body, err := client.encode(answer)
						if err != nil {
							t.Fatal(err)
						}
						if heard, err = client.decode(body, view); err != nil {
							t.Fatalf("%v of %s", err, body)
						}
					}
					sameAnswer(t, heard)

					// What it asks next.
					results := ninelives.Message{Role: ninelives.RoleTool}
					for _, c := range heard.Message.ToolCalls() {
						results.Parts = append(results.Parts, ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: []ninelives.Part{ninelives.Text{Text: "seen"}}})
					}
					ask := &ninelives.Request{
						Model: "m", MaxTokens: 100,
						Messages: []ninelives.Message{ninelives.UserText("look"), heard.Message, results},
						Tools:    []ninelives.Tool{{Name: "look", Schema: []byte(`{"type":"object","properties":{"q":{"type":"integer"}}}`)}},
					}
					enc, err := client.writeAsk(ask, client.target(t, "gateway"))
					if err != nil {
						t.Fatal(err)
					}
					in, err := client.readAsk(enc.Body)
					if err != nil {
						t.Fatalf("%v of %s", err, enc.Body)
					}
					if foreign := client.name != server.name; foreign && !wire.Marked(enc.Body) && client.name+server.name != "chatgemini" {
						t.Errorf("nothing says whose reasoning this is:\n%s", enc.Body)
					}

					// To its maker.
					back, err := server.writeAsk(in.Request, server.target(t, "maker"))
					if err != nil {
						t.Fatal(err)
					}
					for _, proof := range server.proofs {
						if !strings.Contains(string(back.Body), proof) {
							t.Errorf("%s did not come back\nthe client sent %s\nits maker got %s", proof, enc.Body, back.Body)
						}
					}
					if wire.Marked(back.Body) {
						t.Errorf("a mark of ours reached the maker: %s", back.Body)
					}

					// To someone else of the same protocol.
					if client.name == server.name {
						return // who made it is not said where the protocols are the same
					}
					other, err := server.writeAsk(in.Request, server.target(t, "another"))
					if err != nil {
						t.Fatal(err)
					}
					for _, proof := range server.proofs {
						if strings.Contains(string(other.Body), proof) && client.name+server.name != "chatgemini" {
							t.Errorf("%s was shown to another maker: %s", proof, other.Body)
						}
					}
				})
			}
		}
	}
}
