// Package tui is the terminal of the agent: what is said and done as it
// happens, a line to type in, a line that tells how things stand.
//
//	run.go      the driver: terminal, clock, session, files
//	do.go       what the ui wants done; shell.go commands of the user's own
//	session.go  what the ui needs of a session; asker.go its questions
//	files.go    the files of a workspace; mention.go those that a text names
//	history.go  the inputs of before
//	model.go    the ui: everything that the screen depends on; pure
//	keys.go     what keys do; editor.go, complete.go, picker.go, dialog.go,
//	            commands.go
//	events.go   what the events of a turn do to the screen
//	view.go     the live part of the screen
//	block.go    the finished part; markdown.go, stream.go, text.go
//	screen.go   finished lines go into the terminal's own scrollback
//	line.go     the same for terminals that can only print lines
//
// What is finished is printed once, into the scrollback, where the terminal
// scrolls, searches and copies it; only what still changes is drawn again. The
// text of an attempt is finished when its answer is durable: until then it is
// in the live part, and a discarded one vanishes.
package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/mattn/go-isatty"

	"github.com/ninelives-ai/ninelives/agent"
)

// Config is what the terminal works with. Only Session, In and Out are needed;
// a command whose function is missing says so.
type Config struct {
	// Session is the conversation to begin with. Run closes it.
	Session Session
	// New opens another session, Resume takes one up by the beginning of its id.
	New    func(ctx context.Context) (Session, error)
	Resume func(ctx context.Context, id string) (Session, error)
	// Sessions lists the sessions that can be taken up, the newest first.
	Sessions func(ctx context.Context) ([]Listed, error)
	// Switch makes a model the one of the turns to come; changed is false if it
	// is already. Warnings are what is to be known about it. Models are the names
	// that are offered.
	Switch func(ctx context.Context, name string) (changed bool, warnings []string, err error)
	Models []string
	// Memory and MCP are the texts of the commands of these names, Permissions is
	// what the configuration says of them, beside the session's mode and rules.
	Permissions func(ctx context.Context) (string, error)
	Memory      func(ctx context.Context) (string, error)
	MCP         func(ctx context.Context) (string, error)
	// Asker is what the agent asks; nil if it asks nobody.
	Asker *Asker
	// Directory is the workspace: for @file, ! and /export.
	Directory string
	// History is the file of what was sent before; a draft of what was not is kept
	// beside it, for each process its own. Empty keeps neither.
	History string
	// Notices are shown at the start; one that begins with "! " is a warning.
	Notices []string
	// Env is the environment; nil means the process's.
	Env []string
	// In and Out are the terminal.
	In, Out *os.File
}

// Listed is a session that can be taken up.
type Listed struct {
	ID    string
	Title string
	// Note says when it was last used, and how it stands.
	Note string
}

// The clock of the screen: a frame is the least time between two drawings, a
// pulse between two changes of what only time changes.
const (
	frame = 33 * time.Millisecond
	pulse = 250 * time.Millisecond
)

// grace is how long a turn has for its end when the program quits.
const grace = 5 * time.Second

// ErrNoTerminal: In or Out is no terminal.
var ErrNoTerminal = errors.New("the terminal UI needs a terminal for input and output: use \"ninelives run\" without one")

// Run shows the session until the user leaves or the context ends, which is an
// error only if something failed. The terminal is restored in every case; a
// turn that runs is stopped, and its work is kept. It gives the id of the
// session that was left, if anything was said in it.
func Run(ctx context.Context, cfg Config) (left string, err error) {
	cfg.Env = append([]string(nil), cfg.Env...)
	if len(cfg.Env) == 0 {
		cfg.Env = os.Environ()
	}
	d := newDriver(ctx, cfg)
	defer func() {
		var ended error
		left, ended = d.end()
		err = cmp.Or(err, ended)
	}()
	if !isatty.IsTerminal(cfg.In.Fd()) || !isatty.IsTerminal(cfg.Out.Fd()) {
		return "", ErrNoTerminal
	}
	if term := environ(cfg.Env, "TERM"); runtime.GOOS != "windows" && (term == "dumb" || term == "") {
		return "", d.lines()
	}
	d.ui.paint.on = colorprofile.Detect(cfg.Out, cfg.Env) >= colorprofile.ANSI
	d.out = &screen{file: cfg.Out}
	d.program = tea.NewProgram(d,
		tea.WithInput(cfg.In), tea.WithOutput(d.out), tea.WithEnvironment(cfg.Env),
		tea.WithFPS(int(time.Second/frame)), tea.WithoutSignalHandler())
	d.tell = func(msg any) { d.program.Send(msg) }
	unwatch := context.AfterFunc(ctx, func() {
		go d.tell(shut{"the program was told to end"})
		time.AfterFunc(2*time.Second, d.program.Kill) // the terminal does not take what is written
	})
	defer unwatch()
	if cfg.Asker != nil {
		cfg.Asker.attach(d.tell)
		defer cfg.Asker.attach(nil)
	}
	_, err = d.program.Run()
	d.out.flush()
	switch {
	case d.failure != nil:
		return "", d.failure
	case ctx.Err() != nil || d.ui.quitting:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("the terminal has gone: %w", err)
	}
	return "", nil
}

func environ(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// driver does what the ui wants and tells it what comes of it. It is the
// program's model for Bubble Tea.
type driver struct {
	ctx     context.Context
	cfg     Config
	ui      ui
	out     *screen
	program *tea.Program
	tell    func(msg any)
	root    *os.Root // of the workspace; nil if it cannot be opened

	mu      sync.Mutex
	session Session
	branch  string
	cancel  context.CancelFunc // of the running turn
	over    chan struct{}      // closed when the running turn has ended
	shells  map[int]context.CancelFunc
	shellID int

	ticking  bool
	drafting bool
	drafts   drafts
	frame    tea.View
	failure  error
}

func newDriver(ctx context.Context, cfg Config) *driver {
	d := &driver{ctx: ctx, cfg: cfg, session: cfg.Session, shells: map[int]context.CancelFunc{}}
	d.ui.commands = slashCommands()
	d.ui.models = cfg.Models
	d.ui.now = time.Now()
	if cfg.Directory != "" {
		d.root, _ = os.OpenRoot(cfg.Directory) // without it, @file finds nothing
	}
	return d
}

// start shows what there is at the beginning. The size must be known.
func (d *driver) start() {
	draft := ""
	for _, n := range d.cfg.Notices {
		b := block{kind: blockNote, head: n}
		if warning, ok := strings.CutPrefix(n, "! "); ok {
			b = block{kind: blockWarning, head: warning}
		}
		d.ui.print(b)
	}
	if d.cfg.History != "" {
		items, err := loadHistory(d.cfg.History)
		if err != nil {
			d.ui.print(block{kind: blockWarning, head: "the history of inputs cannot be read: " + err.Error()})
		}
		d.ui.hist = history{items: items, at: len(items)}
		draft = takeDraft(d.cfg.History, d.cfg.Directory)
		d.drafts.set(draft)
	}
	if draft != "" {
		d.ui.ed.set(draft)
		d.ui.print(block{kind: blockNote, head: "what you had typed and not sent is in the input line again"})
	}
	d.branch = branch(d.cfg.Directory)
	d.ui.open(opened{standing: d.look(), blocks: recall(past(d.session))})
}

// look takes the present standing.
func (d *driver) look() standing {
	d.mu.Lock()
	s, branch := d.session, d.branch
	d.mu.Unlock()
	st := look(s)
	st.branch = branch
	return st
}

// Init implements tea.Model.
func (d *driver) Init() tea.Cmd { return nil }

// Update implements tea.Model. A mistake in the program ends it with a line,
// the terminal restored and nothing lost.
func (d *driver) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			d.failure = broken(r)
			cmd = tea.Quit
		}
	}()
	switch msg := msg.(type) {
	case tick:
		d.ticking = false
	case drafted:
		d.drafting = false
	case failed:
		d.failure = msg.err
		return d, tea.Quit
	case tea.WindowSizeMsg:
		if d.ui.w == 0 {
			d.ui.update(time.Now(), msg)
			d.start()
		}
	}
	effects := d.ui.update(time.Now(), msg)
	var cmds []tea.Cmd
	for _, e := range effects {
		cmds = append(cmds, d.command(e))
	}
	cmds = append(cmds, d.flush(), d.clock(), d.saveDraft())
	return d, tea.Batch(cmds...)
}

// flush hands finished lines to the screen, and has the whole frame drawn again
// below them. Telling the size does that with the next frame. To clear the
// screen would do it too, but first moves the cursor, as the renderer believes
// at once and the terminal learns with the next frame: lines that come in
// between would be put in the wrong place, and drawn over.
func (d *driver) flush() tea.Cmd {
	u := &d.ui
	if u.w == 0 || len(u.out) == 0 && !u.redraw {
		return nil
	}
	d.out.print(u.out, u.redraw)
	u.out, u.redraw = nil, false
	size := tea.WindowSizeMsg{Width: u.w, Height: u.h}
	return tea.Sequence(tea.Println(mark), func() tea.Msg {
		// What is told is what holds now: it may have changed meanwhile.
		if w, h, err := term.GetSize(d.out.Fd()); err == nil && w > 0 && h > 0 {
			size = tea.WindowSizeMsg{Width: w, Height: h}
		}
		return size
	})
}

// clock ticks while time changes what is shown.
func (d *driver) clock() tea.Cmd {
	if d.ticking || !d.ui.busy() {
		return nil
	}
	d.ticking = true
	return tea.Tick(pulse, func(time.Time) tea.Msg { return tick{} })
}

// drafted: the draft was saved.
type drafted struct{}

// failed: the program itself failed.
type failed struct{ err error }

// drafts keeps the unsent text in its file: always the latest, whoever writes.
type drafts struct {
	mu     sync.Mutex
	latest string
}

func (d *drafts) set(text string) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed = d.latest != text
	d.latest = text
	return changed
}

func (d *drafts) save(history, directory string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return saveDraft(history, directory, d.latest)
}

// saveDraft keeps what is typed and not sent, soon after it changed.
func (d *driver) saveDraft() tea.Cmd {
	if d.cfg.History == "" || d.drafting || d.ui.w == 0 || !d.drafts.set(d.ui.unsent()) {
		return nil
	}
	d.drafting = true
	return func() tea.Msg {
		d.drafts.save(d.cfg.History, d.cfg.Directory) // an unwritable disk is no reason to stop typing
		time.Sleep(pulse)
		return drafted{}
	}
}

// View implements tea.Model.
func (d *driver) View() (v tea.View) {
	defer func() {
		if r := recover(); r != nil {
			v = d.frame
			go d.tell(failed{broken(r)})
		}
	}()
	if d.ui.w == 0 {
		return tea.NewView("")
	}
	lines, cursor := d.ui.view()
	if d.ui.quitting { // what stays on the screen
		lines = nil
	}
	v = tea.NewView(strings.Join(lines, "\n"))
	if !d.ui.quitting {
		v.Cursor = tea.NewCursor(cursor.x, cursor.y)
		v.Cursor.Blink = false
	}
	d.frame = v
	return v
}

// broken says that the program made a mistake.
func broken(r any) error {
	return fmt.Errorf("the terminal UI made a mistake (%v) and had to end; the session is kept", oneLine(fmt.Sprint(r)))
}

// command makes a Bubble Tea command of what the ui wants done.
func (d *driver) command(effect any) tea.Cmd {
	switch effect.(type) {
	case quit:
		return tea.Quit
	case suspend:
		return tea.Suspend
	}
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = failed{broken(r)}
			}
		}()
		return d.do(effect)
	}
}

// end stops what runs, and keeps what was not sent. It gives the session's id
// if anything was said in it.
func (d *driver) end() (left string, err error) {
	d.mu.Lock()
	session, over, cancel := d.session, d.over, d.cancel
	for _, stop := range d.shells {
		stop()
	}
	d.mu.Unlock()
	if over != nil {
		session.Stop()
		select {
		case <-over:
		case <-time.After(grace):
			cancel()
			<-over
		}
	}
	if d.cfg.History != "" && d.ui.w > 0 {
		d.drafts.set(d.ui.unsent())
		if saved := d.drafts.save(d.cfg.History, d.cfg.Directory); saved != nil {
			err = fmt.Errorf("what you had typed could not be kept: %w", saved)
		}
	}
	if d.root != nil {
		d.root.Close()
	}
	if st := session.Status(); st.Turn > 0 || st.Waiting > 0 {
		left = session.ID()
	}
	return left, cmp.Or(err, session.Close())
}

// batch gathers the events of a turn, so that a frame's worth of them is one
// message. The turn never waits for the terminal.
type batch struct {
	mu    sync.Mutex
	list  []agent.Event
	armed bool
	send  sync.Mutex // one message at a time, in order
}

// add takes an event; flush is called within a frame.
func (b *batch) add(ev agent.Event, flush func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if out, ok := ev.(agent.Output); ok && len(b.list) > 0 {
		if last, ok := b.list[len(b.list)-1].(agent.Output); ok && last.Call == out.Call {
			last.Text += out.Text
			if len(last.Text) > 2*liveOutput {
				last.Text = strings.ToValidUTF8(last.Text[len(last.Text)-liveOutput:], "")
			}
			b.list[len(b.list)-1] = last
			return
		}
	}
	b.list = append(b.list, ev)
	if !b.armed {
		b.armed = true
		time.AfterFunc(frame, flush)
	}
}

func (b *batch) take() []agent.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list, b.armed = nil, false
	return list
}
