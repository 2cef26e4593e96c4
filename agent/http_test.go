package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// simulated opens a model at a server that plays the steps, and refuses every
// history that the protocol's own vendor refuses.
func simulated(t *testing.T, spec string, p ninelives.Protocol, steps []chaos.Step, opts ...provider.Option) (ninelives.Model, *chaos.Server) {
	t.Helper()
	for i := range steps {
		steps[i].Reject = append(steps[i].Reject, chaos.History)
	}
	srv := chaos.New(chaos.Scenario{Name: "*", Steps: steps})
	vendor, model, _ := strings.Cut(spec, "/")
	m, err := provider.Open(model, append([]provider.Option{
		provider.Provider(vendor), provider.BaseURL("http://" + vendor + ".sim/v1"), provider.Protocol(p), provider.Dial(srv.Dial),
		provider.Key(provider.NewSecret("sk-not-for-anyone")),
		provider.Capabilities(func(c *ninelives.Capabilities) { c.Tools, c.Window, c.WindowSource = true, 200_000, "exact" }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	t.Cleanup(m.(*provider.Model).CloseIdleConnections)
	return m, srv
}

var protocols = []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini}

// One session goes through all that can happen to a history, and every request
// of it is taken by a server that refuses what the vendors refuse.
func TestEveryHistoryThatATurnLeavesIsTakenByAllProtocols(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				use := func(calls ...chaos.Call) chaos.Step { return chaos.Step{Calls: calls, Insist: true} }
				m, srv := simulated(t, "sim/one", p, []chaos.Step{
					// Turn 1: calls of all kinds, one cut off, what is steered in between.
					use(chaos.Call{Name: "look", Arguments: `{}`}, chaos.Call{Name: "write", Arguments: `{"n":1}`}, chaos.Call{Name: "look", Arguments: `{"again":true}`}),
					use(chaos.Call{Name: "loook", Arguments: `{}`}, chaos.Call{Name: "write", Arguments: `{"n":"x"}`}),
					{Calls: []chaos.Call{{Name: "write", Arguments: `{"content":"` + strings.Repeat("long ", 50) + `"}`}}, Insist: true, ToolFault: chaos.Unclosed, Finish: "length"},
					use(chaos.Call{Name: "steer", Arguments: `{}`}),
					{Text: "first done"},
					// Turn 2: stopped in the middle of a call.
					use(chaos.Call{Name: "look", Arguments: `{}`}, chaos.Call{Name: "stop", Arguments: `{}`}, chaos.Call{Name: "write", Arguments: `{}`}),
					// Turn 3: a refusal.
					{Refusal: "I would rather not."},
					// Turn 4: fails, and goes on.
					use(chaos.Call{Name: "write", Arguments: `{"n":2}`}),
					{Error: chaos.Auth},
					{Text: "fourth done"},
					// Turn 5: cut off by a crash, in a call.
					use(chaos.Call{Name: "write", Arguments: `{"n":3}`}, chaos.Call{Name: "write", Arguments: `{"n":4}`}),
					// Turn 6: closes it.
					{Text: "sixth done"},
				})
				model := heal.New(m)
				var s *Session
				picky := writer("write", echo)
				picky.spec.Schema = []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
				tools := []tool.Tool{
					reader("look", echo),
					picky,
					writer("steer", func(ctx context.Context, _ *tool.Call) tool.Result {
						if _, err := s.Steer(ctx, ninelives.UserText("mind the tests")); err != nil {
							t.Error(err)
						}
						return tool.TextResult("ok")
					}),
					writer("stop", func(ctx context.Context, _ *tool.Call) tool.Result {
						s.Stop()
						<-ctx.Done()
						return tool.ErrorResult("half")
					}),
				}
				a := New(model, Tools(tools...), Workspace(t.TempDir()))
				log := &tape{}
				s = a.taken(t.Context(), log, nil, nil)
				want := func(p played, reason Reason, text string) {
					t.Helper()
					if p.err != nil || p.end.Reason != reason || p.end.Text != text {
						t.Fatalf("it ended as %v %s with %q: %s\n%s", p.err, p.end.Reason, p.end.Text, p.end.Message, transcribed(s.State().Messages()))
					}
				}
				turn := func(text string) played { return play(s.Turn(t.Context(), ninelives.UserText(text))) }
				want(turn("one"), ReasonComplete, "first done")
				want(turn("two"), ReasonCanceled, "")
				// Not every protocol tells a refusal of the model's own from what it says.
				if p := turn("three"); p.err != nil || p.end.Reason != ReasonRefused && p.end.Reason != ReasonComplete {
					t.Fatalf("it ended as %v %s", p.err, p.end.Reason)
				}
				want(turn("four"), ReasonFailed, "")
				want(play(s.Continue(t.Context())), ReasonComplete, "fourth done")
				log.dies = 4 // its effect is never recorded
				if p := turn("five"); !errors.Is(p.err, errDied) {
					t.Fatalf("it was to die: %v %s", p.err, p.end.Reason)
				}
				s = a.taken(t.Context(), log, slices.Clone(log.entries), nil)
				want(turn("six"), ReasonComplete, "sixth done")
				checked(t, s.State())
				for _, e := range srv.Log() {
					if e.Status >= 400 && !strings.Contains(e.Did, "auth") {
						t.Errorf("request %d was refused with %d: %s\n%s", e.Seq, e.Status, e.Did, e.Body)
					}
				}
			})
		})
	}
}

// Source: design 001, "Layers in a single scenario", its first part: two 429s
// with the waits of that design, then the backup answers.
func TestARateLimitIsWaitedForAndThenTheBackupAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, one := simulated(t, "first/model", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.RateLimit}})
		second, _ := simulated(t, "second/model", ninelives.AnthropicMessages, []chaos.Step{{Text: "from the backup"}})
		s := opened(t, heal.New(first, heal.With(heal.Codebuddy()), heal.Fallback(second)))
		p := turned(t, s, "go")
		if p.end.Reason != ReasonComplete || p.end.Text != "from the backup" {
			t.Fatalf("it ended as %s with %q: %s", p.end.Reason, p.end.Text, p.end.Message)
		}
		if a := of[Answered](p)[0]; !a.IsFallback || a.Attempts != len(one.Log())+1 {
			t.Errorf("the answer says %+v", a.Answer)
		}
		notices := 0
		for _, e := range of[Model](p) {
			if _, ok := e.Event.(ninelives.Notice); ok {
				notices++
			}
		}
		if notices == 0 {
			t.Error("no healing was shown")
		}
	})
}

// One turn begins at Anthropic, with thinking and tools, goes on at DeepSeek
// when that is down, and ends at a small local model when DeepSeek is down too.
func TestATurnIsHandedOverFromVendorToVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := func(n int) chaos.Step {
			return chaos.Step{Reasoning: fmt.Sprint("I look at ", n), Calls: []chaos.Call{{Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, n)}}, Insist: true}
		}
		claude, one := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{look(1), look(2), {Error: chaos.Billing}})
		deepseek, two := simulated(t, "deepseek/deepseek-reasoner", ninelives.OpenAIChat, []chaos.Step{look(3), {Error: chaos.Billing}})
		local, three := simulated(t, "ollama/qwen3", ninelives.OpenAIChat, []chaos.Step{look(4), {Text: "seen it all"}},
			provider.Capabilities(func(c *ninelives.Capabilities) { c.Window = 9000 }))
		s := opened(t, heal.New(claude, heal.Fallback(deepseek, local)), Tools(reader("look", func(_ context.Context, c *tool.Call) tool.Result {
			return tool.TextResult(string(c.Arguments) + strings.Repeat(" word", 2000))
		})))
		began := time.Now()
		p := turned(t, s, "look at everything")
		if p.end.Reason != ReasonComplete || p.end.Text != "seen it all" || p.end.Steps != 5 || p.end.Calls != 4 {
			t.Fatalf("it ended as %s with %q after %d steps and %v: %s", p.end.Reason, p.end.Text, p.end.Steps, time.Since(began), p.end.Message)
		}
		var served []string
		for _, a := range of[Answered](p) {
			served = append(served, a.Candidate)
		}
		if want := []string{claude.Name(), claude.Name(), deepseek.Name(), local.Name(), local.Name()}; !slices.Equal(served, want) {
			t.Errorf("served by %v", served)
		}
		for _, srv := range []*chaos.Server{one, two, three} {
			for _, e := range srv.Log() {
				if e.Status >= 400 && !strings.Contains(e.Did, "billing") {
					t.Errorf("%s refused a request with %d: %s", e.Model, e.Status, e.Did)
				}
			}
		}
		if log := three.Log(); log[len(log)-1].Tokens > 9000 {
			t.Errorf("the small model was sent %d tokens", log[len(log)-1].Tokens)
		}
	})
}

func TestATurnThatHasToSatisfyAFormEndsWithTheCheckedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, srv := simulated(t, "sim/one", ninelives.OpenAIChat, []chaos.Step{
			{Calls: []chaos.Call{{Name: "look", Arguments: `{}`}}},
			{Text: "It is 3."}, {Text: "```json\n{\"count\": 3}\n```"},
		})
		set := DefaultSettings()
		set.Output = &ninelives.Output{Name: "answer", Schema: []byte(`{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`)}
		s := opened(t, heal.New(m), Tools(reader("look", echo)), With(set), Journal(book(t)))
		p := turned(t, s, "how many?")
		if p.end.Reason != ReasonComplete || string(p.end.Output) != `{"count": 3}` || len(srv.Log()) != 3 {
			t.Errorf("after %d requests it ended as %s with %s: %s", len(srv.Log()), p.end.Reason, p.end.Output, p.end.Message)
		}
	})
}
