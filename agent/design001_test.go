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
	"github.com/ninelives-ai/ninelives/tool"
)

// Source: design 001, "Layers in a single scenario" and "Cancellation & crash
// recovery", line by line, in one session over HTTP and in virtual time.
func TestDesign001LayersInASingleScenarioAndCancellationAndCrashRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []chaos.Call
		for i := range 50 {
			many = append(many, chaos.Call{Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, i)})
		}
		primary, first := simulated(t, "first/model", ninelives.OpenAIChat, []chaos.Step{{Error: chaos.RateLimit}})
		backup, second := simulated(t, "second/model", ninelives.AnthropicMessages, []chaos.Step{
			{Calls: many, Insist: true, Times: 41},
			{Calls: []chaos.Call{{Name: "write", Arguments: `{"path":"a"}`}}, Insist: true},
			{Calls: []chaos.Call{{Name: "write", Arguments: `{"path":"b"}`}}, Insist: true},
			{Text: "the restricted profile forbids it"},
			{Text: "still here"},
			{Calls: []chaos.Call{{Name: "look", Arguments: `{}`}}, Insist: true},
			{Text: "resumed"},
		})
		runs := 0
		look := writer("look", func(context.Context, *tool.Call) tool.Result {
			time.Sleep(400 * time.Millisecond)
			runs++
			return tool.TextResult(fmt.Sprintf("%d: %s", runs, strings.Repeat("what is seen ", 33)))
		})
		var s *Session
		write := writer("write", func(ctx context.Context, _ *tool.Call) tool.Result {
			s.Stop()
			<-ctx.Done()
			return tool.ErrorResult("half a file")
		})
		write.needs = []tool.Need{{Kind: tool.NeedWrite, Target: "a"}}
		set := DefaultSettings()
		set.Permissions.Mode = tool.ModeAutoEdit
		log := &tape{}
		a := New(heal.New(primary, heal.With(heal.Codebuddy()), heal.Fallback(backup)), Tools(look, write), With(set), Workspace(t.TempDir()))
		other := opened(t, plays(hangs("another conversation")), Workspace(t.TempDir()))
		s = a.taken(t.Context(), log, nil, nil)

		// Agent->>LLM: request … HTTP 429, retry after 1.5s, HTTP 429, retry after
		// 3s, give up, switch to the backup, success, isFallback: true.
		p := turned(t, s, "look at everything")
		at := first.Log()
		if len(at) < 3 || at[1].At.Sub(at[0].At) != 1500*time.Millisecond || at[2].At.Sub(at[1].At) != 3*time.Second {
			t.Errorf("the primary was asked at %v", arrivals(at))
		}
		for _, answer := range of[Answered](p) {
			if !answer.IsFallback || answer.Candidate != backup.Name() {
				t.Errorf("step %d was served by %s (fallback: %v)", answer.Step, answer.Candidate, answer.IsFallback)
			}
		}
		// Agent->>L3: tool call #2001, stop — max 2000.
		if p.end.Reason != ReasonLimit || p.end.Limit != LimitCalls || runs != 2000 {
			t.Errorf("after %d calls it ended as %s (%s)", runs, p.end.Reason, p.end.Limit)
		}
		lines := strings.Split(p.end.Message, "\n")
		if len(lines) != 3 || lines[0] != "Forced stop: reached maximum of 2000 tool invocations." ||
			!strings.HasPrefix(lines[1], fmt.Sprintf("Events: %d · Tool calls: 2000 · Elapsed: 1", p.end.Events)) ||
			lines[2] != "Please review the work completed so far." {
			t.Errorf("it says %q", p.end.Message)
		}
		// Agent->>L4: near the cap, tier 1 strip, and on it goes.
		compacted := of[Compacted](p)
		if len(compacted) == 0 || compacted[0].Why != WhyThreshold || compacted[0].After >= compacted[0].Before {
			t.Errorf("compacted was %+v", compacted)
		}
		if len(s.State().Messages()) < 80 {
			t.Error("the history has shrunk")
		}

		// A Stop signals the turn's own controller; the loop unwinds cleanly, and
		// work already applied stays applied and reviewable.
		before := time.Now()
		p = turned(t, s, "write it down")
		if p.end.Reason != ReasonCanceled || p.end.FailedTurn {
			t.Errorf("stopped, it ended as %s", p.end.Reason)
		}
		if took := time.Since(before); took > 5*time.Second {
			t.Errorf("it took %v, which is more than what the rate-limited primary takes", took)
		}
		if st := other.Status(); st.Running || st.Turn != 0 {
			t.Error("another conversation was touched")
		}

		// A policy-denied write degrades to a message instead of failing the turn
		// or triggering failover.
		if err := s.SetMode(t.Context(), tool.ModePlan); err != nil {
			t.Fatal(err)
		}
		p = turned(t, s, "write it again")
		said := spokenBy(s.State().Messages(), ninelives.RoleTool)
		if p.end.Reason != ReasonComplete || !strings.HasPrefix(said[len(said)-1], "Error: denied: ") || p.end.Text != "the restricted profile forbids it" {
			t.Errorf("denied, it ended as %s with %q; the model was told %q", p.end.Reason, p.end.Text, said[len(said)-1])
		}
		if p := turned(t, s, "are you there?"); p.end.Text != "still here" {
			t.Errorf("the turn after it ended with %q", p.end.Text)
		}

		// If a turn crashes mid-stream it is written back with a visible failedTurn
		// marker, so that it shows on reload; one conversation's crash does not
		// bleed into another.
		log.dies = 4
		if p := play(s.Turn(t.Context(), ninelives.UserText("once more"))); !errors.Is(p.err, errDied) {
			t.Fatalf("it was to die: %v %s", p.err, p.end.Reason)
		}
		s = a.taken(t.Context(), log, slices.Clone(log.entries), nil)
		if f := s.Status().Failed; f == nil || !f.FailedTurn || f.Reason != ReasonInterrupted {
			t.Errorf("reloaded, it stands as %+v", f)
		}
		p = play(s.Continue(t.Context()))
		if p.err != nil || p.end.Reason != ReasonComplete || p.end.Text != "resumed" {
			t.Errorf("it went on to %v %s %q", p.err, p.end.Reason, p.end.Text)
		}
		checked(t, s.State())
		for _, e := range second.Log() {
			if e.Status != 200 {
				t.Errorf("the backup refused request %d with %d: %s", e.Seq, e.Status, e.Did)
			}
		}
		_ = s.Close()
	})
}

func arrivals(log []chaos.Entry) (list []time.Duration) {
	for _, e := range log {
		list = append(list, e.At.Sub(log[0].At))
	}
	return list
}
