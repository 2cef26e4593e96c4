package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestListingShowsKindsSizesAndWhatIsIgnored(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"a.txt": "12345", "dir/b": "1", "dir/sub/c": "", "l -> a.txt": "", ".gitignore": "*.log\nout/\n", "x.log": "", "out/y": "", ".git/HEAD": "",
		"bad\x1b[31m": "",
	})
	r := works(t, run(t, w, "list_dir", object{"depth": 2}))
	want := ".git/  (ignored)\n.gitignore  11 bytes\na.txt  5 bytes\nbad\\x1b[31m  0 bytes\ndir/\n  b  1 byte\n  sub/\nl -> a.txt\nout/  (ignored)\nx.log  0 bytes  (ignored)\n"
	if r.Text() != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text(), want)
	}
	if got := works(t, run(t, w, "list_dir", object{"path": "dir"})).Text(); got != "b  1 byte\nsub/\n" {
		t.Errorf("got %q", got)
	}
	fails(t, run(t, w, "list_dir", object{"path": "a.txt"}), "not a directory")
	fails(t, run(t, w, "list_dir", object{"path": "dri"}), `did you mean "dir"?`)
}

func TestAFullDirectoryIsListedUpToItsBound(t *testing.T) {
	w := newWorkspace(t)
	files := map[string]string{}
	for i := range listEntries + 7 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	lay(t, w, files)
	text := works(t, run(t, w, "list_dir", object{})).Text()
	if countLines(text) != listEntries+1 || !strings.Contains(text, "[7 more are not shown") {
		t.Errorf("%d lines, the last: %q", countLines(text), text[len(text)-100:])
	}
}

func TestGlobFindsFilesTheLastChangedFirst(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"a.go": "", "src/b.go": "", "src/deep/c.ts": "", "src/d.md": "", ".gitignore": "gen/\n", "gen/e.go": "", ".git/f.go": "", "日本.go": "",
	})
	for i, name := range []string{"a.go", "src/deep/c.ts", "src/b.go", "日本.go", "src/d.md", "gen/e.go"} {
		when := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(at(w, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{
		"*.go":             "日本.go\nsrc/b.go\na.go\n",
		"./*.go":           "日本.go\nsrc/b.go\na.go\n",
		"src/*.go":         "src/b.go\n",
		"src/**/*.{go,ts}": "src/b.go\nsrc/deep/c.ts\n",
		"**/deep/**":       "src/deep/c.ts\n",
		"none*":            "[no file matches]\n",
	} {
		if got := works(t, run(t, w, "glob", object{"pattern": pattern})).Text(); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
	if got := works(t, run(t, w, "glob", object{"pattern": "*", "path": "gen"})).Text(); got != "gen/e.go\n" {
		t.Errorf("in an ignored directory that is named: %q", got)
	}
	if got := works(t, run(t, w, "glob", object{"pattern": "*.go", "limit": 1})).Text(); got != "日本.go\n[2 more match; give a narrower pattern]\n" {
		t.Errorf("with a limit: %q", got)
	}
	for _, bad := range []string{"", "[", "{a", "../*", "/etc/*"} {
		fails(t, run(t, w, "glob", object{"pattern": bad}))
	}
}

func TestGrepShowsMatchesWithTheirLinesAndContext(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"a.txt": "one\ntwo\nthree\nfour\nfive\nsix\ntwo\n", "b.md": "Two\r\n", "bin": "two\x00", ".gitignore": "no\n", "no": "two", ".git/x": "two",
		"sub/c.txt": strings.Repeat("x", 1000) + "two" + strings.Repeat("y", 1000),
	})
	if r := works(t, run(t, w, "grep", object{"pattern": "^two", "context": 1})); r.Text() != `a.txt
     1- one
     2: two
     3- three
  --
     6- six
     7: two
[1 binary file was passed over]
` || r.Summary != "found 2 matches in 1 file for ^two" {
		t.Errorf("got %q, %s", r.Text(), r.Summary)
	}
	for i, c := range []struct {
		args object
		want string
	}{
		{object{"pattern": "two", "output": "files", "glob": "*.{txt,md}"}, "a.txt\nsub/c.txt\n"},
		{object{"pattern": "TWO$", "ignore_case": true, "output": "count", "path": ".", "glob": "*.md"}, "     1  b.md\n"},
		{object{"pattern": "two", "output": "count", "glob": "a*"}, "     2  a.txt\n"},
		{object{"pattern": "two", "path": "no"}, "no\n     1: two\n"},
		{object{"pattern": "two", "path": "a.txt", "limit": 1}, "a.txt\n     2: two\n[there is more: the search ended here; narrow the pattern, the path or the glob, or raise limit]\n"},
		{object{"pattern": "absent"}, "[nothing matches]\n[1 binary file was passed over]\n"},
		{object{"pattern": "xtwo", "path": "sub"}, "sub/c.txt\n     1: …" + strings.Repeat("x", 101) + "two" + strings.Repeat("y", 296) + "… [the line is cut: it has 2.0 KB]\n"},
	} {
		if got := works(t, run(t, w, "grep", c.args)).Text(); got != c.want {
			t.Errorf("%d: got %q, want %q", i, got, c.want)
		}
	}
	fails(t, run(t, w, "grep", object{"pattern": "a(?=b)"}), "RE2")
	fails(t, run(t, w, "grep", object{"pattern": "("}), "RE2")
	fails(t, run(t, w, "grep", object{"pattern": ""}), "empty")
	fails(t, run(t, w, "grep", object{"pattern": "a", "output": "json"}), "lines, files or count")
}

func TestAHugeFileIsSearchedInPiecesAndTheSearchCanBeStopped(t *testing.T) {
	w := newWorkspace(t)
	f, err := os.Create(at(w, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	chunk := []byte(strings.Repeat("some line of text\n", 4096))
	for range 200 { // 14 MB
		if _, err := f.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(f, strings.Repeat("z", 3<<20), "needle\nneedle\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := works(t, run(t, w, "grep", object{"pattern": "needle"}))
	if want := fmt.Sprintf("huge\n%6d: needle\n[1 line was searched only up to 1.0 MB]\n", 200*4096+2); r.Text() != want {
		t.Errorf("got %q, want %q", r.Text(), want)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fails(t, named(t, w, "grep").Run(ctx, &Call{Arguments: encode(t, object{"pattern": "needle"})}), "stopped")
	fails(t, named(t, w, "glob").Run(ctx, &Call{Arguments: encode(t, object{"pattern": "*"})}), "stopped")
}

// TestGitignoreMeansWhatItMeansToGit compares with git itself.
func TestGitignoreMeansWhatItMeansToGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	var files []string
	for _, dir := range []string{"", "a/", "a/b/", "build/", "a/build/", "docs/x/"} {
		for _, name := range []string{"f.go", "f.log", "keep.log", "build", "#x", "!y", "sp ", "b.o", "{c}"} {
			if !strings.HasSuffix(dir+name, "a/build") && dir+name != "build" {
				files = append(files, dir+name)
			}
		}
	}
	lines := []string{
		"*.log", "!keep.log", "build", "build/", "/build", "a/b", "a/*.go", "**/b", "a/**", "**/x/*.o", "docs/**/f.go", "\\#x", "\\!y", "#x", "!a/f.log",
		"sp\\ ", "sp ", "*", "!*/", "!*.go", "/a/", "{c}", "[fb].*", "f.[!l]*", "?.go", "a/**/f.go", "/*", "!/a", "b*d", "", "  ", "a//b", "[", "x/",
	}
	quiet := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent")
		return cmd
	}
	w := newWorkspace(t)
	if out, err := quiet(exec.Command(git, "init", "-q", w.Dir())).CombinedOutput(); err != nil {
		t.Skipf("git init: %v, %s", err, out)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f] = ""
	}
	lay(t, w, all)
	rapid.Check(t, func(t *rapid.T) {
		for _, where := range []string{".gitignore", "a/.gitignore", ".git/info/exclude"} {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 4).Draw(t, where), "\n") + "\n"
			if err := os.WriteFile(filepath.Join(w.Dir(), where), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := quiet(exec.Command(git, "ls-files", "-z", "--others", "--exclude-standard"))
		cmd.Dir = w.Dir()
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		got := []string{}
		k := walker{root: w.root}
		_ = k.from(context.Background(), ".", func(rel string, info os.FileInfo) error {
			if !info.IsDir() {
				got = append(got, rel)
			}
			return nil
		})
		slices.Sort(want)
		slices.Sort(got)
		if len(got) == 0 {
			got = []string{""}
		}
		if !slices.Equal(got, want) {
			for _, f := range want {
				if !slices.Contains(got, f) {
					t.Errorf("%q is left out; git has it", f)
				}
			}
			for _, f := range got {
				if !slices.Contains(want, f) {
					t.Errorf("%q is there; git leaves it out", f)
				}
			}
		}
	})
}
