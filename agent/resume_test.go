package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// cutShort is a recorder whose process dies at a write: the at-th write and all
// after it are never made. Where after is set, the write itself still is.
type cutShort struct {
	recorder
	at    int
	after bool
	n     int
}

var errDied = errors.New("the process died")

func (r *cutShort) Append(ctx context.Context, h *journal.Head, entries ...journal.Entry) error {
	r.n++
	if r.n > r.at || r.n == r.at && !r.after {
		return errDied
	}
	if err := r.recorder.Append(ctx, h, entries...); err != nil {
		return err
	}
	if r.n == r.at {
		return errDied
	}
	return nil
}

// died runs a turn whose process dies at a write, and resumes the session with
// another agent.
func died(t *testing.T, at int, after bool, m ninelives.Model, then ninelives.Model, tools ...tool.Tool) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := New(m, Workspace(dir), Journal(j), Tools(tools...)).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	s.log = &cutShort{recorder: s.log, at: at, after: after}
	if p := play(s.Turn(t.Context(), ninelives.UserText("do it"))); !errors.Is(p.err, errDied) {
		t.Fatalf("it was to die, and gave %v %s", p.err, p.end.Reason)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	s, err = New(then, Workspace(dir), Journal(j), Tools(tools...)).Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The writes of the turn: 1 input, 2 start, 3 answer and intent, 4 effect, 5 answer and end.

func TestACallThatWasCutOffIsNeverMadeAgainByTheProgram(t *testing.T) {
	ran := 0
	write := writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("written") })
	then := plays(says("I looked: it was written"))
	s := died(t, 4, false, plays(calls(call("a", "write", `{}`))), then, write)
	if f := s.Status().Failed; f == nil || f.Reason != ReasonInterrupted || !f.FailedTurn {
		t.Fatalf("it stands as %+v", f)
	}
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete || ran != 1 {
		t.Fatalf("it went on to %v %s, the tool ran %d times", p.err, p.end.Reason, ran)
	}
	want := "Error: it was running when the program died, and nobody can say whether it had its effect. Find out before you do it again"
	if got := answered(then, 0); !slices.Equal(got, []string{want}) {
		t.Errorf("the model was told %q", got)
	}
	if e := of[Called](p); len(e) != 1 || !e[0].Unknown {
		t.Errorf("the user was told %+v", e)
	}
	checked(t, s.State())
}

// What a call that was cut off changed is in no list of changes: an undo says
// that it leaves it alone.
func TestAnUndoSaysWhatItCannotKnow(t *testing.T) {
	edit := writer("edit", func(_ context.Context, c *tool.Call) tool.Result {
		r := tool.TextResult("ok")
		r.Changes = []tool.Change{{Path: "a"}}
		return r
	})
	m := plays(calls(call("a", "edit", `{}`), call("b", "write", `{}`)))
	s := died(t, 5, false, m, plays(says("I looked"), says("aha")), edit, writer("write", echo))
	s.a.restorer = &shelf{}
	turned := func(p played) {
		t.Helper()
		if p.err != nil || p.end.Reason != ReasonComplete {
			t.Fatalf("%v %s", p.err, p.end.Reason)
		}
	}
	turned(play(s.Continue(t.Context())))
	u, err := s.Undo(t.Context())
	want := "Nobody knows what was changed by the calls that were cut off (write): that stands as it is."
	if err != nil || u.Turn != 1 || len(u.Changes) != 1 || u.Left() != want {
		t.Errorf("undone was %+v (%s), %v", u, u.Left(), err)
	}
	if said := s.State().Waiting(); len(said) != 1 || !strings.HasSuffix(said[0].Message.Text(), "turn 1: a. "+want) {
		t.Errorf("the model is told %+v", said)
	}
	if u, err = s.Redo(t.Context()); err != nil || u.Left() != "" {
		t.Errorf("made again was %+v, %v", u, err)
	}
}

func TestACallThatHadNoIntentSimplyRuns(t *testing.T) {
	ran := 0
	write := writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("written") })
	// The answer's transaction is lost with the intent in it: the model is asked again.
	s := died(t, 3, false, plays(calls(call("a", "write", `{}`))), plays(calls(call("a", "write", `{}`)), says("ok")), write)
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete || ran != 1 {
		t.Errorf("it went on to %v %s, the tool ran %d times", p.err, p.end.Reason, ran)
	}
}

func TestACallThatOnlyReadsIsMadeAgain(t *testing.T) {
	var ran atomic.Int32 // two at once
	look := reader("look", func(context.Context, *tool.Call) tool.Result { ran.Add(1); return tool.TextResult("seen") })
	then := plays(says("ok"))
	s := died(t, 4, false, plays(calls(call("a", "look", `{}`), call("b", "look", `{"n":2}`))), then, look)
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete || ran.Load() != 4 {
		t.Errorf("it went on to %v %s, the tool ran %d times", p.err, p.end.Reason, ran.Load())
	}
	if got := answered(then, 0); !slices.Equal(got, []string{"seen", "seen"}) {
		t.Errorf("the model was told %q", got)
	}
	if calls := s.State().Tally().Calls; calls != 2 {
		t.Errorf("%d calls are counted", calls)
	}
}

// knowing is a tool that knows what became of its calls.
type knowing struct {
	*gadget
	standing tool.Standing
}

func (k *knowing) Mark(context.Context, *tool.Call) ([]byte, error) { return []byte("the mark"), nil }
func (k *knowing) Probe(_ context.Context, c *tool.Call, mark []byte) (tool.Standing, tool.Result) {
	if string(mark) != "the mark" || string(c.Arguments) != `{"a":1,"b":2}` {
		return "", tool.ErrorResult("not what was marked")
	}
	if k.standing == "panics" {
		panic("oh no")
	}
	return k.standing, tool.TextResult("found out")
}

func TestAToolThatCanFindOutIsAskedWhatBecameOfItsCall(t *testing.T) {
	for _, c := range []struct {
		standing tool.Standing
		ran      int
		want     string
	}{
		{tool.StandingDone, 1, "found out"},
		{tool.StandingNotStarted, 2, "written"},
		{tool.StandingUnknown, 1, tool.ErrorPrefix + noTwice + ". found out"},
		{"panics", 1, tool.ErrorPrefix + noTwice},
	} {
		t.Run(string(c.standing), func(t *testing.T) {
			ran := 0
			write := &knowing{writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("written") }), c.standing}
			then := plays(says("ok"))
			s := died(t, 4, false, plays(calls(call("a", "write", `{"b":2,"a":1}`))), then, write)
			p := play(s.Continue(t.Context()))
			if p.err != nil || p.end.Reason != ReasonComplete || ran != c.ran {
				t.Errorf("it went on to %v %s, the tool ran %d times, want %d", p.err, p.end.Reason, ran, c.ran)
			}
			if got := answered(then, 0); !slices.Equal(got, []string{c.want}) {
				t.Errorf("the model was told %q", got)
			}
			// What it changed is known where it ran to its end before our eyes.
			s.a.restorer = &shelf{}
			if u, err := s.Undo(t.Context()); !errors.Is(err, ErrNothing) || (u.Left() == "") != (c.standing == tool.StandingNotStarted) {
				t.Errorf("an undo says %q, %v", u.Left(), err)
			}
		})
	}
}

func TestAnEffectThatIsDurableIsNotAskedForAgain(t *testing.T) {
	ran := 0
	write := writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("written") })
	then := plays(says("ok"))
	s := died(t, 4, true, plays(calls(call("a", "write", `{}`))), then, write)
	p := play(s.Continue(t.Context()))
	if p.err != nil || ran != 1 || !slices.Equal(answered(then, 0), []string{"written"}) {
		t.Errorf("it went on to %v, the tool ran %d times, the model was told %q", p.err, ran, answered(then, 0))
	}
}

func TestAnInputWhoseTurnNeverBeganIsNotLost(t *testing.T) {
	m := plays(says("done"))
	s := died(t, 1, true, m, m)
	if s.Status().Waiting != 1 || len(s.State().Turns()) != 0 {
		t.Fatalf("there wait %d", s.Status().Waiting)
	}
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Text != "done" || of[Started](p)[0].Text != "do it" {
		t.Errorf("it went on to %v %q", p.err, p.end.Text)
	}
}

func TestANewTurnClosesTheOneThatWasCutOff(t *testing.T) {
	write := writer("write", func(context.Context, *tool.Call) tool.Result { return tool.TextResult("written") })
	then := plays(says("new"))
	s := died(t, 4, false, plays(calls(call("a", "write", `{}`), call("b", "write", `{}`))), then, write)
	p := turned(t, s, "something else")
	if p.end.Turn != 2 || p.end.Text != "new" {
		t.Errorf("it ended as %+v", p.end)
	}
	turns := s.State().Turns()
	if turns[0].End == nil || turns[0].End.Reason != ReasonInterrupted || !turns[0].End.FailedTurn {
		t.Errorf("the first turn is %+v", turns[0])
	}
	if got := answered(then, 0); len(got) != 2 || !strings.HasPrefix(got[0], "Error: it was running when the program died") ||
		got[1] != "Error: not started: the program died before this call was made; it had no effect" {
		t.Errorf("the model was told %q", got)
	}
	said := spokenBy(then.asked()[0].Messages, ninelives.RoleUser)
	if len(said) != 3 || said[0] != "do it" || said[1] != notePrefix+endNote(End{Reason: ReasonInterrupted}) {
		t.Errorf("the model reads %q", said)
	}
}

func TestASessionThatIsHeldIsToldAndNotTaken(t *testing.T) {
	j := book(t)
	a := New(plays(says("ok")), Journal(j), Workspace(t.TempDir()))
	s, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Resume(t.Context(), s.ID()); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("taking it twice: %v", err)
	}
	turned(t, s, "go")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = a.Resume(t.Context(), s.ID()[:8])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if len(s.State().Messages()) != 2 || s.Status().Failed != nil {
		t.Errorf("the history is\n%s", transcribed(s.State().Messages()))
	}
	turned(t, s, "again")
	list, _, err := j.Sessions(t.Context(), journal.SessionFilter{})
	if err != nil || len(list) != 1 || list[0].Title != "go" || list[0].State != "complete" || list[0].Labels["model"] != "test/scripted" {
		t.Errorf("listed are %+v, %v", list, err)
	}
}

func TestWhatIsReadBackComesToTheSameState(t *testing.T) {
	j := book(t)
	set := DefaultSettings()
	set.Iterations = 6
	n := 0
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		n++
		switch n % 5 {
		case 1:
			calls(call("x", "look", `{ "n" : 1.50 }`), call("x", "nothing", `{}`))(ctx, r, yield)
		case 2:
			ends(ninelives.FinishLength, call("x", "look", `{"`))(ctx, r, yield)
		case 3:
			ends(ninelives.FinishToolCalls, ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Signature: "s"}},
				ninelives.Text{Text: "bad \xff bytes"}, call("", "look", `{"n":1}`))(ctx, r, yield)
		case 4:
			says("an answer")(ctx, r, yield)
		default:
			fails(ninelives.ClassNetwork, "gone")(ctx, r, yield)
		}
	})
	a := New(m, Journal(j), Workspace(t.TempDir()), Tools(reader("look", echo)), With(set))
	s, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		turned(t, s, "go")
	}
	if err := s.SetMode(t.Context(), tool.ModeFull); err != nil {
		t.Fatal(err)
	}
	if err := s.Rewind(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	live := s.State()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = a.Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got, want := stateText(t, s.State()), stateText(t, live); got != want {
		t.Errorf("read back it is\n%s\nand was\n%s", got, want)
	}
}
