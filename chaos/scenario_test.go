package chaos

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// statuses sends requests to a model and tells what each was answered.
func statuses(t *testing.T, srv *Server, model string, gaps ...time.Duration) string {
	t.Helper()
	var out []string
	for _, gap := range gaps {
		time.Sleep(gap)
		resp, _, err := srv.say(t, chat, model, true)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(resp.StatusCode))
	}
	return strings.Join(out, " ")
}

func TestStepsAreWalkedThrough(t *testing.T) {
	steps := one(Step{Status: 429, Times: 2}, Step{Status: 500}, Step{})
	inBubble(t, steps, func(t *testing.T, srv *Server) {
		if got := statuses(t, srv, "x", 0, 0, 0, 0, 0); got != "429 429 500 200 200" {
			t.Errorf("got %s", got)
		}
		// Another full name has its own place in the same scenario.
		if got := statuses(t, srv, "other/x", 0, 0, 0); got != "429 429 500" {
			t.Errorf("other/x got %s", got)
		}
		srv.Reset()
		if got := statuses(t, srv, "x", 0); got != "429" {
			t.Errorf("after a reset got %s", got)
		}
	})
}

func TestWindowsOfTime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		// The window begins with the first request, not with the server.
		if got := statuses(t, srv, "fb-s15", 7*time.Second, 59*time.Second, time.Second, time.Hour); got != "503 503 200 200" {
			t.Errorf("flap: %s", got)
		}
		srv.Add(Scenario{Name: "f", Loop: true, Steps: []Step{{For: 10 * time.Second, Status: 503}, {For: 5 * time.Second}}})
		if got := statuses(t, srv, "f", 0, 9*time.Second, time.Second, 4*time.Second, time.Second, 10*time.Second, 6*time.Second); got != "503 503 200 200 503 200 503" {
			t.Errorf("flapping: %s", got)
		}
	})
}

func TestLoopOfCountedSteps(t *testing.T) {
	inBubble(t, []Scenario{{Name: "x", Loop: true, Steps: []Step{{Status: 500}, {}}}}, func(t *testing.T, srv *Server) {
		if got := statuses(t, srv, "x", 0, 0, 0, 0, 0); got != "500 200 500 200 500" {
			t.Errorf("got %s", got)
		}
	})
}

func TestHowAScenarioIsFound(t *testing.T) {
	inBubble(t, []Scenario{{Name: "cut", Steps: []Step{{Status: 418}}}}, func(t *testing.T, srv *Server) {
		find := func(model string, header ...string) string {
			path, body := request(chat, model, false, "Hi")
			if _, _, err := post(t, srv, path, body, header...); err != nil {
				t.Fatal(err)
			}
			log := srv.Log()
			return log[len(log)-1].Scenario
		}
		for model, want := range map[string]string{
			"ok":                        "ok",
			"openai/gpt/ok":             "ok",
			"fb-s13":                    "fb-s13-content-filter",
			"openai/fb-s13-as-they-say": "fb-s13-content-filter",
			"S13":                       "fb-s13-content-filter",
			"fb-s99":                    "",
			"gpt-5.4":                   "",
			"cut":                       "cut",
		} {
			if got := find(model); got != want {
				t.Errorf("%s meets %q, want %q", model, got, want)
			}
		}
		if got := find("gpt-5.4", "x-chaos", "empty-none"); got != "empty-none" {
			t.Errorf("by header: %q", got)
		}
		resp, _, _ := srv.say(t, chat, "cut", false)
		if resp.StatusCode != 418 {
			t.Errorf("a scenario of one's own does not take the place of the catalogue's: %d", resp.StatusCode)
		}
		resp, got, _ := srv.say(t, chat, "gpt-5.4", false)
		if resp.StatusCode != 404 || !strings.Contains(got, "model_not_found") || !strings.Contains(got, "no scenario of that name") {
			t.Errorf("unknown model: %d %s", resp.StatusCode, got)
		}
		srv.Add(Scenario{})
		if got := find("gpt-5.4"); got != "*" {
			t.Errorf("with a scenario for all others: %q", got)
		}
	})
}

func TestPublicScenariosAreAllThere(t *testing.T) {
	for i := 1; i <= 16; i++ {
		if name := publicName(fmt.Sprintf("fb-s%02d", i)); !strings.HasPrefix(name, fmt.Sprintf("fb-s%02d-", i)) {
			t.Errorf("S%02d: %q", i, name)
		}
	}
	if publicName("fb-s17-none") != "" || publicName("fb-ok") != "" {
		t.Error("a name that is none is taken for one")
	}
}

func TestTheCatalogueIsValidAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range Catalogue() {
		if err := sc.Validate(); err != nil {
			t.Error(err)
		}
		if seen[sc.Name] || sc.About == "" {
			t.Errorf("%q is there twice or says nothing about itself", sc.Name)
		}
		seen[sc.Name] = true
	}
}

func TestScripts(t *testing.T) {
	got, err := Parse([]byte(`
scenarios:
  - name: shaky
    about: two faults, then an answer
    steps:
      - {error: rate_limit, hint: seconds, wait: 2s}
      - {after: 10, end: cut, interval: 100ms, omit: [usage]}
      - text: Third time lucky.
  - name: window
    steps:
      - {for: 1m, status: 503, headers: {x-why: tired}, body: "no"}
      - {reject: [prefill, "param:seed"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	no := "no"
	want := []Scenario{
		{Name: "shaky", About: "two faults, then an answer", Steps: []Step{
			{Error: RateLimit, Hint: HintSeconds, Wait: 2 * time.Second},
			{After: 10, End: Cut, Interval: 100 * time.Millisecond, Omit: []string{"usage"}},
			{Text: "Third time lucky."}}},
		{Name: "window", Steps: []Step{
			{For: time.Minute, Status: 503, Headers: map[string]string{"x-why": "tired"}, Body: &no},
			{Reject: []Check{Prefill, "param:seed"}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := Parse([]byte(`{"scenarios":[{"name":"j","steps":[{"delay":"1.5s"}]}]}`)); err != nil {
		t.Errorf("JSON: %v", err)
	}
}

func TestBadScriptsSayWhatIsWrong(t *testing.T) {
	for script, want := range map[string]string{
		"":                                  "there are no scenarios",
		"scenarios: [{}]":                   "scenario 1 has no name",
		"scenarios: [{name: a}, {name: a}]": `"a" is there twice`,
		"scenarios:\n  - name: a\n    steps: [{end: sideways}]":        `end: "sideways" is unknown: use one of cut, cut_inside`,
		"scenarios:\n  - name: a\n    steps: [{error: nonsense}]":      `error: "nonsense" is unknown`,
		"scenarios:\n  - name: a\n    steps: [{reject: [everything]}]": `reject: "everything" is unknown`,
		"scenarios:\n  - name: a\n    steps: [{stauts: 500}]":          `line 3, column 14: unknown field "stauts"`,
		"scenarios:\n  - name: a\n    steps: [{delay: 3}]":             `line 3, column 21: expected a duration such as 1.5s`,
		"scenarios:\n  - name: a\n    steps: [{status: x}]":            `line 3, column 22: expected a whole number`,
		"scenarios: 3":              `line 1, column 12: expected a list`,
		"\xff\xfe":                  "the script is no text in UTF-8",
		"a\x00":                     "the script is no text in UTF-8",
		strings.Repeat("#", 300000): "the script is larger than 256 KB",
		"scenarios:\n  - name: a\n    steps: [{times: 2, for: 1s}]":        "times and for exclude each other",
		"scenarios:\n  - name: a\n    steps: [{end: error}]":               "end: error needs an error",
		"scenarios:\n  - name: a\n    steps: [{hint: ms, error: timeout}]": `hint "ms" needs a wait`,
		"scenarios:\n  - name: a\n    steps: [{status: 99}]":               "status 99 is no final HTTP status",
	} {
		_, err := Parse([]byte(script))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
}

func TestControlOverHTTP(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		client := srv.Client()
		defer client.CloseIdleConnections()
		do := func(method, path, body string) (int, string) {
			req, _ := http.NewRequest(method, MemoryURL+path, strings.NewReader(body))
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode, readAll(resp.Body)
		}
		status, list := do("GET", "/control/scenarios", "")
		if status != 200 || !strings.Contains(list, "fb-s16") {
			t.Errorf("list: %d %s", status, list)
		}
		if scenarios, err := Parse([]byte(list)); err != nil || len(scenarios) != len(catalogue) {
			t.Errorf("the list is not fit to be sent back: %d, %v", len(scenarios), err)
		}
		if status, got := do("POST", "/control/scenarios", `{"scenarios":[{"name":"mine","steps":[{"status":503}]}]}`); status != 200 {
			t.Errorf("add: %d %s", status, got)
		}
		if got := statuses(t, srv, "mine", 0); got != "503" {
			t.Errorf("added scenario: %s", got)
		}
		if status, got := do("POST", "/control/scenarios", `{"scenarios":[{"name":"mine","steps":[{"end":"x"}]}]}`); status != 400 || !strings.Contains(got, "is unknown") {
			t.Errorf("bad add: %d %s", status, got)
		}
		if status, got := do("GET", "/control/log?since=0", ""); status != 200 || !strings.Contains(got, `"scenario":"mine"`) {
			t.Errorf("log: %d %s", status, got)
		}
		if status, _ := do("POST", "/control/reset", ""); status != 200 || len(srv.Log()) != 0 {
			t.Errorf("reset: %d, %d entries", status, len(srv.Log()))
		}
		if status, _ := do("GET", "/control/nothing", ""); status != 404 {
			t.Errorf("unknown: %d", status)
		}
		if status, got := do("GET", "/v1/models", ""); status != 200 || !strings.Contains(got, `"id":"fb-ok"`) {
			t.Errorf("models: %d %s", status, got)
		}
		if status, got := do("GET", "/v1beta/models", ""); status != 200 || !strings.Contains(got, `"name":"models/fb-ok"`) {
			t.Errorf("models: %d %s", status, got)
		}
		if status, got := do("POST", "/v1/nothing", "{}"); status != 404 || !strings.Contains(got, "nothing at POST /v1/nothing") {
			t.Errorf("unknown path: %d %s", status, got)
		}
	})
}
