package agent

// markdownLine reads Markdown a rune at a time, as far as needed to tell where
// headings, list items, rows of tables, rules, indented lines and fenced code
// begin and end. It decides by how a line begins.
type markdownLine struct {
	kind lineKind
	// first is the rune that the line's marker is made of, count how often it
	// came, indent the width of the blanks before it.
	first         rune
	count, indent int
	// fence is what the open fence is made of and wide its length; 0 if none is open.
	fence rune
	wide  int
}

// lineKind is what a line has been so far.
type lineKind int

const (
	lineBlank  lineKind = iota // nothing but blanks
	lineMarker                 // a run of one rune that may be a marker
	lineNumber                 // digits
	lineFence                  // the line that opens a fence
	lineRest                   // the kind is known, and nothing that follows changes it
)

// next takes the next rune and reports that something begins with it that has
// nothing to do with what was before.
func (l *markdownLine) next(r rune) bool {
	blank := r == ' ' || r == '\t'
	switch {
	case r == '\n' || r == '\r':
		return l.end()
	case l.kind == lineBlank && blank:
		l.indent++
		if r == '\t' {
			l.indent += 3
		}
		return false
	case l.kind == lineBlank:
		return l.begin(r)
	case l.kind == lineMarker:
		return l.marker(r, blank)
	case l.kind == lineNumber:
		l.count++
		switch {
		case r == '.' || r == ')':
			l.kind, l.first, l.count = lineMarker, r, 1
		case r < '0' || r > '9' || l.count > 9:
			l.kind = lineRest
		}
	case l.kind == lineFence && r == l.fence && l.count == l.wide:
		l.count++
		l.wide++
	case l.kind == lineFence && r == '`' && l.fence == '`':
		// Code within the line, as no language's name has such a rune.
		l.kind, l.fence = lineRest, 0
	case l.kind == lineFence:
		l.count = 0
	}
	return false
}

// end ends the line, and with it perhaps a fenced block.
func (l *markdownLine) end() bool {
	closes := l.fence != 0 && l.kind == lineMarker && l.first == l.fence && l.count >= l.wide
	if closes {
		l.fence = 0
	}
	l.kind, l.first, l.count, l.indent = lineBlank, 0, 0, 0
	return closes
}

// begin takes the first rune of a line that is no blank.
func (l *markdownLine) begin(r rune) bool {
	l.kind = lineRest
	switch r {
	case '#', '-', '*', '+', '=', '_', '`', '~':
		l.kind, l.first, l.count = lineMarker, r, 1
	case '|', '•':
		return true
	default:
		if r >= '0' && r <= '9' {
			l.kind, l.count = lineNumber, 1
		}
		if r >= '─' && r <= '╿' { // box drawing
			return true
		}
	}
	return l.indent >= 4
}

// marker reads on in a run of marker runes.
func (l *markdownLine) marker(r rune, blank bool) bool {
	if l.fence != 0 {
		// Only a fence can follow here, and blanks after it.
		if r == l.first {
			l.count++
		} else if !blank {
			l.kind = lineRest
		}
		return false
	}
	if r == l.first {
		l.count++
		if l.count < 3 {
			return false
		}
		switch l.first {
		case '`', '~':
			l.kind, l.fence, l.wide = lineFence, r, l.count
			return true
		case '-', '=', '_', '*':
			l.kind = lineRest
			return true
		}
		return false
	}
	l.kind = lineRest
	switch l.first {
	case '#', '-', '*', '.', ')':
		return blank
	case '+':
		return blank || r == '-' || r == '='
	}
	return false
}
