package heal

import (
	"errors"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// down is a candidate that answered once and is out of credit from then on.
func down() *scripted { return model("a", says("the answer"), fails(ninelives.ClassBilling)) }

func TestStaleAnswerIsServedForTheSameRequestAlone(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := down()
		h := healed(a, Degraded(Stale(10, time.Hour)))
		ask(t, h)
		time.Sleep(time.Minute)
		s := ask(t, h)
		if s.err != nil {
			t.Fatal(s.err)
		}
		equal(t, "text", s.text, "the answer")
		equal(t, "label", s.resp.Degraded, ninelives.DegradedStale)
		equal(t, "warning", s.resp.Warnings, []string{"this is an earlier answer to the same request, 1m old: no candidate can answer now"})

		asked := len(a.asked)
		s = ask(t, h)
		equal(t, "while it rests nobody is asked", len(a.asked), asked)
		equal(t, "text", s.text, "the answer")

		other := watch(t.Context(), h, ninelives.Prompt("something else"))
		var e *Exhausted
		equal(t, "another request has none", errors.As(other.err, &e), true)

		time.Sleep(time.Hour)
		s = ask(t, h)
		equal(t, "it grows too old", s.resp == nil, true)
	})
}

func TestStaleKeepsTheLatestAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("1"), says("2"), says("3"), fails(ninelives.ClassBilling))
		h := healed(a, Degraded(Stale(2, 0)))
		for _, p := range []string{"x", "y", "z"} {
			watch(t.Context(), h, ninelives.Prompt(p))
		}
		equal(t, "z", watch(t.Context(), h, ninelives.Prompt("z")).text, "3")
		equal(t, "y", watch(t.Context(), h, ninelives.Prompt("y")).text, "2")
		equal(t, "x", watch(t.Context(), h, ninelives.Prompt("x")).resp == nil, true)
	})
}

func TestFlaggedAnswersAreNotKept(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("ha"), end(cut("ha"))}, fails(ninelives.ClassBilling))
		h := healed(a, Degraded(Stale(2, 0)))
		req := ninelives.Prompt("hi")
		req.MaxTokens = 1
		watch(t.Context(), h, req)
		equal(t, "served", watch(t.Context(), h, req).resp == nil, true)
	})
}

func TestUnavailableSaysAtOnceWhenItIsBack(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute))
		h := healed(a, Degraded(Unavailable()))
		ask(t, h)
		s := ask(t, h)
		equal(t, "asked", len(a.asked), 1)
		equal(t, "took", time.Since(t0), 0)
		var e *Exhausted
		if !errors.As(s.err, &e) {
			t.Fatal(s.err)
		}
		equal(t, "back", e.Back.Sub(t0), 10*time.Minute)
		var f *ninelives.Fault
		equal(t, "class", errors.As(s.err, &f) && f.Class == ninelives.ClassRateLimit, true)
	})
}

func TestSubstitutesAreTriedInTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		h := healed(down(), Degraded(Stale(10, 0), Canned("later")))
		ask(t, h)
		equal(t, "known", ask(t, h).resp.Degraded, ninelives.DegradedStale)
		equal(t, "unknown", watch(t.Context(), h, ninelives.Prompt("else")).text, "later")
	})
}

func TestSubstituteDoesNotHideTheRequestsOwnFault(t *testing.T) {
	for _, class := range []ninelives.Class{ninelives.ClassFormat, ninelives.ClassContentFilter, ninelives.ClassContextLength} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			s := ask(t, healed(model("a", fails(class)), Degraded(Canned("later"))))
			var f *ninelives.Fault
			equal(t, string(class), errors.As(s.err, &f) && f.Class == class, true)
		})
	}
}

func TestSubstituteTakesThePlaceOfWhatWasShown(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("half"), {err: fault(ninelives.ClassBilling)}})
		s := ask(t, healed(a, Degraded(Canned("later"))))
		equal(t, "shown", s.shown(), []string{"text:half", "discard", "text:later", "done"})
	})
}

func TestWithoutASubstituteTheFirstToComeBackIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute))
		b := model("b", hinted(ninelives.ClassRateLimit, 3*time.Minute), says("hello"))
		h := healed(a, Fallback(b), Deadline(2*time.Minute))
		equal(t, "first call", ask(t, h).err != nil, true)
		time.Sleep(2 * time.Minute)
		s := ask(t, h)
		equal(t, "b asked", b.since(t0), []time.Duration{0, 3 * time.Minute})
		equal(t, "text", s.text, "hello")
	})
}

func TestWhereNoneComesBackInTimeTheLeastBadIsAskedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("hello"))
		b := model("b", hinted(ninelives.ClassRateLimit, 10*time.Minute))
		h := healed(a, Fallback(b), Deadline(time.Minute))
		giveUp(t, h, a, hinted(ninelives.ClassOverloaded, 20*time.Minute)[0].err.(*ninelives.Fault))
		giveUp(t, h, b, hinted(ninelives.ClassRateLimit, 10*time.Minute)[0].err.(*ninelives.Fault))
		s := ask(t, h)
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{0, 1})
		equal(t, "error", s.err != nil, true)
		equal(t, "took", time.Since(t0), 0)
	})
}

// It is not always the same: who might answer is found by the next call.
func TestTheLeastBadAreAskedInTurn(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute)), model("b", hinted(ninelives.ClassRateLimit, 10*time.Minute), says("hello"))
		h := healed(a, Fallback(b), Deadline(time.Minute))
		equal(t, "first call", ask(t, h).err != nil, true)
		time.Sleep(time.Second)
		equal(t, "second call", ask(t, h).err != nil, true)
		equal(t, "third call", ask(t, h).text, "hello")
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{2, 2})
	})
}

// A refused key may have been refused for one request. Whoever rests for what time
// does not heal is asked by every call that nobody else can answer.
func TestWhoRestsForGoodIsAskedWhereTheLeastBadFails(t *testing.T) {
	for _, class := range []ninelives.Class{ninelives.ClassAuth, ninelives.ClassBilling, ninelives.ClassModelNotFound} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", hinted(ninelives.ClassRateLimit, 10*time.Minute))
			b := model("b", fails(class), says("hello"))
			h := healed(a, Fallback(b), Deadline(time.Minute))
			equal(t, "first call", ask(t, h).err != nil, true)
			equal(t, "second call", ask(t, h).text, "hello")
			equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{2, 2})
		})
	}
}

func TestLoneCandidateOutOfCreditIsAskedAgainByTheNextCall(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassBilling), says("hello")) // its owner paid in between
		h := healed(a)
		ask(t, h)
		equal(t, "text", ask(t, h).text, "hello")
		equal(t, "cleared", h.Health().Standing(a.candidate, time.Now()).Healthy(), true)
	})
}

// An agent that is served an earlier answer would run its calls a second time.
func TestAnswerThatCallsAToolIsNeverServedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		called := &ninelives.Response{Finish: ninelives.FinishToolCalls, Message: message(ninelives.ToolCall{ID: "1", Name: "pay", Arguments: `{}`})}
		h := healed(model("a", step{end(called)}, fails(ninelives.ClassBilling)), Degraded(Stale(10, 0)))
		equal(t, "fresh", len(ask(t, h).resp.Message.ToolCalls()), 1)
		equal(t, "never stale", ask(t, h).resp == nil, true)
	})
}

func TestStaleAnswerIsNotWhatACallerMadeOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		h := healed(down(), Degraded(Stale(10, 0)))
		for range 3 {
			s := ask(t, h)
			equal(t, "text", s.resp.Text(), "the answer")
			s.resp.Message.Parts[0] = ninelives.Text{Text: "mine"}
		}
	})
}
