package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/tool"
)

// What source design 000 promises of an agent, under its preset, over real HTTP.

// catbuddy opens a lone model under the preset of design 000.
func catbuddy(t *testing.T, steps ...chaos.Step) (ninelives.Model, *chaos.Server) {
	t.Helper()
	m, srv := simulated(t, "deepseek/deepseek-chat", ninelives.OpenAIChat, steps)
	return heal.New(m, heal.With(heal.Catbuddy())), srv
}

// story is a text of so many sentences, each of them another one.
func story(sentences int) string {
	var b strings.Builder
	for i := range sentences {
		fmt.Fprintf(&b, "Then %d things happened. ", i)
	}
	return strings.TrimSpace(b.String())
}

// §1.3, SAVE and BUILD: the reasoning chain is saved with the message, on the
// disk, and put back on it when the next request is built, in whatever process.
func TestDesign000ReasoningTravelsBackAndForthAlsoOverARestart(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		wants := chaos.MissingReasoning
		m, srv := catbuddy(t, thinks(1, "", wants), thinks(2, "", wants),
			chaos.Step{Error: chaos.Auth}, chaos.Step{Text: "Seen.", Reject: []chaos.Check{wants}})
		look := gadget{"look", true, func(context.Context, *tool.Call) tool.Result { return tool.TextResult("seen") }}
		s := d.opens(d.agent(m, full(), look))
		d.ended(d.turn(s, "Look."), agent.ReasonFailed, "")
		d = d.reloads(s)
		s = d.resumes(d.agent(m, full(), look), s.ID())
		d.ended(acts(s.Continue(t.Context()), nil), agent.ReasonComplete, "Seen.")
		accepted(t, srv, "auth")
		for i, e := range srv.Log() {
			n := strings.Count(string(e.Body), `"reasoning_content":"Thought number `)
			equal(t, fmt.Sprintf("thoughts in request %d", i), n, min(i, 2))
		}
	})
}

// §2.2: if all fail, the last message says what happened, why it may be, and
// what can be done.
func TestDesign000WhenAllProvidersFailTheTurnSaysWhatToDo(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		first, one := simulated(t, "deepseek/deepseek-chat", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.Auth}})
		second, two := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{{Error: chaos.ServerError}})
		m := heal.New(first, heal.With(heal.Catbuddy()), heal.Fallback(second))
		p := d.turn(d.opens(d.agent(m, full())), "Hello.")
		d.ended(p, agent.ReasonFailed, "")
		equal(t, "it says", strings.HasPrefix(p.end.Message, "All providers failed. Please check your API keys and network connection."), true)
		equal(t, "in a line", strings.Contains(p.end.Message, "\n"), false)
		// Each is asked once, and the last one up to three times: no 3 × 3.
		equal(t, "requests", []int{len(one.Log()), len(two.Log())}, []int{1, 3})
	})
}

// §2.3: another model by /model reaches the runner, compaction, memory and
// subagents together, from the next turn on; the turn that runs ends on the
// old one; an equal signature opens nothing.
func TestDesign000HotSwapReachesAllWhoAskAModel(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		told := story(120)
		old, one := simulated(t, "deepseek/deepseek-chat", ninelives.OpenAIChat, []chaos.Step{uses(use("swap", `{}`)), {Text: told}})
		renewed, two := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{
			uses(use("subagent", `{"task":"look around"}`)), // the runner
			{Text: "I looked around."},                      // the subagent
			{Text: told},                                    // the runner
			{Text: "Goal: a story."},                        // compaction
			{Text: "project: it is a story"},                // memory
		})
		var a *agent.Agent
		opens := 0
		swap := func(signature string) (changed bool) {
			changed, err := a.Swap(signature, func() (ninelives.Model, error) { opens++; return heal.New(renewed), nil })
			if err != nil {
				t.Error(err)
			}
			return changed
		}
		swapping := gadget{"swap", false, func(context.Context, *tool.Call) tool.Result {
			equal(t, "changed", []bool{swap("old"), swap("new"), swap("new")}, []bool{false, true, false})
			return tool.TextResult("swapped")
		}}
		memory := agent.NewMemory(func() ninelives.Model { return a.Model() }, agent.MemoryDirs{Project: d.dir}, agent.DefaultSettings().Memory)
		defer memory.Close()
		a = agent.New(heal.New(old), agent.Signature("old"), agent.With(full()), agent.Tools(swapping), agent.Workspace(d.dir), agent.Journal(d.journal), agent.Remember(memory))
		s := d.opens(a)
		d.ended(d.turn(s, "Swap."), agent.ReasonComplete, told)
		equal(t, "opened", opens, 1)
		equal(t, "the running turn ended on the old one", []int{len(one.Log()), len(two.Log())}, []int{2, 0})
		p := d.turn(s, "Go on.")
		d.ended(p, agent.ReasonComplete, told)
		equal(t, "runner and subagent", len(two.Log()), 3)
		c, err := s.Compact(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "compaction", len(two.Log()) == 4 && c.After < c.Before, true)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		memory.Close()
		equal(t, "memory", len(two.Log()), 5)
		equal(t, "nobody asked the old one again", len(one.Log()), 2)
		accepted(t, one)
		accepted(t, two)
	})
}

// §3.1: a stop penetrates every wait at once, whatever is waited for.
func TestDesign000StopPenetratesEveryWait(t *testing.T) {
	tale := story(120)
	for _, c := range []struct {
		name     string
		steps    []chaos.Step
		settings func(*agent.Settings)
		requests int
	}{
		{"the backoff of a retry", []chaos.Step{{Error: chaos.ServerError}}, nil, 1},
		{"a provider's own hint", []chaos.Step{{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 100 * time.Second}}, nil, 1},
		{"headers that do not come", []chaos.Step{{Drop: chaos.Hang}}, nil, 1},
		{"a first token that does not come", []chaos.Step{{First: time.Hour, KeepAlive: time.Second}}, nil, 1},
		{"a stream that stalls", []chaos.Step{{After: 3, End: chaos.Stall}}, nil, 1},
		{"the rate limiter of the guard", []chaos.Step{uses(use("look", `{"n":1}`)), uses(use("look", `{"n":2}`))},
			func(s *agent.Settings) { s.Guard.RatePerTool, s.Guard.RateWait = 1, time.Minute }, 2},
		{"a summary", []chaos.Step{uses(use("look", `{"n":1,"tale":%q}`, tale)), uses(use("look", `{"n":2,"tale":%q}`, tale)), uses(use("look", `{"n":3,"tale":%q}`, tale)), uses(use("look", `{"n":4,"tale":%q}`, tale)), {Drop: chaos.Hang}},
			func(s *agent.Settings) { s.Compaction.Window = 4900 }, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				m, srv := catbuddy(t, c.steps...)
				set := full()
				if c.settings != nil {
					c.settings(&set)
				}
				look := gadget{"look", true, func(context.Context, *tool.Call) tool.Result { return tool.TextResult("seen") }}
				s := d.opens(agent.New(m, agent.With(set), agent.Tools(look), agent.Workspace(d.dir), agent.Journal(d.journal)))
				const after = 900 * time.Millisecond // the shortest wait of the preset is a second
				time.AfterFunc(after, s.Stop)
				began := time.Now()
				d.ended(d.turn(s, "Look."), agent.ReasonCanceled, "")
				equal(t, "it ended after", time.Since(began), after)
				time.Sleep(time.Hour)
				srv.Wait()
				log := srv.Log()
				equal(t, "requests, also an hour later", len(log), c.requests)
				forSummary := strings.Contains(string(log[len(log)-1].Body), "You summarise a part of a conversation")
				equal(t, "the last one was for a summary", forSummary, c.name == "a summary")
			})
		})
	}
}

// §3.1, persistent mode: see TestTheMemoryOutlastsAnOutage. Standard mode: three
// tries, 1 and 2 seconds apart, and nothing is tried again that cannot help.
func TestDesign000AStepIsTriedThreeTimesAndAWrongKeyOnce(t *testing.T) {
	for kind, want := range map[chaos.ErrorKind][]time.Duration{
		chaos.ServerError: {0, time.Second, 3 * time.Second},
		chaos.RateLimit:   {0, time.Second, 3 * time.Second},
		chaos.Auth:        {0},
		chaos.BadRequest:  {0},
	} {
		t.Run(string(kind), func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				m, srv := catbuddy(t, chaos.Step{Error: kind})
				began := time.Now()
				d.ended(d.turn(d.opens(d.agent(m, full())), "Hello."), agent.ReasonFailed, "")
				equal(t, "asked", since(began, srv), want)
			})
		})
	}
}

// §3.2: an empty answer is nudged, twice. The nudge is not the user's word: it
// stays out of the conversation.
func TestDesign000AnEmptyAnswerIsNudgedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		steps  []chaos.Step
		reason agent.Reason
		text   string
	}{
		"and then there is one": {[]chaos.Step{{Empty: chaos.EmptyNone}, {Empty: chaos.EmptyWhitespace}, {Text: "Here it is."}}, agent.ReasonComplete, "Here it is."},
		"and there is none":     {[]chaos.Step{{Empty: chaos.EmptyNone}}, agent.ReasonEmpty, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				m, srv := catbuddy(t, c.steps...)
				s := d.opens(d.agent(m, full()))
				d.ended(d.turn(s, "Hello."), c.reason, c.text)
				srv.Wait()
				equal(t, "requests", len(srv.Log()), 3)
				for i, e := range srv.Log() {
					nudged := strings.Contains(string(e.Body), "Please provide your response to the user based on the conversation above.")
					equal(t, fmt.Sprintf("request %d is nudged", i), nudged, i > 0)
				}
				want := []string{"Hello."}
				if c.text != "" {
					want = append(want, c.text)
				}
				equal(t, "the conversation", spoken(s.State().Messages()), want)
			})
		})
	}
}

// §3.3: an answer that was cut off is gone on with, at most three times, and
// stands as one message; what is still cut then is told as cut.
func TestDesign000ACutAnswerIsContinuedThreeTimes(t *testing.T) {
	cut := func(text string) chaos.Step { return chaos.Step{Text: text, Finish: "length"} }
	for name, c := range map[string]struct {
		last   chaos.Step
		reason agent.Reason
	}{
		"to its end":            {chaos.Step{Text: " and a fourth."}, agent.ReasonComplete},
		"and not a fourth time": {cut(" and a fourth."), agent.ReasonTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				m, srv := catbuddy(t, cut("One part,"), cut(" a second,"), cut(" a third"), c.last, chaos.Step{Text: "never"})
				s := d.opens(d.agent(m, full()))
				d.ended(d.turn(s, "Tell me."), c.reason, "One part, a second, a third and a fourth.")
				srv.Wait()
				equal(t, "requests", len(srv.Log()), 4)
				for i, e := range srv.Log() {
					asked := strings.Contains(string(e.Body), "Output limit reached. Continue exactly where you left off — no recap, no apology.")
					equal(t, fmt.Sprintf("request %d asks to go on", i), asked, i > 0)
				}
				equal(t, "the conversation", spoken(s.State().Messages()), []string{"Tell me.", "One part, a second, a third and a fourth."})
			})
		})
	}
}

// §4: one question, one turn; the outage between is a notice, and the answer
// stands once.
func TestDesign000ATurnLandsBehindAnOutage(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		first, one := simulated(t, "deepseek/deepseek-chat", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.RateLimit}})
		second, _ := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{{Text: "Hello to you."}})
		m := heal.New(first, heal.With(heal.Catbuddy()), heal.Fallback(second))
		p := d.turn(d.opens(d.agent(m, full())), "Hello.")
		d.ended(p, agent.ReasonComplete, "Hello to you.")
		equal(t, "steps", noticed(p), "plan attempt fault failover attempt switch")
		equal(t, "the primary was asked", len(one.Log()), 1)
		equal(t, "answers", len(of[agent.Answered](p)), 1)
	})
}
