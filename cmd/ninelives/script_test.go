package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ninelives-ai/ninelives/chaos"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ninelives": main})
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
