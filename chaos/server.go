package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// MemoryURL is the base URL of a server that is reached through Dial or
// Client; any other host does as well.
const MemoryURL = "http://chaos.sim"

// Server is the simulated provider. It is an [http.Handler], so that it can
// also be mounted in a server of one's own. All methods may be called from
// several goroutines.
type Server struct {
	closing chan struct{}
	serving sync.WaitGroup // the accept loops
	signer  signer

	mu        sync.Mutex
	idle      *sync.Cond
	scenarios map[string]Scenario
	positions map[string]*position
	log       []*Entry
	epoch     time.Time // the time that the log counts from
	inFlight  int
	closed    bool
	tcp       net.Listener
	memory    *memory
	servers   []*http.Server
}

// New makes a server that knows the given scenarios beside those of
// [Catalogue]; one of the same name takes the other's place. It panics if a
// scenario does not validate, since it is meant for tests; [Parse] and
// [Scenario.Validate] report the same as an error. Nothing runs until URL,
// Dial or Client is called.
func New(scenarios ...Scenario) *Server {
	s := &Server{closing: make(chan struct{}), signer: newSigner(), scenarios: map[string]Scenario{}}
	s.idle = sync.NewCond(&s.mu)
	for _, sc := range catalogue {
		s.scenarios[sc.Name] = sc
	}
	if err := s.Add(scenarios...); err != nil {
		panic("chaos: " + err.Error())
	}
	s.Reset()
	return s
}

// Add makes further scenarios known, or replaces those of the same name and
// starts them over.
func (s *Server) Add(scenarios ...Scenario) error {
	for _, sc := range scenarios {
		if err := sc.Validate(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range scenarios {
		if sc.Name == "" {
			sc.Name = "*"
		}
		s.scenarios[sc.Name] = sc
		for key := range s.positions {
			if found, _ := s.find(key); found.Name == sc.Name {
				delete(s.positions, key)
			}
		}
	}
	return nil
}

// URL starts the server on a free port of the loopback interface, if it is not
// running yet, and gives its base URL without a path. It panics if no port can
// be had.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(fmt.Sprintf("chaos: no port on the loopback interface: %v", err))
		}
		s.tcp = l
		s.serve(l)
	}
	return "http://" + s.tcp.Addr().String()
}

// Dial connects to the server through memory, whatever the address. It fits
// http.Transport.DialContext, and works inside a testing/synctest bubble if
// the server was made in it.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	if s.memory == nil {
		s.memory = newMemory()
		s.serve(s.memory)
	}
	m := s.memory
	s.mu.Unlock()
	return m.dial(ctx)
}

// Client is an HTTP client whose connections all lead to the server, through
// memory. Its idle connections end with the server.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: s.Dial, DisableCompression: true}}
}

// serve runs an accept loop; s.mu is held.
func (s *Server) serve(l net.Listener) {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.servers = append(s.servers, srv)
	if s.closed {
		l.Close()
		return
	}
	s.serving.Go(func() { srv.Serve(l) })
}

// Close ends every request, stops the server and returns when nothing of it
// runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	servers := s.servers
	s.mu.Unlock()
	for _, srv := range servers {
		srv.Close()
	}
	s.serving.Wait()
	s.Wait()
}

// Reset forgets the log and starts all scenarios over.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions = map[string]*position{}
	s.log = nil
	s.epoch = time.Now()
}

// Wait returns when no request is being answered. A client often has what it
// wanted a moment before the server has noted it: after Wait the log is exact.
func (s *Server) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.inFlight > 0 {
		s.idle.Wait()
	}
}

// position is how far the requests of one name have come in their scenario.
type position struct {
	step     int
	used     int       // requests that met the step
	start    time.Time // of the step's window
	started  bool
	requests int
}

// next gives the index of the step that a request at time now meets.
func (p *position) next(sc Scenario, now time.Time) int {
	p.requests++
	if !p.started {
		p.started, p.start = true, now
	}
	for {
		step := sc.Steps[p.step]
		switch {
		case p.step == len(sc.Steps)-1 && !sc.Loop:
			return p.step
		case step.For > 0:
			if now.Before(p.start.Add(step.For)) {
				return p.step
			}
			p.start = p.start.Add(step.For)
		default:
			if p.used < max(1, step.Times) {
				p.used++
				return p.step
			}
			p.start = now
		}
		p.step, p.used = (p.step+1)%len(sc.Steps), 0
	}
}

// meet finds the scenario of a name and takes the next step in it. The step's
// number counts from 1; 0 says that there is none.
func (s *Server) meet(name string, now time.Time) (sc Scenario, step Step, number, attempt int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, ok = s.find(name)
	p := s.positions[name]
	if p == nil {
		p = &position{}
		s.positions[name] = p
	}
	if !ok || len(sc.Steps) == 0 {
		p.requests++
		return sc, Step{}, 0, p.requests, ok
	}
	i := p.next(sc, now)
	return sc, sc.Steps[i], i + 1, p.requests, true
}

// find looks a name up: as it is, without what stands before its last slash,
// by the number of a public scenario, and then among all others. s.mu is held.
func (s *Server) find(name string) (Scenario, bool) {
	short := name[strings.LastIndexByte(name, '/')+1:]
	for _, n := range []string{name, short, publicName(short), "*"} {
		if sc, ok := s.scenarios[n]; ok {
			return sc, true
		}
	}
	return Scenario{}, false
}
