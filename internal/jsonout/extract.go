package jsonout

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/kaptinlin/jsonrepair"
)

// extraction is what a text holds.
type extraction struct {
	values []candidate
	// cut says that a value begins that does not end.
	cut bool
	// broken is why a whole value could not be repaired.
	broken string
}

// candidate is one whole JSON value.
type candidate struct {
	json     string
	repaired bool
}

const (
	maxValues = 16   // values of one text that are looked at
	maxStarts = 64   // brackets that are tried as the beginning of one
	maxNested = 1000 // levels
)

// extract finds the JSON values of a text, in the order in which they are to
// be tried: the text as a whole, the inside of tool-call tags, the inside of
// code fences, whatever stands in the prose.
func extract(text string) extraction {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	text = afterThinking(text)
	if text == "" {
		return extraction{}
	}
	if whole(text) {
		return extraction{values: []candidate{{json: text}}}
	}
	var x extraction
	for _, region := range regions(text) {
		x.scan(region)
		if x.cut || len(x.values) > 0 {
			return x
		}
	}
	return x
}

// afterThinking leaves out thinking that was written into the answer.
func afterThinking(text string) string {
	if !strings.HasPrefix(text, "<think>") {
		return text
	}
	_, rest, _ := strings.Cut(text, "</think>")
	return strings.TrimSpace(rest)
}

// whole reports whether a text is one JSON value and nothing else.
func whole(text string) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// regions are the parts of a text where an answer may be, the likeliest first.
func regions(text string) []string {
	var out []string
	for rest := text; len(out) < maxValues; {
		_, inside, ok := strings.Cut(rest, "<tool_call>")
		if !ok {
			break
		}
		inside, rest, _ = strings.Cut(inside, "</tool_call>")
		out = append(out, inside)
	}
	return append(append(out, fences(text)...), text)
}

// fences are the insides of the code fences that may hold JSON. A fence stands
// at the head of a line; one that is not closed reaches to the end.
func fences(text string) []string {
	var out []string
	var body []string
	open, wanted := false, false
	for line := range strings.SplitSeq(text, "\n") {
		t := strings.TrimSpace(line)
		switch {
		case !open && strings.HasPrefix(t, "```"):
			label, rest, oneLine := strings.Cut(strings.TrimPrefix(t, "```"), "```")
			if oneLine && rest == "" {
				out = append(out, strings.TrimPrefix(label, "json"))
				continue
			}
			open, body = true, nil
			switch strings.ToLower(strings.TrimSpace(label)) {
			case "", "json", "jsonc", "json5", "jsonl", "javascript", "js":
				wanted = true
			default:
				wanted = strings.ContainsAny(label, "{[")
				body = append(body, strings.TrimPrefix(label, "json"))
			}
		case open && strings.HasPrefix(t, "```"):
			if wanted {
				out = append(out, strings.Join(body, "\n"))
			}
			open = false
		case open && strings.HasSuffix(t, "```") && balanced(strings.Join(append(body, strings.TrimSuffix(t, "```")), "\n")):
			if wanted {
				out = append(out, strings.Join(append(body, strings.TrimSuffix(t, "```")), "\n"))
			}
			open = false
		case open:
			body = append(body, line)
		}
	}
	if open && wanted {
		out = append(out, strings.Join(body, "\n"))
	}
	return out
}

// balanced reports that the value that begins a text ends in it.
func balanced(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && endOf(text) > 0
}

// scan collects the values of one region.
func (x *extraction) scan(region string) {
	region = strings.TrimSpace(region)
	if region != "" && whole(region) {
		x.add(region, false)
		return
	}
	starts := 0
	for i := 0; i < len(region) && starts < maxStarts && len(x.values) < maxValues; {
		j := strings.IndexAny(region[i:], "{[")
		if j < 0 {
			return
		}
		i += j
		starts++
		rest := region[i:]
		if end, err := strictEnd(rest); err == nil {
			x.add(rest[:end], false)
			i += end
			continue
		} else if errors.Is(err, io.ErrUnexpectedEOF) && looksLikeJSON(rest, true) {
			x.cut = true
			return
		}
		end := endOf(rest)
		switch {
		case end > 0 && looksLikeJSON(rest, false):
			x.mend(rest[:end])
			i += end
		case end == 0 && looksLikeJSON(rest, false):
			x.cut = true
			return
		default:
			i++
		}
	}
}

func (x *extraction) add(value string, repaired bool) {
	x.values = append(x.values, candidate{json: value, repaired: repaired})
	if call, ok := callArguments(value); ok {
		x.values = append(x.values, candidate{json: call, repaired: repaired})
	}
}

// mend repairs the syntax of a value that is whole.
func (x *extraction) mend(value string) {
	if depth(value) > maxNested {
		x.broken = "it is nested too deeply"
		return
	}
	if elided(value) {
		x.broken = "something is left out of it (...)"
		return
	}
	mended, err := jsonrepair.Repair(value)
	switch {
	case err != nil:
		x.broken = oneLine(err.Error())
	case !whole(mended):
		x.broken = "its syntax could not be repaired"
	default:
		x.add(strings.TrimSpace(mended), true)
	}
}

// callArguments gives the arguments of a value that is a written tool call: an
// object of a name and its arguments, and nothing else.
func callArguments(value string) (string, bool) {
	dec := decoder(value)
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return "", false
	}
	named, arguments := false, ""
	for dec.PeekKind() != '}' {
		t, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		key := t.String()
		v, err := dec.ReadValue()
		if err != nil {
			return "", false
		}
		switch key {
		case "name":
			named = v.Kind() == '"'
		case "arguments", "parameters":
			if v.Kind() != '{' {
				return "", false
			}
			arguments = string(v)
		default:
			return "", false
		}
	}
	return arguments, named && arguments != ""
}

func decoder(text string) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader([]byte(text)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// strictEnd is where the JSON value that begins text ends.
// io.ErrUnexpectedEOF says that the text ends before it, with nothing wrong so far.
func strictEnd(text string) (int, error) {
	dec := decoder(text)
	if _, err := dec.ReadValue(); err != nil {
		return 0, err
	}
	return int(dec.InputOffset()), nil
}

// looksLikeJSON tells a value from a bracket in prose by what follows it. A
// strict one has had no error up to the end of the text.
func looksLikeJSON(text string, strict bool) bool {
	rest := strings.TrimLeft(text[1:], " \t\r\n")
	if rest == "" {
		return strict
	}
	c := rest[0]
	if c == '"' || c == '\'' || c == '{' || c == '[' && text[0] == '[' {
		return true
	}
	if text[0] == '{' {
		if c == '}' || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || strings.HasPrefix(rest, "\u201c") {
			return true
		}
		name := strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-")
		return len(name) < len(rest) && strings.HasPrefix(strings.TrimLeft(name, " \t"), ":")
	}
	return strict && (c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n')
}

// endOf is where the value that begins text ends, by its brackets alone, in
// spite of loose syntax: single quotes, comments, raw line breaks. 0 means
// that it does not end.
func endOf(text string) int {
	var stack []byte
	structural := true // a quote here begins a string
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			if c == '\'' && !structural {
				continue
			}
			n := stringEnd(text[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
			structural = false
		case '{', '[':
			stack = append(stack, c)
			structural = true
		case '}', ']':
			open := byte('{')
			if c == ']' {
				open = '['
			}
			// A bracket of another kind was forgotten where this one closes.
			n := len(stack) - 1
			for n >= 0 && stack[n] != open {
				n--
			}
			if n < 0 {
				continue
			}
			stack = stack[:n]
			if n == 0 {
				return i + 1
			}
			structural = false
		case ',', ':':
			structural = true
		case '/':
			i += comment(text[i:])
		case ' ', '\t', '\r', '\n':
		default:
			structural = false
		}
	}
	return 0
}

// stringEnd is the length of the string that begins text; 0 if it has no end.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// comment is the length, less one, of the comment that begins text.
func comment(text string) int {
	switch {
	case strings.HasPrefix(text, "//"):
		if i := strings.IndexByte(text, '\n'); i > 0 {
			return i
		}
		return len(text) - 1
	case strings.HasPrefix(text, "/*"):
		if i := strings.Index(text, "*/"); i > 0 {
			return i + 1
		}
		return len(text) - 1
	}
	return 0
}

// elided reports that a value leaves something out by an ellipsis. To drop it,
// as a repair would, makes half a value look whole.
func elided(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += max(stringEnd(text[i:])-1, 0)
		case '/':
			i += comment(text[i:])
		default:
			if strings.HasPrefix(text[i:], "...") || strings.HasPrefix(text[i:], "…") {
				return true
			}
		}
	}
	return false
}

// depth counts the brackets that are open at once, at most.
func depth(text string) int {
	n, most := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			n++
			most = max(most, n)
		case '}', ']':
			n--
		}
	}
	return most
}
