package hookcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// TestMain lets the test's own program be the commands: a real process with
// real files, on any system.
func TestMain(m *testing.M) {
	if os.Getenv("HOOK_ACTS") != "" {
		os.Exit(act(os.Args[1:]))
	}
	os.Setenv("HOOK_ACTS", "")
	goleak.VerifyTestMain(m)
}

// act does what its arguments say, one after the other.
func act(args []string) int {
	for _, a := range args {
		what, value, _ := strings.Cut(a, "=")
		switch what {
		case "out":
			fmt.Print(value)
		case "err":
			fmt.Fprint(os.Stderr, value)
		case "flood":
			n, _ := strconv.Atoi(value)
			for range n {
				fmt.Print(strings.Repeat("x", 1000))
			}
		case "save": // what it reads, into a file
			text, err := readAll(os.Stdin)
			if err != nil {
				return 99
			}
			if err := os.WriteFile(value, text, 0o600); err != nil {
				return 98
			}
		case "append": // a letter, to a file in its directory
			f, err := os.OpenFile("order", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 97
			}
			fmt.Fprint(f, value)
			f.Close()
		case "env":
			fmt.Print(value, "=", os.Getenv(value), ";")
		case "here":
			dir, _ := os.Getwd()
			fmt.Print(dir)
		case "child": // starts another that stays, and says which
			child, err := os.StartProcess(os.Args[0], []string{os.Args[0], "sleep"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
			if err != nil {
				return 96
			}
			if err := os.WriteFile(value, []byte(strconv.Itoa(child.Pid)), 0o600); err != nil {
				return 95
			}
		case "sleep":
			time.Sleep(time.Hour)
		case "exit":
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

func readAll(f *os.File) ([]byte, error) {
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return all, err
		}
	}
}

// hooks makes a hook of commands that do what they are told, and gives where
// its warnings are.
func hooks(t *testing.T, o Options, commands ...agent.CommandHook) (agent.Hook, *[]string) {
	t.Helper()
	t.Setenv("HOOK_ACTS", "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range commands {
		commands[i].Run = append([]string{self}, commands[i].Run...)
	}
	if o.Directory == "" {
		o.Directory = t.TempDir()
	}
	var warnings []string
	o.Warn = func(text string) { warnings = append(warnings, text) }
	h, err := New(o, commands...)
	if err != nil {
		t.Fatal(err)
	}
	return h, &warnings
}

func beforeTool(acts ...string) agent.CommandHook {
	return agent.CommandHook{On: agent.PointBeforeTool, Run: acts}
}

func call(name string) (*tool.Call, tool.Spec) {
	return &tool.Call{ID: "call-1", Arguments: []byte(`{"path":"a.go"}`), Session: "s1", Turn: 2},
		tool.Spec{Tool: ninelives.Tool{Name: name}}
}

// name is what warnings and reasons call the commands of these tests.
func name() string { return filepath.Base(os.Args[0]) }

func TestExitCodesSayWhatIsDone(t *testing.T) {
	for _, row := range []struct {
		kind    string
		acts    []string
		want    agent.Intervention
		warning string
	}{
		{kind: "0 goes on", acts: []string{"exit=0"}},
		{kind: "0 with text is a note", acts: []string{"out=  the file is generated\n"}, want: agent.Intervention{Note: "the file is generated"}},
		{kind: "0 with JSON is a note", acts: []string{`out={"note": "mind the tests"}`}, want: agent.Intervention{Note: "mind the tests"}},
		{kind: "0 with JSON blocks", acts: []string{`out={"block": true, "note": "not on a Friday"}`},
			want: agent.Intervention{Block: true, Note: "blocked by the hook NAME: not on a Friday"}},
		{kind: "0 with JSON blocks without a reason", acts: []string{`out={"block": true}`},
			want: agent.Intervention{Block: true, Note: "blocked by the hook NAME: it gave no reason"}},
		{kind: "other members do not matter", acts: []string{`out={"note": "a", "version": 3}`}, want: agent.Intervention{Note: "a"}},
		{kind: "JSON of another shape", acts: []string{`out={"block": "yes"}`},
			warning: `the hook NAME wrote no answer that can be read: expected {"block": true, "note": "…"} or plain text`},
		{kind: "stderr of a success is nobody's", acts: []string{"err=debugging"}},
		{kind: "2 blocks", acts: []string{"err=no edits of generated files\n", "exit=2"},
			want: agent.Intervention{Block: true, Note: "blocked by the hook NAME: no edits of generated files"}},
		{kind: "2 with the reason on the wrong output", acts: []string{"out=no", "exit=2"},
			want: agent.Intervention{Block: true, Note: "blocked by the hook NAME: no"}},
		{kind: "2 without a reason", acts: []string{"exit=2"},
			want: agent.Intervention{Block: true, Note: "blocked by the hook NAME: it gave no reason"}},
		{kind: "1 is a warning", acts: []string{"err=no config\nand more", "out=ignored", "exit=1"},
			warning: "the hook NAME at before_tool failed, and what it was asked about goes on: exit status 1: no config"},
		{kind: "a warning stays in its line", acts: []string{"err=\x1b[2Jboo", "exit=3"},
			warning: `the hook NAME at before_tool failed, and what it was asked about goes on: exit status 3: \x1b[2Jboo`},
	} {
		t.Run(row.kind, func(t *testing.T) {
			h, warnings := hooks(t, Options{}, beforeTool(row.acts...))
			c, spec := call("edit_file")
			got := h.BeforeTool(t.Context(), c, spec)
			row.want.Note = strings.ReplaceAll(row.want.Note, "NAME", name())
			if got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
			var want []string
			if row.warning != "" {
				want = []string{strings.ReplaceAll(row.warning, "NAME", name())}
			}
			if !reflect.DeepEqual(*warnings, want) {
				t.Errorf("warnings %q, want %q", *warnings, want)
			}
		})
	}
}

func TestACommandThatCannotBeStartedIsAWarning(t *testing.T) {
	var warnings []string
	h, err := New(Options{Directory: t.TempDir(), Warn: func(w string) { warnings = append(warnings, w) }},
		agent.CommandHook{On: agent.PointBeforeTool, Run: []string{"./no-such-command"}})
	if err != nil {
		t.Fatal(err)
	}
	c, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), c, spec); got != (agent.Intervention{}) {
		t.Errorf("%+v", got)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the hook no-such-command at before_tool failed, and what it was asked about goes on: ") {
		t.Errorf("%q", warnings)
	}
}

func TestCommandsRunInOrderUntilOneBlocks(t *testing.T) {
	dir := t.TempDir()
	h, _ := hooks(t, Options{Directory: dir},
		beforeTool("append=a", "out=first"), beforeTool("append=b", "out=second"), beforeTool("append=c", "err=stop", "exit=2"), beforeTool("append=d"))
	c, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), c, spec); !got.Block || got.Note != "blocked by the hook "+name()+": stop" {
		t.Errorf("%+v", got)
	}
	if order, _ := os.ReadFile(filepath.Join(dir, "order")); string(order) != "abc" {
		t.Errorf("ran %q", order)
	}
	h, _ = hooks(t, Options{}, beforeTool("out=first"), beforeTool("out=second"))
	if got := h.BeforeTool(t.Context(), c, spec); got != (agent.Intervention{Note: "first\nsecond"}) {
		t.Errorf("%+v", got)
	}
}

func TestCommandsRunForTheToolsTheyMatch(t *testing.T) {
	dir := t.TempDir()
	one, two := beforeTool("append=a"), beforeTool("append=b")
	one.Match, two.Match = "edit_file|write_file", "delete_*"
	h, _ := hooks(t, Options{Directory: dir}, one, two)
	for _, name := range []string{"write_file", "grep", "delete_file"} {
		c, spec := call(name)
		h.BeforeTool(t.Context(), c, spec)
	}
	if order, _ := os.ReadFile(filepath.Join(dir, "order")); string(order) != "ab" {
		t.Errorf("ran %q", order)
	}
}

// TestWhatACommandReads is docs/hooks.md, node by node.
func TestWhatACommandReads(t *testing.T) {
	dir := t.TempDir()
	read := func(t *testing.T) map[string]any {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "saved"))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return got
	}
	var commands []agent.CommandHook
	for _, p := range agent.HookPoints() {
		commands = append(commands, agent.CommandHook{On: p, Run: []string{"save=" + filepath.Join(dir, "saved")}})
	}
	h, warnings := hooks(t, Options{Directory: dir}, commands...)
	ctx, state := t.Context(), new(agent.State)
	c, spec := call("edit_file")
	effect := agent.Effect{Call: "call-1", Name: "edit_file", Ran: true, Result: ninelives.ToolResult{Content: []ninelives.Part{ninelives.Text{Text: "done\xff"}}},
		Changes: []tool.Change{{Path: "a.go"}}}
	answered := agent.Answer{Purpose: agent.PurposeStep, Finish: ninelives.FinishToolCalls, Candidate: "openai/gpt-5.4", Attempts: 2,
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Text{Text: "I look."}, ninelives.ToolCall{ID: "call-1", Name: "read_file"}}},
		Usage:   ninelives.Usage{Input: 10, Output: 5, Cached: 3, InputExcludesCached: true}, Cost: 0.5}
	for _, row := range []struct {
		point agent.HookPoint
		call  func()
		want  string
	}{
		{agent.PointSessionStart, func() { h.SessionStart(ctx, "s1", "/home/you/app") }, `{"event":"session_start","session":"s1","directory":"/home/you/app"}`},
		{agent.PointSessionEnd, func() { h.SessionEnd(ctx, "s1") }, `{"event":"session_end","session":"s1","directory":"DIR"}`},
		{agent.PointTurnStart, func() { h.TurnStart(ctx, state, "fix it") }, `{"event":"turn_start","directory":"DIR","input":"fix it"}`},
		{agent.PointTurnEnd, func() {
			h.TurnEnd(ctx, state, agent.Ended{Session: "s1", End: agent.End{Turn: 2, Reason: agent.ReasonFailed, Message: "no model", FailedTurn: true}, Text: "hm", Steps: 3, Calls: 4, Cost: 0.25, Changed: []string{"a.go"}})
		}, `{"event":"turn_end","session":"s1","turn":2,"directory":"DIR","end":{"reason":"failed","message":"no model","failedTurn":true,"text":"hm","steps":3,"calls":4,"cost":0.25,"changed":["a.go"]}}`},
		{agent.PointBeforeIteration, func() { h.BeforeIteration(ctx, state) }, `{"event":"before_iteration","directory":"DIR"}`},
		{agent.PointAfterIteration, func() { h.AfterIteration(ctx, state) }, `{"event":"after_iteration","directory":"DIR"}`},
		{agent.PointBeforeModel, func() { h.BeforeModel(ctx, agent.PurposeFinal, ninelives.Prompt("x")) }, `{"event":"before_model","directory":"DIR","purpose":"final","messages":1}`},
		{agent.PointAfterModel, func() { h.AfterModel(ctx, answered, nil) },
			`{"event":"after_model","directory":"DIR","purpose":"step","answer":{"text":"I look.","calls":["read_file"],"finish":"tool_calls","candidate":"openai/gpt-5.4","attempts":2,"input_tokens":13,"output_tokens":5,"cost":0.5}}`},
		{agent.PointAfterModel, func() { h.AfterModel(ctx, agent.Answer{Purpose: agent.PurposeStep}, errors.New("no way")) },
			`{"event":"after_model","directory":"DIR","purpose":"step","answer":{"text":"","error":"no way"}}`},
		{agent.PointBeforeTool, func() { h.BeforeTool(ctx, c, spec) },
			`{"event":"before_tool","session":"s1","turn":2,"directory":"DIR","tool":"edit_file","call":"call-1","arguments":{"path":"a.go"}}`},
		{agent.PointAfterTool, func() { h.AfterTool(ctx, c, effect) },
			`{"event":"after_tool","session":"s1","turn":2,"directory":"DIR","tool":"edit_file","call":"call-1","arguments":{"path":"a.go"},"result":{"text":"done�","is_error":false,"ran":true,"changes":["a.go"]}}`},
		{agent.PointBeforeCompaction, func() { h.BeforeCompaction(ctx, state, "threshold") }, `{"event":"before_compaction","directory":"DIR","why":"threshold"}`},
		{agent.PointAfterCompaction, func() { h.AfterCompaction(ctx, agent.Compaction{Tier: 2, Why: "overflow", Before: 900, After: 300}) },
			`{"event":"after_compaction","directory":"DIR","why":"overflow","compaction":{"tier":2,"before":900,"after":300}}`},
	} {
		t.Run(string(row.point), func(t *testing.T) {
			row.call()
			var want map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(row.want, "DIR", filepath.ToSlash(dir))), &want); err != nil {
				t.Fatal(err)
			}
			got := read(t)
			if d, ok := got["directory"].(string); ok {
				got["directory"] = filepath.ToSlash(d)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
	if *warnings != nil {
		t.Errorf("warnings %q", *warnings)
	}
}

// What models write comes by stdin, so that it is nobody's command line.
func TestArgumentsOfAModelAreNeverReadByAShell(t *testing.T) {
	dir := t.TempDir()
	h, _ := hooks(t, Options{Directory: dir}, beforeTool("save="+filepath.Join(dir, "saved")))
	c, spec := call("$(touch pwned); `touch pwned`")
	c.Arguments = []byte(`{"command":"$(touch pwned) && touch pwned; \u0000"}`)
	h.BeforeTool(t.Context(), c, spec)
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("it was run")
	}
	text, err := os.ReadFile(filepath.Join(dir, "saved"))
	if err != nil || !strings.Contains(string(text), `"arguments":{"command":"$(touch pwned) && touch pwned; \u0000"}`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestCommandsSeeNoKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-one")
	t.Setenv("HF_TOKEN", "sk-two")
	t.Setenv("TEAM_KEY", "sk-three")
	t.Setenv("PLAIN", "seen")
	h, _ := hooks(t, Options{Hide: []string{"TEAM_KEY"}}, beforeTool("env=ANTHROPIC_API_KEY", "env=HF_TOKEN", "env=TEAM_KEY", "env=PLAIN"))
	c, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), c, spec).Note; got != "ANTHROPIC_API_KEY=;HF_TOKEN=;TEAM_KEY=;PLAIN=seen;" {
		t.Errorf("%q", got)
	}
}

func TestCommandsRunInTheWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hooks(t, Options{Directory: dir}, beforeTool("here"))
	c, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), c, spec).Note; got != dir {
		t.Errorf("%q, want %q", got, dir)
	}
}

func TestOutputIsLimitedAndTheRestIsThrownAway(t *testing.T) {
	h, warnings := hooks(t, Options{}, beforeTool("flood=5000"))
	c, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), c, spec).Note; got != strings.Repeat("x", maxOutput)+"\n[cut off after 16 KB]" {
		t.Errorf("%d characters, ending in %q", len(got), got[len(got)-30:])
	}
	if *warnings != nil {
		t.Errorf("%q", *warnings)
	}
}

// A command that does not read what it is given is no failure.
func TestACommandNeedNotRead(t *testing.T) {
	h, warnings := hooks(t, Options{}, agent.CommandHook{On: agent.PointAfterTool, Run: []string{"out=ok"}})
	c, _ := call("edit_file")
	big := agent.Effect{Result: ninelives.ToolResult{Content: []ninelives.Part{ninelives.Text{Text: strings.Repeat("x", 1<<20)}}}}
	if got := h.AfterTool(t.Context(), c, big); got != (agent.Intervention{Note: "ok"}) || *warnings != nil {
		t.Errorf("%+v %q", got, *warnings)
	}
}

func TestWhatCannotBeStoppedIsOnlyTold(t *testing.T) {
	h, warnings := hooks(t, Options{},
		agent.CommandHook{On: agent.PointAfterTool, Run: []string{"err=the tests fail", "exit=2"}},
		agent.CommandHook{On: agent.PointTurnEnd, Run: []string{"err=no", "exit=2"}})
	c, _ := call("edit_file")
	if got := h.AfterTool(t.Context(), c, agent.Effect{}); got != (agent.Intervention{Note: "blocked by the hook " + name() + ": the tests fail"}) {
		t.Errorf("%+v", got)
	}
	h.TurnEnd(t.Context(), nil, agent.Ended{})
	if want := []string{"a hook wanted to stop something at turn_end, where nothing can be stopped: blocked by the hook " + name() + ": no"}; !reflect.DeepEqual(*warnings, want) {
		t.Errorf("%q, want %q", *warnings, want)
	}
}

func TestANoteAtTheStartOfASessionIsToldInItsFirstTurn(t *testing.T) {
	h, _ := hooks(t, Options{}, agent.CommandHook{On: agent.PointSessionStart, Run: []string{"out=the branch is main"}})
	h.SessionStart(t.Context(), "", "/home/you/app")
	if got := h.TurnStart(t.Context(), nil, "hello"); got != (agent.Intervention{Note: "the branch is main"}) {
		t.Errorf("%+v", got)
	}
	if got := h.TurnStart(t.Context(), nil, "again"); got != (agent.Intervention{}) {
		t.Errorf("told twice: %+v", got)
	}
}

func TestNoCommandNoHook(t *testing.T) {
	h, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(h)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Func && !f.IsNil() {
			t.Errorf("%s is set", v.Type().Field(i).Name)
		}
	}
}

func TestACommandThatIsNotWellFormedIsAnError(t *testing.T) {
	for want, c := range map[string]agent.CommandHook{
		"hook 1: a hook needs a node: on: before_tool":                      {Run: []string{"x"}},
		`hook 1: a hook needs a command: run: ["name", "argument"]`:         {On: agent.PointBeforeTool},
		"hook 1: match is for before_tool and after_tool, not for turn_end": {On: agent.PointTurnEnd, Match: "x", Run: []string{"x"}},
		"hook 1: a timeout below zero":                                      {On: agent.PointTurnEnd, Run: []string{"x"}, Timeout: -1},
		`hook 1: there is no node "before_tol" (did you mean "before_tool"?): use one of session_start, turn_start, before_iteration, before_model, after_model, before_tool, after_tool, after_iteration, before_compaction, after_compaction, turn_end, session_end`: {On: "before_tol", Run: []string{"x"}},
	} {
		if _, err := New(Options{}, c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// gone reports that a process has ended, waiting for it: it is nobody's child
// here, so there is nothing but asking.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		p, err := os.FindProcess(pid)
		if err != nil || p.Signal(syscall.Signal(0)) != nil {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return true // ended, and not yet collected by its parent
		}
	}
	return false
}

func pid(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATimeoutEndsTheWholeGroup(t *testing.T) {
	needsGroups(t)
	file := filepath.Join(t.TempDir(), "pid")
	// Where two seconds are too short for it to start another, it is given more.
	for limit := 2 * time.Second; ; limit *= 2 {
		c := beforeTool("child="+file, "sleep")
		c.Timeout = limit
		h, warnings := hooks(t, Options{}, c)
		asked, spec := call("edit_file")
		if got := h.BeforeTool(t.Context(), asked, spec); got != (agent.Intervention{}) {
			t.Errorf("%+v", got)
		}
		if want := []string{"the hook " + name() + " at before_tool was ended after " + limit.String() + ": it took too long"}; !reflect.DeepEqual(*warnings, want) {
			t.Errorf("%q, want %q", *warnings, want)
		}
		if text, _ := os.ReadFile(file); len(text) > 0 || limit > time.Minute {
			break
		}
	}
	if !gone(t, pid(t, file)) {
		t.Error("what the command had started is still there")
	}
}

// What a command leaves behind ends with it, though it holds the output.
func TestNothingOutlivesItsCommand(t *testing.T) {
	needsGroups(t)
	file := filepath.Join(t.TempDir(), "pid")
	h, warnings := hooks(t, Options{}, beforeTool("child="+file, "out=done"))
	asked, spec := call("edit_file")
	if got := h.BeforeTool(t.Context(), asked, spec); got != (agent.Intervention{Note: "done"}) || *warnings != nil {
		t.Errorf("%+v %q", got, *warnings)
	}
	if !gone(t, pid(t, file)) {
		t.Error("what the command had started is still there")
	}
}

func TestStopEndsACommandAtOnceAndWithoutAWord(t *testing.T) {
	needsGroups(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "pid")
	h, warnings := hooks(t, Options{Directory: dir}, beforeTool("child="+file, "sleep"), beforeTool("append=x"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	asked, spec := call("edit_file")
	if got := h.BeforeTool(ctx, asked, spec); got != (agent.Intervention{}) || *warnings != nil {
		t.Errorf("%+v %q", got, *warnings)
	}
	if !gone(t, pid(t, file)) {
		t.Error("what the command had started is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "order")); err == nil {
		t.Error("the next command was run after the stop")
	}
}

// Who asked to be told of the end of a turn is told of a stopped one too.
func TestAStoppedTurnsEndIsTold(t *testing.T) {
	dir := t.TempDir()
	h, warnings := hooks(t, Options{Directory: dir}, agent.CommandHook{On: agent.PointTurnEnd, Run: []string{"append=x"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.TurnEnd(ctx, nil, agent.Ended{})
	if order, _ := os.ReadFile(filepath.Join(dir, "order")); string(order) != "x" || *warnings != nil {
		t.Errorf("%q %q", order, *warnings)
	}
}
