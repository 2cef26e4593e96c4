package gemini_test

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
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

func target() wire.Target {
	return wire.Target{
		Candidate: ninelives.Candidate{
			Provider: "gemini", Model: "gemini-x", Protocol: ninelives.Gemini,
			Capabilities: ninelives.Capabilities{Tools: true, Images: true, Files: true, Prefill: true, Schema: ninelives.SchemaNative},
		},
	}
}

// A server reads from a request what its client meant, and every field that
// has no word here as it was spelt.
func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRequest(t)
		enc, err := gemini.EncodeRequest(want, target())
		if err != nil {
			t.Fatal(err)
		}
		if len(enc.Notes) > 0 {
			t.Fatalf("a request that can be sent as it is was changed: %q", enc.Notes)
		}
		if !rawjson.Valid(enc.Body) {
			t.Fatalf("not valid: %s", enc.Body)
		}
		got, err := gemini.DecodeRequest("gemini-x", enc.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n%s", enc.Body, difference(got, want))
		}
	})
}

// difference shows the fields of two structs that differ.
func difference(got, want any) string {
	var b strings.Builder
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		if x, y := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			fmt.Fprintf(&b, "%s\n got %s\nwant %s\n", g.Type().Field(i).Name, show(x), show(y))
		}
	}
	return b.String()
}

// show prints a value with its bytes as text.
func show(v any) string {
	return showBytes.ReplaceAllStringFunc(fmt.Sprintf("%+v", v), func(list string) string {
		var b []byte
		for _, n := range strings.Fields(list[1 : len(list)-1]) {
			c, _ := strconv.Atoi(n)
			b = append(b, byte(c))
		}
		return fmt.Sprintf("%q", b)
	})
}

var showBytes = regexp.MustCompile(`\[\d+( \d+)*\]`)

func extra(s string) ninelives.Extra {
	return ninelives.Extra{Protocol: ninelives.Gemini, JSON: []byte(s)}
}

func meta(s string) ninelives.Meta { return ninelives.Meta{Extra: extra(s)} }

// genExtra draws unknown members, spelt in unusual ways, and more of them.
func genExtra(t *rapid.T, label string, more ...string) ninelives.Extra {
	all := []string{`"x_a" : [1, 2.50 ,-0e1]`, `"x\u005fb":"\u00e9\/"`, `"x_c":{ "id": null }`, `"":true`}
	list := append(all[:rapid.IntRange(0, 3).Draw(t, label):3], more...)
	if len(list) == 0 {
		return ninelives.Extra{}
	}
	return extra("{" + strings.Join(list, ",") + "}")
}

func genText(t *rapid.T, label string) string { return rapid.String().Draw(t, label) + "." }

func genUserPart(t *rapid.T) ninelives.Part {
	meta := ninelives.Meta{Extra: genExtra(t, "part")}
	data := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "data")
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return ninelives.Image{URL: "gs://b/" + rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "path"), MediaType: "image/png", Meta: meta}
	case 1:
		return ninelives.Image{MediaType: "image/png", Data: data, Meta: meta}
	case 2:
		return ninelives.File{Name: "a.pdf", MediaType: "application/pdf", Data: data, Meta: meta}
	case 3:
		return ninelives.File{URL: "https://example.org/a", MediaType: "audio/wav", Meta: meta}
	case 4:
		return ninelives.Opaque{Kind: "smell", Raw: extra(`{ "smell":[1.0] , "thoughtSignature":"s"}`)}
	default:
		return ninelives.Text{Text: genText(t, "text"), Meta: meta}
	}
}

// genTurn draws a model's turn and the answers to its calls.
func genTurn(t *rapid.T, id *int) []ninelives.Message {
	next := func(form string) string { *id++; return fmt.Sprintf(form, *id) }
	turn := ninelives.Message{Role: ninelives.RoleAssistant, Extra: genExtra(t, "content")}
	results := ninelives.Message{Role: ninelives.RoleTool}
	proof := func(own string) ninelives.Reasoning {
		r := ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: "thoughtSignature", Blob: next("sig%d")}}
		if own != "" {
			r.Extra = extra(own)
		}
		return r
	}
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		switch rapid.IntRange(0, 6).Draw(t, "part") {
		case 0:
			r := ninelives.Reasoning{Text: genText(t, "thought"), Summary: true, Provenance: ninelives.Provenance{Field: "thought"}, Meta: ninelives.Meta{Extra: genExtra(t, "thought")}}
			if rapid.Bool().Draw(t, "signed") {
				r.Provenance.Signature = next("sig%d")
			}
			turn.Parts = append(turn.Parts, r)
		case 1:
			turn.Parts = append(turn.Parts, proof(""), ninelives.Text{Text: genText(t, "text"), Meta: ninelives.Meta{Extra: genExtra(t, "text")}})
		case 2:
			turn.Parts = append(turn.Parts, proof(rapid.SampledFrom([]string{`{"text":""}`, `{}`, `{"x" : 1,"text":""}`}).Draw(t, "own")))
		case 3, 4:
			c := ninelives.ToolCall{ID: next("id%d"), Name: "look", Arguments: rapid.SampledFrom([]string{"{}", `{"q": "ä\u00e4"}`}).Draw(t, "arguments")}
			c.Extra = genExtra(t, "call", `"functionCall":`+rapid.SampledFrom([]string{"{}", `{"willContinue": false}`}).Draw(t, "own"))
			if rapid.Bool().Draw(t, "signed") {
				c.Signature, c.Provenance.Field = next("sig%d"), "thoughtSignature"
			}
			turn.Parts = append(turn.Parts, c)
			r := ninelives.ToolResult{CallID: c.ID, Name: c.Name, Meta: ninelives.Meta{Extra: genExtra(t, "result")}}
			r.IsError = rapid.Bool().Draw(t, "error")
			r.Content = []ninelives.Part{ninelives.Text{Text: rapid.SampledFrom([]string{genText(t, "output"), `{"a": 1}`, `{"output":"x"}`, `{"error":"x"}`, `{"output":1}`, "[1]"}).Draw(t, "form")}}
			results.Parts = append(results.Parts, r)
		case 5:
			turn.Parts = append(turn.Parts, ninelives.Opaque{Kind: "executableCode", Raw: extra(`{"executableCode":{"code" : "1"}}`)})
		default:
			turn.Parts = append(turn.Parts, ninelives.Text{Text: genText(t, "text"), Meta: ninelives.Meta{Extra: genExtra(t, "text")}})
		}
	}
	turn.Parts = append(turn.Parts, ninelives.Text{Text: "Done."})
	if len(results.Parts) > 0 {
		return []ninelives.Message{turn, results}
	}
	return []ninelives.Message{turn}
}

func genRequest(t *rapid.T) *ninelives.Request {
	req := &ninelives.Request{Model: "gemini-x"}
	id := 0
	if rapid.Bool().Draw(t, "instructions") {
		req.Messages = append(req.Messages, ninelives.Message{Role: ninelives.RoleSystem, Parts: []ninelives.Part{ninelives.Text{Text: genText(t, "instructions")}, ninelives.Text{Text: genText(t, "more")}}, Extra: genExtra(t, "system")})
	}
	for range rapid.IntRange(1, 3).Draw(t, "rounds") {
		m := ninelives.Message{Role: ninelives.RoleUser, Extra: genExtra(t, "message")}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			m.Parts = append(m.Parts, genUserPart(t))
		}
		req.Messages = append(req.Messages, m)
		req.Messages = append(req.Messages, genTurn(t, &id)...)
	}
	number := func(label string) *float64 {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		v := rapid.Float64Range(-2, 2).Draw(t, label)
		return &v
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tools") {
		tool := ninelives.Tool{Name: fmt.Sprintf("look%d", i), Description: genText(t, "description"), Schema: []byte(`{"type":"object", "properties":{"q":{"type":"string"}}}`), Meta: ninelives.Meta{Extra: genExtra(t, "tool")}}
		if rapid.Bool().Draw(t, "json schema") {
			tool.Extra = extra(`{"parametersJsonSchema":null}`)
		}
		req.Tools = append(req.Tools, tool)
	}
	if rapid.Bool().Draw(t, "own tool") {
		req.Tools = append(req.Tools, ninelives.Tool{Kind: "googleSearch", Meta: meta(`{"googleSearch" : { }}`)})
	}
	var config, generation []string
	if len(req.Tools) > 0 {
		req.ToolChoice = rapid.SampledFrom([]ninelives.ToolChoice{
			{}, {Mode: ninelives.ToolChoiceAuto}, {Mode: ninelives.ToolChoiceNone}, {Mode: ninelives.ToolChoiceRequired}, {Mode: ninelives.ToolChoiceTool, Name: "look0"},
			{Mode: ninelives.ToolChoiceRequired, Extra: extra(`{"mode":"ANY", "allowedFunctionNames":["look0","look1"]}`)},
			{Extra: extra(`{"mode":"VALIDATED"}`)},
		}).Draw(t, "choice")
		if !reflect.DeepEqual(req.ToolChoice, ninelives.ToolChoice{}) && rapid.Bool().Draw(t, "config") {
			config = append(config, `"toolConfig":{"retrievalConfig":{ }}`)
		}
	}
	req.MaxTokens = rapid.IntRange(0, 1000).Draw(t, "max")
	req.Temperature, req.TopP = number("temperature"), number("top_p")
	req.FrequencyPenalty, req.PresencePenalty = number("frequency"), number("presence")
	if rapid.Bool().Draw(t, "sampling") {
		k, seed := rapid.IntRange(0, 50).Draw(t, "k"), rapid.Int64().Draw(t, "seed")
		req.TopK, req.Seed, req.Stop, req.N = &k, &seed, []string{genText(t, "stop")}, rapid.SampledFrom([]int{0, 2}).Draw(t, "n")
	}
	if req.Logprobs = rapid.Bool().Draw(t, "logprobs"); req.Logprobs {
		req.TopLogprobs = rapid.IntRange(0, 20).Draw(t, "top_logprobs")
	}
	switch rapid.IntRange(0, 4).Draw(t, "reasoning") {
	case 0:
		req.Reasoning = ninelives.ReasoningOptions{Effort: rapid.SampledFrom([]string{"low", "none"}).Draw(t, "effort"), Summary: "auto", Extra: genExtra(t, "thinking")}
	case 1:
		req.Reasoning = ninelives.ReasoningOptions{Budget: 512, Extra: genExtra(t, "thinking")}
	case 2:
		req.Reasoning.Extra = extra(`{"thinkingBudget" : -1}`)
	}
	if rapid.Bool().Draw(t, "output") {
		req.Output = &ninelives.Output{Schema: []byte(`{"type":"object", "properties":{"q":{"type":["string","null"]}},"additionalProperties":false}`)}
	}
	if rapid.Bool().Draw(t, "modalities") {
		generation = append(generation, `"responseModalities":[ "TEXT"]`)
	}
	list := []string{}
	list = append(list, config...)
	if len(generation) > 0 {
		list = append(list, `"generationConfig":{`+strings.Join(generation, ",")+"}")
	}
	list = append(list, `"safetySettings":[ { "category":"X"}]`)
	req.Extra = extra("{" + strings.Join(list, ",") + "}")
	return req
}

// Requests as clients really write them.
func TestRequestsOfClients(t *testing.T) {
	tests := []struct {
		name, body string
		check      func(t *testing.T, req *ninelives.Request)
		sent       string
	}{
		{
			name: "names in the other spelling",
			body: `{"contents":[{"role":"user","parts":[{"text":"Hi"},{"inline_data":{"mime_type":"image/png","data":"AAAA"}}]}],"system_instruction":{"parts":{"text":"Be brief."}},"generation_config":{"max_output_tokens":9,"stop_sequences":["x"]},"tools":[{"function_declarations":[{"name":"look","description":"","parameters_json_schema":{"type":"object","properties":{}}}]}],"tool_config":{"function_calling_config":{"mode":"any","allowed_function_names":["look"]}}}`,
			check: func(t *testing.T, req *ninelives.Request) {
				if len(req.Messages) != 2 || req.MaxTokens != 9 || req.ToolChoice.Name != "look" || len(req.Messages[1].Parts) != 2 {
					t.Errorf("%s", show(req))
				}
			},
			sent: `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}],"tools":[{"functionDeclarations":[{"name":"look","description":"","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},"generationConfig":{"maxOutputTokens":9,"stopSequences":["x"]}}`,
		},
		{
			name: "schemas in the API's own form become JSON schemas, and go back",
			body: `{"contents":[{"parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"look","description":"d","parameters":{"type":"OBJECT","properties":{"q":{"type":"STRING","nullable":true},"n":{"type":"ARRAY","items":{"type":"NUMBER"},"minItems":"1"}}}}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}}}`,
			check: func(t *testing.T, req *ninelives.Request) {
				if got, want := string(req.Tools[0].Schema), `{"type":"object","properties":{"q":{"type":["string","null"]},"n":{"type":"array","items":{"type":"number"},"minItems":1}}}`; got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"look","description":"d","parameters":{"type":"object","properties":{"q":{"type":"string","nullable":true},"n":{"type":"array","items":{"type":"number"},"minItems":1}}}}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		},
		{
			name: "calls without ids are paired by name and order",
			body: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{"n":1}},"thoughtSignature":"s"},{"functionCall":{"name":"a","args":{"n":2}}},{"functionCall":{"name":"b"}}]},{"role":"function","parts":[{"functionResponse":{"name":"b","response":{"output":"B"}}},{"functionResponse":{"name":"a","response":{"n":1}}},{"functionResponse":{"name":"a","response":{"error":"no"}}},{"text":"What now?"}]}]}`,
			check: func(t *testing.T, req *ninelives.Request) {
				calls := req.Messages[1].ToolCalls()
				var got []string
				for _, part := range req.Messages[2].Parts {
					r := part.(ninelives.ToolResult)
					for i, c := range calls {
						if c.ID == r.CallID {
							got = append(got, fmt.Sprintf("%d %s %s %v", i, r.Name, r.Text(), r.IsError))
						}
					}
				}
				if want := []string{`2 b B false`, `0 a {"n":1} false`, `1 a no true`}; !reflect.DeepEqual(got, want) {
					t.Errorf("\n got %q\nwant %q", got, want)
				}
				if req.Messages[3].Text() != "What now?" {
					t.Errorf("%s", show(req.Messages[3]))
				}
			},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{"n":1}},"thoughtSignature":"s"},{"functionCall":{"name":"a","args":{"n":2}}},{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"n":1}}},{"functionResponse":{"name":"a","response":{"error":"no"}}},{"functionResponse":{"name":"b","response":{"output":"B"}}}]},{"role":"user","parts":[{"text":"What now?"}]}]}`,
		},
		{
			name: "what the API has beyond our words is kept as it is spelt",
			body: `{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"https://youtu.be/x"},"videoMetadata":{"fps" : 1.0}}]}],"cachedContent":"cachedContents/1","safetySettings":[ ],"tools":[{"googleSearch":{}},{"codeExecution" : {}}],"generationConfig":{"candidateCount":1,"responseModalities":["TEXT"],"speechConfig":{ }}}`,
			sent: `{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"https://youtu.be/x"},"videoMetadata":{"fps" : 1.0}}]}],"tools":[{"googleSearch":{}},{"codeExecution" : {}}],"generationConfig":{"candidateCount":1,"responseModalities":["TEXT"],"speechConfig":{ }},"cachedContent":"cachedContents/1","safetySettings":[ ]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := gemini.DecodeRequest("gemini-x", []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.check != nil {
				tt.check(t, req)
			}
			enc, err := gemini.EncodeRequest(req, target())
			if err != nil {
				t.Fatal(err)
			}
			if string(enc.Body) != tt.sent {
				t.Errorf("\n got %s\nwant %s", enc.Body, tt.sent)
			}
		})
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	for _, body := range []string{``, `[]`, `{"contents":`, `<html>`, `{"contents":7}`} {
		_, err := gemini.DecodeRequest("m", []byte(body))
		var fault *ninelives.Fault
		if !errors.As(err, &fault) || fault.Class != ninelives.ClassFormat || fault.Message == "" {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// What the API and the dialect do to a request from elsewhere.
func TestRequestsFromElsewhere(t *testing.T) {
	no := false
	schema := []byte(`{"$schema":"x","type":"object","properties":{"a":{"type":["string","null"],"const":"A"},"b":{"$ref":"#/$defs/B"}},"additionalProperties":false,"$defs":{"B":{"oneOf":[{"type":"integer","exclusiveMinimum":0},{"type":"null"}]}}}`)
	call := func(id, name string) ninelives.ToolCall {
		return ninelives.ToolCall{ID: id, Name: name, Arguments: `{"q":1}`}
	}
	user := ninelives.UserText("Hi")
	tests := []struct {
		name   string
		req    *ninelives.Request
		change func(*wire.Target)
		sent   string
		notes  int
	}{
		{
			name: "schemas lose what the API does not know",
			req:  &ninelives.Request{Messages: []ninelives.Message{user}, Tools: []ninelives.Tool{{Name: "look", Schema: schema}, {Name: "see", Schema: []byte(`{"type":"object","properties":{}}`)}}, Output: &ninelives.Output{Schema: schema}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"look","description":"","parameters":{"type":"object","properties":{"a":{"type":"string","nullable":true,"enum":["A"]},"b":{"anyOf":[{"type":"integer"}],"nullable":true}}}},{"name":"see","description":""}]}],` +
				`"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":["string","null"],"enum":["A"]},"b":{"$ref":"#/$defs/B"}},"additionalProperties":false,"$defs":{"B":{"oneOf":[{"type":"integer"},{"type":"null"}]}}}}}`,
		},
		{
			name:   "a server that does not know JSON schema gets the older form",
			req:    &ninelives.Request{Messages: []ninelives.Message{user}, Output: &ninelives.Output{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)}},
			change: func(t *wire.Target) { t.Dialect.Drop = []string{"responseJsonSchema"} },
			sent:   `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		},
		{
			name: "instructions in the middle go to the head",
			req:  &ninelives.Request{Messages: []ninelives.Message{ninelives.SystemText("A."), user, ninelives.AssistantText("Hello."), {Role: ninelives.RoleDeveloper, Parts: []ninelives.Part{ninelives.Text{Text: "B."}}}, user}},
			sent: `{"systemInstruction":{"parts":[{"text":"A."},{"text":"B."}]},"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Hello."}]},{"role":"user","parts":[{"text":"Hi"}]}]}`, notes: 1,
		},
		{
			name: "nothing but instructions",
			req:  &ninelives.Request{Messages: []ninelives.Message{ninelives.SystemText("Tell a joke.")}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Tell a joke."}]}]}`, notes: 1,
		},
		{
			name: "results of one turn are one content, in the order of its calls, with their pictures after them",
			req: &ninelives.Request{Messages: []ninelives.Message{
				user, {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{call("c1", "a"), call("c2", "a")}},
				{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "c2", Name: "a", Content: []ninelives.Part{ninelives.Text{Text: "two"}, ninelives.Image{MediaType: "image/png", Data: []byte{0, 0, 0}}}}}},
				ninelives.ToolResultText("c1", "a", "one"),
			}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{"q":1}}},{"functionCall":{"name":"a","args":{"q":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}},{"functionResponse":{"name":"a","response":{"output":"two"}}},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}`,
		},
		{
			name: "proofs of another model stay at home, and a dummy stands in for them",
			req: &ninelives.Request{Messages: []ninelives.Message{
				user, {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
					ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: "gemini", Model: "gemini-y", Field: "thoughtSignature", Blob: "b"}},
					ninelives.Text{Text: "I look."},
					ninelives.ToolCall{ID: "c1", Name: "a", Arguments: "{}", Signature: "s", Provenance: ninelives.Provenance{Provider: "gemini", Model: "gemini-y"}},
				}},
				ninelives.ToolResultText("c1", "a", "one"),
			}},
			change: func(t *wire.Target) { t.Dialect.DummySignature = wire.GeminiDummySignature },
			sent:   `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"I look."},{"functionCall":{"name":"a","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}}]}]}`, notes: 1,
		},
		{
			name: "a proof without its part goes by itself",
			req: &ninelives.Request{Messages: []ninelives.Message{
				user, {Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
					ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: "thoughtSignature", Blob: "b"}}, call("c1", "a"),
				}},
				ninelives.ToolResultText("c1", "a", "one"),
			}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"b"},{"functionCall":{"name":"a","args":{"q":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}}]}]}`,
		},
		{
			name: "thinking is asked for as the model takes it",
			req:  &ninelives.Request{Messages: []ninelives.Message{user}, Reasoning: ninelives.ReasoningOptions{Effort: "medium", Summary: "detailed"}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"medium"}}}`,
		},
		{
			name:   "thinking by budget",
			req:    &ninelives.Request{Messages: []ninelives.Message{user}, Reasoning: ninelives.ReasoningOptions{Effort: "medium"}},
			change: func(t *wire.Target) { t.Dialect.EffortParam = "thinkingBudget" },
			sent:   `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":8192}}}`,
		},
		{
			name:   "no thinking",
			req:    &ninelives.Request{Messages: []ninelives.Message{user}, Reasoning: ninelives.ReasoningOptions{Effort: "high"}},
			change: func(t *wire.Target) { t.Dialect.NoThinking = true },
			sent:   `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`,
		},
		{
			name: "parameters that the server rejects are left out",
			req:  &ninelives.Request{Messages: []ninelives.Message{user}, Temperature: new(float64), MaxTokens: 900, Extra: extra(`{"generationConfig":{"mediaResolution":"LOW"},"labels":{}}`)},
			change: func(t *wire.Target) {
				t.Dialect.Drop, t.Dialect.MaxTokensCap = []string{"temperature", "labels", "mediaResolution"}, 500
			},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":500}}`, notes: 1,
		},
		{
			name: "what has no form is told",
			req:  &ninelives.Request{Messages: []ninelives.Message{user}, ParallelTools: &no, Tools: []ninelives.Tool{{Name: "look"}, {Kind: "web_search", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{}`)}}}}},
			sent: `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"look","description":""}]}]}`, notes: 2,
		},
		{
			name:   "a schema can be forced as a tool",
			req:    &ninelives.Request{Messages: []ninelives.Message{user}, Output: &ninelives.Output{Name: "cat", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}},
			change: func(t *wire.Target) { t.Candidate.Schema = ninelives.SchemaTool },
			sent:   `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"cat","description":"Give the final answer.","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["cat"]}}}`,
		},
		{
			name: "pictures and files by URL have a media type where it can be told",
			req: &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{
				ninelives.Image{URL: "https://example.org/a.PNG?x=1"}, ninelives.Image{URL: "https://example.org/a"}, ninelives.File{URL: "gs://b/a.pdf"}, ninelives.File{FileID: "https://example.org/v1beta/files/1"},
			}}}},
			sent: `{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://example.org/a.PNG?x=1"}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://example.org/a"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a.pdf"}},{"fileData":{"fileUri":"https://example.org/v1beta/files/1"}}]}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := target()
			if tt.change != nil {
				tt.change(&target)
			}
			before := show(tt.req)
			enc, err := gemini.EncodeRequest(tt.req, target)
			if err != nil {
				t.Fatal(err)
			}
			if string(enc.Body) != tt.sent {
				t.Errorf("\n got %s\nwant %s", enc.Body, tt.sent)
			}
			if len(enc.Notes) != tt.notes {
				t.Errorf("notes %q, want %d", enc.Notes, tt.notes)
			}
			if show(tt.req) != before {
				t.Error("the request was changed")
			}
		})
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		model  string
		stream bool
		path   string
		parsed string
	}{
		{"gemini-x", false, "/models/gemini-x:generateContent", "gemini-x"},
		{"gemini-x", true, "/models/gemini-x:streamGenerateContent?alt=sse", "gemini-x"},
		{"models/gemini-x", false, "/models/gemini-x:generateContent", "gemini-x"},
		{"publishers/google/models/gemini-x", true, "/publishers/google/models/gemini-x:streamGenerateContent?alt=sse", "gemini-x"},
		{"a b", false, "/models/a%20b:generateContent", "a b"},
	} {
		if got := gemini.Path(tt.model, tt.stream); got != tt.path {
			t.Errorf("path %q, want %q", got, tt.path)
		}
		model, stream, ok := gemini.ParsePath("/v1beta" + tt.path)
		if model != tt.parsed || stream != tt.stream || !ok {
			t.Errorf("%s is read as %q %v %v", tt.path, model, stream, ok)
		}
	}
	for _, path := range []string{"/v1beta/models", "/v1beta/models/x:countTokens", "/v1beta/models/:generateContent", ""} {
		if _, _, ok := gemini.ParsePath(path); ok {
			t.Errorf("%q is taken for a request", path)
		}
	}
}
