package heal

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestUnderLoadAPlaceComesBackInSteps(t *testing.T) {
	ramp := DefaultPolicy().Ramp
	for _, test := range []struct {
		after float64
		rate  float64
		want  float64
	}{
		{0, 10.1, 0.1}, {9.999, 100, 0.1}, {10, 100, 0.5}, {19.999, 100, 0.5}, {20, 100, 1}, {1e6, 100, 1},
		{0, 10, 1}, {5, 0, 1}, // no load, no ramp
	} {
		if got := ramp.share(noonPlus(test.after), noon, test.rate); got != test.want {
			t.Errorf("%v s after its return at %v calls/s: %v, want %v", test.after, test.rate, got, test.want)
		}
	}
	if got := ramp.share(noon, time.Time{}, 100); got != 1 {
		t.Errorf("a place that never was away gets %v", got)
	}
	if got := (Ramp{}).share(noon, noon, 100); got != 1 {
		t.Errorf("without steps: %v", got)
	}
	if got := (Ramp{Steps: []float64{1}, Over: time.Second}).share(noon, noon, 100); got != 1 {
		t.Errorf("with one step: %v", got)
	}
	if got := (Ramp{Steps: []float64{0.1, 1}}).share(noon, noon, 100); got != 1 {
		t.Errorf("over no time: %v", got)
	}
}

func TestAShareNeverShrinksWithTime(t *testing.T) {
	ramp := DefaultPolicy().Ramp
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, 30e9).Draw(t, "a")
		b := rapid.Int64Range(a, 30e9).Draw(t, "b")
		if x, y := ramp.share(noon.Add(time.Duration(a)), noon, 50), ramp.share(noon.Add(time.Duration(b)), noon, 50); x > y {
			t.Fatalf("%v after %v, %v after %v", x, time.Duration(a), y, time.Duration(b))
		}
	})
}

func TestTheLoadIsTheRoutesAndNotWhatTheRestingOneStillGets(t *testing.T) {
	for _, test := range []struct {
		name   string
		probed bool
		back   float64 // when it is back
	}{{"by a probe", true, 30}, {"by time", false, 60}} {
		t.Run(test.name, func(t *testing.T) {
			c := newClinic(t)
			c.try(patient, false, gaveUpAt("rate_limit", noon))
			if s := c.Standing(patient, noonPlus(1)); s.Share != 0 || s.Takes(0) {
				t.Errorf("resting: %+v", s)
			}
			if test.probed {
				c.try(patient, true, okAt(noonPlus(30)))
			}
			if s := c.Standing(patient, noonPlus(test.back)); s.Share != 1 {
				t.Errorf("without load its share is %v", s.Share)
			}
			other := patient
			other.Model, other.Key = "other", "k2"
			for i := range 100 { // 20 calls a second, all at the other one
				c.try(other, false, okAt(noonPlus(test.back+float64(i)*0.05)))
			}
			s := c.Standing(patient, noonPlus(test.back+4.9))
			if s.Share != 0.1 || !s.Takes(0.0999) || s.Takes(0.1) {
				t.Errorf("under load: %+v", s)
			}
			if s := c.Standing(other, noonPlus(test.back+4.9)); s.Share != 1 {
				t.Errorf("the other one was never away: %+v", s)
			}
			if s := c.Route("quiet").Standing(patient, noonPlus(test.back+4.9)); s.Share != 1 {
				t.Errorf("a route without load: %+v", s)
			}
		})
	}
}
