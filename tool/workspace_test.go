package tool

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// shelf keeps contents in a directory, a file for each.
type shelf struct{ dir string }

func (s shelf) Put(_ context.Context, content []byte) (string, error) {
	hash := hashOf(content)
	return hash, os.WriteFile(filepath.Join(s.dir, hash), content, 0o600)
}

func (s shelf) Get(_ context.Context, hash string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir, hash))
}

func newWorkspace(t *testing.T) *Workspace {
	t.Helper()
	return openWorkspace(t, t.TempDir())
}

func openWorkspace(t *testing.T, dir string) *Workspace {
	t.Helper()
	w, err := OpenWorkspace(dir, shelf{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// lay writes files: names that end with / are directories, "name -> target" are links.
func lay(t *testing.T, w *Workspace, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name, target, link := strings.Cut(name, " -> ")
		full := filepath.Join(w.Dir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case link:
			err = os.Symlink(target, full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func at(w *Workspace, name string) string { return filepath.Join(w.Dir(), filepath.FromSlash(name)) }

func contentOf(t *testing.T, w *Workspace, name string) string {
	t.Helper()
	b, err := os.ReadFile(at(w, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tree describes all that is in a directory: kinds, modes, contents, targets.
func tree(t rapid.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch info.Mode().Type() {
		case 0:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			what = string(b)
		case fs.ModeSymlink:
			if what, err = os.Readlink(p); err != nil {
				return err
			}
		}
		out[filepath.ToSlash(rel)] = fmt.Sprintf("%v %q", info.Mode(), what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameTree(t rapid.TB, want, got map[string]string) {
	t.Helper()
	for p, s := range want {
		if got[p] != s {
			t.Errorf("%s: got %q, want %q", p, got[p], s)
		}
	}
	for p, s := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: got %q, want nothing", p, s)
		}
	}
}

func named(t rapid.TB, w *Workspace, name string) Tool {
	t.Helper()
	for _, tool := range Files(w) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %s", name)
	return nil
}

type object = map[string]any

func encode(t rapid.TB, args object) []byte {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run calls a tool as an agent does: what it needs first, then the call.
func run(t rapid.TB, w *Workspace, name string, args object) Result {
	t.Helper()
	raw := encode(t, args)
	tool := named(t, w, name)
	if _, err := tool.Needs(raw); err != nil {
		return failure(err)
	}
	return tool.Run(context.Background(), &Call{ID: "call", Session: "session", Arguments: raw})
}

// works wants a call to work, fails wants it to fail and to say a thing.
func works(t rapid.TB, r Result) Result {
	t.Helper()
	if r.IsError {
		t.Fatalf("the call failed: %s", r.Text())
	}
	return r
}

func fails(t rapid.TB, r Result, says ...string) Result {
	t.Helper()
	if !r.IsError || !strings.HasPrefix(r.Text(), ErrorPrefix) {
		t.Fatalf("the call did not fail: %s", r.Text())
	}
	if r.Summary == "" || strings.ContainsAny(r.Summary, "\n\x1b") {
		t.Errorf("people are told %q", r.Summary)
	}
	for _, s := range says {
		if !strings.Contains(r.Text(), s) {
			t.Errorf("the error %q does not say %q", r.Text(), s)
		}
	}
	if strings.Contains(strings.TrimSpace(r.Text()), "\n") && len(says) == 0 {
		t.Errorf("the error has several lines: %q", r.Text())
	}
	return r
}

func onUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs the files of Unix")
	}
}

func TestPathsAreRelativeToTheWorkspace(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{"a/b.txt": "", "a/c.txt -> b.txt": "", "d -> a": "", "e -> d/c.txt": "", "gone -> a/new.txt": ""})
	for name, want := range map[string]string{
		"":                 ".",
		".":                ".",
		"./a/b.txt":        "a/b.txt",
		"a//b.txt":         "a/b.txt",
		"a/../a/b.txt":     "a/b.txt",
		at(w, "a/b.txt"):   "a/b.txt",
		w.Dir():            ".",
		"d/b.txt":          "a/b.txt",
		"d/c.txt":          "a/b.txt",
		"e":                "a/b.txt",
		"gone":             "a/new.txt",
		"d/new/deep.txt":   "a/new/deep.txt",
		"Ünïcödé/日本 語.txt": "Ünïcödé/日本 語.txt",
	} {
		if got, err := w.Resolve(name); err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestAWorkspaceThatIsReachedThroughALinkTakesBothOfItsNames(t *testing.T) {
	onUnix(t)
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, link)
	for _, dir := range []string{real, link} {
		if got, err := w.Resolve(filepath.Join(dir, "x")); err != nil || got != "x" {
			t.Errorf("below %s: %q, %v", dir, got, err)
		}
	}
}

func TestNothingLeavesTheWorkspace(t *testing.T) {
	onUnix(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t)
	up, _ := filepath.Rel(w.Dir(), outside)
	lay(t, w, map[string]string{
		"abs -> " + outside:              "",
		"rel -> " + up:                   "",
		"file -> " + outside + "/secret": "",
		"deep/rel -> ../" + up:           "",
		"one -> two":                     "", "two -> one": "",
	})
	for _, name := range []string{
		"../x", "a/../../x", outside, outside + "/secret", "/etc/passwd", "abs/secret", "rel/secret", "file", "deep/rel/secret", "one", "two/x", "a\x00b",
	} {
		for tool, args := range map[string]object{
			"read_file":  {"path": name},
			"list_dir":   {"path": name},
			"glob":       {"path": name, "pattern": "*"},
			"grep":       {"path": name, "pattern": "secret"},
			"write_file": {"path": name, "content": "x"},
			"edit_file":  {"path": name, "old_string": "secret", "new_string": "x"},
		} {
			r := run(t, w, tool, args)
			if !r.IsError || strings.Contains(r.Text(), "secret\n") {
				t.Errorf("%s of %q: %s", tool, name, r.Text())
			}
		}
	}
	fails(t, run(t, w, "read_file", object{"path": "../x"}), "outside the workspace", w.Dir())
	fails(t, run(t, w, "delete_file", object{"path": "abs/secret"}), "symbolic link")
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "secret" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
	// A search passes links over, wherever they lead.
	if r := works(t, run(t, w, "grep", object{"pattern": "secret"})); !strings.Contains(r.Text(), "nothing matches") {
		t.Errorf("grep went through a link: %s", r.Text())
	}
	// The link itself may go.
	works(t, run(t, w, "delete_file", object{"path": "abs"}))
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error(err)
	}
}
