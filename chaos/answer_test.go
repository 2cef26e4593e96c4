package chaos

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// content gives the text of a whole chat answer, its reason and its calls.
func content(t *testing.T, got string) (said, finish string, calls []any) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	c := object(list(v["choices"])[0])
	m := object(c["message"])
	return text(m["content"]), text(c["finish_reason"]), list(m["tool_calls"])
}

func chatTo(t *testing.T, srv *Server, rest string) string {
	t.Helper()
	_, got, err := post(t, srv, "/v1/chat/completions", `{"model":"x",`+rest+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnAnswerGoesOnWhereItIsAskedTo(t *testing.T) {
	inBubble(t, one(Step{}), func(t *testing.T, srv *Server) {
		half := firstWords(25)
		for name, turns := range map[string]string{
			"by prefill": `{"role":"user","content":"Why?"},{"role":"assistant","content":` + quote(half) + `}`,
			"in words":   `{"role":"user","content":"Why?"},{"role":"assistant","content":` + quote(half) + `},{"role":"user","content":"Continue exactly where you left off."}`,
		} {
			if said, _, _ := content(t, chatTo(t, srv, `"messages":[`+turns+`]`)); half+said != Answer {
				t.Errorf("%s: %q", name, said)
			}
		}
		// A new question after a whole answer, or after something else, is answered in full.
		for _, before := range []string{Answer, "Something else."} {
			turns := `{"role":"user","content":"Why?"},{"role":"assistant","content":` + quote(before) + `},{"role":"user","content":"Please continue."}`
			if said, _, _ := content(t, chatTo(t, srv, `"messages":[`+turns+`]`)); said != Answer {
				t.Errorf("after %q: %q", before, said)
			}
		}
	})
}

func TestALimitTruncates(t *testing.T) {
	inBubble(t, one(Step{}), func(t *testing.T, srv *Server) {
		for limit, want := range map[string]string{`"max_tokens":10,`: "length", `"max_completion_tokens":10,`: "length", `"max_tokens":60,`: "stop"} {
			said, finish, _ := content(t, chatTo(t, srv, limit+`"messages":[]`))
			if finish != want || want == "length" && said != firstWords(10) {
				t.Errorf("%s: %q %q", limit, said, finish)
			}
		}
	})
}

func TestAnAnswerFollowsTheSchema(t *testing.T) {
	schema := `{"type":"object","properties":{"number":{"type":"string"},"total":{"type":"number"}},"required":["number","total"]}`
	want := `{"number":"cat","total":9}`
	inBubble(t, one(Step{}), func(t *testing.T, srv *Server) {
		for path, body := range map[string]string{
			"/v1/chat/completions":          `{"model":"x","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"inv","schema":` + schema + `}}}`,
			"/v1/responses":                 `{"model":"x","input":"a","text":{"format":{"type":"json_schema","name":"inv","schema":` + schema + `}}}`,
			"/v1/messages":                  `{"model":"x","max_tokens":99,"messages":[],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`,
			"/v1/messages?forced":           `{"model":"x","max_tokens":99,"messages":[],"tools":[{"name":"inv","input_schema":` + schema + `}],"tool_choice":{"type":"tool","name":"inv"}}`,
			"/v1/models/x:generateContent":  `{"contents":[],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + schema + `}}`,
			"/v1/chat/completions?required": `{"model":"x","messages":[],"tools":[{"type":"function","function":{"name":"inv","parameters":` + schema + `}}],"tool_choice":"required"}`,
		} {
			_, got, err := post(t, srv, path, body)
			if err != nil || !strings.Contains(got, want) && !strings.Contains(got, strings.Trim(quote(want), `"`)) {
				t.Errorf("%s: %v %s", path, err, got)
			}
		}
	})
}

func TestInstancesSatisfyTheirSchemas(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":3},"minItems":2},"b":{"enum":["x","y"]},"c":{"const":7},"d":{"type":["null","boolean"]}},"required":["a","b","c"],"additionalProperties":false}`,
		`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"string","minLength":9},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},"required":["v"]}}}`,
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["kids"]}}}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"string","maxLength":2}},"required":["a"]},{"type":"object","properties":{"b":{"type":"number","multipleOf":0.5}},"required":["b"]}]}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer","exclusiveMinimum":4}],"items":false,"minItems":2}`,
		`{"type":"object","properties":{"when":{"type":"string","format":"date-time"},"mail":{"type":"string","format":"email"}}}`,
		`{"oneOf":[{"type":"integer","maximum":-2},{"type":"string"}]}`,
	} {
		c := jsonschema.NewCompiler()
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c.AddResource("test:s", doc) // no file: the directory may have a blank in its name
		compiled, err := c.Compile("test:s")
		if err != nil {
			t.Fatal(err)
		}
		var parsed map[string]any
		dec := json.NewDecoder(strings.NewReader(schema))
		dec.UseNumber()
		dec.Decode(&parsed)
		got := instanceJSON(parsed)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
		if err == nil {
			err = compiled.Validate(v)
		}
		if err != nil {
			t.Errorf("%s\nis not met by %s: %v", schema, got, err)
		}
	}
}

func TestToolCallsAndTheirFaults(t *testing.T) {
	tools := `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}],`
	user := `"messages":[{"role":"user","content":"Look"}]`
	want := map[string]string{
		"tool-call":            `{"id":"call_sim1_1","type":"function","function":{"name":"look","arguments":"{\"at\":\"cat\"}"}}`,
		"call-unclosed":        `"arguments":"{\"path\":\"/tmp/nine\",\"cont"}`,
		"call-missing-id":      `[{"type":"function","function"`,
		"call-object":          `"arguments":{"at":"cat"}`,
		"call-double-encoded":  `"arguments":"\"{\\\"at\\\":\\\"cat\\\"}\""`,
		"call-null":            `"arguments":null`,
		"call-duplicate-index": `"id":"call_sim1_2"`,
	}
	for name, part := range want {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			_, got, err := post(t, srv, "/v1/chat/completions", `{"model":"`+name+`",`+tools+user+`}`)
			if err != nil || !strings.Contains(got, part) || !strings.Contains(got, `"finish_reason":"tool_calls"`) {
				t.Errorf("%s: %v %s\nwant %s", name, err, got, part)
			}
		})
	}
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		_, got, _ := post(t, srv, "/v1/chat/completions", `{"model":"call-duplicate-index","stream":true,`+tools+user+`}`)
		if strings.Contains(got, `"index":1`) || strings.Count(got, `"name":"look"`) != 2 {
			t.Errorf("duplicate index: %s", got)
		}
		_, got, _ = post(t, srv, "/v1/chat/completions", `{"model":"call-missing-index","stream":true,`+tools+user+`}`)
		if strings.Contains(got, `"tool_calls":[{"index"`) {
			t.Errorf("missing index: %s", got)
		}
		// After the result of the tool comes the answer.
		after := `"messages":[{"role":"user","content":"Look"},{"role":"assistant","tool_calls":[{}]},{"role":"tool","content":"a cat"}]`
		_, got, _ = post(t, srv, "/v1/chat/completions", `{"model":"tool-call",`+tools+after+`}`)
		if said, finish, calls := content(t, got); said != Answer || finish != "stop" || calls != nil {
			t.Errorf("after the result: %q %q %v", said, finish, calls)
		}
		_, got, _ = post(t, srv, "/v1beta/models/call-unclosed:generateContent", `{"contents":[],"tools":[{"functionDeclarations":[{"name":"look"}]}]}`)
		if !strings.Contains(got, "MALFORMED_FUNCTION_CALL") || strings.Contains(got, "functionCall") {
			t.Errorf("Gemini: %s", got)
		}
	})
}

func TestStrictServers(t *testing.T) {
	user := `{"role":"user","content":"a"}`
	for name, bodies := range map[string][2]string{ // refused, taken
		"strict":          {`"messages":[` + user + `],"cleverness":9`, `"messages":[` + user + `],"seed":9`},
		"no-prefill":      {`"messages":[` + user + `,{"role":"assistant","content":"b"}]`, `"messages":[` + user + `]`},
		"fb-ok-noprefill": {`"messages":[` + user + `,{"role":"assistant","content":"b"}]`, `"messages":[` + user + `]`},
		"no-system":       {`"messages":[{"role":"system","content":"s"},` + user + `]`, `"messages":[` + user + `]`},
		"no-developer":    {`"messages":[{"role":"developer","content":"s"},` + user + `]`, `"messages":[{"role":"system","content":"s"},` + user + `]`},
		"no-images":       {`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]`, `"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]`},
		"no-tools":        {`"messages":[],"tools":[{"type":"function","function":{"name":"f"}}]`, `"messages":[],"tools":[]`},
		"no-schema":       {`"messages":[],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`, `"messages":[],"response_format":{"type":"json_object"}`},
		"no-stream":       {`"messages":[],"stream":true`, `"messages":[],"stream":false`},
		"no-temperature":  {`"messages":[],"temperature":0`, `"messages":[]`},
		"no-max-tokens":   {`"messages":[],"max_tokens":90`, `"messages":[],"max_completion_tokens":90`},
		"wants-reasoning": {`"messages":[{"role":"assistant","tool_calls":[{}]}]`, `"messages":[{"role":"assistant","tool_calls":[{}],"reasoning_content":""}]`},
		"alternating":     {`"messages":[` + user + `,` + user + `]`, `"messages":[` + user + `,{"role":"assistant","content":"b"},` + user + `]`},
		"small-window":    {`"messages":[{"role":"user","content":"` + strings.Repeat("word ", 1000) + `"}]`, `"messages":[` + user + `]`},
	} {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			for i, want := range []int{400, 200} {
				resp, got, err := post(t, srv, "/v1/chat/completions", `{"model":"`+name+`",`+bodies[i]+`}`)
				if err != nil || resp.StatusCode != want {
					t.Errorf("%s: %s: %d %s, want %d", name, bodies[i], resp.StatusCode, got, want)
				}
			}
		})
	}
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		body := `{"model":"needs-key","messages":[]}`
		if resp, _, _ := post(t, srv, "/v1/chat/completions", body); resp.StatusCode != 401 {
			t.Errorf("no key: %d", resp.StatusCode)
		}
		if resp, _, _ := post(t, srv, "/v1/chat/completions", body, "x-api-key", "k"); resp.StatusCode != 200 {
			t.Errorf("a key: %d", resp.StatusCode)
		}
		body = `{"model":"needs-v1","messages":[]}`
		if resp, got, _ := post(t, srv, "/chat/completions", body); resp.StatusCode != 404 || !strings.Contains(got, "<h1>404 Not Found</h1>") {
			t.Errorf("no /v1: %d %s", resp.StatusCode, got)
		}
		if resp, _, _ := post(t, srv, "/v1/chat/completions", body); resp.StatusCode != 200 {
			t.Errorf("with /v1: %d", resp.StatusCode)
		}
	})
}

func TestOverflowNamesTheNumbers(t *testing.T) {
	long := strings.Repeat("word ", 1000) // 1250 tokens, and 4 for the turn
	want := map[protocol]string{
		chat:      "maximum context length is 1000 tokens. However, your messages resulted in 1254 tokens",
		responses: "maximum context length is 1000 tokens. However, your messages resulted in 1254 tokens",
		messages:  "prompt is too long: 1254 tokens > 1000 maximum",
		gemini:    "The input token count (1254) exceeds the maximum number of tokens allowed (1000).",
	}
	for p, words := range want {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			path, body := request(p, "small-window", true, long)
			resp, got, err := post(t, srv, path, body)
			if err != nil || resp.StatusCode != 400 || !strings.Contains(got, words) {
				t.Errorf("%s: %v %s", p, err, got)
			}
		})
	}
}
