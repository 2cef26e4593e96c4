package config

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed after each change of what the files hold, one that
// appears or goes included, once it has stood still for 200 ms: editors write
// in several steps. A file that is written again as it was has not changed. It
// compares with what is there when it is called, so call it before the files
// are read. It returns at once; what it starts ends with ctx, and closes done
// then.
//
// Where the system tells of no changes, or a directory is not there, the files
// are looked at every 2 s.
func Watch(ctx context.Context, paths []string, changed func()) (done <-chan struct{}) {
	return watch(ctx, paths, changed, watchTimes{still: 200 * time.Millisecond, poll: 2 * time.Second}, fsnotify.NewWatcher)
}

type watchTimes struct {
	still time.Duration // how long a file must stand still
	poll  time.Duration // how often it is looked at where nobody tells
}

func watch(ctx context.Context, paths []string, changed func(), times watchTimes, open func() (*fsnotify.Watcher, error)) <-chan struct{} {
	w := &watcher{paths: paths, watched: map[string]bool{}}
	w.notify, _ = open() // without one it polls
	w.follow()
	told := w.look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if w.notify != nil {
			defer w.notify.Close()
		}
		w.run(ctx, told, changed, times)
	}()
	return done
}

type watcher struct {
	paths   []string
	notify  *fsnotify.Watcher // nil: nobody tells
	watched map[string]bool   // directories
}

// follow watches the directories of the files, and of those that they are links
// to: a file that an editor replaces is another one. It reports whether all are
// watched.
func (w *watcher) follow() (all bool) {
	if w.notify == nil {
		return false
	}
	var dirs []string
	for _, path := range w.paths {
		dirs = append(dirs, filepath.Dir(path))
		if to, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(to))
		}
	}
	now := w.notify.WatchList() // those that were removed are not in it any more
	all = true
	for _, dir := range dirs {
		if w.watched[dir] && slices.Contains(now, dir) {
			continue
		}
		w.watched[dir] = w.notify.Add(dir) == nil
		all = all && w.watched[dir]
	}
	return all
}

func (w *watcher) run(ctx context.Context, told [][sha256.Size]byte, changed func(), times watchTimes) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w.notify != nil {
		events, errs = w.notify.Events, w.notify.Errors
	}
	seen := told
	timer := time.NewTimer(0) // what happened before the watch was set
	defer timer.Stop()
	soon := false // the timer is set to look again soon
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-errs: // events were lost
		case <-timer.C:
			soon = false
			all := w.follow()
			now := w.look()
			switch {
			case !slices.Equal(now, seen):
				seen, soon = now, true
				timer.Reset(times.still)
			case !slices.Equal(now, told):
				told = now
				changed()
				fallthrough
			default:
				if !all {
					timer.Reset(times.poll)
				}
			}
			continue
		}
		if !soon {
			soon = true
			timer.Reset(times.still)
		}
	}
}

// look gives a sum of each file: zero if it is not there, or is no file whose
// text stays.
func (w *watcher) look() [][sha256.Size]byte {
	sums := make([][sha256.Size]byte, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			sums[i] = sumOf(path)
		}
	}
	return sums
}

func sumOf(path string) (sum [sha256.Size]byte) {
	f, err := os.Open(path)
	if err != nil {
		return sum
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxFile+1)); err != nil {
		return sum
	}
	return [sha256.Size]byte(h.Sum(nil))
}
