package openai_test

import (
	"encoding/json"
	"fmt"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// Generators of requests and answers in the form in which the chat wire gives
// them back: what the protocol has two spellings for is in the one that is
// read.

func chatTarget() wire.Target {
	return wire.Target{
		Candidate: ninelives.Candidate{
			Provider: "p", Model: "m", Protocol: ninelives.OpenAIChat,
			Capabilities: ninelives.Capabilities{Tools: true, Images: true, Files: true, Prefill: true, Schema: ninelives.SchemaNative},
		},
		Dialect: wire.Dialect{CacheControl: true, ToolImages: true, DeveloperRole: true},
	}
}

// genText is text of any kind, with what JSON has to escape.
func genText() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("ab \"\\\n\t<>&{}é你🌍\u2028")), 1, 12, -1)
}

// genExtra is the unknown members of an object.
func genExtra() *rapid.Generator[ninelives.Extra] {
	return rapid.Custom(func(t *rapid.T) ninelives.Extra {
		if rapid.IntRange(0, 2).Draw(t, "extra") > 0 {
			return ninelives.Extra{}
		}
		raw := []byte("{")
		for i := range rapid.IntRange(1, 3).Draw(t, "members") {
			if i > 0 {
				raw = append(raw, ',')
			}
			value := rapid.SampledFrom([]string{`1.50`, `"é"`, `[ 1, {"b" :null} ]`, `{"deep":{"er":[]}}`, `true`, `-0`, `1e400`}).Draw(t, "value")
			raw = fmt.Appendf(raw, `"x_%d" : %s`, i, value)
		}
		return ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: append(raw, '}')}
	})
}

func genCache(t *rapid.T) *ninelives.CacheHint {
	return rapid.SampledFrom([]*ninelives.CacheHint{nil, nil, {}, {TTL: "1h"}}).Draw(t, "cache")
}

func genMeta(t *rapid.T) ninelives.Meta {
	return ninelives.Meta{Cache: genCache(t), Extra: genExtra().Draw(t, "meta")}
}

func genPart(t *rapid.T) ninelives.Part {
	data := rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "data")
	switch rapid.IntRange(0, 7).Draw(t, "part") {
	case 0:
		return ninelives.Image{URL: "https://example.com/" + genText().Draw(t, "url"), Detail: rapid.SampledFrom([]string{"", "low"}).Draw(t, "detail"), Meta: genMeta(t)}
	case 1:
		return ninelives.Image{MediaType: "image/png", Data: data, Meta: genMeta(t)}
	case 2:
		return ninelives.File{Name: "a.pdf", MediaType: "application/pdf", Data: data, Meta: genMeta(t)}
	case 3:
		return ninelives.File{FileID: "file-1", Meta: genMeta(t)}
	case 4:
		return ninelives.File{MediaType: "audio/wav", Data: data, Meta: genMeta(t)}
	case 5:
		raw := []byte(`{"type":"video_url", "video_url":{"url":"https://example.com/v"}}`)
		return ninelives.Opaque{Kind: "video_url", Raw: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: raw}}
	}
	return ninelives.Text{Text: genText().Draw(t, "text"), Meta: genMeta(t)}
}

func genParts(t *rapid.T, least int) []ninelives.Part {
	var parts []ninelives.Part
	for range rapid.IntRange(least, 3).Draw(t, "parts") {
		parts = append(parts, genPart(t))
	}
	return parts
}

func genArguments(t *rapid.T) string {
	b, _ := json.Marshal(map[string]string{"q": genText().Draw(t, "argument")})
	return string(b)
}

func genCall(t *rapid.T, id string) ninelives.ToolCall {
	c := ninelives.ToolCall{ID: id, Name: rapid.SampledFrom([]string{"get_weather", "rm.rf"}).Draw(t, "name"), Arguments: genArguments(t)}
	if rapid.Bool().Draw(t, "signed") {
		c.Signature, c.Provenance.Field = "sig+/=", "extra_content.google.thought_signature"
	}
	if rapid.Bool().Draw(t, "function extra") {
		c.Extra = ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"x_a":[ 1 ],"function":{"x_b" : 2}}`)}
	}
	return c
}

// genReasoning is a piece of reasoning of whoever.
func genReasoning(t *rapid.T, who ninelives.Provenance) ninelives.Reasoning {
	r := ninelives.Reasoning{Text: genText().Draw(t, "reasoning"), Provenance: who}
	switch rapid.IntRange(0, 3).Draw(t, "reasoning field") {
	case 0:
		r.Provenance.Field = "reasoning_content"
	case 1:
		r.Provenance.Field = "reasoning"
	case 2:
		text, _ := json.Marshal(r.Text)
		r.Provenance.Field = "reasoning_details"
		r.Provenance.Blob = fmt.Sprintf(`[{"type":"reasoning.text", "text":%s,"signature":"s","index":0}]`, text)
	default:
		r.Provenance.Field, r.Provenance.Blob = "reasoning_details", `[{"type":"reasoning.encrypted","data":"ZW5j","format":"x" }]`
		r.Text, r.Redacted = "", true
	}
	return r
}

// genAnswer is an assistant's message with n calls.
func genAnswer(t *rapid.T, n int, prefix string, who ninelives.Provenance) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleAssistant, Extra: genExtra().Draw(t, "message extra")}
	if rapid.Bool().Draw(t, "thinks") {
		m.Parts = append(m.Parts, genReasoning(t, who))
	}
	switch {
	case n == 0 && rapid.IntRange(0, 5).Draw(t, "refuses") == 0:
		m.Parts = append(m.Parts, ninelives.Refusal{Text: genText().Draw(t, "refusal")})
	case n == 0 || rapid.Bool().Draw(t, "talks"):
		m.Parts = append(m.Parts, ninelives.Text{Text: "x" + genText().Draw(t, "text") + "x"})
	}
	for i := range n {
		m.Parts = append(m.Parts, genCall(t, fmt.Sprintf("%s%d", prefix, i)))
	}
	return m
}

func genRequest() *rapid.Generator[*ninelives.Request] {
	return rapid.Custom(func(t *rapid.T) *ninelives.Request {
		r := &ninelives.Request{Model: "m"}
		for range rapid.IntRange(0, 2).Draw(t, "instructions") {
			role := rapid.SampledFrom([]ninelives.Role{ninelives.RoleSystem, ninelives.RoleDeveloper}).Draw(t, "role")
			r.Messages = append(r.Messages, ninelives.Message{Role: role, Parts: []ninelives.Part{ninelives.Text{Text: genText().Draw(t, "text"), Meta: genMeta(t)}}})
		}
		for turn := range rapid.IntRange(0, 2).Draw(t, "turns") {
			r.Messages = append(r.Messages, genUser(t))
			calls := rapid.IntRange(0, 2).Draw(t, "calls")
			answer := genAnswer(t, calls, fmt.Sprintf("call_%d_", turn), ninelives.Provenance{})
			r.Messages = append(r.Messages, answer)
			if calls == 0 {
				continue
			}
			results := ninelives.Message{Role: ninelives.RoleTool}
			for _, c := range answer.ToolCalls() {
				results.Parts = append(results.Parts, ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: genParts(t, 1), Meta: ninelives.Meta{Extra: genExtra().Draw(t, "result extra")}})
			}
			r.Messages = append(r.Messages, results)
		}
		r.Messages = append(r.Messages, genUser(t))
		genTools(t, r)
		genOptions(t, r)
		return r
	})
}

func genUser(t *rapid.T) ninelives.Message {
	return ninelives.Message{
		Role: ninelives.RoleUser, Parts: genParts(t, 1),
		Name: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "participant"), Extra: genExtra().Draw(t, "message extra"),
	}
}

func genTools(t *rapid.T, r *ninelives.Request) {
	if rapid.Bool().Draw(t, "no tools") {
		return
	}
	r.Tools = []ninelives.Tool{
		{Name: "get_weather", Description: genText().Draw(t, "description"), Schema: []byte(`{"type":"object", "properties":{}}`), Strict: rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)}).Draw(t, "strict")},
		{Name: "rm.rf", Meta: ninelives.Meta{Cache: genCache(t), Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"x": 1,"function":{"y":2}}`)}}},
		{Kind: "web_search", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"type":"web_search", "size":"low"}`)}}},
	}
	r.ToolChoice = rapid.SampledFrom([]ninelives.ToolChoice{
		{}, {Mode: ninelives.ToolChoiceAuto}, {Mode: ninelives.ToolChoiceNone}, {Mode: ninelives.ToolChoiceRequired},
		{Mode: ninelives.ToolChoiceTool, Name: "rm.rf"},
		{Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"type":"allowed_tools", "allowed_tools":{"mode":"auto"}}`)}},
	}).Draw(t, "choice")
	r.ParallelTools = rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)}).Draw(t, "parallel")
}

func genOptions(t *rapid.T, r *ninelives.Request) {
	r.MaxTokens = rapid.SampledFrom([]int{0, 100}).Draw(t, "limit")
	r.Temperature = rapid.SampledFrom([]*float64{nil, ptr(0.0), ptr(0.7)}).Draw(t, "temperature")
	r.TopP = rapid.SampledFrom([]*float64{nil, ptr(1.0)}).Draw(t, "top_p")
	r.TopK = rapid.SampledFrom([]*int{nil, ptr(40)}).Draw(t, "top_k")
	r.Seed = rapid.SampledFrom([]*int64{nil, ptr(int64(-1)), ptr(int64(1) << 60)}).Draw(t, "seed")
	r.Stop = rapid.SampledFrom([][]string{nil, {"\n"}, {"a", "é"}}).Draw(t, "stop")
	r.FrequencyPenalty = rapid.SampledFrom([]*float64{nil, ptr(-0.5)}).Draw(t, "frequency")
	r.PresencePenalty = rapid.SampledFrom([]*float64{nil, ptr(1e-3)}).Draw(t, "presence")
	r.N = rapid.SampledFrom([]int{0, 3}).Draw(t, "n")
	r.Logprobs = rapid.Bool().Draw(t, "logprobs")
	r.TopLogprobs = rapid.SampledFrom([]int{0, 5}).Draw(t, "top_logprobs")
	r.Reasoning.Effort = rapid.SampledFrom([]string{"", "none", "high"}).Draw(t, "effort")
	r.Output = rapid.SampledFrom([]*ninelives.Output{nil, nil,
		{Name: "o", Description: "d", Schema: []byte(`{"type":"object" }`), Strict: ptr(true)},
		{Name: "o", Schema: []byte(`{}`)},
	}).Draw(t, "output")
	r.CacheKey = rapid.SampledFrom([]string{"", "key"}).Draw(t, "cache key")
	r.User = rapid.SampledFrom([]string{"", "ann"}).Draw(t, "user")
	r.Metadata = rapid.SampledFrom([]map[string]string{nil, {"a": "b", "c": ""}}).Draw(t, "metadata")
	r.Extra = genExtra().Draw(t, "extra")
}

func ptr[T any](v T) *T { return &v }

// genResponse is a finished answer of p/m.
func genResponse() *rapid.Generator[*ninelives.Response] {
	return rapid.Custom(func(t *rapid.T) *ninelives.Response {
		r := &ninelives.Response{
			ID: rapid.SampledFrom([]string{"", "chatcmpl-1"}).Draw(t, "id"), Model: rapid.SampledFrom([]string{"", "m-1"}).Draw(t, "model"),
			Extra: genExtra().Draw(t, "extra"), ChoiceExtra: genExtra().Draw(t, "choice extra"), Logprobs: genLogprobs(t),
		}
		if rapid.Bool().Draw(t, "created") {
			r.Created = time.Unix(1760000000, 0).UTC()
		}
		r.Message, r.Finish, r.FinishRaw = genChoice(t)
		for range rapid.IntRange(0, 1).Draw(t, "further choices") {
			m, finish, raw := genChoice(t)
			r.Choices = append(r.Choices, ninelives.Choice{Message: m, Finish: finish, FinishRaw: raw, Extra: genExtra().Draw(t, "choice extra"), Logprobs: genLogprobs(t)})
		}
		r.Usage = rapid.SampledFrom([]ninelives.Usage{{}, {
			Input: 12, Output: 5, Cached: 4, Reasoning: 0,
			Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached | ninelives.UsageReasoning,
			Extra:    ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"prompt_tokens":12,"completion_tokens":5, "prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0},"cost":1e-3}`)},
		}}).Draw(t, "usage")
		return r
	})
}

func genLogprobs(t *rapid.T) ninelives.Extra {
	if rapid.Bool().Draw(t, "no logprobs") {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"content":[{"token":"a","logprob":-0.10}],"refusal":null}`)}
}

func genChoice(t *rapid.T) (ninelives.Message, ninelives.FinishReason, string) {
	calls := rapid.IntRange(0, 2).Draw(t, "calls")
	who := ninelives.Provenance{Provider: "p", Model: "m"}
	m := genAnswer(t, calls, "call_", who)
	for i, part := range m.Parts {
		switch p := part.(type) {
		case ninelives.ToolCall:
			if p.Signature != "" {
				p.Provenance.Provider, p.Provenance.Model = who.Provider, who.Model
				m.Parts[i] = p
			}
		case ninelives.Text:
			if rapid.Bool().Draw(t, "cites") {
				p.Citations = []ninelives.Citation{{URL: "https://example.com", Title: "t", Raw: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"type":"url_citation", "url_citation":{"url":"https://example.com","title":"t","start_index":0}}`)}}}
				m.Parts[i] = p
			}
		}
	}
	finish := rapid.SampledFrom([]ninelives.FinishReason{ninelives.FinishStop, ninelives.FinishLength, ninelives.FinishContentFilter}).Draw(t, "finish")
	switch {
	case m.Refusal() != "":
		return m, ninelives.FinishRefusal, "stop"
	case calls > 0 && finish == ninelives.FinishStop:
		finish = ninelives.FinishToolCalls
	}
	return m, finish, string(finish)
}
