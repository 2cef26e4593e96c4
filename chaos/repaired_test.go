package chaos_test

import (
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/provider"
)

func open(t *testing.T, srv *chaos.Server, name string, opts ...provider.Option) ninelives.Model {
	t.Helper()
	m, err := provider.Open(name, append([]provider.Option{provider.BaseURL(chaos.MemoryURL), provider.Dial(srv.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone"))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func assistant(parts ...ninelives.Part) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}
}

func results(ids ...string) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleTool}
	for _, id := range ids {
		m.Parts = append(m.Parts, ninelives.ToolResult{CallID: id, Name: "look", Content: []ninelives.Part{ninelives.Text{Text: "seen"}}})
	}
	return m
}

func user(text string) ninelives.Message {
	return ninelives.Message{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Text{Text: text}}}
}

func calling(id string) ninelives.Part {
	return ninelives.ToolCall{ID: id, Name: "look", Arguments: `{}`}
}

// The library mends what a strict server would refuse: the eight histories
// and their like get past it in every protocol.
func TestMendedHistoriesPassStrictServers(t *testing.T) {
	foreign := ninelives.Reasoning{Text: "I had better look.", Provenance: ninelives.Provenance{Provider: "elsewhere", Model: "m", Field: "thinking", Signature: "bWFkZSB1cA=="}}
	for name, history := range map[string][]ninelives.Message{
		"whole":                  {user("Hi"), assistant(calling("a"), calling("b")), results("a", "b"), assistant(ninelives.Text{Text: "Ok"}), user("Bye")},
		"a01 unmatched call":     {user("Hi"), assistant(calling("a")), user("Bye")},
		"a01 at the end":         {user("Hi"), assistant(calling("a"))},
		"a02 unmatched result":   {user("Hi"), results("a"), user("Bye")},
		"a03 user between":       {user("Hi"), assistant(calling("a")), user("wait"), results("a")},
		"a04 assistant between":  {user("Hi"), assistant(calling("a")), assistant(ninelives.Text{Text: "Hm"}), results("a")},
		"a05 duplicate id":       {user("Hi"), assistant(calling("a"), calling("a")), results("a", "a"), assistant(calling("a")), results("a")},
		"a06 wrong id":           {user("Hi"), assistant(calling("a")), results("z")},
		"a07 parallel missing":   {user("Hi"), assistant(calling("a"), calling("b")), results("a"), user("Bye")},
		"a08 other order":        {user("Hi"), assistant(calling("a"), calling("b")), results("b", "a")},
		"two of the user":        {user("Hi"), user("Are you there?")},
		"empty blocks":           {user("Hi"), assistant(ninelives.Text{Text: " "}, calling("a")), results("a"), assistant(ninelives.Text{}), user("Bye")},
		"odd ids":                {user("Hi"), assistant(calling("call.1|fc:" + strings.Repeat("x", 20))), results("call.1|fc:" + strings.Repeat("x", 20))},
		"foreign reasoning":      {user("Hi"), assistant(foreign, calling("a")), results("a")},
		"results, then the user": {user("Hi"), assistant(calling("a")), results("a"), user("And?")},
	} {
		for protocol, vendor := range map[ninelives.Protocol]string{
			ninelives.OpenAIChat: "openai", ninelives.OpenAIResponses: "openai", ninelives.AnthropicMessages: "anthropic", ninelives.Gemini: "gemini",
		} {
			t.Run(name+" "+string(protocol), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := chaos.New()
					defer srv.Close()
					req := &ninelives.Request{Messages: history, Tools: []ninelives.Tool{{Name: "look"}}}
					_, err := ninelives.Generate(t.Context(), open(t, srv, vendor+"/strict-history", provider.Protocol(protocol)), req)
					if err != nil {
						t.Errorf("%v\nsent: %s", err, srv.Log()[0].Body)
					}
				})
			})
		}
	}
}

// One conversation begins on a model that thinks and signs its thoughts, goes
// on with one that wants its own reasoning back with every call, and ends with
// a small one that takes text alone. Each refuses what its real kind refuses.
func TestOneConversationOverThreeVendors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := func(text string, reject ...chaos.Check) chaos.Scenario {
			return chaos.Scenario{Name: text, Steps: []chaos.Step{
				{Reasoning: "I had better look.", Insist: true, Calls: []chaos.Call{{Name: "look"}}, Reject: append(reject, chaos.History)},
				{Text: "I am " + text, Reject: append(reject, chaos.History)},
			}}
		}
		srv := chaos.New(
			call("claude", chaos.MissingReasoning, chaos.Prefill),
			call("deepseek-reasoner", chaos.MissingReasoning, chaos.Prefill),
			chaos.Scenario{Name: "small", Steps: []chaos.Step{{Text: "I am small", Window: 2000, Reject: []chaos.Check{chaos.History, chaos.Images}}}},
		)
		defer srv.Close()
		picture := ninelives.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
		history := []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Text{Text: "What is this?"}, picture}}}
		step := func(model ninelives.Model) {
			t.Helper()
			req := &ninelives.Request{Messages: history, Tools: []ninelives.Tool{{Name: "look"}}, Reasoning: ninelives.ReasoningOptions{Budget: 2048}}
			resp, err := ninelives.Generate(t.Context(), model, req)
			if err != nil {
				log := srv.Log()
				t.Fatalf("%v\nsent: %s", err, log[len(log)-1].Body)
			}
			history = append(history, resp.Message)
			for _, c := range resp.Message.ToolCalls() {
				history = append(history, ninelives.Message{Role: ninelives.RoleTool, Parts: []ninelives.Part{
					ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: []ninelives.Part{ninelives.Text{Text: "a cat"}}}}})
			}
		}
		claude := open(t, srv, "anthropic/claude", provider.Protocol(ninelives.AnthropicMessages))
		deepseek := open(t, srv, "deepseek/deepseek-reasoner", provider.Protocol(ninelives.OpenAIChat))
		small := open(t, srv, "ollama/small", provider.Protocol(ninelives.OpenAIChat), provider.Capabilities(func(c *ninelives.Capabilities) { c.Images = false }))
		step(claude)
		step(deepseek)
		step(deepseek)
		history = append(history, user("And now?"))
		step(claude)
		history = append(history, user("In a word?"))
		step(small)
		if got := history[len(history)-1].Text(); got != "I am small" {
			t.Errorf("the last word is %q", got)
		}
	})
}

// What a model has thought goes back to it as it wants it, signatures and all.
func TestReasoningGoesBackToItsMaker(t *testing.T) {
	for protocol, vendor := range map[ninelives.Protocol]string{
		ninelives.OpenAIChat: "deepseek", ninelives.OpenAIResponses: "openai", ninelives.AnthropicMessages: "anthropic", ninelives.Gemini: "gemini",
	} {
		synctest.Test(t, func(t *testing.T) {
			strict := []chaos.Check{chaos.History, chaos.MissingReasoning}
			calls := []chaos.Call{{Name: "look", Arguments: `{}`}, {Name: "look", Arguments: `{"at":"b"}`}}
			srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{
				{Reasoning: "I had better look.", Insist: true, Calls: calls, Times: 2, Reject: strict},
				{Reasoning: "I have seen it.", Text: "Done.", Reject: strict},
			}})
			defer srv.Close()
			model := open(t, srv, vendor+"/deepseek-reasoner", provider.Protocol(protocol))
			history := []ninelives.Message{user("Look twice.")}
			for range 3 {
				req := &ninelives.Request{Messages: history, Tools: []ninelives.Tool{{Name: "look"}}, Reasoning: ninelives.ReasoningOptions{Budget: 2048}}
				resp, err := ninelives.Generate(t.Context(), model, req)
				if err != nil {
					log := srv.Log()
					t.Fatalf("%s: %v\nsent: %s", protocol, err, log[len(log)-1].Body)
				}
				history = append(history, resp.Message)
				var m ninelives.Message
				m.Role = ninelives.RoleTool
				for _, c := range resp.Message.ToolCalls() {
					m.Parts = append(m.Parts, ninelives.ToolResult{CallID: c.ID, Name: c.Name, Content: []ninelives.Part{ninelives.Text{Text: "seen"}}})
				}
				if len(m.Parts) > 0 {
					history = append(history, m)
				}
			}
			if got := history[len(history)-1].Text(); got != "Done." {
				t.Errorf("%s: %q", protocol, got)
			}
		})
	}
}
