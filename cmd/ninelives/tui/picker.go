package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// item is one thing to choose.
type item struct {
	text string // one line, safe
	note string
	// value is what choosing it means.
	value string
}

// picker is a list to choose from; what is typed narrows it.
type picker struct {
	title string
	items []item
	query string
	shown []item
	at    int
	// choose gives what is done with the chosen one.
	choose func(u *ui, value string) []any
	// find, if set, looks for items instead of narrowing.
	find func(query string) []item
}

// filter narrows the list to what holds all words of the query.
func (p *picker) filter() {
	if p.find != nil {
		p.shown = p.find(p.query)
	} else {
		words := strings.Fields(strings.ToLower(p.query))
		p.shown = nil
		for _, it := range p.items {
			text := strings.ToLower(it.text + " " + it.note)
			if containsAll(text, words) {
				p.shown = append(p.shown, it)
			}
		}
	}
	p.at = min(p.at, max(len(p.shown)-1, 0))
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// historyPicker searches what the user sent before.
func historyPicker(h *history, query string) *picker {
	p := &picker{title: "History", query: oneLine(query)}
	p.find = func(query string) []item {
		var items []item
		for _, text := range h.search(query) {
			items = append(items, item{text: oneLine(text), value: text})
			if len(items) == 200 {
				break
			}
		}
		return items
	}
	p.choose = func(u *ui, value string) []any {
		u.ed.set(value)
		u.hist.rest()
		return nil
	}
	p.filter()
	return p
}

// pickerKey moves in the list, narrows it, chooses.
func (u *ui) pickerKey(k tea.KeyPressMsg, name string) []any {
	p := u.picker
	switch name {
	case "esc", "alt+esc":
		u.picker = nil
		u.lastEsc = u.now.Add(-twice)
	case "up", "ctrl+p", "shift+tab":
		p.at = max(p.at-1, 0)
	case "down", "ctrl+n", "tab", "ctrl+r":
		p.at = min(p.at+1, max(len(p.shown)-1, 0))
	case "backspace", "ctrl+h":
		if c := cells(p.query); len(c) > 0 {
			p.query = strings.TrimSuffix(p.query, c[len(c)-1].text)
		}
		p.at = 0
		p.filter()
	case "ctrl+u":
		p.query, p.at = "", 0
		p.filter()
	case "enter", "kpenter":
		if len(p.shown) == 0 {
			return nil
		}
		u.picker = nil
		return p.choose(u, p.shown[p.at].value)
	default:
		if k.Text != "" {
			p.query += sanitize(k.Text)
			p.at = 0
			p.filter()
		}
	}
	return nil
}

// pickerView gives the lines of the list, at most room of them.
func (u *ui) pickerView(room int) ([]string, *position) {
	p, w := u.picker, u.columns()
	head := u.paint.bold(oneLine(p.title)) + " "
	lines := []string{cut(head+p.query, w)}
	cursor := &position{x: min(width(head+p.query), w), y: 0}
	space := max(room-2, 1)
	first := max(0, min(p.at-space/2, len(p.shown)-space))
	for i := first; i < min(first+space, len(p.shown)); i++ {
		lines = append(lines, itemLine(u.paint, p.shown[i], i == p.at, w))
	}
	if len(p.shown) == 0 {
		lines = append(lines, u.paint.dim("  nothing"))
	}
	foot := fmt.Sprintf("%d of %d · type to narrow · Enter chooses · Esc closes", min(p.at+1, len(p.shown)), len(p.shown))
	return append(lines, u.paint.dim(cut(foot, w))), cursor
}

// itemLine shows one thing to choose.
func itemLine(p paint, it item, chosen bool, w int) string {
	mark := "  "
	if chosen {
		mark = p.cyan("› ")
	}
	text := cut(it.text, w-2)
	line := text
	if chosen {
		line = p.bold(text)
	}
	if room := w - 2 - width(text) - 2; it.note != "" && room > 6 {
		line += p.dim("  " + cut(it.note, room))
	}
	return mark + line
}
