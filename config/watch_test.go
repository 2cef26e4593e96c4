package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

// watched is a watch of files for a test, which ends with it.
type watched struct {
	*testing.T
	changes chan struct{}
}

func watchFor(t *testing.T, times watchTimes, open func() (*fsnotify.Watcher, error), paths ...string) watched {
	t.Helper()
	w := watched{t, make(chan struct{}, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := watch(ctx, paths, func() { w.changes <- struct{}{} }, times, open)
	t.Cleanup(func() {
		cancel()
		<-done
		goleak.VerifyNone(t)
	})
	return w
}

// told waits for a change.
func (w watched) told(what string) {
	w.Helper()
	select {
	case <-w.changes:
	case <-time.After(time.Minute):
		w.Fatalf("nobody was told: %s", what)
	}
}

// never is longer than a test takes.
const never = time.Hour

// byEvents never polls: what is told was told by the system.
var byEvents = watchTimes{still: 5 * time.Millisecond, poll: never}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestAWatchTellsOfWhateverChangesAFile(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	path, second := filepath.Join(dir, "ninelives.yaml"), write(t, other, "config.yaml", "model: a")
	w := watchFor(t, byEvents, fsnotify.NewWatcher, path, second)
	write(t, dir, "ninelives.yaml", "model: a")
	w.told("it appears")
	write(t, dir, "ninelives.yaml", "model: b")
	w.told("it is written")
	write(t, dir, "new", "model: c")
	move(t, filepath.Join(dir, "new"), path)
	w.told("an editor puts another one in its place")
	write(t, dir, "ninelives.yaml", "model: d")
	w.told("the other one is written")
	write(t, other, "config.yaml", "model: e")
	w.told("the second is written")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.told("it is removed")
}

// What is written again as it was, and what lies beside, is no change: the next
// thing that is told is the change that follows.
func TestAWatchTellsOfChangesOnly(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "ninelives.yaml", "model: a")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan string, 100)
	done := watch(ctx, []string{path}, func() {
		text, _ := os.ReadFile(path)
		got <- string(text)
	}, byEvents, fsnotify.NewWatcher)
	for range 20 {
		write(t, dir, "same", "model: a")
		move(t, filepath.Join(dir, "same"), path)
		write(t, dir, "notes.txt", "x")
	}
	write(t, dir, "new", "model: b")
	move(t, filepath.Join(dir, "new"), path)
	select {
	case text := <-got:
		if text != "model: b" {
			t.Errorf("told of %q", text)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	cancel()
	<-done
	if len(got) > 0 {
		t.Errorf("told of %q", <-got)
	}
}

// What is mounted as a link, as in Kubernetes, changes with what it leads to.
func TestAWatchFollowsLinks(t *testing.T) {
	dir, real := t.TempDir(), t.TempDir()
	write(t, real, "text.yaml", "model: a")
	path := filepath.Join(dir, "ninelives.yaml")
	if err := os.Symlink(filepath.Join(real, "text.yaml"), path); err != nil {
		t.Skip(err)
	}
	w := watchFor(t, byEvents, fsnotify.NewWatcher, path)
	write(t, real, "text.yaml", "model: b")
	w.told("the file behind the link is written")
	write(t, real, "other.yaml", "model: c")
	if err := os.Symlink(filepath.Join(real, "other.yaml"), filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	move(t, filepath.Join(dir, "new"), path)
	w.told("the link leads elsewhere")
}

func TestAWatchLooksWhereNobodyTells(t *testing.T) {
	polls := watchTimes{still: time.Millisecond, poll: time.Millisecond}
	t.Run("the system tells nothing", func(t *testing.T) {
		path := write(t, t.TempDir(), "ninelives.yaml", "model: a")
		w := watchFor(t, polls, func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }, path)
		write(t, filepath.Dir(path), "ninelives.yaml", "model: b")
		w.told("it is written")
	})
	t.Run("the directory is made later", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "ninelives")
		w := watchFor(t, polls, fsnotify.NewWatcher, filepath.Join(dir, "config.yaml"))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "config.yaml", "model: a")
		w.told("it appears")
		write(t, dir, "config.yaml", "model: b")
		w.told("it is written")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		w.told("it goes")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "config.yaml", "model: c")
		w.told("it comes back")
	})
}
