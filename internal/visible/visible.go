// Package visible makes text that others wrote safe to show to people: what a
// terminal would obey, and what no eye would see as it is, is replaced by a
// sign that can be seen. A model, a provider, a page or the name of a file
// never steers a terminal or turns around what somebody is asked to allow.
//
// [Text] and [Line] are for what is read as prose and keep every letter of
// every script. [Escaped] and [EscapedLine] are for what must be told apart to
// the character: names of files, diffs, errors.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text keeps line feeds and tabs. Other control characters become their picture
// (␛); marks that turn the direction of writing, separators of lines, tags and
// bytes that are no UTF-8 become U+FFFD. A carriage return that belongs to a
// line end goes.
func Text(s string) string {
	if !strings.ContainsFunc(s, Steers) && utf8.ValidString(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case !Steers(r):
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return '␡'
		}
		return unicode.ReplacementChar
	}, s)
}

// Line is Text as one line, with one blank for each run of white space.
func Line(s string) string {
	return strings.Join(strings.Fields(Text(strings.ReplaceAll(s, "\r", " "))), " ")
}

// Steers reports whether a character steers a terminal, turns the direction of
// writing, or hides text that a model can read. Line feeds and tabs do not.
func Steers(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r),
		r == 0x2028, r == 0x2029, // separators of lines and paragraphs
		r >= 0xe0000 && r <= 0xe007f: // tags
		return true
	}
	return false
}

// Escaped spells out what is hidden: \x1b, \u202e, and \xff for a byte that is
// no UTF-8. Line feeds and tabs stay.
func Escaped(s string) string {
	if plain(s) || !strings.ContainsFunc(s, Hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !Hidden(r):
			b.WriteString(s[i : i+n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// plain says that s is ASCII without anything that steers: most names are.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// EscapedLine is Escaped for what must stay on one line: line feeds and tabs
// are spelled out too.
func EscapedLine(s string) string {
	if s = Escaped(s); !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s)
}

// Hidden reports whether a character is not seen as itself: what [Steers], and
// all others without a form of their own (blanks of no width, byte order
// marks). The joiners that scripts and emoji need are not.
func Hidden(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	}
	return Steers(r) || unicode.Is(unicode.Cf, r)
}
