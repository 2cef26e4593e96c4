package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ninelives-ai/ninelives/tool"
)

// command is a server that runs here.
type command struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// overCommand starts the server's command. release ends it.
func (s *server) overCommand() (sdk.Transport, func(), error) {
	cmd := exec.Command(s.cfg.Command[0], s.cfg.Command[1:]...)
	if cmd.Err != nil {
		return nil, nil, permanent{fmt.Errorf("there is no program %s: %w", oneLine(s.cfg.Command[0], 80), plainCause(cmd.Err))}
	}
	cmd.Env, cmd.Dir = environment(os.Environ(), s.cfg.Env), s.cfg.Dir
	separate(cmd)
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	c := &command{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go c.run(started)
	err := <-started
	inR.Close()
	outW.Close()
	errW.Close()
	if err != nil {
		closeAll()
		err = fmt.Errorf("%s cannot be started: %w", oneLine(s.cfg.Command[0], 80), plainCause(err))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = permanent{err}
		}
		return nil, nil, err
	}
	heard := make(chan struct{})
	go func() { // reads on for ever, so that the command is never held up
		defer close(heard)
		buf := make([]byte, 4096)
		for {
			n, err := errR.Read(buf)
			s.output.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	released := make(chan struct{})
	release := sync.OnceFunc(func() {
		inW.Close()
		c.stop(s.timing.leave)
		outR.Close()
		// What it wrote last may not have been read yet, and says why it ended. Only
		// what has left its group still holds the pipe open.
		t := time.AfterFunc(s.timing.leave, func() { errR.Close() })
		<-heard
		t.Stop()
		errR.Close()
		close(released)
	})
	go func() { // what has left its group must not hold its pipes open
		<-c.exited
		t := time.NewTimer(s.timing.leave)
		defer t.Stop()
		select {
		case <-t.C:
			outR.Close()
		case <-released:
		}
	}()
	return &sdk.IOTransport{Reader: outR, Writer: inW, MaxLineLength: maxFrame}, release, nil
}

// run starts the command and waits for its end, in a thread of its own: where
// a child can be bound to the life of its parent, it is bound to the thread
// that started it.
func (c *command) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	awaitExit(c.cmd)
	killGroup(c.cmd) // what it started ends with it
	c.cmd.Wait()
	close(c.exited)
}

// stop ends the command: its input is closed already; then it is asked, then killed.
func (c *command) stop(leave time.Duration) {
	for _, then := range []func(*exec.Cmd){askGroup, killGroup, nil} {
		t := time.NewTimer(leave)
		select {
		case <-c.exited:
			t.Stop()
			return
		case <-t.C:
		}
		if then == nil {
			return // beyond our power: it hangs in the kernel
		}
		then(c.cmd)
	}
}

// plainCause is the innermost cause of an error of starting a program.
func plainCause(err error) error {
	var path *fs.PathError
	var started *exec.Error
	switch {
	case errors.As(err, &started):
		return started.Err
	case errors.As(err, &path):
		return path.Err
	}
	return err
}

// environment is what a server sees: the present environment without what
// looks like a secret, and what the configuration adds.
func environment(environ []string, add map[string]string) []string {
	var out []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if _, replaced := add[name]; !replaced && !tool.SecretVariable(name) {
			out = append(out, v)
		}
	}
	for name, v := range add {
		out = append(out, name+"="+v)
	}
	return out
}
