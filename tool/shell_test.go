//go:build unix

package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

func supervisorOfTests(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, superviseArgument}
}

type harness struct {
	*Shell
	t   *testing.T
	dir string
}

// shellOf is a shell with a supervisor, unless change takes it away.
func shellOf(t *testing.T, change func(*ShellOptions)) *harness {
	t.Helper()
	dir := t.TempDir()
	ws, err := OpenWorkspace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := ShellOptions{Supervisor: supervisorOfTests(t), Records: filepath.Join(t.TempDir(), "records"), Home: t.TempDir(),
		Environ: append(os.Environ(), "FAKE_API_KEY=hidden", "MY_TOKEN=hidden", "PLAIN=seen", "VENDOR_THING=hidden", "PASSED_TOKEN=seen", "TERM=xterm-256color"),
		Secrets: []string{"VENDOR_THING"}, Pass: []string{"PASSED_TOKEN"}}
	if change != nil {
		change(&opts)
	}
	s, err := NewShell(ws, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ws.Close()
	})
	return &harness{Shell: s, t: t, dir: ws.Dir()}
}

func unsupervised(o *ShellOptions) { o.Supervisor, o.Records = nil, "" }

func (h *harness) call(tool int, args any) (Tool, *Call) {
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.Tools()[tool], &Call{ID: "c1", Session: h.t.Name(), Arguments: raw}
}

func (h *harness) run(ctx context.Context, args commandArguments) Result {
	h.t.Helper()
	tool, call := h.call(0, args)
	return tool.Run(ctx, call)
}

// timedOut runs a command that says a word and does not end. Where a second is
// too short for it to come so far, it is given more; the limit in seconds is
// that of the run that did.
func (h *harness) timedOut(command, word string) (r Result, limit int) {
	h.t.Helper()
	for limit = 1; limit <= 64; limit *= 2 {
		if r = h.run(h.t.Context(), commandArguments{Command: command, Timeout: limit}); strings.Contains(r.Text(), word) {
			return r, limit
		}
	}
	h.t.Fatalf("it did not say %q: %q", word, r.Text())
	return r, limit
}

func (h *harness) terminal(args terminalArguments) Result {
	h.t.Helper()
	if args.WaitFor != "" && args.Timeout == 0 {
		args.Timeout = 60 // what is waited for comes
	}
	tool, call := h.call(1, args)
	return tool.Run(h.t.Context(), call)
}

func bothWays(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Run("supervised", func(t *testing.T) { f(t, shellOf(t, nil)) })
	t.Run("direct", func(t *testing.T) { f(t, shellOf(t, unsupervised)) })
}

func TestACommandGivesItsOutputInOrderAndItsExitCode(t *testing.T) {
	bothWays(t, func(t *testing.T, h *harness) {
		r := h.run(t.Context(), commandArguments{Command: "echo one; echo two >&2; echo three; pwd"})
		if want := "one\ntwo\nthree\n" + h.dir + "\n"; r.IsError || r.Text() != want {
			t.Errorf("%q, want %q", r.Text(), want)
		}
		r = h.run(t.Context(), commandArguments{Command: "echo no; exit 3"})
		if !r.IsError || !strings.HasPrefix(r.Text(), "Error: the command ended with exit code 3 after ") || !strings.HasSuffix(r.Text(), "\nno\n") {
			t.Errorf("%q", r.Text())
		}
		if r = h.run(t.Context(), commandArguments{Command: "true"}); r.Text() != "(no output)" {
			t.Errorf("%q", r.Text())
		}
		if r = h.run(t.Context(), commandArguments{Command: "kill -TERM $$"}); !strings.Contains(r.Text(), "SIGTERM, exit code 143") {
			t.Errorf("%q", r.Text())
		}
		os.Mkdir(filepath.Join(h.dir, "sub"), 0o755)
		if r = h.run(t.Context(), commandArguments{Command: "pwd", Directory: "sub"}); r.Text() != h.dir+"/sub\n" {
			t.Errorf("%q", r.Text())
		}
		for _, a := range []commandArguments{{Command: " "}, {Command: "ls", Directory: ".."}, {Command: "ls", Directory: "missing"}, {Command: "ls", Timeout: 601}, {Command: "a\x00b"}} {
			if r := h.run(t.Context(), a); !r.IsError {
				t.Errorf("%+v is run: %q", a, r.Text())
			}
		}
	})
}

func TestACommandHasNoInputNoCredentialsAndNoPager(t *testing.T) {
	bothWays(t, func(t *testing.T, h *harness) {
		r := h.run(t.Context(), commandArguments{Command: `cat; echo "$FAKE_API_KEY,$MY_TOKEN,$VENDOR_THING,$PASSED_TOKEN,$PLAIN,$TERM,$PAGER,$GIT_PAGER"; [ -t 1 ] || echo no terminal`})
		if want := ",,,seen,seen,dumb,cat,cat\nno terminal\n"; r.Text() != want {
			t.Errorf("%q, want %q", r.Text(), want)
		}
	})
}

func TestOutputIsToldWhileTheCommandRuns(t *testing.T) {
	h := shellOf(t, nil)
	fifo := filepath.Join(h.dir, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tool, call := h.call(0, commandArguments{Command: `printf 'h\303\251llo \033[31mred\033[0m'; read x < go; printf '\303'; printf '\251\n'`})
	told := make(chan string, 10)
	var all strings.Builder
	call.Output = func(text string) { all.WriteString(text); told <- text }
	done := make(chan Result, 1)
	go func() { done <- tool.Run(t.Context(), call) }()
	if first := <-told; first != "héllo red" { // while it waits for us
		t.Errorf("%q", first)
	}
	os.WriteFile(fifo, []byte("x\n"), 0o600)
	if r := <-done; r.Text() != "héllo redé\n" {
		t.Errorf("%q", r.Text())
	}
	if all.String() != "héllo redé\n" {
		t.Errorf("told %q", all.String())
	}
}

func TestAnEndlessOutputIsKeptAtBothEnds(t *testing.T) {
	t.Parallel()
	h := shellOf(t, nil)
	r := h.run(t.Context(), commandArguments{Command: "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"})
	text := r.Text()
	if !strings.HasPrefix(text, "first\nxxx") || !strings.Contains(text, "xxx\nlast\n") || len(text) > maxOutput+1000 || !strings.Contains(text, "were written here and not kept]") {
		t.Errorf("%d bytes: %.50q ... %q", len(text), text, text[len(text)-200:])
	}
}

func TestWhatACommandChangesIsTold(t *testing.T) {
	h := shellOf(t, nil)
	os.WriteFile(filepath.Join(h.dir, "old"), []byte("1"), 0o644)
	r := h.run(t.Context(), commandArguments{Command: "echo 2 > old; echo 3 > new"})
	var names []string
	for _, c := range r.Changes {
		names = append(names, c.Path)
	}
	if strings.Join(names, " ") != "new old" {
		t.Errorf("%v: %q", names, r.Text())
	}
}

// alive lists the processes whose environment or arguments hold a word.
func alive(word string) []int {
	var out []int
	list, _ := exec.Command("ps", "-A", "-o", "pid=,stat=,args=").Output()
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) > 2 && strings.Contains(line, word) && !strings.HasPrefix(f[1], "Z") {
			if pid, err := strconv.Atoi(f[0]); err == nil && pid != os.Getpid() {
				out = append(out, pid)
			}
		}
	}
	return out
}

// gone waits until no process has the word any more. It fails after a time in
// which every kill has long been done, on a busy machine too.
func gone(t *testing.T, word string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(25 * time.Millisecond) {
		if len(alive(word)) == 0 {
			return
		}
	}
	t.Errorf("processes are left: %v", alive(word))
	for _, pid := range alive(word) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// escapees are commands that try to get away: in the background, in sessions
// of their own, deaf to SIGTERM, forked twice. Each waits for seconds that are
// a word to find it by.
func escapees(seconds string) string {
	return "sleep " + seconds + " & " +
		"setsid sleep " + seconds + " & " +
		"(setsid sh -c 'trap \"\" TERM HUP INT; (sleep " + seconds + " & wait) & wait' &) ; " +
		"(trap '' TERM; nohup sleep " + seconds + " > /dev/null 2>&1 &) ; "
}

func needSetsid(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux gives orphans to their supervisor")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
}

func TestATimeoutStopsAllThatACommandStartedAndKeepsItsOutput(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	h := shellOf(t, nil)
	word := "61001." + strconv.Itoa(os.Getpid())
	r, limit := h.timedOut(escapees(word)+"echo so far; sleep "+word, "so far\n")
	if !r.IsError || !strings.Contains(r.Text(), fmt.Sprintf("the command was stopped: it had not ended after %s (timeout)", time.Duration(limit)*time.Second)) {
		t.Errorf("%q", r.Text())
	}
	if left := alive(word); len(left) != 0 { // at once: Run has waited for it
		t.Errorf("processes are left: %v", left)
	}
}

func TestStoppingACallStopsAllThatTheCommandStarted(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	h := shellOf(t, nil)
	word := "61002." + strconv.Itoa(os.Getpid())
	tool, call := h.call(0, commandArguments{Command: escapees(word) + "echo begun; sleep " + word})
	ctx, cancel := context.WithCancel(t.Context())
	call.Output = func(text string) {
		if strings.Contains(text, "begun") {
			cancel()
		}
	}
	r := tool.Run(ctx, call)
	if !r.IsError || !strings.Contains(r.Text(), "the call was stopped") || !strings.Contains(r.Text(), "begun\n") || r.Unknown {
		t.Errorf("%q", r.Text())
	}
	if left := alive(word); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestWithoutASupervisorAStoppedCommandTakesItsGroupWithIt(t *testing.T) {
	t.Parallel()
	h := shellOf(t, unsupervised)
	word := "61003." + strconv.Itoa(os.Getpid())
	if r, _ := h.timedOut("sleep "+word+" & trap '' TERM; echo so far; sleep "+word, "so far\n"); !r.IsError {
		t.Errorf("%q", r.Text())
	}
	gone(t, word)
}

func TestWhatACommandLeavesRunningIsStoppedAndTold(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	h := shellOf(t, nil)
	word := "61004." + strconv.Itoa(os.Getpid())
	r := h.run(t.Context(), commandArguments{Command: "setsid sleep " + word + " > /dev/null 2>&1 & echo done"})
	if r.IsError || !strings.HasPrefix(r.Text(), "done\n[1 process it had left running were stopped") {
		t.Errorf("%q", r.Text())
	}
	if left := alive(word); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestClosingTheShellStopsEverything(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, h *harness) {
		word := "61005." + strconv.Itoa(os.Getpid())
		r := h.run(t.Context(), commandArguments{Command: "echo up; sleep " + word, Background: true})
		if r.IsError || !strings.HasPrefix(r.Text(), "Started job-1") {
			t.Errorf("%q", r.Text())
		}
		if !strings.Contains(r.Text(), "up\n[job-1: running]") { // it may be slow, and is heard of later
			if r = h.terminal(terminalArguments{Action: "read", ID: "job-1", WaitFor: "up"}); r.Text() != "up\n[job-1: running]" {
				t.Errorf("%q", r.Text())
			}
		}
		done := make(chan Result, 1)
		begun := make(chan bool, 1)
		tool, call := h.call(0, commandArguments{Command: "echo up; sleep " + word})
		call.Output = func(string) { begun <- true }
		go func() { done <- tool.Run(context.Background(), call) }()
		<-begun
		h.Close()
		if r := <-done; !r.IsError || !strings.Contains(r.Text(), "the agent is closing") {
			t.Errorf("%q", r.Text())
		}
		gone(t, word)
		if r := h.run(t.Context(), commandArguments{Command: "echo late"}); !r.IsError {
			t.Errorf("a command is run after the end: %q", r.Text())
		}
	})
}

func TestBackgroundJobsAreListedReadAndStopped(t *testing.T) {
	h := shellOf(t, nil)
	h.run(t.Context(), commandArguments{Command: "while read x < in; do echo got $x; done", Background: true})
	if r := h.terminal(terminalArguments{Action: "list"}); !strings.HasPrefix(r.Text(), "job-1: ") {
		t.Errorf("%q", r.Text())
	}
	if r := h.terminal(terminalArguments{Action: "send", ID: "job-1", Text: "x"}); !r.IsError {
		t.Errorf("a job without a terminal is typed into: %q", r.Text())
	}
	if r := h.terminal(terminalArguments{Action: "read", ID: "job-9"}); !r.IsError || !strings.Contains(r.Text(), "there is no terminal or job") {
		t.Errorf("%q", r.Text())
	}
	if r := h.terminal(terminalArguments{Action: "stop", ID: "job-1"}); r.IsError {
		t.Errorf("%q", r.Text())
	}
	if r := h.terminal(terminalArguments{Action: "list"}); r.Text() != "There are no terminals and no background jobs." {
		t.Errorf("%q", r.Text())
	}
}

func TestATerminalStaysOpenBetweenCalls(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, h *harness) {
		r := h.terminal(terminalArguments{Action: "start", Command: "PS1='$ ' bash --noprofile --norc -i", WaitFor: `\$ $`})
		if r.IsError || !strings.HasSuffix(r.Text(), "[terminal-1: running]") {
			t.Fatalf("%q", r.Text())
		}
		r = h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "x=4; [ -t 0 ] && echo is-$((x+1))\n", WaitFor: `is-5`})
		if r.IsError || !strings.Contains(r.Text(), "\nis-5") {
			t.Errorf("%q", r.Text())
		}
		r = h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "echo kept-$x", Keys: []string{"enter"}, WaitFor: `kept-4`})
		if r.IsError || strings.Contains(r.Text(), "is-5") {
			t.Errorf("what was read is read again: %q", r.Text())
		}
		if r = h.terminal(terminalArguments{Action: "resize", ID: "terminal-1", Rows: 50, Cols: 132}); r.IsError {
			t.Errorf("%q", r.Text())
		}
		if r = h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "stty size\n", WaitFor: `50 132`}); strings.Contains(r.Text(), "did not match") {
			t.Errorf("%q", r.Text())
		}
		// Only what is in the foreground hears Ctrl-C: it says that it is.
		h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "sh -c 'echo in-$((1+1)); exec sleep 61006'\n", WaitFor: `in-2`})
		if r = h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Keys: []string{"ctrl-c"}, WaitFor: `\$ $`}); strings.Contains(r.Text(), "did not match") {
			t.Errorf("%q", r.Text())
		}
		// What is typed is judged where the shell stands by now.
		h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "cd / && echo at-$((1+1))\n", WaitFor: `at-2\n\$ $`})
		if runtime.GOOS == "linux" {
			tool, call := h.call(1, terminalArguments{Action: "send", ID: "terminal-1", Text: "rm -rf etc\n"})
			needs, err := tool.Needs(call.Arguments)
			if err != nil || len(needs) != 1 || needs[0].Directory != "/" || !fullest().Judge(tool.Spec(), needs).Floor {
				t.Errorf("%+v, %v", needs, err)
			}
		}
		if r = h.terminal(terminalArguments{Action: "read", ID: "terminal-1", WaitFor: "never", Timeout: 1}); !strings.Contains(r.Text(), "(nothing new)\n[terminal-1: running; wait_for did not match within 1s]") {
			t.Errorf("%q", r.Text())
		}
		if r = h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "exit 7\n", WaitFor: "never"}); !strings.HasSuffix(r.Text(), "[terminal-1: ended with exit code 7]") {
			t.Errorf("%q", r.Text())
		}
		if r = h.terminal(terminalArguments{Action: "stop", ID: "terminal-1"}); r.IsError {
			t.Errorf("%q", r.Text())
		}
	})
}

func TestWhatIsTypedIsJudgedAsWholeLines(t *testing.T) {
	h := shellOf(t, nil)
	h.terminal(terminalArguments{Action: "start", Command: "cat", Quiet: 50})
	needs := func(a terminalArguments) (string, error) {
		a.Action, a.ID = "send", "terminal-1"
		tool, call := h.call(1, a)
		list, err := tool.Needs(call.Arguments)
		var out []string
		for _, n := range list {
			out = append(out, n.Target)
		}
		return strings.Join(out, " | "), err
	}
	for _, c := range []struct {
		args terminalArguments
		want string
	}{
		{terminalArguments{Text: "rm -rf"}, "rm -rf"},
		{terminalArguments{Text: "a\nb\nc"}, "a\nb | c"},
		{terminalArguments{Keys: []string{"up", "ctrl-c"}}, ""},
	} {
		if got, err := needs(c.args); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c.args, got, err)
		}
	}
	h.terminal(terminalArguments{Action: "send", ID: "terminal-1", Text: "rm -rf", Quiet: 50})
	if got, err := needs(terminalArguments{Text: " /\n"}); err != nil || got != "rm -rf /" {
		t.Errorf("a line in two pieces is judged as %q, %v", got, err)
	}
	for _, keys := range [][]string{{"backspace"}, {"up"}, {"tab"}, {"ctrl-w"}, {"left"}, {"nonsense"}} {
		if _, err := needs(terminalArguments{Keys: keys}); err == nil {
			t.Errorf("%v may change a line that was judged", keys)
		}
	}
	for _, text := range []string{"\x7f", "\x1b[A", "\x15", "a\rb", "a\tb"} {
		if _, err := needs(terminalArguments{Text: text}); err == nil {
			t.Errorf("%q may change a line that was judged", text)
		}
	}
}

func TestAProgramThatIsNoSupervisorIsToldInALine(t *testing.T) {
	h := shellOf(t, func(o *ShellOptions) { o.Supervisor = []string{"/bin/false"} })
	r := h.run(t.Context(), commandArguments{Command: "echo x"})
	if !r.IsError || !strings.Contains(r.Text(), "the command was not started: the supervisor /bin/false did not start it") || strings.Contains(strings.TrimSpace(r.Text()), "\n") {
		t.Errorf("%q", r.Text())
	}
}

func TestCredentialsAreKnownByTheirNames(t *testing.T) {
	secret := "OPENAI_API_KEY ANTHROPIC_AUTH_TOKEN HF_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN DB_PASSWORD PGPASSWORD NPM_TOKEN MY_SECRET X_CREDENTIALS GITHUB_PAT openai_api_key SENTRY_DSN OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	plain := "PATH HOME SSH_AUTH_SOCK GOPATH LANG USER KEYBOARD MONKEY TOKENIZERS_PARALLELISM DATABASE_URL PWD OLDPWD"
	for name := range strings.FieldsSeq(secret) {
		if !SecretVariable(name) {
			t.Errorf("%s is handed to commands", name)
		}
	}
	for name := range strings.FieldsSeq(plain) {
		if SecretVariable(name) {
			t.Errorf("%s is kept from commands", name)
		}
	}
	got := Environment([]string{"A=1", "A_TOKEN=2", "BASH_ENV=x", "TERM=xterm", "PAGER=less", "nonsense", "=x"}, nil, []string{"TERM"})
	for _, want := range []string{"A=1", "TERM=xterm", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"} {
		if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "A_TOKEN") || strings.HasPrefix(kv, "BASH_ENV") || kv == "nonsense" || strings.HasPrefix(kv, "=") {
			t.Errorf("%s is handed to commands", kv)
		}
	}
}
