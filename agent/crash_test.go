//go:build unix

package agent

import (
	"bufio"
	"bytes"
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

// The sweep: a process carries out a long turn with ten side effects and is
// killed (SIGKILL, by itself) at one point of its writes to the journal or of
// its tools' work; it is started again until the turn is done. That is done for
// every point there is. What must hold each time: no input is lost, no effect
// happens twice, what nobody can know is said to be unknown, and the history is
// valid all the way.

const sideEffects = 10

// sweepModel works through ten side effects, with reads between them, by what it
// finds in the history: it has no memory, as no model has.
func sweepModel() ninelives.Model {
	return plays(func(ctx context.Context, req *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if err := valid(withoutSystem(req.Messages)); err != nil {
			yield(nil, &ninelives.Fault{Class: ninelives.ClassFormat, Message: "the history is not valid: " + err.Error()})
			return
		}
		n := 0
		for _, m := range req.Messages {
			for _, c := range m.ToolCalls() {
				if c.Name == "effect" || c.Name == "probed" {
					n++
				}
			}
		}
		name := "effect"
		if n%2 == 1 {
			name = "probed"
		}
		arguments := fmt.Sprintf(`{"n":%d}`, n)
		switch {
		case n >= sideEffects:
			says("all done")(ctx, req, yield)
		case n%3 == 2:
			// Two writers and reads between them, in one answer.
			other := "probed"
			if name == other {
				other = "effect"
			}
			calls(call("", "look", `{}`), call("", name, arguments), call("", "look", `{"again":true}`), call("", "look", `{"more":1}`),
				call("", other, fmt.Sprintf(`{"n":%d}`, n+1)))(ctx, req, yield)
		default:
			calls(call("x", name, arguments), call("x", "look", `{}`))(ctx, req, yield)
		}
	})
}

// effector is a tool with a side effect that can be counted: a line in a file
// that is only appended to. A probed one can find out later whether it had it.
type effector struct {
	file   string
	probed bool
	at     func(point string)
}

func (e *effector) Spec() tool.Spec {
	name := "effect"
	if e.probed {
		name = "probed"
	}
	return tool.Spec{Tool: ninelives.Tool{Name: name, Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}}
}

func (e *effector) Needs([]byte) ([]tool.Need, error) { return nil, nil }

func (e *effector) Run(_ context.Context, c *tool.Call) tool.Result {
	e.at("tool begun")
	f, err := os.OpenFile(e.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return tool.ErrorResult(err.Error())
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintf(f, "%s %s\n", c.ID, c.Arguments); err != nil {
		return tool.ErrorResult(err.Error())
	}
	e.at("tool done")
	return tool.TextResult("appended")
}

// prober is an effector that looks into the file.
type prober struct{ effector }

func (p *prober) Mark(context.Context, *tool.Call) ([]byte, error) {
	b, err := os.ReadFile(p.file)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return strconv.AppendInt(nil, int64(len(b)), 10), err
}

func (p *prober) Probe(_ context.Context, c *tool.Call, mark []byte) (tool.Standing, tool.Result) {
	b, _ := os.ReadFile(p.file)
	before, err := strconv.Atoi(string(mark))
	switch {
	case err != nil:
		return tool.StandingUnknown, tool.Result{}
	case bytes.Contains(b[min(before, len(b)):], []byte(c.ID+" ")):
		return tool.StandingDone, tool.TextResult("appended")
	}
	return tool.StandingNotStarted, tool.Result{}
}

// killSwitch kills the process at the n-th point; 0 never, and counts them.
type killSwitch struct {
	mu sync.Mutex
	at int
	n  int
}

func (k *killSwitch) point(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n++; k.n == k.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// killing is a recorder that meets points around every write.
type killing struct {
	recorder
	k *killSwitch
}

func (r *killing) Append(ctx context.Context, h *journal.Head, entries ...journal.Entry) error {
	r.k.point("before " + kindsOf(entries))
	err := r.recorder.Append(ctx, h, entries...)
	r.k.point("after " + kindsOf(entries))
	return err
}

func kindsOf(entries []journal.Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Kind)
	}
	return strings.Join(list, "+")
}

const sweepText = "append ten lines, please"

// TestSweepProcess is the process of the sweep, and no test by itself. It
// carries the turn on until it is done, or dies; with several points it dies at
// the first of them after it has said what it saw.
func TestSweepProcess(t *testing.T) {
	dir := os.Getenv("NINELIVES_SWEEP")
	if dir == "" {
		t.Skip("is run by TestKilledAtEveryWriteNothingIsLostAndNothingHappensTwice")
	}
	at, _ := strconv.Atoi(os.Getenv("NINELIVES_SWEEP_AT"))
	k := &killSwitch{at: at}
	if err := sweepOnce(t.Context(), dir, k); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("points %d\n", k.n)
}

func sweepOnce(ctx context.Context, dir string, k *killSwitch) error {
	j, err := journal.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	effects := filepath.Join(dir, "effects")
	set := DefaultSettings()
	set.Guard.LoopNotice, set.Guard.LoopStop, set.Guard.CycleRepeats = 0, 0, 0 // the model looks at nothing again and again
	a := New(sweepModel(), Journal(j), With(set), Workspace(dir), Tools(
		&effector{file: effects, at: k.point},
		&prober{effector{file: effects, probed: true, at: k.point}},
		reader("look", echo),
	))
	list, _, err := j.Sessions(ctx, journal.SessionFilter{})
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
	if len(s.Damaged()) > 0 {
		return fmt.Errorf("damaged: %v", s.Damaged())
	}
	s.log = &killing{s.log, k}
	st := s.State()
	next := s.Continue
	if len(st.Turns()) == 0 && len(s.Queued()) == 0 {
		next = func(ctx context.Context) seq { return s.Turn(ctx, ninelives.UserText(sweepText)) }
	} else if n := len(st.Turns()); n > 0 && st.Turns()[n-1].End != nil {
		return s.Close()
	}
	p := play(next(ctx))
	if p.err != nil {
		return p.err
	}
	if p.end.Reason != ReasonComplete {
		return fmt.Errorf("the turn ended as %s: %s", p.end.Reason, p.end.Message)
	}
	return s.Close()
}

func TestKilledAtEveryWriteNothingIsLostAndNothingHappensTwice(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("starts several hundred processes")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := func(dir string, at int) (points int, killed bool, err error) {
		cmd := exec.Command(exe, "-test.run=^TestSweepProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "NINELIVES_SWEEP="+dir, "NINELIVES_SWEEP_AT="+strconv.Itoa(at), "HOME="+dir)
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
		lines := bufio.NewScanner(bytes.NewReader(out))
		for lines.Scan() {
			if _, err := fmt.Sscanf(lines.Text(), "points %d", &points); err == nil {
				return points, false, nil
			}
		}
		return 0, false, fmt.Errorf("it said nothing of points\n%s", out)
	}
	whole := t.TempDir()
	points, _, err := process(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	sweepHolds(t, whole, 0)

	var kills, unknown int
	var mu sync.Mutex
	work := make(chan func(), points)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for w := range work {
				w()
			}
		})
	}
	// Each point alone; and two and three deaths in one turn, at points that
	// wander through it.
	var plans [][]int
	for at := 1; at <= points; at++ {
		plans = append(plans, []int{at})
	}
	for at := 1; len(plans) < 2*points && at < 200-points; at++ {
		plans = append(plans, []int{1 + at%7, 1 + at%11, 1 + at%5})
	}
	base := t.TempDir()
	for i, plan := range plans {
		work <- func() {
			dir := filepath.Join(base, strconv.Itoa(i))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Error(err)
				return
			}
			died := 0
			for _, at := range append(plan, 0) {
				_, killed, err := process(dir, at)
				if err != nil {
					t.Errorf("killed at %v: %v", plan, err)
					return
				}
				if killed {
					died++
				}
			}
			u := sweepHolds(t, dir, died)
			mu.Lock()
			kills += died
			unknown += u
			mu.Unlock()
			_ = os.RemoveAll(dir)
		}
	}
	close(work)
	group.Wait()
	t.Logf("%d kills at %d points; %d calls were unknown, and said to be", kills, points, unknown)
	if kills < 200 {
		t.Errorf("only %d kills", kills)
	}
}

// sweepHolds checks what became of a session that died so often, and gives the
// number of calls that are unknown.
func sweepHolds(t *testing.T, dir string, died int) (unknown int) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = j.Close() }()
	list, damaged, err := j.Sessions(t.Context(), journal.SessionFilter{})
	if err != nil || len(damaged) > 0 || len(list) != 1 {
		t.Errorf("the sessions are %v, %v, %v", list, damaged, err)
		return 0
	}
	_, entries, damaged, err := j.ReadSession(t.Context(), list[0].ID)
	if err != nil || len(damaged) > 0 {
		t.Errorf("the session is damaged: %v %v", damaged, err)
		return 0
	}
	s := &State{}
	for _, e := range entries {
		entry, err := Decode(e)
		if err != nil {
			t.Error(err)
			return 0
		}
		s.add(e.At, entry)
		if e, ok := entry.(Effect); ok && e.Unknown {
			unknown++
		}
	}
	if err := valid(s.Messages()); err != nil {
		t.Errorf("the history is not valid: %v\n%s", err, transcribed(s.Messages()))
	}
	if turns := s.Turns(); len(turns) != 1 || turns[0].End == nil || turns[0].End.Reason != ReasonComplete {
		t.Errorf("the turns are %+v", turns)
	}
	if got := spokenBy(s.Messages(), ninelives.RoleUser); !slices.Equal(got, []string{sweepText}) {
		t.Errorf("the user said %q", got)
	}
	done := map[string]int{}
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Error(err)
	}
	for l := range strings.Lines(string(b)) {
		_, args, _ := strings.Cut(strings.TrimSpace(l), " ")
		if done[args]++; done[args] > 1 {
			t.Errorf("the effect %s happened %d times after %d deaths", args, done[args], died)
		}
	}
	if len(done)+unknown < sideEffects {
		t.Errorf("%d effects happened and %d are unknown after %d deaths; %d were asked for", len(done), unknown, died, sideEffects)
	}
	if died == 0 && (len(done) != sideEffects || unknown != 0) {
		t.Errorf("without a death %d effects happened and %d are unknown", len(done), unknown)
	}
	if unknown > died {
		t.Errorf("%d calls are unknown after %d deaths", unknown, died)
	}
	replay, err := Replay(entries)
	if err != nil {
		t.Error(err)
	}
	for _, r := range replay {
		if !r.Agrees {
			t.Errorf("after %d deaths, entry %d: %s was done, %s is decided", died, r.Seq, r.Recorded, r.Decided)
		}
	}
	return unknown
}
