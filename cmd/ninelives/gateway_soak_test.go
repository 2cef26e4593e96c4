package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/chaos"
)

const (
	soakSeed    = 9
	soakWorkers = 6
	soakSlow    = "slow" // the route whose answer is under way when the process is killed
)

// soak is a gateway under clients that leave, upstreams that fail, an operator
// that edits, and kill -9.
type soak struct {
	t        *testing.T
	dir      string
	address  string
	config   string
	env      []string
	upstream string
	process  *exec.Cmd
	stderr   bytes.Buffer
	client   *http.Client

	quiet sync.RWMutex // held for writing, no call is under way
	mu    sync.Mutex
	seen  map[string]soakCall // by the id in the journal
	tally map[string]int
	life  atomic.Int32 // how often the gateway was started
}

// soakCall is what a client saw of a call.
type soakCall struct {
	what  string // its protocol
	whole bool
	ended time.Time
	life  int32
}

func TestSoak(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("a minute of calls to another process")
	}
	text := os.Getenv("NINELIVES_SOAK")
	if text == "" {
		t.Skip("a minute of its own: NINELIVES_SOAK=60s runs it, and .ci/run does")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	s := newSoak(t)
	s.start()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var workers sync.WaitGroup
	for i := range soakWorkers {
		workers.Go(func() { s.work(ctx, rand.New(rand.NewPCG(soakSeed, uint64(i)))) })
	}
	workers.Go(func() { s.edit(ctx) })

	s.sleep(ctx, length/6)
	s.crash(true)
	s.sleep(ctx, length/6)
	s.crash(false)
	s.sleep(ctx, length/12) // caches and pools fill
	before := s.rest()
	s.sleep(ctx, length)
	workers.Wait()
	after := s.rest()
	// Some connections more or less stay open between calls; a leak at this rate
	// is hundreds.
	if after.goroutines > before.goroutines+40 {
		t.Errorf("goroutines: %d after the first third, %d at the end", before.goroutines, after.goroutines)
	}
	if after.resident > before.resident*5/4+16<<20 {
		t.Errorf("resident: %d MB after the first third, %d MB at the end", before.resident>>20, after.resident>>20)
	}
	s.stop()
	s.account()
	t.Logf("%v goroutines, %v MB at rest after a third; %v, %v MB at the end; %v", before.goroutines, before.resident>>20, after.goroutines, after.resident>>20, s.tally)
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	random := rand.New(rand.NewPCG(soakSeed, 0))
	srv := chaos.New(
		chaos.Scenario{Name: "a", Steps: soakFaults(random), Loop: true},
		chaos.Scenario{Name: "b", Steps: soakFaults(random), Loop: true},
		chaos.Scenario{Name: soakSlow, Steps: []chaos.Step{{Interval: 200 * time.Millisecond}}},
	)
	t.Cleanup(srv.Close)
	address := portOfOwn(t)
	dir := t.TempDir()
	s := &soak{t: t, dir: dir, address: address, config: filepath.Join(dir, "soak.yaml"), upstream: srv.URL(), seen: map[string]soakCall{}, tally: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakWorkers}}}
	s.env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "NINELIVES_LOCAL=off", "NINELIVES_JOURNAL="+filepath.Join(dir, "journal.db"))
	s.write(0)
	t.Cleanup(func() {
		if p := s.process; p != nil && p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		s.client.CloseIdleConnections()
		if t.Failed() {
			said := s.stderr.String()
			t.Log(said[max(0, len(said)-4000):])
		}
	})
	return s
}

// portOfOwn is an address that stays free while the gateway is down: no port of
// those that the system gives to connections.
func portOfOwn(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%5000; port < 30000; port++ {
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// soakFaults is a list of steps, half of them good.
func soakFaults(random *rand.Rand) []chaos.Step {
	page := "<html><body>Bad gateway</body></html>"
	faults := []func() chaos.Step{
		func() chaos.Step {
			return chaos.Step{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: time.Second}
		},
		func() chaos.Step { return chaos.Step{Status: 500 + random.IntN(4), Body: &page} },
		func() chaos.Step { return chaos.Step{Body: &page} },
		func() chaos.Step { return chaos.Step{Drop: chaos.RST} },
		func() chaos.Step { return chaos.Step{Drop: chaos.Close} },
		func() chaos.Step { return chaos.Step{Drop: chaos.Garbage} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), End: chaos.Cut} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), End: chaos.CutInside} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), End: chaos.Reset} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), End: chaos.CleanEnd} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), End: chaos.Stall} },
		func() chaos.Step { return chaos.Step{After: random.IntN(60), Malformed: true} },
		func() chaos.Step { return chaos.Step{Omit: []string{"done"}} },
		func() chaos.Step { return chaos.Step{Omit: []string{"finish", "done"}} },
		func() chaos.Step { return chaos.Step{Empty: chaos.EmptyBlank} },
		func() chaos.Step { return chaos.Step{Empty: chaos.EmptyNull} },
		func() chaos.Step { return chaos.Step{Empty: chaos.EmptyDone} },
	}
	var steps []chaos.Step
	for range 60 {
		step := chaos.Step{}
		if random.IntN(2) == 0 {
			step = faults[random.IntN(len(faults))]()
		}
		if step.Drop == "" && step.Body == nil {
			step.Interval, step.Split = time.Duration(random.IntN(8))*time.Millisecond, []int{0, 0, 7}[random.IntN(3)]
			step.CRLF = random.IntN(4) == 0
		}
		steps = append(steps, step)
	}
	return steps
}

// write makes the n-th edition of the configuration; every third is a bad one.
func (s *soak) write(n int) {
	first, second := "a", "b"
	if n%2 == 1 {
		first, second = second, first
	}
	text := fmt.Sprintf(`model: %s
fallbackModels: [%s]
modelPresets:
  a: {provider: one, model: a, base_url: %q, key: k, protocol: openai-chat, protocols: [openai-responses]}
  b: {provider: two, model: b, base_url: %q, key: k, protocol: anthropic-messages}
  slow: {provider: slow, model: slow, base_url: %q, key: k, protocol: openai-chat}
policy: {deadline: 20s, clocks: {liveness: 300ms, progress: 600ms}}
gateway:
  listen: %q
  routes:
    slow: {models: [slow]}
`, first, second, s.upstream+"/v1", s.upstream, s.upstream+"/v1", s.address)
	if n%3 == 2 {
		text = "model: [\n  gateway: nonsense"
	}
	// In its place at once, as editors do it.
	if err := os.WriteFile(s.config+".new", []byte(text), 0o600); err != nil {
		s.t.Error(err)
	}
	if err := os.Rename(s.config+".new", s.config); err != nil {
		s.t.Error(err)
	}
}

// edit writes the configuration again and again.
func (s *soak) edit(ctx context.Context) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			s.write(0)
			return
		case <-time.After(2 * time.Second):
			s.quiet.RLock()
			s.write(n)
			s.quiet.RUnlock()
		}
	}
}

func (s *soak) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// start starts the gateway and waits until it answers.
func (s *soak) start() {
	s.t.Helper()
	s.process = exec.Command("ninelives", "serve", "--config", s.config, "--quiet", "--drain", "20s")
	s.process.Env, s.process.Dir, s.process.Stderr = s.env, s.dir, &s.stderr
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.life.Add(1)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := s.client.Get("http://" + s.address + "/readyz"); err == nil {
			_ = resp.Body.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("the gateway does not answer")
		}
	}
}

// crash kills the gateway in the middle of an answer, starts it again, and
// finds that answer among the unfinished ones; it can be taken up.
func (s *soak) crash(resume bool) {
	s.t.Helper()
	resp, err := s.client.Post("http://"+s.address+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"slow","stream":true,"messages":[{"role":"user","content":"the soak"}]}`))
	if err != nil {
		s.t.Fatal(err)
	}
	id := resp.Header.Get("X-Ninelives-Call")
	if err := s.process.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.process.Wait()
	if body, err := io.ReadAll(resp.Body); err == nil {
		s.t.Errorf("a killed answer ended cleanly: %s", body)
	}
	_ = resp.Body.Close()
	s.quiet.Lock() // the configuration is a good one, and nobody asks until it listens
	s.write(0)
	good, err := os.ReadFile(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.start()
	s.quiet.Unlock()
	if id == "" {
		s.t.Error("a call without an id")
		return
	}
	if state := s.calls()[id]; state != "interrupted" {
		s.t.Errorf("ninelives calls: %s is %q", id, state)
	}
	var list struct {
		Calls []struct{ ID, State string }
	}
	s.get("/ninelives/v1/calls?unfinished=true", &list)
	found := false
	for _, c := range list.Calls {
		found = found || c.ID == id
	}
	if !found {
		s.t.Errorf("%s is not among the unfinished calls of the gateway: %v", id, list.Calls)
	}
	if !resume {
		return
	}
	own := s.config + ".resume.yaml" // meanwhile the gateway's may be the bad one again
	if err := os.WriteFile(own, good, 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("ninelives", "ask", "--config", own, "--model", soakSlow, "--resume", id)
	cmd.Env, cmd.Dir = s.env, s.dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), chaos.Answer) {
		s.t.Errorf("ninelives ask --resume %s: %v\n%s", id, err, out)
	}
}

func (s *soak) get(path string, into any) {
	s.t.Helper()
	resp, err := s.client.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		if text, ok := into.(*string); ok {
			*text = string(body)
			return
		}
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		s.t.Fatal(path, err, string(body))
	}
}

// calls are the states of all calls in the journal.
func (s *soak) calls() map[string]string {
	s.t.Helper()
	cmd := exec.Command("ninelives", "calls", "--all", "--json")
	cmd.Env, cmd.Dir = s.env, s.dir
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	states := map[string]string{}
	for line := range strings.Lines(string(out)) {
		var c struct{ ID, State string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			s.t.Fatal(err)
		}
		states[c.ID] = c.State
	}
	return states
}

// measure is what the gateway holds when nothing is under way.
type measure struct{ goroutines, resident int }

// rest lets no call begin until those under way have ended, and measures. A
// connection that was left closes a moment later: the least of some seconds
// counts.
func (s *soak) rest() measure {
	s.t.Helper()
	s.quiet.Lock()
	defer s.quiet.Unlock()
	least := measure{}
	idle := 0
	for end := time.Now().Add(25 * time.Second); idle < 4; time.Sleep(500 * time.Millisecond) {
		var text string
		s.get("/metrics", &text)
		values := map[string]int{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				values[name] = int(f)
			}
		}
		now := measure{values["go_goroutines"], values["process_resident_memory_bytes"]}
		if now.goroutines == 0 || now.resident == 0 {
			s.t.Fatal("no such metrics")
		}
		if values["ninelives_in_flight"] == 0 {
			idle++
			if least.goroutines == 0 || now.goroutines < least.goroutines {
				least = now
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d calls are under way although nobody asks", values["ninelives_in_flight"])
		}
	}
	return least
}

// stop ends the gateway as a service manager does.
func (s *soak) stop() {
	s.t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Wait(); err != nil {
		s.t.Errorf("after SIGTERM: %v", err)
	}
}

// account finds every call that a client knows of in the journal.
func (s *soak) account() {
	s.t.Helper()
	states := s.calls()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) < 20 || s.tally["whole"] < 10 {
		s.t.Errorf("too little was done: %v", s.tally)
	}
	for id, c := range s.seen {
		switch state := states[id]; state {
		case "complete":
		case "failed", "canceled", "interrupted":
			if c.whole && c.life == s.life.Load() {
				s.t.Errorf("%s %s was answered, and is %s in the journal", c.what, id, state)
			}
		default:
			s.t.Errorf("%s %s is %q in the journal", c.what, id, state)
		}
	}
}

// work is a client that asks until ctx ends.
func (s *soak) work(ctx context.Context, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		s.quiet.RLock()
		s.ask(random, n)
		s.quiet.RUnlock()
		s.sleep(ctx, time.Duration(50+random.IntN(200))*time.Millisecond)
	}
}

// soakFaces are the protocols: where a call goes, and what says that an answer
// or a stream is whole.
var soakFaces = []struct{ name, path, streamPath, body, last string }{
	{"chat", "/v1/chat/completions", "", `{"model":"m","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, "data: [DONE]"},
	{"responses", "/v1/responses", "", `{"model":"m","stream":%v,"input":"%[2]s"}`, "event: response.completed"},
	{"messages", "/v1/messages", "", `{"model":"m","max_tokens":1000,"stream":%v,"messages":[{"role":"user","content":"%s"}]}`, "event: message_stop"},
	{"gemini", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"labels":{"s":"%v"},"contents":[{"role":"user","parts":[{"text":"%s"}]}]}`, `"finishReason":"STOP"`},
}

// ask makes one call, and may leave before its end.
func (s *soak) ask(random *rand.Rand, n int) {
	face := soakFaces[random.IntN(len(soakFaces))]
	stream, leaves := random.IntN(3) > 0, random.IntN(6) == 0
	path := face.path
	if stream && face.streamPath != "" {
		path = face.streamPath
	}
	life := s.life.Load()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	if leaves {
		patience := time.Duration(random.IntN(400)) * time.Millisecond
		defer time.AfterFunc(patience, cancel).Stop()
	}
	body := fmt.Sprintf(face.body, stream, fmt.Sprintf("question %d of %d", n, random.IntN(1e9)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			s.t.Errorf("%s hangs", face.name)
		}
		s.count("unanswered") // it was killed, or left
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	call := soakCall{what: face.name, ended: time.Now(), life: life}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.t.Errorf("%s hangs in its answer", face.name)
	case err != nil:
		s.count("cut")
	case resp.StatusCode != http.StatusOK:
		if !json.Valid(answer) || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusBadRequest {
			s.t.Errorf("%s: status %d: %s", face.name, resp.StatusCode, answer)
		}
		s.count(strconv.Itoa(resp.StatusCode))
	case face.name == "responses" && bytes.Contains(answer, []byte("response.failed")):
		s.count("response.failed")
	default:
		if text := soakText(face.name, stream, answer); text != chaos.Answer || stream && !bytes.Contains(answer, []byte(face.last)) {
			s.t.Errorf("%s (stream %v) ended cleanly and is not whole: %q\n%s", face.name, stream, text, answer)
		}
		call.whole = true
		s.count("whole")
		if healed := resp.Header.Get("X-Ninelives-Healed"); healed != "" {
			s.count("healed early")
		}
	}
	if id := resp.Header.Get("X-Ninelives-Call"); id != "" {
		s.mu.Lock()
		s.seen[id] = call
		s.mu.Unlock()
	} else if resp.StatusCode == http.StatusOK {
		s.t.Errorf("%s: 200 without the id of its call", face.name)
	}
}

func (s *soak) count(what string) {
	s.mu.Lock()
	s.tally[what]++
	s.mu.Unlock()
}

// soakText puts together what an answer says.
func soakText(face string, stream bool, answer []byte) string {
	type parts = []struct{ Text, Type string }
	var one struct {
		Choices []struct {
			Message, Delta struct{ Content string }
		}
		Content parts
		Output  []struct{ Content parts }
		// Streams.
		Type  string
		Delta json.RawMessage
		// Gemini.
		Candidates []struct{ Content struct{ Parts parts } }
	}
	var b strings.Builder
	take := func(data []byte) {
		one.Choices, one.Content, one.Output, one.Type, one.Delta, one.Candidates = nil, nil, nil, "", nil, nil
		if json.Unmarshal(data, &one) != nil {
			return
		}
		for _, c := range one.Choices {
			b.WriteString(c.Message.Content + c.Delta.Content)
		}
		for _, c := range one.Candidates {
			for _, p := range c.Content.Parts {
				b.WriteString(p.Text)
			}
		}
		if !stream {
			for _, p := range one.Content {
				b.WriteString(p.Text)
			}
			for _, o := range one.Output {
				for _, p := range o.Content {
					b.WriteString(p.Text)
				}
			}
		}
		switch one.Type {
		case "content_block_delta":
			var d struct{ Text string }
			_ = json.Unmarshal(one.Delta, &d)
			b.WriteString(d.Text)
		case "response.output_text.delta":
			var d string
			_ = json.Unmarshal(one.Delta, &d)
			b.WriteString(d)
		}
	}
	if !stream {
		take(answer)
		return b.String()
	}
	for line := range bytes.Lines(answer) {
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			take(data)
		}
	}
	return b.String()
}
