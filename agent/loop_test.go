package agent

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// turns plays one call a step, each written "name call result", and gives the
// ruling after each, up to the first stop: "", "notice", "stop loop" or "stop
// cycle".
func turns(g *GuardSettings, tally *Tally, calls ...string) []string {
	var said []string
	for i, call := range calls {
		tally.Finish(trace(i+1, call), false)
		r := g.AfterCalls(tally)
		said = append(said, word(r))
		if r.Verdict == VerdictStop {
			break
		}
	}
	return said
}

// trace reads "name call result", with " changed" or " polls" after it.
func trace(step int, call string) Trace {
	f := strings.Fields(call)
	return Trace{Step: step, Name: f[0], Call: f[1], Result: f[2],
		Changed: strings.HasSuffix(call, " changed"), Polls: strings.HasSuffix(call, " polls")}
}

func word(r Ruling) string {
	if r.Verdict == VerdictStop {
		return "stop " + r.Limit
	}
	return string(r.Verdict)
}

func times(n int, calls ...string) []string {
	var all []string
	for range n {
		all = append(all, calls...)
	}
	return all
}

// first gives the step, from 1, at which a word was first said; 0 for never.
func first(said []string, word string) int {
	for i, w := range said {
		if w == word {
			return i + 1
		}
	}
	return 0
}

func TestToolLoopIsToldThenStopped(t *testing.T) {
	g, tally := guard(), &Tally{Events: 321, Calls: 5}
	said := turns(g, tally, times(5, "read_file a same")...)
	if want := []string{"", "", "notice", "notice", "stop loop"}; fmt.Sprint(said) != fmt.Sprint(want) {
		t.Fatalf("%q, want %q", said, want)
	}
	if got, want := g.AfterCalls(tally).Message, `Forced stop: loop detected: read_file was called 5 times with the same arguments and the same result.
Events: 321 · Tool calls: 5 · Elapsed: 0s.
Please review the work completed so far.`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	tally.Grant(LimitLoop)
	if said := turns(g, tally, times(5, "read_file a same")...); first(said, "stop loop") != 5 || first(said, "notice") != 3 {
		t.Errorf("after a grant: %q", said)
	}
}

func TestNoticeSaysWhatWasRepeated(t *testing.T) {
	g, tally := guard(), &Tally{}
	turns(g, tally, "read_file a same", "grep x y", "read_file a same", "read_file a same")
	want := Ruling{Verdict: VerdictNotice, Limit: LimitLoop, Message: "read_file has now given the same result for the same arguments 3 times in the last 4 calls. " +
		"Asking again will not change it: use what it gave, try another way, or say what stands in the way."}
	if r := g.AfterCalls(tally); r != want {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
}

// The rows are series of calls, and the steps at which the guard first speaks.
func TestLoopDetection(t *testing.T) {
	different := func(name string, n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%s edit%d ok changed", name, i))
		}
		return all
	}
	mixed := func(n int, call string, between ...string) []string {
		var all []string
		for i := range n {
			for _, c := range append([]string{call}, between...) {
				all = append(all, strings.ReplaceAll(c, "#", fmt.Sprint(i)))
			}
		}
		return all
	}
	for _, row := range []struct {
		kind        string
		calls       []string
		notice      int
		loop, cycle int
	}{
		{kind: "the same call with other calls between", calls: mixed(6, "read_file a same", "grep p# r#"), notice: 5, loop: 9},
		{kind: "repeats further apart than the window", calls: mixed(9, "read_file a same", "grep p# 1", "grep q# 2", "grep r# 3", "grep s# 4")},
		{kind: "a changed result resets", calls: []string{"ls d 1", "ls d 1", "ls d 2", "ls d 1", "ls d 1", "ls d 2", "ls d 2", "ls d 3"}},
		{kind: "every result is new", calls: mixed(30, "status s r#")},
		{kind: "arguments alike but not equal", calls: mixed(50, "read_file lines# same")},
		{kind: "many different edits of one file", calls: different("edit_file", 50)},
		{kind: "the same check after each of many edits", calls: mixed(30, "run_command vet nothing", "edit_file edit# ok changed")},
		{kind: "the same check after edits that change nothing", calls: mixed(6, "run_command vet nothing", "edit_file edit# failed"), notice: 5, loop: 9},
		{kind: "the same edit that changes the file each time", calls: times(6, "edit_file a ok changed"), notice: 3, loop: 5},
		{kind: "polling", calls: times(100, "read_terminal t nothing polls")},
		{kind: "polling does not hide a loop", calls: times(6, "run_command a b", "read_terminal t nothing polls", "read_terminal t nothing polls"), notice: 7, loop: 13},
		{kind: "a cycle of two", calls: times(6, "a 1 x", "b 2 y"), notice: 5, loop: 9},
		{kind: "a cycle of two that undoes itself", calls: times(6, "edit_file there ok changed", "edit_file back ok changed"), cycle: 10},
		{kind: "a cycle of three", calls: times(6, "a 1 x", "b 2 y", "c 3 z"), notice: 7, cycle: 15},
		{kind: "a cycle of four", calls: times(6, "a 1 x", "b 2 y", "c 3 z", "d 4 w"), notice: 9, cycle: 20},
		{kind: "a cycle of five", calls: times(6, "a 1 x", "b 2 y", "c 3 z", "d 4 w", "e 5 v"), cycle: 25},
		{kind: "a cycle of six is no cycle", calls: times(9, "a 1 x", "b 2 y", "c 3 z", "d 4 w", "e 5 v", "f 6 u")},
		{kind: "a cycle four times", calls: times(4, "a 1 x", "b 2 y", "c 3 z", "d 4 w", "e 5 v")},
		{kind: "a cycle in which one result changes", calls: mixed(9, "a 1 x", "b 2 y", "c 3 z", "d 4 w", "e 5 v#")},
		{kind: "a cycle after other work", calls: append(different("edit_file", 7), times(5, "a 1 x", "b 2 y", "c 3 z", "d 4 w", "e 5 v")...), cycle: 32},
	} {
		t.Run(row.kind, func(t *testing.T) {
			said := turns(guard(), &Tally{}, row.calls...)
			if n, l, c := first(said, "notice"), first(said, "stop loop"), first(said, "stop cycle"); n != row.notice || l != row.loop || c != row.cycle {
				t.Errorf("notice at %d, loop at %d, cycle at %d; want %d, %d, %d: %q", n, l, c, row.notice, row.loop, row.cycle, said)
			}
		})
	}
}

// A model that asks five times in one answer has not yet seen an answer.
func TestRepeatsWithinOneAnswerAreToldBeforeTheyStop(t *testing.T) {
	g, tally := guard(), &Tally{}
	for range 7 {
		tally.Finish(trace(1, "read_file a same"), false)
	}
	if got := word(g.AfterCalls(tally)); got != "notice" {
		t.Fatalf("one answer: %q", got)
	}
	tally.Finish(trace(2, "read_file a same"), false)
	if got := word(g.AfterCalls(tally)); got != "stop loop" {
		t.Fatalf("the next answer: %q", got)
	}
}

// What stands in the middle of a step is seen too, and an old loop is not told
// again when the model has turned to something else.
func TestEveryCallOfTheLastStepIsLookedAt(t *testing.T) {
	g, tally := guard(), &Tally{}
	var said []string
	for step := 1; step <= 3; step++ {
		tally.Finish(trace(step, "read_file a same"), false)
		tally.Finish(trace(step, fmt.Sprintf("grep p%d r", step)), false)
		said = append(said, word(g.AfterCalls(tally)))
	}
	tally.Finish(trace(4, "grep other r"), false)
	said = append(said, word(g.AfterCalls(tally)))
	if want := []string{"", "", "notice", ""}; fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// A model that was told, and then waits for something, is not told again.
func TestPollingBringsNoOldNoticeBack(t *testing.T) {
	said := turns(guard(), &Tally{}, "grep a same", "grep a same", "grep a same", "read_terminal t nothing polls", "read_terminal t nothing polls", "grep a same", "grep a same")
	if want := []string{"", "", "notice", "", "", "notice", "stop loop"}; fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// Work in which no pair comes more than twice in a row of ten is never held up;
// a stop has its five equal pairs, or its five rounds, in what was done last.
func TestLoopGuardNeverCriesWolf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, tally := guard(), &Tally{}
		var done []Trace
		letters := rapid.IntRange(1, 9).Draw(t, "letters")
		for step := 1; step <= 60; step++ {
			n := rapid.IntRange(0, letters).Draw(t, "call")
			c := Trace{Step: step, Name: "t", Call: fmt.Sprint(n), Result: fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "result") * rapid.IntRange(0, 1).Draw(t, "or not")),
				Changed: rapid.IntRange(0, 9).Draw(t, "changed") == 0}
			tally.Finish(c, false)
			done = append(done, c)
			pairs := 0
			for _, d := range done[max(0, len(done)-10):] {
				if d.Call == c.Call && d.Result == c.Result {
					pairs++
				}
			}
			switch r := g.AfterCalls(tally); word(r) {
			case "notice":
				if pairs < 3 {
					t.Fatalf("a notice after %d pairs", pairs)
				}
			case "stop loop":
				if pairs < 5 {
					t.Fatalf("a stop after %d pairs", pairs)
				}
				return
			case "stop cycle":
				return
			}
		}
	})
}

func BenchmarkAfterCalls(b *testing.B) {
	g, tally := guard(), &Tally{}
	for i := range recentKept {
		tally.Finish(Trace{Step: i, Name: "grep", Call: fmt.Sprint(i % 7), Result: fmt.Sprint(i)}, false)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.AfterCalls(tally)
	}
}
