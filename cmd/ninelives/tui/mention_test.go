package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func workspace(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestMentionedFilesGoIntoTheMessage(t *testing.T) {
	var lines strings.Builder
	for i := 1; i <= 50; i++ {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	root := workspace(t, map[string]string{
		"main.go": "package main\n", "docs/my notes.md": "notes", "long.txt": lines.String(), "bin": "\x00\xff\xfe\x80", "a/b/c.txt": "c",
		"huge.txt": strings.Repeat("0123456789abcde\n", 20<<10),
	})
	os.WriteFile(filepath.Join(filepath.Dir(root.Name()), "secret"), []byte("secret"), 0o600)
	os.Symlink("../secret", filepath.Join(root.Name(), "link"))
	for _, c := range []struct {
		text  string
		added []string
		notes []string
	}{
		{"explain @main.go please", []string{"\n\n<file path=\"main.go\">\npackage main\n</file>"}, nil},
		{`(@"docs/my notes.md")`, []string{"\n\n<file path=\"docs/my notes.md\">\nnotes\n</file>"}, nil},
		{"@long.txt#2-4", []string{"\n\n<file path=\"long.txt\" lines=\"2-4\">\nline 2\nline 3\nline 4\n</file>"}, nil},
		{"@long.txt#50", []string{"\n\n<file path=\"long.txt\" lines=\"50-50\">\nline 50\n</file>"}, nil},
		{"@long.txt#49-900", []string{"\n\n<file path=\"long.txt\" lines=\"49-50\">\nline 49\nline 50\n</file>"}, nil},
		{"@long.txt#51-60", nil, []string{"@long.txt was not put into the message: it has no lines 51-60: it has 50"}},
		{"look at @main.go, and @main.go.", []string{"\n\n<file path=\"main.go\">\npackage main\n</file>", "\n\n<file path=\"main.go\">\npackage main\n</file>"}, nil},
		{"@a", []string{"\n\n<file path=\"a/\">\nb/\n</file>"}, nil},
		{"ask @somebody or mail me@main.go", nil, nil},
		{"who is @somebody?", nil, nil},
		{"fix @mian.go, and @docs/none!", nil, []string{"@mian.go is no file here: it was sent as plain text", "@docs/none is no file here: it was sent as plain text"}},
		{`read @"my notes.md"`, nil, []string{"@my notes.md is no file here: it was sent as plain text"}},
		{"@bin", nil, []string{"@bin was not put into the message: it is no text"}},
		{"@../secret", nil, []string{"@../secret was not put into the message: path escapes from parent"}},
		{"@link", nil, []string{"@link was not put into the message: path escapes from parent"}},
	} {
		msg, notes := compose(root, c.text, nil)
		var added []string
		for _, p := range msg.Parts[1:] {
			added = append(added, p.(ninelives.Text).Text)
		}
		if msg.Role != ninelives.RoleUser || msg.Parts[0].(ninelives.Text).Text != c.text || !reflect.DeepEqual(added, c.added) || !reflect.DeepEqual(notes, c.notes) {
			t.Errorf("%q adds %q with the notes %q, want %q and %q", c.text, added, notes, c.added, c.notes)
		}
		if got := said(msg.Text()); got != c.text {
			t.Errorf("shown is %q, typed was %q", got, c.text)
		}
	}
	msg, notes := compose(root, "@huge.txt", nil)
	text := msg.Parts[1].(ninelives.Text).Text
	if len(text) > mentionText+200 || !strings.Contains(text, `shown="the first 128 KB of 320 KB: read the rest with a tool"`) || len(notes) != 1 {
		t.Errorf("a huge file: %d bytes, %q, notes %q", len(text), text[:120], notes)
	}
}

func TestPicturesAndOutputGoIntoTheMessage(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 64)
	root := workspace(t, map[string]string{"shot.png": png})
	msg, notes := compose(root, "what is @shot.png", []string{"$ ls\nshot.png\n(exit status 0)"})
	want := []ninelives.Part{
		ninelives.Text{Text: "what is @shot.png"},
		ninelives.Image{MediaType: "image/png", Data: []byte(png)},
		ninelives.Text{Text: "\n\n<command ran-by=\"user\">\n$ ls\nshot.png\n(exit status 0)\n</command>"},
	}
	if !reflect.DeepEqual(msg.Parts, want) || notes != nil {
		t.Errorf("%#v %q", msg.Parts, notes)
	}
}

func TestFilesOfTheWorkspaceAreListedWithoutWhatGitIgnores(t *testing.T) {
	root := workspace(t, map[string]string{".gitignore": "*.log\nbuild/\n", "a.go": "", "x.log": "", "build/out": "", "node_modules/p/i.js": "", ".git/HEAD": "", "d/e.go": ""})
	got := workspaceFiles(t.Context(), root)
	if want := []string{".gitignore", "a.go", "d/e.go"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBranchIsReadFromGit(t *testing.T) {
	root := workspace(t, map[string]string{"repo/.git/HEAD": "ref: refs/heads/feature/x\n", "repo/sub/f": "", "detached/.git/HEAD": "0123456789abcdef0123456789abcdef01234567\n",
		"tree/.git": "gitdir: ../repo/.git/worktrees/tree\n", "repo/.git/worktrees/tree/HEAD": "ref: refs/heads/other\n"})
	for dir, want := range map[string]string{"repo": "feature/x", "repo/sub": "feature/x", "detached": "01234567", "tree": "other"} {
		if got := branch(filepath.Join(root.Name(), dir)); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
