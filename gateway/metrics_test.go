package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// healedCall is a call whose first candidate was overloaded.
func healedCall() callStats {
	c := callStats{ID: "req_1", Began: noon, FirstToken: 2 * time.Second, Overhead: 300 * time.Microsecond, Operation: operationChat,
		Protocol: ninelives.OpenAIChat, Stream: true, Route: "fast", Key: "alice", Outcome: outcomeOK, Status: 200,
		Usage: ninelives.Usage{Input: 100, Output: 21, Reported: ninelives.UsageInput | ninelives.UsageOutput}}
	fault := &ninelives.Fault{Class: ninelives.ClassOverloaded, Status: 503, Message: "sk-secret \x1b[2J"}
	for _, step := range []struct {
		n     ninelives.Notice
		after time.Duration
	}{
		{ninelives.Notice{Kind: ninelives.NoticePlan}, 0},
		{ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 1, Candidate: "a/one"}, 0},
		{ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: "a/one", Fault: fault, Took: time.Second}, time.Second},
		{ninelives.Notice{Kind: ninelives.NoticeFailover, Attempt: 2, Candidate: "a/one", Next: "b/two", Fault: fault}, time.Second},
		{ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 2, Candidate: "b/two"}, time.Second},
		{ninelives.Notice{Kind: ninelives.NoticeHedge, Attempt: 3, Candidate: "b/two", Next: "c/three"}, 2 * time.Second},
		{ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 3, Candidate: "c/three"}, 2 * time.Second},
	} {
		c.notice(step.n, noon.Add(step.after))
	}
	c.end(2, noon.Add(4*time.Second))
	c.Trail[1].Cost, c.Trail[2].Cost, c.Trail[2].Estimated = 0.5, 0.25, true
	return c
}

func TestAnAccountOfACall(t *testing.T) {
	c := healedCall()
	want := []attemptStats{
		{Number: 1, Candidate: "a/one", Class: ninelives.ClassOverloaded, Status: 503, Took: time.Second},
		{Number: 2, Candidate: "b/two", Took: 3 * time.Second, Cost: 0.5},
		{Number: 3, Candidate: "c/three", Took: 2 * time.Second, Lost: true, Cost: 0.25, Estimated: true},
	}
	if !slices.Equal(c.Trail, want) {
		t.Errorf("the trail is\n%+v, want\n%+v", c.Trail, want)
	}
	if c.Served != "b/two" || c.Took != 4*time.Second || !slices.Equal(c.Healed, []string{"failover", "hedge"}) {
		t.Errorf("served by %q after %v, healed by %v", c.Served, c.Took, c.Healed)
	}
	if sum, estimated := c.cost(); sum != 0.75 || !estimated {
		t.Errorf("it cost %v, estimated: %v", sum, estimated)
	}
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, m *metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && !strings.HasPrefix(line, "#") {
			series[name+"}"] = value
		} else if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			series[name] = value
		}
	}
	return series
}

func TestACallIsCountedOnceInEachOfItsWays(t *testing.T) {
	m := newMetrics()
	m.watch(func(time.Time) []heal.CandidateHealth {
		row := func(route, key string, s heal.State, queued int) heal.CandidateHealth {
			return heal.CandidateHealth{Route: route, Candidate: ninelives.Candidate{Provider: "a", Model: "one", Key: key},
				Standing: heal.Standing{State: s}, InFlight: 1, Queued: queued}
		}
		return []heal.CandidateHealth{row("fast", "k1", heal.StateHealthy, 0), row("fast", "k2", heal.StateOpen, 3), row("slow", "k1", heal.StateHealthy, 0)}
	}, func() int { return 7 })
	m.notice(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: "a/one", Fault: &ninelives.Fault{Class: ninelives.ClassOverloaded}})
	c := healedCall()
	m.call(&c)
	m.call(&callStats{Route: "fast", Operation: operationChat, Outcome: outcomeRejected, Status: 429, ClientGone: true})
	m.journalFailed()
	m.reloaded(nil)
	m.reloaded(errors.New("line 3"))

	got := scrape(t, m)
	chat := `gen_ai_operation_name="chat",gen_ai_request_model="fast",gen_ai_response_model="b/two"`
	plain := `{error_type="",` + chat + `}`
	for name, want := range map[string]string{
		"gen_ai_server_request_duration_seconds_count" + plain:                                        "1",
		"gen_ai_server_request_duration_seconds_sum" + plain:                                          "4",
		"gen_ai_server_time_to_first_token_seconds_sum" + plain:                                       "2",
		"gen_ai_server_time_per_output_token_seconds_sum" + plain:                                     "0.1", // 2 s for 20 tokens
		"gen_ai_client_token_usage_sum{" + chat + `,gen_ai_token_type="input"}`:                       "100",
		"gen_ai_client_token_usage_sum{" + chat + `,gen_ai_token_type="output"}`:                      "21",
		`ninelives_calls_total{outcome="ok",route="fast"}`:                                            "1",
		`ninelives_calls_total{outcome="rejected",route="fast"}`:                                      "1",
		`ninelives_attempts_total{candidate="a/one",outcome="failed"}`:                                "1",
		`ninelives_attempts_total{candidate="b/two",outcome="answered"}`:                              "1",
		`ninelives_attempts_total{candidate="c/three",outcome="left"}`:                                "1",
		`ninelives_faults_total{candidate="a/one",class="overloaded"}`:                                "1",
		`ninelives_healed_total{action="failover",route="fast"}`:                                      "1",
		`ninelives_healed_total{action="hedge",route="fast"}`:                                         "1",
		`ninelives_cost_dollars_total{candidate="b/two",estimated="false",key="alice",route="fast"}`:  "0.5",
		`ninelives_cost_dollars_total{candidate="c/three",estimated="true",key="alice",route="fast"}`: "0.25",
		`ninelives_overhead_seconds_count`:                                                            "2",
		`ninelives_client_gone_total`:                                                                 "1",
		`ninelives_journal_errors_total`:                                                              "1",
		`ninelives_config_reloads_total{result="ok"}`:                                                 "1",
		`ninelives_config_reloads_total{result="kept_last_good"}`:                                     "1",
		`ninelives_in_flight`:                                                       "7",
		`ninelives_queue{candidate="a/one",route="fast"}`:                           "3",
		`ninelives_candidate_in_flight{candidate="a/one",route="fast"}`:             "2",
		`ninelives_candidate_state{candidate="a/one",route="fast",state="healthy"}`: "1",
		`ninelives_candidate_state{candidate="a/one",route="fast",state="open"}`:    "1",
		`ninelives_candidate_state{candidate="a/one",route="fast",state="cooling"}`: "0",
		`ninelives_candidate_state{candidate="a/one",route="slow",state="healthy"}`: "1",
		`gen_ai_server_request_duration_seconds_count{error_type="rejected",gen_ai_operation_name="chat",gen_ai_request_model="fast",gen_ai_response_model=""}`: "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, "secret") {
			t.Errorf("%s tells what a provider wrote", name)
		}
	}
}

func TestNoClientCanFillTheMetrics(t *testing.T) {
	m := newMetrics()
	var rows []heal.CandidateHealth
	for i := range 5000 {
		name := fmt.Sprintf("x%d\x1b\"\n\xff%s", i, strings.Repeat("long", 100))
		rows = append(rows, heal.CandidateHealth{Route: name, Candidate: ninelives.Candidate{Provider: name, Model: name}, Standing: heal.Standing{State: heal.StateHealthy}})
		m.notice(ninelives.Notice{Kind: ninelives.NoticeFault, Candidate: name, Fault: &ninelives.Fault{Class: ninelives.Class(name)}})
		m.call(&callStats{Operation: name, Route: name, Served: name, Key: name, Outcome: outcomeOK, FirstToken: 1, Took: 2, Class: ninelives.Class(name),
			Usage: ninelives.Usage{Output: 2, Input: 1, Reported: ninelives.UsageInput | ninelives.UsageOutput}, Trail: []attemptStats{{Candidate: name, Cost: 1}}})
	}
	m.watch(func(time.Time) []heal.CandidateHealth { return rows }, func() int { return 0 })
	// What is configured keeps its name, however late it comes.
	m.expect("fast", "a/one", "alice")
	c := healedCall()
	m.call(&c)

	got := scrape(t, m)
	if n := len(got); n > 10_000 {
		t.Errorf("there are %d series", n)
	}
	if key := `ninelives_cost_dollars_total{candidate="other",estimated="false",key="alice",route="fast"}`; got[key] != "0.5" {
		t.Errorf("%s is %q", key, got[key])
	}
	if key := `ninelives_calls_total{outcome="ok",route="other"}`; got[key] == "" {
		t.Errorf("%s is missing among %v", key, slices.Sorted(maps.Keys(got))[:20])
	}
	for name := range got {
		if len(name) > 1000 || strings.ContainsAny(name, "\x1b\xff") {
			t.Fatalf("a label is %q", name)
		}
	}
}

func TestCombinationsAreBounded(t *testing.T) {
	m := newMetrics()
	var known []string
	for i := range 100 {
		known = append(known, fmt.Sprint("n", i))
	}
	m.expect(known...)
	for _, a := range known {
		for _, b := range known {
			m.call(&callStats{Route: a, Outcome: outcomeOK, Healed: []string{b}})
		}
	}
	n := 0
	for name := range scrape(t, m) {
		if strings.HasPrefix(name, "ninelives_healed_total") {
			n++
		}
	}
	if n != combinations {
		t.Errorf("%d series of 10000 combinations, want %d", n, combinations)
	}
}

func TestCountingAHealthyCallCostsNothingMuch(t *testing.T) {
	m := newMetrics()
	c := healedCall()
	m.call(&c)
	if n := testing.AllocsPerRun(100, func() { m.call(&c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheLineOfACall(t *testing.T) {
	var b strings.Builder
	to := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	c := healedCall()
	logCall(t.Context(), to, &c)
	logCall(t.Context(), to, &callStats{ID: "req_2\x1b[2J\n", Outcome: outcomeFailed, Class: ninelives.ClassOverloaded, Status: 529, ClientGone: true, Took: time.Second})
	want := `{"level":"INFO","msg":"call","id":"req_1","operation":"chat","protocol":"` + string(ninelives.OpenAIChat) + `","stream":true,"route":"fast","key":"alice",` +
		`"candidate":"b/two","outcome":"ok","status":200,"attempts":3,"ms":4000,"first_token_ms":2000,"overhead_us":300,"input_tokens":100,"output_tokens":21,` +
		`"cost_usd":0.75,"cost_estimated":true,"healed":["failover","hedge"],"trail":["a/one: overloaded (HTTP 503)","b/two: answered","c/three: left"]}` + "\n" +
		`{"level":"WARN","msg":"call","id":"req_2\\x1b[2J\\n","outcome":"failed","class":"overloaded","status":529,"attempts":0,"ms":1000,"overhead_us":0,"client_gone":true}` + "\n"
	if b.String() != want {
		t.Errorf("the log has\n%s, want\n%s", b.String(), want)
	}
}
