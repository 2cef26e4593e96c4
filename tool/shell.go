package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// ShellOptions say how commands are run.
type ShellOptions struct {
	// Records is a private directory for what supervisors leave behind about
	// commands; empty: nothing is left, and what became of a command that a
	// crash cut off is unknown.
	Records string
	// Supervisor is the command line of a program that calls Supervise
	// (the agent's own binary and a hidden argument). Empty: commands are
	// children of this process, without a sandbox; when it is killed, only on
	// Linux do they go with it, and not what they started.
	Supervisor []string
	// Environ is the environment ("NAME=value") that commands get without its
	// credentials; nil means that of this process.
	Environ []string
	// Secrets are names of variables that hold credentials, beside those whose
	// name says so; Pass are names that commands get all the same.
	Secrets []string
	Pass    []string
	// Writable are directories beside the workspace, the temporary ones and the
	// caches of build tools that commands may write to in the sandbox.
	Writable []string
	// NoSandbox switches the sandbox off.
	NoSandbox bool
	// Home is the user's home directory; empty means what the environment says.
	Home string
}

// Shell runs commands in a workspace. Its tools are safe for concurrent use.
type Shell struct {
	ws      *Workspace
	opts    ShellOptions
	env     []string
	sandbox Sandbox

	mu       sync.Mutex
	closed   bool
	marks    map[callKey]record
	over     map[string]record // of the last command of each session
	running  map[*child]bool
	consoles map[string]*console
	started  int
}

type callKey struct{ session, call string }

// NewShell makes a shell. Close ends what it started.
func NewShell(ws *Workspace, opts ShellOptions) (*Shell, error) {
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	if opts.Home == "" {
		opts.Home = lookupEnv(opts.Environ, "HOME")
	}
	if opts.Records != "" {
		var err error
		if opts.Records, err = filepath.Abs(opts.Records); err == nil {
			err = os.MkdirAll(opts.Records, 0o700)
		}
		if err != nil {
			return nil, fmt.Errorf("the directory for the records of commands cannot be made: %w", err)
		}
		sweepRecords(opts.Records, time.Now())
	}
	s := &Shell{
		ws: ws, opts: opts, env: Environment(opts.Environ, opts.Secrets, opts.Pass), sandbox: sandboxHere(),
		marks: map[callKey]record{}, over: map[string]record{}, running: map[*child]bool{}, consoles: map[string]*console{},
	}
	switch {
	case opts.NoSandbox:
		s.sandbox = Sandbox{Why: "no sandbox: it is switched off; commands may touch what you may"}
	case len(opts.Supervisor) == 0 && s.sandbox.On:
		s.sandbox = Sandbox{Why: "no sandbox: commands run without a supervisor; they may touch what you may"}
	}
	return s, nil
}

// Sandbox says what commands are confined by.
func (s *Shell) Sandbox() Sandbox { return s.sandbox }

// Tools are run_command and run_terminal_command.
func (s *Shell) Tools() []Tool { return []Tool{&runCommandTool{s}, &terminalTool{s}} }

// Close ends all commands, terminals and background jobs, with all that they
// started, and waits until they have ended.
func (s *Shell) Close() error {
	s.mu.Lock()
	s.closed = true
	var all []*child
	for c := range s.running {
		all = append(all, c)
	}
	s.mu.Unlock()
	var wait sync.WaitGroup
	for _, c := range all {
		wait.Go(c.stop)
	}
	wait.Wait()
	return nil
}

// start starts a command for a call.
func (s *Shell) start(call *Call, command, dir string, rec record, terminal *os.File, output func([]byte)) (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the agent is closing; no command is started any more")
	}
	o := work{Args: append(shellProgram(), command), Dir: dir, Env: s.env, Record: rec.dir, Call: visible.EscapedLine(call.ID), Confine: s.confine(call.Mode, call.Profile)}
	c, err := startChild(s.opts.Supervisor, o, terminal, output)
	if err != nil {
		return nil, err
	}
	s.running[c] = true
	go func() {
		<-c.done
		s.mu.Lock()
		delete(s.running, c)
		s.mu.Unlock()
	}()
	return c, nil
}

// confine is the sandbox for a mode; nil for none.
func (s *Shell) confine(mode Mode, profile Profile) *confinement {
	if !s.sandbox.On || mode == ModeFull && profile == ProfileTrusted {
		return nil
	}
	p := Permissions{Home: s.opts.Home}
	if s.opts.Records != "" {
		p.Private = []string{s.opts.Records}
	}
	c := &confinement{Read: p.readable(), NoConnect: profile == ProfileRestricted && s.sandbox.Network}
	c.Read = append(c.Read, s.ws.Dir())
	c.Write = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm", "/tmp", "/var/tmp"}
	if dir := lookupEnv(s.env, "TMPDIR"); filepath.IsAbs(dir) {
		c.Write = append(c.Write, dir)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "XDG_CACHE_HOME", "CARGO_TARGET_DIR"} {
		if dir := lookupEnv(s.env, name); filepath.IsAbs(dir) {
			c.Write = append(c.Write, dir)
		}
	}
	if filepath.IsAbs(s.opts.Home) {
		for _, dir := range buildCaches {
			c.Write = append(c.Write, filepath.Join(s.opts.Home, dir))
		}
	}
	if mode != ModePlan {
		c.Write = append(c.Write, s.ws.Dir())
		c.Write = append(c.Write, s.opts.Writable...)
	}
	return c
}

// buildCaches are where build tools keep what they can make again, under the
// home directory.
var buildCaches = []string{
	".cache/go-build", ".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/yarn", ".cache/pnpm", ".cache/node", ".cache/bazel", ".cache/ccache", ".cache/sccache",
	".cache/golangci-lint", ".cache/staticcheck", ".cache/gopls", ".cache/pre-commit", ".cache/ms-playwright", ".cache/puppeteer",
	"go/pkg", ".npm", ".pnpm-store", ".local/share/pnpm", ".bun/install/cache", ".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/daemon", ".gradle/wrapper", ".m2/repository", ".nuget/packages", ".ivy2/cache", ".sbt",
}

func lookupEnv(environ []string, name string) string {
	value := ""
	for _, kv := range environ {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// directory resolves where a command runs: relative to the workspace for the
// judge, absolute for the system.
func (s *Shell) directory(name string) (rel, abs string, err error) {
	if name == "" {
		name = "."
	}
	rel, err = s.ws.Resolve(name)
	if err != nil {
		return "", "", err
	}
	abs = filepath.Join(s.ws.Dir(), filepath.FromSlash(rel))
	info, err := os.Stat(abs)
	if err != nil {
		return "", "", fmt.Errorf("cannot run in %s: %w", visible.EscapedLine(name), cause(err))
	}
	if !info.IsDir() {
		return "", "", fmt.Errorf("cannot run in %s: it is not a directory", visible.EscapedLine(name))
	}
	return rel, abs, nil
}

// escapes are what terminals obey.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]`)

// plainOutput is what a command wrote, as text: valid, without what terminals
// obey, and of a line that was written over (progress bars) what was last.
func plainOutput(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = escapes.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 {
			line = line[at+1:]
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// teller hands output on in whole characters, safe to show.
type teller struct {
	to   func(text string)
	rest []byte
}

func (t *teller) write(p []byte) {
	if t.to == nil {
		return
	}
	p = append(t.rest, p...)
	n := len(p)
	for cut := 1; cut <= utf8.UTFMax && cut <= len(p); cut++ {
		if b := p[len(p)-cut]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-cut:]) {
				n = len(p) - cut
			}
			break
		}
	}
	t.rest = append([]byte(nil), p[n:]...)
	if n > 0 {
		t.to(visible.Escaped(plainOutput(string(p[:n]))))
	}
}

// shellName is what the model is told that it writes for.
func shellName() string {
	if strings.HasPrefix(filepath.Base(shellProgram()[0]), "bash") {
		return "bash on " + runtime.GOOS
	}
	return filepath.Base(shellProgram()[0]) + " on " + runtime.GOOS
}
