package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Prompts are long, and nearly all of what is read and written in a call. Most
// of it means itself: it is looked over eight bytes at a time and copied in
// runs. What needs care is left to the library.

// appendQuoted appends s as a JSON string, as jsontext.AppendQuote does.
func appendQuoted(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		dst, _ = jsontext.AppendQuote(dst, s) // the error tells of it; U+FFFD stands for it
		return dst
	}
	dst = append(dst, '"')
	for {
		n := plainPrefix(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
		}
		s = s[n+1:]
	}
}

// plainPrefix is how many bytes at the beginning of s stand for themselves in a
// JSON string.
func plainPrefix[T string | []byte](s T) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// A byte below 0x20, and one that is 0 after the bits of a quote or a
		// backslash were turned, borrow from the bit at the top of it.
		quote, slash := x^('"'*ones), x^('\\'*ones)
		if ((x-' '*ones)&^x|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// appendUnquoted appends the text of the JSON string v, as
// jsontext.AppendUnquote does, whose error tells of what is no UTF-8.
func appendUnquoted(dst, v []byte) []byte {
	before := len(dst)
	if !runs(v, func(run []byte) { dst = append(dst, run...) }) {
		dst, _ = jsontext.AppendUnquote(dst[:before], v)
	}
	return dst
}

// unquoted is the text of the JSON string v.
func unquoted(v []byte) string {
	var text strings.Builder
	text.Grow(len(v))
	if runs(v, func(run []byte) { text.Write(run) }) {
		return text.String()
	}
	careful, _ := jsontext.AppendUnquote(nil, v)
	return string(careful)
}

// runs gives the text of the JSON string v piece by piece. It reports false, maybe
// after some of them, if v has anything in it but plain text and short escapes.
func runs(v []byte, give func([]byte)) bool {
	rest := v[1 : len(v)-1]
	if !utf8.Valid(rest) {
		return false
	}
	for {
		n := bytes.IndexByte(rest, '\\')
		if n < 0 {
			give(rest)
			return true
		}
		if n+1 == len(rest) {
			return false
		}
		give(rest[:n])
		c := rest[n+1]
		if unescaped[c] == 0 {
			return false // by its number, maybe one half of a pair
		}
		give(unescaped[c : int(c)+1])
		rest = rest[n+2:]
	}
}

// unescaped are the characters that have an escape of two bytes.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
