package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// everywhere is a hook that notes each node that it is called at.
func everywhere(note func(string)) Hook {
	return Hook{
		Name:         "all",
		SessionStart: func(context.Context, string, string) { note("session start") },
		SessionEnd:   func(context.Context, string) { note("session end") },
		TurnStart: func(_ context.Context, _ *State, in string) Intervention {
			note("turn start " + in)
			return Intervention{}
		},
		TurnEnd:         func(_ context.Context, _ *State, e Ended) { note("turn end " + string(e.Reason)) },
		BeforeIteration: func(context.Context, *State) Intervention { note("before iteration"); return Intervention{} },
		AfterIteration:  func(context.Context, *State) Intervention { note("after iteration"); return Intervention{} },
		BeforeModel:     func(_ context.Context, p Purpose, r *ninelives.Request) { note("before model " + string(p)) },
		AfterModel:      func(_ context.Context, a Answer, err error) { note(fmt.Sprint("after model ", a.Step, " ", err)) },
		BeforeTool: func(_ context.Context, c *tool.Call, s tool.Spec) Intervention {
			note("before " + s.Name)
			return Intervention{}
		},
		AfterTool: func(_ context.Context, c *tool.Call, e Effect) Intervention {
			note("after " + e.Name)
			return Intervention{}
		},
		BeforeCompaction: func(_ context.Context, _ *State, why string) { note("before compaction " + why) },
		AfterCompaction:  func(_ context.Context, c Compaction) { note("after compaction") },
		Stream:           func(_ context.Context, m Model) { note(fmt.Sprintf("stream %T", m.Event)) },
		Event:            func(_ context.Context, e Event) { note(fmt.Sprintf("event %T", e)) },
	}
}

func TestHooksAreCalledAtEveryNodeInOrder(t *testing.T) {
	var got []string
	m := plays(calls(call("a", "look", `{}`)), says("done"))
	s := opened(t, m, Tools(reader("look", echo)), Hooks(everywhere(func(n string) { got = append(got, n) })), Journal(book(t)))
	turned(t, s, "go")
	if _, err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	want := []string{
		"session start", "event agent.Started", "turn start go",
		"before iteration", "before model step", "event agent.Answered", "after model 1 <nil>",
		"before look", "event agent.Calling", "event agent.Called", "after look", "after iteration",
		"before iteration", "before model step", "stream ninelives.TextDelta", "event agent.Answered", "after model 2 <nil>", "after iteration",
		"turn end complete", "event agent.Ended",
		"before compaction asked", "after compaction", "session end",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the nodes were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatAHookIsToldOfIsDurable(t *testing.T) {
	var log recorded
	missing := func(kind, node string) {
		if log.recorder != nil && !slices.Contains(log.kinds(), kind) {
			t.Errorf("%s is told before the %s is durable", node, kind)
		}
	}
	hook := everywhere(func(n string) {
		for prefix, kind := range map[string]string{
			"turn start": "start", "after model": "answer", "after look": "effect", "after iteration": "effect", "turn end": "end", "before look": "answer",
		} {
			if strings.HasPrefix(n, prefix) {
				missing(kind, n)
			}
		}
	})
	s := opened(t, plays(calls(call("a", "look", `{}`)), says("done")), Tools(reader("look", echo)), Hooks(hook), Journal(book(t)))
	log.recorder = s.log
	s.log = &log
	turned(t, s, "go")
}

func TestAHookThatPanicsIsAWarning(t *testing.T) {
	m := plays(calls(call("a", "look", `{}`)), says("done"))
	s := opened(t, m, Tools(reader("look", echo)), Hooks(everywhere(func(n string) { panic("at\n" + n) })), Journal(book(t)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonComplete || p.end.Text != "done" {
		t.Errorf("it ended as %s with %q", p.end.Reason, p.end.Text)
	}
	w := of[Warning](p)
	if len(w) < 15 || !slices.Contains(w, Warning{Text: `the hook "all" failed at SessionStart: at session start`}) ||
		!slices.Contains(w, Warning{Text: `the hook "all" failed at TurnEnd: at turn end complete`}) {
		t.Errorf("the warnings are %q", w)
	}
}

func TestHooksSpeakToTheModelAndStopWhatTheyAreAskedFor(t *testing.T) {
	note := func(text string) Intervention { return Intervention{Note: text} }
	block := func(text string) Intervention { return Intervention{Block: true, Note: text} }
	once := func(in Intervention) func() Intervention {
		done := false
		return func() Intervention {
			if done {
				return Intervention{}
			}
			done = true
			return in
		}
	}
	for _, c := range []struct {
		name   string
		hook   func(in func() Intervention) Hook
		blocks Reason
	}{
		{"TurnStart", func(in func() Intervention) Hook {
			return Hook{Name: "gate", TurnStart: func(context.Context, *State, string) Intervention { return in() }}
		}, ReasonDenied},
		{"BeforeIteration", func(in func() Intervention) Hook {
			return Hook{Name: "gate", BeforeIteration: func(context.Context, *State) Intervention { return in() }}
		}, ReasonDenied},
		{"AfterIteration", func(in func() Intervention) Hook {
			return Hook{Name: "gate", AfterIteration: func(context.Context, *State) Intervention { return in() }}
		}, ReasonDenied},
		{"BeforeTool", func(in func() Intervention) Hook {
			return Hook{Name: "gate", BeforeTool: func(context.Context, *tool.Call, tool.Spec) Intervention { return in() }}
		}, ReasonComplete},
		{"AfterTool", func(in func() Intervention) Hook {
			return Hook{Name: "gate", AfterTool: func(context.Context, *tool.Call, Effect) Intervention { return in() }}
		}, ReasonDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := plays(calls(call("a", "look", `{}`)), says("done"))
			s := opened(t, m, Tools(reader("look", echo)), Hooks(c.hook(once(note("mind the gap")))))
			p := turned(t, s, "go")
			said := spokenBy(m.asked()[len(m.asked())-1].Messages, ninelives.RoleUser)
			if p.end.Reason != ReasonComplete || !slices.Contains(said, notePrefix+"mind the gap") {
				t.Errorf("with a note it ended as %s, and the model read %q", p.end.Reason, said)
			}
			ran := false
			look := reader("look", func(context.Context, *tool.Call) tool.Result { ran = true; return tool.TextResult("x") })
			m = plays(calls(call("a", "look", `{}`)), says("done"))
			s = opened(t, m, Tools(look), Hooks(c.hook(once(block("not now")))))
			p = turned(t, s, "go")
			if p.end.Reason != c.blocks {
				t.Errorf("blocked it ended as %s: %s", p.end.Reason, p.end.Message)
			}
			if c.name == "BeforeTool" {
				if got := answered(m, 1); ran || !slices.Equal(got, []string{"Error: denied by gate: not now"}) {
					t.Errorf("the model was told %q; the tool ran: %v", got, ran)
				}
			} else if p.end.Message != "gate ended the turn: not now" {
				t.Errorf("it says %q", p.end.Message)
			}
		})
	}
}

func TestBeforeModelChangesTheRequestAndNotTheHistory(t *testing.T) {
	m := plays(says("done"))
	s := opened(t, m, Hooks(Hook{BeforeModel: func(_ context.Context, _ Purpose, r *ninelives.Request) {
		r.Messages = append(r.Messages, ninelives.UserText("by the hook"))
		r.Messages[1].Parts[0] = ninelives.Text{Text: "changed"}
	}}))
	turned(t, s, "go")
	if got := spokenBy(m.asked()[0].Messages, ninelives.RoleUser); !slices.Equal(got, []string{"changed", "by the hook"}) {
		t.Errorf("the model read %q", got)
	}
	if got := spokenBy(s.State().Messages(), ninelives.RoleUser); !slices.Equal(got, []string{"go"}) {
		t.Errorf("the history says %q", got)
	}
}

// Whoever counts requests or opens a span for each needs the end of every one:
// of those that fail and of summaries too.
func TestEveryRequestThatBeginsIsToldToEnd(t *testing.T) {
	var story strings.Builder
	for n := range 150 {
		fmt.Fprintf(&story, "Cat %d sat on mat %d and looked at moon %d. ", n, n*n, n+7)
	}
	long := strings.TrimSpace(story.String())
	summary := says("They spoke of cats.")
	panics := func(context.Context, *ninelives.Request, func(ninelives.Event, error) bool) { panic("out of memory") }
	for _, c := range []struct {
		scene scene
		end   string
	}{
		{summary, "compact 0: They spoke of cats. <nil>"},
		{fails(ninelives.ClassAuth, "no key"), "compact 0:  auth: no key"},
		{ends(ninelives.FinishLength, ninelives.Text{Text: "They"}), "compact 0:  the summary is not whole (length)"},
		{panics, "compact 0:  unknown: the model panicked: out of memory"},
	} {
		var s *Session
		var got []string
		m := plays(says(long), says(long), says(long), says(long), fails(ninelives.ClassAuth, "no key"), c.scene)
		s = opened(t, m, Hooks(Hook{
			BeforeModel: func(ctx context.Context, p Purpose, _ *ninelives.Request) {
				if id, _ := Whose(ctx); id != s.ID() {
					t.Errorf("it is asked for the session %q", id)
				}
				got = append(got, string(p))
			},
			AfterModel: func(ctx context.Context, a Answer, err error) {
				id, turn := Whose(ctx)
				if id != s.ID() || turn != a.Turn {
					t.Errorf("it ends for %q, turn %d, and is of turn %d", id, turn, a.Turn)
				}
				text := a.Message.Text()
				if text == long {
					text = "…"
				}
				got = append(got, fmt.Sprintf("%s %d: %s %v", a.Purpose, a.Step, text, err))
			},
		}))
		for range 4 {
			turned(t, s, "Tell me more.")
		}
		turned(t, s, "go on")
		if _, err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		answered := []string{"step", "step 1: … <nil>"}
		want := slices.Concat(answered, answered, answered, answered, []string{"step", "step 1:  auth: no key", "compact", c.end})
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		for i := 0; i < len(got); i += 2 {
			if i+1 == len(got) || !strings.HasPrefix(got[i+1], got[i]+" ") {
				t.Errorf("%q has no end: %q", got[i], got)
			}
		}
	}
}
