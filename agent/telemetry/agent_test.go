package telemetry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAnAgentsTurnInSpans runs an agent against a provider that is overloaded
// first, then wants a file read, then answers.
func TestAnAgentsTurnInSpans(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("nine lives\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		srv := chaos.New(chaos.Scenario{Name: "m", Steps: []chaos.Step{
			{Error: chaos.Overloaded},
			{Calls: []chaos.Call{{ID: "call_1", Name: "read_file", Arguments: `{"path":"a.txt"}`}}},
			{Text: "The file says: nine lives."},
		}})
		defer srv.Close()
		candidate, err := provider.Open("openai/m", provider.BaseURL(chaos.MemoryURL+"/v1"), provider.Dial(srv.Dial), provider.Key(provider.NewSecret("k")))
		if err != nil {
			t.Fatal(err)
		}
		ws, err := tool.OpenWorkspace(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		b := newBench(t)
		session, err := agent.New(heal.New(candidate), agent.Hooks(b.Hook), agent.Workspace(dir), agent.Tools(tool.Files(ws)...)).Open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range session.Turn(context.Background(), ninelives.UserText("What does a.txt say?")) {
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := e.(agent.Ended); ok && (end.Reason != agent.ReasonComplete || end.Text != "The file says: nine lives.") {
				t.Errorf("%+v", end)
			}
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}

		var tree []string
		turn := b.span(t, "invoke_agent ninelives")
		for _, s := range b.spans.GetSpans() {
			if s.Name != turn.Name && s.Parent.SpanID() != turn.SpanContext.SpanID() {
				t.Errorf("%s is no child of the turn", s.Name)
			}
			healed := 0
			for _, e := range s.Events {
				if e.Name == "ninelives.healing" && strings.Contains(lines(e.Attributes), "ninelives.fault=overloaded") {
					healed++
				}
			}
			tree = append(tree, fmt.Sprintf("%s, overloaded: %v", s.Name, healed > 0))
			if text := lines(s.Attributes); !strings.Contains(text, "gen_ai.conversation.id="+session.ID()) {
				t.Errorf("%s belongs to no session:\n%s", s.Name, text)
			}
		}
		want := []string{"chat m, overloaded: true", "execute_tool read_file, overloaded: false", "chat m, overloaded: false", "invoke_agent ninelives, overloaded: false"}
		if !slices.Equal(tree, want) {
			t.Errorf("got %q, want %q", tree, want)
		}
		for _, want := range []string{
			"gen_ai.client.operation.duration[s]{gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=m,gen_ai.response.model=m} 2×",
			"gen_ai.client.token.usage[{token}]{gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=m,gen_ai.response.model=m,gen_ai.token.type=input} 2×",
			"ninelives.healing[{step}]{ninelives.fault=overloaded,ninelives.healing=fault} 1",
			"ninelives.tool.duration[s]{gen_ai.tool.name=read_file} 1×",
			"ninelives.turns[{turn}]{ninelives.turn.reason=complete} 1",
		} {
			if got := b.measured(t); !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, want) }) {
				t.Errorf("%s is not among\n%s", want, strings.Join(got, "\n"))
			}
		}
	})
}
