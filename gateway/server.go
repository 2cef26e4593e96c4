package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
)

// Options are what a gateway is given once, when it is made.
type Options struct {
	// Journal keeps every call; nil keeps none. NoJournal is why there is none
	// where calls are to be kept: then it is as if every write failed.
	Journal   *journal.Journal
	NoJournal error
	// Log gets a line per call; nil means none.
	Log *slog.Logger
	// Tracer makes the spans; nil makes none.
	Tracer trace.TracerProvider
	// Listen is the address that the gateway is reached at, for the page and for
	// the rules of loopback. Names are further host names that lead there.
	Listen  string
	Names   []string
	Version string
}

// Server is a gateway. It is an http.Handler, safe for concurrent use.
type Server struct {
	options Options
	plan    atomic.Pointer[plan]
	mux     *http.ServeMux
	origin  *origin

	health    *heal.Health
	drain     *drain
	metrics   *metrics
	tracing   *tracing
	recent    recent
	page      *page
	live      *live
	quotas    *quotas
	repeats   repeats
	sticky    *sticky
	latency   *latencies
	responses *responseStore

	forgotten chan struct{} // content has been removed from the journal

	memory atomic.Int64 // bytes of the bodies that are held
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// plan is a set of settings made ready. A running call keeps the one that it
// began with.
type plan struct {
	Settings
	chains  []*chain
	clients *clients
}

// New makes a gateway. It listens nowhere: see Serve, or use it as a handler.
func New(settings Settings, options Options) *Server {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	policy := DefaultPolicy()
	if len(settings.Routes) > 0 && settings.Routes[0].Policy != nil {
		policy = *settings.Routes[0].Policy
	}
	s := &Server{
		options: options, health: heal.NewHealth(&policy), drain: newDrain(), metrics: newMetrics(),
		page: newPage(options.Version), origin: newOrigin(cmp.Or(options.Listen, "127.0.0.1:0"), options.Names),
		sticky: newSticky(), latency: &latencies{}, responses: newResponseStore(),
		forgotten: make(chan struct{}, 1),
	}
	s.tracing = newTracing(options.Tracer, s.host)
	s.live = newLive(func() time.Duration { return s.plan.Load().Grace })
	var ledger Ledger
	if j := options.Journal; j != nil {
		ledger, s.live.recall = j, s.recall
		s.responses.recall, s.responses.erase = s.recallResponse, s.eraseResponse
	}
	s.quotas = newQuotas(ledger)
	s.health.OnChange(func(c heal.HealthChange) {
		if c.To == heal.StateHealthy {
			for _, chain := range s.plan.Load().chains {
				s.repeats.exhausted.healthy(chain.Name)
			}
		}
	})
	s.Reload(settings)
	s.metrics.watch(s.standing, s.drain.inFlight)
	s.mux = s.routes()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if options.Journal != nil {
		s.work.Go(func() { s.prune(ctx) })
	}
	return s
}

// Close ends what the gateway does by itself, beside its calls.
func (s *Server) Close() {
	s.stop()
	s.work.Wait()
}

// Reload puts other settings in force, for calls that begin from now on. What
// is known of candidates, sessions and spending is kept.
func (s *Server) Reload(settings Settings) {
	settings = settings.complete()
	var before []*chain
	if p := s.plan.Load(); p != nil {
		before = p.chains
	}
	p := &plan{Settings: settings, chains: ready(settings.Routes, s.health, before), clients: newClients(settings.Keys)}
	var names []string
	for _, r := range settings.Routes {
		names = append(names, r.Name)
		for _, t := range r.Targets {
			names = append(names, t.Model.Name())
		}
	}
	for _, k := range settings.Keys {
		names = append(names, k.Name)
	}
	s.metrics.expect(names...)
	s.plan.Store(p)
}

// Reloaded counts a configuration that was read anew; err says that the last
// good one was kept.
func (s *Server) Reloaded(err error) { s.metrics.reloaded(err) }

// complete fills in the defaults.
func (s Settings) complete() Settings {
	s.Grace = cmp.Or(s.Grace, 30*time.Second)
	s.Limits.Body = cmp.Or(s.Limits.Body, 32<<20)
	s.Limits.InFlight = cmp.Or(s.Limits.InFlight, 1024)
	s.Limits.Memory = cmp.Or(s.Limits.Memory, 512<<20)
	s.Limits.Write = cmp.Or(s.Limits.Write, time.Minute)
	s.Journal.Retention = cmp.Or(s.Journal.Retention, RetainDays)
	s.Journal.Days = cmp.Or(s.Journal.Days, 30)
	return s
}

// routes are the paths that are served. Those of the APIs also without their
// version: a base URL may come with it or not.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	both := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /v1"+path, h)
		mux.HandleFunc(method+" "+path, h)
	}
	both("POST /chat/completions", s.call(chat))
	both("POST /responses", s.call(responses))
	both("POST /messages", s.call(messages))
	both("POST /messages/count_tokens", s.countTokens)
	both("POST /responses/input_tokens", s.countTokens)
	both("POST /embeddings", s.embeddings)
	both("GET /models", s.models)
	both("GET /models/{id...}", s.models)
	both("GET /responses/{id}", s.stored(func(client, id string, r *http.Request) ([]byte, error) {
		return s.responses.retrieve(r.Context(), client, id)
	}))
	both("GET /responses/{id}/input_items", s.stored(func(client, id string, r *http.Request) ([]byte, error) {
		return s.responses.inputItems(r.Context(), client, id, r.URL.Query())
	}))
	both("DELETE /responses/{id}", s.stored(func(client, id string, r *http.Request) ([]byte, error) {
		return s.responses.remove(r.Context(), client, id)
	}))
	both("POST /responses/{id}/cancel", s.stored(func(client, id string, r *http.Request) ([]byte, error) {
		return s.responses.cancel(r.Context(), s.live, client, id)
	}))
	for _, version := range []string{"/v1beta", "/v1"} {
		mux.HandleFunc("POST "+version+"/models/{rest...}", s.generate)
	}
	mux.HandleFunc("GET /v1beta/models", s.models)
	mux.HandleFunc("GET /v1beta/models/{id...}", s.models)

	mux.HandleFunc("GET /healthz", healthz(s.options.Version))
	mux.HandleFunc("GET /readyz", readyz(s.drain, nil))
	mux.HandleFunc("GET /ninelives/v1/health", s.showHealth)
	mux.HandleFunc("GET /ninelives/v1/calls", s.listCalls)
	mux.HandleFunc("GET /ninelives/v1/calls/{id}", s.showCall)
	mux.HandleFunc("GET /ninelives/v1/calls/{id}/stream", s.resumeCall)
	mux.HandleFunc("GET /metrics", s.showMetrics)
	mux.HandleFunc("GET /{$}", s.showPage)
	mux.HandleFunc("/", s.nothing)
	return mux
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && (len(r.TransferEncoding) > 0 || r.ProtoMinor == 0) {
		// net/http does not tell whether a length came with the chunks, nor whether
		// chunks came where HTTP/1.0 has none: then the connection has to end after
		// the answer (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	p := s.plan.Load()
	if r.ContentLength != 0 {
		bodyDeadline(w, headerTime, time.Now()) // until somebody wants it
	}
	if r.Method != http.MethodPost && !strings.HasSuffix(r.URL.Path, "/stream") {
		newConnection(w, r, p.Limits.Write).extend() // what is no stream is taken at once
	}
	if len(p.Keys) == 0 {
		if err := s.origin.check(r); err != nil {
			s.refuse(w, r, &refused{Trouble: troubleForbidden, Text: err.Error()})
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// inProcess serves a caller in the same process, whom no rule of origin concerns.
func (s *Server) inProcess(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// standing tells how all candidates stand.
func (s *Server) standing(now time.Time) []heal.CandidateHealth {
	return standing(s.plan.Load().Routes, s.health, now)
}

// host is the server of a candidate, by the candidate's name.
func (s *Server) host(name string) string {
	for _, c := range s.plan.Load().chains {
		for _, t := range c.Targets {
			if candidate, ok := ninelives.CandidateOf(t.Model); ok && t.Model.Name() == name {
				return candidate.Host
			}
		}
	}
	return ""
}
