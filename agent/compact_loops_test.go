package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"pgregory.net/rapid"
)

// The ways in which agents were seen to compact for ever, by kind, and the
// properties that rule them out.

// session compacts as a turn does: before each request, as long as it helps.
type session struct {
	c         CompactionSettings
	x         Context
	n         int
	requests  int // for summaries
	entries   int // compactions that were taken
	strikes   int
	overflows int
}

func (s *session) add(messages ...ninelives.Message) {
	for _, m := range messages {
		s.x.Messages = append(s.x.Messages[:len(s.x.Messages):len(s.x.Messages)], m)
		s.x.Through = append(s.x.Through[:len(s.x.Through):len(s.x.Through)], s.n)
		s.n++
	}
}

func (s *session) request(t interface {
	Errorf(string, ...any)
	Helper()
}, ask Summarise) {
	t.Helper()
	for {
		_, level := s.c.Pressure(s.x)
		if level != LevelAct {
			return
		}
		x := s.x
		x.Strikes = s.strikes
		done, view, err := s.c.Compact(context.Background(), x, WhyThreshold, false, func(ctx context.Context, m []ninelives.Message, order string) (string, error) {
			s.requests++
			if n := Estimate(m...) + Estimate(ninelives.SystemText(order)); n > s.x.Window {
				t.Errorf("a request for a summary needs %d tokens of %d", n, s.x.Window)
			}
			return ask(ctx, m, order)
		})
		if err != nil {
			t.Errorf("%v", err)
		}
		check(t, &s.c, x, done, view)
		switch {
		case done.Strike:
			s.strikes++
		case done.Tier == 2 || done.Tier == 3:
			s.strikes = 0
		}
		if done.Tier == 0 {
			if s.x.tokens() > s.x.room() {
				s.overflows++
			}
			return
		}
		s.entries++
		s.x.Messages, s.x.Through = done.Apply(s.x.Messages, s.x.Through)
	}
}

func good(_ context.Context, _ []ninelives.Message, _ string) (string, error) {
	return "Goal: a flag. State: it works.", nil
}

func TestASmallWindowDoesNotSpiral(t *testing.T) {
	for _, window := range []int{2000, 4096, 8192, 16000} {
		s := &session{c: DefaultSettings().Compaction, x: Context{Window: window, Reserve: 1024, Overhead: 500}}
		s.add(ninelives.UserText("Add a flag."))
		for i := range 300 {
			s.add(step(i, strings.Repeat("o", 1500))...)
			s.request(t, good)
		}
		if s.overflows > 0 || s.requests > 300 {
			t.Errorf("window %d: %d requests for summaries in 300 steps, %d times too large", window, s.requests, s.overflows)
		}
		if s.x.Messages[0].Text() != "Add a flag." {
			t.Errorf("window %d: the task is lost: %v", window, texts(s.x.Messages))
		}
	}
}

func TestASummaryThatNeverShrinksIsAskedForTwice(t *testing.T) {
	s := &session{c: DefaultSettings().Compaction, x: Context{Window: 20000}}
	s.add(ninelives.UserText("Talk."))
	for range 300 {
		s.add(ninelives.AssistantText(strings.Repeat("t", 2000)))
		s.request(t, func(context.Context, []ninelives.Message, string) (string, error) {
			return strings.Repeat("no shorter ", 20000), nil
		})
	}
	// At a strike tier 3 may have been tried after tier 2.
	if s.strikes != 2 || s.requests > 2*(1+roundsAtMost) || s.overflows > 0 {
		t.Errorf("%d strikes, %d requests, %d times too large", s.strikes, s.requests, s.overflows)
	}
}

func TestAnUnknownWindowIsNoReasonToAskForEver(t *testing.T) {
	s := &session{c: DefaultSettings().Compaction}
	s.x.Window, _ = s.c.WindowOf(ninelives.Candidate{}, 0)
	s.add(ninelives.UserText("Read it all."))
	for i := range 200 {
		s.add(step(i, strings.Repeat("o", 20000))...)
		s.request(t, good)
	}
	if s.overflows > 0 || s.requests > 200 {
		t.Errorf("%d requests for summaries, %d times too large", s.requests, s.overflows)
	}
}

func TestTheRequestForASummaryOverflowsAndIsMadeSmaller(t *testing.T) {
	// The model that summarises has a smaller window than everybody thinks.
	s := &session{c: DefaultSettings().Compaction, x: Context{Window: 100000}}
	s.c.Chunk = 40000
	s.add(ninelives.UserText("Talk."))
	for range 100 {
		s.add(ninelives.AssistantText(strings.Repeat("t", 3700)))
	}
	refused := 0
	s.request(t, func(_ context.Context, m []ninelives.Message, _ string) (string, error) {
		if Estimate(m...) > 30000 {
			refused++
			return "", fmt.Errorf("asking: %w", &ninelives.Fault{Class: ninelives.ClassContextLength})
		}
		return "short", nil
	})
	if refused == 0 || s.entries != 1 || s.x.tokens() > 70000 {
		t.Errorf("refused %d times, %d compactions, %d tokens", refused, s.entries, s.x.tokens())
	}
	always := 0
	s = &session{c: DefaultSettings().Compaction, x: Context{Window: 100000}}
	s.add(talk(100, 3700)...)
	s.request(t, func(context.Context, []ninelives.Message, string) (string, error) {
		always++
		return "", &ninelives.Fault{Class: ninelives.ClassContextLength}
	})
	if always > 3 || s.overflows > 0 {
		t.Errorf("it asked %d times a model that never had room", always)
	}
}

func TestALongSessionIsNotCompactedAtEveryStep(t *testing.T) {
	s := &session{c: DefaultSettings().Compaction, x: Context{Window: 200000, Reserve: 32000, Overhead: 8000}}
	s.add(ninelives.UserText("Port it."))
	for i := range 800 {
		s.add(step(i, strings.Repeat("o", 3000))...)
		s.add(ninelives.AssistantText(strings.Repeat("t", 600)))
		s.request(t, good)
	}
	if s.entries > 80 || s.requests > 80 || s.overflows > 0 {
		t.Errorf("800 steps: %d compactions, %d requests", s.entries, s.requests)
	}
}

func TestOneHugeResultAmongTheProtectedIsCutAndSaysSo(t *testing.T) {
	c := DefaultSettings().Compaction
	h := slices.Concat([]ninelives.Message{ninelives.UserText("Find it.")}, step(0, "small"), step(1, strings.Repeat("h", 200000)))
	x := full(h, 2)
	x.Window = 16000
	done, view, err := c.Compact(t.Context(), x, WhyThreshold, false, good)
	if err != nil || done.Tier != 5 || done.After > 16000 {
		t.Fatalf("%+v %v", done, err)
	}
	check(t, &c, x, done, view)
	r := view[len(view)-1].Parts[0].(ninelives.ToolResult).Text()
	if !strings.HasSuffix(r, cutNote) || len(r) < 40000 {
		t.Errorf("%d bytes are left, ending in %q", len(r), r[len(r)-60:])
	}
	if got := view[2].Parts[0].(ninelives.ToolResult).Text(); got != "small" {
		t.Errorf("the small result was cut to %q", got)
	}
}

func TestAnOverflowOfAFewMessagesIsAnsweredByWhatIsLongest(t *testing.T) {
	c := DefaultSettings().Compaction
	x := full(slices.Concat([]ninelives.Message{ninelives.UserText("Find it.")}, step(0, strings.Repeat("h", 20000))), 0.5)
	done, view, err := c.Compact(t.Context(), x, WhyOverflow, true, good)
	if err != nil || float64(done.After) > 0.9*float64(done.Before) {
		t.Fatalf("%+v %v", done, err)
	}
	check(t, &c, x, done, view)
}

func TestAWindowThatNobodySetIsNeverFull(t *testing.T) {
	c := DefaultSettings().Compaction
	if share, level := c.Pressure(Context{Overhead: 100000}); share > 0.001 || level != LevelOK {
		t.Errorf("%v %s", share, level)
	}
}

func TestWhatCannotFitIsLeftAsItIs(t *testing.T) {
	c := DefaultSettings().Compaction
	x := full([]ninelives.Message{ninelives.UserText(strings.Repeat("w", 100000))}, 2)
	done, view, err := c.Compact(t.Context(), x, WhyThreshold, false, good)
	if err != nil || done.Tier != 0 || len(view) != 1 {
		t.Errorf("%+v %v", done, err)
	}
}

// Whatever the history and whatever the model says: the tokens fall with every
// compaction, so that there is a last one; what is recorded gives the same
// view; no call is parted from its result; no request for a summary is larger
// than the window; the newest words of the user stay.
func TestCompactingComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session{c: DefaultSettings().Compaction, x: Context{
			Window:   rapid.SampledFrom([]int{1500, 4096, 16000, 64000}).Draw(t, "window"),
			Reserve:  rapid.SampledFrom([]int{0, 1000, 100000}).Draw(t, "reserve"),
			Overhead: rapid.IntRange(0, 1200).Draw(t, "overhead"),
		}}
		s.c.Protected = rapid.SampledFrom([]int{4, 4, 0, 1, 7}).Draw(t, "protected")
		sizes := rapid.SampledFrom([]int{0, 1, 60, 199, 201, 1000, 5000, 40000})
		text := func() string {
			return strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢", "\x00", "\xff", "\n"}).Draw(t, "rune"), sizes.Draw(t, "size"))
		}
		ask := func(context.Context, []ninelives.Message, string) (string, error) {
			switch rapid.IntRange(0, 4).Draw(t, "answer") {
			case 0:
				return "", errors.New("no")
			case 1:
				return "", nil
			case 2:
				return text() + "x", nil
			case 3:
				return "", &ninelives.Fault{Class: ninelives.ClassContextLength}
			}
			return "short", nil
		}
		id := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				s.add(ninelives.UserText("user " + text()))
			case 1:
				s.add(ninelives.AssistantText(text()))
			default:
				call := ninelives.Message{Role: ninelives.RoleAssistant}
				var results []ninelives.Message
				for range rapid.IntRange(1, 4).Draw(t, "calls") {
					id++
					name := fmt.Sprintf("c%d", id)
					call.Parts = append(call.Parts, ninelives.ToolCall{ID: name, Name: "run", Arguments: text()})
					results = append(results, ninelives.ToolResultText(name, "run", text()))
				}
				s.add(call)
				s.add(results[:rapid.IntRange(0, len(results)).Draw(t, "answered")]...)
			}
			s.request(t, ask)
			if force := rapid.SampledFrom([]string{"", "", WhyAsked, WhyOverflow}).Draw(t, "force"); force != "" {
				x := s.x
				x.Strikes = s.strikes
				done, view, err := s.c.Compact(context.Background(), x, force, true, ask)
				if err != nil {
					t.Errorf("%v", err)
				}
				check(t, &s.c, x, done, view)
				s.x.Messages, s.x.Through = done.Apply(s.x.Messages, s.x.Through)
			}
		}
	})
}

// The same input gives the same plan, and Fit what fits or an error.
func TestFitFitsOrSaysThatItDoesNot(t *testing.T) {
	c := DefaultSettings().Compaction
	rapid.Check(t, func(t *rapid.T) {
		h := []ninelives.Message{ninelives.UserText("task")}
		for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
			h = append(h, step(i, strings.Repeat("r", rapid.SampledFrom([]int{10, 500, 3000}).Draw(t, "size")))...)
			if rapid.Bool().Draw(t, "word") {
				h = append(h, ninelives.UserText(strings.Repeat("w", rapid.IntRange(1, 3000).Draw(t, "words"))))
			}
		}
		x := full(h, 0.9)
		x.Overhead = rapid.IntRange(0, 1000).Draw(t, "overhead")
		tokens := rapid.IntRange(100, 20000).Draw(t, "tokens")
		view, err := c.Fit(x, tokens)
		if err != nil {
			if n := x.Overhead + Estimate(c.plan(x).protected...) + digest(fitHead).size; n <= tokens {
				t.Errorf("what must be kept needs %d of %d tokens: %v", n, tokens, err)
			}
			return
		}
		if n := x.Overhead + Estimate(view...); n > tokens {
			t.Errorf("%d tokens, not %d", n, tokens)
		}
		if problem := unpaired(view, h); problem != "" {
			t.Errorf("%s", problem)
		}
		again, _ := c.Fit(x, tokens)
		if !slices.Equal(texts(again), texts(view)) {
			t.Error("the same input gave another view")
		}
	})
}

func TestFitLeavesOutTheSameFromRequestToRequest(t *testing.T) {
	c := DefaultSettings().Compaction
	h := history(60, 150)
	changed := 0
	var before []ninelives.Message
	for i := range 20 {
		h = append(h, step(100+i, "ok")...)
		view, err := c.Fit(full(h, 0.9), 2000)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !slices.Equal(texts(view[:len(before)-6]), texts(before[:len(before)-6])) {
			changed++
		}
		before = view
	}
	if changed > 4 {
		t.Errorf("the prefix changed %d times in 20 requests", changed)
	}
}

func TestFitLeavesOutWhatIsOldBeforeSummariesAndTheUsersWords(t *testing.T) {
	c := DefaultSettings().Compaction
	h := slices.Concat([]ninelives.Message{ninelives.UserText("the task"), *digest(summaryHead + "so far").Message}, talk(30, 1000)[1:])
	x := full(h, 0.9)
	view, err := c.Fit(x, 3000)
	if err != nil {
		t.Fatal(err)
	}
	if view[0].Text() != "the task" || view[1].Text() != summaryHead+"so far" || view[2].Text() != fitHead {
		t.Errorf("the view is %v", texts(view))
	}
	if _, err := c.Fit(x, 500); err == nil || !strings.Contains(err.Error(), "the last 4 messages") {
		t.Errorf("four messages of 1,000 characters in 500 tokens: %v", err)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		h := history(n/2, 800)
		x := full(h, 0.95)
		c := DefaultSettings().Compaction
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Compact(b.Context(), x, WhyThreshold, false, good); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
