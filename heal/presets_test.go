package heal

import (
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Every number and rule of source design 000.
func TestCatbuddyIsDesign000(t *testing.T) {
	p := Catbuddy()
	equal(t, "delays", p.Backoff.Delays, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second})
	equal(t, "tries", p.Budget.Tries, 3)
	equal(t, "others", p.Budget.Others, 0) // the whole chain
	equal(t, "nudges for empty answers", []int{p.Content.Empty, p.Content.EmptyPlain, p.Content.EmptyNudges}, []int{2, 0, 2})
	equal(t, "nudge", p.Content.NudgePrompt, "Please provide your response to the user based on the conversation above.")
	equal(t, "continuations", p.Content.Continuations, 3)
	equal(t, "continuation", p.Content.ContinuePrompt, "Output limit reached. Continue exactly where you left off — no recap, no apology.")
	for class, rule := range p.Rules {
		switch class {
		case ninelives.ClassCanceled, ninelives.ClassGuard, ninelives.ClassTruncated:
			equal(t, string(class), rule, Rule{Next: NextNever})
			continue
		}
		equal(t, string(class)+" moves on at once", rule.Next, NextAtOnce)
		equal(t, string(class)+" is not retried while another can answer", rule.Same, 0)
		equal(t, string(class)+" rests nobody", rule.Cooldown, 0)
	}

	t.Run("one candidate, three tries, 1 and 2 seconds apart", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", fails(ninelives.ClassUnknown))
			ask(t, healed(a, preset(t, "catbuddy")))
			equal(t, "asked", a.since(t0), []time.Duration{0, time.Second, 3 * time.Second})
		})
	})
	t.Run("retry-after in place of the delay, as it is", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", hinted(ninelives.ClassRateLimit, 5*time.Second), says("hello"))
			ask(t, healed(a, preset(t, "catbuddy")))
			equal(t, "asked", a.since(t0), []time.Duration{0, 5 * time.Second})
		})
	})
	t.Run("what is permanent is not retried", func(t *testing.T) {
		for _, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassFormat, ninelives.ClassBilling, ninelives.ClassModelNotFound} {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", fails(class))
				ask(t, healed(a, preset(t, "catbuddy")))
				equal(t, string(class), len(a.asked), 1)
			})
		}
	})
	t.Run("a long chain is tried to its end, whatever fails", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			var chain []ninelives.Model
			for i, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassBilling, ninelives.ClassFormat,
				ninelives.ClassContentFilter, ninelives.ClassContextLength, ninelives.ClassTimeout} {
				chain = append(chain, model(string(rune('b'+i)), fails(class)))
			}
			last := model("z", says("hello"))
			s := ask(t, healed(model("a", fails(ninelives.ClassRateLimit)), Fallback(chain...), Fallback(last), preset(t, "catbuddy")))
			equal(t, "text", s.text, "hello")
			equal(t, "attempts", s.resp.Attempts, 8)
			equal(t, "took", time.Since(t0), 0)
		})
	})
	t.Run("when all fail the message says what to do", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			s := ask(t, healed(model("a", fails(ninelives.ClassAuth)), Fallback(model("b", fails(ninelives.ClassAuth))), preset(t, "catbuddy")))
			if !strings.HasPrefix(s.err.Error(), "All providers failed. Please check your API keys and network connection.") {
				t.Error(s.err)
			}
		})
	})
	t.Run("an empty answer is nudged twice", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", step{end(empty())})
			ask(t, healed(a, preset(t, "catbuddy")))
			equal(t, "asked", a.since(t0), []time.Duration{0, 0, 0})
			for _, req := range a.requests[1:] {
				equal(t, "nudge", req.Messages[len(req.Messages)-1].Text(), NudgePrompt)
			}
		})
	})
	t.Run("a cut answer is continued even under the caller's limit", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", step{text("one "), end(cut("one "))}, says("two"))
			req := ninelives.Prompt("count")
			req.MaxTokens = 100
			s := watch(t.Context(), healed(a, preset(t, "catbuddy")), req)
			equal(t, "text", s.resp.Text(), "one two")
		})
	})
}

// Every number and rule of source design 001, layers 1 and 2.
func TestCodebuddyIsDesign001(t *testing.T) {
	p := Codebuddy()
	for class, want := range map[ninelives.Class]time.Duration{
		ninelives.ClassAuth:          10 * time.Minute,
		ninelives.ClassRateLimit:     time.Minute,
		ninelives.ClassBilling:       30 * time.Minute,
		ninelives.ClassTimeout:       30 * time.Second,
		ninelives.ClassOverloaded:    2 * time.Minute,
		ninelives.ClassModelNotFound: time.Hour,
		ninelives.ClassFormat:        0,
		ninelives.ClassUnknown:       30 * time.Second,
	} {
		equal(t, "cooldown of "+string(class), p.Rules[class].Cooldown, want)
	}
	equal(t, "format never fails over", p.Rules[ninelives.ClassFormat].Next, NextNever)
	equal(t, "probe before the end", p.Probe.Before, 30*time.Second)
	equal(t, "delays", p.Backoff.Delays, []time.Duration{1500 * time.Millisecond, 3 * time.Second})
	equal(t, "retries explain", p.Nudges, true)
	for _, class := range []ninelives.Class{ninelives.ClassTimeout, ninelives.ClassNetwork, ninelives.ClassRateLimit,
		ninelives.ClassOverloaded, ninelives.ClassStreamBroken} {
		equal(t, "retries of "+string(class), p.Rules[class].Same, 2)
	}
	for _, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassBilling, ninelives.ClassGuard} {
		equal(t, "retries of "+string(class), p.Rules[class].Same, 0)
	}
	t.Run("the only candidate gets its three tries as well", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", fails(ninelives.ClassOverloaded))
			ask(t, healed(a, preset(t, "codebuddy")))
			equal(t, "asked", a.since(t0), []time.Duration{0, ms(1500), ms(4500)})
		})
	})
	t.Run("a rested primary is probed 30 s before the end of its rest", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a, b := model("a", fails(ninelives.ClassAuth), says("back")), model("b", says("hello"))
			h := healed(a, Fallback(b), preset(t, "codebuddy"))
			equal(t, "first", ask(t, h).text, "hello")
			time.Sleep(9*time.Minute + 29*time.Second)
			equal(t, "a second before", ask(t, h).text, "hello")
			time.Sleep(time.Second)
			equal(t, "then", ask(t, h).text, "back")
		})
	})
	t.Run("a guard's stop is never retried", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a, b := model("a", fails(ninelives.ClassGuard)), model("b", says("hello"))
			ask(t, healed(a, Fallback(b), preset(t, "codebuddy")))
			equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 0})
		})
	})
}

// Every number of source design 003; its nine verifications are in hardened_test.go.
func TestHardenedIsDesign003(t *testing.T) {
	p := Hardened()
	equal(t, "tries", p.Budget.Tries, 4)
	equal(t, "base", p.Backoff.Base, 500*time.Millisecond)
	equal(t, "cap", p.Backoff.Cap, 8*time.Second)
	equal(t, "an attempt until its first token", p.Clocks.FirstEvent, 12*time.Second)
	equal(t, "and until its headers", p.Clocks.Headers, 12*time.Second)
	equal(t, "idle", p.Clocks.Progress, 20*time.Second)
	equal(t, "in all, buffered", p.Buffered, 30*time.Second)
	equal(t, "in all, streamed", p.Streamed, 30*time.Second)
	equal(t, "breaker", p.Breaker, Breaker{Consecutive: 5, Open: 30 * time.Second, HalfOpen: true})
	equal(t, "hints as they are", p.HintJitter, 0.0)
	equal(t, "half-open after it", p.Probe.From, 1.0)
	equal(t, "fallbacks", p.Budget.Others, 2)
	equal(t, "structured repairs", p.Content.Repairs, 1)
	equal(t, "retries of a refusal", p.Rules[ninelives.ClassRefusal].Same, 0)
	equal(t, "refusal", p.Rules[ninelives.ClassRefusal].Next, NextOnce)
	for _, class := range []ninelives.Class{ninelives.ClassFormat, ninelives.ClassAuth, ninelives.ClassContextLength} {
		equal(t, "retries of "+string(class), p.Rules[class].Same, 0)
	}
	t.Run("full jitter between nothing and the doubling ceiling", func(t *testing.T) {
		for n, ceiling := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
			equal(t, "least", p.Backoff.wait(n, 0), 0)
			equal(t, "half", p.Backoff.wait(n, 0.5), ceiling/2)
		}
	})
}

func TestInteractiveStartsTheNextAfterTenSeconds(t *testing.T) {
	equal(t, "soft limit", Interactive().Clocks.SoftFirst, 10*time.Second)
	p := Interactive()
	equal(t, "with a large prompt", p.hedgeAfter(ninelives.Candidate{}, Facts{Input: 100_000}), 30*time.Second)
	equal(t, "for a local model", p.hedgeAfter(ninelives.Candidate{Local: true, LocalModel: true}, Facts{}), 50*time.Second)
	equal(t, "for a proxy on this machine", p.hedgeAfter(ninelives.Candidate{Local: true}, Facts{}), 10*time.Second)
}

func TestBackgroundHasNoCapButTenEqualFailures(t *testing.T) {
	p, err := Preset("background")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "budget", p.Budget, Budget{Others: 2, Same: 10, Wait: time.Minute})
	equal(t, "longest wait", p.Backoff.Cap, time.Minute)
}

func TestUnknownPresetNamesTheKnownOnes(t *testing.T) {
	_, err := Preset("tomcat")
	if err == nil || err.Error() != `there is no preset "tomcat": use one of default, interactive, background, catbuddy, codebuddy, hardened` {
		t.Error(err)
	}
}

func TestDefaultPolicyHoldsTheDesignsNumbers(t *testing.T) {
	p := DefaultPolicy()
	equal(t, "budget", p.Budget, Budget{Faults: 4, Others: 2, Requests: 10})
	equal(t, "backoff", p.Backoff, Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second})
	equal(t, "jitter on hints", p.HintJitter, 0.2)
	equal(t, "content", []int{p.Content.Empty, p.Content.Continuations, p.Content.Repairs}, []int{3, 3, 1})
	equal(t, "deadlines", []time.Duration{p.Buffered, p.Streamed}, []time.Duration{2 * time.Minute, 10 * time.Minute})
	equal(t, "hold", p.Hold, Hold{Events: 64, Bytes: 256 << 10, For: 10 * time.Second, Refusal: 16 << 10})
	equal(t, "a class per row", len(p.Rules), 18)
}
