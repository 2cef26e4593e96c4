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
	"github.com/ninelives-ai/ninelives/tool"
)

func TestHowATurnEnds(t *testing.T) {
	long := "The answer goes on and on and then"
	for _, c := range []struct {
		name    string
		scenes  []scene
		reason  Reason
		text    string
		message string
		asked   int
		resumes bool
	}{
		{"an answer", []scene{says("fine")}, ReasonComplete, "fine", "", 1, false},
		{"a text that was cut", []scene{ends(ninelives.FinishLength, ninelives.Text{Text: long})}, ReasonTruncated, long, "cut off at the limit of its length", 1, false},
		{"a refusal", []scene{ends(ninelives.FinishRefusal, ninelives.Refusal{Text: "I cannot help with that."})}, ReasonRefused, "", "the model declined", 1, false},
		{"a filtered answer", []scene{fails(ninelives.ClassContentFilter, "blocked by policy")}, ReasonRefused, "", "content_filter: blocked by policy", 1, false},
		{"nothing", []scene{says("  ")}, ReasonEmpty, "", "empty: the answer is empty", 1, true},
		{"no answer from anybody", []scene{fails(ninelives.ClassOverloaded, "try later")}, ReasonFailed, "", "overloaded: try later", 1, true},
		{"a stream without an end", []scene{func(_ context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
			yield(ninelives.TextDelta{Text: "half"}, nil)
		}}, ReasonFailed, "", "stream_broken: the stream ended without a result", 1, true},
		{"a model that panics", []scene{func(context.Context, *ninelives.Request, func(ninelives.Event, error) bool) { panic("boom") }},
			ReasonFailed, "", "unknown: the model panicked: boom", 1, true},
		{"a plain error", []scene{func(_ context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
			yield(nil, errors.New("no fault of mine"))
		}}, ReasonFailed, "", "no fault of mine", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := plays(c.scenes...)
			s := opened(t, m, Journal(book(t)))
			p := turned(t, s, "go")
			if p.end.Reason != c.reason || p.end.Text != c.text || !strings.Contains(p.end.Message, c.message) {
				t.Errorf("it ended as %s with %q: %s", p.end.Reason, p.end.Text, p.end.Message)
			}
			if len(m.asked()) != c.asked {
				t.Errorf("the model was asked %d times", len(m.asked()))
			}
			if p.end.FailedTurn != c.resumes || (s.Status().Failed != nil) != c.resumes {
				t.Errorf("it is shown as failed: %v; it can be gone on with: %v", p.end.FailedTurn, s.Status().Failed)
			}
			if (p.end.Fault != nil) != (p.end.Reason == ReasonFailed || p.end.Reason == ReasonEmpty || c.name == "a filtered answer") {
				t.Errorf("its fault is %v", p.end.Fault)
			}
		})
	}
}

func TestAFailedTurnGoesOnWhereItFailed(t *testing.T) {
	ran := 0
	count := writer("count", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("counted") })
	m := plays(calls(call("a", "count", `{}`)), fails(ninelives.ClassNetwork, "connection refused"), says("done"))
	s := opened(t, m, Tools(count), Journal(book(t)))
	p := turned(t, s, "count")
	if p.end.Reason != ReasonFailed || !p.end.FailedTurn {
		t.Fatalf("it ended as %s", p.end.Reason)
	}
	p = play(s.Continue(t.Context()))
	if p.err != nil || p.end.Reason != ReasonComplete || p.end.Text != "done" || ran != 1 {
		t.Fatalf("it went on to %v %s %q, and counted %d times", p.err, p.end.Reason, p.end.Text, ran)
	}
	if turns := s.State().Turns(); len(turns) != 1 || turns[0].Steps != 2 {
		t.Errorf("the turns are %+v", turns)
	}
	if started := of[Started](p); !started[0].Resumes || started[0].Turn != 1 {
		t.Errorf("it started as %+v", started[0])
	}
	if p := play(s.Continue(t.Context())); !errors.Is(p.err, ErrNothing) {
		t.Errorf("what is done cannot be gone on with: %v", p.err)
	}
	checked(t, s.State())
}

func TestAnOverflowIsCompactedOnceAndTheRequestGoesAgain(t *testing.T) {
	overflow := fails(ninelives.ClassContextLength, "the prompt is too long")
	big := strings.Repeat("word ", 4000)
	var history []scene
	for range 4 {
		history = append(history, calls(call("", "look", `{}`)), says(big))
	}
	look := reader("look", func(context.Context, *tool.Call) tool.Result { return tool.TextResult(big) })
	set := DefaultSettings()
	set.Compaction.Window = 200000

	m := plays(append(history, overflow, says("a summary of it all"), says("done"))...)
	s := opened(t, m, Tools(look), With(set), Journal(book(t)))
	for i := range 4 {
		turned(t, s, fmt.Sprint("turn ", i))
	}
	before := len(m.asked())
	p := turned(t, s, "one more")
	if p.end.Reason != ReasonComplete {
		t.Fatalf("it ended as %s: %s", p.end.Reason, p.end.Message)
	}
	c := of[Compacted](p)
	if len(c) != 1 || c[0].Why != WhyOverflow || c[0].After >= c[0].Before {
		t.Fatalf("compacted was %+v", c)
	}
	asked := m.asked()
	if first, last := Estimate(asked[before].Messages...), Estimate(asked[len(asked)-1].Messages...); last >= first {
		t.Errorf("the request went again with %d tokens after %d", last, first)
	}
	if n := len(s.State().Messages()); n != 18 {
		t.Errorf("the history holds %d messages: it never shrinks", n)
	}

	m = plays(append(history, overflow)...)
	s = opened(t, m, Tools(look), With(set))
	for i := range 4 {
		turned(t, s, fmt.Sprint("turn ", i))
	}
	p = turned(t, s, "one more")
	if p.end.Reason != ReasonOverflow || !p.end.FailedTurn {
		t.Errorf("a second overflow ends it as %s: %s", p.end.Reason, p.end.Message)
	}
}

func TestThereIsARequestWithoutToolsWhenTheIterationsAreUsedUp(t *testing.T) {
	set := DefaultSettings()
	set.Iterations = 3
	n := 0
	m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if r.ToolChoice.Mode == ninelives.ToolChoiceNone {
			says("this was done, that remains")(ctx, r, yield)
			return
		}
		n++
		calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n)))(ctx, r, yield)
	})
	s := opened(t, m, Tools(reader("look", echo)), With(set), Journal(book(t)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonLimit || p.end.Limit != LimitIterations || p.end.Text != "this was done, that remains" {
		t.Errorf("it ended as %s (%s) with %q", p.end.Reason, p.end.Limit, p.end.Text)
	}
	if !strings.HasPrefix(p.end.Message, "Forced stop: reached maximum of 3 iterations.\nEvents: ") {
		t.Errorf("it says %q", p.end.Message)
	}
	asked := m.asked()
	if len(asked) != 4 || len(asked[3].Tools) != 3 {
		t.Errorf("there were %d requests, the last with %d tools to keep the cache", len(asked), len(asked[3].Tools))
	}
	// The user's word is another full quota.
	p = play(s.Continue(t.Context()))
	if p.end.Limit != LimitIterations || n != 6 {
		t.Errorf("it went on to %s after %d steps: %s", p.end.Reason, n, p.end.Message)
	}
	checked(t, s.State())
}

func TestAGuardStopSaysWhatWasReachedInThreeLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := DefaultSettings()
		set.Iterations = 0
		set.Guard.Rate, set.Guard.RatePerTool = 0, 0
		n := 0
		m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
			for range 3 {
				if !yield(ninelives.ReasoningDelta{Text: "."}, nil) {
					return
				}
			}
			n++
			calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n)))(ctx, r, yield)
		})
		look := reader("look", func(context.Context, *tool.Call) tool.Result {
			time.Sleep(time.Second)
			return tool.TextResult("ok")
		})
		set.Guard.LoopNotice, set.Guard.LoopStop = 0, 0
		s := opened(t, m, Tools(look), With(set))
		p := turned(t, s, "go")
		want := "Forced stop: reached maximum of 2000 tool invocations.\nEvents: 6003 · Tool calls: 2000 · Elapsed: 33m 20s.\nPlease review the work completed so far."
		if p.end.Reason != ReasonLimit || p.end.Limit != LimitCalls || p.end.Message != want {
			t.Errorf("it ended as %s (%s): %s", p.end.Reason, p.end.Limit, p.end.Message)
		}
		last := s.State().Messages()
		if got := last[len(last)-1].Parts[0].(ninelives.ToolResult).Text(); got != "Error: not started: the safety guard stopped the turn before this call was made; it had no effect" {
			t.Errorf("the call that was one too many has the result %q", got)
		}
	})
}

func TestTheGuardCanStopAStream(t *testing.T) {
	endless := func(ctx context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
		for ctx.Err() == nil {
			if !yield(ninelives.ReasoningDelta{Text: "hm"}, nil) {
				return
			}
		}
	}
	chants := func(ctx context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
		for ctx.Err() == nil {
			if !yield(ninelives.TextDelta{Text: "I am sure that this is the way to go about it, really I am. "}, nil) {
				return
			}
		}
	}
	set := DefaultSettings()
	set.Guard.Events = 100
	p := turned(t, opened(t, plays(endless), With(set)), "go")
	if p.end.Reason != ReasonLimit || p.end.Limit != LimitEvents || p.end.Events != 100 {
		t.Errorf("it ended as %s (%s) after %d events", p.end.Reason, p.end.Limit, p.end.Events)
	}
	p = turned(t, opened(t, plays(chants)), "go")
	if p.end.Reason != ReasonLoop || p.end.Limit != LimitChant {
		t.Errorf("chanting ended as %s (%s)", p.end.Reason, p.end.Limit)
	}
}

func TestTimeLimitsEndATurnExactly(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(*Settings)
		scene  scene
		want   time.Duration
		reason Reason
		limit  string
	}{
		{"the guard's hour, while the model is silent", func(*Settings) {}, hangs("hm"), time.Hour, ReasonLimit, LimitDuration},
		{"a deadline, while the model is silent", func(s *Settings) { s.Deadline = 7 * time.Minute }, hangs("hm"), 7 * time.Minute, ReasonDeadline, ""},
		{"a deadline, while a tool runs", func(s *Settings) { s.Deadline = time.Minute }, calls(call("a", "sleep", `{}`)), time.Minute, ReasonDeadline, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := DefaultSettings()
				c.set(&set)
				sleep := writer("sleep", func(ctx context.Context, _ *tool.Call) tool.Result {
					<-ctx.Done()
					return tool.ErrorResult("half")
				})
				s := opened(t, plays(c.scene), With(set), Tools(sleep))
				began := time.Now()
				p := turned(t, s, "go")
				if took := time.Since(began); took != c.want+time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if p.end.Reason != c.reason || p.end.Limit != c.limit {
					t.Errorf("it ended as %s (%s): %s", p.end.Reason, p.end.Limit, p.end.Message)
				}
			})
		})
	}
}

func TestTheSameCallWithTheSameResultIsToldAndThenStopped(t *testing.T) {
	m := plays(calls(call("", "look", `{"b":1,"a":2}`)), calls(call("", "look", `{ "a": 2, "b": 1 }`)))
	s := opened(t, m, Tools(reader("look", func(context.Context, *tool.Call) tool.Result { return tool.TextResult("same") })), Journal(book(t)))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonLoop || p.end.Limit != LimitLoop || p.end.Calls != 5 {
		t.Errorf("it ended as %s (%s) after %d calls: %s", p.end.Reason, p.end.Limit, p.end.Calls, p.end.Message)
	}
	told := 0
	for _, text := range spokenBy(m.asked()[4].Messages, ninelives.RoleUser) {
		if strings.Contains(text, "look has now given the same result") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("the model was told %d times by its fifth request", told)
	}
}

func TestMoreCanBeGrantedWhenTheGuardIsAboutToStop(t *testing.T) {
	set := DefaultSettings()
	set.Guard.Calls = 2
	set.Guard.LoopNotice, set.Guard.LoopStop = 0, 0
	var asked []string
	m := plays(calls(call("", "look", `{"n":1}`), call("", "look", `{"n":2}`), call("", "look", `{"n":3}`)),
		calls(call("", "look", `{"n":4}`), call("", "look", `{"n":5}`)), says("ok"))
	s := opened(t, m, Tools(reader("look", echo)), With(set), Journal(book(t)), GrantMore(func(_ context.Context, e Ended) bool {
		asked = append(asked, fmt.Sprintf("%s %d", e.Limit, e.Calls))
		return len(asked) == 1
	}))
	p := turned(t, s, "go")
	if want := []string{"calls 2", "calls 4"}; !slices.Equal(asked, want) {
		t.Errorf("the user was asked %q", asked)
	}
	if p.end.Limit != LimitCalls || p.end.Calls != 4 || !strings.Contains(p.end.Message, "reached maximum of 4 tool invocations") {
		t.Errorf("it ended as %s after %d calls: %s", p.end.Reason, p.end.Calls, p.end.Message)
	}
}

func TestARateThatIsReachedIsWaitedForOrToldToTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := DefaultSettings()
		set.Guard.Rate, set.Guard.RatePerTool = 2, 0
		set.Guard.RateWait = time.Minute
		m := plays(calls(call("", "look", `{"n":1}`), call("", "look", `{"n":2}`), call("", "look", `{"n":3}`)), says("ok"))
		s := opened(t, m, Tools(reader("look", echo)), With(set))
		began := time.Now()
		p := turned(t, s, "go")
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if g := of[Guarded](p); len(g) != 1 || g[0].Wait == 0 || g[0].Stop {
			t.Errorf("the guard said %+v", g)
		}

		set.Guard.RateWait = time.Second
		m = plays(calls(call("", "look", `{"n":1}`), call("", "look", `{"n":2}`), call("", "look", `{"n":3}`)), says("ok"))
		s = opened(t, m, Tools(reader("look", echo)), With(set))
		turned(t, s, "go")
		if got := answered(m, 1)[2]; !strings.HasPrefix(got, "Error: this call was not made: the rate limit of 2 tool invocations per minute is reached") {
			t.Errorf("the model was told %q", got)
		}
	})
}
