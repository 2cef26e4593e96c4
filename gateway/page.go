package gateway

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/heal"
)

//go:embed page.html
var pageText string

// pageRefresh is how often the page loads itself anew, in seconds.
const pageRefresh = 5

// page is the plain page at /: what this is, how to use it, how the candidates
// stand, and the last calls with what was healed. It needs no script.
type page struct {
	template *template.Template
	version  string
}

func newPage(version string) *page {
	return &page{template: template.Must(template.New("page").Parse(pageText)), version: version}
}

// pageData is what the page shows, all of it in words.
type pageData struct {
	Version   string
	Refresh   int
	Base      string // the URL that clients are pointed at
	Stopping  bool
	Simulated bool
	Keys      bool // clients need a key
	InFlight  int
	// Closed says that candidates and calls are not shown to whom asked.
	Closed     bool
	Candidates []pageCandidate
	Calls      []pageCall
}

type pageCandidate struct {
	Route, Name, State, Why, Until string
	Healthy                        bool
	InFlight, Queued               int
	Calls, Failures                int
}

type pageCall struct {
	At, ID, Route, Served, Outcome, Healed, Took, Cost string
	Trail                                              []string
	OK                                                 bool
}

// write answers a request for the page. Its policy lets nothing be loaded, and
// nobody put it into a frame.
func (p *page) write(w http.ResponseWriter, r *http.Request, data pageData) {
	data.Version, data.Refresh = p.version, pageRefresh
	var b bytes.Buffer
	if err := p.template.Execute(&b, data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes())
	}
}

// baseURL is the URL that a client of this request's sender can use, from what
// the sender itself asked. Anything that is no plain host gives the address that
// the gateway listens on.
func baseURL(r *http.Request, listen string) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	host := r.Host
	if host == "" || strings.ContainsFunc(host, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(".:-[]_", c)
	}) {
		host = listen
	}
	return scheme + host
}

// showCandidates puts how candidates stand into words.
func showCandidates(rows []heal.CandidateHealth, now time.Time) (shown []pageCandidate, simulated bool) {
	for _, row := range rows {
		s := row.Standing
		c := pageCandidate{Route: label(row.Route), Name: label(row.Candidate.Name()), State: string(s.State), Healthy: s.Healthy(),
			InFlight: row.InFlight, Queued: row.Queued, Calls: row.Calls, Failures: row.Failures}
		if !c.Healthy {
			c.Why = strings.ReplaceAll(string(s.Class), "_", " ")
			if s.Scope != "" {
				c.Why += " (of the " + string(s.Scope) + ")"
			}
			if wait := s.Until.Sub(now); wait > 0 {
				c.Until = "for " + roundly(wait)
			}
		}
		simulated = simulated || row.Candidate.Provider == simulator
		shown = append(shown, c)
	}
	return shown, simulated
}

// showCalls puts the last calls into words.
func showCalls(calls []callStats) []pageCall {
	shown := make([]pageCall, len(calls))
	for i := range calls {
		c := &calls[i]
		p := pageCall{At: c.Began.UTC().Format("15:04:05"), ID: label(c.ID), Route: label(c.Route), Served: label(c.Served),
			Outcome: c.Outcome, Healed: strings.Join(c.Healed, ", "), Took: roundly(c.Took), Trail: trailWords(c.Trail),
			OK: c.Outcome == outcomeOK}
		if c.Class != "" {
			p.Outcome += ": " + strings.ReplaceAll(string(c.Class), "_", " ")
		}
		if sum, estimated := c.cost(); sum > 0 {
			p.Cost = fmt.Sprintf("$%.4f", sum)
			if estimated {
				p.Cost = "about " + p.Cost
			}
		}
		shown[i] = p
	}
	return shown
}

// roundly writes a duration for a glance.
func roundly(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
