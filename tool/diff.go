package tool

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// What people are shown of a change: more is cut, and files over diffFile are
// not compared.
const (
	diffBytes = 64 << 10
	diffFile  = 1 << 20
)

// diffOf shows people what steps change, in unified form, safe for a terminal.
func diffOf(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		if (Change{Before: s.before.FileState, After: s.after.FileState}).directory() {
			continue
		}
		b.WriteString(visibleDiff(s))
		if b.Len() > diffBytes {
			text := b.String()
			return text[:cutBefore(text, diffBytes)] + lineEnd(text[:cutBefore(text, diffBytes)]) + fmt.Sprintf("[the diff is cut here; %s more]\n", plural(len(steps)-i-1, "file"))
		}
	}
	return b.String()
}

func visibleDiff(s step) string {
	name := visible.EscapedLine(s.path)
	from, to := "a/"+name, "b/"+name
	if s.before.FileState == nil {
		from = "/dev/null"
	}
	if s.after.FileState == nil {
		to = "/dev/null"
	}
	if why := unshown(s.before, "before"); why != "" {
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: %s]\n", from, to, why)
	}
	if why := unshown(s.after, "after"); why != "" {
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: %s]\n", from, to, why)
	}
	old, new := string(s.before.content), string(s.after.content)
	if crlf(old) && (new == "" || crlf(new)) || old == "" && crlf(new) {
		old, new = strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(new, "\r\n", "\n")
	}
	diff := udiff.Unified(from, to, visible.Escaped(old), visible.Escaped(new))
	if diff == "" {
		return fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	return diff
}

// unshown says why a content is not compared; empty if it is.
func unshown(s standing, side string) string {
	switch {
	case s.FileState == nil:
		return ""
	case s.kind() == fs.ModeSymlink:
		return "a symbolic link to " + visible.EscapedLine(string(s.content))
	case s.kind() != 0:
		return kindOf(s.kind())
	case s.content == nil && s.Size > 0:
		return side + " it has " + size(s.Size)
	case len(s.content) > diffFile:
		return side + " it has " + size(s.Size)
	case binary(s.content) || bytes.HasPrefix(s.content, []byte("\xff\xfe")) || bytes.HasPrefix(s.content, []byte("\xfe\xff")):
		return "a binary file"
	}
	return ""
}

// crlf tells a text all of whose lines end with CRLF.
func crlf(text string) bool {
	n := strings.Count(text, "\n")
	return n > 0 && n == strings.Count(text, "\r\n")
}

// rawDiff is what the model is told of its edit: the characters as they are.
func rawDiff(rel string, old, new []byte, limit int) string {
	if len(old) > diffFile || len(new) > diffFile {
		return ""
	}
	diff := udiff.Unified("a/"+rel, "b/"+rel, string(old), string(new))
	if len(diff) > limit || !utf8.ValidString(diff) {
		return ""
	}
	return diff
}
