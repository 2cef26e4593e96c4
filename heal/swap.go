package heal

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Swap is a Model that can be exchanged while it is in use: a call that is
// under way finishes on the old one, the next call goes to the new one. It is
// safe for concurrent use.
//
// Source: design 000 §2.3.
type Swap struct {
	mu      sync.Mutex // one exchange at a time
	current atomic.Pointer[swapped]
}

type swapped struct {
	signature string
	model     ninelives.Model
}

// NewSwap begins with a model; signature stands for the configuration that it
// was opened from.
func NewSwap(signature string, m ninelives.Model) *Swap {
	s := &Swap{}
	s.current.Store(&swapped{signature, m})
	return s
}

// To exchanges the model for the one that open gives and reports whether it
// did. With an unchanged signature nothing is opened. If open fails, the old
// model stays.
func (s *Swap) To(signature string, open func() (ninelives.Model, error)) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load().signature == signature {
		return false, nil
	}
	m, err := open()
	switch {
	case err != nil:
		return false, err
	case m == nil:
		return false, errors.New("no model was opened: the one in use stays")
	}
	s.current.Store(&swapped{signature, m})
	return true, nil
}

// Current is the model that the next call goes to.
func (s *Swap) Current() ninelives.Model { return s.current.Load().model }

// Signature is the signature of the current model.
func (s *Swap) Signature() string { return s.current.Load().signature }

// Name is the current model's.
func (s *Swap) Name() string { return s.Current().Name() }

// Unwrap gives the current model.
func (s *Swap) Unwrap() ninelives.Model { return s.Current() }

// Stream makes a call on the current model.
func (s *Swap) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return s.Current().Stream(ctx, req)
}
