package heal

import (
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
	// Since is when it went out of service, Until when it is back by itself, or
	// half open (Breaker.HalfOpen). Both are zero while it is healthy.
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

// forGood says that it rests for what time does not heal.
func (s Standing) forGood() bool { return !s.Healthy() && s.Probe == ProbeNone }

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
	if s.Until.Before(now) {
		return now // half open, and being probed
	}
	return s.Until
}

// and is how a candidate stands that needs both places: out of service for the
// longer of the two rests, and probed as the more careful of them wants it.
func (s Standing) and(o Standing) Standing {
	share := min(s.Share, o.Share)
	switch {
	case o.Healthy():
	case s.Healthy():
		s = o
	default:
		longer, other := s, o
		if o.Until.After(s.Until) {
			longer, other = o, s
		}
		for _, state := range [...]State{StateProbing, StateOpen} {
			if s.State == state || o.State == state {
				longer.State = state
				break
			}
		}
		switch {
		case longer.Probe == ProbeNone || other.Probe == ProbeNone:
			longer.Probe, longer.ProbeAt = ProbeNone, time.Time{}
		case other.Probe == ProbeSynthetic:
			longer.Probe = ProbeSynthetic
			fallthrough
		default:
			if other.ProbeAt.After(longer.ProbeAt) {
				longer.ProbeAt = other.ProbeAt
			}
		}
		s = longer
	}
	s.Share = share
	return s
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

// HealthChange is a step of the state machine, for logs and metrics. The end of a
// cooldown by time is no step: nothing runs then.
type HealthChange struct {
	Now       time.Time
	Candidate ninelives.Candidate
	Scope     ninelives.Scope
	From, To  State
	Class     ninelives.Class
	Reason    string
	Until     time.Time
}
