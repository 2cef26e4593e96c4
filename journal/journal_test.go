package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestMain(m *testing.M) {
	if job := os.Getenv("JOURNAL_TEST_CHILD"); job != "" {
		os.Exit(child(job))
	}
	goleak.VerifyTestMain(m)
}

func openTest(t testing.TB, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func newJournal(t testing.TB) *Journal {
	return openTest(t, filepath.Join(t.TempDir(), "journal.db"))
}

func begin(t testing.TB, j *Journal, text string) string {
	t.Helper()
	id, err := j.Begin(t.Context(), Call{Source: "test", Request: ninelives.Prompt(text)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func call(t testing.TB, j *Journal, id string) *Record {
	t.Helper()
	r, err := j.Call(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answer(text string) *ninelives.Response {
	return &ninelives.Response{Message: ninelives.AssistantText(text), Finish: ninelives.FinishStop}
}

func states(list []Summary) (all []State) {
	for _, s := range list {
		all = append(all, s.State)
	}
	return all
}

func TestACallIsReadBackAsItWas(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	in := Call{
		Source: "ask",
		Request: &ninelives.Request{
			Model: "claude",
			Messages: []ninelives.Message{
				ninelives.SystemText("be brief"),
				{Role: ninelives.RoleUser, Parts: []ninelives.Part{
					ninelives.Text{Text: "\n  Why do cats\nland on their feet?"},
					ninelives.Image{MediaType: "image/png", Data: []byte{0, 1, 255}},
				}},
			},
			Tools: []ninelives.Tool{{Name: "f", Schema: []byte(`{ "type": "object" }`)}},
		},
		Labels: map[string]string{"preset": "hardened", "fallback": "openai/gpt"},
	}
	before := time.Now().Truncate(time.Millisecond)
	id, err := j.Begin(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	notices := []ninelives.Notice{
		{Kind: ninelives.NoticeAttempt, Attempt: 1, Candidate: "anthropic/claude"},
		{Kind: ninelives.NoticeWait, Attempt: 1, Wait: 1500 * time.Microsecond, Fault: &ninelives.Fault{Class: ninelives.ClassRateLimit, RetryAfter: time.Second}},
	}
	for _, n := range notices {
		if err := j.Note(ctx, id, n); err != nil {
			t.Fatal(err)
		}
	}
	running := call(t, j, id)
	if running.State != StateRunning || running.Outcome != nil || running.Resumable() || !reflect.DeepEqual(running.Request, in.Request) {
		t.Errorf("while it runs: %+v", running)
	}
	if err := j.End(ctx, id, Outcome{Response: answer("Righting reflex.")}); err != nil {
		t.Fatal(err)
	}

	r := call(t, j, id)
	if !reflect.DeepEqual(r.Request, in.Request) || !reflect.DeepEqual(r.Labels, in.Labels) {
		t.Errorf("read back %+v %v", r.Request, r.Labels)
	}
	var got []ninelives.Notice
	for _, n := range r.Notices {
		got = append(got, n.Notice)
	}
	if !reflect.DeepEqual(got, notices) {
		t.Errorf("notices %+v", got)
	}
	if !reflect.DeepEqual(r.Outcome, &Outcome{Response: answer("Righting reflex.")}) {
		t.Errorf("outcome %+v", r.Outcome)
	}
	if r.ID != id || r.Source != "ask" || r.Title != "Why do cats" || r.State != StateComplete || r.Reason != "" || len(r.Damaged) != 0 {
		t.Errorf("%+v", r)
	}
	if r.Started.Before(before) || r.Ended.Before(r.Started) || time.Now().Before(r.Ended) {
		t.Errorf("from %v to %v", r.Started, r.Ended)
	}
	list, damaged, err := j.Calls(ctx, Filter{})
	if err != nil || len(damaged) != 0 || len(list) != 1 || !reflect.DeepEqual(list[0], r.Summary) {
		t.Errorf("the list says\n%+v, the record\n%+v (%v, %v)", list, r.Summary, damaged, err)
	}
}

func TestEveryEndHasItsState(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	for _, test := range []struct {
		err    error
		state  State
		reason ninelives.Class
	}{
		{nil, StateComplete, ""},
		{fmt.Errorf("all failed: %w", &ninelives.Fault{Class: ninelives.ClassBilling, Message: "no credit"}), StateFailed, ninelives.ClassBilling},
		{errors.New("something else"), StateFailed, ninelives.ClassUnknown},
		{fmt.Errorf("stopped: %w", context.Canceled), StateCanceled, ninelives.ClassCanceled},
		{&ninelives.Fault{Class: ninelives.ClassCanceled}, StateCanceled, ninelives.ClassCanceled},
	} {
		id := begin(t, j, "hi")
		if err := j.End(ctx, id, OutcomeOf(answer("x"), test.err)); err != nil {
			t.Fatal(err)
		}
		r := call(t, j, id)
		if r.State != test.state || r.Reason != test.reason || r.Resumable() != (test.err != nil) {
			t.Errorf("%v: state %s, reason %q, resumable %v", test.err, r.State, r.Reason, r.Resumable())
		}
		if test.err != nil && (r.Outcome.Error != test.err.Error() || r.Outcome.Response != nil) {
			t.Errorf("%v: outcome %+v", test.err, r.Outcome)
		}
		if err := j.End(ctx, id, Outcome{}); !errors.Is(err, ErrEnded) {
			t.Errorf("a second end: %v", err)
		}
		if err := j.Note(ctx, id, ninelives.Notice{Kind: ninelives.NoticeWarning}); err != nil {
			t.Error(err)
		}
	}
	list, _, err := j.Calls(ctx, Filter{Resumable: true, Limit: -1})
	if want := []State{StateCanceled, StateCanceled, StateFailed, StateFailed}; err != nil || !slices.Equal(states(list), want) {
		t.Errorf("%v %v", states(list), err)
	}
	list, _, err = j.Calls(ctx, Filter{States: []State{StateComplete, StateFailed}, Limit: 2})
	if want := []State{StateFailed, StateFailed}; err != nil || !slices.Equal(states(list), want) {
		t.Errorf("%v %v", states(list), err)
	}
	if len(j.lost) != 0 {
		t.Errorf("%v", j.lost)
	}
}

func TestACallIsTakenUpOnce(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	first := begin(t, j, "try")
	resume := func(id string) (string, error) {
		return j.Begin(ctx, Call{Request: ninelives.Prompt("try"), Resumes: id})
	}
	if _, err := resume(first); !errors.Is(err, ErrRunning) {
		t.Errorf("a running call was taken up: %v", err)
	}
	if err := j.End(ctx, first, OutcomeOf(nil, &ninelives.Fault{Class: ninelives.ClassNetwork})); err != nil {
		t.Fatal(err)
	}
	second, err := resume(first[:len(first)-1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resume(first); !errors.Is(err, ErrResumed) || !strings.Contains(err.Error(), second) {
		t.Errorf("a second time: %v", err)
	}
	r := call(t, j, first)
	if r.ResumedBy != second || r.Resumable() || r.State != StateFailed || call(t, j, second).Resumes != first {
		t.Errorf("%+v", r)
	}
	if err := j.End(ctx, second, Outcome{Response: answer("done")}); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(second); !errors.Is(err, ErrComplete) {
		t.Errorf("a complete call was taken up: %v", err)
	}
	if _, err := resume("zzzz"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown call was taken up: %v", err)
	}
	if list, _, _ := j.Calls(ctx, Filter{}); len(list) != 2 {
		t.Errorf("what was refused left a record: %+v", list)
	}
}

func TestAnIDMayBeShortenedAndMistyped(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	a := begin(t, j, "a")
	b := begin(t, j, "b")
	if len(a) != 16 || a >= b {
		t.Errorf("ids %s, %s", a, b)
	}
	for _, id := range []string{a, strings.ToUpper(a), a[:4] + "-" + a[4:], strings.ReplaceAll(strings.ReplaceAll(a, "0", "O"), "1", "l")} {
		if r, err := j.Call(ctx, id); err != nil || r.ID != a {
			t.Errorf("%s: %v", id, err)
		}
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	if r, err := j.Call(ctx, b[:i+1]); err != nil || r.ID != b {
		t.Errorf("the shortest prefix: %v", err)
	}
	if _, err := j.Call(ctx, a[:i]); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("two calls begin so: %v", err)
	}
	for _, id := range []string{"", " ", "zz", a + "0", "%", "'; DROP TABLE streams; --"} {
		if _, err := j.Call(ctx, id); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, f := range []func() error{
		func() error { return j.End(ctx, "zz", Outcome{}) },
		func() error { return j.End(ctx, a[:8], Outcome{}) },
	} {
		if err := f(); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}
}

func TestIDsSortInTheOrderOfTheirMaking(t *testing.T) {
	var s ids
	now := time.UnixMilli(1 << 44)
	var last string
	for i := range 10000 {
		if i%100 == 0 {
			now = now.Add(time.Duration(i%3-1) * time.Millisecond) // also backwards
		}
		id := s.next(now)
		if len(id) != 16 || id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	s.tail = 1<<35 - 1
	if id := s.next(now); id <= last {
		t.Errorf("%s after %s, when the tail ran over", id, last)
	}
}

func TestACallerWhoHasGoneLeavesNoRecord(t *testing.T) {
	j := newJournal(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Begin(ctx, Call{Request: ninelives.Prompt("hi")}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// Nor does one who goes while others are being written.
	ctx, cancel = context.WithCancel(t.Context())
	writing, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = j.commit(context.Background(), &write{do: func(*writer) error {
			close(writing)
			<-release
			return nil
		}})
	}()
	<-writing
	errs := make(chan error)
	go func() {
		_, err := j.Begin(ctx, Call{Request: ninelives.Prompt("hi")})
		errs <- err
	}()
	for len(j.queue) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	begin(t, j, "the next")
	if list, _, err := j.Calls(t.Context(), Filter{}); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestOneWriteThatFailsDoesNotTakeTheOthersWithIt(t *testing.T) {
	j := newJournal(t)
	writing, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = j.commit(context.Background(), &write{do: func(*writer) error {
			close(writing)
			<-release
			return nil
		}})
	}()
	<-writing
	own := errors.New("of its own")
	var wg sync.WaitGroup
	var ids [20]string
	for i := range ids {
		wg.Go(func() { ids[i] = begin(t, j, fmt.Sprint(i)) })
	}
	wg.Go(func() {
		if err := j.commit(context.Background(), &write{do: func(*writer) error { return own }}); !errors.Is(err, own) {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := j.End(context.Background(), "zz", Outcome{}); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	})
	for len(j.queue) < len(ids)+2 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	for i, id := range ids {
		if r := call(t, j, id); r.Title != fmt.Sprint(i) || len(r.Damaged) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestALostNoteIsToldAtTheEnd(t *testing.T) {
	j := newJournal(t)
	id := begin(t, j, "hi")
	full := errors.New("no room")
	if err := j.enqueue(t.Context(), &write{call: id, do: func(*writer) error { return full }}); err != nil {
		t.Fatal(err)
	}
	err := j.End(t.Context(), id, Outcome{Response: answer("x")})
	if !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if r := call(t, j, id); r.State != StateComplete || len(j.lost) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAClosedJournalSaysSo(t *testing.T) {
	j, err := Open(filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	id := begin(t, j, "hi")
	var wg sync.WaitGroup
	for range 8 { // those who write while it is being closed are written or told
		wg.Go(func() {
			id, err := j.Begin(context.Background(), Call{Request: ninelives.Prompt("hi")})
			if (id == "") == (err == nil) || err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_, beginErr := j.Begin(t.Context(), Call{})
	_, callErr := j.Call(t.Context(), id)
	_, _, callsErr := j.Calls(t.Context(), Filter{})
	for _, err := range []error{beginErr, callErr, callsErr, j.Note(t.Context(), id, ninelives.Notice{}), j.End(t.Context(), id, Outcome{})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// A copy of the file alone is the whole journal once nobody has it open.
func TestTheLastToCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first, second := openTest(t, path), openTest(t, path)
	id := begin(t, first, "hi")
	call(t, second, id) // so that a connection that only reads is open
	for _, j := range []*Journal{first, second} {
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("while a process has it open: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log of transactions is still there (%v)", err)
	}
	if got := call(t, openTest(t, path), id).Title; got != "hi" {
		t.Errorf("%q", got)
	}
}

func TestEveryCommitIsSynced(t *testing.T) {
	j := newJournal(t)
	err := j.commit(t.Context(), &write{do: func(w *writer) error {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "busy_timeout": "5000"} {
			var got string
			if err := w.conn.QueryRowContext(context.Background(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", pragma, got, err, want)
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	j := newJournal(t)
	if _, err := j.readers.Exec(`DELETE FROM events`); code(err) != sqliteReadOnly {
		t.Errorf("%v", err)
	}
}

func TestItIsTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b", "c?d%20#e")
	path := filepath.Join(dir, "journal.db")
	j := openTest(t, path)
	begin(t, j, "hi")
	for name, want := range map[string]os.FileMode{
		dir: os.ModeDir | 0o700, filepath.Dir(dir): os.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600,
		path + ".owners": os.ModeDir | 0o700, path + ".owners/" + j.owners.self: 0o600,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestAPathMayBeRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	j := openTest(t, "sub/j")
	id := begin(t, j, "hi")
	t.Chdir(t.TempDir())
	if got := call(t, j, id).Title; got != "hi" {
		t.Errorf("%q", got)
	}
}

// Credentials belong to candidates, and nothing that is recorded leads to one.
func TestNoCredentialIsWithinReach(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, path string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if typ == reflect.TypeFor[ninelives.Candidate]() {
			t.Errorf("%s is a candidate", path)
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem(), path)
		case reflect.Map:
			walk(typ.Elem(), path)
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				text := f.Type.Kind() == reflect.String || f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Slice
				if f.Tag.Get("json") == "-" || typ == reflect.TypeFor[callContent]() && f.Name == "Header" {
					continue // not written, or not with what sounds like a credential: see TestACallInAClientsOwnBytesIsReadBackAsItWas
				}
				if name := strings.ToLower(f.Name); slices.Contains([]string{"key", "apikey", "token", "header", "headers", "authorization", "credential", "credentials", "secret"}, name) && text {
					t.Errorf("%s.%s sounds like a credential", path, f.Name)
				}
				walk(f.Type, path+"."+f.Name)
			}
		}
	}
	walk(reflect.TypeFor[callHead](), "Call")
	walk(reflect.TypeFor[callContent](), "Call")
	walk(reflect.TypeFor[ninelives.Notice](), "Notice")
	walk(reflect.TypeFor[endHead](), "Outcome")
	walk(reflect.TypeFor[endContent](), "Outcome")
	for _, p := range []ninelives.Part{ninelives.Text{}, ninelives.Image{}, ninelives.File{}, ninelives.ToolCall{}, ninelives.ToolResult{}, ninelives.Reasoning{}, ninelives.Refusal{}, ninelives.Opaque{}} {
		walk(reflect.TypeOf(p), "Part")
	}
}

func TestTheSchemaIsAsNewAsItsNewestMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	newest := files[len(files)-1].Name()
	if want := fmt.Sprintf("%05d_", schemaVersion); !strings.HasPrefix(newest, want) || len(files) != schemaVersion {
		t.Errorf("%d migrations, the newest %s; want it to begin with %s", len(files), newest, want)
	}
}

// raw opens the file behind the journal's back.
func raw(t testing.TB, path string, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}
