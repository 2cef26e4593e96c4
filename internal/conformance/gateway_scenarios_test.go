package conformance_test

import (
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The sixteen public failover scenarios as a client of the gateway meets them,
// with the interactive preset as it is shipped: what is held is the right
// behaviour of each, to the letter, the count and the second.
func TestPublicScenariosThroughTheGateway(t *testing.T) { playActs(t, publicActs) }

const (
	backoff = 500 * time.Millisecond  // the longest first backoff
	hint    = 2 * time.Second         // what S01 asks for
	hinted  = 2400 * time.Millisecond // with the most that is added to it
	race    = 10 * time.Second        // when the next one is started beside a silent one
	raced   = race + 10*time.Millisecond
)

var publicActs = []act{
	{
		name: "S01", does: "429 once, with `Retry-After: 2`", script: script{primaryModel: "fb-s01-429-retry-after"},
		stream: course{0, [2]int{2, 0}, hint, hinted},
		then:   func(s *show, _ heard) { between(s, "asked again", s.arrivals(s.primary)[1], hint, hinted) },
	},
	{
		name: "S02", does: "429 for good, without a hint", script: script{primaryModel: "fb-s02-429-persistent"},
		stream: course{1, [2]int{3, 1}, 0, backoff + 2*backoff},
	},
	{
		name: "S03", does: "500 once", script: script{primaryModel: "fb-s03-500-then-200"},
		stream: course{0, [2]int{2, 0}, 0, backoff},
	},
	{
		name: "S04", does: "503 for good", script: script{primaryModel: "fb-s04-503-persistent"},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "S05", does: "resets the connection before the headers, once", script: script{primaryModel: "fb-s05-reset"},
		stream: course{0, [2]int{2, 0}, 0, 0},
	},
	{
		name: "S06", does: "is silent for 120 s", script: script{primaryModel: "fb-s06-no-response"},
		stream: course{1, [2]int{1, 1}, race, raced},
		then: func(s *show, h heard) {
			left := h.took - s.alone() // as soon as the other one gives a token
			if s.pieced() {
				left = h.took // or, in one piece, all of them
			}
			equal(s, "hung up on", s.primary.Log()[0].LeftAfter, left)
			s.answered(s.ask(), 1, false)
			if s.pieced() { // where silence is no sign: five in a row open the circuit
				s.asked(2, 2)
				return
			}
			s.asked(1, 2) // the silent one is left alone
		},
	},
	{
		name: "S07", does: "sends its first token after 20 s", script: script{primaryModel: "fb-s07-slow-ttft"},
		stream: course{1, [2]int{1, 1}, race, raced},
		then:   func(s *show, h heard) { between(s, "in all", h.took, 0, 15*time.Second) },
	},
	{
		name: "S08", does: "cuts the stream after 40 of 60 tokens", script: script{primaryModel: "fb-s08-stream-cut"}, begun: true, spent: true,
		stream: course{1, [2]int{2, 1}, 39*pace + 19*pace, 39*pace + 19*pace + backoff},
		again:  course{1, [2]int{2, 1}, 2 * 39 * pace, 2*39*pace + backoff},
		piece:  course{1, [2]int{2, 1}, 2 * 60 * pace, 2*60*pace + backoff},
	},
	{
		name: "S09", does: "stalls after 20 of 60 tokens", script: script{primaryModel: "fb-s09-stream-stall"}, begun: true, spent: true,
		stream: course{1, [2]int{1, 1}, 19*pace + 30*time.Second - 20*pace, 19*pace + 30*time.Second - 20*pace},
		again:  course{1, [2]int{1, 1}, 19*pace + 30*time.Second, 19*pace + 30*time.Second},
		piece:  course{1, [2]int{1, 1}, race, raced},
		then: func(s *show, _ heard) { // and is well afterwards
			if s.pieced() {
				return // where silence is no sign: five in a row open the circuit
			}
			h := s.ask()
			s.answered(h, 1, false)
			equal(s, "took", h.took, s.alone())
			s.asked(1, 2)
		},
	},
	{
		name: "S10", does: "sends an event that is no JSON after 10 tokens; in one piece, half a body", script: script{primaryModel: "fb-s10-malformed-chunk"},
		stream: course{0, [2]int{1, 0}, 0, 0},
		piece:  course{1, [2]int{2, 1}, 2 * 60 * pace, 2*60*pace + backoff},
	},
	{
		// A chat stream is complete without [DONE]: it is relayed as it is. All others get theirs.
		name: "S11", does: "leaves out the end marker of its stream", script: script{primaryModel: "fb-s11-no-done"}, bare: true,
		stream: course{0, [2]int{1, 0}, 0, 0},
	},
	{
		name: "S12", does: "says that the request is too long for its window", script: script{primaryModel: "fb-s12-context-length"},
		stream: course{1, [2]int{1, 1}, 0, 0},
	},
	{
		name: "S13", does: "refuses the prompt by its content filter", script: script{primaryModel: "fb-s13-content-filter"},
		test: contentFilter, calls: "1, 0", after: "at once",
		sees: "400 with the provider's reason; between Gemini and Gemini its own `blockReason`",
	},
	{
		name: "S14", does: "cuts the stream, and the second provider refuses to continue an answer that is begun", begun: true, spent: true,
		script: script{primaryModel: "fb-s14-stream-cut", fallbackModel: "fb-ok-noprefill"},
		stream: course{1, [2]int{2, 1}, 39*pace + 19*pace, 39*pace + 19*pace + backoff},
		again:  course{1, [2]int{2, 1}, 2 * 39 * pace, 2*39*pace + backoff},
		piece:  course{1, [2]int{2, 1}, 2 * 60 * pace, 2*60*pace + backoff},
	},
	{
		name: "S15", does: "503 for 60 s, then well; a call every 4 s", few: true, script: script{primaryModel: "fb-s15-flap"},
		test: flap, calls: "6 in vain in 20 calls, then the first again", after: "at once; the first call up to 0.5 s",
		sees: "the whole answer, every time; from the first provider again 12 s after it is back",
	},
	{
		name: "S16", does: "503 for good; whose name and usage are told", script: script{primaryModel: "fb-s16-503-persistent"},
		stream: course{1, [2]int{2, 1}, 0, backoff},
		then:   func(s *show, h heard) { equal(s, "attempts, as told", s.told(h, "Attempts"), "3") },
	},
}

// A Go program that has the gateway in its own process sees the same.
func TestFaultsInTheSameProcess(t *testing.T) {
	for _, acts := range [][]act{publicActs, twentyActs, measuredActs} {
		for _, a := range acts {
			if a.of != nil || a.few || a.servers != nil {
				continue
			}
			a.script.inside = true
			t.Run(a.name, func(t *testing.T) {
				for i, f := range faces {
					if underRace && i > 1 {
						break
					}
					if streamed := i%2 == 0; a.only == "" || streamed == (a.only == "stream") {
						raise(t, a.script, f, f.protocol, streamed, a.judge)
					}
				}
			})
		}
	}
}

// contentFilter holds that a prompt that was refused is shown to nobody else,
// and that the client reads why.
func contentFilter(s *show) {
	h := s.ask()
	s.settle()
	s.asked(1, 0)
	equal(s, "took", h.took, 0)
	equal(s, "text", h.text, "")
	if s.relayed && s.protocol == ninelives.Gemini { // the protocol's own way to say so
		equal(s, "status and reason", []any{h.status, h.finish}, []any{200, "PROHIBITED_CONTENT"})
		if strings.Contains(string(h.body), `"candidates"`) {
			s.Errorf("it looks like an answer: %s", h.body)
		}
		return
	}
	reason := map[ninelives.Protocol]string{
		ninelives.OpenAIChat:        "rejected as a result of our safety system",
		ninelives.OpenAIResponses:   "rejected as a result of our safety system",
		ninelives.AnthropicMessages: "Output blocked by content filtering policy",
		ninelives.Gemini:            "PROHIBITED_CONTENT",
	}[s.protocol]
	words := map[ninelives.Protocol]string{ninelives.OpenAIChat: "content_filter", ninelives.OpenAIResponses: "content_filter",
		ninelives.AnthropicMessages: "invalid_request_error", ninelives.Gemini: "INVALID_ARGUMENT"}[s.face.protocol]
	equal(s, "status and error", []any{h.status, h.failure}, []any{400, words})
	if !strings.Contains(h.message, reason) {
		s.Errorf("the provider's reason is missing: %s", h.message)
	}
}

// flap holds that nobody's call suffers from an outage, that few are sent into
// it, and that the provider is used again soon.
func flap(s *show) {
	for i := range 20 {
		at := time.Duration(i) * 4 * time.Second
		time.Sleep(time.Until(s.began.Add(at)))
		served := 1
		if at >= 72*time.Second {
			served = 0
		}
		h := s.ask()
		s.answered(h, served, false)
		s.cost(h, 11, 60)
		wait := time.Duration(0)
		if i == 0 {
			wait = backoff
		}
		between(s, "took", h.took, s.alone(), s.alone()+wait)
	}
	s.settle()
	asked := s.arrivals(s.primary)
	// One retry, then it rests: 15 s, 30 s, 60 s, … A probe may come from half of
	// the first rest on and then every 15 s, when a call comes by.
	want := []time.Duration{0, asked[1], 8 * time.Second, 24 * time.Second, 40 * time.Second, 56 * time.Second, 72 * time.Second, 76 * time.Second}
	equal(s, "asked", asked, want)
	between(s, "the retry", asked[1], 0, backoff)
}

// What the default profile does differently: it waits where interactive races
// (docs/gateway.md). In all other scenarios the two behave alike.
func TestTheDefaultProfileThroughTheGateway(t *testing.T) {
	own := func(model string) script { return script{preset: "default", primaryModel: model} }
	playActs(t, []act{
		{name: "S06", script: own("fb-s06-no-response"), stream: course{1, [2]int{1, 1}, 30 * time.Second, 30*time.Second + 10*time.Millisecond}},
		{name: "S07", script: own("fb-s07-slow-ttft"), stream: course{0, [2]int{1, 0}, 20 * time.Second, 20 * time.Second}},
	})
	for _, a := range publicActs {
		if a.name == "S06" || a.name == "S07" {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			a.script.preset = "default"
			if a.name == "S09" { // in one piece the silence is all that is seen
				a.piece.least, a.piece.most = 30*time.Second, 30*time.Second+10*time.Millisecond
			}
			raise(t, a.script, faces[0], faces[0].protocol, true, a.judge)
			raise(t, a.script, faces[0], faces[0].protocol, false, a.judge)
			raise(t, a.script, faces[1], faces[1].translated, true, a.judge)
		})
	}
}
