package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// words are entries that say these words.
func words(texts ...string) (all []Entry) {
	for _, text := range texts {
		all = append(all, Entry{Kind: "word", Data: []byte(`"` + text + `"`)})
	}
	return all
}

// said are the words of entries, with their numbers.
func said(entries []Entry) (all []string) {
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%d %s", e.Seq, e.Data))
	}
	return all
}

func newSession(t testing.TB, j *Journal, texts ...string) *Session {
	t.Helper()
	s, err := j.NewSession(t.Context(), Head{Title: "talk"}, words(texts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, j *Journal, id string) (SessionSummary, []Entry) {
	t.Helper()
	sum, entries, damaged, err := j.ReadSession(context.Background(), id)
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	return sum, entries
}

func take(t testing.TB, j *Journal, id string) (*Session, []Entry) {
	t.Helper()
	s, entries, damaged, err := j.TakeSession(context.Background(), id)
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	return s, entries
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestASessionIsReadBackAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	ctx := t.Context()
	at := time.UnixMilli(1_700_000_000_123)
	in := []Entry{
		{At: at, Kind: "opening", Data: []byte(`{"directory":"/a"}`)},
		{At: at.Add(-time.Hour), Kind: "", Data: []byte("\x00\xff no text")}, // kept as it is
		{At: at.Add(999 * time.Microsecond), Kind: "empty"},
		{Kind: "now", Data: []byte(`{}`)},
	}
	before := time.Now().Truncate(time.Millisecond)
	s, err := j.NewSession(ctx, Head{Title: " Fix it\nplease", State: "new", Labels: map[string]string{"directory": "/a", "": "\xff"}}, in[:1]...)
	must(t, err)
	must(t, s.Append(ctx, nil, in[1:3]...))
	must(t, s.Append(ctx, &Head{Title: strings.Repeat("ä", 121), State: "busy"}, in[3]))
	if s.Version() != 4 || len(s.ID()) != 16 {
		t.Errorf("%s at %d", s.ID(), s.Version())
	}
	now := time.Now()
	want := []Entry{
		{1, at, "opening", in[0].Data}, {2, in[1].At, "", in[1].Data}, {3, at, "empty", nil}, {4, time.Time{}, "now", in[3].Data},
	}
	check := func(j *Journal, running bool) {
		t.Helper()
		sum, entries := read(t, j, s.ID())
		if last := entries[3].At; last.Before(before) || last.After(now) || sum.Updated != last {
			t.Errorf("an entry without a time is of %v, the session of %v", last, sum.Updated)
		}
		entries[3].At = time.Time{}
		if !reflect.DeepEqual(entries, want) {
			t.Errorf("\n got %+v\nwant %+v", entries, want)
		}
		if sum.ID != s.ID() || sum.Title != strings.Repeat("ä", 119)+"…" || sum.State != "busy" || len(sum.Labels) > 0 || sum.Entries != 4 ||
			sum.Running != running || (sum.Process == os.Getpid()) != running || sum.Started.Before(before) || sum.Updated.Before(sum.Started) {
			t.Errorf("%+v", sum)
		}
		list, damaged, err := j.Sessions(ctx, SessionFilter{})
		if err != nil || len(damaged) > 0 || !reflect.DeepEqual(list, []SessionSummary{sum}) {
			t.Errorf("the list says\n%+v, the session\n%+v (%v %v)", list, sum, damaged, err)
		}
	}
	check(j, true)
	check(openTest(t, path), true)
	must(t, s.Close())
	check(j, false)
	again, entries := take(t, j, s.ID()[:15])
	if entries[3].At = (time.Time{}); !reflect.DeepEqual(entries, want) || again.ID() != s.ID() || again.Version() != 4 {
		t.Errorf("taken: %+v at %d", entries, again.Version())
	}
	check(j, true)
	if list, _, err := j.Calls(ctx, Filter{}); err != nil || len(list) != 0 {
		t.Errorf("among the calls: %+v %v", list, err)
	}
}

func TestAnyEntriesAreReadBackAsTheyWere(t *testing.T) {
	j := newJournal(t)
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Custom(func(t *rapid.T) Entry {
			return Entry{
				At:   time.UnixMilli(rapid.Int64Range(0, 1<<44).Draw(t, "at")),
				Kind: rapid.String().Draw(t, "kind"),
				Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			}
		})
		batches := rapid.SliceOfN(rapid.SliceOfN(entry, 0, 5), 1, 5).Draw(t, "batches")
		s, err := j.NewSession(context.Background(), Head{}, batches[0]...)
		var want []Entry
		for i, b := range batches {
			if i > 0 {
				err = errors.Join(err, s.Append(context.Background(), nil, b...))
			}
			for _, e := range b {
				e.Seq = int64(len(want) + 1)
				if len(e.Data) == 0 {
					e.Data = nil
				}
				want = append(want, e)
			}
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		_, got, damaged, err := j.ReadSession(context.Background(), s.ID())
		if err != nil || len(damaged) > 0 || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %+v\nwant %+v (%v %v)", got, want, damaged, err)
		}
	})
}

func TestSessionsAreListedByTheirLastEntry(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	var ids []string
	var sessions []*Session
	for i, dir := range []string{"/a", "/b", "/a", ""} {
		h := Head{Title: fmt.Sprint(i)}
		if dir != "" {
			h.Labels = map[string]string{"directory": dir, "host": "h"}
		}
		s, err := j.NewSession(ctx, h)
		must(t, err)
		ids, sessions = append(ids, s.ID()), append(sessions, s)
	}
	later := func() { // the next millisecond
		for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; {
			runtime.Gosched()
		}
	}
	later()
	must(t, sessions[0].Append(ctx, nil, words("more")...))
	later()
	must(t, sessions[1].Close()) // is no addition
	begin(t, j, "a call")
	for _, test := range []struct {
		f    SessionFilter
		want []string
	}{
		{SessionFilter{}, []string{ids[0], ids[3], ids[2], ids[1]}},
		{SessionFilter{Limit: 2}, []string{ids[0], ids[3]}},
		{SessionFilter{Labels: map[string]string{"directory": "/a"}, Limit: -1}, []string{ids[0], ids[2]}},
		{SessionFilter{Labels: map[string]string{"directory": "/a"}, Limit: 1}, []string{ids[0]}},
		{SessionFilter{Labels: map[string]string{"directory": "/a", "host": "g"}}, nil},
		{SessionFilter{Labels: map[string]string{"x": ""}}, nil},
	} {
		list, damaged, err := j.Sessions(ctx, test.f)
		var got []string
		for _, s := range list {
			got = append(got, s.ID)
			if s.Running != (s.ID != ids[1]) {
				t.Errorf("%s: running is %v", s.Title, s.Running)
			}
		}
		if err != nil || len(damaged) > 0 || !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v (%v %v)", test.f, got, test.want, damaged, err)
		}
	}
	for i := range 60 {
		newSession(t, j, fmt.Sprint(i))
	}
	if list, _, err := j.Sessions(ctx, SessionFilter{}); err != nil || len(list) != 50 {
		t.Errorf("without a limit %d: %v", len(list), err)
	}
	if list, _, err := j.Sessions(ctx, SessionFilter{Limit: -1}); err != nil || len(list) != 64 {
		t.Errorf("all are %d: %v", len(list), err)
	}
}

func TestASessionIsFoundByTheBeginningOfItsID(t *testing.T) {
	j := newJournal(t)
	ctx := t.Context()
	a, b := newSession(t, j, "a").ID(), newSession(t, j, "b").ID()
	called := begin(t, j, "a call")
	if sum, _ := read(t, j, strings.ToUpper(a)); sum.ID != a {
		t.Errorf("%+v", sum)
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	for id, want := range map[string]struct {
		is   error
		text string
	}{
		a[:i]:         {ErrAmbiguous, a[:i] + ": several sessions begin like that"},
		"zz":          {ErrUnknown, "zz: no such session"},
		"":            {ErrUnknown, `"": no such session`},
		called:        {ErrUnknown, called + ": no such session"},
		"%' OR 1; --": {ErrUnknown, "%' OR 1; --: no such session"},
	} {
		_, _, _, readErr := j.ReadSession(ctx, id)
		_, _, _, takeErr := j.TakeSession(ctx, id)
		for _, err := range []error{readErr, takeErr} {
			if !errors.Is(err, want.is) || err.Error() != want.text {
				t.Errorf("%v, want %s", err, want.text)
			}
		}
	}
	// A call and a session are not taken for each other.
	if _, err := j.Call(ctx, a); !errors.Is(err, ErrUnknown) || err.Error() != a+": no such call" {
		t.Errorf("%v", err)
	}
	if err := j.End(ctx, a, Outcome{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("a session was ended like a call: %v", err)
	}
	read(t, j, a)
}

func TestOnlyOneHoldsASession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, other := openTest(t, path), openTest(t, path)
	ctx := t.Context()
	s := newSession(t, j, "one")
	for _, j := range []*Journal{j, other} {
		_, _, _, err := j.TakeSession(ctx, s.ID())
		want := "session " + s.ID() + ": it is in use by this process itself – close it there or end that process, or begin another session; reading it is possible all the same"
		if !errors.Is(err, ErrTaken) || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
	must(t, s.Append(ctx, nil, words("two")...))
	must(t, s.Close())
	must(t, s.Close())
	if err := s.Append(ctx, nil, words("late")...); !errors.Is(err, ErrClosed) || err.Error() != "session "+s.ID()+" is closed" {
		t.Errorf("%v", err)
	}
	next, entries := take(t, other, s.ID())
	if got := said(entries); !slices.Equal(got, []string{`1 "one"`, `2 "two"`}) {
		t.Errorf("%q", got)
	}
	must(t, next.Append(ctx, nil, words("three")...))
	if _, entries := read(t, j, s.ID()); len(entries) != 3 {
		t.Errorf("%q", said(entries))
	}
	// What the journal's end lets go of needs no word of its own.
	must(t, other.Close())
	must(t, next.Close())
	if err := next.Append(ctx, nil, words("late")...); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	third, entries := take(t, j, s.ID())
	if len(entries) != 3 || third.Version() != 3 {
		t.Errorf("%q", said(entries))
	}
}

// It cannot come to that while the files of the owners are left alone. Where
// they were not the entries are safe all the same.
func TestALateWriteOfAReplacedHolderIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a locked file cannot be removed there")
	}
	path := filepath.Join(t.TempDir(), "j")
	old, j := openTest(t, path), openTest(t, path)
	ctx := t.Context()
	s := newSession(t, old, "one")
	must(t, os.Remove(old.owners.file.Name()))
	next, _ := take(t, j, s.ID())
	refused := func() {
		t.Helper()
		err := s.Append(ctx, &Head{Title: "mine"}, words("late")...)
		want := "session " + s.ID() + ": somebody else has taken it over, and nothing was written – open it again to go on"
		if !errors.Is(err, ErrReplaced) || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
	refused()
	must(t, next.Append(ctx, nil, words("two")...))
	refused()
	// Nor does he let go of what is not his.
	must(t, s.Close())
	if sum, entries := read(t, old, s.ID()); !sum.Running || sum.Title != "talk" || !slices.Equal(said(entries), []string{`1 "one"`, `2 "two"`}) {
		t.Errorf("%+v %q", sum, said(entries))
	}
	// The same process holds it for the second time: its first hold is over.
	must(t, next.Close())
	again, _ := take(t, j, s.ID())
	next.closed = false
	if err := next.Append(ctx, nil, words("late")...); !errors.Is(err, ErrReplaced) {
		t.Errorf("%v", err)
	}
	must(t, again.Append(ctx, nil, words("three")...))
	// And one who wrote past it, whoever that was, is not written over.
	raw(t, path, `UPDATE streams SET version = 4 WHERE id = ?`, s.ID())
	if err := again.Append(ctx, nil, words("late")...); !errors.Is(err, ErrReplaced) {
		t.Errorf("%v", err)
	}
}

func TestAppendsAtOnceAreNeverInterleaved(t *testing.T) {
	j := newJournal(t)
	s := newSession(t, j)
	const n, each = 8, 25
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d %d", g, i)
				if err := s.Append(context.Background(), &Head{State: text}, words(text+" a", text+" b", text+" c")...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Other writers share the transactions.
	wg.Go(func() {
		for range each {
			begin(t, j, "a call")
		}
	})
	wg.Wait()
	sum, entries := read(t, j, s.ID())
	if len(entries) != 3*n*each || s.Version() != 3*n*each || sum.Entries != 3*n*each {
		t.Fatalf("%d entries, version %d, summary %+v", len(entries), s.Version(), sum)
	}
	var next [n]int
	for k := 0; k < len(entries); k += 3 {
		var g, i int
		if _, err := fmt.Sscanf(string(entries[k].Data), `"%d %d a"`, &g, &i); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d %d", g, i)
		for x, letter := range []string{"a", "b", "c"} {
			if e := entries[k+x]; string(e.Data) != `"`+text+" "+letter+`"` || e.Seq != int64(k+x+1) {
				t.Fatalf("entry %d is %d %s", k+x+1, e.Seq, e.Data)
			}
		}
		if next[g] != i {
			t.Fatalf("of %d, %d came before %d", g, i, next[g])
		}
		next[g]++
		if k+3 == len(entries) && sum.State != text {
			t.Errorf("the head is %q, the last entries are %q", sum.State, text)
		}
	}
}

func TestAWriterWhoGivesUpLeavesNoEntry(t *testing.T) {
	j := newJournal(t)
	s := newSession(t, j, "one")
	ctx, cancel := context.WithCancel(t.Context())
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
	for range 2 { // one waits for the disk, the other for the one
		go func() { errs <- s.Append(ctx, &Head{Title: "gone"}, words("gone")...) }()
	}
	for len(j.queue) == 0 {
		runtime.Gosched()
	}
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	close(release)
	must(t, s.Append(t.Context(), nil, words("two")...))
	if sum, entries := read(t, j, s.ID()); sum.Title != "talk" || !slices.Equal(said(entries), []string{`1 "one"`, `2 "two"`}) {
		t.Errorf("%+v %q", sum, said(entries))
	}
	if _, err := j.NewSession(ctx, Head{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if list, _, _ := j.Sessions(t.Context(), SessionFilter{}); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestAFullDiskRefusesEntriesAndTheSessionGoesOnLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	s := newSession(t, j, "one")
	pages := func(n string) {
		must(t, j.commit(context.Background(), &write{do: func(w *writer) error { return w.exec("PRAGMA max_page_count = " + n) }}))
	}
	pages("24")
	accepted := 1
	var err error
	for err == nil {
		if err = s.Append(t.Context(), &Head{State: fmt.Sprint(accepted + 2)}, words("a", strings.Repeat("b", 6000))...); err == nil {
			accepted += 2
		}
	}
	if want := "journal " + path + ": the disk is full – free some space; nothing that was recorded is lost"; err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if sum, entries := read(t, j, s.ID()); len(entries) != accepted || sum.State != fmt.Sprint(accepted) || s.Version() != int64(accepted) || accepted < 3 {
		t.Errorf("%+v, %d entries, %d accepted", sum, len(entries), accepted)
	}
	pages("1000000")
	must(t, s.Append(t.Context(), nil, words("after")...))
	if _, entries := read(t, j, s.ID()); len(entries) != accepted+1 || string(entries[accepted].Data) != `"after"` {
		t.Errorf("%q", said(entries))
	}
}

func TestWhatIsTooLargeForTheJournalIsToldSo(t *testing.T) {
	j := newJournal(t)
	s := newSession(t, j, "one")
	large := Entry{Kind: "picture", Data: make([]byte, maxEntry+1)}
	want := `an entry "picture" of 256 MiB is too large for the journal, which takes 256 – keep its content in a blob`
	_, err := j.NewSession(t.Context(), Head{}, large)
	for _, err := range []error{err, s.Append(t.Context(), nil, append(words("two"), large)...)} {
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	if _, entries := read(t, j, s.ID()); len(entries) != 1 {
		t.Errorf("%q", said(entries))
	}
}
