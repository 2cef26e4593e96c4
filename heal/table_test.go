package heal

import (
	"errors"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Every row of the policy table, once with a candidate that can take over and
// once without. Jitter is half of what it could be, so backoffs are 250 ms,
// 500 ms and 1 s.
func TestPolicyTable(t *testing.T) {
	const switched, surfaced = true, false
	for _, row := range []struct {
		class ninelives.Class
		// How often and when the first candidate is asked with another one
		// behind it, whether that takes over, and for how long the first rests.
		beside []time.Duration
		over   bool
		rests  time.Duration
		// The same when it is the only one.
		alone []time.Duration
	}{
		{ninelives.ClassRateLimit, []time.Duration{0, ms(250), ms(750)}, switched, time.Minute, []time.Duration{0, ms(250), ms(750), ms(1750)}},
		{ninelives.ClassBilling, []time.Duration{0}, switched, 30 * time.Minute, []time.Duration{0}},
		{ninelives.ClassAuth, []time.Duration{0}, switched, 10 * time.Minute, []time.Duration{0}},
		{ninelives.ClassOverloaded, []time.Duration{0, ms(250)}, switched, 15 * time.Second, []time.Duration{0, ms(250), ms(750), ms(1750)}},
		{ninelives.ClassTimeout, []time.Duration{0}, switched, 30 * time.Second, []time.Duration{0, ms(250), ms(750), ms(1750)}},
		{ninelives.ClassNetwork, []time.Duration{0, 0}, switched, 30 * time.Second, []time.Duration{0, 0, ms(500), ms(1500)}},
		{ninelives.ClassModelNotFound, []time.Duration{0}, switched, time.Hour, []time.Duration{0}},
		{ninelives.ClassContextLength, []time.Duration{0}, switched, 0, []time.Duration{0}}, // no window is known here
		{ninelives.ClassContentFilter, []time.Duration{0}, surfaced, 0, []time.Duration{0}},
		{ninelives.ClassRefusal, []time.Duration{0}, switched, 0, []time.Duration{0}},
		{ninelives.ClassFormat, []time.Duration{0}, switched, 0, []time.Duration{0}},
		{ninelives.ClassStreamBroken, []time.Duration{0, ms(250)}, switched, 0, []time.Duration{0, ms(250), ms(750), ms(1750)}},
		{ninelives.ClassUnknown, []time.Duration{0, ms(250)}, switched, 30 * time.Second, []time.Duration{0, ms(250), ms(750), ms(1750)}},
		{ninelives.ClassGuard, []time.Duration{0}, surfaced, 0, []time.Duration{0}},
		{"a class from the future", []time.Duration{0, ms(250)}, switched, 30 * time.Second, []time.Duration{0, ms(250), ms(750), ms(1750)}},
	} {
		t.Run(string(row.class), func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a, b := model("a", fails(row.class)), model("b", says("hello"))
				h := healed(a, Fallback(b))
				s := ask(t, h)
				equal(t, "first asked", a.since(t0), row.beside)
				equal(t, "other takes over", len(b.asked) == 1 && s.text == "hello", row.over)
				rests := h.Health().Standing(a.candidate, time.Now()).Until
				if !rests.IsZero() || row.rests != 0 {
					equal(t, "rests", rests.Sub(time.Now()), row.rests)
				}
			})
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", fails(row.class))
				s := ask(t, healed(a))
				equal(t, "asked alone", a.since(t0), row.alone)
				equal(t, "ends", s.ends, 1)
				var f *ninelives.Fault
				if !errors.As(s.err, &f) || f.Class != row.class {
					t.Errorf("got %v, want the fault of class %s", s.err, row.class)
				}
				var e *Exhausted
				if errors.As(s.err, &e) != (row.rests > 0 || row.class == ninelives.ClassStreamBroken) {
					t.Errorf("%T: a fault of the request speaks for itself, any other comes with its trail", s.err)
				}
			})
		})
	}
}

// sized gives a candidate a context window.
func sized(m *scripted, window int) *scripted {
	m.candidate.Window, m.candidate.WindowSource = window, "exact"
	return m
}

func TestOverflowGoesOnlyToALargerWindow(t *testing.T) {
	told := fault(ninelives.ClassContextLength)
	told.Window, told.Requested = 100, 300
	for _, tc := range []struct {
		name  string
		fault *ninelives.Fault
		other int
		asked int
	}{
		{"smaller", fault(ninelives.ClassContextLength), 100, 0},
		{"equal", fault(ninelives.ClassContextLength), 200, 0},
		{"larger", fault(ninelives.ClassContextLength), 400, 1},
		{"unknown", fault(ninelives.ClassContextLength), 0, 1},
		{"larger than the window that was told", told, 400, 1},
		{"larger, but too small for what was asked", told, 250, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a, b := sized(model("a", with(tc.fault)), 200), sized(model("b", says("hello")), tc.other)
				s := ask(t, healed(a, Fallback(b)))
				equal(t, "a asked", len(a.asked), 1)
				equal(t, "b asked", len(b.asked), tc.asked)
				var f *ninelives.Fault
				if tc.asked == 0 && (!errors.As(s.err, &f) || f.Class != ninelives.ClassContextLength) {
					t.Errorf("it is not handed up for compaction: %v", s.err)
				}
			})
		})
	}
}

func TestWindowThatAProviderNamedIsLearnt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassContextLength)
		f.Window = 50
		a := sized(model("a", with(f), fails(ninelives.ClassContextLength)), 200)
		b := sized(model("b", says("hello")), 100) // larger than 50, smaller than 200
		h := healed(a, Fallback(b))
		ask(t, h)
		ask(t, h)
		equal(t, "b asked", len(b.asked), 2)
	})
}

func TestWindowThatAProviderNamedNeitherWidensOneNorTouchesASetting(t *testing.T) {
	for _, tc := range []struct {
		source string
		told   int
		want   int
		learnt bool
	}{
		{"exact", 50, 50, true}, {"exact", 300, 200, false}, {"default", 300, 300, true}, {"setting", 50, 200, false},
	} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			f := fault(ninelives.ClassContextLength)
			f.Window = tc.told
			a := sized(model("a", with(f)), 200)
			a.candidate.WindowSource = tc.source
			h := healed(a)
			ask(t, h)
			at := Contender{Candidate: a.candidate}
			h.lessons.apply(&at)
			equal(t, tc.source+" window", at.Candidate.Window, tc.want)
			equal(t, tc.source+" learnt", at.Candidate.WindowSource == "learnt", tc.learnt)
		})
	}
}

func TestFormatFaultMovesOnOnceAndOnlyToAnotherProvider(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassFormat))
		sister := model("a", says("hello"))
		sister.candidate.Model = "m2"
		b, c := model("b", fails(ninelives.ClassFormat)), model("c", says("hello"))
		s := ask(t, healed(a, Fallback(sister, b, c)))
		equal(t, "asked", []int{len(a.asked), len(sister.asked), len(b.asked), len(c.asked)}, []int{1, 0, 1, 0})
		var f *ninelives.Fault
		equal(t, "class", errors.As(s.err, &f) && f.Class == ninelives.ClassFormat, true)
	})
}

// A web page in place of an answer is no complaint about the request, though it
// is one of form: anybody else is asked, also one that rests, and where nothing else comes
// the host is left alone for a while.
func TestWhatAHostAnswersInPlaceOfAProviderIsNoFaultOfTheRequest(t *testing.T) {
	page := fault(ninelives.ClassFormat)
	page.Scope, page.Status, page.Final = ninelives.ScopeHost, 200, true
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, sister := model("a", with(page)), model("a", says("hello"))
		sister.candidate.Model, sister.candidate.Key, sister.candidate.Host = "m2", "another", "elsewhere.test"
		h := healed(a, Fallback(sister))
		giveUp(t, h, sister, fault(ninelives.ClassAuth))
		for range 7 {
			equal(t, "text", ask(t, h).text, "hello")
		}
		equal(t, "asked", []int{len(a.asked), len(sister.asked)}, []int{5, 7})
		equal(t, "after", time.Since(t0), 0)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		s := ask(t, healed(model("a", with(page))))
		var e *Exhausted
		equal(t, "told as exhausted", errors.As(s.err, &e), true)
	})
}

func TestRepairIsMadeOncePerComplaintAndLearnt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		temperature := ninelives.Repair{Name: "drop_parameter", Param: "temperature"}
		roles := ninelives.Repair{Name: "merge_roles"}
		first, second := fault(ninelives.ClassFormat), fault(ninelives.ClassFormat)
		first.Repairs = []ninelives.Repair{temperature}
		second.Repairs = []ninelives.Repair{roles}
		a := model("a", with(first), with(second), says("hello"))
		h := healed(a, Fallback(model("b", says("other"))))
		s := ask(t, h)
		equal(t, "text", s.text, "hello")
		equal(t, "asked", a.since(t0), []time.Duration{0, 0, 0})
		equal(t, "repairs", a.requests[1].Attempt.Repairs, []ninelives.Repair{temperature})
		equal(t, "repairs", a.requests[2].Attempt.Repairs, []ninelives.Repair{temperature, roles})
		ask(t, h)
		equal(t, "learnt", a.requests[3].Attempt.Repairs, []ninelives.Repair{temperature, roles})
	})
}

func TestRepairThatDoesNotHelpIsNotMadeAgainNorLearnt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassFormat)
		f.Repairs = []ninelives.Repair{{Name: "merge_roles"}}
		a, b := model("a", with(f)), model("b", says("hello"))
		h := healed(a, Fallback(b))
		s := ask(t, h)
		equal(t, "a asked", len(a.asked), 2)
		equal(t, "text", s.text, "hello")
		ask(t, h)
		equal(t, "learnt", len(a.requests[2].Attempt.Repairs), 0)
	})
}

func TestRepairForOneCallIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassBilling) // "can only afford 30104" heals by asking for less
		f.Repairs = []ninelives.Repair{{Name: "clamp_max_tokens", Value: "30104", Once: true}}
		a := model("a", with(f), says("hello"))
		h := healed(a)
		s := ask(t, h)
		equal(t, "text", s.text, "hello")
		equal(t, "repaired", len(a.requests[1].Attempt.Repairs), 1)
		ask(t, h)
		equal(t, "forgotten", len(a.requests[2].Attempt.Repairs), 0)
	})
}

func TestProvidersOwnWordOnRetryingIsObeyed(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		name  string
		class ninelives.Class
		word  *bool
		asked int
	}{
		{"no", ninelives.ClassOverloaded, &no, 1},
		{"yes", ninelives.ClassModelNotFound, &yes, 4},
		{"none", ninelives.ClassModelNotFound, nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				f := fault(tc.class)
				f.ShouldRetry = tc.word
				a := model("a", with(f))
				ask(t, healed(a))
				equal(t, "asked", len(a.asked), tc.asked)
			})
		})
	}
}

func TestFinalFaultIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassNetwork) // no such host
		f.Final = true
		a, b := model("a", with(f)), model("b", with(f))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 1})
		equal(t, "took", time.Since(t0), 0)
		equal(t, "error", s.err != nil, true)
	})
}

func TestPolicyMayWidenFailoverToAnyClass(t *testing.T) {
	for _, class := range []ninelives.Class{ninelives.ClassContentFilter, ninelives.ClassContextLength, ninelives.ClassFormat, ninelives.ClassBilling} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			b := model("b", says("hello"))
			s := ask(t, healed(model("a", fails(class)), Fallback(b), preset(t, "catbuddy")))
			equal(t, string(class), s.text, "hello")
		})
	}
}

func TestNoFailoverAsksOnlyTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		p := DefaultPolicy()
		p.Failover = false
		b := model("b", says("hello"))
		s := ask(t, healed(model("a", fails(ninelives.ClassAuth)), Fallback(b), With(p)))
		equal(t, "b asked", len(b.asked), 0)
		equal(t, "error", s.err != nil, true)
	})
}
