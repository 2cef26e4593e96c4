package tui

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/ninelives-ai/ninelives/tool"
)

// popup offers endings for what is being typed.
type popup struct {
	from  int // where what is replaced begins
	items []item
	at    int
	runs  bool // choosing carries the command out
	off   string
}

// popupRows is how many offers are shown at once.
const popupRows = 6

// complete looks for offers after every change of the text.
func (u *ui) complete() []any {
	text := u.ed.text()
	old := u.popup
	u.popup = popup{off: old.off}
	if u.popup.off != text {
		u.popup.off = ""
	} else if text != "" {
		return nil // closed for this text
	}
	if strings.HasPrefix(text, "/") && !strings.Contains(text, "\n") && u.ed.cursor == len(u.ed.cells) {
		u.completeCommand(text)
		return nil
	}
	word, from := u.ed.word()
	if !strings.HasPrefix(word, "@") {
		return nil
	}
	if u.files == nil {
		if u.listing {
			return nil
		}
		u.listing = true
		return []any{list{}}
	}
	u.popup.from = from
	if slices.ContainsFunc(u.files, func(f string) bool { return word == mention(f) }) {
		return nil // it is whole: Enter sends
	}
	for _, f := range matchFiles(u.files, strings.Trim(word[1:], `"`), 40) {
		u.popup.items = append(u.popup.items, item{text: oneLine(f), value: mention(f) + " "})
	}
	return nil
}

// completeCommand offers commands, and what can stand behind one.
func (u *ui) completeCommand(text string) {
	name, arg, behind := strings.Cut(text[1:], " ")
	if !behind {
		for _, c := range u.commands {
			if strings.HasPrefix(c.name, name) {
				it := item{text: "/" + c.name, note: c.help, value: "/" + c.name}
				if c.needs {
					it.value += " "
				}
				u.popup.items = append(u.popup.items, it)
			}
		}
		u.popup.runs = true
		return
	}
	u.popup.from = len(name) + 2
	u.popup.runs = true
	if arg == "" {
		u.popup.at = -1 // nothing is chosen yet: Enter means the command alone
	}
	var offers []string
	switch name {
	case "model":
		offers = u.models
	case "permissions":
		for _, m := range tool.Modes() {
			offers = append(offers, string(m))
		}
	}
	for _, o := range offers {
		if o != arg && strings.Contains(strings.ToLower(o), strings.ToLower(arg)) {
			u.popup.items = append(u.popup.items, item{text: oneLine(o), value: o})
		}
	}
}

// popupKey moves in the offers and takes one; false if the key means something else.
func (u *ui) popupKey(name string) (bool, []any) {
	p := &u.popup
	if p.at < 0 && (name == "enter" || name == "kpenter") {
		return false, nil
	}
	switch name {
	case "up", "ctrl+p":
		p.at = (max(p.at, 0) + len(p.items) - 1) % len(p.items)
	case "down", "ctrl+n":
		p.at = (p.at + 1) % len(p.items)
	case "esc":
		u.popup = popup{off: u.ed.text()}
	case "tab", "enter", "kpenter":
		it, runs := p.items[max(p.at, 0)], p.runs
		u.ed.replace(p.from, it.value)
		u.popup = popup{}
		if name != "tab" && runs && !strings.HasSuffix(it.value, " ") {
			return true, u.enter()
		}
		return true, u.complete()
	default:
		return false, nil
	}
	return true, nil
}

// popupView gives the lines of the offers, at most room of them.
func (u *ui) popupView(room int) []string {
	p := &u.popup
	rows := min(popupRows, room, len(p.items))
	if rows <= 0 {
		return nil
	}
	first := max(0, min(p.at-rows/2, len(p.items)-rows))
	lines := make([]string, 0, rows)
	for i := first; i < first+rows; i++ {
		lines = append(lines, itemLine(u.paint, p.items[i], i == p.at, u.columns()))
	}
	return lines
}

// mention writes a path so that it is read back as one.
func mention(file string) string {
	if strings.ContainsAny(file, " #\"") {
		return `@"` + file + `"`
	}
	return "@" + file
}

// matchFiles gives the files that a typed name may mean, best first: those
// whose name begins with it, holds it, whose path holds it, whose path has its
// letters in order.
func matchFiles(files []string, typed string, most int) []string {
	typed = strings.ToLower(typed)
	type match struct {
		file string
		rank int
	}
	var found []match
	for _, f := range files {
		lower := strings.ToLower(f)
		base := path.Base(lower)
		switch {
		case strings.HasPrefix(base, typed):
			found = append(found, match{f, 0})
		case strings.Contains(base, typed):
			found = append(found, match{f, 1})
		case strings.Contains(lower, typed):
			found = append(found, match{f, 2})
		case inOrder(lower, typed):
			found = append(found, match{f, 3})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.file), len(b.file)), cmp.Compare(a.file, b.file))
	})
	var out []string
	for _, m := range found[:min(most, len(found))] {
		out = append(out, m.file)
	}
	return out
}

func inOrder(text, letters string) bool {
	for _, r := range letters {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+len(string(r)):]
	}
	return true
}
