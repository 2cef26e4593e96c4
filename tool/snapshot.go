package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// bounds are what is looked at and kept when a command runs. What a file holds
// beyond them is not kept, and said to be Unkept where it changes; of files
// beyond the last bound nothing is known, which Track says by its error.
type bounds struct {
	bytes int64 // of contents
	files int   // whose contents are kept
	seen  int   // files and directories looked at
}

// trackBounds hold for every workspace.
var trackBounds = bounds{bytes: 256 << 20, files: 20_000, seen: 200_000}

// ErrUncovered says that a workspace is too large to tell all changes of a
// command.
var ErrUncovered = errors.New("the workspace is too large: changes were looked for in a part of it only")

// looks is what is known of the workspace between two commands.
type looks struct {
	bounds  bounds
	mu      sync.Mutex
	last    *view // the last look, so that the next one reads only what has changed
	pack    pack
	running int // Tracks under way, which need what the pack holds
}

func (l *looks) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = nil
	return l.pack.close()
}

// view is the workspace at one time.
type view struct {
	entries map[string]*entry
	rules   map[string][]ignoreRule // of the directories, as they were
	end     string                  // the last path looked at, where there are too many; else empty
	files   int                     // contents kept, and their bytes
	bytes   int64
}

// entry is one file of a view. It does not change.
type entry struct {
	stamp   stamp
	settled bool // an equal stamp means equal content
	state   FileState
}

// Track runs something that may change files anyhow, and tells exactly what it
// changed: created, changed, deleted, other modes, links, directories. Both
// states of each are kept in the Blobs when Track returns; where one is not it
// is marked Unkept (a file over 10 MB, all in all 256 MB and 20,000 files, and
// what cannot be read). Not looked at are .git, node_modules, and what the
// .gitignore files named when it began.
//
// The first Track of a workspace reads its files; from then on it costs a stat
// for each before and after. The error is that of run, joined with
// what could not be looked at or kept; the changes are right with an error too. If ctx
// has ended before, run is not called; when it ends meanwhile the changes
// are told all the same.
func (w *Workspace) Track(ctx context.Context, run func() error) ([]Change, error) {
	l := &w.looks
	l.mu.Lock()
	before, err := w.survey(ctx, nil)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.running++
	l.mu.Unlock()

	err = run()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	ctx = context.WithoutCancel(ctx)
	after, lookErr := w.survey(ctx, before)
	if lookErr != nil {
		return nil, errors.Join(err, lookErr)
	}
	changes := w.changes(before, after)
	keepErr := w.keepChanges(ctx, changes)
	if before.end != "" {
		keepErr = errors.Join(keepErr, fmt.Errorf("%w (up to %s); let .gitignore name what is generated", ErrUncovered, visible.Escaped(before.end)))
	}
	l.slim(after)
	return changes, errors.Join(err, keepErr)
}

// survey looks at every file. Compared with an earlier view of the same
// command it goes by the ignore rules and the bounds of that one, so that a
// changed .gitignore makes no file appear or vanish.
func (w *Workspace) survey(ctx context.Context, began *view) (*view, error) {
	at := time.Now()
	v := &view{entries: map[string]*entry{}}
	k := walker{root: w.root, skip: "node_modules"}
	if began != nil {
		k.known = began.rules
	}
	err := k.from(ctx, ".", func(rel string, info fs.FileInfo) error {
		if own(rel) {
			return nil
		}
		if began == nil && len(v.entries) >= w.looks.bounds.seen {
			return errFull
		}
		if began != nil && began.end != "" && comparePaths(rel, began.end) > 0 {
			return errFull
		}
		v.end = rel
		e := w.entry(v, rel, info, at)
		v.entries[rel] = e
		if e.state.kind() == 0 && !e.state.Unkept {
			v.files++
			v.bytes += e.state.Size
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	if err == nil {
		v.end = ""
	}
	v.rules = k.read
	w.looks.last = v
	return v, nil
}

// own tells the files that are written here on their way to their place.
func own(rel string) bool {
	name := path.Base(rel)
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// entry is the state of a file: as it was last time if its stamp says so, else
// read and put into the pack.
func (w *Workspace) entry(v *view, rel string, info fs.FileInfo, at time.Time) *entry {
	st := stampOf(info)
	if last := w.looks.last; last != nil {
		if e := last.entries[rel]; e != nil && e.stamp == st && e.settled {
			return e
		}
	}
	e := &entry{stamp: st, settled: st.settled(at), state: FileState{Mode: uint32(st.mode), Size: info.Size()}}
	var content []byte
	switch st.mode.Type() {
	case fs.ModeDir:
		e.settled, e.state.Size = true, 0
		return e
	case fs.ModeSymlink:
		target, err := w.root.Readlink(rel)
		if err != nil {
			e.state.Unkept = true
			return e
		}
		content = []byte(target)
	case 0:
		if v.files >= w.looks.bounds.files || v.bytes+info.Size() > w.looks.bounds.bytes {
			e.state.Unkept = true
			return e
		}
		p := location{root: w.root, name: rel, shown: rel}
		read, opened, whole, err := p.read(keepFile)
		if err != nil || !whole {
			e.state.Unkept = true
			return e
		}
		content = read
		// The stamp must be that of what was read: a file that is being written has a newer one.
		e.stamp = stampOf(opened)
		e.settled = e.stamp == st && st.settled(at)
		e.state.Mode = uint32(e.stamp.mode)
	default:
		e.state.Unkept = true
		return e
	}
	e.state.Size, e.state.Hash = int64(len(content)), hashOf(content)
	e.state.Unkept = w.blobs == nil || w.looks.pack.put(e.state.Hash, content) != nil
	return e
}

// changes compares two views, in the order of the paths.
func (w *Workspace) changes(before, after *view) []Change {
	var changes []Change
	for rel, b := range before.entries {
		a, ok := after.entries[rel]
		switch {
		case !ok:
			// What cannot be seen any more (a directory that may not be read) is not gone.
			if w.gone(rel) {
				changes = append(changes, Change{Path: rel, Before: copied(b)})
			}
		case a != b && b.differs(a):
			changes = append(changes, Change{Path: rel, Before: copied(b), After: copied(a)})
		}
	}
	for rel, a := range after.entries {
		if _, ok := before.entries[rel]; !ok {
			changes = append(changes, Change{Path: rel, After: copied(a)})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return comparePaths(a.Path, b.Path) })
	return changes
}

func copied(e *entry) *FileState {
	s := e.state
	return &s
}

// differs tells whether a file is another one. Without the contents every
// stamp counts.
func (e *entry) differs(o *entry) bool {
	if e.state.Mode != o.state.Mode {
		return true
	}
	if e.state.kind() == fs.ModeDir {
		return false
	}
	if e.state.Hash == "" || o.state.Hash == "" {
		return e.stamp != o.stamp
	}
	return e.state.Hash != o.state.Hash
}

// keepChanges moves what was changed from the pack to the Blobs.
func (w *Workspace) keepChanges(ctx context.Context, changes []Change) error {
	var failed error
	for _, c := range changes {
		for _, s := range []*FileState{c.Before, c.After} {
			if s == nil || s.Unkept || s.kind() == fs.ModeDir {
				continue
			}
			content, err := w.looks.pack.get(s.Hash)
			if err == nil {
				err = w.keep(ctx, c.Path, s, content)
			}
			if err != nil {
				s.Unkept = true
				failed = errors.Join(failed, err)
			}
		}
	}
	return failed
}

// slim lets the pack go of what no file holds any more, once that is as much
// as may be kept.
func (l *looks) slim(v *view) {
	if l.running > 0 || l.pack.size <= 2*l.bounds.bytes {
		return
	}
	alive := map[string]bool{}
	for _, e := range v.entries {
		if e.state.Hash != "" {
			alive[e.state.Hash] = true
		}
	}
	l.pack.slim(alive)
}

// comparePaths compares paths as the walk meets them: a directory, what is in it,
// its next neighbour.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
