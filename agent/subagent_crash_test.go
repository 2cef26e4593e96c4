//go:build unix

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// The sweep of crash_test.go with the side effects in a subagent, and research
// beside each other before: whatever dies goes on by its own record.

const subEffects = 3

func subSweepModel() *script {
	return bySubagents(func(n int, _ string) scene {
		switch n {
		case 0:
			return calls(call("", ResearchTool, `{"task":"look one"}`), call("", ResearchTool, `{"task":"look two"}`))
		case 1:
			return calls(call("", SubagentTool, `{"task":"append three lines"}`))
		}
		return says("all done")
	}, func(n int, task string) scene {
		switch {
		case strings.HasPrefix(task, "look"):
			if n == 0 {
				return calls(call("", "look", `{}`))
			}
			return says("seen: " + task)
		case n < subEffects:
			return calls(call("", []string{"effect", "probed"}[n%2], fmt.Sprintf(`{"n":%d}`, n)))
		}
		return says("appended")
	})
}

// TestSubagentProcess is the process of the tests below, and no test by itself.
func TestSubagentProcess(t *testing.T) {
	dir := os.Getenv("NINELIVES_SUBSWEEP")
	if dir == "" {
		t.Skip("is run by the tests of crashes of subagents")
	}
	at, _ := strconv.Atoi(os.Getenv("NINELIVES_SUBSWEEP_AT"))
	k := &killSwitch{at: at}
	if err := subSweepOnce(t.Context(), dir, k, os.Getenv("NINELIVES_SUBSWEEP_NEXT")); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("points %d\n", k.n)
}

func subSweepOnce(ctx context.Context, dir string, k *killSwitch, next string) error {
	j, err := journal.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	effects := filepath.Join(dir, "effects")
	// The hooks are called in the sessions of subagents too.
	points := Hook{
		BeforeModel:  func(context.Context, Purpose, *ninelives.Request) { k.point("before model") },
		AfterModel:   func(context.Context, Answer, error) { k.point("after model") },
		BeforeTool:   func(context.Context, *tool.Call, tool.Spec) (i Intervention) { k.point("before tool"); return i },
		AfterTool:    func(context.Context, *tool.Call, Effect) (i Intervention) { k.point("after tool"); return i },
		TurnStart:    func(context.Context, *State, string) (i Intervention) { k.point("start"); return i },
		TurnEnd:      func(context.Context, *State, Ended) { k.point("end") },
		SessionStart: func(context.Context, string, string) { k.point("opened") },
	}
	model := subSweepModel()
	if next != "" {
		model = plays(says("all done"))
	}
	a := New(model, Journal(j), With(fullMode()), Workspace(dir), Hooks(points), Tools(
		&effector{file: effects, at: k.point},
		&prober{effector{file: effects, probed: true, at: k.point}},
		reader("look", echo),
	))
	list, _, err := j.Sessions(ctx, journal.SessionFilter{Without: []string{LabelCall}})
	if err != nil {
		return err
	}
	var s *Session
	if len(list) == 0 {
		s, err = a.Open(ctx)
	} else {
		s, err = a.Resume(ctx, list[0].ID)
	}
	if err != nil {
		return err
	}
	s.log = &killing{s.log, k}
	st := s.State()
	turn := s.Continue
	if n := len(st.Turns()); n == 0 && len(s.Queued()) == 0 || next != "" {
		turn = func(ctx context.Context) seq { return s.Turn(ctx, ninelives.UserText(sweepText+next)) }
	} else if n > 0 && st.Turns()[n-1].End != nil {
		return s.Close()
	}
	p := play(turn(ctx))
	if p.err != nil {
		return p.err
	}
	if p.end.Reason != ReasonComplete {
		return fmt.Errorf("the turn ended as %s: %s", p.end.Reason, p.end.Message)
	}
	return s.Close()
}

// subProcess runs the process until it dies at a point, or is done.
func subProcess(dir string, at int, next string) (points int, killed bool, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, false, err
	}
	cmd := exec.Command(exe, "-test.run=^TestSubagentProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "NINELIVES_SUBSWEEP="+dir, "NINELIVES_SUBSWEEP_AT="+strconv.Itoa(at), "NINELIVES_SUBSWEEP_NEXT="+next, "HOME="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return 0, true, nil
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("%w\n%s", err, out)
	}
	_, rest, ok := strings.Cut(string(out), "points ")
	if !ok {
		return 0, false, fmt.Errorf("it said nothing of points\n%s", out)
	}
	_, err = fmt.Sscanf(rest, "%d", &points)
	return points, false, err
}

// readBack gives the state of each session, the user's own first.
func readBack(t *testing.T, dir string) (list []*State) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	sessions, damaged, err := j.Sessions(t.Context(), journal.SessionFilter{})
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	for _, sum := range sessions {
		_, entries, damaged, err := j.ReadSession(t.Context(), sum.ID)
		if err != nil || len(damaged) > 0 {
			t.Fatal(err, damaged)
		}
		s := &State{}
		for _, e := range entries {
			entry, err := Decode(e)
			if err != nil {
				t.Fatal(err)
			}
			s.add(e.At, entry)
		}
		if err := valid(s.Messages()); err != nil && !s.open() {
			t.Errorf("a history is not valid: %v\n%s", err, transcribed(s.Messages()))
		}
		replay, err := Replay(entries)
		if err != nil {
			t.Error(err)
		}
		for _, r := range replay {
			if !r.Agrees {
				t.Errorf("session of %q, entry %d: %s was done, %s is decided", sum.Title, r.Seq, r.Recorded, r.Decided)
			}
		}
		if sum.Labels[LabelCall] == "" {
			list = append([]*State{s}, list...)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// happened counts the side effects, none of which may happen twice.
func happened(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	done := map[string]bool{}
	for l := range strings.Lines(string(b)) {
		_, args, _ := strings.Cut(strings.TrimSpace(l), " ")
		if done[args] {
			t.Errorf("the effect %s happened twice", args)
		}
		done[args] = true
	}
	return len(done)
}

func TestASubagentThatWasKilledGoesOnByItsOwnRecord(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("starts over a hundred processes")
	}
	whole := t.TempDir()
	points, _, err := subProcess(whole, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := happened(t, whole); n != subEffects {
		t.Fatalf("without a death %d effects happened", n)
	}
	base := t.TempDir()
	work := make(chan int)
	var group sync.WaitGroup
	var mu sync.Mutex
	kills, unknowns := 0, 0
	for range 2 {
		group.Go(func() {
			for at := range work {
				dir := filepath.Join(base, strconv.Itoa(at))
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Error(err)
					continue
				}
				_, killed, err := subProcess(dir, at, "")
				if err == nil && killed {
					_, killed, err = subProcess(dir, 0, "")
				}
				if err != nil || killed {
					t.Errorf("killed at %d: %v", at, err)
					continue
				}
				unknown := subSweepHolds(t, dir, at)
				mu.Lock()
				kills++
				unknowns += unknown
				mu.Unlock()
			}
		})
	}
	for at := 1; at <= points; at++ {
		work <- at
	}
	close(work)
	group.Wait()
	t.Logf("%d kills at %d points; %d calls were unknown, and said to be", kills, points, unknowns)
	if kills < 60 {
		t.Errorf("only %d kills", kills)
	}
}

func subSweepHolds(t *testing.T, dir string, at int) (unknown int) {
	t.Helper()
	states := readBack(t, dir)
	main := states[0]
	if turns := main.Turns(); len(turns) != 1 || turns[0].End == nil || turns[0].End.Reason != ReasonComplete {
		t.Errorf("killed at %d: the turns are %+v", at, turns)
		return 0
	}
	told := spokenBy(main.Messages(), ninelives.RoleTool)
	if want := []string{"seen: look one", "seen: look two", "appended"}; !slices.Equal(told, want) {
		t.Errorf("killed at %d: the model was told %q", at, told)
	}
	if len(states) != 4 {
		t.Errorf("killed at %d: there are %d sessions", at, len(states))
	}
	usage, _ := main.Usage()
	input := 0
	for _, m := range main.Messages() {
		if m.Role == ninelives.RoleAssistant {
			input += 100
		}
	}
	made := 3 // to delegate
	for _, s := range states[1:] {
		if turns := s.Turns(); len(turns) != 1 || turns[0].End == nil || turns[0].End.Reason != ReasonComplete {
			t.Errorf("killed at %d: the turns of a subagent are %+v", at, turns)
		}
		u, _ := s.Usage()
		input += u.Input
		made += s.Turns()[0].Calls
		for _, text := range spokenBy(s.Messages(), ninelives.RoleTool) {
			if strings.Contains(text, noTwice) {
				unknown++
			}
		}
	}
	if usage.Input != input || main.Turns()[0].Calls != made || main.Tally().Calls != made {
		t.Errorf("killed at %d: the usage is %d of %d, and %d of %d calls were counted", at, usage.Input, input, main.Turns()[0].Calls, made)
	}
	if n := happened(t, dir); n+unknown < subEffects || unknown > 1 {
		t.Errorf("killed at %d: %d effects happened and %d are unknown", at, n, unknown)
	}
	return unknown
}

// A new turn instead closes the one that was cut off: the model is told how far
// the subagent came, and what that had cost is counted.
func TestANewTurnTellsHowFarASubagentHadComeThatWasKilled(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("starts processes")
	}
	whole := t.TempDir()
	points, _, err := subProcess(whole, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for at := points; at > 0; at -= 6 {
		dir := t.TempDir()
		if _, killed, err := subProcess(dir, at, ""); err != nil || !killed {
			t.Fatal(at, killed, err)
		}
		before := happened(t, dir)
		if _, _, err := subProcess(dir, 0, ": once more"); err != nil {
			t.Fatal(at, err)
		}
		states := readBack(t, dir)
		main := states[0]
		if turns := main.Turns(); turns[0].End == nil {
			t.Errorf("killed at %d: the turns are %+v", at, turns)
		}
		for _, text := range spokenBy(main.Messages(), ninelives.RoleTool) {
			if strings.HasPrefix(text, "Error: the subagent gave no answer: it was cut off, because its process died\nHow far it came: ") {
				cut++
			} else if strings.HasPrefix(text, tool.ErrorPrefix) && !strings.HasPrefix(text, "Error: not started: ") {
				t.Errorf("killed at %d: the model was told %q", at, text)
			}
		}
		if n := happened(t, dir); n != before {
			t.Errorf("killed at %d: %d effects became %d", at, before, n)
		}
		usage, _ := main.Usage()
		input := 0
		for _, m := range main.Messages() {
			if m.Role == ninelives.RoleAssistant {
				input += 100
			}
		}
		for _, s := range states[1:] {
			u, _ := s.Usage()
			input += u.Input
		}
		if usage.Input != input {
			t.Errorf("killed at %d: the usage is %d of %d", at, usage.Input, input)
		}
	}
	if cut == 0 {
		t.Error("no subagent was cut off")
	}
}
