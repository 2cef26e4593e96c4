package openai_test

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
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

var responsesOptions = wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: "openai", Model: "gpt-x", Protocol: ninelives.OpenAIResponses}}

// responsesGenResponse draws an answer as a server of this protocol gives it.
func responsesGenResponse(t *rapid.T) *ninelives.Response {
	id := 0
	m := responsesGenTurn(t, &id)[0]
	for i, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.Reasoning:
			p.Provenance.Provider, p.Provenance.Model = "openai", "gpt-x"
			if p.ID == "" {
				p.ID = fmt.Sprintf("rs_x%d", i)
				if _, begins := responsesTestItem(p.Extra); !begins && i > 0 {
					p.ID = m.Parts[i-1].(ninelives.Reasoning).ID
				}
			}
			m.Parts[i] = p
		case ninelives.ToolCall:
			members := fmt.Sprintf(`"id":"fc_%d","status":"completed"`, i)
			if p.Extra.JSON != nil {
				members += "," + string(p.Extra.JSON[1:len(p.Extra.JSON)-1])
			}
			p.Extra = ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte("{" + members + "}")}
			m.Parts[i] = p
		}
	}
	r := &ninelives.Response{
		ID: "resp_1", Model: "gpt-x-2026", Created: time.Unix(1767225600, 0).UTC(), Message: m, Candidate: "openai/gpt-x",
		Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"object":"response","tools" : [ ],"x":1.0}`)},
	}
	switch {
	case len(m.ToolCalls()) > 0:
		r.Finish = ninelives.FinishToolCalls
	case m.Refusal() != "" && m.Text() == "":
		r.Finish = ninelives.FinishRefusal
	default:
		r.Finish = ninelives.FinishStop
	}
	r.FinishRaw = "completed"
	if rapid.Bool().Draw(t, "usage") {
		r.Usage = ninelives.Usage{Input: 9, Output: 7, Reasoning: 3, Cached: 0, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageReasoning | ninelives.UsageCached,
			Extra: ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(`{"input_tokens":9, "input_tokens_details":{"cached_tokens":0},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"cost":0.10}`)}}
	}
	return r
}

func responsesTestItem(e ninelives.Extra) ([]byte, bool) {
	v := rawjson.Get(e.JSON, "item")
	return v, v != nil
}

func TestResponsesResponseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := responsesGenResponse(t)
		body := openai.EncodeResponsesResponse(want)
		got, err := openai.DecodeResponsesResponse(body, responsesOptions)
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %s\nwant %s", body, showResponses(got), showResponses(want))
		}
	})
}

// An answer that another protocol gave is one that clients of this protocol
// understand: every item has an id and a status.
func TestResponsesResponseFromElsewhere(t *testing.T) {
	r := &ninelives.Response{
		ID: "msg_01", Model: "claude", Finish: ninelives.FinishToolCalls, FinishRaw: "tool_use",
		Message: ninelives.Message{Role: ninelives.RoleAssistant, ID: "msg_01", Parts: []ninelives.Part{
			ninelives.Reasoning{Text: "Hm.", Provenance: ninelives.Provenance{Provider: "anthropic", Field: "thinking", Signature: "s"}},
			ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: "anthropic", Field: "redacted_thinking", Blob: "b"}},
			ninelives.Text{Text: "I look.", Citations: []ninelives.Citation{{URL: "https://example.org", Title: "T"}}},
			ninelives.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"q":1}`},
		}},
		Usage: ninelives.Usage{Input: 10, Cached: 4, Output: 5, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached, InputExcludesCached: true},
	}
	thought, hidden := wire.Mark(r.Message.Parts[0].(ninelives.Reasoning)), wire.Mark(r.Message.Parts[1].(ninelives.Reasoning))
	want := `{"id":"msg_01","object":"response","created_at":0,"status":"completed","model":"claude","incomplete_details":null,` +
		`"error":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"output":[` +
		`{"type":"reasoning","id":"rs_9l_msg_01_0","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"` + thought + `"},` +
		`{"type":"reasoning","id":"rs_9l_msg_01_1","summary":[],"encrypted_content":"` + hidden + `"},` +
		`{"type":"message","id":"msg_9l_msg_01_2","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[{"type":"url_citation","url":"https://example.org","title":"T","start_index":0,"end_index":7}]}],"status":"completed"},` +
		`{"type":"function_call","id":"fc_9l_msg_01_3","call_id":"toolu_1","name":"look","arguments":"{\"q\":1}","status":"completed"}],` +
		`"usage":{"input_tokens":14,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":19}}`
	if got := string(openai.EncodeResponsesResponse(r)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}

	r.Finish, r.FinishRaw = ninelives.FinishLength, "max_tokens"
	r.Message.Parts[3] = ninelives.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"q":`}
	got := string(openai.EncodeResponsesResponse(r))
	for _, piece := range []string{`"status":"incomplete","model"`, `"incomplete_details":{"reason":"max_output_tokens"}`, `"arguments":"{\"q\":","status":"incomplete"`} {
		if !strings.Contains(got, piece) {
			t.Errorf("a cut answer lacks %s: %s", piece, got)
		}
	}
}

func TestResponsesFinish(t *testing.T) {
	text := `{"type":"message","content":[{"type":"output_text","text":"Hi"}]}`
	call := `{"type":"function_call","call_id":"c","name":"look","arguments":"{}"}`
	refusal := `{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`
	tests := []struct {
		name, body string
		max        int
		finish     ninelives.FinishReason
		raw        string
	}{
		{"a text", `{"status":"completed","output":[` + text + `]}`, 0, ninelives.FinishStop, "completed"},
		{"a call after a text", `{"status":"completed","output":[` + text + `,` + call + `]}`, 0, ninelives.FinishToolCalls, "completed"},
		{"nothing but a refusal", `{"status":"completed","output":[` + refusal + `]}`, 0, ninelives.FinishRefusal, "completed"},
		{"a refusal after a text", `{"status":"completed","output":[` + text + `,` + refusal + `]}`, 0, ninelives.FinishStop, "completed"},
		{"the limit", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + text + `]}`, 0, ninelives.FinishLength, "max_output_tokens"},
		{"the limit, not said", `{"status":"completed","output":[` + call + `],"usage":{"output_tokens":50}}`, 50, ninelives.FinishLength, "completed"},
		{"below the limit", `{"status":"completed","output":[` + call + `],"usage":{"output_tokens":49}}`, 50, ninelives.FinishToolCalls, "completed"},
		{"the filter", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`, 0, ninelives.FinishContentFilter, "content_filter"},
		{"a new reason", `{"status":"incomplete","incomplete_details":{"reason":"sunset"},"output":[` + text + `]}`, 0, ninelives.FinishOther, "sunset"},
		{"incomplete without a reason", `{"status":"incomplete","incomplete_details":null,"output":[` + text + `]}`, 0, ninelives.FinishOther, "incomplete"},
		{"no status", `{"output":[` + text + `]}`, 0, ninelives.FinishStop, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := responsesOptions
			o.MaxTokens = tt.max
			r, err := openai.DecodeResponsesResponse([]byte(tt.body), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Finish != tt.finish || r.FinishRaw != tt.raw {
				t.Errorf("finish %q (%q), want %q (%q)", r.Finish, r.FinishRaw, tt.finish, tt.raw)
			}
		})
	}
}

func TestResponsesAnswersThatAreNone(t *testing.T) {
	tests := []struct {
		name, body string
		class      ninelives.Class
	}{
		{"failed", `{"status":"failed","error":{"code":"server_is_overloaded","message":"Overloaded"},"output":[]}`, ninelives.ClassOverloaded},
		{"failed for lack of credit", `{"status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota"},"output":[]}`, ninelives.ClassBilling},
		{"failed without a word", `{"status":"failed","error":null,"output":[]}`, ninelives.ClassUnknown},
		{"an error in a 200", `{"error":{"message":"No such model","code":"model_not_found"}}`, ninelives.ClassModelNotFound},
		{"an error that is a string", `{"code":"invalid-argument","error":"Incorrect API key provided."}`, ninelives.ClassAuth},
		{"still at work", `{"status":"in_progress","output":[]}`, ninelives.ClassFormat},
		{"queued", `{"status":"queued","output":[]}`, ninelives.ClassFormat},
		{"cancelled", `{"status":"cancelled","output":[]}`, ninelives.ClassUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openai.DecodeResponsesResponse([]byte(tt.body), responsesOptions)
			var fault *ninelives.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("no Fault: %v", err)
			}
			if fault.Class != tt.class || fault.Message == "" {
				t.Errorf("class %s, want %s: %v", fault.Class, tt.class, fault)
			}
		})
	}
	for _, body := range []string{"", "<html>login</html>", `{"status":`, `[1]`} {
		_, err := openai.DecodeResponsesResponse([]byte(body), responsesOptions)
		var fault *ninelives.Fault
		if !errors.As(err, &fault) {
			t.Errorf("%q: no Fault: %v", body, err)
		}
	}
}

// An answer in another protocol's form is not taken for a good empty one in silence.
func TestResponsesAnswerOfAnotherProtocol(t *testing.T) {
	r, err := openai.DecodeResponsesResponse([]byte(`{"id":"x","object":"chat.completion","choices":[{"message":{"content":"Hi"}}]}`), responsesOptions)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Message.Parts) != 0 || len(r.Warnings) != 1 {
		t.Errorf("parts %s, warnings %q", showResponses(r.Message.Parts), r.Warnings)
	}
}

func TestResponsesItemsAsServersWriteThem(t *testing.T) {
	own := ninelives.Provenance{Provider: "openai", Model: "gpt-x"}
	with := func(field, blob string) ninelives.Provenance {
		p := own
		p.Field, p.Blob = field, blob
		return p
	}
	raw := func(s string) ninelives.Extra {
		return ninelives.Extra{Protocol: ninelives.OpenAIResponses, JSON: []byte(s)}
	}
	meta := func(s string) ninelives.Meta { return ninelives.Meta{Extra: raw(s)} }
	tests := []struct {
		name, item string
		id         string
		parts      []ninelives.Part
	}{
		{
			"the members of an item ride on its first part",
			`{"id":"msg_1","type":"message","phase":"final_answer","content":[{"type":"output_text","text":"A","logprobs":[]},{"type":"output_text","text":"B"}],"role":"assistant"}`, "msg_1",
			[]ninelives.Part{ninelives.Text{Text: "A", Meta: meta(`{"logprobs":[],"item":{"phase":"final_answer"}}`)}, ninelives.Text{Text: "B"}},
		},
		{
			"an empty message is still an item",
			`{"id":"msg_1","type":"message","content":[],"role":"assistant"}`, "msg_1",
			[]ninelives.Part{ninelives.Text{Meta: meta(`{"item":{"content":[]}}`)}},
		},
		{
			"reasoning that cannot be read",
			`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`, "",
			[]ninelives.Part{ninelives.Reasoning{ID: "rs_1", Redacted: true, Provenance: with("encrypted_content", "gAAA"), Meta: meta(`{"item":{}}`)}},
		},
		{
			"reasoning of which nothing is shown, kept for its id",
			`{"id":"rs_1","type":"reasoning","summary":[]}`, "",
			[]ninelives.Part{ninelives.Reasoning{ID: "rs_1", Provenance: with("encrypted_content", ""), Meta: meta(`{"item":{}}`)}},
		},
		{
			"summaries and content of one item",
			`{"id":"rs_1","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"S","x":1}],"content":[{"type":"reasoning_text","text":"C"}],"encrypted_content":null}`, "",
			[]ninelives.Part{
				ninelives.Reasoning{ID: "rs_1", Text: "S", Summary: true, Provenance: with("summary", ""), Meta: meta(`{"x":1,"item":{"status":"completed"}}`)},
				ninelives.Reasoning{ID: "rs_1", Text: "C", Provenance: with("content", "")},
			},
		},
		{
			"arguments that are an object, and a call without an id of its own",
			`{"id":"fc_1","type":"function_call","name":"look","arguments":{"q":1}}`, "",
			[]ninelives.Part{ninelives.ToolCall{ID: "fc_1", Name: "look", Arguments: `{"q":1}`, Meta: meta(`{"id":"fc_1"}`)}},
		},
		{
			"arguments that are written twice over",
			`{"call_id":"c","type":"function_call","name":"look","arguments":"\"{\\\"q\\\":1}\""}`, "",
			[]ninelives.Part{ninelives.ToolCall{ID: "c", Name: "look", Arguments: `{"q":1}`}},
		},
		{
			"arguments that are nothing",
			`{"call_id":"c","type":"function_call","name":"look","arguments":""}`, "",
			[]ninelives.Part{ninelives.ToolCall{ID: "c", Name: "look", Arguments: `{}`}},
		},
		{
			"arguments that were cut stay cut",
			`{"call_id":"c","type":"function_call","name":"look","arguments":"","status":"incomplete"}`, "",
			[]ninelives.Part{ninelives.ToolCall{ID: "c", Name: "look", Meta: meta(`{"status":"incomplete"}`)}},
		},
		{
			"a file as a source",
			`{"type":"message","content":[{"type":"output_text","text":"A","annotations":[{"type":"file_citation","filename":"a.pdf","index":3}]}]}`, "",
			[]ninelives.Part{ninelives.Text{Text: "A", Citations: []ninelives.Citation{{Title: "a.pdf", Raw: raw(`{"type":"file_citation","filename":"a.pdf","index":3}`)}}, Meta: meta(`{"item":{}}`)}},
		},
		{
			"what the server did by itself",
			`{"id":"ws_1","type":"web_search_call","status":"completed"}`, "",
			[]ninelives.Part{ninelives.Opaque{Kind: "web_search_call", Raw: raw(`{"id":"ws_1","type":"web_search_call","status":"completed"}`)}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := openai.DecodeResponsesResponse([]byte(`{"status":"completed","output":[`+tt.item+`]}`), responsesOptions)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Message.Parts, tt.parts) || r.Message.ID != tt.id {
				t.Errorf("\n got %s %s\nwant %s %s", r.Message.ID, showResponses(r.Message.Parts), tt.id, showResponses(tt.parts))
			}
		})
	}
}

func TestResponsesToolsGoByTheCallersNames(t *testing.T) {
	o := responsesOptions
	o.Names, o.OutputTool = map[string]string{"a_b": "a.b"}, "answer"
	body := `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"a_b","arguments":"{}"},{"type":"function_call","call_id":"d","name":"answer","arguments":"{\"n\":1}"}]}`
	r, err := openai.DecodeResponsesResponse([]byte(body), o)
	if err != nil {
		t.Fatal(err)
	}
	if calls := r.Message.ToolCalls(); len(calls) != 1 || calls[0].Name != "a.b" || r.Text() != `{"n":1}` {
		t.Errorf("%s", showResponses(r.Message))
	}
}

func TestResponsesLogprobsAreHandedOn(t *testing.T) {
	body := `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"A","logprobs":[{"token":"A","logprob":-0.10}]}]}]}`
	r, err := openai.DecodeResponsesResponse([]byte(body), responsesOptions)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Logprobs.For(ninelives.OpenAIResponses)); got != `[{"token":"A","logprob":-0.10}]` {
		t.Errorf("logprobs %s", got)
	}
}

func TestResponsesARefusalWithoutWordsIsNoGoodEnd(t *testing.T) {
	r := &ninelives.Response{Message: ninelives.AssistantText("Well, "), Finish: ninelives.FinishRefusal}
	if body := openai.EncodeResponsesResponse(r); !strings.Contains(string(body), `"status":"incomplete","model":"","incomplete_details":{"reason":"content_filter"}`) {
		t.Errorf("a refusal after half a sentence: %s", body)
	}
	r.Message.Parts = []ninelives.Part{ninelives.Refusal{Text: "I cannot."}}
	if body := openai.EncodeResponsesResponse(r); !strings.Contains(string(body), `"status":"completed","model":"","incomplete_details":null`) {
		t.Errorf("a refusal in words: %s", body)
	}
}
