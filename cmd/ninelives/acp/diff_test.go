package acp

import (
	"strings"
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"
)

// What is shown of a change is the change: its parts, put in the place of what
// they replace, make the old text the new one.
func TestHunksAreTheChange(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "--- c\n", "+++ d\n", "@@ e\n", "\n", `\ f` + "\n", "[g\n"}), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			s := strings.Join(lines.Draw(t, name), "")
			if rapid.Bool().Draw(t, name+" ends in mid-line") {
				s = strings.TrimSuffix(s, "\n")
			}
			return s
		}
		before, after := text("before"), text("after")
		diff := udiff.Unified("a/x y", "b/x y", before, after)
		hunks, rest := readDiff(diff)
		if len(rest) > 0 {
			t.Fatalf("not read: %q of\n%s", rest, diff)
		}
		var made strings.Builder
		left := before
		for _, h := range hunks {
			if h.path != "x y" || h.old == nil {
				t.Fatalf("%+v", h)
			}
			at := strings.Index(left, *h.old)
			for at >= 0 { // the place is where what comes before it is the same in both
				if strings.HasPrefix(after, made.String()+left[:at]+h.new) && lineOf(after, made.Len()+at) <= h.line {
					break
				}
				next := strings.Index(left[at+1:], *h.old)
				if next < 0 {
					at = -1
				} else {
					at += 1 + next
				}
			}
			if at < 0 {
				t.Fatalf("%q is not in %q:\n%s", *h.old, left, diff)
			}
			made.WriteString(left[:at] + h.new)
			left = left[at+len(*h.old):]
		}
		if made.String()+left != after {
			t.Fatalf("made %q of %q, want %q:\n%s", made.String()+left, before, after, diff)
		}
	})
}

func lineOf(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }

func TestDiffsOfFilesThatComeAndGo(t *testing.T) {
	hunks, rest := readDiff("--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n" +
		"--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n" +
		"--- a/pic\n+++ b/pic\n[not shown: a binary file]\n" +
		"--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n")
	if len(hunks) != 2 || hunks[0].old != nil || hunks[0].new != "a\nb\n" || hunks[0].path != "new" || hunks[0].line != 1 ||
		hunks[1].path != "old" || *hunks[1].old != "a" || hunks[1].new != "" {
		t.Errorf("%+v", hunks)
	}
	same(t, rest, "pic: [not shown: a binary file]", "f: the change is not shown whole")
}

// A diff that was cut shows no half of a change as a whole one.
func TestACutDiffShowsWholeHunksAlone(t *testing.T) {
	hunks, rest := readDiff("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -9,3 +9,3 @@\n x\n-y\n[the diff is cut here; 2 files more]\n")
	if len(hunks) != 1 || hunks[0].new != "A\nb\n" || hunks[0].line != 1 {
		t.Errorf("%+v", hunks)
	}
	same(t, rest, "f: the change is not shown whole", "[the diff is cut here; 2 files more]")
}

func FuzzReadDiff(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n")
	f.Add("--- \n+++ \n@@ -,+ @@\n\\")
	f.Fuzz(func(t *testing.T, diff string) {
		hunks, _ := readDiff(diff)
		for _, h := range hunks {
			if h.path == "" {
				t.Errorf("%+v", h)
			}
		}
	})
}

func TestTitlesAreALine(t *testing.T) {
	for want, c := range map[string][2]string{
		"Read a b.go":             {"read_file", `{"path":"a\n b.go"}`},
		"List the workspace":      {"list_dir", `{}`},
		"go test ./...":           {"run_command", `{"command":"go test ./..."}`},
		"Terminal: read t1":       {"run_terminal_command", `{"action":"read","id":"t1"}`},
		"run_command":             {"run_command", `no JSON`},
		"mcp__x__y":               {"mcp__x__y", `{}`},
		"Search the web for ␛[2J": {"web_search", `{"query":"\u001b[2J"}`},
	} {
		if got := title(c[0], []byte(c[1])); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := []rune(title("run_command", []byte(`{"command":"`+strings.Repeat("é", 500)+`"}`))); len(got) != titleRunes || got[titleRunes-1] != '…' {
		t.Errorf("%d characters", len(got))
	}
}
