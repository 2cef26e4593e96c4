package conformance_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
)

// TestPublicScenarios plays the sixteen public failover scenarios: a primary
// that misbehaves, one fallback, an answer of sixty words that is known to the
// letter, and the interactive preset as it is shipped. What is asserted is the
// right behaviour of each scenario, not only that something came.
func TestPublicScenarios(t *testing.T) {
	for _, sc := range publicScenarios {
		t.Run(sc.name, func(t *testing.T) { play(t, sc.script, sc.right) })
	}
}

var publicScenarios = []struct {
	name   string
	script script
	right  func(*stage)
}{
	{"S01 429 with a hint is waited out and not hammered", script{primaryModel: "fb-s01-429-retry-after"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 0, healthy)
		s.asked(2, 0)
		s.usage(r, 11, 60)
		equal(s, "asked again after the hint", s.arrivals(s.primary), []time.Duration{0, r.waited()})
		between(s, "wait", r.waited(), 2*time.Second, 2400*time.Millisecond)
	}},
	{"S02 429 for good: backs off, then the fallback", script{primaryModel: "fb-s02-429-persistent"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, healthy)
		s.asked(3, 1)
		s.usage(r, 11, 60)
		w := r.waits()
		equal(s, "waits", len(w), 2)
		equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, w[0], w[0] + w[1]})
		equal(s, "then the fallback at once", s.arrivals(s.fallback), []time.Duration{w[0] + w[1]})
		between(s, "first backoff", w[0], 0, 500*time.Millisecond)
		between(s, "second backoff", w[1], 0, time.Second)
	}},
	{"S03 500 once: the same provider is asked again", script{primaryModel: "fb-s03-500-then-200"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 0, healthy)
		s.asked(2, 0)
		s.usage(r, 11, 60)
		between(s, "backoff", r.waited(), 0, 500*time.Millisecond)
	}},
	{"S04 503 for good: the fallback", script{primaryModel: "fb-s04-503-persistent"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, healthy)
		s.asked(2, 1)
		s.usage(r, 11, 60)
		between(s, "backoff", r.waited(), 0, 500*time.Millisecond)
	}},
	{"S05 reset before the headers: asked again at once", script{primaryModel: "fb-s05-reset"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 0, healthy)
		s.asked(2, 0)
		s.usage(r, 11, 60)
		equal(s, "waits", len(r.waits()), 0)
	}},
	{"S06 silence: the fallback, and the silent route is left alone", script{primaryModel: "fb-s06-no-response"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, softFirst+healthy)
		s.asked(1, 1)
		s.usage(r, 11, 60)
		silent := s.primary.Log()[0]
		equal(s, "hung up on once the other has answered", silent.LeftAfter, softFirst)
		equal(s, "waits", len(r.waits()), 0)
	}},
	{"S07 first token after 20 s: the fallback answers first", script{primaryModel: "fb-s07-slow-ttft"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, softFirst+healthy)
		s.asked(1, 1)
		s.usage(r, 11, 60)
		between(s, "in all", r.took, 0, 15*time.Second)
		equal(s, "the loser is hung up on", s.primary.Log()[0].LeftAfter, softFirst)
	}},
	{"S08 cut after 40 tokens: a whole answer", script{primaryModel: "fb-s08-stream-cut"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, 39*pace+39*pace+healthy)
		s.asked(2, 1)
		s.usage(r, 11, 60)
		equal(s, "what was shown of cut answers is taken back", r.voided, []string{words(40), words(40)})
	}},
	{"S09 stall after 20 tokens: a whole answer, and well afterwards", script{primaryModel: "fb-s09-stream-stall"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, 19*pace+30*time.Second+healthy)
		s.asked(1, 1)
		s.usage(r, 11, 60)
		equal(s, "taken back", r.voided, []string{words(20)})
		r = s.ask()
		s.whole(r, 1, healthy)
		s.asked(1, 2)
	}},
	{"S10 malformed event: recovered in place", script{primaryModel: "fb-s10-malformed-chunk"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 0, healthy)
		s.asked(1, 0)
		s.usage(r, 11, 60)
		equal(s, "taken back", len(r.voided), 0)
		equal(s, "and it is told", r.kinds(), "plan attempt warning")
	}},
	{"S11 no end marker after the finish: done, with usage", script{primaryModel: "fb-s11-no-done"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 0, healthy)
		s.asked(1, 0)
		s.usage(r, 11, 60)
	}},
	{"S12 context length: the fallback, the primary asked once", script{primaryModel: "fb-s12-context-length"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, healthy)
		s.asked(1, 1)
		s.usage(r, 11, 60)
	}},
	{"S13 content filter: one attempt, and the provider's reason", script{primaryModel: "fb-s13-content-filter"}, func(s *stage) {
		r := s.ask()
		s.asked(1, 0)
		equal(s, "took", r.took, 0)
		var f *ninelives.Fault
		if !errors.As(r.err, &f) || f.Class != ninelives.ClassContentFilter {
			s.Fatalf("%v", r.err)
		}
		reason := map[ninelives.Protocol]string{
			ninelives.OpenAIChat:        "rejected as a result of our safety system",
			ninelives.OpenAIResponses:   "rejected as a result of our safety system",
			ninelives.AnthropicMessages: "blocked by content filtering policy",
			ninelives.Gemini:            "PROHIBITED_CONTENT",
		}[s.protocol]
		if !strings.Contains(r.err.Error(), reason) {
			s.Errorf("the provider's reason is missing: %v", r.err)
		}
		equal(s, "nothing shown", r.held, "")
	}},
	{"S14 cut, and the fallback refuses prefill: a whole answer", script{primaryModel: "fb-s14-stream-cut", fallbackModel: "fb-ok-noprefill"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, 39*pace+39*pace+healthy)
		s.asked(2, 1)
		s.usage(r, 11, 60)
	}},
	{"S15 down for 60 s: all answered, few doomed calls, back soon", script{primaryModel: "fb-s15-flap"}, func(s *stage) {
		var backoff time.Duration
		for i := range 20 {
			at := time.Duration(i) * 4 * time.Second
			time.Sleep(time.Until(s.began.Add(at)))
			served := 1
			if at >= 72*time.Second {
				served = 0
			}
			r := s.ask()
			s.whole(r, served, healthy)
			backoff += r.waited()
		}
		// One retry, then it rests: 15 s, 30 s, 60 s, … A probe may come from
		// half of the first rest on and then every 15 s, when a call comes by.
		equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, backoff, 8 * time.Second, 24 * time.Second, 40 * time.Second, 56 * time.Second,
			72 * time.Second, 76 * time.Second})
	}},
	{"S16 503 for good: the answer names its model and its cost", script{primaryModel: "fb-s16-503-persistent"}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, healthy)
		s.asked(2, 1)
		s.usage(r, 11, 60)
		equal(s, "attempts", r.resp.Attempts, 3)
	}},
}

// The default preset waits where interactive races; docs/healing.md says so.
func TestDefaultPresetWaitsWhereInteractiveRaces(t *testing.T) {
	t.Run("S06 silence", func(t *testing.T) {
		play(t, script{preset: "default", primaryModel: "fb-s06-no-response"}, func(s *stage) {
			s.whole(s.ask(), 1, 30*time.Second+slope+healthy)
			s.asked(1, 1)
		})
	})
	t.Run("S07 first token after 20 s", func(t *testing.T) {
		play(t, script{preset: "default", primaryModel: "fb-s07-slow-ttft"}, func(s *stage) {
			s.whole(s.ask(), 0, 20*time.Second+healthy)
			s.asked(1, 0)
		})
	})
	for _, sc := range publicScenarios {
		if !strings.HasPrefix(sc.name, "S06") && !strings.HasPrefix(sc.name, "S07") {
			t.Run(sc.name, func(t *testing.T) {
				sc.script.preset = "default"
				playIn(t, ninelives.OpenAIChat, sc.script, sc.right)
			})
		}
	}
}

// TestPublicScenariosForConsumersThatCannotUnsee plays those scenarios again in
// which a stream breaks, in the modes of consumers that cannot take text back:
// what was delivered stays and is gone on with, or nothing is delivered before
// the end. The candidates continue a trailing answer, so that prefill is tried.
func TestPublicScenariosForConsumersThatCannotUnsee(t *testing.T) {
	prefill := func(c *ninelives.Capabilities) { c.Prefill = true }
	for _, sc := range []struct {
		name, primary, fallback string
		mode                    heal.Mode
		asked                   [2]int
		took                    time.Duration
	}{
		// The primary, asked to go on, gives the rest and breaks again before
		// its end; the fallback begins anew, and what is known is swallowed.
		{"S08 cut", "fb-s08-stream-cut", "ok", heal.ModeContinue, [2]int{2, 1}, 39*pace + 19*pace + healthy},
		{"S08 cut", "fb-s08-stream-cut", "ok", heal.ModeHold, [2]int{2, 1}, 2*39*pace + healthy},
		{"S09 stall", "fb-s09-stream-stall", "ok", heal.ModeContinue, [2]int{1, 1}, 19*pace + 30*time.Second + 39*pace},
		{"S09 stall", "fb-s09-stream-stall", "ok", heal.ModeHold, [2]int{1, 1}, 19*pace + 30*time.Second + healthy},
		{"S10 malformed event", "fb-s10-malformed-chunk", "ok", heal.ModeContinue, [2]int{1, 0}, healthy},
		{"S10 malformed event", "fb-s10-malformed-chunk", "ok", heal.ModeHold, [2]int{1, 0}, healthy},
		// One request more: the fallback says that it takes no prefill, and is
		// asked in words.
		{"S14 cut, and no prefill", "fb-s14-stream-cut", "fb-ok-noprefill", heal.ModeContinue, [2]int{2, 2}, 39*pace + 19*pace + healthy},
		{"S14 cut, and no prefill", "fb-s14-stream-cut", "fb-ok-noprefill", heal.ModeHold, [2]int{2, 1}, 2*39*pace + healthy},
	} {
		t.Run(sc.name+", "+string(sc.mode), func(t *testing.T) {
			play(t, script{primaryModel: sc.primary, fallbackModel: sc.fallback, describe: prefill, options: []heal.Option{heal.Rescue(sc.mode)}}, func(s *stage) {
				r := s.ask()
				s.asked(sc.asked[0], sc.asked[1])
				s.whole(r, min(sc.asked[1], 1), sc.took)
				equal(s, "taken back", len(r.voided), 0)
			})
		})
	}
}

// words are the first n words of the answer.
func words(n int) string {
	at := 0
	for range n {
		at += 1 + strings.IndexByte(chaos.Answer[at+1:]+" ", ' ')
	}
	return chaos.Answer[:at]
}
