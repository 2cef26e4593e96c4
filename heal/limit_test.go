package heal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func smallLimit(p *Policy) { p.Limit = Limit{InFlight: 1, Queue: 2, Wait: 5 * time.Second} }

func TestCallsQueueInOrderForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClinic(t, smallLimit)
		leave := c.begin(patient, time.Now(), false)
		var order []int
		for i := range 2 {
			go func() {
				leave := c.begin(patient, time.Now(), false)
				order = append(order, i)
				time.Sleep(time.Second)
				leave(okAt(time.Now()))
			}()
			synctest.Wait()
		}
		row := c.Snapshot(time.Now())[0]
		if row.InFlight != 1 || row.Queued != 2 || !row.Standing.Full || row.Standing.Available() {
			t.Errorf("%+v", row)
		}
		start := time.Now()
		if _, err := c.Enter(t.Context(), patient, start, false); !errors.Is(err, ErrFull) || time.Since(start) != 0 {
			t.Errorf("no room in the queue: %v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		leave(okAt(time.Now()))
		synctest.Wait()
		if row := c.Snapshot(time.Now())[0]; row.InFlight != 1 || row.Queued != 1 || row.Standing.Full {
			t.Errorf("after one left: %+v", row)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1}) {
			t.Errorf("served in the order %v", order)
		}
		if row := c.Snapshot(time.Now())[0]; row.InFlight != 0 || row.Queued != 0 {
			t.Errorf("at the end: %+v", row)
		}
	})
}

func TestAWaitInTheQueueHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClinic(t, smallLimit)
		leave := c.begin(patient, time.Now(), false)
		start := time.Now()
		if _, err := c.Enter(t.Context(), patient, start, false); !errors.Is(err, ErrFull) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v, want ErrFull after 5s", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start = time.Now()
		if _, err := c.Enter(ctx, patient, start, false); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v, want the context's end after 2s", err, time.Since(start))
		}
		if row := c.Snapshot(time.Now())[0]; row.InFlight != 1 || row.Queued != 0 {
			t.Errorf("those who left the queue are still counted: %+v", row)
		}
		leave(okAt(time.Now()))
	})
}

func TestACallerWhoHasGoneTakesNoPlace(t *testing.T) {
	c := newClinic(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Enter(ctx, patient, noon, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if rows := c.Snapshot(noon); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

func TestAPlaceGivenAtTheVeryMomentOfACancelIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClinic(t, smallLimit)
		for range 50 { // which of the two the select sees is random
			leave := c.begin(patient, time.Now(), false)
			going, cancel := context.WithCancel(t.Context())
			errs := [2]chan error{make(chan error, 1), make(chan error, 1)}
			for i, ctx := range []context.Context{going, t.Context()} {
				go func() {
					leave, err := c.Enter(ctx, patient, time.Now(), false)
					if err == nil {
						leave(okAt(time.Now()))
					}
					errs[i] <- err
				}()
				synctest.Wait()
			}
			leave(okAt(time.Now()))
			cancel()
			if err := <-errs[0]; err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := <-errs[1]; err != nil {
				t.Fatalf("the place was lost: %v", err)
			}
			if row := c.Snapshot(time.Now())[0]; row.InFlight != 0 || row.Queued != 0 {
				t.Fatalf("%+v", row)
			}
		}
	})
}

func TestWhoQueuedAtAHealthyCandidateIsToldThatItRestsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClinic(t, smallLimit)
		leave := c.begin(patient, time.Now(), false)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := c.Enter(t.Context(), patient, time.Now(), false)
				errs <- err
			}()
		}
		time.Sleep(time.Second)
		leave(gaveUpAt("overloaded", time.Now()))
		synctest.Wait()
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrResting) {
				t.Errorf("%v", err)
			}
		}
		if row := c.Snapshot(time.Now())[0]; row.InFlight != 0 || row.Queued != 0 {
			t.Errorf("%+v", row)
		}
	})
}

func TestAProbeThatFindsNoPlaceGivesTheProbePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClinic(t, smallLimit)
		c.try(patient, false, gaveUpAt("overloaded", time.Now()))
		leave := c.begin(patient, time.Now(), false) // asked in spite of its rest
		time.Sleep(8 * time.Second)
		before := c.Standing(patient, time.Now())
		if _, err := c.Enter(t.Context(), patient, time.Now(), true); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if after := c.Standing(patient, time.Now()); after != before {
			t.Errorf("\nbefore %+v\nafter  %+v", before, after)
		}
		leave(canceledAt(time.Now()))
		c.begin(patient, time.Now(), true)(canceledAt(time.Now()))
	})
}

func TestAProbeThatFindsNoRoomInTheQueueGivesTheProbePlaceBack(t *testing.T) {
	c := newClinic(t, func(p *Policy) { p.Limit = Limit{InFlight: 1} })
	c.try(patient, false, gaveUpAt("overloaded", noon))
	leave := c.begin(patient, noon, false)
	if _, err := c.Enter(t.Context(), patient, noonPlus(8), true); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	leave(canceledAt(noonPlus(8)))
	c.begin(patient, noonPlus(8), true)
}

func TestAZeroLimitIsNone(t *testing.T) {
	c := newClinic(t, func(p *Policy) { p.Limit = Limit{} })
	for range 1000 {
		c.begin(patient, noon, false)
	}
	if !c.Standing(patient, noon).Available() {
		t.Error("full without a limit")
	}
}

func TestALoneCallIsNeverStarvedOfRetries(t *testing.T) {
	c := newClinic(t)
	// One caller after the other, each retrying thrice, one try at a time: far
	// more than a fifth, but never more than one under way.
	for i := range 100 {
		c.try(patient, false, okAt(noonPlus(float64(i))))
		for range 3 {
			leave, err := c.Retry(context.Background(), patient, noonPlus(float64(i)), false)
			if err != nil {
				t.Fatal(err)
			}
			leave(okAt(noonPlus(float64(i))))
		}
	}
}

func TestAFleetMayRetryAFifthOfItsCalls(t *testing.T) {
	c := newClinic(t, func(p *Policy) { p.Limit = Limit{} })
	for range 100 {
		c.begin(patient, noon, false)
	}
	allowed := 0
	for range 100 {
		may := c.MayRetry(patient, noon)
		_, err := c.Retry(context.Background(), patient, noon, false)
		if may != (err == nil) || err != nil && !errors.Is(err, ErrRetryBudget) {
			t.Fatalf("MayRetry says %v, Retry %v", may, err)
		}
		if err == nil {
			allowed++
		}
	}
	if allowed != 20 {
		t.Errorf("%d retries beside 100 calls, want 20", allowed)
	}
	if c.MayRetry(patient, noonPlus(29)) {
		t.Error("the window has forgotten too early")
	}
	other := patient
	other.Model = "other"
	if !c.MayRetry(other, noon) {
		t.Error("another candidate has a budget of its own")
	}
}

// The windows against the plainest way to count: a list of everything.
func TestWindowsCountWhatAListWouldCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]time.Duration{0, time.Nanosecond, 5 * time.Second, 30 * time.Second, time.Minute}).Draw(t, "span")
		var w window
		var list []time.Time
		now := noon
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(span)/4+1).Draw(t, "pause")))
			if rapid.Bool().Draw(t, "count") {
				w = w.add(now, span, 1, 2)
				list = append(list, now)
			}
			width := max(int64(span)/10, 1)
			want, atLeast, atMost := 0, 0, 0
			for _, then := range list {
				if now.UnixNano()/width-then.UnixNano()/width < 10 {
					want++
				}
				if now.Sub(then) < span*9/10 {
					atLeast++
				}
				if now.Sub(then) <= span {
					atMost++
				}
			}
			a, b := w.sum(now, span)
			if a != want || b != 2*want {
				t.Fatalf("counts %d and %d, want %d and %d", a, b, want, 2*want)
			}
			if span >= 10 && (a < atLeast || a > atMost) {
				t.Fatalf("counts %d; %d in nine tenths of the span, %d in the whole", a, atLeast, atMost)
			}
		}
	})
}

func TestAClockThatGoesBackwardsLosesNothing(t *testing.T) {
	var w window
	w = w.add(noon, 30*time.Second, 1, 0)
	w = w.add(noonPlus(-3600), 30*time.Second, 1, 0)
	if n, _ := w.sum(noonPlus(-3600), 30*time.Second); n != 2 {
		t.Errorf("%d, want 2", n)
	}
	if n, _ := w.sum(noonPlus(1), 30*time.Second); n != 2 {
		t.Errorf("%d, want 2", n)
	}
}

func TestTheRetryBudgetsArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := RetryBudget{
			Share:  rapid.Float64Range(0, 1).Draw(t, "share"),
			Min:    rapid.IntRange(0, 5).Draw(t, "min"),
			Window: 30 * time.Second,
		}
		var r retries
		var calls, again []time.Time
		now := noon
		recent := func(list []time.Time) (n int) {
			for _, then := range list {
				if now.UnixNano()/3e9-then.UnixNano()/3e9 < 10 {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.Int64Range(0, 10e9).Draw(t, "pause")))
			case 1:
				r = r.enter(now, policy, false)
				calls = append(calls, now)
			case 2:
				if r.inFlight > 0 {
					r = r.leave(true)
				}
			case 3:
				room := r.room(now, policy)
				want := r.inFlight < policy.Min || float64(recent(again)+1) <= policy.Share*float64(recent(calls))
				if room != want {
					t.Fatalf("room %v with %d under way, %d retries of %d calls", room, r.inFlight, recent(again), recent(calls))
				}
				if room {
					r = r.enter(now, policy, true)
					again = append(again, now)
				}
			}
		}
	})
}
