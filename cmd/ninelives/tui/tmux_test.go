//go:build !windows

package tui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pane is a real terminal with a shell in it, driven by keys.
type pane struct {
	t    *testing.T
	env  []string
	sock string
	// dir is where the shell is.
	dir string
}

// patience bounds how long a screen is waited for.
const patience = 30 * time.Second

// newPane starts a terminal of a size. Without tmux the test is skipped.
func newPane(t *testing.T, w, h int, env ...string) *pane {
	t.Helper()
	t.Parallel() // it mostly waits
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux, which is not installed")
	}
	tmp, err := os.MkdirTemp("", "nl") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, sock: filepath.Join(tmp, "s"), dir: filepath.Join(tmp, "w")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "PS1=$ ", "SHELL=/bin/sh"}, env...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen was\n%s", p.screen())
		}
		p.tmux("kill-server")
		os.RemoveAll(tmp)
	})
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h), "-c", p.dir, "exec sh -i")
	p.tmux("set-option", "-g", "status", "off")
	p.tmux("set-option", "-g", "escape-time", "0")
	p.tmux("resize-window", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h))
	p.wait("$")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.sock}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "kill-server" && !p.t.Failed() {
		p.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// program starts this test binary as the program, with variables set.
func (p *pane) program(vars ...string) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.text("stty sane; clear")
	p.press("C-j") // what Enter sends is no line end in a terminal that was left raw
	p.want("$")
	p.text("clear; " + strings.Join(append(vars, "TUI_TEST_PROGRAM="+p.history()), " ") + " " + self + "; echo exit=$?")
	p.press("Enter")
	p.wait("sim/coder")
}

func (p *pane) history() string { return filepath.Join(filepath.Dir(p.sock), "state", "history") }

// press presses keys by tmux's names, text types.
func (p *pane) press(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }
func (p *pane) text(text string)     { p.tmux("send-keys", "-l", text) }

// screen is what is shown, without what is blank at its end.
func (p *pane) screen() string {
	lines := strings.Split(p.tmux("capture-pane", "-p"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

func (p *pane) scrollback() string { return p.tmux("capture-pane", "-p", "-S", "-") }

// until waits for a screen that satisfies, and gives it.
func (p *pane) until(what string, satisfies func(screen string) bool) string {
	p.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s := p.screen()
		if satisfies(s) {
			return s
		}
		if time.Since(began) > patience {
			p.t.Fatalf("the screen does not show %s:\n%s", what, s)
		}
	}
}

func (p *pane) wait(text string) string {
	p.t.Helper()
	return p.until(strconv.Quote(text), func(s string) bool { return strings.Contains(s, text) })
}

func (p *pane) gone(text string) string {
	p.t.Helper()
	return p.until("no "+strconv.Quote(text), func(s string) bool { return !strings.Contains(s, text) })
}

// want waits for exactly this screen.
func (p *pane) want(want string) {
	p.t.Helper()
	want = strings.Trim(want, "\n")
	p.until("exactly\n"+want+"\nbut", func(s string) bool { return s == want })
}

// pid finds the program that runs in the pane.
func (p *pane) pid() int {
	p.t.Helper()
	shell := strings.TrimSpace(p.tmux("display-message", "-p", "#{pane_pid}"))
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		p.t.Skip("needs ps, which does not work here")
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == shell {
			pid, _ := strconv.Atoi(f[0])
			return pid
		}
	}
	p.t.Fatal("the program does not run")
	return 0
}

// cooked checks that the terminal reads lines again, as a shell wants it.
func (p *pane) cooked() {
	p.t.Helper()
	p.until("a prompt", func(s string) bool { return strings.HasSuffix(s, "\n$") })
	p.text("stty -a | grep -c -- ' icanon'; stty -a | grep -c -- ' echo '")
	p.press("Enter")
	p.until("a restored terminal", func(s string) bool { return strings.HasSuffix(s, "\n1\n1\n$") })
}

func TestInATerminalATurnIsAskedForApprovedHealedAndSteered(t *testing.T) {
	p := newPane(t, 80, 24)
	p.program()
	p.want(`
! the built-in simulator answers
` + rule + `
›
sim/coder · ask · 12.3k (6% of 200k) · $0.042`)
	p.text("edit")
	p.press("Enter")
	p.wait("[y] once  [a] always edit_file  [n] no  [s] stop  Enter: no")
	p.text("y")
	p.want(`
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
	colored := p.tmux("capture-pane", "-p", "-e")
	if !strings.Contains(colored, "\x1b[31m-func main() { panic(1) }") || !strings.Contains(colored, "\x1b[32m+func main() {}") {
		t.Errorf("the diff has no colours: %q", colored)
	}

	p.text("heal")
	p.press("Enter")
	p.wait("rate limited by anthropic, again in ")
	p.text("later")
	p.press("Tab")
	p.wait("▸ queued: later")
	p.wait("You said: later")
	if s := p.scrollback(); strings.Contains(s, "This half answer will vanish") || strings.Contains(s, "rate limited by") || !strings.Contains(s, "The whole answer.") {
		t.Errorf("the scrollback has\n%s", s)
	}

	p.text("wait")
	p.press("Enter")
	p.wait("I am waiting")
	p.text("use tabs")
	p.press("Enter")
	p.wait("› use tabs")
	p.press("Escape")
	p.wait("you stopped the turn; what was done stays done")

	p.press("BTab")
	p.wait("sim/coder · auto-edit · ")
	p.text("/stat")
	p.press("Enter")
	p.wait("session    s-first")
	p.text("/quit")
	p.press("Enter")
	p.wait("left well\nexit=0\n$")
	p.cooked()
}

func TestInATerminalALongAnswerIsInTheScrollbackOnce(t *testing.T) {
	p := newPane(t, 60, 20)
	p.program()
	p.text("long")
	p.press("Enter")
	p.until("the end of the answer", func(s string) bool {
		return strings.Contains(s, "number 200 of") && !strings.Contains(s, "Esc interrupts")
	})
	var got []string
	for line := range strings.Lines(p.scrollback()) {
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

	p.tmux("resize-window", "-x", "40", "-y", "10")
	p.want(`
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
	p.program()
	p.text("half typed")
	p.wait("› half typed")
	p.press("C-z")
	p.until("the shell", func(s string) bool { return strings.HasSuffix(s, "\n$") })
	p.cooked()
	p.text("fg")
	p.press("Enter")
	p.until("the program again", func(s string) bool {
		return strings.HasSuffix(s, rule+"\n› half typed\nsim/coder · ask · 12.3k (6% of 200k) · $0.042")
	})
	p.press("C-c")
	p.until("an empty input", func(s string) bool {
		return strings.HasSuffix(s, rule+"\n›\nsim/coder · ask · 12.3k (6% of 200k) · $0.042")
	})
	p.press("C-d")
	p.wait("left well")
	p.cooked()
}

func TestInATerminalTheEndOfTheProcessRestoresItAndLosesNothing(t *testing.T) {
	p := newPane(t, 80, 20)
	p.program()
	p.text("half typed")
	p.wait("› half typed")
	syscall.Kill(p.pid(), syscall.SIGTERM)
	p.wait("exit=0")
	p.cooked()
	p.program()
	p.wait("› half typed")
	p.text(" and more")
	p.wait("› half typed and more")
	kept := func() string {
		data, _ := os.ReadFile(draftPath(p.history(), p.pid()))
		return string(data)
	}
	for began := time.Now(); !strings.Contains(kept(), `"half typed and more"`); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("the draft is %q", kept())
		}
	}
	syscall.Kill(p.pid(), syscall.SIGKILL)
	p.wait("exit=137")
	p.program()
	p.wait("› half typed and more")
	p.press("C-c")
	p.gone("› half typed and more")
	p.text("/model panic ")
	p.press("Enter")
	s := p.wait("exit=1")
	if !strings.Contains(s, "tui: the terminal UI made a mistake (a mistake) and had to end; the session is k") || strings.Contains(s, "goroutine") {
		t.Errorf("a mistake ends with\n%s", s)
	}
	p.cooked()
}

func TestInATerminalThatIsClosedNothingIsLeftRunningAndTheTextIsKept(t *testing.T) {
	p := newPane(t, 80, 20)
	p.tmux("set-option", "-g", "exit-empty", "off")
	p.program()
	p.text("wait")
	p.press("Enter")
	p.wait("I am waiting")
	p.text("unsent")
	p.wait("› unsent")
	pid := p.pid()
	p.tmux("kill-window")
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
	p.program("NO_COLOR=1", "TUI_TEST_FAILED='its process died'")
	p.want(`
! the built-in simulator answers
✗ failed turn: its process died – press
  r to resume
›
sim/coder · ask · 12.3k (6% of 200k)`)
	p.text("r")
	p.wait("You said: **again**")
	if s := p.tmux("capture-pane", "-p", "-e"); strings.Contains(s, "\x1b") {
		t.Errorf("NO_COLOR is not obeyed: %q", s)
	}
}

func TestInADumbTerminalLinesAreEnough(t *testing.T) {
	p := newPane(t, 80, 40)
	p.program("TERM=dumb")
	p.wait("sim/coder>")
	p.text("edit")
	p.press("Enter")
	p.wait("[n] ?")
	p.text("n not now")
	p.press("Enter")
	p.wait("Then not.")
	p.text("heal")
	p.press("Enter")
	p.wait("… rate limited by anthropic, again in 2s")
	p.wait("The whole answer.")
	p.text("/sessions")
	p.press("Enter")
	p.wait("number?")
	p.text("1")
	p.press("Enter")
	p.wait("session s-old again")
	p.text("/quit")
	p.press("Enter")
	p.wait("exit=0")
	if s := p.tmux("capture-pane", "-p", "-e"); strings.Contains(s, "\x1b") || !strings.Contains(s, "Error: the user said no: not now") {
		t.Errorf("the screen is %q", s)
	}
}
