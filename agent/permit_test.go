package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// editor is a tool that would write a file, and can show what.
type editor struct{ *gadget }

func (e *editor) Preview(context.Context, []byte) (string, error) { return "-old\n+new", nil }

func newEditor(path string, ran *int) *editor {
	e := writer("edit_file", func(context.Context, *tool.Call) tool.Result { *ran++; return tool.TextResult("edited") })
	e.needs = []tool.Need{{Kind: tool.NeedWrite, Target: path}}
	return &editor{e}
}

func TestWhatNeedsAWordIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		says   Decision
		ran    int
		asked  int
		reason Reason
		told   string
	}{
		{"once", Decision{Reply: ReplyOnce}, 2, 2, ReasonComplete, "edited"},
		{"always", Decision{Reply: ReplyAlways}, 2, 1, ReasonComplete, "edited"},
		{"no", Decision{Reply: ReplyNo, Text: "use the other file"}, 0, 2, ReasonComplete, "Error: the user said no to this call: use the other file"},
		{"silence", Decision{}, 0, 2, ReasonComplete, "Error: the user said no to this call"},
		{"stop", Decision{Reply: ReplyStop}, 0, 1, ReasonDenied, "Error: the user said no to this call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			var asked []Question
			m := plays(calls(call("a", "edit_file", `{}`)), calls(call("b", "edit_file", `{}`)), says("ok"))
			s := opened(t, m, Tools(newEditor("main.go", &ran)), Journal(book(t)), Approve(func(_ context.Context, q Question) Decision {
				asked = append(asked, q)
				return c.says
			}))
			p := turned(t, s, "go")
			if ran != c.ran || len(asked) != c.asked || p.end.Reason != c.reason {
				t.Errorf("it ran %d times, was asked for %d times and ended as %s", ran, len(asked), p.end.Reason)
			}
			if q := asked[0]; q.Diff != "-old\n+new" || q.Name != "edit_file" || q.Needs[0].Target != "main.go" || q.Verdict.Action != tool.ActionAsk {
				t.Errorf("asked was %+v", q)
			}
			if got := spokenBy(s.State().Messages(), ninelives.RoleTool); got[0] != c.told {
				t.Errorf("the model was told %q", got)
			}
			if (len(s.State().Rules()) == 1) != (c.name == "always") {
				t.Errorf("the rules are %v", s.State().Rules())
			}
		})
	}
}

func TestWhereNobodyCanBeAskedACallIsDeniedAndTheTurnGoesOn(t *testing.T) {
	ran := 0
	m := plays(calls(call("a", "edit_file", `{}`)), says("then not"))
	s := opened(t, m, Tools(newEditor("main.go", &ran)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonComplete || ran != 0 {
		t.Errorf("it ended as %s, and the tool ran %d times", p.end.Reason, ran)
	}
	if got := answered(m, 1)[0]; !strings.HasPrefix(got, "Error: denied: ") || !strings.HasSuffix(got, "nobody can be asked here") {
		t.Errorf("the model was told %q", got)
	}
}

func TestAModeHoldsFromTheNextCallOn(t *testing.T) {
	ran := 0
	var s *Session
	mode := reader("relax", func(ctx context.Context, _ *tool.Call) tool.Result {
		if err := s.SetMode(ctx, tool.ModeFull); err != nil {
			t.Error(err)
		}
		return tool.TextResult("ok")
	})
	m := plays(calls(call("", "edit_file", `{}`)), calls(call("", "relax", `{}`)), calls(call("", "edit_file", `{}`)), says("ok"))
	s = opened(t, m, Tools(newEditor("main.go", &ran), mode), Journal(book(t)))
	turned(t, s, "go")
	if ran != 1 || s.Status().Mode != tool.ModeFull {
		t.Errorf("it ran %d times; the mode is %s", ran, s.Status().Mode)
	}
	turned(t, s, "again")
	if s.Status().Mode != tool.ModeFull {
		t.Errorf("the next turn has the mode %s", s.Status().Mode)
	}
}

func TestDeniedAgainAndAgainEndsTheTurn(t *testing.T) {
	ran := 0
	n := 0
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		n++
		calls(call("", "edit_file", `{"n":`+strings.Repeat("1", n)+`}`))(ctx, r, yield)
	})
	s := opened(t, m, Tools(newEditor("main.go", &ran)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonDenied || p.end.Limit != LimitDenials || n != 5 {
		t.Errorf("it ended as %s (%s) after %d answers", p.end.Reason, p.end.Limit, n)
	}
}

func TestAStopWhileAPersonIsAskedEndsTheTurn(t *testing.T) {
	ran := 0
	var s *Session
	m := plays(calls(call("a", "edit_file", `{}`)))
	s = opened(t, m, Tools(newEditor("main.go", &ran)), Approve(func(ctx context.Context, _ Question) Decision {
		s.Stop()
		<-ctx.Done()
		return Decision{Reply: ReplyOnce} // too late
	}))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonCanceled || ran != 0 {
		t.Errorf("it ended as %s, and the tool ran %d times", p.end.Reason, ran)
	}
	want := "Error: not started: the user stopped the turn before this call was made; it had no effect"
	if got := spokenBy(s.State().Messages(), ninelives.RoleTool); !slices.Equal(got, []string{want}) {
		t.Errorf("the results are %q", got)
	}
}

func TestACallKnowsWhatItWasJudgedUnder(t *testing.T) {
	var got []string
	look := reader("look", func(_ context.Context, c *tool.Call) tool.Result {
		got = append(got, string(c.Mode)+" "+string(c.Profile))
		return tool.TextResult("ok")
	})
	s := opened(t, plays(calls(call("", "look", `{}`)), says("ok"), calls(call("", "look", `{}`)), says("ok")), Tools(look), Journal(book(t)))
	turned(t, s, "1")
	if err := s.SetMode(t.Context(), tool.ModePlan); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMode(t.Context(), "yolo"); err == nil {
		t.Error("a mode that there is not was taken")
	}
	turned(t, s, "2")
	if want := []string{"ask standard", "plan standard"}; !slices.Equal(got, want) {
		t.Errorf("the calls were told %q", got)
	}
}
