package gateway

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAnOrderIsAPermutationWithTheNamedOneInFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "targets")
		r := &Route{Order: rapid.SampledFrom([]Order{"", OrderListed, OrderWeighted, OrderLatency, OrderCost}).Draw(t, "order"), Sticky: rapid.Bool().Draw(t, "sticky")}
		stats := make([]targetStats, n)
		for i := range n {
			r.Targets = append(r.Targets, priced("p", string(rune('a'+i)), float64(i)))
			r.Targets[i].Weight = rapid.Float64Range(0, 5).Draw(t, "weight")
			stats[i] = targetStats{resting: rapid.Bool().Draw(t, "resting"), first: time.Duration(rapid.IntRange(0, 3).Draw(t, "first")), tried: true}
		}
		a := asking{named: rapid.IntRange(-1, n-1).Draw(t, "named"), last: rapid.IntRange(-1, n-1).Draw(t, "last"),
			session: rapid.SampledFrom([]string{"", "s"}).Draw(t, "session"), lot: rapid.Float64Range(0, 0.999).Draw(t, "lot")}
		seq := order(r, stats, a)
		if sorted := slices.Sorted(slices.Values(seq)); len(sorted) != n || sorted[0] != 0 || sorted[n-1] != n-1 || len(slices.Compact(sorted)) != n {
			t.Fatalf("%v is no order of %d", seq, n)
		}
		if a.named >= 0 && seq[0] != a.named {
			t.Fatalf("the client named %d, and %v is asked", a.named, seq)
		}
	})
}

// Over all lots, each target is first exactly as often as its weight says.
func TestWeightsAreShares(t *testing.T) {
	r := &Route{Order: OrderWeighted, Targets: []Target{priced("p", "a", 0), priced("p", "b", 0), priced("p", "c", 0)}}
	r.Targets[0].Weight, r.Targets[1].Weight, r.Targets[2].Weight = 1, 2, 7
	first := [3]int{}
	for i := range 1000 {
		first[order(r, make([]targetStats, 3), asking{named: -1, last: -1, lot: (float64(i) + 0.5) / 1000})[0]]++
	}
	if first != [3]int{100, 200, 700} {
		t.Errorf("%v of 1000", first)
	}
}

func TestOrdersByTimeAndPrice(t *testing.T) {
	targets := []Target{priced("p", "dear", 9), priced("p", "cheap", 1), priced("p", "unknown", 0)}
	stats := []targetStats{{first: 30, tried: true}, {first: 20, tried: true}, {first: 10, tried: true}}
	a := asking{named: -1, last: -1, lot: 0.5, size: estimate{input: 10, output: 10}}
	if seq := order(&Route{Order: OrderLatency, Targets: targets}, stats, a); !slices.Equal(seq, []int{2, 1, 0}) {
		t.Errorf("by time: %v", seq)
	}
	if seq := order(&Route{Order: OrderCost, Targets: targets}, stats, a); !slices.Equal(seq, []int{1, 0, 2}) {
		t.Errorf("by price: %v", seq)
	}
	stats[1].resting = true
	if seq := order(&Route{Order: OrderCost, Targets: targets}, stats, a); !slices.Equal(seq, []int{0, 2, 1}) {
		t.Errorf("by price, the cheapest rests: %v", seq)
	}
}

func TestASessionStaysWhereItWas(t *testing.T) {
	s := newSticky()
	targets := []Target{priced("p", "a", 0), priced("p", "b", 0)}
	key := stickyKey{client: "c", route: "r", session: "s"}
	s.served(key, "p/b", quotaTime)
	if last := s.last(key, targets, quotaTime); last != 1 {
		t.Errorf("it was at %d", last)
	}
	r := &Route{Sticky: true, Targets: targets}
	if seq := order(r, make([]targetStats, 2), asking{named: -1, last: 1}); !slices.Equal(seq, []int{1, 0}) {
		t.Errorf("the order is %v", seq)
	}
	if seq := order(r, []targetStats{{}, {resting: true}}, asking{named: -1, last: 1}); !slices.Equal(seq, []int{0, 1}) {
		t.Errorf("where its candidate rests, the order is %v", seq)
	}
	other := key
	other.client = "d"
	if s.last(other, targets, quotaTime) >= 0 || s.last(key, targets, quotaTime.Add(stickyFor+time.Second)) >= 0 {
		t.Error("it is somebody else's session, or too long ago")
	}
}
