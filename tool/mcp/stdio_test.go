package mcp

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestToolsOfACommand(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	want := "test__big test__echo test__environment test__fail test__grow test__hold test__huge test__mixed test__peek test__pid test__refuse test__spawn test__structured"
	if got := strings.Join(toolNames(s), " "); got != want {
		t.Fatalf("got  %s\nwant %s\n%+v", got, want, s.Status())
	}
	spec := named(t, s, "test__echo").Spec()
	if spec.Description != "says it again" || spec.ReadOnly || string(spec.Schema) != `{"properties":{"text":{"type":"string"}},"type":"object"}` {
		t.Errorf("spec: %+v %s", spec, spec.Schema)
	}
	if named(t, s, "test__peek").Spec().ReadOnly {
		t.Error("a server that is not trusted is believed")
	}
	needs, err := named(t, s, "test__echo").Needs([]byte(`{}`))
	if err != nil || len(needs) != 1 || needs[0] != (tool.Need{Kind: tool.NeedCall, Target: "test/echo"}) {
		t.Errorf("needs: %+v %v", needs, err)
	}
	if st := s.Status()[0]; st.State != Ready || st.Server != "test 1.2" || st.Tools != 13 || st.Error != "" {
		t.Errorf("status: %+v", st)
	}
}

func TestResults(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	for name, want := range map[string]string{
		"test__echo": "hello", "test__fail": "Error: no luck", "test__refuse": "Error: test/refuse: not today",
		"test__structured": `{"a":[2],"b":1}`,
	} {
		r := call(t, s, name, "hello")
		if r.Text() != want || r.IsError != strings.HasPrefix(want, "Error") || r.Unknown {
			t.Errorf("%s: %+v, want %q", name, r, want)
		}
	}
	r := call(t, s, "test__mixed", "")
	want := "look:\n[left out: image/tiff of 4 bytes]\n[left out: audio/wav of 4 bytes]\n[resource readme: file:///readme ]\n[resource file:///a]\ninside"
	if r.Text() != want || len(r.Content) != 2 {
		t.Errorf("mixed: %+v", r)
	} else if image, ok := r.Content[1].(ninelives.Image); !ok || image.MediaType != "image/png" || string(image.Data) != "png" {
		t.Errorf("the image: %+v", r.Content[1])
	}
	r = call(t, s, "test__big", "")
	if got := r.Text(); len(got) > maxText+100 || !strings.HasSuffix(got, "\n[cut: 1048576 bytes more are lost]") {
		t.Errorf("big: %d bytes, %q", len(got), got[max(0, len(got)-60):])
	}
}

// A message that is larger than any should be ends the connection, not the
// agent; the server is started again.
func TestAHugeAnswerBreaksTheConnectionAlone(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	r := call(t, s, "test__huge", "")
	if !r.IsError || !r.Unknown || !strings.Contains(r.Text(), "the connection broke while test/huge was called") || !strings.Contains(r.Text(), "may or may not have taken effect") {
		t.Errorf("huge: %+v", r)
	}
	if r := call(t, s, "test__echo", "still here"); r.Text() != "still here" {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestTheEnvironmentHoldsNoKeys(t *testing.T) {
	for _, v := range []string{"OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS"} {
		t.Setenv(v, "sk-not-for-anyone")
	}
	t.Setenv("KEYBOARD", "de")
	cfg := acting(t, "a server")
	cfg.Env["MY_TOKEN"] = "given on purpose"
	s := begin(t, quick, cfg)
	got := call(t, s, "test__environment", "").Text()
	if strings.Contains(got, "sk-not-for-anyone") || !strings.Contains(got, "MY_TOKEN=given on purpose") || !strings.Contains(got, "KEYBOARD=de") || !strings.Contains(got, "PATH=") {
		t.Errorf("it sees:\n%s", got)
	}
}

// kill ends the server's process at once, as kill -9 does.
func kill(t *testing.T, s *Servers) {
	t.Helper()
	pid, err := strconv.Atoi(call(t, s, "test__pid", "").Text())
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
}

func TestAKilledServerIsStartedAgain(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	first := call(t, s, "test__pid", "").Text()
	before := strings.Join(toolNames(s), " ")
	kill(t, s)
	await(t, s, "ready again", func(st Status) bool { return st.State == Ready && st.Error != "" })
	if second := call(t, s, "test__pid", "").Text(); second == first {
		t.Error("the same process")
	}
	if after := strings.Join(toolNames(s), " "); after != before {
		t.Errorf("the tools have changed: %s", after)
	}
	if st := s.Status()[0]; !strings.Contains(st.Error, "it closed the connection") {
		t.Errorf("status: %+v", st)
	}
}

// A call that a dying server took with it may have had its effect: that is
// said, and it is not made again.
func TestACallDuringABreakIsUnknown(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	file := lines(t)
	done := make(chan tool.Result)
	go func() { done <- call(t, s, "test__hold", file) }()
	noted(t, file, 1)
	kill(t, s)
	r := <-done
	if !r.Unknown || !r.IsError || r.Text() != "Error: the connection broke while test/hold was called (it closed the connection). It may or may not have taken effect: check before you call it again." {
		t.Errorf("%+v", r)
	}
	await(t, s, "ready", isReady)
	if b, _ := os.ReadFile(file); string(b) != "called\n" {
		t.Errorf("the call was made again: %q", b)
	}
}

// A tool that only reads, as a trusted server says, is asked once again.
func TestAReadOnlyCallIsMadeOnceAgain(t *testing.T) {
	cfg := acting(t, "a server")
	cfg.Trust = true
	s := begin(t, quick, cfg)
	if !named(t, s, "test__peek").Spec().ReadOnly || named(t, s, "test__hold").Spec().ReadOnly {
		t.Fatal("what the server says of its tools is not passed on")
	}
	file := lines(t)
	done := make(chan tool.Result)
	go func() { done <- call(t, s, "test__peek", file) }()
	noted(t, file, 1)
	kill(t, s)
	if r := <-done; r.Text() != "seen" || r.IsError || r.Unknown {
		t.Errorf("%+v", r)
	}
	if b, _ := os.ReadFile(file); string(b) != "called\ncalled\n" {
		t.Errorf("calls: %q", b)
	}
}

func TestCancellationReachesTheServer(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	file := lines(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan tool.Result)
	go func() { done <- callIn(ctx, t, s, "test__hold", file) }()
	noted(t, file, 1)
	cancel(errors.New("stopped by the user"))
	r := <-done
	if !r.Unknown || !strings.HasPrefix(r.Text(), "Error: the call of test/hold was ended before it had answered (stopped by the user); the server was told to stop") {
		t.Errorf("%+v", r)
	}
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file + ".stopped"); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the server never heard of it")
		}
	}
	if r := call(t, s, "test__echo", "still here"); r.Text() != "still here" {
		t.Errorf("afterwards: %+v", r)
	}
}

// Servers that misbehave from the start hold nothing up and are told.
func TestServersThatNeverWork(t *testing.T) {
	for word, want := range map[string]string{
		"dies at start":  "it closed the connection: config.toml: no such \\x1b[31msetting\\x1b[0m: speed",
		"talks nonsense": "invalid character 'W' looking for beginning of value",
		"floods":         "inbound JSON-RPC frame exceeded the configured maximum line length",
	} {
		tm := quick
		tm.tries = 2
		if word != "dies at start" { // what does not end by itself is not waited for
			tm.leave = 10 * time.Millisecond
		}
		s := begin(t, tm, acting(t, word))
		st := await(t, s, "down", func(st Status) bool { return st.State == Down })
		if !strings.Contains(st.Error, want) || st.Failures != 2 || len(s.Tools()) != 0 {
			t.Errorf("%s: %+v, want %q", word, st, want)
		}
		s.Close()
	}
	tm := quick
	tm.connect, tm.leave, tm.tries = 50*time.Millisecond, 10*time.Millisecond, 1
	s := begin(t, tm, acting(t, "hangs"))
	if st := await(t, s, "down", func(st Status) bool { return st.State == Down }); st.Error != "it did not answer within 50ms" {
		t.Errorf("hangs: %+v", st)
	}
}

func TestNoisyStandardErrorDoesNotHoldAServerUp(t *testing.T) {
	s := begin(t, quick, acting(t, "floods errors"))
	if r := call(t, s, "test__echo", "hello"); r.Text() != "hello" {
		t.Errorf("%+v", r)
	}
	if st := s.Status()[0]; !strings.Contains(st.Output, "noise noise") || len(st.Output) > 250 {
		t.Errorf("status: %+v", st)
	}
}

// Tools waits for a server that hangs no longer than the grace.
func TestAHangingServerCostsTheGraceAlone(t *testing.T) {
	tm := quick
	tm.grace, tm.leave = 50*time.Millisecond, 10*time.Millisecond
	good := acting(t, "a server")
	good.Name = "z-good"
	s := begin(t, tm, acting(t, "hangs"), good)
	<-s.all[1].settled
	began := time.Now()
	for range 1000 {
		if n := len(s.Tools()); n != 13 {
			t.Fatalf("%d tools", n)
		}
	}
	if took := time.Since(began); took >= 1000*tm.grace {
		t.Errorf("a thousand lists took %s: the grace is counted each time", took)
	}
	if st := s.Status()[0]; st.State != Connecting {
		t.Errorf("status: %+v", st)
	}
}

// Who asks once waits until every server has answered or failed, for as long
// as he wants.
func TestSettleWaitsForEveryServer(t *testing.T) {
	tm := quick
	tm.grace, tm.leave = 0, 10*time.Millisecond
	good := acting(t, "a server")
	good.Name = "z-good"
	s := begin(t, tm, acting(t, "dies at start"), good)
	s.Settle(t.Context())
	if n := len(s.Tools()); n != 13 {
		t.Errorf("%d tools", n)
	}
	s = begin(t, tm, acting(t, "hangs"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Settle(ctx)
	if st := s.Status()[0]; st.State != Connecting {
		t.Errorf("status: %+v", st)
	}
}

// A call of a server that is away says so after a while, and that it was not made.
func TestACallOfAServerThatIsAway(t *testing.T) {
	tm := quick
	tm.tries, tm.patient = 1, 20*time.Second
	s := begin(t, tm, acting(t, "a server"))
	echo := named(t, s, "test__echo")
	s.all[0].mu.Lock()
	s.all[0].cfg.Env[actAs] = "dies at start" // from now on
	s.all[0].mu.Unlock()
	kill(t, s)
	await(t, s, "down", func(st Status) bool { return st.State == Down })
	r := echo.Run(t.Context(), &tool.Call{Arguments: []byte(`{}`)})
	if r.Unknown || !r.IsError || !strings.HasPrefix(r.Text(), "Error: the MCP server test is down: it closed the connection") || !strings.HasSuffix(r.Text(), "; test/echo was not called") {
		t.Errorf("%+v", r)
	}
	// Once it can start again, a call brings it back.
	s.all[0].cfg.Env[actAs] = "a server"
	if r := call(t, s, "test__echo", "back"); r.Text() != "back" {
		t.Errorf("%+v", r)
	}
}

func TestAListThatChanges(t *testing.T) {
	s := begin(t, quick, acting(t, "a server"))
	old := s.Tools()
	call(t, s, "test__grow", "")
	await(t, s, "larger", func(st Status) bool { return st.Tools == 14 })
	name := toolName("test", "grown.new")
	if r := call(t, s, name, ""); r.Text() != "new" {
		t.Errorf("%+v", r)
	}
	if len(old) != 13 {
		t.Error("a list that was given out has changed")
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []struct {
		cfg  Server
		want string
	}{
		{Server{Name: "a b", Command: []string{"x"}}, `"a b" is no name of a server`},
		{Server{Name: "a__b", Command: []string{"x"}}, `"a__b" is no name of a server`},
		{Server{Name: "\x1b", Command: []string{"x"}}, `"\x1b" is no name of a server`},
		{Server{Name: "a"}, "server a needs either a command or a url"},
		{Server{Name: "a", Command: []string{"x"}, URL: "http://x"}, "server a needs either a command or a url"},
		{Server{Name: "a", Command: []string{""}}, "a command without a program"},
		{Server{Name: "a", URL: "ftp://x"}, "must begin with http:// or https://"},
		{Server{Name: "a", URL: "http://sk-secret:%zz"}, "the url of server a cannot be understood"},
		{Server{Name: "a", Command: []string{"surely-there-is-no-such-program"}}, "there is no program surely-there-is-no-such-program: executable file not found"},
		{Server{Name: "a", Command: []string{"/etc"}}, "cannot be started"},
		{Server{Name: "a", Command: []string{os.Args[0]}, Dir: "/surely/not/there"}, "cannot be started: no such file or directory"},
	} {
		s := begin(t, quick, c.cfg)
		st := await(t, s, "failed", func(st Status) bool { return st.State == Failed })
		if !strings.Contains(st.Error, c.want) && !strings.Contains(st.Error, "there is no program") || strings.Contains(st.Error, "secret") {
			t.Errorf("%+v: %q, want %q", c.cfg, st.Error, c.want)
		}
		s.Close()
	}
	one := acting(t, "a server")
	s := begin(t, quick, one, one)
	if st := s.Status()[1]; st.State != Failed || st.Error != "there are two servers named test: give each its own name" {
		t.Errorf("%+v", st)
	}
}

func TestNamesOfTools(t *testing.T) {
	long := strings.Repeat("x", 80)
	seen := map[string]bool{}
	for _, name := range []string{"get", "get.user", "get_user", "get user", long, long + "y", "ü", ""} {
		got := toolName("srv", name)
		if len(got) > 64 || !strings.HasPrefix(got, "srv__") || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || seen[got] {
			t.Errorf("%q becomes %q", name, got)
		}
		seen[got] = true
	}
	if toolName("srv", "get_user") != "srv__get_user" {
		t.Error("a name that needs no change is changed")
	}
}

func TestSchemasAreThoseOfObjects(t *testing.T) {
	for in, want := range map[string]string{
		"nil":    `{"properties":{},"type":"object"}`,
		"bare":   `{"properties":{},"type":"object"}`,
		"array":  `{"properties":{},"type":"object"}`,
		"object": `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
	} {
		schema := map[string]any{
			"nil": nil, "bare": map[string]any{}, "array": map[string]any{"type": "array"},
			"object": map[string]any{"required": []any{"a"}, "properties": map[string]any{"a": map[string]any{"type": "string"}}},
		}[in]
		if got := string(objectSchema(schema)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// A server that no longer reads blocks the write of a long call; the end of
// the call does not wait for it, and it is replaced.
func TestAServerThatStopsReading(t *testing.T) {
	tm := quick
	tm.letGo, tm.leave = 10*time.Millisecond, 10*time.Millisecond
	s := begin(t, tm, acting(t, "stops reading"))
	await(t, s, "ready", isReady)
	one := s.all[0]
	one.mu.Lock()
	first := one.link
	one.mu.Unlock()
	// A call may be over before its write has begun; a longer one is not.
	for patience := 50 * time.Millisecond; ; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r := callIn(ctx, t, s, "test__echo", strings.Repeat("x", 1<<20))
		cancel()
		if !r.Unknown || !strings.Contains(r.Text(), "was ended before it had answered (context deadline exceeded)") {
			t.Fatalf("%+v", r)
		}
		select {
		case <-first.dead:
		case <-time.After(patience):
			if patience < 20*time.Second {
				continue
			}
			t.Fatal("the server is never replaced")
		}
		break
	}
	await(t, s, "ready again", func(st Status) bool { return st.State == Ready && strings.Contains(st.Error, "it stopped reading") })
}

func TestAServerWithoutTools(t *testing.T) {
	s := begin(t, quick, acting(t, "has no tools"))
	if st := await(t, s, "ready", isReady); st.Tools != 0 || st.Error != "" || len(s.Tools()) != 0 {
		t.Errorf("%+v", st)
	}
}

// An answer that cannot be read leaves the connection as it is; whether the
// call had its effect nobody knows.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	s := begin(t, quick, acting(t, "answers oddly"))
	if r := call(t, s, "test__echo", ""); !r.Unknown || !strings.Contains(r.Text(), "may or may not have taken effect") {
		t.Errorf("%+v", r)
	}
	if st := s.Status()[0]; st.State != Ready || st.Error != "" || st.Tools != 1 {
		t.Errorf("%+v", st)
	}
}
