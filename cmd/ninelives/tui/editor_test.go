package tui

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditorKeys(t *testing.T) {
	for _, c := range []struct{ text, keys, want string }{
		{"one two", "ctrl+w", "one |"},
		{"one two", "ctrl+a ctrl+k", "|"},
		{"one two", "ctrl+u ctrl+y ctrl+y", "one twoone two|"},
		{"one two", "alt+b x", "one x|two"},
		{"one two", "ctrl+a alt+f x", "onex| two"},
		{"one two", "home alt+d", "| two"},
		{"one\ntwo", "home backspace", "one|two"},
		{"one\ntwo", "up end x", "onex|\ntwo"},
		{"one\ntwo", "up home ctrl+k delete", "|two"},
		{"e\u0301a", "left left delete", "|a"}, // a letter and its accent are one
		{"👩‍👩‍👧b", "left backspace", "|b"},
		{"世界", "left x", "世x|界"},
		{"a", "left left left x", "x|a"},
		{"a", "right right x", "ax|"},
		{"ab", "ctrl+b ctrl+j", "a\n|b"},
	} {
		var e editor
		e.set(c.text)
		for _, k := range strings.Fields(c.keys) {
			if !e.key(k, 20) {
				e.insert(k)
			}
		}
		var b strings.Builder
		for i, cell := range e.cells {
			if i == e.cursor {
				b.WriteByte('|')
			}
			b.WriteString(cell.text)
		}
		if e.cursor == len(e.cells) {
			b.WriteByte('|')
		}
		if got := b.String(); got != c.want {
			t.Errorf("%q after %s: %q, want %q", c.text, c.keys, got, c.want)
		}
	}
}

func TestPiecesOfACharacterAreJoined(t *testing.T) {
	var e editor
	for _, r := range "e\u0301👩\u200d👧" {
		e.insert(string(r))
	}
	if len(e.cells) != 2 {
		t.Errorf("%d cells: %q", len(e.cells), e.cells)
	}
}

func TestUpAndDownStayInTheirColumn(t *testing.T) {
	var e editor
	e.set("a long first line\nshort\nanother long line")
	e.cursor = 10
	for _, c := range []struct {
		by     int
		moved  bool
		cursor int
	}{{1, true, 23}, {1, true, 29}, {1, false, 29}, {-1, true, 23}, {-1, true, 5}, {-1, false, 5}} {
		if moved := e.vertical(c.by, 40); moved != c.moved || e.cursor != c.cursor {
			t.Errorf("%+d: moved %v to %d, want %v %d", c.by, moved, e.cursor, c.moved, c.cursor)
		}
	}
}

func TestEditorNeverLosesItsPlace(t *testing.T) {
	keys := []string{"left", "right", "up", "down", "home", "end", "ctrl+home", "ctrl+end", "alt+b", "alt+f", "backspace", "delete", "ctrl+w", "alt+d",
		"ctrl+u", "ctrl+k", "ctrl+y", "ctrl+j"}
	rapid.Check(t, func(t *rapid.T) {
		var e editor
		w := rapid.IntRange(2, 60).Draw(t, "width")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				e.insert(rapid.StringN(0, 6, 20).Draw(t, "text"))
			case 1:
				e.paste(rapid.SampledFrom([]string{"x", strings.Repeat("l\n", 10), strings.Repeat("y", 900)}).Draw(t, "paste"))
			default:
				e.key(rapid.SampledFrom(keys).Draw(t, "key"), w)
			}
			if e.cursor < 0 || e.cursor > len(e.cells) {
				t.Fatalf("the cursor is at %d of %d", e.cursor, len(e.cells))
			}
			rows, line, column := e.rows(w)
			at := 0
			for i, r := range rows {
				if r.from < at || r.to < r.from || i > 0 && r.from > at+1 {
					t.Fatalf("the rows leave cells out: %v", rows)
				}
				at = r.to
			}
			if at != len(e.cells) || line < 0 || line >= len(rows) || column < 0 || rows[line].from > e.cursor || rows[line].to < e.cursor {
				t.Fatalf("the cursor %d is in row %d, column %d of %v", e.cursor, line, column, rows)
			}
			lines, line, column := e.view(w, 3)
			if len(lines) > 3 || line < 0 || line >= len(lines) || column > w {
				t.Fatalf("view: line %d column %d of %q", line, column, lines)
			}
		}
	})
}
