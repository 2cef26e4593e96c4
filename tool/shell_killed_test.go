//go:build unix

package tool

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// agentThatIsKilled is an agent for a test to kill: it marks a call, says so,
// and runs it.
func agentThatIsKilled(args []string) int {
	dir, records, mode, command := args[0], args[1], args[2], args[3]
	self, _ := os.Executable()
	ws, err := OpenWorkspace(dir, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := NewShell(ws, ShellOptions{Supervisor: []string{self, superviseArgument}, Records: records})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	raw, _ := json.Marshal(commandArguments{Command: command})
	call := &Call{ID: "c1", Session: "s", Arguments: raw}
	tool := s.Tools()[0]
	mark, err := tool.(Prober).Mark(context.Background(), call)
	fmt.Println(string(mark), err)
	if mode == "before" {
		select {}
	}
	call.Output = func(text string) { fmt.Print(text) }
	tool.Run(context.Background(), call)
	fmt.Println("finished")
	select {}
}

// killedAgent runs an agent until it has said a word, then kills it with
// SIGKILL, and gives the mark of its call.
func killedAgent(t *testing.T, dir, records, mode, command, until string) []byte {
	t.Helper()
	cmd := exec.Command(supervisorOfTests(t)[0], "__agent", dir, records, mode, command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var mark string
	for lines.Scan() {
		if mark == "" {
			var ok bool
			if mark, ok = strings.CutSuffix(lines.Text(), " <nil>"); !ok {
				t.Fatalf("the agent says %q", lines.Text())
			}
		}
		if until == "" || strings.Contains(lines.Text(), until) {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	return []byte(mark)
}

func probe(t *testing.T, dir, records, command string, mark []byte) (Standing, Result) {
	t.Helper()
	ws, err := OpenWorkspace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	s, err := NewShell(ws, ShellOptions{Supervisor: supervisorOfTests(t), Records: records})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw, _ := json.Marshal(commandArguments{Command: command})
	return s.Tools()[0].(Prober).Probe(t.Context(), &Call{ID: "c1", Session: "s", Arguments: raw}, mark)
}

func TestAnAgentThatIsKilledLeavesNoOrphanAndATrueRecord(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	word := "61007." + strconv.Itoa(os.Getpid())
	command := escapees(word) + "echo begun; sleep " + word
	dir, records := t.TempDir(), filepath.Join(t.TempDir(), "records")
	mark := killedAgent(t, dir, records, "run", command, "begun")
	// The probe comes while the supervisor is still at work, and waits for it.
	standing, r := probe(t, dir, records, command, mark)
	if standing != StandingUnknown || !r.Unknown || !strings.Contains(r.Text(), "it was stopped because the agent died") || !strings.Contains(r.Text(), "begun\n") {
		t.Errorf("%s: %q", standing, r.Text())
	}
	if left := alive(word); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
		gone(t, word)
	}
}

func TestACommandThatEndedBeforeTheAgentDiedIsDone(t *testing.T) {
	dir, records := t.TempDir(), filepath.Join(t.TempDir(), "records")
	mark := killedAgent(t, dir, records, "run", "echo effect; exit 4", "finished")
	standing, r := probe(t, dir, records, "echo effect; exit 4", mark)
	if standing != StandingDone || !strings.Contains(r.Text(), "exit code 4") || !strings.HasSuffix(r.Text(), "\neffect\n") || r.Unknown {
		t.Errorf("%s: %q", standing, r.Text())
	}
}

func TestACommandThatNeverStartedStaysSo(t *testing.T) {
	dir, records := t.TempDir(), filepath.Join(t.TempDir(), "records")
	mark := killedAgent(t, dir, records, "before", "touch effect", "")
	if standing, _ := probe(t, dir, records, "touch effect", mark); standing != StandingNotStarted {
		t.Errorf("%s", standing)
	}
	// A supervisor that comes late finds that somebody has said it never started.
	var m commandMark
	if err := json.Unmarshal(mark, &m); err != nil {
		t.Fatal(err)
	}
	c, err := startChild(supervisorOfTests(t), work{Args: []string{"/bin/sh", "-c", "touch effect"}, Dir: dir, Record: filepath.Join(records, m.Record)}, nil, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	<-c.done
	if _, err := os.Stat(filepath.Join(dir, "effect")); err == nil || c.end.How != endedUnborn {
		t.Errorf("it was started after all: %+v", c.end)
	}
}

func TestNobodyCanSayWhatBecameOfACommandWithoutARecord(t *testing.T) {
	dir, records := t.TempDir(), filepath.Join(t.TempDir(), "records")
	for _, mark := range []string{`{}`, `{"record":"missing"}`, `{"record":"../x"}`, `garbage`, ``} {
		if standing, r := probe(t, dir, records, "true", []byte(mark)); standing != StandingUnknown || !r.Unknown {
			t.Errorf("%q: %s", mark, standing)
		}
	}
}

func TestASupervisorThatIsKilledIsToldAndTakesTheCommandWithIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its parent died")
	}
	h := shellOf(t, nil)
	word := "61008." + strconv.Itoa(os.Getpid())
	tool, call := h.call(0, commandArguments{Command: "echo $PPID; sleep " + word})
	call.Mode, call.Profile = ModeFull, ProfileTrusted // in the sandbox it could not be killed from inside
	pid := make(chan int, 1)
	call.Output = func(text string) {
		n, _ := strconv.Atoi(strings.TrimSpace(text))
		pid <- n
	}
	done := make(chan Result, 1)
	go func() { done <- tool.Run(t.Context(), call) }()
	if err := syscall.Kill(<-pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := <-done; !r.IsError || !r.Unknown || !strings.Contains(r.Text(), "its supervisor was killed") {
		t.Errorf("%q", r.Text())
	}
	gone(t, word)
}

// The record of a command may be asked for until what came of it is durable,
// which it is when the next one runs; the records of other sessions stay.
func TestARecordGoesWithTheNextCommandOfItsSession(t *testing.T) {
	h := shellOf(t, nil)
	tool := h.Tools()[0].(*runCommandTool)
	run := func(session, id string) []byte {
		t.Helper()
		_, call := h.call(0, commandArguments{Command: "echo " + id})
		call.Session, call.ID = session, id
		mark, err := tool.Mark(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if r := tool.Run(t.Context(), call); r.Text() != id+"\n" {
			t.Fatalf("%q", r.Text())
		}
		return mark
	}
	standing := func(mark []byte) Standing {
		_, call := h.call(0, commandArguments{Command: "echo"})
		s, _ := tool.Probe(t.Context(), call, mark)
		return s
	}
	other := run("other", "c0")
	for i, last := 1, []byte(nil); i < 5; i++ {
		mark := run("own", fmt.Sprintf("c%d", i))
		if got := standing(mark); got != StandingDone {
			t.Errorf("command %d is %q", i, got)
		}
		if last != nil && standing(last) != StandingUnknown {
			t.Errorf("the record before command %d is still there", i)
		}
		last = mark
	}
	if got := standing(other); got != StandingDone {
		t.Errorf("that of another session is %q", got)
	}
	if left, err := os.ReadDir(h.opts.Records); err != nil || len(left) != 2 {
		t.Errorf("%d records are left (%v)", len(left), err)
	}
}

func TestOldRecordsAreSweptAndNewOnesKept(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{"old": keepRecords + time.Second, "new": keepRecords - time.Second} {
		os.Mkdir(filepath.Join(dir, name), 0o700)
		os.Chtimes(filepath.Join(dir, name), now.Add(-age), now.Add(-age))
	}
	sweepRecords(dir, now)
	if _, err := os.Stat(filepath.Join(dir, "old")); err == nil {
		t.Error("the old one is kept")
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err != nil {
		t.Error("the new one is swept")
	}
}
