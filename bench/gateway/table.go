package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"
)

// print writes the tables. A number in brackets is the ratio to the Go relay.
func (s *setting) print(w io.Writer, rows []*row, ready startup, loads string) {
	base := rows[0]
	fmt.Fprintf(w, "%s, %d cores. Load of the machine: %s. %d rounds of %s, %d single requests. In brackets: × the Go relay.\n\n", runtime.Version(), runtime.NumCPU(), loads, s.rounds, s.slice, s.singles)

	fmt.Fprintln(w, "Added to the latency, µs, median, one at a time (stream: to the first byte)")
	fmt.Fprintln(w, "\n| | 1 KB | 64 KB | stream |\n|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for _, kind := range []string{small, large, stream} {
			get := func(r *row) float64 {
				if kind == stream {
					return float64(r.costs[kind].first.Microseconds())
				}
				return float64(r.costs[kind].added.Microseconds())
			}
			fmt.Fprintf(w, " %.0f%s |", get(r), ratio(get(r), get(base)))
		}
		fmt.Fprintln(w)
	}

	fmt.Fprintf(w, "\nProcessor time of the process, median of the rounds, %d connections: seconds per 1,000 requests, and per million chunks\n", busy)
	fmt.Fprintf(w, "\n| | 1 KB | 64 KB | stream, chunk by chunk | stream, in one write | %d slow streams |\n|---|---|---|---|---|---|\n", s.streams)
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for _, kind := range []string{small, large, stream, burst, many} {
			get := func(r *row) float64 {
				if r.asks[kind].stream {
					return median(r.costs[kind].cpu) // µs a chunk: seconds a million
				}
				return median(r.costs[kind].cpu) / 1000
			}
			fmt.Fprintf(w, " %.3g%s |", get(r), ratio(get(r), get(base)))
		}
		fmt.Fprintln(w)
	}

	fmt.Fprintln(w, "\nAnswers a second at saturation, best round; peak of resident memory, MB; requests that failed")
	fmt.Fprintf(w, "\n| | 1 KB/s | 64 KB/s | streams/s | MB 1 KB | MB 64 KB | MB stream | MB %d streams | failed | of %d |\n|---|---|---|---|---|---|---|---|---|---|\n", s.streams, s.streams)
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for _, kind := range []string{small, large, stream} {
			best := 0.0
			if len(r.costs[kind].rate) > 0 {
				best = slices.Max(r.costs[kind].rate)
			}
			fmt.Fprintf(w, " %.0f |", best)
		}
		failed := 0
		for _, kind := range []string{small, large, stream, many} {
			fmt.Fprintf(w, " %d |", r.costs[kind].peak>>20)
		}
		for kind, c := range r.costs {
			if kind != many {
				failed += c.failed
			}
		}
		fmt.Fprintf(w, " %d | %d |\n", failed, r.costs[many].failed)
	}
	for _, r := range rows {
		for kind, c := range r.costs {
			if c.err != nil {
				fmt.Fprintf(w, "\n%s, %s: %v", r.name, kind, c.err)
			}
		}
	}
	fmt.Fprintln(w, "\nFrom the start to taking a connection, median of 5")
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		fmt.Fprintf(w, "- %s: %s\n", name, median(ready[name]).Round(time.Millisecond))
	}
}

func ratio(x, base float64) string {
	if base <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f)", x/base)
}
