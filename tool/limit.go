package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// Limit bounds the text that a result puts before the model. A longer one is
// handed to save whole, and the result holds its first and its last half of
// what is allowed, with a word between them on what is missing and how to read
// it. Cuts are made between lines where that wastes little, never within a
// character. Images and files stay. A bound of zero or less does not bind.
//
// With a nil save, or one that fails, the result says that the rest is lost.
func Limit(r Result, lines, bytes int, save func(text string) (path string, err error)) Result {
	text := r.Text()
	total := countLines(text)
	if (lines <= 0 || total <= lines) && (bytes <= 0 || len(text) <= bytes) {
		return r
	}
	head, tail := ends(text, lines, bytes)
	left := len(text) - len(head) - len(tail)
	note := fmt.Sprintf("[%s left out here, of %s in %s", size(int64(left)), size(int64(len(text))), plural(total, "line"))
	if save == nil {
		note += "; it was not saved]"
	} else if path, err := save(text); err != nil {
		note += "; it is lost: " + visible.EscapedLine(err.Error()) + "]"
	} else {
		r.Saved = path
		note += fmt.Sprintf(".\nThe whole is in %s: search it with grep, or read parts of it with read_file (offset, limit).]", visible.EscapedLine(path))
	}
	content := []ninelives.Part{ninelives.Text{Text: head + lineEnd(head) + note + "\n" + tail}}
	for _, p := range r.Content {
		if _, is := p.(ninelives.Text); !is {
			content = append(content, p)
		}
	}
	r.Content = content
	return r
}

// ends gives the first and the last part of a text, each with half of the
// lines and half of the bytes that are allowed.
func ends(text string, lines, bytes int) (head, tail string) {
	h, t := len(text), 0
	if bytes > 0 && len(text) > bytes {
		h = cutBefore(text, (bytes+1)/2)
		t = cutAfter(text, len(text)-bytes/2)
	}
	if lines > 0 {
		h = min(h, afterLines(text, (lines+1)/2))
		t = max(t, beforeLines(text, lines/2))
	}
	return text[:h], text[max(h, t):]
}

// wasted is how much of a part is given up so that it ends with a line.
const wasted = 4

// cutBefore gives a place to end a head at, at or before at.
func cutBefore(text string, at int) int {
	if nl := strings.LastIndexByte(text[:at], '\n') + 1; nl > at-at/wasted {
		return nl
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// cutAfter gives a place to begin a tail at, at or after at.
func cutAfter(text string, at int) int {
	rest := len(text) - at
	if nl := strings.IndexByte(text[at:], '\n') + 1; nl > 0 && nl < rest/wasted {
		return at + nl
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// afterLines gives where the first n lines end.
func afterLines(text string, n int) int {
	at := 0
	for ; n > 0; n-- {
		nl := strings.IndexByte(text[at:], '\n')
		if nl < 0 {
			return len(text)
		}
		at += nl + 1
	}
	return at
}

// beforeLines gives where the last n lines begin.
func beforeLines(text string, n int) int {
	at := len(text)
	if n > 0 && strings.HasSuffix(text, "\n") {
		at--
	}
	for ; n > 0; n-- {
		nl := strings.LastIndexByte(text[:at], '\n')
		if nl < 0 {
			return 0
		}
		at = nl
		if n == 1 {
			at++
		}
	}
	return at
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func lineEnd(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "\n"
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// plural counts things: "1 line", "2 lines", "2 matches".
func plural(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "ch"):
		thing += "es"
	case strings.HasSuffix(thing, "ry"):
		thing = strings.TrimSuffix(thing, "y") + "ies"
	default:
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
