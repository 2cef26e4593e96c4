package heal

import (
	"context"
	"errors"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestFiveFailuresInARowOpenTheCircuit(t *testing.T) {
	c := newClinic(t)
	for i := range 4 {
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(float64(i))))
	}
	c.try(patient, false, okAt(noonPlus(4)))
	for i := range 4 {
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(5+float64(i))))
	}
	c.wantHealthy(patient, noonPlus(8))
	c.try(patient, false, failedAt(ninelives.ClassTimeout, noonPlus(9)))
	c.want(patient, noonPlus(9), StateOpen, 9, 39, 24)
	s := c.Standing(patient, noonPlus(9))
	if s.Reason != "5 failures in a row, the last one timeout" || s.Probe != ProbeSynthetic {
		t.Errorf("reason %q, probe %q", s.Reason, s.Probe)
	}
}

func TestHalfOfTwentyFailuresInTheWindowOpenTheCircuit(t *testing.T) {
	run := func(pairs int, gap float64) Standing {
		c := newClinic(t)
		for i := range pairs {
			c.try(patient, false, okAt(noonPlus(float64(i)*gap)))
			c.try(patient, false, failedAt(ninelives.ClassUnknown, noonPlus(float64(i)*gap)))
		}
		return c.Standing(patient, noonPlus(float64(pairs-1)*gap))
	}
	if s := run(9, 1); !s.Healthy() {
		t.Errorf("open after 18 attempts: %+v", s)
	}
	s := run(10, 1)
	if s.State != StateOpen || s.Reason != "10 of the last 20 attempts failed, the last one unknown" {
		t.Errorf("after 10 of 20: %+v", s)
	}
	if s := run(30, 4); !s.Healthy() {
		t.Errorf("open although the window never held 20: %+v", s)
	}
}

func TestAnOpenCircuitIsProbedByOneCallAndSuccessClosesIt(t *testing.T) {
	c := newClinic(t)
	for range 5 {
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noon))
	}
	c.want(patient, noon, StateOpen, 0, 30, 15)
	if _, err := c.Enter(context.Background(), patient, noonPlus(14.999), true); !errors.Is(err, ErrProbed) {
		t.Fatalf("a probe before half of the rest: %v", err)
	}
	if c.Standing(patient, noonPlus(14.999)).CanProbe(noonPlus(14.999)) || !c.Standing(patient, noonPlus(15)).CanProbe(noonPlus(15)) {
		t.Error("CanProbe and Enter disagree")
	}
	leave := c.begin(patient, noonPlus(15), true)
	c.want(patient, noonPlus(16), StateProbing, 0, 30, 15)
	if _, err := c.Enter(context.Background(), patient, noonPlus(16), true); !errors.Is(err, ErrProbed) {
		t.Fatalf("a second probe beside the first: %v", err)
	}
	leave(okAt(noonPlus(17)))
	c.wantHealthy(patient, noonPlus(17))
	// Forgotten is forgotten: the count starts anew.
	for range 4 {
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(18)))
	}
	c.wantHealthy(patient, noonPlus(18))
}

func TestAClosedCircuitForgetsItsWindow(t *testing.T) {
	c := newClinic(t)
	for range 10 {
		c.try(patient, false, okAt(noon))
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noon))
	}
	c.try(patient, true, okAt(noonPlus(20)))
	c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(21)))
	c.wantHealthy(patient, noonPlus(21)) // 11 of 22 otherwise
}

func TestAFailedProbeRestsThePlaceAnew(t *testing.T) {
	for _, class := range []ninelives.Class{ninelives.ClassStreamBroken, ninelives.ClassUnknown, ninelives.ClassOverloaded} {
		c := newClinic(t)
		for range 5 {
			c.try(patient, false, failedAt(class, noon))
		}
		c.try(patient, true, failedAt(class, noonPlus(20)))
		c.want(patient, noonPlus(20), StateOpen, 0, 50, 35)
	}
}

func TestAfterAnOpenCircuitRanOutOneFailureOpensItAgain(t *testing.T) {
	c := newClinic(t)
	for range 5 {
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noon))
	}
	c.wantHealthy(patient, noonPlus(30))
	c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(100)))
	c.want(patient, noonPlus(100), StateOpen, 100, 130, 115)
	// Also where a share of failures opened it, which are long out of sight.
	c = newClinic(t)
	for range 10 {
		c.try(patient, false, okAt(noon))
		c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noon))
	}
	c.try(patient, false, failedAt(ninelives.ClassStreamBroken, noonPlus(100)))
	c.want(patient, noonPlus(100), StateOpen, 100, 130, 115)
}

func TestProbesComeAtMostEvery15Seconds(t *testing.T) {
	c := newClinic(t)
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noon)) // 60 s
	// It proves nothing about the rate limit, but was the probe of its time.
	c.try(patient, true, failedAt(ninelives.ClassFormat, noonPlus(30)))
	c.want(patient, noonPlus(30), StateCooling, 0, 60, 45)
	if _, err := c.Enter(context.Background(), patient, noonPlus(44.9), true); !errors.Is(err, ErrProbed) {
		t.Fatal(err)
	}
	c.try(patient, true, failedAt(ninelives.ClassRefusal, noonPlus(45)))
	c.want(patient, noonPlus(45), StateCooling, 0, 60, 60)
}

func TestACancelledProbeProvesNothingAndGivesItsPlaceBack(t *testing.T) {
	c := newClinic(t)
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noon))
	before := c.Standing(patient, noonPlus(40))
	for _, v := range []Verdict{canceledAt(noonPlus(40)), gaveUpAt(ninelives.ClassCanceled, noonPlus(40))} {
		leave := c.begin(patient, noonPlus(40), true)
		leave(v)
		leave(okAt(noonPlus(40))) // too late: it has left
	}
	if after := c.Standing(patient, noonPlus(40)); after != before {
		t.Errorf("\nbefore %+v\nafter  %+v", before, after)
	}
	c.begin(patient, noonPlus(40), true) // the next one may at once
}

func TestAfterATimeoutOnlyASyntheticProbeTries(t *testing.T) {
	c := newClinic(t)
	if c.NeedsSyntheticProbe(patient, noon) {
		t.Error("a healthy candidate needs no probe")
	}
	c.try(patient, false, gaveUpAt(ninelives.ClassTimeout, noon))
	for _, now := range []float64{0, 14.999, 15, 29} {
		if c.Standing(patient, noonPlus(now)).CanProbe(noonPlus(now)) {
			t.Errorf("after %v s a user's call may probe", now)
		}
		if got, want := c.NeedsSyntheticProbe(patient, noonPlus(now)), now >= 15; got != want {
			t.Errorf("after %v s: needs a probe: %v", now, got)
		}
	}
	leave := c.begin(patient, noonPlus(15), true)
	if c.NeedsSyntheticProbe(patient, noonPlus(16)) {
		t.Error("a second synthetic probe beside the first")
	}
	leave(okAt(noonPlus(16)))
	c.wantHealthy(patient, noonPlus(16))
}

func TestAuthBillingAndMissingModelsWaitForAChange(t *testing.T) {
	for _, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassBilling, ninelives.ClassModelNotFound} {
		c := newClinic(t)
		c.try(patient, false, gaveUpAt(class, noon))
		s := c.Standing(patient, noonPlus(500))
		if s.CanProbe(noonPlus(500)) || c.NeedsSyntheticProbe(patient, noonPlus(500)) {
			t.Errorf("%s is probed", class)
		}
		if _, err := c.Enter(context.Background(), patient, noonPlus(500), true); !errors.Is(err, ErrProbed) {
			t.Errorf("%s: %v", class, err)
		}
		c.Clear(patient, noonPlus(501))
		c.wantHealthy(patient, noonPlus(501))
	}
}

func TestAnOlderSuccessDoesNotCloseAYoungerRest(t *testing.T) {
	c := newClinic(t)
	old := c.begin(patient, noon, false)
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noonPlus(1)))
	old(okAt(noonPlus(2)))
	c.want(patient, noonPlus(2), StateCooling, 1, 61, 31)
	// But one that was begun in spite of the rest does.
	c.try(patient, false, okAt(noonPlus(3)))
	c.wantHealthy(patient, noonPlus(3))
}

func TestAnyAnswerShowsThatTheHostIsUp(t *testing.T) {
	c := newClinic(t)
	c.try(patient, false, gaveUpAt(ninelives.ClassNetwork, noon))
	sibling := patient
	sibling.Model = "claude-mini"
	c.want(sibling, noon, StateCooling, 0, 30, 15)
	v := failedAt(ninelives.ClassRateLimit, noonPlus(15))
	v.Fault.Status = 429
	c.try(sibling, true, v)
	c.wantHealthy(patient, noonPlus(15))
}

func TestTwoRestsAtOnceWantTheMoreCarefulProbe(t *testing.T) {
	c := newClinic(t)
	c.try(patient, false, gaveUpAt(ninelives.ClassNetwork, noon))         // host, 30 s, by traffic
	c.try(patient, false, gaveUpAt(ninelives.ClassTimeout, noonPlus(10))) // model, till 40 s, synthetic
	c.want(patient, noonPlus(10), StateCooling, 10, 40, 25)               // the later of both
	if s := c.Standing(patient, noonPlus(25)); s.CanProbe(noonPlus(25)) || s.Probe != ProbeSynthetic {
		t.Errorf("%+v", s)
	}
	c.try(patient, false, gaveUpAt(ninelives.ClassAuth, noonPlus(26)))
	c.want(patient, noonPlus(26), StateCooling, 26, 626, 0)
	// One success speaks for all of them.
	c.try(patient, false, okAt(noonPlus(27)))
	c.wantHealthy(patient, noonPlus(27))

	// The shorter rest counts as much as the longer one.
	hinted := func(class ninelives.Class, after time.Duration) Verdict {
		v := gaveUpAt(class, noonPlus(100))
		v.Fault.RetryAfter = after
		return v
	}
	c.try(patient, false, hinted(ninelives.ClassRateLimit, 25*time.Second))
	c.try(patient, false, gaveUpAt(ninelives.ClassNetwork, noonPlus(100)))
	c.want(patient, noonPlus(100), StateCooling, 100, 130, 125)
	c.try(patient, false, hinted(ninelives.ClassAuth, 20*time.Second))
	c.want(patient, noonPlus(100), StateCooling, 100, 130, 0)
}
