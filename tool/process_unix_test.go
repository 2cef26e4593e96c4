//go:build unix

package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usualMask gives new files the modes that these tests want to be told of.
func usualMask() { syscall.Umask(0o022) }

// worked is the time that this process has had a processor: what others do on
// the machine does not count.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// another runs a test of this package in a process of its own.
func another(t *testing.T, test, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "NINELIVES_TEST_DIR="+dir)
	return cmd
}

// within is the directory that another gave to this process.
func within(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("NINELIVES_TEST_DIR")
	if dir == "" {
		t.Skip("runs as a process of another test")
	}
	return dir
}

const rounds = 60

func TestProcessThatCreatesFiles(t *testing.T) {
	w := openWorkspace(t, within(t))
	me := fmt.Sprint(os.Getpid())
	for i := range rounds {
		r := run(t, w, "write_file", object{"path": fmt.Sprintf("shared-%d", i), "content": me})
		if !r.IsError {
			works(t, run(t, w, "write_file", object{"path": fmt.Sprintf("won/%d-%s", i, me), "content": ""}))
		}
	}
}

func TestTwoProcessesNeverBothCreateAFile(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"won/": ""})
	var running []*exec.Cmd
	for range 2 {
		cmd := another(t, "TestProcessThatCreatesFiles", w.Dir())
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rounds {
		name := contentOf(t, w, fmt.Sprintf("shared-%d", i))
		if _, err := os.Stat(at(w, fmt.Sprintf("won/%d-%s", i, name))); err != nil {
			t.Errorf("file %d holds what its loser wrote", i)
		}
	}
	if got := len(tree(t, w.Dir())); got != 2*rounds+1 {
		t.Errorf("%d entries, want %d: each file is won once, and nothing is left over", got, 2*rounds+1)
	}
}

// memory keeps contents in memory, for a process that may write no files.
type memory map[string]string

func (m memory) Put(_ context.Context, b []byte) (string, error) {
	m[hashOf(b)] = string(b)
	return hashOf(b), nil
}
func (m memory) Get(_ context.Context, h string) ([]byte, error) { return []byte(m[h]), nil }

func TestProcessWithoutRoom(t *testing.T) {
	dir := within(t)
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: 1000}); err != nil {
		t.Skip("no limit can be set: ", err)
	}
	w, err := OpenWorkspace(dir, memory{})
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 5000)
	works(t, run(t, w, "read_file", object{"path": "f"}))
	fails(t, run(t, w, "write_file", object{"path": "f", "content": large}), "cannot write f")
	fails(t, run(t, w, "edit_file", object{"path": "f", "old_string": "precious", "new_string": large}), "cannot write f")
	fails(t, run(t, w, "write_file", object{"path": "new/g", "content": large}), "cannot write new/g", "1 file was changed before")
}

func TestADiskWithoutRoomCostsNoContent(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "precious"})
	if out, err := another(t, "TestProcessWithoutRoom", w.Dir()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := tree(t, w.Dir()); len(got) != 2 || contentOf(t, w, "f") != "precious" {
		t.Errorf("there is %v", got)
	}
}
