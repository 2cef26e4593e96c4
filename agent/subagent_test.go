package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// delegating is a model that gives a task to a subagent, and as that subagent
// does what it is told.
func delegating(sub ...scene) *script {
	n, asked := 0, 0
	return plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if strings.Contains(r.Messages[0].Text(), "You are a subagent") {
			n++
			sub[min(n, len(sub))-1](ctx, r, yield)
			return
		}
		if asked++; asked == 1 {
			calls(call("", "subagent", `{"task":"find the flag"}`))(ctx, r, yield)
			return
		}
		says("the flag is found")(ctx, r, yield)
	})
}

func TestASubagentDoesItsTaskInASessionOfItsOwn(t *testing.T) {
	j := book(t)
	edit := writer("edit", func(context.Context, *tool.Call) tool.Result {
		r := tool.TextResult("ok")
		r.Changes = []tool.Change{{Path: "flag.txt"}}
		return r
	})
	edit.needs = []tool.Need{{Kind: tool.NeedWrite, Target: "flag.txt"}}
	set := DefaultSettings()
	set.Permissions.Mode = tool.ModeFull
	m := delegating(calls(call("", "edit", `{}`)), says("it is in flag.txt"))
	s := opened(t, m, Tools(edit), With(set), Journal(j))
	p := turned(t, s, "where is the flag?")
	if p.end.Reason != ReasonComplete || p.end.Text != "the flag is found" || !slices.Equal(p.end.Changed, []string{"flag.txt"}) {
		t.Errorf("it ended as %s with %q, and changed %q", p.end.Reason, p.end.Text, p.end.Changed)
	}
	if got := answered(m, 3); !slices.Equal(got, []string{"it is in flag.txt"}) {
		t.Errorf("the model was told %q", got)
	}
	if got := spokenBy(m.asked()[1].Messages, ninelives.RoleUser); !slices.Equal(got, []string{"find the flag"}) {
		t.Errorf("the subagent read %q", got)
	}
	for _, tool := range m.asked()[1].Tools {
		if tool.Name == "subagent" {
			t.Error("the subagent can start subagents, one level too deep")
		}
	}
	if out := of[Output](p); len(out) != 1 || out[0].Text != "edit flag.txt\n" {
		t.Errorf("shown was %+v", out)
	}
	// Both have one quota.
	if tally := s.State().Tally(); tally.Calls != 2 || tally.PerTool["edit"] != 1 || tally.PerFile["flag.txt"] != 1 {
		t.Errorf("counted was %+v", tally)
	}
	if u, _ := s.State().Usage(); u.Input != 400 {
		t.Errorf("the usage is %+v", u)
	}
	list, _, err := j.Sessions(t.Context(), journal.SessionFilter{Labels: map[string]string{"parent": s.ID()}})
	if err != nil || len(list) != 1 || list[0].Title != "find the flag" || list[0].Running {
		t.Errorf("the session of the subagent is %+v, %v", list, err)
	}
}

func TestASubagentSharesTheGuardWithTheTurnThatStartedIt(t *testing.T) {
	set := DefaultSettings()
	set.Guard.Calls = 4
	n := 0
	m := delegating(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		n++
		calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n)))(ctx, r, yield)
	})
	s := opened(t, m, Tools(reader("look", echo)), With(set))
	p := turned(t, s, "go")
	want := "Error: the subagent ended before it was done (limit): Forced stop: reached maximum of 4 tool invocations."
	if got := spokenBy(s.State().Messages(), ninelives.RoleTool); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("the model was told %q", got)
	}
	if tally := s.State().Tally(); tally.Calls != 4 || p.end.Reason != ReasonComplete {
		t.Errorf("counted was %+v, and it ended as %s", tally, p.end.Reason)
	}
}

func TestAStopEndsTheSubagentToo(t *testing.T) {
	var s *Session
	m := delegating(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		s.Stop()
		hangs("I look")(ctx, r, yield)
	})
	s = opened(t, m, Tools(reader("look", echo)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonCanceled {
		t.Errorf("it ended as %s", p.end.Reason)
	}
	got := spokenBy(s.State().Messages(), ninelives.RoleTool)
	if len(got) != 1 || !strings.HasPrefix(got[0], "Error: stopped by the user before it was finished; it may have had its effect, or a part of it. the subagent ended before it was done (canceled)") {
		t.Errorf("the model is told %q", got)
	}
}
