package heal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// presets are the policies that have a name.
var presets = []struct {
	name string
	make func() Policy
}{
	{"default", DefaultPolicy},
	{"interactive", Interactive},
	{"background", func() Policy { p := DefaultPolicy(); return p.Background() }},
	{"catbuddy", Catbuddy},
	{"codebuddy", Codebuddy},
	{"hardened", Hardened},
}

// Preset finds a policy by its name: default, interactive, background,
// catbuddy, codebuddy or hardened.
func Preset(name string) (Policy, error) {
	names := make([]string, 0, len(presets))
	for _, p := range presets {
		if p.name == name {
			return p.make(), nil
		}
		names = append(names, p.name)
	}
	return Policy{}, fmt.Errorf("there is no preset %q: use one of %s", name, strings.Join(names, ", "))
}

// Interactive is the default policy for someone who watches: a candidate that
// is silent for 10 s gets company by the next one, and the first to answer wins.
func Interactive() Policy {
	p := DefaultPolicy()
	p.Name = "interactive"
	p.Clocks.SoftFirst = 10 * time.Second
	return p
}

// Background is the policy for work that nobody waits for (persistent mode):
// no cap on attempts, waits up to a minute, and an end after ten identical
// failures in a row; set Budget.Same to 0 for never.
//
// Source: design 000 §3.1 (persistent); the ten and the minute are ours.
func (p Policy) Background() Policy {
	p.Name = strings.TrimPrefix(p.Name+" background", "default ")
	p.Persistent = true
	p.Budget.Faults, p.Budget.Tries, p.Budget.Requests = 0, 0, 0
	p.Budget.Same = 10
	p.Budget.Wait = time.Minute
	p.Backoff.Cap = time.Minute
	p.Buffered, p.Streamed = 0, 0
	return p
}

// Catbuddy is source design 000: one candidate is asked three times, 1 and
// 2 seconds apart (4 before a fourth); with several, every failure moves on at
// once, whatever it is, as long as there is another. Nothing rests.
//
// Source: design 000 §2.2 (switch whatever it is), §3.1 (1/2/4 s × 3,
// retry-after as it is), §3.2 (two nudges), §3.3 (three continuations).
func Catbuddy() Policy {
	p := DefaultPolicy()
	p.Name = "catbuddy"
	p.Rules = map[ninelives.Class]Rule{}
	for class := range DefaultPolicy().Rules {
		p.Rules[class] = Rule{Next: NextAtOnce}
	}
	for _, class := range []ninelives.Class{ninelives.ClassRateLimit, ninelives.ClassOverloaded, ninelives.ClassTimeout,
		ninelives.ClassNetwork, ninelives.ClassStreamBroken, ninelives.ClassUnknown} {
		p.Rules[class] = Rule{Next: NextAtOnce, Again: true}
	}
	p.Rules[ninelives.ClassTruncated] = Rule{Next: NextNever}
	p.Rules[ninelives.ClassCanceled] = Rule{Next: NextNever}
	p.Rules[ninelives.ClassGuard] = Rule{Next: NextNever}
	p.Budget = Budget{Tries: 3}
	p.Backoff = Backoff{Delays: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}}
	p.HintJitter = 0
	p.Breaker = Breaker{}
	p.Content.Empty, p.Content.EmptyPlain, p.Content.EmptyNudges = 2, 0, 2
	p.Content.Continuations = 3
	p.Content.ContinueAlways = true
	return p
}

// Codebuddy is source design 001: transient failures are retried twice, 1.5
// and 3 seconds apart, each time with a word to the model about what failed;
// then the next candidate takes over and the failed one rests by its table,
// probed 30 s before the end of its rest.
//
// Source: design 001, layer 1 (cooldowns, probe) and layer 2 (retries, nudge).
func Codebuddy() Policy {
	p := DefaultPolicy()
	p.Name = "codebuddy"
	transient := func(cooldown time.Duration) Rule {
		return Rule{Same: 2, Next: NextThen, Cooldown: cooldown, Scope: ninelives.ScopeModel, Probe: ProbeTraffic}
	}
	permanent := func(cooldown time.Duration, scope ninelives.Scope) Rule {
		return Rule{Next: NextAtOnce, Cooldown: cooldown, Scope: scope, Probe: ProbeTraffic}
	}
	p.Rules[ninelives.ClassAuth] = permanent(10*time.Minute, ninelives.ScopeKey)
	p.Rules[ninelives.ClassRateLimit] = transient(time.Minute)
	p.Rules[ninelives.ClassBilling] = permanent(30*time.Minute, ninelives.ScopeAccount)
	p.Rules[ninelives.ClassTimeout] = transient(30 * time.Second)
	p.Rules[ninelives.ClassNetwork] = transient(30 * time.Second)
	p.Rules[ninelives.ClassOverloaded] = transient(2 * time.Minute)
	p.Rules[ninelives.ClassModelNotFound] = permanent(time.Hour, ninelives.ScopeModel)
	p.Rules[ninelives.ClassFormat] = Rule{Next: NextNever}
	p.Rules[ninelives.ClassStreamBroken] = transient(30 * time.Second)
	p.Rules[ninelives.ClassUnknown] = permanent(30*time.Second, ninelives.ScopeModel)
	p.Budget = Budget{Tries: 3, Requests: 10}
	p.Backoff = Backoff{Delays: []time.Duration{1500 * time.Millisecond, 3 * time.Second}}
	p.HintJitter = 0
	p.Breaker = Breaker{}
	p.Probe = ProbePolicy{Before: 30 * time.Second}
	p.Nudges = true
	return p
}

// Hardened is source design 003: four tries with full jitter (500 ms, at most
// 8 s), 12 s to the first token, 20 s between tokens, 30 s in all, a breaker
// that opens for 30 s after five failures, and one probe after it.
//
// Source: design 003, steps 1 (12 s, 30 s), 2 (4 tries, jitter), 3 (one
// repair), 4 (two fallbacks), 5 (20 s) and 6 (5 failures, 30 s).
func Hardened() Policy {
	p := DefaultPolicy()
	p.Name = "hardened"
	for _, class := range []ninelives.Class{ninelives.ClassRateLimit, ninelives.ClassOverloaded, ninelives.ClassTimeout,
		ninelives.ClassNetwork, ninelives.ClassStreamBroken, ninelives.ClassUnknown} {
		p.Rules[class] = Rule{Same: 3, Next: NextThen, Again: true, Scope: ninelives.ScopeModel, Breaks: true, Probe: ProbeTraffic}
	}
	for _, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassBilling, ninelives.ClassModelNotFound} {
		p.Rules[class] = Rule{Next: NextAtOnce}
	}
	p.Rules[ninelives.ClassFormat] = Rule{Next: NextNever}
	p.Budget = Budget{Tries: 4, Others: 2, Requests: 10}
	p.Backoff = Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second}
	p.Buffered, p.Streamed = 30*time.Second, 30*time.Second
	p.Clocks.Headers, p.Clocks.HeadersSlope = 12*time.Second, 0
	p.Clocks.FirstEvent, p.Clocks.FirstSlope = 12*time.Second, 0
	p.Clocks.Liveness, p.Clocks.Progress = 20*time.Second, 20*time.Second
	p.HintJitter = 0
	p.Breaker = Breaker{Consecutive: 5, Open: 30 * time.Second, HalfOpen: true}
	p.Probe = ProbePolicy{From: 1}
	p.Content.Continuations = 1
	return p
}

// PresetNames lists the presets, the default first.
func PresetNames() []string {
	names := make([]string, 0, len(presets))
	for _, p := range presets {
		names = append(names, p.name)
	}
	return slices.Clip(names)
}
