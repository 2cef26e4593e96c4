package rawjson

// maxNesting is how deep values may lie in one another; deeper ones are no JSON
// that anybody sends.
const maxNesting = 10_000

// Valid reports whether b is exactly one JSON value (RFC 8259), white space around
// it allowed. Invalid UTF-8, lone surrogates and repeated names are let pass:
// broken text is no reason to lose an answer.
//
// Every byte that is read is looked at here first, so that it looks at eight at a
// time within strings, which most of it is.
func Valid(b []byte) bool {
	var few [64]byte
	open := few[:0] // the brackets that are open
	i := space(b, 0)
	for {
		// A value begins here.
		if i == len(b) {
			return false
		}
		switch c := b[i]; c {
		case '{', '[':
			if len(open) == maxNesting {
				return false
			}
			open = append(open, c)
			i = space(b, i+1)
			if i < len(b) && b[i] == c+2 { // '}' and ']' lie two behind
				break // it is empty: its end is read below
			}
			if c == '{' {
				if i = validName(b, i); i < 0 {
					return false
				}
			}
			continue
		case '"':
			if i = validString(b, i); i < 0 {
				return false
			}
		case 't':
			i = validWord(b, i, "true")
		case 'f':
			i = validWord(b, i, "false")
		case 'n':
			i = validWord(b, i, "null")
		default:
			i = validNumber(b, i)
		}
		if i < 0 {
			return false
		}
		// A value has ended, or is about to.
	ends:
		for {
			i = space(b, i)
			if len(open) == 0 {
				return i == len(b)
			}
			if i == len(b) {
				return false
			}
			in := open[len(open)-1]
			switch b[i] {
			case in + 2:
				open = open[:len(open)-1]
				i++
			case ',':
				i = space(b, i+1)
				if in == '{' {
					if i = validName(b, i); i < 0 {
						return false
					}
				}
				break ends
			default:
				return false
			}
		}
	}
}

// validName passes over a name with its colon, and gives where the value begins;
// -1 if there is none.
func validName(b []byte, i int) int {
	if i == len(b) || b[i] != '"' {
		return -1
	}
	if i = validString(b, i); i < 0 {
		return -1
	}
	if i = space(b, i); i == len(b) || b[i] != ':' {
		return -1
	}
	return space(b, i+1)
}

// validString passes over the string that begins at i.
func validString(b []byte, i int) int {
	for i++; ; {
		i += plainPrefix(b[i:])
		if i >= len(b)-1 && (i == len(b) || b[i] != '"') {
			return -1
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			if c := b[i+1]; c == 'u' {
				if len(b) < i+6 || !hex(b[i+2]) || !hex(b[i+3]) || !hex(b[i+4]) || !hex(b[i+5]) {
					return -1
				}
				i += 6
			} else if unescaped[c] != 0 {
				i += 2
			} else {
				return -1
			}
		default:
			return -1 // a control character
		}
	}
}

func hex(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 5 }

func validWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// validNumber passes over the number that begins at i.
func validNumber(b []byte, i int) int {
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
