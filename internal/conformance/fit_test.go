package conformance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// A turn begins at a large model, which is out of money, and goes on at a small
// one that refuses what is over its window and histories with broken pairs. The
// agent's plan for the smaller window is sent, in every protocol; without it
// the small model refuses.
func TestAHistoryIsPlannedAnewForASmallerWindow(t *testing.T) {
	const window = 4000
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := func(name string, tokens int, step chaos.Step) (ninelives.Model, *chaos.Server) {
					srv := chaos.New(chaos.Scenario{Name: "scripted", Steps: []chaos.Step{step}})
					m, err := provider.Open("scripted", provider.Provider(name), provider.BaseURL("http://"+name+".sim/v1"), provider.Protocol(p),
						provider.Dial(srv.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone")),
						provider.Capabilities(func(c *ninelives.Capabilities) {
							c.Window, c.WindowSource, c.MaxOutput, c.Tools = tokens, "exact", 1000, true
						}))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(srv.Close)
					t.Cleanup(m.(*provider.Model).CloseIdleConnections)
					return m, srv
				}
				large, _ := open("large", 100_000, chaos.Step{Error: chaos.Billing})
				small, srv := open("small", window, chaos.Step{Window: window, Reject: []chaos.Check{chaos.History}})
				model := heal.New(large, heal.Fallback(small))

				system := ninelives.SystemText("You are careful.")
				x := agent.Context{Messages: []ninelives.Message{ninelives.UserText("Find the flag. Never touch vendor/.")}, Window: 100_000, Overhead: 100}
				for i := range 40 {
					id := fmt.Sprintf("call_%d", i)
					call := ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
						ninelives.Text{Text: strings.Repeat("I look further. ", 60)},
						ninelives.ToolCall{ID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"file%d"}`, i)}}}
					x.Messages = append(x.Messages, call, ninelives.ToolResultText(id, "read_file", strings.Repeat("line\n", 100)))
				}
				request := func(messages []ninelives.Message) *ninelives.Request {
					return &ninelives.Request{Messages: append([]ninelives.Message{system}, messages...),
						Tools: []ninelives.Tool{{Name: "read_file", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}}
				}
				req := request(x.Messages)
				_, err := ninelives.Generate(t.Context(), model, req)
				var f *ninelives.Fault
				if !errors.As(err, &f) || err == nil {
					t.Fatalf("without a plan: %v", err)
				}

				settings := agent.DefaultSettings().Compaction
				req.Fit = func(tokens int) (*ninelives.Request, error) {
					view, err := settings.Fit(x, tokens)
					if err != nil {
						return nil, err
					}
					return request(view), nil
				}
				var told []string
				text := ""
				for ev, err := range model.Stream(t.Context(), req) {
					switch e := ev.(type) {
					case nil:
						t.Fatal(err)
					case ninelives.TextDelta:
						text += e.Text
					case ninelives.Notice:
						if e.Kind == ninelives.NoticeTranslate && strings.Contains(e.Text, "made to fit") {
							told = append(told, e.Text)
						}
					}
				}
				srv.Wait()
				equal(t, "answer", text, chaos.Answer)
				if len(told) != 1 || !strings.HasPrefix(told[0], "the request was made to fit the window of 4000 tokens: about ") {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}
