package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

func keyOf(client, session, body string) repeatKey {
	return repeatOf(client, ninelives.OpenAIChat, "/v1/chat/completions", &control{Session: session}, []byte(body))
}

func TestARepeatedRequestIsAnsweredWithoutAskingAnybody(t *testing.T) {
	var x exhaustedCalls
	key := keyOf("alice", "s1", "body")
	x.remember(is(key), "default", spentOn(20*time.Second, ninelives.ClassRateLimit), errorTime)
	for _, tt := range []struct {
		after time.Duration
		want  string // Retry-After; empty: the request is carried out
	}{
		{0, "20"}, {4500 * time.Millisecond, "16"}, {20*time.Second - 1, "1"}, {20 * time.Second, ""}, {time.Hour, ""},
	} {
		err, ok := x.recall(is(key), errorTime.Add(tt.after))
		if !ok {
			if tt.want != "" {
				t.Errorf("after %v it is asked anew", tt.after)
			}
			continue
		}
		a := answerFor(ninelives.OpenAIChat, clientOther, false, err, errorTime.Add(tt.after))
		if got := a.Header.Get("Retry-After"); got != tt.want || a.Status != 429 {
			t.Errorf("after %v it is told %d, %q, want 429, %q", tt.after, a.Status, got, tt.want)
		}
	}
}

func TestARepeatIsTheSameClientSessionPlanAndBytes(t *testing.T) {
	var x exhaustedCalls
	x.remember(is(keyOf("alice", "s1", "body")), "default", spentOn(20*time.Second, ninelives.ClassOverloaded), errorTime)
	routed := repeatOf("alice", ninelives.OpenAIChat, "/v1/chat/completions", &control{Session: "s1", Route: "other"}, []byte("body"))
	fallen := repeatOf("alice", ninelives.OpenAIChat, "/v1/chat/completions", &control{Session: "s1", Fallbacks: []string{"b"}}, []byte("body"))
	for name, key := range map[string]repeatKey{
		"another client": keyOf("bob", "s1", "body"), "another session": keyOf("alice", "s2", "body"),
		"another body": keyOf("alice", "s1", "Body"), "another route": routed, "other fallbacks": fallen,
		"another protocol": repeatOf("alice", ninelives.OpenAIResponses, "/v1/chat/completions", &control{Session: "s1"}, []byte("body")),
	} {
		if _, ok := x.recall(is(key), errorTime); ok {
			t.Errorf("%s: it is taken for a repeat", name)
		}
	}
	if _, ok := x.recall(is(keyOf("alice", "s1", "body")), errorTime); !ok {
		t.Error("the same request is asked anew")
	}
}

func TestOnlyWhatWasTriedInFullIsRemembered(t *testing.T) {
	hinted := spentOn(0, ninelives.ClassRateLimit)
	hinted.Fault.RetryAfter = 7 * time.Second
	for name, tt := range map[string]struct {
		err  error
		want time.Duration
	}{
		"until the first is back":        {spentOn(12*time.Second, ninelives.ClassOverloaded), 12 * time.Second},
		"no longer than 30 s":            {spentOn(time.Hour, ninelives.ClassBilling), 30 * time.Second},
		"not if nobody rests":            {spentOn(0, ninelives.ClassStreamBroken), 0},
		"as long as the provider asked":  {hinted, 7 * time.Second},
		"under a wrapper":                {fmt.Errorf("call: %w", spentOn(5*time.Second, ninelives.ClassEmpty)), 5 * time.Second},
		"not the request's own fault":    {&ninelives.Fault{Class: ninelives.ClassFormat, Status: 400}, 0},
		"not an overflow":                {&ninelives.Fault{Class: ninelives.ClassContextLength, Status: 400}, 0},
		"not what the gateway refuses":   {&refused{Trouble: troubleLimited, Wait: 9 * time.Second}, 0},
		"not for want of time":           {&heal.Exhausted{Deadline: true, Back: errorTime.Add(time.Minute)}, 0},
		"not a client that has left":     {context.Canceled, 0},
		"not a mistake of the gateway's": {errors.New("a map is nil"), 0},
	} {
		m, ok := remembering("default", tt.err, errorTime)
		if ok != (tt.want > 0) || ok && m.until.Sub(errorTime) != tt.want {
			t.Errorf("%s: %v until %v, want %v", name, ok, m.until.Sub(errorTime), tt.want)
		}
	}
}

func TestWhatIsRememberedHoldsNothingOfTheRequest(t *testing.T) {
	e := spentOn(12*time.Second, ninelives.ClassOverloaded)
	e.Request = ninelives.Prompt("a long conversation")
	e.Fault.Partial = &ninelives.Response{Message: ninelives.AssistantText("half of an answer")}
	e.Fault.Err = errors.New("cause")
	m, _ := remembering("default", e, errorTime)
	kept := m.err.(*heal.Exhausted)
	for _, f := range []*ninelives.Fault{kept.Fault, kept.Trail[0].Fault} {
		if f.Partial != nil || f.Err != nil {
			t.Errorf("kept: %+v", f)
		}
	}
	if kept.Request != nil || e.Request == nil || e.Fault.Partial == nil {
		t.Error("the request is kept, or the error was changed")
	}
	// The answer is the same, nevertheless.
	a, b := answerFor(ninelives.OpenAIChat, clientOther, true, e, errorTime), answerFor(ninelives.OpenAIChat, clientOther, true, m.err, errorTime)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("\n got %v\nwant %v", b, a)
	}
}

func TestARouteThatIsBackIsAskedAtOnce(t *testing.T) {
	var x exhaustedCalls
	a, b := keyOf("alice", "s1", "a"), keyOf("alice", "s1", "b")
	x.remember(is(a), "fast", spentOn(20*time.Second, ninelives.ClassOverloaded), errorTime)
	x.remember(is(b), "slow", spentOn(20*time.Second, ninelives.ClassOverloaded), errorTime)
	x.healthy("fast")
	if _, ok := x.recall(is(a), errorTime); ok {
		t.Error("the route has a healthy candidate, and its request is still refused")
	}
	if _, ok := x.recall(is(b), errorTime); !ok {
		t.Error("the other route was forgotten too")
	}
}

func TestTheMemoryOfFailuresIsBounded(t *testing.T) {
	var x exhaustedCalls
	for i := range maxMemories + 10 {
		x.remember(is(keyOf("alice", "", fmt.Sprint(i))), "default", spentOn(20*time.Second, ninelives.ClassOverloaded), errorTime)
	}
	if n := len(x.lru.index); n != maxMemories {
		t.Errorf("%d are kept, want %d", n, maxMemories)
	}
	if _, ok := x.recall(is(keyOf("alice", "", "0")), errorTime); ok {
		t.Error("the oldest is still there")
	}
}

// opencode's loop: the turn is refused, the client compacts (one answered call),
// and sends the turn again, hardly smaller.
func TestALoopOfCompactionsEnds(t *testing.T) {
	var g overflowGuard
	now, size, told := errorTime, 1_000_000, 0
	for turn := range 300 {
		key := keyOf("alice", "s1", fmt.Sprint("turn ", turn)) // never the same bytes
		if g.refuses(key, size-turn, now) {
			break
		}
		told++
		g.answered(is(key), now)
		now = now.Add(600 * time.Millisecond)
	}
	if told != 2 {
		t.Errorf("the client was told %d times that its request is too long, want 2", told)
	}
	if !g.refuses(keyOf("alice", "s1", "another"), size, now) {
		t.Error("it is told so again afterwards")
	}
}

func TestASessionThatGetsOnIsNotHeldForALoop(t *testing.T) {
	for name, step := range map[string]func(g *overflowGuard, key repeatKey, turn int, now *time.Time) (size int){
		"the request becomes smaller": func(_ *overflowGuard, _ repeatKey, turn int, _ *time.Time) int { return 1_000_000 >> turn },
		"turns are answered in between": func(g *overflowGuard, key repeatKey, _ int, now *time.Time) int {
			for range progress {
				g.answered(is(key), *now)
			}
			return 1_000_000
		},
		"hours lie between": func(_ *overflowGuard, _ repeatKey, _ int, now *time.Time) int {
			*now = now.Add(overflowMemory)
			return 1_000_000
		},
	} {
		var g overflowGuard
		now := errorTime
		key := keyOf("alice", "s1", "x")
		for turn := range 8 {
			if size := step(&g, key, turn, &now); g.refuses(key, size, now) {
				t.Errorf("%s: turn %d is held for a loop", name, turn)
			}
		}
	}
}

func TestWithoutASessionOnlyTheSameBytesAreALoop(t *testing.T) {
	var g overflowGuard
	for i := range 10 {
		if g.refuses(keyOf("", "", fmt.Sprint("request ", i)), 1000, errorTime) {
			t.Fatal("other people's requests count as a loop")
		}
	}
	for i, want := range []bool{false, true, true} { // "request 0" was refused once already
		if got := g.refuses(keyOf("", "", "request 0"), 1000, errorTime); got != want {
			t.Errorf("the same request, time %d: %v, want %v", i+2, got, want)
		}
	}
	unread := repeatKey{client: "alice", plan: "p"}
	for range 5 {
		if g.refuses(unread, 64<<20, errorTime) {
			t.Error("bodies that were never read count as the same")
		}
	}
}

// However requests come, a session is told at most twice in a row that its
// request is too long without having made it smaller or having got on.
func TestNoSessionLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g overflowGuard
		least, told, since := 0, 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			key := repeatKey{client: "c", session: "s", body: sha256.Sum256(nil)}
			if rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
				g.answered(is(key), errorTime)
				since++
				continue
			}
			size := rapid.IntRange(100, 1000).Draw(t, "size")
			plain := g.refuses(key, size, errorTime)
			if told == 0 || since >= progress || float64(size) < 0.9*float64(least) {
				least, told = size, 0
			}
			least, told, since = min(least, size), told+1, 0
			if plain != (told > 2) {
				t.Fatalf("refusal %d of the same size: plain is %v", told, plain)
			}
		}
	})
}

func TestAClientsOwnRetriesAreNoticed(t *testing.T) {
	for v, want := range map[string]int{"": 0, "0": 0, "2": 2, "-1": 0, "99999999999999999999": 0, "two": 0, strings.Repeat("1", 5): 0} {
		if got := clientRetry(map[string][]string{"X-Stainless-Retry-Count": {v}}); got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}

func is(key repeatKey) func() repeatKey { return func() repeatKey { return key } }

func TestABodyIsHashedOnlyWhereSomethingIsRemembered(t *testing.T) {
	var x exhaustedCalls
	var g overflowGuard
	never := func() repeatKey { t.Error("the key was asked for"); return repeatKey{} }
	x.recall(never, errorTime)
	x.remember(never, "default", errors.New("not one to remember"), errorTime)
	g.answered(never, errorTime)
}
