package gateway

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// explore is the share of calls under OrderLatency that go to another candidate
// than the fastest one: else one that was slow once would be slow for ever.
const explore = 0.05

// targetStats is what is known of a target at the moment of a call.
type targetStats struct {
	// resting says that it would not be asked now, not even as a probe.
	resting bool
	// first is how long its first token takes of late; 0 if that is not known.
	first time.Duration
	// tried says that it was asked, whether or not its time is known.
	tried bool
}

// asking is what of a call says in which order the targets are asked.
type asking struct {
	// named is the target that the client has named; -1 if it named none.
	named int
	// session is the client's; empty if it has none. last is the target that
	// served it last; -1 if none has, or that is forgotten.
	session string
	last    int
	// lot is drawn once for a call, from 0 up to but not including 1.
	lot  float64
	size estimate
}

// order gives the sequence in which the targets of a route are asked: all of
// them, each once. In front is the one that the client names; else the one that
// has served the session before, unless it rests; else what the route's order
// says. Health and failover are heal's, which skips who rests; but no order puts
// one in front whose rest is known.
func order(r *Route, stats []targetStats, a asking) []int {
	seq := make([]int, len(r.Targets))
	for i := range seq {
		seq[i] = i
	}
	if len(seq) < 2 {
		return seq
	}
	switch r.Order {
	case OrderWeighted:
		if r.Sticky && a.session != "" {
			rendezvous(seq, r.Targets, a.session)
		} else {
			draw(seq, r.Targets, a.lot)
		}
	case OrderLatency:
		fastest(seq, stats, a.lot)
	case OrderCost:
		cheapest(seq, r.Targets, a.size)
	}
	if r.Order != OrderListed && r.Order != "" {
		slices.SortStableFunc(seq, func(a, b int) int { return number(stats[a].resting) - number(stats[b].resting) })
	}
	if r.Sticky && a.last >= 0 && !stats[a.last].resting {
		front(seq, a.last)
	}
	if a.named >= 0 {
		front(seq, a.named)
	}
	return seq
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// front moves a target to the front.
func front(seq []int, target int) {
	i := slices.Index(seq, target)
	copy(seq[1:i+1], seq[:i])
	seq[0] = target
}

func weight(t *Target) float64 {
	if t.Weight > 0 && !math.IsInf(t.Weight, 1) {
		return t.Weight
	}
	return 1
}

// draw puts the targets in an order by chance: each place goes to one of those
// that are left, in proportion to their weights. One lot is enough: where it
// fell within the share of the first is the lot for the second.
func draw(seq []int, targets []Target, lot float64) {
	for len(seq) > 1 {
		sum := 0.0
		for _, t := range seq {
			sum += weight(&targets[t])
		}
		at := lot * sum
		i, below := 0, 0.0
		for i < len(seq)-1 && at >= below+weight(&targets[seq[i]]) {
			below += weight(&targets[seq[i]])
			i++
		}
		lot = min(max((at-below)/weight(&targets[seq[i]]), 0), math.Nextafter(1, 0))
		front(seq, seq[i])
		seq = seq[1:]
	}
}

// rendezvous puts the targets in an order by the session alone, again in
// proportion to their weights: whoever computes it comes to the same, before a
// restart and after it, and a target that comes or goes moves no session but
// those that are its own.
//
// Source: weighted rendezvous hashing, by the logarithm of the hash.
func rendezvous(seq []int, targets []Target, session string) {
	scores := make([]float64, len(targets))
	for i := range targets {
		scores[i] = -math.Log(fraction(session, nameOf(targets[i].Model))) / weight(&targets[i])
	}
	slices.SortStableFunc(seq, func(a, b int) int { return compare(scores[a], scores[b]) })
}

// fraction is a hash of two names, between 0 and 1 and neither of them.
func fraction(session, target string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(session))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(target))
	x := h.Sum64()
	x ^= x >> 33 // FNV alone mixes the last letters of a name too little
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// fastest puts the targets in the order of their times to the first token.
// Those that were never asked go first, for else they would never be known;
// those that were and gave none go last. A few calls go to another one than the
// first.
func fastest(seq []int, stats []targetStats, lot float64) {
	rank := func(i int) float64 {
		switch s := stats[i]; {
		case s.first > 0:
			return float64(s.first)
		case s.tried:
			return math.Inf(1)
		}
		return 0
	}
	slices.SortStableFunc(seq, func(a, b int) int { return compare(rank(a), rank(b)) })
	if lot < explore {
		others := 1 + int(lot/explore*float64(len(seq)-1))
		front(seq, seq[min(others, len(seq)-1)])
	}
}

// cheapest puts the targets in the order of what this call would cost. A model
// on this machine costs nothing; one whose price is not known goes last.
func cheapest(seq []int, targets []Target, size estimate) {
	costs := make([]float64, len(targets))
	for i := range targets {
		costs[i] = math.Inf(1)
		if c, ok := ninelives.CandidateOf(targets[i].Model); ok && (c.Price != ninelives.Price{} || c.LocalModel) {
			costs[i] = size.cost(c.Price)
		}
	}
	slices.SortStableFunc(seq, func(a, b int) int { return compare(costs[a], costs[b]) })
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// statsOf reads how the targets stand now.
func statsOf(targets []Target, health *heal.Health, times *latencies, now time.Time) []targetStats {
	stats := make([]targetStats, len(targets))
	for i := range targets {
		name := targets[i].Model.Name()
		if c, ok := ninelives.CandidateOf(targets[i].Model); ok {
			s := health.Standing(c, now)
			stats[i].resting = !s.Healthy() && !s.CanProbe(now)
			name = c.Name()
		}
		stats[i].first, stats[i].tried = times.of(name)
	}
	return stats
}
