package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
)

// isTerminal reports whether a stream is one that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// visible replaces what a terminal would obey instead of showing: control
// characters other than line feed and tab, marks that turn the direction of
// writing, and tags, which nobody sees. A model's or a provider's words never
// steer the terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case r < 0x20:
			return 0x2400 + r // ␛ and its kin
		case r == 0x7f:
			return '␡'
		case r >= 0x80 && r < 0xa0, unicode.Is(unicode.Bidi_Control, r), r == 0x2028, r == 0x2029, r >= 0xe0000 && r <= 0xe007f:
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// oneLine makes any text one line that is safe to show.
func oneLine(s string) string {
	return strings.Join(strings.Fields(visible(s)), " ")
}

// style paints text if the terminal and its user want it.
type style struct{ on bool }

// styleFor follows NO_COLOR (https://no-color.org) and TERM=dumb.
func styleFor(w io.Writer, env func(string) (string, bool)) style {
	if v, _ := env("NO_COLOR"); v != "" {
		return style{}
	}
	if v, _ := env("TERM"); v == "dumb" {
		return style{}
	}
	return style{isTerminal(w)}
}

func (s style) paint(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string   { return s.paint("2", text) }
func (s style) red(text string) string   { return s.paint("31", text) }
func (s style) green(text string) string { return s.paint("32", text) }
func (s style) amber(text string) string { return s.paint("33", text) }
