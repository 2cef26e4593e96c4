package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestWhatIsSaidMeanwhileIsReadWithTheNextRequest(t *testing.T) {
	var s *Session
	steer := reader("look", func(ctx context.Context, _ *tool.Call) tool.Result {
		if n, err := s.Steer(ctx, ninelives.UserText("the other file")); n != 2 || err != nil {
			t.Errorf("accepted as %d, %v", n, err)
		}
		return tool.TextResult("looked")
	})
	m := plays(calls(call("a", "look", `{}`)), says("done"))
	s = opened(t, m, Tools(steer), Journal(book(t)))
	p := turned(t, s, "go")
	if got := of[Steered](p); len(got) != 1 || got[0].Text != "the other file" || got[0].Number != 2 {
		t.Errorf("told was %+v", got)
	}
	if got := spokenBy(m.asked()[1].Messages, ninelives.RoleUser); !slices.Equal(got, []string{"go", "the other file"}) {
		t.Errorf("the model read %q", got)
	}
	if len(s.Queued()) != 0 || len(s.State().Messages()) != 5 {
		t.Errorf("there wait %v; the history is\n%s", s.Queued(), transcribed(s.State().Messages()))
	}
}

func TestWhatIsSaidDuringTheLastAnswerMakesTheTurnGoOn(t *testing.T) {
	var s *Session
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		_, _ = s.Steer(ctx, ninelives.UserText("and this"))
		says("first")(ctx, r, yield)
	}, says("second"))
	s = opened(t, m, Journal(book(t)))
	p := turned(t, s, "go")
	if p.end.Text != "second" || p.end.Steps != 2 {
		t.Errorf("it ended with %q after %d steps", p.end.Text, p.end.Steps)
	}
	// The answer had not read it: it stands before what was said.
	var got []string
	for _, m := range s.State().Messages() {
		got = append(got, m.Text())
	}
	if want := []string{"go", "first", "and this", "second"}; !slices.Equal(got, want) {
		t.Errorf("the history is %q", got)
	}
}

func TestWhatMissesItsTurnBeginsTheNextOne(t *testing.T) {
	m := plays(says("one"), says("two"), says("three"), says("four"))
	s := opened(t, m, Journal(book(t)))
	for e, err := range s.Turn(t.Context(), ninelives.UserText("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ended := e.(Ended); ended { // too late for this turn
			if _, err := s.Steer(t.Context(), ninelives.UserText("late")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Queue(t.Context(), ninelives.UserText("queued 1")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Queue(t.Context(), ninelives.UserText("queued 2")); err != nil {
		t.Fatal(err)
	}
	if s.Status().Waiting != 3 {
		t.Errorf("%d wait", s.Status().Waiting)
	}
	var got []string
	for {
		p := play(s.Next(t.Context()))
		if errors.Is(p.err, ErrNothing) {
			break
		}
		if p.err != nil {
			t.Fatal(p.err)
		}
		got = append(got, of[Started](p)[0].Text)
	}
	if want := []string{"late", "queued 1", "queued 2"}; !slices.Equal(got, want) {
		t.Errorf("the turns that followed were %q", got)
	}
}

// What was accepted for a turn that nobody began is begun by Continue, also
// after a turn that failed; what is said next goes with it.
func TestWhatWasAcceptedIsBegunByContinue(t *testing.T) {
	m := plays(fails(ninelives.ClassAuth, "no"), says("one"), says("two"))
	s := opened(t, m, Journal(book(t)))
	accept := func(text string) {
		if _, err := s.Accept(t.Context(), ninelives.UserText(text)); err != nil {
			t.Fatal(err)
		}
	}
	turned(t, s, "go")
	accept("a")
	accept("b")
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete {
		t.Fatalf("%v, %+v", p.err, p)
	}
	if got, want := spokenBy(m.asked()[1].Messages, ninelives.RoleUser), []string{"go", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the model was told %q, want %q", got, want)
	}
	accept("c")
	turned(t, s, "d")
	if got, want := spokenBy(m.asked()[2].Messages, ninelives.RoleUser), []string{"go", "a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("the model was told %q, want %q", got, want)
	}
	if p := play(s.Continue(t.Context())); !errors.Is(p.err, ErrNothing) {
		t.Errorf("begun again: %v", p.err)
	}
}

// A program keeps what it is asked before it has found a model.
func TestWithoutAModelInputIsKept(t *testing.T) {
	j := book(t)
	s, err := New(nil, Journal(j)).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(t.Context(), ninelives.UserText("keep me")); err != nil {
		t.Fatal(err)
	}
	if p := play(s.Continue(t.Context())); p.err == nil || p.err.Error() != "the agent has no model" {
		t.Errorf("a turn without a model: %v", p.err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m := plays(says("kept"))
	again, err := New(m, Journal(j)).Resume(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	if p := play(again.Continue(t.Context())); p.err != nil || p.end.Text != "kept" {
		t.Errorf("%v, %+v", p.err, p.end)
	}
}

// stops runs a turn that is stopped as soon as ready is closed.
func stops(t *testing.T, s *Session, ready <-chan struct{}) (p played, took time.Duration) {
	t.Helper()
	var at time.Time
	go func() {
		<-ready
		time.Sleep(3 * time.Second)
		at = time.Now()
		s.Stop()
	}()
	p = turned(t, s, "go")
	return p, time.Since(at)
}

func TestStopEndsAStreamAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
			close(ready)
			hangs("I will")(ctx, r, yield)
		}, says("yes"))
		s := opened(t, m)
		p, took := stops(t, s, ready)
		if took != 0 || p.end.Reason != ReasonCanceled || p.end.FailedTurn {
			t.Errorf("it ended as %s after %v", p.end.Reason, took)
		}
		turned(t, s, "are you there?")
		want := []string{"go", notePrefix + "The user stopped the turn before it was finished. What was done by then stays done.", "are you there?"}
		if got := spokenBy(m.asked()[1].Messages, ninelives.RoleUser); !slices.Equal(got, want) {
			t.Errorf("the model reads %q", got)
		}
	})
}

func TestStopEndsToolsAndSaysWhatIsKnownOfEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		var s *Session
		slow := writer("slow", func(ctx context.Context, _ *tool.Call) tool.Result {
			close(ready)
			<-ctx.Done()
			return tool.ErrorResult("half a line was written")
		})
		m := plays(calls(call("a", "look", `{}`), call("b", "slow", `{}`), call("c", "slow", `{}`)))
		s = opened(t, m, Tools(slow, reader("look", echo)))
		p, took := stops(t, s, ready)
		if took != 0 || p.end.Reason != ReasonCanceled {
			t.Errorf("it ended as %s after %v", p.end.Reason, took)
		}
		want := []string{
			"{}",
			"Error: stopped by the user before it was finished; it may have had its effect, or a part of it. half a line was written",
			"Error: not started: the user stopped the turn before this call was made; it had no effect",
		}
		if got := spokenBy(s.State().Messages(), ninelives.RoleTool); !slices.Equal(got, want) {
			t.Errorf("the results are %q", got)
		}
	})
}

func TestACallThatIsDoneWhenTheUserStopsKeepsItsResult(t *testing.T) {
	var s *Session
	quick := writer("quick", func(context.Context, *tool.Call) tool.Result {
		s.Stop()
		return tool.TextResult("written")
	})
	s = opened(t, plays(calls(call("a", "quick", `{}`))), Tools(quick))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonCanceled {
		t.Errorf("it ended as %s", p.end.Reason)
	}
	if got := spokenBy(s.State().Messages(), ninelives.RoleTool); !slices.Equal(got, []string{"written"}) {
		t.Errorf("the results are %q", got)
	}
}

func TestAStopCoversWhatWasSaidBeforeItAndNothingAfterIt(t *testing.T) {
	var s *Session
	slow := writer("slow", func(ctx context.Context, _ *tool.Call) tool.Result {
		bg := context.Background()
		_, _ = s.Steer(bg, ninelives.UserText("before"))
		_, _ = s.Queue(bg, ninelives.UserText("queued before"))
		s.Stop()
		_, _ = s.Steer(bg, ninelives.UserText("after"))
		s.Stop() // a second stop covers no more than the first
		return tool.TextResult("ok")
	})
	m := plays(calls(call("a", "slow", `{}`)), says("done"))
	s = opened(t, m, Tools(slow), Journal(book(t)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonCanceled {
		t.Fatalf("it ended as %s", p.end.Reason)
	}
	if q := s.Queued(); len(q) != 1 || q[0].Message.Text() != "after" {
		t.Fatalf("there wait %+v", q)
	}
	p = play(s.Next(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete {
		t.Fatalf("the next turn: %v %s", p.err, p.end.Reason)
	}
	got := spokenBy(s.State().Messages(), ninelives.RoleUser)
	if len(got) != 5 || got[1] != "before" || got[2] != "queued before" || !strings.HasPrefix(got[3], notePrefix) || got[4] != "after" {
		t.Errorf("what was said is nowhere lost: %q", got)
	}
	checked(t, s.State())
}

func TestLeavingTheLoopStopsTheTurn(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ended := make(chan struct{})
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		defer close(ended)
		hangs("text")(ctx, r, yield)
	}, says("ok"))
	s := opened(t, m)
	for e := range s.Turn(t.Context(), ninelives.UserText("go")) {
		if _, text := e.(Model); text {
			break
		}
	}
	<-ended
	turns := s.State().Turns()
	if turns[0].End == nil || turns[0].End.Reason != ReasonCanceled {
		t.Errorf("the turn is %+v", turns[0])
	}
	turned(t, s, "again")
	_ = s.Close()
}

func TestAPanicOfWhoeverListensPassesThroughAndTheTurnCanGoOn(t *testing.T) {
	m := plays(says("lost"), says("found"))
	s := opened(t, m, Journal(book(t)))
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		for e := range s.Turn(t.Context(), ninelives.UserText("go")) {
			if _, text := e.(Model); text {
				panic("mine")
			}
		}
	}()
	if f := s.Status().Failed; f == nil || f.Reason != ReasonInterrupted {
		t.Fatalf("it stands as %+v", f)
	}
	p := play(s.Continue(t.Context()))
	if p.err != nil || p.end.Text != "found" {
		t.Errorf("it went on to %v, %q", p.err, p.end.Text)
	}
}

func TestTheCallersContextEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, plays(hangs("hm"), says("ok")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := play(s.Turn(ctx, ninelives.UserText("go")))
		if p.err != nil || p.end.Reason != ReasonDeadline || !p.end.FailedTurn {
			t.Errorf("at its deadline it ended as %v %s", p.err, p.end.Reason)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if p := play(s.Turn(ctx, ninelives.UserText("go"))); !errors.Is(p.err, context.Canceled) || len(s.Queued()) != 0 {
			t.Errorf("a turn that was cancelled before it began: %v, %v", p.err, s.Queued())
		}
	})
}

func TestOneTurnAtATime(t *testing.T) {
	var s *Session
	look := reader("look", func(context.Context, *tool.Call) tool.Result {
		if p := play(s.Turn(context.Background(), ninelives.UserText("me too"))); !errors.Is(p.err, ErrBusy) {
			t.Errorf("a second turn: %v", p.err)
		}
		if _, err := s.Compact(context.Background()); !errors.Is(err, ErrBusy) {
			t.Errorf("compaction: %v", err)
		}
		if err := s.Rewind(context.Background(), 1); !errors.Is(err, ErrBusy) {
			t.Errorf("rewinding: %v", err)
		}
		if st := s.Status(); !st.Running || st.Turn != 1 || st.Step != 1 {
			t.Errorf("the status is %+v", st)
		}
		return tool.TextResult("ok")
	})
	s = opened(t, plays(calls(call("a", "look", `{}`)), says("ok")), Tools(look))
	turned(t, s, "go")
	if len(s.Queued()) != 0 {
		t.Errorf("what was not accepted waits: %v", s.Queued())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if p := play(s.Turn(t.Context(), ninelives.UserText("go"))); !errors.Is(p.err, ErrClosed) {
		t.Errorf("after Close: %v", p.err)
	}
	if _, err := s.Steer(t.Context(), ninelives.UserText("go")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
