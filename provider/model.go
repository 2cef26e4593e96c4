package provider

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// Model is one candidate, opened. It is safe for concurrent use.
type Model struct {
	candidate ninelives.Candidate
	endpoint  endpoint
	dialect   wire.Dialect
	auth      auth
	key       Secret
	headers   map[string]string
	transport http.RoundTripper
	// also is the same model in the other protocols that its server speaks.
	also []*Model
	// told is the window that the server itself has told; 0 if none.
	told atomic.Int64
}

var _ ninelives.Model = (*Model)(nil)

// Name is "provider/model".
func (m *Model) Name() string { return m.candidate.Name() }

// Speaking gives the same candidate in another protocol of its server; itself
// where it speaks that already, nil where the server does not.
func (m *Model) Speaking(p ninelives.Protocol) ninelives.Model {
	if m.candidate.Protocol == p {
		return m
	}
	for _, other := range m.also {
		if other.candidate.Protocol == p {
			return other
		}
	}
	return nil
}

// String is the name; nothing else of a model is for printing.
func (m *Model) String() string { return m.Name() }

// GoString is the name.
func (m *Model) GoString() string { return "provider.Model(" + m.Name() + ")" }

// Candidate describes the model as far as is known by now: a window that the
// server tells in an error is learnt.
func (m *Model) Candidate() ninelives.Candidate {
	c := m.candidate
	told := int(m.told.Load())
	switch {
	case told == 0 || c.WindowSource == windowSetting:
	case c.WindowSource == windowDefault, told < c.Window:
		c.Window, c.WindowSource = told, windowLearnt
		if c.MaxOutput > c.Window {
			c.MaxOutput = c.Window
		}
	}
	return c
}

// learn takes in a window that the server has told. It fills in for one that
// is not known, and narrows one that is: a server may be set up with less than
// its model can do. It never widens one, nor touches a setting.
func (m *Model) learn(window int) {
	if window > 0 {
		m.told.Store(int64(window))
	}
}

// Stream makes one attempt at one request. The sequence yields the deltas, and
// a Notice for each thing that could not be sent as it was, and ends with Done
// or a *Fault. It never retries.
func (m *Model) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		a := attempt{model: m, req: req, yield: yield}
		if req.Attempt != nil {
			a.number = req.Attempt.Number
		}
		a.run(ctx)
	}
}

// CloseIdleConnections closes the connections that no request uses. Models
// that share a transport share them.
func (m *Model) CloseIdleConnections() {
	if t, ok := m.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Warnings tells, a line each, what a user should know before the first call.
func (m *Model) Warnings() []string {
	var lines []string
	if m.Candidate().WindowSource == windowDefault {
		lines = append(lines, "nothing is known about this model: a context window of 16k tokens is assumed; set its window to change that")
	}
	if m.endpoint.base.Scheme == "http" && !m.candidate.Local && !m.key.Empty() {
		lines = append(lines, "the key is sent unencrypted to "+m.endpoint.base.Hostname()+": use https")
	}
	return lines
}
