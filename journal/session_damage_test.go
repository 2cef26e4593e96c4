package journal

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"pgregory.net/rapid"
)

func TestADamagedEntryOfASessionIsLeftOutAndReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	must(t, err)
	id := newSession(t, j, "1", "2", "3", "4", "5", "6").ID()
	sound := newSession(t, j, "sound").ID()
	must(t, j.Close())
	raw(t, path, `UPDATE events SET data = CAST('"lie"' AS BLOB) WHERE stream = ? AND seq = 2`, id)
	raw(t, path, `DELETE FROM events WHERE stream = ? AND seq IN (3, 6)`, id)
	raw(t, path, `UPDATE streams SET labels = '{' WHERE id = ?`, id)
	j = openTest(t, path)
	check := func(entries []Entry, damaged []Damage, wantEntries, wantDamage []string) {
		t.Helper()
		var got []string
		for _, d := range damaged {
			got = append(got, strings.ReplaceAll(d.Error(), id, "S"))
		}
		if !slices.Equal(said(entries), wantEntries) || !slices.Equal(got, wantDamage) {
			t.Errorf("%q\n%q", said(entries), got)
		}
	}
	lies := "session S, entry 2: it is not what was written (checksum)"
	labels := "session S: its labels cannot be read: "
	_, entries, damaged, err := j.ReadSession(t.Context(), id)
	must(t, err)
	if !strings.HasPrefix(strings.ReplaceAll(damaged[0].Error(), id, "S"), labels) {
		t.Errorf("%v", damaged[0])
	}
	check(entries, damaged[1:], []string{`1 "1"`, `4 "4"`, `5 "5"`}, []string{lies, "session S, entry 3: it is missing", "session S, entry 6: it is missing"})
	list, damaged, err := j.Sessions(t.Context(), SessionFilter{})
	if err != nil || len(list) != 2 || list[0].ID != sound || list[1].ID != id || len(damaged) != 1 {
		t.Errorf("%+v %v %v", list, damaged, err)
	}
	// It is taken all the same, and what is added does not take the place of
	// what was lost.
	s, _, damaged, err := j.TakeSession(t.Context(), id)
	must(t, err)
	if len(damaged) != 4 || damaged[0].Seq != 0 {
		t.Errorf("%v", damaged)
	}
	must(t, s.Append(t.Context(), &Head{}, words("7")...))
	_, entries, damaged, err = j.ReadSession(t.Context(), id)
	must(t, err)
	check(entries, damaged, []string{`1 "1"`, `4 "4"`, `5 "5"`, `7 "7"`}, []string{lies, "session S, entry 3: it is missing", "session S, entry 6: it is missing"})

	// A number that is nonsense is no reason to count up to it.
	raw(t, path, `UPDATE events SET seq = 1 << 60 WHERE stream = ? AND seq = 7`, id)
	raw(t, path, `DELETE FROM events WHERE stream = ? AND seq = 2`, id)
	_, entries, damaged, err = j.ReadSession(t.Context(), id)
	must(t, err)
	check(entries, damaged, []string{`1 "1"`, `4 "4"`, `5 "5"`}, []string{
		"session S, entry 2: it is missing", "session S, entry 3: it is missing", "session S, entry 6: it is not what was written (checksum)", "session S, entry 7: it is missing"})
	must(t, s.Close())
	s, _, _, err = j.TakeSession(t.Context(), id)
	must(t, err)
	must(t, s.Append(t.Context(), nil, words("8")...))
	_, entries, damaged, err = j.ReadSession(t.Context(), id)
	if err != nil || len(entries) != 4 || string(entries[3].Data) != `"8"` || len(damaged) != 4 ||
		!strings.HasPrefix(damaged[3].Error(), "session "+id+", entry 7: it is missing, and so are the 1152921504606846") {
		t.Errorf("%q %v %v", said(entries), damaged, err)
	}
	raw(t, path, `UPDATE streams SET version = 1 << 62, owner = '../../x' WHERE id = ?`, sound)
	sum, entries, damaged, err := j.ReadSession(t.Context(), sound)
	if err != nil || len(entries) != 1 || len(damaged) != 1 || sum.Running {
		t.Errorf("%+v %q %v %v", sum, said(entries), damaged, err)
	}
}

// Whatever a disk makes of the file: nothing panics, and what is read of a
// session is what was written or is said to be damaged.
func TestABadDiskNeverMakesASessionLie(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	j, err := Open(good)
	must(t, err)
	want := map[string][]Entry{}
	for i := range 3 {
		s := newSession(t, j)
		for k := range 12 {
			must(t, s.Append(t.Context(), nil, words(fmt.Sprintf("%d %d %s", i, k, strings.Repeat("x", k*i*50)))...))
		}
		_, want[s.ID()] = read(t, j, s.ID())
	}
	must(t, j.Close())
	file, err := os.ReadFile(good)
	must(t, err)
	reported := 0
	rapid.Check(t, func(t *rapid.T) {
		bad := slices.Clone(file)
		at := rapid.IntRange(100, len(bad)-1).Draw(t, "at")
		n := min(rapid.SampledFrom([]int{1, 4, 512, 4096}).Draw(t, "bytes"), len(bad)-at)
		for i := at; i < at+n; i++ {
			bad[i] ^= rapid.Byte().Draw(t, "flip")
		}
		path := filepath.Join(dir, "bad")
		for _, name := range []string{path + "-wal", path + "-shm"} {
			_ = os.Remove(name)
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path)
		if err != nil {
			saysItInALine(t, err)
			return
		}
		defer func() { _ = j.Close() }()
		if _, _, err := j.Sessions(context.Background(), SessionFilter{}); err != nil {
			saysItInALine(t, err)
		}
		for id, want := range want {
			_, got, damaged, err := j.ReadSession(context.Background(), id)
			s, taken, takenDamaged, takeErr := j.TakeSession(context.Background(), id)
			if takeErr == nil {
				if err := s.Append(context.Background(), nil, words("more")...); err != nil {
					saysItInALine(t, err)
				}
			}
			for _, r := range []struct {
				got     []Entry
				damaged []Damage
				err     error
			}{{got, damaged, err}, {taken, takenDamaged, takeErr}} {
				if r.err != nil {
					saysItInALine(t, r.err)
					reported++
					continue
				}
				reported += len(r.damaged)
				if len(r.got) < len(want) && len(r.damaged) == 0 {
					t.Fatalf("%d entries of %d, and no word of it", len(r.got), len(want))
				}
				for _, e := range r.got {
					if e.Seq < 1 || e.Seq > int64(len(want)) || !reflect.DeepEqual(e, want[e.Seq-1]) {
						t.Fatalf("silently changed: %d %q", e.Seq, e.Data)
					}
				}
			}
		}
	})
	if reported == 0 {
		t.Error("no damage was ever reported")
	}
}

// older makes a journal as the first version did.
func older(t testing.TB, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
	raw(t, path, fmt.Sprintf(`PRAGMA journal_mode = WAL; PRAGMA application_id = %d`, applicationID))
	db, err := sql.Open("sqlite", source(path))
	must(t, err)
	defer func() { _ = db.Close() }()
	first := os.DirFS("migrations")
	p, err := goose.NewProvider(goose.DialectSQLite3, db, first)
	must(t, err)
	_, err = p.UpTo(t.Context(), 1)
	must(t, err)
	at := time.UnixMilli(1_700_000_000_000)
	e := event{stream: "01hqzzzzzzzzzzzz", seq: 1, at: at, kind: eventCall, data: []byte(`{"source":"ask","owner":"aaaaaaaaaaaaaaaa"}`)}
	_, err = db.Exec(`INSERT INTO streams (id, kind, owner, source, title, labels, started) VALUES (?, 'call', 'aaaaaaaaaaaaaaaa', 'ask', '', '{}', ?)`, e.stream, at.UnixMilli())
	must(t, err)
	_, err = db.Exec(`INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)`, e.stream, e.seq, at.UnixMilli(), e.kind, e.data, e.checksum())
	must(t, err)
}

func TestAJournalOfTheFirstVersionKeepsItsCallsAndTakesSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	older(t, path)
	for range 2 {
		j, err := Open(path)
		must(t, err)
		if r := call(t, j, "01hqzzzzzzzzzzzz"); r.State != StateInterrupted || r.Source != "ask" || len(r.Damaged) > 0 {
			t.Errorf("%+v", r)
		}
		s := newSession(t, j, "one")
		if _, entries := read(t, j, s.ID()); len(entries) != 1 {
			t.Errorf("%q", said(entries))
		}
		must(t, j.Close())
	}
}
