//go:build !windows

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

const line80 = "───────────────────────────────────────────────────────────────────────────────"

func TestTerminalATaskIsStreamedApprovedShownAndTakenBack(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - reasoning: First the file, then the rest.
        text: "# Plan\n\n- **one** file\n- `+"`two`"+` lines\n\nLater words come at last."
        calls: [{name: write_file, arguments: '{"path":"a.txt","content":"hello\nworld\n"}'}]
      - calls: [{name: edit_file, arguments: '{"path":"a.txt","old_string":"world","new_string":"there"}'}]
        insist: true
      - {text: "All **done**.", reject: [history]}
`)
	d.open("ninelives --model openai/gpt-5.4")
	d.Want("  asking openai/gpt-5.4\n" + line80 + "\n›\nopenai/gpt-5.4 · ask · main")
	more := d.dam.hold("words")
	d.Send("write it")
	s := d.Wait("• one file", "Esc interrupts") // Markdown, while it comes
	if strings.Contains(s, "at last") || strings.Contains(s, "**") {
		t.Errorf("while it is streamed the screen is\n%s", s)
	}
	more()

	d.Wait("[y] once")
	d.wantFile("a.txt", "")
	s = d.Screen()
	for _, want := range []string{"› write it\n\n∴ 6 words of reasoning (Ctrl-O)\n\n# Plan\n\n• one file\n• two lines\n\nLater words come at last.\n", " waiting for you · ", `
? Allow write_file? writes a.txt
  --- /dev/null
  +++ b/a.txt
  @@ -0,0 +1,2 @@
  +hello
  +world
[y] once  [a] always write_file a.txt  [n] no  [s] stop  Enter: no
openai/gpt-5.4 · ask · `} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not on the screen\n%s", want, s)
		}
	}
	d.Type("y")
	d.Wait("  -world\n  +there\n[y] once")
	d.wantFile("a.txt", "hello\nworld\n")
	d.Type("y")
	d.Wait("  -world\n  +there\n\nAll done.\n\n  1 file changed: a.txt (/undo takes it back)\n" + line80)
	d.wantFile("a.txt", "hello\nthere\n")
	d.status(`openai/gpt-5\.4 · ask · \d\.\dk \(0% of 1\.1M\) · \$0\.\d{3} · main`)

	d.Send("/undo")
	d.Wait("turn 1 is undone: a.txt\n")
	d.wantFile("a.txt", "")
	d.Send("/redo")
	d.Wait("turn 1 is done again: a.txt\n")
	d.wantFile("a.txt", "hello\nthere\n")
	d.Send("/diff")
	d.Wait("1 file changed by this session")
	d.Send("/export talk.md")
	d.Wait("the conversation is in talk.md")
	if data, _ := os.ReadFile(filepath.Join(d.Dir, "talk.md")); !strings.Contains(string(data), "## You\n\nwrite it\n\n## Assistant\n\n# Plan") {
		t.Errorf("the conversation was written as\n%s", data)
	}
	d.Send("/compact")
	d.Wait("the context was ")
	d.Send("/cost")
	d.Wait("from the cache), output ", "; $0.")

	id := d.quit()
	if models := d.sim.Log(); len(models) != 3 {
		t.Errorf("%d requests, want 3", len(models))
	}
	d.Cooked()
	d.open("ninelives resume " + id)
	d.Wait("› write it", "All done.", "\n"+line80+"\n›\n")
	d.Send("/new")
	d.Wait("\n  a new session\n") // the menu has these words as well
	d.Send("/resume")
	d.Wait("Sessions\n› write it", "complete", "1 of 1 · type to narrow")
	d.Press("Enter")
	d.Wait("session " + id + " again")
	d.Send("/sessions")
	d.Wait("there is no other session")
	d.quit()
}

func TestTerminalADiscardedAttemptVanishesAndAWaitIsExplained(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - {error: rate_limit, hint: seconds, wait: 5s}
      - {text: "This half answer will vanish, as no end of it came.", after: 6, end: cut}
      - {reasoning: Once more., text: The whole answer.}
`)
	d.open("ninelives --model openai/gpt-5.4")
	more := d.dam.hold("vanish")
	d.Send("hello")
	s := d.Wait("rate limited by openai, again in ")
	if !regexp.MustCompile(`\n\S rate limited by openai, again in [1-6]s \(attempt 2\) · \ds · Esc interrupts\n`).MatchString(s) {
		t.Errorf("the wait is told as\n%s", s)
	}
	d.Wait("This half answer", "answering")
	more()
	d.Gone("This half answer")
	d.Wait("The whole answer.\n" + line80)
	if s := d.Scrollback(); strings.Contains(s, "half answer") || strings.Contains(s, "rate limited by") || strings.Count(s, "The whole answer.") != 1 {
		t.Errorf("the scrollback is\n%s", s)
	}
	d.Press("C-o") // how it was healed is a key away, and what was thought
	d.Wait("healing steps (Ctrl-O)", "rate_limit (HTTP 429", "stream_broken", "∴ 2 words of reasoning (Ctrl-O)\n  Once more.\n\nThe whole answer.")
	d.Press("C-o")
	d.Gone("Once more.")
	d.quit()
}

func TestTerminalARunningTurnIsSteeredQueuedBehindAndEndsOnItsModel(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - calls: [{name: write_file, arguments: '{"path":"a.txt","content":"a\n"}'}]
      - {text: "With tabs, then.", reject: [history]}
  - {name: other, steps: [{echo: true}]}
`)
	d.open("ninelives --model openai/gpt-5.4")
	d.Send("begin")
	d.Wait("[y] once") // the turn waits here, so what follows meets it running
	d.Send("use tabs")
	d.Wait("▸ goes into the turn: use tabs")
	d.Type("then test")
	d.Press("Tab")
	d.Wait("▸ queued: then test")
	d.Send("/model openai/other")
	d.Wait("openai/other answers from the next turn on", "openai/other: nothing is known about this model")
	d.status(`openai/gpt-5\.4 · ask · .*`)
	d.Send("/compact")
	d.Wait("/compact cannot be done while a turn runs: Esc stops it")
	d.Send("/permissions plan")
	d.status(`openai/gpt-5\.4 · plan · .*`)
	d.Wait("[y] once")
	d.Type("y")
	d.Wait("› use tabs\n\nWith tabs, then.\n", "› then test\n\nthen test\n")
	d.status(`openai/other · plan · .*`)
	d.Gone("▸")
	var models []string
	for _, e := range d.sim.Log() {
		models = append(models, e.Model)
	}
	if want := []string{"gpt-5.4", "gpt-5.4", "other"}; !slices.Equal(models, want) {
		t.Errorf("the requests went to %q, want %q", models, want)
	}
	asked := d.asked()
	for i, want := range [][]string{{"begin"}, {"begin", "use tabs"}, {"begin", "use tabs", "then test"}} {
		if got := asked[i]; !slices.Equal(got, want) {
			t.Errorf("request %d has the words %q, want %q", i+1, got, want)
		}
	}
	d.Send("/model openai/other")
	d.Wait("openai/other is in use already")
	d.Send("/model nonsense")
	d.Wait(`the model stays: provider: unknown model "nonsense"`)
	d.Send("/model")
	d.Wait("Model (now openai/other; /model NAME takes any)\n› openai/gpt-5.4")
	d.Press("Enter")
	d.status(`openai/gpt-5\.4 · plan · .*`)
	d.quit()
}

func TestTerminalKeysStopClearRewindAndQuit(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - {name: gpt-5.4, steps: [{text: "I go on and on and never come to an end.", after: 6, end: stall}]}
`)
	d.open("ninelives --model openai/gpt-5.4")
	d.Send("begin")
	d.Wait("I go on", "answering")
	d.Type("half typed")
	d.Wait("› half typed")
	d.Press("Escape")
	d.Wait("not part of the conversation ──", "you stopped the turn; what was done stays done", "press r to go on with the turn that you stopped", "\n› half typed\n")
	d.sim.Wait()
	if log := d.sim.Log(); !log[0].Left {
		t.Error("the provider was not told that nobody listens any more")
	}
	d.Press("C-c")
	d.Gone("half typed")
	d.Press("Up")
	d.Wait("› half typed")
	d.Press("C-c")
	d.Gone("half typed")

	d.Press("Escape")
	d.twice("Escape", "Esc again goes back to an earlier message")
	d.Wait("Back to before which message?\n› begin  turn 1")
	d.Press("Enter")
	d.Wait("the model has forgotten everything from turn 1 on", line80+"\n› begin\n")
	d.Press("Enter") // once more
	d.Wait("I go on", "answering")
	d.Send("/stop")
	d.Gone("Esc interrupts")

	d.Press("r")
	d.Wait("I go on", "answering")
	d.Type("half typed")
	d.Wait("› half typed")
	d.Press("C-c")
	d.Until("an empty input and a running turn", func(s string) bool {
		return strings.Contains(s, "answering") && strings.Contains(s, line80+"\n›\n")
	})
	d.Press("C-c")
	d.Gone("Esc interrupts")
	d.Gone("Esc again does not wait")
	d.Press("Left") // what is not the next key is not the second
	d.Press("C-c")
	d.twice("C-c", "Ctrl-C again quits")
	d.Wait("go on with: ninelives resume ", "exit=0\n$")
	d.Cooked()
}

func TestTerminalLinesFilesCommandsAndHistory(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - {name: gpt-5.4, steps: [{text: Heard.}]}
`)
	d.file("AGENTS.md", "Use tabs, always.\n")
	d.file("notes.txt", "alpha\nbeta\ngamma\n")
	d.open("ninelives --model openai/gpt-5.4")
	d.Type("one")
	d.Press("C-j")
	d.Type("two")
	d.Wait("› one\n  two\n")
	d.Press("Enter")
	d.Wait("Heard.\n" + line80)
	d.Send("!echo from me; exit 3")
	d.Wait("✗ echo from me; exit 3 – exit status 3\n  │ from me\n", "▸ with the next message: the output of 1 command")
	d.Type("see @not")
	d.Wait("\n› notes.txt\n")
	d.Press("Tab")
	d.Wait("› see @notes.txt")
	d.Press("BSpace") // the blank that goes behind it
	d.Send("#2-3")
	d.Until("the second answer", func(s string) bool { return strings.Count(s, "Heard.") == 2 && !strings.Contains(s, "Esc interrupts") })
	d.Press("C-r")
	d.Type("one")
	d.Wait("History one\n› one two\n")
	d.Press("Enter")
	d.Wait(line80 + "\n› one\n  two\n")
	d.Press("C-c")
	for _, mode := range []string{"auto-edit", "plan", "full", "ask"} {
		d.Press("BTab")
		d.status(`openai/gpt-5\.4 · ` + mode + ` · .*`)
	}
	d.Send("/memory")
	d.Wait("AGENTS.md", "Use tabs, always.")
	d.Send("/mcp")
	d.Wait("no servers are configured")
	d.Send("/permissions")
	d.Wait("mode ask (Shift-Tab or /permissions MODE changes it)\n  profile standard")
	d.Send("/status")
	d.Wait("branch     main\n", "turns      2\n")
	d.Send("/help")
	d.Wait("@FILE ", "!COMMAND ")
	d.Send("/hepl")
	d.Wait("there is no command /hepl (did you mean /help?)")
	d.quit()

	asked := d.asked()
	if got := asked[0]; !slices.Equal(got, []string{"one\ntwo"}) {
		t.Errorf("the first request has %q", got)
	}
	second := strings.Join(asked[1], "\n")
	for _, want := range []string{"$ echo from me; exit 3\nfrom me\n(exit status 3)", "see @notes.txt#2-3", "beta\ngamma"} {
		if !strings.Contains(second, want) {
			t.Errorf("the second request lacks %q: %q", want, second)
		}
	}
	if strings.Contains(second, "alpha") {
		t.Errorf("more of the file was sent than was asked for: %q", second)
	}
}

func TestTerminalAKilledTurnIsShownAsFailedAndGoneOnWith(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - calls: [{name: run_command, arguments: '{"command":"echo one >>done.txt; echo ready; sleep 600"}'}]
      - {text: "It may have run, so I look first.", reject: [history]}
`)
	d.open("ninelives --permission-mode full --model openai/gpt-5.4")
	d.Send("do it")
	d.Wait("○ run_command", "│ ready", "running run_command")
	d.Type("unsent words")
	d.Wait("› unsent words")
	drafts := filepath.Join(d.Home, ".local", "state", "ninelives", "history*")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // a fourth of a second later they are on disk
		var kept string
		names, _ := filepath.Glob(drafts)
		for _, name := range names {
			data, _ := os.ReadFile(name)
			kept += string(data)
		}
		if strings.Contains(kept, "unsent words") {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("what was typed is not kept: %q", names)
		}
	}
	if err := syscall.Kill(d.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.Wait("exit=137")

	d.open("ninelives resume --model openai/gpt-5.4")
	s := d.Wait("✗ failed turn: ", "press r to resume", line80+"\n› unsent words\n")
	if !strings.Contains(s, "› do it\n") {
		t.Errorf("the turn is not shown:\n%s", s)
	}
	d.Press("C-c")
	d.Gone("unsent words")
	d.Press("r")
	d.Wait("It may have run, so I look first.\n" + line80)
	d.wantFile("done.txt", "one\n")
	if log := d.sim.Log(); len(log) != 2 || !strings.Contains(string(log[1].Body), "nobody can say whether it had its effect") {
		t.Errorf("the model was not told what is unknown: %d requests", len(log))
	}
	d.quit()
}

func TestTerminalTheGuardAsksForAnotherQuota(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - {times: 10, insist: true, calls: [{name: list_dir, arguments: '{"path":"."}'}]}
      - {text: Found it., reject: [history]}
`)
	d.open("ninelives --model openai/gpt-5.4")
	d.Send("look around")
	d.Wait("? The guard stops the turn. Another full quota?", "Forced stop: loop detected: list_dir was called 5 times", "[y] yes  [n] no  Enter: no")
	d.Type("y")
	d.Wait("Tool calls: 10 ", "[y] yes  [n] no  Enter: no")
	d.Press("Enter")
	d.Wait("press r to go on with another full quota\n" + line80)
	if s := d.Scrollback(); strings.Count(s, "Forced stop") != 1 {
		t.Errorf("the stop is told more than once:\n%s", s)
	}
	if n := len(d.sim.Log()); n != 10 {
		t.Errorf("%d requests, want 10", n)
	}
	d.Press("r")
	d.Wait("Found it.\n" + line80)
	d.quit()
}

func TestTerminalServersOfTheModelContextProtocol(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - calls: [{name: math__add, arguments: '{"a":2,"b":3}'}]
      - {text: Five., reject: [history]}
`)
	config := filepath.Join(d.Home, ".config", "ninelives", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("agent:\n  mcpServers:\n    math: {command: adder}\n    gone: {command: no-such-program}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.open("ninelives --model openai/gpt-5.4")
	for asked := 1; !strings.Contains(d.Scrollback(), "math: ready, 1 tool\n"); asked++ {
		d.Send("/mcp")
		d.Until("how the servers are", func(string) bool { return strings.Count(d.Scrollback(), "gone: failed, ") >= asked })
	}
	d.Send("add")
	d.Wait("? Allow math__add?", "[y] once")
	d.Type("y")
	d.Wait("Five.\n" + line80)
	d.Press("C-o")
	d.Wait("the sum is 5")
	d.Press("C-o")
	d.Send("/mcp")
	d.Wait("math: ready, 1 tool\n", "gone: failed, 0 tools – there is no program no-such-program")
	d.quit()
}

func TestTerminalInitHasTheModelWriteAgentsMD(t *testing.T) {
	d := newDesk(t, 80, 24, `
  - name: gpt-5.4
    steps:
      - calls: [{name: write_file, arguments: '{"path":"AGENTS.md","content":"Run make test.\n"}'}]
      - {text: It is written., reject: [history]}
`)
	d.open("ninelives --model openai/gpt-5.4")
	d.Send("/init")
	d.Wait("? Allow write_file? writes AGENTS.md", "+Run make test.", "[y] once")
	d.Type("y")
	d.Wait("It is written.\n")
	d.wantFile("AGENTS.md", "Run make test.\n")
	if asked := d.asked()[0][0]; !strings.Contains(asked, "write AGENTS.md in its root") {
		t.Errorf("the model was asked %q", asked)
	}
	d.Send("/memory")
	d.Wait("AGENTS.md", "Run make test.")
	d.quit()
}

func TestTerminalOfFortyColumnsWithoutColorIsResizedInAnAnswer(t *testing.T) {
	d := newDesk(t, 40, 10, `
  - name: gpt-5.4
    steps:
      - text: "The first paragraph is somewhat longer than forty columns are.\n\nThe second one comes when the terminal is wider, and is longer than forty as well."
`, "NO_COLOR=1")
	d.open("ninelives --model openai/gpt-5.4")
	d.Want("  asking openai/gpt-5.4\n›\nopenai/gpt-5.4 · ask · main")
	more := d.dam.hold("second")
	d.Send("talk")
	d.Wait("The first paragraph is somewhat longer\nthan forty columns are.\n")
	d.Resize(80, 24)
	d.Wait("The first paragraph is somewhat longer than forty columns are.\n", "answering")
	more()
	d.Wait("The first paragraph is somewhat longer than forty columns are.\n\n" +
		"The second one comes when the terminal is wider, and is longer than forty as\nwell.\n" + line80)
	if s := d.Colored(); strings.Contains(s, "\x1b") {
		t.Errorf("NO_COLOR is not obeyed: %q", s)
	}
	d.Resize(40, 10)
	d.Until("the end of the answer in forty columns", func(s string) bool {
		return strings.Contains(s, "wider, and is longer than forty as\nwell.\n›\nopenai/gpt-5.4 · ask · ") && len(strings.Split(s, "\n")) <= 10
	})
	d.Resize(80, 24)
	d.quit()
}

func TestTerminalThatIsDumbIsToldInLines(t *testing.T) {
	d := newDesk(t, 80, 40, `
  - name: gpt-5.4
    steps:
      - calls: [{name: write_file, arguments: '{"path":"a.txt","content":"hello\n"}'}]
      - {text: All done., reject: [history]}
`, "TERM=dumb")
	d.Start("TERM=dumb ninelives --model openai/gpt-5.4; echo exit=$?")
	d.Wait("openai/gpt-5.4>")
	d.Send("write it")
	d.Wait("? Allow write_file? writes a.txt\n", "  +hello\n", "[n] ?")
	d.wantFile("a.txt", "")
	d.Send("y")
	d.Wait("● write_file a.txt – created a.txt (1 line)", "All done.", "1 file changed: a.txt", "\nopenai/gpt-5.4>")
	d.wantFile("a.txt", "hello\n")
	d.Send("/quit")
	d.Wait("\nopenai/gpt-5.4> /quit\ngo on with: ninelives resume ", "\nexit=0\n$")
	if s := d.Colored(); strings.Contains(s, "\x1b") {
		t.Errorf("a dumb terminal got escape sequences: %q", s)
	}
}

// A remote shell is a plain pair of terminals that answers no question of the
// program: neither its size in pixels, nor its colours, nor what it can do.
func TestTerminalThatAnswersNothingAsOverSSH(t *testing.T) {
	sim := simulate(t, `
  - {name: gpt-5.4, steps: [{text: Heard you from afar.}]}
`)
	t.Parallel()
	program, err := exec.LookPath("ninelives")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--model", "openai/gpt-5.4")
	cmd.Dir = t.TempDir()
	cmd.Env = append(providers(sim.URL()), "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8", "SSH_TTY=/dev/pts/9", "SSH_CONNECTION=192.0.2.1 5 192.0.2.2 22")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		t.Skipf("needs a pseudo terminal: %v", err)
	}
	defer tty.Close()
	var mu sync.Mutex
	var out []byte
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4<<10)
		for {
			n, err := tty.Read(buf)
			mu.Lock()
			out = append(out, buf[:n]...)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	shown := func() string {
		mu.Lock()
		defer mu.Unlock()
		return ansi.Strip(string(out))
	}
	wait := func(text string) {
		t.Helper()
		for began := time.Now(); !strings.Contains(shown(), text); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				cmd.Process.Kill()
				t.Fatalf("%q did not come: %q", text, shown())
			}
		}
	}
	wait("openai/gpt-5.4 · ask")
	io.WriteString(tty, "hello\r")
	wait("Heard you from afar.")
	io.WriteString(tty, "\x04")
	wait("go on with: ninelives resume ")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	<-read
	if strings.Contains(string(out), "\x1b[?1049h") {
		t.Error("the alternate screen was taken")
	}
	if modes := regexp.MustCompile(`\x1b\[\?25[lh]`).FindAllString(string(out), -1); len(modes) > 0 && modes[len(modes)-1] != "\x1b[?25h" {
		t.Error("the cursor was left hidden")
	}
}
