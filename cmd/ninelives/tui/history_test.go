package tui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestHistoryIsKeptWithoutDuplicatesAndPrivately(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	for _, text := range []string{"one", "two\nlines", "one", "  ", strings.Repeat("x", historyBytes+1), "three \x1b[31m"} {
		if err := saveHistory(path, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := loadHistory(path)
	if want := []string{"two\nlines", "one", "three \x1b[31m"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files are left over: %v", left)
	}
}

func TestDamagedLineOfTheHistoryIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	os.WriteFile(path, []byte("\"one\"\n\"cut off\n\x00\x01\n\"two\"\n{}\n"), 0o600)
	if got, err := loadHistory(path); err != nil || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := saveHistory(path, "three"); err != nil {
		t.Fatal(err)
	}
	if got, _ := loadHistory(path); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var lines strings.Builder
	for i := range 2*historyLimit + 1 {
		fmt.Fprintf(&lines, "\"input %d\"\n", i)
	}
	os.WriteFile(path, []byte(lines.String()), 0o600)
	if err := saveHistory(path, "the last"); err != nil {
		t.Fatal(err)
	}
	got, err := loadHistory(path)
	if err != nil || len(got) != historyLimit || got[0] != fmt.Sprint("input ", historyLimit+2) || got[historyLimit-1] != "the last" {
		t.Errorf("%d inputs from %q to %q are kept, %v", len(got), got[0], got[len(got)-1], err)
	}
	if data, _ := os.ReadFile(path); strings.Count(string(data), "\n") != historyLimit {
		t.Errorf("the file has %d lines", strings.Count(string(data), "\n"))
	}
}

func TestTerminalsShareTheHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if err := saveHistory(path, fmt.Sprintf("%d of %d", j, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := loadHistory(path); err != nil || len(got) != 160 {
		t.Errorf("%d of 160 inputs are there, %v", len(got), err)
	}
}

func TestDraftGoesWhenItIsSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	for _, text := range []string{"half a tho", "half a thought\n\xff"} {
		if err := saveDraft(path, "/w", text); err != nil {
			t.Fatal(err)
		}
	}
	if got := takeDraft(path, "/w"); got != "half a thought\n\ufffd" {
		t.Errorf("%q", got)
	}
	for range 2 {
		if err := saveDraft(path, "/w", ""); err != nil || takeDraft(path, "/w") != "" {
			t.Errorf("%v, %q", err, takeDraft(path, "/w"))
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files are left over: %v", left)
	}
}

func TestDraftOfAProcessThatIsGoneIsTakenOverAndNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "his[t]ory")
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	write := func(pid int, directory, text string) {
		data, _ := json.Marshal(draft{directory, text})
		if err := os.WriteFile(draftPath(path, pid), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(os.Getppid(), "/w", "of a living process")
	write(gone.Process.Pid, "/elsewhere", "of another directory")
	if got := takeDraft(path, "/w"); got != "" {
		t.Errorf("%q is taken over", got)
	}
	write(gone.Process.Pid, "/w", "left behind")
	if got := takeDraft(path, "/w"); got != "left behind" {
		t.Errorf("%q is taken over", got)
	}
	if _, err := os.Stat(draftPath(path, gone.Process.Pid)); !os.IsNotExist(err) {
		t.Errorf("the next one would take it over again: %v", err)
	}
	if _, err := os.Stat(draftPath(path, os.Getpid())); err != nil {
		t.Errorf("a crash now would lose it: %v", err)
	}
}
