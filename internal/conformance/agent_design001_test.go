package conformance_test

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
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// Source design 001, "Layers in a single scenario" and "Cancellation & crash
// recovery", line by line: an agent with its files and its journal on the disk,
// under the preset of that design, over real HTTP in virtual time. All of it
// is played in one journal and one workspace, each line in a session of its own.
func TestDesign001SequenceAndRecovery(t *testing.T) {
	home := t.TempDir()
	for _, line := range []struct {
		name string
		play func(d *desk)
	}{
		{"Rate-limited then recovered", rateLimitedThenRecovered},
		{"Hit tool cap", hitToolCap},
		{"Context near cap", contextNearCap},
		{"Cooperative cancellation, between steps", canceledBetweenSteps},
		{"Cooperative cancellation, inside a tool", canceledInsideATool},
		{"Cooperative cancellation, inside a stream", canceledInsideAStream},
		{"Graceful degradation, a policy-denied write", deniedWriteDegrades},
		{"Graceful degradation, a tool that fails in mid-turn", failingToolDegrades},
		{"Failed-turn persistence, a turn that fails in mid-stream", failedTurnPersists},
		{"Failed-turn persistence, a turn that dies in mid-stream", diedTurnPersists},
		{"Per-session isolation", sessionsAreIsolated},
	} {
		t.Run(line.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { line.play(sits(t, home)) })
		})
	}
	t.Run("every session is read back as it was left", func(t *testing.T) {
		j, err := journal.Open(sits(t, home).journalPath())
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		list, damaged, err := j.Sessions(t.Context(), journal.SessionFilter{})
		if err != nil || len(damaged) > 0 {
			t.Fatal(err, damaged)
		}
		got := map[string]string{}
		for _, s := range list {
			got[s.Title] = s.State
		}
		equal(t, "sessions", got, map[string]string{
			"add a flag":     "complete",
			"count":          "limit",
			"note it all":    "complete",
			"one step":       "canceled",
			"write and wait": "complete", // the turn after the one that was stopped
			"talk":           "canceled",
			"write a secret": "complete",
			"recompile":      "complete",
			"fail":           "complete", // it was gone on with
			"die":            "complete",
			"crash":          "complete",
			"go on":          "complete",
		})
	})
}

func (d *desk) journalPath() string {
	_ = d.journal.Close() // a second opening in one process is another's
	return d.home + "/journal.db"
}

// chain is a primary and a backup under the preset of design 001.
func (d *desk) chain(primary, backup []chaos.Step) (m ninelives.Model, one, two *chaos.Server) {
	d.Helper()
	first, one := simulated(d.T, "openai/gpt-5.4", ninelives.OpenAIChat, primary)
	second, two := simulated(d.T, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, backup)
	return heal.New(first, heal.With(heal.Codebuddy()), heal.Fallback(second)), one, two
}

func (d *desk) turn(s *agent.Session, text string) acted {
	return acts(s.Turn(d.Context(), ninelives.UserText(text)), nil)
}

// since is when each request of a server arrived.
func since(began time.Time, srv *chaos.Server) (list []time.Duration) {
	for _, e := range srv.Log() {
		list = append(list, e.At.Sub(began))
	}
	return list
}

// Agent→LLM: request. 429 → retry after 1.5 s → 429 → retry after 3 s → 429 →
// give up, failover → the backup provider answers → continue (isFallback: true).
func rateLimitedThenRecovered(d *desk) {
	m, one, two := d.chain([]chaos.Step{{Error: chaos.RateLimit}}, []chaos.Step{uses(writes("flag.go", "package flag\n")), {Text: "The flag is there."}})
	began := time.Now()
	p := d.turn(d.opens(d.agent(m, full())), "add a flag")
	d.ended(p, agent.ReasonComplete, "The flag is there.")

	equal(d, "the primary was asked", since(began, one), []time.Duration{0, 1500 * time.Millisecond, 4500 * time.Millisecond})
	equal(d, "the backup was asked", since(began, two), []time.Duration{4500 * time.Millisecond, 4500 * time.Millisecond})
	equal(d, "the turn took", time.Since(began), 4500*time.Millisecond)
	var waits []time.Duration
	for _, n := range streamed[ninelives.Notice](p) {
		if n.Kind == ninelives.NoticeWait {
			waits = append(waits, n.Wait)
		}
	}
	equal(d, "the user was shown the waits", waits, []time.Duration{1500 * time.Millisecond, 3 * time.Second})
	if got, want := noticed(p), "plan attempt fault retry wait attempt fault retry wait attempt fault cooldown failover attempt"; !strings.HasPrefix(got, want) {
		d.Errorf("the steps were %s", got)
	}
	for i, e := range one.Log() {
		equal(d, "each retry tells the model of the failure", strings.Contains(string(e.Body), "The previous attempt to answer failed (rate limit)"), i > 0)
	}
	answers := of[agent.Answered](p)
	equal(d, "answers", len(answers), 2)
	for _, a := range answers {
		equal(d, "isFallback", a.IsFallback, true)
		equal(d, "served by", a.Candidate, "anthropic/claude-sonnet-4-6")
	}
	equal(d, "attempts", answers[0].Attempts, 4)
	equal(d, "the work goes on behind the backup", d.file("flag.go"), "package flag\n")
}

// Tool call #2001 → stop, max 2000.
func hitToolCap(d *desk) {
	const perAnswer, pause = 20, 2500 * time.Millisecond
	var steps []chaos.Step
	for i := range 2000/perAnswer + 1 {
		var calls []chaos.Call
		for j := range perAnswer {
			calls = append(calls, use("count", `{"n":%d}`, i*perAnswer+j))
		}
		steps = append(steps, uses(calls...))
	}
	steps[len(steps)-1].Calls = steps[len(steps)-1].Calls[:1]
	m, one, two := d.chain(steps, []chaos.Step{{}})
	ran := make(chan struct{}, 3000)
	count := gadget{"count", true, func(_ context.Context, c *tool.Call) tool.Result {
		time.Sleep(pause) // under the rate limits, which are another guard
		ran <- struct{}{}
		return tool.TextResult("counted " + string(c.Arguments))
	}}
	began := time.Now()
	s := d.opens(d.agent(m, full(), count))
	p := d.turn(s, "count")
	d.ended(p, agent.ReasonLimit, "")
	equal(d, "limit", p.end.Limit, agent.LimitCalls)
	equal(d, "calls that ran", len(ran), 2000)

	events := 0
	for _, e := range of[agent.Model](p) {
		switch e.Event.(type) {
		case ninelives.Notice, ninelives.Discard:
		default:
			events++
		}
	}
	// 20 calls, 8 at once, are three rounds.
	took := 100 * 3 * pause
	equal(d, "it took", time.Since(began), took)
	equal(d, "message", p.end.Message, fmt.Sprintf("Forced stop: reached maximum of 2000 tool invocations.\n"+
		"Events: %d · Tool calls: 2000 · Elapsed: 12m 30s.\nPlease review the work completed so far.", events))
	guarded := of[agent.Guarded](p)
	equal(d, "the guard said it once", len(guarded), 1)
	equal(d, "as a stop", guarded[0].Stop, true)

	calls := of[agent.Called](p)
	last := calls[len(calls)-1]
	equal(d, "call 2001 has a result", len(calls), 2001)
	equal(d, "it did not run", last.Ran, false)
	equal(d, "and the history says so", last.Result.Text(), "Error: not started: the safety guard stopped the turn before this call was made; it had no effect")
	// A stop of the guard is never retried, and no reason to ask somebody else.
	time.Sleep(time.Hour)
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{101, 0})
	accepted(d, one)
	equal(d, "the user may grant another quota", s.Status().Failed.Limit, agent.LimitCalls)
}

// At 85 % it is said; near the cap tier 1 strips, tier 3 summarises, and it is
// well under the threshold again. The table of the design (act at 90 %) wins
// over its picture (act at 85 %).
func contextNearCap(d *desk) {
	note := strings.Repeat("what was found out about the program ", 70)
	var steps []chaos.Step
	for i := range 10 {
		steps = append(steps, uses(use("note", `{"n":%d,"text":%q}`, i, note)))
	}
	steps = append(steps,
		chaos.Step{Text: "So far so good."},
		uses(use("note", `{"n":10,"text":%q}`, note+note[:len(note)/2])),
		chaos.Step{Text: "Goal: note it all. State: half of it is noted."}, // the summary
		uses(use("note", `{"n":11,"text":"short"}`)),
		chaos.Step{Text: "All is noted."})
	m, one, two := d.chain(steps, []chaos.Step{{}})
	noting := gadget{"note", true, func(_ context.Context, c *tool.Call) tool.Result {
		return tool.TextResult(fmt.Sprintf("noted %.7s %s", c.Arguments, strings.Repeat("n", 210)))
	}}
	s := d.opens(d.agent(m, full(), noting))
	d.ended(d.turn(s, "note it all"), agent.ReasonComplete, "So far so good.")

	// The same conversation in front of a window of which it fills 85 %.
	const reserve = 1000 // the largest answer of these models
	room := s.Status().Tokens * 100 / 85
	_ = s.Close()
	set := full()
	set.Compaction.Window = room + reserve
	s = d.resumes(d.agent(m, set, noting), s.ID())
	share := func() float64 { return float64(s.Status().Tokens) / float64(room) }
	var order []string
	p := acts(s.Turn(d.Context(), ninelives.UserText("go on")), func(e agent.Event) {
		switch e := e.(type) {
		case agent.Warning:
			within(d, "said at", share(), 0.85, 0.86)
			order = append(order, e.Text)
		case agent.Called:
			if len(order) == 1 {
				within(d, "acted at", share(), 0.90, 1)
			}
			order = append(order, "called")
		case agent.Compacted:
			equal(d, "the highest tier", e.Tier, 3)
			equal(d, "because of", e.Why, agent.WhyThreshold)
			within(d, "afterwards", share(), 0, 0.90)
			order = append(order, "compacted")
		}
	})
	d.ended(p, agent.ReasonComplete, "All is noted.")
	equal(d, "in this order", order, []string{"the conversation fills 85 % of the model's window", "called", "compacted", "called"})

	for i, e := range one.Log() {
		body := string(e.Body)
		equal(d, fmt.Sprintf("request %d is for a summary", i), strings.Contains(body, "You summarise a part of a conversation"), i == 12)
		equal(d, fmt.Sprintf("request %d has all results", i), strings.Count(body, strings.Repeat("n", 210)) >= min(i, 10), i <= 11)
		equal(d, fmt.Sprintf("request %d has stripped results", i), strings.Contains(body, "[result left out to save room: "), i > 12)
		equal(d, fmt.Sprintf("request %d holds the summary", i), strings.Contains(body, "State: half of it is noted."), i > 12)
		equal(d, fmt.Sprintf("request %d has the user's words", i), strings.Contains(body, "note it all"), true)
	}
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{15, 0})
	accepted(d, one)
	equal(d, "the history has lost nothing", len(s.State().Messages()), 2+2*12+2)
}

func within(t testing.TB, what string, got, least, below float64) {
	t.Helper()
	if got < least || got >= below {
		t.Errorf("%s: %.3f, not within %.2f and %.2f", what, got, least, below)
	}
}

// A stop is looked at between steps: what was applied stays, and can be
// reviewed and taken back.
func canceledBetweenSteps(d *desk) {
	m, one, two := d.chain([]chaos.Step{uses(writes("one.txt", "one\n")), {Text: "never asked for"}}, []chaos.Step{{}})
	s := d.opens(d.agent(m, full()))
	p := acts(s.Turn(d.Context(), ninelives.UserText("one step")), func(e agent.Event) {
		if _, ok := e.(agent.Called); ok {
			s.Stop()
		}
	})
	d.ended(p, agent.ReasonCanceled, "")
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{1, 0})
	d.reviewed(s, p, "one.txt", "one\n")
}

// reviewed holds that the change of a file can be seen, taken back to the byte,
// and made again.
func (d *desk) reviewed(s *agent.Session, p acted, name, content string) {
	d.Helper()
	equal(d, "the work stays", d.file(name), content)
	equal(d, "it is listed", p.end.Changed, []string{name})
	diff := ""
	for _, c := range of[agent.Called](p) {
		diff += c.Diff
	}
	equal(d, "its diff is shown", strings.Contains(diff, "+"+strings.TrimSuffix(content, "\n")), true)
	u, err := s.Undo(d.Context())
	if err != nil || len(u.Changes) != 1 || len(u.Conflicts) != 0 {
		d.Errorf("undo: %+v %v", u, err)
	}
	equal(d, "undone", d.file(name), "")
	if _, err := s.Redo(d.Context()); err != nil {
		d.Error(err)
	}
	equal(d, "redone", d.file(name), content)
}

// Inside a step too: what runs is told to end, what has not begun does not, and
// the next turn goes on with a history that every provider takes.
func canceledInsideATool(d *desk) {
	m, one, two := d.chain([]chaos.Step{
		uses(writes("two.txt", "two\n"), use("wait", `{}`), writes("three.txt", "three\n")),
		{Text: "I see that you stopped me."},
	}, []chaos.Step{{}})
	var s *agent.Session
	wait := gadget{"wait", false, func(ctx context.Context, _ *tool.Call) tool.Result {
		time.AfterFunc(time.Second, s.Stop)
		<-ctx.Done()
		return tool.ErrorResult("half done")
	}}
	s = d.opens(d.agent(m, full(), wait))
	began := time.Now()
	p := d.turn(s, "write and wait")
	d.ended(p, agent.ReasonCanceled, "")
	equal(d, "it ended", time.Since(began), time.Second)
	var results []string
	for _, c := range of[agent.Called](p) {
		results = append(results, c.Result.Text())
	}
	equal(d, "results", len(results), 3)
	equal(d, "of what was running", results[1], "Error: stopped by the user before it was finished; it may have had its effect, or a part of it. half done")
	equal(d, "of what had not begun", results[2], "Error: not started: the user stopped the turn before this call was made; it had no effect")
	equal(d, "it has not begun", d.file("three.txt"), "")
	d.reviewed(s, p, "two.txt", "two\n")
	d.ended(d.turn(s, "go on"), agent.ReasonComplete, "I see that you stopped me.")
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{2, 0})
	accepted(d, one)
}

// A stop hangs up on the provider in the middle of its answer, penetrates every
// retry, and is the matter of one conversation alone.
func canceledInsideAStream(d *desk) {
	m, one, two := d.chain([]chaos.Step{{Interval: time.Second}}, []chaos.Step{{}})
	a := d.agent(m, full())
	s, other := d.opens(a), d.opens(a)
	began := time.Now()
	second := make(chan acted)
	go func() { second <- acts(other.Turn(d.Context(), ninelives.UserText("go on")), nil) }()
	words := 0
	p := acts(s.Turn(d.Context(), ninelives.UserText("talk")), func(e agent.Event) {
		if m, ok := e.(agent.Model); ok {
			if _, ok := m.Event.(ninelives.TextDelta); ok {
				if words++; words == 3 {
					s.Stop()
				}
			}
		}
	})
	d.ended(p, agent.ReasonCanceled, "")
	equal(d, "it ended", time.Since(began), 2*time.Second)
	d.ended(<-second, agent.ReasonComplete, chaos.Answer)
	one.Wait()
	var left []time.Duration
	for _, e := range one.Log() {
		if e.Left {
			left = append(left, e.LeftAfter)
		}
	}
	equal(d, "hung up on after", left, []time.Duration{2 * time.Second})
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{2, 0})
}

// A write that the profile or a rule denies is a message to the model; the turn
// goes on, and nobody else is asked.
func deniedWriteDegrades(d *desk) {
	m, one, two := d.chain([]chaos.Step{
		uses(writes("secrets/key.txt", "k"), writes("../outside.txt", "o"), writes("notes.txt", "allowed\n")),
		{Text: "I wrote what I may."},
	}, []chaos.Step{{}})
	set := full()
	set.Permissions.Profile = tool.ProfileRestricted
	set.Permissions.Workspace = d.dir
	set.Permissions.Rules = []tool.Rule{{Action: tool.ActionDeny, Tool: "write_file", Target: "secrets/**"}}
	p := d.turn(d.opens(d.agent(m, set)), "write a secret")
	d.ended(p, agent.ReasonComplete, "I wrote what I may.")
	calls := of[agent.Called](p)
	equal(d, "results", len(calls), 3)
	for _, c := range calls[:2] {
		equal(d, "it did not run", c.Ran, false)
		equal(d, "an error for the model", c.Result.IsError && strings.HasPrefix(c.Result.Text(), tool.ErrorPrefix), true)
	}
	equal(d, "denied by the rule", calls[0].Denied && strings.Contains(calls[0].Result.Text(), "secrets/key.txt"), true)
	equal(d, "written", []string{d.file("secrets/key.txt"), d.file("../outside.txt"), d.file("notes.txt")}, []string{"", "", "allowed\n"})
	body := string(one.Log()[1].Body)
	equal(d, "the model was told why", strings.Contains(body, "Error: denied: "), true)
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{2, 0})
	equal(d, "no healing", noticed(p), "plan attempt plan attempt")
}

// What fails inside a tool, by an error or by a panic, is a note; the turn goes on.
func failingToolDegrades(d *desk) {
	m, one, two := d.chain([]chaos.Step{uses(use("recompile", `{"how":"error"}`)), uses(use("recompile", `{"how":"panic"}`)), {Text: "I went on without it."}}, []chaos.Step{{}})
	recompile := gadget{"recompile", true, func(_ context.Context, c *tool.Call) tool.Result {
		if strings.Contains(string(c.Arguments), "panic") {
			panic("recompile: vendor/lib is broken")
		}
		return tool.ErrorResult("recompile: vendor/lib is broken")
	}}
	p := d.turn(d.opens(d.agent(m, full(), recompile)), "recompile")
	d.ended(p, agent.ReasonComplete, "I went on without it.")
	var notes []string
	for _, c := range of[agent.Called](p) {
		notes = append(notes, c.Result.Text())
	}
	equal(d, "notes", notes, []string{"Error: recompile: vendor/lib is broken", "Error: the tool panicked: recompile: vendor/lib is broken"})
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{3, 0})
	equal(d, "no healing", noticed(p), "plan attempt plan attempt plan attempt")
}

// A turn that no provider can finish is written down with failedTurn, shows on
// reload with all that was done, and goes on with one word.
func failedTurnPersists(d *desk) {
	cut := chaos.Step{After: 5, End: chaos.Cut}
	m, one, two := d.chain([]chaos.Step{uses(writes("failed.txt", "kept\n")), cut}, []chaos.Step{cut})
	s := d.opens(d.agent(m, full()))
	p := d.turn(s, "fail")
	d.ended(p, agent.ReasonFailed, "")
	equal(d, "failedTurn", p.end.FailedTurn, true)
	equal(d, "requests", []int{len(one.Log()), len(two.Log())}, []int{4, 3})

	d = d.reloads(s)
	s = d.shown(s.ID(), agent.ReasonFailed, "fail", chaos.Step{Text: "Done after all."})
	equal(d, "nothing of what was cut counts as said", spoken(s.State().Messages()), []string{"fail"})
	d.ended(acts(s.Continue(d.Context()), nil), agent.ReasonComplete, "Done after all.")
	equal(d, "the work was not done again", len(s.State().Turns()[0].Changes), 1)
	equal(d, "it stays", d.file("failed.txt"), "kept\n")
	equal(d, "nothing is shown as failed any more", s.Status().Failed == nil, true)
}

// The same where nothing could be written down any more, because the journal
// went away under the turn.
func diedTurnPersists(d *desk) {
	m, _, _ := d.chain([]chaos.Step{uses(writes("died.txt", "kept\n")), {Interval: time.Second}}, []chaos.Step{{}})
	s := d.opens(d.agent(m, full()))
	words := 0
	p := acts(s.Turn(d.Context(), ninelives.UserText("die")), func(e agent.Event) {
		if m, ok := e.(agent.Model); ok {
			if _, ok := m.Event.(ninelives.TextDelta); ok {
				if words++; words == 3 {
					_ = d.journal.Close()
				}
			}
		}
	})
	if p.err == nil || !strings.Contains(p.err.Error(), "cannot be recorded") || p.end.Reason != "" {
		d.Fatalf("it ended: %v %s", p.err, p.end.Reason)
	}
	d = d.reloads(s)
	s = d.shown(s.ID(), agent.ReasonInterrupted, "die", chaos.Step{Text: "Done after all."})
	d.ended(acts(s.Continue(d.Context()), nil), agent.ReasonComplete, "Done after all.")
	equal(d, "it stays", d.file("died.txt"), "kept\n")
}

// reloads lets go of the session and the journal, and opens the journal again.
func (d *desk) reloads(s *agent.Session) *desk {
	d.Helper()
	_ = s.Close()
	_ = d.journal.Close()
	_ = d.files.Close()
	return sits(d.T, d.home)
}

// shown resumes a session whose turn failed, in front of a model that is well.
func (d *desk) shown(id string, reason agent.Reason, said string, step chaos.Step) *agent.Session {
	d.Helper()
	_, entries, _, err := d.journal.ReadSession(d.Context(), id)
	if err != nil {
		d.Fatal(err)
	}
	marked := slices.ContainsFunc(entries, func(e journal.Entry) bool {
		return e.Kind == "end" && strings.Contains(string(e.Data), `"failedTurn":true`)
	})
	equal(d, "failedTurn is on the disk", marked, reason == agent.ReasonFailed)
	m, _, _ := d.chain([]chaos.Step{step}, []chaos.Step{{}})
	s := d.resumes(d.agent(m, full()), id)
	f := s.Status().Failed
	if f == nil || !f.FailedTurn || f.Reason != reason {
		d.Fatalf("it is shown as %+v", f)
	}
	turns := s.State().Turns()
	equal(d, "its turn is there", len(turns), 1)
	equal(d, "with what the user said", turns[0].Text, said)
	equal(d, "and what was done", len(turns[0].Changes), 1)
	return s
}

// spoken are the texts of the conversation.
func spoken(messages []ninelives.Message) (list []string) {
	for _, m := range messages {
		if text := m.Text(); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// One conversation's crash does not bleed into another one of the same program.
func sessionsAreIsolated(d *desk) {
	m, one, _ := d.chain([]chaos.Step{
		{Interval: time.Second},                        // the one that crashes
		uses(writes("isolated.txt", "of the other\n")), // the other, meanwhile
		{Text: "The other is done."},
		{Text: "And so is the one."},
	}, []chaos.Step{{}})
	a := d.agent(m, full())
	s, other := d.opens(a), d.opens(a)
	var q acted
	crash := errors.New("the window was closed")
	func() {
		defer func() {
			if r := recover(); r != crash {
				d.Errorf("recovered %v", r)
			}
		}()
		acts(s.Turn(d.Context(), ninelives.UserText("crash")), func(e agent.Event) {
			m, ok := e.(agent.Model)
			if !ok {
				return
			}
			if _, ok := m.Event.(ninelives.TextDelta); ok {
				q = d.turn(other, "go on")
				panic(crash)
			}
		})
	}()
	d.ended(q, agent.ReasonComplete, "The other is done.")
	if s.ID() == other.ID() {
		d.Error("they are one session")
	}
	equal(d, "the other has nothing of it", spoken(other.State().Messages()), []string{"go on", "The other is done."})
	for _, e := range one.Log()[1:3] {
		equal(d, "nor was its model told", strings.Contains(string(e.Body), "crash"), false)
	}
	if f := s.Status().Failed; f == nil || f.Reason != agent.ReasonInterrupted {
		d.Errorf("it is shown as %+v", f)
	}
	d.ended(acts(s.Continue(d.Context()), nil), agent.ReasonComplete, "And so is the one.")
}
