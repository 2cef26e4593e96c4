package rawjson

import (
	"bytes"
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
func plainPrefix(s string) int {
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
	rest := v[1 : len(v)-1]
	for valid := utf8.Valid(rest); valid; {
		n := bytes.IndexByte(rest, '\\')
		if n < 0 {
			return append(dst, rest...)
		}
		dst = append(dst, rest[:n]...)
		if n+1 == len(rest) {
			break
		}
		c := unescaped[rest[n+1]]
		if c == 0 {
			break // by its number, maybe one half of a pair
		}
		dst = append(dst, c)
		rest = rest[n+2:]
	}
	dst, _ = jsontext.AppendUnquote(dst[:before], v)
	return dst
}

// unescaped are the characters that have an escape of two bytes.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
