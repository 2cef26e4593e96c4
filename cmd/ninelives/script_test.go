package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ninelives-ai/ninelives/chaos"
)

func TestMain(m *testing.M) {
	if forSupervisor() { // of a command of the agent in a script
		main()
	}
	// Scripts wait more than they work: two of them at once leave a small machine idle.
	if f := flag.Lookup("test.parallel"); f != nil && runtime.GOMAXPROCS(0) < 8 {
		_ = f.Value.Set("8")
	}
	testscript.Main(m, map[string]func(){"ninelives": main, "adder": adder})
}

// adder is a server of the Model Context Protocol with one tool.
func adder() {
	server := mcp.NewServer(&mcp.Implementation{Name: "adder", Version: "1"}, nil)
	type numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "adds two numbers"},
		func(_ context.Context, _ *mcp.CallToolRequest, n numbers) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("the sum is ", n.A+n.B)}}}, nil, nil
		})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until its input ends
}

// TestScripts runs the real binary against the simulator over real HTTP. A
// script has these commands beside testscript's own:
//
//	chaos [FILE]        start the simulator, with the scenarios of FILE; sets $SIM, its URL
//	exits CODE CMD …    run a command that must end with this exit code
//	await N             wait until N requests have reached the simulator
//	requests N [MODEL]  N requests have reached it in all (for MODEL)
//	sent N REGEXP       the body or the headers of request N match
//	left N              the client of request N has hung up before its end
//	roles N ROLE …      the messages of request N (of a chat) have these roles
//	waited N MIN        at least MIN passed between request N-1, which was answered at once, and request N
//	overtime N CMD …    run a command that must end with the exit code of a deadline, one
//	                    that is long enough here for request N to come
//	record KIND …       the record of the directory's last session has entries of these kinds;
//	                    sets $ID, and stdout to the record
//	gone FILE           the processes whose ids FILE lists are no more
//	save NAME REGEXP    set the variable NAME to what the first group matches in the last stdout
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("LocalAppData", home)
			env.Setenv("NINELIVES_LOCAL", "off") // what runs on this machine is no matter of the tests
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"chaos": startChaos, "exits": exits, "await": await, "requests": requests, "sent": sent, "left": left, "save": save,
			"roles": roles, "waited": waited, "overtime": overtime, "record": recordOf, "gone": gone,
		},
		RequireExplicitExec: true,
	})
}

// servers are the simulators of the scripts, by their URL.
var servers sync.Map

func startChaos(ts *testscript.TestScript, neg bool, args []string) {
	srv := chaos.New()
	for _, name := range args {
		scenarios, err := chaos.Load(ts.MkAbs(name))
		ts.Check(err)
		ts.Check(srv.Add(scenarios...))
	}
	ts.Setenv("SIM", srv.URL())
	ts.Setenv("OPENAI_BASE_URL", srv.URL()+"/v1")
	ts.Setenv("ANTHROPIC_BASE_URL", srv.URL())
	servers.Store(srv.URL(), srv)
	ts.Defer(srv.Close)
}

func simulator(ts *testscript.TestScript) *chaos.Server {
	srv, ok := servers.Load(ts.Getenv("SIM"))
	if !ok {
		ts.Fatalf("there is no simulator: use chaos first")
	}
	return srv.(*chaos.Server)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND …")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	ts.Logf("[exit %d]\nstdout:\n%s\nstderr:\n%s", code, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	srv := simulator(ts)
	for end := time.Now().Add(time.Minute); len(srv.Log()) < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%d requests in a minute, want %d", len(srv.Log()), want)
		}
	}
}

func requests(ts *testscript.TestScript, neg bool, args []string) {
	srv := simulator(ts)
	srv.Wait()
	n := 0
	var seen []string
	for _, e := range srv.Log() {
		seen = append(seen, fmt.Sprintf("%s: %s", e.Model, e.Did))
		if len(args) < 2 || e.Model == args[1] {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d requests, want %s:\n%s", n, args[0], strings.Join(seen, "\n"))
	}
}

func sent(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	log := simulator(ts).Log()
	if n > len(log) {
		ts.Fatalf("%d requests have come", len(log))
	}
	text := fmt.Sprintf("%v\n%s", log[n-1].Header, log[n-1].Body)
	if re.MatchString(text) == neg {
		ts.Fatalf("request %d: %s", n, text)
	}
}

func left(ts *testscript.TestScript, neg bool, args []string) {
	srv := simulator(ts)
	srv.Wait()
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if log := srv.Log(); n > len(log) || log[n-1].Left == neg {
		ts.Fatalf("request %s: %+v", args[0], log)
	}
}

func save(ts *testscript.TestScript, neg bool, args []string) {
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("%s is not in:\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[1])
}

func roles(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	log := simulator(ts).Log()
	if n > len(log) {
		ts.Fatalf("%d requests have come", len(log))
	}
	var body struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	ts.Check(json.Unmarshal(log[n-1].Body, &body))
	var got []string
	for _, m := range body.Messages {
		got = append(got, m.Role)
	}
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("request %d has the roles %v, want %v:\n%s", n, got, args[1:], log[n-1].Body)
	}
}

func waited(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	least, err := time.ParseDuration(args[1])
	ts.Check(err)
	srv := simulator(ts)
	srv.Wait()
	log := srv.Log()
	if n < 2 || n > len(log) {
		ts.Fatalf("%d requests have come", len(log))
	}
	// The client may have its answer before the simulator is done with it.
	if wait := log[n-1].At.Sub(log[n-2].At); wait < least {
		ts.Fatalf("request %d came %v after the one before it, want at least %v", n, wait, least)
	}
}

func overtime(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	srv := simulator(ts)
	for limit := 500 * time.Millisecond; len(srv.Log()) < n; limit *= 2 {
		if limit > time.Minute {
			ts.Fatalf("request %d does not come", n)
		}
		exits(ts, neg, slices.Concat([]string{strconv.Itoa(exitDeadline)}, args[1:], []string{"--deadline", limit.String()}))
	}
}

func recordOf(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(ts.Exec("ninelives", "sessions", "--json"))
	var last struct {
		ID string `json:"id"`
	}
	line, _, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	ts.Check(json.Unmarshal([]byte(line), &last))
	ts.Setenv("ID", last.ID)
	ts.Check(ts.Exec("ninelives", "sessions", last.ID, "--json"))
	var got []string
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var e struct {
			Kind string `json:"kind"`
		}
		ts.Check(json.Unmarshal([]byte(line), &e))
		got = append(got, e.Kind)
	}
	if len(args) > 0 && !slices.Equal(got, args) {
		ts.Fatalf("the record has\n%v, want\n%v:\n%s", got, args, ts.ReadFile("stdout"))
	}
}

func gone(ts *testscript.TestScript, neg bool, args []string) {
	for _, word := range strings.Fields(ts.ReadFile(args[0])) {
		pid, err := strconv.Atoi(word)
		ts.Check(err)
		for end := time.Now().Add(time.Minute); alive(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				ts.Fatalf("process %d still runs", pid)
			}
		}
	}
}

// alive reports that a process runs, and is no mere entry of one that has ended.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, after, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(after, "Z")
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
