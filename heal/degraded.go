package heal

import (
	"container/list"
	"slices"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Substitute is what is served when no candidate can answer, chosen before the
// incident: Stale, Canned or Unavailable.
type Substitute interface {
	// serve gives the substitute for a request; false if it has none. An error
	// is served as well as an answer: it ends the call at once.
	serve(req *ninelives.Request, why *Exhausted) (*ninelives.Response, error, bool)
	// keep sees every good answer.
	keep(req *ninelives.Request, resp *ninelives.Response)
}

// Stale serves the last good answer to the same request, labelled as stale. It
// keeps the answers to the last n requests, none older than maxAge (zero: of
// any age). An answer that calls a tool is never served again: the call
// would be. One Stale may be shared by several chains.
func Stale(n int, maxAge time.Duration) Substitute {
	return &stale{n: n, maxAge: maxAge, byKey: map[[32]byte]*list.Element{}}
}

type stale struct {
	n      int
	maxAge time.Duration

	mu    sync.Mutex
	order list.List // of staleAnswer, the latest first
	byKey map[[32]byte]*list.Element
}

type staleAnswer struct {
	key  [32]byte
	at   time.Time
	resp *ninelives.Response
}

func (s *stale) serve(req *ninelives.Request, _ *Exhausted) (*ninelives.Response, error, bool) {
	key := requestKey(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[key]
	if !ok {
		return nil, nil, false
	}
	a := e.Value.(staleAnswer)
	if s.maxAge > 0 && time.Since(a.at) > s.maxAge {
		return nil, nil, false
	}
	resp := copied(a.resp)
	resp.Degraded = ninelives.DegradedStale
	resp.Usage = ninelives.Usage{}
	resp.Warnings = append(slices.Clone(resp.Warnings),
		"this is an earlier answer to the same request, "+short(time.Since(a.at))+" old: no candidate can answer now")
	return resp, nil, true
}

// copied is a response whose message its holder may change.
func copied(resp *ninelives.Response) *ninelives.Response {
	c := *resp
	c.Message.Parts = slices.Clone(resp.Message.Parts)
	return &c
}

func (s *stale) keep(req *ninelives.Request, resp *ninelives.Response) {
	if callsTools(resp.Message.Parts) {
		return
	}
	key := requestKey(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byKey[key]; ok {
		s.order.Remove(e)
	}
	s.byKey[key] = s.order.PushFront(staleAnswer{key, time.Now(), copied(resp)})
	for s.order.Len() > s.n {
		last := s.order.Back()
		s.order.Remove(last)
		delete(s.byKey, last.Value.(staleAnswer).key)
	}
}

// Canned serves a fixed text, labelled as canned.
func Canned(text string) Substitute { return canned(text) }

type canned string

func (t canned) serve(req *ninelives.Request, _ *Exhausted) (*ninelives.Response, error, bool) {
	if req.Output != nil {
		return nil, nil, false // a fixed text has no form; Output.Default has
	}
	return &ninelives.Response{
		Message:  ninelives.AssistantText(string(t)),
		Finish:   ninelives.FinishStop,
		Degraded: ninelives.DegradedCanned,
	}, nil, true
}

func (canned) keep(*ninelives.Request, *ninelives.Response) {}

// Unavailable serves the error at once, with the time to come back, in place
// of waiting for a candidate.
func Unavailable() Substitute { return unavailable{} }

type unavailable struct{}

func (unavailable) serve(_ *ninelives.Request, why *Exhausted) (*ninelives.Response, error, bool) {
	return nil, why, true
}

func (unavailable) keep(*ninelives.Request, *ninelives.Response) {}

// substitute finds what can be served for a request.
func (h *Healed) substitute(req *ninelives.Request, why *Exhausted) (*ninelives.Response, error, bool) {
	for _, s := range h.substitutes {
		if resp, err, ok := s.serve(req, why); ok {
			return resp, err, true
		}
	}
	return nil, nil, false
}
