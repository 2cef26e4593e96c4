package heal

import (
	"errors"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// long is a request of 150 tokens; it can be made to fit, and remembers for what.
func long(rooms *[]int, fit func(tokens int) (*ninelives.Request, error)) *ninelives.Request {
	req := ninelives.Prompt(strings.Repeat("x", 555))
	req.Fit = func(tokens int) (*ninelives.Request, error) {
		*rooms = append(*rooms, tokens)
		return fit(tokens)
	}
	return req
}

// shortened gives as much as fits.
func shortened(tokens int) (*ninelives.Request, error) {
	return ninelives.Prompt(strings.Repeat("s", tokens*3)), nil
}

func translations(s seen) (list []string) {
	for _, n := range s.notices {
		if n.Kind == ninelives.NoticeTranslate {
			list = append(list, n.Candidate+": "+n.Text)
		}
	}
	return list
}

func TestFailoverToASmallerWindowSendsWhatFits(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var rooms []int
		a, b := sized(model("a", fails(ninelives.ClassBilling)), 200), sized(model("b", says("hello")), 96)
		s := watch(t.Context(), healed(a, Fallback(b)), long(&rooms, shortened))
		equal(t, "answer", s.text, "hello")
		equal(t, "a was sent all", len(a.requests[0].Messages[0].Text()), 555)
		equal(t, "b was sent what fits", b.requests[0].Messages[0].Text(), strings.Repeat("s", 84*3))
		equal(t, "b's attempt has its number", b.requests[0].Attempt.Number, 2)
		equal(t, "an eighth is kept for the answer", rooms, []int{84})
		equal(t, "told", translations(s), []string{"b/m: the request was made to fit the window of 96 tokens: about 68 tokens instead of 150"})
	})
}

func TestTheAnswersLimitIsKeptFree(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		for _, row := range []struct{ max, output, window, room int }{
			{30, 0, 160, 130}, {1000, 0, 160, 80}, {30, 0, 180, 0},
			{0, 30, 160, 130}, {0, 1000, 180, 120}, {0, 30, 180, 0}, {10, 1000, 160, 0},
		} {
			var rooms []int
			a := sized(model("a", says("hello")), row.window)
			a.candidate.MaxOutput = row.output
			req := long(&rooms, shortened)
			req.MaxTokens = row.max
			watch(t.Context(), healed(a), req)
			if row.room == 0 {
				equal(t, "it fits as it is", len(rooms), 0)
				continue
			}
			equal(t, "room", rooms, []int{row.room})
		}
	})
}

func TestWithoutFitASmallWindowIsAskedWithAllOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := sized(model("a", fails(ninelives.ClassBilling)), 200), sized(model("b", fails(ninelives.ClassContextLength)), 96)
		s := watch(t.Context(), healed(a, Fallback(b)), ninelives.Prompt(strings.Repeat("x", 555)))
		equal(t, "b was sent all", len(b.requests[0].Messages[0].Text()), 555)
		equal(t, "told", len(translations(s)), 0)
	})
}

func TestAGuessedWindowIsNoReasonToLeaveAnythingOut(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var rooms []int
		a := sized(model("a", says("hello")), 96)
		a.candidate.WindowSource = "default"
		watch(t.Context(), healed(a), long(&rooms, shortened))
		equal(t, "asked to fit", len(rooms), 0)
	})
}

func TestWhatCannotBeMadeToFitGoesWhereThereIsRoom(t *testing.T) {
	for name, fit := range map[string]func(int) (*ninelives.Request, error){
		"an error":       func(int) (*ninelives.Request, error) { return nil, errors.New("the last 4 messages are too large") },
		"nothing":        func(int) (*ninelives.Request, error) { return nil, nil },
		"no smaller one": func(int) (*ninelives.Request, error) { return ninelives.Prompt(strings.Repeat("x", 555)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				var rooms []int
				a, b, c := sized(model("a", fails(ninelives.ClassBilling)), 200), sized(model("b", says("b")), 96), sized(model("c", says("c")), 300)
				s := watch(t.Context(), healed(a, Fallback(b), Fallback(c)), long(&rooms, fit))
				equal(t, "answer", s.text, "c")
				equal(t, "b was not asked", len(b.asked), 0)
				equal(t, "asked to fit once", rooms, []int{84})
				if told := translations(s); len(told) != 1 || !strings.Contains(told[0], "cannot be made to fit the window of 96 tokens") {
					t.Errorf("told %q", told)
				}
				// Where nobody has room it is asked as it is, and its own word counts.
				b.steps = []step{fails(ninelives.ClassContextLength)}
				alone := watch(t.Context(), healed(b), long(&rooms, fit))
				var f *ninelives.Fault
				equal(t, "its own word", errors.As(alone.err, &f) && f.Class == ninelives.ClassContextLength, true)
			})
		})
	}
}

func TestARetryFitsOnceAndALearntWindowAnew(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var rooms []int
		a := sized(model("a", fails(ninelives.ClassOverloaded), says("hello")), 96)
		h := healed(a)
		equal(t, "answer", watch(t.Context(), h, long(&rooms, shortened)).text, "hello")
		equal(t, "asked twice, made to fit once", rooms, []int{84})
		told := fault(ninelives.ClassContextLength)
		told.Window = 48
		a.steps, a.asked = []step{with(told), says("hello")}, nil
		watch(t.Context(), h, long(&rooms, shortened))
		equal(t, "answer", watch(t.Context(), h, long(&rooms, shortened)).text, "hello")
		equal(t, "the second call knows", rooms, []int{84, 84, 42})
	})
}

func TestAContinuationLeavesRoomForWhatItContinues(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var rooms []int
		a := sized(model("a", step{text(strings.Repeat("word ", 37)), broken}), 1000)
		b := sized(model("b", says("end")), 96)
		a.steps = append(a.steps, fails(ninelives.ClassBilling))
		s := watch(t.Context(), healed(a, Fallback(b), Rescue(ModeContinue)), long(&rooms, shortened))
		equal(t, "ends", s.ends, 1)
		equal(t, "room", rooms, []int{84 - 50})
		if last := b.requests[0].Messages; len(last) < 2 {
			t.Errorf("the continuation is not asked for: %v", last)
		}
	})
}

func TestARaceIsNotRunWithLess(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var rooms []int
		a, b := sized(model("a", step{wait(10 * time.Second), text("a"), end(answer("a"))}), 200), sized(model("b", says("b")), 96)
		s := watch(t.Context(), healed(a, Fallback(b), Hedged(time.Second)), long(&rooms, shortened))
		equal(t, "answer", s.text, "a")
		equal(t, "b asked", len(b.asked), 0)
	})
}

func TestWhatCanBeMadeToFitIsAsAbleAsAnyOther(t *testing.T) {
	p := DefaultPolicy()
	small := contender("a", func(c *Contender) { c.Candidate.Window, c.Candidate.WindowSource = 10, "exact" })
	unfit := small
	unfit.Unfit = true
	for _, row := range []struct {
		name   string
		first  Contender
		canFit bool
		want   int
	}{{"it cannot", small, false, 1}, {"it can", small, true, 0}, {"it could not", unfit, true, 1}} {
		s := situation(row.first, contender("b"))
		s.Facts.Input, s.Facts.CanFit = 100, row.canFit
		equal(t, row.name, Decide(&p, s).Candidate, row.want)
		equal(t, row.name+", written", []bool{strings.Contains(s.String(), "can be made to fit"), strings.Contains(s.String(), "unfit")},
			[]bool{row.canFit, row.first.Unfit})
	}
}
