package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// strangers is how many names that were not expected become labels of their
// own, and combinations how many series one metric has at most. What comes
// later is counted under "other": nothing that a client sends can fill the
// memory of the gateway or of who scrapes it.
const (
	strangers    = 64
	combinations = 2000
	otherName    = "other"
)

// The buckets that OpenTelemetry's GenAI conventions advise.
var (
	durationBuckets   = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	firstTokenBuckets = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	perTokenBuckets   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}
	tokenBuckets      = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	overheadBuckets   = []float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1}
)

// metrics are the counts of one gateway, in a registry of its own. docs/metrics.md
// lists them.
type metrics struct {
	registry *prometheus.Registry
	names    names

	duration, firstToken, perToken *family[genai, prometheus.Observer]
	tokens                         *family[tokenKind, prometheus.Observer]
	calls, attempts, faults        *family[pair, prometheus.Counter]
	healed                         *family[pair, prometheus.Counter]
	cost                           *family[costKind, prometheus.Counter]
	overhead                       prometheus.Observer
	gone, journalErrors            prometheus.Counter
	reloads                        *family[string, prometheus.Counter]
}

// genai are the labels of the conventions.
type genai struct{ operation, route, candidate, class string }

func (g genai) values() []string { return []string{g.operation, g.route, g.candidate, g.class} }

type tokenKind struct{ operation, route, candidate, kind string }

func (t tokenKind) values() []string { return []string{t.operation, t.route, t.candidate, t.kind} }

type costKind struct {
	key, route, candidate string
	estimated             bool
}

func (c costKind) values() []string {
	return []string{c.key, c.route, c.candidate, strconv.FormatBool(c.estimated)}
}

type pair struct{ a, b string }

func (p pair) values() []string { return []string{p.a, p.b} }

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), names: names{known: map[string]string{}}}
	m.expect(string(ninelives.ClassRateLimit), string(ninelives.ClassBilling), string(ninelives.ClassAuth),
		string(ninelives.ClassOverloaded), string(ninelives.ClassTimeout), string(ninelives.ClassNetwork),
		string(ninelives.ClassModelNotFound), string(ninelives.ClassContextLength), string(ninelives.ClassContentFilter),
		string(ninelives.ClassRefusal), string(ninelives.ClassFormat), string(ninelives.ClassStreamBroken),
		string(ninelives.ClassEmpty), string(ninelives.ClassTruncated), string(ninelives.ClassInvalidOutput),
		string(ninelives.ClassUnknown), string(ninelives.ClassCanceled), string(ninelives.ClassGuard),
		operationChat, operationEmbeddings)
	convention := []string{"gen_ai_operation_name", "gen_ai_request_model", "gen_ai_response_model", "error_type"}
	seconds := func(name, help string, buckets []float64) *family[genai, prometheus.Observer] {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, convention)
		m.registry.MustRegister(v)
		return newFamily(func(k genai) prometheus.Observer { return v.WithLabelValues(k.values()...) },
			genai{otherName, otherName, otherName, otherName})
	}
	counter := func(name, help, a, b string) *family[pair, prometheus.Counter] {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{a, b})
		m.registry.MustRegister(v)
		return newFamily(func(k pair) prometheus.Counter { return v.WithLabelValues(k.values()...) }, pair{otherName, otherName})
	}
	single := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}

	m.duration = seconds("gen_ai_server_request_duration_seconds", "Time of a call, from its request to the end of its answer.", durationBuckets)
	m.firstToken = seconds("gen_ai_server_time_to_first_token_seconds", "Time until the first token of a streamed answer went to the client.", firstTokenBuckets)
	m.perToken = seconds("gen_ai_server_time_per_output_token_seconds", "Time per token after the first one.", perTokenBuckets)
	tokens := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gen_ai_client_token_usage", Help: "Tokens of a call's accepted answer.", Buckets: tokenBuckets},
		[]string{"gen_ai_operation_name", "gen_ai_request_model", "gen_ai_response_model", "gen_ai_token_type"})
	m.tokens = newFamily(func(k tokenKind) prometheus.Observer { return tokens.WithLabelValues(k.values()...) },
		tokenKind{otherName, otherName, otherName, otherName})
	m.calls = counter("ninelives_calls_total", "Calls by how they ended.", "route", "outcome")
	m.attempts = counter("ninelives_attempts_total", "Requests to candidates by how they ended.", "candidate", "outcome")
	m.faults = counter("ninelives_faults_total", "Failures of candidates by class.", "candidate", "class")
	m.healed = counter("ninelives_healed_total", "Calls that needed this healing step.", "route", "action")
	cost := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ninelives_cost_dollars_total", Help: "What attempts cost, in US dollars."},
		[]string{"key", "route", "candidate", "estimated"})
	m.cost = newFamily(func(k costKind) prometheus.Counter { return cost.WithLabelValues(k.values()...) },
		costKind{otherName, otherName, otherName, true})
	overhead := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ninelives_overhead_seconds", Help: "What the gateway itself takes before the first attempt.", Buckets: overheadBuckets})
	m.overhead = overhead
	m.gone = single("ninelives_client_gone_total", "Calls whose client left before the end.")
	m.journalErrors = single("ninelives_journal_errors_total", "Writes to the journal that failed.")
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ninelives_config_reloads_total", Help: "Configurations read anew, ok or kept the last good one."}, []string{"result"})
	m.reloads = newFamily(func(k string) prometheus.Counter { return reloads.WithLabelValues(k) }, otherName)
	m.registry.MustRegister(tokens, cost, overhead, reloads,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// expect reserves labels for names of the configuration, so that unexpected
// ones never crowd them out.
func (m *metrics) expect(known ...string) { m.names.expect(known...) }

// watch adds what is read when somebody scrapes: how candidates stand, and how
// many calls are under way. It is called once.
func (m *metrics) watch(candidates func(now time.Time) []heal.CandidateHealth, inFlight func() int) {
	m.registry.MustRegister(&standings{names: &m.names, candidates: candidates},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ninelives_in_flight", Help: "Calls that are under way."},
			func() float64 { return float64(inFlight()) }))
}

// handler answers GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// notice counts the failure of an attempt.
func (m *metrics) notice(n ninelives.Notice) {
	if n.Kind == ninelives.NoticeFault && n.Fault != nil {
		m.faults.of(pair{m.names.of(n.Candidate), m.names.of(string(n.Fault.Class))}).Inc()
	}
}

// journalFailed counts a write that failed.
func (m *metrics) journalFailed() { m.journalErrors.Inc() }

// reloaded counts a configuration that was read anew.
func (m *metrics) reloaded(err error) {
	result := "ok"
	if err != nil {
		result = "kept_last_good"
	}
	m.reloads.of(result).Inc()
}

// call counts a call that has ended.
func (m *metrics) call(c *callStats) {
	g := genai{m.names.of(c.Operation), m.names.of(c.Route), m.names.of(c.Served), m.names.of(string(c.Class))}
	if c.Outcome == outcomeRejected && g.class == "" {
		g.class = outcomeRejected
	}
	m.calls.of(pair{g.route, c.Outcome}).Inc()
	m.duration.of(g).Observe(c.Took.Seconds())
	m.overhead.Observe(c.Overhead.Seconds())
	if c.FirstToken > 0 {
		m.firstToken.of(g).Observe(c.FirstToken.Seconds())
		if n := c.Usage.TotalOutput(); n > 1 && c.Outcome == outcomeOK {
			m.perToken.of(g).Observe((c.Took - c.FirstToken).Seconds() / float64(n-1))
		}
	}
	if c.Usage.Has(ninelives.UsageInput) || c.Usage.Estimated {
		m.tokens.of(tokenKind{g.operation, g.route, g.candidate, "input"}).Observe(float64(c.Usage.TotalInput()))
	}
	if c.Usage.Has(ninelives.UsageOutput) || c.Usage.Estimated {
		m.tokens.of(tokenKind{g.operation, g.route, g.candidate, "output"}).Observe(float64(c.Usage.TotalOutput()))
	}
	for _, step := range c.Healed {
		m.healed.of(pair{g.route, step}).Inc()
	}
	for i := range c.Trail {
		a := &c.Trail[i]
		candidate, outcome := m.names.of(a.Candidate), "answered"
		switch {
		case a.Lost:
			outcome = "left"
		case a.Class != "":
			outcome = "failed"
		}
		m.attempts.of(pair{candidate, outcome}).Inc()
		if a.Cost > 0 {
			m.cost.of(costKind{m.names.of(c.Key), g.route, candidate, a.Estimated}).Add(a.Cost)
		}
	}
	if c.ClientGone {
		m.gone.Inc()
	}
}

// family are the series of one metric, found again without the work of their
// labels. It never has more than combinations of them.
type family[K comparable, S any] struct {
	mu   sync.RWMutex
	open func(K) S
	seen map[K]S
	rest K
}

func newFamily[K comparable, S any](open func(K) S, rest K) *family[K, S] {
	return &family[K, S]{open: open, seen: map[K]S{}, rest: rest}
}

func (f *family[K, S]) of(k K) S {
	f.mu.RLock()
	s, ok := f.seen[k]
	f.mu.RUnlock()
	if ok {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.seen[k]; ok {
		return s
	}
	if len(f.seen) >= combinations-1 {
		if s, ok = f.seen[f.rest]; ok {
			return s
		}
		k = f.rest
	}
	s = f.open(k)
	f.seen[k] = s
	return s
}

// names bounds the values of labels: those that are expected, our own words,
// and a few more.
type names struct {
	mu     sync.RWMutex
	known  map[string]string
	others int
}

func (n *names) expect(known ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range known {
		n.known[name] = label(name)
	}
}

func (n *names) of(name string) string {
	if name == "" {
		return ""
	}
	n.mu.RLock()
	as, ok := n.known[name]
	full := n.others >= strangers
	n.mu.RUnlock()
	switch {
	case ok:
		return as
	case full:
		return otherName
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if as, ok := n.known[name]; ok {
		return as
	}
	if n.others >= strangers {
		return otherName
	}
	n.others++
	as = label(name)
	n.known[name] = as
	return as
}

// standings reads how candidates stand at the moment of a scrape. Candidates of
// one name, with several credentials, are added up.
type standings struct {
	names      *names
	candidates func(now time.Time) []heal.CandidateHealth
}

var (
	stateDesc  = prometheus.NewDesc("ninelives_candidate_state", "How many credentials of the candidate are in this state.", []string{"route", "candidate", "state"}, nil)
	queueDesc  = prometheus.NewDesc("ninelives_queue", "Calls that wait for a place at the candidate.", []string{"route", "candidate"}, nil)
	placesDesc = prometheus.NewDesc("ninelives_candidate_in_flight", "Attempts that are under way at the candidate.", []string{"route", "candidate"}, nil)
)

func (s *standings) Describe(to chan<- *prometheus.Desc) {
	to <- stateDesc
	to <- queueDesc
	to <- placesDesc
}

func (s *standings) Collect(to chan<- prometheus.Metric) {
	type sum struct {
		states           map[heal.State]int
		queued, inFlight int
	}
	sums := map[pair]*sum{}
	for _, row := range s.candidates(time.Now()) {
		k := pair{s.names.of(row.Route), s.names.of(row.Candidate.Name())}
		if sums[k] == nil {
			sums[k] = &sum{states: map[heal.State]int{heal.StateHealthy: 0, heal.StateCooling: 0, heal.StateOpen: 0, heal.StateProbing: 0}}
		}
		sums[k].states[row.Standing.State]++
		sums[k].queued += row.Queued
		sums[k].inFlight += row.InFlight
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for k, v := range sums {
		for state, n := range v.states {
			gauge(stateDesc, n, k.a, k.b, string(state))
		}
		gauge(queueDesc, v.queued, k.a, k.b)
		gauge(placesDesc, v.inFlight, k.a, k.b)
	}
}
