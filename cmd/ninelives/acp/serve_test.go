package acp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestTheEditorIsToldWhatCanBeDone(t *testing.T) {
	s := newStage(t).records()
	e := s.connect()
	r, err := e.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: 9})
	if err != nil || r.ProtocolVersion != 1 {
		t.Errorf("version %d, %v", r.ProtocolVersion, err)
	}
	same(t, e.sent("-"), `{"id":1,"jsonrpc":"2.0","result":{"agentCapabilities":{"auth":{},"loadSession":true,"mcpCapabilities":{"http":true},"promptCapabilities":{"embeddedContext":true,"image":true},"sessionCapabilities":{"close":{},"list":{},"resume":{}}},"agentInfo":{"name":"ninelives","title":"Nine Lives","version":"1.2.3"},"authMethods":[],"protocolVersion":1}}`)
	if _, err := e.Authenticate(t.Context(), sdk.AuthenticateRequest{MethodId: "x"}); err == nil {
		t.Error("there was something to sign in to")
	}
	e.leave()
}

// Without a journal nothing is offered that needs one.
func TestWhatIsMissingIsNotOffered(t *testing.T) {
	e := newStage(t).connect().hello()
	same(t, e.sent("-"), `{"id":1,"jsonrpc":"2.0","result":{"agentCapabilities":{"auth":{},"mcpCapabilities":{"http":true},"promptCapabilities":{"embeddedContext":true,"image":true},"sessionCapabilities":{"close":{}}},"agentInfo":{"name":"ninelives","title":"Nine Lives","version":"1.2.3"},"authMethods":[],"protocolVersion":1}}`)
	_, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	wantCode(t, err, -32601)
	_, err = e.LoadSession(t.Context(), sdk.LoadSessionRequest{Cwd: "/", SessionId: "x", McpServers: []sdk.McpServer{}})
	wantCode(t, err, -32601)
	e.leave()
}

func wantCode(t *testing.T, err error, code int) *sdk.RequestError {
	t.Helper()
	var e *sdk.RequestError
	if !errors.As(err, &e) {
		t.Errorf("the error is %v, want one with the code %d", err, code)
		return &sdk.RequestError{}
	}
	if e.Code != code {
		t.Errorf("the error is %v, want the code %d", e, code)
	}
	return e
}

func TestATurnIsShownAsItHappens(t *testing.T) {
	s := newStage(t,
		chaos.Step{Text: "I look.", Reasoning: "Let me see.", Calls: []chaos.Call{{ID: "a", Name: "read_file", Arguments: `{"path":"main.go"}`}}},
		chaos.Step{Insist: true, Calls: []chaos.Call{{ID: "b", Name: "todo", Arguments: `{"todos":[{"content":"Change it","status":"in_progress"}]}`}}},
		chaos.Step{Text: "Changing.", Insist: true, Calls: []chaos.Call{{ID: "c", Name: "edit_file", Arguments: `{"path":"main.go","old_string":"b\n","new_string":"B\n"}`}}},
		chaos.Step{Insist: true, Calls: []chaos.Call{{ID: "d", Name: "no_tool", Arguments: `{}`}}},
		chaos.Step{Text: "Done."},
	)
	s.write("main.go", "a\nb\nc\n")
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	r, err := e.ask(id, "Change it")
	if err != nil || r.StopReason != sdk.StopReasonEndTurn || r.Usage == nil || r.Usage.TotalTokens == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	got := e.updates(id)
	if len(got) == 18 { // which tools there are is not ours to test
		got[16], _, _ = strings.Cut(got[16], " The tools are")
	}
	same(t, got,
		`{"content":{"text":"Let","type":"text"},"sessionUpdate":"agent_thought_chunk"}`,
		`{"content":{"text":" me","type":"text"},"sessionUpdate":"agent_thought_chunk"}`,
		`{"content":{"text":" see.","type":"text"},"sessionUpdate":"agent_thought_chunk"}`,
		`{"content":{"text":"I look.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
		`{"kind":"read","locations":[{"path":"/w/main.go"}],"rawInput":{"path":"main.go"},"sessionUpdate":"tool_call","status":"pending","title":"Read main.go","toolCallId":"a"}`,
		`{"locations":[{"path":"/w/main.go"}],"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"a"}`,
		"{\"content\":[{\"content\":{\"text\":\"```\\n     1\\ta\\n     2\\tb\\n     3\\tc\\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"status\":\"completed\",\"toolCallId\":\"a\"}",
		`{"kind":"think","rawInput":{"todos":[{"content":"Change it","status":"in_progress"}]},"sessionUpdate":"tool_call","status":"pending","title":"Update the list of tasks","toolCallId":"b"}`,
		`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"b"}`,
		"{\"content\":[{\"content\":{\"text\":\"```\\n[\\u003e] Change it\\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"status\":\"completed\",\"toolCallId\":\"b\"}",
		`{"entries":[{"content":"Change it","priority":"medium","status":"in_progress"}],"sessionUpdate":"plan"}`,
		`{"content":{"text":"Changing.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
		`{"kind":"edit","locations":[{"path":"/w/main.go"}],"rawInput":{"new_string":"B\n","old_string":"b\n","path":"main.go"},"sessionUpdate":"tool_call","status":"pending","title":"Edit main.go","toolCallId":"c"}`,
		`{"locations":[{"path":"/w/main.go"}],"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"c"}`,
		`{"content":[{"newText":"a\nB\nc\n","oldText":"a\nb\nc\n","path":"/w/main.go","type":"diff"}],"locations":[{"line":2,"path":"/w/main.go"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"c"}`,
		`{"kind":"other","rawInput":{},"sessionUpdate":"tool_call","status":"pending","title":"no_tool","toolCallId":"d"}`,
		"{\"content\":[{\"content\":{\"text\":\"```\\nError: there is no tool no_tool.",
		`{"content":{"text":"Done.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
	)
	if s.read("main.go") != "a\nB\nc\n" {
		t.Errorf("the file is %q", s.read("main.go"))
	}
	e.leave()
}

// What an attempt wrote that failed is never seen: nothing can be taken back.
// What it thought was seen, and is called void.
func TestADiscardedAttemptLeavesNoText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t,
			chaos.Step{Reasoning: "Hm.", Text: "This is wrong and", After: 3, End: chaos.Reset},
			chaos.Step{Text: "This is right."},
		)
		e := s.connect().hello()
		id := e.newSession()
		e.sent(id)
		if r, err := e.ask(id, "Which?"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
		var said, thought string
		for _, l := range e.updates(id) {
			switch {
			case strings.Contains(l, "agent_message_chunk"):
				said += l
			case strings.Contains(l, "agent_thought_chunk"):
				thought += l + "\n"
			}
		}
		if said != `{"content":{"text":"This is right.","type":"text"},"sessionUpdate":"agent_message_chunk"}` {
			t.Errorf("said: %s", said)
		}
		if !strings.Contains(thought, `"Hm."`) || !strings.Contains(thought, "what was thought until here is void: ") {
			t.Errorf("thought: %s", thought)
		}
		e.leave()
	})
}

// What a command writes is shown while it runs, at a pace and with all of it
// each time.
func TestOutputIsShownWhileACommandRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, chaos.Step{Calls: []chaos.Call{{ID: "a", Name: "talk", Arguments: "{}"}}}, chaos.Step{Text: "Good."})
		s.tools = append(s.tools, talker{})
		e := s.connect().hello()
		id := e.newSession()
		e.sent(id)
		if _, err := e.ask(id, "Talk"); err != nil {
			t.Fatal(err)
		}
		same(t, e.updates(id),
			`{"kind":"other","rawInput":{},"sessionUpdate":"tool_call","status":"pending","title":"talk","toolCallId":"a"}`,
			`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"a"}`,
			"{\"content\":[{\"content\":{\"text\":\"```\\n1 2 3 \\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"a\"}",
			"{\"content\":[{\"content\":{\"text\":\"```\\n1 2 3 4 \\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"a\"}",
			"{\"content\":[{\"content\":{\"text\":\"```\\nall\\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"status\":\"completed\",\"toolCallId\":\"a\"}",
			`{"content":{"text":"Good.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
		)
		e.leave()
	})
}

// talker is a tool that writes three words at once, one later, one at its end.
type talker struct{}

func (talker) Spec() tool.Spec {
	var s tool.Spec
	s.Name, s.Schema = "talk", []byte(`{"type":"object"}`)
	return s
}
func (talker) Needs([]byte) ([]tool.Need, error) { return nil, nil }
func (talker) Run(_ context.Context, c *tool.Call) tool.Result {
	for _, w := range []string{"1 ", "2 ", "3 "} {
		c.Output(w)
	}
	time.Sleep(time.Second)
	c.Output("4 ")
	time.Sleep(time.Second)
	c.Output("5 ") // too late for a picture of its own
	return tool.TextResult("all")
}

// Two conversations at once know nothing of each other.
func TestSessionsAreIsolated(t *testing.T) {
	s := newStage(t, chaos.Step{Echo: true, First: 50 * time.Millisecond})
	s.change = func(set *agent.Settings) { set.Iterations = 3 }
	e := s.connect().hello()
	var ids []sdk.SessionId
	var wg sync.WaitGroup
	for range 4 {
		ids = append(ids, e.newSession())
	}
	e.sent("-")
	for i, id := range ids {
		wg.Go(func() {
			if r, err := e.ask(id, "number "+strconv.Itoa(i)); err != nil || r.StopReason != sdk.StopReasonEndTurn {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
	lines := strings.Join(e.sent("-"), "\n")
	for i, id := range ids {
		want := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + string(id) + `","update":{"content":{"text":"number ` + strconv.Itoa(i) + `","type":"text"},"sessionUpdate":"agent_message_chunk"}}}`
		if strings.Count(lines, want) != 1 {
			t.Errorf("session %d is not answered as it should be:\n%s", i, lines)
		}
	}
	e.leave()
	if s.shells != 4 {
		t.Errorf("%d of 4 sessions were closed", s.shells)
	}
}

func TestASessionNeedsAnAbsoluteDirectory(t *testing.T) {
	s := newStage(t)
	e := s.connect().hello()
	for name, p := range map[string]sdk.NewSessionRequest{
		"relative": {Cwd: "here", McpServers: []sdk.McpServer{}},
		"more":     {Cwd: s.dir, McpServers: []sdk.McpServer{}, AdditionalDirectories: []string{"/tmp"}},
		"sse":      {Cwd: s.dir, McpServers: []sdk.McpServer{{Sse: &sdk.McpServerSseInline{Name: "x", Url: "http://x", Headers: []sdk.HttpHeader{}}}}},
	} {
		if _, err := e.NewSession(t.Context(), p); wantCode(t, err, -32602).Message == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: s.dir + "/nowhere", McpServers: []sdk.McpServer{}})
	if got := wantCode(t, err, -32603).Message; got != "the workspace cannot be opened: there is no such directory" {
		t.Errorf("%q", got)
	}
	e.leave()
}

func TestTheEditorsServersAreHandedOn(t *testing.T) {
	s := newStage(t)
	e := s.connect().hello()
	_, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: s.dir, McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "a", Command: "/bin/a", Args: []string{"-x"}, Env: []sdk.EnvVariable{{Name: "K", Value: "v"}}}},
		{Http: &sdk.McpServerHttpInline{Name: "b", Type: "http", Url: "http://b", Headers: []sdk.HttpHeader{{Name: "H", Value: "w"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.leave()
	if got := s.opened[len(s.opened)-1].Servers; len(got) != 2 || got[0].Command != "/bin/a" || got[0].Args[0] != "-x" || got[0].Env["K"] != "v" || got[1].URL != "http://b" || got[1].Headers["H"] != "w" {
		t.Errorf("%+v", got)
	}
}

// When the editor goes, everything that runs for it goes too.
func TestTheEndOfInputEndsWhatRuns(t *testing.T) {
	needsShell(t)
	s := newStage(t, chaos.Step{Calls: []chaos.Call{{ID: "a", Name: "run_command", Arguments: `{"command":"echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000"}`}}}).records()
	e := s.connect().hello()
	id := e.newSession()
	answered := make(chan struct{})
	go func() { e.ask(id, "Sleep"); close(answered) }() // the client may hang up before it has read
	pid := s.pid()
	e.leave()
	<-answered
	got := e.sent(id)
	last, _, _ := strings.Cut(got[len(got)-1], `,"usage"`)
	same(t, []string{last}, `{"id":3,"jsonrpc":"2.0","result":{"stopReason":"cancelled"`)
	if alive(pid) {
		t.Error("the command lives on")
	}
	list, _, err := s.journal.Sessions(t.Context(), journal.SessionFilter{})
	if err != nil || len(list) != 1 || list[0].Running || list[0].State != string(agent.ReasonCanceled) {
		t.Errorf("%+v, %v", list, err)
	}
}

// When the program is told to end, turns are stopped and sessions closed,
// though the editor is still there.
func TestAContextEndsServe(t *testing.T) {
	s := newStage(t, chaos.Step{Drop: chaos.Hang})
	ctx, cancel := context.WithCancelCause(t.Context())
	in, editor := io.Pipe()
	defer editor.Close()
	agent, out := io.Pipe()
	r := &raw{t: t, dir: s.dir, in: editor, out: bufio.NewReader(agent), served: make(chan error, 1)}
	go func() { r.served <- Serve(ctx, in, out, s.config()); out.Close() }()
	r.say(greeting)
	r.hear()
	id := r.newSession()
	r.say(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"` + id + `","prompt":[{"type":"text","text":"x"}]}}`)
	for len(s.srv.Log()) == 0 {
		time.Sleep(time.Millisecond)
	}
	why := errors.New("told to end")
	cancel(why)
	if got, want := r.hear(), `{"id":2,"jsonrpc":"2.0","result":{"stopReason":"cancelled"}}`; got != want {
		t.Errorf("%s", got)
	}
	if err := <-r.served; !errors.Is(err, why) || s.shells != 1 {
		t.Errorf("%v, %d sessions closed", err, s.shells)
	}
}

// An editor that reads no more is gone.
func TestABrokenOutputEndsServe(t *testing.T) {
	s := newStage(t)
	in, editor := io.Pipe()
	defer editor.Close()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), in, closedPipe{}, s.config()) }()
	io.WriteString(editor, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
	if err := <-served; err == nil || err.Error() != "the editor takes no messages any more: "+syscall.EPIPE.Error() {
		t.Errorf("%v", err)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func needsShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test are for a POSIX shell")
	}
}

// pid waits for the number that a command has left in the file pid.
func (s *stage) pid() int {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n, err := strconv.Atoi(strings.TrimSpace(s.read("pid"))); err == nil {
			return n
		}
	}
	s.t.Fatal("the command did not begin")
	return 0
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
