package tui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"github.com/ninelives-ai/ninelives/agent"
)

// lines is the ui for terminals that can only print lines (TERM=dumb): what is
// finished is printed, a line that is typed is sent, a question is answered by
// a line. /stop takes the place of Esc.
func (d *driver) lines() error {
	messages := make(chan any, 64)
	done := make(chan struct{})
	defer close(done)
	d.tell = func(msg any) {
		select {
		case messages <- msg:
		case <-done:
		}
	}
	if d.cfg.Asker != nil {
		d.cfg.Asker.attach(d.tell)
		defer d.cfg.Asker.attach(nil)
	}
	typed := make(chan string)
	go func() {
		defer close(typed)
		in := bufio.NewReader(d.cfg.In)
		for {
			line, err := in.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
				select {
				case typed <- line:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	w, _, err := term.GetSize(d.cfg.Out.Fd())
	if err != nil || w <= 0 {
		w = 80
	}
	l := &lineUI{driver: d, out: d.cfg.Out}
	d.ui.update(time.Now(), tea.WindowSizeMsg{Width: w, Height: 24})
	d.start()
	l.show()
	for !d.ui.quitting {
		var effects []any
		select {
		case <-d.ctx.Done():
			return l.err
		case msg := <-messages:
			if f, ok := msg.(failed); ok {
				return f.err
			}
			effects = d.ui.update(time.Now(), msg)
		case line, ok := <-typed:
			if !ok {
				return l.err
			}
			d.ui.now = time.Now()
			effects = l.line(line)
		}
		for _, e := range effects {
			if cmd := d.command(e); cmd != nil {
				go func() {
					if msg := cmd(); msg != nil {
						d.tell(msg)
					}
				}()
			}
		}
		l.show()
		if l.err != nil {
			return fmt.Errorf("the terminal has gone: %w", l.err)
		}
	}
	if l.ready {
		l.write("\n")
	}
	return nil
}

// lineUI tells the ui in lines.
type lineUI struct {
	*driver
	out    io.Writer
	err    error
	dialog int    // the one that was shown
	list   bool   // the list was shown
	cause  string // the wait that was told
	ready  bool   // the prompt stands there
}

// line takes a typed line in.
func (l *lineUI) line(text string) []any {
	l.ready = false
	u := &l.ui
	switch {
	case len(u.dialogs) > 0:
		return l.reply(strings.TrimSpace(text))
	case u.picker != nil:
		p := u.picker
		u.picker, l.list = nil, false
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > len(p.shown) {
			return nil
		}
		return p.choose(u, p.shown[n-1].value)
	case text == "r" && u.resumable():
		return u.begin(goOn{}, "")
	}
	u.ed.set(text)
	return u.enter()
}

// reply answers a dialog by a line: y, a, s, or n and a reason.
func (l *lineUI) reply(text string) []any {
	u := &l.ui
	d := &u.dialogs[0]
	word, reason, _ := strings.Cut(text, " ")
	switch {
	case d.grant != nil:
		return u.answer(agent.Decision{}, word == "y")
	case word == "y":
		return u.answer(agent.Decision{Reply: agent.ReplyOnce}, false)
	case word == "a" && d.question.Verdict.Offer != nil:
		return u.answer(agent.Decision{Reply: agent.ReplyAlways}, false)
	case word == "s":
		return u.answer(agent.Decision{Reply: agent.ReplyStop}, false)
	case word == "n":
		return u.answer(agent.Decision{Reply: agent.ReplyNo, Text: strings.TrimSpace(reason)}, false)
	}
	return u.answer(agent.Decision{Reply: agent.ReplyNo}, false)
}

// show prints what is new.
func (l *lineUI) show() {
	u := &l.ui
	u.redraw = false
	for _, line := range u.out {
		l.print(line)
	}
	u.out = nil
	if t := u.turn; t != nil && u.now.Before(t.until) && t.cause != l.cause {
		l.cause = t.cause
		l.print("… " + t.cause + ", again in " + left(t.until.Sub(u.now)))
	} else if t == nil {
		l.cause = ""
	}
	if len(u.dialogs) > 0 {
		if d := &u.dialogs[0]; d.id != l.dialog {
			l.dialog = d.id
			d.since = u.now.Add(-settle)
			lines, _ := u.dialogView(1 << 20)
			for _, line := range lines {
				l.print(line)
			}
			l.prompt("[n] ? ")
		}
		return
	}
	if p := u.picker; p != nil {
		if !l.list {
			l.list = true
			l.print(p.title)
			for i, it := range p.shown {
				l.print(fmt.Sprintf("%3d  %s  %s", i+1, it.text, it.note))
			}
			l.prompt("number? ")
		}
		return
	}
	if u.turn == nil && u.shells == 0 && !u.quitting {
		if text := u.ed.text(); text != "" { // put back, or a draft
			l.print("(not sent: " + oneLine(text) + ")")
			u.ed.set("")
		}
		l.prompt(oneLine(u.standing.Model) + "> ")
	}
}

func (l *lineUI) print(line string) {
	if l.ready {
		l.ready = false
		l.write("\n")
	}
	l.write(line + "\n")
}

func (l *lineUI) prompt(text string) {
	if !l.ready {
		l.write(text)
		l.ready = true
	}
}

func (l *lineUI) write(text string) {
	if _, err := io.WriteString(l.out, text); err != nil {
		l.err = errors.Join(l.err, err)
	}
}
