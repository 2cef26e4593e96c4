package heal

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// ward is a random history of attempts at candidates that share places.
type ward struct {
	h     *Health
	now   time.Time
	who   []ninelives.Candidate
	stays []*wardStay
}

type wardStay struct {
	who   ninelives.Candidate
	leave func(Verdict)
	retry bool
}

func drawWard(t *rapid.T) *ward {
	p := DefaultPolicy()
	p.Limit = Limit{} // queues are a matter of goroutines: see limit_test.go
	if rapid.Bool().Draw(t, "preset") {
		p.Probe = ProbePolicy{Before: 30 * time.Second}
	}
	w := &ward{h: NewHealth(&p), now: noon}
	for _, model := range []string{"a", "b"} {
		for _, key := range []string{"k1", "k2"} {
			w.who = append(w.who, ninelives.Candidate{Provider: "p", Model: model, Key: key, Host: "h"})
		}
	}
	w.who = append(w.who, ninelives.Candidate{Provider: "q", Model: "a", Host: "h"})
	return w
}

func (w *ward) drawFault(t *rapid.T) Verdict {
	classes := []ninelives.Class{
		ninelives.ClassRateLimit, ninelives.ClassBilling, ninelives.ClassAuth, ninelives.ClassOverloaded,
		ninelives.ClassTimeout, ninelives.ClassNetwork, ninelives.ClassModelNotFound, ninelives.ClassFormat,
		ninelives.ClassRefusal, ninelives.ClassStreamBroken, ninelives.ClassEmpty, ninelives.ClassUnknown,
	}
	f := &ninelives.Fault{
		Class:  rapid.SampledFrom(classes).Draw(t, "class"),
		Scope:  rapid.SampledFrom([]ninelives.Scope{"", "", "", ninelives.ScopeRequest, ninelives.ScopeKey, ninelives.ScopeHost}).Draw(t, "scope"),
		Status: rapid.SampledFrom([]int{0, 429, 503}).Draw(t, "status"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "hint") {
	case 0:
		f.RetryAfter = time.Duration(rapid.IntRange(1, 200).Draw(t, "after")) * time.Second
	case 1:
		f.ResetAt = w.now.Add(time.Duration(rapid.IntRange(-50, 200).Draw(t, "reset")) * time.Second)
	}
	return Verdict{Kind: VerdictFailed, Fault: f, GaveUp: rapid.Bool().Draw(t, "gave up"), Now: w.now}
}

// enter begins an attempt and checks what must hold of those that may begin.
func (w *ward) enter(t *rapid.T, probe bool) *wardStay {
	who := rapid.SampledFrom(w.who).Draw(t, "candidate")
	was := map[*place]place{}
	for _, p := range w.h.places {
		was[p] = *p
	}
	standing := w.h.Standing(who, w.now)
	s := &wardStay{who: who, retry: rapid.Bool().Draw(t, "retry")}
	enter := w.h.Enter
	if s.retry {
		enter = w.h.Retry
	}
	leave, err := enter(context.Background(), who, w.now, probe)
	switch {
	case s.retry && errors.Is(err, ErrRetryBudget):
		return nil
	case errors.Is(err, ErrProbed):
		if !probe || standing.Healthy() || standing.CanProbe(w.now) || w.h.NeedsSyntheticProbe(who, w.now) {
			t.Fatalf("no probe although %+v", standing)
		}
		return nil
	case err != nil:
		t.Fatal(err)
	}
	s.leave = leave
	if probe && !standing.Healthy() {
		for _, p := range w.h.entry(who).places {
			if was := was[p]; was.rest.resting(w.now) {
				if was.probe.taken {
					t.Fatalf("a second probe of %s", p.scope)
				}
				if w.now.Before(was.rest.hint) {
					t.Fatalf("a probe of %s %v before the provider's hint", p.scope, was.rest.hint.Sub(w.now))
				}
				if was.rest.probe == ProbeNone {
					t.Fatalf("a probe of %s, which waits for a change", p.scope)
				}
			}
		}
	}
	return s
}

// settle ends an attempt and checks what its verdict may change.
func (w *ward) settle(t *rapid.T, s *wardStay, v Verdict) {
	was := map[*place]place{}
	for _, p := range w.h.places {
		was[p] = *p
	}
	s.leave(v)
	for p, was := range was {
		if v.Kind != VerdictOK && (v.Fault == nil || v.Fault.Status == 0 || p.scope != ninelives.ScopeHost) && p.rest.until.Before(was.rest.until) {
			t.Fatalf("%s: its rest ended at +%v, now at +%v", p.scope, was.rest.until.Sub(noon), p.rest.until.Sub(noon))
		}
		if v.Kind == VerdictFailed && p.rest.resting(w.now) && was.rest.resting(w.now) && p.rest.hint.Before(was.rest.hint) {
			t.Fatalf("%s: a hint was forgotten", p.scope)
		}
		if f := v.Fault; f != nil && (f.Scope == ninelives.ScopeRequest || f.Class == ninelives.ClassFormat && f.Scope != ninelives.ScopeHost || f.Class == ninelives.ClassRefusal || f.Class == ninelives.ClassEmpty) {
			if !was.rest.resting(w.now) && p.rest.resting(w.now) {
				t.Fatalf("%s rests for a fault of the request", p.scope)
			}
		}
	}
}

func TestOverRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWard(t)
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			},
			"an attempt begins": func(t *rapid.T) {
				if s := w.enter(t, rapid.Bool().Draw(t, "probe")); s != nil {
					w.stays = append(w.stays, s)
				}
			},
			"a probe is cancelled": func(t *rapid.T) {
				before := w.standings()
				if s := w.enter(t, true); s != nil {
					s.leave(Verdict{Kind: VerdictCanceled, Now: w.now})
				}
				for i, after := range w.standings() {
					after.Share = before[i].Share // the attempt counted for the load
					if after != before[i] {
						t.Fatalf("a cancelled probe left a trace:\nbefore %+v\nafter  %+v", before[i], after)
					}
				}
			},
			"an attempt ends": func(t *rapid.T) {
				if len(w.stays) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(w.stays)-1).Draw(t, "stay")
				s := w.stays[i]
				w.stays = append(w.stays[:i], w.stays[i+1:]...)
				v := Verdict{Kind: VerdictOK, Now: w.now}
				switch rapid.IntRange(0, 3).Draw(t, "verdict") {
				case 0:
					v.Kind = VerdictCanceled
				case 1, 2:
					v = w.drawFault(t)
				}
				w.settle(t, s, v)
			},
			"a key is changed": func(t *rapid.T) {
				w.h.Clear(rapid.SampledFrom(w.who).Draw(t, "candidate"), w.now)
			},
			"": w.check,
		})
	})
}

func (w *ward) standings() []Standing {
	var all []Standing
	for _, c := range w.who {
		all = append(all, w.h.Standing(c, w.now))
	}
	return all
}

// check is what holds at any time.
func (w *ward) check(t *rapid.T) {
	for _, c := range w.who {
		s := w.h.Standing(c, w.now)
		if s.Healthy() {
			if s.Share <= 0 || s.Class != "" || !s.Until.IsZero() || s.CanProbe(w.now) {
				t.Fatalf("healthy, but %+v", s)
			}
			continue
		}
		if !s.Until.After(w.now) || s.Since.After(w.now) || s.Available() || s.Reason == "" || s.Class == "" || s.Probe == "" {
			t.Fatalf("resting, but %+v", s)
		}
		if s.State == StateProbing && s.CanProbe(w.now) {
			t.Fatalf("a second probe is offered: %+v", s)
		}
		if s.Back(w.now).Before(w.now) {
			t.Fatalf("back before now: %+v", s)
		}
	}
	inFlight, retrying := map[ninelives.Candidate]int{}, map[ninelives.Candidate]int{}
	for _, s := range w.stays {
		inFlight[s.who]++
		if s.retry {
			retrying[s.who]++
		}
	}
	for _, row := range w.h.Snapshot(w.now) {
		if row.InFlight != inFlight[row.Candidate] {
			t.Fatalf("%s: %d in flight, want %d", row.Candidate.Name(), row.InFlight, inFlight[row.Candidate])
		}
		if got := w.h.entry(row.Candidate).retries.inFlight; got != retrying[row.Candidate] {
			t.Fatalf("%s: %d retries in flight, want %d", row.Candidate.Name(), got, retrying[row.Candidate])
		}
	}
}
