package openai

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// chatArena makes the strings of deltas out of larger blocks, so that a delta
// costs no allocation of its own. What it gives is never written again.
type chatArena struct{ b strings.Builder }

const chatArenaBlock = 4 << 10

func (a *chatArena) string(p []byte) string {
	if len(p) > a.b.Cap()-a.b.Len() {
		a.b = strings.Builder{}
		a.b.Grow(max(chatArenaBlock, len(p)))
	}
	n := a.b.Len()
	a.b.Write(p)
	return a.b.String()[n:]
}

// chatTail unquotes the JSON strings of one text that comes in pieces. Servers
// cut between the bytes of a rune, and between the halves of a surrogate pair:
// what ends a piece unfinished waits for the next one.
type chatTail struct{ held []byte }

// append appends the text of the JSON string raw, quotes included, to dst.
func (t *chatTail) append(dst, raw []byte) []byte {
	inner := raw[1 : len(raw)-1]
	if len(t.held) == 0 && bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return append(dst, inner...)
	}
	unfinished := chatUnfinished(inner)
	if len(t.held) == 0 && unfinished == 0 {
		// The error tells of what is no UTF-8, which U+FFFD stands for then.
		dst, _ = jsontext.AppendUnquote(dst, raw)
		return dst
	}
	n := len(inner) - unfinished
	dst = chatUnquote(dst, append(t.held, inner[:n]...))
	t.held = append([]byte(nil), inner[n:]...)
	return dst
}

// flush appends what never got its rest.
func (t *chatTail) flush(dst []byte) []byte {
	if len(t.held) > 0 {
		dst = chatUnquote(dst, t.held)
		t.held = nil
	}
	return dst
}

func chatUnquote(dst, inner []byte) []byte {
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(quoted, '"')
	quoted = append(quoted, inner...)
	quoted = append(quoted, '"')
	dst, _ = jsontext.AppendUnquote(dst, quoted)
	return dst
}

// chatUnfinished is the length of what ends the inside of a JSON string in the
// middle of a rune.
func chatUnfinished(inner []byte) int {
	if n := len(inner) - len(`\ud83d`); n >= 0 && inner[n] == '\\' && chatHighSurrogate(inner[n:]) {
		slashes := 0
		for i := n; i >= 0 && inner[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 1 {
			return len(inner) - n
		}
	}
	for i := len(inner) - 1; i >= 0 && i >= len(inner)-utf8.UTFMax; i-- {
		if c := inner[i]; c < utf8.RuneSelf {
			break
		} else if utf8.RuneStart(c) {
			if !utf8.FullRune(inner[i:]) {
				return len(inner) - i
			}
			break
		}
	}
	return 0
}

// chatHighSurrogate: \ud800 to \udbff.
func chatHighSurrogate(escape []byte) bool {
	if escape[1] != 'u' || escape[2]|0x20 != 'd' {
		return false
	}
	switch escape[3] | 0x20 {
	case '8', '9', 'a', 'b':
		return true
	}
	return false
}
