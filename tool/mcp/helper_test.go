package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/ninelives-ai/ninelives/tool"
)

// The test binary is also the servers that it tests with: with this variable
// it serves over its standard input and output, as the word in it says.
const actAs = "MCP_TEST_ACT_AS"

func TestMain(m *testing.M) {
	if word := os.Getenv(actAs); word != "" {
		act(word)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// act plays a server over standard input and output.
func act(word string) {
	switch word {
	case "dies at start":
		// As much as the pipe holds: it has ended long before all of it is read.
		fmt.Fprintln(os.Stderr, strings.Repeat("starting up\n", 5000)+"config.toml: no such \x1b[31msetting\x1b[0m: speed")
		os.Exit(3)
	case "hangs":
		time.Sleep(time.Hour)
	case "stops reading":
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var m struct {
				ID     any
				Method string
			}
			json.Unmarshal(in.Bytes(), &m)
			switch m.Method {
			case "initialize":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"0"}}}`+"\n", m.ID)
			case "tools/list":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`+"\n", m.ID)
				time.Sleep(time.Hour)
			}
		}
	case "talks nonsense":
		fmt.Println("Welcome to the server!")
		time.Sleep(time.Hour)
	case "floods":
		os.Stdout.WriteString(`"`)
		for {
			os.Stdout.WriteString(strings.Repeat("a", 1<<16))
		}
	case "floods errors":
		go func() {
			for {
				os.Stderr.WriteString(strings.Repeat("noise ", 1000))
			}
		}()
		newTestServer(nil).Run(context.Background(), &sdk.StdioTransport{})
	case "has no tools":
		sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil).Run(context.Background(), &sdk.StdioTransport{})
	case "answers oddly":
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var m struct {
				ID     any
				Method string
			}
			json.Unmarshal(in.Bytes(), &m)
			switch m.Method {
			case "initialize":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"0"}}}`+"\n", m.ID)
			case "tools/list":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"tools":[{"name":"echo","inputSchema":{"type":"array"}},null,{"name":""}]}}`+"\n", m.ID)
			case "tools/call":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"content":7}}`+"\n", m.ID)
			case "ping":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{}}`+"\n", m.ID)
			}
		}
	case "an agent":
		self, _ := os.Executable()
		s := Connect(context.Background(), []Server{{Name: "test", Command: []string{self}, Env: map[string]string{actAs: "ignores its end"}}})
		for _, tl := range s.Tools() {
			if tl.Spec().Name == "test__pid" {
				fmt.Println(tl.Run(context.Background(), &tool.Call{}).Text())
			}
		}
		time.Sleep(time.Hour)
	case "ignores its end":
		newTestServer(nil).Run(context.Background(), &sdk.StdioTransport{})
		time.Sleep(time.Hour)
	default:
		newTestServer(nil).Run(context.Background(), &sdk.StdioTransport{})
	}
}

// holding lets a test in the same process see the calls that are held, and
// end them.
type holding struct {
	started chan string
	over    chan struct{}
}

func newHolding() *holding {
	return &holding{started: make(chan string, 9), over: make(chan struct{})}
}

func (h *holding) end() { close(h.over) }

// newTestServer has tools of every kind.
func newTestServer(h *holding) *sdk.Server {
	if h == nil {
		h = &holding{started: make(chan string, 100)}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1.2"}, nil)
	add := func(name, description string, readOnly bool, run func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]any
				json.Unmarshal(req.Params.Arguments, &args)
				return run(ctx, args)
			})
	}
	text := func(s string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil
	}
	add("echo", "says it again", false, func(_ context.Context, args map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(args["text"]))
	})
	add("pid", "the process", true, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(os.Getpid()))
	})
	add("fail", "fails", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "no luck"}}, IsError: true}, nil
	})
	add("refuse", "answers with an error of the protocol", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("not today")
	})
	add("mixed", "all kinds of content", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look:"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")},
			&sdk.ImageContent{MIMEType: "image/tiff", Data: []byte("tiff")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wave")},
			&sdk.ResourceLink{Name: "readme", URI: "file:///readme"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "inside"}},
		}}, nil
	})
	add("structured", "only a value", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"b": 1, "a": []int{2}}}, nil
	})
	add("big", "answers at length", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("0123456789abcdef", 5<<20/16))
	})
	add("huge", "answers with more than is taken", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("0123456789abcdef", 20<<20/16))
	})
	add("environment", "what it sees", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n"))
	})
	// hold and peek write a line into a file when they begin, and never end by
	// themselves; peek only reads, and answers the second time.
	held := func(ctx context.Context, args map[string]any, name string) int {
		n := 0
		if path, _ := args["text"].(string); path != "" {
			f, _ := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
			fmt.Fprintln(f, "called")
			f.Close()
			b, _ := os.ReadFile(path)
			n = strings.Count(string(b), "called")
		}
		h.started <- name
		return n
	}
	add("hold", "never answers", false, func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error) {
		held(ctx, args, "hold")
		select {
		case <-ctx.Done():
		case <-h.over:
		}
		if path, _ := args["text"].(string); path != "" {
			os.WriteFile(path+".stopped", nil, 0o600)
		}
		return nil, ctx.Err()
	})
	add("peek", "answers the second time", true, func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error) {
		if held(ctx, args, "peek") > 1 {
			return text("seen")
		}
		select {
		case <-ctx.Done():
		case <-h.over:
		}
		return nil, ctx.Err()
	})
	add("spawn", "starts a child and tells its process", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return text(fmt.Sprint(cmd.Process.Pid))
	})
	add("grow", "gets another tool", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		add("grown.new", "", false, func(context.Context, map[string]any) (*sdk.CallToolResult, error) { return text("new") })
		return text("grown")
	})
	return s
}

// quick has waits that no test notices, but for those that hold a hanging
// server back.
var quick = timing{
	grace: 20 * time.Second, connect: 20 * time.Second, patient: 20 * time.Second,
	first: time.Millisecond, longest: 5 * time.Millisecond, stable: time.Hour, tries: 1000,
	relist: time.Millisecond, letGo: 5 * time.Second, leave: 5 * time.Second, listen: 5 * time.Second,
}

// acting is a server that this binary plays.
func acting(t *testing.T, word string) Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{Name: "test", Command: []string{self}, Env: map[string]string{actAs: word}}
}

// begin connects and ends with the test.
func begin(t *testing.T, tm timing, servers ...Server) *Servers {
	t.Helper()
	s := connect(t.Context(), servers, tm)
	t.Cleanup(s.Close)
	return s
}

// await waits until a server is as it should be, and fails after a while that
// only a broken test needs.
func await(t *testing.T, s *Servers, what string, good func(Status) bool) Status {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		one := s.all[0]
		one.mu.Lock()
		changed := one.changed
		one.mu.Unlock()
		if st := one.status(); good(st) {
			return st
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // output and errors change without a state
		case <-late:
			t.Fatalf("it never became %s: %+v", what, s.Status())
		}
	}
}

func isReady(s Status) bool { return s.State == Ready }

// named finds a tool.
func named(t *testing.T, s *Servers, name string) tool.Tool {
	t.Helper()
	for _, tl := range s.Tools() {
		if tl.Spec().Name == name {
			return tl
		}
	}
	var all []string
	for _, tl := range s.Tools() {
		all = append(all, tl.Spec().Name)
	}
	t.Fatalf("there is no tool %s: %q, %+v", name, all, s.Status())
	return nil
}

// call runs a tool with one text.
func call(t *testing.T, s *Servers, name, text string) tool.Result {
	t.Helper()
	return callIn(t.Context(), t, s, name, text)
}

func callIn(ctx context.Context, t *testing.T, s *Servers, name, text string) tool.Result {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"text": text})
	return named(t, s, name).Run(ctx, &tool.Call{ID: "1", Arguments: args})
}

// lines is a file in which a server notes its calls.
func lines(t *testing.T) string { return filepath.Join(t.TempDir(), "calls") }

// noted waits until the file says that the tool was called so often.
func noted(t *testing.T, path string, n int) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(path); strings.Count(string(b), "called") >= n {
			return
		}
	}
	t.Fatalf("the tool was not called %d times", n)
}

// site is a server over HTTP that can be torn down and set up again at the
// same address.
type site struct {
	mu      sync.Mutex
	handler http.Handler
	seen    []*http.Request
}

func (s *site) set(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.handler
	s.seen = append(s.seen, r.Clone(context.Background()))
	s.mu.Unlock()
	if h == nil {
		panic(http.ErrAbortHandler)
	}
	h.ServeHTTP(w, r)
}

// serving gives a server a site; its sessions end with the test.
func serving(t *testing.T, server *sdk.Server) http.Handler {
	t.Cleanup(func() {
		for session := range server.Sessions() {
			session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
}

func toolNames(s *Servers) []string {
	var out []string
	for _, tl := range s.Tools() {
		out = append(out, tl.Spec().Name)
	}
	return slices.Clone(out)
}

// readCloser is a body that was read already.
func readCloser(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }
