package chaos

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// order is one thing that the user asks for.
type order struct {
	verb string // replace, create, write, append, delete, run, read, explain, list or find
	file string // or directory
	text string // what is written, replaced, run or looked for
	with string // what it is replaced with
}

// word is a piece of what the user said: a word without the punctuation after
// it, a quoted text, or the end of a line.
type word struct {
	s           string
	quoted      bool
	lineEnd     bool
	punctuation string
	start, end  int // in the source
}

// is reports whether it is one of these unquoted words.
func (w word) is(words ...string) bool {
	return !w.quoted && !w.lineEnd && slices.Contains(words, strings.ToLower(w.s))
}

// quotes are the pairs that enclose a text; a backslash escapes inside of the
// straight double ones alone.
var quotes = []struct{ open, close string }{{"```", "```"}, {`"`, `"`}, {"“", "”"}, {"`", "`"}, {"«", "»"}, {"'", "'"}}

// cutWords cuts a text into words.
func cutWords(s string) []word {
	var out []word
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			out = append(out, word{lineEnd: true, start: i, end: i + n})
			i += n
		case unicode.IsSpace(r):
			i += n
		default:
			if text, end, ok := quotedAt(s, i); ok {
				w := word{s: text, quoted: true, start: i}
				w.end, w.punctuation = punctuationAt(s, end)
				out, i = append(out, w), w.end
				continue
			}
			end := i
			for end < len(s) {
				r, n := utf8.DecodeRuneInString(s[end:])
				if unicode.IsSpace(r) {
					break
				}
				end += n
			}
			bare := strings.TrimRight(s[i:end], ",.;:!?)")
			if bare == "" { // "." is the directory
				bare = s[i:end]
			}
			out = append(out, word{s: bare, punctuation: s[i+len(bare) : end], start: i, end: end})
			i = end
		}
	}
	return out
}

func punctuationAt(s string, at int) (end int, punctuation string) {
	end = at
	for end < len(s) && strings.IndexByte(",.;:!?)", s[end]) >= 0 {
		end++
	}
	return end, s[at:end]
}

// quotedAt reads the quoted text that begins at i.
func quotedAt(s string, i int) (text string, end int, ok bool) {
	for _, q := range quotes {
		if !strings.HasPrefix(s[i:], q.open) {
			continue
		}
		from := i + len(q.open)
		for at := from; at < len(s); {
			if q.open == `"` && s[at] == '\\' && at+1 < len(s) {
				at += 2
				continue
			}
			if !strings.HasPrefix(s[at:], q.close) {
				at++
				continue
			}
			end = at + len(q.close)
			if q.open == "'" && end < len(s) && (unicode.IsLetter(rune(s[end])) || unicode.IsDigit(rune(s[end]))) {
				at++ // an apostrophe
				continue
			}
			text = s[from:at]
			switch q.open {
			case `"`:
				text = unescape(text)
			case "```": // a language may follow the fence
				if line, rest, found := strings.Cut(text, "\n"); found && len(strings.Fields(line)) <= 1 {
					text = rest
				}
			}
			return text, end, true
		}
		return "", 0, false
	}
	return "", 0, false
}

// unescape resolves the escapes that people type: \n, \t, \" and \\.
func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(s)
}

var verbs = map[string]string{
	"replace": "replace", "change": "replace", "substitute": "replace", "rename": "replace",
	"create": "create", "make": "create", "add": "add",
	"write": "write", "put": "write", "save": "write",
	"append": "append",
	"delete": "delete", "remove": "delete",
	"run": "run", "execute": "run",
	"read": "read", "show": "read", "open": "read", "cat": "read", "print": "read", "display": "read", "view": "read",
	"explain": "explain", "describe": "explain", "summarise": "explain", "summarize": "explain",
	"list": "list", "ls": "list",
	"find": "find", "search": "find", "grep": "find", "where": "find", "where's": "find",
	"what": "what", "what's": "what", "whats": "what", "in": "in", "look": "look",
}

// fillers may stand before the verb.
var fillers = strings.Fields("please kindly can could would will you now first second next finally also and i we want need like to just let's lets let us ok okay so hey help me")

// attached is what an agent adds below a message: files that it mentions, and
// the output of commands. It is no order, whatever stands in it.
var attached = regexp.MustCompile(`(?s)\n\n<(file path=|command ran-by=).*`)

// parseOrders reads the orders out of what the user said, and gives back the
// sentences that are none.
func parseOrders(s string) (orders []order, unknown []string) {
	s = attached.ReplaceAllString(s, "")
	for _, clause := range clauses(s) {
		whole := strings.TrimSpace(s[clause[0].start:clause[len(clause)-1].end])
		for len(clause) > 0 && clause[0].is(fillers...) {
			clause = clause[1:]
		}
		if o, ok := parseOrder(s, clause); ok {
			o.file = strings.TrimPrefix(o.file, "@")
			orders = append(orders, o)
		} else {
			unknown = append(unknown, whole)
		}
	}
	return orders, unknown
}

// clauses cuts what was said at the ends of lines and sentences, at "then",
// and where an "and" or a comma comes before another verb. A command to run
// goes on to the end of its line, or to "then".
func clauses(s string) [][]word {
	var out [][]word
	var now []word
	flush := func() {
		for len(now) > 0 && now[len(now)-1].is("and") {
			now = now[:len(now)-1]
		}
		if len(now) > 0 {
			out = append(out, now)
		}
		now = nil
	}
	all := cutWords(s)
	isVerb := func(i int) bool {
		for i < len(all) && all[i].is(fillers...) {
			i++
		}
		return i < len(all) && !all[i].quoted && !all[i].lineEnd && verbs[strings.ToLower(all[i].s)] != "" && !all[i].is("in", "what")
	}
	for i, w := range all {
		running := false
		for _, n := range now {
			if !n.is(fillers...) {
				running = n.is("run", "execute")
				break
			}
		}
		switch {
		case w.lineEnd, w.is("then"):
			flush()
			continue
		case !running && w.is("and") && isVerb(i+1):
			flush()
			continue
		}
		now = append(now, w)
		switch {
		case running:
		case strings.ContainsAny(w.punctuation, ".!?;"), strings.Contains(w.punctuation, ",") && isVerb(i+1) && !now[0].is("in"):
			flush()
		}
	}
	flush()
	return out
}

// parseOrder reads one clause.
func parseOrder(s string, c []word) (order, bool) {
	if len(c) == 1 && c[0].is("ls") {
		return order{verb: "list", file: "."}, true
	}
	if len(c) < 2 {
		return order{}, false
	}
	verb, rest := verbs[strings.ToLower(c[0].s)], c[1:]
	if c[0].quoted {
		return order{}, false
	}
	switch verb {
	case "in": // in FILE replace …
		if len(c) < 4 {
			return order{}, false
		}
		if o, ok := parseOrder(s, c[2:]); ok && o.verb == "replace" && o.file == "" {
			o.file = c[1].s
			return o, true
		}
	case "replace":
		return replaceOrder(s, rest)
	case "create", "add", "write", "append":
		return writeOrder(verb, s, rest)
	case "delete":
		named := slices.ContainsFunc(rest, func(w word) bool { return w.is("file") })
		rest = skip(rest, "the", "file", "called", "named")
		if len(rest) > 2 && rest[0].quoted && rest[1].is("from", "in") {
			return order{verb: "replace", text: rest[0].s, file: lastWord(rest[2:])}, true
		}
		if len(rest) == 1 && (named || rest[0].quoted || looksLikePath(rest[0].s)) {
			return order{verb: "delete", file: rest[0].s}, true
		}
	case "run":
		return runOrder(s, rest)
	case "read", "explain", "list", "what":
		return readOrder(verb, rest)
	case "look":
		switch {
		case rest[0].is("for"):
			return findOrder(rest[1:])
		case rest[0].is("at", "into", "in"):
			return readOrder("read", rest[1:])
		}
	case "find":
		return findOrder(rest)
	}
	return order{}, false
}

func replaceOrder(s string, c []word) (order, bool) {
	c = skip(c, "all", "every", "each", "the", "text", "word", "words", "string", "line", "occurrence", "occurrences", "of")
	by := slices.IndexFunc(c, func(w word) bool { return w.is("with", "by", "to", "into") })
	if by < 1 || by+1 >= len(c) {
		return order{}, false
	}
	o := order{verb: "replace"}
	old := c[:by]
	c = c[by+1:]
	for i := len(c) - 1; i > 0; i-- {
		if c[i].is("in", "inside", "of", "at") && i+1 < len(c) {
			o.file = lastWord(c[i+1:])
			c = c[:i]
			break
		}
	}
	var oldOK, newOK bool
	o.text, oldOK = textOf(old)
	o.with, newOK = textOf(c)
	return o, oldOK && newOK && o.text != ""
}

// textOf is a quoted text or a single word: several words without quotes are
// rather a wish than a text.
func textOf(c []word) (string, bool) {
	for _, w := range c {
		if w.quoted {
			return w.s, true
		}
	}
	if len(c) == 1 {
		return c[0].s, true
	}
	return "", false
}

// writeOrder reads what is written where: text before "to FILE", or FILE
// before "with text".
func writeOrder(verb, s string, c []word) (order, bool) {
	named := slices.ContainsFunc(c, func(w word) bool { return w.is("file") })
	c = skip(c, "a", "an", "the", "new", "empty", "file", "line", "lines", "text", "called", "named")
	if len(c) == 0 {
		return order{}, false
	}
	if to := lastIndex(c, "to", "into", "in"); c[0].quoted && to > 0 {
		file := skip(c[to+1:], "the", "a", "new", "end", "of", "file", "called", "named")
		if verb == "add" {
			verb = "append"
		}
		return order{verb: verb, text: c[0].s, file: firstWord(file)}, len(file) == 1
	}
	if verb == "append" {
		return order{}, false
	}
	if verb == "add" {
		verb = "create"
	}
	o := order{verb: verb, file: c[0].s}
	c = skip(c[1:], "with", "containing", "saying", "that", "says", "contains", "which", "the", "content", "contents", "text")
	o.text = joinWords(s, c)
	return o, (named || looksLikePath(o.file)) && (verb == "create" || len(c) > 0 && c[0].quoted)
}

func firstWord(c []word) string {
	if len(c) == 0 {
		return ""
	}
	return c[0].s
}

func runOrder(s string, c []word) (order, bool) {
	c = skip(c, "command")
	if len(c) == 0 || c[0].is("the", "a", "all", "my", "it", "this") {
		return order{}, false
	}
	if len(c) == 1 && c[0].quoted {
		return order{verb: "run", text: c[0].s}, true
	}
	command := strings.TrimRight(strings.TrimSpace(s[c[0].start:c[len(c)-1].end]), ",;")
	if last := c[len(c)-1]; last.punctuation == "." && last.s != "." && !last.quoted {
		command = strings.TrimSuffix(command, ".") // of the sentence
	}
	return order{verb: "run", text: command}, true
}

var project = []string{"project", "repository", "repo", "files", "folder", "directory", "workspace", "codebase", "here"}

func readOrder(verb string, c []word) (order, bool) {
	for _, w := range c {
		if w.quoted || looksLikePath(w.s) {
			if verb == "what" {
				verb = "explain"
			}
			return order{verb: verb, file: w.s}, true
		}
	}
	if slices.ContainsFunc(c, func(w word) bool { return w.is(project...) }) {
		return order{verb: "list", file: "."}, true
	}
	c = skip(c, "me", "us", "the", "file", "content", "contents", "of", "in", "directory")
	if len(c) == 1 && verb != "what" && !c[0].is("it", "this", "that", "yourself", "everything") {
		return order{verb: verb, file: c[0].s}, true
	}
	return order{}, false
}

func findOrder(c []word) (order, bool) {
	c = skip(c, "me", "for", "all", "the", "is", "are", "text", "word", "string", "uses", "use", "occurrences", "of", "every", "where")
	if len(c) == 0 {
		return order{}, false
	}
	o := order{verb: "find", text: c[0].s}
	if in := lastIndex(c, "in", "under"); in > 0 && in+1 < len(c) && !c[len(c)-1].is(project...) {
		o.file = lastWord(c[in+1:])
	}
	return o, o.text != ""
}

func looksLikePath(s string) bool {
	return strings.Contains(s, "/") || strings.Contains(s, ".") || s == "Makefile" || s == "Dockerfile" || s == "LICENSE"
}

// skip leaves out these words at the beginning.
func skip(c []word, words ...string) []word {
	for len(c) > 0 && c[0].is(words...) {
		c = c[1:]
	}
	return c
}

func lastIndex(c []word, words ...string) int {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].is(words...) {
			return i
		}
	}
	return -1
}

// lastWord is the name that stands at the end of "the file NAME".
func lastWord(c []word) string { return c[len(c)-1].s }

// joinWords is a quoted text, or else the words as they stand.
func joinWords(s string, c []word) string {
	for _, w := range c {
		if w.quoted {
			return w.s
		}
	}
	if len(c) == 0 {
		return ""
	}
	last := c[len(c)-1]
	return s[c[0].start : last.end-len(last.punctuation)]
}
