package heal

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestSituationExplainsItsDecision(t *testing.T) {
	no := false
	s := situation(
		contender("a", func(c *Contender) {
			c.Candidate.Window, c.Candidate.WindowSource = 200_000, "exact"
			c.Repairs = []ninelives.Repair{{Name: "drop_parameter", Param: "seed"}}
		}),
		contender("b", resting(ninelives.ClassOverloaded, ProbeTraffic, 7500*time.Millisecond, 15*time.Second), func(c *Contender) {
			c.Candidate.Tools, c.Candidate.Key = false, "5ec4e7"
		}),
	).after(Attempt{Candidate: 0, Released: true, Continuable: true, Began: noonTime.Add(-1500 * time.Millisecond),
		Usage: ninelives.Usage{Input: 1200, Output: 7}, Fault: &ninelives.Fault{Class: ninelives.ClassRateLimit, Phase: ninelives.PhaseStream,
			Status: 429, RetryAfter: 2 * time.Second, ShouldRetry: &no, Message: "slow down"}})
	s.Mode, s.Facts.Input, s.Facts.Tools = ModeContinue, 1234, true
	want := `at 2030-01-01T12:00:00Z, deadline +1m0s, mode continue, draw 0.5, lot 0.5
request of 1234 tokens, tools
candidate 0 a/m healthy, window 200000 (exact), repair drop parameter seed
candidate 1 b/m cooling, until +15s, overloaded, probe traffic, from +7.5s, share 0, no tools
attempt 1 at 0 faulted, rate_limit, in stream, HTTP 429, hint 2s, should retry: false, released, continuable, began -1.5s, ended +0s, 1200 tokens in, 7 tokens out
`
	for _, verb := range []string{"%v", "%+v", "%s"} {
		if got := fmt.Sprintf(verb, s); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", verb, got, want)
		}
	}
	p := DefaultPolicy()
	d := Decide(&p, s)
	equal(t, "the decision that it explains", []any{d.Do, d.Candidate, d.Wait, d.Change.Prompt},
		[]any{ActStart, 1, 7500 * time.Millisecond, PromptContinue})
}

// Whatever a decision may depend on is written: two situations that differ in
// one thing are written differently.
func TestSituationLeavesNothingOutThatCounts(t *testing.T) {
	base := func() Situation {
		s := situation(contender("a"), contender("b")).after(failed(0, ninelives.ClassOverloaded))
		s.Attempts[0].Fault = &ninelives.Fault{}
		return s
	}
	plain := base().String()
	try := func(what string, s Situation) {
		if s.String() == plain {
			t.Errorf("%s is not written", what)
		}
	}
	vary := func(prefix string, get func(*Situation) reflect.Value, skip ...string) {
		typ := get(&Situation{Candidates: base().Candidates, Attempts: base().Attempts}).Type()
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			if strings.Contains(" "+strings.Join(skip, " ")+" ", " "+name+" ") {
				continue
			}
			s := base()
			f := get(&s).Field(i)
			switch f.Interface().(type) {
			case time.Time:
				f.Set(reflect.ValueOf(noonTime.Add(12345 * time.Second)))
			case *bool:
				f.Set(reflect.ValueOf(new(bool)))
			case []ninelives.Repair:
				f.Set(reflect.ValueOf([]ninelives.Repair{{Name: "x"}}))
			default:
				switch f.Kind() {
				case reflect.Bool:
					f.SetBool(!f.Bool())
				case reflect.Int, reflect.Int64:
					f.SetInt(f.Int() + 7)
				case reflect.Float64:
					f.SetFloat(f.Float() + 0.125)
				case reflect.String:
					f.SetString("other")
				default:
					continue // its fields are varied by themselves
				}
			}
			try(prefix+name, s)
		}
	}
	vary("Situation.", func(s *Situation) reflect.Value { return reflect.ValueOf(s).Elem() })
	vary("Facts.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Facts).Elem() })
	vary("Contender.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Candidates[1]).Elem() })
	vary("Standing.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Candidates[1].Standing).Elem() },
		"Reason", "Since") // told, and no decision's cause
	vary("Candidate.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Candidates[1].Candidate).Elem() },
		"Key", "Account", "Host", "Protocol") // whose standing it is, and not for printing
	vary("Capabilities.", func(s *Situation) reflect.Value {
		s.Candidates[1].Candidate.Window = 1 // without one its source says nothing
		return reflect.ValueOf(&s.Candidates[1].Candidate.Capabilities).Elem()
	}, "Files", "Prefill", "Schema", "Replay", "ReplayField") // no decision's cause
	vary("Attempt.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Attempts[0]).Elem() })
	vary("Change.", func(s *Situation) reflect.Value { return reflect.ValueOf(&s.Attempts[0].Change).Elem() })
	vary("Fault.", func(s *Situation) reflect.Value { return reflect.ValueOf(s.Attempts[0].Fault).Elem() },
		"Scope", "Type", "Message", "Candidate", "RequestID", "Billed", "Hint") // told, and no decision's cause
}
