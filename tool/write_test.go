package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestWritingCreatesTheFileAndItsDirectories(t *testing.T) {
	w := newWorkspace(t)
	r := works(t, run(t, w, "write_file", object{"path": "a/b/c.txt", "content": "one\ntwo\n"}))
	if got := contentOf(t, w, "a/b/c.txt"); got != "one\ntwo\n" {
		t.Errorf("the file holds %q", got)
	}
	if r.Text() != "Created a/b/c.txt: 2 lines, 8 bytes." || r.Summary != "created a/b/c.txt (2 lines)" {
		t.Errorf("it says %q, %q", r.Text(), r.Summary)
	}
	if want := "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"; r.Diff != want {
		t.Errorf("the diff is %q, want %q", r.Diff, want)
	}
	var names []string
	for _, c := range r.Changes {
		names = append(names, c.Path)
	}
	if fmt.Sprint(names) != "[a a/b a/b/c.txt]" {
		t.Errorf("changed: %v", names)
	}
	restore(t, w, r.Changes, false)
	if got := tree(t, w.Dir()); len(got) != 0 {
		t.Errorf("after undo there is %v", got)
	}
	restore(t, w, r.Changes, true)
	if got := contentOf(t, w, "a/b/c.txt"); got != "one\ntwo\n" {
		t.Errorf("after redo the file holds %q", got)
	}
}

func TestAFileIsOnlyOverwrittenAsTheSessionKnowsIt(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "theirs"})
	write := func(content string) Result { return run(t, w, "write_file", object{"path": "f", "content": content}) }
	fails(t, write("mine"), "read it first")
	works(t, run(t, w, "read_file", object{"path": "f"}))
	lay(t, w, map[string]string{"f": "newer!"})
	fails(t, write("mine"), "was changed since", "read it again")
	if got := contentOf(t, w, "f"); got != "newer!" {
		t.Fatalf("the file holds %q", got)
	}
	works(t, run(t, w, "read_file", object{"path": "f"}))
	works(t, write("mine"))
	works(t, write("mine again")) // what it wrote itself it knows
	other := named(t, w, "write_file").Run(context.Background(), &Call{Session: "other", Arguments: encode(t, object{"path": "f", "content": "x"})})
	fails(t, other, "read it first")
	if r := works(t, write("mine again")); len(r.Changes) != 0 || !strings.Contains(r.Text(), "nothing was changed") {
		t.Errorf("the same content: %s", r.Text())
	}
}

func TestWritingKeepsTheModeAndGoesThroughLinks(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{"run.sh": "#!/bin/sh\n", "link -> run.sh": "", "dangling -> sub/new": ""})
	if err := os.Chmod(at(w, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	works(t, run(t, w, "read_file", object{"path": "link"}))
	r := works(t, run(t, w, "write_file", object{"path": "link", "content": "#!/bin/bash\n"}))
	if info, err := os.Lstat(at(w, "run.sh")); err != nil || info.Mode() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(at(w, "link")); err != nil || target != "run.sh" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if len(r.Changes) != 1 || r.Changes[0].Path != "run.sh" {
		t.Errorf("changes: %s", told(r.Changes))
	}
	works(t, run(t, w, "write_file", object{"path": "dangling", "content": "x"}))
	if contentOf(t, w, "sub/new") != "x" {
		t.Error("the target was not made")
	}
}

func TestNothingIsLeftBehindWhenWritingFails(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{"file": "x", "dir/in": "y"})
	fails(t, run(t, w, "write_file", object{"path": "file/below", "content": "x"}), "file is a file, not a directory")
	fails(t, run(t, w, "write_file", object{"path": "dir", "content": "x"}), "is a directory")
	fails(t, run(t, w, "write_file", object{"path": "dir/", "content": "x"}), "is a directory")
	fails(t, run(t, w, "write_file", object{"path": strings.Repeat("n", 300), "content": "x"}), "name too long")
	if got := len(tree(t, w.Dir())); got != 3 {
		t.Errorf("there are %d entries, want 3: %v", got, tree(t, w.Dir()))
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(at(w, "dir"), 0o500); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(at(w, "dir"), 0o755) }()
		fails(t, run(t, w, "write_file", object{"path": "dir/new", "content": "x"}), "no permission")
	}
}

// full is a place for contents that has no room.
type full struct{}

func (full) Put(context.Context, []byte) (string, error) {
	return "", errors.New("no space left on device")
}
func (full) Get(context.Context, string) ([]byte, error) { return nil, os.ErrNotExist }

func TestNothingIsChangedThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenWorkspace(dir, full{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	lay(t, w, map[string]string{"f": "precious"})
	works(t, run(t, w, "read_file", object{"path": "f"}))
	fails(t, run(t, w, "write_file", object{"path": "f", "content": "x"}), "nothing was changed", "no space left")
	fails(t, run(t, w, "edit_file", object{"path": "f", "old_string": "precious", "new_string": "x"}), "nothing was changed")
	fails(t, run(t, w, "delete_file", object{"path": "f"}), "nothing was changed")
	if got := contentOf(t, w, "f"); got != "precious" {
		t.Errorf("the file holds %q", got)
	}
	changes, err := w.Track(context.Background(), func() error { lay(t, w, map[string]string{"f": "x"}); return nil })
	if err == nil || len(changes) != 1 || !changes[0].Before.Unkept {
		t.Errorf("%s, %v", told(changes), err)
	}
}

func TestAPreviewChangesNothingAndShowsWhatTheCallDoes(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "a\nb\nc\n"})
	before := tree(t, w.Dir())
	for name, args := range map[string]object{
		"write_file":  {"path": "new/g", "content": "x\n"},
		"edit_file":   {"path": "f", "old_string": "b", "new_string": "B\x1b[2J"},
		"delete_file": {"path": "f"},
	} {
		shown, err := named(t, w, name).(Previewer).Preview(context.Background(), encode(t, args))
		if err != nil {
			t.Fatal(err)
		}
		sameTree(t, before, tree(t, w.Dir()))
		if name == "delete_file" {
			continue
		}
		if r := works(t, run(t, w, name, args)); r.Diff != shown {
			t.Errorf("%s showed\n%s and did\n%s", name, shown, r.Diff)
		}
		if strings.ContainsRune(shown, 0x1b) {
			t.Errorf("%s shows an escape to the terminal: %q", name, shown)
		}
		before = tree(t, w.Dir())
	}
}

func TestAProbeKnowsACallThatWasCutOff(t *testing.T) {
	calls := map[string]object{
		"write_file":  {"path": "new/f", "content": "x"},
		"edit_file":   {"path": "f", "old_string": "one", "new_string": "two"},
		"delete_file": {"path": "d", "recursive": true},
	}
	for name, args := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			lay(t, w, map[string]string{"f": "one", "d/a": "a", "d/b": "b"})
			tool := named(t, w, name)
			prober := tool.(Prober)
			call := &Call{ID: "c1", Session: "s", Arguments: encode(t, args)}
			mark, err := prober.Mark(context.Background(), call)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := prober.Probe(context.Background(), call, mark); got != StandingNotStarted {
				t.Errorf("before the call: %s", got)
			}
			did := works(t, tool.Run(context.Background(), call))
			got, r := prober.Probe(context.Background(), call, mark)
			if got != StandingDone || r.Text() != did.Text() || r.Diff != did.Diff || fmt.Sprint(told(r.Changes)) != told(did.Changes) {
				t.Errorf("after the call: %s, %q\n%s\nwant %q\n%s", got, r.Text(), told(r.Changes), did.Text(), told(did.Changes))
			}
			restore(t, w, r.Changes, false)
			lay(t, w, map[string]string{"f": "neither", "new/f": "neither", "d/a": "neither"})
			if got, _ := prober.Probe(context.Background(), call, mark); got != StandingUnknown {
				t.Errorf("with something else there: %s", got)
			}
			if got, _ := prober.Probe(context.Background(), call, nil); got != StandingUnknown {
				t.Errorf("without a mark: %s", got)
			}
		})
	}
}

func TestWhatACrashLeftOnTheWayIsRemovedByTheProbe(t *testing.T) {
	w := newWorkspace(t)
	call := &Call{ID: "c1", Session: "s", Arguments: encode(t, object{"path": "f", "content": "x"})}
	prober := named(t, w, "write_file").(Prober)
	mark, err := prober.Mark(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, w, map[string]string{temporary("f", call.tag()): "hal"})
	if got, _ := prober.Probe(context.Background(), call, mark); got != StandingNotStarted {
		t.Errorf("standing %s", got)
	}
	if got := tree(t, w.Dir()); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestTwoWritersOfOneFileLoseNothingSilently(t *testing.T) {
	dir := t.TempDir()
	// Two programs: each has its own workspace on the same directory.
	a, b := openWorkspace(t, dir), openWorkspace(t, dir)
	lay(t, a, map[string]string{"counter": ""})
	const each = 40
	var wg sync.WaitGroup
	made := make([]int, 2)
	for i, w := range []*Workspace{a, b} {
		wg.Go(func() {
			for n := 0; n < each; {
				works(t, run(t, w, "read_file", object{"path": "counter"}))
				r := run(t, w, "write_file", object{"path": fmt.Sprintf("%d-%d", i, n), "content": "x"})
				if r.IsError {
					t.Errorf("a file of its own: %s", r.Text())
				}
				n++
				r = run(t, w, "write_file", object{"path": fmt.Sprintf("shared-%d", n), "content": fmt.Sprint(i)})
				if !r.IsError {
					made[i]++
				}
			}
		})
	}
	wg.Wait()
	// Each shared file was created by exactly one of them, and the other was told.
	if made[0]+made[1] != each {
		t.Errorf("%v files were created, want %d in all", made, each)
	}
}

func TestAFileThatIsExchangedForALinkIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	onUnix(t)
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("victim"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "mine", "dir/f": "mine"})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(at(w, "f"))
			_ = os.Symlink(outside, at(w, "f"))
			_ = os.Rename(at(w, "dir"), at(w, "was"))
			_ = os.Symlink(filepath.Dir(outside), at(w, "dir"))
			_ = os.Remove(at(w, "f"))
			_ = os.WriteFile(at(w, "f"), []byte("mine"), 0o644)
			_ = os.Remove(at(w, "dir"))
			_ = os.Rename(at(w, "was"), at(w, "dir"))
		}
	})
	for range 80 {
		for _, name := range []string{"f", "dir/f"} {
			if r := run(t, w, "read_file", object{"path": name}); strings.Contains(r.Text(), "victim\n") {
				t.Errorf("read outside: %q", r.Text())
			}
			_ = run(t, w, "write_file", object{"path": name, "content": "mine too"})
			_ = run(t, w, "edit_file", object{"path": name, "old_string": "mine", "new_string": "my"})
		}
		_ = run(t, w, "write_file", object{"path": "dir/victim", "content": "overwritten"})
		_ = run(t, w, "delete_file", object{"path": "dir/victim"})
	}
	close(stop)
	wg.Wait()
	if b, err := os.ReadFile(outside); err != nil || string(b) != "victim" {
		t.Errorf("the file outside holds %q, %v", b, err)
	}
}

func TestDeletingTakesAFileOrAllOfADirectoryAndCanBeTakenBack(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "x", "d/a": "1", "d/e/b": "2", "d/.git/HEAD": "ref", "d/.gitignore": "*", "empty/": ""})
	before := tree(t, w.Dir())
	fails(t, run(t, w, "delete_file", object{"path": "d"}), "not empty", "recursive")
	fails(t, run(t, w, "delete_file", object{"path": "."}), "workspace itself")
	fails(t, run(t, w, "delete_file", object{"path": "none"}), "does not exist")
	needs, err := named(t, w, "delete_file").Needs(encode(t, object{"path": "d", "recursive": true}))
	if err != nil || fmt.Sprint(needs) != "[{delete d/e/b } {delete d/e } {delete d/a } {delete d/.gitignore } {delete d/.git/HEAD } {delete d/.git } {delete d }]" {
		t.Errorf("needs %v, %v", needs, err)
	}
	var changes []Change
	for _, args := range []object{{"path": "f"}, {"path": "empty"}, {"path": "d", "recursive": true}} {
		changes = append(changes, works(t, run(t, w, "delete_file", args)).Changes...)
	}
	if got := tree(t, w.Dir()); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	restore(t, w, changes, false)
	sameTree(t, before, tree(t, w.Dir()))
}

func TestADirectoryThatHoldsTooMuchIsNotDeletedInOneCall(t *testing.T) {
	w := newWorkspace(t)
	files := map[string]string{}
	for i := range deleteFiles + 1 {
		files[fmt.Sprintf("d/%d", i)] = ""
	}
	lay(t, w, files)
	fails(t, run(t, w, "delete_file", object{"path": "d", "recursive": true}), "more than 1000 files")
	if got := len(tree(t, w.Dir())); got != deleteFiles+2 {
		t.Errorf("%d entries are left", got)
	}
}

func TestAnEditIsWhatReplacingWouldGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\n]{0,30}`).Draw(t, "text")
		old := rapid.StringMatching(`[ab\n]{1,4}`).Draw(t, "old")
		new := rapid.StringMatching(`[abc\n]{0,4}`).Draw(t, "new")
		all := rapid.Bool().Draw(t, "all")
		mark := rapid.SampledFrom([]string{"", string(bom)}).Draw(t, "bom")
		dos := rapid.Bool().Draw(t, "crlf") && strings.Contains(text, "\n")
		in := text
		if dos {
			in = strings.ReplaceAll(text, "\n", "\r\n")
		}
		got, n, err := applyEdits([]byte(mark+in), []edit{{old, new, all}})
		count := len(occurrences(text, old))
		if old == new || count == 0 || count > 1 && !all {
			if err == nil {
				t.Fatalf("it was made, though %q is there %d times", old, count)
			}
			return
		}
		want := strings.ReplaceAll(text, old, new)
		if dos {
			want = strings.ReplaceAll(want, "\n", "\r\n")
		}
		if err != nil || string(got) != mark+want {
			t.Fatalf("got %q (%d), %v; want %q", got, n, err, mark+want)
		}
		if applied := patched(t, mark+in, rawDiff("f", []byte(mark+in), got, 1<<20)); applied != string(got) {
			t.Fatalf("the diff gives %q; want %q", applied, got)
		}
	})
}

// patched applies a unified diff, as patch(1) does.
func patched(t rapid.TB, text, diff string) string {
	old := strings.SplitAfter(text, "\n")
	var out strings.Builder
	at, last := 0, ""
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case strings.HasPrefix(line, "@@"):
			var from, lines int
			if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &from, &lines); n == 2 && lines == 0 {
				from++ // of an empty range the line before it is named
			}
			for ; at < from-1; at++ {
				out.WriteString(old[at])
			}
		case line[0] == '\\': // the line before has no end
			if last == "+" || last == " " {
				s := strings.TrimSuffix(out.String(), "\n")
				out.Reset()
				out.WriteString(s)
			}
		case line[0] == '+':
			out.WriteString(line[1:])
		default:
			if strings.TrimSuffix(old[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				t.Fatalf("the diff has %q where the text has %q", line, old[at])
			}
			if line[0] == ' ' {
				out.WriteString(old[at])
			}
			at++
		}
		last = line[:1]
	}
	out.WriteString(strings.Join(old[at:], ""))
	return out.String()
}

func TestSeveralEditsAreMadeTogetherOrNotAtAll(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "a\nb\nc\n"})
	two := func(second string) object {
		return object{"path": "f", "edits": []object{{"old_string": "a", "new_string": "A"}, {"old_string": second, "new_string": "x"}}}
	}
	fails(t, run(t, w, "edit_file", two("none")), "edit 2 of 2", "f was not changed")
	if got := contentOf(t, w, "f"); got != "a\nb\nc\n" {
		t.Errorf("the file holds %q", got)
	}
	r := works(t, run(t, w, "edit_file", two("A\nb"))) // the second sees what the first did
	if got := contentOf(t, w, "f"); got != "x\nc\n" {
		t.Errorf("the file holds %q", got)
	}
	if !strings.HasPrefix(r.Text(), "Edited f: 2 replacements.\n--- a/f\n+++ b/f\n@@") {
		t.Errorf("it says %q", r.Text())
	}
	fails(t, run(t, w, "edit_file", object{"path": "f"}), "nothing to do")
	fails(t, run(t, w, "edit_file", object{"path": "f", "old_string": "x", "new_string": "y", "edits": []object{{"old_string": "a", "new_string": "b"}}}), "not both")
}

func TestAnEditThatDoesNotFitSaysWhy(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"f.go":   "package f\n\nfunc one() {\n\tprintln(\"one\")\n\treturn\n}\n\nfunc two() {\n\treturn\n}\n",
		"utf16":  "\xff\xfea\x00",
		"bin":    "a\x00b",
		"many":   strings.Repeat("a\n", 100_000), // each answer comes at once
		"lf.txt": "alpha\nbeta\n",
	})
	for name, c := range map[string]struct {
		args object
		says []string
	}{
		"twice":       {object{"path": "f.go", "old_string": "return", "new_string": "x"}, []string{"2 times", "lines 5, 9", "replace_all"}},
		"indentation": {object{"path": "f.go", "old_string": "    println(\"one\")\n    return", "new_string": "x"}, []string{"lines 4 to 5", "indentation (tabs and spaces)", `"\tprintln(\"one\")"`, `"    println(\"one\")"`}},
		"end":         {object{"path": "lf.txt", "old_string": "alpha  \nbeta", "new_string": "x"}, []string{"line 1 differs at its end"}},
		"near":        {object{"path": "f.go", "old_string": "println(\"ones\")", "new_string": "x"}, []string{"nearest", "line 4", "     4\t\tprintln"}},
		"numbers":     {object{"path": "f.go", "old_string": "     4\t\tprintln(\"one\")", "new_string": "x"}, []string{"line numbers"}},
		"made before": {object{"path": "f.go", "old_string": "zzzzzz", "new_string": "func two() {"}, []string{"new_string is, at line 8", "made before"}},
		"many":        {object{"path": "many", "old_string": strings.Repeat("a\n", 50_000), "new_string": "x"}, []string{"at least 100 times, in the lines 1, 2,"}},
		"much":        {object{"path": "many", "old_string": strings.Repeat("a\n", 50_000) + "b", "new_string": "x"}, []string{"not in the file"}},
		"nothing":     {object{"path": "f.go", "old_string": "Ω≈ç√∫˜", "new_string": "x"}, []string{"nothing in it is like it"}},
		"empty":       {object{"path": "f.go", "old_string": "", "new_string": "x"}, []string{"old_string is empty"}},
		"same":        {object{"path": "f.go", "old_string": "one", "new_string": "one"}, []string{"the same"}},
		"missing":     {object{"path": "g.go", "old_string": "a", "new_string": "b"}, []string{"does not exist", "write_file"}},
		"utf16":       {object{"path": "utf16", "old_string": "a", "new_string": "b"}, []string{"UTF-16"}},
		"binary":      {object{"path": "bin", "old_string": "a", "new_string": "b"}, []string{"binary"}},
	} {
		t.Run(name, func(t *testing.T) { fails(t, run(t, w, "edit_file", c.args), c.says...) })
	}
}
