package openai_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// chatBody encodes a request and gives its body as plain values.
func chatBody(t *testing.T, req *ninelives.Request, target wire.Target) (map[string]any, wire.Encoded) {
	t.Helper()
	encoded, err := openai.EncodeChatRequest(req, target)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(encoded.Body, &body); err != nil {
		t.Fatalf("%v: %s", err, encoded.Body)
	}
	return body, encoded
}

func chatJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// chatMessagesOf gives the messages of a body, each as JSON with sorted names.
func chatMessagesOf(t *testing.T, body map[string]any) []string {
	t.Helper()
	var list []string
	for _, m := range body["messages"].([]any) {
		list = append(list, chatJSON(t, m))
	}
	return list
}

func chatWith(change func(*wire.Target)) wire.Target {
	t := chatTarget()
	t.Dialect = wire.Dialect{}
	change(&t)
	return t
}

func TestChatParametersFollowTheDialect(t *testing.T) {
	full := func() *ninelives.Request {
		r := ninelives.Prompt("hi")
		r.MaxTokens, r.Temperature, r.TopK, r.Seed = 9000, ptr(0.5), ptr(3), ptr(int64(7))
		r.Tools = []ninelives.Tool{{Name: "f", Schema: []byte(`{"type":"object","$schema":"x","properties":{"$schema":{"type":"string"}}}`), Strict: ptr(true)}}
		r.ParallelTools = ptr(false)
		r.CacheKey = "k"
		return r
	}
	for _, c := range []struct {
		name    string
		dialect wire.Dialect
		want    string // members that are there, as JSON
		gone    []string
	}{
		{"plain", wire.Dialect{}, `{"max_tokens":9000,"temperature":0.5,"top_k":3,"seed":7,"parallel_tool_calls":false,"prompt_cache_key":"k","stream":true,"stream_options":{"include_usage":true}}`, []string{"max_completion_tokens"}},
		{"another name for the limit", wire.Dialect{MaxTokensField: "max_completion_tokens"}, `{"max_completion_tokens":9000}`, []string{"max_tokens"}},
		{"a limit to the limit", wire.Dialect{MaxTokensCap: 8192}, `{"max_tokens":8192}`, nil},
		{"what the server rejects", wire.Dialect{Drop: []string{"temperature", "top_k", "stream_options", "tool_choice", "x"}}, `{"seed":7}`, []string{"temperature", "top_k", "stream_options", "x"}},
		{"another name for the seed", wire.Dialect{Rename: map[string]string{"seed": "random_seed"}}, `{"random_seed":7}`, []string{"seed"}},
		{"no stream", wire.Dialect{NoStream: true}, `{"model":"m"}`, []string{"stream", "stream_options"}},
		{"no usage in streams", wire.Dialect{NoStreamUsage: true}, `{"stream":true}`, []string{"stream_options"}},
		{"no parallel flag", wire.Dialect{NoParallelFlag: true}, `{"model":"m"}`, []string{"parallel_tool_calls"}},
		{"strict", wire.Dialect{}, `{"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","$schema":"x","properties":{"$schema":{"type":"string"}}}}}]}`, nil},
		{"not strict, without keywords", wire.Dialect{NoStrict: true, SchemaDrop: []string{"$schema"}}, `{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"$schema":{"type":"string"}}}}}]}`, nil},
		{"no tools", wire.Dialect{NoTools: true}, `{"model":"m"}`, []string{"tools", "parallel_tool_calls", "tool_choice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := full()
			req.Extra = ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"x":1,"y":2}`)}
			body, encoded := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect, t.Stream = c.dialect, true }))
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			for name, v := range want {
				if !reflect.DeepEqual(body[name], v) {
					t.Errorf("%s is %s, want %s", name, chatJSON(t, body[name]), chatJSON(t, v))
				}
			}
			for _, name := range c.gone {
				if v, ok := body[name]; ok {
					t.Errorf("%s was sent: %v", name, v)
				}
			}
			if body["y"] != 2.0 {
				t.Errorf("an unknown parameter is lost: %s", encoded.Body)
			}
		})
	}
	// A zero is a value; no value is none.
	body, _ := chatBody(t, &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("x")}, Temperature: ptr(0.0)}, chatWith(func(*wire.Target) {}))
	if got := chatJSON(t, body); got != `{"messages":[{"content":"x","role":"user"}],"model":"m","temperature":0}` {
		t.Errorf("the least request is %s", got)
	}
}

func TestChatThinkingParameterOfEveryHouse(t *testing.T) {
	for _, c := range []struct {
		param   string
		options ninelives.ReasoningOptions
		off     bool
		want    string // the members that are not in a plain request
	}{
		{"", ninelives.ReasoningOptions{Effort: "high"}, false, `{"reasoning_effort":"high"}`},
		{"", ninelives.ReasoningOptions{}, false, `{}`},
		{"", ninelives.ReasoningOptions{Effort: "high"}, true, `{"reasoning_effort":"none"}`},
		{"thinking", ninelives.ReasoningOptions{Effort: "low"}, false, `{"thinking":{"type":"enabled"}}`},
		{"thinking", ninelives.ReasoningOptions{Effort: "none"}, false, `{"thinking":{"type":"disabled"}}`},
		{"thinking", ninelives.ReasoningOptions{}, true, `{"thinking":{"type":"disabled"}}`},
		{"thinking", ninelives.ReasoningOptions{}, false, `{}`},
		{"enable_thinking", ninelives.ReasoningOptions{Effort: "high", Budget: 500}, false, `{"enable_thinking":true,"thinking_budget":500}`},
		{"enable_thinking", ninelives.ReasoningOptions{Effort: "none", Budget: 500}, false, `{"enable_thinking":false}`},
		{"reasoning.effort", ninelives.ReasoningOptions{Effort: "medium"}, false, `{"reasoning":{"effort":"medium"}}`},
		{"reasoning.effort", ninelives.ReasoningOptions{Budget: 500}, false, `{"reasoning":{"max_tokens":500}}`},
		{"reasoning.effort", ninelives.ReasoningOptions{Effort: "none"}, false, `{"reasoning":{"enabled":false}}`},
		{"reasoning.effort", ninelives.ReasoningOptions{Effort: "low", Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"exclude":true}`)}}, false, `{"reasoning":{"effort":"low","exclude":true}}`},
		{"reasoning.effort", ninelives.ReasoningOptions{}, false, `{}`},
	} {
		req := ninelives.Prompt("hi")
		req.Reasoning = c.options
		body, encoded := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect = wire.Dialect{EffortParam: c.param, NoThinking: c.off} }))
		delete(body, "model")
		delete(body, "messages")
		var want map[string]any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(body, want) {
			t.Errorf("%s %+v: %s, want %s", c.param, c.options, encoded.Body, c.want)
		}
	}
	req := ninelives.Prompt("hi")
	req.Reasoning.Effort = "minimal"
	body, _ := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.Efforts = map[string]string{"minimal": "low"} }))
	if body["reasoning_effort"] != "low" {
		t.Errorf("the server's own word is not used: %v", body["reasoning_effort"])
	}
	// A switch of the caller's own is turned off where it is.
	for extra, want := range map[string]string{
		`{"enable_thinking":true}`:                          `{"enable_thinking":false}`,
		`{"thinking":{"type":"enabled","budget_tokens":9}}`: `{"thinking":{"type":"disabled"}}`,
	} {
		req := ninelives.Prompt("hi")
		req.Extra = ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(extra)}
		body, _ := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.NoThinking = true }))
		delete(body, "model")
		delete(body, "messages")
		if got := chatJSON(t, body); got != want {
			t.Errorf("%s: %s, want %s", extra, got, want)
		}
	}
}

func TestChatOutputByWhatTheTargetEnforces(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	request := func(tools ...ninelives.Tool) *ninelives.Request {
		r := &ninelives.Request{Messages: []ninelives.Message{ninelives.SystemText("Be brief."), ninelives.UserText("hi")}, Tools: tools}
		r.Output = &ninelives.Output{Name: "count", Schema: schema, Strict: ptr(true)}
		return r
	}
	with := func(s ninelives.SchemaSupport) wire.Target {
		return chatWith(func(t *wire.Target) { t.Candidate.Schema = s })
	}

	body, encoded := chatBody(t, request(), with(ninelives.SchemaNative))
	if got := chatJSON(t, body["response_format"]); got != `{"json_schema":{"name":"count","schema":{"properties":{"n":{"type":"integer"}},"type":"object"},"strict":true},"type":"json_schema"}` {
		t.Errorf("native: %s", got)
	}
	if system := chatMessagesOf(t, body)[0]; system != `{"content":"Be brief.","role":"system"}` || encoded.OutputTool != "" {
		t.Errorf("native: more than that: %s, %q", system, encoded.OutputTool)
	}

	body, _ = chatBody(t, request(), with(ninelives.SchemaObject))
	system := chatMessagesOf(t, body)[0]
	if got := chatJSON(t, body["response_format"]); got != `{"type":"json_object"}` || !strings.Contains(system, "JSON") || !strings.Contains(system, `integer`) || !strings.Contains(system, "Be brief.") {
		t.Errorf("JSON mode: %s, with the schema in %s", got, system)
	}

	body, encoded = chatBody(t, request(), with(ninelives.SchemaTool))
	if choice := chatJSON(t, body["tool_choice"]); encoded.OutputTool != "count" || choice != `{"function":{"name":"count"},"type":"function"}` || len(body["tools"].([]any)) != 1 || body["response_format"] != nil {
		t.Errorf("forced tool: %q, choice %s, %s", encoded.OutputTool, choice, encoded.Body)
	}

	body, encoded = chatBody(t, request(ninelives.Tool{Name: "count"}), with(ninelives.SchemaTool))
	if encoded.OutputTool != "count_" || body["tool_choice"] != "required" || len(body["tools"].([]any)) != 2 {
		t.Errorf("beside other tools: %q, %s", encoded.OutputTool, encoded.Body)
	}

	body, _ = chatBody(t, request(), with(ninelives.SchemaNone))
	if system := chatMessagesOf(t, body)[0]; body["response_format"] != nil || !strings.Contains(system, `integer`) {
		t.Errorf("in words: %s", system)
	}

	bare := ninelives.Prompt("hi")
	bare.Output = &ninelives.Output{}
	body, _ = chatBody(t, bare, with(ninelives.SchemaNative))
	if got := chatJSON(t, body["response_format"]); got != `{"type":"json_object"}` || !strings.Contains(chatMessagesOf(t, body)[0], "JSON") {
		t.Errorf("any JSON: %s", chatJSON(t, body))
	}

	weaker := with(ninelives.SchemaNative)
	weaker.Dialect.Schema, weaker.Dialect.SchemaSet = ninelives.SchemaObject, true
	if body, _ = chatBody(t, request(), weaker); chatJSON(t, body["response_format"]) != `{"type":"json_object"}` {
		t.Error("what was learnt does not count")
	}
}

func TestChatReasoningGoesWhereTheTargetWantsIt(t *testing.T) {
	history := func(r ...ninelives.Part) *ninelives.Request {
		return &ninelives.Request{Messages: []ninelives.Message{
			ninelives.UserText("hi"),
			{Role: ninelives.RoleAssistant, Parts: append(r, ninelives.Text{Text: "yes"})},
			ninelives.UserText("more"),
		}}
	}
	plain := func(field string) ninelives.Reasoning {
		return ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: field}}
	}
	details := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "reasoning_details", Blob: `[{"type":"reasoning.text","text":"hm"}]`}}
	encrypted := ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "reasoning_details", Blob: `[{"type":"reasoning.encrypted","data":"ZQ=="}]`}}
	for _, c := range []struct {
		name  string
		rule  ninelives.ReplayRule
		field string
		part  ninelives.Part
		want  string
	}{
		{"where it came from", "", "", plain("reasoning"), `{"content":"yes","reasoning":"hm","role":"assistant"}`},
		{"where the target has it", ninelives.ReplayRequireAlways, "reasoning_content", plain("reasoning"), `{"content":"yes","reasoning_content":"hm","role":"assistant"}`},
		{"from a field that the protocol does not have", ninelives.ReplayIgnore, "", plain("summary"), `{"content":"yes","reasoning_content":"hm","role":"assistant"}`},
		{"not at all", ninelives.ReplayForbid, "reasoning_content", plain("reasoning_content"), `{"content":"yes","role":"assistant"}`},
		{"an empty one", ninelives.ReplayRequireAlways, "reasoning_content", nil, `{"content":"yes","reasoning_content":"","role":"assistant"}`},
		{"none where none is wanted", ninelives.ReplayRequireOnToolCalls, "reasoning_content", nil, `{"content":"yes","role":"assistant"}`},
		{"details as they came", ninelives.ReplayIgnore, "reasoning_details", details, `{"content":"yes","reasoning_details":[{"text":"hm","type":"reasoning.text"}],"role":"assistant"}`},
		{"encrypted details", ninelives.ReplayIgnore, "reasoning_details", encrypted, `{"content":"yes","reasoning_details":[{"data":"ZQ==","type":"reasoning.encrypted"}],"role":"assistant"}`},
		{"plain beside details", ninelives.ReplayIgnore, "reasoning_details", plain("reasoning_content"), `{"content":"yes","reasoning":"hm","role":"assistant"}`},
		{"in tags", ninelives.ReplayIgnore, wire.FieldThinkTags, plain("reasoning_content"), `{"content":"\u003cthink\u003e\nhm\n\u003c/think\u003e\n\nyes","role":"assistant"}`},
		{"as a part", ninelives.ReplayIgnore, wire.FieldThinkingPart, plain("reasoning"), `{"content":[{"thinking":[{"text":"hm","type":"text"}],"type":"thinking"},{"text":"yes","type":"text"}],"role":"assistant"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var parts []ninelives.Part
			if c.part != nil {
				parts = append(parts, c.part)
			}
			body, _ := chatBody(t, history(parts...), chatWith(func(t *wire.Target) { t.Candidate.Replay, t.Candidate.ReplayField = c.rule, c.field }))
			if got := chatMessagesOf(t, body)[1]; got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestChatThoughtSignatureGoesBackToItsMakerAlone(t *testing.T) {
	call := ninelives.ToolCall{ID: "a", Name: "f", Arguments: "{}", Signature: "sig", Provenance: ninelives.Provenance{Provider: "p", Model: "m"}}
	req := &ninelives.Request{Messages: []ninelives.Message{
		ninelives.UserText("hi"), {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{call}}, ninelives.ToolResultText("a", "f", "ok"),
	}}
	const own, dummy = `"extra_content":{"google":{"thought_signature":"sig"}}`, `"extra_content":{"google":{"thought_signature":"skip"}}`
	body, encoded := chatBody(t, req, chatWith(func(*wire.Target) {}))
	if !strings.Contains(string(encoded.Body), own) {
		t.Errorf("its maker does not get it: %s", chatJSON(t, body))
	}
	_, encoded = chatBody(t, req, chatWith(func(t *wire.Target) { t.Candidate.Provider = "other" }))
	if strings.Contains(string(encoded.Body), "extra_content") {
		t.Errorf("another gets it: %s", encoded.Body)
	}
	_, encoded = chatBody(t, req, chatWith(func(t *wire.Target) { t.Candidate.Provider, t.Dialect.DummySignature = "other", "skip" }))
	if !strings.Contains(string(encoded.Body), dummy) {
		t.Errorf("the dummy is missing: %s", encoded.Body)
	}
}

func TestChatResultsAndTheirImages(t *testing.T) {
	png := ninelives.Image{MediaType: "image/png", Data: []byte{1}}
	req := &ninelives.Request{Messages: []ninelives.Message{
		ninelives.UserText("hi"),
		{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, ninelives.ToolCall{ID: "b", Name: "g", Arguments: "{}"}}},
		{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "a", Name: "f", Content: []ninelives.Part{ninelives.Text{Text: "ok"}, png}}}},
		{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "b", Name: "g", Content: []ninelives.Part{png}}}},
	}}
	const image = `{"image_url":{"url":"data:image/png;base64,AQ=="},"type":"image_url"}`
	body, _ := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.BridgeToolUser, t.Dialect.ToolResultNames = true, true }))
	want := []string{
		`{"content":"hi","role":"user"}`,
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"b","type":"function"}]}`,
		`{"content":"ok","name":"f","role":"tool","tool_call_id":"a"}`,
		`{"content":"[see the attachment below]","name":"g","role":"tool","tool_call_id":"b"}`,
		`{"content":"Noted.","role":"assistant"}`,
		`{"content":[{"text":"[attachment of the result of f]","type":"text"},` + image + `,{"text":"[attachment of the result of g]","type":"text"},` + image + `],"role":"user"}`,
	}
	if got := chatMessagesOf(t, body); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	more := req.Clone()
	more.Messages = append(more.Messages, ninelives.UserText("and now?"))
	body, _ = chatBody(t, more, chatWith(func(*wire.Target) {}))
	if got := chatMessagesOf(t, body); len(got) != 5 || got[4] != `{"content":[{"text":"[attachment of the result of f]","type":"text"},`+image+`,{"text":"[attachment of the result of g]","type":"text"},`+image+`,{"text":"and now?","type":"text"}],"role":"user"}` {
		t.Errorf("two messages of the user in a row: %s", got)
	}
	body, _ = chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.ToolImages = true }))
	if got := chatMessagesOf(t, body); len(got) != 4 || got[3] != `{"content":[`+image+`],"role":"tool","tool_call_id":"b"}` {
		t.Errorf("a server that takes images in results: %s", got)
	}
	body, _ = chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.NoImages = true }))
	if got := chatMessagesOf(t, body); len(got) != 4 || got[2] != `{"content":"ok\n\n[1 attached image(s) not sent: this provider only accepts text]","role":"tool","tool_call_id":"a"}` {
		t.Errorf("a server without images: %s", got)
	}
}

func TestChatTextOnlyServersGetStrings(t *testing.T) {
	req := &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{
		ninelives.Text{Text: "what is this"}, ninelives.Image{URL: "https://example.com/a.png"}, ninelives.Image{URL: "https://example.com/b.png"},
	}}}}
	deepseek, _ := wire.DialectFor("https://api.deepseek.com", "deepseek-chat")
	body, encoded := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect = deepseek }))
	if got := chatMessagesOf(t, body)[0]; got != `{"content":"what is this\n\n[2 attached image(s) not sent: this provider only accepts text]","role":"user"}` || len(encoded.Notes) != 1 {
		t.Errorf("%s, notes %q", got, encoded.Notes)
	}
}

func TestChatCacheHintsOnlyWhereTheyAreKnown(t *testing.T) {
	req := &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{
		ninelives.Text{Text: "long", Meta: ninelives.Meta{Cache: &ninelives.CacheHint{TTL: "1h"}}},
	}}}}
	_, encoded := chatBody(t, req, chatWith(func(*wire.Target) {}))
	if strings.Contains(string(encoded.Body), "cache_control") {
		t.Errorf("%s", encoded.Body)
	}
	_, encoded = chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.CacheControl = true }))
	if !strings.Contains(string(encoded.Body), `{"type":"text","text":"long","cache_control":{"type":"ephemeral","ttl":"1h"}}`) {
		t.Errorf("%s", encoded.Body)
	}
}

func TestChatArgumentsAsObjectsWhereTheServerWantsThem(t *testing.T) {
	req := &ninelives.Request{Messages: []ninelives.Message{
		ninelives.UserText("hi"), {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.ToolCall{ID: "a", Name: "f", Arguments: `{"x": 1}`}}}, ninelives.ToolResultText("a", "f", "ok"),
	}}
	for object, want := range map[bool]string{true: `"arguments":{"x": 1}`, false: `"arguments":"{\"x\": 1}"`} {
		if _, encoded := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.ToolArgsObject = object })); !strings.Contains(string(encoded.Body), want) {
			t.Errorf("%s", encoded.Body)
		}
	}
}

// A call of a custom tool of the past, and its result, go on as they came.
func TestChatCustomToolsKeepTheirText(t *testing.T) {
	const history = `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"SELECT 1"}}]},{"role":"tool","tool_call_id":"c","content":"rows"}]}`
	in, err := openai.DecodeChatRequest([]byte(history))
	if err != nil {
		t.Fatal(err)
	}
	if c := in.Request.Messages[1].ToolCalls()[0]; c.Name != "sql" || c.Arguments != `"SELECT 1"` {
		t.Errorf("read as %+v", c)
	}
	body, _ := chatBody(t, in.Request, chatWith(func(*wire.Target) {}))
	var want map[string]any
	if err := json.Unmarshal([]byte(history), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(body, want) {
		t.Errorf("sent on as %s", chatJSON(t, body))
	}
}

func TestChatNamesComeBackAsTheCallersOwn(t *testing.T) {
	req := ninelives.Prompt("hi")
	req.Tools = []ninelives.Tool{{Name: "calendar.add"}}
	req.ToolChoice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: "calendar.add"}
	_, encoded := chatBody(t, req, chatWith(func(t *wire.Target) { t.Dialect.ToolNames = true }))
	if strings.Contains(string(encoded.Body), "calendar.add") {
		t.Fatalf("%s", encoded.Body)
	}
	var sent string
	for name := range encoded.Names {
		sent = name
	}
	resp, fault := chatReplay(t, chatStream(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"`+sent+`","arguments":"{}"}}]}`, `"delta":{},"finish_reason":"tool_calls"`), wire.DecodeOptions{Names: encoded.Names, Tools: req.Tools})
	if fault != nil || resp.Message.ToolCalls()[0].Name != "calendar.add" {
		t.Errorf("%+v, %v", resp, fault)
	}
}

func TestChatRequestWithNothingToSendIsAFault(t *testing.T) {
	_, err := openai.EncodeChatRequest(&ninelives.Request{}, chatTarget())
	var f *ninelives.Fault
	if !errors.As(err, &f) || f.Class != ninelives.ClassFormat || f.Phase != ninelives.PhasePrepare || f.Billed != ninelives.BilledNo {
		t.Errorf("%v", err)
	}
}

func TestChatBadRequestsSayWhatIsWrong(t *testing.T) {
	for body, want := range map[string]string{
		``:                    "not a JSON object",
		`[]`:                  "not a JSON object",
		`{"messages":`:        "not a JSON object",
		`{}`:                  "messages must be a list",
		`{"messages":"hi"}`:   "messages must be a list",
		`{"messages":["hi"]}`: "messages[0] is not an object",
		`{"messages":[{"role":"user","content":"x"},{"content":"x"}]}`: "messages[1] has no role",
		`{"messages":[{"role":"user","content":5}]}`:                   "messages[0].content must be",
	} {
		_, err := openai.DecodeChatRequest([]byte(body))
		var f *ninelives.Fault
		if !errors.As(err, &f) || f.Class != ninelives.ClassFormat || !strings.Contains(f.Message, want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

func TestChatOldFormsAreRead(t *testing.T) {
	in, err := openai.DecodeChatRequest([]byte(`{"model":"m","messages":[
		{"role":"user","content":"hi"},
		{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
		{"role":"function","name":"f","content":"ok"}],
		"functions":[{"name":"f","parameters":{"type":"object"}}],"function_call":{"name":"f"},
		"stop":"\n","max_tokens":5,"max_completion_tokens":9,"temperature":"hot","stream":null,"stream_options":{"include_usage":true,"include_obfuscation":false},"reasoning":{"effort":"low","exclude":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := in.Request
	call := r.Messages[1].ToolCalls()[0]
	result := r.Messages[2].Parts[0].(ninelives.ToolResult)
	if call.Name != "f" || call.ID == "" || result.CallID != call.ID || result.Text() != "ok" {
		t.Errorf("%+v %+v", call, result)
	}
	if len(r.Tools) != 1 || r.Tools[0].Name != "f" || r.ToolChoice.Mode != ninelives.ToolChoiceTool || r.ToolChoice.Name != "f" {
		t.Errorf("%+v %+v", r.Tools, r.ToolChoice)
	}
	if r.MaxTokens != 9 || !reflect.DeepEqual(r.Stop, []string{"\n"}) || in.Stream || r.Reasoning.Effort != "low" {
		t.Errorf("%+v", r)
	}
	if got := string(r.Extra.JSON); got != `{"temperature":"hot","stream_options":{"include_usage":true,"include_obfuscation":false}}` {
		t.Errorf("what is of the wrong type is not passed on: %s", got)
	}
	_, encoded := chatBody(t, r, chatWith(func(t *wire.Target) { t.Stream = true }))
	if !strings.Contains(string(encoded.Body), `"stream_options":{"include_usage":true,"include_obfuscation":false}`) {
		t.Errorf("%s", encoded.Body)
	}
}

// What working clients sent reads as a request, and is sent on with all that
// it said.
func TestChatRecordedRequestsAreUnderstood(t *testing.T) {
	n := 0
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIChat) {
		if len(ex.Request) == 0 || !json.Valid(ex.Request) {
			continue
		}
		n++
		t.Run(ex.Name, func(t *testing.T) {
			in, err := openai.DecodeChatRequest(ex.Request)
			if err != nil {
				t.Fatal(err)
			}
			if in.Stream != ex.Stream && ex.Status == 200 {
				t.Errorf("stream is %v", in.Stream)
			}
			target := chatTarget()
			target.Candidate.Model = in.Request.Model
			target.Stream = in.Stream
			first, err := openai.EncodeChatRequest(in.Request, target)
			if err != nil {
				t.Fatal(err)
			}
			again, err := openai.DecodeChatRequest(first.Body)
			if err != nil {
				t.Fatal(err)
			}
			second, err := openai.EncodeChatRequest(again.Request, target)
			if err != nil || string(first.Body) != string(second.Body) {
				t.Errorf("sent on twice, it differs: %v\n%s\n%s", err, first.Body, second.Body)
			}
			var was, is map[string]any
			_ = json.Unmarshal(ex.Request, &was)
			_ = json.Unmarshal(first.Body, &is)
			for name := range was {
				switch name {
				case "max_completion_tokens", "stream", "stream_options", "response_format", "n", "logprobs", "top_logprobs", "reasoning":
					continue // said otherwise, or the default
				case "parallel_tool_calls", "tool_choice":
					if is["tools"] == nil {
						continue // they say nothing without tools
					}
				}
				if _, ok := is[name]; !ok && was[name] != nil && len(chatJSON(t, was[name])) > 2 {
					t.Errorf("%s is lost: %s", name, chatJSON(t, was[name]))
				}
			}
		})
	}
	if n == 0 {
		t.Skip("no recorded requests")
	}
}
