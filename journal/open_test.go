package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestWhatCannotBeOpenedIsToldInALine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := file("foreign", "")
	raw(t, foreign, `CREATE TABLE cats (name TEXT)`)
	alien := file("alien", "")
	raw(t, alien, `PRAGMA application_id = 7`)
	newer := filepath.Join(dir, "newer")
	openTest(t, newer)
	raw(t, newer, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (7, 1)`)

	for name, test := range map[string]struct{ path, want string }{
		"no database":              {file("text", strings.Repeat("Dear diary, today ", 100)), "it is no SQLite database – name another file for the journal, or move this one away"},
		"another program's":        {foreign, "it is the database of another program – name another file for the journal"},
		"another program's, empty": {alien, "it is the database of another program – name another file for the journal"},
		"a newer version's":        {newer, "it was written by a newer version: its schema is 7, this version knows 3 – update ninelives, or name another file for the journal"},
		"a directory":              {dir, "it is a directory – name a file in it"},
		"below a file":             {filepath.Join(file("plain", ""), "j"), "mkdir " + dir + "/plain: not a directory – name another file for the journal"},
		"a device":                 {os.DevNull, "it is no file that can be read again, but a pipe or a device – name another file for the journal"},
	} {
		before, _ := os.ReadFile(test.path)
		j, err := Open(test.path)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = j.Close()
			continue
		}
		if got, want := err.Error(), "journal "+test.path+": "+test.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if after, _ := os.ReadFile(test.path); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestAFileThatMayNotBeWrittenIsToldInALine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of directories mean something else there")
	}
	// Root may write everywhere, so a process of nobody tries.
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
	exe, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(binary, exe, 0o755), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	cmd := command("open", filepath.Join(dir, "j"), 0)
	cmd.Path = binary
	if os.Geteuid() == 0 {
		nobody(cmd)
	}
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Skipf("no process of nobody can be started: %v", err)
	}
	want := fmt.Sprintf("journal %[1]s/j: it cannot be written: mkdir %[1]s/j.owners: permission denied – change the permissions of the file and its directory, or name another file for the journal\n", dir)
	if said.String() != want {
		t.Errorf("\n got %swant %s", said.String(), want)
	}
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	first := begin(t, j, "before")
	pages := func(n string) {
		err := j.commit(context.Background(), &write{do: func(w *writer) error { return w.exec("PRAGMA max_page_count = " + n) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages("20")
	var err error
	accepted := []string{first}
	for err == nil {
		var id string
		if id, err = j.Begin(t.Context(), Call{Request: ninelives.Prompt(strings.Repeat("words ", 1000))}); err == nil {
			accepted = append(accepted, id)
		}
	}
	want := "journal " + path + ": the disk is full – free some space; nothing that was recorded is lost"
	var own *Error
	if err.Error() != want || !errors.As(err, &own) || code(err) != sqliteFull {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	for _, id := range accepted {
		if r := call(t, j, id); r.State != StateRunning || len(r.Damaged) > 0 {
			t.Errorf("%+v", r)
		}
	}
	pages("1000000") // space again
	begin(t, j, "after")
	if list, damaged, err := j.Calls(t.Context(), Filter{Limit: -1}); err != nil || len(damaged) > 0 || len(list) != len(accepted)+1 {
		t.Errorf("%d calls, %d accepted: %v %v", len(list), len(accepted)+1, damaged, err)
	}
}

// finished writes a few calls and gives what a reader should see of them.
func finished(t testing.TB, path string) map[string]*Record {
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		id := begin(t, j, fmt.Sprintf("question %d %s", i, strings.Repeat("why ", i*i*100)))
		if err := j.Note(t.Context(), id, ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		if i%3 < 2 {
			o := Outcome{Response: answer(fmt.Sprintf("answer %d", i))}
			if i%3 == 1 {
				o = OutcomeOf(nil, &ninelives.Fault{Class: ninelives.ClassNetwork, Message: "refused"})
			}
			if err := j.End(t.Context(), id, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return records(t, path)
}

func records(t testing.TB, path string) map[string]*Record {
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	list, damaged, err := j.Calls(context.Background(), Filter{Limit: -1})
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	all := map[string]*Record{}
	for _, s := range list {
		all[s.ID] = call(t, j, s.ID)
	}
	return all
}

func TestADamagedEventIsLeftOutAndReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	var ids []string
	for id, r := range finished(t, path) {
		if r.State == StateComplete {
			ids = append(ids, id)
		}
	}
	a, b := ids[0], ids[1]
	raw(t, path, `UPDATE events SET data = CAST(replace(data, 'answer', 'lie---') AS BLOB) WHERE stream = ? AND kind = 'end'`, a)
	raw(t, path, `DELETE FROM events WHERE stream = ? AND seq = 2`, b)
	j := openTest(t, path)
	r := call(t, j, a)
	if r.State != StateComplete || r.Outcome != nil || r.Request == nil || len(r.Damaged) != 1 || r.Damaged[0].Seq != 3 ||
		r.Damaged[0].Error() != "call "+a+", event 3: it is not what was written (checksum)" {
		t.Errorf("a changed answer: %+v", r)
	}
	r = call(t, j, b)
	if r.Outcome == nil || len(r.Notices) != 0 || len(r.Damaged) != 1 || r.Damaged[0].Error() != "call "+b+", event 2: it is missing" {
		t.Errorf("a missing notice: %+v", r)
	}
	raw(t, path, `UPDATE events SET at = at + 1 WHERE stream = ? AND seq = 1`, b)
	raw(t, path, `DELETE FROM events WHERE stream = ? AND seq = 3`, b)
	r = call(t, j, b)
	if r.Request != nil || r.State != StateComplete || len(r.Damaged) != 1 || r.Damaged[0].Seq != 1 {
		t.Errorf("a changed time and a missing end: %+v", r)
	}
	raw(t, path, `DELETE FROM events WHERE stream = ?`, b)
	if r = call(t, j, b); len(r.Damaged) != 1 || r.State != StateComplete {
		t.Errorf("nothing left: %+v", r)
	}
	raw(t, path, `UPDATE streams SET labels = '{' WHERE id = ?`, a)
	raw(t, path, `UPDATE streams SET state = 'asleep' WHERE id = ?`, b)
	list, damaged, err := j.Calls(t.Context(), Filter{})
	if err != nil || len(list) != 4 || len(damaged) != 2 {
		t.Errorf("%d calls, %v, %v", len(list), damaged, err)
	}
	if _, err := j.Call(t.Context(), b); err == nil || err.Error() != "call "+b+`: its state is "asleep"` {
		t.Errorf("%v", err)
	}
}

// Whatever a disk makes of the file: nothing panics, and what is read is what
// was written or is said to be damaged.
func TestABadDiskNeverMakesTheJournalLie(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	want := finished(t, good)
	file, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	reported := 0
	rapid.Check(t, func(t *rapid.T) {
		bad := append([]byte(nil), file...)
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
		_, damaged, err := j.Calls(context.Background(), Filter{Limit: -1})
		if err != nil {
			saysItInALine(t, err)
		}
		reported += len(damaged)
		for id, want := range want {
			got, err := j.Call(context.Background(), id)
			switch {
			case err != nil:
				saysItInALine(t, err)
				reported++
			case len(got.Damaged) > 0:
				reported++
			case !reflect.DeepEqual(got, want):
				t.Fatalf("silently changed:\n got %+v\nwant %+v", got, want)
			}
		}
	})
	if reported == 0 {
		t.Error("no damage was ever reported")
	}
}

func saysItInALine(t *rapid.T, err error) {
	if s := err.Error(); s == "" || strings.Contains(s, "\n") {
		t.Fatalf("no line: %q", s)
	}
}
