//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/journal"
)

// disk is a small disk that only those see who are started on it.
type disk struct {
	t      *testing.T
	dir    string
	enter  []string // what a command is started by that sees it
	holder *exec.Cmd
}

// newDisk makes a disk of so many bytes, or skips the test where nobody may.
func newDisk(t *testing.T, size int, options string) *disk {
	t.Helper()
	if testing.Short() {
		t.Skip("a disk of its own")
	}
	d := &disk{t: t, dir: t.TempDir()}
	flags, enter := []string{"--mount"}, []string{"--mount"}
	if os.Geteuid() != 0 {
		flags, enter = append(flags, "--user", "--map-root-user"), append(enter, "--user", "--preserve-credentials")
	}
	d.holder = exec.Command("unshare", append(flags, "sh", "-c", fmt.Sprintf("mount -t tmpfs -o size=%d none '%s' && mkdir '%[2]s/kept' && %s echo here && exec cat", size, d.dir, options))...)
	in, err := d.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.holder.Start(); err != nil {
		t.Skip("no disk of its own can be made: ", err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = d.holder.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
		t.Skip("no disk of its own can be made")
	}
	d.enter = append(append([]string{"nsenter", "--target", strconv.Itoa(d.holder.Process.Pid)}, enter...), "--")
	return d
}

// run runs a shell command that sees the disk.
func (d *disk) run(format string, args ...any) []byte {
	d.t.Helper()
	line := append(d.enter, "sh", "-c", fmt.Sprintf(format, args...))
	cmd := exec.Command(line[0], line[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%q: %v %s", line, err, said.String())
	}
	return out
}

// protect makes the disk one that can only be read, or skips the test where that
// is for nobody but root.
func (d *disk) protect() {
	d.t.Helper()
	line := append(d.enter, "mount", "-o", "remount,ro", d.dir)
	if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		d.t.Skipf("the disk cannot be made read-only: %v %s", err, said)
	}
}

// on makes a gateway use a journal on the disk.
func (d *disk) on(g *gate) {
	g.through, g.journal = d.enter, filepath.Join(d.dir, "kept", "journal.db")
}

const gateFast = `{"model":"fast","messages":[{"role":"user","content":"hi"}]}`

// gateFaces are calls in every protocol, streamed and not, with what says that
// the journal cannot be written and calls are refused for it.
var gateFaces = []struct{ name, path, body, refused string }{
	{"chat", "/v1/chat/completions", `{"model":"fast","messages":[{"role":"user","content":"WORD"}]}`, `"code":"server_is_overloaded"`},
	{"chat, streamed", "/v1/chat/completions", `{"model":"fast","stream":true,"messages":[{"role":"user","content":"WORD"}]}`, `"code":"server_is_overloaded"`},
	{"responses", "/v1/responses", `{"model":"fast","input":"WORD"}`, `"code":"server_is_overloaded"`},
	{"responses, streamed", "/v1/responses", `{"model":"fast","stream":true,"input":"WORD"}`, `"code":"server_is_overloaded"`},
	{"messages", "/v1/messages", `{"model":"fast","max_tokens":900,"messages":[{"role":"user","content":"WORD"}]}`, `"type":"overloaded_error"`},
	{"messages, streamed", "/v1/messages", `{"model":"fast","max_tokens":900,"stream":true,"messages":[{"role":"user","content":"WORD"}]}`, `"type":"overloaded_error"`},
	{"gemini", "/v1beta/models/fast:generateContent", `{"contents":[{"role":"user","parts":[{"text":"WORD"}]}]}`, `"status":"UNAVAILABLE"`},
	{"gemini, streamed", "/v1beta/models/fast:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"WORD"}]}]}`, `"status":"UNAVAILABLE"`},
}

// A disk that fills up while calls run: they go on, or are refused where that
// is asked for; nothing is lost of what was kept, and when there is room again
// calls are kept again, without a restart.
func TestADiskThatFillsUpWhileServing(t *testing.T) {
	for name, refuse := range map[string]bool{"serves": false, "refuses": true} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t, 3<<20, "")
			g := openGate(t, fmt.Sprintf("  journal: {refuse: %v}\n", refuse), d.on)
			s := &seen{ids: map[string]bool{}}
			all := len(gateFaces)
			if kept, _, _ := g.rounds(s, "before", true); kept != all || g.failures() != 0 {
				t.Fatalf("%d calls are kept", kept)
			}
			asked := len(g.sim.Log())
			d.run("dd if=/dev/zero of='%s/filler' bs=4k 2>/dev/null || true", d.dir)
			// The journal's log has some room of its own; then none of them finds any.
			word := strings.Repeat("words ", 10_000)
			var kept, without, refused int
			for range 20 {
				asked = len(g.sim.Log())
				if kept, without, refused = g.rounds(s, word, false); kept == 0 {
					break
				}
			}
			if want := [3]int{0, all, 0}; !refuse && [3]int{kept, without, refused} != want {
				t.Errorf("kept, without, refused: %d, %d, %d; want %v", kept, without, refused, want)
			}
			if want := [3]int{0, 0, all}; refuse && [3]int{kept, without, refused} != want {
				t.Errorf("kept, without, refused: %d, %d, %d; want %v", kept, without, refused, want)
			}
			if now := len(g.sim.Log()) - asked; refuse && now != 0 || !refuse && now != all {
				t.Errorf("the provider was asked %d times", now)
			}
			if n := g.failures(); n < all {
				t.Errorf("%d failures are counted:\n%s", n, g.said())
			}
			g.until("it says why", func() bool { return strings.Contains(g.said(), "the disk is full") })
			d.run("rm '%s/filler'", d.dir)
			if kept, _, _ := g.rounds(s, "after", true); kept != all {
				t.Errorf("with room again %d calls are kept\n%s", kept, g.said())
			}
			if code := g.stop(); code != 0 || strings.Contains(g.said(), "panic") {
				t.Errorf("exit %d\n%s", code, g.said())
			}
			copied := filepath.Join(t.TempDir(), "journal.db")
			if err := os.WriteFile(copied, d.run("cat '%s'", g.journal), 0o600); err != nil {
				t.Fatal(err)
			}
			s.check(t, copied)
		})
	}
}

// A journal that cannot be written any more, whatever the reason (here its file
// may not grow: ulimit -f), is no reason to crash.
func TestAJournalThatTurnsUnwritableWhileServing(t *testing.T) {
	for name, refuse := range map[string]bool{"serves": false, "refuses": true} {
		t.Run(name, func(t *testing.T) {
			g := openGate(t, fmt.Sprintf("  journal: {refuse: %v}\n", refuse), nil)
			s := &seen{ids: map[string]bool{}}
			all := len(gateFaces)
			if kept, _, _ := g.rounds(s, "before", true); kept != all {
				t.Fatalf("%d calls are kept", kept)
			}
			limit := func(n uint64) {
				t.Helper()
				if err := unix.Prlimit(g.process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY}, nil); err != nil {
					t.Fatal(err)
				}
			}
			// Calls run while it happens: they end as they would.
			goOn := g.dam.hold("fall.") // its last word
			defer goOn()
			slow, err := g.client.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(gateStreams))
			if err != nil {
				t.Fatal(err)
			}
			defer slow.Body.Close()
			limit(0)
			goOn()
			if body, err := io.ReadAll(slow.Body); err != nil || soakText("chat", true, body) != chaos.Answer {
				t.Errorf("the call under way: %v %s", err, body)
			}
			s.ids[slow.Header.Get("X-Ninelives-Call")] = false
			for range 2 {
				kept, without, refused := g.rounds(s, "meanwhile", false)
				if want := [3]int{0, all, 0}; !refuse && [3]int{kept, without, refused} != want {
					t.Errorf("kept, without, refused: %d, %d, %d; want %v", kept, without, refused, want)
				}
				if want := [3]int{0, 0, all}; refuse && [3]int{kept, without, refused} != want {
					t.Errorf("kept, without, refused: %d, %d, %d; want %v", kept, without, refused, want)
				}
			}
			if n := g.failures(); n < 2*all {
				t.Errorf("%d failures are counted:\n%s", n, g.said())
			}
			// Reading goes on.
			if resp, text := g.ask("/ninelives/v1/calls", ""); resp.StatusCode != 200 || !json.Valid([]byte(text)) {
				t.Errorf("%s %s", resp.Status, text)
			}
			limit(unix.RLIM_INFINITY)
			if kept, _, _ := g.rounds(s, "after", true); kept != all {
				t.Errorf("afterwards %d calls are kept\n%s", kept, g.said())
			}
			if code := g.stop(); code != 0 || strings.Contains(g.said(), "panic") {
				t.Errorf("exit %d\n%s", code, g.said())
			}
			s.check(t, g.journal)
		})
	}
}

// serveOnce starts a gateway that is expected to give up at once.
func serveOnce(t *testing.T, g *gate) (code int, said string) {
	t.Helper()
	line := append(g.through, "ninelives", "serve", "--config", g.config)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+g.dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "NINELIVES_LOCAL=off", "NINELIVES_JOURNAL="+g.journal)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

// A journal that cannot be opened: the gateway serves without it, says so and
// counts; where calls must be kept it does not start, nor serve any once that is
// demanded of it. What is there is not touched.
func TestAJournalThatCannotBeOpened(t *testing.T) {
	half := filepath.Join(t.TempDir(), "half")
	j, err := journal.Open(half)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(half)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		content    []byte
		readOnly   bool
	}{
		{"no database", "it is no SQLite database", bytes.Repeat([]byte("Dear diary, today "), 300), false},
		{"half of it", "it is damaged", whole[:len(whole)/2], false},
		{"zeroed in the middle", "it is damaged", append(append(append([]byte{}, whole[:4096]...), make([]byte, 8192)...), whole[12288:]...), false},
		{"a disk that cannot be written", "read-only file system", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d *disk
			if c.readOnly {
				d = newDisk(t, 1<<20, "mount -o remount,ro \"$PWD\" 2>/dev/null; ")
			}
			g := openGate(t, "", func(g *gate) {
				if c.readOnly {
					d.on(g)
					d.protect()
					return
				}
				if err := os.MkdirAll(filepath.Dir(g.journal), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(g.journal, c.content, 0o600); err != nil {
					t.Fatal(err)
				}
			})
			g.until("it says why", func() bool {
				return strings.Contains(g.said(), "is not kept on disk") && strings.Contains(g.said(), c.want)
			})
			s := &seen{ids: map[string]bool{}}
			all := len(gateFaces)
			if _, without, _ := g.rounds(s, "hi", false); without != all || g.failures() != all {
				t.Errorf("%d calls are answered, %d failures counted\n%s", without, g.failures(), g.said())
			}
			if resp, text := g.ask("/ninelives/v1/calls", ""); resp.StatusCode != 200 || strings.TrimSpace(text) != `{"calls":[]}` {
				t.Errorf("%s %s", resp.Status, text)
			}
			good, err := os.ReadFile(g.config)
			if err != nil {
				t.Fatal(err)
			}
			g.edit(string(good) + "  journal: {refuse: true}\n")
			g.until("calls are refused", func() bool { resp, _ := g.ask("/v1/chat/completions", gateFast); return resp.StatusCode == 503 })
			asked := len(g.sim.Log())
			if _, _, refused := g.rounds(s, "hi", false); refused != all || len(g.sim.Log()) != asked {
				t.Errorf("%d calls are refused, %d asked", refused, len(g.sim.Log())-asked)
			}
			if code, said := serveOnce(t, g); code != exitInternal || !strings.Contains(said, c.want) || strings.Contains(said, "ninelives gateway on") {
				t.Errorf("another one, where calls must be kept: exit %d\n%s", code, said)
			}
			g.edit(string(good))
			g.until("calls are answered", func() bool { resp, _ := g.ask("/v1/chat/completions", gateFast); return resp.StatusCode == 200 })
			if code := g.stop(); code != 0 {
				t.Errorf("exit %d\n%s", code, g.said())
			}
			if c.readOnly {
				return
			}
			if after, err := os.ReadFile(g.journal); err != nil || !bytes.Equal(after, c.content) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}
