package agent

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// BenchmarkStep is what a request with its answer and a call cost beside the
// model and the tool: two transactions, everything durable. The history grows
// with the number of runs.
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

// BenchmarkStepFloor is what BenchmarkStep cannot be below: its two
// transactions, as small as its own, by SQLite alone and as durable.
func BenchmarkStepFloor(b *testing.B) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "floor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE events (stream TEXT, seq INTEGER, data BLOB, PRIMARY KEY (stream, seq)) WITHOUT ROWID`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(`INSERT INTO events VALUES ('one', ?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 300)
	seq := 0
	b.ResetTimer()
	for b.Loop() {
		for _, entries := range []int{2, 1} { // an answer with an intent; an effect
			tx, err := db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			for range entries {
				seq++
				if _, err := tx.Stmt(insert).Exec(seq, data); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// writing makes a record, entry by entry.
type writing struct {
	testing.TB
	record []journal.Entry
}

func (w *writing) add(entries ...Entry) {
	w.Helper()
	for _, e := range entries {
		written, err := encode(time.UnixMilli(1_700_000_000_000+int64(len(w.record))), e)
		if err != nil {
			w.Fatal(err)
		}
		written.Seq = int64(len(w.record) + 1)
		w.record = append(w.record, written)
	}
}

// begin adds the start of a turn that the user begins with a word.
func (w *writing) begin(turn int) {
	set := endless()
	w.add(Input{Number: turn, Via: ViaTurn, Message: ninelives.UserText("go")},
		Start{Turn: turn, Inputs: []int{turn}, Model: "test/scripted", Window: 1 << 30, Mode: tool.ModeFull, Settings: set})
}

// longRecord is the record of one turn of so many messages: a call in every
// answer.
func longRecord(tb testing.TB, messages int) []journal.Entry {
	tb.Helper()
	w := &writing{TB: tb}
	w.add(Opening{Directory: "/nowhere"})
	w.begin(1)
	for step := 1; 2*step <= messages; step++ {
		c := call(fmt.Sprintf("call_1_%d_0", step), "write", fmt.Sprintf(`{"n":%d}`, step))
		w.add(Answer{Turn: 1, Step: step, Purpose: PurposeStep, Finish: ninelives.FinishToolCalls, Attempts: 1, Candidate: "test/scripted",
			Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{c}},
			Usage:   ninelives.Usage{Input: 100, Output: 10, Reported: ninelives.UsageInput | ninelives.UsageOutput}},
			Intent{Call: c.ID, Name: c.Name, Arguments: []byte(c.Arguments)},
			Effect{Call: c.ID, Name: c.Name, Ran: true, Took: time.Millisecond, Result: result(c, tool.TextResult(strings.Repeat("a line of a file\n", 20)))})
	}
	return w.record
}

// turnsRecord is the record of a session of so many messages, two in a turn.
func turnsRecord(tb testing.TB, messages int) []journal.Entry {
	tb.Helper()
	w := &writing{TB: tb}
	w.add(Opening{Directory: "/nowhere"})
	for turn := 1; 2*turn <= messages; turn++ {
		w.begin(turn)
		w.add(Answer{Turn: turn, Step: 1, Purpose: PurposeStep, Finish: ninelives.FinishStop, Message: ninelives.AssistantText("so be it")},
			End{Turn: turn, Reason: ReasonComplete})
	}
	return w.record
}

// booked writes a record into a journal, as the session that it is of, and gives
// its id.
func booked(tb testing.TB, j *journal.Journal, record []journal.Entry) string {
	tb.Helper()
	log, err := j.NewSession(tb.Context(), journal.Head{State: "open"}, record...)
	if err != nil {
		tb.Fatal(err)
	}
	if err := log.Close(); err != nil {
		tb.Fatal(err)
	}
	return log.ID()
}

// BenchmarkOpen is the opening of a session of 10,000 messages: it is taken
// from the journal, read, and made a state of.
func BenchmarkOpen(b *testing.B) {
	j := book(b)
	id := booked(b, j, longRecord(b, 10_000))
	a := New(plays(says("ok")), Journal(j))
	b.ResetTimer()
	for b.Loop() {
		s, err := a.Resume(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if len(s.st.messages) < 10_000 {
			b.Fatal(len(s.st.messages))
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
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
