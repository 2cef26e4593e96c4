// Package tmuxtest drives a real terminal in tests: keys in, screen out.
package tmuxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Pane is a terminal of tmux with a shell in it. What is looked for on its
// screen is waited for; what does not come fails the test.
type Pane struct {
	t    *testing.T
	env  []string
	sock string

	// Home is the directory of the shell's user, Dir the one it is in. Both are
	// the pane's own, and are removed at the end of the test.
	Home, Dir string
}

// patience bounds how long a screen is waited for.
const patience = time.Minute

// New starts a terminal of a size. The shell has no variables but a few usual
// ones and those of env ("NAME=value"). Without tmux the test is skipped. It
// runs in parallel with others: it mostly waits.
func New(t *testing.T, w, h int, env ...string) *Pane {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux, which is not installed")
	}
	tmp, err := os.MkdirTemp("", "nl") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	p := &Pane{t: t, sock: filepath.Join(tmp, "s"), Home: filepath.Join(tmp, "h"), Dir: filepath.Join(tmp, "w")}
	for _, dir := range []string{p.Home, p.Dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "PS1=$ ", "SHELL=/bin/sh"}, env...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen was\n%s", p.Screen())
		}
		p.Tmux("kill-server")
		os.RemoveAll(tmp)
	})
	p.Tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h), "-c", p.Dir, "exec sh -i")
	p.Tmux("set-option", "-g", "status", "off")
	p.Tmux("set-option", "-g", "escape-time", "0")
	p.Resize(w, h)
	p.Wait("$")
	return p
}

// Tmux carries a command of tmux out and gives what it printed.
func (p *Pane) Tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.sock}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "kill-server" && !p.t.Failed() {
		p.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// Start types a command line for the shell into a clean screen, without what
// an earlier program has left of the terminal's settings.
func (p *Pane) Start(command string) {
	p.t.Helper()
	p.Type("stty sane; clear")
	p.Press("C-j") // what Enter sends is no line end in a terminal that was left raw
	p.Want("$")
	p.Type("clear; " + command)
	p.Press("Enter")
}

// Press presses keys by tmux's names.
func (p *Pane) Press(keys ...string) {
	p.t.Helper()
	p.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Type types text.
func (p *Pane) Type(text string) {
	p.t.Helper()
	p.Tmux("send-keys", "-l", text)
}

// Send types text and presses Enter.
func (p *Pane) Send(text string) {
	p.t.Helper()
	p.Type(text)
	p.Press("Enter")
}

// Resize changes the size of the terminal.
func (p *Pane) Resize(w, h int) {
	p.t.Helper()
	p.Tmux("resize-window", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h))
}

// Screen is what is shown, without what is blank at the end of its lines, at
// its beginning and at its end.
func (p *Pane) Screen() string { return trim(p.Tmux("capture-pane", "-p")) }

// Scrollback is what was ever printed and is not cleared, the screen last.
func (p *Pane) Scrollback() string { return trim(p.Tmux("capture-pane", "-p", "-S", "-")) }

// Colored is the screen with its escape sequences.
func (p *Pane) Colored() string { return p.Tmux("capture-pane", "-p", "-e") }

func trim(screen string) string {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// Until waits for a screen that satisfies, and gives it.
func (p *Pane) Until(what string, satisfies func(screen string) bool) string {
	p.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s := p.Screen()
		if satisfies(s) {
			return s
		}
		if time.Since(began) > patience {
			p.t.Fatalf("the screen does not show %s:\n%s", what, s)
		}
	}
}

// Wait waits until all of the texts are on the screen, and gives it.
func (p *Pane) Wait(texts ...string) string {
	p.t.Helper()
	return p.Until(strconv.Quote(strings.Join(texts, " … ")), func(s string) bool {
		for _, text := range texts {
			if !strings.Contains(s, text) {
				return false
			}
		}
		return true
	})
}

// Gone waits until a text is not on the screen any more, and gives it.
func (p *Pane) Gone(text string) string {
	p.t.Helper()
	return p.Until("no "+strconv.Quote(text), func(s string) bool { return !strings.Contains(s, text) })
}

// Want waits for exactly this screen.
func (p *Pane) Want(want string) {
	p.t.Helper()
	want = strings.Trim(want, "\n")
	p.Until("exactly\n"+want+"\nbut", func(s string) bool { return s == want })
}

// PID finds the program that the shell runs.
func (p *Pane) PID() int {
	p.t.Helper()
	shell := strings.TrimSpace(p.Tmux("display-message", "-p", "#{pane_pid}"))
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

// Cooked checks that the terminal reads lines again, as a shell wants it.
func (p *Pane) Cooked() {
	p.t.Helper()
	p.Until("a prompt", func(s string) bool { return strings.HasSuffix(s, "\n$") })
	p.Send("stty -a | grep -c -- ' icanon'; stty -a | grep -c -- ' echo '")
	p.Until("a restored terminal", func(s string) bool { return strings.HasSuffix(s, "\n1\n1\n$") })
}
