package tool

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes text safe to show to people: whatever a terminal could obey or
// an eye could miss is spelled out (\x1b, \u202e, \xff for a byte that is no
// UTF-8). Line ends and tabs stay. It is for Summary and Diff, for names in
// errors and for log lines; what the model reads keeps its characters.
func visible(s string) string {
	at := strings.IndexFunc(s, hidden)
	if at < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r):
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

// oneLine is visible for what must stay on one line.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(visible(s))
}

// hidden tells the characters that are not seen as themselves: controls,
// directions (Cf has them) and separators of lines. The joiners and selectors
// that scripts and emoji need stay.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
