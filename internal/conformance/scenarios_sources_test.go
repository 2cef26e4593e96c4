package conformance_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// The log of source design 000, section 4: DeepSeek is out of capacity, Claude
// answers, and the caller has made one call.
func TestSourceDesign000Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := chaos.New(chaos.Scenario{Steps: []chaos.Step{{Error: chaos.RateLimit}}})
		well := chaos.New(chaos.Scenario{Steps: []chaos.Step{{Interval: pace}}})
		t.Cleanup(limited.Close)
		t.Cleanup(well.Close)
		open := func(spec string, srv *chaos.Server, base string) ninelives.Model {
			m, err := provider.Open(spec, provider.BaseURL(base), provider.Dial(srv.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone")))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.(*provider.Model).CloseIdleConnections)
			return m
		}
		policy, err := heal.Preset("catbuddy")
		if err != nil {
			t.Fatal(err)
		}
		model := heal.New(open("deepseek/deepseek-chat", limited, "http://deepseek.sim"),
			heal.Fallback(open("anthropic/claude-sonnet-4-6", well, "http://anthropic.sim")), heal.With(policy))

		began := time.Now()
		var log []string
		var resp *ninelives.Response
		shown := ""
		for ev, err := range model.Stream(t.Context(), ninelives.Prompt(prompt)) {
			switch e := ev.(type) {
			case nil:
				t.Fatal(err)
			case ninelives.TextDelta:
				shown += e.Text
			case ninelives.Notice:
				line := string(e.Kind) + " " + e.Candidate
				if e.Next != "" {
					line += " → " + e.Next
				}
				if e.Fault != nil {
					line += " (" + string(e.Fault.Class) + ")"
				}
				if e.Kind == ninelives.NoticeSwitch {
					equal(t, "what was shown before the switch was told", shown, chaos.Answer)
					equal(t, "its words", e.Text, "switched to fallback #1: anthropic/claude-sonnet-4-6")
				}
				log = append(log, strings.TrimSpace(line))
			case ninelives.Done:
				resp = e.Response
			}
		}
		equal(t, "log", log, []string{
			"plan",
			"attempt deepseek/deepseek-chat",
			"fault deepseek/deepseek-chat (rate_limit)",
			"failover deepseek/deepseek-chat → anthropic/claude-sonnet-4-6 (rate_limit)",
			"attempt anthropic/claude-sonnet-4-6",
			"switch deepseek/deepseek-chat → anthropic/claude-sonnet-4-6",
		})
		equal(t, "took", time.Since(began), healthy)
		equal(t, "text", resp.Text(), chaos.Answer)
		equal(t, "served by", resp.Candidate, "anthropic/claude-sonnet-4-6")
		equal(t, "fallback", resp.IsFallback, true)
		limited.Wait()
		well.Wait()
		first, second := limited.Log(), well.Log()
		equal(t, "requests", []int{len(first), len(second)}, []int{1, 1})
		equal(t, "protocols", []string{first[0].Protocol, second[0].Protocol}, []string{"openai-chat", "anthropic-messages"})
		equal(t, "each asked for its own model", []string{first[0].Model, second[0].Model}, []string{"deepseek-chat", "claude-sonnet-4-6"})
	})
}

// The first half of source design 001's diagram: 429, again after 1.5 s, 429,
// again after 3 s, 429, the next provider, which answers.
func TestSourceDesign001Diagram(t *testing.T) {
	play(t, script{preset: "codebuddy", primary: one(chaos.Step{Error: chaos.RateLimit})}, func(s *stage) {
		r := s.ask()
		s.whole(r, 1, healthy)
		equal(s, "waits", r.waits(), []time.Duration{1500 * time.Millisecond, 3 * time.Second})
		equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, 1500 * time.Millisecond, 4500 * time.Millisecond})
		equal(s, "the fallback", s.arrivals(s.fallback), []time.Duration{4500 * time.Millisecond})
		equal(s, "took", r.took, 4500*time.Millisecond+healthy)
		equal(s, "steps", r.kinds(), "plan attempt fault retry wait attempt fault retry wait attempt fault cooldown failover attempt switch")
		equal(s, "attempts", r.resp.Attempts, 4)

		const nudge = "The previous attempt to answer failed (rate limit)"
		for i, e := range s.primary.Log() {
			equal(s, "a nudge tells of the failure, from the second request on", strings.Contains(string(e.Body), nudge), i > 0)
		}
		equal(s, "the fallback is told nothing", strings.Contains(string(s.fallback.Log()[0].Body), nudge), false)

		for _, n := range r.notices {
			if n.Kind == ninelives.NoticeCooldown {
				equal(s, "the primary rests", n.Wait, time.Minute)
			}
		}
	})
}

// The nine verifications at the end of source design 003, over HTTP.
func TestSourceDesign003Verifications(t *testing.T) {
	hardened := func(sc script) script { sc.preset = "hardened"; return sc }
	alone := func(steps ...chaos.Step) script { return hardened(script{primary: steps, alone: true}) }

	t.Run("1 a storm of 429s is sat out as asked", func(t *testing.T) {
		storm := chaos.Step{Times: 3, Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 2 * time.Second}
		play(t, alone(storm, chaos.Step{}), func(s *stage) {
			r := s.ask()
			s.whole(r, 0, healthy)
			w := r.waits()
			equal(s, "waits", len(w), 3)
			for _, wait := range w {
				between(s, "wait", wait, 2*time.Second, 2400*time.Millisecond)
			}
			equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, w[0], w[0] + w[1], w[0] + w[1] + w[2]})
			between(s, "in all", r.took, 0, 30*time.Second)
		})
	})
	t.Run("2 a hang ends at our own clock", func(t *testing.T) {
		play(t, alone(chaos.Step{Drop: chaos.Hang}), func(s *stage) {
			r := s.ask()
			w := r.waits()
			equal(s, "waits", len(w), 2)
			second := 12*time.Second + w[0]
			third := second + 12*time.Second + w[1]
			equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, second, third})
			left := []time.Duration{}
			for _, e := range s.primary.Log() {
				left = append(left, e.LeftAfter)
			}
			equal(s, "hung up on after", left, []time.Duration{12 * time.Second, 12 * time.Second, 30*time.Second - third})
			equal(s, "took", r.took, 30*time.Second)
			var e *heal.Exhausted
			equal(s, "a typed end", errors.As(r.err, &e) && e.Deadline, true)
		})
		t.Run("and a fallback answers", func(t *testing.T) {
			play(t, hardened(script{primary: []chaos.Step{{Drop: chaos.Hang}, {}}}), func(s *stage) {
				r := s.ask()
				s.whole(r, 0, 12*time.Second+healthy) // a timeout is retried in this design
				s.asked(2, 0)
			})
		})
	})
	t.Run("3 a bad request is not repeated", func(t *testing.T) {
		play(t, hardened(script{primary: one(chaos.Step{Error: chaos.BadRequest})}), func(s *stage) {
			r := s.ask()
			s.asked(1, 0)
			equal(s, "took", r.took, 0)
			var f *ninelives.Fault
			equal(s, "the fault itself", errors.As(r.err, &f) && f.Status == 400 && f.Class == ninelives.ClassFormat, true)
		})
	})
	t.Run("4 malformed JSON is mended in one round", func(t *testing.T) {
		number := func(fallback string) *ninelives.Request {
			req := ninelives.Prompt("Give me a number.")
			req.Output = &ninelives.Output{Name: "number", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
			if fallback != "" {
				req.Output.Default = []byte(fallback)
			}
			return req
		}
		play(t, alone(chaos.Step{Text: `{"n": "nine`}, chaos.Step{Text: `{"n": 9}`}), func(s *stage) {
			r := s.call(s.Context(), number(""))
			if r.err != nil {
				s.Fatal(r.err)
			}
			equal(s, "output", string(r.resp.Output), `{"n": 9}`)
			equal(s, "requests", len(s.primary.Log()), 2)
		})
		t.Run("and twice wrong is the caller's default", func(t *testing.T) {
			play(t, alone(chaos.Step{Text: `{"m": 9}`}), func(s *stage) {
				r := s.call(s.Context(), number(`{"n": 0}`))
				if r.err != nil {
					s.Fatal(r.err)
				}
				equal(s, "output", string(r.resp.Output), `{"n": 0}`)
				equal(s, "marked", r.resp.OutputDefaulted, true)
				equal(s, "requests", len(s.primary.Log()), 2)
			})
		})
	})
	t.Run("5 a refusal goes to the fallback", func(t *testing.T) {
		took := map[string]time.Duration{"in words": 4*pace + healthy, "by its stop": healthy}
		for name, refusal := range map[string]chaos.Step{
			"in words":    {Refusal: "I cannot help with that."},
			"by its stop": {Empty: chaos.EmptyNone, Finish: "refusal"},
		} {
			t.Run(name, func(t *testing.T) {
				for _, p := range protocols {
					switch {
					case p == ninelives.Gemini, refusal.Empty != "" && p != ninelives.AnthropicMessages:
						continue // they cannot say so
					}
					playIn(t, p, hardened(script{primary: one(refusal)}), func(s *stage) {
						req := ninelives.Prompt(prompt)
						req.Buffered = true // as Generate asks
						r := s.call(s.Context(), req)
						s.asked(1, 1)
						s.whole(r, 1, took[name])
					})
				}
			})
		}
	})
	t.Run("5 a cut answer is not given as whole", func(t *testing.T) {
		play(t, hardened(script{primary: one(chaos.Step{Truncate: 30})}), func(s *stage) {
			req := ninelives.Prompt(prompt)
			req.MaxTokens = 30
			r := s.call(s.Context(), req)
			s.asked(1, 0)
			equal(s, "flag", r.resp.Finish, ninelives.FinishLength)
			equal(s, "took", r.took, 29*pace)
		})
	})
	t.Run("6 a stream that drops is taken back and asked for again", func(t *testing.T) {
		play(t, alone(chaos.Step{After: 2, End: chaos.Cut}, chaos.Step{}), func(s *stage) {
			r := s.ask()
			s.whole(r, 0, pace+healthy)
			equal(s, "taken back", r.voided, []string{words(2)})
			equal(s, "asked", s.arrivals(s.primary), []time.Duration{0, pace + r.waited()})
			between(s, "wait", r.waited(), 0, 500*time.Millisecond)
		})
	})
	t.Run("7 an open circuit answers at once, and closes after one probe", func(t *testing.T) {
		sc := alone(chaos.Step{Times: 5, Error: chaos.Overloaded}, chaos.Step{})
		sc.options = []heal.Option{heal.Degraded(heal.Canned("Please try again in a minute."))}
		play(t, sc, func(s *stage) {
			equal(s, "first", s.ask().resp.Degraded, ninelives.DegradedCanned)
			equal(s, "second", s.ask().resp.Degraded, ninelives.DegradedCanned)
			equal(s, "requests until it opened", len(s.primary.Log()), 5)
			opened := time.Now()
			for range 3 {
				r := s.ask()
				equal(s, "text", r.resp.Text(), "Please try again in a minute.")
				equal(s, "took", r.took, 0)
			}
			time.Sleep(30*time.Second - 1)
			equal(s, "just before its end", s.ask().resp.Degraded, ninelives.DegradedCanned)
			equal(s, "requests while open", len(s.primary.Log()), 5)
			time.Sleep(1)
			equal(s, "rested", time.Since(opened), 30*time.Second)
			s.whole(s.ask(), 0, healthy)
			equal(s, "closed", s.model.Health().Snapshot(time.Now())[0].Standing.State, heal.StateHealthy)
		})
	})
	t.Run("8 total failure keeps the input", func(t *testing.T) {
		play(t, hardened(script{primaryModel: "503-always", fallbackModel: "500-always"}), func(s *stage) {
			req := ninelives.Prompt("a long and precious prompt")
			r := s.call(s.Context(), req)
			s.asked(4, 4)
			var e *heal.Exhausted
			if !errors.As(r.err, &e) {
				s.Fatal(r.err)
			}
			equal(s, "request", e.Request, req)
			equal(s, "took", r.took, r.waited())
			again, err := json.Marshal(e.Request.Messages)
			equal(s, "it can be kept", err == nil && strings.Contains(string(again), "a long and precious prompt"), true)
		})
	})
	t.Run("9 what breaks after the end of an answer is not paid for twice", func(t *testing.T) {
		for p, end := range map[ninelives.Protocol]string{
			ninelives.OpenAIChat: `data: {"id":"x","object":"chat.completion.chunk","model":"sim/scripted","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n",
			ninelives.AnthropicMessages: "event: message_delta\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":60}}` + "\n\n",
			ninelives.OpenAIResponses: "event: response.completed\n" +
				`data: {"type":"response.completed","response":{"id":"x","object":"response","status":"completed","model":"sim/scripted","output":[{"id":"m","type":"message",` +
				`"role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + chaos.Answer + `","annotations":[]}]}],` +
				`"usage":{"input_tokens":11,"output_tokens":60,"total_tokens":71}}}` + "\n\n",
			ninelives.Gemini: `data: {"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"sim/scripted"}` + "\n\n",
		} {
			playIn(t, p, alone(chaos.Step{After: 60, Inject: end, End: chaos.Cut}), func(s *stage) {
				r := s.ask()
				s.whole(r, 0, healthy)
				equal(s, "requests", len(s.primary.Log()), 1)
				equal(s, "faults", len(r.faults()), 0)
			})
		}
	})
}
