package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/chaos"
)

// gate is the gateway as a process of its own.
type gate struct {
	t       *testing.T
	dir     string
	config  string
	journal string
	url     string
	greeted string
	through []string // the command that it is started by, if any
	sim     *chaos.Server
	dam     *dam
	process *exec.Cmd
	client  *http.Client
	ended   chan struct{}
	code    int

	mu  sync.Mutex
	log bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(p)
}

// said is what it has logged.
func (g *gate) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

// openGate starts a gateway whose models are the simulator's: one that takes
// its time, which is asked for everything but "fast"; extra is added to its
// configuration under gateway, and prepare, if set, comes before.
func openGate(t *testing.T, extra string, prepare func(*gate), args ...string) *gate {
	t.Helper()
	if testing.Short() {
		t.Skip("a process of its own")
	}
	t.Parallel()
	return startGate(t, extra, prepare, args...)
}

// startGate is openGate for a test that has begun already.
func startGate(t *testing.T, extra string, prepare func(*gate), args ...string) *gate {
	t.Helper()
	srv := chaos.New(chaos.Scenario{Name: "slow", Steps: []chaos.Step{{Interval: 20 * time.Millisecond}}}, chaos.Scenario{Name: "fast", Steps: []chaos.Step{{}}})
	t.Cleanup(srv.Close)
	dam := newDam(t, srv)
	dir := t.TempDir()
	g := &gate{t: t, dir: dir, sim: srv, dam: dam, config: filepath.Join(dir, "gate.yaml"), journal: filepath.Join(dir, "kept", "journal.db"), client: &http.Client{Transport: &http.Transport{}}, ended: make(chan struct{})}
	preset := "{provider: one, model: %s, base_url: \"" + dam.url + "/v1\", key: k, protocol: openai-chat}\n"
	g.edit("model: one\nmodelPresets:\n  one: " + fmt.Sprintf(preset, "slow") + "  fast: " + fmt.Sprintf(preset, "fast") + "gateway:\n  listen: 127.0.0.1:0\n" + extra)
	if prepare != nil {
		prepare(g)
	}
	line := append(append(g.through, "ninelives", "serve", "--config", g.config), args...)
	g.process = exec.Command(line[0], line[1:]...)
	g.process.Dir, g.process.Stderr = dir, g
	g.process.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "NINELIVES_LOCAL=off", "NINELIVES_JOURNAL="+g.journal)
	out, err := g.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		g.greeted += lines.Text() + "\n"
		if url, ok := strings.CutPrefix(lines.Text(), "ninelives gateway on "); ok {
			g.url = url
		}
		if strings.Contains(lines.Text(), "status: ") || strings.Contains(lines.Text(), "curl") {
			break
		}
	}
	if path, ok := strings.CutPrefix(g.url, "unix:"); ok {
		g.url = "http://localhost"
		g.client.Transport.(*http.Transport).Dial = func(string, string) (net.Conn, error) { return net.Dial("unix", path) }
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = g.process.Wait()
		g.code = g.process.ProcessState.ExitCode()
		close(g.ended)
	}()
	t.Cleanup(func() {
		_ = g.process.Process.Kill()
		<-g.ended
		g.client.CloseIdleConnections()
	})
	if g.url == "" {
		<-g.ended
		t.Fatalf("it does not start: exit %d\n%s", g.code, g.said())
	}
	return g
}

// edit replaces the configuration.
func (g *gate) edit(text string) {
	g.t.Helper()
	if err := os.WriteFile(g.config+".new", []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(g.config+".new", g.config); err != nil {
		g.t.Fatal(err)
	}
}

// ask makes a call; a header is name, value.
func (g *gate) ask(path, body string, header ...string) (*http.Response, string) {
	g.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err, g.said())
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp, string(text)
}

// stop ends it as a service manager does, and gives its exit code.
func (g *gate) stop() int {
	g.t.Helper()
	if err := g.process.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	<-g.ended
	return g.code
}

// until waits for something to become so.
func (g *gate) until(what string, so func() bool) {
	g.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("%s: not in a minute\n%s", what, g.said())
		}
	}
}

const (
	gateChat    = `{"model":"m","messages":[{"role":"user","content":"the planted-word of a client"}]}`
	gateStreams = `{"model":"m","stream":true,"messages":[{"role":"user","content":"the planted-word of a client"}]}`
)

func TestTheGatewaySaysWhatToPaste(t *testing.T) {
	g := openGate(t, "", nil)
	for _, want := range []string{"export OPENAI_BASE_URL=" + g.url + "/v1 ", "export ANTHROPIC_BASE_URL=" + g.url + " "} {
		if !strings.Contains(g.greeted, want) {
			t.Errorf("%q is not in\n%s", want, g.greeted)
		}
	}
	if resp, text := g.ask("/v1/chat/completions", gateChat); resp.StatusCode != 200 || !strings.Contains(text, chaos.Answer) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	// A second one at the same address says what is there.
	cmd := exec.Command("ninelives", "serve", "--config", g.config, "--listen", strings.TrimPrefix(g.url, "http://"))
	cmd.Env = g.process.Env
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "something listens there already") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheGatewayOnASocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "nl") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	g := openGate(t, "", nil, "--listen", "unix:"+path)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if resp, text := g.ask("/v1/chat/completions", gateChat); resp.StatusCode != 200 || !strings.Contains(text, chaos.Answer) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit %d\n%s", code, g.said())
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestInsecureListensEverywhere(t *testing.T) {
	g := openGate(t, "", nil, "--listen", "0.0.0.0:0", "--insecure")
	if resp, _ := g.ask("/healthz", ""); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
}

func TestAStoppedGatewayFinishesItsStreams(t *testing.T) {
	g := openGate(t, "", nil)
	goOn := g.dam.hold("fall.") // the last word
	defer goOn()
	resp, err := g.client.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(gateStreams))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := g.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.until("it says that it stops", func() bool {
		ready, _ := g.ask("/readyz", "")
		return ready.StatusCode == http.StatusServiceUnavailable
	})
	late, _ := g.ask("/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	if late.StatusCode != http.StatusServiceUnavailable || late.Header.Get("Retry-After") != "5" {
		t.Errorf("%s, %v", late.Status, late.Header)
	}
	goOn()
	body, err := io.ReadAll(resp.Body)
	if text := soakText("chat", true, body); err != nil || text != chaos.Answer || !bytes.Contains(body, []byte("data: [DONE]")) {
		t.Errorf("%v: %q", err, text)
	}
	if <-g.ended; g.code != 0 {
		t.Errorf("exit %d\n%s", g.code, g.said())
	}
}

func TestEditsOfTheGatewaysFile(t *testing.T) {
	g := openGate(t, "", nil)
	good, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	g.edit("model: [")
	g.until("the bad one is told", func() bool { return strings.Contains(g.said(), "the last good one stays in force") })
	if resp, text := g.ask("/v1/chat/completions", gateChat); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	g.edit(string(good) + "  keys: [{name: me, key: nl-0123456789abcdef}]\n")
	g.until("the good one is told", func() bool { return strings.Contains(g.said(), "has changed and is in force") })
	if resp, _ := g.ask("/v1/chat/completions", gateChat); resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.Status)
	}
	if strings.Contains(g.said(), "nl-0123456789abcdef") {
		t.Error("the log has the key")
	}
}

func TestWhoHasNoKeyIsToldSoInHisProtocol(t *testing.T) {
	g := openGate(t, "  keys: [{name: me, key: nl-0123456789abcdef}]\n", nil)
	for path, want := range map[string]string{
		"/v1/chat/completions":                 `"code":"invalid_api_key"`,
		"/v1/responses":                        `"code":"invalid_api_key"`,
		"/v1/messages":                         `"type":"authentication_error"`,
		"/v1beta/models/m:generateContent":     `"status":"UNAUTHENTICATED"`,
		"/ninelives/v1/calls?unfinished=true&": `"code":"invalid_api_key"`,
	} {
		body := gateChat
		if strings.HasPrefix(path, "/ninelives") {
			body = ""
		}
		for _, key := range []string{"", "nl-0123456789abcdeg"} {
			resp, text := g.ask(path, body, "Authorization", "Bearer "+key, "X-Api-Key", key)
			if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, want) || !json.Valid([]byte(text)) {
				t.Errorf("%s: %s %s", path, resp.Status, text)
			}
		}
	}
	if resp, text := g.ask("/v1/chat/completions", gateChat, "Authorization", "Bearer nl-0123456789abcdef"); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, text)
	}
}

func TestABrokenJournalIsLoudAndNoReasonToRefuse(t *testing.T) {
	g := openGate(t, "", func(g *gate) {
		if err := os.MkdirAll(g.journal, 0o700); err != nil { // a directory in place of the file
			t.Fatal(err)
		}
	})
	if resp, text := g.ask("/v1/chat/completions", gateChat); resp.StatusCode != 200 || !strings.Contains(text, chaos.Answer) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	g.until("it is said", func() bool { return strings.Contains(g.said(), "is not kept on disk") })
}

// holds reports that the journal's files have the planted word.
func (g *gate) holds() bool {
	g.t.Helper()
	files, err := filepath.Glob(g.journal + "*")
	if err != nil || len(files) == 0 {
		g.t.Fatal("no journal", err)
	}
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && (bytes.Contains(data, []byte("planted-word")) || bytes.Contains(data, []byte("sixty words"))) {
			return true
		}
	}
	return false
}

func TestWhatIsNotRetainedIsNotInTheFiles(t *testing.T) {
	g := openGate(t, "  journal: {retention: none}\n", nil)
	for _, body := range []string{gateChat, gateStreams} {
		if resp, text := g.ask("/v1/chat/completions", body); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
	g.until("the content is gone", func() bool { return !g.holds() })
	if code := g.stop(); code != 0 || g.holds() {
		t.Errorf("exit %d; in the files: %v", code, g.holds())
	}
}

func TestWhatIsEncryptedCannotBeReadInTheFiles(t *testing.T) {
	g := openGate(t, "  journal: {key: a long passphrase of nobody else}\n", nil)
	for _, body := range []string{gateChat, gateStreams} {
		resp, text := g.ask("/v1/chat/completions", body)
		if resp.StatusCode != 200 || resp.Header.Get("X-Ninelives-Call") == "" {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
		if g.holds() {
			t.Error("the content is in the files")
		}
	}
	if code := g.stop(); code != 0 || g.holds() {
		t.Errorf("exit %d; in the files: %v", code, g.holds())
	}
}
