package conformance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// front puts a gateway before the two providers of the stage, and gives the
// stage a client of its own protocol for it: what the stage asks goes through
// the whole gateway, as bytes.
func (s *stage) front(client ninelives.Protocol, preset string, first, second ninelives.Model) {
	s.Helper()
	policy, err := heal.Preset(preset)
	if err != nil {
		s.Fatal(err)
	}
	policy = gateway.ForClients(policy)
	g := gateway.New(gateway.Settings{Routes: []gateway.Route{{Name: "default", Policy: &policy,
		Targets: []gateway.Target{{Model: first}, {Model: second}}}}}, gateway.Options{})
	s.Cleanup(g.Close)
	base := "http://gateway"
	if client == ninelives.OpenAIChat || client == ninelives.OpenAIResponses {
		base += "/v1"
	}
	m, err := provider.Open("default", provider.Provider("gateway"), provider.BaseURL(base), provider.Protocol(client),
		provider.Key(provider.Secret{}), provider.Transport(g.Transport()))
	if err != nil {
		s.Fatal(err)
	}
	// A client without patience of its own and without healing.
	p := heal.DefaultPolicy()
	p.Budget.Requests, p.Mode = 1, heal.ModeRestart
	p.Clocks = heal.ClockPolicy{Dial: time.Hour, Headers: time.Hour, FirstEvent: time.Hour, Liveness: time.Hour, Progress: time.Hour, LocalFactor: 1}
	s.model = heal.New(m, heal.With(p), heal.Deadline(time.Hour))
}

// TestPublicScenariosThroughTheGateway plays the sixteen scenarios for clients
// of every protocol, before providers of the same protocol and of another one.
func TestPublicScenariosThroughTheGateway(t *testing.T) {
	type asked struct{ primary, fallback int }
	for _, sc := range []struct {
		name, primary, fallback string
		asked                   asked         // at most
		within                  time.Duration // waits of at most 3 s for a hint or a backoff included
		served                  string
		fails                   bool
	}{
		{"S01", "fb-s01-429-retry-after", "", asked{2, 0}, 4 * time.Second, "primary", false},
		{"S02", "fb-s02-429-persistent", "", asked{3, 1}, 4 * time.Second, "fallback", false},
		{"S03", "fb-s03-500-then-200", "", asked{2, 0}, 4 * time.Second, "primary", false},
		{"S04", "fb-s04-503-persistent", "", asked{2, 1}, 4 * time.Second, "fallback", false},
		{"S05", "fb-s05-reset", "", asked{2, 0}, 4 * time.Second, "primary", false},
		{"S06", "fb-s06-no-response", "", asked{1, 1}, 12 * time.Second, "fallback", false},
		{"S07", "fb-s07-slow-ttft", "", asked{1, 1}, 12 * time.Second, "fallback", false},
		{"S08", "fb-s08-stream-cut", "", asked{2, 1}, 6 * time.Second, "", false},
		{"S09", "fb-s09-stream-stall", "", asked{1, 1}, 34 * time.Second, "", false},
		{"S10", "fb-s10-malformed-chunk", "", asked{1, 1}, 4 * time.Second, "", false},
		{"S11", "fb-s11-no-done", "", asked{1, 0}, 8 * time.Second, "primary", false},
		{"S12", "fb-s12-context-length", "", asked{1, 1}, 4 * time.Second, "fallback", false},
		{"S13", "fb-s13-content-filter", "", asked{1, 0}, time.Second, "", true},
		{"S14", "fb-s14-stream-cut", "fb-ok-noprefill", asked{2, 2}, 6 * time.Second, "", false},
		{"S16", "fb-s16-503-persistent", "", asked{2, 1}, 4 * time.Second, "fallback", false},
	} {
		for i, client := range protocols {
			for _, upstream := range []ninelives.Protocol{client, protocols[(i+1)%len(protocols)]} {
				t.Run(sc.name+"/"+string(client)+" to "+string(upstream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &stage{T: t, protocol: upstream}
						first := s.open(&s.primary, upstream, "primary", sc.primary, nil, nil)
						second := s.open(&s.fallback, upstream, "fallback", sc.fallback, nil, nil)
						s.front(client, "interactive", first, second)
						s.began = time.Now()
						r := s.ask()
						if a := (asked{len(s.primary.Log()), len(s.fallback.Log())}); a.primary > sc.asked.primary || a.fallback > sc.asked.fallback {
							t.Errorf("asked %v, at most %v", a, sc.asked)
						}
						if r.took > sc.within {
							t.Errorf("took %v", r.took)
						}
						if sc.fails {
							var f *ninelives.Fault
							if r.resp != nil && r.resp.Text() == "" && (r.resp.Finish == ninelives.FinishRefusal || r.resp.Finish == ninelives.FinishContentFilter) {
								return // Gemini says so in an answer, and so it is passed on
							}
							if !errors.As(r.err, &f) || f.Class != ninelives.ClassContentFilter && f.Class != ninelives.ClassFormat || r.held != "" {
								t.Errorf("%v after %q", r.err, r.held)
							}
							return
						}
						if r.err != nil || r.resp.Text() != chaos.Answer || r.held != chaos.Answer || r.resp.Finish != ninelives.FinishStop {
							t.Fatalf("%v: held %q", r.err, r.held)
						}
						if sc.served == "fallback" && r.resp.Model != "sim/ok" && r.resp.Model != "ok" {
							t.Errorf("served by %q", r.resp.Model)
						}
						// What a cut attempt used its provider never said.
						if sc.served != "" && r.resp.Usage.TotalOutput() != 60 && client != ninelives.OpenAIChat {
							t.Errorf("usage %+v", r.resp.Usage)
						}
					})
				})
			}
		}
	}
}

// The primary is down for a minute while a call comes every four seconds: all
// are answered, few go to it, and it is used again soon after.
func TestAFlapThroughTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, protocol: ninelives.OpenAIChat}
		first := s.open(&s.primary, ninelives.OpenAIChat, "primary", "fb-s15-flap", nil, nil)
		second := s.open(&s.fallback, ninelives.OpenAIChat, "fallback", "", nil, nil)
		s.front(ninelives.AnthropicMessages, "interactive", first, second)
		s.began = time.Now()
		for i := range 23 {
			time.Sleep(time.Until(s.began.Add(time.Duration(i) * 4 * time.Second)))
			if r := s.ask(); r.err != nil || r.held != chaos.Answer {
				t.Fatalf("call %d: %v", i, r.err)
			}
		}
		doomed, well := 0, 0
		for _, at := range s.arrivals(s.primary) {
			switch {
			case at < 60*time.Second:
				doomed++
			case at < 90*time.Second:
				well++
			}
		}
		if doomed > 10 || well == 0 {
			t.Errorf("%d doomed calls, %d once it was well: %v", doomed, well, s.arrivals(s.primary))
		}
	})
}

// A client that leaves ends the call upstream at once, and nothing is asked for
// it any more.
func TestAClientThatLeavesEndsItsCallThroughTheGateway(t *testing.T) {
	for _, model := range []string{"ok", "hang", "stall"} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{T: t, protocol: ninelives.OpenAIChat}
				first := s.open(&s.primary, ninelives.OpenAIChat, "primary", model, nil, nil)
				second := s.open(&s.fallback, ninelives.OpenAIChat, "fallback", "", nil, nil)
				s.front(ninelives.OpenAIChat, "default", first, second)
				s.began = time.Now()
				ctx, leave := context.WithCancel(t.Context())
				time.AfterFunc(500*time.Millisecond, leave)
				defer leave()
				if r := s.call(ctx, ninelives.Prompt(prompt)); r.err == nil {
					t.Fatal("it was answered")
				}
				time.Sleep(time.Minute)
				s.asked(1, 0)
				if left := s.primary.Log()[0].LeftAfter; left < 500*time.Millisecond || left > 1500*time.Millisecond {
					t.Errorf("the provider was left after %v", left)
				}
			})
		})
	}
}
