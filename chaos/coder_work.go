package chaos

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// carryOut works on one order as far as the results at hand allow. It reports
// false when a call has to be made first.
func (c *coder) carryOut(o order) bool {
	switch o.verb {
	case "replace":
		return c.replace(o)
	case "create", "write":
		return c.write(o)
	case "append":
		return c.append(o)
	case "delete":
		r, ok := c.use("delete", "I delete "+o.file+".", map[string]any{"path": o.file})
		return ok && c.told(r, "deleted "+o.file, "could not delete "+o.file)
	case "run":
		r, ok := c.use("run", "I run `"+o.text+"`.", map[string]any{"command": o.text})
		return ok && c.told(r, "ran `"+o.text+"`", "could not run `"+o.text+"`")
	case "list":
		r, ok := c.use("list", "I look at what is there.", map[string]any{"path": o.file})
		return ok && c.showed(r, "what is in "+o.file)
	case "find":
		arguments := map[string]any{"pattern": regexp.QuoteMeta(o.text)}
		if o.file != "" {
			arguments["path"] = o.file
		}
		r, ok := c.use("grep", "I look for it.", arguments)
		return ok && c.showed(r, "what there is of “"+shorten(o.text, 60)+"”")
	}
	return c.read(o)
}

// tell reports what came of an order.
func (c *coder) tell(good bool, format string, args ...any) bool {
	c.report = append(c.report, fmt.Sprintf(format, args...))
	c.failed = c.failed || !good
	return true
}

// told reports what a tool answered.
func (c *coder) told(r reply, done, not string) bool {
	if r.failed {
		return c.tell(false, "I %s: %s.", not, r.quoted())
	}
	return c.tell(true, "I %s: %s.", done, r.quoted())
}

// showed reports a result word for word, as far as it is short.
func (c *coder) showed(r reply, what string) bool {
	if r.failed {
		return c.tell(false, "I could not find out %s: %s.", what, r.quoted())
	}
	lines := strings.Split(strings.TrimRight(r.text, "\n"), "\n")
	const most = 40
	rest := ""
	if len(lines) > most {
		rest = fmt.Sprintf("\n  … and %d lines more", len(lines)-most)
		lines = lines[:most]
	}
	return c.tell(true, "This is %s, by %s:\n\n  ```\n  %s\n  ```%s", what, r.tool, strings.Join(lines, "\n  "), rest)
}

// did finds what a tool suggests in place of a wrong name.
var didYouMean = regexp.MustCompile("(?i)did you mean:? [\"'`“]?([^\\s\"'`”?]+)")

// open reads a file. Where the tool knows a better name, it reads that, once.
func (c *coder) open(file string) (content string, whole bool, name string, r reply, ok bool) {
	r, ok = c.use("read", "I read "+file+" first.", map[string]any{"path": file})
	if !ok {
		return
	}
	name = file
	if m := didYouMean.FindStringSubmatch(r.text); r.failed && m != nil && m[1] != file {
		name = strings.TrimRight(m[1], ".,")
		r, ok = c.use("read", r.quoted()+", so I read "+name+".", map[string]any{"path": name})
		if !ok {
			return
		}
	}
	content, whole = unnumbered(r.text)
	return
}

var numbered = regexp.MustCompile(`^\s*\d+(?:\t|→|: ?|\| ?)`)

// unnumbered takes the numbers from the lines that a tool showed of a file,
// and the notes in brackets that follow them. whole says that it was all of it.
func unnumbered(shown string) (content string, whole bool) {
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	whole = true
	for len(lines) > 0 {
		last := lines[len(lines)-1]
		if numbered.MatchString(last) || !strings.HasPrefix(last, "[") && last != "" {
			break
		}
		if strings.Contains(last, "offset") || strings.Contains(last, "lines ") || strings.Contains(last, "truncated") {
			whole = false
		}
		lines = lines[:len(lines)-1]
	}
	for _, l := range lines {
		if !numbered.MatchString(l) {
			return strings.Join(lines, "\n"), whole && !strings.Contains(shown, "truncated")
		}
	}
	for i, l := range lines {
		lines[i] = l[len(numbered.FindString(l)):]
		if strings.Contains(l, "[the line is cut") {
			whole = false
		}
	}
	return strings.Join(lines, "\n"), whole
}

func (c *coder) replace(o order) bool {
	if o.file == "" {
		return c.tell(false, "I do not know in which file I should replace “%s”.", shorten(o.text, 60))
	}
	content, whole, file, r, ok := c.open(o.file)
	if !ok {
		return false
	}
	if r.failed {
		return c.tell(false, "I could not read %s, so I changed nothing: %s.", o.file, r.quoted())
	}
	if whole && !strings.Contains(content, o.text) {
		if o.with != "" && strings.Contains(content, o.with) {
			return c.tell(true, "%s has “%s” already and no “%s”; I changed nothing.", file, shorten(o.with, 60), shorten(o.text, 60))
		}
		return c.tell(false, "“%s” does not stand in %s; I changed nothing.", shorten(o.text, 60), file)
	}
	arguments := map[string]any{"path": file, "old": o.text, "new": o.with}
	t, _ := c.tool("edit")
	_, all := t.has("all")
	if all && strings.Count(content, o.text) > 1 {
		arguments["all"] = true
	}
	r, ok = c.use("edit", fmt.Sprintf("I replace “%s” in %s.", shorten(o.text, 60), file), arguments)
	if !ok {
		return false
	}
	if r.failed && all && arguments["all"] == nil && notUnique.MatchString(r.text) {
		arguments["all"] = true
		if r, ok = c.use("edit", r.quoted()+", so I replace all of them.", arguments); !ok {
			return false
		}
	}
	return c.told(r, fmt.Sprintf("replaced “%s” with “%s” in %s", shorten(o.text, 60), shorten(o.with, 60), file), "could not change "+file)
}

var notUnique = regexp.MustCompile(`(?i)unique|more than once|several times|\d+ (times|places|matches|occurrences)|replace_all`)

// write makes a file. It looks whether there is one: what is there is not
// overwritten when a new one is wanted, and read first where it may be.
func (c *coder) write(o order) bool {
	there := false
	if _, can := c.tool("list"); can {
		dir := path.Dir(o.file)
		r, ok := c.use("list", "I look whether there is a "+o.file+".", map[string]any{"path": dir})
		if !ok {
			return false
		}
		there = !r.failed && names(r.text, path.Base(o.file))
	}
	if there {
		content, whole, _, r, ok := c.open(o.file)
		switch {
		case !ok:
			return false
		case r.failed:
			return c.tell(false, "I could not read %s, so I left it alone: %s.", o.file, r.quoted())
		case whole && content == strings.TrimSuffix(o.text, "\n"):
			return c.tell(true, "%s has exactly this text already; I changed nothing.", o.file)
		case o.verb == "create":
			return c.tell(false, "%s is there already, so I left it alone. To overwrite it, say: write \"…\" to %s.", o.file, o.file)
		}
	}
	r, ok := c.use("write", "I write "+o.file+".", map[string]any{"path": o.file, "content": ended(o.text)})
	return ok && c.told(r, "wrote "+o.file, "could not write "+o.file)
}

// ended is a text whose last line ends.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// names reports whether a listing has a name among its words.
func names(listing, name string) bool {
	for _, line := range strings.Split(listing, "\n") {
		for _, f := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,()[]\"'`", r) }) {
			if f == name || path.Base(f) == name {
				return true
			}
		}
	}
	return false
}

// append puts a text after the last lines of a file: as few of them as stand
// there once, so that the rest of it need not be known.
func (c *coder) append(o order) bool {
	content, whole, file, r, ok := c.open(o.file)
	switch {
	case !ok:
		return false
	case r.failed && noSuchFile.MatchString(r.text), !r.failed && strings.TrimSpace(content) == "":
		r, ok := c.use("write", "There is nothing in "+o.file+" yet, so I write it.", map[string]any{"path": o.file, "content": ended(o.text)})
		return ok && c.told(r, "wrote "+o.file, "could not write "+o.file)
	case r.failed:
		return c.tell(false, "I could not read %s, so I changed nothing: %s.", o.file, r.quoted())
	case !whole:
		return c.tell(false, "%s is too long: I have not seen its end, so I changed nothing.", file)
	}
	lines := strings.Split(strings.TrimRight(content, "\n"), "\n")
	from := len(lines) - 1
	tail := lines[from]
	for from > 0 && (strings.TrimSpace(tail) == "" || strings.Count(content, tail) != 1) {
		from--
		tail = strings.Join(lines[from:], "\n")
	}
	r, ok = c.use("edit", "I append to "+file+".", map[string]any{"path": file, "old": tail, "new": tail + "\n" + strings.TrimSuffix(o.text, "\n")})
	return ok && c.told(r, "appended to "+file, "could not append to "+file)
}

var noSuchFile = regexp.MustCompile(`(?i)no such file|not exist|not found|is no file|there is no`)

var declares = regexp.MustCompile(`^(func|type|class|def|package|module|import|fn|struct|interface|#+ )`)

// read shows a file, or tells of it what can be counted.
func (c *coder) read(o order) bool {
	content, whole, file, r, ok := c.open(o.file)
	if !ok {
		return false
	}
	if r.failed && o.verb != "list" && strings.Contains(r.text, "director") {
		r, ok = c.use("list", file+" is a directory, so I list it.", map[string]any{"path": file})
		return ok && c.showed(r, "what is in "+file)
	}
	if r.failed {
		return c.tell(false, "I could not read %s: %s.", o.file, r.quoted())
	}
	if o.verb != "explain" {
		return c.showed(r, file)
	}
	lines := strings.Split(content, "\n")
	about := fmt.Sprintf("%s has %d lines", file, len(lines))
	if !whole {
		about = fmt.Sprintf("The part of %s that I have seen has %d lines", file, len(lines))
	}
	var found []string
	for _, l := range lines {
		if declares.MatchString(l) && len(found) < 12 {
			found = append(found, "`"+strings.TrimSpace(shorten(strings.TrimRight(l, " {"), 80))+"`")
		}
	}
	if len(found) > 0 {
		about += ", among them " + strings.Join(found, ", ")
	}
	return c.tell(true, "%s. What it means I cannot say.", about)
}
