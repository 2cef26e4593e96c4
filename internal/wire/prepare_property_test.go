package wire_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// anyTarget draws targets with all switches.
func anyTarget() *rapid.Generator[wire.Target] {
	return rapid.Custom(func(t *rapid.T) wire.Target {
		on := rapid.Bool()
		rules := rapid.SampledFrom([]ninelives.ReplayRule{"", ninelives.ReplayIgnore, ninelives.ReplayForbid, ninelives.ReplayRequireOnToolCalls, ninelives.ReplayRequireAlways})
		return wire.Target{
			Candidate: ninelives.Candidate{Provider: "acme", Model: "m1",
				Protocol: rapid.SampledFrom([]ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini}).Draw(t, "protocol"),
				Capabilities: ninelives.Capabilities{Images: on.Draw(t, "images"), Files: on.Draw(t, "files"), Prefill: on.Draw(t, "prefill"),
					Replay: rules.Draw(t, "rule"), ReplayField: "reasoning_content"}},
			Dialect: wire.Dialect{
				DeveloperRole: on.Draw(t, "developer"), NoSystemRole: on.Draw(t, "no system"), MergeRoles: on.Draw(t, "merge"),
				BridgeToolUser: on.Draw(t, "bridge"), NoNames: on.Draw(t, "no names"), NoImages: on.Draw(t, "no images"),
				NoTools: on.Draw(t, "no tools"), ToolNames: on.Draw(t, "tool names"), ToolIDExact: rapid.SampledFrom([]int{0, 9}).Draw(t, "exact id"),
				ToolIDMax: rapid.SampledFrom([]int{0, 40}).Draw(t, "longest id"), DummySignature: rapid.SampledFrom([]string{"", "dummy"}).Draw(t, "dummy"),
				UnsignedThinking: on.Draw(t, "unsigned"), DropReasoning: on.Draw(t, "drop"), Replay: rules.Draw(t, "learnt rule"),
				StripFields: rapid.SampledFrom([][]string{nil, {"x"}}).Draw(t, "strip"),
			},
		}
	})
}

// anyHistory draws conversations with everything that can be wrong with them.
func anyHistory() *rapid.Generator[*ninelives.Request] {
	texts := rapid.SampledFrom([]string{"", " ", "\n", "a", "b \n", " c"})
	ids := rapid.SampledFrom([]string{"", "1", "2", "a.b", "a_b", strings.Repeat("long", 20)})
	names := rapid.SampledFrom([]string{"", "f", "g", "g.h", "g_h", strings.Repeat("n", 70)})
	args := rapid.SampledFrom([]string{"", "null", "{}", `{"a":1}`, `{"a":`, `[1]`, `"{}"`, `"x"`, " {} "})
	makers := rapid.SampledFrom([]ninelives.Provenance{{}, {Provider: "acme", Model: "m1"}, {Provider: "acme", Model: "m0"}, {Provider: "other", Model: "m2", Field: "thinking"}, {Field: "thinking"}})
	extras := rapid.SampledFrom([]ninelives.Extra{{}, {Protocol: ninelives.AnthropicMessages, JSON: []byte(`{"x":1}`)}, {Protocol: ninelives.OpenAIChat, JSON: []byte(`{"y":1,"x":2}`)}})
	content := rapid.Custom(func(t *rapid.T) ninelives.Part {
		switch rapid.IntRange(0, 3).Draw(t, "content") {
		case 0:
			return ninelives.Image{URL: "https://x/y.png"}
		case 1:
			return ninelives.File{Name: "a.pdf"}
		}
		return ninelives.Text{Text: texts.Draw(t, "text"), Meta: ninelives.Meta{Extra: extras.Draw(t, "extra")}}
	})
	part := rapid.Custom(func(t *rapid.T) ninelives.Part {
		switch rapid.IntRange(0, 6).Draw(t, "part") {
		case 0:
			return ninelives.ToolCall{ID: ids.Draw(t, "id"), Name: names.Draw(t, "name"), Arguments: args.Draw(t, "args"),
				Signature: rapid.SampledFrom([]string{"", "s"}).Draw(t, "signature"), Provenance: makers.Draw(t, "maker")}
		case 1, 2:
			return ninelives.ToolResult{CallID: ids.Draw(t, "id"), Name: names.Draw(t, "name"), Content: rapid.SliceOfN(content, 0, 2).Draw(t, "content")}
		case 3:
			o := makers.Draw(t, "maker")
			o.Signature = rapid.SampledFrom([]string{"", "s"}).Draw(t, "signature")
			return ninelives.Reasoning{Text: texts.Draw(t, "thought"), Provenance: o}
		case 4:
			return opaque(rapid.SampledFrom([]ninelives.Protocol{ninelives.OpenAIChat, ninelives.AnthropicMessages}).Draw(t, "protocol"), "odd")
		case 5:
			return ninelives.Refusal{Text: texts.Draw(t, "refusal")}
		}
		return content.Draw(t, "content")
	})
	return rapid.Custom(func(t *rapid.T) *ninelives.Request {
		req := &ninelives.Request{}
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			req.Messages = append(req.Messages, ninelives.Message{
				Role:  rapid.SampledFrom([]ninelives.Role{ninelives.RoleSystem, ninelives.RoleDeveloper, ninelives.RoleUser, ninelives.RoleAssistant, ninelives.RoleAssistant, ninelives.RoleTool, ninelives.RoleTool}).Draw(t, "role"),
				Parts: rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), Extra: extras.Draw(t, "extra"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "tools") {
			req.Tools = append(req.Tools, ninelives.Tool{Name: names.Draw(t, "tool")})
		}
		return req
	})
}

func TestPreparingTwiceIsPreparingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, target := anyHistory().Draw(t, "request"), anyTarget().Draw(t, "target")
		before := fmt.Sprintf("%#v", req)
		once := wire.Prepare(req, target)
		if after := fmt.Sprintf("%#v", req); after != before {
			t.Fatalf("the original was changed:\n%s\n%s", before, after)
		}
		twice := wire.Prepare(once.Request, target)
		if diff := different(once.Request, twice.Request); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPreparedHistoriesKeepTheirPromises(t *testing.T) {
	id := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		req, target := anyHistory().Draw(t, "request"), anyTarget().Draw(t, "target")
		got := wire.Prepare(req, target).Request
		seen := map[string]bool{}
		open := map[string]string{}
		for i, m := range got.Messages {
			if len(m.Parts) == 0 {
				t.Fatalf("message %d is empty", i)
			}
			if m.Role != ninelives.RoleTool && len(open) > 0 {
				t.Fatalf("message %d comes before the results of %v", i, open)
			}
			for _, p := range m.Parts {
				switch v := p.(type) {
				case ninelives.ToolCall:
					if m.Role != ninelives.RoleAssistant {
						continue
					}
					if v.ID == "" || seen[v.ID] || target.Candidate.Protocol == ninelives.AnthropicMessages && !id.MatchString(v.ID) {
						t.Fatalf("call id %q", v.ID)
					}
					seen[v.ID], open[v.ID] = true, v.Name
				case ninelives.ToolResult:
					name, ok := open[v.CallID]
					if !ok || name != v.Name && v.Name == "" {
						t.Fatalf("a result of %q, open are %v", v.CallID, open)
					}
					delete(open, v.CallID)
				case ninelives.Text:
					if v.Text == "" && v.Extra.JSON == nil {
						t.Fatal("an empty text")
					}
				}
			}
		}
		if len(open) > 0 {
			t.Fatalf("no results of %v", open)
		}
	})
}

// different tells where two values begin to differ; nil and empty slices are alike.
func different(want, got any) string {
	w, g := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)
	if reflect.DeepEqual(want, got) || w == g {
		return ""
	}
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	at = max(at-60, 0)
	return fmt.Sprintf("want …%.400s\n got …%.400s", w[at:], g[at:])
}
