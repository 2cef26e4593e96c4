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

// How other agents have failed in public, by kind: what no other test of this
// repository shows at the level of a turn. The table that says which test is
// for which failure is in agent_coverage_test.go.

// A turn that has had its last word ends there, however full the window is: no
// compaction wakes it up. The next turn begins with one.
func TestAFinishedTurnIsNeitherCompactedNorGoneOnWith(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		m, srv := simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, []chaos.Step{
			{Text: story(100)}, {Text: story(101)}, {Text: story(102)}, {Text: story(103)}, {Text: story(104)}, {Text: "A summary."}, {Text: "Done."}})
		set := full()
		s := d.opens(agent.New(heal.New(m), agent.With(set), agent.Workspace(d.dir), agent.Journal(d.journal)))
		for i := range 5 {
			d.ended(d.turn(s, fmt.Sprint("Story ", i)), agent.ReasonComplete, story(100+i))
		}
		// The last answer has filled the window to more than nine tenths.
		set.Compaction.Window = s.Status().Tokens*100/95 + 1000
		_ = s.Close()
		s = d.resumes(agent.New(heal.New(m), agent.With(set), agent.Workspace(d.dir), agent.Journal(d.journal)), s.ID())
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "requests after the end", len(srv.Log()), 5)
		p := d.turn(s, "And now?")
		d.ended(p, agent.ReasonComplete, "Done.")
		equal(t, "compactions", len(of[agent.Compacted](p)), 1)
		equal(t, "requests", len(srv.Log()), 7)
		// Under the threshold again, and again finished: nothing more happens.
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "requests after that end", len(srv.Log()), 7)
		accepted(t, srv)
	})
}

// What a stream has said before it broke is void, a whole call in it included:
// the call that counts is the one of the answer that came to its end, and it
// runs once.
func TestACallOfAStreamThatBreaksDoesNotRunTwice(t *testing.T) {
	for _, p := range protocols {
		for name, end := range map[string]chaos.End{"cut": chaos.Cut, "reset": chaos.Reset, "a polite end": chaos.CleanEnd, "an error": chaos.ErrorEvent} {
			t.Run(string(p)+", "+name, func(t *testing.T) {
				home := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					d := sits(t, home)
					broken := uses(use("append", `{"line":"once"}`))
					broken.After, broken.End, broken.Omit = 3, end, []string{"finish", "done"}
					if end == chaos.ErrorEvent {
						broken.Error = chaos.Overloaded
					}
					m, srv := simulated(t, vendors[p], p, []chaos.Step{broken, uses(use("append", `{"line":"once"}`)), {Text: "Done."}})
					ran := 0
					s := d.opens(d.agent(heal.New(m), full(), gadget{"append", false, func(context.Context, *tool.Call) tool.Result {
						ran++
						return tool.TextResult("appended")
					}}))
					q := d.turn(s, "Append a line.")
					d.ended(q, agent.ReasonComplete, "Done.")
					accepted(t, srv)
					equal(t, "it ran", ran, 1)
					equal(t, "requests", len(srv.Log()), 3)
				})
			})
		}
	}
}

// A form that the model never meets ends the turn after one correction.
func TestAFormThatIsNeverMetComesToAnEnd(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		m, srv := simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, []chaos.Step{{Text: `{"number":"nine"}`}})
		set := full()
		set.Output = &ninelives.Output{Name: "number", Schema: []byte(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`)}
		s := d.opens(agent.New(heal.New(m), agent.With(set), agent.Workspace(d.dir), agent.Journal(d.journal)))
		p := d.turn(s, "A number.")
		d.ended(p, agent.ReasonFailed, "")
		equal(t, "the user is told what is wrong with it", strings.Contains(p.end.Message, "number"), true)
		equal(t, "requests", len(srv.Log()), 2)
		time.Sleep(time.Hour)
		equal(t, "requests an hour later", len(srv.Log()), 2)
	})
}

// The user goes with one session from vendor to vendor, each of which thinks,
// signs and calls, and comes back to the first: none of them refuses it.
func TestASessionSurvivesEverySwitchOfItsModel(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		models := map[ninelives.Protocol]ninelives.Model{}
		servers := map[ninelives.Protocol]*chaos.Server{}
		for _, p := range protocols {
			vendor := vendors[p]
			if p == ninelives.OpenAIChat {
				vendor = "deepseek/deepseek-v4-pro"
			}
			wants := chaos.MissingReasoning
			var steps []chaos.Step
			for range 2 {
				steps = append(steps, thinks(1, "", wants), chaos.Step{Reasoning: "So that is it.", Text: "Seen by " + vendor + ".", Reject: []chaos.Check{wants}})
			}
			var m ninelives.Model
			m, servers[p] = simulated(t, vendor, p, steps)
			models[p] = heal.New(m)
		}
		look := gadget{"look", true, func(context.Context, *tool.Call) tool.Result { return tool.TextResult("seen") }}
		a := d.agent(models[protocols[0]], full(), look)
		s := d.opens(a)
		for round := range 2 {
			for _, p := range protocols {
				if _, err := a.Swap(fmt.Sprint(round, p), func() (ninelives.Model, error) { return models[p], nil }); err != nil {
					t.Fatal(err)
				}
				q := d.turn(s, "Look.")
				if q.end.Reason != agent.ReasonComplete || !strings.HasPrefix(q.end.Text, "Seen by ") {
					t.Errorf("round %d, %s: %v %s: %s", round, p, q.err, q.end.Reason, q.end.Message)
				}
				accepted(t, servers[p])
				equal(t, "requests", len(servers[p].Log()), 2*(round+1))
			}
		}
	})
}

// A stream that goes silent, or shows no more than that it is alive, ends by
// its clock; one that says that it failed ends at once. The turn goes on.
func TestAStreamThatStallsCostsItsClockAndNotTheTurn(t *testing.T) {
	failed := "event: response.failed\n" + `data: {"type":"response.failed","response":{"id":"x","object":"response","status":"failed","error":{"code":"server_error","message":"The server had an error while processing your request."},"output":[]}}` + "\n\n"
	for _, c := range []struct {
		name string
		step chaos.Step
		took time.Duration // besides the waits that were shown
	}{
		{"silence", chaos.Step{After: 3, End: chaos.Stall}, 30 * time.Second},
		{"keep-alive comments alone", chaos.Step{After: 3, Pause: time.Hour, KeepAlive: 5 * time.Second}, 90 * time.Second},
		{"response.failed, and then nothing", chaos.Step{After: 3, Inject: failed, End: chaos.Stall}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				first, one := simulated(t, "openai/gpt-5.4", ninelives.OpenAIResponses, []chaos.Step{c.step})
				second, two := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{{Text: "Whole."}})
				s := d.opens(d.agent(heal.New(first, heal.Fallback(second)), full()))
				began := time.Now()
				p := d.turn(s, "Hello.")
				d.ended(p, agent.ReasonComplete, "Whole.")
				took, waited := time.Since(began), time.Duration(0)
				for _, n := range streamed[ninelives.Notice](p) {
					if n.Kind == ninelives.NoticeWait {
						waited += n.Wait
					}
				}
				equal(t, "it took", took-waited, c.took)
				equal(t, "what was shown is taken back", len(streamed[ninelives.Discard](p)) > 0, true)
				equal(t, "and is no part of the conversation", spoken(s.State().Messages()), []string{"Hello.", "Whole."})
				equal(t, "the backup was asked", len(two.Log()), 1)
				within(t, "the first was asked", float64(len(one.Log())), 1, 3)
			})
		})
	}
}

// No credit left is told at once, with what to do, after one request; and a
// limit that passes is not taken for it.
func TestAHardQuotaIsToldAtOnceAndARateLimitIsNone(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		m, srv := simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.Billing, Status: 429}})
		began := time.Now()
		p := d.turn(d.opens(d.agent(heal.New(m), full())), "Hello.")
		d.ended(p, agent.ReasonFailed, "")
		equal(t, "class", p.end.Fault.Class, ninelives.ClassBilling)
		equal(t, "it took", time.Since(began), 0)
		equal(t, "requests", len(srv.Log()), 1)

		m, srv = simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 20 * time.Second}, {Text: "Hello to you."}})
		d.ended(d.turn(d.opens(d.agent(heal.New(m), full())), "Hello."), agent.ReasonComplete, "Hello to you.")
		equal(t, "requests", len(srv.Log()), 2)
	})
}

// Layers do not multiply: a step of a turn costs what one call of the chain
// costs, whatever fails around it, and a turn that failed asks nobody by itself.
func TestTheRequestsOfAFailingTurnAddAndDoNotMultiply(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		fails := []chaos.Step{{Error: chaos.ServerError}}
		first, one := simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, fails)
		second, two := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, fails)
		third, three := simulated(t, "google/gemini-3-pro", ninelives.Gemini, fails)
		s := d.opens(d.agent(heal.New(first, heal.Fallback(second, third)), full()))
		d.ended(d.turn(s, "Hello."), agent.ReasonFailed, "")
		sum := func() int { return len(one.Log()) + len(two.Log()) + len(three.Log()) }
		equal(t, "requests", sum(), heal.DefaultPolicy().Budget.Faults)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		equal(t, "requests a day later", sum(), heal.DefaultPolicy().Budget.Faults)
	})
}
