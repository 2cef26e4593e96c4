package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestCallsThatOnlyReadRunAtOnceAndWritersOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, writing atomic.Int32
		var mu sync.Mutex
		var order []string
		read := reader("read", func(context.Context, *tool.Call) tool.Result {
			n := running.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			if writing.Load() > 0 {
				t.Error("a read ran beside a writer")
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return tool.TextResult("read")
		})
		write := writer("write", func(_ context.Context, c *tool.Call) tool.Result {
			if writing.Add(1) > 1 || running.Load() > 0 {
				t.Error("a writer ran beside another call")
			}
			time.Sleep(time.Second)
			mu.Lock()
			order = append(order, c.ID)
			mu.Unlock()
			writing.Add(-1)
			return tool.TextResult("written")
		})
		var list []ninelives.ToolCall
		for i := range 5 {
			list = append(list, call(fmt.Sprint("r", i), "read", `{}`))
		}
		list = append(list, call("w1", "write", `{}`), call("w2", "write", `{}`), call("r9", "read", `{}`))
		set := DefaultSettings()
		set.ParallelCalls = 3
		s := opened(t, plays(calls(list...), says("ok")), Tools(read, write), With(set))
		began := time.Now()
		turned(t, s, "go")
		if most.Load() != 3 {
			t.Errorf("%d reads ran at once, want 3", most.Load())
		}
		if !slices.Equal(order, []string{"w1", "w2"}) {
			t.Errorf("the writers ran in the order %v", order)
		}
		// Five reads in threes: 2 s; two writers: 2 s; one read: 1 s.
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// answered gives the results that the model read in its n-th request, counted from 0.
func answered(m *script, n int) []string {
	return spokenBy(m.asked()[n].Messages, ninelives.RoleTool)
}

func TestACallThatMakesNoSenseIsToldToTheModelAndNotRun(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}},"required":["path"],"additionalProperties":false}`)
	for _, c := range []struct {
		name, call, args string
		want             []string
	}{
		{"an unknown tool", "raed_file", `{}`, []string{`Error: there is no tool raed_file (did you mean "read_file"?). The tools are: list_dir, read_file, research, subagent.`}},
		{"a name out of the blue", "sdfg\x1b[31m", `{}`, []string{"Error: there is no tool \"sdfg\\x1b[31m\". The tools are: list_dir, read_file, research, subagent."}},
		{"a missing argument", "read_file", `{"lines":3}`, []string{"Error: the arguments do not fit the tool, and nothing was done: ", "path"}},
		{"all that is wrong", "read_file", `{"path":3,"lines":"x"}`, []string{"/path", "/lines"}},
		{"no object", "read_file", `[1]`, []string{"Error: the arguments must be a JSON object"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := false
			read := reader("read_file", func(context.Context, *tool.Call) tool.Result { ran = true; return tool.TextResult("") })
			read.spec.Schema = schema
			m := plays(calls(call("a", c.call, c.args)), says("ok"))
			s := opened(t, m, Tools(read, reader("list_dir", echo)))
			p := turned(t, s, "go")
			if ran {
				t.Error("the tool ran")
			}
			if p.end.Reason != ReasonComplete {
				t.Errorf("the turn ended as %s", p.end.Reason)
			}
			got := answered(m, 1)
			for _, want := range c.want {
				if len(got) != 1 || !strings.Contains(got[0], want) {
					t.Errorf("the model was told %q, want %q in it", got, want)
				}
			}
		})
	}
}

func TestAToolThatPanicsHasFailedAndTheTurnGoesOn(t *testing.T) {
	m := plays(calls(call("a", "bad", `{}`), call("b", "worse", `{}`)), says("ok"))
	s := opened(t, m, Tools(
		reader("bad", func(context.Context, *tool.Call) tool.Result { panic("nil map") }),
		writer("worse", func(context.Context, *tool.Call) tool.Result { panic("nil map\nline two") }),
	))
	p := turned(t, s, "go")
	want := []string{"Error: the tool panicked: nil map", "Error: the tool panicked, and may have had a part of its effect: nil map line two"}
	if got := answered(m, 1); !slices.Equal(got, want) {
		t.Errorf("the model was told %q", got)
	}
	if e := of[Called](p); !e[1].Unknown || e[0].Unknown {
		t.Errorf("unknown are %v and %v, want only the writer", e[0].Unknown, e[1].Unknown)
	}
}

func TestACallThatTakesTooLongIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obeys := writer("slow", func(ctx context.Context, _ *tool.Call) tool.Result {
			<-ctx.Done()
			return tool.ErrorResult("half of it is there")
		})
		obeys.spec.Timeout = 90 * time.Second
		m := plays(calls(call("a", "slow", `{}`)), says("ok"))
		s := opened(t, m, Tools(obeys))
		began := time.Now()
		turned(t, s, "go")
		if took := time.Since(began); took != 90*time.Second {
			t.Errorf("it took %v", took)
		}
		want := "Error: stopped after 1m 30s, which is its limit, before it was finished; it may have had its effect, or a part of it. half of it is there"
		if got := answered(m, 1); got[0] != want {
			t.Errorf("the model was told %q", got)
		}
	})
}

func TestAToolThatDoesNotObeyIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := writer("deaf", func(context.Context, *tool.Call) tool.Result { <-release; return tool.TextResult("late") })
		deaf.spec.Timeout = time.Minute
		m := plays(calls(call("a", "deaf", `{}`)), says("ok"))
		s := opened(t, m, Tools(deaf))
		began := time.Now()
		p := turned(t, s, "go")
		close(release)
		if took := time.Since(began); took != time.Minute+grace {
			t.Errorf("it took %v", took)
		}
		if e := of[Called](p)[0]; !e.Unknown || e.Ran || !strings.Contains(e.Result.Text(), "was left behind") {
			t.Errorf("its effect is %+v", e.Effect)
		}
	})
}

func TestWhatIsTooLongIsKeptInAFile(t *testing.T) {
	long := strings.Repeat("a line\n", 5000)
	var saved string
	m := plays(calls(call("a", "look", `{}`)), says("ok"))
	s := opened(t, m, Tools(reader("look", func(context.Context, *tool.Call) tool.Result { return tool.TextResult(long) })),
		Outputs(func(text string) (string, error) { saved = text; return "/outputs/1", nil }))
	p := turned(t, s, "go")
	got := answered(m, 1)[0]
	if saved != long || !strings.Contains(got, "/outputs/1") || strings.Count(got, "\n") > 2003 {
		t.Errorf("%d bytes were saved, and the model reads %d lines: %.200q", len(saved), strings.Count(got, "\n"), got)
	}
	if e := of[Called](p)[0]; e.Saved != "/outputs/1" {
		t.Errorf("the effect says %q", e.Saved)
	}
}

func TestIdsThatAreMissingOrUsedAreReplaced(t *testing.T) {
	m := plays(
		calls(call("", "look", `{"n":1}`), call("same", "look", `{"n":2}`), call("same", "look", `{"n":3}`)),
		calls(call("same", "look", `{"n":4}`), call("", "look", `{"n":5}`)),
		says("ok"),
		calls(call("same", "look", `{"n":6}`)),
		says("ok"),
	)
	s := opened(t, m, Tools(reader("look", echo)))
	turned(t, s, "go")
	turned(t, s, "again")
	got := spokenBy(s.State().Messages(), ninelives.RoleTool)
	if want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`, `{"n":6}`}; !slices.Equal(got, want) {
		t.Errorf("the results are %q", got)
	}
	if id := s.State().Messages()[1].ToolCalls()[1].ID; id != "same" {
		t.Errorf("an id that was unique became %q", id)
	}
}

func TestOutputIsShownWhileACallRuns(t *testing.T) {
	late := make(chan func(string), 1)
	loud := writer("loud", func(_ context.Context, c *tool.Call) tool.Result {
		for i := range 3 {
			c.Output(fmt.Sprint(i))
		}
		late <- c.Output
		return tool.TextResult("done")
	})
	s := opened(t, plays(calls(call("a", "loud", `{}`)), says("ok")), Tools(loud))
	p := turned(t, s, "go")
	(<-late)("too late") // must neither block nor be shown
	var got []string
	for _, e := range of[Output](p) {
		got = append(got, e.Call+e.Text)
	}
	if !slices.Equal(got, []string{"a0", "a1", "a2"}) {
		t.Errorf("shown was %q", got)
	}
}

func TestNoCallOfAnAnswerThatWasCutIsEverRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer scene
		note   string
		reason Reason
	}{
		{"cut by length", ends(ninelives.FinishLength, call("a", "write", `{"path":"x","content":"half of `)), "cut off at the limit of its length", ReasonTruncated},
		{"cut by length after a whole call", ends(ninelives.FinishLength, call("a", "write", `{}`), call("b", "write", `{"p`)), "cut off at the limit of its length", ReasonTruncated},
		{"does not close, and says nothing of it", ends(ninelives.FinishToolCalls, call("a", "write", `{"path":"x`)), "cut off at the limit of its length", ReasonTruncated},
		{"finished, and no JSON", ends(ninelives.FinishToolCalls, call("a", "write", `{"path": oops}`)), "the arguments of write are no valid JSON", ReasonFailed},
		{"unreadable for the provider", ends(ninelives.FinishMalformedCall, ninelives.Text{Text: "I will"}), "the provider could not read the call", ReasonFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			write := writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("ok") })
			m := plays(c.answer, says("now in pieces"))
			s := opened(t, m, Tools(write))
			p := turned(t, s, "go")
			if p.end.Reason != ReasonComplete || p.end.Text != "now in pieces" {
				t.Errorf("told once, the model goes on; the turn ended as %s: %s", p.end.Reason, p.end.Message)
			}
			told := spokenBy(m.asked()[1].Messages, ninelives.RoleUser)
			if len(told) != 2 || !strings.Contains(told[1], c.note) {
				t.Errorf("the model was told %q", told)
			}

			forEver := plays(c.answer)
			s = opened(t, forEver, Tools(write))
			p = turned(t, s, "go")
			if p.end.Reason != c.reason || len(forEver.asked()) != 1+maxCuts {
				t.Errorf("after %d requests it ended as %s: %s", len(forEver.asked()), p.end.Reason, p.end.Message)
			}
			if ran != 0 {
				t.Errorf("%d calls were run", ran)
			}
		})
	}
}

func TestACallIsDurableBeforeItRunsAndItsEffectBeforeTheModelIsAsked(t *testing.T) {
	var s *Session
	var log recorded
	write := writer("write", func(_ context.Context, c *tool.Call) tool.Result {
		if !slices.Contains(log.kinds(), "intent") {
			t.Error("the call runs, and its intent is not durable")
		}
		return tool.TextResult("ok")
	})
	m := plays(calls(call("a", "write", `{}`)), func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if !slices.Contains(log.kinds(), "effect") {
			t.Error("the model is asked, and the effect is not durable")
		}
		says("ok")(ctx, r, yield)
	})
	s = opened(t, m, Tools(write), Journal(book(t)))
	log.recorder = s.log
	s.log = &log
	turned(t, s, "go")
	want := []string{"input", "start", "answer intent", "effect", "answer end"}
	if got := log.transactions(); !slices.Equal(got, want) {
		t.Errorf("the transactions are %q, want %q", got, want)
	}
}

func TestNothingIsDoneThatCannotBeRecorded(t *testing.T) {
	full := errors.New("the disk is full")
	for fail := 1; fail <= 5; fail++ {
		t.Run(fmt.Sprint("write ", fail), func(t *testing.T) {
			ran := 0
			write := writer("write", func(context.Context, *tool.Call) tool.Result { ran++; return tool.TextResult("ok") })
			m := plays(calls(call("a", "write", `{}`)), says("ok"))
			s := opened(t, m, Tools(write), Journal(book(t)))
			log := &recorded{recorder: s.log, failAt: fail, err: full}
			s.log = log
			p := play(s.Turn(t.Context(), ninelives.UserText("go")))
			if !errors.Is(p.err, full) || p.end.Reason != "" {
				t.Errorf("the turn gave %v and the end %q", p.err, p.end.Reason)
			}
			asked := len(m.asked())
			if wantAsked := []int{0, 0, 1, 1, 2}[fail-1]; asked != wantAsked {
				t.Errorf("the model was asked %d times, want %d", asked, wantAsked)
			}
			if wantRan := []int{0, 0, 0, 1, 1}[fail-1]; ran != wantRan {
				t.Errorf("the tool ran %d times, want %d", ran, wantRan)
			}
			// The session goes no further; what is on the disk is what counts.
			if p := play(s.Turn(t.Context(), ninelives.UserText("more"))); !errors.Is(p.err, full) {
				t.Errorf("the next turn gave %v", p.err)
			}
		})
	}
}
