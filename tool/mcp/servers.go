package mcp

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ninelives-ai/ninelives/tool"
)

// Server says how a server is reached: by Command or by URL.
type Server struct {
	// Name is the first part of the names of its tools: letters, digits, single
	// underscores and hyphens, at most 32.
	Name string

	// Command is the program and its arguments. It runs in a process group of
	// its own in Dir (empty: the present directory). It sees this process's
	// environment without what looks like a key, a token or a password, and Env.
	Command []string
	Env     map[string]string
	Dir     string

	// URL is the address of a server over (streamable) HTTP, Headers go with
	// every request.
	URL     string
	Headers map[string]string

	// Trust believes the server where it says that a tool only reads. Such tools
	// run beside others, and again after a broken connection.
	Trust bool
	// Timeout bounds a call; zero means the agent's default.
	Timeout time.Duration
}

// State is where a server stands.
type State string

// The states; see the package comment.
const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Waiting    State = "waiting" // until Status.Next
	Down       State = "down"    // failed too often; tried again when it is called
	Failed     State = "failed"  // cannot work as it is configured
	Closed     State = "closed"
)

// Status is what is known of a server.
type Status struct {
	Name  string
	State State
	// Tools counts its tools; they stay listed while it is away.
	Tools int
	// Server is what the server calls itself, with its version.
	Server string
	// Failures counts the failures in a row, Next is when it is tried again
	// (zero if no time is set).
	Failures int
	Next     time.Time
	// Error is the last failure in one line, Output the last line that a command
	// wrote to its standard error. Both are safe to show, and say no key.
	Error  string
	Output string
}

// timing holds the waits; tests make them short.
type timing struct {
	grace   time.Duration // how long Tools waits at most, counted from Connect
	connect time.Duration // for a connection and its list of tools
	patient time.Duration // how long a call waits for its server
	first   time.Duration // backoff
	longest time.Duration // backoff
	stable  time.Duration // a connection that held so long ends a row of failures
	relist  time.Duration // the least time between two lists
	letGo   time.Duration // what a cancelled call has for its end
	leave   time.Duration // what a command has for its end, before it is asked, and again before it is killed
	listen  time.Duration // for the headers of the stream of notifications
	tries   int
}

var defaultTiming = timing{
	grace: 2 * time.Second, connect: 30 * time.Second, patient: 10 * time.Second,
	first: 500 * time.Millisecond, longest: time.Minute, stable: 30 * time.Second, tries: 10,
	relist: time.Second, letGo: 2 * time.Second, leave: 2 * time.Second, listen: 5 * time.Second,
}

// Servers are the connections to a set of servers. Its methods are safe for
// concurrent use.
type Servers struct {
	all   []*server
	began time.Time
	grace time.Duration
	stop  context.CancelFunc
	run   sync.WaitGroup
}

// Connect begins to connect to the servers and returns at once. What is wrong
// with one of them is in its Status. The connections end with ctx, and with
// Close, which also waits for them.
func Connect(ctx context.Context, servers []Server) *Servers {
	return connect(ctx, servers, defaultTiming)
}

func connect(ctx context.Context, servers []Server, t timing) *Servers {
	ctx, stop := context.WithCancel(ctx)
	s := &Servers{began: time.Now(), grace: t.grace, stop: stop}
	seen := map[string]bool{}
	for _, cfg := range slices.SortedFunc(slices.Values(servers), func(a, b Server) int { return strings.Compare(a.Name, b.Name) }) {
		one := newServer(cfg, t)
		s.all = append(s.all, one)
		err := cfg.check()
		if seen[cfg.Name] && err == nil {
			err = fmt.Errorf("there are two servers named %s: give each its own name", cfg.Name)
		}
		seen[cfg.Name] = true
		if err != nil {
			one.refuse(err)
			continue
		}
		s.run.Go(func() { one.own(ctx) })
	}
	return s
}

var serverName = regexp.MustCompile(`^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$`)

// check finds what is wrong with the configuration.
func (s Server) check() error {
	switch {
	case !serverName.MatchString(s.Name) || len(s.Name) > 32:
		return fmt.Errorf("%s is no name of a server: use letters, digits, single underscores and hyphens, at most 32", oneLine(fmt.Sprintf("%q", s.Name), 80))
	case (len(s.Command) == 0) == (s.URL == ""):
		return fmt.Errorf("server %s needs either a command or a url", s.Name)
	case len(s.Command) > 0 && s.Command[0] == "":
		return fmt.Errorf("server %s has a command without a program", s.Name)
	case s.URL != "":
		return checkURL(s.Name, s.URL)
	}
	return nil
}

// Tools lists the tools of all servers, sorted by server and name. Shortly
// after Connect it waits, at most two seconds in all, for the servers that are
// still being connected; later it never waits.
func (s *Servers) Tools() []tool.Tool {
	grace := time.NewTimer(time.Until(s.began.Add(s.grace)))
	defer grace.Stop()
	var out []tool.Tool
	for _, one := range s.all {
		select {
		case <-one.settled:
		default:
			select {
			case <-one.settled:
			case <-grace.C:
				grace.Reset(0) // for the others as well
			}
		}
		out = append(out, one.listed()...)
	}
	return out
}

// Settle waits until every server is connected or has failed once, or until
// ctx ends: for who asks a model once, and not again when the tools are there.
func (s *Servers) Settle(ctx context.Context) {
	for _, one := range s.all {
		select {
		case <-one.settled:
		case <-ctx.Done():
			return
		}
	}
}

// Status tells how the servers are, sorted by name.
func (s *Servers) Status() []Status {
	var out []Status
	for _, one := range s.all {
		out = append(out, one.status())
	}
	return out
}

// Close ends all connections and commands, and returns when they are gone. A
// command has two seconds to end by itself, two more after it was asked to,
// and is then killed with all that it started.
func (s *Servers) Close() {
	s.stop()
	s.run.Wait()
}
