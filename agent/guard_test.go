package agent

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 8, 9, 12, 0, 0, 0, time.UTC)

// guard gives the settings that ship.
func guard() *GuardSettings {
	g := DefaultSettings().Guard
	return &g
}

// TestAgentSafetyGuard is the table of caps of source design 001, layer 3: one
// less than the limit goes on, at the limit the turn is stopped, and after the
// user has granted another quota it goes on to twice the limit.
func TestAgentSafetyGuard(t *testing.T) {
	for _, row := range []struct {
		guardrail string
		limit     string
		most      int
		count     func(*Tally, int)
		ask       func(*GuardSettings, *Tally) Ruling
		first     string // the first line of the message, with %d for the number
	}{
		{"max stream events", LimitEvents, 15000,
			func(t *Tally, n int) { t.Events = n },
			(*GuardSettings).During,
			"Forced stop: reached maximum of %d stream events."},
		{"max tool calls", LimitCalls, 2000,
			func(t *Tally, n int) { t.Calls = n },
			before("read_file"),
			"Forced stop: reached maximum of %d tool invocations."},
		{"edit_file invocations", "tool:edit_file", 75, ofTool("edit_file"), before("edit_file"),
			"Forced stop: reached maximum of %d edit_file invocations."},
		{"delete_file invocations", "tool:delete_file", 30, ofTool("delete_file"), before("delete_file"),
			"Forced stop: reached maximum of %d delete_file invocations."},
		{"run_command", "tool:run_command", 100, ofTool("run_command"), before("run_command"),
			"Forced stop: reached maximum of %d run_command invocations."},
		{"run_terminal_command", "tool:run_terminal_command", 500, ofTool("run_terminal_command"), before("run_terminal_command"),
			"Forced stop: reached maximum of %d run_terminal_command invocations."},
		{"web_search", "tool:web_search", 60, ofTool("web_search"), before("web_search"),
			"Forced stop: reached maximum of %d web_search invocations."},
		{"file edit loops", "file:cmd/main.go", 20,
			func(t *Tally, n int) { t.PerFile = map[string]int{"cmd/main.go": n} },
			before("edit_file", "other.go", "cmd/main.go"),
			"Forced stop: file loop: reached maximum of %d edits of cmd/main.go."},
	} {
		t.Run(row.guardrail, func(t *testing.T) {
			g, tally := guard(), &Tally{}
			row.count(tally, row.most-1)
			if r := row.ask(g, tally); r != (Ruling{}) {
				t.Fatalf("one before the limit: %+v", r)
			}
			for quota := 1; quota <= 3; quota++ {
				row.count(tally, quota*row.most)
				r := row.ask(g, tally)
				if r.Verdict != VerdictStop || r.Limit != row.limit || r.Wait != 0 {
					t.Fatalf("at %d: %+v", quota*row.most, r)
				}
				if first, _, _ := strings.Cut(r.Message, "\n"); first != fmt.Sprintf(row.first, quota*row.most) {
					t.Errorf("the message begins %q", first)
				}
				tally.Grant(r.Limit)
				if r := row.ask(g, tally); r != (Ruling{}) {
					t.Fatalf("after a grant: %+v", r)
				}
				row.count(tally, (quota+1)*row.most-1)
				if r := row.ask(g, tally); r != (Ruling{}) {
					t.Fatalf("one before the end of the granted quota: %+v", r)
				}
			}
		})
	}
}

func before(name string, files ...string) func(*GuardSettings, *Tally) Ruling {
	return func(g *GuardSettings, t *Tally) Ruling { return g.BeforeCall(t, name, files, noon) }
}

func ofTool(name string) func(*Tally, int) {
	return func(t *Tally, n int) { t.PerTool = map[string]int{name: n} }
}

func TestWallClockTimeout(t *testing.T) {
	g, tally := guard(), &Tally{Elapsed: time.Hour - 1}
	if r := g.During(tally); r != (Ruling{}) {
		t.Fatalf("a nanosecond before: %+v", r)
	}
	tally.Elapsed = time.Hour
	want := Ruling{Verdict: VerdictStop, Limit: LimitDuration, Message: "Forced stop: reached maximum duration of 1h.\n" +
		"Events: 0 · Tool calls: 0 · Elapsed: 1h.\nPlease review the work completed so far."}
	if r := g.During(tally); r != want {
		t.Fatalf("at the limit: %+v", r)
	}
	tally.Grant(LimitDuration)
	tally.Elapsed = 2*time.Hour - 1
	if r := g.During(tally); r != (Ruling{}) {
		t.Fatalf("granted another hour: %+v", r)
	}
	tally.Elapsed = 2 * time.Hour
	if r := g.During(tally); r.Limit != LimitDuration || !strings.HasPrefix(r.Message, "Forced stop: reached maximum duration of 2h.\n") {
		t.Fatalf("at the end of the granted hour: %+v", r)
	}
}

func TestCostIsCappedWhereItIsSet(t *testing.T) {
	g := guard()
	if r := g.During(&Tally{Cost: 1e6}); r != (Ruling{}) {
		t.Fatalf("no cap is set: %+v", r)
	}
	g.Cost = 2.5
	if r := g.During(&Tally{Cost: 2.499}); r != (Ruling{}) {
		t.Fatalf("under the cap: %+v", r)
	}
	r := g.During(&Tally{Cost: 2.51})
	if r.Verdict != VerdictStop || r.Limit != LimitCost || !strings.HasPrefix(r.Message, "Forced stop: reached maximum cost of $2.50.\n") {
		t.Fatalf("over the cap: %+v", r)
	}
	g.Cost = 0.004
	if r := g.During(&Tally{Cost: 1}); !strings.HasPrefix(r.Message, "Forced stop: reached maximum cost of $0.004.\n") {
		t.Errorf("a small cap: %q", r.Message)
	}
}

// TestStopMessageIncludesTheCounters has the very message of source design 001.
func TestStopMessageIncludesTheCounters(t *testing.T) {
	tally := &Tally{Events: 6247, Calls: 2000, Elapsed: 34*time.Minute + 23*time.Second + 900*time.Millisecond}
	want := Ruling{Verdict: VerdictStop, Limit: LimitCalls, Message: `Forced stop: reached maximum of 2000 tool invocations.
Events: 6247 · Tool calls: 2000 · Elapsed: 34m 23s.
Please review the work completed so far.`}
	if r := guard().BeforeCall(tally, "grep", nil, noon); r != want {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
}

func TestElapsedIsWrittenInWholeUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                     "0s",
		0:                                "0s",
		999 * time.Millisecond:           "0s",
		59 * time.Second:                 "59s",
		time.Minute:                      "1m",
		time.Minute + time.Second:        "1m 1s",
		time.Hour + 5*time.Second:        "1h 5s",
		26*time.Hour + 3*time.Minute + 1: "26h 3m",
	} {
		if got := duration(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

// A name comes from a model and goes to a terminal.
func TestNamesInMessagesStayInTheirLine(t *testing.T) {
	g, tally := guard(), &Tally{PerFile: map[string]int{"a\n\x1b[2Jb": 20}}
	r := g.BeforeCall(tally, "edit_file", []string{"a\n\x1b[2Jb"}, noon)
	if first, _, _ := strings.Cut(r.Message, "\n"); first != `Forced stop: file loop: reached maximum of 20 edits of "a\n\x1b[2Jb".` {
		t.Errorf("%q", first)
	}
}

func TestZeroIsNoCap(t *testing.T) {
	g := &GuardSettings{}
	tally := &Tally{Events: 1 << 30, Calls: 1 << 30, Elapsed: 1 << 60, Cost: 1e9, Denied: 1 << 30,
		PerTool: map[string]int{"edit_file": 1 << 30}, PerFile: map[string]int{"a": 1 << 30}}
	for range 300 {
		tally.Begin("edit_file", []string{"a"}, noon)
		tally.Finish(Trace{Name: "edit_file", Call: "x", Result: "y"}, false)
	}
	for _, r := range []Ruling{g.During(tally), g.BeforeCall(tally, "edit_file", []string{"a"}, noon), g.AfterCalls(tally)} {
		if r != (Ruling{}) {
			t.Errorf("%+v", r)
		}
	}
	chant := g.Chant()
	if chant.Add(strings.Repeat("again and again ", 1000)) {
		t.Error("chanting was found without a threshold")
	}
}

func TestDenialsInARowStopTheTurn(t *testing.T) {
	g, tally := guard(), &Tally{}
	deny := func(i int) {
		tally.Finish(Trace{Step: i, Name: "run_command", Call: fmt.Sprint(i), Result: "denied"}, true)
	}
	for i := range 4 {
		deny(i)
	}
	tally.Finish(Trace{Name: "read_file", Call: "a", Result: "b"}, false) // one that was allowed
	for i := range 5 {
		if r := g.AfterCalls(tally); r != (Ruling{}) {
			t.Fatalf("after %d denials in a row: %+v", i, r)
		}
		deny(10 + i)
	}
	r := g.AfterCalls(tally)
	if r.Verdict != VerdictStop || r.Limit != LimitDenials || !strings.HasPrefix(r.Message, "Forced stop: 5 tool invocations in a row were denied.\n") {
		t.Fatalf("%+v", r)
	}
	tally.Grant(r.Limit)
	if r := g.AfterCalls(tally); r != (Ruling{}) {
		t.Errorf("after a grant: %+v", r)
	}
}

// The counts are those of what was begun, whatever the order.
func TestTallyCountsWhatWasBegun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.SliceOf(rapid.SampledFrom([]string{"read_file", "edit_file", "grep"})).Draw(t, "calls")
		var tally Tally
		tools, files := map[string]int{}, map[string]int{}
		at := noon
		for _, name := range calls {
			var touched []string
			if name == "edit_file" {
				touched = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 3).Draw(t, "files")
			}
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "later")))
			tally.Begin(name, touched, at)
			tools[name]++
			for _, f := range []string{"a", "b"} {
				if strings.Contains(strings.Join(touched, ""), f) {
					files[f]++ // once, however often the call names it
				}
			}
			for _, c := range tally.Started {
				if !c.At.After(at.Add(-time.Minute)) {
					t.Fatalf("a call of %v is kept at %v", c.At, at)
				}
			}
		}
		if tally.Calls != len(calls) || len(tools) > 0 && !reflect.DeepEqual(tally.PerTool, tools) ||
			len(files) > 0 && !reflect.DeepEqual(tally.PerFile, files) {
			t.Fatalf("%+v, want %v and %v", tally, tools, files)
		}
	})
}

func TestCloneSharesNothing(t *testing.T) {
	var a Tally
	a.Begin("edit_file", []string{"a"}, noon)
	a.Finish(Trace{Name: "edit_file"}, false)
	a.Grant(LimitEvents)
	b, c := a.Clone(), a.Clone()
	a.Begin("edit_file", []string{"a"}, noon)
	a.Finish(Trace{Name: "grep"}, true)
	a.Grant(LimitEvents)
	a.Recent[0].Name, a.Started[0].Name = "changed", "changed"
	if !reflect.DeepEqual(b, c) {
		t.Errorf("%+v, want %+v", b, c)
	}
}

// Two thousand calls leave no more behind than a few hundred do.
func TestTallyStaysSmall(t *testing.T) {
	var tally Tally
	for i := range 20000 {
		tally.Begin("grep", nil, noon.Add(time.Duration(i)*100*time.Millisecond))
		tally.Finish(Trace{Step: i, Name: "grep", Call: fmt.Sprint(i)}, false)
	}
	if len(tally.Recent) != recentKept || len(tally.Started) != 600 || cap(tally.Recent) > 2*recentKept || cap(tally.Started) > 1500 {
		t.Errorf("%d (%d) traces, %d (%d) starts", len(tally.Recent), cap(tally.Recent), len(tally.Started), cap(tally.Started))
	}
	if last := tally.Recent[recentKept-1]; last.Step != 19999 {
		t.Errorf("the last trace is of step %d", last.Step)
	}
}

func TestDuringAllocatesNothing(t *testing.T) {
	g, tally := guard(), &Tally{Events: 14000, Elapsed: time.Minute}
	if n := testing.AllocsPerRun(100, func() { g.During(tally) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tally.Grant(LimitEvents)
	tally.Events = 20000
	if n := testing.AllocsPerRun(100, func() { g.During(tally) }); n != 0 {
		t.Errorf("%v allocations after a grant", n)
	}
}

func BenchmarkDuring(b *testing.B) {
	g, tally := guard(), &Tally{Events: 14000, Elapsed: time.Minute}
	b.ReportAllocs()
	for b.Loop() {
		if g.During(tally).Verdict != VerdictAllow {
			b.Fatal("stopped")
		}
	}
}

func BenchmarkBeforeCall(b *testing.B) {
	g, tally := guard(), &Tally{}
	for i := range 600 {
		tally.Begin("read_file", nil, noon.Add(time.Duration(i)*time.Millisecond*101))
	}
	at := noon.Add(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		g.BeforeCall(tally, "grep", nil, at)
	}
}
