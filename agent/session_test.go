package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestSwapTakesEffectAtTheNextTurnAndOnlyWhereTheSignatureDiffers(t *testing.T) {
	second := plays(says("from the second"))
	second.name = "test/second"
	var a *Agent
	opens := 0
	swap := func(signature string) bool {
		changed, err := a.Swap(signature, func() (ninelives.Model, error) { opens++; return second, nil })
		if err != nil {
			t.Error(err)
		}
		return changed
	}
	look := reader("look", func(context.Context, *tool.Call) tool.Result {
		if swap("one") || !swap("two") || swap("two") {
			t.Error("a signature was mistaken")
		}
		return tool.TextResult("ok")
	})
	a = New(plays(calls(call("a", "look", `{}`)), says("still the first")), Signature("one"), Tools(look), Workspace(t.TempDir()), Journal(book(t)))
	s, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if p := turned(t, s, "go"); p.end.Text != "still the first" {
		t.Errorf("the running turn ended with %q", p.end.Text)
	}
	if st := s.Status(); st.Model != "test/second" || st.Signature != "two" {
		t.Errorf("the status is %+v", st)
	}
	if p := turned(t, s, "go"); p.end.Text != "from the second" || of[Started](p)[0].Model != "test/second" {
		t.Errorf("the next turn ended with %q", p.end.Text)
	}
	if opens != 1 {
		t.Errorf("it was opened %d times", opens)
	}
	if _, err := a.Swap("three", func() (ninelives.Model, error) { return nil, errors.New("no key") }); err == nil || a.Model() != ninelives.Model(second) {
		t.Errorf("a model that cannot be opened took the place of one that works: %v", err)
	}
	if _, err := a.Swap("three", func() (ninelives.Model, error) { return nil, nil }); err == nil {
		t.Error("no model is no model")
	}
}

func TestSessionsDoNotTouchEachOther(t *testing.T) {
	j := book(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		text := spokenBy(r.Messages, ninelives.RoleUser)
		if strings.HasPrefix(text[0], "bad") {
			panic("in " + text[0])
		}
		says("answer to "+text[len(text)-1])(ctx, r, yield)
	})
	a := New(m, Workspace(t.TempDir()), Journal(j))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			s, err := a.Open(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = s.Close() }()
			bad := i%2 == 0
			text := fmt.Sprint("good ", i)
			if bad {
				text = fmt.Sprint("bad ", i)
			}
			for range 3 {
				p := play(s.Turn(context.Background(), ninelives.UserText(text)))
				switch {
				case p.err != nil:
					t.Error(p.err)
				case bad && p.end.Reason != ReasonFailed:
					t.Errorf("%s ended as %s", text, p.end.Reason)
				case !bad && p.end.Text != "answer to "+text:
					t.Errorf("%s ended with %q", text, p.end.Text)
				}
			}
			if n := len(s.State().Turns()); n != 3 {
				t.Errorf("%s has %d turns", text, n)
			}
		})
	}
	group.Wait()
}

func TestAStateThatWasHandedOutDoesNotChange(t *testing.T) {
	var kept []*State
	var texts []string
	m := plays(calls(call("", "look", `{"n":1}`), call("", "look", `{"n":2}`)), calls(call("", "look", `{"n":3}`)), says("done"))
	s := opened(t, m, Tools(reader("look", echo)), Journal(book(t)), Hooks(Hook{Event: func(_ context.Context, e Event) {}, AfterTool: func(context.Context, *tool.Call, Effect) Intervention { return Intervention{} },
		BeforeIteration: func(_ context.Context, s *State) Intervention {
			kept, texts = append(kept, s), append(texts, stateText(t, s))
			return Intervention{}
		}}))
	turned(t, s, "go")
	turned(t, s, "again")
	if err := s.Rewind(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for i, st := range kept {
		if got := stateText(t, st); got != texts[i] {
			t.Errorf("state %d has changed", i)
		}
	}
	if len(kept) < 4 {
		t.Errorf("only %d states", len(kept))
	}
}

func TestRewindMakesTheModelForget(t *testing.T) {
	m := plays(says("one"), says("two"), says("three"), says("four"))
	s := opened(t, m, Journal(book(t)))
	for _, text := range []string{"1", "2", "3"} {
		turned(t, s, text)
	}
	if err := s.Rewind(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Rewind(t.Context(), 2); !errors.Is(err, ErrNothing) {
		t.Errorf("again: %v", err)
	}
	if p := play(s.Continue(t.Context())); !errors.Is(p.err, ErrNothing) {
		t.Errorf("a turn that was forgotten goes on: %v", p.err)
	}
	turned(t, s, "4")
	if got := spokenBy(m.asked()[3].Messages, ninelives.RoleUser); !slices.Equal(got, []string{"1", "4"}) {
		t.Errorf("the model reads %q", got)
	}
	turns := s.State().Turns()
	if len(s.State().Messages()) != 8 || len(turns) != 4 || turns[0].Rewound || !turns[1].Rewound || !turns[2].Rewound || turns[3].Number != 4 {
		t.Errorf("the history holds %d messages of the turns %+v", len(s.State().Messages()), turns)
	}
}

// shelf restores changes in memory.
type shelf struct {
	asked []string
	err   error
}

func (s *shelf) Restore(_ context.Context, changes []tool.Change, redo bool) (restored []tool.Change, conflicts []string, err error) {
	for _, c := range changes {
		s.asked = append(s.asked, fmt.Sprint(c.Path, " ", redo))
		if c.Path == "taken" {
			conflicts = append(conflicts, c.Path+": it was changed since")
		} else {
			restored = append(restored, c)
		}
	}
	return restored, conflicts, s.err
}

func TestUndoTakesTheLastTurnsChangesBackAndTellsTheModel(t *testing.T) {
	edit := writer("edit", func(_ context.Context, c *tool.Call) tool.Result {
		r := tool.TextResult("ok")
		r.Changes = []tool.Change{{Path: strings.Trim(string(c.Arguments), `{}":`)}, {Path: "taken"}}
		return r
	})
	m := plays(calls(call("", "edit", `{"a":""}`)), says("ok"), calls(call("", "edit", `{"b":""}`)), says("ok"), says("nothing done"), says("nothing done"), says("nothing done"))
	shelf := &shelf{}
	s := opened(t, m, Tools(edit), Restorer(shelf), Journal(book(t)))
	p := turned(t, s, "1")
	if !slices.Equal(p.end.Changed, []string{"a", "taken"}) {
		t.Errorf("changed was %q", p.end.Changed)
	}
	turned(t, s, "2")
	turned(t, s, "3")
	u, err := s.Undo(t.Context())
	if err != nil || u.Turn != 2 || !slices.Equal(u.Conflicts, []string{"taken: it was changed since"}) || len(u.Changes) != 1 {
		t.Fatalf("undone was %+v, %v", u, err)
	}
	if u, err = s.Undo(t.Context()); err != nil || u.Turn != 1 {
		t.Fatalf("undone was %+v, %v", u, err)
	}
	if _, err = s.Undo(t.Context()); !errors.Is(err, ErrNothing) {
		t.Errorf("there is nothing left: %v", err)
	}
	if u, err = s.Redo(t.Context()); err != nil || u.Turn != 1 || !u.Redo {
		t.Fatalf("made again was %+v, %v", u, err)
	}
	if want := []string{"b false", "taken false", "a false", "taken false", "a true", "taken true"}; !slices.Equal(shelf.asked, want) {
		t.Errorf("restored was %q", shelf.asked)
	}
	turned(t, s, "4")
	said := spokenBy(m.asked()[len(m.asked())-1].Messages, ninelives.RoleUser)
	if want := notePrefix + "The user has taken back the file changes of turn 2: b. These were left as they are: taken: it was changed since."; !slices.Contains(said, want) {
		t.Errorf("the model reads %q", said)
	}
	shelf.err = errors.New("read-only file system")
	if u, err = s.Undo(t.Context()); !errors.Is(err, shelf.err) {
		t.Errorf("what failed in part is said: %+v %v", u, err)
	}
	shelf.err = nil
	if u, err = s.Undo(t.Context()); err != nil || u.Turn != 1 {
		t.Errorf("what was not finished is gone on with: %+v %v", u, err)
	}
	turned(t, s, "5")
	said = spokenBy(m.asked()[len(m.asked())-1].Messages, ninelives.RoleUser)
	if want := notePrefix + "Not finished, because it was stopped on the way: The user has taken back the file changes of turn 1: a. These were left as they are: taken: it was changed since."; !slices.Contains(said, want) {
		t.Errorf("the model reads %q", said)
	}
}

func TestAnAgentWithoutAJournalKeepsItsSessionsInMemory(t *testing.T) {
	a := New(plays(says("hello")), Workspace(t.TempDir()))
	for range 2 {
		p := play(a.Turn(t.Context(), "hi"))
		if p.err != nil || p.end.Text != "hello" {
			t.Fatalf("%v %q", p.err, p.end.Text)
		}
	}
	if n := len(a.own.State().Turns()); n != 2 {
		t.Errorf("the agent's own session has %d turns", n)
	}
	if _, err := a.Resume(t.Context(), "x"); err == nil {
		t.Error("there is nothing to resume from")
	}
	if _, err := New(plays(says("")), Tools(reader("a", echo), reader("a", echo))).Open(t.Context()); err == nil || err.Error() != `two tools are called "a"` {
		t.Errorf("two tools of one name: %v", err)
	}
}

func TestAnIdleSessionIsArchivedOnceAndTheRecordSaysHowFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keeper := &rememberer{name: "test/keeper", answers: []string{"[durable] The user tests with make."}}
		memory := NewMemory(func() ninelives.Model { return keeper }, MemoryDirs{Project: t.TempDir()}, DefaultSettings().Memory)
		defer func() { _ = memory.Close() }()
		log := &tape{}
		a := New(plays(says("ok")), Remember(memory), Workspace(t.TempDir()))
		s := a.taken(t.Context(), log, nil, nil)
		turned(t, s, "we test with make")
		time.Sleep(5 * time.Minute)
		turned(t, s, "remember that")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if s.State().archived != 0 {
			t.Error("it was archived before it was idle for ten minutes")
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if got := s.State().archived; got != 4 {
			t.Errorf("archived are %d messages of 4", got)
		}
		asked := keeper.asked()
		_ = s.Close()
		// Another process does not archive the same again.
		s = a.taken(t.Context(), log, slices.Clone(log.entries), nil)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if s.State().archived != 4 || keeper.asked() > asked+1 { // one more to refine what there is
			t.Errorf("archived are %d messages, with %d requests after %d", s.State().archived, keeper.asked(), asked)
		}
		_ = s.Close()
	})
}
