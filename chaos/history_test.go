package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// history posts a conversation to a strict model and gives status and words.
func history(t *testing.T, srv *Server, p protocol, model, conversation string) (int, string) {
	t.Helper()
	path, body := request(p, model, false, "")
	at := strings.LastIndex(body, `"`+map[protocol]string{chat: "messages", responses: "input", messages: "messages", gemini: "contents"}[p]+`":`)
	body = body[:at] + conversation + "}"
	if !json.Valid([]byte(body)) {
		t.Fatalf("no JSON: %s", body)
	}
	resp, got, err := post(t, srv, path, body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Error struct{ Message string } }
	json.Unmarshal([]byte(got), &e)
	return resp.StatusCode, e.Error.Message
}

// The pieces of conversations, in the protocols' own words.
func chatSays(role, said string) string {
	return `{"role":"` + role + `","content":` + quote(said) + `}`
}
func chatCalls(ids ...string) string {
	var calls []string
	for _, id := range ids {
		calls = append(calls, `{"id":"`+id+`","type":"function","function":{"name":"look","arguments":"{}"}}`)
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}
func chatResult(id string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"seen"}`
}
func inChat(m ...string) string { return `"messages":[` + strings.Join(m, ",") + `]` }

func itemCall(id string) string {
	return `{"type":"function_call","call_id":"` + id + `","name":"look","arguments":"{}"}`
}
func itemResult(id string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"seen"}`
}
func inResponses(m ...string) string { return `"input":[` + strings.Join(m, ",") + `]` }

func claudeSays(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}
func block(said string) string { return `{"type":"text","text":` + quote(said) + `}` }
func use(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"look","input":{}}`
}
func result(id string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"seen"}`
}

func geminiSays(role string, parts ...string) string {
	return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}
func said(s string) string { return `{"text":` + quote(s) + `}` }
func fc(name string) string {
	return `{"functionCall":{"name":"` + name + `","args":{}}}`
}
func fr(name string) string {
	return `{"functionResponse":{"name":"` + name + `","response":{"output":"seen"}}}`
}
func inGemini(m ...string) string { return `"contents":[` + strings.Join(m, ",") + `]` }

// The eight histories that strict providers are tried with: seven that chat,
// Messages and Gemini refuse in their own words, and what each minds of the
// order of parallel results. Responses pairs by id alone.
func TestTheEightHistories(t *testing.T) {
	hi, bye := chatSays("user", "Hi"), chatSays("user", "Bye")
	cHi, cBye := claudeSays("user", block("Hi")), claudeSays("user", block("Bye"))
	gHi := geminiSays("user", said("Hi"))
	const (
		chatOpen   = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
		chatOrphan = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
		useOpen    = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
		useTail    = ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
		resOrphan  = ". Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
	)
	for _, c := range []struct {
		name         string
		p            protocol
		conversation string
		want         string // "": taken
	}{
		{"whole", chat, inChat(hi, chatCalls("a", "b"), chatResult("a"), chatResult("b"), chatSays("assistant", "Ok"), bye), ""},
		{"whole", responses, inResponses(hi, itemCall("a"), itemResult("a"), chatSays("assistant", "Ok"), bye), ""},
		{"whole", messages, inChat(cHi, claudeSays("assistant", block("I look"), use("a"), use("b")), claudeSays("user", result("a"), result("b"), block("and?")), claudeSays("assistant", block("Ok")), cBye), ""},
		{"whole", gemini, inGemini(gHi, geminiSays("model", said("I look"), fc("look"), fc("see")), geminiSays("user", fr("look"), fr("see")), geminiSays("model", said("Ok")), gHi), ""},

		{"a01 unmatched call", chat, inChat(hi, chatCalls("a"), bye), chatOpen + "a"},
		{"a01 unmatched call", responses, inResponses(hi, itemCall("a"), bye), "No tool output found for function call a."},
		{"a01 unmatched call", messages, inChat(cHi, claudeSays("assistant", use("a")), cBye), useOpen + "a" + useTail},
		{"a01 unmatched call", gemini, inGemini(gHi, geminiSays("model", fc("look")), gHi), geminiAfterCall},
		{"a01 at the end", chat, inChat(hi, chatCalls("a")), chatOpen + "a"},
		{"a01 at the end", messages, inChat(cHi, claudeSays("assistant", use("a"))), useOpen + "a" + useTail},
		{"a01 at the end", gemini, inGemini(gHi, geminiSays("model", fc("look"))), geminiCount},

		{"a02 unmatched result", chat, inChat(hi, chatResult("a")), chatOrphan},
		{"a02 unmatched result", responses, inResponses(hi, itemResult("a")), "No tool call found for function call output with call_id a."},
		{"a02 unmatched result", messages, inChat(claudeSays("user", result("a"))), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a" + resOrphan},
		{"a02 unmatched result", gemini, inGemini(gHi, geminiSays("model", said("Ok")), geminiSays("user", fr("look"))), geminiAfterCall},

		{"a03 user between", chat, inChat(hi, chatCalls("a"), bye, chatResult("a")), chatOpen + "a"},
		{"a03 user between", responses, inResponses(hi, itemCall("a"), bye, itemResult("a")), ""},
		{"a03 user between", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", block("wait"), result("a"))), useOpen + "a" + useTail},
		{"a03 user between", gemini, inGemini(gHi, geminiSays("model", fc("look")), gHi, geminiSays("user", fr("look"))), geminiAfterCall},

		{"a03 user between, in two", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", block("wait")), claudeSays("user", result("a"))), useOpen + "a" + useTail},
		{"results in two", messages, inChat(cHi, claudeSays("assistant", use("a"), use("b")), claudeSays("user", result("a")), claudeSays("user", result("b"), block("and?"))), ""},

		{"a04 assistant between", chat, inChat(hi, chatCalls("a"), chatSays("assistant", "Hm"), chatResult("a")), chatOpen + "a"},
		{"a04 assistant between", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("assistant", block("Hm")), claudeSays("user", result("a"))), useOpen + "a" + useTail},
		{"a04 assistant between", gemini, inGemini(gHi, geminiSays("model", fc("look")), geminiSays("model", said("Hm")), geminiSays("user", fr("look"))), "Please ensure that multiturn requests alternate between user and model."},

		{"a05 duplicate id", chat, inChat(hi, chatCalls("a", "a"), chatResult("a"), chatResult("a")), "Duplicate value for 'tool_call_id' of 'a' in message[1]."},
		{"a05 duplicate result", chat, inChat(hi, chatCalls("a"), chatResult("a"), chatResult("a")), "Duplicate value for 'tool_call_id' of 'a' in message[3]."},
		{"a05 duplicate id", responses, inResponses(hi, itemCall("a"), itemCall("a"), itemResult("a")), "Duplicate item found with call_id a. Remove duplicate items from your input and try again."},
		{"a05 duplicate id", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", result("a")), claudeSays("assistant", use("a")), claudeSays("user", result("a"))), "messages.3.content.0: `tool_use` ids must be unique"},
		{"a05 duplicate result", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", result("a"), result("a"))), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"},

		{"a06 wrong id", chat, inChat(hi, chatCalls("a"), chatResult("z")), "Invalid parameter: 'tool_call_id' of 'z' not found in 'tool_calls' of previous message."},
		{"a06 wrong id", responses, inResponses(hi, itemCall("a"), itemResult("z")), "No tool call found for function call output with call_id z."},
		{"a06 wrong id", messages, inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", result("z"))), "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: z" + resOrphan},
		{"a06 wrong name", gemini, inGemini(gHi, geminiSays("model", fc("look")), geminiSays("user", fr("see"))), geminiCount},

		{"a07 parallel missing", chat, inChat(hi, chatCalls("a", "b", "c"), chatResult("b"), bye), chatOpen + "a, c"},
		{"a07 parallel missing", responses, inResponses(hi, itemCall("a"), itemCall("b"), itemResult("a")), "No tool output found for function call b."},
		{"a07 parallel missing", messages, inChat(cHi, claudeSays("assistant", use("a"), use("b")), claudeSays("user", result("a"))), useOpen + "b" + useTail},
		{"a07 parallel missing", gemini, inGemini(gHi, geminiSays("model", fc("look"), fc("see")), geminiSays("user", fr("look"))), geminiCount},

		{"a08 other order", chat, inChat(hi, chatCalls("a", "b"), chatResult("b"), chatResult("a")), ""},
		{"a08 other order", responses, inResponses(hi, itemCall("a"), itemCall("b"), itemResult("b"), itemResult("a")), ""},
		{"a08 other order", messages, inChat(cHi, claudeSays("assistant", use("a"), use("b")), claudeSays("user", result("b"), result("a"))), ""},
		{"a08 other order", gemini, inGemini(gHi, geminiSays("model", fc("look"), fc("see")), geminiSays("user", fr("see"), fr("look"))), geminiCount},
		{"a08 before the call", responses, inResponses(hi, itemResult("a"), itemCall("a")), "No tool call found for function call output with call_id a."},
	} {
		t.Run(c.name+" "+string(c.p), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, srv *Server) {
				expect(t, srv, c.p, "strict-history", c.conversation, c.want)
			})
		})
	}
}

func expect(t *testing.T, srv *Server, p protocol, model, conversation, want string) {
	t.Helper()
	status, got := history(t, srv, p, model, conversation)
	if want == "" && status != 200 || want != "" && status != 400 || got != want {
		t.Errorf("%s: %d %q, want %q\n%s", p, status, got, want, conversation)
	}
}

// What else the vendors refuse of a conversation.
func TestFormsThatStrictServersRefuse(t *testing.T) {
	hi := chatSays("user", "Hi")
	cHi, gHi := claudeSays("user", block("Hi")), geminiSays("user", said("Hi"))
	long := strings.Repeat("x", 41)
	calls := func(call string) string {
		return inChat(hi, `{"role":"assistant","tool_calls":[`+call+`]}`, chatResult("a"))
	}
	for _, c := range []struct {
		p            protocol
		model        string
		conversation string
		want         string
	}{
		{messages, "strict-history", inChat(claudeSays("assistant", block("Hi")), cHi), ""}, // the vendor takes it by now
		{messages, "strict-history", inChat(cHi, cHi), ""},
		{messages, "strict-history", inChat(cHi, claudeSays("tool", block("Hi"))), "messages.1.role: Input should be 'user' or 'assistant'"},
		{gemini, "strict-history", inGemini(geminiSays("assistant", said("Hi"))), "Please use a valid role: user, model."},
		{gemini, "strict-history", inGemini(geminiSays("model", fc("look")), geminiSays("user", fr("look"))), "Please ensure that multiturn requests alternate between user and model."},
		{chat, "strict-history", inChat(chatSays("model", "Hi")), "Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},

		{messages, "strict-history", inChat(claudeSays("user", block(""))), "messages: text content blocks must be non-empty"},
		{messages, "strict-history", inChat(claudeSays("user", block(" \n"))), "messages: text content blocks must contain non-whitespace text"},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant"), cHi), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant", block("Once ")), cHi), ""},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant", block("Once "))), "messages: final assistant content cannot end with trailing whitespace"},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant", block("Once"))), ""},
		{messages, "no-prefill", inChat(cHi, claudeSays("assistant", block("Once"))), "This model does not support assistant message prefill. The conversation must end with a user message."},
		{chat, "strict-history", inChat(hi, `{"role":"assistant","content":null}`, hi), "Invalid value for 'content': expected a string, got null."},
		{chat, "strict-history", inChat(hi, `{"role":"assistant","content":"","tool_calls":[]}`, hi), "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{chat, "strict-history", inChat(`{"role":"user","content":[]}`), "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{gemini, "strict-history", inGemini(geminiSays("user")), "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"},
		{gemini, "strict-history", inGemini(geminiSays("user", `{}`)), "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n"},

		{messages, "strict-history", inChat(cHi, claudeSays("assistant", use("a.1")), claudeSays("user", result("a.1"))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant", `{"type":"tool_use","id":"a","name":"look at","input":{}}`), claudeSays("user", result("a"))), "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{messages, "strict-history", inChat(cHi, claudeSays("assistant", `{"type":"tool_use","id":"a","name":"look","input":"{"}`), claudeSays("user", result("a"))), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{chat, "strict-history", calls(`{"id":"` + long + `","type":"function","function":{"name":"look","arguments":"{}"}}`), "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead."},
		{chat, "strict-history", calls(`{"id":"a","type":"function","function":{"name":"a.look","arguments":"{}"}}`), "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{chat, "strict-history", calls(`{"id":"a","type":"function","function":{"name":"unheard_of","arguments":"{}"}}`), ""},
		{chat, "strict-history", calls(`{"id":"a","type":"function","function":{"name":"look","arguments":{}}}`), "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead."},
		{gemini, "strict-history", inGemini(gHi, geminiSays("model", fc("look")), geminiSays("user", fr(""))), "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n"},
		{chat, "strict-ids", inChat(hi, chatCalls("call_1"), chatResult("call_1")), "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."},
		{chat, "strict-ids", inChat(hi, chatCalls("aB3456789"), chatResult("aB3456789")), ""},
		{chat, "strict-ids", inChat(hi, chatCalls("aB3456789"), chatResult("aB3456789"), hi), "Unexpected role 'user' after role 'tool'"},
		{chat, "strict-local", inChat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`), "This model does not support image input."},

		{chat, "strict-thinking", inChat(hi, chatCalls("a"), chatResult("a")), "The `reasoning_content` in the thinking mode must be passed back to the API."},
		{chat, "strict-thinking", inChat(hi, strings.Replace(chatCalls("a"), `{`, `{"reasoning_content":"",`, 1), chatResult("a")), ""},
		{messages, "strict-thinking", `"thinking":{"type":"enabled","budget_tokens":1024},` + inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", result("a"))),
			"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."},
		{messages, "strict-thinking", inChat(cHi, claudeSays("assistant", use("a")), claudeSays("user", result("a"))), ""},
		{gemini, "strict-thinking", inGemini(gHi, geminiSays("model", fc("look")), geminiSays("user", fr("look"))), "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:look` , position 2."},
		{gemini, "strict-thinking", inGemini(gHi, geminiSays("model", fc("look")), geminiSays("user", fr("look")), geminiSays("model", said("Ok")), gHi), ""},
		{gemini, "strict-thinking", inGemini(gHi, geminiSays("model", strings.Replace(fc("look"), `{`, `{"thoughtSignature":"skip_thought_signature_validator",`, 1), fc("see")), geminiSays("user", fr("look"), fr("see"))), ""},
		{responses, "strict-thinking", inResponses(hi, `{"type":"reasoning","id":"rs_1","summary":[]}`, hi), "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
	} {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			expect(t, srv, c.p, c.model, c.conversation, c.want)
		})
	}
}

// Reasoning that a server has signed it knows again; over another text, from
// another server or protocol, or made up, it is refused.
func TestSignaturesAreKnownAgain(t *testing.T) {
	step := one(Step{Reasoning: "I had better look.", Calls: []Call{{Name: "look", Arguments: `{}`}}, Reject: []Check{History, MissingReasoning}})
	inBubble(t, step, func(t *testing.T, srv *Server) {
		other := New(step...)
		defer other.Close()
		hi, cHi, gHi := chatSays("user", "Hi"), claudeSays("user", block("Hi")), geminiSays("user", said("Hi"))
		var proofs []string

		_, got, _ := srv.say(t, messages, "x", false)
		var m struct{ Content []json.RawMessage }
		json.Unmarshal([]byte(got), &m)
		var thinking struct{ Thinking, Signature string }
		json.Unmarshal(m.Content[0], &thinking)
		proofs = append(proofs, thinking.Signature)
		back := func(blocks ...string) string {
			return `"thinking":{"type":"enabled","budget_tokens":1024},` + inChat(cHi, claudeSays("assistant", append(blocks, use("a"))...), claudeSays("user", result("a")))
		}
		bad := "messages.1.content.0: Invalid `signature` in `thinking` block"
		expect(t, srv, messages, "x", back(string(m.Content[0])), "")
		expect(t, other, messages, "x", back(string(m.Content[0])), bad)
		expect(t, srv, messages, "x", back(strings.Replace(string(m.Content[0]), "better", "rather", 1)), bad)
		expect(t, srv, messages, "x", back(`{"type":"thinking","thinking":"Hm","signature":"bWFkZSB1cA=="}`), bad)
		expect(t, srv, messages, "x", back(`{"type":"thinking","thinking":"Hm"}`), "messages.1.content.0.thinking.signature: Field required")
		expect(t, srv, messages, "x", back(`{"type":"redacted_thinking","data":"AA=="}`), "messages.1.content.0: Invalid `data` in `redacted_thinking` block")

		_, got, _ = srv.say(t, gemini, "x", false)
		var g struct {
			Candidates []struct{ Content json.RawMessage }
		}
		json.Unmarshal([]byte(got), &g)
		content := string(g.Candidates[0].Content)
		_, proof, _ := strings.Cut(content, `"thoughtSignature":"`)
		proof, _, _ = strings.Cut(proof, `"`)
		proofs = append(proofs, proof)
		expect(t, srv, gemini, "x", inGemini(gHi, content, geminiSays("user", fr("look"))), "")
		expect(t, other, gemini, "x", inGemini(gHi, content, geminiSays("user", fr("look"))), "Corrupted thought signature.")
		expect(t, srv, gemini, "x", inGemini(gHi, strings.Replace(content, proof, thinking.Signature, 1), geminiSays("user", fr("look"))), "Corrupted thought signature.")

		_, got, _ = srv.say(t, responses, "x", false)
		var r struct {
			Output []struct {
				Encrypted string `json:"encrypted_content"`
			}
		}
		json.Unmarshal([]byte(got), &r)
		proofs = append(proofs, r.Output[0].Encrypted)
		item := func(proof string) string {
			return inResponses(hi, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"`+proof+`"}`, itemCall("a"), itemResult("a"))
		}
		expect(t, srv, responses, "x", item(proofs[2]), "")
		expect(t, srv, responses, "x", item(proofs[1]), "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.")
		for i, p := range proofs {
			if p == "" {
				t.Errorf("answer %d is not signed", i)
			}
		}
	})
}

// The signature of a streamed answer is that of the whole one.
func TestStreamedReasoningIsSigned(t *testing.T) {
	inBubble(t, one(Step{Reasoning: "I had better look.", Text: "Done."}), func(t *testing.T, srv *Server) {
		_, got, _ := srv.say(t, messages, "x", true)
		found := false
		for _, ev := range events(t, got) {
			delta := object(ev["delta"])
			if delta["type"] == "signature_delta" {
				found = srv.signer.verify(messages, "I had better look.", text(delta["signature"]))
			}
		}
		if !found {
			t.Errorf("no valid signature in %s", got)
		}
		_, got, _ = srv.say(t, gemini, "x", true)
		_, proof, _ := strings.Cut(got, `"thoughtSignature":"`)
		if proof, _, _ = strings.Cut(proof, `"`); !srv.signer.verify(gemini, "", proof) {
			t.Errorf("no valid signature in %s", got)
		}
	})
}

// Whoever checks a history reads what was sent from the log, word for word.
func TestTheLogGivesRequestBodiesBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		conversation := inChat(chatSays("user", "Hi"), chatCalls("a"), chatResult("a"))
		history(t, srv, chat, "strict-history", conversation)
		client := srv.Client()
		defer client.CloseIdleConnections()
		resp, err := client.Get(MemoryURL + "/control/log")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var log struct{ Log []Entry }
		if err := json.Unmarshal([]byte(readAll(resp.Body)), &log); err != nil || len(log.Log) != 1 {
			t.Fatalf("%v: %+v", err, log)
		}
		want := fmt.Sprintf(`{"model":"strict-history","stream":false,%s}`, conversation)
		if got := string(log.Log[0].Body); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
