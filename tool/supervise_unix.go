//go:build unix

package tool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// The descriptors of a supervisor beside the standard three.
const (
	controlFD = 3
	reportFD  = 4
)

// Supervise is the main function of a supervisor. A program that gives itself
// as ShellOptions.Supervisor calls it with the arguments that follow, does
// nothing before, and exits with what it returns.
func Supervise(args []string) int {
	if len(args) > 0 && args[0] == confineArgument {
		return confined(args[1:])
	}
	// It outlives what a terminal or an init system sends to the agent, for
	// long enough to clean up. The signals are caught and not ignored: what is
	// ignored would be ignored by the command too.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP)
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(reportFD)
	control, out := os.NewFile(controlFD, "control"), os.NewFile(reportFD, "report")
	if control == nil || out == nil {
		fmt.Fprintln(os.Stderr, "this is started by the agent, not by hand")
		return 2
	}
	in := bufio.NewReader(control)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return 1 // the agent died before it had said what to run
	}
	var o work
	if err := json.Unmarshal(line, &o); err != nil || len(o.Args) == 0 {
		return 2
	}
	s := &supervisor{work: o, out: out, stop: make(chan string, 1)}
	go func() {
		word, err := in.ReadString('\n')
		how := endedStopped
		if err != nil || word != "stop\n" {
			how = endedOrphaned
		}
		s.stop <- how
	}()
	go func() {
		<-terms
		select {
		case s.stop <- endedOrphaned:
		default:
		}
	}()
	return s.run()
}

type supervisor struct {
	work  work
	out   *os.File
	stop  chan string
	began time.Time
}

func (s *supervisor) tell(r report) {
	if text, err := json.Marshal(r); err == nil {
		s.out.Write(append(text, '\n'))
	}
}

// finish writes the record, then tells the agent.
func (s *supervisor) finish(rec *record, e ending) int {
	e.Took = int64(time.Since(s.began))
	if rec != nil {
		if err := rec.end(e); err != nil && e.Error == "" {
			e.Error = "how it ended could not be recorded: " + err.Error()
		}
	}
	s.tell(report{End: &e})
	return 0
}

func (s *supervisor) run() int {
	s.began = time.Now()
	var rec *record
	var kept io.Writer = io.Discard
	if s.work.Record != "" {
		rec = &record{dir: s.work.Record}
		start, ours, err := rec.claim()
		switch {
		case err != nil:
			return s.finish(nil, ending{How: endedUnborn, Error: "its record cannot be written: " + err.Error()})
		case !ours:
			return s.finish(nil, ending{How: endedUnborn, Error: "somebody has asked after it before it had started"})
		}
		defer start.Close()
		if err := unix.Flock(int(start.Fd()), unix.LOCK_EX); err != nil {
			return s.finish(rec, ending{How: endedUnborn, Error: "its record cannot be locked: " + err.Error()})
		}
		fmt.Fprintf(start, "%s %d\n", s.work.Call, os.Getpid())
		if err := start.Sync(); err != nil {
			return s.finish(rec, ending{How: endedUnborn, Error: "its record cannot be written: " + err.Error()})
		}
		if f, err := os.OpenFile(rec.path("out"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err == nil {
			defer f.Close()
			kept = &capped{w: f, left: maxOutput / 2}
		}
	}
	adoptOrphans()
	pid, output, err := s.begin()
	if err != nil {
		return s.finish(rec, ending{How: endedUnborn, Code: 127, Error: err.Error()})
	}
	s.tell(report{Pid: pid})
	exited, gone := reap(pid)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if output == nil {
			return
		}
		// The record first: what the agent has seen is in it.
		buf := make([]byte, 32<<10)
		for {
			n, err := output.Read(buf)
			kept.Write(buf[:n])
			os.Stdout.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	var e ending
	select {
	case status := <-exited:
		e = endingOf(status)
		e.Left = len(descendants(pid))
	case how := <-s.stop:
		e = ending{How: how, Code: -1}
	}
	e.Undead = finishOff(pid, gone)
	if e.How != endedItself {
		select {
		case status := <-exited:
			how := e.How
			e.Code, e.Signal = endingOf(status).Code, endingOf(status).Signal
			e.How = how
		default:
		}
	}
	select {
	case <-copied:
	case <-time.After(grace): // somebody who could not be stopped holds the pipe
	}
	if c, ok := kept.(*capped); ok {
		e.Dropped = c.dropped
		c.w.Sync()
	}
	return s.finish(rec, e)
}

// begin starts the command, in a session of its own.
func (s *supervisor) begin() (pid int, output *os.File, err error) {
	args := s.work.Args
	env := s.work.Env
	var confine *os.File
	if s.work.Confine != nil {
		self, err := ownProgram()
		if err != nil {
			return 0, nil, err
		}
		text, err := json.Marshal(s.work.Confine)
		if err != nil {
			return 0, nil, err
		}
		r, w, err := os.Pipe()
		if err != nil {
			return 0, nil, err
		}
		defer r.Close()
		confine = r
		go func() {
			w.Write(text)
			w.Close()
		}()
		// The very arguments that lead to Supervise, and then its other role.
		args = append(append(append([]string{self}, os.Args[1:]...), confineArgument), args...)
	}
	name, err := exec.LookPath(args[0])
	if err != nil {
		return 0, nil, err
	}
	cmd := &exec.Cmd{Path: name, Args: args, Dir: s.work.Dir, Env: env}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if confine != nil {
		cmd.ExtraFiles = []*os.File{confine} // confineFD
	}
	if s.work.Terminal {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdin, os.Stdin
		cmd.SysProcAttr.Setctty = true
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, nil, err
		}
		defer w.Close()
		output = r
		cmd.Stdout, cmd.Stderr = w, w
	}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	if s.work.Terminal {
		os.Stdin.Close() // else the terminal would not be over when the command is
	}
	return cmd.Process.Pid, output, nil
}

// reap waits for the children, its own and those that it was given. The
// status of the first child comes through exited; gone is closed when no child
// is left.
func reap(pid int) (exited <-chan unix.WaitStatus, gone <-chan struct{}) {
	status, none := make(chan unix.WaitStatus, 1), make(chan struct{})
	go func() {
		defer close(none)
		for {
			var ws unix.WaitStatus
			got, err := unix.Wait4(-1, &ws, 0, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			if got == pid {
				status <- ws
			}
		}
	}()
	return status, none
}

func endingOf(ws unix.WaitStatus) ending {
	if ws.Signaled() {
		return ending{How: endedItself, Code: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	return ending{How: endedItself, Code: ws.ExitStatus()}
}

// finishOff stops all descendants: asks them, and after the grace kills them
// until none is left. It gives the number of those that nothing could be done to.
func finishOff(pid int, gone <-chan struct{}) (undead int) {
	select {
	case <-gone:
		return 0
	default:
	}
	signalAll(pid, syscall.SIGTERM)
	signalAll(pid, syscall.SIGCONT) // one that is stopped hears nothing else
	select {
	case <-gone:
		return 0
	case <-time.After(grace):
	}
	// Again and again, for those that were forked meanwhile.
	for range 100 {
		signalAll(pid, syscall.SIGKILL)
		select {
		case <-gone:
			return 0
		case <-time.After(20 * time.Millisecond):
		}
	}
	return len(descendants(pid))
}

func signalAll(pid int, sig syscall.Signal) {
	syscall.Kill(-pid, sig)
	for _, child := range descendants(pid) {
		syscall.Kill(child, sig)
	}
}

// capped writes no more than is left, and then counts.
type capped struct {
	w       *os.File
	left    int64
	dropped int64
}

func (c *capped) Write(p []byte) (int, error) {
	n := len(p)
	if int64(len(p)) > c.left {
		c.dropped += int64(len(p)) - c.left
		p = p[:c.left]
	}
	c.left -= int64(len(p))
	_, err := c.w.Write(p)
	return n, err
}
