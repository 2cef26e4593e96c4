package heal

import (
	"context"
	"iter"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// instant answers at once with events that were made before, numbered as a
// provider numbers them.
type instant struct {
	candidate ninelives.Candidate
	events    []ninelives.Event
}

func newInstant(deltas int) *instant {
	m := &instant{candidate: ninelives.Candidate{Provider: "a", Model: "m", Key: "k", Host: "a.test"}}
	for range deltas {
		m.events = append(m.events, ninelives.TextDelta{Attempt: 1, Text: "hello "})
	}
	m.events = append(m.events, ninelives.Done{Attempt: 1, Response: answer("hello")})
	return m
}

func (m *instant) Name() string                   { return "a/m" }
func (m *instant) Candidate() ninelives.Candidate { return m.candidate }
func (m *instant) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		for _, ev := range m.events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func consume(b testing.TB, ctx context.Context, m ninelives.Model, req *ninelives.Request) {
	for _, err := range m.Stream(ctx, req) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// limited bounds each call by a deadline and does nothing else: what any layer
// costs that keeps one.
type limited struct{ *instant }

func (m limited) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Minute))
		defer cancel()
		for ev, err := range m.instant.Stream(ctx, req) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// BenchmarkHealthyCall is what healing costs where nothing is wrong: compare
// "healed" with "bare", and with the deadline alone.
func BenchmarkHealthyCall(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := ninelives.Prompt("hi")
	bare := newInstant(1)
	for _, bc := range []struct {
		name string
		m    ninelives.Model
	}{
		{"bare", bare},
		{"bare, with a deadline", limited{bare}},
		{"healed", New(bare)},
		{"healed, with a fallback", New(bare, Fallback(newInstant(1)))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				consume(b, ctx, bc.m, req)
			}
		})
	}
}

// BenchmarkEvent is what healing costs for each event of a stream.
func BenchmarkEvent(b *testing.B) {
	const deltas = 10_000
	req := ninelives.Prompt("hi")
	bare := newInstant(deltas)
	for _, bc := range []struct {
		name string
		m    ninelives.Model
	}{
		{"bare", bare},
		{"healed", New(bare)},
		{"raced", New(bare, Fallback(newInstant(1)), With(Interactive()))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				consume(b, context.Background(), bc.m, req)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/event")
		})
	}
}

func TestHealthyCallAddsAtMostTwentyAllocations(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := ninelives.Prompt("hi")
	bare := newInstant(1)
	floor := testing.AllocsPerRun(100, func() { consume(t, ctx, bare, req) })
	for name, h := range map[string]ninelives.Model{"alone": New(bare), "with a fallback": New(bare, Fallback(newInstant(1)))} {
		got := testing.AllocsPerRun(100, func() { consume(t, ctx, h, req) }) - floor
		if got > 20 {
			t.Errorf("%s: %v allocations", name, got)
		}
		t.Logf("%s: %v allocations", name, got)
	}
}

func TestEventAddsAtMostOneAllocation(t *testing.T) {
	req := ninelives.Prompt("hi")
	per := func(m func(deltas int) *instant) float64 {
		few, many := New(m(100)), New(m(1100))
		a := testing.AllocsPerRun(10, func() { consume(t, context.Background(), few, req) })
		b := testing.AllocsPerRun(10, func() { consume(t, context.Background(), many, req) })
		return (b - a) / 1000
	}
	if got := per(newInstant); got != 0 {
		t.Errorf("numbered events: %v allocations each", got)
	}
	unnumbered := func(deltas int) *instant {
		m := newInstant(deltas)
		for i := range deltas {
			m.events[i] = ninelives.TextDelta{Text: "hello "}
		}
		return m
	}
	if got := per(unnumbered); got > 1 {
		t.Errorf("events without a number: %v allocations each", got)
	}
}
