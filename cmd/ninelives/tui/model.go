package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ninelives-ai/ninelives/agent"
)

// ui is everything that the screen depends on. Its update takes a message and
// gives what is to be done; its view gives the live part of the screen. It has
// no clock, no terminal and no session: the driver has them (run.go).
type ui struct {
	w, h  int
	now   time.Time
	paint paint
	md    markdown

	standing standing
	ed       editor
	hist     history
	popup    popup
	files    []string // of the workspace, for completion; nil before they were listed
	listing  bool
	models   []string
	commands []command

	turn    *running
	sending []string // inputs on their way into the journal
	context []string // what goes with the next message: output of ! commands
	shells  int      // ! commands that run
	dialogs []dialog
	picker  *picker
	said    transcript
	// out are lines for the terminal's scrollback; the driver takes them.
	out []string
	// redraw: the screen is cleared before out is written.
	redraw  bool
	details bool
	scroll  int // lines that the live text is scrolled back
	hint    string
	hintEnd time.Time

	lastEsc, lastCtrlC, lastKey time.Time
	resumeAt                    time.Time // when an r that stands alone means resume; zero if there is none
	quitting                    bool
}

// What the driver tells the ui, beside keys and sizes.
type (
	// opened: another session is in view; blocks is the end of its history.
	opened struct {
		standing standing
		blocks   []block
		word     string
	}
	// events came of the running turn; standing is what it is now.
	events struct {
		list     []agent.Event
		standing standing
	}
	// turnOver: the turn has ended; err is for what no turn ends in.
	turnOver struct {
		err      error
		standing standing
	}
	// accepted: an input is durable, or err says why not; text is what was typed.
	accepted struct {
		text     string
		err      error
		standing standing
	}
	// told is what came of a command.
	told struct {
		blocks   []block
		standing *standing
	}
	// chosen opens a list.
	chosen struct{ picker picker }
	// typed puts text into the editor.
	typed struct{ text string }
	// listed are the files of the workspace.
	listed struct{ files []string }
	// asked: somebody's word is needed.
	asked struct{ dialog dialog }
	// withdrawn: it is not needed any more.
	withdrawn struct{ id int }
	// shellOver: a ! command has ended.
	shellOver struct {
		block   block
		context string
	}
	// tick: time has passed.
	tick struct{}
	// shut: the process has to end.
	shut struct{ why string }
)

// What the ui wants done. The driver does it and tells what came of it.
type (
	// send takes text to the model: a turn, or into the running one.
	send struct {
		text    string
		context []string
		via     agent.Via
	}
	goOn   struct{}            // go on with the last turn
	next   struct{}            // begin a turn with what waits
	stop   struct{ hard bool } // end the running turn
	answer struct {            // a dialog was answered
		id       int
		decision agent.Decision
		granted  bool
	}
	cycle    struct{}                    // the next permission mode
	do       struct{ name, args string } // a slash command
	shell    struct{ command string }    // a ! command
	remember struct{ text string }       // keep it in the history file
	list     struct{}                    // look for the files of the workspace
	suspend  struct{}
	quit     struct{}
)

// update takes a message in and gives what is to be done.
func (u *ui) update(at time.Time, msg any) []any {
	u.now = at
	switch msg := msg.(type) {
	case tick:
		return u.resume()
	case tea.WindowSizeMsg:
		return u.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return u.key(msg)
	case tea.PasteMsg:
		return u.paste(msg.Content)
	case opened:
		u.open(msg)
	case events:
		for _, ev := range msg.list {
			u.event(ev)
		}
		u.standing = msg.standing
	case turnOver:
		u.standing = msg.standing
		return u.over(msg.err)
	case accepted:
		if i := slices.Index(u.sending, msg.text); i >= 0 {
			u.sending = slices.Delete(u.sending, i, i+1)
		}
		u.standing = msg.standing
		if msg.err != nil {
			u.print(block{kind: blockError, head: "this could not be sent: " + msg.err.Error()})
			u.putBack(msg.text)
		} else if u.turn == nil && u.standing.Waiting > 0 { // it missed the end of the turn
			if u.standing.Failed == nil {
				return u.begin(next{}, "")
			}
			u.offer()
		}
	case told:
		for _, b := range msg.blocks {
			u.print(b)
		}
		if msg.standing != nil {
			u.standing = *msg.standing
		}
	case chosen:
		u.picker = &msg.picker
		u.picker.filter()
	case typed:
		u.putBack(msg.text)
	case listed:
		u.files, u.listing = msg.files, false
		u.complete()
	case asked:
		msg.dialog.since = at
		u.dialogs = append(u.dialogs, msg.dialog)
	case withdrawn:
		for i, d := range u.dialogs {
			if d.id == msg.id {
				u.dialogs = append(u.dialogs[:i:i], u.dialogs[i+1:]...)
				break
			}
		}
	case shellOver:
		u.shells--
		u.print(msg.block)
		if msg.context != "" {
			u.context = append(u.context, msg.context)
		}
	case shut:
		u.quitting = true
		u.print(block{kind: blockNote, head: msg.why})
		return []any{quit{}}
	}
	return nil
}

// print puts a block into the scrollback.
func (u *ui) print(b block) {
	u.printed(b, b.render(&u.md, u.paint, u.columns(), u.details))
}

// printed is print for a block that is rendered already.
func (u *ui) printed(b block, lines []string) {
	u.out = append(u.out, u.said.space(&b, lines)...)
	u.said.keep(b)
}

// columns is the width that text may take. The last column stays free: writing
// there makes some terminals wrap.
func (u *ui) columns() int { return max(u.w-1, 8) }

// resize draws everything again for another size of the terminal.
func (u *ui) resize(w, h int) []any {
	first := u.w == 0
	same := w == u.w && h == u.h
	u.w, u.h = w, h
	if first || same {
		return nil
	}
	u.repaint()
	return nil
}

// repaint clears the screen and writes the end of the transcript again.
func (u *ui) repaint() {
	if u.turn != nil {
		for _, p := range u.turn.pieces {
			if !p.thought {
				p.stream.add("", &u.md, u.columns(), u.paint.on)
			}
		}
	}
	u.redraw = true
	u.out = u.said.end(max(u.h-len(u.bottom())-1, 1), &u.md, u.paint, u.columns(), u.details)
}

// open shows another session.
func (u *ui) open(msg opened) {
	u.standing = msg.standing
	u.turn, u.context, u.scroll = nil, nil, 0
	for _, b := range msg.blocks {
		u.print(b)
	}
	if msg.word != "" {
		u.print(block{kind: blockNote, head: msg.word})
	}
	u.offer()
}

// offer shows how the last turn can be gone on with.
func (u *ui) offer() {
	e := u.standing.Failed
	if u.turn != nil || e == nil && u.standing.Waiting == 0 {
		return
	}
	if e == nil {
		u.print(block{kind: blockWarning, head: plural(u.standing.Waiting, "message") + " waiting that no turn has taken up – press r to begin"})
		return
	}
	why, kind := endLine(e)+" – ", blockWarning
	if n := len(u.said.blocks); n > 0 && oneLine(u.said.blocks[n-1].head) == endLine(e) {
		why = "" // it was just said
	}
	how := "press r to go on"
	switch {
	case e.FailedTurn:
		why, how, kind = "failed turn: "+endLine(e)+" – ", "press r to resume", blockError
	case e.Limit != "":
		how = "press r to go on with another full quota"
	case e.Reason == agent.ReasonCanceled:
		why, kind = "", blockNote
		how = "press r to go on with the turn that you stopped"
	}
	u.print(block{kind: kind, head: why + how})
}

// resumable reports that a key goes on with the last turn.
func (u *ui) resumable() bool {
	return u.turn == nil && (u.standing.Failed != nil || u.standing.Waiting > 0)
}

// alone is how long an r must stand alone in the input to mean resume: it may
// be the first letter of a sentence.
const alone = 500 * time.Millisecond

// resume goes on with the last turn if the r was meant so.
func (u *ui) resume() []any {
	if u.resumeAt.IsZero() || u.now.Before(u.resumeAt) {
		return nil
	}
	u.resumeAt = time.Time{}
	if !u.resumable() || u.ed.text() != "r" {
		return nil
	}
	u.ed.set("")
	return u.begin(goOn{}, "")
}

// begin starts a turn.
func (u *ui) begin(how any, text string) []any {
	u.turn = &running{began: u.now, typed: text}
	u.scroll = 0
	return []any{how}
}

// over ends a turn, and begins the next one if something was queued.
func (u *ui) over(err error) []any {
	stopped := u.turn != nil && u.turn.stopping
	if u.turn != nil {
		u.finished(err)
	}
	u.dialogs = nil
	if err == nil && !stopped && u.standing.Failed == nil && u.standing.Waiting > 0 {
		return append(u.begin(next{}, ""), list{})
	}
	u.offer()
	return []any{list{}}
}

// unsent is what was typed and is not durable yet.
func (u *ui) unsent() string {
	var parts []string
	if u.turn != nil && !u.turn.started && u.turn.typed != "" {
		parts = append(parts, u.turn.typed)
	}
	parts = append(parts, u.sending...)
	if text := u.ed.text(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n")
}

// putBack puts text into the editor that could not be sent, before what stands there.
func (u *ui) putBack(text string) {
	if rest := u.ed.text(); rest != "" && rest != text {
		text += "\n" + rest
	}
	u.ed.set(text)
}

// say shows a word beside the status for a few seconds.
func (u *ui) say(hint string) {
	u.hint, u.hintEnd = hint, u.now.Add(3*time.Second)
}

// busy reports that time changes what is shown.
func (u *ui) busy() bool {
	return u.turn != nil || u.shells > 0 || !u.resumeAt.IsZero() || u.now.Before(u.hintEnd) || len(u.dialogs) > 0
}
