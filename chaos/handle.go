package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// maxBody is the largest request that is read.
const maxBody = 64 << 20

// ServeHTTP answers the four protocols, the lists of models, and the control
// endpoints:
//
//	GET  /control/log        the request log; ?since=N leaves out the first N
//	POST /control/reset      forget the log, start all scenarios over
//	GET  /control/scenarios  what is known
//	POST /control/scenarios  add scenarios (the form of a script file)
//	GET  /control/health     alive
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Simulator", "ninelives-chaos")
	switch {
	case strings.HasPrefix(r.URL.Path, "/control/"):
		s.control(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		s.models(w, r)
	case r.URL.Path == "/" && r.Method != http.MethodPost:
		writeJSON(w, http.StatusOK, map[string]any{"simulator": true, "scenarios": "/control/scenarios", "log": "/control/log"})
	default:
		if _, _, _, ok := route(r.URL.Path); !ok || r.Method != http.MethodPost {
			writeJSON(w, http.StatusNotFound, map[string]any{"error": map[string]any{
				"message": fmt.Sprintf("the simulator has nothing at %s %s", r.Method, r.URL.Path), "type": "invalid_request_error", "param": nil, "code": nil}})
			return
		}
		s.answer(w, r)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client left, or sent more than any client should
	}
	e := s.begin(r, body)
	defer s.end(e)
	a, err := read(r, body)
	a.signer = s.signer
	name := r.Header.Get("X-Chaos")
	if name == "" {
		name = a.model
	}
	sc, step, number, attempt, known := s.meet(name, time.Now())
	s.note(e, func(e *Entry) {
		e.Protocol, e.Model, e.Stream, e.Tokens = string(a.protocol), a.model, a.stream, a.tokens
		e.Scenario, e.Step, e.Attempt = sc.Name, number, attempt
	})
	refused, yes := rejection(step.Reject, a, r.URL.Path, hasKey(r))
	switch {
	case err != nil:
		step = Step{Error: BadRequest, Message: "The request body is no JSON object: " + err.Error()}
	case !known:
		step = Step{Error: ModelNotFound, Message: fmt.Sprintf("The model `%s` does not exist: the simulator has no scenario of that name (GET /v1/models lists them)", name)}
	case yes:
		step = refused
	case step.Window > 0 && a.tokens > step.Window:
		step = Step{Error: ContextLength, Window: step.Window}
	}
	p := &play{server: s, w: w, ctrl: http.NewResponseController(w), ctx: r.Context(), ask: a, step: step, entry: e, id: fmt.Sprintf("req_sim%d", e.Seq)}
	p.run()
}

func (s *Server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.scenarios))
}

// models lists the scenarios as models, in the form of the caller's protocol.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	var data []any
	for _, n := range s.names() {
		switch {
		case n == "*":
		case strings.Contains(r.URL.Path, "/v1beta/"):
			data = append(data, map[string]any{"name": "models/" + n, "displayName": n, "supportedGenerationMethods": []string{"generateContent"}})
		case r.Header.Get("Anthropic-Version") != "":
			data = append(data, map[string]any{"type": "model", "id": n, "display_name": n, "created_at": "2026-01-01T00:00:00Z"})
		default:
			data = append(data, map[string]any{"id": n, "object": "model", "created": 1767225600, "owned_by": "simulator"})
		}
	}
	switch {
	case strings.Contains(r.URL.Path, "/v1beta/"):
		writeJSON(w, http.StatusOK, map[string]any{"models": data})
	case r.Header.Get("Anthropic-Version") != "":
		writeJSON(w, http.StatusOK, map[string]any{"data": data, "has_more": false})
	default:
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
	}
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/control/") {
	case "GET health":
		writeJSON(w, http.StatusOK, map[string]any{"ok": true})
	case "POST reset":
		s.Reset()
		writeJSON(w, http.StatusOK, map[string]any{"ok": true})
	case "GET log":
		entries := s.Log()
		var since int
		fmt.Sscan(r.URL.Query().Get("since"), &since)
		if since = max(0, since); since > len(entries) {
			since = len(entries)
		}
		s.mu.Lock()
		epoch := s.epoch
		s.mu.Unlock()
		writeJSON(w, http.StatusOK, map[string]any{"epoch": epoch, "log": entries[since:]})
	case "GET scenarios":
		s.mu.Lock()
		list := slices.SortedFunc(maps.Values(s.scenarios), func(a, b Scenario) int { return strings.Compare(a.Name, b.Name) })
		s.mu.Unlock()
		data, err := yaml.MarshalWithOptions(script{list}, yaml.JSON()) // durations as "2s": fit to be sent back
		if err != nil {
			writeJSON(w, http.StatusInternalServerError, map[string]any{"error": err.Error()})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(data)
	case "POST scenarios":
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var scenarios []Scenario
		if err == nil {
			scenarios, err = Parse(body)
		}
		if err == nil {
			err = s.Add(scenarios...)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"ok": true, "added": len(scenarios)})
	default:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": "there is /control/log, /control/reset, /control/scenarios and /control/health"})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
}
