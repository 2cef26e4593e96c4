package tui

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// screen is the terminal as the renderer writes to it. It puts finished lines
// above the live part, into the terminal's own scrollback, in one write with
// the frame that follows: nothing flickers, and no piece of a frame is left
// behind in the scrollback, however long the lines or tall the frame.
//
// The renderer has a way to print above its frame, but that scrolls the frame
// itself away when both do not fit on the screen. So what it prints is only
// mark; the write that holds it tells where the frame begins, and screen puts
// the lines there.
//
// The file is not embedded: its other ways to write must not be found.
type screen struct {
	file *os.File

	mu    sync.Mutex
	lines []string // to be written at the next mark
	clear bool     // the whole screen is cleared first
	held  []byte   // goes out with the next frame
}

// Read, Close and Fd make it a terminal for Bubble Tea.
func (s *screen) Read(p []byte) (int, error) { return s.file.Read(p) }
func (s *screen) Close() error               { return s.file.Close() }
func (s *screen) Fd() uintptr                { return s.file.Fd() }

// mark is what the renderer is told to print: a string that terminals ignore.
const mark = "\x1b_ninelives\x1b\\"

// insertion is what the renderer writes to print mark above its frame: to the
// last line of the frame, one line down, and up to its first line.
var insertion = regexp.MustCompile(`^\r(?:\x1b\[(\d*)B)?\n\x1b\[(\d*)A\x1b\[\d*L` + regexp.QuoteMeta(mark))

// print adds lines that go above the frame. clear clears the screen first, and
// what is still waiting to be printed.
func (s *screen) print(lines []string, clear bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if clear {
		s.lines, s.clear = nil, true
	}
	s.lines = append(s.lines, lines...)
}

// Write passes frames on. Where the renderer prints mark, the lines go out
// instead, and the frame is drawn again below them.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := insertion.FindSubmatch(p); m != nil {
		s.held = append(s.held, s.insert(number(m[1], 0), number(m[2], 1))...)
		return len(p), nil
	}
	out := p
	if bytes.Contains(p, []byte(mark)) { // in another form than insertion: not as well, but nothing is lost
		out = bytes.Replace(p, []byte(mark), []byte(strings.Join(s.lines, "\r\n")), 1)
		s.lines, s.clear = nil, false
	}
	if len(s.held) > 0 {
		out = append(s.held, out...)
		s.held = nil
	}
	if _, err := s.file.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// insert gives what to write for the waiting lines. The cursor is down lines
// above the last line of a frame of height lines; it ends where the frame
// begins anew.
func (s *screen) insert(down, height int) []byte {
	var b bytes.Buffer
	b.WriteByte('\r')
	if s.clear {
		b.WriteString(ansi.CursorHomePosition + ansi.EraseEntireScreen)
		s.clear = false
	} else if up := height - 1 - down; up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	b.WriteString(ansi.EraseScreenBelow)
	for _, line := range s.lines {
		b.WriteString(line)
		if strings.Contains(line, "\x1b") {
			b.WriteString(ansi.ResetStyle)
		}
		b.WriteString("\r\n")
	}
	s.lines = nil
	return b.Bytes()
}

// flush writes what is held, when no frame follows any more.
func (s *screen) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) > 0 {
		s.file.Write(s.held)
		s.held = nil
	}
	for _, line := range s.lines {
		s.file.WriteString(line + "\r\n")
	}
	s.lines = nil
}

func number(digits []byte, missing int) int {
	if digits == nil {
		return missing
	}
	if len(digits) == 0 {
		return 1
	}
	n, _ := strconv.Atoi(string(digits))
	return n
}
