package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func track(t rapid.TB, w *Workspace, run func()) []Change {
	t.Helper()
	changes, err := w.Track(context.Background(), func() error { run(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func restore(t rapid.TB, w *Workspace, changes []Change, redo bool) []Change {
	t.Helper()
	restored, conflicts, err := w.Restore(context.Background(), changes, redo)
	if err != nil || len(conflicts) > 0 {
		t.Fatalf("restore: %v, conflicts %q", err, conflicts)
	}
	return restored
}

// told shows changes in a line each: what was there, what is there.
func told(changes []Change) string {
	var out []string
	for _, c := range changes {
		side := func(s *FileState) string {
			switch {
			case s == nil:
				return "nothing"
			case s.Unkept:
				return "unkept"
			}
			return s.perm().String()
		}
		out = append(out, fmt.Sprintf("%s: %s, %s", c.Path, side(c.Before), side(c.After)))
	}
	return strings.Join(out, "\n")
}

// shake does random things to a tree, as commands do.
func shake(t *rapid.T, dir string) {
	names := []string{"a", "b", "c", "a/x", "a/y", "b/x", "b/z/deep", "c/z", "ü/ñ", "a b"}
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		full := filepath.Join(dir, filepath.FromSlash(name))
		switch rapid.IntRange(0, 6).Draw(t, "what") {
		case 0, 1:
			_ = os.MkdirAll(filepath.Dir(full), 0o755)
			_ = os.WriteFile(full, []byte(rapid.SampledFrom([]string{"", "one\n", "two", "three\r\n"}).Draw(t, "content")), 0o644)
		case 2:
			_ = os.RemoveAll(full)
		case 3:
			mode := rapid.SampledFrom([]os.FileMode{0o600, 0o644, 0o755, 0o700}).Draw(t, "mode")
			if info, err := os.Stat(full); err == nil && info.IsDir() {
				mode |= 0o700 // what nobody may look into is not looked into
			}
			_ = os.Chmod(full, mode)
		case 4:
			_ = os.RemoveAll(full)
			_ = os.MkdirAll(filepath.Dir(full), 0o755)
			_ = os.Symlink(rapid.SampledFrom([]string{"a", "../b", "/etc/passwd", "nowhere"}).Draw(t, "target"), full)
		case 5:
			_ = os.MkdirAll(full, 0o755)
		case 6:
			to := filepath.Join(dir, filepath.FromSlash(rapid.SampledFrom(names).Draw(t, "to")))
			_ = os.Rename(full, to)
		}
	}
}

func TestWhatACommandChangedIsTakenBackToTheByteAndDoneAgain(t *testing.T) {
	t.Parallel()
	onUnix(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), "w")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWorkspace(dir, shelf{t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		shake(rt, dir)
		trees := []map[string]string{tree(rt, dir)}
		var all []Change
		for range rapid.IntRange(1, 3).Draw(rt, "commands") {
			all = append(all, track(rt, w, func() { shake(rt, dir) })...)
			trees = append(trees, tree(rt, dir))
		}
		last := trees[len(trees)-1]
		for range 2 {
			if n := len(restore(rt, w, all, false)); n != len(all) {
				rt.Fatalf("%d of %d changes were restored", n, len(all))
			}
			sameTree(rt, trees[0], tree(rt, dir))
			restore(rt, w, all, true)
			sameTree(rt, last, tree(rt, dir))
		}
		if again := track(rt, w, func() {}); len(again) != 0 {
			rt.Fatalf("nothing was done, but changes are told:\n%s", told(again))
		}
	})
}

// breaking ends after it was asked so many times, wherever the work is then.
type breaking struct {
	context.Context
	left int
}

func (b *breaking) Err() error {
	if b.left--; b.left < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever taking back was cut off, the next try finishes it.
func TestARestorationThatWasCutOffIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	onUnix(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), "w")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWorkspace(dir, shelf{t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		shake(rt, dir)
		first := tree(rt, dir)
		all := append(track(rt, w, func() { shake(rt, dir) }), track(rt, w, func() { shake(rt, dir) })...)
		last := tree(rt, dir)
		cut := func(redo bool) {
			ctx := &breaking{context.Background(), rapid.IntRange(0, 3*len(all)+2).Draw(rt, "asked")}
			_, conflicts, _ := w.Restore(ctx, all, redo)
			if len(conflicts) > 0 {
				rt.Fatalf("conflicts %q", conflicts)
			}
		}
		cut(false)
		restore(rt, w, all, false)
		sameTree(rt, first, tree(rt, dir))
		cut(true)
		restore(rt, w, all, true)
		sameTree(rt, last, tree(rt, dir))
	})
}

func TestACommandsChangesAreToldExactly(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"edit": "1", "same": "2", "gone": "3", "mode": "4", "kind": "5", "old": "7", "d/x": "6", "link -> edit": "",
		".git/HEAD": "ref", "node_modules/m/i.js": "", ".gitignore": "*.log\nout/\n", "out/big": "", "a.log": "",
	})
	changes := track(t, w, func() {
		lay(t, w, map[string]string{
			"edit": "one", "same": "2", "new/file": "n", ".git/HEAD": "other", "node_modules/m/i.js": "x", "out/big": "x", "a.log": "x", "new.log": "",
		})
		for _, err := range []error{
			os.Remove(at(w, "gone")), os.Chmod(at(w, "mode"), 0o755), os.Remove(at(w, "kind")), os.Mkdir(at(w, "kind"), 0o755),
			os.Rename(at(w, "old"), at(w, "moved")), os.RemoveAll(at(w, "d")), os.Remove(at(w, "link")), os.Symlink("mode", at(w, "link")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	want := `d: -rwxr-xr-x, nothing
d/x: -rw-r--r--, nothing
edit: -rw-r--r--, -rw-r--r--
gone: -rw-r--r--, nothing
kind: -rw-r--r--, -rwxr-xr-x
link: -rwxrwxrwx, -rwxrwxrwx
mode: -rw-r--r--, -rwxr-xr-x
moved: nothing, -rw-r--r--
new: nothing, -rwxr-xr-x
new/file: nothing, -rw-r--r--
old: -rw-r--r--, nothing`
	if got := told(changes); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestASecondLookFindsAChangeOfTheSameSizeAtOnce(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "a"})
	for i := range 20 {
		content := string(rune('b' + i))
		changes := track(t, w, func() { lay(t, w, map[string]string{"f": content}) })
		if len(changes) != 1 || changes[0].After.Hash != hashOf([]byte(content)) {
			t.Fatalf("round %d: %s", i, told(changes))
		}
	}
}

func TestAChangedGitignoreMakesNoFileAppearOrVanish(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{".gitignore": "hidden\n", "hidden": "h", "shown": "s"})
	changes := track(t, w, func() { lay(t, w, map[string]string{".gitignore": "shown\n"}) })
	if got := told(changes); got != ".gitignore: -rw-r--r--, -rw-r--r--" {
		t.Errorf("got:\n%s", got)
	}
	restore(t, w, changes, false)
	if contentOf(t, w, "hidden") != "h" || contentOf(t, w, "shown") != "s" {
		t.Error("a file that nobody touched was changed")
	}
}

func TestWhatIsTooLargeIsToldAsUnkeptAndLeftAlone(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"small": "s"})
	large := func(name string, n int64) {
		f, err := os.Create(at(w, name))
		if err == nil {
			err = errors.Join(f.Truncate(n), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	large("was", keepFile+1)
	changes := track(t, w, func() {
		large("was", keepFile+2)
		large("is", keepFile+1)
		large("fits", keepFile)
		lay(t, w, map[string]string{"small": "t"})
	})
	want := "fits: nothing, -rw-r--r--\nis: nothing, unkept\nsmall: -rw-r--r--, -rw-r--r--\nwas: unkept, unkept"
	if got := strings.ReplaceAll(told(changes), "-rw-rw-r--", "-rw-r--r--"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	restored, conflicts, err := w.Restore(context.Background(), changes, false)
	if err != nil || len(restored) != 2 || len(conflicts) != 2 {
		t.Fatalf("%d restored, conflicts %q, %v", len(restored), conflicts, err)
	}
	for _, c := range conflicts {
		if !strings.Contains(c, "was not kept") {
			t.Errorf("the conflict says %q", c)
		}
	}
	if contentOf(t, w, "small") != "s" {
		t.Error("the small file was not restored")
	}
	if _, err := os.Stat(at(w, "is")); err != nil {
		t.Error("a file that could not be brought back was removed")
	}
}

func TestAFileThatSomebodyChangedSinceIsLeftAlone(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"mine": "1", "theirs": "1", "both": "1"})
	first := track(t, w, func() { lay(t, w, map[string]string{"mine": "2", "theirs": "2", "both": "2", "dir/new": "n"}) })
	lay(t, w, map[string]string{"both": "between"})
	second := track(t, w, func() { lay(t, w, map[string]string{"both": "3"}) })
	lay(t, w, map[string]string{"theirs": "changed", "dir/other": "o"})
	restored, conflicts, err := w.Restore(context.Background(), append(first, second...), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(conflicts) != 3 || len(restored) != 3 {
		t.Errorf("restored:\n%s\nconflicts: %q", told(restored), conflicts)
	}
	for name, want := range map[string]string{"mine": "1", "theirs": "changed", "both": "between", "dir/other": "o"} {
		if got := contentOf(t, w, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(at(w, "dir/new")); err == nil {
		t.Error("the new file is still there")
	}
	// What was restored is made again, and nothing else.
	restore(t, w, restored, true)
	for name, want := range map[string]string{"mine": "2", "theirs": "changed", "both": "3", "dir/new": "n"} {
		if got := contentOf(t, w, name); got != want {
			t.Errorf("again %s: %q, want %q", name, got, want)
		}
	}
}

func TestARecordThatWasTamperedWithRestoresNothingOutside(t *testing.T) {
	onUnix(t)
	outside := t.TempDir()
	w := newWorkspace(t)
	lay(t, w, map[string]string{"out -> " + outside: "", "in -> real": "", "real/x": "r"})
	hash, err := w.blobs.Put(context.Background(), []byte("evil"))
	if err != nil {
		t.Fatal(err)
	}
	evil := &FileState{Hash: hash, Mode: 0o644, Size: 4}
	bad := []Change{
		{Path: "../evil", Before: evil}, {Path: outside + "/evil", Before: evil}, {Path: "out/evil", Before: evil},
		{Path: "in/evil", Before: evil}, {Path: "a/../../evil", Before: evil}, {Path: ".", Before: evil}, {Path: "", Before: evil},
		{Path: "missing", Before: &FileState{Hash: strings.Repeat("0", 64), Mode: 0o644, Size: 4}},
	}
	restored, conflicts, err := w.Restore(context.Background(), bad, false)
	if err != nil || len(restored) != 0 || len(conflicts) != len(bad) {
		t.Errorf("restored %s, conflicts %q, %v", told(restored), conflicts, err)
	}
	if names, _ := filepath.Glob(filepath.Join(outside, "*")); len(names) != 0 {
		t.Errorf("written outside: %v", names)
	}
	if _, err := os.Lstat(at(w, "real/evil")); err == nil {
		t.Error("written through a link")
	}
}

func TestACommandThatIsStoppedStillTellsItsChanges(t *testing.T) {
	w := newWorkspace(t)
	ctx, stop := context.WithCancel(context.Background())
	changes, err := w.Track(ctx, func() error {
		lay(t, w, map[string]string{"f": "x"})
		stop()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || len(changes) != 1 {
		t.Errorf("%s, %v", told(changes), err)
	}
	called := false
	if _, err := w.Track(ctx, func() error { called = true; return nil }); err == nil || called {
		t.Errorf("a command ran after the stop: %v", err)
	}
}

func TestASecondLookReadsNothing(t *testing.T) {
	w := newWorkspace(t)
	files := map[string]string{}
	for i := range 300 {
		files[path.Join(fmt.Sprint("d", i%7), fmt.Sprint("f", i))] = fmt.Sprint(i)
	}
	lay(t, w, files)
	track(t, w, func() {})
	// A file is settled once its stamp lies behind the grain of the clock; until
	// then it is read again.
	for unsettled := true; unsettled; {
		track(t, w, func() {})
		unsettled = false
		for _, e := range w.looks.last.entries {
			unsettled = unsettled || !e.settled
		}
	}
	before := w.looks.last.entries
	track(t, w, func() { lay(t, w, map[string]string{"d1/f1": "other"}) })
	read := 0
	for name, e := range w.looks.last.entries {
		if e != before[name] && e.state.kind() == 0 {
			read++
		}
	}
	if read != 1 {
		t.Errorf("%d files were read again, want 1", read)
	}
}

func TestBeyondItsBoundsTrackTellsWhatItDoesNotKnow(t *testing.T) {
	w := newWorkspace(t)
	w.looks.bounds = bounds{bytes: 10, files: 3, seen: 6}
	// In the order of the walk: a, b, c, d, e, f are looked at, g and h are not;
	// a and c fill the bytes, and with d the files are as many as are kept.
	lay(t, w, map[string]string{"a": "12345", "b": "123456", "c": "12345", "d": "", "e": "", "f": "x", "g": "y", "h": "z"})
	changes, err := w.Track(context.Background(), func() error {
		lay(t, w, map[string]string{"a": "new", "b": "new", "e": "new", "g": "new", "z": "new"})
		return errors.Join(os.Remove(at(w, "c")), os.Remove(at(w, "h")))
	})
	if !errors.Is(err, ErrUncovered) || !strings.Contains(err.Error(), "(up to f)") {
		t.Errorf("the error is %v", err)
	}
	want := "a: -rw-r--r--, -rw-r--r--\nb: unkept, -rw-r--r--\nc: -rw-r--r--, nothing\ne: unkept, unkept"
	if got := told(changes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	restored, conflicts, err := w.Restore(context.Background(), changes, false)
	if err != nil || len(restored) != 2 || len(conflicts) != 2 {
		t.Errorf("restored\n%s\nconflicts %q, %v", told(restored), conflicts, err)
	}
}

func TestThePackLetsGoOfWhatNoFileHolds(t *testing.T) {
	w := newWorkspace(t)
	w.looks.bounds.bytes = 100
	for i := range 50 {
		content := strings.Repeat(string(rune('a'+i%26)), 20) + fmt.Sprint(i)
		changes := track(t, w, func() { lay(t, w, map[string]string{"f": content, "still": "the same"}) })
		if w.looks.pack.size > 300 {
			t.Fatalf("after %d commands the pack has %d bytes", i, w.looks.pack.size)
		}
		if i > 0 && len(changes) != 1 {
			t.Fatalf("round %d: %s", i, told(changes))
		}
	}
}

func TestPathsAreComparedAsTheyAreMet(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"a": "", "a.b": "", "a-": "", "b/x": "", "b.c": "", "b/a/b": "", "b/a.c": "", "ü": "", "A": ""})
	last := ""
	k := walker{root: w.root}
	if err := k.from(context.Background(), ".", func(rel string, _ os.FileInfo) error {
		if last != "" && comparePaths(last, rel) >= 0 {
			t.Errorf("%s was met before %s", last, rel)
		}
		last = rel
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
