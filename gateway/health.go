package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// Service is how a gateway names itself at /healthz, so that a program that
// looks for one can tell it from others.
const Service = "ninelives"

// simulator is the provider name of the built-in simulator's candidates.
const simulator = "simulator"

// healthz answers that the process is alive, whatever its candidates do and
// whether it stops or not.
func healthz(version string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"service": Service, "status": "alive", "version": version})
	}
}

// readyz answers whether new calls are welcome: 503 while it stops, or while
// why (nil: nothing) says what is missing.
func readyz(d *drain, why func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if d.draining() {
			w.Header().Set("Retry-After", drainRetry)
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"service": Service, "status": "stopping"})
			return
		}
		if why != nil {
			if text := why(); text != "" {
				writeJSON(w, http.StatusServiceUnavailable, map[string]string{"service": Service, "status": "not_ready", "why": label(text)})
				return
			}
		}
		writeJSON(w, http.StatusOK, map[string]string{"service": Service, "status": "ready"})
	}
}

// healthReport is the answer to GET /ninelives/v1/health.
type healthReport struct {
	Status     string            `json:"status"` // serving or stopping
	InFlight   int               `json:"in_flight"`
	Candidates []candidateReport `json:"candidates"`
}

// candidateReport is how a candidate stands, and why.
type candidateReport struct {
	Route     string     `json:"route"`
	Candidate string     `json:"candidate"`
	Key       string     `json:"key,omitempty"` // a short hash of the credential
	Host      string     `json:"host,omitempty"`
	Simulated bool       `json:"simulated,omitempty"`
	State     heal.State `json:"state"`
	// Class and Scope say why it rests, and what of it.
	Class ninelives.Class `json:"class,omitempty"`
	Scope ninelives.Scope `json:"scope,omitempty"`
	Since *time.Time      `json:"since,omitempty"`
	Until *time.Time      `json:"until,omitempty"`
	// ProbeAt is from when on a call may try it before that.
	ProbeAt  *time.Time `json:"probe_at,omitempty"`
	InFlight int        `json:"in_flight"`
	Queued   int        `json:"queued"`
	Full     bool       `json:"full,omitempty"`
	// Share is the share of calls that it gets: less than 1 just after its return.
	Share float64 `json:"share"`
	// Calls and Failures are those of the breaker's window.
	Calls    int `json:"calls"`
	Failures int `json:"failures"`
}

// standing lists how the candidates of the routes stand, in their order, then
// all others that were ever asked. The record alone knows nothing of those that
// nobody has asked yet.
func standing(routes []Route, health *heal.Health, now time.Time) []heal.CandidateHealth {
	type id struct{ route, provider, model, key, account, host string }
	of := func(route string, c ninelives.Candidate) id {
		return id{route, c.Provider, c.Model, c.Key, c.Account, c.Host}
	}
	snapshot := health.Snapshot(now)
	known := make(map[id]int, len(snapshot))
	for i, row := range snapshot {
		known[of(row.Route, row.Candidate)] = i
	}
	listed := map[id]bool{}
	var rows []heal.CandidateHealth
	for i := range routes {
		r := &routes[i]
		for _, t := range r.Targets {
			c, ok := ninelives.CandidateOf(t.Model)
			k := of(r.Name, c)
			if !ok || listed[k] {
				continue
			}
			listed[k] = true
			if i, ok := known[k]; ok {
				rows = append(rows, snapshot[i])
				continue
			}
			rows = append(rows, heal.CandidateHealth{Route: r.Name, Candidate: c, Standing: health.Route(r.Name).Standing(c, now)})
		}
	}
	for _, row := range snapshot {
		if !listed[of(row.Route, row.Candidate)] {
			rows = append(rows, row)
		}
	}
	return rows
}

// report makes the answer of GET /ninelives/v1/health.
func report(rows []heal.CandidateHealth, d *drain) healthReport {
	r := healthReport{Status: "serving", InFlight: d.inFlight(), Candidates: make([]candidateReport, len(rows))}
	if d.draining() {
		r.Status = "stopping"
	}
	for i, row := range rows {
		s := row.Standing
		r.Candidates[i] = candidateReport{
			Route: label(row.Route), Candidate: label(row.Candidate.Name()), Key: row.Candidate.Key, Host: label(row.Candidate.Host),
			Simulated: row.Candidate.Provider == simulator,
			State:     cmp.Or(s.State, heal.StateHealthy), Class: s.Class, Scope: s.Scope, Since: moment(s.Since), Until: moment(s.Until), ProbeAt: moment(s.ProbeAt),
			InFlight: row.InFlight, Queued: row.Queued, Full: s.Full, Share: s.Share, Calls: row.Calls, Failures: row.Failures,
		}
	}
	return r
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // values of our own types only
		http.Error(w, "this cannot be written", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
