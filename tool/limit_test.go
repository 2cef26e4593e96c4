package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestAResultThatFitsStaysAsItIs(t *testing.T) {
	for _, text := range []string{"", "a", "a\nb\n", strings.Repeat("x\n", 2000)} {
		r := Limit(TextResult(text), 2000, 50<<10, func(string) (string, error) { t.Error("it was saved"); return "", nil })
		if r.Text() != text || r.Saved != "" {
			t.Errorf("%q became %q", text, r.Text())
		}
	}
}

func TestALongResultKeepsBothEndsAndTellsWhereTheRestIs(t *testing.T) {
	var lines strings.Builder
	for i := range 10 {
		lines.WriteString(string(rune('a'+i)) + "\n")
	}
	var saved string
	image := ninelives.Image{MediaType: "image/png", Data: []byte("x")}
	r := TextResult(lines.String())
	r.Content = append(r.Content, image)
	r = Limit(r, 4, 0, func(text string) (string, error) { saved = text; return "/private/output-1.txt", nil })
	want := "a\nb\n[12 bytes left out here, of 20 bytes in 10 lines.\n" +
		"The whole is in /private/output-1.txt: search it with grep, or read parts of it with read_file (offset, limit).]\ni\nj\n"
	if r.Text() != want || saved != lines.String() || r.Saved != "/private/output-1.txt" {
		t.Errorf("got %q, saved %q as %q", r.Text(), saved, r.Saved)
	}
	if len(r.Content) != 2 || r.Content[1].(ninelives.Image).MediaType != "image/png" {
		t.Errorf("the image is gone: %v", r.Content)
	}
	r = Limit(TextResult(lines.String()), 4, 0, func(string) (string, error) { return "", errors.New("disk full") })
	if !strings.Contains(r.Text(), "[12 bytes left out here, of 20 bytes in 10 lines; it is lost: disk full]") || r.Saved != "" {
		t.Errorf("got %q", r.Text())
	}
}

func TestWhatIsLeftOfALongResultIsItsBeginningAndItsEndWithinTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\n\nü日🐈\x00"))).Draw(t, "text")
		lines, bytes := rapid.IntRange(0, 8).Draw(t, "lines"), rapid.IntRange(0, 40).Draw(t, "bytes")
		head, tail := text, ""
		if lines > 0 && countLines(text) > lines || bytes > 0 && len(text) > bytes {
			head, tail = ends(text, lines, bytes)
		}
		switch {
		case !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(head)+len(tail) > len(text):
			t.Fatalf("%q and %q are not the ends of %q", head, tail, text)
		case !utf8.ValidString(head) || !utf8.ValidString(tail):
			t.Fatalf("a character is split: %q, %q", head, tail)
		case bytes > 0 && len(head)+len(tail) > bytes:
			t.Fatalf("%d bytes, %d are allowed", len(head)+len(tail), bytes)
		case lines > 0 && countLines(head)+countLines(tail) > lines:
			t.Fatalf("%d lines, %d are allowed: %q, %q", countLines(head)+countLines(tail), lines, head, tail)
		}
	})
}

func TestASavedOutputCanBeReadAndSearchedAndIsRemovedAfterAWeek(t *testing.T) {
	w := newWorkspace(t)
	dir := filepath.Join(t.TempDir(), "state", "outputs")
	now := time.Now()
	save, err := w.Outputs(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	name, err := save("one\ntwo\nthree\n")
	if err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]object{
		"read_file": {"path": name, "offset": 2, "limit": 1},
		"grep":      {"path": name, "pattern": "tw"},
	} {
		if r := works(t, run(t, w, tool, args)); !strings.Contains(r.Text(), "two") {
			t.Errorf("%s: %s", tool, r.Text())
		}
		if needs, err := named(t, w, tool).Needs(encode(t, args)); err != nil || len(needs) != 0 {
			t.Errorf("%s needs %v, %v for what is its own", tool, needs, err)
		}
	}
	fails(t, run(t, w, "write_file", object{"path": name, "content": "x"}), "outside the workspace")
	fails(t, run(t, w, "read_file", object{"path": dir + "/../secret"}), "outside the workspace")
	for p, mode := range map[string]os.FileMode{dir: 0o700, name: 0o600} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, %v", p, info.Mode(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Outputs(dir, now.Add(keepOutputs-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Error("within the week it is gone")
	}
	if _, err := w.Outputs(dir, now.Add(keepOutputs+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("after a week it is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err != nil {
		t.Error("somebody else's file was removed")
	}
}

func TestTheListOfTasksIsInTheCallAndItsResult(t *testing.T) {
	args := []byte(`{"todos":[{"content":"read  the\ncode","status":"completed"},{"content":"fix it","status":"in_progress"},{"content":"test","status":"pending"}]}`)
	r := Todo().Run(context.Background(), &Call{Arguments: args})
	if want := "[x] read the code\n[>] fix it\n[ ] test\n"; r.Text() != want || r.Summary != "1 of 3 tasks done: fix it" {
		t.Errorf("got %q, %q", r.Text(), r.Summary)
	}
	tasks, err := Tasks(args)
	if err != nil || len(tasks) != 3 || tasks[1] != (Task{"fix it", TaskInProgress}) {
		t.Errorf("%v, %v", tasks, err)
	}
	if r := Todo().Run(context.Background(), &Call{Arguments: []byte(`{"todos":[]}`)}); r.IsError || r.Text() != "The list is empty." {
		t.Errorf("got %q", r.Text())
	}
	for bad, why := range map[string]string{
		`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`: "2 tasks are in_progress; at most one may be",
		`{"todos":[{"content":" ","status":"pending"}]}`:                                            "todos[0] has no content",
		`{"todos":[{"content":"a","status":"done"}]}`:                                               `the status "done"`,
	} {
		fails(t, Todo().Run(context.Background(), &Call{Arguments: []byte(bad)}), why)
	}
}

func TestEveryToolIsDescribedByASchemaThatProvidersTake(t *testing.T) {
	w := newWorkspace(t)
	tools := append(Files(w), Web(WebOptions{})...)
	for _, tool := range append(tools, Todo()) {
		spec := tool.Spec()
		schema := string(spec.Schema)
		if spec.Name == "" || spec.Description == "" || !strings.Contains(schema, `"type":"object"`) || strings.Contains(schema, `"null"`) {
			t.Errorf("%s: %s", spec.Name, schema)
		}
		_, previews := tool.(Previewer)
		_, probes := tool.(Prober)
		if writes := !spec.ReadOnly; writes != previews || writes != probes {
			t.Errorf("%s: read-only %v, previews %v, probes %v", spec.Name, spec.ReadOnly, previews, probes)
		}
		if r := tool.Run(context.Background(), &Call{Arguments: []byte(`{"path":`)}); !r.IsError || !strings.HasPrefix(r.Text(), ErrorPrefix) {
			t.Errorf("%s takes broken arguments: %s", spec.Name, r.Text())
		}
		if _, err := tool.Needs([]byte(`[1]`)); err == nil {
			t.Errorf("%s takes arguments that are no object", spec.Name)
		}
	}
}
