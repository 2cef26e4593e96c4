//go:build linux

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/journal"
)

// seen is what clients saw of calls, by their ids in the journal.
type seen struct {
	mu  sync.Mutex
	ids map[string]bool // true: it was asked and answered while the journal could be written
}

// rounds makes calls in all protocols at once, and says how many of them were
// kept, answered without, and refused. Nothing else may come of them.
func (g *gate) rounds(s *seen, word string, sound bool) (kept, without, refused int) {
	g.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, face := range gateFaces {
		all.Go(func() {
			r, err := http.NewRequest("POST", g.url+face.path, strings.NewReader(strings.Replace(face.body, "WORD", word, 1)))
			if err != nil {
				g.t.Error(err)
				return
			}
			resp, err := g.client.Do(r)
			if err != nil {
				g.t.Errorf("%s: %v", face.name, err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			protocol, _, streamed := strings.Cut(face.name, ",")
			id := resp.Header.Get("X-Ninelives-Call")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				g.t.Errorf("%s: %v", face.name, err)
			case resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), face.refused) && strings.Contains(string(body), "cannot write its journal") && resp.Header.Get("Retry-After") == "10" && id == "":
				refused++
			case resp.StatusCode != http.StatusOK || soakText(protocol, streamed, body) != chaos.Answer:
				g.t.Errorf("%s: %s %v %s", face.name, resp.Status, resp.Header, body)
			case id == "":
				without++
			default:
				kept++
				s.mu.Lock()
				s.ids[id] = sound
				s.mu.Unlock()
			}
		})
	}
	all.Wait()
	return kept, without, refused
}

// failures is how often the gateway counted that its journal could not be written.
func (g *gate) failures() int {
	g.t.Helper()
	_, text := g.ask("/metrics", "")
	_, text, ok := strings.Cut(text, "\nninelives_journal_errors_total ")
	text, _, _ = strings.Cut(text, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil {
		g.t.Fatal("no such metric", err)
	}
	return int(n)
}

// check ends the gateway and reads its journal: every call that a client was
// told the id of is there, whole, and those that were asked in good times are
// complete. path is the journal, as the test can read it, once the gateway is gone.
func (s *seen) check(t *testing.T, path string) {
	t.Helper()
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	list, damaged, err := j.Calls(t.Context(), journal.Filter{Limit: -1})
	if err != nil || len(damaged) > 0 || len(list) < len(s.ids) {
		t.Errorf("%d calls of %d, %v, %v", len(list), len(s.ids), damaged, err)
	}
	for _, c := range list {
		if r, err := j.Call(t.Context(), c.ID); err != nil || len(r.Damaged) > 0 || r.Raw == nil || !json.Valid(r.Raw.Body) {
			t.Errorf("%s: %+v %v", c.ID, r, err)
		}
	}
	for id, sound := range s.ids {
		r, err := j.Call(t.Context(), id)
		if err != nil {
			t.Errorf("%s was promised to its client: %v", id, err)
			continue
		}
		switch {
		case r.State == journal.StateComplete && r.Outcome != nil:
		case r.State == journal.StateInterrupted && !sound: // its end found no room
		default:
			t.Errorf("%s (in good times: %v) is %s", id, sound, r.State)
		}
	}
}

// Whether calls are refused that cannot be kept is a setting of the moment.
func TestRefusingIsSwitchedWhileServing(t *testing.T) {
	g := openGate(t, "  journal: {refuse: true}\n", nil)
	s := &seen{ids: map[string]bool{}}
	all := len(gateFaces)
	good, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(g.process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, refused := g.rounds(s, "hi", false); refused != all {
		t.Errorf("%d calls are refused", refused)
	}
	// Clients of their own kind are told what each of them leaves at one try, or
	// comes back after.
	for _, c := range []struct {
		name, path, agent, body string
		status                  int
		retry, text             string
	}{
		{"Codex", "/v1/responses", "codex_cli_rs/0.60.0", `{"model":"m","stream":true,"input":"hi"}`, 429, "10", "server_is_overloaded"},
		{"Claude Code", "/v1/messages", "claude-cli/2.1.0 (external, cli)", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, 503, "10", "overloaded_error"},
		{"opencode", "/v1/chat/completions", "opencode/1.0", gateStreams, 503, "10", "server_is_overloaded"},
		{"OpenAI's SDK", "/v1/chat/completions", "OpenAI/Python 2.0", gateChat, 503, "10", "server_is_overloaded"},
	} {
		resp, text := g.ask(c.path, c.body, "User-Agent", c.agent)
		if resp.StatusCode != c.status || resp.Header.Get("Retry-After") != c.retry || !strings.Contains(text, c.text) || !strings.Contains(text, "cannot write its journal") {
			t.Errorf("%s: %s %v %s", c.name, resp.Status, resp.Header, text)
		}
	}
	// What needs no journal is answered all the same.
	for _, path := range []string{"/healthz", "/readyz", "/ninelives/v1/health", "/ninelives/v1/calls", "/v1/models", "/metrics", "/"} {
		if resp, text := g.ask(path, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %s %s", path, resp.Status, text)
		}
	}
	if resp, text := g.ask("/v1/messages/count_tokens", strings.Replace(gateFaces[4].body, "WORD", "hi", 1)); resp.StatusCode != 200 {
		t.Errorf("count_tokens: %s %s", resp.Status, text)
	}
	if n := len(g.sim.Log()); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	if resp, text := g.ask("/v1/chat/completions", gateFast, "Idempotency-Key", "one"); resp.StatusCode != 503 || !strings.Contains(text, "cannot write its journal") {
		t.Errorf("with a key of its own: %s %s", resp.Status, text)
	}
	g.edit(strings.Replace(string(good), "refuse: true", "refuse: false", 1))
	g.until("calls are answered", func() bool { resp, _ := g.ask("/v1/chat/completions", gateFast); return resp.StatusCode == 200 })
	if _, without, _ := g.rounds(s, "hi", false); without != all {
		t.Errorf("%d calls are answered", without)
	}
	// The key that was refused begins a new call.
	if resp, text := g.ask("/v1/chat/completions", gateFast, "Idempotency-Key", "one"); resp.StatusCode != 200 || !strings.Contains(text, chaos.Answer) {
		t.Errorf("with a key of its own: %s %s", resp.Status, text)
	}
	g.edit(string(good))
	g.until("calls are refused", func() bool { resp, _ := g.ask("/v1/chat/completions", gateFast); return resp.StatusCode == 503 })
	if err := unix.Prlimit(g.process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
	if kept, _, _ := g.rounds(s, "hi", true); kept != all {
		t.Errorf("%d calls are kept", kept)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, g.said())
	}
	s.check(t, g.journal)
}

// Two gateways share one journal: neither disturbs the other, a call of the one
// that was killed is found by the other, and what one has answered the other
// replays.
func TestTwoGatewaysOnOneJournal(t *testing.T) {
	one := openGate(t, "", nil)
	two := startGate(t, "", func(g *gate) { g.journal = one.journal })
	s := &seen{ids: map[string]bool{}}
	var both sync.WaitGroup
	for _, g := range []*gate{one, two} {
		both.Go(func() {
			for i := range 3 {
				if kept, _, _ := g.rounds(s, fmt.Sprint("round ", i), true); kept != len(gateFaces) {
					t.Errorf("%d calls are kept\n%s", kept, g.said())
				}
			}
		})
	}
	both.Wait()
	_, first := one.ask("/v1/chat/completions", gateFast, "Idempotency-Key", "the-key")
	one.until("the end is written", func() bool {
		_, text := two.ask("/ninelives/v1/calls", "")
		return !strings.Contains(text, `"state":"running"`)
	})
	asked := len(two.sim.Log())
	if resp, text := two.ask("/v1/chat/completions", gateFast, "Idempotency-Key", "the-key"); resp.StatusCode != 200 || text != first || len(two.sim.Log()) != asked {
		t.Errorf("the other one answers %s %s, want %s", resp.Status, text, first)
	}
	if resp, text := two.ask("/v1/chat/completions", strings.Replace(gateFast, "hi", "ho", 1), "Idempotency-Key", "the-key"); resp.StatusCode != 400 || !strings.Contains(text, "idempotency_key_reused") {
		t.Errorf("the same key for another request: %s %s", resp.Status, text)
	}
	// One of them is killed in the middle of a call.
	defer one.dam.hold("fall.")() // its last word
	resp, err := one.client.Post(one.url+"/v1/chat/completions", "application/json", strings.NewReader(gateStreams))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cut := resp.Header.Get("X-Ninelives-Call")
	var call struct{ State string }
	state := func() string {
		_, text := two.ask("/ninelives/v1/calls/"+cut, "")
		if err := json.Unmarshal([]byte(text), &call); err != nil {
			t.Fatal(err, text)
		}
		return call.State
	}
	if got := state(); got != "running" {
		t.Errorf("while its gateway lives it is %q", got)
	}
	if err := one.process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-one.ended
	if got := state(); got != "interrupted" {
		t.Errorf("when its gateway has died it is %q", got)
	}
	s.ids[cut] = false
	if kept, _, _ := two.rounds(s, "after", true); kept != len(gateFaces) {
		t.Errorf("%d calls are kept\n%s", kept, two.said())
	}
	if code := two.stop(); code != 0 || strings.Contains(one.said()+two.said(), "not kept") {
		t.Errorf("exit %d\n%s\n%s", code, one.said(), two.said())
	}
	s.check(t, one.journal)
}

// Another program keeps the journal locked: calls wait for it as long as a
// writer waits, and then go on without.
func TestAJournalThatIsLockedByAnother(t *testing.T) {
	g := openGate(t, "", nil)
	s := &seen{ids: map[string]bool{}}
	if kept, _, _ := g.rounds(s, "before", true); kept != len(gateFaces) {
		t.Fatalf("%d calls are kept", kept)
	}
	g.until("the ends of the calls are written", func() bool {
		_, text := g.ask("/ninelives/v1/calls", "")
		return !strings.Contains(text, `"state":"running"`)
	})
	db, err := sql.Open("sqlite", g.journal)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	if _, without, _ := g.rounds(s, "meanwhile", false); without != len(gateFaces) || g.failures() != len(gateFaces) {
		t.Errorf("%d calls are answered, %d failures counted\n%s", without, g.failures(), g.said())
	}
	g.until("it says why", func() bool { return strings.Contains(g.said(), "another process has kept it locked") })
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if kept, _, _ := g.rounds(s, "after", true); kept != len(gateFaces) {
		t.Errorf("%d calls are kept\n%s", kept, g.said())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, g.said())
	}
	s.check(t, g.journal)
}

// Pages of the journal are overwritten while the gateway runs, as a bad disk
// would: it serves on, and never tells of calls what was not so.
func TestAJournalThatIsDamagedWhileServing(t *testing.T) {
	g := openGate(t, "", nil)
	s := &seen{ids: map[string]bool{}}
	for i := range 3 {
		if kept, _, _ := g.rounds(s, fmt.Sprint("before ", i, strings.Repeat(" words", 5000)), false); kept != len(gateFaces) {
			t.Fatalf("%d calls are kept", kept)
		}
	}
	for _, name := range []string{g.journal, g.journal + "-wal"} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(4096); at < info.Size(); at += 3 * 4096 {
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 2000), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if kept, without, _ := g.rounds(s, "after", false); kept+without != len(gateFaces) {
			t.Errorf("%d calls are answered\n%s", kept+without, g.said())
		}
		for id := range s.ids {
			if resp, text := g.ask("/ninelives/v1/calls/"+id, ""); resp.StatusCode != 200 && resp.StatusCode != 404 && resp.StatusCode != 500 || !json.Valid([]byte(text)) {
				t.Errorf("%s: %s %s", id, resp.Status, text)
			}
		}
	}
	if code := g.stop(); code != 0 || strings.Contains(g.said(), "panic") {
		t.Errorf("exit %d\n%s", code, g.said())
	}
	// The next one starts, whatever it finds.
	again := startGate(t, "", func(next *gate) { next.journal = g.journal })
	if kept, without, _ := again.rounds(s, "again", false); kept+without != len(gateFaces) {
		t.Errorf("%d calls are answered\n%s", kept+without, again.said())
	}
	if code := again.stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, again.said())
	}
}
