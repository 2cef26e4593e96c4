package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is one request as the server saw it. Keys are not kept: where one
// stood there is a short hash, so that two of them can be told apart.
type Entry struct {
	Seq      int    `json:"seq"` // from 1
	Protocol string `json:"protocol"`
	Model    string `json:"model"`
	Scenario string `json:"scenario"`
	// Step is the number of the scenario's step, from 1; 0 where it has none.
	Step int `json:"step"`
	// Attempt counts the requests for this model name.
	Attempt int  `json:"attempt"`
	Stream  bool `json:"stream"`
	// Tokens is the estimated size of the prompt.
	Tokens int `json:"prompt_tokens"`

	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body,omitempty"`

	// At is when the request had arrived whole, Took how long it was answered
	// (zero while it still is).
	At   time.Time     `json:"at"`
	Took time.Duration `json:"took_ns"`

	// Did says what was done, Status what was answered; 0: nothing.
	Did    string `json:"did"`
	Status int    `json:"status"`
	// Sent counts the tokens of the answer that were sent.
	Sent int `json:"sent"`
	// Left says that the client hung up before the end, after LeftAfter.
	Left      bool          `json:"left"`
	LeftAfter time.Duration `json:"left_after_ns,omitempty"`
}

// Log lists the requests since the last Reset in the order in which they arrived.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, len(s.log))
	for i, e := range s.log {
		out[i] = *e
	}
	return out
}

func (s *Server) begin(r *http.Request, body []byte) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &Entry{Seq: len(s.log) + 1, Method: r.Method, Path: redactURL(r.URL), Header: redactHeader(r.Header), At: time.Now()}
	if json.Valid(body) && utf8.Valid(body) {
		e.Body = body
	} else if len(body) > 0 {
		e.Body, _ = json.Marshal(string(body))
	}
	s.log = append(s.log, e)
	s.inFlight++
	return e
}

func (s *Server) note(e *Entry, change func(*Entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(e)
}

func (s *Server) end(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Took = time.Since(e.At)
	if s.inFlight--; s.inFlight == 0 {
		s.idle.Broadcast()
	}
}

var secretHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"}

func redactHeader(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range secretHeaders {
		for i, v := range out[name] {
			scheme, key, found := strings.Cut(v, " ")
			if !found {
				scheme, key = "", v
			}
			out[name][i] = strings.TrimSpace(scheme + " " + hash(key))
		}
	}
	return out
}

func redactURL(u *url.URL) string {
	q := u.Query()
	if key := q.Get("key"); key != "" {
		q.Set("key", hash(key))
		return u.Path + "?" + q.Encode()
	}
	return u.RequestURI()
}

func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:4])
}

// hasKey reports whether the request carries a credential.
func hasKey(r *http.Request) bool {
	return slices.ContainsFunc(secretHeaders[:4], func(name string) bool { return r.Header.Get(name) != "" }) || r.URL.Query().Get("key") != ""
}
