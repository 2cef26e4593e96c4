package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ninelives-ai/ninelives/agent"
)

// twice is how long a second key of the same kind counts as the second.
const twice = 1500 * time.Millisecond

// key takes a key in.
func (u *ui) key(k tea.KeyPressMsg) []any {
	name := k.String()
	last := u.lastKey
	if k.Text != "" || name == "enter" {
		u.lastKey = u.now
	}
	if name != "ctrl+c" { // the second of two is the next key
		u.lastCtrlC = time.Time{}
	}
	if name != "esc" {
		u.lastEsc = time.Time{}
	}
	u.hintEnd = time.Time{}
	switch name {
	case "ctrl+c":
		return u.ctrlC()
	case "ctrl+z":
		return []any{suspend{}}
	case "ctrl+l":
		u.repaint()
		return nil
	case "ctrl+o":
		u.details = !u.details
		u.repaint()
		return nil
	case "pgup", "shift+up":
		u.scrollBy(u.h / 2)
		return nil
	case "pgdown", "shift+down":
		u.scrollBy(-u.h / 2)
		return nil
	case "shift+tab":
		return []any{cycle{}}
	}
	if len(u.dialogs) > 0 && u.dialogs[0].takes(u.now, last) {
		if done, effects := u.dialogKey(k, name); done {
			return effects
		}
	}
	if u.picker != nil {
		return u.pickerKey(k, name)
	}
	if len(u.popup.items) > 0 {
		if done, effects := u.popupKey(name); done {
			return effects
		}
	}
	switch name {
	case "enter", "kpenter":
		return u.enter()
	case "tab":
		if u.turn != nil {
			return u.submit(agent.ViaQueue)
		}
		return nil
	case "esc":
		return u.esc()
	case "alt+esc":
		u.lastEsc = u.now
		return u.esc()
	case "ctrl+d":
		if u.ed.empty() {
			return u.leave()
		}
		u.ed.delete()
	case "ctrl+r":
		if len(u.dialogs) > 0 { // it would open behind
			return nil
		}
		u.picker = historyPicker(&u.hist, u.ed.text())
		return nil
	case "up":
		if !u.ed.key("up", u.inputWidth()) {
			if text, ok := u.hist.back(u.ed.text()); ok {
				u.ed.set(text)
			}
		}
	case "down":
		if !u.ed.key("down", u.inputWidth()) {
			if text, ok := u.hist.forth(); ok {
				u.ed.set(text)
			}
		}
	default:
		if u.ed.key(name, u.inputWidth()) {
			break
		}
		if k.Text == "" {
			return nil
		}
		if name == "r" && u.ed.empty() && u.resumable() {
			u.resumeAt = u.now.Add(alone)
		}
		u.ed.insert(k.Text)
	}
	return u.complete()
}

// paste takes pasted text in.
func (u *ui) paste(text string) []any {
	switch {
	case u.picker != nil:
		u.picker.query += oneLine(text)
		u.picker.filter()
	case len(u.dialogs) > 0 && u.dialogs[0].reason != nil:
		u.dialogs[0].reason.insert(oneLine(text))
	default:
		u.ed.paste(text)
		return u.complete()
	}
	return nil
}

// esc closes, interrupts, and twice rewinds.
func (u *ui) esc() []any {
	double := u.now.Sub(u.lastEsc) < twice
	u.lastEsc = u.now
	switch {
	case u.turn != nil:
		return u.interrupt()
	case u.shells > 0:
		return []any{stop{}}
	case double:
		u.lastEsc = time.Time{}
		return []any{do{name: "rewind"}}
	}
	u.say("Esc again goes back to an earlier message")
	return nil
}

// interrupt stops the running turn at once. A second time does not wait for it.
func (u *ui) interrupt() []any {
	hard := u.turn.stopping
	u.turn.stopping, u.turn.dropped = true, max(u.turn.dropped, len(u.standing.queued))
	return []any{stop{hard: hard}}
}

// ctrlC clears, interrupts, quits.
func (u *ui) ctrlC() []any {
	double := u.now.Sub(u.lastCtrlC) < twice
	u.lastCtrlC = u.now
	switch {
	case u.picker != nil:
		u.picker = nil
	case !u.ed.empty() && len(u.dialogs) == 0:
		u.hist.add(u.ed.text())
		text := u.ed.text()
		u.ed.set("")
		u.popup = popup{}
		u.hist.rest()
		return []any{remember{text}} // what was cleared by mistake is one key away
	case u.turn != nil || u.shells > 0:
		if u.turn == nil {
			return []any{stop{}}
		}
		return u.interrupt()
	case double:
		return u.leave()
	default:
		u.say("Ctrl-C again quits")
	}
	return nil
}

// leave ends the program.
func (u *ui) leave() []any {
	u.quitting = true
	return []any{quit{}}
}

// enter sends, or carries out what begins with / or !.
func (u *ui) enter() []any {
	text := u.ed.text()
	if before, ok := strings.CutSuffix(text, "\\"); ok && u.ed.cursor == len(u.ed.cells) {
		u.ed.set(before + "\n") // a terminal that has no other way to type a line end
		return nil
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return nil
	case trimmed == "r" && !u.resumeAt.IsZero():
		u.resumeAt = u.now
		return u.resume()
	case strings.HasPrefix(trimmed, "/") && isCommand(trimmed):
		u.took(text)
		return append([]any{remember{text}}, u.slash(trimmed)...)
	case strings.HasPrefix(trimmed, "!") && len(trimmed) > 1:
		u.took(text)
		u.shells++
		return []any{remember{text}, shell{strings.TrimSpace(trimmed[1:])}}
	case u.turn != nil:
		return u.submit(agent.ViaSteer)
	}
	return u.submit(agent.ViaTurn)
}

// isCommand tells a slash command from a path or a question about one.
func isCommand(text string) bool {
	name, _, _ := strings.Cut(text[1:], " ")
	return !strings.ContainsAny(name, "/.\n")
}

// took empties the editor after its text was taken.
func (u *ui) took(text string) {
	u.hist.add(text)
	u.ed.set("")
	u.hist.rest()
	u.popup = popup{}
}

// submit takes the text to the model.
func (u *ui) submit(via agent.Via) []any {
	text := u.ed.text()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	u.took(text)
	msg := send{text: text, context: u.context, via: via}
	u.context = nil
	if via == agent.ViaTurn {
		return append([]any{remember{text}}, u.begin(msg, text)...)
	}
	u.sending = append(u.sending, text)
	return []any{remember{text}, msg}
}

// scrollBy moves what is shown of the live text or of the dialog.
func (u *ui) scrollBy(lines int) {
	if len(u.dialogs) > 0 {
		d := &u.dialogs[0]
		d.scroll = max(0, d.scroll-lines)
		return
	}
	u.scroll = max(0, u.scroll+lines)
}
