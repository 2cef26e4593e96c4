package heal

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// scripted is a model that does what its script says, one step per request,
// the last one again and again. It obeys its context as a provider does, and
// keeps when it was asked for what.
type scripted struct {
	candidate ninelives.Candidate
	steps     []step

	mu       sync.Mutex
	asked    []time.Time
	requests []*ninelives.Request
	running  int
}

// step is what happens to one request.
type step []act

// act is one thing that happens: a pause, an event, or an end.
type act struct {
	wait time.Duration // negative: until the caller gives up
	ev   ninelives.Event
	err  error
}

func model(name string, steps ...step) *scripted {
	return &scripted{candidate: ninelives.Candidate{Provider: name, Model: "m", Key: name + "-key", Host: name + ".test",
		Capabilities: ninelives.Capabilities{Tools: true, Images: true}}, steps: steps}
}

func (m *scripted) Name() string                   { return m.candidate.Name() }
func (m *scripted) Candidate() ninelives.Candidate { return m.candidate }

func (m *scripted) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		m.mu.Lock()
		s := m.steps[min(len(m.asked), len(m.steps)-1)]
		m.asked = append(m.asked, time.Now())
		m.requests = append(m.requests, req)
		m.running++
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			m.running--
			m.mu.Unlock()
		}()
		for _, a := range s {
			if !pause(ctx, a.wait) {
				yield(nil, ctx.Err())
				return
			}
			switch {
			case a.err != nil:
				yield(nil, a.err)
				return
			case a.ev != nil:
				if !yield(a.ev, nil) {
					return
				}
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d == 0 {
		return true
	}
	var after <-chan time.Time
	if d > 0 {
		after = time.After(d)
	}
	select {
	case <-after:
		return true
	case <-ctx.Done():
		return false
	}
}

// The words of a script.

func wait(d time.Duration) act { return act{wait: d} }
func hang() act                { return act{wait: -1} }
func text(s string) act        { return act{ev: ninelives.TextDelta{Text: s}} }
func thought(s string) act     { return act{ev: ninelives.ReasoningDelta{Text: s}} }
func declines(s string) act    { return act{ev: ninelives.RefusalDelta{Text: s}} }
func end(r *ninelives.Response) act {
	return act{ev: ninelives.Done{Response: r}}
}

// says answers with the text, in one piece.
func says(s string) step { return step{text(s), end(answer(s))} }

// fails ends at once with a fault of the class.
func fails(c ninelives.Class) step { return step{{err: fault(c)}} }

// with ends at once with the fault.
func with(f *ninelives.Fault) step { return step{{err: f}} }

func fault(c ninelives.Class) *ninelives.Fault {
	f := &ninelives.Fault{Class: c, Phase: ninelives.PhaseHeaders, Message: "as the script says"}
	switch c {
	case ninelives.ClassRateLimit:
		f.Status = 429
	case ninelives.ClassOverloaded:
		f.Status = 503
	case ninelives.ClassUnknown:
		f.Status = 500
	case ninelives.ClassStreamBroken:
		f.Phase = ninelives.PhaseStream
	case ninelives.ClassNetwork:
		f.Phase = ninelives.PhaseDial
	}
	return f
}

func hinted(c ninelives.Class, d time.Duration) step {
	f := fault(c)
	f.RetryAfter = d
	return with(f)
}

func answer(s string) *ninelives.Response {
	return &ninelives.Response{Message: ninelives.AssistantText(s), Finish: ninelives.FinishStop}
}

func cut(s string) *ninelives.Response {
	return &ninelives.Response{Message: ninelives.AssistantText(s), Finish: ninelives.FinishLength}
}

func empty() *ninelives.Response {
	return &ninelives.Response{Message: ninelives.Message{Role: ninelives.RoleAssistant}, Finish: ninelives.FinishStop}
}

// healed makes a chain whose jitter is known: half of what it could be.
func healed(first ninelives.Model, opts ...Option) *Healed {
	h := New(first, opts...)
	h.random = func() float64 { return 0.5 }
	return h
}

// since gives the times of a model's requests, from the beginning of the test.
func (m *scripted) since(t0 time.Time) []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var at []time.Duration
	for _, t := range m.asked {
		at = append(at, t.Sub(t0))
	}
	return at
}

// seen is what a consumer of a stream was given.
type seen struct {
	events  []ninelives.Event
	notices []ninelives.Notice
	resp    *ninelives.Response
	err     error
	ends    int
	// text and calls are what a consumer shows that obeys Discard: the texts
	// and the arguments of calls.
	text  string
	calls string
}

// watch consumes a stream as a user interface does.
func watch(ctx context.Context, m ninelives.Model, req *ninelives.Request) seen {
	var s seen
	shown, calls := map[int]string{}, map[int]string{}
	var order []int
	begun := func(attempt int) {
		if !slices.Contains(order, attempt) {
			order = append(order, attempt)
		}
	}
	for ev, err := range m.Stream(ctx, req) {
		if err != nil {
			s.err = err
			s.ends++
			continue
		}
		s.events = append(s.events, ev)
		switch e := ev.(type) {
		case ninelives.TextDelta:
			begun(e.Attempt)
			shown[e.Attempt] += e.Text
		case ninelives.ToolCallDelta:
			begun(e.Attempt)
			calls[e.Attempt] += e.Arguments
		case ninelives.Discard:
			delete(shown, e.Attempt)
			delete(calls, e.Attempt)
		case ninelives.Notice:
			s.notices = append(s.notices, e)
		case ninelives.Done:
			s.resp = e.Response
			s.ends++
		}
	}
	for _, n := range order {
		s.text += shown[n]
		s.calls += calls[n]
	}
	return s
}

// kinds lists the kinds of the notices.
func (s seen) kinds() []ninelives.NoticeKind {
	var kinds []ninelives.NoticeKind
	for _, n := range s.notices {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// equal compares and reports.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !deepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func deepEqual(a, b any) bool { return reflect.DeepEqual(a, b) }

func (c clocked) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, req.Attempt.Clocks.FirstEvent)
		defer cancel()
		for ev, err := range c.scripted.Stream(ctx, req) {
			if err != nil && ctx.Err() != nil {
				c.aborted()
				err = &ninelives.Fault{Class: ninelives.ClassTimeout, Phase: ninelives.PhaseFirstToken, Message: "no token", Err: err}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (f flapping) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	s := says("primary")
	if time.Now().Before(f.until) {
		s = fails(ninelives.ClassOverloaded)
	}
	f.mu.Lock()
	f.steps = []step{s}
	f.mu.Unlock()
	return f.scripted.Stream(ctx, req)
}
