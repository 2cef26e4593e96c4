//go:build unix

package tool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// startChild starts a command under a supervisor, or without one if there is
// none. terminal is the command's own side of a terminal, or nil.
func startChild(supervisor []string, o work, terminal *os.File, output func([]byte)) (*child, error) {
	if len(supervisor) == 0 {
		return startDirect(o, terminal, output)
	}
	var ends []*os.File
	closeAll := func() {
		for _, f := range ends {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		if err == nil {
			ends = append(ends, r, w)
		}
		return r, w, err
	}
	controlR, controlW, err1 := pipe()
	reportR, reportW, err2 := pipe()
	outR, outW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, err
	}
	o.Terminal = terminal != nil
	text, err := json.Marshal(o)
	if err != nil {
		closeAll()
		return nil, err
	}
	cmd := exec.Command(supervisor[0], supervisor[1:]...)
	if self, err := os.Executable(); err == nil && self == supervisor[0] {
		// The program that runs, also where its file was replaced meanwhile.
		if self, err = ownProgram(); err == nil {
			cmd.Path = self
		}
	}
	cmd.Env = []string{} // nothing to be read off it
	cmd.Stdout = outW
	if terminal != nil {
		cmd.Stdin = terminal
	}
	var complaint tail
	cmd.Stderr = &complaint
	cmd.ExtraFiles = []*os.File{controlR, reportW} // controlFD, reportFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, fmt.Errorf("the supervisor of commands cannot be started: %w", cause(err))
	}
	controlR.Close()
	reportW.Close()
	outW.Close()
	controlW.Write(append(text, '\n')) // an error shows as a supervisor that ends
	c := &child{done: make(chan struct{})}
	c.ask = func() { io.WriteString(controlW, "stop\n") }
	c.force = func() {
		cmd.Process.Kill()
		if p := int(c.pid.Load()); p > 0 {
			syscall.Kill(-p, syscall.SIGKILL)
		}
	}
	began := time.Now()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer outR.Close()
		copyOutput(outR, output)
	}()
	go func() {
		defer close(c.done)
		lines := bufio.NewReader(reportR)
		ended := false
		for !ended {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var r report
			if json.Unmarshal(line, &r) != nil {
				continue
			}
			if r.Pid > 0 {
				c.pid.Store(int64(r.Pid))
			}
			if r.End != nil {
				c.end, ended = *r.End, true
			}
		}
		err := cmd.Wait()
		if !ended {
			// It was killed, or is no supervisor at all.
			c.end = ending{How: endedLost, Code: -1, Took: int64(time.Since(began)), Error: strings.TrimSpace(complaint.String())}
			if p := int(c.pid.Load()); p > 0 {
				syscall.Kill(-p, syscall.SIGKILL)
			} else {
				c.end.How = endedUnborn
				c.end.Error = fmt.Sprintf("the supervisor %s did not start it (%v) %s", visible.EscapedLine(supervisor[0]), err, visible.EscapedLine(c.end.Error))
			}
		}
		// What it wrote is all there, unless somebody who outlived it has the pipe.
		select {
		case <-read:
		case <-time.After(grace):
			outR.SetReadDeadline(time.Now())
			<-read
		}
		controlW.Close()
		reportR.Close()
	}()
	return c, nil
}

func copyOutput(r io.Reader, output func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			output(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// startDirect starts a command as a child of this process, in a session of its
// own. It has no record and no sandbox.
func startDirect(o work, terminal *os.File, output func([]byte)) (*child, error) {
	name, err := exec.LookPath(o.Args[0])
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: name, Args: o.Args, Dir: o.Dir, Env: o.Env}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
	var r *os.File
	if terminal != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr.Setctty = true
	} else {
		var w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer w.Close()
		cmd.Stdout, cmd.Stderr = w, w
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if r != nil {
			r.Close()
		}
		return nil, err
	}
	pid := cmd.Process.Pid
	c := &child{done: make(chan struct{})}
	c.pid.Store(int64(pid))
	stopping := make(chan struct{})
	exited := make(chan error, 1)
	signal := func(sig syscall.Signal) { syscall.Kill(-pid, sig) }
	c.ask = func() { close(stopping) }
	c.force = func() { signal(syscall.SIGKILL) }
	read := make(chan struct{})
	go func() {
		defer close(read)
		if r != nil {
			defer r.Close()
			copyOutput(r, output)
		}
	}()
	go func() { exited <- cmd.Wait() }()
	go func() {
		defer close(c.done)
		end := ending{How: endedItself}
		select {
		case <-exited:
		case <-stopping:
			end.How = endedStopped
			signal(syscall.SIGTERM)
			signal(syscall.SIGCONT)
			select {
			case <-exited:
			case <-time.After(grace):
				signal(syscall.SIGKILL)
				<-exited
			}
		}
		how := end.How
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
			end = endingOf(unix.WaitStatus(ws))
			end.How = how
		}
		// The rest of its session goes with it.
		if how == endedItself && syscall.Kill(-pid, 0) == nil {
			end.Left = 1
			signal(syscall.SIGTERM)
			for range 20 {
				if syscall.Kill(-pid, 0) != nil {
					break
				}
				time.Sleep(grace / 20)
			}
			signal(syscall.SIGKILL)
		}
		select {
		case <-read:
		case <-time.After(grace):
			r.SetReadDeadline(time.Now())
			<-read
		}
		end.Took = int64(time.Since(began))
		c.end = end
	}()
	return c, nil
}

// tail keeps the last of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if n := len(t.text); n > 500 {
		t.text = t.text[n-500:]
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.text) }

// waitSupervisor waits until the supervisor of a record is gone, or the time
// is over; false if it is still there.
func (r record) waitSupervisor(f *os.File, until <-chan struct{}) bool {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			unix.Flock(int(f.Fd()), unix.LOCK_UN)
			return true
		}
		select {
		case <-until:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// openTerminal opens a terminal: our side and the command's.
func openTerminal(rows, cols int) (ours, theirs *os.File, err error) {
	ours, theirs, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := resizeTerminal(ours, rows, cols); err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

func resizeTerminal(f *os.File, rows, cols int) error {
	return pty.Setsize(f, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)})
}

// terminalDir is where a terminal stands: the directory of what is in its foreground, or
// of the command that it was started with; empty if that cannot be told.
func terminalDir(f *os.File, pid int) string {
	if front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && front > 0 {
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", front)); err == nil {
			return dir
		}
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return ""
	}
	return dir
}

// shellProgram is the shell that commands are given to.
func shellProgram() []string {
	if name, err := exec.LookPath("bash"); err == nil {
		return []string{name, "-c"}
	}
	return []string{"/bin/sh", "-c"}
}
