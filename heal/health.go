package heal

import (
	"context"
	"errors"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// State is how a candidate stands.
type State string

// The states of a candidate; see Health for how they follow each other.
const (
	StateHealthy State = "healthy"
	StateCooling State = "cooling" // resting after a fault, until a known time
	StateOpen    State = "open"    // the breaker tripped
	StateProbing State = "probing" // cooling or open, and one call is trying it
)

// Standing is how a candidate stands at one moment: a value, the input of a
// decision.
type Standing struct {
	State State
	// Class and Reason say why it rests; both are empty while it is healthy.
	Class  ninelives.Class
	Reason string
	// Scope is what rests: the model, the key, the account or the host.
	Scope ninelives.Scope
	// Since is when it went out of service, Until when it is back by itself.
	// Both are zero while it is healthy.
	Since time.Time
	Until time.Time
	// ProbeAt is from when on it may be probed; zero if it is healthy or is
	// never probed.
	ProbeAt time.Time
	// Probe is how it is probed; empty while it is healthy.
	Probe ProbeKind
	// Full says that no place is free and that the queue is full as well.
	Full bool
	// Share is the share of the calls that it should get, in 0…1: less than 1
	// for a while after its return, under load.
	Share float64
}

// Available says that a call may simply go there.
func (s Standing) Available() bool { return s.Healthy() && !s.Full }

// Healthy says that nothing is known against it.
func (s Standing) Healthy() bool { return s.State == StateHealthy }

// Takes says that a call should go there, given the call's draw from [0, 1):
// a candidate that has just come back takes only its Share. One draw holds for
// the whole call.
func (s Standing) Takes(draw float64) bool { return s.Available() && draw < s.Share }

// CanProbe says that one call of the traffic may try it now although it rests.
func (s Standing) CanProbe(now time.Time) bool {
	return s.Probe == ProbeTraffic && s.probeDue(now)
}

func (s Standing) probeDue(now time.Time) bool {
	return (s.State == StateCooling || s.State == StateOpen) && !s.Full && !now.Before(s.ProbeAt)
}

// Back is the first time at which a call may go there: now for a healthy one,
// the time of the next probe, or the end of its rest.
func (s Standing) Back(now time.Time) time.Time {
	switch {
	case s.Healthy():
		return now
	case s.Probe == ProbeTraffic && s.State != StateProbing && s.ProbeAt.Before(s.Until):
		if s.ProbeAt.Before(now) {
			return now
		}
		return s.ProbeAt
	}
	return s.Until
}

// VerdictKind is what an attempt says about its candidate.
type VerdictKind string

// The verdicts.
const (
	// VerdictOK: the candidate did what it should.
	VerdictOK VerdictKind = "ok"
	// VerdictFailed: Fault says how; what it means follows from the policy.
	VerdictFailed VerdictKind = "failed"
	// VerdictCanceled: the caller went away; that says nothing about the candidate.
	VerdictCanceled VerdictKind = "canceled"
)

// Verdict ends an attempt at a candidate.
type Verdict struct {
	Kind VerdictKind
	// Fault is the failure of VerdictFailed.
	Fault *ninelives.Fault
	// GaveUp says that the call gives the candidate up: that starts its cooldown.
	GaveUp bool
	// Now is when the attempt ended.
	Now time.Time
}

// The reasons why there is no place at a candidate. The caller decides again
// with the new standing.
var (
	// ErrFull: all places are taken, and the queue is full or did not move in time.
	ErrFull = errors.New("too many calls are under way at this candidate")
	// ErrProbed: the one probe place is taken, or a probe is not due.
	ErrProbed = errors.New("this candidate rests and may not be probed now")
	// ErrResting: it was healthy when the call began to queue and rests now.
	ErrResting = errors.New("this candidate went out of service while the call was waiting for a place")
	// ErrRetryBudget: too many calls at this candidate are retries already.
	ErrRetryBudget = errors.New("the retry budget of this candidate is spent")
)

// CandidateHealth is a row of a Snapshot.
type CandidateHealth struct {
	Route     string
	Candidate ninelives.Candidate
	Standing  Standing
	InFlight  int
	Queued    int
	// Calls and Failures are what the breaker sees in its window.
	Calls    int
	Failures int
}

// Change is a step of the state machine, for logs and metrics. The end of a
// cooldown by time is no step: nothing runs then.
type Change struct {
	Now       time.Time
	Candidate ninelives.Candidate
	Scope     ninelives.Scope
	From, To  State
	Class     ninelives.Class
	Reason    string
	Until     time.Time
}

// Health is the record of how candidates stand. It is safe for concurrent use
// and may be shared by any number of healed models.
type Health struct{ policy *Policy }

// NewHealth makes an empty record that goes by the policy, which must not be
// changed afterwards; nil means DefaultPolicy.
func NewHealth(p *Policy) *Health {
	if p == nil {
		d := DefaultPolicy()
		p = &d
	}
	return &Health{policy: p}
}

// Route gives a view of the same record in which models stand apart from those
// of other routes, while keys, accounts and hosts are shared. The record made
// by NewHealth is the route "".
func (h *Health) Route(name string) *Health { return h }

// OnChange sets the function that is told of every change, after the fact and
// without a lock held. Set it before the first call.
func (h *Health) OnChange(f func(Change)) {}

// Standing tells how the candidate stands; it changes nothing.
func (h *Health) Standing(c ninelives.Candidate, now time.Time) Standing {
	return Standing{State: StateHealthy, Share: 1}
}

// Enter takes a place at the candidate for the first attempt of a call there.
// It waits at most Limit.Wait, or until ctx ends, in a short queue. A probe
// also takes the one probe place (of a traffic or a synthetic probe alike); if
// the candidate has become healthy meanwhile it is an ordinary attempt.
//
// The caller must call leave exactly once; more calls do nothing. The error is
// ErrFull, ErrProbed, ErrResting, or the context's.
func (h *Health) Enter(ctx context.Context, c ninelives.Candidate, now time.Time, probe bool) (leave func(Verdict), err error) {
	return func(Verdict) {}, nil
}

// Retry is Enter for the second and later attempts of a call at a candidate:
// they count against its retry budget, and ErrRetryBudget says that it is spent.
func (h *Health) Retry(ctx context.Context, c ninelives.Candidate, now time.Time, probe bool) (leave func(Verdict), err error) {
	return func(Verdict) {}, nil
}

// MayRetry says whether the candidate's retry budget has room; it changes
// nothing. Retry takes from it.
func (h *Health) MayRetry(c ninelives.Candidate, now time.Time) bool { return true }

// NeedsSyntheticProbe says that a one-token call beside the traffic should
// find out now whether the candidate is back. Ask at every call of the route;
// make the probe with Enter and probe true.
func (h *Health) NeedsSyntheticProbe(c ninelives.Candidate, now time.Time) bool { return false }

// Snapshot lists all candidates that were ever entered, by route and name.
func (h *Health) Snapshot(now time.Time) []CandidateHealth { return nil }

// Clear forgets what is held against the candidate, its key, its account and
// its host: after a changed key or configuration.
func (h *Health) Clear(c ninelives.Candidate) {}
