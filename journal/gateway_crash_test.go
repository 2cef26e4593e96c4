package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// relayDays is how far in the future relayChild lives when it prunes.
const relayDays = 24 * time.Hour

// relayText is the body of a call, which tells its own number and length.
func relayText(n int) string {
	return fmt.Sprintf("body %d %s", n, strings.Repeat(fmt.Sprint("secret-", n, " "), 1+n%10*(n%10)*31))
}

// relayChild does with calls what a gateway does: they begin in their clients'
// bytes, end without anybody waiting, are forgotten, taken up, removed and
// pruned. It says what it is about to do, and what has been done. With many, many
// do so at once, until the process is killed.
func relayChild(j *Journal, many bool) error {
	ctx := context.Background()
	var mu sync.Mutex
	ids := map[int]string{}
	id := func(n int) string {
		mu.Lock()
		defer mu.Unlock()
		return ids[n]
	}
	begin := func(n int, change func(*Call)) error {
		c := relayed(relayText(n))
		c.Repeat, c.Public = fmt.Sprint("repeat-", n), fmt.Sprint("public-", n)
		if change != nil {
			change(&c)
		}
		id, err := j.Begin(ctx, c)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		ids[n] = id
		fmt.Println("begun", id, n)
		return nil
	}
	note := func(n int) error {
		return j.Note(ctx, id(n), ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: n, Text: relayText(n)})
	}
	// end ends calls in the order of their numbers, all of them before any of it is waited for.
	end := func(o Outcome, numbers ...int) error {
		word := "end"
		if o.Forget {
			word = "forget"
		}
		told := make(chan error, len(numbers))
		for _, n := range numbers {
			fmt.Println(word, id(n))
			if o.Fault == nil {
				o.Raw = []byte("answer to " + relayText(n))
				o.Answered = true
			}
			if err := j.EndLater(ctx, id(n), o, func(err error) { told <- err }); err != nil {
				return err
			}
		}
		for range numbers {
			if err := <-told; err != nil {
				return err
			}
		}
		for _, n := range numbers {
			fmt.Println("done", id(n))
		}
		return nil
	}
	remove := func(n int) error {
		fmt.Println("remove", id(n))
		if err := j.Remove(ctx, id(n)); err != nil {
			return err
		}
		fmt.Println("removed", id(n))
		return nil
	}
	if many {
		fails := make(chan error)
		for g := range 8 {
			go func() {
				for n := g; ; n += 8 {
					err := begin(n, nil)
					if err == nil && n%3 > 0 {
						err = end(Outcome{Status: 200, Forget: n%3 == 1}, n)
					}
					if err == nil && n%6 == 5 {
						err = remove(n)
					}
					if err != nil {
						fails <- err
					}
				}
			}()
		}
		return <-fails
	}
	do := func(word string, what func() error) error {
		fmt.Println(word)
		if err := what(); err != nil {
			return err
		}
		fmt.Println("done", word)
		return nil
	}
	prune := func(days time.Duration) func() error {
		return func() error {
			_, err := j.Prune(ctx, time.Now().Add(days*relayDays), Policy{Source: "gateway", Content: 30 * relayDays})
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return begin(1, nil) },
		func() error { return note(1) },
		func() error { return end(Outcome{Status: 200}, 1) },
		func() error { return begin(2, nil) },
		func() error { return end(Outcome{Status: 200, Forget: true}, 2) },
		func() error { return begin(3, nil) },
		func() error { return errors.Join(note(3), note(3)) },
		func() error { return end(Outcome{Status: 200, Forget: true}, 3) },
		func() error { return begin(4, nil) }, // and it stays open
		func() error { return begin(5, nil) },
		func() error {
			return end(Outcome{Status: 503, Fault: &ninelives.Fault{Class: ninelives.ClassOverloaded}, Error: "all failed"}, 5)
		},
		func() error { return begin(6, func(c *Call) { c.Resumes = id(5) }) },
		func() error { return errors.Join(begin(7, nil), begin(8, nil)) },
		func() error { return end(Outcome{Status: 200}, 6, 7, 8) },
		func() error { return remove(1) },
		func() error { return do("prune", prune(31)) },
		func() error { return do("scrub", func() error { return j.Scrub(ctx) }) },
		func() error { return do("drop", prune(401)) },
		func() error { return begin(9, nil) },
		func() error { return end(Outcome{Status: 200}, 9) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// The states that a call of relayChild may be found in.
const (
	isOpen  = "open"  // interrupted, with what was asked
	isEnded = "ended" // with what was asked and answered
	isBare  = "bare"  // ended, without both
	isGone  = "gone"
)

// relayState is the state of a call, all of which fits together.
func relayState(t *testing.T, j *Journal, id string) string {
	t.Helper()
	r, err := j.Call(context.Background(), id)
	if errors.Is(err, ErrUnknown) {
		return isGone
	}
	if err != nil || len(r.Damaged) > 0 {
		t.Fatalf("%s: %v, %v", id, err, r)
	}
	var n int
	if r.Raw != nil {
		if _, err := fmt.Sscanf(string(r.Raw.Body), "body %d ", &n); err != nil || string(r.Raw.Body) != relayText(n) || r.Raw.Path != "/v1/chat/completions" || r.Repeat != fmt.Sprint("repeat-", n) {
			t.Fatalf("%s: half of what was asked: %+v", id, r)
		}
	}
	o := r.Outcome
	switch {
	case r.Raw != nil && o == nil && r.State == StateInterrupted && r.Removed.IsZero():
		return isOpen
	case r.Raw != nil && o != nil && r.Removed.IsZero() && (r.State == StateComplete && string(o.Raw) == "answer to "+relayText(n) || r.State == StateFailed && o.Status == 503 && o.Error == "all failed"):
		return isEnded
	case r.Raw == nil && o != nil && !r.Removed.IsZero() && r.Title == "" && len(r.Notices) == 0 && o.Raw == nil && o.Error == "" && (r.State == StateComplete && o.Status == 200 || r.State == StateFailed && o.Status == 503):
		return isBare
	}
	t.Fatalf("%s is neither open, ended nor bare: %+v %+v", id, r, o)
	return ""
}

// checkRelays compares what a child said with what is in the journal: every call
// is in a state that its last words allow, and none is half there. It says how
// many facts were checked.
func checkRelays(t *testing.T, path, out string) (facts int) {
	t.Helper()
	may := map[string][]string{} // the states, by the id of a call
	number := map[string]int{}
	ended := func(id string) bool { return !slices.Contains(may[id], isOpen) }
	all := func(change func(id string)) {
		for id := range may {
			change(id)
		}
	}
	then := map[string]string{} // what is the state of a call once its end is done
	scrubbed := false
	for line := range strings.Lines(out) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			continue // killed in the middle of the word
		}
		facts++
		word, rest, _ := strings.Cut(line, " ")
		switch id, n, _ := strings.Cut(rest, " "); word {
		case "begun":
			may[id] = []string{isOpen}
			number[id], _ = strconv.Atoi(n)
		case "end":
			may[id] = append(may[id], isEnded)
			then[id] = isEnded
		case "forget":
			may[id] = append(may[id], isBare)
			then[id] = isBare
		case "remove":
			may[id] = append(may[id], isBare)
		case "removed":
			may[id] = []string{isBare}
		case "prune":
			all(func(id string) {
				if ended(id) {
					may[id] = append(may[id], isBare)
				}
			})
		case "drop":
			all(func(id string) {
				if ended(id) {
					may[id] = append(may[id], isGone)
				}
			})
		case "scrub":
		case "done":
			switch id {
			case "prune":
				all(func(id string) {
					if ended(id) {
						may[id] = []string{isBare}
					}
				})
			case "drop":
				all(func(id string) {
					if ended(id) {
						may[id] = []string{isGone}
					}
				})
			case "scrub":
				scrubbed = true
			default:
				may[id] = []string{then[id]}
			}
		}
	}
	if scrubbed {
		for id, states := range may {
			if !slices.Contains(states, isOpen) && !slices.Contains(states, isEnded) && lies(t, path, relayText(number[id])) {
				t.Fatalf("what was asked in %s is still in the file", id)
			}
		}
	}
	j := openTest(t, path)
	for id, states := range may {
		if state := relayState(t, j, id); !slices.Contains(states, state) {
			t.Fatalf("call %d, %s, is %s; its last words allow %v:\n%s", number[id], id, state, states, out)
		}
	}
	// What was written without a word having got out is whole as well, and calls
	// that take each other up know of each other.
	list, damaged, err := j.Calls(context.Background(), Filter{Limit: -1})
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	for _, c := range list {
		state := relayState(t, j, c.ID)
		if c.Resumes != "" {
			if by := relayState(t, j, c.Resumes); by != isGone && call(t, j, c.Resumes).ResumedBy != c.ID {
				t.Fatalf("%s takes up %s, which does not know of it", c.ID, c.Resumes)
			}
		}
		if c.ResumedBy != "" && state != isGone && relayState(t, j, c.ResumedBy) == isGone && !slices.Contains(may[c.ResumedBy], isGone) {
			t.Fatalf("%s was taken up by %s, which is not there", c.ID, c.ResumedBy)
		}
		for _, by := range []struct {
			find func(context.Context, string, string) (*Record, error)
			what string
		}{{j.ByRepeat, c.Repeat}, {j.ByPublic, c.Public}} {
			if by.what == "" {
				continue
			}
			if r, err := by.find(context.Background(), "team", by.what); err != nil || r.ID < c.ID { // another process may have used it again
				t.Fatalf("%s is not found by %q: %v", c.ID, by.what, err)
			}
		}
	}
	sound(t, j)
	return facts
}

func TestKilledAtEveryPointACallOfTheGatewayIsWholeOrNotThere(t *testing.T) {
	if underRace {
		t.Skip("starts many processes: runs without the race detector")
	}
	// Being killed while it is opened is for the other tests.
	made := filepath.Join(t.TempDir(), "j")
	must(t, command("open", made, 0).Run())
	file, err := os.ReadFile(made)
	must(t, err)
	fresh := func() string {
		path := filepath.Join(t.TempDir(), "j")
		must(t, os.WriteFile(path, file, 0o600))
		return path
	}
	path := fresh()
	whole, err := command("relay", path, 0).Output()
	must(t, err)
	all := checkRelays(t, path, string(whole))
	_, count, _ := strings.Cut(strings.TrimSpace(string(whole)), "points ")
	points, err := strconv.Atoi(count)
	if err != nil || points < 80 {
		t.Fatalf("%q: too few points to be killed at", whole)
	}
	kills, few := 0, 0
	for point := 1; point <= points; point++ {
		path := fresh()
		out, err := command("relay", path, point).Output()
		if err != nil { // what queues up may share a transaction, so the last points are not always there
			kills++
		}
		if n := checkRelays(t, path, string(out)); n < all/2 {
			few++
		}
		if point%9 > 0 {
			continue
		}
		// Life goes on in the same file.
		if out, err := command("relay", path, 0).Output(); err != nil {
			t.Fatalf("point %d: the next process fails: %v", point, err)
		} else {
			checkRelays(t, path, string(out))
		}
	}
	if kills < points*9/10 || few < points/4 {
		t.Errorf("%d kills at %d points, %d of them in the first half: the test misses its points", kills, points, few)
	}
	t.Logf("killed at %d points", kills)
}

func TestKilledAtAnyTimeUnderLoadACallOfTheGatewayIsWholeOrNotThere(t *testing.T) {
	if underRace {
		t.Skip("starts many processes: runs without the race detector")
	}
	path := filepath.Join(t.TempDir(), "j")
	for range 4 {
		out, err := command("relay many", path, 200+rand.IntN(800)).Output()
		if err == nil {
			t.Fatal("it was not killed")
		}
		if n := checkRelays(t, path, string(out)); n < 50 {
			t.Errorf("only %d facts", n)
		}
	}
}
