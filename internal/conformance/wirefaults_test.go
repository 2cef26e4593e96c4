package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/provider"
	"go.uber.org/goleak"
)

// TestWireFaults serves every case of the corpus for real and holds what the
// product makes of it against the case's verdict.
func TestWireFaults(t *testing.T) { serveAll(t, loadFaults(t)) }

// TestOwnWireFaults does the same with the cases of this package: kinds of
// transport, of hints and of repairs that a corpus need not hold.
func TestOwnWireFaults(t *testing.T) {
	serveAll(t, ownFaults(t))
}

func serveAll(t *testing.T, cases []fault) {
	rejected.Store(0)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		t.Logf("%d first requests were rejected as they were written", rejected.Load())
		goleak.VerifyNone(t, before) // whatever broke, nothing is left behind
	})
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []string{oneWrite, ownPieces, eachByte} {
				t.Run(mode, func(t *testing.T) { replay(t, c, mode) })
			}
			switch {
			case strings.HasPrefix(c.SecondRequest, "max_tokens<="):
				t.Run("healed", func(t *testing.T) { answerLimitIsLowered(t, c) })
			case c.SecondRequest == "smaller":
				t.Run("healed", func(t *testing.T) { overflowIsHandedUp(t, c) })
			case c.SecondRequest != "":
				t.Fatalf("the corpus wants something of the second request that is not known here: %q", c.SecondRequest)
			}
		})
	}
}

// clocksFor are short only where a case is about silence: everywhere else a
// busy machine must not be taken for a silent provider.
func clocksFor(c fault) ninelives.Clocks {
	clocks := ninelives.Clocks{Dial: 20 * time.Second, Headers: 30 * time.Second, FirstEvent: time.Minute,
		Liveness: 30 * time.Second, Progress: 90 * time.Second, Total: 2 * time.Minute}
	switch {
	case c.Transport.Pre == "tls_handshake_stall":
		clocks.Dial = 300 * time.Millisecond
	case c.Transport.End == "stall" || c.Transport.Repeat != nil:
		clocks.Liveness, clocks.Progress = 700*time.Millisecond, 1500*time.Millisecond
	}
	return clocks
}

// rejected counts the requests that were rejected on their own account: it
// tells how much of the repairs is really needed.
var rejected atomic.Int64

// replay serves a case in one way and checks what comes of it.
func replay(t *testing.T, c fault, mode string) {
	if c.When == "request" {
		repaired(t, c, mode, false)
		repaired(t, c, mode, true)
		return
	}
	u := newUpstream(t, c, func(n int, body []byte) reply {
		if c.Transport.Pre == "close_reused_connection_after_request" {
			return normal(c, body, mode)
		}
		return served(c, mode)
	})
	if c.Requires != "" {
		withSwitch(t, c, u)
		return
	}
	model := open(t, c, u)
	req := requestFor(t, c)
	before := 0
	if c.Transport.Pre == "close_reused_connection_after_request" {
		if resp, f := ask(t, model, req); f != nil || resp.Text() != normalText(c) {
			t.Fatalf("the connection could not be opened: %v", f)
		}
		before = len(u.seen())
	}
	resp, f := ask(t, model, req)
	check(t, c, req, model, resp, f)
	if n := len(u.seen()) - before; n > 1 {
		t.Errorf("one attempt made %d requests", n)
	}
}

// open opens the model under test. It is a server that nobody knows: what the
// verdicts rest on must come from the wire alone.
func open(t *testing.T, c fault, u *upstream) ninelives.Model {
	t.Helper()
	dialer := &net.Dialer{}
	base := u.url
	if c.Transport.Pre == "nxdomain" {
		server := nowhere(t)
		dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", server)
		}}
		base = "http://api.nine-lives.test"
	}
	opts := []provider.Option{
		provider.Key(provider.NewSecret("sk-conformance-0123456789")),
		provider.Environment(func(string) (string, bool) { return "", false }),
		provider.Dial(dialer.DialContext),
		provider.Capabilities(func(k *ninelives.Capabilities) {
			k.Tools, k.Images, k.Files, k.Prefill, k.Schema = true, true, true, true, ninelives.SchemaNative
		}),
	}
	if c.Dialect == "anthropic" {
		opts = append(opts, provider.BaseURL(base), provider.Protocol(ninelives.AnthropicMessages))
	} else {
		opts = append(opts, provider.BaseURL(base+"/v1"))
	}
	if c.Window > 0 {
		opts = append(opts, provider.Window(c.Window))
	}
	if u.caFile != "" {
		opts = append(opts, provider.CAFile(u.caFile))
	}
	model, err := provider.Open("test-model", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// requestFor is a request that fits a case: long where the case is about
// length, with the tools that the answer calls.
func requestFor(t *testing.T, c fault) *ninelives.Request {
	req := ninelives.Prompt("hi")
	if len(c.Request) > 0 {
		req = decoded(t, c)
	}
	if c.SecondRequest == "smaller" {
		req.Messages = nil
		for i := range 6 {
			req.Messages = append(req.Messages,
				ninelives.UserText(fmt.Sprintf("Part %d. %s", i, strings.Repeat("Cats land on their feet. ", 500))),
				ninelives.AssistantText("Noted."))
		}
		req.Messages = append(req.Messages, ninelives.UserText("Why?"))
	}
	if limit, ok := strings.CutPrefix(c.SecondRequest, "max_tokens<="); ok {
		n, _ := strconv.Atoi(limit)
		req.MaxTokens = n + 5000
	}
	for _, name := range toolNamesOf(c) {
		if slices.ContainsFunc(req.Tools, func(t ninelives.Tool) bool { return t.Name == name }) {
			continue
		}
		schema := []byte(c.ToolSchema)
		if schema == nil {
			schema = []byte(`{"type":"object"}`)
		}
		req.Tools = append(req.Tools, ninelives.Tool{Name: name, Description: "x", Schema: schema})
	}
	req.Attempt = &ninelives.Attempt{Number: 1, Clocks: clocksFor(c)}
	if !c.Stream {
		req.Attempt.Repairs = []ninelives.Repair{{Name: wire.RepairNoStream}}
	}
	return req
}

var nameRE = regexp.MustCompile(`\\?"name\\?"\s*:\s*\\?"([A-Za-z_]\w*)`)

// toolNamesOf are the tools that a case calls.
func toolNamesOf(c fault) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if c.Expect.ToolCalls != nil {
		for _, call := range *c.Expect.ToolCalls {
			add(call.Name)
		}
	}
	if names == nil && c.SSE != nil {
		for _, m := range nameRE.FindAllStringSubmatch(*c.SSE, -1) {
			add(m[1])
		}
	}
	return names
}

// ask makes one call and gives its answer or its fault.
func ask(t *testing.T, m ninelives.Model, req *ninelives.Request) (*ninelives.Response, *ninelives.Fault) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	resp, err := ninelives.Collect(m.Stream(ctx, req))
	if err == nil {
		return resp, nil
	}
	var f *ninelives.Fault
	if !errors.As(err, &f) {
		t.Fatalf("not a Fault: %v", err)
	}
	return nil, f
}

// check holds an answer against the verdict.
func check(t *testing.T, c fault, req *ninelives.Request, model ninelives.Model, resp *ninelives.Response, f *ninelives.Fault) {
	t.Helper()
	if f == nil {
		candidate, _ := ninelives.CandidateOf(model)
		_, f = heal.Judge(req, resp, candidate)
	} else if resp == nil {
		resp = f.Partial
	}
	class := ninelives.Class("none")
	if f != nil {
		class = f.Class
	}
	if string(class) != c.Expect.Class {
		t.Errorf("class %s, want %s: %v", class, c.Expect.Class, f)
	}
	checkHint(t, c, f)
	checkFault(t, f)
	if resp == nil {
		resp = &ninelives.Response{}
	}
	if want := c.Expect.Text; want != nil && resp.Text() != *want {
		t.Errorf("text %q, want %q", resp.Text(), *want)
	}
	if want := c.Expect.Reasoning; want != nil && strings.TrimRight(resp.Message.Reasoning(), " \t\r\n") != strings.TrimRight(*want, " \t\r\n") {
		t.Errorf("reasoning %q, want %q", resp.Message.Reasoning(), *want)
	}
	if want := c.Expect.Refusal; want != nil && resp.Message.Refusal() != *want {
		t.Errorf("refusal %q, want %q", resp.Message.Refusal(), *want)
	}
	if want := c.Expect.Finish; want != nil && string(resp.Finish) != normalised(*want) {
		t.Errorf("finish %q, want %q", resp.Finish, normalised(*want))
	}
	if c.Expect.ToolCalls != nil {
		checkCalls(t, *c.Expect.ToolCalls, resp.Message.ToolCalls())
	}
}

func checkHint(t *testing.T, c fault, f *ninelives.Fault) {
	t.Helper()
	var want, got time.Duration
	if c.Expect.RetryAfter != nil {
		want = time.Duration(*c.Expect.RetryAfter * float64(time.Millisecond))
	}
	if f != nil {
		got = f.RetryAfter
	}
	var tolerance time.Duration
	if placeholder.MatchString(c.payload()) || placeholder.MatchString(fmt.Sprint(c.Headers)) {
		tolerance = 2 * time.Second
	}
	if diff := (got - want).Abs(); diff > tolerance {
		t.Errorf("hint %v, want %v", got, want)
	}
}

// checkFault: what is told of a failure is one line and holds no key.
func checkFault(t *testing.T, f *ninelives.Fault) {
	t.Helper()
	if f == nil {
		return
	}
	if text := f.Error(); strings.ContainsAny(text, "\n\r") || len(text) > 2000 || strings.Contains(text, "sk-conformance") {
		t.Errorf("not a line for the log: %q", text)
	}
}

// finishes are the providers' words for the normalised reasons.
var finishes = map[string]ninelives.FinishReason{
	"end_turn": ninelives.FinishStop, "eos": ninelives.FinishStop, "stop_sequence": ninelives.FinishStop,
	"max_tokens": ninelives.FinishLength, "tool_use": ninelives.FinishToolCalls, "function_call": ninelives.FinishToolCalls,
}

func normalised(finish string) string {
	word := strings.ToLower(finish)
	if f, ok := finishes[word]; ok {
		return string(f)
	}
	return word
}

func checkCalls(t *testing.T, want []expectedCall, got []ninelives.ToolCall) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d tool calls, want %d: %+v", len(got), len(want), got)
		return
	}
	seen := map[string]bool{}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || w.ID != "" && g.ID != w.ID || g.ID == "" || seen[g.ID] {
			t.Errorf("call %d is %s %q, want %s %q", i, g.Name, g.ID, w.Name, w.ID)
		}
		seen[g.ID] = true
		var a, b any
		if json.Unmarshal([]byte(g.Arguments), &a) != nil || json.Unmarshal(w.Arguments, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("call %d has arguments %s, want %s", i, g.Arguments, w.Arguments)
		}
	}
}

// withSwitch decodes a case that holds only under a switch of the dialect that
// must be thrown on purpose.
func withSwitch(t *testing.T, c fault, u *upstream) {
	var d wire.Dialect
	switch {
	case strings.Contains(c.Requires, "textual tool calls"):
		d.TextToolCalls = true
	case strings.Contains(c.Requires, "opening tag"):
		d.ReasoningOpen = true
	case strings.Contains(c.Requires, "think"):
		d.ThinkTags = true
	default:
		t.Skipf("the case requires %q, for which there is no switch", c.Requires)
	}
	resp, err := http.Post(u.url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	req := requestFor(t, c)
	o := wire.DecodeOptions{Dialect: d, Tools: req.Tools}
	decoder := openai.NewChatDecoder(o)
	if c.Dialect == "anthropic" {
		decoder = anthropic.NewDecoder(o)
	}
	frames := sse.NewReader(resp.Body)
	var cause error
	for decoder.State() != wire.Closed {
		frame, err := frames.Next()
		if err != nil {
			if err != io.EOF {
				cause = err
			}
			break
		}
		if cause = decoder.Frame(frame, func(ninelives.Event) bool { return true }); cause != nil {
			break
		}
	}
	answer, err := decoder.Response(cause)
	var f *ninelives.Fault
	if err != nil && !errors.As(err, &f) {
		t.Fatalf("not a Fault: %v", err)
	}
	check(t, c, req, nil, answer, f)
}

// repaired lets the healing driver repair the request of a case. forced makes
// the upstream complain about the first request whatever it is, so that the
// complaint is acted upon even where the request was written well at once.
func repaired(t *testing.T, c fault, mode string, forced bool) {
	u := newUpstream(t, c, func(n int, body []byte) reply {
		if c.RejectIf.rejects(body) || forced && n == 1 {
			return served(c, mode)
		}
		return normal(c, body, mode)
	})
	req := decoded(t, c)
	answer, f := ask(t, heal.New(open(t, c, u), heal.Deadline(time.Minute)), req)
	seen := u.seen()
	good := len(seen) > 0 && !c.RejectIf.rejects(seen[0])
	if !good && !forced && mode == oneWrite {
		rejected.Add(1)
	}
	if forced {
		complaint := verdictOf(t, c, mode)
		if f != nil && good && len(complaint.Repairs) == 0 {
			return // the request had nothing to repair
		}
	}
	if f != nil {
		t.Errorf("forced %v: not repaired after %d requests: %v\nlast request: %s", forced, len(seen), f, last(seen))
		return
	}
	if answer.Text() != normalText(c) {
		t.Errorf("text %q", answer.Text())
	}
	if c.RejectIf.rejects(last(seen)) {
		t.Errorf("the last request is one that is rejected: %s", last(seen))
	}
	if len(seen) > 3 {
		t.Errorf("forced %v: %d requests for one repair", forced, len(seen))
	}
}

// verdictOf is the fault that a case's complaint makes, by itself.
func verdictOf(t *testing.T, c fault, mode string) *ninelives.Fault {
	t.Helper()
	u := newUpstream(t, c, func(int, []byte) reply { return served(c, mode) })
	_, f := ask(t, open(t, c, u), decoded(t, c))
	if f == nil {
		t.Fatal("the complaint is no fault")
	}
	if string(f.Class) != c.Expect.Class {
		t.Errorf("class %s, want %s: %v", f.Class, c.Expect.Class, f)
	}
	checkHint(t, c, f)
	checkFault(t, f)
	return f
}

func last(bodies [][]byte) []byte {
	if len(bodies) == 0 {
		return nil
	}
	return bodies[len(bodies)-1]
}

// decoded reads the rejected example of a case as a client would have sent it.
func decoded(t *testing.T, c fault) *ninelives.Request {
	t.Helper()
	read := openai.DecodeChatRequest
	if c.Dialect == "anthropic" {
		read = anthropic.DecodeRequest
	}
	in, err := read(c.Request)
	if err != nil {
		t.Fatalf("the request cannot be read: %v", err)
	}
	in.Request.Model = ""
	return in.Request
}

// answerLimitIsLowered: the product heals by itself, once.
func answerLimitIsLowered(t *testing.T, c fault) {
	most, err := strconv.Atoi(strings.TrimPrefix(c.SecondRequest, "max_tokens<="))
	if err != nil {
		t.Fatal(err)
	}
	limitOf := func(body []byte) float64 {
		var req object
		_ = json.Unmarshal(body, &req)
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if n, ok := req[name].(float64); ok {
				return n
			}
		}
		return 0
	}
	u := newUpstream(t, c, func(n int, body []byte) reply {
		if limit := limitOf(body); limit == 0 || limit > float64(most) {
			return served(c, oneWrite)
		}
		return normal(c, body, oneWrite)
	})
	req := requestFor(t, c)
	req.Attempt = nil
	answer, f := ask(t, heal.New(open(t, c, u), heal.Deadline(time.Minute)), req)
	if f != nil {
		t.Fatalf("not healed: %v\nlast request: %s", f, last(u.seen()))
	}
	if n := len(u.seen()); answer.Text() != normalText(c) || n != 2 {
		t.Errorf("text %q after %d requests", answer.Text(), n)
	}
}

// overflowIsHandedUp: the product does not send the same request again, tells
// the class, and a smaller request then succeeds.
func overflowIsHandedUp(t *testing.T, c fault) {
	sizes := func(body []byte) int {
		var req struct{ Messages json.RawMessage }
		_ = json.Unmarshal(body, &req)
		return len(req.Messages)
	}
	var u *upstream
	u = newUpstream(t, c, func(n int, body []byte) reply {
		if sizes(body) < sizes(u.seen()[0]) {
			return normal(c, body, oneWrite)
		}
		return served(c, oneWrite)
	})
	model := open(t, c, u)
	req := requestFor(t, c)
	req.Attempt = nil
	_, f := ask(t, heal.New(model, heal.Deadline(time.Minute)), req)
	if f == nil || f.Class != ninelives.ClassContextLength {
		t.Fatalf("the overflow is not handed up: %v", f)
	}
	if n := len(u.seen()); n != 1 {
		t.Errorf("%d requests of the same size", n)
	}
	smaller := req.Clone()
	smaller.Messages = smaller.Messages[len(smaller.Messages)-1:]
	answer, f := ask(t, heal.New(model, heal.Deadline(time.Minute)), smaller)
	if f != nil || answer.Text() != normalText(c) {
		t.Errorf("the smaller request failed: %v", f)
	}
	if bytes.Equal(u.seen()[0], last(u.seen())) {
		t.Error("nothing was shortened")
	}
}
