package tool

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Supervise is for systems with Unix's processes.
func Supervise([]string) int { return 2 }

// startChild starts a command as a child of this process: there are no
// supervisors and no terminals on this system.
func startChild(_ []string, o work, terminal *os.File, output func([]byte)) (*child, error) {
	if terminal != nil {
		return nil, errors.New("there are no terminals on this system yet")
	}
	name, err := exec.LookPath(o.Args[0])
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd := &exec.Cmd{Path: name, Args: o.Args, Dir: o.Dir, Env: o.Env, Stdout: w, Stderr: w}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	c := &child{done: make(chan struct{})}
	stopping := make(chan struct{})
	kill := func() {
		exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
		cmd.Process.Kill()
	}
	c.ask = func() { close(stopping); kill() }
	c.force = kill
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
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
	}()
	go func() {
		defer close(c.done)
		cmd.Wait()
		select {
		case <-read:
		case <-time.After(grace):
			r.Close()
			<-read
		}
		c.end = ending{How: endedItself, Code: cmd.ProcessState.ExitCode(), Took: int64(time.Since(began))}
		select {
		case <-stopping:
			c.end.How = endedStopped
		default:
		}
	}()
	return c, nil
}

func (r record) waitSupervisor(io.Closer, <-chan struct{}) bool { return true }

// shellProgram is the shell that commands are given to.
func shellProgram() []string {
	if name, err := exec.LookPath("bash"); err == nil {
		return []string{name, "-c"}
	}
	return []string{"cmd", "/c"}
}

// openTerminal would open a terminal.
func openTerminal(rows, cols int) (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("there are no terminals on this system yet")
}

func resizeTerminal(*os.File, int, int) error { return nil }

func terminalDir(*os.File, int) string { return "" }
