package visible

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNothingThatSteersIsLeftAndNothingElseIsChanged(t *testing.T) {
	for in, want := range map[string]string{
		"plain\nlines\tand ü日🐈":                      "plain\nlines\tand ü日🐈",
		"e\u0301 👩\u200d👩\u200d👧 \u0645\u06cc\u200c": "e\u0301 👩\u200d👩\u200d👧 \u0645\u06cc\u200c",
		"dos\r\nlines":                 "dos\nlines",
		"rm x\r# harmless":             "rm x␍# harmless",
		"\x1b[2J\x07\x7f":              "␛[2J␇␡",
		"\u009b2J":                     "\ufffd2J",
		"\u202eevil\u2066\u200f\u061c": "\ufffdevil\ufffd\ufffd\ufffd",
		"tag\U000e0041":                "tag\ufffd",
		"line\u2028paragraph\u2029":    "line\ufffdparagraph\ufffd",
		"bad \xff byte":                "bad \ufffd byte",
		"soft\u00adhyphen":             "soft\u00adhyphen",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Line(" a\n\tb\r\nc\rd \x1b "); got != "a b c d ␛" {
		t.Errorf("Line = %q", got)
	}
}

func TestWhatIsHiddenIsSpelledOut(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü日🐈 text\n\t":      "plain ü日🐈 text\n\t",
		"\x1b[2J\x07\r\x9b":       `\x1b[2J\x07\x0d\x9b`,
		"a\u202eb\u2066\u009b":    `a\u202eb\u2066\u009b`,
		"\xff\xfe":                `\xff\xfe`,
		"zero\u200bwidth\ufeff":   `zero\u200bwidth\ufeff`,
		"👩\u200d💻":                "👩\u200d💻",
		"tag\U000e0041":           `tag\U000e0041`,
		"separated\u2028by\u2029": `separated\u2028by\u2029`,
	} {
		if got := Escaped(in); got != want {
			t.Errorf("Escaped(%q) = %q, want %q", in, got, want)
		}
	}
	if got := EscapedLine("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("EscapedLine: %q", got)
	}
}

// Whatever comes in, what goes out is UTF-8 without a character that steers,
// and is not changed again; a line has no line end.
func TestAnyTextBecomesSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for name, f := range map[string]func(string) string{"Text": Text, "Line": Line, "Escaped": Escaped, "EscapedLine": EscapedLine} {
			out := f(in)
			if !utf8.ValidString(out) || strings.ContainsFunc(out, Steers) || f(out) != out {
				t.Fatalf("%s(%q) = %q", name, in, out)
			}
			if strings.HasSuffix(name, "Line") && strings.ContainsAny(out, "\n\t") {
				t.Fatalf("%s(%q) = %q has several lines", name, in, out)
			}
		}
	})
}
