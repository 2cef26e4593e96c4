package ninelives

import (
	"context"
	"errors"
	"iter"
)

// Model is the one interface. What heals, records, caches or routes wraps a
// Model and is a Model; it offers Unwrap() Model (or Unwrap() []Model) so that
// [CandidateOf] finds what is underneath.
type Model interface {
	// Name is "provider/model" of a single candidate, or a chain's own name.
	Name() string
	// Stream makes one call. The sequence yields events and ends either with a
	// Done event or with an error (a *Fault, found with errors.As), exactly
	// once. Stopping the iteration cancels the call and everything under it.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}

// CandidateOf finds the candidate that a Model speaks for, looking through
// wrappers; for a chain it is the first one. It reports false if there is none.
func CandidateOf(m Model) (Candidate, bool) {
	for m != nil {
		if c, ok := m.(interface{ Candidate() Candidate }); ok {
			return c.Candidate(), true
		}
		switch u := m.(type) {
		case interface{ Unwrap() Model }:
			m = u.Unwrap()
		case interface{ Unwrap() []Model }:
			models := u.Unwrap()
			if len(models) == 0 {
				return Candidate{}, false
			}
			m = models[0]
		default:
			return Candidate{}, false
		}
	}
	return Candidate{}, false
}

// ErrNoEnd is the cause of the fault when a Model's sequence ended without
// Done and without an error, which breaks its contract.
var ErrNoEnd = errors.New("the stream ended without a result")

// Generate makes one call and returns the whole answer. It is Collect over
// Model.Stream: there is only one loop. The request is marked as Buffered.
func Generate(ctx context.Context, m Model, req *Request) (*Response, error) {
	buffered := *req
	buffered.Buffered = true
	return Collect(m.Stream(ctx, &buffered))
}

// Collect reads a stream to its end.
func Collect(stream iter.Seq2[Event, error]) (*Response, error) {
	for ev, err := range stream {
		if err != nil {
			return nil, err
		}
		if done, ok := ev.(Done); ok {
			return done.Response, nil
		}
	}
	return nil, &Fault{Class: ClassStreamBroken, Phase: PhaseStream, Message: ErrNoEnd.Error(), Err: ErrNoEnd}
}
