package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// What a long session must not cost: a step is one transaction at most, the
// work of planning grows with the history and no faster, and a turn keeps its
// history and nothing beside it. None of it looks at a clock.

// counted opens a journal that counts its transactions.
func counted(t *testing.T) (*journal.Journal, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	j, err := journal.OpenObserved(filepath.Join(t.TempDir(), "journal.db"), func(point string) {
		if point == "committed" {
			n.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, &n
}

// busyTurn is a turn with everything in it that is recorded: sixty answers
// whose calls read beside each other, write, steer, make no sense; requests
// that were healed; text that is cut off. It counts its steps: a step is one
// request to the model, or one batch of its calls.
type busyTurn struct {
	s                          *Session
	requests, batches, steered int
}

func (b *busyTurn) model(answers int) ninelives.Model {
	n := 0
	look := func(i int) ninelives.ToolCall { return call("", "look", fmt.Sprintf(`{"n":%d,"i":%d}`, n, i)) }
	write := func() ninelives.ToolCall { return call("", "write", fmt.Sprintf(`{"n":%d}`, n)) }
	return plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		b.requests++
		if n++; n > answers {
			says("done")(ctx, r, yield)
			return
		}
		var list []ninelives.ToolCall
		switch n % 6 {
		case 0: // eight that read: one batch
			for i := range 8 {
				list = append(list, look(i))
			}
			b.batches++
		case 1: // a writer between readers: three batches
			list = []ninelives.ToolCall{look(0), look(1), write(), look(2), look(3)}
			b.batches += 3
		case 2: // none of these is run
			list = []ninelives.ToolCall{call("", "loook", `{}`), call("", "write", `[]`)}
		case 3: // two that are steered meanwhile, beside each other
			list = []ninelives.ToolCall{call("", "steer", fmt.Sprintf(`{"n":%d}`, n)), call("", "steer", fmt.Sprintf(`{"n":-%d}`, n))}
			b.batches++
			b.steered += 2
		case 4: // healed on the way
			for _, kind := range []ninelives.NoticeKind{ninelives.NoticePlan, ninelives.NoticeAttempt, ninelives.NoticeFault, ninelives.NoticeWait, ninelives.NoticeRetry, ninelives.NoticeAttempt} {
				if !yield(ninelives.Notice{Kind: kind, Text: "as it goes"}, nil) {
					return
				}
			}
			list = []ninelives.ToolCall{write()}
			b.batches++
		case 5: // cut off in a call, then told so
			if n%12 == 5 {
				yield(nil, &ninelives.Fault{Class: ninelives.ClassTruncated, Phase: ninelives.PhaseAnswer, Message: "cut off"})
				return
			}
			list = []ninelives.ToolCall{write(), write()}
			list[1].Arguments = fmt.Sprintf(`{"again":%d}`, n)
			b.batches += 2
		}
		calls(list...)(ctx, r, yield)
	})
}

func (b *busyTurn) tools(t *testing.T) Option {
	return Tools(reader("look", echo), writer("write", echo), reader("steer", func(ctx context.Context, c *tool.Call) tool.Result {
		if _, err := b.s.Steer(ctx, ninelives.UserText("mind "+string(c.Arguments))); err != nil {
			t.Error(err)
		}
		return tool.TextResult("steered")
	}))
}

func TestAStepIsOneTransactionAtMost(t *testing.T) {
	j, n := counted(t)
	b := &busyTurn{}
	b.s = opened(t, b.model(60), b.tools(t), With(endless()), Journal(j))
	n.Store(0)
	p := turned(t, b.s, "go")
	if p.end.Reason != ReasonComplete || b.batches < 60 || b.steered < 10 || len(of[Called](p)) < 100 {
		t.Fatalf("the turn ended as %s after %d batches, %d inputs and %d calls", p.end.Reason, b.batches, b.steered, len(of[Called](p)))
	}
	// What the user says is durable by itself, before anything is done with it:
	// what began the turn, and what was steered. The beginning is durable before
	// the first request, and what it gives with what follows it; so on to the end.
	steps, own := b.requests+b.batches, 1+b.steered
	if got := int(n.Load()) - own; got > steps+1 {
		t.Errorf("%d steps (%d requests, %d batches of calls) and the beginning needed %d transactions", steps, b.requests, b.batches, got)
	}
}

// What a hook is told of is durable before; that costs one transaction more for
// an answer and one for a batch, however many calls it has.
func TestHooksCostOneTransactionForABatch(t *testing.T) {
	j, n := counted(t)
	b := &busyTurn{}
	told := 0
	hook := Hook{
		Name:            "watcher",
		BeforeIteration: func(context.Context, *State) Intervention { return Intervention{} },
		AfterIteration:  func(context.Context, *State) Intervention { return Intervention{} },
		BeforeModel:     func(context.Context, Purpose, *ninelives.Request) {},
		AfterModel:      func(context.Context, Answer, error) {},
		AfterTool:       func(context.Context, *tool.Call, Effect) Intervention { told++; return Intervention{} },
	}
	b.s = opened(t, b.model(60), b.tools(t), With(endless()), Journal(j), Hooks(hook))
	n.Store(0)
	turned(t, b.s, "go")
	if told < 100 {
		t.Fatalf("the hook was told of %d calls", told)
	}
	steps, own := b.requests+b.batches, 1+b.steered
	if got := int(n.Load()) - own; got > 2*steps+1 {
		t.Errorf("%d steps (%d requests, %d batches of calls) needed %d transactions", steps, b.requests, b.batches, got)
	}
}

func TestTheTransactionsOfATurn(t *testing.T) {
	var log recorded
	m := plays(
		calls(call("", "write", `{}`), call("", "look", `{}`), call("", "look", `{"n":1}`), call("", "write", `{"n":2}`)),
		calls(call("", "nothing", `{}`)),
		calls(call("", "look", `{}`)),
		says("done"),
	)
	s := opened(t, m, Tools(reader("look", echo), writer("write", echo)), Journal(book(t)))
	log.recorder = s.log
	s.log = &log
	turned(t, s, "go")
	want := []string{
		"input", "start",
		"answer intent", "effect intent intent", "effect effect intent", "effect", // four calls in three batches
		"answer effect", // a call that makes no sense is answered at once
		"answer intent", "effect",
		"answer end",
	}
	if got := log.transactions(); !slices.Equal(got, want) {
		t.Errorf("the transactions are %q, want %q", got, want)
	}
}

// work is what something allocates: how often and how many bytes. Unlike time it
// is the same on every machine.
type work struct{ times, bytes uint64 }

func worked(do func()) work {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return work{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

// linear fails where the work for a message grows with the number of messages:
// between the first and the last size it may grow by half, where twice the work
// for twice the messages would make it eight times as much.
func linear(t *testing.T, what string, sizes []int, does []work) {
	t.Helper()
	var list []string
	for i, n := range sizes {
		list = append(list, fmt.Sprintf("%d: %d allocations, %d KB", n, does[i].times, does[i].bytes>>10))
	}
	t.Logf("%s: %s", what, strings.Join(list, "; "))
	first, last := does[0], does[len(does)-1]
	grown := uint64(sizes[len(sizes)-1] / sizes[0])
	const few, small = 64, 64 << 10 // what is the same at every size
	if last.times > first.times*grown*3/2+few || last.bytes > first.bytes*grown*3/2+small {
		t.Errorf("%s takes %d allocations of %d bytes at %d messages, and %d of %d at %d",
			what, first.times, first.bytes, sizes[0], last.times, last.bytes, sizes[len(sizes)-1])
	}
}

func TestPlanningIsLinearInTheMessages(t *testing.T) {
	sizes := []int{1000, 2000, 4000, 8000}
	record := longRecord(t, sizes[len(sizes)-1])
	does := map[string][]work{}
	var order []string
	note := func(what string, w work) {
		if does[what] == nil {
			order = append(order, what)
		}
		does[what] = append(does[what], w)
	}
	agent := New(plays(says("ok")))
	for _, n := range sizes {
		part := record[:0]
		for messages := 0; messages < n; part = record[:len(part)+1] {
			switch record[len(part)].Kind {
			case "input", "answer", "effect":
				messages++
			}
		}
		var entries []Entry
		note("reading the record", worked(func() {
			for _, r := range decodeAll(part) {
				entries = append(entries, r.entry)
			}
		}))
		note("folding the record", worked(func() {
			st := &State{}
			for i, e := range entries {
				st.add(part[i].At, e)
			}
		}))
		s := agent.taken(t.Context(), &tape{}, part, nil)
		st := s.st
		if len(st.messages) < n-1 {
			t.Fatalf("%d messages of %d", len(st.messages), n)
		}
		ask := func() { (&turn{s: s, a: agent, set: endless()}).request(Action{Purpose: PurposeStep}) }
		note("a first request", worked(ask))
		note("the first request of a later turn", worked(ask))
		note("deciding", worked(func() { decide(st, st.last) }))
		note("the pressure", worked(func() { st.pressure() }))
		note("an estimate", worked(func() { Estimate(st.messages...) }))
		note("a copy of the state", worked(func() { st.clone() }))
		set := DefaultSettings().Compaction
		x := st.context()
		x.Window, x.Reserve = Estimate(st.view...)/2, 0
		note("a fitted view", worked(func() {
			if _, err := set.Fit(x, x.Window); err != nil {
				t.Fatal(err)
			}
		}))
		compact := func(what string, summarise Summarise) {
			var done Compaction
			note(what, worked(func() {
				var err error
				if done, _, err = set.Compact(t.Context(), x, WhyAsked, true, summarise); err != nil || done.After >= done.Before {
					t.Fatalf("%s came to tier %d, %v", what, done.Tier, err)
				}
			}))
			note("taking up "+what, worked(func() { st.clone().add(st.last, done) }))
		}
		compact("a compaction with summaries", func(context.Context, []ninelives.Message, string) (string, error) { return "what was done", nil })
		compact("a compaction without a model", nil)
		note("forgetting a turn", worked(func() { st.clone().add(st.last, Rewind{Turn: 1}) }))
	}
	manyTurns := turnsRecord(t, sizes[len(sizes)-1])
	for _, n := range sizes {
		part := manyTurns[:slices.IndexFunc(manyTurns, func(e journal.Entry) bool { return e.Kind == "end" })+1]
		for messages := 2; messages < n; messages += 2 {
			part = manyTurns[:len(part)+1+slices.IndexFunc(manyTurns[len(part):], func(e journal.Entry) bool { return e.Kind == "end" })]
		}
		st := &State{}
		entries := decodeAll(part)
		note("folding a record of many turns", worked(func() {
			for i, r := range entries {
				st.add(part[i].At, r.entry)
			}
		}))
		if len(st.turns) != n/2 {
			t.Fatalf("%d turns, not %d", len(st.turns), n/2)
		}
		note("forgetting half of many turns", worked(func() { st.clone().add(st.last, Rewind{Turn: n / 4}) }))
	}
	for _, what := range order {
		linear(t, what, sizes, does[what])
	}
	const few, small = 16, 16 << 10
	last := len(sizes) - 1
	for _, what := range []string{"deciding", "the pressure", "a copy of the state"} {
		if does[what][last].bytes > does[what][0].bytes+small || does[what][last].times > does[what][0].times+few {
			t.Errorf("%s costs more the longer the session is: %+v, then %+v", what, does[what][0], does[what][last])
		}
	}
	// A message that was sent once is not written down again to know it.
	if first, later := does["a first request"][last], does["the first request of a later turn"][last]; later.times*10 > first.times {
		t.Errorf("a request of %d messages takes %d allocations, and the first of a later turn %d", sizes[last], first.times, later.times)
	}
}

// A turn that must be made smaller again and again keeps the last of its
// compactions, which all that came before went into; a rewind still finds those
// of the turns before.
func TestATurnKeepsOneOfItsCompactions(t *testing.T) {
	w := &writing{TB: t}
	w.add(Opening{Directory: "/nowhere"})
	for turn := 1; turn <= 3; turn++ {
		w.begin(turn)
		for step := 1; step <= 100; step++ {
			c := call(fmt.Sprintf("call_%d_%d_0", turn, step), "write", "{}")
			w.add(Answer{Turn: turn, Step: step, Purpose: PurposeStep, Finish: ninelives.FinishToolCalls,
				Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{c}}},
				Effect{Call: c.ID, Name: c.Name, Ran: true, Result: result(c, tool.TextResult("written"))})
			said := (turn-1)*202 + 2*step
			w.add(Compaction{Turn: turn, Tier: 5, Before: 2, After: 1, Through: said, View: []ninelives.Message{ninelives.UserText(fmt.Sprintf("up to %d", said))}})
		}
		w.add(Answer{Turn: turn, Step: 101, Purpose: PurposeStep, Finish: ninelives.FinishStop, Message: ninelives.AssistantText("done")}, End{Turn: turn, Reason: ReasonComplete})
	}
	st := &State{}
	for i, r := range decodeAll(w.record) {
		st.add(w.record[i].At, r.entry)
	}
	if len(st.compactions) != 3 {
		t.Errorf("%d compactions are kept of three turns", len(st.compactions))
	}
	for turn, want := range map[int][]string{3: {"up to 402", "done"}, 2: {"up to 200", "done"}} {
		back := st.clone()
		back.add(st.last, Rewind{Turn: turn})
		var got []string
		for _, m := range back.View() {
			got = append(got, m.Text())
		}
		if !slices.Equal(got, want) {
			t.Errorf("without turn %d the view is %q, want %q", turn, got, want)
		}
	}
}

// held is what a history needs: its texts, and for every message two places
// in slices that may be twice as large as what they hold.
func held(messages []ninelives.Message) (bytes int) {
	const place = 2 * 2 * 128
	for _, m := range messages {
		bytes += place
		for _, p := range m.Parts {
			switch p := p.(type) {
			case ninelives.Text:
				bytes += len(p.Text) + 128
			case ninelives.ToolCall:
				bytes += len(p.ID) + len(p.Name) + len(p.Arguments) + 256 + 64 // and the set of ids
			case ninelives.ToolResult:
				bytes += len(p.CallID) + len(p.Name) + len(p.Text()) + 256
			}
		}
	}
	return bytes
}

// standing is what a process holds on to.
type standing struct {
	heap                  int
	goroutines, files, at int
	history               int
}

func stands(s *Session, calls int) standing {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a finaliser or a pool held on to goes with the second
	runtime.ReadMemStats(&m)
	v := standing{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine(), at: calls, history: held(s.State().Messages())}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		v.files = len(open)
	}
	return v
}

// Each of 2,000 calls gives more than a result may hold: the rest goes into a
// file, and what stays is the history and nothing beside it.
func TestMemoryStaysFlatOverATurnOf2000Calls(t *testing.T) {
	const most = 4 << 10
	set := endless()
	set.ResultBytes = most
	ws, err := tool.OpenWorkspace(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	outputs := t.TempDir()
	save, err := ws.Outputs(outputs, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("a line of a long output\n"), 2*most/24)
	long := writer("write", func(_ context.Context, c *tool.Call) tool.Result {
		return tool.TextResult(string(c.Arguments) + "\n" + string(line))
	})
	s := opened(t, unheard{worker(2000).(*script)}, Tools(long), With(set), Journal(book(t)), Outputs(save))
	var at []standing
	n := 0
	for e, err := range s.Turn(t.Context(), ninelives.UserText("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(Called); ok {
			if n++; n == 200 || n == 1100 || n == 2000 {
				at = append(at, stands(s, n))
			}
		}
	}
	if len(at) != 3 {
		t.Fatalf("the turn had %d calls", n)
	}
	if saved, err := os.ReadDir(outputs); err != nil || len(saved) != 2000 {
		t.Fatalf("%d outputs were saved, %v", len(saved), err)
	}
	for _, v := range at {
		t.Logf("after %d calls: heap %d KB, history %d KB, %d goroutines, %d files", v.at, v.heap>>10, v.history>>10, v.goroutines, v.files)
	}
	first := at[0]
	for _, v := range at[1:] {
		if grown, needed := v.heap-first.heap, v.history-first.history; grown > needed+needed/10+(1<<20) {
			t.Errorf("from call %d to call %d the heap has grown by %d KB, the history by %d KB", first.at, v.at, grown>>10, needed>>10)
		}
		if v.goroutines > first.goroutines || v.files > first.files {
			t.Errorf("after %d calls there are %d goroutines and %d open files, after %d there were %d and %d",
				v.at, v.goroutines, v.files, first.at, first.goroutines, first.files)
		}
	}
}
