package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// The bounds of a command.
const (
	commandTimeout    = 2 * time.Minute
	commandTimeoutMax = 10 * time.Minute
)

type commandArguments struct {
	Command    string `json:"command" jsonschema:"the shell command"`
	Directory  string `json:"directory,omitzero" jsonschema:"where to run it, in the workspace; default: the workspace itself"`
	Timeout    int    `json:"timeout,omitzero" jsonschema:"seconds until it is stopped, 1 to 600; default 120"`
	Background bool   `json:"background,omitzero" jsonschema:"start it as a background job (a server, a watcher) and go on"`
}

func (a commandArguments) check() error {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return errors.New("the command is empty")
	case strings.ContainsRune(a.Command, 0):
		return errors.New("the command holds a NUL character, which no shell can read")
	case a.Timeout < 0 || time.Duration(a.Timeout)*time.Second > commandTimeoutMax:
		return fmt.Errorf("timeout is %d seconds; it can be 1 to %d (for longer work set background)", a.Timeout, int(commandTimeoutMax/time.Second))
	}
	return nil
}

// runCommandTool is run_command.
type runCommandTool struct{ s *Shell }

func (t *runCommandTool) Spec() Spec {
	return Spec{
		Tool: describe[commandArguments]("run_command", "Runs a shell command ("+shellName()+") and gives what it wrote and its exit code. "+
			"It has no input and no terminal; nothing of it outlives the call: what it leaves running is stopped. "+
			"For servers and watchers set background, and read and stop them with run_terminal_command."),
		Timeout: commandTimeoutMax + 30*time.Second,
	}
}

func (t *runCommandTool) Needs(raw []byte) ([]Need, error) {
	a, err := arguments[commandArguments](raw)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return nil, err
	}
	rel, _, err := t.s.directory(a.Directory)
	if err != nil {
		return nil, err
	}
	return []Need{{Kind: NeedExecute, Target: a.Command, Directory: rel}}, nil
}

// Preview shows the command.
func (t *runCommandTool) Preview(_ context.Context, raw []byte) (string, error) {
	a, err := arguments[commandArguments](raw)
	return visible.Escaped(a.Command), err
}

// commandMark is what Probe needs: the name of the record.
type commandMark struct {
	Record string `json:"record,omitzero"`
}

// Mark makes the record of the call.
func (t *runCommandTool) Mark(_ context.Context, call *Call) ([]byte, error) {
	a, err := arguments[commandArguments](call.Arguments)
	if err != nil || a.Background || t.s.opts.Records == "" || len(t.s.opts.Supervisor) == 0 {
		return json.Marshal(commandMark{})
	}
	rec, err := newRecord(t.s.opts.Records)
	if err != nil {
		return nil, fmt.Errorf("the record of the command cannot be made: %w", err)
	}
	t.s.mu.Lock()
	t.s.marks[callKey{call.Session, call.ID}] = rec
	t.s.mu.Unlock()
	return json.Marshal(commandMark{Record: filepath.Base(rec.dir)})
}

// Probe reads the record. A command that had not started never will: the
// probe takes the place of its start marker.
func (t *runCommandTool) Probe(ctx context.Context, call *Call, raw []byte) (Standing, Result) {
	var m commandMark
	a, err := arguments[commandArguments](call.Arguments)
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Record == "" || m.Record != filepath.Base(m.Record) || strings.HasPrefix(m.Record, ".") || t.s.opts.Records == "" {
		return unknownCommand("nobody recorded what became of it", "")
	}
	rec := record{dir: filepath.Join(t.s.opts.Records, m.Record)}
	if _, err := os.Stat(rec.dir); err != nil {
		return unknownCommand("its record is no longer there", "")
	}
	start, ours, err := rec.claim()
	if ours {
		start.Close()
		return StandingNotStarted, ErrorResult("the command was never started")
	}
	if err == nil {
		start, err = os.Open(rec.path("start"))
	}
	if err != nil {
		return unknownCommand("its record cannot be read: "+visible.EscapedLine(cause(err).Error()), "")
	}
	defer start.Close()
	// Its supervisor may still be stopping it.
	wait, cancel := context.WithTimeout(ctx, 4*grace)
	defer cancel()
	gone := rec.waitSupervisor(start, wait.Done())
	end, ended := rec.ended()
	switch {
	case ended && end.How == endedItself:
		r := commandResult(a, end, rec.output(), "")
		return StandingDone, r
	case ended && end.How == endedUnborn:
		return StandingDone, commandResult(a, end, "", "")
	case ended:
		return unknownCommand("it was "+end.How, rec.output())
	case !gone:
		return unknownCommand("it is still running under its supervisor", rec.output())
	}
	return unknownCommand("it was cut off, and its supervisor with it", rec.output())
}

func unknownCommand(why, output string) (Standing, Result) {
	text := "it is unknown what the command did: " + why
	if output = plainOutput(output); output != "" {
		text += "\nIt had written:\n" + output
	}
	r := ErrorResult(text)
	r.Unknown = true
	return StandingUnknown, r
}

func (t *runCommandTool) Run(ctx context.Context, call *Call) Result {
	a, err := arguments[commandArguments](call.Arguments)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return ErrorResult(err.Error())
	}
	_, dir, err := t.s.directory(a.Directory)
	if err != nil {
		return ErrorResult(err.Error())
	}
	if a.Background {
		return t.s.background(ctx, call, a.Command, dir)
	}
	t.s.mu.Lock()
	rec := t.s.marks[callKey{call.Session, call.ID}]
	delete(t.s.marks, callKey{call.Session, call.ID})
	// A command runs when what came of the one before it is durable: nobody
	// will ask for its record any more.
	over := t.s.over[call.Session]
	t.s.over[call.Session] = rec
	t.s.mu.Unlock()
	if over.dir != "" {
		_ = os.RemoveAll(over.dir) // what stays is swept when it is old
	}

	var r Result
	changes, trackErr := t.s.ws.Track(ctx, func() error {
		r = t.run(ctx, call, a, dir, rec)
		return nil
	})
	if r.Content == nil { // it was not run at all
		if err := ctx.Err(); err != nil {
			return ErrorResult("the command was not started: the call was stopped before")
		}
		return ErrorResult("the command was not started: the workspace could not be looked at: " + visible.EscapedLine(trackErr.Error()))
	}
	r.Changes = changes
	if trackErr != nil {
		r.Content = append(r.Content, TextResult("\n[note: "+visible.EscapedLine(trackErr.Error())+"]").Content...)
	}
	return r
}

// run runs the command to its end, to its time limit or until the call is stopped.
func (t *runCommandTool) run(ctx context.Context, call *Call, a commandArguments, dir string, rec record) Result {
	limit := commandTimeout
	if a.Timeout > 0 {
		limit = time.Duration(a.Timeout) * time.Second
	}
	var mu sync.Mutex
	out := both{half: maxOutput / 2}
	tell := teller{to: call.Output}
	c, err := t.s.start(call, a.Command, dir, rec, nil, func(p []byte) {
		mu.Lock()
		out.Write(p)
		mu.Unlock()
		tell.write(p)
	})
	if err != nil {
		return ErrorResult("the command was not started: " + visible.EscapedLine(err.Error()))
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	why := ""
	select {
	case <-c.done:
	case <-timer.C:
		why = fmt.Sprintf("it had not ended after %s (timeout)", limit)
	case <-ctx.Done():
		why = "the call was stopped"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			why = "the time for the call was over"
		}
	}
	if why != "" {
		c.stop()
	}
	<-c.done
	mu.Lock()
	defer mu.Unlock()
	end := c.end
	if why != "" && end.How == endedItself {
		why = "" // it ended by itself just before
	}
	return commandResult(a, end, out.String(), why)
}

// commandResult tells what came of a command. stopped says why it was.
func commandResult(a commandArguments, end ending, output, stopped string) Result {
	output = plainOutput(output)
	took := time.Duration(end.Took).Round(time.Millisecond)
	if took > 10*time.Second {
		took = took.Round(time.Second)
	}
	var notes []string
	if end.Left > 0 {
		notes = append(notes, fmt.Sprintf("%s it had left running were stopped (set background for what must go on)", plural(end.Left, "process")))
	}
	if end.Undead > 0 {
		notes = append(notes, fmt.Sprintf("%d of its processes could not be stopped and go on: they run as somebody else", end.Undead))
	}
	if end.Dropped > 0 {
		notes = append(notes, size(end.Dropped)+" of its output were not kept in its record")
	}
	if end.How != endedUnborn && end.Error != "" {
		notes = append(notes, visible.EscapedLine(end.Error))
	}
	body := output
	if strings.TrimSpace(output) == "" {
		body = "(no output)"
	}
	if len(notes) > 0 {
		body = strings.TrimRight(body, "\n") + "\n[" + strings.Join(notes, "; ") + "]"
	}
	command := visible.EscapedLine(cutLine(a.Command, len(a.Command), 80))
	var r Result
	switch {
	case end.How == endedUnborn:
		r = ErrorResult("the command was not started: " + visible.EscapedLine(end.Error))
		r.Summary = "could not start " + command
	case end.How == endedLost:
		r = ErrorResult("the command was cut off: its supervisor was killed. What it did until then is done. It had written:\n" + body)
		r.Unknown = true
		r.Summary = "lost " + command
	case stopped != "" || end.How != endedItself:
		if stopped == "" {
			stopped = "the agent is closing"
		}
		r = ErrorResult("the command was stopped: " + stopped + ". What it did until then is done. It had written:\n" + body)
		r.Summary = fmt.Sprintf("stopped %s after %s", command, took)
	case end.Signal != "":
		r = ErrorResult(fmt.Sprintf("the command was ended by a signal (%s, exit code %d) after %s\n%s", end.Signal, end.Code, took, body))
		r.Summary = fmt.Sprintf("%s: %s after %s", command, end.Signal, took)
	case end.Code != 0:
		r = ErrorResult(fmt.Sprintf("the command ended with exit code %d after %s\n%s", end.Code, took, body))
		r.Summary = fmt.Sprintf("%s: exit code %d after %s", command, end.Code, took)
	default:
		r = TextResult(body)
		r.Summary = fmt.Sprintf("%s: done in %s", command, took)
	}
	return r
}
