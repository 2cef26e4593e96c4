package acp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/agent"
)

// A command is a prompt that begins with a slash and one of these names. Any
// other prompt is for the model, "/usr/bin is missing" too.
type commandOf struct {
	name, text, hint string
	run              func(s *session, ctx context.Context, rest string) (string, error)
}

// commands are those of this package; continue is a turn (see session.command).
var commands = []commandOf{
	{name: "continue", text: "Go on with the turn that failed, was stopped or came to a limit"},
	{name: "compact", text: "Make the conversation smaller, so that more fits into the model's window", run: compact},
	{name: "undo", text: "Take back the file changes of the last turn that made some", run: undo},
	{name: "redo", text: "Make the changes again that were taken back last", run: redo},
	{name: "rewind", text: "Make the model forget the last turn, or all from a turn on; files stay", hint: "number of the first turn to forget", run: rewind},
	{name: "status", text: "Show model, mode, tokens and cost", run: statusText},
}

// available are the commands as editors offer them.
func available() (list []sdk.AvailableCommand) {
	for _, c := range commands {
		a := sdk.AvailableCommand{Name: c.name, Description: c.text}
		if c.hint != "" {
			a.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: c.hint}}
		}
		list = append(list, a)
	}
	return list
}

// command finds the command in a prompt; rest is what follows its name.
func command(blocks []sdk.ContentBlock) (c *commandOf, rest string) {
	if len(blocks) != 1 || blocks[0].Text == nil {
		return nil, ""
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(blocks[0].Text.Text), "/")
	if !ok {
		return nil, ""
	}
	name, rest, _ := strings.Cut(text, " ")
	for i := range commands {
		if commands[i].name == name {
			return &commands[i], strings.TrimSpace(rest)
		}
	}
	return nil, ""
}

// command carries a command out.
func (s *session) command(p *prompt, c *commandOf, rest string) (any, error) {
	if c.run == nil {
		return s.turn(p, s.Session.Continue(s.server.base))
	}
	ctx, stop := context.WithCancel(s.server.base)
	defer stop()
	s.mu.Lock()
	p.stop = stop
	cancelled := p.cancelled
	s.mu.Unlock()
	if cancelled {
		stop()
	}
	text, err := c.run(s, ctx, rest)
	switch {
	case s.isCancelled(p) && err != nil:
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case err != nil:
		return nil, err
	}
	return s.say(text)
}

func compact(s *session, ctx context.Context, _ string) (string, error) {
	c, err := s.Session.Compact(ctx)
	switch {
	case errors.Is(err, agent.ErrNothing):
		return "There is nothing to make smaller.", nil
	case err != nil:
		return "", err
	}
	text := compactedText(c)
	return strings.ToUpper(text[:1]) + text[1:] + ".", nil
}

func undo(s *session, ctx context.Context, _ string) (string, error) {
	u, err := s.Session.Undo(ctx)
	return restored(u, err, "There are no file changes to take back.")
}

func redo(s *session, ctx context.Context, _ string) (string, error) {
	u, err := s.Session.Redo(ctx)
	return restored(u, err, "There are no file changes to make again.")
}

// restored tells what was restored. What went wrong with a part of it is told
// with what was done, because that stands.
func restored(u agent.Undo, err error, nothing string) (string, error) {
	if errors.Is(err, agent.ErrNothing) {
		return strings.TrimSpace(nothing + " " + u.Left()), nil
	}
	if err != nil && u.Turn == 0 {
		return "", err
	}
	text := undoText(u)
	if err != nil {
		text += "\n\nNot all of it could be done: " + oneLine(err.Error())
	}
	return text, nil
}

// undoText tells what was restored.
func undoText(u agent.Undo) string {
	var b strings.Builder
	what := "Taken back"
	if u.Redo {
		what = "Made again"
	}
	if len(u.Changes) == 0 {
		fmt.Fprintf(&b, "Nothing of turn %d could be restored.", u.Turn)
	} else {
		fmt.Fprintf(&b, "%s are the changes of turn %d to %s.", what, u.Turn, plural(len(u.Changes), "file"))
	}
	for _, c := range u.Changes {
		b.WriteString("\n- " + code(c.Path))
	}
	if len(u.Conflicts) > 0 {
		b.WriteString("\n\nLeft alone:")
		for _, c := range u.Conflicts {
			b.WriteString("\n- " + oneLine(c))
		}
	}
	if left := u.Left(); left != "" {
		b.WriteString("\n\n" + oneLine(left))
	}
	return b.String()
}

func rewind(s *session, ctx context.Context, rest string) (string, error) {
	n := s.Session.Status().Turn
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return "", invalid("/rewind takes the number of a turn, which %s is not", quoted(rest))
		}
	}
	err := s.Session.Rewind(ctx, n)
	switch {
	case errors.Is(err, agent.ErrNothing):
		return "There is no such turn to forget.", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("The model has forgotten everything from turn %d on. Files are as they were: /undo takes changes back.", n), nil
}

func statusText(s *session, _ context.Context, _ string) (string, error) {
	v := s.Session.Status()
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "- %s: %s\n", name, fmt.Sprintf(format, args...))
	}
	line("session", "%s", code(v.Session))
	line("directory", "%s", code(v.Directory))
	line("model", "%s", code(v.Model))
	line("mode", "%s", v.Mode)
	if v.Window > 0 {
		line("context", "about %d of %d tokens (%d %%)", v.Tokens, v.Window, v.Tokens*100/v.Window)
	}
	line("tokens", "%d in, %d out", v.Usage.TotalInput(), v.Usage.TotalOutput())
	line("cost", "$%.4f, as far as prices are known", v.Cost)
	line("turns", "%d", v.Turn)
	if v.Failed != nil {
		line("last turn", "%s%s – /continue goes on with it", v.Failed.Reason, suffix(v.Failed.Message))
	}
	return b.String(), nil
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + oneLine(message)
}

// code is text as Markdown shows it verbatim.
func code(text string) string {
	text = oneLine(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
