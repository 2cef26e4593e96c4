package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// setting is what is measured, and how long.
type setting struct {
	ninelives, nginx, peer string
	self                   string
	slice                  time.Duration
	rounds, singles        int
	streams                int
}

// cost is what a target was found to cost with one kind of request.
type cost struct {
	added, first time.Duration // medians beyond direct
	cpu          []float64     // per round: µs per request, or per chunk
	rate         []float64     // per round: answers a second
	failed       int
	err          error
	peak         int
}

// row is a target, or one way of using it.
type row struct {
	name  string
	t     *target
	kind  func(kind string) string
	asks  map[string]ask
	costs map[string]*cost
}

// The kinds of requests.
const (
	small  = "1 KB"
	large  = "64 KB"
	stream = "stream"
	burst  = "burst"
	many   = "many"
)

func (r *row) prepare() {
	r.asks = map[string]ask{
		small:  newAsk(small, r.kind(modelShort), 1<<10, false, r.t.header),
		large:  newAsk(large, r.kind(modelShort), 64<<10, false, r.t.header),
		stream: newAsk(stream, r.kind(modelEach), 1<<10, true, r.t.header),
		burst:  newAsk(burst, r.kind(modelBurst), 1<<10, true, r.t.header),
		many:   newAsk(many, r.kind(modelPaced), 1<<10, true, r.t.header),
	}
	r.costs = map[string]*cost{}
	for kind := range r.asks {
		r.costs[kind] = &cost{}
	}
}

// measure runs everything and writes the tables.
func (s *setting) measure(ctx context.Context, out io.Writer) (err error) {
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-gateway-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	up, err := freeAddress()
	if err != nil {
		return err
	}
	mock, err := start(ctx, dir, "upstream", up, nil, s.self, "mock", up)
	if err != nil {
		return err
	}
	defer mock.stop()
	rows, startup, stop, err := s.begin(ctx, dir, up)
	defer stop()
	if err != nil {
		return err
	}
	direct := &row{name: "direct", t: &target{process: mock, models: same}, kind: same}
	direct.prepare()
	for _, r := range rows {
		r.prepare()
		press(r.t.addr, r.asks[small], 8, s.slice/2)
		if l := press(r.t.addr, r.asks[stream], 8, s.slice/2); l.done == 0 {
			return fmt.Errorf("%s does not answer: %w", r.name, l.err)
		}
	}
	before := loadAverage()
	for _, kind := range []string{small, large, stream} {
		if err := s.oneByOne(ctx, direct, rows, kind); err != nil {
			return err
		}
	}
	for _, kind := range []string{small, large, stream, burst} {
		if err := s.loaded(ctx, rows, kind); err != nil {
			return err
		}
	}
	s.atOnce(rows)
	s.print(out, rows, startup, before+" to "+loadAverage())
	return ctx.Err()
}

// startup are the times from a start to taking a connection.
type startup map[string][]time.Duration

// begin starts everything that is measured.
func (s *setting) begin(ctx context.Context, dir, up string) (rows []*row, ready startup, stop func(), err error) {
	var running []*process
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	ready = startup{}
	add := func(t *target, err error) error {
		if err == nil {
			running = append(running, t.process)
			rows = append(rows, &row{name: t.name, t: t, kind: t.models})
		}
		return err
	}
	if err := add(s.floor(ctx, dir, up)); err != nil {
		return nil, nil, stop, err
	}
	if s.nginx != "" {
		if err := add(s.proxy(ctx, dir, up)); err != nil {
			return nil, nil, stop, err
		}
	}
	for _, journal := range []bool{false, true} {
		name := "Nine Lives"
		if journal {
			name += ", journal"
		}
		for range 5 {
			t, err := s.gateway(ctx, dir, up, name+" started", journal)
			if err != nil {
				return nil, nil, stop, err
			}
			ready[name] = append(ready[name], t.ready)
			t.stop()
		}
		if err := add(s.gateway(ctx, dir, up, name, journal)); err != nil {
			return nil, nil, stop, err
		}
		t := rows[len(rows)-1].t
		rows = append(rows, &row{name: name + ", translated", t: t, kind: func(kind string) string { return "translate-" + kind }})
	}
	if s.peer != "" {
		if err := add(s.other(ctx, dir, up)); err != nil {
			return nil, nil, stop, err
		}
	}
	return rows, ready, stop, nil
}

// oneByOne asks one request at a time, of each target in turn, and finds out
// how much longer it takes through it than without it.
func (s *setting) oneByOne(ctx context.Context, direct *row, rows []*row, kind string) error {
	all := append([]*row{direct}, rows...)
	conns := make([]*conn, len(all))
	for i, r := range all {
		conns[i] = &conn{addr: r.t.addr}
		defer conns[i].close()
	}
	first, whole := make([][]time.Duration, len(all)), make([][]time.Duration, len(all))
	for n := range s.singles {
		for j := range all {
			i := (j + n) % len(all)
			if all[i].t.slow && n%4 != 0 {
				continue
			}
			t, err := conns[i].do(all[i].asks[kind])
			if err != nil {
				all[i].costs[kind].failed++
				all[i].costs[kind].err = err
				continue
			}
			first[i], whole[i] = append(first[i], t.first), append(whole[i], t.whole)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i, r := range all[1:] {
		r.costs[kind].added = median(whole[i+1]) - median(whole[0])
		r.costs[kind].first = median(first[i+1]) - median(first[0])
	}
	return nil
}

// busy is how many connections keep a target busy. A journal collects what
// comes at once: it takes more of them.
const busy = 32

// loaded keeps each target busy for a while, by turns, and reads what that cost
// it.
func (s *setting) loaded(ctx context.Context, rows []*row, kind string) error {
	for range s.rounds {
		for _, r := range rows {
			c := r.costs[kind]
			r.t.forgetPeak()
			before := r.t.cpu()
			l := press(r.t.addr, r.asks[kind], busy, s.slice)
			used := r.t.cpu() - before
			c.failed += l.failed
			if l.err != nil {
				c.err = l.err
			}
			c.peak = max(c.peak, r.t.peak())
			units := l.done
			if r.asks[kind].stream {
				units *= chunks
			}
			if units > 0 {
				c.cpu = append(c.cpu, float64(used.Microseconds())/float64(units))
				c.rate = append(c.rate, float64(l.done)/l.wall.Seconds())
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// atOnce opens many streams at once that take their time.
func (s *setting) atOnce(rows []*row) {
	for _, r := range rows {
		c := r.costs[many]
		r.t.forgetPeak()
		before := r.t.cpu()
		l := press(r.t.addr, r.asks[many], s.streams, 0)
		used := r.t.cpu() - before
		c.failed, c.err, c.peak = l.failed, l.err, r.t.peak()
		if l.done > 0 {
			c.cpu = []float64{float64(used.Microseconds()) / float64(l.done*chunks)}
		}
	}
}

func median[T cmp.Ordered](list []T) T {
	if len(list) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// loadAverage is how many processes have wanted to run in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
