//go:build !windows

package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/internal/tmuxtest"
)

// pane is a terminal that this test binary is started in as the program.
type pane struct{ *tmuxtest.Pane }

// patience bounds how long a file or a process is waited for.
const patience = 30 * time.Second

func newPane(t *testing.T, w, h int, env ...string) *pane {
	t.Helper()
	return &pane{tmuxtest.New(t, w, h, env...)}
}

// program starts this test binary as the program, with variables set.
func (p *pane) program(t *testing.T, vars ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Start(strings.Join(append(vars, "TUI_TEST_PROGRAM="+p.history()), " ") + " " + self + "; echo exit=$?")
	p.Wait("sim/coder")
}

func (p *pane) history() string { return filepath.Join(p.Home, "state", "history") }

func TestInATerminalATurnIsAskedForApprovedHealedAndSteered(t *testing.T) {
	p := newPane(t, 80, 24)
	p.program(t)
	p.Want(`
! the built-in simulator answers
` + rule + `
›
sim/coder · ask · 12.3k (6% of 200k) · $0.042`)
	p.Send("edit")
	p.Wait("[y] once  [a] always edit_file  [n] no  [s] stop  Enter: no")
	p.Type("y")
	p.Want(`
! the built-in simulator answers

› edit

● edit_file main.go – changed 1 line of main.go
  --- a/main.go
  +++ b/main.go
  @@ -1,3 +1,3 @@
   package main
  -func main() { panic(1) }
  +func main() {}

Done: main does not panic any more.
` + rule + `
›
sim/coder · ask · 12.3k (6% of 200k) · $0.042`)
	colored := p.Colored()
	if !strings.Contains(colored, "\x1b[31m-func main() { panic(1) }") || !strings.Contains(colored, "\x1b[32m+func main() {}") {
		t.Errorf("the diff has no colours: %q", colored)
	}

	p.Send("heal slowly")
	p.Wait("rate limited by anthropic, again in ")
	p.Type("later")
	p.Press("Tab")
	p.Wait("▸ queued: later")
	p.Send("go on")
	p.Wait("You said: later")
	if s := p.Scrollback(); strings.Contains(s, "This half answer will vanish") || strings.Contains(s, "rate limited by") || !strings.Contains(s, "The whole answer.") {
		t.Errorf("the scrollback has\n%s", s)
	}

	p.Send("wait")
	p.Wait("I am waiting")
	p.Send("use tabs")
	p.Wait("› use tabs")
	p.Press("Escape")
	p.Wait("you stopped the turn; what was done stays done")

	p.Press("BTab")
	p.Wait("sim/coder · auto-edit · ")
	p.Send("/stat")
	p.Wait("session    s-first")
	p.Send("/quit")
	p.Wait("left s-first well\nexit=0\n$")
	p.Cooked()
}

func TestInATerminalALongAnswerIsInTheScrollbackOnce(t *testing.T) {
	p := newPane(t, 60, 20)
	p.program(t)
	p.Send("long")
	p.Until("the end of the answer", func(s string) bool {
		return strings.Contains(s, "number 200 of") && !strings.Contains(s, "Esc interrupts")
	})
	var got []string
	for line := range strings.Lines(p.Scrollback()) {
		if line = strings.TrimSpace(line); line != "" {
			got = append(got, line)
		}
	}
	at := slices.Index(got, "› long")
	var want []string
	for i := 1; i <= 200; i++ {
		want = append(want, fmt.Sprintf("Paragraph number %d of the long answer.", i))
	}
	if at < 0 || !slices.Equal(got[at+1:len(got)-3], want) {
		t.Errorf("the scrollback is\n%s", strings.Join(got, "\n"))
	}

	p.Resize(40, 10)
	p.Want(`
answer.

Paragraph number 199 of the long
answer.

Paragraph number 200 of the long
answer.
›
sim/coder · ask · 12.3k (6% of 200k)`)
}

func TestInATerminalItSuspendsAndComesBack(t *testing.T) {
	p := newPane(t, 80, 20)
	p.program(t)
	p.Type("half typed")
	p.Wait("› half typed")
	p.Press("C-z")
	p.Until("the shell", func(s string) bool { return strings.HasSuffix(s, "\n$") })
	p.Cooked()
	p.Send("fg")
	p.Until("the program again", func(s string) bool {
		return strings.HasSuffix(s, rule+"\n› half typed\nsim/coder · ask · 12.3k (6% of 200k) · $0.042")
	})
	p.Press("C-c")
	p.Until("an empty input", func(s string) bool {
		return strings.HasSuffix(s, rule+"\n›\nsim/coder · ask · 12.3k (6% of 200k) · $0.042")
	})
	p.Press("C-d")
	p.Wait("left  well")
	p.Cooked()
}

func TestInATerminalTheEndOfTheProcessRestoresItAndLosesNothing(t *testing.T) {
	p := newPane(t, 80, 20)
	p.program(t)
	p.Type("half typed")
	p.Wait("› half typed")
	syscall.Kill(p.PID(), syscall.SIGTERM)
	p.Wait("exit=0")
	p.Cooked()
	p.program(t)
	p.Wait("› half typed")
	p.Type(" and more")
	p.Wait("› half typed and more")
	kept := func() string {
		data, _ := os.ReadFile(draftPath(p.history(), p.PID()))
		return string(data)
	}
	for began := time.Now(); !strings.Contains(kept(), `"half typed and more"`); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("the draft is %q", kept())
		}
	}
	syscall.Kill(p.PID(), syscall.SIGKILL)
	p.Wait("exit=137")
	p.program(t)
	p.Wait("› half typed and more")
	p.Press("C-c")
	p.Gone("› half typed and more")
	p.Send("/model panic ")
	s := p.Wait("exit=1")
	if !strings.Contains(s, "tui: the terminal UI made a mistake (a mistake) and had to end; the session is k") || strings.Contains(s, "goroutine") {
		t.Errorf("a mistake ends with\n%s", s)
	}
	p.Cooked()
}

func TestInATerminalThatIsClosedNothingIsLeftRunningAndTheTextIsKept(t *testing.T) {
	p := newPane(t, 80, 20)
	p.Tmux("set-option", "-g", "exit-empty", "off")
	p.program(t)
	p.Send("wait")
	p.Wait("I am waiting")
	p.Type("unsent")
	p.Wait("› unsent")
	pid := p.PID()
	p.Tmux("kill-window")
	for began := time.Now(); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the program still runs")
		}
	}
	if data, _ := os.ReadFile(draftPath(p.history(), pid)); !strings.Contains(string(data), `"unsent"`) {
		t.Errorf("the draft is %q", data)
	}
}

func TestInATerminalAFailedTurnIsShownAndResumed(t *testing.T) {
	p := newPane(t, 40, 10, "NO_COLOR=1")
	p.program(t, "NO_COLOR=1", "TUI_TEST_FAILED='its process died'")
	p.Want(`
! the built-in simulator answers
✗ failed turn: its process died – press
  r to resume
›
sim/coder · ask · 12.3k (6% of 200k)`)
	p.Type("r")
	p.Wait("You said: **again**")
	if s := p.Colored(); strings.Contains(s, "\x1b") {
		t.Errorf("NO_COLOR is not obeyed: %q", s)
	}
}

func TestInADumbTerminalLinesAreEnough(t *testing.T) {
	p := newPane(t, 80, 40)
	p.program(t, "TERM=dumb")
	p.Wait("sim/coder>")
	p.Send("edit")
	p.Wait("[n] ?")
	p.Send("n not now")
	p.Wait("Then not.")
	p.Send("heal")
	p.Wait("… rate limited by anthropic, again in 2s")
	p.Wait("The whole answer.")
	p.Send("/sessions")
	p.Wait("number?")
	p.Send("1")
	p.Wait("session s-old again")
	p.Send("/quit")
	p.Wait("exit=0")
	if s := p.Colored(); strings.Contains(s, "\x1b") || !strings.Contains(s, "Error: the user said no: not now") {
		t.Errorf("the screen is %q", s)
	}
}
