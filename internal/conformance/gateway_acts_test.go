package conformance_test

import (
	"slices"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// act is one fault: what a provider does, and what becomes of it for a client of
// the gateway. The page docs/gateway-faults.md is written from it.
type act struct {
	// name is that of its test and of its row; does says what the provider does.
	name, does string
	script     script
	// of gives the script for servers of a protocol, in place of script.
	of func(ninelives.Protocol) script
	// only plays it for clients that are streamed to ("stream") or not ("piece").
	only string
	// servers are the protocols of providers that can do it; nil means all.
	servers []ninelives.Protocol
	// few plays it for every second client, with two protocols of servers.
	few bool
	// stream is how it goes; piece, if that differs, where the provider is asked
	// for an answer in one piece; again where it streams and the client waits
	// for the whole.
	stream, piece, again course
	// begun says that a streamed answer was begun by another one, or before the
	// fault: the client holds the name that it was told at first.
	begun bool
	// spent says that the provider's counts do not reach the client whole.
	spent bool
	// uncounted says that the provider does not get as far as its counts.
	uncounted bool
	// bare says that the provider leaves out [DONE], and what is relayed as well.
	bare bool
	// fails says that nobody can answer: the client is told so.
	fails bool
	// test takes the place of all that is held otherwise; sees, after and calls
	// say for the page what it holds.
	test               func(*show)
	sees, after, calls string
	// then holds more.
	then func(*show, heard)
}

// course is how it goes: who answers, how often each provider is asked, and how
// much longer it takes than the answer alone.
type course struct {
	served      int
	asked       [2]int
	least, most time.Duration
}

// course is how the act goes for a client.
func (a *act) course(s *show) course {
	switch {
	case s.pieced() && a.piece != course{}:
		return a.piece
	case !s.streamed && !s.relayed && a.again != course{}:
		return a.again
	}
	return a.stream
}

// playActs plays each act for clients of every protocol.
func playActs(t *testing.T, acts []act) {
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) { a.play(t) })
	}
}

func (a *act) play(t *testing.T) {
	of := a.of
	if of == nil {
		of = func(ninelives.Protocol) script { return a.script }
	}
	for i, f := range faces {
		for j, upstream := range f.pairs(!a.few) {
			if a.servers != nil && !slices.Contains(a.servers, upstream) {
				continue
			}
			for k, streamed := range []bool{true, false} {
				if a.plays(i+j+k, streamed) {
					raise(t, of(upstream), f, upstream, streamed, a.judge)
				}
			}
		}
	}
}

// plays says whether the act is for the n-th of the clients in a row of those who
// are streamed to and those who are not, with servers of their own protocol and of
// others. Every second one has both of each for all protocols together.
func (a *act) plays(n int, streamed bool) bool {
	if a.only != "" && streamed != (a.only == "stream") {
		return false
	}
	return n%2 == 0 || !a.few && !underRace // which makes them slow
}

// judge makes the usual call and holds what the act says of it.
func (a *act) judge(s *show) {
	if a.test != nil {
		a.test(s)
		return
	}
	h := s.ask()
	s.settle()
	c := a.course(s)
	s.asked(c.asked[0], c.asked[1])
	took := h.took
	if !a.fails {
		took -= s.alone()
		s.answered(h, c.served, a.begun && s.streamed)
		equal(s, "end marker", h.marked, !s.streamed || s.face.protocol != ninelives.Gemini && !(a.bare && s.relayed && s.face.protocol == ninelives.OpenAIChat))
		switch {
		case a.uncounted:
		case a.spent && s.streamed:
			equal(s, "some usage", h.input > 0 && h.output > 0, true)
		default:
			s.cost(h, 11, 60)
		}
	} else {
		s.exhausted(h)
	}
	between(s, "what it cost", took, c.least, c.most)
	if a.then != nil {
		a.then(s, h)
	}
}

// alone is how long the answer takes by itself.
func (s *show) alone() time.Duration {
	if s.pieced() {
		return 60 * pace
	}
	return healthy
}
