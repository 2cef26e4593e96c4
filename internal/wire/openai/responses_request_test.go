package openai_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

func responsesTarget() wire.Target {
	return wire.Target{
		Candidate: ninelives.Candidate{
			Provider: "openai", Model: "gpt-x", Protocol: ninelives.OpenAIResponses,
			Capabilities: ninelives.Capabilities{Tools: true, Images: true, Files: true, Prefill: true, Schema: ninelives.SchemaNative},
		},
		Dialect: wire.Dialect{DeveloperRole: true},
	}
}

// A server reads from a request what its client meant, and every field that
// has no word here as it was spelt.
func TestResponsesRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := responsesTarget()
		target.Stream = rapid.Bool().Draw(t, "stream")
		want := responsesGenRequest(t)
		enc, err := openai.EncodeResponsesRequest(want, target)
		if err != nil {
			t.Fatal(err)
		}
		if len(enc.Notes) > 0 {
			t.Fatalf("a request that can be sent as it is was changed: %q", enc.Notes)
		}
		if !rawjson.Valid(enc.Body) {
			t.Fatalf("not valid: %s", enc.Body)
		}
		in, err := openai.DecodeResponsesRequest(enc.Body)
		if err != nil {
			t.Fatal(err)
		}
		if in.Stream != target.Stream {
			t.Fatalf("stream is %v", in.Stream)
		}
		got := in.Request
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %s\nwant %s", enc.Body, showResponses(got), showResponses(want))
		}
	})
}

// showResponses prints a value with its bytes as text.
func showResponses(v any) string {
	return showResponsesBytes.ReplaceAllStringFunc(fmt.Sprintf("%+v", v), func(list string) string {
		var b []byte
		for _, n := range strings.Fields(list[1 : len(list)-1]) {
			c, _ := strconv.Atoi(n)
			b = append(b, byte(c))
		}
		return fmt.Sprintf("%q", b)
	})
}

var showResponsesBytes = regexp.MustCompile(`\[\d+( \d+)*\]`)

// responsesGenExtra draws unknown members, spelt in unusual ways.
func responsesGenExtra(t *rapid.T, label string) ninelives.Extra {
	n := rapid.IntRange(0, 3).Draw(t, label)
	if n == 0 {
		return ninelives.Extra{}
	}
	all := []string{`"x_a" : [1, 2.50 ,-0e1]`, `"x\u005fb":"\u00e9\/"`, `"x_c":{ "id": null }`, `"":true`}
	return ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte("{" + strings.Join(all[:n], ",") + "}")}
}

// responsesGenItem notes an item of the given unknown members on a part's extra.
func responsesGenItem(t *rapid.T, extra ninelives.Extra, members ...string) ninelives.Extra {
	if e := responsesGenExtra(t, "item"); e.JSON != nil {
		members = append(members, string(e.JSON[1:len(e.JSON)-1]))
	}
	item := `"item":{` + strings.Join(members, ",") + "}"
	if extra.JSON == nil {
		extra.JSON = []byte("{" + item + "}")
	} else {
		extra.JSON = []byte(strings.TrimSuffix(string(extra.JSON), "}") + "," + item + "}")
	}
	extra.Protocol = ninelives.OpenAIResponses
	return extra
}

func responsesGenText(t *rapid.T, label string) string { return rapid.String().Draw(t, label) + "." }

func responsesGenUserPart(t *rapid.T, id *int) ninelives.Part {
	meta := ninelives.Meta{Extra: responsesGenExtra(t, "part")}
	data := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "data")
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return ninelives.Image{URL: "https://example.org/" + rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "path"), Detail: rapid.SampledFrom([]string{"", "low"}).Draw(t, "detail"), Meta: meta}
	case 1:
		return ninelives.Image{MediaType: "image/png", Data: data, Meta: meta}
	case 2:
		return ninelives.File{Name: "a.pdf", MediaType: "application/pdf", Data: data, Meta: meta}
	case 3:
		return ninelives.File{FileID: "file-1", Meta: meta}
	case 4:
		return ninelives.File{MediaType: "audio/wav", Data: data, Meta: meta}
	case 5:
		return ninelives.Opaque{Kind: "input_smell", Raw: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{ "type":"input_smell" , "x":[1.0]}`)}}
	default:
		return ninelives.Text{Text: responsesGenText(t, "text"), Meta: meta}
	}
}

// responsesGenTurn draws an assistant's turn and the answers to its calls.
func responsesGenTurn(t *rapid.T, id *int) []ninelives.Message {
	next := func() int { *id++; return *id }
	turn := ninelives.Message{Role: ninelives.RoleAssistant}
	results := ninelives.Message{Role: ninelives.RoleTool}
	said := false
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		switch rapid.IntRange(0, 4).Draw(t, "item") {
		case 0: // a message of one or more content parts
			members := []string{`"status":"completed"`}
			if said {
				members = append([]string{fmt.Sprintf(`"id":"msg_%d"`, next())}, members...)
			} else {
				turn.ID = fmt.Sprintf("msg_%d", next())
			}
			said = true
			for i := range rapid.IntRange(1, 3).Draw(t, "contents") {
				extra := responsesGenExtra(t, "content")
				if i == 0 {
					extra = responsesGenItem(t, extra, members...)
				}
				switch rapid.IntRange(0, 3).Draw(t, "content kind") {
				case 0:
					turn.Parts = append(turn.Parts, ninelives.Refusal{Text: responsesGenText(t, "refusal"), Meta: ninelives.Meta{Extra: extra}})
				case 1:
					raw := `{ "type":"url_citation","url":"https://example.org","title":"T", "start_index":0,"x":1.0 }`
					c := ninelives.Citation{URL: "https://example.org", Title: "T", Raw: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(raw)}}
					turn.Parts = append(turn.Parts, ninelives.Text{Text: responsesGenText(t, "text"), Citations: []ninelives.Citation{c}, Meta: ninelives.Meta{Extra: extra}})
				default:
					turn.Parts = append(turn.Parts, ninelives.Text{Text: responsesGenText(t, "text"), Meta: ninelives.Meta{Extra: extra}})
				}
			}
		case 1: // reasoning
			base := ninelives.Reasoning{ID: fmt.Sprintf("rs_%d", next())}
			if rapid.Bool().Draw(t, "anonymous") {
				base.ID = ""
			}
			if rapid.Bool().Draw(t, "encrypted") {
				base.Provenance.Blob = fmt.Sprintf("gAAA%d==", next())
			}
			summaries := rapid.IntRange(0, 2).Draw(t, "summaries")
			contents := rapid.IntRange(0, 2).Draw(t, "contents")
			for i := range summaries + contents {
				p := base
				p.Text = responsesGenText(t, "thought")
				p.Summary, p.Provenance.Field = i < summaries, "content"
				if p.Summary {
					p.Provenance.Field = "summary"
				}
				p.Extra = responsesGenExtra(t, "thought")
				if i == 0 {
					p.Extra = responsesGenItem(t, p.Extra)
				}
				turn.Parts = append(turn.Parts, p)
			}
			if summaries+contents == 0 {
				base.Redacted, base.Provenance.Field = base.Provenance.Blob != "", "encrypted_content"
				base.Extra = responsesGenItem(t, base.Extra)
				turn.Parts = append(turn.Parts, base)
			}
		case 2, 3:
			c := ninelives.ToolCall{ID: fmt.Sprintf("call_%d", next()), Name: "look", Arguments: rapid.SampledFrom([]string{"{}", `{"q": "ä\u00e4"}`}).Draw(t, "arguments")}
			c.Extra = responsesGenExtra(t, "call")
			turn.Parts = append(turn.Parts, c)
			r := ninelives.ToolResult{CallID: c.ID, Name: c.Name, Meta: ninelives.Meta{Extra: responsesGenExtra(t, "result")}}
			for range rapid.IntRange(1, 2).Draw(t, "contents") {
				r.Content = append(r.Content, responsesGenUserPart(t, id))
			}
			results.Parts = append(results.Parts, r)
		case 4:
			raw := fmt.Sprintf(`{"type":"web_search_call", "id":"ws_%d","action":{"q":[ ]}}`, next())
			turn.Parts = append(turn.Parts, ninelives.Opaque{Kind: "web_search_call", Raw: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(raw)}})
		}
	}
	if len(results.Parts) > 0 {
		return []ninelives.Message{turn, results}
	}
	return []ninelives.Message{turn}
}

func responsesGenRequest(t *rapid.T) *ninelives.Request {
	req := &ninelives.Request{Model: "gpt-x", Extra: responsesGenExtra(t, "top")}
	id := 0
	if rapid.Bool().Draw(t, "instructions") {
		req.Messages = append(req.Messages, ninelives.SystemText(responsesGenText(t, "instructions")))
	}
	for range rapid.IntRange(1, 3).Draw(t, "rounds") {
		m := ninelives.Message{Role: rapid.SampledFrom([]ninelives.Role{ninelives.RoleUser, ninelives.RoleUser, ninelives.RoleDeveloper}).Draw(t, "role")}
		if m.Extra = responsesGenExtra(t, "message"); m.Extra.JSON != nil {
			m.ID = "msg_user"
		}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			m.Parts = append(m.Parts, responsesGenUserPart(t, &id))
		}
		req.Messages = append(req.Messages, m)
		req.Messages = append(req.Messages, responsesGenTurn(t, &id)...)
	}
	flag := func(label string) *bool {
		return rapid.SampledFrom([]*bool{nil, new(bool), func() *bool { v := true; return &v }()}).Draw(t, label)
	}
	number := func(label string) *float64 {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		v := rapid.Float64Range(-2, 2).Draw(t, label)
		return &v
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tools") {
		if rapid.Bool().Draw(t, "hosted") {
			req.Tools = append(req.Tools, ninelives.Tool{Kind: "namespace", Name: "crm", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"type":"namespace","name":"crm","tools":[ {"type":"function"} ]}`)}}})
			continue
		}
		tool := ninelives.Tool{Name: fmt.Sprintf("look%d", i), Description: responsesGenText(t, "description"), Schema: []byte(`{"type":"object", "properties":{}}`), Meta: ninelives.Meta{Extra: responsesGenExtra(t, "tool")}}
		if tool.Strict = flag("strict"); tool.Strict == nil && tool.Extra.JSON == nil {
			tool.Extra = ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte("{}")}
		}
		req.Tools = append(req.Tools, tool)
	}
	if len(req.Tools) > 0 {
		req.ParallelTools = flag("parallel")
		req.ToolChoice = rapid.SampledFrom([]ninelives.ToolChoice{
			{}, {Mode: ninelives.ToolChoiceAuto}, {Mode: ninelives.ToolChoiceNone}, {Mode: ninelives.ToolChoiceRequired}, {Mode: ninelives.ToolChoiceTool, Name: "look0"},
			{Mode: ninelives.ToolChoiceRequired, Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"type":"allowed_tools","mode":"required", "tools":[{"type":"function","name":"look0"}]}`)}},
		}).Draw(t, "choice")
	}
	req.MaxTokens = rapid.IntRange(0, 1000).Draw(t, "max")
	req.Temperature, req.TopP = number("temperature"), number("top_p")
	req.FrequencyPenalty, req.PresencePenalty = number("frequency"), number("presence")
	if req.Logprobs = rapid.Bool().Draw(t, "logprobs"); req.Logprobs {
		req.TopLogprobs = rapid.IntRange(0, 20).Draw(t, "top_logprobs")
	}
	if rapid.Bool().Draw(t, "reasoning") {
		req.Reasoning = ninelives.ReasoningOptions{Effort: "low", Summary: rapid.SampledFrom([]string{"", "auto"}).Draw(t, "summary"), Extra: responsesGenExtra(t, "reasoning")}
	}
	if rapid.Bool().Draw(t, "output") {
		req.Output = &ninelives.Output{Name: "cat", Description: "A cat.", Schema: []byte(`{"type":"object" }`), Strict: flag("schema strict")}
	}
	if rapid.Bool().Draw(t, "names") {
		req.CacheKey, req.User, req.Metadata = responsesGenText(t, "key"), responsesGenText(t, "user"), map[string]string{"a": responsesGenText(t, "a"), "b": ""}
	}
	return req
}

// Requests as clients really write them: what they mean, and that they go out
// again with nothing lost.
func TestResponsesRequestsOfClients(t *testing.T) {
	tests := []struct {
		name, body string
		check      func(t *testing.T, req *ninelives.Request)
		sent       string // the same request as it goes out
	}{
		{
			name: "the input may be a string",
			body: `{"model":"gpt-x","input":"Hi","stream":true}`,
			check: func(t *testing.T, req *ninelives.Request) {
				if want := []ninelives.Message{ninelives.UserText("Hi")}; !reflect.DeepEqual(req.Messages, want) {
					t.Errorf("messages %s", showResponses(req.Messages))
				}
			},
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}]}`,
		},
		{
			name: "a system item stays an item, instructions stay instructions",
			body: `{"model":"gpt-x","instructions":"Be brief.","input":[{"role":"system","content":"Speak Latin."},{"role":"user","content":[{"type":"input_text","text":"Hi"}]}]}`,
			sent: `{"model":"gpt-x","instructions":"Be brief.","input":[{"type":"message","role":"system","content":"Speak Latin."},{"type":"message","role":"user","content":"Hi"}]}`,
		},
		{
			name: "a system item that comes first is not made the instructions",
			body: `{"model":"gpt-x","input":[{"role":"system","content":"Speak Latin."},{"role":"user","content":"Hi"}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"system","content":"Speak Latin."},{"type":"message","role":"user","content":"Hi"}]}`,
		},
		{
			name: "unknown parameters are kept in their spelling, includes too",
			body: `{"model":"gpt-x","previous_response_id":"resp_1","store": false,"input":"Hi","include":["reasoning.encrypted_content", "x"],"text":{"verbosity":"low","format":{"type":"text"}},"truncation":"auto"}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"previous_response_id":"resp_1","store": false,"include":["reasoning.encrypted_content", "x"],"text":{"verbosity":"low","format":{"type":"text"}},"truncation":"auto"}`,
		},
		{
			name: "what a parameter says beyond the schema is kept",
			body: `{"model":"gpt-x","input":"Hi","text":{"verbosity":"low","format":{"type":"json_schema","name":"cat","schema":{"type":"object"},"x":[ ]}}}`,
			check: func(t *testing.T, req *ninelives.Request) {
				if req.Output == nil || req.Output.Name != "cat" || string(req.Output.Schema) != `{"type":"object"}` {
					t.Errorf("output %s", showResponses(req.Output))
				}
			},
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"text":{"format":{"type":"json_schema","name":"cat","schema":{"type":"object"},"x":[ ]},"verbosity":"low"}}`,
		},
		{
			name: "a turn with encrypted reasoning and no ids, as Codex sends it",
			body: `{"model":"gpt-x","input":[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}],"content":null,"encrypted_content":"gAAA"},{"type":"function_call","name":"look","arguments":"{}","call_id":"c1"},{"type":"function_call_output","call_id":"c1","output":"42"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 42."}]},{"role":"user","content":"Thanks"}]}`,
			check: func(t *testing.T, req *ninelives.Request) {
				var roles []ninelives.Role
				for _, m := range req.Messages {
					roles = append(roles, m.Role)
				}
				if want := []ninelives.Role{"user", "assistant", "tool", "assistant", "user"}; !reflect.DeepEqual(roles, want) {
					t.Fatalf("roles %v", roles)
				}
				turn := req.Messages[1]
				if turn.Reasoning() != "AB" || len(turn.ToolCalls()) != 1 || turn.Parts[1].(ninelives.Reasoning).Provenance.Blob != "gAAA" {
					t.Errorf("turn %s", showResponses(turn))
				}
				if r := req.Messages[2].Parts[0].(ninelives.ToolResult); r.Name != "look" || r.Text() != "42" {
					t.Errorf("result %s", showResponses(r))
				}
			},
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}],"encrypted_content":"gAAA"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"42"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 42.","annotations":[]}]},{"type":"message","role":"user","content":"Thanks"}]}`,
		},
		{
			name: "items of unknown types keep their place",
			body: `{"model":"gpt-x","input":[{"role":"user","content":"Hi"},{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"},{"type":"item_reference","id":"msg_1"},{"role":"user","content":"Go on"}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"},{"type":"item_reference","id":"msg_1"},{"type":"message","role":"user","content":"Go on"}]}`,
		},
		{
			name: "a message item without a part that has a word here keeps its members",
			body: `{"model":"gpt-x","input":[{"role":"user","content":"Hi"},{"type":"message","id":"msg_7","role":"assistant","status":"completed","content":[{"type":"output_odour","x":1}]},{"role":"user","content":"Hm"}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"message","id":"msg_7","role":"assistant","content":[{"type":"output_odour","x":1}],"status":"completed"},{"type":"message","role":"user","content":"Hm"}]}`,
		},
		{
			name: "results of calls that the server remembers are kept",
			body: `{"model":"gpt-x","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1","output":"42"}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"function_call_output","call_id":"c1","output":"42"}],"previous_response_id":"resp_1"}`,
		},
		{
			name: "reasoning that the server was told to forget is not asked for",
			body: `{"model":"gpt-x","store":false,"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}]},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello.","annotations":[]}]},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAA"},{"role":"user","content":"Bye"}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[]}],"status":"completed"},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAA"},{"type":"message","role":"user","content":"Bye"}],"store":false}`,
		},
		{
			name: "JSON mode is asked for in words, too",
			body: `{"model":"gpt-x","input":"Hi","text":{"format":{"type":"json_object"}}}`,
			sent: `{"model":"gpt-x","instructions":"Answer with one JSON value and nothing else: no prose, no code fence.","input":[{"type":"message","role":"user","content":"Hi"}],"text":{"format":{"type":"json_object"}}}`,
		},
		{
			name: "a tool that leaves strict to the server, and one that does not",
			body: `{"model":"gpt-x","input":"Hi","tools":[{"type":"function","name":"a","parameters":{}},{"type":"function","name":"b","parameters":null,"strict":null}]}`,
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"tools":[{"type":"function","name":"a","parameters":{}},{"type":"function","name":"b","parameters":null,"strict":null}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := openai.DecodeResponsesRequest([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Contains(tt.body, `"stream":true`); in.Stream != want {
				t.Errorf("stream is %v", in.Stream)
			}
			req := in.Request
			if tt.check != nil {
				tt.check(t, req)
			}
			enc, err := openai.EncodeResponsesRequest(req, responsesTarget())
			if err != nil {
				t.Fatal(err)
			}
			if string(enc.Body) != tt.sent {
				t.Errorf("\n got %s\nwant %s", enc.Body, tt.sent)
			}
		})
	}
}

func TestResponsesRequestsThatAreNone(t *testing.T) {
	for _, body := range []string{``, `[]`, `{"model":`, `<html>`, `{"input":7}`, `{"input":["x"]}`} {
		_, err := openai.DecodeResponsesRequest([]byte(body))
		var fault *ninelives.Fault
		if !errors.As(err, &fault) || fault.Class != ninelives.ClassFormat || fault.Message == "" {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// What the dialect and the protocol do to a request from elsewhere.
func TestResponsesRequestsFromElsewhere(t *testing.T) {
	seed := int64(7)
	strict := true
	schema := []byte(`{"type":"object","title":"T"}`)
	call := ninelives.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"q":1}`}
	tests := []struct {
		name   string
		req    *ninelives.Request
		change func(*wire.Target)
		sent   string
		notes  int
	}{
		{
			name: "a tool that does not ask to be strict is not",
			req:  &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Tools: []ninelives.Tool{{Name: "look", Schema: schema}, {Name: "see", Strict: &strict}}},
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"tools":[{"type":"function","name":"look","parameters":{"type":"object","title":"T"},"strict":false},{"type":"function","name":"see","parameters":{"type":"object","properties":{}},"strict":true}]}`,
		},
		{
			name:   "a server that knows no strict and no titles",
			req:    &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Tools: []ninelives.Tool{{Name: "look", Schema: schema, Strict: &strict}}, Output: &ninelives.Output{Schema: schema, Strict: &strict}},
			change: func(t *wire.Target) { t.Dialect.NoStrict, t.Dialect.SchemaDrop = true, []string{"title"} },
			sent:   `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"}}}}`,
		},
		{
			name:   "a schema is weakened as far as the server needs",
			req:    &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Output: &ninelives.Output{Schema: schema}},
			change: func(t *wire.Target) { t.Dialect.SchemaSet, t.Dialect.Schema = true, ninelives.SchemaObject },
			sent:   `{"model":"gpt-x","instructions":"Answer with one JSON value that satisfies the JSON schema below, and nothing else: no prose, no code fence.\n\n{\"type\":\"object\",\"title\":\"T\"}","input":[{"type":"message","role":"user","content":"Hi"}],"text":{"format":{"type":"json_object"}}}`,
		},
		{
			name:   "a schema can be forced as a tool",
			req:    &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Output: &ninelives.Output{Name: "cat", Schema: schema}},
			change: func(t *wire.Target) { t.Candidate.Schema = ninelives.SchemaTool },
			sent:   `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"tools":[{"type":"function","name":"cat","description":"Give the final answer.","parameters":{"type":"object","title":"T"},"strict":false}],"tool_choice":{"type":"function","name":"cat"}}`,
		},
		{
			name: "limits and parameters go by the server's names and bounds",
			req:  &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, MaxTokens: 900, Temperature: new(float64), Reasoning: ninelives.ReasoningOptions{Effort: "minimal"}},
			change: func(t *wire.Target) {
				t.Dialect.MaxTokensField, t.Dialect.MaxTokensCap = "max_completion_tokens", 500
				t.Dialect.Drop, t.Dialect.Efforts = []string{"temperature"}, map[string]string{"minimal": "low"}
			},
			sent:  `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"max_output_tokens":500,"reasoning":{"effort":"low"}}`,
			notes: 1,
		},
		{
			name:  "parameters that the protocol does not have are told",
			req:   &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Seed: &seed, Stop: []string{"x"}},
			sent:  `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}]}`,
			notes: 2,
		},
		{
			name: "a turn of another model goes without its signed thinking",
			req: &ninelives.Request{Messages: []ninelives.Message{
				ninelives.UserText("Hi"),
				{Role: ninelives.RoleAssistant, ID: "msg_foreign", Parts: []ninelives.Part{
					ninelives.Reasoning{Text: "Hm.", Provenance: ninelives.Provenance{Provider: "anthropic", Model: "claude", Field: "thinking", Signature: "sig"}},
					ninelives.Text{Text: "I look."}, call,
				}},
				ninelives.ToolResultText("toolu_1", "look", "42"),
			}},
			sent:  `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},{"type":"function_call","call_id":"toolu_1","name":"look","arguments":"{\"q\":1}"},{"type":"function_call_output","call_id":"toolu_1","output":"42"}]}`,
			notes: 1,
		},
		{
			name: "ids do not point to reasoning that is left out",
			req: &ninelives.Request{Messages: []ninelives.Message{
				ninelives.UserText("Hi"),
				{Role: ninelives.RoleAssistant, ID: "msg_1", Parts: []ninelives.Part{
					ninelives.Reasoning{ID: "rs_1", Redacted: true, Provenance: ninelives.Provenance{Field: "encrypted_content", Blob: "gAAA"}},
					ninelives.Text{Text: "Hello.", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"item":{"status":"completed"}}`)}}},
				}},
				ninelives.UserText("Bye"),
			}},
			change: func(t *wire.Target) { t.Dialect.DropReasoning = true },
			sent:   `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[]}],"status":"completed"},{"type":"message","role":"user","content":"Bye"}]}`,
			notes:  1,
		},
		{
			name: "ids that this protocol did not make are not sent",
			req: &ninelives.Request{Messages: []ninelives.Message{
				ninelives.UserText("Hi"),
				{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
					ninelives.ToolCall{ID: "c", Name: "look", Arguments: "{}", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"id":"uuid-1","status":"completed"}`)}}},
				}},
				ninelives.ToolResultText("c", "look", "42"),
			}},
			sent: `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"function_call","call_id":"c","name":"look","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c","output":"42"}]}`,
		},
		{
			name: "plain reasoning goes where it is asked for",
			req: &ninelives.Request{Messages: []ninelives.Message{
				ninelives.UserText("Hi"),
				{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
					ninelives.Reasoning{Text: "Hm.", Provenance: ninelives.Provenance{Field: "reasoning_content"}}, ninelives.Text{Text: "Hello."},
				}},
				ninelives.UserText("Bye"),
			}},
			change: func(t *wire.Target) { t.Dialect.Replay = ninelives.ReplayRequireAlways },
			sent:   `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[]}]},{"type":"message","role":"user","content":"Bye"}]}`,
		},
		{
			name:   "a model that reasons is asked for its reasoning in a form that can be sent back",
			req:    &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"include":["x"]}`)}},
			change: func(t *wire.Target) { t.Candidate.Replay = ninelives.ReplayIgnore },
			sent:   `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}],"include":["x","reasoning.encrypted_content"]}`,
		},
		{
			name:  "tools of another provider stay at home",
			req:   &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Hi")}, Tools: []ninelives.Tool{{Kind: "google_search", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.Gemini, JSON: []byte(`{"google_search":{}}`)}}}}},
			sent:  `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"Hi"}]}`,
			notes: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := responsesTarget()
			if tt.change != nil {
				tt.change(&target)
			}
			before := showResponses(tt.req)
			enc, err := openai.EncodeResponsesRequest(tt.req, target)
			if err != nil {
				t.Fatal(err)
			}
			if string(enc.Body) != tt.sent {
				t.Errorf("\n got %s\nwant %s", enc.Body, tt.sent)
			}
			if want := strings.Contains(tt.sent, "Give the final answer."); want != (enc.OutputTool == "cat") {
				t.Errorf("output tool %q", enc.OutputTool)
			}
			if len(enc.Notes) != tt.notes {
				t.Errorf("notes %q, want %d", enc.Notes, tt.notes)
			}
			if showResponses(tt.req) != before {
				t.Error("the request was changed")
			}
		})
	}
}
