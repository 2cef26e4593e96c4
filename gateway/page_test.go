package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// show renders the page.
func show(t *testing.T, data pageData) (body string, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	newPage("1.2.3").write(w, httptest.NewRequest("GET", "/", nil), data)
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "script-src") {
		t.Errorf("the policy is %q", csp)
	}
	body = w.Body.String()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Parent.Data != "style":
			words.WriteString(n.Data + " ")
		case n.Type == html.ElementNode && (n.Data == "script" || n.Data == "img" || n.Data == "iframe"):
			t.Errorf("there is a <%s> on the page", n.Data)
		case n.Type == html.ElementNode && n.Data == "table":
			if first := n.FirstChild.NextSibling; first == nil || first.Data != "caption" {
				t.Error("a table has no caption")
			}
		case n.Type == html.ElementNode && n.Data == "th":
			scoped := false
			for _, a := range n.Attr {
				scoped = scoped || a.Key == "scope"
			}
			if !scoped {
				t.Error("a head of a table has no scope")
			}
		}
	}
	return body, strings.Join(strings.Fields(words.String()), " ")
}

func TestThePageSaysWhatItIsHowToUseItAndWhatWasHealed(t *testing.T) {
	rows := []heal.CandidateHealth{
		{Route: "fast", Candidate: ninelives.Candidate{Provider: "a", Model: "one"}, InFlight: 2, Calls: 9, Failures: 5,
			Standing: heal.Standing{State: heal.StateOpen, Class: ninelives.ClassRateLimit, Scope: ninelives.ScopeKey, Reason: "sk-secret", Until: noon.Add(90 * time.Second)}},
		{Route: "fast", Candidate: ninelives.Candidate{Provider: "b", Model: "two"}, Standing: heal.Standing{State: heal.StateHealthy}},
	}
	candidates, simulated := showCandidates(rows, noon)
	_, text := show(t, pageData{Base: "http://127.0.0.1:9009", Simulated: simulated, InFlight: 2, Candidates: candidates, Calls: showCalls([]callStats{healedCall()})})
	for _, want := range []string{
		"A gateway in front of language models",
		"export OPENAI_BASE_URL=http://127.0.0.1:9009/v1 export ANTHROPIC_BASE_URL=http://127.0.0.1:9009 ",
		"this gateway asks for none",
		"2 calls are under way",
		"a/one fast open for 1m30s rate limit (of the key) 2 0 5 of 9",
		"b/two fast healthy 0 0 0 of 0",
		"12:00:00 fast b/two ok failover, hedge a/one: overloaded (HTTP 503) b/two: answered c/three: left 4s about $0.7500",
		"Nine Lives 1.2.3",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page:\n%s", want, text)
		}
	}
	for _, not := range []string{"sk-secret", "simulator", "stopping"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is on the page", not)
		}
	}
}

func TestThePageSaysThatTheSimulatorAnswers(t *testing.T) {
	candidates, simulated := showCandidates([]heal.CandidateHealth{{Candidate: ninelives.Candidate{Provider: simulator, Model: "steady"}, Standing: heal.Standing{State: heal.StateHealthy}}}, noon)
	_, text := show(t, pageData{Simulated: simulated, Stopping: true, Keys: true, Candidates: candidates})
	for _, want := range []string{"The built-in simulator answers here. It is no AI", "is stopping", "Clients need a key of this gateway", "No call has come yet."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page:\n%s", want, text)
		}
	}
	if _, text := show(t, pageData{Closed: true, Candidates: candidates}); strings.Contains(text, "steady") {
		t.Errorf("a closed page shows candidates:\n%s", text)
	}
}

func TestNothingOfOthersSteersThePage(t *testing.T) {
	evil := "\"><script>alert(1)</script>\x1b\u202e"
	c := callStats{ID: evil, Route: evil, Served: evil, Outcome: outcomeFailed, Class: ninelives.Class(evil), Trail: []attemptStats{{Candidate: evil, Class: ninelives.Class(evil)}}}
	candidates, _ := showCandidates([]heal.CandidateHealth{{Route: evil, Candidate: ninelives.Candidate{Provider: evil, Model: evil}}}, noon)
	body, _ := show(t, pageData{Base: evil, Candidates: candidates, Calls: showCalls([]callStats{c})})
	if strings.Contains(body, "<script") {
		t.Error("a script is on the page")
	}

	for host, want := range map[string]string{
		"127.0.0.1:9009": "http://127.0.0.1:9009", "gateway.example": "http://gateway.example", "[::1]:9": "http://[::1]:9",
		"x;rm -rf ~": "http://127.0.0.1:1", "$(id)": "http://127.0.0.1:1", "": "http://127.0.0.1:1",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		if got := baseURL(r, "127.0.0.1:1"); got != want {
			t.Errorf("%q gives %s", host, got)
		}
	}
}

func TestTheLastHundredCallsAreKept(t *testing.T) {
	var r recent
	if got := r.list(); len(got) != 0 {
		t.Errorf("%d calls before the first", len(got))
	}
	for i := range recentCalls + 7 {
		r.add(callStats{ID: fmt.Sprint(i)})
	}
	got := r.list()
	if len(got) != recentCalls || got[0].ID != "106" || got[99].ID != "7" {
		t.Errorf("%d calls, from %s to %s", len(got), got[0].ID, got[len(got)-1].ID)
	}
}

// model is a candidate that nobody asks.
type model struct {
	ninelives.Model
	c ninelives.Candidate
}

func (m model) Candidate() ninelives.Candidate { return m.c }

func TestHealthTellsOfEveryCandidateAlsoBeforeItIsAsked(t *testing.T) {
	one := ninelives.Candidate{Provider: "a", Model: "one", Key: "k1", Host: "a.example"}
	two := ninelives.Candidate{Provider: simulator, Model: "two"}
	three := ninelives.Candidate{Provider: "c", Model: "opened"}
	h := heal.NewHealth(nil)
	ask := func(c ninelives.Candidate, v heal.Verdict) {
		t.Helper()
		leave, err := h.Route("fast").Enter(t.Context(), c, noon, false)
		if err != nil {
			t.Fatal(err)
		}
		v.Now = noon
		leave(v)
	}
	ask(one, heal.Verdict{Kind: heal.VerdictFailed, GaveUp: true, Fault: &ninelives.Fault{Class: ninelives.ClassAuth, Scope: ninelives.ScopeKey, Status: 401, Message: "bad key sk-secret"}})
	ask(three, heal.Verdict{Kind: heal.VerdictOK})

	routes := []Route{{Name: "fast", Targets: []Target{{Model: model{c: one}}, {Model: model{c: two}}, {Model: model{c: two}}}}}
	body, err := json.Marshal(report(standing(routes, h, noon), newDrain()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"status":"serving","in_flight":0,"candidates":[` +
		`{"route":"fast","candidate":"a/one","key":"k1","host":"a.example","state":"cooling","class":"auth","scope":"key","since":"2026-12-01T12:00:00Z","until":"2026-12-01T12:10:00Z","in_flight":0,"queued":0,"share":0,"calls":0,"failures":0},` +
		`{"route":"fast","candidate":"simulator/two","simulated":true,"state":"healthy","in_flight":0,"queued":0,"share":1,"calls":0,"failures":0},` +
		`{"route":"fast","candidate":"c/opened","state":"healthy","in_flight":0,"queued":0,"share":1,"calls":1,"failures":0}]}`
	if string(body) != want {
		t.Errorf("health is\n%s, want\n%s", body, want)
	}
}
