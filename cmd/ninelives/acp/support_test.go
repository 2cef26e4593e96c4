package acp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a program of this package's tests: real agents with real tools, in
// real directories, whose model is a simulated provider over HTTP.
type stage struct {
	t       *testing.T
	dir     string // the workspace
	srv     *chaos.Server
	model   ninelives.Model
	journal *journal.Journal // nil: nothing is recorded
	mode    tool.Mode
	change  func(*agent.Settings)
	tools   []tool.Tool

	mu     sync.Mutex
	shells int // how many have been closed
	opened []Opening
	switched,
	notices []string
}

func newStage(t *testing.T, steps ...chaos.Step) *stage {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: dir, srv: chaos.New(chaos.Scenario{Name: "scripted", Steps: steps}), mode: tool.ModeFull}
	m, err := provider.Open("scripted", provider.Provider("sim"), provider.BaseURL("http://sim.sim/v1"), provider.Protocol(ninelives.OpenAIChat),
		provider.Dial(s.srv.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.srv.Close)
	t.Cleanup(m.(*provider.Model).CloseIdleConnections)
	s.model = heal.New(m)
	return s
}

// records gives the stage a journal.
func (s *stage) records() *stage {
	j, err := journal.Open(filepath.Join(s.t.TempDir(), "journal.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { j.Close() })
	s.journal = j
	return s
}

func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return "[" + err.Error() + "]"
	}
	return string(b)
}

func (s *stage) open(ctx context.Context, o Opening, take func(a *agent.Agent) (*agent.Session, error)) (Handle, error) {
	s.mu.Lock()
	s.opened = append(s.opened, o)
	s.mu.Unlock()
	if _, err := os.Stat(o.Directory); err != nil {
		return Handle{}, errors.New("the workspace cannot be opened: there is no such directory")
	}
	settings := agent.DefaultSettings()
	settings.Permissions.Mode = s.mode
	settings.Permissions.Workspace = o.Directory
	settings.Memory.Off = true
	if s.change != nil {
		s.change(&settings)
	}
	var blobs tool.Blobs
	opts := []agent.Option{agent.With(settings), agent.Workspace(o.Directory), agent.Approve(o.Approve), agent.Version("test"), agent.Signature("one")}
	if s.journal != nil {
		blobs = s.journal.Blobs()
		opts = append(opts, agent.Journal(s.journal))
	}
	ws, err := tool.OpenWorkspace(o.Directory, blobs)
	if err != nil {
		return Handle{}, err
	}
	shell, err := tool.NewShell(ws, tool.ShellOptions{})
	if err != nil {
		return Handle{}, err
	}
	tools := append(tool.Files(ws), tool.Todo())
	tools = append(tools, shell.Tools()...)
	opts = append(opts, agent.Tools(append(tools, s.tools...)...), agent.Restorer(ws))
	a := agent.New(s.model, opts...)
	session, err := take(a)
	if err != nil {
		return Handle{}, err
	}
	h := Handle{
		Session: session,
		Models:  []Model{{ID: "sim/one", Name: "One"}, {ID: "sim/two", Name: "Two", Description: "the other one"}},
		Model:   "sim/one",
		Notices: s.notices,
		Switch: func(_ context.Context, id string) error {
			s.mu.Lock()
			s.switched = append(s.switched, session.ID()+" "+id)
			s.mu.Unlock()
			return nil
		},
		Close: func() error {
			err := errors.Join(shell.Close(), ws.Close())
			s.mu.Lock()
			s.shells++
			s.mu.Unlock()
			return err
		},
	}
	if s.journal != nil {
		h.History = func(ctx context.Context) (list []agent.Entry, err error) {
			_, entries, _, err := s.journal.ReadSession(ctx, session.ID())
			for _, e := range entries {
				if entry, err := agent.Decode(e); err == nil {
					list = append(list, entry)
				}
			}
			return list, err
		}
	}
	return h, nil
}

func (s *stage) config() Config {
	c := Config{Version: "1.2.3", Images: true, Open: func(ctx context.Context, o Opening) (Handle, error) {
		return s.open(ctx, o, func(a *agent.Agent) (*agent.Session, error) { return a.Open(ctx) })
	}}
	if s.journal == nil {
		return c
	}
	c.Resume = func(ctx context.Context, id string, o Opening) (Handle, error) {
		h, err := s.open(ctx, o, func(a *agent.Agent) (*agent.Session, error) { return a.Resume(ctx, id) })
		if errors.Is(err, journal.ErrUnknown) {
			err = ErrNoSession
		}
		return h, err
	}
	c.Sessions = func(ctx context.Context, dir string) (list []Listed, err error) {
		f := journal.SessionFilter{Limit: 1000}
		if dir != "" {
			f.Labels = map[string]string{"directory": dir}
		}
		sessions, _, err := s.journal.Sessions(ctx, f)
		for _, one := range sessions {
			list = append(list, Listed{ID: one.ID, Directory: one.Labels["directory"], Title: one.Title, Updated: one.Updated})
		}
		return list, err
	}
	return c
}

// editor is the other side: the client of the protocol's SDK, and every line
// that it was sent.
type editor struct {
	*sdk.ClientSideConnection
	sdk.Client // what the agent must not call
	t          *testing.T
	stage      *stage
	in         *io.PipeWriter
	served     chan error

	// permit answers a question for a call.
	permit func(ctx context.Context, p sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome
	// seen is told of every update.
	seen func(sdk.SessionUpdate)

	mu    sync.Mutex
	lines []string
}

// connect starts Serve and an editor that speaks with it.
func (s *stage) connect() *editor {
	fromEditor, toAgent := io.Pipe()
	fromAgent, toEditor := io.Pipe()
	e := &editor{t: s.t, stage: s, in: toAgent, served: make(chan error, 1)}
	go func() {
		e.served <- Serve(context.WithoutCancel(s.t.Context()), fromEditor, io.MultiWriter(e, toEditor), s.config())
		toEditor.Close()
	}()
	e.ClientSideConnection = sdk.NewClientSideConnection(e, toAgent, fromAgent)
	e.SetLogger(slog.New(slog.DiscardHandler))
	return e
}

// hello is what every editor begins with.
func (e *editor) hello() *editor {
	e.t.Helper()
	if _, err := e.Initialize(e.t.Context(), sdk.InitializeRequest{ProtocolVersion: 1}); err != nil {
		e.t.Fatal(err)
	}
	return e
}

func (e *editor) newSession() sdk.SessionId {
	e.t.Helper()
	r, err := e.NewSession(e.t.Context(), sdk.NewSessionRequest{Cwd: e.stage.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.wait(`"sessionId":"` + string(r.SessionId) + `","update":{"availableCommands":`)
	return r.SessionId
}

// wait waits for a line that has these words.
func (e *editor) wait(words string) {
	e.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		there := slices.ContainsFunc(e.lines, func(l string) bool { return strings.Contains(l, words) })
		e.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("nothing was said of %s", words)
		}
	}
}

func (e *editor) ask(id sdk.SessionId, text string) (sdk.PromptResponse, error) {
	return e.Prompt(e.t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
}

// leave ends the input and waits until everything is closed.
func (e *editor) leave() {
	e.t.Helper()
	e.in.Close()
	if err := <-e.served; err != nil {
		e.t.Errorf("Serve: %v", err)
	}
	<-e.Done()
}

// Write takes what the agent writes.
func (e *editor) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' {
		e.t.Errorf("not one line: %q", b)
	}
	e.lines = append(e.lines, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// sent are the messages since the last call, with the session's id and the
// directory put by letters.
func (e *editor) sent(id sdk.SessionId) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	r := strings.NewReplacer(string(id), "S", filepath.ToSlash(e.stage.dir), "/w")
	for i := range lines {
		lines[i] = r.Replace(lines[i])
	}
	return slices.Clone(lines)
}

// updates are the updates alone.
func (e *editor) updates(id sdk.SessionId) (list []string) {
	for _, l := range e.sent(id) {
		if u, ok := strings.CutPrefix(l, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":`); ok {
			list = append(list, strings.TrimSuffix(u, "}}"))
		}
	}
	return list
}

func (e *editor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	if e.permit == nil {
		return sdk.RequestPermissionResponse{}, errors.New("nobody expected a question")
	}
	return sdk.RequestPermissionResponse{Outcome: e.permit(ctx, p)}, nil
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	if e.seen != nil {
		e.seen(n.Update)
	}
	return nil
}

// same compares lists of lines exactly.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("got %d:\n%s\nwant %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
}

// within gives a bound to what must not hang.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen", what)
	}
}
