package tui

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"

	shown "github.com/ninelives-ai/ninelives/internal/visible"
)

// cell is one thing that the cursor steps over: a character as people see
// them, a line feed, or a chip that stands for a long paste.
type cell struct {
	text string
	chip string // what is shown in the place of text; empty for a character
}

// editor is a text of several lines with a cursor. It is pure: no terminal, no clock.
type editor struct {
	cells  []cell
	cursor int
	killed []cell
	pastes int
}

// A paste of more lines or bytes than these is kept as one chip.
const (
	pasteLines = 6
	pasteBytes = 800
)

// text is the whole text, chips written out.
func (e *editor) text() string {
	var b strings.Builder
	for _, c := range e.cells {
		b.WriteString(c.text)
	}
	return b.String()
}

func (c cell) show() string {
	if c.chip != "" {
		return c.chip
	}
	return c.text
}

func (c cell) blank() bool { return c.chip == "" && strings.TrimSpace(c.text) == "" }

// empty reports that there is nothing in it.
func (e *editor) empty() bool { return len(e.cells) == 0 }

// set replaces the text; the cursor goes to its end.
func (e *editor) set(text string) {
	e.cells, e.cursor, e.pastes = nil, 0, 0
	e.insert(text)
}

// insert puts text at the cursor. What a keyboard sends in pieces (a letter
// and its accent, the parts of an emoji) is joined with what stands before it.
func (e *editor) insert(text string) {
	text = sanitize(text)
	from := e.cursor
	if from > 0 && e.cells[from-1].chip == "" && e.cells[from-1].text != "\n" {
		from--
		text = e.cells[from].text + text
	}
	e.splice(from, e.cursor, cells(text))
}

// paste puts pasted text at the cursor, a long one as a chip.
func (e *editor) paste(text string) {
	text = sanitize(text)
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	if lines <= pasteLines && len(text) <= pasteBytes {
		e.insert(text)
		return
	}
	e.pastes++
	label := fmt.Sprintf("[paste %d: %d lines]", e.pastes, lines)
	if lines == 1 {
		label = fmt.Sprintf("[paste %d: %d characters]", e.pastes, len([]rune(text)))
	}
	e.splice(e.cursor, e.cursor, []cell{{text: text, chip: label}})
}

// sanitize keeps what can be edited: line feeds for line ends, blanks for
// tabs, no other control characters.
func sanitize(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(s, "\ufffd"))
	return strings.Map(func(r rune) rune {
		if shown.Steers(r) {
			return -1
		}
		return r
	}, s)
}

func cells(text string) []cell {
	var out []cell
	for g := uniseg.NewGraphemes(text); g.Next(); {
		out = append(out, cell{text: g.Str()})
	}
	return out
}

func (e *editor) splice(from, to int, put []cell) {
	rest := append([]cell(nil), e.cells[to:]...)
	e.cells = append(append(e.cells[:from:from], put...), rest...)
	e.cursor = from + len(put)
}

// kill takes out what lies between two positions and keeps it for yank.
func (e *editor) kill(from, to int) {
	if from == to {
		return
	}
	e.killed = append([]cell(nil), e.cells[from:to]...)
	e.splice(from, to, nil)
}

func (e *editor) yank() { e.splice(e.cursor, e.cursor, e.killed) }

func (e *editor) backspace() {
	if e.cursor > 0 {
		e.splice(e.cursor-1, e.cursor, nil)
	}
}

func (e *editor) delete() {
	if e.cursor < len(e.cells) {
		e.splice(e.cursor, e.cursor+1, nil)
	}
}

func (e *editor) move(by int) { e.cursor = min(max(e.cursor+by, 0), len(e.cells)) }

// lineStart and lineEnd are the bounds of the cursor's line.
func (e *editor) lineStart() int {
	i := e.cursor
	for i > 0 && e.cells[i-1].text != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.cursor
	for i < len(e.cells) && e.cells[i].text != "\n" {
		i++
	}
	return i
}

// wordLeft and wordRight are where the word before and after the cursor bounds.
func (e *editor) wordLeft() int {
	i := e.cursor
	for i > 0 && e.cells[i-1].blank() {
		i--
	}
	for i > 0 && !e.cells[i-1].blank() {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.cursor
	for i < len(e.cells) && e.cells[i].blank() {
		i++
	}
	for i < len(e.cells) && !e.cells[i].blank() {
		i++
	}
	return i
}

// row is one line of the screen: the cells from, up to and without to.
type row struct{ from, to int }

// rows lays the text out in lines of at most w columns, and says where the
// cursor is.
func (e *editor) rows(w int) (rows []row, line, column int) {
	w = max(w, 2)
	from, used := 0, 0
	for i, c := range e.cells {
		if c.text == "\n" && c.chip == "" {
			if i == e.cursor {
				line, column = len(rows), used
			}
			rows = append(rows, row{from, i})
			from, used = i+1, 0
			continue
		}
		n := width(c.show())
		if used+n > w && used > 0 {
			rows = append(rows, row{from, i})
			from, used = i, 0
		}
		if i == e.cursor {
			line, column = len(rows), used
		}
		used += n
	}
	if e.cursor == len(e.cells) {
		line, column = len(rows), used
		if used >= w { // there is no room for the cursor behind the last cell
			rows = append(rows, row{from, len(e.cells)})
			from, line, column = len(e.cells), len(rows), 0
		}
	}
	return append(rows, row{from, len(e.cells)}), line, column
}

// vertical moves the cursor a line of the screen up or down; false at the
// first or last one.
func (e *editor) vertical(by, w int) bool {
	rows, line, column := e.rows(w)
	to := line + by
	if to < 0 || to >= len(rows) {
		return false
	}
	i, used := rows[to].from, 0
	for ; i < rows[to].to; i++ {
		n := width(e.cells[i].show())
		if used+n > column {
			break
		}
		used += n
	}
	e.cursor = i
	return true
}

// view gives at most most lines around the cursor, and where it is in them.
func (e *editor) view(w, most int) (lines []string, line, column int) {
	rows, line, column := e.rows(w)
	first := 0
	if len(rows) > most {
		first = min(max(line-most/2, 0), len(rows)-most)
		rows = rows[first : first+most]
	}
	for _, r := range rows {
		var b strings.Builder
		for _, c := range e.cells[r.from:r.to] {
			b.WriteString(cut(c.show(), w))
		}
		lines = append(lines, b.String())
	}
	return lines, line - first, min(column, w)
}

// word gives the blank-bounded word that ends at the cursor, and where it begins.
func (e *editor) word() (string, int) {
	i := e.cursor
	for i > 0 && !e.cells[i-1].blank() && e.cells[i-1].chip == "" {
		i--
	}
	var b strings.Builder
	for _, c := range e.cells[i:e.cursor] {
		b.WriteString(c.text)
	}
	return b.String(), i
}

// replace puts text in the place of what stands between from and the cursor.
func (e *editor) replace(from int, text string) { e.splice(from, e.cursor, cells(sanitize(text))) }

// key edits by a key's name; false if the key is not one for editing.
func (e *editor) key(name string, w int) bool {
	switch name {
	case "left", "ctrl+b":
		e.move(-1)
	case "right", "ctrl+f":
		e.move(1)
	case "home", "ctrl+a":
		e.cursor = e.lineStart()
	case "end", "ctrl+e":
		e.cursor = e.lineEnd()
	case "ctrl+home":
		e.cursor = 0
	case "ctrl+end":
		e.cursor = len(e.cells)
	case "ctrl+left", "alt+left", "alt+b":
		e.cursor = e.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		e.cursor = e.wordRight()
	case "backspace", "ctrl+h", "shift+backspace":
		e.backspace()
	case "delete":
		e.delete()
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.kill(e.wordLeft(), e.cursor)
	case "alt+d", "ctrl+delete":
		e.kill(e.cursor, e.wordRight())
	case "ctrl+u":
		e.kill(e.lineStart(), e.cursor)
	case "ctrl+k":
		e.kill(e.cursor, e.lineEnd())
	case "ctrl+y":
		e.yank()
	case "ctrl+j", "shift+enter", "alt+enter", "ctrl+enter":
		e.splice(e.cursor, e.cursor, []cell{{text: "\n"}})
	case "up":
		return e.vertical(-1, w)
	case "down":
		return e.vertical(1, w)
	default:
		return false
	}
	return true
}
