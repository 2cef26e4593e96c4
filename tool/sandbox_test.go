//go:build linux

package tool

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// confinedShell is a shell whose home and surroundings lie where the sandbox
// allows no writing: beside the source, not among temporary files.
func confinedShell(t *testing.T) (h *harness, home string) {
	t.Helper()
	if here := sandboxHere(); !here.On {
		t.Skip(here.Why)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, temp := range []string{"/tmp/", "/var/tmp/", "/dev/shm/", os.TempDir() + "/"} {
		if strings.HasPrefix(here+"/", temp) {
			t.Skip("the source lies among temporary files, which the sandbox leaves open")
		}
	}
	top, err := os.MkdirTemp(here, ".home-of-a-test-")
	if err != nil {
		t.Skip("the source directory cannot be written to: " + err.Error())
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	// A home may lie at any depth (/var/lib/service/users/name …).
	home = filepath.Join(top, "a", "b", "c", "d", "e")
	for name, text := range map[string]string{".ssh/id_rsa": "the key", ".ssh/config": "the hosts", ".bashrc": "the shell", ".aws/credentials": "the cloud", ".config/gh/hosts.yml": "the token", ".config/git/ignore": "the rest"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	extra := filepath.Join(home, "extra")
	if err := os.Mkdir(extra, 0o755); err != nil {
		t.Fatal(err)
	}
	h = shellOf(t, func(o *ShellOptions) { o.Home, o.Writable = home, []string{extra} })
	return h, home
}

func (h *harness) under(mode Mode, profile Profile, command string) Result {
	h.t.Helper()
	tool, call := h.call(0, commandArguments{Command: command})
	call.Mode, call.Profile = mode, profile
	return tool.Run(h.t.Context(), call)
}

func TestTheSandboxConfinesWritingByMode(t *testing.T) {
	h, home := confinedShell(t)
	for _, c := range []struct {
		mode    Mode
		profile Profile
		target  string
		ok      bool
	}{
		{ModeAsk, ProfileStandard, "inside", true}, {ModeAutoEdit, ProfileStandard, "inside", true}, {ModeFull, ProfileStandard, "inside", true}, {"", "", "inside", true},
		{ModePlan, ProfileStandard, h.dir + "/inside", true}, // the tests' workspace is temporary, which stays open
		{ModeAsk, ProfileStandard, home + "/out", false}, {ModeAutoEdit, ProfileTrusted, home + "/out", false}, {ModeFull, ProfileStandard, home + "/out", false}, {ModePlan, ProfileStandard, home + "/out", false}, {"", "", home + "/out", false},
		{ModeFull, ProfileTrusted, home + "/out", true},
		{ModeAsk, ProfileStandard, home + "/extra/x", true}, {ModePlan, ProfileStandard, home + "/extra/x", false},
		{ModeAsk, ProfileStandard, "/dev/null", true}, {ModePlan, ProfileStandard, "/tmp/ninelives-sandbox-test", true},
	} {
		os.Remove(home + "/out")
		r := h.under(c.mode, c.profile, "echo x > '"+c.target+"'")
		if r.IsError == c.ok {
			t.Errorf("%s, %s: writing to %s: %q", c.mode, c.profile, c.target, r.Text())
		}
	}
	os.Remove("/tmp/ninelives-sandbox-test")
	if r := h.under(ModeAsk, ProfileStandard, "mkdir a b && touch a/x && mv a/x b/y && ln b/y a/z && rm -r a b && git --version > /dev/null; echo fine"); r.Text() != "fine\n" {
		t.Errorf("ordinary work in the workspace fails: %q", r.Text())
	}
}

func TestTheSandboxKeepsCredentialsFromBeingRead(t *testing.T) {
	h, home := confinedShell(t)
	for name, ok := range map[string]bool{".ssh/id_rsa": false, ".aws/credentials": false, ".config/gh/hosts.yml": false, ".bashrc": true, ".ssh/config": true, ".config/git/ignore": true} {
		if r := h.under(ModeAsk, ProfileStandard, "cat "+home+"/"+name); r.IsError == ok {
			t.Errorf("reading %s: %q", name, r.Text())
		}
	}
	// What no judge can see: a link that leads there.
	if err := os.Symlink(home+"/.ssh/id_rsa", filepath.Join(h.dir, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	if r := h.under(ModeAsk, ProfileStandard, "cat notes.txt"); !r.IsError || strings.Contains(r.Text(), "the key") {
		t.Errorf("through a link: %q", r.Text())
	}
	if r := h.under(ModeFull, ProfileTrusted, "cat notes.txt"); r.Text() != "the key" {
		t.Errorf("without the sandbox: %q", r.Text())
	}
}

func TestTheSandboxDeniesConnectionsInTheRestrictedProfile(t *testing.T) {
	h, _ := confinedShell(t)
	if !h.Sandbox().Network {
		t.Skip(h.Sandbox().Why)
	}
	if !strings.HasSuffix(shellProgram()[0], "bash") {
		t.Skip("needs bash to connect")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no loopback: " + err.Error())
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	connect := "exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo connected"
	if r := h.under(ModeAsk, ProfileStandard, connect); r.Text() != "connected\n" {
		t.Errorf("standard: %q", r.Text())
	}
	if r := h.under(ModeAsk, ProfileRestricted, connect); !r.IsError {
		t.Errorf("restricted: %q", r.Text())
	}
}

func TestAConfinedCommandCannotKillItsSupervisor(t *testing.T) {
	h, _ := confinedShell(t)
	if v := h.Sandbox().Why; !strings.Contains(v, "version 6") && !strings.Contains(v, "version 7") && !strings.Contains(v, "version 8") && !strings.Contains(v, "version 9") && !strings.Contains(v, "version 1") {
		t.Skip("signals are confined from version 6 on: " + v)
	}
	if r := h.under(ModeAsk, ProfileStandard, "kill -9 $PPID; echo still here"); !strings.HasSuffix(r.Text(), "still here\n") || r.IsError {
		t.Errorf("%q", r.Text())
	}
}

func TestWhereThereIsNoSandboxTheStatusSaysSo(t *testing.T) {
	for name, change := range map[string]func(*ShellOptions){"it is switched off": func(o *ShellOptions) { o.NoSandbox = true }, "without a supervisor": unsupervised} {
		if !sandboxHere().On && name == "without a supervisor" {
			continue
		}
		h := shellOf(t, change)
		if s := h.Sandbox(); s.On || s.Network || !strings.Contains(s.Why, name) {
			t.Errorf("%+v", s)
		}
	}
	h := shellOf(t, nil)
	if s := h.Sandbox(); s != sandboxHere() || s.Why == "" {
		t.Errorf("%+v", s)
	}
	t.Log(h.Sandbox().Why)
	began := time.Now()
	h.under(ModeAsk, ProfileStandard, "true")
	t.Logf("a command that does nothing takes %s, confined", time.Since(began))
	began = time.Now()
	h.under(ModeFull, ProfileTrusted, "true")
	t.Logf("and %s, not confined", time.Since(began))
	began = time.Now()
	c := h.confine(ModeAsk, ProfileStandard)
	t.Logf("%d trees to read, %d to write, found in %s", len(c.Read), len(c.Write), time.Since(began))
}
