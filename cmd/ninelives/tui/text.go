package tui

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"

	shown "github.com/ninelives-ai/ninelives/internal/visible"
)

// visible makes any text safe to show and hides nothing of it. Tabs become four
// blanks, so that columns can be counted.
func visible(s string) string { return strings.ReplaceAll(shown.Text(s), "\t", "    ") }

// oneLine makes any text one line that is safe to show.
func oneLine(s string) string { return shown.Line(s) }

// controls are the sequences that programs colour their output with.
var controls = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// plain is visible for the output of programs: colours are left out, and a
// carriage return begins a line.
func plain(s string) string {
	if strings.ContainsAny(s, "\x1b\r") {
		s = controls.ReplaceAllString(s, "")
		s = strings.ReplaceAll(s, "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return visible(s)
}

// wrap breaks a text, painted or not, into lines of at most width columns.
func wrap(s string, width int) []string {
	width = max(width, 1)
	lines := strings.Split(s, "\n")
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		if ansi.StringWidth(line) <= width {
			out = append(out, line)
			continue
		}
		for part := range strings.SplitSeq(ansi.Wrap(line, width, ""), "\n") {
			out = append(out, hardWrap(part, width)...) // blanks before a long word are not counted above
		}
	}
	return out
}

// hardWrap breaks lines at the width alone and keeps every blank: for code,
// diffs and commands.
func hardWrap(s string, width int) []string {
	width = max(width, 1)
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if ansi.StringWidth(line) <= width {
			out = append(out, line)
			continue
		}
		out = append(out, strings.Split(ansi.Hardwrap(line, width, true), "\n")...)
	}
	return out
}

// cut shortens a line to width columns, with an ellipsis where it was cut.
func cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// width is how many columns a text takes.
func width(s string) int { return ansi.StringWidth(s) }

// lastLines gives the end of a text: at most n lines, and whether there was more.
func lastLines(s string, n int) (string, bool) {
	s = strings.TrimRight(s, "\n")
	if n <= 0 {
		return "", s != ""
	}
	at := len(s)
	for range n {
		i := strings.LastIndexByte(s[:at], '\n')
		if i < 0 {
			return s, false
		}
		at = i
	}
	return s[at+1:], true
}

// paint colours text with the sixteen colours that every terminal has, if the
// terminal and its user want it.
type paint struct{ on bool }

func (p paint) sgr(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[m"
}

func (p paint) bold(s string) string  { return p.sgr("1", s) }
func (p paint) dim(s string) string   { return p.sgr("2", s) }
func (p paint) red(s string) string   { return p.sgr("31", s) }
func (p paint) green(s string) string { return p.sgr("32", s) }
func (p paint) amber(s string) string { return p.sgr("33", s) }
func (p paint) cyan(s string) string  { return p.sgr("36", s) }
