package agent

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fill begins n calls of a tool, one every step from noon on.
func fill(t *Tally, name string, n int, step time.Duration) {
	for i := range n {
		t.Begin(name, nil, noon.Add(time.Duration(i)*step))
	}
}

func TestToolRateLimiterWaitsWhereTheWaitIsShort(t *testing.T) {
	g, tally := guard(), &Tally{}
	g.Calls = 0
	fill(tally, "read_file", 200, 280*time.Millisecond) // the last at 55.72 s
	at := noon.Add(57 * time.Second)
	want := Ruling{Verdict: VerdictWait, Limit: "rate:read_file", Wait: 3 * time.Second,
		Message: "waiting 3 s: the rate limit of 200 read_file invocations per minute is reached"}
	if r := g.BeforeCall(tally, "read_file", nil, at); r != want {
		t.Fatalf("got  %+v\nwant %+v", r, want)
	}
	if r := g.BeforeCall(tally, "grep", nil, at); r != (Ruling{}) {
		t.Fatalf("another tool: %+v", r)
	}
	if r := g.BeforeCall(tally, "read_file", nil, at.Add(3*time.Second-1)); r.Verdict != VerdictWait || r.Wait != 1 {
		t.Fatalf("a nanosecond before there is room: %+v", r)
	}
	if r := g.BeforeCall(tally, "read_file", nil, at.Add(3*time.Second)); r != (Ruling{}) {
		t.Fatalf("when there is room: %+v", r)
	}
}

func TestToolRateLimiterRefusesWhereTheWaitIsLong(t *testing.T) {
	g, tally := guard(), &Tally{}
	fill(tally, "read_file", 200, time.Millisecond)
	want := Ruling{Verdict: VerdictRefuse, Limit: "rate:read_file",
		Message: "this call was not made: the rate limit of 200 read_file invocations per minute is reached, and there is room again in 50 s. Make fewer calls, or go on with something else."}
	if r := g.BeforeCall(tally, "read_file", nil, noon.Add(10*time.Second)); r != want {
		t.Fatalf("got  %+v\nwant %+v", r, want)
	}
	if r := g.BeforeCall(tally, "read_file", nil, noon.Add(55*time.Second-1)); r.Verdict != VerdictRefuse {
		t.Fatalf("a nanosecond more than is waited: %+v", r)
	}
	if r := g.BeforeCall(tally, "read_file", nil, noon.Add(55*time.Second)); r.Verdict != VerdictWait || r.Wait != g.RateWait {
		t.Fatalf("as long as is waited: %+v", r)
	}
}

func TestToolRateLimiterCountsAllToolsTogether(t *testing.T) {
	g, tally := guard(), &Tally{}
	g.Calls = 0
	for i, name := range []string{"a", "b", "c", "d"} {
		for j := range 150 {
			tally.Begin(name, nil, noon.Add(time.Duration(i*150+j)*time.Millisecond))
		}
	}
	r := g.BeforeCall(tally, "e", nil, noon.Add(59*time.Second))
	if r.Verdict != VerdictWait || r.Limit != LimitRate || r.Wait != time.Second ||
		r.Message != "waiting 1 s: the rate limit of 600 tool invocations per minute is reached" {
		t.Fatalf("%+v", r)
	}
}

// A clock that was set back must not lock a session out.
func TestCallsFromTheFutureAreNotCounted(t *testing.T) {
	g, tally := guard(), &Tally{}
	fill(tally, "read_file", 200, time.Millisecond)
	if r := g.BeforeCall(tally, "read_file", nil, noon.Add(-time.Hour)); r != (Ruling{}) {
		t.Errorf("%+v", r)
	}
}

// Whoever obeys the limiter never makes more calls in any minute than it
// allows, and never waits longer than it has to.
func TestNoMinuteHoldsMoreCallsThanItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &GuardSettings{
			Rate:        rapid.IntRange(1, 12).Draw(t, "rate"),
			RatePerTool: rapid.IntRange(1, 8).Draw(t, "rate per tool"),
			RateWait:    time.Duration(rapid.IntRange(0, 60).Draw(t, "longest wait")) * time.Second,
		}
		var tally Tally
		var made []CallStart
		at := noon
		room := func(name string, at time.Time) bool {
			all, own := 0, 0
			for _, c := range made {
				if c.At.After(at.Add(-time.Minute)) {
					all++
					if c.Name == name {
						own++
					}
				}
			}
			return all < g.Rate && own < g.RatePerTool
		}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tool")
			r := g.BeforeCall(&tally, name, nil, at)
			if (r.Verdict == VerdictAllow) != room(name, at) {
				t.Fatalf("%+v for %s at %v", r, name, at.Sub(noon))
			}
			switch r.Verdict {
			case VerdictRefuse:
				if room(name, at.Add(g.RateWait)) {
					t.Fatalf("refused, though there is room within %v", g.RateWait)
				}
				continue
			case VerdictWait:
				if room(name, at.Add(r.Wait-1)) || !room(name, at.Add(r.Wait)) || r.Wait > g.RateWait {
					t.Fatalf("waits %v", r.Wait)
				}
				at = at.Add(r.Wait)
			}
			tally.Begin(name, nil, at)
			made = append(made, CallStart{name, at})
		}
	})
}
