package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// do does what the ui wants, in a goroutine of its own, and gives what came of it.
func (d *driver) do(effect any) any {
	d.mu.Lock()
	session := d.session
	d.mu.Unlock()
	switch e := effect.(type) {
	case send:
		msg, notes := compose(d.root, e.text, e.context)
		for _, n := range notes {
			d.tell(told{blocks: []block{{kind: blockWarning, head: n}}})
		}
		switch e.via {
		case agent.ViaTurn:
			return d.turn(session, func(ctx context.Context) iter.Seq2[agent.Event, error] { return session.Turn(ctx, msg) })
		case agent.ViaSteer:
			_, err := session.Steer(d.ctx, msg)
			return accepted{text: e.text, err: err, standing: d.look()}
		}
		_, err := session.Queue(d.ctx, msg)
		return accepted{text: e.text, err: err, standing: d.look()}
	case goOn:
		return d.turn(session, session.Continue)
	case next:
		return d.turn(session, session.Next)
	case stop:
		d.stop(session, e.hard)
	case answer:
		if d.cfg.Asker != nil {
			d.cfg.Asker.answer(e)
		}
	case cycle:
		modes := tool.Modes()
		at := slices.Index(modes, session.Status().Mode)
		return d.mode(session, modes[(at+1)%len(modes)])
	case remember:
		if d.cfg.History != "" {
			if err := saveHistory(d.cfg.History, e.text); err != nil {
				return told{blocks: []block{{kind: blockWarning, head: "the history of inputs cannot be kept: " + err.Error()}}}
			}
		}
	case list:
		b := branch(d.cfg.Directory)
		d.mu.Lock()
		d.branch = b
		d.mu.Unlock()
		files := workspaceFiles(d.ctx, d.root)
		st := d.look()
		d.tell(told{standing: &st})
		return listed{files}
	case shell:
		return d.shell(e.command)
	case do:
		return d.slash(session, e)
	}
	return nil
}

// turn carries a turn out and tells its events.
func (d *driver) turn(session Session, begin func(context.Context) iter.Seq2[agent.Event, error]) any {
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.ctx)) // the end of the program is told by Stop
	over := make(chan struct{})
	d.mu.Lock()
	d.cancel, d.over = cancel, over
	d.mu.Unlock()
	b := &batch{}
	flush := func() {
		b.send.Lock()
		defer b.send.Unlock()
		if list := b.take(); len(list) > 0 {
			d.tell(events{list: list, standing: d.look()})
		}
	}
	err := drain(begin(ctx), func(ev agent.Event) { b.add(ev, flush) })
	cancel()
	close(over)
	flush()
	d.mu.Lock()
	d.over = nil
	d.mu.Unlock()
	return turnOver{err: err, standing: d.look()}
}

// drain reads a turn to its end. A mistake of the program's in the turn ends
// the turn and nothing else.
func drain(turn iter.Seq2[agent.Event, error], add func(agent.Event)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the turn broke (%v); its record is kept", oneLine(fmt.Sprint(r)))
		}
	}()
	for ev, e := range turn {
		if e != nil {
			return e
		}
		add(ev)
	}
	return nil
}

// stop ends the running turn and the user's own commands.
func (d *driver) stop(session Session, hard bool) {
	d.mu.Lock()
	cancel := d.cancel
	for _, stop := range d.shells {
		stop()
	}
	d.mu.Unlock()
	session.Stop()
	if hard && cancel != nil {
		cancel()
	}
}

func (d *driver) mode(session Session, m tool.Mode) any {
	if err := session.SetMode(d.ctx, m); err != nil {
		return failure("the permission mode stays", err)
	}
	st := d.look()
	return told{standing: &st}
}

// slash carries a slash command out.
func (d *driver) slash(session Session, e do) any {
	switch e.name {
	case "model":
		return d.model(e.args)
	case "new":
		if d.cfg.New == nil {
			return missing(e.name)
		}
		return d.change(session, "a new session", func() (Session, error) { return d.cfg.New(d.ctx) })
	case "resume", "sessions":
		return d.resume(session, e.args)
	case "compact":
		c, err := session.Compact(d.ctx)
		if err != nil {
			return failure("the context was not made smaller", err)
		}
		st := d.look()
		return told{blocks: []block{compactedBlock(c)}, standing: &st}
	case "undo", "redo":
		undo, verb := session.Undo, "undone"
		if e.name == "redo" {
			undo, verb = session.Redo, "done again"
		}
		u, err := undo(d.ctx)
		if errors.Is(err, agent.ErrNothing) {
			blocks := []block{{kind: blockNote, head: "this session has no file changes to " + e.name}}
			if left := u.Left(); left != "" {
				blocks = append(blocks, block{kind: blockWarning, head: left})
			}
			return told{blocks: blocks}
		}
		if err != nil {
			return failure("nothing was "+verb, err)
		}
		return told{blocks: undoBlocks(u, verb)}
	case "rewind":
		return d.rewind(session, e.args)
	case "permissions":
		if e.args != "" {
			m, err := modeNamed(e.args)
			if err != nil {
				return failure("the permission mode stays", err)
			}
			return d.mode(session, m)
		}
		return d.permissions(session)
	case "memory":
		return d.text(e.name, d.cfg.Memory)
	case "mcp":
		return d.text(e.name, d.cfg.MCP)
	case "export":
		return d.export(session, e.args)
	case "diff":
		return d.diff(session)
	}
	return missing(e.name)
}

func missing(name string) any {
	return told{blocks: []block{{kind: blockWarning, head: "/" + name + " is not set up here"}}}
}

func failure(what string, err error) any {
	kind := blockError
	if errors.Is(err, agent.ErrNothing) || errors.Is(err, agent.ErrBusy) {
		kind = blockWarning
	}
	return told{blocks: []block{{kind: kind, head: what + ": " + err.Error()}}}
}

func note(format string, args ...any) any {
	return told{blocks: []block{{kind: blockNote, head: fmt.Sprintf(format, args...)}}}
}

// text shows what a function of the configuration says.
func (d *driver) text(name string, say func(context.Context) (string, error)) any {
	if say == nil {
		return missing(name)
	}
	text, err := say(d.ctx)
	if err != nil {
		return failure("/"+name+" failed", err)
	}
	if strings.TrimSpace(text) == "" {
		text = "there is nothing to show"
	}
	return note("%s", strings.TrimRight(text, "\n"))
}

// model switches the model, or offers those that there are.
func (d *driver) model(name string) any {
	if d.cfg.Switch == nil {
		return missing("model")
	}
	if name == "" {
		if len(d.cfg.Models) == 0 {
			return note("the model is %s; /model NAME switches it", d.look().Model)
		}
		p := picker{title: "Model (now " + oneLine(d.look().Model) + "; /model NAME takes any)", choose: func(_ *ui, value string) []any { return []any{do{"model", value}} }}
		for _, m := range d.cfg.Models {
			p.items = append(p.items, item{text: oneLine(m), value: m})
		}
		return chosen{p}
	}
	changed, warnings, err := d.cfg.Switch(d.ctx, name)
	if err != nil {
		return failure("the model stays", err)
	}
	st := d.look()
	word := fmt.Sprintf("%s answers from the next turn on", oneLine(name))
	if !changed {
		word = fmt.Sprintf("%s is in use already", oneLine(name))
	}
	blocks := []block{{kind: blockNote, head: word}}
	for _, w := range warnings {
		blocks = append(blocks, block{kind: blockWarning, head: w})
	}
	return told{blocks: blocks, standing: &st}
}

// change puts another session in the place of this one, which is closed. If
// none can be had, this one stays.
func (d *driver) change(old Session, word string, open func() (Session, error)) any {
	s, err := open()
	if err != nil {
		return failure("this session stays", err)
	}
	d.mu.Lock()
	d.session = s
	d.mu.Unlock()
	closed := old.Close()
	msg := opened{standing: d.look(), blocks: recall(past(s)), word: word}
	if closed != nil {
		msg.blocks = append(msg.blocks, block{kind: blockWarning, head: "the session before was not closed well: " + closed.Error()})
	}
	return msg
}

// resume takes up an earlier session, or offers those that there are.
func (d *driver) resume(session Session, id string) any {
	if d.cfg.Resume == nil || d.cfg.Sessions == nil {
		return missing("resume")
	}
	if id != "" {
		if strings.HasPrefix(session.ID(), id) {
			return note("this session is the one")
		}
		return d.change(session, "session "+oneLine(id)+" again", func() (Session, error) { return d.cfg.Resume(d.ctx, id) })
	}
	sessions, err := d.cfg.Sessions(d.ctx)
	if err != nil {
		return failure("the sessions cannot be listed", err)
	}
	p := picker{title: "Sessions", choose: func(_ *ui, value string) []any { return []any{do{"resume", value}} }}
	for _, s := range sessions {
		if s.ID != session.ID() {
			p.items = append(p.items, item{text: oneLine(s.Title), note: oneLine(s.Note), value: s.ID})
		}
	}
	if len(p.items) == 0 {
		return note("there is no other session")
	}
	return chosen{p}
}

// rewind makes the model forget a turn and what came after, or offers the turns.
func (d *driver) rewind(session Session, args string) any {
	_, turns := past(session)
	turns = slices.DeleteFunc(slices.Clone(turns), func(t agent.Turn) bool { return t.Rewound })
	if args == "" {
		p := picker{title: "Back to before which message?", choose: func(_ *ui, value string) []any { return []any{do{"rewind", value}} }}
		for _, t := range slices.Backward(turns) {
			p.items = append(p.items, item{text: oneLine(said(t.Text)), note: fmt.Sprintf("turn %d", t.Number), value: strconv.Itoa(t.Number)})
		}
		if len(p.items) == 0 {
			return note("there is no message to go back to")
		}
		return chosen{p}
	}
	number, err := strconv.Atoi(args)
	at := slices.IndexFunc(turns, func(t agent.Turn) bool { return t.Number == number })
	if err != nil || at < 0 {
		return failure("nothing was rewound", fmt.Errorf("there is no turn %s: /rewind lists them", oneLine(args)))
	}
	if err := session.Rewind(d.ctx, number); err != nil {
		return failure("nothing was rewound", err)
	}
	st := d.look()
	d.tell(told{blocks: []block{{kind: blockNote,
		head: fmt.Sprintf("the model has forgotten everything from turn %d on; files are as they were left (/undo takes changes back)", number)}}, standing: &st})
	return typed{said(turns[at].Text)}
}

// permissions says what may be done without asking.
func (d *driver) permissions(session Session) any {
	text := "mode " + string(session.Status().Mode) + " (Shift-Tab or /permissions MODE changes it)"
	if d.cfg.Permissions != nil {
		configured, err := d.cfg.Permissions(d.ctx)
		if err != nil {
			return failure("/permissions failed", err)
		}
		text += "\n" + configured
	}
	if state := session.State(); state != nil {
		for _, r := range state.Rules() {
			text += "\n" + string(r.Action) + " " + ruleLine(&r) + " (you said so in this session)"
		}
	}
	return note("%s", text)
}

func undoBlocks(u agent.Undo, verb string) []block {
	var paths []string
	for _, c := range u.Changes { // a file that was changed twice is there twice
		if !slices.Contains(paths, c.Path) {
			paths = append(paths, c.Path)
		}
	}
	blocks := []block{{kind: blockNote, head: fmt.Sprintf("turn %d is %s: %s", u.Turn, verb, strings.Join(paths, ", "))}}
	if len(paths) == 0 {
		blocks[0].head = fmt.Sprintf("turn %d: no file was changed back", u.Turn)
	}
	if len(u.Conflicts) > 0 {
		blocks = append(blocks, block{kind: blockWarning, head: "left alone, because somebody changed them since: " + strings.Join(u.Conflicts, ", ")})
	}
	if left := u.Left(); left != "" {
		blocks = append(blocks, block{kind: blockWarning, head: left})
	}
	return blocks
}

// export writes the conversation to a new file of the workspace.
func (d *driver) export(session Session, name string) any {
	if d.root == nil {
		return missing("export")
	}
	messages, _ := past(session)
	if len(messages) == 0 {
		return note("there is nothing to write yet")
	}
	if name == "" {
		id := session.ID()
		name = "ninelives-" + id[:min(8, len(id))] + ".md"
	}
	f, err := d.root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return failure("nothing was written", fmt.Errorf("%s exists: /export FILE names another", oneLine(name)))
	}
	if err != nil {
		return failure("nothing was written", err)
	}
	_, err = f.WriteString(exported(session.ID(), messages))
	if err = errors.Join(err, f.Close()); err != nil {
		return failure("the conversation was not written whole", err)
	}
	return note("the conversation is in %s", name)
}

// exported writes a conversation in Markdown.
func exported(id string, messages []ninelives.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Session %s\n", id)
	for _, m := range messages {
		switch m.Role {
		case ninelives.RoleUser:
			fmt.Fprintf(&b, "\n## You\n\n%s\n", strings.TrimSpace(m.Text()))
		case ninelives.RoleAssistant:
			b.WriteString("\n## Assistant\n")
			if text := strings.TrimSpace(m.Text() + m.Refusal()); text != "" {
				fmt.Fprintf(&b, "\n%s\n", text)
			}
			for _, c := range m.ToolCalls() {
				fmt.Fprintf(&b, "\n`%s`\n\n%s", c.Name, fenced("json", c.Arguments))
			}
		case ninelives.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(ninelives.ToolResult); ok {
					fmt.Fprintf(&b, "\nResult of `%s`:\n\n%s", r.Name, fenced("", r.Text()))
				}
			}
		}
	}
	return b.String()
}

// fenced puts text between marks that it does not hold itself.
func fenced(kind, text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + kind + "\n" + strings.TrimRight(text, "\n") + "\n" + marks + "\n"
}

// diff shows what the session changed: against the last commit where there is
// git, else the names.
func (d *driver) diff(session Session) any {
	_, turns := past(session)
	var paths []string
	for _, t := range turns {
		for _, c := range t.Changes {
			if !t.Undone && !slices.Contains(paths, c.Path) {
				paths = append(paths, c.Path)
			}
		}
	}
	if len(paths) == 0 {
		return note("this session has changed no file")
	}
	slices.Sort(paths)
	b := block{kind: blockCall, head: plural(len(paths), "file") + " changed by this session", note: strings.Join(paths, ", ")}
	if diff := d.gitDiff(paths); diff != "" {
		b.diff = clip(diff)
		return told{blocks: []block{b}}
	}
	return note("%s: %s", b.head, b.note)
}

// gitDiff is how files differ from the last commit; one that git does not know
// is all new. It is empty where there is no git.
func (d *driver) gitDiff(paths []string) string {
	if d.root == nil {
		return ""
	}
	git := func(args ...string) string {
		// Nothing that the repository configures is run.
		cmd := exec.CommandContext(d.ctx, "git", append([]string{"-C", d.cfg.Directory, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
		cmd.Env = append(slices.Clone(d.cfg.Env), "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_LITERAL_PATHSPECS=1")
		out, _ := cmd.Output() // what differs is an exit status of 1
		return string(out)
	}
	show := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv"}
	diff := git(slices.Concat(show, []string{"HEAD", "--"}, paths)...)
	for _, p := range paths[:min(len(paths), 50)] {
		if _, err := d.root.Stat(filepath.FromSlash(p)); err == nil && git("ls-files", "--", p) == "" {
			diff += git(slices.Concat(show, []string{"--no-index", "--", os.DevNull, p})...)
		}
	}
	return diff
}
