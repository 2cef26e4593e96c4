package tui

import (
	"fmt"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/tool"
)

// command is a slash command.
type command struct {
	name string
	args string // what may stand behind it, for the help
	help string
	// needs: it makes no sense without an argument.
	needs bool
	// idle: it cannot be done while a turn runs.
	idle bool
	// here carries it out in the ui alone; nil means the driver does it.
	here func(u *ui, args string) []any
}

// slashCommands are the commands, in the order of the help.
func slashCommands() []command {
	return []command{
		{name: "help", help: "the commands and the keys", here: (*ui).help},
		{name: "model", args: "[NAME]", help: "show or switch the model, from the next turn on"},
		{name: "new", help: "begin a new session", idle: true},
		{name: "resume", args: "[ID]", help: "take up an earlier session", idle: true},
		{name: "sessions", help: "list the earlier sessions", idle: true},
		{name: "compact", help: "make the context smaller now", idle: true},
		{name: "undo", help: "take back the file changes of the last turn", idle: true},
		{name: "redo", help: "make them again", idle: true},
		{name: "rewind", args: "[TURN]", help: "go back to an earlier message", idle: true},
		{name: "status", help: "session, model, mode, window, tokens", here: (*ui).showStatus},
		{name: "cost", help: "tokens and cost of this session", here: (*ui).showCost},
		{name: "stop", help: "stop the running turn", here: (*ui).stopTurn},
		{name: "permissions", args: "[MODE]", help: "show what may be done without asking, or set the mode"},
		{name: "memory", help: "what is remembered, and which instructions were read"},
		{name: "mcp", help: "the servers of the Model Context Protocol"},
		{name: "init", help: "have the model write AGENTS.md for this project", here: (*ui).initProject},
		{name: "export", args: "[FILE]", help: "write the conversation to a Markdown file"},
		{name: "diff", help: "what this session changed in the files"},
		{name: "quit", help: "end; the session can be taken up again", here: func(u *ui, _ string) []any { return u.leave() }},
	}
}

// slash carries a slash command out.
func (u *ui) slash(text string) []any {
	name, args, _ := strings.Cut(text[1:], " ")
	args = strings.TrimSpace(args)
	var names []string
	for _, c := range u.commands {
		if c.name != name {
			names = append(names, c.name)
			continue
		}
		if c.idle && u.turn != nil {
			u.print(block{kind: blockWarning, head: "/" + name + " cannot be done while a turn runs: Esc stops it"})
			return nil
		}
		if c.here != nil {
			return c.here(u, args)
		}
		return []any{do{name: name, args: args}}
	}
	u.print(block{kind: blockWarning, head: fmt.Sprintf("there is no command /%s%s: /help lists them", oneLine(name), slashHint(name, names))})
	return nil
}

func slashHint(name string, names []string) string {
	if n := nearest.Name(name, names); n != "" {
		return " (did you mean /" + n + "?)"
	}
	return ""
}

// keysHelp are the keys, for /help.
const keysHelp = `Enter         send; while a turn runs: into the turn
Tab           while a turn runs: queue for a turn of its own
Ctrl-J        new line (also Shift-Enter, Alt-Enter, a \ before Enter)
Esc           interrupt; twice when idle: back to an earlier message
Ctrl-C        clear the input, else interrupt, else (twice) quit
Ctrl-D        quit, if the input is empty
Shift-Tab     the next permission mode
Ctrl-R        search what you sent before; up and down step through it
Ctrl-O        show or fold output, reasoning and healing
Ctrl-L        draw the screen again
PgUp, PgDn    scroll what is still being written
Ctrl-Z        suspend
@FILE         put a file before the model (@FILE#20-45: these lines)
!COMMAND      run a command yourself; the model reads its output with your next message`

func (u *ui) help(string) []any {
	var b strings.Builder
	for _, c := range u.commands {
		fmt.Fprintf(&b, "%-20s %s\n", strings.TrimSpace("/"+c.name+" "+c.args), c.help)
	}
	u.print(block{kind: blockNote, head: b.String() + "\n" + keysHelp})
	return nil
}

func (u *ui) showStatus(string) []any {
	s := &u.standing
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	line("session", "%s", s.Session)
	line("directory", "%s", s.Directory)
	if s.branch != "" {
		line("branch", "%s", s.branch)
	}
	line("model", "%s", s.Model)
	line("mode", "%s", s.Mode)
	if s.Window > 0 {
		line("window", "%s of %s tokens (%d%%)", count(s.Tokens), count(s.Window), s.Tokens*100/s.Window)
	}
	line("turns", "%d", s.Turn)
	if s.Running {
		line("running", "step %d, %s, since %s", s.Step, plural(s.Calls, "call"), brief(u.now.Sub(s.Since)))
	}
	if s.Waiting > 0 {
		line("waiting", "%s", plural(s.Waiting, "message"))
	}
	for _, task := range s.Todo {
		fmt.Fprintf(&b, "%-10s %s\n", oneLine(string(task.Status)), oneLine(task.Content))
	}
	u.print(block{kind: blockNote, head: strings.TrimRight(b.String(), "\n")})
	return nil
}

func (u *ui) showCost(string) []any {
	s := &u.standing
	text := fmt.Sprintf("input %s tokens (%s from the cache), output %s", count(s.Usage.TotalInput()), count(s.Usage.Cached), count(s.Usage.TotalOutput()))
	if s.Usage.Estimated {
		text += ", estimated in part"
	}
	if s.Cost > 0 {
		text += "; " + money(s.Cost)
	} else {
		text += "; no price is known"
	}
	u.print(block{kind: blockNote, head: text})
	return nil
}

func (u *ui) stopTurn(string) []any {
	if u.turn == nil {
		u.print(block{kind: blockNote, head: "no turn is running"})
		return nil
	}
	return u.interrupt()
}

// initPrompt is what /init asks for.
const initPrompt = `Look through this project and write AGENTS.md in its root, for coding agents that will work here: ` +
	`what the project is, how it is built, tested and linted (the exact commands), how the code is laid out, ` +
	`and the conventions that cannot be guessed. If there is an AGENTS.md already, improve it and keep what people wrote. ` +
	`Be short: at most 60 lines, no generalities.`

func (u *ui) initProject(string) []any {
	if u.turn != nil {
		u.print(block{kind: blockWarning, head: "/init cannot be done while a turn runs: Esc stops it"})
		return nil
	}
	return u.begin(send{text: initPrompt, via: "turn"}, initPrompt)
}

// modeNamed finds a permission mode by its name.
func modeNamed(name string) (tool.Mode, error) {
	var names []string
	for _, m := range tool.Modes() {
		if string(m) == name {
			return m, nil
		}
		names = append(names, string(m))
	}
	return "", fmt.Errorf("there is no permission mode %q%s: %s", name, nearest.Hint(name, names), strings.Join(names, ", "))
}
