package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/agent"
)

// position is a place in the live part of the screen.
type position struct{ x, y int }

// inputWidth is the width of the editor: behind its mark.
func (u *ui) inputWidth() int { return max(u.columns()-2, 4) }

// view gives the live part of the screen: what is not finished yet, then the
// input and the status. What is finished stands above it, in the scrollback.
func (u *ui) view() ([]string, position) {
	bottom, cursor := u.bottomView()
	room := max(u.h-len(bottom)-1, 0)
	live := u.live(room)
	cursor.y += len(live)
	lines := append(live, bottom...)
	if over := len(lines) - u.h; over > 0 && u.h > 0 { // a very small screen keeps its end
		lines = lines[over:]
		cursor.y = max(cursor.y-over, 0)
	}
	return lines, cursor
}

// live gives what is not finished yet, at most room lines of it: the streamed
// text and the calls that run.
func (u *ui) live(room int) []string {
	t := u.turn
	if t == nil || room <= 0 {
		return nil
	}
	var below []string
	for _, c := range t.calls {
		if len(u.dialogs) > 0 && u.dialogs[0].question != nil && u.dialogs[0].question.Call == c.id && u.dialogs[0].question.Agent == "" {
			continue // the dialog shows it
		}
		below = append(below, u.callView(&c)...)
	}
	below = below[max(0, len(below)-room):]
	space := room - len(below)
	var above []string
	if text := strings.TrimSpace(t.typed); text != "" && !t.started {
		head, _ := lastLines(text, 5)
		above = append(above, hang(u.paint.cyan("›")+" ", wrap(visible(head), u.columns()-2), u.paint.dim)...)
	}
	want := space + u.scroll
	for i, p := range t.pieces {
		if p.thought {
			if i == len(t.pieces)-1 || u.details {
				above = append(above, u.thoughtView(p)...)
			}
			continue
		}
		if len(above) > 0 || u.said.spaced || len(u.said.blocks) > 0 {
			above = append(above, "")
		}
		above = append(above, p.stream.tail(want)...)
	}
	u.scroll = min(u.scroll, max(0, len(above)-space))
	above = above[:len(above)-u.scroll]
	return append(above[max(0, len(above)-space):len(above):len(above)], below...)
}

// thoughtView shows reasoning while it comes: folded to a line.
func (u *ui) thoughtView(p piece) []string {
	text := p.stream.source.String()
	head := u.paint.dim("∴ thinking: " + plural(len(text), "character"))
	if !u.details {
		return []string{head}
	}
	end, _ := lastLines(text, 6)
	return append([]string{head}, hang("  ", wrap(visible(end), u.columns()-2), u.paint.dim)...)
}

// callView shows a call that runs, and the last of its output.
func (u *ui) callView(c *liveCall) []string {
	w := u.columns()
	took := ""
	if d := u.now.Sub(c.began); d >= time.Second {
		took = u.paint.dim(" " + elapsed(d))
	}
	lines := []string{u.paint.amber("○") + " " + cut(c.line, w-2-width(took)) + took}
	rows := 3
	if u.details {
		rows = 10
	}
	if text := strings.TrimRight(plain(c.output), "\n "); text != "" {
		end, _ := lastLines(text, rows)
		shown := hardWrap(end, w-4)
		for _, l := range shown[max(0, len(shown)-rows):] {
			lines = append(lines, u.paint.dim("  │ "+l))
		}
	}
	return lines
}

// bottom gives the lines below the live text.
func (u *ui) bottom() []string {
	lines, _ := u.bottomView()
	return lines
}

// bottomView gives what stands below the live text: what the turn is at, what
// waits, a dialog or a list or the input, and the status.
func (u *ui) bottomView() (lines []string, cursor position) {
	w := u.columns()
	if line := u.activity(); line != "" {
		lines = append(lines, line)
	}
	lines = append(lines, u.chips()...)
	room := max(u.h-len(lines)-2, 3)
	switch {
	case len(u.dialogs) > 0:
		part, at := u.dialogView(max(room-1, 4))
		if at != nil {
			cursor = position{at.x, len(lines) + at.y}
			lines = append(lines, part...)
			break
		}
		lines = append(lines, part...)
		if !u.ed.empty() { // what is being typed stays in sight
			u.inputView(&lines, &cursor, 2)
		} else {
			cursor = position{0, len(lines) - 1}
		}
	case u.picker != nil:
		part, at := u.pickerView(min(room, 14))
		cursor = position{at.x, len(lines) + at.y}
		lines = append(lines, part...)
	default:
		if u.h >= 12 {
			lines = append(lines, u.paint.dim(strings.Repeat("─", w)))
		}
		u.inputView(&lines, &cursor, max(1, min(u.h/3, 10)))
		lines = append(lines, u.popupView(max(u.h-len(lines)-2, 1))...)
	}
	return append(lines, u.status()), cursor
}

// inputView adds the input line, at most most rows of it.
func (u *ui) inputView(lines *[]string, cursor *position, most int) {
	input, line, column := u.ed.view(u.inputWidth(), most)
	*cursor = position{column + 2, len(*lines) + line}
	for i, l := range input {
		mark := "  "
		if i == 0 {
			mark = u.paint.cyan("›") + " "
		}
		*lines = append(*lines, mark+l)
	}
}

// activity says what the turn is at, or what it waits for, and how long.
func (u *ui) activity() string {
	w := u.columns()
	t := u.turn
	switch {
	case t == nil && u.shells > 0:
		return u.paint.dim(cut(spinner(u.now)+" running your command · Esc stops it", w))
	case t == nil && !u.resumeAt.IsZero() && u.ed.text() == "r":
		return u.paint.dim(cut("resuming the turn · go on typing if that is not what you mean", w))
	case t == nil && u.now.Before(u.hintEnd):
		return u.paint.dim(cut(u.hint, w))
	case t == nil:
		return ""
	}
	what := "waiting for the model"
	color := u.paint.dim
	switch {
	case t.stopping:
		what = "stopping"
	case len(u.dialogs) > 0:
		what, color = "waiting for you", u.paint.amber
	case u.now.Before(t.until):
		what = fmt.Sprintf("%s, again in %s", t.cause, left(t.until.Sub(u.now)))
		if t.attempt > 1 {
			what += fmt.Sprintf(" (attempt %d)", t.attempt)
		}
		color = u.paint.amber
	case len(t.calls) == 1:
		name, _, _ := strings.Cut(t.calls[0].line, " ")
		what = "running " + name
	case len(t.calls) > 1:
		what = fmt.Sprintf("running %d calls", len(t.calls))
	case len(t.pieces) > 0 && t.pieces[len(t.pieces)-1].thought:
		what = "thinking"
	case len(t.pieces) > 0:
		what = "answering"
	}
	tail := " · " + elapsed(u.now.Sub(t.began)) + " · Esc interrupts"
	if t.stopping {
		tail = " · " + elapsed(u.now.Sub(t.began)) + " · Esc again does not wait"
	}
	line := spinner(u.now) + " " + what
	if room := w - width(line); room >= width(tail) {
		line += tail
	} else {
		short := " · " + elapsed(u.now.Sub(t.began))
		line = cut(line, max(w-width(short), 10)) + short
	}
	return color(cut(line, w))
}

// left writes what is left of a wait: never zero while it lasts.
func left(d time.Duration) string {
	return elapsed(max((d + time.Second - 1).Truncate(time.Second), time.Second))
}

// elapsed writes whole seconds: "4s", "3m05s".
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return brief(d)
}

var spins = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func spinner(now time.Time) string {
	return spins[int(now.UnixMilli()/pulse.Milliseconds())%len(spins)]
}

// chips show what waits: steered and queued inputs, output that goes with the
// next message.
func (u *ui) chips() []string {
	w := u.columns()
	var lines []string
	for _, q := range u.standing.queued {
		mark := "queued: "
		switch {
		case u.turn == nil:
			mark = "waits for a turn: "
		case q.via == agent.ViaSteer:
			mark = "goes into the turn: "
		}
		lines = append(lines, u.paint.dim(cut("▸ "+mark+oneLine(q.text), w)))
	}
	if n := len(u.context); n > 0 {
		lines = append(lines, u.paint.dim(cut("▸ with the next message: the output of "+plural(n, "command"), w)))
	}
	if most := max(u.h/5, 1); len(lines) > most {
		rest := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], u.paint.dim(cut(fmt.Sprintf("▸ %d inputs wait", rest), w)))
	}
	return lines
}

// status is the last line: model, mode, share of the window, cost, branch. What
// does not fit is left out from the end.
func (u *ui) status() string {
	s := &u.standing
	parts := []string{}
	add := func(text string) {
		if text = oneLine(text); text != "" {
			parts = append(parts, text)
		}
	}
	add(s.Model)
	add(string(s.Mode))
	if s.Window > 0 && s.Tokens > 0 {
		add(fmt.Sprintf("%s (%d%% of %s)", tokens(s.Tokens), s.Tokens*100/s.Window, tokens(s.Window)))
	} else if s.Tokens > 0 {
		add(tokens(s.Tokens) + " tokens")
	}
	if s.Cost > 0 {
		add(money(s.Cost))
	}
	add(s.branch)
	w := u.columns()
	line := ""
	for i, part := range parts {
		sep := ""
		if i > 0 {
			sep = " · "
		}
		if i == 0 {
			line = cut(part, max(w-12, 8))
			continue
		}
		if width(line+sep+part) > w {
			continue
		}
		line += sep + part
	}
	return u.paint.dim(line)
}

// tokens writes a number of tokens: 950, 12.3k, 1.0M.
func tokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1000), ".0") + "k"
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// money writes US dollars.
func money(d float64) string {
	if d < 0.995 {
		return fmt.Sprintf("$%.3f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}
