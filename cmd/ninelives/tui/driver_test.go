package tui

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
)

// wheel is a driver without a terminal: what it tells is gathered.
type wheel struct {
	*driver
	told chan any
}

func newWheel(t *testing.T, cfg Config) *wheel {
	t.Helper()
	if cfg.Session == nil {
		cfg.Session = newScripted("s1", cfg.Asker)
	}
	if cfg.Directory == "" {
		cfg.Directory = t.TempDir()
	}
	w := &wheel{driver: newDriver(t.Context(), cfg), told: make(chan any, 1000)}
	w.tell = func(msg any) { w.told <- msg }
	t.Cleanup(func() {
		if _, err := w.end(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// words are the texts of the blocks of a command's outcome.
func words(msg any) string {
	var lines []string
	switch m := msg.(type) {
	case told:
		for _, b := range m.blocks {
			lines = append(lines, b.head)
		}
	case opened:
		lines = append(lines, m.standing.Session+": "+m.word)
	case chosen:
		lines = append(lines, m.picker.title)
		for _, it := range m.picker.items {
			lines = append(lines, it.text+" ("+it.value+")")
		}
	}
	return strings.Join(lines, "\n")
}

func TestEveryCommandDoesItsThingOrSaysWhyNot(t *testing.T) {
	full := Config{
		New:      func(context.Context) (Session, error) { return newScripted("s2", nil), nil },
		Resume:   func(_ context.Context, id string) (Session, error) { return nil, errors.New("process 42 holds it") },
		Sessions: func(context.Context) ([]Listed, error) { return []Listed{{ID: "s1"}, {ID: "s0", Title: "older"}}, nil },
		Models:   []string{"sim/coder", "sim/thinker"},
		Switch: func(_ context.Context, name string) (bool, []string, error) {
			if name == "bad" {
				return false, nil, errors.New("there is no model bad")
			}
			if name == "sim/coder" {
				return false, nil, nil
			}
			return true, []string{"its window is a guess"}, nil
		},
		Memory: func(context.Context) (string, error) { return "AGENTS.md\n", nil },
		MCP:    func(context.Context) (string, error) { return "", nil },
	}
	for _, c := range []struct{ command, full, bare string }{
		{"model", "Model (now sim/coder; /model NAME takes any)\nsim/coder (sim/coder)\nsim/thinker (sim/thinker)", "/model is not set up here"},
		{"model sim/thinker", "sim/thinker answers from the next turn on\nits window is a guess", "/model is not set up here"},
		{"model sim/coder", "sim/coder is in use already", "/model is not set up here"},
		{"model bad", "the model stays: there is no model bad", "/model is not set up here"},
		{"sessions", "Sessions\nolder (s0)", "/resume is not set up here"},
		{"resume s0", "this session stays: process 42 holds it", "/resume is not set up here"},
		{"resume s1", "this session is the one", "/resume is not set up here"},
		{"compact", "the context was made smaller, from 12.3k to 4.1k tokens: you asked for it", "the context was made smaller, from 12.3k to 4.1k tokens: you asked for it"},
		{"undo", "turn 1 is undone: main.go\nleft alone, because somebody changed them since: go.mod", "turn 1 is undone: main.go\nleft alone, because somebody changed them since: go.mod"},
		{"redo", "this session has no file changes to redo", "this session has no file changes to redo"},
		{"rewind", "there is no message to go back to", "there is no message to go back to"},
		{"rewind 7", "nothing was rewound: there is no turn 7: /rewind lists them", "nothing was rewound: there is no turn 7: /rewind lists them"},
		{"permissions", "mode ask (Shift-Tab or /permissions MODE changes it)", "mode ask (Shift-Tab or /permissions MODE changes it)"},
		{"permissions ful", "the permission mode stays: there is no permission mode \"ful\" (did you mean \"full\"?): ask, auto-edit, plan, full", ""},
		{"memory", "AGENTS.md", "/memory is not set up here"},
		{"mcp", "there is nothing to show", "/mcp is not set up here"},
		{"export", "there is nothing to write yet", "there is nothing to write yet"},
		{"diff", "this session has changed no file", "this session has changed no file"},
		{"new", "s2: a new session", "/new is not set up here"},
	} {
		name, args, _ := strings.Cut(c.command, " ")
		if got := words(newWheel(t, full).do(do{name, args})); got != c.full {
			t.Errorf("/%s: %q, want %q", c.command, got, c.full)
		}
		if got := words(newWheel(t, Config{}).do(do{name, args})); got != c.bare && c.bare != "" {
			t.Errorf("/%s without anything set up: %q, want %q", c.command, got, c.bare)
		}
	}
}

func TestAnotherSessionTakesThePlaceAndTheOldOneIsClosed(t *testing.T) {
	old, s2 := newScripted("s1", nil), newScripted("s2", nil)
	w := newWheel(t, Config{Session: old, New: func(context.Context) (Session, error) { return s2, nil }})
	w.do(do{name: "new"})
	if !old.closed || s2.closed || w.session != Session(s2) {
		t.Errorf("closed: %v %v", old.closed, s2.closed)
	}
	failing := newWheel(t, Config{Session: newScripted("s3", nil), New: func(context.Context) (Session, error) { return nil, errors.New("the disk is full") }})
	if got := words(failing.do(do{name: "new"})); got != "this session stays: the disk is full" || failing.session.(*scripted).closed {
		t.Errorf("%q", got)
	}
}

func TestShiftTabGoesThroughAllModes(t *testing.T) {
	w := newWheel(t, Config{})
	var seen []string
	for range 4 {
		w.do(cycle{})
		seen = append(seen, string(w.session.Status().Mode))
	}
	if got := strings.Join(seen, " "); got != "auto-edit plan full ask" {
		t.Errorf("the modes come as %s", got)
	}
}

func TestTurnsEventsComeInOrderInFramesAndEndOnce(t *testing.T) {
	w := newWheel(t, Config{})
	began := time.Now()
	msg := w.do(send{text: "long", via: agent.ViaTurn})
	frames := 0
	var text strings.Builder
	var last agent.Event
	for len(w.told) > 0 {
		frames++
		for _, ev := range (<-w.told).(events).list {
			last = ev
			if m, ok := ev.(agent.Model); ok {
				text.WriteString(m.Event.(ninelives.TextDelta).Text)
			}
		}
	}
	if most := int(time.Since(began)/frame) + 2; frames > most {
		t.Errorf("%d messages in %v", frames, time.Since(began))
	}
	if !strings.HasPrefix(text.String(), "Paragraph number 1 ") || strings.Count(text.String(), "\n\n") != 200 {
		t.Errorf("the text came as %.100q…", text.String())
	}
	if _, ok := last.(agent.Ended); !ok {
		t.Errorf("the last event is %T", last)
	}
	if over, ok := msg.(turnOver); !ok || over.err != nil {
		t.Errorf("%#v", msg)
	}
}

func TestStopEndsTheTurnAndASecondOneDoesNotWait(t *testing.T) {
	w := newWheel(t, Config{})
	done := make(chan any)
	go func() { done <- w.do(send{text: "wait", via: agent.ViaTurn}) }()
	<-w.told
	w.do(stop{})
	if over := (<-done).(turnOver); over.err != nil {
		t.Error(over.err)
	}
	ended := false
	for len(w.told) > 0 {
		for _, ev := range (<-w.told).(events).list {
			if e, ok := ev.(agent.Ended); ok {
				ended = e.Reason == agent.ReasonCanceled
			}
		}
	}
	if !ended {
		t.Error("the turn did not end as canceled")
	}
}

func TestMistakeInATurnEndsTheTurnAlone(t *testing.T) {
	w := newWheel(t, Config{})
	err := drain(func(yield func(agent.Event, error) bool) { panic("index out of range\nmore") }, func(agent.Event) {})
	if err == nil || err.Error() != "the turn broke (index out of range more); its record is kept" {
		t.Errorf("%v", err)
	}
	if err := drain(func(yield func(agent.Event, error) bool) { yield(nil, agent.ErrBusy) }, nil); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("%v", err)
	}
	w.do(nil)
}

func TestOutputIsBoundedWhereTheScreenIsSlow(t *testing.T) {
	var b batch
	for range 10000 {
		b.add(agent.Output{Call: "c", Text: strings.Repeat("x", 100)}, func() {})
	}
	list := b.take()
	if len(list) != 1 || len(list[0].(agent.Output).Text) > 2*liveOutput {
		t.Errorf("%d events wait", len(list))
	}
}

func TestShellCommandRunsInTheWorkspaceAndIsShown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	w := newWheel(t, Config{Env: os.Environ()})
	over := w.do(shell{"pwd; echo oops >&2; exit 3"}).(shellOver)
	dir, _ := filepath.EvalSymlinks(w.cfg.Directory)
	if over.block.body != dir+"\noops\n" || over.block.note != "exit status 3" || !over.block.failed {
		t.Errorf("%#v", over.block)
	}
	if over.context != "$ pwd; echo oops >&2; exit 3\n"+dir+"\noops\n(exit status 3)" {
		t.Errorf("%q", over.context)
	}
	over = w.do(shell{"head -c 200000 /dev/zero | tr '\\0' x; echo; echo end"}).(shellOver)
	if n := len(over.block.body); n > shellBytes+100 || !strings.HasPrefix(over.block.body, "… the beginning is left out\n") || !strings.HasSuffix(over.block.body, "x\nend\n") {
		t.Errorf("%d bytes, %.60q", n, over.block.body)
	}
}

func TestStopEndsAShellCommandAndWhatItStarted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	w := newWheel(t, Config{Env: os.Environ()})
	started := filepath.Join(w.cfg.Directory, "started")
	done := make(chan any)
	go func() { done <- w.do(shell{"sleep 600 & touch started; wait"}) }()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		runtime.Gosched()
	}
	w.do(stop{})
	over := (<-done).(shellOver)
	if !over.block.failed || over.block.note != "stopped" {
		t.Errorf("%#v", over.block)
	}
}

func TestQuestionReachesThePersonAndTheAnswerTheAgent(t *testing.T) {
	a := NewAsker()
	if d := a.Approve(t.Context(), agent.Question{}); d.Reply != agent.ReplyNo {
		t.Errorf("without a terminal the answer is %q", d.Reply)
	}
	var mu sync.Mutex
	var seen []any
	a.attach(func(msg any) {
		mu.Lock()
		seen = append(seen, msg)
		mu.Unlock()
		if q, ok := msg.(asked); ok && q.dialog.question != nil && q.dialog.question.Name == "yes" {
			a.answer(answer{id: q.dialog.id, decision: agent.Decision{Reply: agent.ReplyOnce}})
		}
		if q, ok := msg.(asked); ok && q.dialog.grant != nil {
			a.answer(answer{id: q.dialog.id, granted: true})
			a.answer(answer{id: q.dialog.id}) // a second answer is none
		}
	})
	if d := a.Approve(t.Context(), agent.Question{Name: "yes"}); d.Reply != agent.ReplyOnce {
		t.Errorf("%q", d.Reply)
	}
	if !a.GrantMore(t.Context(), agent.Ended{}) {
		t.Error("the grant did not arrive")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := a.Approve(ctx, agent.Question{Name: "late"}); d.Reply != agent.ReplyNo {
		t.Errorf("after the end of the turn: %q", d.Reply)
	}
	if w, ok := seen[len(seen)-1].(withdrawn); !ok || w.id != 4 {
		t.Errorf("the question is not taken back: %#v", seen[len(seen)-1])
	}
	go func() {
		for {
			a.mu.Lock()
			n := len(a.open)
			a.mu.Unlock()
			if n > 0 {
				a.attach(nil)
				return
			}
			runtime.Gosched()
		}
	}()
	if d := a.Approve(t.Context(), agent.Question{Name: "last"}); d.Reply != agent.ReplyNo {
		t.Errorf("when the terminal ends: %q", d.Reply)
	}
}

func TestConversationIsRecalledAndWritten(t *testing.T) {
	messages := []ninelives.Message{
		ninelives.UserText("fix it" + fileMark + "\"a\">\nx\n</file>"),
		{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Reasoning{Text: "hm"}, ninelives.Text{Text: "I look."},
			ninelives.ToolCall{ID: "1", Name: "grep", Arguments: `{"pattern":"x"}`}, ninelives.ToolCall{ID: "2", Name: "grep", Arguments: `{"pattern":"y"}`}}},
		{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "1", Name: "grep", Content: []ninelives.Part{ninelives.Text{Text: "```\nfound"}}}}},
		ninelives.UserText("forgotten"),
	}
	turns := []agent.Turn{{Number: 1, First: 0}, {Number: 2, First: 3, Rewound: true}}
	want := []block{
		{kind: blockUser, head: "fix it"},
		{kind: blockThought, head: "1 word of reasoning (Ctrl-O)", body: "hm"},
		{kind: blockAnswer, head: "I look."},
		{kind: blockCall, head: "grep x", body: "```\nfound"},
		{kind: blockCall, head: "grep y", note: "no result", failed: true},
	}
	if got := recall(messages, turns); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	got := exported("s1", messages[:3])
	if want := "# Session s1\n\n## You\n\nfix it\n\n<file path=\"a\">\nx\n</file>\n\n## Assistant\n\nI look.\n\n`grep`\n\n```json\n{\"pattern\":\"x\"}\n```\n" +
		"\n`grep`\n\n```json\n{\"pattern\":\"y\"}\n```\n\nResult of `grep`:\n\n````\n```\nfound\n````\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDiffIsAgainstTheLastCommitAndRunsNothingOfTheRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git, which is not installed")
	}
	w := newWheel(t, Config{Env: append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")})
	dir := w.cfg.Directory
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		cmd.Env = w.cfg.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	write("old", "a\n")
	write("same", "s\n")
	git("add", ".")
	git("commit", "-q", "-m", "m")
	write("evil", "#!/bin/sh\ntouch "+dir+"/ran\n")
	for _, key := range []string{"core.fsmonitor", "diff.external", "core.pager"} {
		git("config", key, "./evil")
	}
	write("old", "b\n")
	write("new", "n\n")
	got := w.gitDiff([]string{"new", "old", "same"})
	for _, want := range []string{"-a\n+b\n", "+++ b/new\n@@ -0,0 +1 @@\n+n\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(got, "same") {
		t.Errorf("what did not change is shown: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a command of the repository's was run")
	}
}

func TestMistakeInTheScreenEndsWithALineAndKeepsTheText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	w := newWheel(t, Config{History: path})
	w.out = &screen{}
	w.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	w.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	w.ui.commands = nil
	w.ui.picker = &picker{shown: []item{{}}} // choosing calls a function that is not there
	_, cmd := w.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if _, ok := cmd().(tea.QuitMsg); !ok || w.failure == nil ||
		w.failure.Error() != "the terminal UI made a mistake (runtime error: invalid memory address or nil pointer dereference) and had to end; the session is kept" {
		t.Errorf("%v", w.failure)
	}
	w.end()
	if got := takeDraft(path, w.cfg.Directory); got != "x" {
		t.Errorf("the draft is %q", got)
	}
}

func TestWithoutATerminalItSaysWhatToUse(t *testing.T) {
	defer goleak.VerifyNone(t, ownClock())
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	s := newScripted("s1", nil)
	if _, err := Run(t.Context(), Config{Session: s, In: in, Out: out}); !errors.Is(err, ErrNoTerminal) || !s.closed {
		t.Errorf("%v, closed %v", err, s.closed)
	}
}

// A renderer that has cleared its screen believes the cursor to be where it is
// only with the next frame; lines that are put above the frame before that are
// lost. On a busy machine they were.
func TestNoCursorIsMovedBetweenFrames(t *testing.T) {
	w := newWheel(t, Config{})
	w.out = &screen{file: os.Stdout}
	w.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	w.ui.print(block{kind: blockNote, head: "a line"})
	steps := reflect.ValueOf(w.flush()()) // a sequence of commands
	for i := range steps.Len() {
		if msg := steps.Index(i).Interface().(tea.Cmd)(); reflect.TypeOf(msg) == reflect.TypeOf(tea.ClearScreen()) {
			t.Error("the screen is cleared")
		}
	}
	if got := strings.Join(w.out.lines, "|"); !strings.Contains(got, "a line") {
		t.Errorf("%q is to be put above the frame", got)
	}
}

func TestLinesArePutAboveTheFrameInOneWrite(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := &screen{file: file}
	take := func() string {
		data, _ := os.ReadFile(file.Name())
		os.Truncate(file.Name(), 0)
		file.Seek(0, 0)
		return string(data)
	}
	s.print([]string{"one", "\x1b[1mtwo"}, false)
	s.Write([]byte("\r\x1b[2B\n\x1b[5A\x1b[L" + mark + "\x1b[K\r\n")) // a frame of 5 lines, the cursor in its third
	if got := take(); got != "" {
		t.Errorf("written before the frame: %q", got)
	}
	s.Write([]byte("FRAME"))
	if got, want := take(), "\r\x1b[2A\x1b[Jone\r\n\x1b[1mtwo\x1b[m\r\nFRAME"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.print([]string{"old"}, false)
	s.print([]string{"new"}, true) // clears what waits, too
	s.Write([]byte("\r\n\x1b[A\x1b[L" + mark + "\x1b[K\r\n"))
	s.Write([]byte("F"))
	if got, want := take(), "\r\x1b[H\x1b[2J\x1b[Jnew\r\nF"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.print([]string{"a", "b"}, false)
	s.Write([]byte("another form of " + mark + "\r\n"))
	if got, want := take(), "another form of a\r\nb\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.print([]string{"last"}, false)
	s.flush()
	if got := take(); got != "last\r\n" {
		t.Errorf("%q", got)
	}
}
