package journal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// secret is a text that must not be found where it was removed or encrypted.
const secret = "the-cat-is-in-the-box"

// lies says whether the text lies anywhere in the files of the journal.
func lies(t testing.TB, path, text string) bool {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err == nil && bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

// full is a call with the secret in every place.
func secretCall() Call {
	c := relayed(strings.Repeat("q", 6000) + secret)
	c.Title = secret
	c.Raw.Header = map[string]string{"x": secret}
	c.Request = ninelives.Prompt(secret)
	return c
}

func secretEnd() Outcome {
	o := OutcomeOf(nil, &ninelives.Fault{Class: ninelives.ClassOverloaded, Message: secret, Partial: answer(secret)})
	o.Partial, o.Raw, o.Status, o.Cost = answer(secret), []byte(strings.Repeat("a", 6000)+secret), 503, 0.5
	o.Usage = ninelives.Usage{Input: 7}
	o.Attempts = []Attempt{{Number: 1, Candidate: "a", Class: ninelives.ClassOverloaded, Cost: 0.5}}
	return o
}

// bare says what is wrong with a record whose content was removed.
func bare(t *testing.T, r *Record) {
	t.Helper()
	if r.Removed.IsZero() || r.Request != nil || r.Raw != nil || len(r.Damaged) > 0 || len(r.Notices) > 0 || r.Title != "" {
		t.Errorf("something is left, or said to be damaged: %+v", r)
	}
	o := r.Outcome
	if o == nil || o.Response != nil || o.Raw != nil || o.Partial != nil || o.Error != "" ||
		o.Fault == nil || o.Fault.Class != ninelives.ClassOverloaded || o.Fault.Message != "" || o.Status != 503 || o.Cost != 0.5 || len(o.Attempts) != 1 {
		t.Errorf("the account is %+v", o)
	}
	if r.State != StateFailed || r.Client != "team" || r.Cost != 0.5 || r.Tokens != 7 || r.Labels["route"] != "default" {
		t.Errorf("%+v", r.Summary)
	}
}

func TestAForgottenCallLeavesNothingButItsAccount(t *testing.T) {
	for name, notes := range map[string]int{"alone": 0, "with notes": 2} {
		path := filepath.Join(t.TempDir(), "j")
		j := openTest(t, path)
		id := beginCall(t, j, secretCall())
		if !lies(t, path, secret) {
			t.Fatal("the content is nowhere: the test misses its point")
		}
		for range notes {
			must(t, j.Note(t.Context(), id, ninelives.Notice{Kind: ninelives.NoticeWarning, Text: secret}))
		}
		o := secretEnd()
		o.Forget = true
		must(t, j.End(t.Context(), id, o))
		r := call(t, j, id)
		bare(t, r)
		if list, _, err := j.Calls(t.Context(), Filter{}); err != nil || len(list) != 1 || !list[0].Removed.Equal(r.Removed) {
			t.Errorf("%+v %v", list, err)
		}
		must(t, j.Close()) // empties the log of transactions
		if lies(t, path, secret) {
			t.Errorf("%s: it is still in the file", name)
		}
	}
}

func TestContentIsRemovedWhenItsTimeHasComeAndNoSooner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	now := time.Now()
	ended := beginCall(t, j, secretCall())
	must(t, j.Note(t.Context(), ended, ninelives.Notice{Kind: ninelives.NoticeWarning, Text: secret}))
	must(t, j.End(t.Context(), ended, secretEnd()))
	running := beginCall(t, j, secretCall())
	asked := begin(t, j, "another face's")
	must(t, j.End(t.Context(), asked, Outcome{Response: answer("x")}))
	session := newSession(t, j, "one", "two")

	days := Policy{Source: "gateway", Content: 30 * 24 * time.Hour}
	prune := func(after time.Duration, p Policy, want Pruned) {
		t.Helper()
		if got, err := j.Prune(t.Context(), now.Add(after), p); err != nil || got != want {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	prune(29*24*time.Hour, days, Pruned{})
	prune(1000*24*time.Hour, Policy{Source: "gateway", Content: -1, Interrupted: -1, Account: -1}, Pruned{})
	if r := call(t, j, ended); !r.Removed.IsZero() || r.Raw == nil || len(r.Notices) != 1 {
		t.Errorf("removed too soon: %+v", r)
	}
	later := 31 * 24 * time.Hour
	prune(later, days, Pruned{Contents: 1})
	prune(later, days, Pruned{})
	r := call(t, j, ended)
	bare(t, r)
	if want := now.Add(later).Truncate(time.Millisecond); !r.Removed.Equal(want) {
		t.Errorf("removed on %v, want %v", r.Removed, want)
	}
	// Its account goes later; a call of a living process stays however old it is.
	prune(401*24*time.Hour, days, Pruned{Calls: 1})
	if r := call(t, j, running); r.Raw == nil || r.State != StateRunning {
		t.Errorf("%+v", r)
	}
	must(t, j.Close())
	j = openTest(t, path)
	if r := call(t, j, running); r.Raw == nil || r.State != StateInterrupted || !r.Resumable() {
		t.Errorf("%+v", r)
	}
	prune(29*24*time.Hour, Policy{Source: "gateway"}, Pruned{})
	prune(later, Policy{Source: "gateway"}, Pruned{Contents: 1})
	if r := call(t, j, running); r.Raw != nil || r.State != StateInterrupted || len(r.Damaged) > 0 || r.Removed.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := call(t, j, asked); r.Request == nil || !r.Removed.IsZero() || r.Outcome.Response.Text() != "x" {
		t.Errorf("another face's call was touched: %+v", r)
	}
	if _, entries := read(t, j, session.ID()); len(entries) != 2 {
		t.Errorf("a session was touched: %v", said(entries))
	}
	must(t, j.Close())
	if lies(t, path, secret) {
		t.Error("it is still in the file")
	}
}

func TestWhatAClientHasGotOrDeletedIsRemoved(t *testing.T) {
	j := newJournal(t)
	c := secretCall()
	c.Public = "resp_1"
	id := beginCall(t, j, c)
	if err := j.Remove(t.Context(), id); err == nil || !strings.Contains(err.Error(), ErrRunning.Error()) {
		t.Errorf("%v", err)
	}
	must(t, j.End(t.Context(), id, secretEnd()))
	if _, err := j.ByPublic(t.Context(), "team", "resp_1"); err != nil {
		t.Error(err)
	}
	for range 2 {
		must(t, j.Remove(t.Context(), id))
		bare(t, call(t, j, id))
	}
	if _, err := j.ByPublic(t.Context(), "team", "resp_1"); err == nil {
		t.Error("what was deleted is still found")
	}
	if err := j.Remove(t.Context(), "nosuchcall"); err == nil {
		t.Error("an unknown call was removed")
	}
}

// The file gets smaller, and others write meanwhile.
func TestRemovedContentGivesItsRoomBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	for range 100 {
		id := beginCall(t, j, relayed(strings.Repeat("x", 50_000)))
		must(t, j.EndLater(t.Context(), id, Outcome{Answered: true}, nil))
	}
	must(t, j.Close())
	before, err := os.Stat(path)
	must(t, err)
	j = openTest(t, path)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			beginCall(t, j, relayed("{}"))
		}
	})
	got, err := j.Prune(t.Context(), time.Now().Add(time.Hour), Policy{Source: "gateway"})
	wg.Wait()
	if err != nil || got.Contents != 100 {
		t.Errorf("%+v %v", got, err)
	}
	must(t, j.Close())
	after, err := os.Stat(path)
	must(t, err)
	if before.Size() < 5_000_000 || after.Size() > 300_000 {
		t.Errorf("from %d bytes to %d", before.Size(), after.Size())
	}
	sound(t, openTest(t, path))
}

// What the first two versions wrote can be removed, and what is damaged too.
func TestOldAndDamagedContentIsRemovedAsWell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	at := time.UnixMilli(1_700_000_000_000)
	const old = "01hqzzzzzzzzzzzz"
	raw(t, path, `INSERT INTO streams (id, kind, owner, source, title, labels, started, ended, state) VALUES (?, 'call', 'aaaaaaaaaaaaaaaa', 'gateway', ?, '{"route":"x"}', ?, ?, 'complete')`, old, secret, at.UnixMilli(), at.UnixMilli())
	for i, e := range []event{
		{kind: eventCall, data: []byte(`{"source":"gateway","labels":{"route":"x"},"request":{"messages":[{"role":"user","parts":[{"type":"text","text":"` + secret + `"}]}]},"owner":"aaaaaaaaaaaaaaaa"}`)},
		{kind: eventNotice, data: []byte(`{"kind":"warning","text":"` + secret + `"}`)},
		{kind: eventEnd, data: []byte(`{"response":{"message":{"role":"assistant","parts":[{"type":"text","text":"` + secret + `"}]}}}`)},
	} {
		e.stream, e.seq, e.at = old, int64(i+1), at
		raw(t, path, `INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)`, e.stream, e.seq, at.UnixMilli(), e.kind, e.data, e.checksum())
	}
	if r := call(t, j, old); r.Request == nil || r.Title != secret || len(r.Notices) != 1 || r.Outcome.Response.Text() != secret || len(r.Damaged) > 0 {
		t.Fatalf("%+v", r)
	}
	broken := beginCall(t, j, secretCall())
	must(t, j.End(t.Context(), broken, secretEnd()))
	raw(t, path, `UPDATE events SET crc = crc + 1 WHERE stream = ? AND seq = 1`, broken)
	if got, err := j.Prune(t.Context(), time.Now().Add(time.Hour), Policy{Source: "gateway", Account: -1}); err != nil || got.Contents != 2 {
		t.Errorf("%+v %v", got, err)
	}
	r := call(t, j, old)
	if r.Request != nil || r.Title != "" || len(r.Notices) != 0 || r.Outcome == nil || r.Outcome.Response != nil || r.State != StateComplete || r.Labels["route"] != "x" || len(r.Damaged) > 0 || r.Removed.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := call(t, j, broken); r.Raw != nil || r.Removed.IsZero() {
		t.Errorf("%+v", r)
	}
	must(t, j.Close())
	if lies(t, path, secret) {
		t.Error("it is still in the file")
	}
}

func TestAPruneThatIsStoppedStopsAtOnce(t *testing.T) {
	j := newJournal(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := j.Prune(ctx, time.Now(), Policy{Source: "gateway"}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
