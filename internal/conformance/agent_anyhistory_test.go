package conformance_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
)

// anyHistory draws conversations with everything in any place: calls, results,
// thoughts of others, refusals, pictures, blanks, and roles that do not hold
// such things.
func anyHistory() *rapid.Generator[[]ninelives.Message] {
	text := rapid.SampledFrom([]string{"", " ", "\n", "Hello.", "So it is. \n", "\x00\u2028é"})
	id := rapid.SampledFrom([]string{"", "one", "two", "a.b:c/d", strings.Repeat("long", 20)})
	name := rapid.SampledFrom([]string{"", "look", "read file", "mcp.server/tool", strings.Repeat("n", 140)})
	arguments := rapid.SampledFrom([]string{"", "null", "{}", `{"a":1}`, `{"a":`, `[1]`, `"{}"`, `not json`})
	maker := rapid.SampledFrom([]ninelives.Provenance{{}, {Provider: "acme", Model: "m"}, {Provider: "acme", Model: "m", Field: "thinking", Signature: "c2lnbmVk"},
		{Provider: "acme", Model: "m", Field: "reasoning_content"}, {Provider: "acme", Model: "m", Blob: "b3BhcXVl"}})
	content := rapid.Custom(func(t *rapid.T) ninelives.Part {
		if rapid.IntRange(0, 3).Draw(t, "content") == 0 {
			return ninelives.Image{MediaType: "image/png", Data: picture}
		}
		return ninelives.Text{Text: text.Draw(t, "text")}
	})
	part := rapid.Custom(func(t *rapid.T) ninelives.Part {
		switch rapid.IntRange(0, 7).Draw(t, "part") {
		case 0, 1:
			c := ninelives.ToolCall{ID: id.Draw(t, "id"), Name: name.Draw(t, "name"), Arguments: arguments.Draw(t, "arguments")}
			if rapid.Bool().Draw(t, "signed") {
				c.Signature, c.Provenance = "c2lnbmVk", ninelives.Provenance{Provider: "acme", Model: "m"}
			}
			return c
		case 2, 3:
			return ninelives.ToolResult{CallID: id.Draw(t, "id"), Name: name.Draw(t, "name"), Content: rapid.SliceOfN(content, 0, 2).Draw(t, "content"), IsError: rapid.Bool().Draw(t, "error")}
		case 4:
			return ninelives.Reasoning{Text: text.Draw(t, "thought"), Provenance: maker.Draw(t, "maker")}
		case 5:
			return ninelives.Refusal{Text: text.Draw(t, "refusal")}
		}
		return content.Draw(t, "content")
	})
	role := rapid.SampledFrom([]ninelives.Role{ninelives.RoleSystem, ninelives.RoleDeveloper, ninelives.RoleUser, ninelives.RoleAssistant, ninelives.RoleAssistant, ninelives.RoleTool, ninelives.RoleTool})
	return rapid.Custom(func(t *rapid.T) []ninelives.Message {
		messages := []ninelives.Message{ninelives.UserText("Look.")}
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			messages = append(messages, ninelives.Message{Role: role.Draw(t, "role"), Parts: rapid.SliceOfN(part, 0, 4).Draw(t, "parts")})
		}
		return append(messages, ninelives.UserText("And now?"))
	})
}

// Whatever a history has come to, no server of a vendor ever refuses it.
func TestNoHistoryIsRefused(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			vendor := vendors[p]
			steps := []chaos.Step{{Reject: []chaos.Check{chaos.UnknownParam}}}
			if p == ninelives.Gemini {
				steps[0].Reject = append(steps[0].Reject, chaos.MissingReasoning)
			}
			m, srv := simulated(t, vendor, p, steps)
			model := heal.New(m)
			rapid.Check(t, func(r *rapid.T) {
				req := &ninelives.Request{
					Messages: anyHistory().Draw(r, "history"),
					Tools:    []ninelives.Tool{{Name: "look", Schema: []byte(`{"type":"object"}`)}, {Name: "read file", Schema: []byte(`{"type":"object"}`)}},
				}
				before := fmt.Sprintf("%#v", req)
				srv.Reset()
				resp, err := ninelives.Generate(t.Context(), model, req)
				if err != nil {
					r.Fatal(err)
				}
				if resp.Text() != chaos.Answer {
					r.Fatalf("the answer is %q", resp.Text())
				}
				srv.Wait()
				for _, e := range srv.Log() {
					if e.Status != 200 {
						r.Fatalf("refused with %d: %s\n%s", e.Status, e.Did, e.Body)
					}
				}
				if after := fmt.Sprintf("%#v", req); after != before {
					r.Fatal("the caller's history was changed")
				}
			})
		})
	}
}
