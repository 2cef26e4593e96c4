package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
)

// The endpoints beside the calls themselves.

// protocolOf is the protocol that errors of a request are told in.
func protocolOf(r *http.Request) *codec {
	switch path := r.URL.Path; {
	case strings.Contains(path, "/messages"), r.Header.Get("Anthropic-Version") != "":
		return messages
	case strings.HasPrefix(path, "/v1beta"), strings.Contains(path, ":"):
		return generate
	case strings.Contains(path, "/responses"):
		return responses
	}
	return chat
}

// refuse answers a request with an error, outside of any call.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	k := &call{s: s, plan: s.plan.Load(), codec: protocolOf(r), w: w, r: r, began: time.Now(), id: "req_" + random(12)}
	k.truth = newTruth(k.began)
	k.asks.Client = clientOf(r.Header)
	k.send(newConnection(w, r, k.plan.Limits.Write), k.answer(err))
}

// known finds the client of a request, or refuses it.
func (s *Server) known(w http.ResponseWriter, r *http.Request) (*client, bool) {
	c, err := s.plan.Load().clients.who(r.Header, r.URL.Query())
	if err != nil {
		s.refuse(w, r, err)
		return nil, false
	}
	return c, true
}

// nothing answers what is at no path of ours.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "/" && method != r.Method {
			s.refuse(w, r, &refused{Trouble: troubleMethod, Text: "This path is asked with " + method + "."})
			return
		}
	}
	s.refuse(w, r, &refused{Trouble: troubleNotFound, Text: "There is nothing at this path. The base URL for OpenAI's protocols ends in /v1; for Anthropic's and Gemini's it has no path."})
}

// sendJSON sends bytes that are JSON already.
func sendJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has gone needs nothing
}

// showHealth is GET /ninelives/v1/health.
func (s *Server) showHealth(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.known(w, r); ok {
		writeJSON(w, http.StatusOK, report(s.standing(time.Now()), s.drain))
	}
}

// showMetrics is GET /metrics.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) {
	s.metrics.handler().ServeHTTP(w, r)
}

// showPage is GET /.
func (s *Server) showPage(w http.ResponseWriter, r *http.Request) {
	p := s.plan.Load()
	now := time.Now()
	data := pageData{Base: baseURL(r, s.options.Listen), Stopping: s.drain.draining(), Keys: len(p.Keys) > 0, InFlight: s.drain.inFlight()}
	if _, err := p.clients.who(r.Header, r.URL.Query()); err != nil {
		data.Closed = true
	} else {
		data.Candidates, data.Simulated = showCandidates(s.standing(now), now)
		data.Calls = showCalls(s.recent.list())
	}
	s.page.write(w, r, data)
}

// The stored responses of the Responses protocol.

func (s *Server) stored(do func(client, id string, r *http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.known(w, r)
		if !ok {
			return
		}
		body, err := do(c.Name, r.PathValue("id"), r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		sendJSON(w, body)
	}
}

// resumeCall is GET /ninelives/v1/calls/{id}/stream.
func (s *Server) resumeCall(w http.ResponseWriter, r *http.Request) {
	c, ok := s.known(w, r)
	if !ok {
		return
	}
	s.follow(w, r, func(out sink) error {
		return s.live.resume(r.Context(), out, r.Header, c.Name, r.PathValue("id"))
	})
}

// follow hands an answer that outlives its connection to a client.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, do func(sink) error) {
	out := &watched{sink: newConnection(w, r, s.plan.Load().Limits.Write)}
	err := do(out)
	switch {
	case err == nil || r.Context().Err() != nil:
	case out.begun:
		panic(http.ErrAbortHandler) // a clean end would look like a whole answer
	default:
		s.refuse(w, r, err)
	}
}

// watched is a sink of which is known whether anything went out.
type watched struct {
	sink
	begun bool
}

func (w *watched) Start(status int, h http.Header) {
	w.begun = true
	w.sink.Start(status, h)
}

// callReport is a call as GET /ninelives/v1/calls shows it.
type callReport struct {
	ID        string            `json:"id"`
	State     journal.State     `json:"state"`
	Reason    ninelives.Class   `json:"reason,omitempty"`
	Started   time.Time         `json:"started"`
	Ended     *time.Time        `json:"ended,omitempty"`
	Title     string            `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Resumable bool              `json:"resumable,omitempty"`
	ResumedBy string            `json:"resumed_by,omitempty"`
	Status    int               `json:"status,omitempty"`
	Error     string            `json:"error,omitempty"`
	Attempts  []attemptReport   `json:"attempts,omitempty"`
	Input     int               `json:"input_tokens,omitempty"`
	Output    int               `json:"output_tokens,omitempty"`
	Cost      float64           `json:"cost_usd,omitempty"`
	Estimated bool              `json:"estimated,omitempty"`
}

type attemptReport struct {
	Number    int             `json:"number"`
	Candidate string          `json:"candidate"`
	Class     ninelives.Class `json:"class,omitempty"`
	Status    int             `json:"status,omitempty"`
	Took      float64         `json:"took_ms"`
	Cost      float64         `json:"cost_usd,omitempty"`
	Estimated bool            `json:"estimated,omitempty"`
}

func reportOf(c journal.Summary) callReport {
	return callReport{ID: c.ID, State: c.State, Reason: c.Reason, Started: c.Started, Ended: moment(c.Ended), Title: c.Title,
		Labels: c.Labels, Resumable: c.Resumable(), ResumedBy: c.ResumedBy}
}

// listCalls is GET /ninelives/v1/calls: the last calls of the client, the
// newest first; ?unfinished=true those alone that can be taken up.
func (s *Server) listCalls(w http.ResponseWriter, r *http.Request) {
	c, ok := s.known(w, r)
	if !ok {
		return
	}
	list := []callReport{}
	if s.options.Journal != nil {
		calls, _, err := s.options.Journal.Calls(r.Context(), journal.Filter{Resumable: r.URL.Query().Get("unfinished") == "true", Limit: -1})
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		for _, call := range calls {
			if call.Source == journalSource && call.Labels[labelKey] == c.Name && len(list) < 100 {
				list = append(list, reportOf(call))
			}
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"calls": list})
}

// showCall is GET /ninelives/v1/calls/{id}: what became of a call. Who did not
// make it is told nothing of it.
func (s *Server) showCall(w http.ResponseWriter, r *http.Request) {
	c, ok := s.known(w, r)
	if !ok {
		return
	}
	none := &refused{Trouble: troubleNotFound, Text: "There is no such call."}
	if s.options.Journal == nil {
		s.refuse(w, r, none)
		return
	}
	rec, err := s.options.Journal.Call(r.Context(), r.PathValue("id"))
	switch {
	case errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrAmbiguous), err == nil && rec.Labels[labelKey] != c.Name:
		s.refuse(w, r, none)
		return
	case err != nil:
		s.refuse(w, r, err)
		return
	}
	out := reportOf(rec.Summary)
	if o := rec.Outcome; o != nil {
		out.Status, out.Cost, out.Estimated = o.Status, o.Cost, o.Estimated
		out.Input, out.Output = o.Usage.TotalInput(), o.Usage.TotalOutput()
		if o.Fault != nil {
			out.Error = string(o.Fault.Class)
		}
		for _, a := range o.Attempts {
			out.Attempts = append(out.Attempts, attemptReport{Number: a.Number, Candidate: a.Candidate, Class: a.Class, Status: a.Status,
				Took: milliseconds(a.Took), Cost: a.Cost, Estimated: a.Estimated})
		}
	}
	writeJSON(w, http.StatusOK, out)
}
