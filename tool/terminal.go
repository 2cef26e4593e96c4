package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// terminalKeep is how much of what a terminal shows is kept for reading.
const terminalKeep = 1 << 20

type terminalArguments struct {
	Action    string   `json:"action" jsonschema:"start, send, read, resize, stop or list"`
	ID        string   `json:"id,omitzero" jsonschema:"which terminal or job; all actions but start and list need it"`
	Command   string   `json:"command,omitzero" jsonschema:"start: what to run; default: a shell"`
	Directory string   `json:"directory,omitzero" jsonschema:"start: where, in the workspace"`
	Text      string   `json:"text,omitzero" jsonschema:"send: what to type; end a line with \\n"`
	Keys      []string `json:"keys,omitzero" jsonschema:"send: keys to press after the text: enter, tab, escape, backspace, up, down, left, right, ctrl-c, ctrl-d, ..."`
	WaitFor   string   `json:"wait_for,omitzero" jsonschema:"start, send, read: wait until this regular expression matches what is new"`
	Quiet     int      `json:"quiet_ms,omitzero" jsonschema:"start, send, read: wait until nothing was written for so many milliseconds; default 500"`
	Timeout   int      `json:"timeout,omitzero" jsonschema:"start, send, read: seconds to wait at most, 0 to 600; default 10"`
	Rows      int      `json:"rows,omitzero" jsonschema:"start, resize: default 24"`
	Cols      int      `json:"cols,omitzero" jsonschema:"start, resize: default 80"`
}

// console is a command that goes on between calls: in a terminal, or as a job
// in the background without one.
type console struct {
	id, command string
	tty         *os.File // nil for a job
	child       *child
	began       time.Time

	mu      sync.Mutex
	buf     []byte // the last of what it wrote
	total   int64  // what it wrote in all
	read    int64  // how far it was read
	changed chan struct{}
	// pending is what was typed of a line that is not ended.
	pending string
	closed  bool
}

func (c *console) write(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(c.buf, p...)
	if n := len(c.buf); n > 2*terminalKeep {
		c.buf = append([]byte(nil), c.buf[n-terminalKeep:]...)
	}
	c.total += int64(len(p))
	close(c.changed)
	c.changed = make(chan struct{})
}

// fresh is what was not read yet, and what was lost of it.
func (c *console) fresh() (text string, lost int64) {
	n := c.total - c.read
	if n > int64(len(c.buf)) {
		lost = n - int64(len(c.buf))
		n = int64(len(c.buf))
	}
	return string(c.buf[int64(len(c.buf))-n:]), lost
}

// terminalTool is run_terminal_command.
type terminalTool struct{ s *Shell }

func (t *terminalTool) Spec() Spec {
	return Spec{
		Tool: describe[terminalArguments]("run_terminal_command", "Terminals that stay open between calls, and background jobs. "+
			"start opens one and gives its id; send types into it; read gives what is new since it was last read; "+
			"stop ends it; list shows all. start, send and read wait until wait_for matches, or nothing is written for a while, or the time is over."),
		Polls:   true,
		Timeout: commandTimeoutMax + 30*time.Second,
	}
}

var keyCodes = map[string]string{
	"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"home": "\x1b[H", "end": "\x1b[F", "page-up": "\x1b[5~", "page-down": "\x1b[6~", "delete": "\x1b[3~", "space": " ",
}

func keyCode(key string) (string, error) {
	key = strings.ToLower(strings.TrimSpace(key))
	if code, ok := keyCodes[key]; ok {
		return code, nil
	}
	if letter, ok := strings.CutPrefix(key, "ctrl-"); ok && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z' {
		return string(letter[0] - 'a' + 1), nil
	}
	return "", fmt.Errorf("there is no key %q; the keys are enter, tab, escape, space, backspace, delete, up, down, left, right, home, end, page-up, page-down and ctrl-a to ctrl-z", visible.EscapedLine(key))
}

// typed works out what a send types: the bytes, the lines that it ends (to be
// judged) and what is pending after it. Text that is judged must be the text
// that is run: keys that edit a line are refused while one is pending.
func (c *console) types(a terminalArguments) (input string, lines []string, pending string, err error) {
	c.mu.Lock()
	pending = c.pending
	c.mu.Unlock()
	for _, r := range a.Text {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f) {
			return "", nil, "", errors.New("text holds control characters; press keys instead")
		}
	}
	if strings.Contains(a.Text, "\t") && c.tty != nil {
		return "", nil, "", errors.New("text holds a tab, which a terminal takes for completion; use spaces, or the key tab")
	}
	all := pending + a.Text
	if i := strings.LastIndexByte(all, '\n'); i >= 0 {
		lines = append(lines, all[:i])
		pending = all[i+1:]
	} else {
		pending = all
	}
	input = strings.ReplaceAll(a.Text, "\n", "\r")
	for _, key := range a.Keys {
		code, err := keyCode(key)
		if err != nil {
			return "", nil, "", err
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "enter", "ctrl-j", "ctrl-m":
			if pending != "" {
				lines = append(lines, pending)
			}
			pending = ""
		case "ctrl-c", "ctrl-d", "ctrl-z", "escape":
			if key != "escape" {
				pending = ""
			}
		case "space":
			pending += " "
		default:
			if pending != "" {
				return "", nil, "", fmt.Errorf("the key %s would change the line that was begun (%q); end it with enter or drop it with ctrl-c first", visible.EscapedLine(key), visible.EscapedLine(pending))
			}
		}
		input += code
	}
	if strings.TrimSpace(pending) != "" {
		lines = append(lines, pending)
	}
	return input, lines, pending, nil
}

func (t *terminalTool) check(raw []byte) (terminalArguments, *console, error) {
	a, err := arguments[terminalArguments](raw)
	if err != nil {
		return a, nil, err
	}
	switch {
	case a.Timeout < 0 || a.Timeout > int(commandTimeoutMax/time.Second):
		return a, nil, fmt.Errorf("timeout is %d seconds; it can be 0 to %d", a.Timeout, int(commandTimeoutMax/time.Second))
	case a.Quiet < 0 || a.Quiet > 600000:
		return a, nil, fmt.Errorf("quiet_ms is %d; it can be 0 to 600000", a.Quiet)
	case a.Rows < 0 || a.Rows > 500 || a.Cols < 0 || a.Cols > 1000:
		return a, nil, errors.New("a terminal has at most 500 rows and 1000 columns")
	case strings.ContainsRune(a.Command, 0):
		return a, nil, errors.New("the command holds a NUL character, which no shell can read")
	}
	if a.WaitFor != "" {
		if _, err := regexp.Compile(a.WaitFor); err != nil {
			return a, nil, fmt.Errorf("wait_for is not a regular expression: %s", visible.EscapedLine(err.Error()))
		}
	}
	switch a.Action {
	case "start", "list":
		return a, nil, nil
	case "send", "read", "resize", "stop":
	default:
		return a, nil, fmt.Errorf("there is no action %q; the actions are start, send, read, resize, stop and list", visible.EscapedLine(a.Action))
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	c := t.s.consoles[a.ID]
	if c == nil {
		return a, nil, fmt.Errorf("there is no terminal or job %q; list shows those that there are", visible.EscapedLine(a.ID))
	}
	if c.tty == nil && (a.Action == "send" || a.Action == "resize") {
		return a, nil, fmt.Errorf("%s is a background job: it has no terminal to type into; start one with run_terminal_command", a.ID)
	}
	return a, c, nil
}

func (t *terminalTool) Needs(raw []byte) ([]Need, error) {
	a, c, err := t.check(raw)
	if err != nil {
		return nil, err
	}
	switch a.Action {
	case "start":
		rel, _, err := t.s.directory(a.Directory)
		if err != nil {
			return nil, err
		}
		return []Need{{Kind: NeedExecute, Target: a.started(), Directory: rel}}, nil
	case "send":
		_, lines, _, err := c.types(a)
		if err != nil {
			return nil, err
		}
		// Where a shell has gone by now is where the line is run.
		dir := filepath.ToSlash(terminalDir(c.tty, int(c.child.pid.Load())))
		if rel, err := t.s.ws.Resolve(dir); err == nil {
			dir = rel
		}
		var needs []Need
		for _, line := range lines {
			if strings.TrimSpace(line) != "" {
				needs = append(needs, Need{Kind: NeedExecute, Target: line, Directory: dir})
			}
		}
		return needs, nil
	}
	return nil, nil
}

func (a terminalArguments) started() string {
	if strings.TrimSpace(a.Command) != "" {
		return a.Command
	}
	if program := shellProgram()[0]; strings.HasSuffix(program, "bash") {
		return "bash --noprofile --norc -i"
	}
	return "sh -i"
}

func (t *terminalTool) Run(ctx context.Context, call *Call) Result {
	a, c, err := t.check(call.Arguments)
	if err != nil {
		return ErrorResult(err.Error())
	}
	switch a.Action {
	case "start":
		return t.start(ctx, call, a)
	case "list":
		return t.s.list()
	case "send":
		input, _, pending, err := c.types(a)
		if err != nil {
			return ErrorResult(err.Error())
		}
		if _, err := c.tty.Write([]byte(input)); err != nil {
			return ErrorResult(c.id + " takes no input: " + c.state())
		}
		c.mu.Lock()
		c.pending = pending
		c.mu.Unlock()
		return c.wait(ctx, a)
	case "read":
		return c.wait(ctx, a)
	case "resize":
		rows, cols := a.size()
		if err := resizeTerminal(c.tty, rows, cols); err != nil {
			return ErrorResult("the terminal cannot be resized: " + visible.EscapedLine(cause(err).Error()))
		}
		return TextResult(fmt.Sprintf("%s has %d rows and %d columns", c.id, rows, cols))
	}
	stopped := make(chan struct{})
	go func() { c.child.stop(); close(stopped) }()
	<-stopped
	r := c.wait(ctx, terminalArguments{})
	t.s.mu.Lock()
	delete(t.s.consoles, c.id)
	t.s.mu.Unlock()
	r.Summary = "stopped " + c.id
	return r
}

func (a terminalArguments) size() (rows, cols int) {
	rows, cols = a.Rows, a.Cols
	if rows == 0 {
		rows = 24
	}
	if cols == 0 {
		cols = 80
	}
	return rows, cols
}

// maxConsoles is how many terminals and jobs there may be at once.
const maxConsoles = 32

// open starts a console and lists it.
func (s *Shell) open(call *Call, kind, command, dir string, rows, cols int) (*console, error) {
	s.mu.Lock()
	if len(s.consoles) >= maxConsoles {
		s.mu.Unlock()
		return nil, fmt.Errorf("there are %d terminals and jobs already; stop some first", maxConsoles)
	}
	s.started++
	c := &console{id: fmt.Sprintf("%s-%d", kind, s.started), command: command, changed: make(chan struct{}), began: time.Now()}
	s.mu.Unlock()
	var theirs *os.File
	var err error
	if kind == "terminal" {
		if c.tty, theirs, err = openTerminal(rows, cols); err != nil {
			return nil, fmt.Errorf("no terminal can be opened: %w", cause(err))
		}
	}
	c.child, err = s.start(call, command, dir, record{}, theirs, c.write)
	if theirs != nil {
		theirs.Close()
	}
	if err != nil {
		if c.tty != nil {
			c.tty.Close()
		}
		return nil, err
	}
	shown := make(chan struct{})
	if c.tty != nil {
		go func() {
			defer close(shown)
			buf := make([]byte, 32<<10)
			for {
				n, err := c.tty.Read(buf)
				if n > 0 {
					c.write(buf[:n])
				}
				if err != nil { // EIO: the other side is closed
					return
				}
			}
		}()
	} else {
		close(shown)
	}
	go func() {
		<-c.child.done
		select {
		case <-shown:
		case <-time.After(grace):
		}
		if c.tty != nil {
			c.tty.Close()
			<-shown
		}
		c.mu.Lock()
		c.closed = true
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}()
	s.mu.Lock()
	s.consoles[c.id] = c
	s.mu.Unlock()
	return c, nil
}

func (t *terminalTool) start(ctx context.Context, call *Call, a terminalArguments) Result {
	_, dir, err := t.s.directory(a.Directory)
	if err != nil {
		return ErrorResult(err.Error())
	}
	rows, cols := a.size()
	c, err := t.s.open(call, "terminal", a.started(), dir, rows, cols)
	if err != nil {
		return ErrorResult("the terminal was not started: " + visible.EscapedLine(err.Error()))
	}
	r := c.wait(ctx, a)
	r.Summary = fmt.Sprintf("started %s (%s)", c.id, visible.EscapedLine(c.command))
	return r
}

// background starts a job for run_command.
func (s *Shell) background(ctx context.Context, call *Call, command, dir string) Result {
	c, err := s.open(call, "job", command, dir, 0, 0)
	if err != nil {
		return ErrorResult("the job was not started: " + visible.EscapedLine(err.Error()))
	}
	r := c.wait(ctx, terminalArguments{Timeout: 2})
	r.Content = append(TextResult("Started "+c.id+". Read what it writes, and stop it, with run_terminal_command. Files that it changes are not tracked.\n").Content, r.Content...)
	r.Summary = fmt.Sprintf("started %s (%s)", c.id, visible.EscapedLine(command))
	return r
}

// wait waits as it is asked to, and gives what is new.
func (c *console) wait(ctx context.Context, a terminalArguments) Result {
	quiet := 500 * time.Millisecond
	if a.Quiet > 0 {
		quiet = time.Duration(a.Quiet) * time.Millisecond
	}
	limit := 10 * time.Second
	if a.Timeout > 0 {
		limit = time.Duration(a.Timeout) * time.Second
	}
	var pattern *regexp.Regexp
	if a.WaitFor != "" {
		pattern = regexp.MustCompile(a.WaitFor) // checked before
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	still := time.NewTimer(quiet)
	defer still.Stop()
	note := ""
	for waiting := true; waiting; {
		c.mu.Lock()
		text, _ := c.fresh()
		changed, closed := c.changed, c.closed
		c.mu.Unlock()
		if closed || pattern != nil && pattern.MatchString(plainOutput(text)) {
			break
		}
		silence := still.C
		if pattern != nil {
			silence = nil
		}
		select {
		case <-changed:
			still.Reset(quiet)
		case <-silence:
			waiting = false
		case <-over.C:
			waiting = false
			if pattern != nil {
				note = fmt.Sprintf("; wait_for did not match within %s", limit)
			}
		case <-ctx.Done():
			waiting = false
			note = "; the waiting was stopped"
		}
	}
	c.mu.Lock()
	text, lost := c.fresh()
	c.read = c.total
	c.mu.Unlock()
	text = plainOutput(text)
	if lost > 0 {
		text = fmt.Sprintf("[%s before this are lost: they were not read in time]\n", size(lost)) + text
	}
	if strings.TrimSpace(text) == "" {
		text = "(nothing new)"
	}
	return TextResult(strings.TrimRight(text, "\n") + "\n[" + c.id + ": " + c.state() + note + "]")
}

// state says in a few words whether it still runs.
func (c *console) state() string {
	select {
	case <-c.child.done:
	default:
		return "running"
	}
	end := c.child.end
	switch {
	case end.How == endedUnborn:
		return "not started: " + visible.EscapedLine(end.Error)
	case end.How != endedItself:
		return end.How
	case end.Signal != "":
		return "ended by " + end.Signal
	}
	return fmt.Sprintf("ended with exit code %d", end.Code)
}

func (s *Shell) list() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.consoles) == 0 {
		return TextResult("There are no terminals and no background jobs.")
	}
	var lines []string
	for _, c := range s.consoles {
		c.mu.Lock()
		unread := c.total - c.read
		c.mu.Unlock()
		lines = append(lines, fmt.Sprintf("%s: %s; %s unread; %s", c.id, c.state(), size(unread), visible.EscapedLine(c.command)))
	}
	slices.Sort(lines)
	return TextResult(strings.Join(lines, "\n"))
}
