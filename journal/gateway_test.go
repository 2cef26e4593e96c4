package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// relayed is a call as a gateway records it.
func relayed(body string) Call {
	return Call{
		Source: "gateway", Title: "a question", Client: "team", Labels: map[string]string{"route": "default"},
		Raw: &RawCall{Protocol: ninelives.OpenAIChat, Path: "/v1/chat/completions", Body: []byte(body)},
	}
}

func beginCall(t testing.TB, j *Journal, c Call) string {
	t.Helper()
	id, err := j.Begin(context.Background(), c)
	must(t, err)
	return id
}

func TestACallInAClientsOwnBytesIsReadBackAsItWas(t *testing.T) {
	for name, o := range map[string]Options{"in clear": {}, "sealed": {Key: strings.Repeat("ab", keySize)}} {
		t.Run(name, func(t *testing.T) {
			j, err := OpenWith(filepath.Join(t.TempDir(), "j"), o)
			must(t, err)
			t.Cleanup(func() { must(t, j.Close()) })
			rapid.Check(t, func(rt *rapid.T) {
				in := relayed(string(rapid.SliceOf(rapid.Byte()).Draw(rt, "body")))
				in.Repeat, in.Public = "once", "resp_1"
				in.Raw.Header = map[string]string{"anthropic-beta": "a,b"}
				want := *in.Raw
				in.Raw.Header = map[string]string{"anthropic-beta": "a,b", "Authorization": "Bearer s", "X-Api-Key": "s", "Cookie": "s"}
				id := beginCall(t, j, in)
				end := Outcome{
					Raw: rapid.SliceOf(rapid.Byte()).Draw(rt, "answer"), Status: 200, Public: "resp_2",
					Attempts: []Attempt{
						{Number: 1, Candidate: "a", Class: ninelives.ClassOverloaded, Status: 529, Began: time.Unix(5, 6).UTC(), Took: 7 * time.Microsecond, Billed: ninelives.BilledMaybe},
						{Number: 2, Candidate: "b", Status: 200, Usage: ninelives.Usage{Input: 3, Output: 4, Estimated: true}, Cost: 0.25, Estimated: true},
					},
					Usage: ninelives.Usage{Input: 3, Output: 4, Estimated: true}, Cost: 0.25, Estimated: true,
				}
				must(t, j.End(context.Background(), id, end))
				r := call(t, j, id)
				if len(want.Body) == 0 {
					want.Body = r.Raw.Body[:0] // nil and empty are one
				}
				if !reflect.DeepEqual(r.Raw, &want) {
					rt.Fatalf("read back %+v, want %+v", r.Raw, want)
				}
				if len(end.Raw) == 0 {
					end.Raw = r.Outcome.Raw[:0]
				}
				if !reflect.DeepEqual(r.Outcome, &end) || len(r.Damaged) > 0 {
					rt.Fatalf("read back\n%+v, want\n%+v; %v", r.Outcome, end, r.Damaged)
				}
				if r.State != StateComplete || r.Client != "team" || r.Repeat != "once" || r.Public != "resp_2" || r.Cost != 0.25 || r.Tokens != 7 || r.Title != "a question" {
					rt.Fatalf("%+v", r.Summary)
				}
			})
		})
	}
}

func TestWhatAClientLeftIsKeptAsEvidence(t *testing.T) {
	j := newJournal(t)
	id := beginCall(t, j, relayed("{}"))
	o := OutcomeOf(nil, &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "the client left"})
	o.Partial = answer("half")
	must(t, j.End(t.Context(), id, o))
	if r := call(t, j, id); r.State != StateCanceled || r.Outcome.Partial.Text() != "half" || !r.Resumable() {
		t.Errorf("%+v", r)
	}
}

func TestAnEndNeedNotBeWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	must(t, err)
	var ids []string
	told := make(chan error, 21)
	for i := range 20 {
		id := beginCall(t, j, relayed("{}"))
		ids = append(ids, id)
		must(t, j.EndLater(t.Context(), id, Outcome{Raw: fmt.Append(nil, i), Status: 200}, func(err error) { told <- err }))
	}
	must(t, j.EndLater(t.Context(), ids[0], Outcome{}, func(err error) { told <- err }))
	must(t, j.Close()) // writes what is queued
	var ended int
	for range 21 {
		switch err := <-told; {
		case errors.Is(err, ErrEnded):
			ended++
		case err != nil:
			t.Error(err)
		}
	}
	if ended != 1 {
		t.Errorf("a second end was told %d times that there is one", ended)
	}
	j = openTest(t, path)
	for i, id := range ids {
		if r := call(t, j, id); r.State != StateComplete || string(r.Outcome.Raw) != fmt.Sprint(i) {
			t.Errorf("%+v", r)
		}
	}
}

func TestSpendingIsSummedUpByClient(t *testing.T) {
	j := newJournal(t)
	for i, client := range []string{"a", "b", "a", "", "a"} {
		c := relayed("{}")
		c.Client = client
		id := beginCall(t, j, c)
		if i == 4 {
			continue // has not ended
		}
		must(t, j.End(t.Context(), id, Outcome{Answered: true, Cost: float64(i + 1), Usage: ninelives.Usage{Input: 10, Output: i}}))
	}
	for client, want := range map[string][2]float64{"a": {4, 22}, "b": {2, 11}, "": {}, "c": {}} {
		money, tokens, err := j.Spent(t.Context(), client, time.Now().Add(-time.Hour))
		if err != nil || money != want[0] || tokens != int(want[1]) {
			t.Errorf("%q: %v %v %v", client, money, tokens, err)
		}
	}
	if money, tokens, err := j.Spent(t.Context(), "a", time.Now().Add(time.Hour)); err != nil || money != 0 || tokens != 0 {
		t.Errorf("in the future: %v %v %v", money, tokens, err)
	}
}

func TestWhatIsLookedUpOftenIsInAnIndex(t *testing.T) {
	j := newJournal(t)
	for query, index := range map[string]string{
		`SELECT sum(cost), sum(tokens) FROM streams WHERE client = ?1 AND client <> '' AND ended > 0 AND ended >= ?2`: "COVERING INDEX streams_by_client",
		`SELECT id FROM streams WHERE repeat = ?1 AND repeat <> '' AND client = ?2 ORDER BY id DESC LIMIT 1`:          "INDEX streams_by_repeat",
		`SELECT id FROM streams WHERE public = ?1 AND public <> '' AND client = ?2 ORDER BY id DESC LIMIT 1`:          "INDEX streams_by_public",
	} {
		var a, b, c int
		var plan string
		must(t, j.readers.QueryRow("EXPLAIN QUERY PLAN "+query, "x", "y", 3).Scan(&a, &b, &c, &plan))
		if !strings.Contains(plan, index) {
			t.Errorf("%s:\n%s", query, plan)
		}
	}
}

func TestACallIsFoundByTheClientsKeyAndByTheIDOfItsAnswer(t *testing.T) {
	j := newJournal(t)
	c := relayed("one")
	c.Repeat, c.Public = "r1", "p1"
	first := beginCall(t, j, c)
	c.Raw.Body = []byte("two")
	second := beginCall(t, j, c)
	c.Client, c.Public = "other", ""
	foreign := beginCall(t, j, c)
	must(t, j.End(t.Context(), foreign, Outcome{Answered: true, Public: "p2"}))
	must(t, j.End(t.Context(), first, Outcome{Answered: true}))
	for _, test := range []struct {
		by             func(context.Context, string, string) (*Record, error)
		client, what   string
		want, wantBody string
	}{
		{j.ByRepeat, "team", "r1", second, "two"},
		{j.ByRepeat, "other", "r1", foreign, "two"},
		{j.ByRepeat, "team", "", "", ""},
		{j.ByRepeat, "nobody", "r1", "", ""},
		{j.ByPublic, "team", "p1", second, "two"},
		{j.ByPublic, "other", "p2", foreign, "two"},
		{j.ByPublic, "team", "p2", "", ""}, // another's
		{j.ByPublic, "other", "", "", ""},
	} {
		r, err := test.by(t.Context(), test.client, test.what)
		if test.want == "" {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%s %q: %v %v", test.client, test.what, r, err)
			}
			continue
		}
		if err != nil || r.ID != test.want || string(r.Raw.Body) != test.wantBody {
			t.Errorf("%s %q: %+v %v", test.client, test.what, r, err)
		}
	}
	if got, _, err := j.Calls(t.Context(), Filter{Source: "ask"}); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if got, _, err := j.Calls(t.Context(), Filter{Source: "gateway"}); err != nil || len(got) != 3 {
		t.Errorf("%v %v", got, err)
	}
}

// Two processes that write one call: only hands could bring that about.
func TestACallThatAnotherProcessHasAddedToIsNotBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	mine, other := openTest(t, path), openTest(t, path)
	id := beginCall(t, mine, relayed("{}"))
	must(t, other.Note(t.Context(), id, ninelives.Notice{Kind: ninelives.NoticeWarning}))
	must(t, other.commit(t.Context(), &write{do: func(*writer) error { return nil }}))
	must(t, mine.End(t.Context(), id, Outcome{Raw: []byte("x")}))
	if r := call(t, mine, id); len(r.Damaged) > 0 || len(r.Notices) != 1 || string(r.Outcome.Raw) != "x" {
		t.Errorf("%+v", r)
	}
	if err := other.End(t.Context(), id, Outcome{}); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// Space is back: the journal goes on by itself, also for those at work meanwhile.
func TestAFullDiskIsKnownByItsErrorAndPasses(t *testing.T) {
	j := newJournal(t)
	open := beginCall(t, j, relayed("before"))
	pages := func(n int) {
		must(t, j.commit(context.Background(), &write{do: func(w *writer) error { return w.exec(fmt.Sprint("PRAGMA max_page_count = ", n)) }}))
	}
	pages(1)
	big := relayed(strings.Repeat("x", 100_000))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := j.Begin(context.Background(), big)
			var own *Error
			if !errors.Is(err, ErrFull) || !errors.As(err, &own) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if err := j.End(t.Context(), open, Outcome{Raw: bytes.Repeat([]byte("y"), 100_000)}); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	pages(1_000_000)
	must(t, j.End(t.Context(), open, Outcome{Raw: bytes.Repeat([]byte("y"), 100_000)}))
	id := beginCall(t, j, big)
	for _, id := range []string{open, id} {
		if r := call(t, j, id); len(r.Damaged) > 0 {
			t.Errorf("%+v", r)
		}
	}
	if errors.Is(explain("p", errNewer), ErrFull) {
		t.Error("another error is taken for a full disk")
	}
}

func TestAFileThatWasRemovedOrReplacedIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	gone := "the journal " + path + " was removed meanwhile"
	must(t, j.Gone())
	must(t, os.Rename(path, path+".old"))
	if err := j.Gone(); err == nil || err.Error() != gone {
		t.Errorf("removed: %v", err)
	}
	must(t, os.WriteFile(path, nil, 0o600))
	if err := j.Gone(); err == nil || err.Error() != gone {
		t.Errorf("replaced: %v", err)
	}
	must(t, os.Rename(path+".old", path))
	must(t, j.Gone())
}
