package gemini_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
)

var options = wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: "gemini", Model: "gemini-x", Protocol: ninelives.Gemini}}

// genResponse draws an answer as a server of this protocol gives it.
func genResponse(t *rapid.T) *ninelives.Response {
	id := 0
	m := genTurn(t, &id)[0]
	for i, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.Reasoning:
			p.Provenance.Provider, p.Provenance.Model = "gemini", "gemini-x"
			m.Parts[i] = p
		case ninelives.ToolCall:
			if p.Signature != "" {
				p.Provenance.Provider, p.Provenance.Model = "gemini", "gemini-x"
				m.Parts[i] = p
			}
		}
	}
	r := &ninelives.Response{
		ID: "r1", Model: "gemini-x-001", Message: m, Candidate: "gemini/gemini-x", Finish: ninelives.FinishStop, FinishRaw: "STOP",
		Extra:       genExtra(t, "top"),
		ChoiceExtra: extra(`{"safetyRatings":[ { "x":1.0}]}`),
	}
	if len(m.ToolCalls()) > 0 {
		r.Finish = ninelives.FinishToolCalls
	}
	if rapid.Bool().Draw(t, "created") {
		r.Created = time.Date(2026, 5, 27, 16, 53, 45, 443719000, time.UTC)
		r.Extra = extra(`{"createTime":"2026-05-27T16:53:45.443719Z"}`)
	}
	if rapid.Bool().Draw(t, "usage") {
		r.Usage = ninelives.Usage{Input: 9, Output: 7, Reasoning: 3, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageReasoning, OutputExcludesReasoning: true,
			Extra: extra(`{"promptTokenCount":9, "candidatesTokenCount":7,"thoughtsTokenCount":3,"trafficType":"ON_DEMAND"}`)}
	}
	if rapid.Bool().Draw(t, "choices") {
		r.Choices = []ninelives.Choice{{Message: ninelives.AssistantText("Other."), Finish: ninelives.FinishLength, FinishRaw: "MAX_TOKENS", Extra: extra(`{"tokenCount" : 2}`)}}
	}
	return r
}

func TestResponseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genResponse(t)
		body := gemini.EncodeResponse(want)
		got, err := gemini.DecodeResponse(body, options)
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n%s", body, difference(got, want))
		}
	})
}

func TestResponseFromElsewhere(t *testing.T) {
	r := &ninelives.Response{
		ID: "resp_1", Model: "gpt-x", Finish: ninelives.FinishToolCalls, FinishRaw: "completed", Created: time.Unix(1767225600, 0),
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "Hm.", Summary: true, Provenance: ninelives.Provenance{Field: "summary", Blob: "b"}},
			ninelives.Text{Text: "I look.", Citations: []ninelives.Citation{{URL: "https://example.org", Title: "T"}}},
			ninelives.ToolCall{ID: "c1", Name: "look", Arguments: `{"q":1}`},
		}},
		Usage: ninelives.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached | ninelives.UsageReasoning, InputExcludesCached: true},
	}
	want := `{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true},{"text":"I look."},{"functionCall":{"id":"c1","name":"look","args":{"q":1}}}],"role":"model"},"finishReason":"STOP","index":0,` +
		`"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://example.org","title":"T"}}]}}],` +
		`"usageMetadata":{"promptTokenCount":14,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":19},"modelVersion":"gpt-x","responseId":"resp_1","createTime":"2026-01-01T00:00:00Z"}`
	if got := string(gemini.EncodeResponse(r)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	back, err := gemini.DecodeResponse([]byte(want), options)
	if err != nil {
		t.Fatal(err)
	}
	if c := back.Message.Parts[1].(ninelives.Text).Citations; len(c) != 1 || c[0].URL != "https://example.org" || c[0].Title != "T" {
		t.Errorf("citations %s", show(c))
	}

	// A call that is cut has no form here, and is not made up.
	r.Finish, r.Message.Parts[2] = ninelives.FinishLength, ninelives.ToolCall{ID: "c1", Name: "look", Arguments: `{"q":`}
	if got := string(gemini.EncodeResponse(r)); !strings.Contains(got, `"finishReason":"MALFORMED_FUNCTION_CALL"`) || strings.Contains(got, "functionCall") {
		t.Errorf("%s", got)
	}
}

func TestFinish(t *testing.T) {
	answer := func(parts, rest string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + rest + `}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":30,"thoughtsTokenCount":20}}`
	}
	text, call := `{"text":"Hi"}`, `{"functionCall":{"name":"look","args":{}}}`
	tests := []struct {
		name, body string
		max        int
		finish     ninelives.FinishReason
		raw        string
	}{
		{"a text", answer(text, `,"finishReason":"STOP"`), 0, ninelives.FinishStop, "STOP"},
		{"a call", answer(text+","+call, `,"finishReason":"STOP"`), 0, ninelives.FinishToolCalls, "STOP"},
		{"the limit", answer(text, `,"finishReason":"MAX_TOKENS"`), 0, ninelives.FinishLength, "MAX_TOKENS"},
		{"the limit, not said", answer(text, `,"finishReason":"STOP"`), 50, ninelives.FinishLength, "STOP"},
		{"below the limit", answer(text, `,"finishReason":"STOP"`), 51, ninelives.FinishStop, "STOP"},
		{"a filter", answer("", `,"finishReason":"SAFETY"`), 0, ninelives.FinishContentFilter, "SAFETY"},
		{"a filter after text", answer(text, `,"finishReason":"RECITATION"`), 0, ninelives.FinishContentFilter, "RECITATION"},
		{"a call that went wrong", answer("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: look("`), 0, ninelives.FinishMalformedCall, "MALFORMED_FUNCTION_CALL"},
		{"a new reason", answer(text, `,"finishReason":"SUNSET"`), 0, ninelives.FinishOther, "SUNSET"},
		{"no reason", answer(text, ``), 0, "", ""},
		{"a blocked prompt", `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{}}`, 0, ninelives.FinishContentFilter, ""},
		{"a content without parts", `{"candidates":[{"content":{},"finishReason":"PROHIBITED_CONTENT"}]}`, 0, ninelives.FinishContentFilter, "PROHIBITED_CONTENT"},
		{"no candidates", `{"candidates":[]}`, 0, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options
			o.MaxTokens = tt.max
			r, err := gemini.DecodeResponse([]byte(tt.body), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Finish != tt.finish || r.FinishRaw != tt.raw {
				t.Errorf("finish %q (%q), want %q (%q)", r.Finish, r.FinishRaw, tt.finish, tt.raw)
			}
		})
	}
}

func TestWhatWentWrongIsTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: look("}]}`: "Malformed function call: look(",
		`{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"The prompt violated the filters."}}`:     "MODEL_ARMOR: The prompt violated the filters.",
	} {
		r, err := gemini.DecodeResponse([]byte(body), options)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], want) {
			t.Errorf("warnings %q, want %q", r.Warnings, want)
		}
	}
	r, err := gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look"}}]},"finishReason":"STOP","finishMessage":"Model generated function call(s)."}]}`), options)
	if err != nil || len(r.Warnings) != 0 {
		t.Errorf("a good answer warns: %v %v", r, err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	tests := []struct {
		name, body string
		class      ninelives.Class
	}{
		{"overloaded", `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, ninelives.ClassOverloaded},
		{"a bad key", `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, ninelives.ClassAuth},
		{"in an array", `[{"error":{"code":429,"message":"Quota exceeded for requests per minute","status":"RESOURCE_EXHAUSTED"}}]`, ninelives.ClassRateLimit},
		{"an empty array", `[]`, ninelives.ClassEmpty},
		{"an array that does not end", `[{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}]`, ninelives.ClassStreamBroken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := gemini.DecodeResponse([]byte(tt.body), options)
			var fault *ninelives.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("no Fault: %v", err)
			}
			if fault.Class != tt.class || fault.Message == "" {
				t.Errorf("class %s, want %s: %v", fault.Class, tt.class, fault)
			}
		})
	}
	for _, body := range []string{"", "<html>login</html>", `{"candidates":`, `7`} {
		_, err := gemini.DecodeResponse([]byte(body), options)
		var fault *ninelives.Fault
		if !errors.As(err, &fault) {
			t.Errorf("%q: no Fault: %v", body, err)
		}
	}
}

func TestPartsAsServersWriteThem(t *testing.T) {
	own := func(field, signature, blob string) ninelives.Provenance {
		return ninelives.Provenance{Provider: "gemini", Model: "gemini-x", Field: field, Signature: signature, Blob: blob}
	}
	tests := []struct {
		name, parts string
		want        []ninelives.Part
	}{
		{
			"a thought and its proof", `{"text":"Hm.","thought":true,"thoughtSignature":"s"}`,
			[]ninelives.Part{ninelives.Reasoning{Text: "Hm.", Summary: true, Provenance: own("thought", "s", "")}},
		},
		{
			"a proof with a text", `{"text":"Hi","thoughtSignature":"s"}`,
			[]ninelives.Part{ninelives.Reasoning{Redacted: true, Provenance: own("thoughtSignature", "", "s")}, ninelives.Text{Text: "Hi"}},
		},
		{
			"a proof with a picture", `{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"s"}`,
			[]ninelives.Part{ninelives.Reasoning{Redacted: true, Provenance: own("thoughtSignature", "", "s")}, ninelives.Image{MediaType: "image/png", Data: []byte{0, 0, 0}}},
		},
		{
			"a proof of nothing", `{"text":"","thoughtSignature":"s"}`,
			[]ninelives.Part{ninelives.Reasoning{Redacted: true, Provenance: own("thoughtSignature", "", "s"), Meta: meta(`{"text":""}`)}},
		},
		{
			"a call with its proof and id", `{"functionCall":{"name":"look","args":{"q": 1},"id":"abc"},"thoughtSignature":"s"}`,
			[]ninelives.Part{ninelives.ToolCall{ID: "abc", Name: "look", Arguments: `{"q": 1}`, Signature: "s", Provenance: own("thoughtSignature", "", ""), Meta: meta(`{"functionCall":{}}`)}},
		},
		{
			"a call without an id or arguments", `{"functionCall":{"name":"look"}}`,
			[]ninelives.Part{ninelives.ToolCall{ID: wire.MadeID("r1", 0, "look", "{}"), Name: "look", Arguments: `{}`}},
		},
		{
			"code and what came of it", `{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`,
			[]ninelives.Part{ninelives.Opaque{Kind: "executableCode", Raw: extra(`{"executableCode":{"language":"PYTHON","code":"1"}}`)}, ninelives.Opaque{Kind: "codeExecutionResult", Raw: extra(`{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`)}},
		},
		{"an empty text", `{"text":""}`, nil},
		{"a blob that is no base64", `{"inlineData":{"mimeType":"image/png","data":"!"}}`, []ninelives.Part{ninelives.Opaque{Kind: "inlineData", Raw: extra(`{"inlineData":{"mimeType":"image/png","data":"!"}}`)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := gemini.DecodeResponse([]byte(`{"responseId":"r1","candidates":[{"content":{"parts":[`+tt.parts+`]},"finishReason":"STOP"}]}`), options)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Message.Parts, tt.want) {
				t.Errorf("\n got %s\nwant %s", show(r.Message.Parts), show(tt.want))
			}
		})
	}
}

func TestToolsGoByTheCallersNames(t *testing.T) {
	o := options
	o.Names, o.OutputTool = map[string]string{"a_b": "a.b"}, "answer"
	r, err := gemini.DecodeResponse([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a_b"}},{"functionCall":{"name":"answer","args":{"n":1}}}]},"finishReason":"STOP"}]}`), o)
	if err != nil {
		t.Fatal(err)
	}
	if calls := r.Message.ToolCalls(); len(calls) != 1 || calls[0].Name != "a.b" || r.Text() != `{"n":1}` {
		t.Errorf("%s", show(r.Message))
	}
}

func TestSourcesAndLogprobsAreHandedOn(t *testing.T) {
	body := `{"candidates":[{"content":{"parts":[{"text":"A"}]},"finishReason":"STOP","citationMetadata":{"citationSources":[{"startIndex":0,"uri":"https://a.example"}]},` +
		`"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://b.example","title":"B"}}]},"logprobsResult":{"chosenCandidates":[{"token":"A","logProbability":-0.10}]}}]}`
	r, err := gemini.DecodeResponse([]byte(body), options)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Message.Parts[0].(ninelives.Text).Citations {
		got = append(got, fmt.Sprintf("%s %s %s", c.URL, c.Title, c.Raw.JSON))
	}
	want := []string{`https://a.example  {"startIndex":0,"uri":"https://a.example"}`, `https://b.example B {"web":{"uri":"https://b.example","title":"B"}}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if string(r.Logprobs.JSON) != `{"chosenCandidates":[{"token":"A","logProbability":-0.10}]}` {
		t.Errorf("logprobs %s", r.Logprobs.JSON)
	}
}

func TestARefusalWithoutWordsIsNoGoodEnd(t *testing.T) {
	r := &ninelives.Response{Message: ninelives.AssistantText("Well, "), Finish: ninelives.FinishRefusal}
	if body := gemini.EncodeResponse(r); !strings.Contains(string(body), `"finishReason":"SAFETY"`) {
		t.Errorf("a refusal after half a sentence: %s", body)
	}
	r.Message.Parts = []ninelives.Part{ninelives.Refusal{Text: "I cannot."}}
	if body := gemini.EncodeResponse(r); !strings.Contains(string(body), `"finishReason":"STOP"`) {
		t.Errorf("a refusal in words: %s", body)
	}
}
