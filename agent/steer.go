package agent

import (
	"context"
	"crypto/rand"
	"errors"

	ninelives "github.com/ninelives-ai/ninelives"
)

// What can be said to a session while a turn runs. Inputs are numbered in the
// order in which they were accepted, and durable before they are answered; a
// stop covers what was accepted before it, and nothing after it.

// Steer adds a message to the running turn: the model reads it with its next
// request. It is durable when Steer returns; number is its place in the order
// of acceptance. One that misses the end of the turn waits for the next.
func (s *Session) Steer(ctx context.Context, msg ninelives.Message) (number int, err error) {
	return s.accept(ctx, Input{Via: ViaSteer, Message: msg})
}

// Queue adds a message that begins a turn of its own when the running one has
// ended (see Next). It is durable when Queue returns.
func (s *Session) Queue(ctx context.Context, msg ninelives.Message) (number int, err error) {
	return s.accept(ctx, Input{Via: ViaQueue, Message: msg})
}

// Accept records a message that is to begin a turn, before anything that the
// turn needs is there. Continue begins it, or the next Turn takes it up. It is
// durable when Accept returns.
func (s *Session) Accept(ctx context.Context, msg ninelives.Message) (number int, err error) {
	return s.accept(ctx, Input{Via: ViaTurn, Message: msg})
}

// Queued lists what the user has said and no turn has taken up, in the order of
// acceptance.
func (s *Session) Queued() (list []Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.st.waiting {
		if !in.Note {
			list = append(list, in)
		}
	}
	return list
}

// Stop ends the running turn: the stream of the model, the tools and what they
// started. What was done stays done, and the history is valid. It covers what
// was steered and queued before it: that begins no turn any more, but stands in
// the history. What comes after it is not covered. Without a turn it does nothing.
func (s *Session) Stop() {
	s.mu.Lock()
	t := s.turn
	if t != nil && t.stopAt < 0 {
		t.stopAt = s.st.accepted
	}
	s.mu.Unlock()
	if t != nil {
		t.cancel(errStopped)
	}
}

// Why a turn's context ends.
var (
	errStopped = errors.New("the user stopped the turn")
	errLeft    = errors.New("nobody listens to the turn any more")
)

// accept makes an input durable and gives its number.
func (s *Session) accept(ctx context.Context, in Input) (number int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if in.Message.Role == "" {
		in.Message.Role = ninelives.RoleUser
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	in.Number = s.st.accepted + 1
	s.stageLocked(in)
	return in.Number, s.commitLocked(ctx)
}

// missed are the numbers of the waiting inputs that a turn takes up which
// begins with one that was said for it: all but what was queued.
func (s *Session) missed() (numbers []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.st.waiting {
		if in.Note || in.Via != ViaQueue {
			numbers = append(numbers, in.Number)
		}
	}
	return numbers
}

// next are the numbers of the waiting inputs that the next turn takes up by
// itself; none if the user has said nothing.
func (s *Session) next() (numbers []int) {
	s.mu.Lock()
	waiting := s.st.waiting
	s.mu.Unlock()
	queued, said := 0, false
	for _, in := range waiting {
		switch {
		case in.Note || in.Via != ViaQueue:
			numbers = append(numbers, in.Number)
			said = said || !in.Note
		case queued == 0:
			queued = in.Number
		}
	}
	if said {
		return numbers
	}
	if queued == 0 {
		return nil
	}
	return append(numbers, queued)
}

// newID makes the id of a session that is not recorded.
func newID() string { return rand.Text() }
