package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
)

// TestTwentyFaults plays twenty faults beyond the public scenarios. Each ends
// with the whole answer or with an error that says what it is, after exactly
// the time that the fault costs, and never with half an answer as a success.
func TestTwentyFaults(t *testing.T) {
	for _, f := range twentyFaults {
		t.Run(f.name, f.test)
	}
}

var twentyFaults = []struct {
	name string
	test func(*testing.T)
}{
	{"01 error as the first event of a 200", func(t *testing.T) {
		play(t, script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent, Omit: []string{"start"}})}, func(s *stage) {
			r := s.ask()
			s.whole(r, 1, healthy)
			s.asked(2, 1)
			equal(s, "class", r.faults()[0].Class, ninelives.ClassOverloaded)
			equal(s, "taken back", len(r.voided), 0)
		})
	}},
	{"02 error after response.created or message_start", func(t *testing.T) {
		for _, p := range []ninelives.Protocol{ninelives.OpenAIResponses, ninelives.AnthropicMessages} {
			playIn(t, p, script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent})}, func(s *stage) {
				r := s.ask()
				s.whole(r, 1, healthy)
				s.asked(2, 1)
				equal(s, "class", r.faults()[0].Class, ninelives.ClassOverloaded)
				equal(s, "taken back", len(r.voided), 0)
			})
		}
	}},
	{"03 error after the role delta, and in the middle", func(t *testing.T) {
		playIn(t, ninelives.OpenAIChat, script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent})}, func(s *stage) {
			r := s.ask()
			s.whole(r, 1, healthy)
			s.asked(2, 1)
			equal(s, "taken back", len(r.voided), 0)
		})
		t.Run("after 20 tokens", func(t *testing.T) {
			play(t, script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent, After: 20})}, func(s *stage) {
				r := s.ask()
				s.whole(r, 1, 2*19*pace+healthy)
				s.asked(2, 1)
				equal(s, "taken back", r.voided, []string{words(20), words(20)})
			})
		})
	}},
	{"04 a spent balance is not waited for", func(t *testing.T) {
		play(t, script{primary: one(chaos.Step{Error: chaos.Billing})}, func(s *stage) {
			r := s.ask()
			s.whole(r, 1, healthy)
			equal(s, "waits", r.waited(), 0)
			equal(s, "class", r.faults()[0].Class, ninelives.ClassBilling)
			s.whole(s.ask(), 1, healthy)
			s.asked(1, 2)
		})
	}},
	{"05 a trickle of one token a second", func(t *testing.T) {
		play(t, script{primaryModel: "trickle"}, func(s *stage) {
			s.whole(s.ask(), 0, 59*time.Second) // slow is not broken
			s.asked(1, 0)
		})
		t.Run("under a floor", func(t *testing.T) {
			floor := func(p *heal.Policy) { p.Clocks.MinRate, p.Clocks.RateWindow = 20, 9500*time.Millisecond }
			play(t, script{primaryModel: "trickle", policy: floor}, func(s *stage) {
				r := s.ask()
				s.whole(r, 1, 9500*time.Millisecond+healthy)
				s.asked(1, 1)
				equal(s, "taken back", r.voided, []string{words(10)})
				equal(s, "hung up on", s.primary.Log()[0].LeftAfter, 9500*time.Millisecond)
			})
		})
	}},
	{"06 a polite end without a finish is no end", func(t *testing.T) {
		play(t, script{primary: one(chaos.Step{After: 40, End: chaos.CleanEnd})}, func(s *stage) {
			r := s.ask()
			s.whole(r, 1, 2*39*pace+healthy)
			s.asked(2, 1)
			equal(s, "taken back", r.voided, []string{words(40), words(40)})
		})
		t.Run("even after the last word", func(t *testing.T) {
			play(t, script{primaryModel: "no-marker"}, func(s *stage) {
				r := s.ask()
				s.whole(r, 1, 2*healthy+healthy)
				s.asked(2, 1)
				equal(s, "taken back", r.voided, []string{chaos.Answer, chaos.Answer})
			})
		})
	}},
	{"07 an empty 200", func(t *testing.T) {
		for face, took := range map[chaos.Empty]time.Duration{
			chaos.EmptyBlank: 0, chaos.EmptyNone: 0, chaos.EmptyNull: 0, chaos.EmptyDone: 0, chaos.EmptyWhitespace: pace,
		} {
			t.Run(string(face), func(t *testing.T) {
				play(t, script{primary: one(chaos.Step{Empty: face})}, func(s *stage) {
					r := s.ask()
					s.nothing(r, took)
				})
			})
		}
	}},
	{"08 thought, and nothing said", func(t *testing.T) {
		play(t, script{primary: one(chaos.Step{Empty: chaos.EmptyReasoning})}, func(s *stage) {
			s.nothing(s.ask(), 7*pace)
		})
	}},
	{"09 the body null", func(t *testing.T) {
		play(t, script{primaryModel: "null-body"}, func(s *stage) {
			s.nothing(s.ask(), 0)
		})
	}},
	{"10 a web page with 200", func(t *testing.T) {
		play(t, script{primaryModel: "html-200"}, func(s *stage) {
			r := s.ask()
			s.whole(r, 1, healthy)
			s.asked(1, 1)
			equal(s, "class", r.faults()[0].Class, ninelives.ClassFormat)
		})
	}},
	{"11 the arguments of a call end in mid-JSON", func(t *testing.T) {
		call := []chaos.Call{{Name: "*", Arguments: `{"path":"/tmp/nine","content":"lives"}`}}
		t.Run("as the stream does", func(t *testing.T) {
			play(t, script{primary: one(chaos.Step{Calls: call, After: 2, End: chaos.Cut}), fallback: one(chaos.Step{Calls: call})}, func(s *stage) {
				r := s.call(s.Context(), withTool())
				s.asked(2, 1)
				s.calls(r, call[0].Arguments)
			})
		})
		t.Run("and the answer claims to be whole", func(t *testing.T) {
			// It met a limit that it does not admit: the caller is told, and no
			// call is given out.
			play(t, script{primary: one(chaos.Step{Calls: call, ToolFault: chaos.Unclosed}), fallback: one(chaos.Step{Calls: call})}, func(s *stage) {
				r := s.call(s.Context(), withTool())
				if s.protocol == ninelives.Gemini { // which admits it
					s.asked(2, 1)
					s.calls(r, call[0].Arguments)
					return
				}
				s.asked(1, 0)
				var f *ninelives.Fault
				if r.resp != nil || !errors.As(r.err, &f) || f.Class != ninelives.ClassTruncated {
					s.Errorf("%+v, %v", r.resp, r.err)
				}
			})
		})
	}},
	{"12 two calls with one index, or with none", func(t *testing.T) {
		for _, fault := range []chaos.ToolFault{chaos.DuplicateIndex, chaos.MissingIndex} {
			t.Run(string(fault), func(t *testing.T) {
				first, second := `{"path":"/tmp/one","content":"a"}`, `{"path":"/tmp/two","content":"b"}`
				calls := []chaos.Call{{Name: "*", Arguments: first}, {Name: "*", Arguments: second}}
				play(t, script{primary: one(chaos.Step{Calls: calls, ToolFault: fault})}, func(s *stage) {
					r := s.call(s.Context(), withTool())
					s.asked(1, 0)
					s.calls(r, first, second)
				})
			})
		}
	}},
	{"13 a refusal", func(t *testing.T) {
		refusal := one(chaos.Step{Refusal: "I cannot help with that."})
		whole := ninelives.Prompt(prompt)
		whole.Buffered = true // as Generate asks
		playRefusals(t, script{primary: refusal}, func(s *stage) {
			r := s.call(s.Context(), whole)
			s.whole(r, 1, 4*pace+healthy)
			s.asked(1, 1)
		})
		t.Run("by everybody", func(t *testing.T) {
			playRefusals(t, script{primary: refusal, fallback: refusal}, func(s *stage) {
				r := s.call(s.Context(), whole)
				s.asked(1, 1)
				if r.err != nil {
					s.Fatal(r.err)
				}
				equal(s, "a result, not an error", r.resp.Finish, ninelives.FinishRefusal)
				equal(s, "took", r.took, 2*4*pace)
			})
		})
		t.Run("watched", func(t *testing.T) {
			playRefusals(t, script{primary: refusal}, func(s *stage) {
				r := s.ask()
				if s.protocol == ninelives.AnthropicMessages {
					// Its refusals are text until the end says otherwise: what
					// was shown stays, and is no plain success.
					s.asked(1, 0)
					equal(s, "flag", r.resp.Finish, ninelives.FinishRefusal)
					return
				}
				s.whole(r, 1, 4*pace+healthy)
				s.asked(1, 1)
			})
		})
	}},
	{"14 a finish that says length", func(t *testing.T) {
		play(t, script{primaryModel: "truncated"}, func(s *stage) {
			r := s.ask()
			s.whole(r, 0, 2*29*pace)
			s.asked(2, 0)
			equal(s, "continued", r.resp.Continued, 1)
		})
		t.Run("at the caller's own limit", func(t *testing.T) {
			play(t, script{primaryModel: "truncated"}, func(s *stage) {
				req := ninelives.Prompt(prompt)
				req.MaxTokens = 30
				r := s.call(s.Context(), req)
				s.asked(1, 0)
				equal(s, "flag", r.resp.Finish, ninelives.FinishLength)
				equal(s, "text", r.resp.Text(), words(30))
				equal(s, "took", r.took, 29*pace)
			})
		})
	}},
	{"15 Retry-After as a date, and a huge one", func(t *testing.T) {
		play(t, script{primaryModel: "429-date"}, func(s *stage) {
			r := s.ask()
			s.whole(r, 0, healthy)
			s.asked(2, 0)
			between(s, "wait", r.waited(), 2*time.Second, 2400*time.Millisecond)
		})
		t.Run("an hour", func(t *testing.T) {
			play(t, script{primary: []chaos.Step{{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: time.Hour}, {}}}, func(s *stage) {
				r := s.ask()
				s.whole(r, 1, healthy)
				s.asked(1, 1)
				equal(s, "waits", r.waited(), 0)
				time.Sleep(time.Until(s.began.Add(time.Hour - 1)))
				s.whole(s.ask(), 1, healthy)
				s.asked(1, 2)
				s.whole(s.ask(), 0, healthy)
				s.asked(2, 2)
			})
		})
	}},
	{"16 nothing but signs of life", func(t *testing.T) {
		play(t, script{primaryModel: "only-alive"}, func(s *stage) {
			s.whole(s.ask(), 1, softFirst+healthy)
			s.asked(1, 1)
			equal(s, "hung up on", s.primary.Log()[0].LeftAfter, softFirst)
		})
		t.Run("and nobody else to ask", func(t *testing.T) {
			play(t, script{primaryModel: "only-alive", alone: true}, func(s *stage) {
				r := s.ask()
				equal(s, "requests", len(s.primary.Log()), 4)
				equal(s, "took, waits aside", r.took-r.waited(), 4*(time.Minute+slope))
				for _, e := range s.primary.Log() {
					equal(s, "each hung up on at the clock of the first token", e.LeftAfter, time.Minute+slope)
				}
				var e *heal.Exhausted
				equal(s, "a typed end", errors.As(r.err, &e) && e.Fault.Class == ninelives.ClassTimeout && !e.Deadline, true)
			})
		})
	}},
	{"17 the caller leaves", func(t *testing.T) {
		for name, c := range map[string]struct {
			step chaos.Step
			both bool
			at   time.Duration
		}{
			"before the headers":         {step: chaos.Step{Drop: chaos.Hang}, at: 3 * time.Second},
			"before the first token":     {step: chaos.Step{First: time.Minute}, at: 3 * time.Second},
			"in the middle of an answer": {step: chaos.Step{}, at: 307 * time.Millisecond},
			"in a race":                  {step: chaos.Step{Drop: chaos.Hang}, both: true, at: 12 * time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				sc := script{primary: one(c.step)}
				if c.both {
					sc.fallback = one(c.step)
				}
				play(t, sc, func(s *stage) {
					ctx, cancel := context.WithCancel(s.Context())
					time.AfterFunc(c.at, cancel)
					r := s.call(ctx, ninelives.Prompt(prompt))
					s.canceled(r, c.at)
					equal(s, "upstream hears of it at once", s.primary.Log()[0].LeftAfter, c.at)
					if c.both {
						s.asked(1, 1)
						equal(s, "and so does the other one", s.fallback.Log()[0].LeftAfter, c.at-softFirst)
						return
					}
					s.asked(1, 0)
				})
			})
		}
		t.Run("while a hint is waited out", func(t *testing.T) {
			play(t, script{primary: one(chaos.Step{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 20 * time.Second})}, func(s *stage) {
				ctx, cancel := context.WithCancel(s.Context())
				time.AfterFunc(3*time.Second, cancel)
				s.canceled(s.call(ctx, ninelives.Prompt(prompt)), 3*time.Second)
				time.Sleep(time.Hour)
				s.asked(1, 0)
			})
		})
	}},
	{"18 a body of more than a MiB is sent again whole", func(t *testing.T) {
		large := strings.Repeat("All the cats of the town came by. ", 32_000)
		again := func(step chaos.Step) (script, func(*stage)) {
			return script{primary: []chaos.Step{step, {}}}, func(s *stage) {
				r := s.call(s.Context(), ninelives.Prompt(large))
				took := healthy
				if step.After > 0 {
					took += 39 * pace
				}
				s.whole(r, 0, took)
				s.asked(2, 0)
				for _, e := range s.primary.Log() {
					if len(e.Body) <= 1<<20 || !strings.Contains(string(e.Body), large) {
						s.Errorf("a request of %d bytes", len(e.Body))
					}
				}
			}
		}
		sc, test := again(chaos.Step{After: 40, End: chaos.Cut})
		play(t, sc, test)
		t.Run("after a reset", func(t *testing.T) {
			sc, test := again(chaos.Step{Drop: chaos.RST})
			playIn(t, ninelives.AnthropicMessages, sc, test)
		})
	}},
	{"19 all routes are down", func(t *testing.T) {
		play(t, script{primaryModel: "503-always", fallbackModel: "503-always"}, func(s *stage) {
			r := s.ask()
			s.asked(2, 2)
			var e *heal.Exhausted
			if !errors.As(r.err, &e) {
				s.Fatalf("%v", r.err)
			}
			equal(s, "took only the announced waits", r.took, r.waited())
			equal(s, "trail", len(e.Trail), 4)
			equal(s, "nothing shown", r.held, "")
			if !strings.HasPrefix(r.err.Error(), heal.AllFailed) {
				s.Error(r.err)
			}
		})
	}},
	{"20 clocks that disagree", func(t *testing.T) {
		for name, skew := range map[string]time.Duration{"the server is late": -3 * time.Hour, "the server is early": 3 * time.Hour} {
			t.Run(name, func(t *testing.T) {
				// Bubbles begin at this time.
				theirs := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(skew)
				skewed := chaos.Step{Error: chaos.RateLimit, Headers: map[string]string{
					"Date":        theirs.Format(http.TimeFormat),
					"Retry-After": theirs.Add(2 * time.Second).Format(http.TimeFormat),
				}}
				play(t, script{primary: []chaos.Step{skewed, {}}}, func(s *stage) {
					r := s.ask()
					s.whole(r, 0, healthy)
					s.asked(2, 0)
					between(s, "wait", r.waited(), 2*time.Second, 2400*time.Millisecond)
				})
			})
		}
	}},
}

// one is a script of one step, for good.
func one(s chaos.Step) []chaos.Step { return []chaos.Step{s} }

// playRefusals plays a script in the protocols that have a word for a refusal.
func playRefusals(t *testing.T, s script, test func(*stage)) {
	t.Helper()
	for _, p := range protocols {
		if p != ninelives.Gemini {
			playIn(t, p, s, test)
		}
	}
}

// withTool is a request that offers a tool.
func withTool() *ninelives.Request {
	req := ninelives.Prompt("Write the file.")
	req.Tools = []ninelives.Tool{{Name: "write_file", Description: "Writes a file.",
		Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`)}}
	return req
}

// calls holds that an answer is these calls of the tool, whole.
func (s *stage) calls(r told, arguments ...string) {
	s.Helper()
	if r.resp == nil {
		s.Fatalf("no answer: %v\n%s", r.err, r.kinds())
	}
	var got []string
	ids := map[string]bool{}
	for _, p := range r.resp.Message.Parts {
		if c, ok := p.(ninelives.ToolCall); ok {
			equal(s, "tool", c.Name, "write_file")
			got = append(got, string(c.Arguments))
			ids[c.ID] = true
		}
	}
	equal(s, "arguments", got, arguments)
	equal(s, "ids", len(ids), len(arguments))
	equal(s, "finish", r.resp.Finish, ninelives.FinishToolCalls)
}

// nothing holds that answers without anything in them, each of so long, were
// asked for once more, nudged twice, and then left to the fallback.
func (s *stage) nothing(r told, took time.Duration) {
	s.Helper()
	s.whole(r, 1, 4*took+healthy)
	s.asked(4, 1)
	equal(s, "waits", r.waited(), 0)
	equal(s, "steps", r.kinds(), "plan attempt fault retry attempt fault nudge attempt fault nudge attempt fault failover attempt switch")
	for _, f := range r.faults() {
		equal(s, "class", f.Class, ninelives.ClassEmpty)
	}
}

// canceled holds that a call ended as its caller left, at that time.
func (s *stage) canceled(r told, at time.Duration) {
	s.Helper()
	equal(s, "took", r.took, at)
	var f *ninelives.Fault
	if !errors.Is(r.err, context.Canceled) || !errors.As(r.err, &f) || f.Class != ninelives.ClassCanceled {
		s.Errorf("the error of a cancelled call: %v", r.err)
	}
}

// faults are the faults that were told.
func (r told) faults() []*ninelives.Fault {
	var list []*ninelives.Fault
	for _, n := range r.notices {
		if n.Kind == ninelives.NoticeFault {
			list = append(list, n.Fault)
		}
	}
	return list
}
