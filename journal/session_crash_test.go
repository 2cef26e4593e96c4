package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sessionChild is what the test binary does with sessions as a process of its
// own. Its output is one fact a line, written as soon as it holds.
func sessionChild(job string, j *Journal) error {
	ctx := context.Background()
	// A transaction is as many entries as its number; each names its number.
	tx := func(n int) (Head, []Entry) {
		return Head{Title: "talk", State: fmt.Sprint(n)}, slices.Repeat(words(fmt.Sprint(n)), n)
	}
	job, id, _ := strings.Cut(job, " of ")
	switch job {
	case "talk": // a session of five transactions, left and taken up in between
		h, first := tx(1)
		s, err := j.NewSession(ctx, h, first...)
		if err != nil {
			return err
		}
		fmt.Println("durable", s.ID(), 1)
		for n := 2; n <= 5; n++ {
			if n == 4 {
				if err := s.Close(); err != nil {
					return err
				}
				if s, _, _, err = j.TakeSession(ctx, s.ID()); err != nil {
					return err
				}
			}
			hash, err := j.Blobs().Put(ctx, []byte(s.ID()+fmt.Sprint(n)))
			if err != nil {
				return err
			}
			fmt.Println("blob", hash)
			h, entries := tx(n)
			entries[0].Kind = "blob " + hash
			if err := s.Append(ctx, &h, entries...); err != nil {
				return err
			}
			fmt.Println("durable", s.ID(), n)
		}
		return s.Close()
	case "talk on": // more of it, until killed
		s, entries, _, err := j.TakeSession(ctx, id)
		if err != nil {
			return err
		}
		last := lastTx(entries)
		var turn sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					turn.Lock() // so that the numbers are in the order of the transactions
					last++
					h, entries := Head{State: fmt.Sprint(last)}, slices.Repeat(words(fmt.Sprint(last)), 3)
					err := s.Append(ctx, &h, entries...)
					if err == nil {
						fmt.Println("durable", s.ID(), last)
					}
					turn.Unlock()
					if err != nil {
						fmt.Fprintln(os.Stderr, err)
						return
					}
				}
			})
		}
		wg.Wait()
		return errors.New("it was not killed")
	case "hold session":
		if _, _, _, err := j.TakeSession(ctx, id); err != nil {
			return err
		}
		fmt.Println("held", os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "share session": // it is taken, added to and left, ten times
		for i := 0; i < 10; {
			s, _, damaged, err := j.TakeSession(ctx, id)
			if errors.Is(err, ErrTaken) {
				time.Sleep(time.Millisecond) // until it is free
				continue
			}
			if err != nil || len(damaged) > 0 {
				return errors.Join(err, fmt.Errorf("%v", damaged))
			}
			err = s.Append(ctx, nil, words(fmt.Sprint(os.Getpid(), " ", i, " a"), fmt.Sprint(os.Getpid(), " ", i, " b"))...)
			if err := errors.Join(err, s.Close()); err != nil {
				return err
			}
			i++
		}
	case "large blob":
		_, err := j.Blobs().Put(ctx, make([]byte, 4<<20))
		return err
	case "blobs":
		hash, err := j.Blobs().Put(ctx, []byte("hello"))
		fmt.Println(err)
		if hash == "" {
			hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
		}
		_, err = j.Blobs().Get(ctx, hash)
		fmt.Println(err)
	}
	return nil
}

// lastTx is the number of the last transaction of entries.
func lastTx(entries []Entry) int {
	if len(entries) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.Trim(string(entries[len(entries)-1].Data), `"`))
	return n
}

// checkTalks compares what children said with what is in the journal: all
// sessions hold whole transactions, from the first on, at least as far as the
// child was told; and the blobs they speak of are there.
func checkTalks(t *testing.T, path, out string, size func(n int) int) (cut int) {
	t.Helper()
	ctx := context.Background()
	j := openTest(t, path)
	told := map[string]int{}
	for line := range strings.Lines(out) {
		line, whole := strings.CutSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case !whole: // killed in the middle of the word
		case fields[0] == "durable":
			told[fields[1]], _ = strconv.Atoi(fields[2])
		case fields[0] == "blob":
			if _, err := j.Blobs().Get(ctx, fields[1]); err != nil {
				t.Fatalf("a blob was lost: %v", err)
			}
		}
	}
	list, damaged, err := j.Sessions(ctx, SessionFilter{Limit: -1})
	if err != nil || len(damaged) > 0 || len(list) < len(told) {
		t.Fatalf("%d sessions, %d known: %v %v", len(list), len(told), damaged, err)
	}
	for _, sum := range list {
		if sum.Running {
			t.Fatalf("%+v: its process has died", sum)
		}
		s, entries := take(t, j, sum.ID)
		last := lastTx(entries)
		if last < told[sum.ID] || sum.State != fmt.Sprint(last) || sum.Entries != len(entries) || s.Version() != int64(len(entries)) {
			t.Fatalf("transaction %d was durable, %d is the last, the summary says %+v of %d entries", told[sum.ID], last, sum, len(entries))
		}
		i := 0
		for n := 1; n <= last; n++ {
			for range size(n) {
				if i >= len(entries) || entries[i].Seq != int64(i+1) || string(entries[i].Data) != fmt.Sprintf("%q", fmt.Sprint(n)) {
					t.Fatalf("transaction %d is not whole: %q", n, said(entries))
				}
				if hash, is := strings.CutPrefix(entries[i].Kind, "blob "); is {
					if _, err := j.Blobs().Get(ctx, hash); err != nil {
						t.Fatalf("an entry speaks of a blob that is not there: %v", err)
					}
				}
				i++
			}
		}
		if i != len(entries) || last == 0 {
			t.Fatalf("%d transactions, but %d entries instead of %d", last, len(entries), i)
		}
		must(t, s.Close())
		if last < 5 {
			cut++
		}
	}
	sound(t, j)
	return cut
}

func TestKilledAtEveryPointASessionIsWhole(t *testing.T) {
	if underRace {
		t.Skip("starts many processes: runs without the race detector")
	}
	itself := func(n int) int { return n }
	whole, err := command("talk", filepath.Join(t.TempDir(), "j"), 0).Output()
	must(t, err)
	_, count, _ := strings.Cut(strings.TrimSpace(string(whole)), "points ")
	points, err := strconv.Atoi(count)
	if err != nil || points < 60 {
		t.Fatalf("%q: too few points to be killed at", whole)
	}
	cut := 0
	for point := 1; point <= points; point++ {
		path := filepath.Join(t.TempDir(), "j")
		out, err := command("talk", path, point).Output()
		if err == nil {
			t.Fatalf("point %d: it was not killed", point)
		}
		cut += checkTalks(t, path, string(out), itself)
		if point%7 > 0 {
			continue
		}
		// Life goes on in the same file, and clears up.
		if out, err := command("talk", path, 0).Output(); err != nil {
			t.Fatalf("point %d: the next process fails: %v", point, err)
		} else {
			checkTalks(t, path, string(out), itself)
		}
		if rest := unfinishedFiles(t, path); len(rest) > 0 {
			t.Fatalf("point %d: %v is left", point, rest)
		}
	}
	if cut < points/2 {
		t.Errorf("%d sessions were cut off at %d points: the test misses its points", cut, points)
	}
	t.Logf("killed at %d points, %d sessions cut off", points, cut)
}

func TestKilledAtAnyTimeASessionIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	s := newSession(t, j)
	must(t, s.Append(t.Context(), &Head{State: "0"}))
	must(t, s.Append(t.Context(), &Head{State: "1"}, words("1", "1", "1")...))
	must(t, s.Close())
	for i := range 5 {
		var out, told bytes.Buffer
		cmd := command("talk on of "+s.ID(), path, 200+i*97)
		cmd.Stdout, cmd.Stderr = &out, &told
		if err := cmd.Run(); err == nil || told.Len() > 0 {
			t.Fatalf("%v: %s", err, told.String())
		}
		checkTalks(t, path, out.String(), func(int) int { return 3 })
	}
	if _, entries := read(t, j, s.ID()); len(entries) < 100 {
		t.Errorf("only %d entries: the test misses its point", len(entries))
	}
}

func TestAJournalOfTheFirstVersionIsBroughtUpToDateWhereverThatIsKilled(t *testing.T) {
	killed := 0
	for point := 1; point <= 6; point++ {
		path := filepath.Join(t.TempDir(), "j")
		older(t, path)
		if _, err := command("open", path, point).Output(); err != nil {
			killed++
		}
		j := openTest(t, path)
		if r := call(t, j, "01hqzzzzzzzzzzzz"); r.Source != "ask" || len(r.Damaged) > 0 {
			t.Errorf("%+v", r)
		}
		newSession(t, j, "one")
	}
	if killed < 3 {
		t.Errorf("it was killed %d times only", killed)
	}
}

func TestASessionIsTakenOverWhenItsHolderHasDiedAndNoSooner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	s := newSession(t, j, "one")
	id := s.ID()
	must(t, s.Close())

	cmd := command("hold session of "+id, path, 0)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	if want := fmt.Sprintf("held %d\n", cmd.Process.Pid); line != want {
		t.Fatalf("%q, want %q", line, want)
	}

	_, _, _, err = j.TakeSession(t.Context(), id)
	want := fmt.Sprintf("session %s: it is in use by process %d – close it there or end that process, or begin another session; reading it is possible all the same", id, cmd.Process.Pid)
	if !errors.Is(err, ErrTaken) || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if sum, entries := read(t, j, id); !sum.Running || sum.Process != cmd.Process.Pid || len(entries) != 1 {
		t.Errorf("%+v", sum)
	}
	if err := s.Append(t.Context(), nil, words("late")...); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if sum, _ := read(t, j, id); sum.Running || sum.Process != 0 {
		t.Errorf("%+v", sum)
	}
	s, entries := take(t, j, id)
	must(t, s.Append(t.Context(), nil, words("two")...))
	if sum, all := read(t, j, id); !sum.Running || sum.Process != os.Getpid() || len(entries) != 1 || len(all) != 2 {
		t.Errorf("%+v %q", sum, said(all))
	}
}

func TestManyProcessesShareOneSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	s := newSession(t, j)
	must(t, s.Close())
	const n = 3
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := command("share session of "+s.ID(), path, 0).Output(); err != nil {
				var exit *exec.ExitError
				errors.As(err, &exit)
				t.Errorf("%v: %s", err, exit.Stderr)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	// Whoever reads meanwhile sees whole transactions, ever more of them.
	seen := 0
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		sum, entries := read(t, j, s.ID())
		if len(entries) < seen || len(entries)%2 != 0 || sum.Entries != len(entries) {
			t.Fatalf("%d entries after %d, %+v", len(entries), seen, sum)
		}
		seen = len(entries)
	}
	if seen != 2*10*n {
		t.Errorf("%d entries", seen)
	}
	next := map[string]int{}
	_, entries := read(t, j, s.ID())
	for i := 0; i < len(entries); i += 2 {
		pid, rest, _ := strings.Cut(strings.Trim(string(entries[i].Data), `"`), " ")
		if want := fmt.Sprintf("%d a", next[pid]); rest != want || string(entries[i+1].Data) != fmt.Sprintf(`"%s %d b"`, pid, next[pid]) {
			t.Fatalf("entries %d and %d are %s and %s", i+1, i+2, entries[i].Data, entries[i+1].Data)
		}
		next[pid]++
	}
}

func TestTwoWhoLookAtADeadOwnerAtOnceBothSeeThatItIsDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	dead := strings.Repeat("a", ownerDigits)
	must(t, os.WriteFile(j.owners.name(dead), nil, 0o600))
	f, err := os.OpenFile(j.owners.name(dead), os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = f.Close() }()
	if looks, err := tryShare(f); !looks || err != nil {
		t.Fatal(looks, err)
	}
	if j.owners.alive(dead) {
		t.Error("one who looks was taken for the owner")
	}
	must(t, os.WriteFile(j.owners.name(dead), nil, 0o600))
	owner, err := os.OpenFile(j.owners.name(dead), os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = owner.Close() }()
	if held, err := tryLock(owner); !held || err != nil {
		t.Fatal(held, err)
	}
	if !j.owners.alive(dead) {
		t.Error("the owner was taken for dead")
	}
}
