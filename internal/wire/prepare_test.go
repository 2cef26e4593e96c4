package wire_test

import (
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// A target that takes everything: what is left unchanged for it is valid as it is.
// longID begins ids of calls that are longer than any vendor of OpenAI's takes.
var longID = "toolu_" + strings.Repeat("x", 70)

func chatTarget() wire.Target {
	return wire.Target{
		Candidate: ninelives.Candidate{Provider: "acme", Model: "m1", Protocol: ninelives.OpenAIChat,
			Capabilities: ninelives.Capabilities{Tools: true, Images: true, Files: true, Prefill: true}},
		Dialect: wire.Dialect{DeveloperRole: true},
	}
}

func messagesTarget() wire.Target {
	t := chatTarget()
	t.Candidate.Protocol = ninelives.AnthropicMessages
	t.Dialect.DeveloperRole = false
	return t
}

func with(t wire.Target, change func(*wire.Target)) wire.Target {
	change(&t)
	return t
}

func history(messages ...ninelives.Message) *ninelives.Request {
	return &ninelives.Request{Messages: messages}
}

func user(parts ...ninelives.Part) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleUser, Parts: parts}
}

func assistant(parts ...ninelives.Part) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}
}

func tool(parts ...ninelives.Part) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleTool, Parts: parts}
}

func text(s string) ninelives.Part { return ninelives.Text{Text: s} }

func call(id, name, args string) ninelives.ToolCall {
	return ninelives.ToolCall{ID: id, Name: name, Arguments: args}
}

func result(id, name, s string) ninelives.ToolResult {
	return ninelives.ToolResult{CallID: id, Name: name, Content: []ninelives.Part{text(s)}}
}

// interrupted is the result that stands for one that was never seen.
func interrupted(id, name string) ninelives.ToolResult {
	r := result(id, name, "[No result: the call was interrupted. It may or may not have taken effect; check before repeating it.]")
	r.IsError = true
	return r
}

func thought(s string) ninelives.Reasoning { return ninelives.Reasoning{Text: s} }

func signed(provider, model, s, sig string) ninelives.Reasoning {
	return ninelives.Reasoning{Text: s, Provenance: ninelives.Provenance{Provider: provider, Model: model, Field: "thinking", Signature: sig}}
}

func opaque(p ninelives.Protocol, kind string) ninelives.Opaque {
	return ninelives.Opaque{Kind: kind, Raw: ninelives.Extra{Protocol: p, JSON: []byte(`{"type":"` + kind + `"}`)}}
}

func TestPrepareRepairsHistories(t *testing.T) {
	hi := user(text("hi"))
	weather := assistant(call("c1", "get_weather", `{"city":"Bergen"}`))
	png := ninelives.Image{MediaType: "image/png", Data: []byte{1}}
	for _, tc := range []struct {
		name   string
		target wire.Target
		in     []ninelives.Message
		want   []ninelives.Message
		note   string // part of a note; empty: no notes at all
	}{
		{
			name: "a whole conversation stays as it is", target: chatTarget(),
			in:   []ninelives.Message{ninelives.SystemText("be brief"), hi, weather, tool(result("c1", "get_weather", "5C")), assistant(text("5C"))},
			want: []ninelives.Message{ninelives.SystemText("be brief"), hi, weather, tool(result("c1", "get_weather", "5C")), assistant(text("5C"))},
		},
		{
			name: "a call without a result is told to be interrupted", target: messagesTarget(),
			in:   []ninelives.Message{hi, weather, user(text("carry on"))},
			want: []ninelives.Message{hi, weather, tool(interrupted("c1", "get_weather")), user(text("carry on"))},
			note: "may or may not have taken effect",
		},
		{
			name: "one of two parallel calls without a result", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(call("c1", "f", "{}"), call("c2", "g", "{}")), tool(result("c2", "g", "ok"))},
			want: []ninelives.Message{hi, assistant(call("c1", "f", "{}"), call("c2", "g", "{}")), tool(result("c2", "g", "ok")), tool(interrupted("c1", "f"))},
			note: "1 tool call(s)",
		},
		{
			name: "a call at the very end", target: chatTarget(),
			in:   []ninelives.Message{hi, weather},
			want: []ninelives.Message{hi, weather, tool(interrupted("c1", "get_weather"))},
			note: "interrupted",
		},
		{
			name: "a result has the name of its call, and the call that of its result where it has none", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(call("c1", "f", "{}"), call("c2", "", "{}")), tool(result("c1", "g", "ok"), result("c2", "h", "ok"))},
			want: []ninelives.Message{hi, assistant(call("c1", "f", "{}"), call("c2", "h", "{}")), tool(result("c1", "f", "ok"), result("c2", "h", "ok"))},
		},
		{
			name:   "for Gemini, two answers of the model in a row are one, also with an instruction between them",
			target: with(chatTarget(), func(t *wire.Target) { t.Candidate.Protocol = ninelives.Gemini }),
			in:     []ninelives.Message{hi, assistant(text("one")), ninelives.SystemText("be brief"), assistant(text("two")), hi, hi},
			want:   []ninelives.Message{ninelives.SystemText("be brief"), hi, assistant(text("one\n\ntwo")), hi, hi},
			note:   "an instruction in the middle of the conversation was sent at its head",
		},
		{
			name: "a result without a call is left out", target: chatTarget(),
			in:   []ninelives.Message{hi, tool(result("c9", "f", "old")), user(text("more"))},
			want: []ninelives.Message{hi, user(text("more"))},
			note: "1 tool result(s) without a call",
		},
		{
			name: "a second result of one call is left out", target: messagesTarget(),
			in:   []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), tool(result("c1", "get_weather", "5C"))},
			want: []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C"))},
			note: "without a call",
		},
		{
			name: "a user message between call and result goes after it", target: messagesTarget(),
			in:   []ninelives.Message{hi, weather, user(text("hurry")), tool(result("c1", "get_weather", "5C"))},
			want: []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), user(text("hurry"))},
			note: "moved",
		},
		{
			name: "a result inside a user message", target: chatTarget(),
			in:   []ninelives.Message{hi, weather, user(result("c1", "", "5C"), text("carry on"))},
			want: []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), user(text("carry on"))},
			note: "moved",
		},
		{
			name: "an id that comes again", target: messagesTarget(),
			in: []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), weather, tool(result("c1", "get_weather", "6C"))},
			want: []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")),
				assistant(call("d0f631ca_dc391038", "get_weather", `{"city":"Bergen"}`)), tool(result("d0f631ca_dc391038", "get_weather", "6C"))},
		},
		{
			name: "calls without ids are answered in order", target: chatTarget(),
			in: []ninelives.Message{hi, assistant(call("", "f", "{}"), call("", "g", "{}")), tool(result("", "g", "2")), tool(result("", "f", "1"))},
			want: []ninelives.Message{hi, assistant(call("call_be30e909d6be6093", "f", "{}"), call("call_be1c9a6b9fc6e66c", "g", "{}")),
				tool(result("call_be1c9a6b9fc6e66c", "g", "2")), tool(result("call_be30e909d6be6093", "f", "1"))},
		},
		{
			name: "an id with characters that Anthropic does not take", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(call("call|1.a", "f", "{}")), tool(result("call|1.a", "f", "ok"))},
			want: []ninelives.Message{hi, assistant(call("call_1_a", "f", "{}")), tool(result("call_1_a", "f", "ok"))},
		},
		{
			name:   "an id of another length than wanted",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.ToolIDExact = 9 }),
			in:     []ninelives.Message{hi, assistant(call("abcdefghi", "f", "{}"), call("c-1", "f", "{}")), tool(result("abcdefghi", "f", "1"), result("c-1", "f", "2"))},
			want:   []ninelives.Message{hi, assistant(call("abcdefghi", "f", "{}"), call("a6f7ef47e", "f", "{}")), tool(result("abcdefghi", "f", "1"), result("a6f7ef47e", "f", "2"))},
		},
		{
			name:   "ids that are too long for OpenAI's chat, alike in all that would be left of them",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect, _ = wire.DialectNamed("openai") }),
			in: []ninelives.Message{hi, assistant(call(longID+"1", "f", "{}"), call(longID+"2", "f", "{}"), call("call_40_"+longID[:32], "f", "{}")),
				tool(result(longID+"2", "f", "2"), result(longID+"1", "f", "1"), result("call_40_"+longID[:32], "f", "3"))},
			want: []ninelives.Message{hi, assistant(call("7d78ff7061f7dcb74d5fd5fec73421481d14e598", "f", "{}"), call("b326dd14e9a31c1a9df84852c0cff1b3fc09459f", "f", "{}"), call("call_40_"+longID[:32], "f", "{}")),
				tool(result("b326dd14e9a31c1a9df84852c0cff1b3fc09459f", "f", "2"), result("7d78ff7061f7dcb74d5fd5fec73421481d14e598", "f", "1"), result("call_40_"+longID[:32], "f", "3"))},
		},
		{
			name:   "an id that is too long for Responses",
			target: with(chatTarget(), func(t *wire.Target) { t.Candidate.Protocol = ninelives.OpenAIResponses }),
			in:     []ninelives.Message{hi, assistant(call(longID[:64], "f", "{}"), call(longID+"1", "f", "{}")), tool(result(longID[:64], "f", "1"), result(longID+"1", "f", "2"))},
			want:   []ninelives.Message{hi, assistant(call(longID[:64], "f", "{}"), call("7d78ff7061f7dcb74d5fd5fec73421481d14e598d74a81dab6d9eeda31084865", "f", "{}")), tool(result(longID[:64], "f", "1"), result("7d78ff7061f7dcb74d5fd5fec73421481d14e598d74a81dab6d9eeda31084865", "f", "2"))},
		},
		{
			name: "arguments that are no JSON are told in the result", target: chatTarget(),
			in: []ninelives.Message{hi, assistant(call("c1", "f", `{"a":`)), tool(result("c1", "f", "bad arguments"))},
			want: []ninelives.Message{hi, assistant(call("c1", "f", "{}")), tool(ninelives.ToolResult{CallID: "c1", Name: "f",
				Content: []ninelives.Part{text(`[The arguments of this call were not a JSON object. As written: {"a":]`), text("bad arguments")}})},
			note: "not a JSON object",
		},
		{
			name: "arguments that are empty, null or wrapped in a string", target: chatTarget(),
			in:   []ninelives.Message{hi, assistant(call("1", "f", ""), call("2", "f", "null"), call("3", "f", `"{\"a\": 1}"`)), tool(result("1", "f", "x"), result("2", "f", "x"), result("3", "f", "x"))},
			want: []ninelives.Message{hi, assistant(call("1", "f", "{}"), call("2", "f", "{}"), call("3", "f", `{"a": 1}`)), tool(result("1", "f", "x"), result("2", "f", "x"), result("3", "f", "x"))},
		},
		{
			name: "empty texts and the messages that they leave empty", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(text("")), assistant(text(" \n")), user(text("more"), text(""))},
			want: []ninelives.Message{hi, user(text("more"))},
			note: "2 empty message(s)",
		},
		{
			name: "an empty text in a result", target: messagesTarget(),
			in:   []ninelives.Message{hi, weather, tool(result("c1", "get_weather", ""))},
			want: []ninelives.Message{hi, weather, tool(ninelives.ToolResult{CallID: "c1", Name: "get_weather", Content: []ninelives.Part{}})},
			note: "empty text",
		},
		{
			name: "white space at the end of a prefill", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(text("The sum is \n"))},
			want: []ninelives.Message{hi, assistant(text("The sum is"))},
		},
		{
			name:   "a prefill where there is none",
			target: with(messagesTarget(), func(t *wire.Target) { t.Dialect.PrefillSet = true }),
			in:     []ninelives.Message{hi, assistant(text("The sum"))},
			want:   []ninelives.Message{hi, assistant(text("The sum")), user(text("Continue your last message exactly where it ends. Do not repeat any of it."))},
			note:   "cannot continue",
		},
		{
			name:   "neighbours of one role",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.MergeRoles = true }),
			in:     []ninelives.Message{ninelives.SystemText("x"), ninelives.SystemText("y"), user(text("a")), user(text("b"), png), user(text("c"))},
			want:   []ninelives.Message{ninelives.SystemText("x\n\ny"), user(text("a\n\nb"), png, text("c"))},
		},
		{
			name:   "neighbours that a dropped message brings together",
			target: with(messagesTarget(), func(t *wire.Target) { t.Dialect.MergeRoles = true }),
			in:     []ninelives.Message{hi, assistant(text("")), user(text("more"))},
			want:   []ninelives.Message{user(text("hi\n\nmore"))},
			note:   "empty",
		},
		{
			name:   "the assistant first",
			target: with(chatTarget(), func(t *wire.Target) { t.Candidate.Protocol = ninelives.Gemini }),
			in:     []ninelives.Message{ninelives.SystemText("x"), assistant(text("Welcome!")), hi},
			want:   []ninelives.Message{ninelives.SystemText("x"), user(text("[The conversation begins with the assistant's message.]")), assistant(text("Welcome!")), hi},
			note:   "begin",
		},
		{
			name:   "the assistant first, where a server of Anthropic's protocol has refused it",
			target: with(messagesTarget(), func(t *wire.Target) { t.Dialect.MergeRoles = true }),
			in:     []ninelives.Message{ninelives.SystemText("x"), assistant(text("Welcome!")), hi},
			want:   []ninelives.Message{ninelives.SystemText("x"), user(text("[The conversation begins with the assistant's message.]")), assistant(text("Welcome!")), hi},
			note:   "begin",
		},
		{
			name:   "user after tool",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.BridgeToolUser = true }),
			in:     []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), user(text("more"))},
			want:   []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C")), assistant(text("Noted.")), user(text("more"))},
			note:   "between",
		},
		{
			name:   "developer where it is not known",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.DeveloperRole = false }),
			in:     []ninelives.Message{{Role: ninelives.RoleDeveloper, Parts: []ninelives.Part{text("x")}}, hi},
			want:   []ninelives.Message{ninelives.SystemText("x"), hi},
		},
		{
			name:   "no system role",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.NoSystemRole = true }),
			in:     []ninelives.Message{ninelives.SystemText("x"), hi, assistant(text("yes")), ninelives.SystemText("now y")},
			want:   []ninelives.Message{user(text("x\n\nhi")), assistant(text("yes")), user(text("now y"))},
			note:   "no system role",
		},
		{
			name: "instructions in the middle, for Anthropic", target: messagesTarget(),
			in:   []ninelives.Message{hi, ninelives.SystemText("x"), user(text("more"))},
			want: []ninelives.Message{ninelives.SystemText("x"), hi, user(text("more"))},
		},
		{
			name:   "images and files where there are none, in results too",
			target: with(chatTarget(), func(t *wire.Target) { t.Candidate.Images, t.Candidate.Files = false, false }),
			in: []ninelives.Message{user(text("what"), png, text("and"), png, ninelives.File{Name: "a.pdf"}), assistant(call("c1", "f", "{}")),
				tool(ninelives.ToolResult{CallID: "c1", Name: "f", Content: []ninelives.Part{png}})},
			want: []ninelives.Message{user(text("what"), text("[2 attached image(s) not sent: this provider only accepts text]"), text("and"),
				text("[attached file not sent: this provider does not accept files] a.pdf")), assistant(call("c1", "f", "{}")),
				tool(result("c1", "f", "[1 attached image(s) not sent: this provider only accepts text]"))},
			note: "3 image(s)",
		},
		{
			name: "images that the assistant made", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(text("Here:"), png), user(text("nice"), png)},
			want: []ninelives.Message{hi, assistant(text("Here:"), text("[1 image(s) that the assistant made here are not sent again]")), user(text("nice"), png)},
			note: "1 image(s)",
		},
		{
			name: "parts of another protocol", target: messagesTarget(),
			in:   []ninelives.Message{hi, assistant(opaque(ninelives.OpenAIResponses, "web_search_call"), opaque(ninelives.AnthropicMessages, "server_tool_use"), text("x"))},
			want: []ninelives.Message{hi, assistant(opaque(ninelives.AnthropicMessages, "server_tool_use"), text("x"))},
			note: "web_search_call",
		},
		{
			name: "results of the protocol's own tools", target: chatTarget(),
			in:   []ninelives.Message{hi, assistant(opaque(ninelives.OpenAIChat, "custom_call"), call("c1", "f", "{}")), tool(opaque(ninelives.OpenAIChat, "custom_result"), result("c1", "f", "x"))},
			want: []ninelives.Message{hi, assistant(opaque(ninelives.OpenAIChat, "custom_call"), call("c1", "f", "{}")), tool(result("c1", "f", "x")), tool(opaque(ninelives.OpenAIChat, "custom_result"))},
		},
		{
			name:   "tools where there are none",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.NoTools = true }),
			in:     []ninelives.Message{hi, weather, tool(result("c1", "get_weather", "5C"))},
			want:   []ninelives.Message{hi, assistant(text(`[Called tool get_weather with {"city":"Bergen"}]`)), user(text("[Result of tool get_weather:]"), text("5C"))},
		},
		{
			name:   "unknown fields that are forbidden",
			target: with(chatTarget(), func(t *wire.Target) { t.Dialect.StripFields = []string{"name", "reasoning_content"} }),
			in: []ninelives.Message{{Role: ninelives.RoleUser, Name: "ann", Parts: []ninelives.Part{text("hi")}},
				assistant(thought("hm"), ninelives.ToolCall{ID: "1", Name: "f", Arguments: "{}", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"name" : null, "index":0}`)}}}),
				tool(result("1", "f", "x"))},
			want: []ninelives.Message{hi,
				assistant(ninelives.ToolCall{ID: "1", Name: "f", Arguments: "{}", Meta: ninelives.Meta{Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"index":0}`)}}}),
				tool(result("1", "f", "x"))},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wire.Prepare(history(tc.in...), tc.target)
			if diff := different(tc.want, got.Request.Messages); diff != "" {
				t.Error(diff)
			}
			notes := strings.Join(got.Notes, "\n")
			if !strings.Contains(notes, tc.note) {
				t.Errorf("no note says %q: %q", tc.note, notes)
			}
		})
	}
}

func TestPrepareFiltersReasoning(t *testing.T) {
	rule := func(target wire.Target, rule ninelives.ReplayRule, field string) wire.Target {
		target.Candidate.Replay, target.Candidate.ReplayField = rule, field
		return target
	}
	empty := ninelives.Reasoning{Provenance: ninelives.Provenance{Provider: "acme", Model: "m1", Field: "reasoning_content"}}
	ownPlain := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "acme", Model: "m1", Field: "reasoning_content"}}
	foreignPlain := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "other", Model: "m2", Field: "reasoning"}}
	foreignSigned := signed("other", "m2", "hm", "sig")
	withCall := []ninelives.Part{text("a"), call("1", "f", "{}")}
	turn := func(parts ...ninelives.Part) []ninelives.Message {
		return []ninelives.Message{user(text("hi")), assistant(append(parts, withCall...)...), tool(result("1", "f", "x")), assistant(text("done")), user(text("more"))}
	}
	for _, tc := range []struct {
		name   string
		target wire.Target
		in     []ninelives.Part // reasoning of the turn with a call
		want   []ninelives.Part
		always bool // the turn without a call gets an empty one
		note   string
	}{
		{name: "forbidden", target: rule(chatTarget(), ninelives.ReplayForbid, ""), in: []ninelives.Part{ownPlain}},
		{name: "ignored", target: rule(chatTarget(), ninelives.ReplayIgnore, ""), in: []ninelives.Part{ownPlain}, want: []ninelives.Part{ownPlain}},
		{name: "no rule known, its own", target: chatTarget(), in: []ninelives.Part{ownPlain}, want: []ninelives.Part{ownPlain}},
		{name: "no rule known, foreign", target: chatTarget(), in: []ninelives.Part{foreignPlain}, note: "reasoning of another model"},
		{name: "required, its own", target: rule(chatTarget(), ninelives.ReplayRequireOnToolCalls, "reasoning_content"), in: []ninelives.Part{ownPlain}, want: []ninelives.Part{ownPlain}},
		{name: "required, foreign and plain", target: rule(chatTarget(), ninelives.ReplayRequireOnToolCalls, "reasoning_content"), in: []ninelives.Part{foreignPlain}, want: []ninelives.Part{foreignPlain}},
		{name: "required, none there", target: rule(chatTarget(), ninelives.ReplayRequireOnToolCalls, "reasoning_content"), want: []ninelives.Part{empty}},
		{name: "required, foreign and signed", target: rule(chatTarget(), ninelives.ReplayRequireOnToolCalls, "reasoning_content"), in: []ninelives.Part{foreignSigned}, want: []ninelives.Part{empty}, note: "signed reasoning"},
		{name: "required always", target: rule(chatTarget(), ninelives.ReplayRequireAlways, "reasoning_content"), want: []ninelives.Part{empty}, always: true},
		{name: "learnt to be required", target: with(chatTarget(), func(t *wire.Target) {
			t.Dialect.Replay, t.Dialect.ReplayField = ninelives.ReplayRequireAlways, "reasoning_content"
		}), want: []ninelives.Part{empty}, always: true},
		{name: "dropped for this call", target: with(rule(messagesTarget(), ninelives.ReplayRequireOnToolCalls, "thinking"), func(t *wire.Target) { t.Dialect.DropReasoning = true }),
			in: []ninelives.Part{signed("acme", "m1", "hm", "sig")}, note: "no earlier reasoning"},
		{name: "signed by itself", target: rule(messagesTarget(), ninelives.ReplayRequireOnToolCalls, "thinking"), in: []ninelives.Part{signed("acme", "m1", "hm", "sig")}, want: []ninelives.Part{signed("acme", "m1", "hm", "sig")}},
		{name: "signed by nobody known", target: messagesTarget(), in: []ninelives.Part{signed("", "", "hm", "sig")}, want: []ninelives.Part{signed("", "", "hm", "sig")}},
		{name: "signed by another model of the same maker", target: messagesTarget(), in: []ninelives.Part{signed("acme", "m0", "hm", "sig")}, note: "signed reasoning"},
		{name: "signed in a field of another protocol", target: chatTarget(), in: []ninelives.Part{signed("", "", "hm", "sig")}, note: "signed reasoning"},
		{name: "unsigned where a signature is a must", target: rule(messagesTarget(), ninelives.ReplayRequireOnToolCalls, "thinking"), in: []ninelives.Part{ownPlain}, note: "no place"},
		{name: "unsigned where it is taken", target: with(messagesTarget(), func(t *wire.Target) { t.Dialect.UnsignedThinking = true }), in: []ninelives.Part{ownPlain}, want: []ninelives.Part{ownPlain}},
		{name: "encrypted by another", target: chatTarget(), in: []ninelives.Part{ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Provider: "other", Model: "m2", Blob: "x"}}}, note: "signed reasoning"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := turn(tc.want...)
			if tc.always {
				want[3].Parts = append([]ninelives.Part{empty}, want[3].Parts...)
			}
			got := wire.Prepare(history(turn(tc.in...)...), tc.target)
			if diff := different(want, got.Request.Messages); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("want a note of %q, got %q", tc.note, notes)
			}
		})
	}
}

func TestPrepareFillsInThoughtSignatures(t *testing.T) {
	target := with(chatTarget(), func(t *wire.Target) { t.Dialect.DummySignature = "dummy" })
	own := ninelives.Provenance{Provider: "acme", Model: "m1"}
	signedCall := func(sig string, by ninelives.Provenance) ninelives.ToolCall {
		return ninelives.ToolCall{ID: "1", Name: "f", Arguments: "{}", Signature: sig, Provenance: by}
	}
	for _, tc := range []struct {
		name     string
		in, want ninelives.ToolCall
	}{
		{"its own", signedCall("s", own), signedCall("s", own)},
		{"none", signedCall("", ninelives.Provenance{}), signedCall("dummy", own)},
		{"foreign", signedCall("s", ninelives.Provenance{Provider: "other"}), signedCall("dummy", own)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wire.Prepare(history(user(text("hi")), assistant(tc.in), tool(result("1", "f", "x"))), target)
			if diff := different(assistant(tc.want), got.Request.Messages[1]); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a foreign one without a dummy is left out", func(t *testing.T) {
		got := wire.Prepare(history(user(text("hi")), assistant(signedCall("s", ninelives.Provenance{Provider: "other"})), tool(result("1", "f", "x"))), chatTarget())
		if diff := different(assistant(call("1", "f", "{}")), got.Request.Messages[1]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPrepareMapsToolNames(t *testing.T) {
	target := with(chatTarget(), func(t *wire.Target) { t.Dialect.ToolNames = true })
	long := strings.Repeat("long", 20)
	req := history(user(text("hi")), assistant(call("1", "cal.add", "{}")), tool(result("1", "cal.add", "ok")))
	req.Tools = []ninelives.Tool{{Name: "cal.add"}, {Name: "mail.read"}, {Name: "mail_read"}, {Name: long}, {Name: long + "2"}, {Kind: "web_search.x", Name: "web.search"}}
	req.ToolChoice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: "cal.add"}
	got := wire.Prepare(req, target)

	var names []string
	for _, tl := range got.Request.Tools {
		names = append(names, tl.Name)
	}
	want := []string{"cal_add", "mail_read_8f3af1a0", "mail_read", long[:55] + "_5aa1dce7", long[:55] + "_7eaac698", "web.search"}
	if diff := different(want, names); diff != "" {
		t.Error(diff)
	}
	if c := got.Request.Messages[1].ToolCalls()[0]; c.Name != "cal_add" {
		t.Errorf("the call is named %q", c.Name)
	}
	if r := got.Request.Messages[2].Parts[0].(ninelives.ToolResult); r.Name != "cal_add" {
		t.Errorf("the result is named %q", r.Name)
	}
	if got.Request.ToolChoice.Name != "cal_add" {
		t.Errorf("the choice is %q", got.Request.ToolChoice.Name)
	}
	back := map[string]string{"cal_add": "cal.add", want[1]: "mail.read", want[3]: long, want[4]: long + "2"}
	if diff := different(back, got.Names); diff != "" {
		t.Error(diff)
	}
	if req.Tools[0].Name != "cal.add" || req.Messages[1].ToolCalls()[0].Name != "cal.add" {
		t.Error("the original was changed")
	}
}

func TestPrepareSendsEachToolOnce(t *testing.T) {
	req := history(user(text("hi")))
	req.Tools = []ninelives.Tool{{Name: "f", Description: "first"}, {Name: "f", Description: "second"}}
	got := wire.Prepare(req, chatTarget())
	if diff := different([]ninelives.Tool{{Name: "f", Description: "first"}}, got.Request.Tools); diff != "" {
		t.Error(diff)
	}
}

func TestPrepareDropsTheChoiceAmongNoTools(t *testing.T) {
	yes := true
	req := history(user(text("hi")))
	req.Tools, req.ToolChoice, req.ParallelTools = []ninelives.Tool{{Name: "f"}}, ninelives.ToolChoice{Mode: ninelives.ToolChoiceAuto}, &yes
	got := wire.Prepare(req, with(chatTarget(), func(t *wire.Target) { t.Dialect.NoTools = true }))
	if diff := different(history(user(text("hi"))), got.Request); diff != "" {
		t.Error(diff)
	}
}
