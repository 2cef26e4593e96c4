package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// dialog asks for a person's word: on a call, or on another quota.
type dialog struct {
	id       int
	question *agent.Question
	grant    *agent.Ended
	since    time.Time
	// reason is being typed, to go with a no.
	reason *editor
	scroll int
}

// settle is how long a dialog has been there, and no key was typed, before it
// takes keys: what was meant for the input line must not answer it.
const settle = 400 * time.Millisecond

func (d *dialog) takes(now, lastKey time.Time) bool {
	return d.reason != nil || now.Sub(d.since) >= settle && now.Sub(lastKey) >= settle
}

// dialogKey answers the first dialog. The default is no. What is no answer is
// left to the input (done is false): so nothing of a line that is typed meanwhile is lost.
func (u *ui) dialogKey(k tea.KeyPressMsg, name string) (done bool, effects []any) {
	d := &u.dialogs[0]
	if d.reason != nil {
		switch name {
		case "enter", "kpenter":
			return true, u.answer(agent.Decision{Reply: agent.ReplyNo, Text: strings.TrimSpace(d.reason.text())}, false)
		case "esc":
			d.reason = nil
		default:
			if !d.reason.key(name, u.columns()) && k.Text != "" {
				d.reason.insert(k.Text)
			}
		}
		return true, nil
	}
	enter := name == "enter" || name == "kpenter"
	switch {
	case enter && !u.ed.empty():
		return false, nil
	case d.grant != nil && name == "y":
		return true, u.answer(agent.Decision{}, true)
	case d.grant != nil && (name == "n" || name == "esc" || enter):
		return true, u.answer(agent.Decision{}, false)
	case d.grant != nil:
		return u.picker != nil, nil
	case name == "y":
		return true, u.answer(agent.Decision{Reply: agent.ReplyOnce}, false)
	case name == "a" && d.question.Verdict.Offer != nil:
		return true, u.answer(agent.Decision{Reply: agent.ReplyAlways}, false)
	case name == "n":
		d.reason = &editor{}
	case enter:
		return true, u.answer(agent.Decision{Reply: agent.ReplyNo}, false)
	case name == "s", name == "esc":
		return true, u.answer(agent.Decision{Reply: agent.ReplyStop}, false)
	case name == "down":
		d.scroll++
	case name == "up":
		d.scroll = max(0, d.scroll-1)
	default:
		return u.picker != nil, nil // a list stands behind the dialog
	}
	return true, nil
}

func (u *ui) answer(decision agent.Decision, granted bool) []any {
	id := u.dialogs[0].id
	u.dialogs = u.dialogs[1:]
	if len(u.dialogs) > 0 {
		u.dialogs[0].since = u.now
	}
	return []any{answer{id: id, decision: decision, granted: granted}}
}

// dialogView gives the lines of the first dialog, at most room of them.
func (u *ui) dialogView(room int) (lines []string, cursor *position) {
	d, p, w := &u.dialogs[0], u.paint, u.columns()
	var head, keys []string
	var body []string
	if g := d.grant; g != nil {
		head = wrap(p.amber("?")+" "+p.bold("The guard stops the turn. Another full quota?"), w)
		body = wrap(visible(endLine(&g.End)), w-2)
		keys = []string{"[y] yes", "[n] no"}
	} else {
		q := d.question
		head = wrap(p.amber("?")+" "+p.bold("Allow "+oneLine(q.Name)+"?")+askedWhy(q), w)
		body = questionBody(q, p, w-2)
		keys = []string{"[y] once"}
		if o := q.Verdict.Offer; o != nil {
			keys = append(keys, "[a] always "+ruleLine(o))
		}
		keys = append(keys, "[n] no", "[s] stop")
	}
	if more := len(u.dialogs) - 1; more > 0 {
		head = append(head, p.dim(cut(fmt.Sprintf("  and %d more after this one", more), w)))
	}
	var foot []string
	at := 0
	switch {
	case d.reason != nil:
		var input []string
		var line, column int
		input, line, column = d.reason.view(w-2, 3)
		foot = append(foot, p.dim(cut("No. Why? (for the model to read; Enter sends, Esc goes back)", w)))
		for i, l := range input {
			mark := "  "
			if i == 0 {
				mark = p.amber("›") + " "
			}
			foot = append(foot, mark+l)
		}
		at = 1 + line
		cursor = &position{x: column + 2}
	case !d.takes(u.now, u.lastKey):
		foot = []string{p.dim(cut("… (keys still go to the input line)", w))}
	default:
		enter := "  Enter: no"
		if !u.ed.empty() {
			enter = "  Enter sends the line"
		}
		foot = wrap(strings.Join(keys, "  ")+p.dim(enter), w)
	}
	space := max(room-len(head)-len(foot), 1)
	if len(body) > space {
		space = max(space-1, 1)
		d.scroll = min(d.scroll, len(body)-space)
		hidden := len(body) - space
		part := indent(body[d.scroll : d.scroll+space])
		body = append(part, p.amber(cut(fmt.Sprintf("  … lines %d–%d of %d (PgUp, PgDn)", d.scroll+1, d.scroll+space, space+hidden), w)))
	} else {
		d.scroll = 0
		body = indent(body)
	}
	lines = append(append(append(lines, head...), body...), foot...)
	if cursor != nil {
		cursor.y = len(lines) - len(foot) + at
	}
	return lines, cursor
}

func askedWhy(q *agent.Question) string {
	why := oneLine(q.Verdict.Why)
	if q.Agent != "" {
		why = strings.TrimSpace("(subagent " + oneLine(q.Agent) + ") " + why)
	}
	if why != "" {
		return " " + why
	}
	return ""
}

// questionBody shows what a call would do: its diff, else its command, else its
// arguments. Nothing of it is left out.
func questionBody(q *agent.Question, p paint, w int) []string {
	if q.Diff != "" {
		return diffLines(q.Diff, p, w)
	}
	var lines []string
	for _, n := range q.Needs {
		mark := string(n.Kind)
		if n.Kind == tool.NeedExecute {
			mark = "$"
		}
		where := ""
		if n.Directory != "" && n.Directory != "." {
			where = "  (in " + n.Directory + ")"
		}
		lines = append(lines, hardWrap(visible(mark+" "+n.Target+where), w)...)
	}
	if len(lines) == 0 {
		lines = hardWrap(visible(string(q.Arguments)), w)
	}
	return lines
}

// ruleLine says what "always" would allow.
func ruleLine(r *tool.Rule) string {
	return strings.TrimSpace(oneLine(r.Tool) + " " + oneLine(r.Target))
}
