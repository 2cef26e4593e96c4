package agent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// worker makes n calls, one per answer, and then says that it is done.
func worker(n int) ninelives.Model {
	asked := 0
	return plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if asked++; asked > n {
			says("done")(ctx, r, yield)
			return
		}
		calls(call("", "write", fmt.Sprintf(`{"n":%d}`, asked)))(ctx, r, yield)
	})
}

// unheard is a model that keeps no request, so that memory is the agent's own.
type unheard struct{ *script }

func (m unheard) Stream(ctx context.Context, req *ninelives.Request) seq2 {
	return func(yield func(ninelives.Event, error) bool) { m.scenes[0](ctx, req, yield) }
}

func endless() Settings {
	set := DefaultSettings()
	set.Iterations = 0
	set.Guard = GuardSettings{}
	set.Compaction.Window = 1 << 30
	set.Permissions.Mode = tool.ModeFull
	return set
}

// BenchmarkStep is what a step costs beside the model and the tool: a request,
// its answer, a call, everything durable.
func BenchmarkStep(b *testing.B) {
	m := unheard{worker(b.N).(*script)}
	s := opened(b, m, Tools(writer("write", echo)), With(endless()), Journal(book(b)))
	b.ResetTimer()
	for _, err := range s.Turn(b.Context(), ninelives.UserText("go")) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// longRecord is the record of a session of so many messages.
func longRecord(tb testing.TB, messages int) []journal.Entry {
	tb.Helper()
	log := &tape{}
	a := New(unheard{worker(messages / 2).(*script)}, With(endless()), Tools(writer("write", func(_ context.Context, c *tool.Call) tool.Result {
		return tool.TextResult(strings.Repeat("a line of a file\n", 20))
	})))
	s := a.taken(tb.Context(), log, nil, nil)
	for _, err := range s.Turn(tb.Context(), ninelives.UserText("go")) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return log.entries
}

// BenchmarkOpen is the opening of a session of 10,000 messages from its entries.
func BenchmarkOpen(b *testing.B) {
	entries := longRecord(b, 10_000)
	a := New(plays(says("ok")))
	b.ResetTimer()
	for b.Loop() {
		if s := a.taken(b.Context(), &tape{}, entries, nil); len(s.st.messages) < 10_000 {
			b.Fatal(len(s.st.messages))
		}
	}
}

// BenchmarkDecide is what is decided and planned before a request, in a session
// of 10,000 messages.
func BenchmarkDecide(b *testing.B) {
	s := New(plays(says("ok"))).taken(b.Context(), &tape{}, longRecord(b, 10_000), nil)
	t := &turn{s: s, a: s.a, set: endless()}
	b.ResetTimer()
	for b.Loop() {
		decide(s.st, now())
		if req, _ := t.request(s.st.ask()); len(req.Messages) < 10_000 {
			b.Fatal(len(req.Messages))
		}
	}
}

// A long turn must not cost more memory per call the longer it is: what is kept
// is the history and nothing beside it.
func TestMemoryStaysFlatOverALongTurn(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s := opened(t, unheard{worker(2000).(*script)}, Tools(writer("write", echo)), With(endless()))
	start := heap()
	var at []uint64
	n := 0
	for e, err := range s.Turn(t.Context(), ninelives.UserText("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(Called); ok {
			if n++; n%1000 == 0 {
				at = append(at, heap()-start)
			}
		}
	}
	first, second := at[0], at[1]-at[0]
	t.Logf("1,000 calls keep %d KB, the next 1,000 %d KB", first>>10, second>>10)
	if second > first*3/2 || at[1] > 8<<20 {
		t.Errorf("1,000 calls keep %d bytes, the next 1,000 %d", first, second)
	}
}

func TestAStepIsOneTransactionAtMost(t *testing.T) {
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
	if got := log.transactions(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the transactions are %q, want %q", got, want)
	}
}
