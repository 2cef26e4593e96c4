package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// child is what the test binary does as a process of its own. Its output is
// one fact a line, written as soon as it holds.
func child(job string) int {
	path := os.Getenv("JOURNAL_TEST_PATH")
	die := func() { // kill -9
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var points atomic.Int64
	limit, _ := strconv.ParseInt(os.Getenv("JOURNAL_TEST_POINT"), 10, 64)
	j, err := OpenObserved(path, func(string) {
		if points.Add(1) == limit {
			die()
		}
	})
	if err != nil {
		return fail(err)
	}
	one := func(i int) error {
		text := fmt.Sprintf("input %d %s", i, strings.Repeat("x", i*997%5000))
		id, err := j.Begin(context.Background(), Call{Source: "child", Request: ninelives.Prompt(text)})
		if err != nil {
			return err
		}
		fmt.Printf("begun %s %s\n", id, text)
		if err := j.Note(context.Background(), id, ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: i}); err != nil {
			return err
		}
		if err := j.End(context.Background(), id, Outcome{Response: answer(text)}); err != nil {
			return err
		}
		fmt.Printf("ended %s\n", id)
		return nil
	}
	switch job {
	case "three": // three calls, one after the other, killed at a point
		for i := range 3 {
			if err := one(i); err != nil {
				return fail(err)
			}
		}
		if err := j.Close(); err != nil {
			return fail(err)
		}
		fmt.Println("points", points.Load())
	case "many": // calls from many goroutines, until killed
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := 0; ; i += 8 {
					if err := one(g + i); err != nil {
						fmt.Fprintln(os.Stderr, err)
						return
					}
				}
			})
		}
		wg.Wait()
		return 1
	case "hundred": // a hundred calls, then a tidy end
		for i := range 100 {
			if err := one(i); err != nil {
				return fail(err)
			}
		}
		if err := j.Close(); err != nil {
			return fail(err)
		}
	case "hold": // one call that stays open
		id, err := j.Begin(context.Background(), Call{Request: ninelives.Prompt("hold")})
		if err != nil {
			return fail(err)
		}
		fmt.Println("begun", id)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "open": // nothing but opening
		if err := j.Close(); err != nil {
			return fail(err)
		}
	default:
		work := sessionChild
		if strings.HasPrefix(job, "relay") { // what a gateway does with calls
			work = func(job string, j *Journal) error { return relayChild(j, job == "relay many") }
		}
		if err := work(job, j); err != nil {
			return fail(err)
		}
		if err := j.Close(); err != nil {
			return fail(err)
		}
		if job == "talk" || job == "relay" {
			fmt.Println("points", points.Load())
		}
	}
	return 0
}

func command(job, path string, point int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_CHILD="+job, "JOURNAL_TEST_PATH="+path, "JOURNAL_TEST_POINT="+strconv.Itoa(point))
	return cmd
}

// check compares what a child said with what is in the journal: every input it
// was given an id for, whole, and every end that it was told of.
func check(t *testing.T, path, said string) (interrupted int) {
	t.Helper()
	j := openTest(t, path)
	known := map[string]bool{}
	for line := range strings.Lines(said) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			continue // killed in the middle of the word
		}
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "begun":
			id, text, _ := strings.Cut(rest, " ")
			known[id] = true
			r, err := j.Call(context.Background(), id)
			if err != nil {
				t.Fatalf("an accepted input was lost: %v", err)
			}
			if got := r.Request.Messages[0].Text(); got != text || len(r.Damaged) > 0 {
				t.Fatalf("%s: %q, want %q; %v", id, got, text, r.Damaged)
			}
			switch {
			case r.State == StateComplete && r.Outcome != nil && r.Outcome.Response.Text() == text && len(r.Notices) == 1:
			case r.State == StateInterrupted && r.Outcome == nil && r.Resumable():
				interrupted++
			default:
				t.Fatalf("%s: neither complete nor interrupted: %+v", id, r)
			}
		case "ended":
			if r := call(t, j, rest); r.State != StateComplete {
				t.Fatalf("%s was ended and is %s", rest, r.State)
			}
		}
	}
	// What was written without a word having got out is whole as well.
	list, damaged, err := j.Calls(t.Context(), Filter{Limit: -1})
	if err != nil || len(damaged) > 0 || len(list) < len(known) {
		t.Fatalf("%d calls, %d known: %v %v", len(list), len(known), damaged, err)
	}
	for _, s := range list {
		if r := call(t, j, s.ID); len(r.Damaged) > 0 || r.Request == nil || r.State != s.State {
			t.Fatalf("%+v", r)
		}
	}
	sound(t, j)
	return interrupted
}

func TestKilledAtEveryPointNoInputIsLost(t *testing.T) {
	if underRace {
		t.Skip("starts many processes: runs without the race detector")
	}
	whole, err := command("three", filepath.Join(t.TempDir(), "j"), 0).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, count, _ := strings.Cut(strings.TrimSpace(string(whole)), "points ")
	points, err := strconv.Atoi(count)
	if err != nil || points < 30 {
		t.Fatalf("%q: too few points to be killed at", whole)
	}
	kills, interrupted := 0, 0
	for point := 1; point <= points; point++ {
		path := filepath.Join(t.TempDir(), "j")
		said, err := command("three", path, point).Output()
		if err != nil { // a note may share a transaction, so the last points are not always there
			kills++
		}
		interrupted += check(t, path, string(said))
		if point%5 > 0 {
			continue
		}
		// Life goes on in the same file.
		if said, err := command("three", path, 0).Output(); err != nil {
			t.Fatalf("point %d: the next process fails: %v", point, err)
		} else {
			check(t, path, string(said))
		}
	}
	if kills < 30 || interrupted < kills/4 {
		t.Errorf("only %d kills and %d interrupted calls: the test misses its points", kills, interrupted)
	}
	t.Logf("%d kills, %d calls interrupted", kills, interrupted)
}

func TestKilledAtAnyTimeUnderLoadNoInputIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for range 5 {
		var said bytes.Buffer
		cmd := command("many", path, 100+rand.IntN(1000))
		cmd.Stdout = &said
		if err := cmd.Run(); err == nil {
			t.Fatal("it was not killed")
		}
		check(t, path, said.String())
	}
}

// hold starts a process that has a call open.
func hold(t *testing.T, path string) (cmd *exec.Cmd, id string) {
	t.Helper()
	cmd = command("hold", path, 0)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(strings.TrimPrefix(line, "begun "))
}

func TestACallIsInterruptedWhenItsProcessHasDiedAndNoSooner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	cmd, id := hold(t, path)
	mine := begin(t, j, "mine")
	if got := call(t, j, id).State; got != StateRunning {
		t.Errorf("while its process lives it is %s", got)
	}
	if _, err := j.Begin(t.Context(), Call{Resumes: id}); !errors.Is(err, ErrRunning) {
		t.Errorf("%v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := call(t, j, id).State; got != StateInterrupted {
		t.Errorf("when its process has died it is %s", got)
	}
	list, _, err := j.Calls(t.Context(), Filter{Resumable: true})
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("%+v %v", list, err)
	}
	next, err := j.Begin(t.Context(), Call{Request: ninelives.Prompt("hold"), Resumes: id})
	if err != nil {
		t.Fatal(err)
	}
	if r := call(t, j, id); r.State != StateInterrupted || r.ResumedBy != next || r.Resumable() {
		t.Errorf("%+v", r)
	}
	if got := call(t, j, mine).State; got != StateRunning {
		t.Errorf("my own call is %s", got)
	}
	files, err := os.ReadDir(path + ".owners")
	if err != nil || len(files) != 2 { // mine and the one for opening
		t.Errorf("the dead process has left its file: %v %v", files, err)
	}
}

func TestACallLeftOpenByATidyProcessIsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	id := begin(t, j, "left")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := call(t, openTest(t, path), id).State; got != StateInterrupted {
		t.Errorf("it is %s", got)
	}
}

func TestManyProcessesWriteOneJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "j")
	const n = 4
	var wg sync.WaitGroup
	var said [n][]byte
	for i := range n { // all of them are the first to open it
		wg.Go(func() {
			var err error
			if said[i], err = command("hundred", path, 0).Output(); err != nil {
				var exit *exec.ExitError
				errors.As(err, &exit)
				t.Errorf("%v: %s", err, exit.Stderr)
			}
		})
	}
	wg.Wait()
	for _, s := range said {
		if got := check(t, path, string(s)); got != 0 {
			t.Errorf("%d calls interrupted", got)
		}
	}
	list, _, err := openTest(t, path).Calls(t.Context(), Filter{Limit: -1})
	if err != nil || len(list) != 100*n {
		t.Errorf("%d calls, %v", len(list), err)
	}
}

// sound fails the test where the file of a journal is damaged.
func sound(t *testing.T, j *Journal) {
	t.Helper()
	var verdict string
	if err := j.readers.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity: %q %v", verdict, err)
	}
}
