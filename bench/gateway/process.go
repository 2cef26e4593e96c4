package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a program under measurement.
type process struct {
	name string
	addr string
	cmd  *exec.Cmd
	log  string
	// ready is how long it took from its start to taking a connection.
	ready time.Duration
}

// freeAddress is one that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// start starts a program that will listen on addr, and waits until it does.
// What it prints goes to a file in dir.
func start(ctx context.Context, dir, name, addr string, env []string, program string, args ...string) (*process, error) {
	p := &process{name: name, addr: addr, log: filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".log")}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = out, out, dir
	p.cmd.Env = append(os.Environ(), env...)
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, err)
	}
	for time.Since(began) < 30*time.Second {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			p.ready = time.Since(began)
			return p, c.Close()
		}
		time.Sleep(500 * time.Microsecond)
	}
	p.stop()
	text, _ := os.ReadFile(p.log) // without it the error says less
	return nil, fmt.Errorf("%s does not listen on %s: %.600s", name, addr, text)
}

// stop ends the program and waits for its end.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // how it ends is of no interest
}

// family is the process and its children.
func (p *process) family() []int {
	pids := []int{p.cmd.Process.Pid}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pids[0], pids[0]))
	if err != nil {
		return pids
	}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tick is the unit of the kernel's accounting in /proc.
const tick = 10 * time.Millisecond

// cpu is the processor time used so far, of all threads, in user and kernel mode.
func (p *process) cpu() time.Duration {
	var sum time.Duration
	for _, pid := range p.family() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(text, []byte(") ")) // a name may hold spaces
		fields := strings.Fields(string(rest))
		if len(fields) < 13 {
			continue
		}
		for _, field := range fields[11:13] { // utime, stime
			if n, err := strconv.Atoi(field); err == nil {
				sum += time.Duration(n) * tick
			}
		}
	}
	return sum
}

// peak is the most memory resident at once since the last forgetPeak, in bytes.
func (p *process) peak() (sum int) {
	for _, pid := range p.family() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		_, rest, ok := strings.Cut(string(text), "VmHWM:")
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			if kb, err := strconv.Atoi(fields[0]); err == nil {
				sum += kb << 10
			}
		}
	}
	return sum
}

func (p *process) forgetPeak() {
	for _, pid := range p.family() {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // where it is not allowed, the peak is that of the whole run
	}
}
