package anthropic_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
)

// encode writes a request and gives the members of its body.
func encode(t *testing.T, req *ninelives.Request, target wire.Target) (map[string]json.RawMessage, wire.Encoded) {
	t.Helper()
	out, err := anthropic.EncodeRequest(req, target)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(out.Body, &body); err != nil {
		t.Fatalf("%v\n%s", err, out.Body)
	}
	return body, out
}

func prompt(change func(*ninelives.Request)) *ninelives.Request {
	req := ninelives.Prompt("hi")
	req.MaxTokens = 100
	change(req)
	return req
}

func with(change func(*wire.Target)) wire.Target {
	t := generous()
	change(&t)
	return t
}

func TestRequestsAreWritten(t *testing.T) {
	yes, half, two := true, 0.5, 2.0
	tool := ninelives.Tool{Name: "f", Schema: []byte(`{"type":"object","properties":{}}`)}
	for _, tc := range []struct {
		name   string
		req    *ninelives.Request
		target wire.Target
		want   map[string]string // members; "" means absent
		note   string
	}{
		{"the plainest", ninelives.Prompt("hi"), generous(), map[string]string{
			"model": `"claude-test"`, "max_tokens": `8192`, "messages": `[{"role":"user","content":"hi"}]`, "stream": "", "thinking": "", "tools": "", "system": ""}, ""},
		{"streamed", ninelives.Prompt("hi"), with(func(t *wire.Target) { t.Stream = true }), map[string]string{"stream": `true`}, ""},
		{"without a limit, the candidate's own", ninelives.Prompt("hi"), with(func(t *wire.Target) { t.Candidate.MaxOutput = 64000 }), map[string]string{"max_tokens": `64000`}, ""},
		{"a limit above the cap", prompt(func(r *ninelives.Request) { r.MaxTokens = 90000 }), with(func(t *wire.Target) { t.Dialect.MaxTokensCap = 4096 }), map[string]string{"max_tokens": `4096`}, ""},
		{"on Bedrock", ninelives.Prompt("hi"), with(func(t *wire.Target) {
			t.Stream = true
			t.Dialect.Drop, t.Dialect.BodyVersion = []string{"model", "stream"}, "bedrock-2023-05-31"
		}), map[string]string{"model": "", "stream": "", "anthropic_version": `"bedrock-2023-05-31"`}, ""},
		{"instructions", &ninelives.Request{Messages: []ninelives.Message{ninelives.SystemText("be brief"), ninelives.UserText("hi"), ninelives.SystemText("and kind")}}, generous(), map[string]string{
			"system": `[{"type":"text","text":"be brief"},{"type":"text","text":"and kind"}]`, "messages": `[{"role":"user","content":"hi"}]`}, ""},
		{"instructions that came inside", &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("hi"), {Role: ninelives.RoleSystem, Parts: says("x"), Extra: raw(`{"output_config":{"effort":"low"}}`)}}}, generous(), map[string]string{
			"system": "", "messages": `[{"role":"user","content":"hi"},{"role":"system","content":"x","output_config":{"effort":"low"}}]`}, ""},
		{"instructions inside where they are refused", &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("hi"), {Role: ninelives.RoleSystem, Parts: says("x"), Extra: raw(`{}`)}}},
			with(func(t *wire.Target) { t.Dialect.NoSystemRole = true }), map[string]string{"system": `"x"`, "messages": `[{"role":"user","content":"hi"}]`}, ""},
		{"results of one turn", &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("hi"),
			{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, ninelives.ToolCall{ID: "b", Name: "f", Arguments: `{"x":1}`}}},
			ninelives.ToolResultText("a", "f", "1"), ninelives.ToolResultText("b", "f", "2"), ninelives.UserText("carry on")}}, generous(), map[string]string{
			"messages": `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{"x":1}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"carry on"}]}]`}, ""},
		{"a tool choice with the parallel flag", prompt(func(r *ninelives.Request) {
			r.Tools, r.ParallelTools = []ninelives.Tool{tool}, new(bool)
			r.ToolChoice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}
		}), generous(), map[string]string{"tool_choice": `{"type":"any","disable_parallel_tool_use":true}`}, ""},
		{"a tool without a schema", prompt(func(r *ninelives.Request) { r.Tools = []ninelives.Tool{{Name: "f", Strict: &yes}} }), generous(), map[string]string{
			"tools": `[{"name":"f","input_schema":{"type":"object"},"strict":true}]`}, ""},
		{"another provider's own tool", prompt(func(r *ninelives.Request) {
			r.Tools = []ninelives.Tool{{Kind: "web_search", Name: "web", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{}`)}}}}
		}), generous(), map[string]string{"tools": ""}, "tool web was not sent"},
		{"parameters that the protocol has not", prompt(func(r *ninelives.Request) { r.FrequencyPenalty, r.N = &half, 2 }), generous(), map[string]string{"n": "", "frequency_penalty": ""}, "frequency_penalty was not sent"},
		{"a temperature above the largest", prompt(func(r *ninelives.Request) { r.Temperature = &two }), generous(), map[string]string{"temperature": `1`}, "sent as 1"},
		{"a blank stop sequence", prompt(func(r *ninelives.Request) { r.Stop = []string{"\n", "END"} }), generous(), map[string]string{"stop_sequences": `["END"]`}, "stop sequence"},
		{"a dropped parameter", prompt(func(r *ninelives.Request) { r.Temperature, r.Extra = &half, raw(`{"service_tier":"auto"}`) }),
			with(func(t *wire.Target) { t.Dialect.Drop = []string{"temperature", "service_tier"} }), map[string]string{"temperature": "", "service_tier": ""}, "temperature was not sent"},
		{"an image as a data URL", &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Image{URL: "data:image/png;base64,iVBORw0KGgo="}}}}}, generous(), map[string]string{
			"messages": `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]`}, ""},
		{"a file that is neither PDF nor text", &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.File{Name: "a.mp3", MediaType: "audio/mpeg", Data: []byte{1}}}}}}, generous(), map[string]string{
			"messages": `[{"role":"user","content":[{"type":"text","text":"[attached file not sent: this provider does not accept files of its type] a.mp3"}]}]`}, "audio/mpeg"},
		{"a refusal of another protocol", &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("hi"), {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Refusal{Text: "no"}}}, ninelives.UserText("please")}}, generous(), map[string]string{
			"messages": `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"no"}]},{"role":"user","content":"please"}]`}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body, out := encode(t, tc.req, tc.target)
			for name, want := range tc.want {
				if got := string(body[name]); got != want {
					t.Errorf("%s\n got %s\nwant %s", name, got, want)
				}
			}
			if notes := strings.Join(out.Notes, "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("want a note of %q, got %q", tc.note, notes)
			}
		})
	}
}

func TestToolSchemasAreObjectsWithoutAlternatives(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","properties":{"a":{}}}`: `{"type":"object","properties":{"a":{}}}`,
		`{}`:                          `{"type":"object"}`,
		`{"properties":{"a":{}}}`:     `{"type":"object","properties":{"a":{}}}`,
		`{"type":"null","title":"x"}`: `{"type":"object","title":"x"}`,
		`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{},"b":{}}}],"$defs":{"d":{}}}`: `{"type":"object","$defs":{"d":{}},"properties":{"a":{"type":"string"},"b":{}}}`,
		`{"allOf":[{"properties":{"b":{}}}],"properties":{"a":{"oneOf":[{}]}}}`:                                                               `{"type":"object","properties":{"a":{"oneOf":[{}]},"b":{}}}`,
	} {
		body, _ := encode(t, prompt(func(r *ninelives.Request) { r.Tools = []ninelives.Tool{{Name: "f", Schema: []byte(in)}} }), generous())
		if got := string(body["tools"]); got != `[{"name":"f","input_schema":`+want+`}]` {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestOnlyFourCacheHintsAreSent(t *testing.T) {
	mark := func(s string) ninelives.Text {
		return ninelives.Text{Text: s, Meta: ninelives.Meta{Cache: &ninelives.CacheHint{}}}
	}
	req := &ninelives.Request{Messages: []ninelives.Message{
		{Role: ninelives.RoleSystem, Parts: []ninelives.Part{mark("rules")}},
		{Role: ninelives.RoleUser, Parts: []ninelives.Part{mark("one")}},
		{Role: ninelives.RoleAssistant, Parts: calls("{}")},
		{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "toolu_1", Content: []ninelives.Part{mark("two")}, Meta: mark("").Meta}}},
		{Role: ninelives.RoleUser, Parts: []ninelives.Part{mark("three"), mark("four")}},
	}}
	body, out := encode(t, req, generous())
	want := `[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"two","cache_control":{"type":"ephemeral"}},` +
		`{"type":"text","text":"three","cache_control":{"type":"ephemeral"}},{"type":"text","text":"four","cache_control":{"type":"ephemeral"}}]}]`
	if got := string(body["messages"]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(body["system"]); got != `[{"type":"text","text":"rules","cache_control":{"type":"ephemeral"}}]` {
		t.Errorf("the instructions lost theirs: %s", got)
	}
	if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "2 cache hint(s)") {
		t.Errorf("notes: %q", out.Notes)
	}
}

func TestThinkingIsAskedForInTheModelsOwnWay(t *testing.T) {
	budgets := func(t *wire.Target) { t.Dialect.EffortParam = "thinking" }
	effort := func(e string) func(*ninelives.Request) {
		return func(r *ninelives.Request) { r.Reasoning.Effort, r.MaxTokens = e, 0 }
	}
	half := 0.5
	adaptive := with(func(t *wire.Target) { t.Dialect.EffortParam = "adaptive" })
	for _, tc := range []struct {
		name                        string
		change                      func(*ninelives.Request)
		target                      wire.Target
		thinking, config, maxTokens string
		note                        string
	}{
		{"not at all", effort(""), generous(), "", "", "8192", ""},
		{"an effort", effort("high"), generous(), `{"type":"adaptive"}`, `{"effort":"high"}`, "8192", ""},
		{"the least effort", effort("minimal"), generous(), `{"type":"adaptive"}`, `{"effort":"low"}`, "8192", ""},
		{"an effort of another name", effort("xhigh"), with(func(t *wire.Target) { t.Dialect.Efforts = map[string]string{"xhigh": "high"} }), `{"type":"adaptive"}`, `{"effort":"high"}`, "8192", ""},
		{"an effort alone", effort("low"), with(func(t *wire.Target) { t.Dialect.EffortParam = "output_config.effort" }), "", `{"effort":"low"}`, "8192", ""},
		{"none", effort("none"), generous(), `{"type":"disabled"}`, "", "8192", ""},
		{"an effort as a budget", effort("low"), with(budgets), `{"type":"enabled","budget_tokens":2048}`, "", "8192", ""},
		{"a budget larger than the usual limit", effort("high"), with(budgets), `{"type":"enabled","budget_tokens":16384}`, "", "24576", ""},
		{"a budget", func(r *ninelives.Request) { r.Reasoning.Budget, r.MaxTokens = 3000, 9000 }, with(budgets), `{"type":"enabled","budget_tokens":3000}`, "", "9000", ""},
		{"a budget below the least", func(r *ninelives.Request) { r.Reasoning.Budget, r.MaxTokens = 5, 9000 }, with(budgets), `{"type":"enabled","budget_tokens":1024}`, "", "9000", ""},
		{"a budget above the caller's limit", func(r *ninelives.Request) { r.Reasoning.Budget, r.MaxTokens = 9000, 4000 }, with(budgets), `{"type":"enabled","budget_tokens":2000}`, "", "4000", "cut to fit"},
		{"a limit that leaves no room", func(r *ninelives.Request) { r.Reasoning.Budget, r.MaxTokens = 9000, 500 }, with(budgets), "", "", "500", "leaves no room"},
		{"switched off for the server", effort("high"), with(func(t *wire.Target) { t.Dialect.NoThinking = true }), `{"type":"disabled"}`, "", "8192", ""},
		{"the protocol's own form", func(r *ninelives.Request) { r.Reasoning.Extra = raw(`{"type":"adaptive","display":"omitted"}`) }, generous(), `{"type":"adaptive","display":"omitted"}`, "", "100", ""},
		{"a summary of it", func(r *ninelives.Request) { r.Reasoning.Effort, r.Reasoning.Summary = "low", "auto" }, generous(), `{"type":"adaptive","display":"summarized"}`, `{"effort":"low"}`, "100", ""},
		{"a budget where there are none", func(r *ninelives.Request) { r.Reasoning.Budget = 9000 }, adaptive, `{"type":"adaptive"}`, `{"effort":"medium"}`, "100", ""},
		{"the protocol's own budget where there are none", func(r *ninelives.Request) {
			r.Reasoning.Budget, r.Reasoning.Extra = 20000, raw(`{"type":"enabled","budget_tokens":20000,"display":"omitted"}`)
		}, adaptive, `{"type":"adaptive","display":"omitted"}`, `{"effort":"high"}`, "100", ""},
		{"at all where the model cannot", effort("high"), with(func(t *wire.Target) { t.Dialect.Drop, t.Dialect.EffortParam = []string{"thinking"}, "thinking" }), "", "", "8192", ""},
		{"with a temperature", func(r *ninelives.Request) { r.Reasoning.Effort, r.Temperature = "low", &half }, generous(), `{"type":"adaptive"}`, `{"effort":"low"}`, "100", "temperature was not sent"},
		{"with a forced tool", func(r *ninelives.Request) {
			r.Reasoning.Effort, r.Tools, r.ToolChoice = "low", []ninelives.Tool{{Name: "f"}}, ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}
		}, generous(), "", `{"effort":"low"}`, "100", "forced tool"},
		{"with a prefill", func(r *ninelives.Request) {
			r.Reasoning.Effort, r.Messages = "low", append(r.Messages, ninelives.AssistantText("The"))
		}, generous(), "", `{"effort":"low"}`, "100", "to be continued"},
		{"with a budget in a turn that began without", func(r *ninelives.Request) {
			r.Reasoning.Budget, r.MaxTokens = 2000, 9000
			r.Messages = append(r.Messages, ninelives.Message{Role: ninelives.RoleAssistant, Parts: calls("{}")}, ninelives.ToolResultText("toolu_1", "f", "x"))
		}, with(budgets), "", "", "9000", "began without"},
		{"with a budget in a turn that began with thinking", func(r *ninelives.Request) {
			r.Reasoning.Budget, r.MaxTokens = 2000, 9000
			thought := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Field: "thinking", Signature: "s"}}
			again := ninelives.ToolCall{ID: "toolu_2", Name: "f", Arguments: "{}"}
			r.Messages = append(r.Messages, ninelives.Message{Role: ninelives.RoleAssistant, Parts: append([]ninelives.Part{thought}, calls("{}")...)}, ninelives.ToolResultText("toolu_1", "f", "x"),
				ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{again}}, ninelives.ToolResultText("toolu_2", "f", "x"))
		}, with(budgets), `{"type":"enabled","budget_tokens":2000}`, "", "9000", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body, out := encode(t, prompt(tc.change), tc.target)
			for name, want := range map[string]string{"thinking": tc.thinking, "output_config": tc.config, "max_tokens": tc.maxTokens} {
				if got := string(body[name]); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			if notes := strings.Join(out.Notes, "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("want a note of %q, got %q", tc.note, notes)
			}
		})
	}
}

func TestOutputIsEnforced(t *testing.T) {
	schema := `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"list":{"type":"array","items":{"type":"object","properties":{}}}},"required":["n"]}`
	ask := func(schema string, tools ...ninelives.Tool) *ninelives.Request {
		return prompt(func(r *ninelives.Request) {
			r.Output, r.Tools = &ninelives.Output{Name: "invoice", Schema: []byte(schema)}, tools
		})
	}
	support := func(s ninelives.SchemaSupport) wire.Target {
		return with(func(t *wire.Target) { t.Candidate.Schema = s })
	}
	t.Run("natively, with every object closed", func(t *testing.T) {
		body, out := encode(t, ask(schema), support(ninelives.SchemaNative))
		want := `{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}},"required":["n"],"additionalProperties":false}}}`
		if got := string(body["output_config"]); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if body["tools"] != nil || out.OutputTool != "" {
			t.Errorf("a tool was forced too: %s", out.Body)
		}
	})
	t.Run("by a forced tool", func(t *testing.T) {
		body, out := encode(t, ask(schema), support(ninelives.SchemaTool))
		if got, want := string(body["tools"]), `[{"name":"invoice","description":"Give the final answer.","input_schema":`+schema+`}]`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := string(body["tool_choice"]); got != `{"type":"tool","name":"invoice"}` || out.OutputTool != "invoice" {
			t.Errorf("tool_choice %s, output tool %q", got, out.OutputTool)
		}
	})
	t.Run("by a tool where the native form cannot say it", func(t *testing.T) {
		_, out := encode(t, ask(`{"type":"object","additionalProperties":{"type":"string"}}`), support(ninelives.SchemaNative))
		if out.OutputTool != "invoice" {
			t.Errorf("a map was sent as a closed object: %s", out.Body)
		}
	})
	t.Run("beside tools of the caller's", func(t *testing.T) {
		body, out := encode(t, ask(schema, ninelives.Tool{Name: "invoice"}), support(ninelives.SchemaTool))
		if got := string(body["tool_choice"]); got != `{"type":"any"}` || out.OutputTool != "invoice_" {
			t.Errorf("tool_choice %s, output tool %q", got, out.OutputTool)
		}
	})
	t.Run("in words where there is nothing else", func(t *testing.T) {
		body, _ := encode(t, ask(schema), support(ninelives.SchemaNone))
		if !strings.Contains(string(body["system"]), "JSON") || body["tools"] != nil || body["output_config"] != nil {
			t.Errorf("%s", body)
		}
	})
}

func TestUploadedFilesNeedTheirSwitch(t *testing.T) {
	_, out := encode(t, &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.File{FileID: "file_1"}}}}}, generous())
	if got := out.Header["anthropic-beta"]; got != "files-api-2025-04-14" {
		t.Errorf("anthropic-beta is %q", got)
	}
}

func TestRequestsThatCannotBeSaid(t *testing.T) {
	for name, req := range map[string]*ninelives.Request{
		"no message":                  {},
		"only instructions":           {Messages: []ninelives.Message{ninelives.SystemText("x")}},
		"only empty messages":         ninelives.Prompt(""),
		"a tool schema that is none":  prompt(func(r *ninelives.Request) { r.Tools = []ninelives.Tool{{Name: "f", Schema: []byte(`{"type":`)}} }),
		"an output schema that is no": prompt(func(r *ninelives.Request) { r.Output = &ninelives.Output{Schema: []byte(`"x"`)} }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.EncodeRequest(req, generous())
			var fault *ninelives.Fault
			if !errors.As(err, &fault) || fault.Class != ninelives.ClassFormat || fault.Message == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBadRequestsOfClients(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":           `{"model":`,
		"an array":          `[]`,
		"no messages":       `{"model":"x"}`,
		"messages no list":  `{"messages":"hi"}`,
		"a role from where": `{"messages":[{"role":"wizard","content":"hi"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.DecodeRequest([]byte(body))
			var fault *ninelives.Fault
			if !errors.As(err, &fault) || fault.Class != ninelives.ClassFormat || fault.Status != 400 || fault.Message == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestThinkingOfClientsHasNoOrigin(t *testing.T) {
	in, err := anthropic.DecodeRequest([]byte(`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"x"}]},{"role":"user","content":"more"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Field: "thinking", Signature: "s"}}
	if diff := different(want, in.Request.Messages[1].Parts[0]); diff != "" {
		t.Error(diff)
	}
}
