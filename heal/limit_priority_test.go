package heal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// counter is a candidate with calls of all priorities.
type counter struct {
	t      *testing.T
	health *Health

	mu     sync.Mutex
	served []string
}

func (w *counter) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = append(w.served, s)
}

// sofar is who was served, in order.
func (w *counter) sofar() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.served)
}

// hold takes a place at once.
func (w *counter) hold(priority int) func(Verdict) {
	w.t.Helper()
	leave, err := w.health.at(priority).enter(w.t.Context(), patient, time.Now(), entering{atOnce: true})
	if err != nil {
		w.t.Fatalf("priority %d: %v", priority, err)
	}
	return leave
}

// full says that no place can be had at once.
func (w *counter) full(priority int) bool {
	leave, err := w.health.at(priority).enter(w.t.Context(), patient, time.Now(), entering{atOnce: true})
	if err == nil {
		leave(canceledAt(time.Now()))
	}
	return errors.Is(err, ErrFull)
}

// queue waits for a place, notes that it has come, and keeps it for a second.
func (w *counter) queue(name string, priority int) {
	go func() {
		leave, err := w.health.at(priority).Enter(w.t.Context(), patient, time.Now(), false)
		if err != nil {
			w.note(name + ": " + err.Error())
			return
		}
		w.note(name)
		time.Sleep(time.Second)
		leave(okAt(time.Now()))
	}()
	synctest.Wait()
}

func atCounter(t *testing.T, l Limit, f func(w *counter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := DefaultPolicy()
		p.Limit = l
		f(&counter{t: t, health: NewHealth(&p)})
	})
}

func TestAPersonIsServedNextHoweverMuchBatchWorkIsThere(t *testing.T) {
	atCounter(t, Limit{InFlight: 64, Queue: 64, Wait: 5 * time.Second}, func(w *counter) {
		var batch, chat []func(Verdict)
		for range 48 {
			batch = append(batch, w.hold(-1))
		}
		if !w.full(-1) {
			t.Error("batch work holds more than three quarters")
		}
		for range 16 { // while batch work is at its limit there is room for people
			chat = append(chat, w.hold(0))
		}
		if !w.full(0) {
			t.Error("there are more places than 64")
		}
		for range 20 {
			w.queue("batch", -1)
		}
		w.queue("chat", 0)
		batch[0](okAt(time.Now()))
		synctest.Wait()
		if !slices.Equal(w.sofar(), []string{"chat"}) {
			t.Errorf("served %v", w.sofar())
		}
		for _, leave := range slices.Concat(batch, chat) {
			leave(okAt(time.Now()))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if row := w.health.Snapshot(time.Now())[0]; row.InFlight != 0 || row.Queued != 0 || len(w.sofar()) != 21 {
			t.Errorf("at the end %+v, served %v", row, w.sofar())
		}
	})
}

func TestAPlaceOfAPersonStaysFreeForTheNext(t *testing.T) {
	atCounter(t, Limit{InFlight: 4, Queue: 4, Wait: 5 * time.Second}, func(w *counter) {
		batch := []func(Verdict){w.hold(-1), w.hold(-1), w.hold(-1)}
		chat := w.hold(0)
		w.queue("batch", -1)
		chat(okAt(time.Now()))
		synctest.Wait()
		if len(w.sofar()) != 0 {
			t.Errorf("the place went to %v", w.sofar())
		}
		if w.full(0) || !w.full(-1) {
			t.Error("the free place is for people")
		}
		batch[0](okAt(time.Now()))
		synctest.Wait()
		if !slices.Equal(w.sofar(), []string{"batch"}) {
			t.Errorf("served %v", w.sofar())
		}
		batch[1](okAt(time.Now()))
		batch[2](okAt(time.Now()))
		time.Sleep(time.Second)
	})
}

func TestAQueueGoesByPriorityAndThenByTime(t *testing.T) {
	atCounter(t, Limit{InFlight: 1, Queue: 8, Wait: 20 * time.Second}, func(w *counter) {
		leave := w.hold(0)
		for _, c := range []struct {
			name     string
			priority int
		}{{"low 1", -1}, {"plain 1", 0}, {"high 1", 2}, {"plain 2", 0}, {"low 2", -1}, {"high 2", 2}} {
			w.queue(c.name, c.priority)
		}
		leave(okAt(time.Now()))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if want := []string{"high 1", "high 2", "plain 1", "plain 2", "low 1", "low 2"}; !slices.Equal(w.sofar(), want) {
			t.Errorf("served %q, want %q", w.sofar(), want)
		}
	})
}

func TestBatchWorkIsNotOvertakenForEver(t *testing.T) {
	// One place, and a new person every second, each staying for one.
	atCounter(t, Limit{InFlight: 1, Queue: 8, Wait: 10 * time.Second}, func(w *counter) {
		leave := w.hold(0)
		w.queue("batch", -1)
		w.queue("chat", 0)
		began := time.Now()
		leave(okAt(began))
		for !slices.Contains(w.sofar(), "batch") && time.Since(began) < time.Minute {
			w.queue("chat", 0)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		// A step is 5 s: the person who comes just then is the first to be behind.
		if waited := time.Since(began); waited != 6*time.Second || !slices.Equal(w.sofar()[6:], []string{"batch"}) {
			t.Errorf("after %v, served %v", waited, w.sofar())
		}
		time.Sleep(10 * time.Second)
	})
}

func TestBatchWorkLeavesRoomInTheQueue(t *testing.T) {
	atCounter(t, Limit{InFlight: 1, Queue: 4, Wait: time.Second}, func(w *counter) {
		leave := w.hold(0)
		for range 4 {
			w.queue("batch", -1)
		}
		if want := []string{"batch: " + ErrFull.Error()}; !slices.Equal(w.sofar(), want) {
			t.Errorf("%q, want %q", w.sofar(), want)
		}
		if w.health.Standing(patient, time.Now()).Full || !w.health.at(-1).Standing(patient, time.Now()).Full {
			t.Error("full for batch work alone")
		}
		w.queue("chat", 0)
		if !w.health.Standing(patient, time.Now()).Full {
			t.Error("the queue has four places")
		}
		time.Sleep(time.Second) // they wait no longer than before
		synctest.Wait()
		if row := w.health.Snapshot(time.Now())[0]; row.Queued != 0 || len(w.sofar()) != 5 {
			t.Errorf("%+v, %q", row, w.sofar())
		}
		leave(okAt(time.Now()))
	})
}

func TestACancelledWaiterOfAnyPriorityLeavesNoTrace(t *testing.T) {
	atCounter(t, Limit{InFlight: 1, Queue: 4, Wait: 10 * time.Second}, func(w *counter) {
		leave := w.hold(-1)
		ctx, cancel := context.WithCancel(w.t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := w.health.at(-1).Enter(ctx, patient, time.Now(), false)
			done <- err
		}()
		synctest.Wait()
		w.queue("next", -1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		leave(okAt(time.Now()))
		synctest.Wait()
		if !slices.Equal(w.sofar(), []string{"next"}) {
			t.Errorf("served %v", w.sofar())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if l := w.health.entries[w.health.entryID(patient)].limit; l.inFlight != 0 || l.below != 0 || len(l.queue) != 0 {
			t.Errorf("%+v", l)
		}
	})
}

// The option is what a model's calls go by, whoever shares the record.
func TestAModelsPriorityIsThatOfItsCalls(t *testing.T) {
	atCounter(t, Limit{InFlight: 4, Queue: 0, Wait: time.Second}, func(w *counter) {
		second := model("b", says("second"))
		chat := New(model("a", says("first")), SharedHealth(w.health), Fallback(second))
		batch := New(model("a", says("first")), SharedHealth(w.health), Fallback(second), Priority(-1))
		for range 3 {
			who, _ := ninelives.CandidateOf(model("a"))
			leave, err := w.health.at(-1).enter(w.t.Context(), who, time.Now(), entering{atOnce: true})
			if err != nil {
				t.Fatal(err)
			}
			defer leave(canceledAt(time.Now()))
		}
		equal(w.t, "batch work", ask(w.t, batch).text, "second")
		equal(w.t, "a person", ask(w.t, chat).text, "first")
	})
}

// The places are the candidate's: a route for batch work beside one for people
// has no others.
func TestRoutesShareACandidatesPlaces(t *testing.T) {
	atCounter(t, Limit{InFlight: 4, Queue: 0, Wait: time.Second}, func(w *counter) {
		batch := &counter{t: w.t, health: w.health.Route("batch")}
		for range 3 {
			defer batch.hold(-1)(canceledAt(time.Now()))
		}
		if !batch.full(-1) {
			t.Error("batch work is at its limit")
		}
		defer w.hold(0)(canceledAt(time.Now()))
		for _, route := range []string{"", "batch", "never asked"} {
			if !w.health.Route(route).Standing(patient, time.Now()).Full {
				t.Errorf("route %q does not see that the candidate is full", route)
			}
		}
	})
}

// Whatever comes and goes: no place is lost or given twice, batch work keeps to
// its share, and nobody waits while there is a place for him.
func TestPlacesAreNeitherLostNorGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Limit{InFlight: rapid.IntRange(1, 9).Draw(t, "places"), Queue: rapid.IntRange(0, 9).Draw(t, "queue"), Wait: 4 * time.Second}
		var l limit
		var held []int // priorities
		var waiting []*waiter
		now := noon
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "pause")))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				p := rapid.IntRange(-2, 2).Draw(t, "priority")
				if l.take(policy, p) {
					held = append(held, p)
				} else if w := l.line(policy, p, now); w != nil {
					waiting = append(waiting, w)
				} else if !l.full(policy, p) {
					t.Fatal("refused without need")
				}
			case 2:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "who leaves")
					l.give(policy, held[i])
					held = slices.Delete(held, i, i+1)
				}
			case 3:
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who gives up")
					l.abandon(policy, waiting[i])
					waiting = slices.Delete(waiting, i, i+1)
				}
			}
			for i := 0; i < len(waiting); i++ {
				select {
				case <-waiting[i].place:
					held = append(held, waiting[i].priority)
					waiting = slices.Delete(waiting, i, i+1)
					i--
				default:
				}
			}
			below := 0
			for _, p := range held {
				if p < 0 {
					below++
				}
			}
			if l.inFlight != len(held) || l.below != below || len(l.queue) != len(waiting) {
				t.Fatalf("%d under way (%d below), %d queued; want %d (%d), %d", l.inFlight, l.below, len(l.queue), len(held), below, len(waiting))
			}
			if len(held) > policy.InFlight || below > share(policy.InFlight, -1) || len(waiting) > policy.Queue {
				t.Fatalf("%d held, %d below, %d waiting of %+v", len(held), below, len(waiting), policy)
			}
			for _, w := range waiting {
				if l.room(policy, w.priority) {
					t.Fatalf("a call of priority %d waits beside a free place", w.priority)
				}
			}
		}
	})
}
