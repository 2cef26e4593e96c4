package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// Restore takes changes back, or with redo makes them again, byte for byte,
// modes, links, directories and absence included. The changes are given in the
// order in which they were made; several of one file are taken together.
//
// A file is only touched if it is now as the changes left it. Otherwise, and
// where a content was not kept, it is left alone, and conflicts says so in a
// line that begins with the path. Each file is replaced whole or not at all.
// The changes that stand restored are given back; given to Restore again with
// the other redo they undo this. The error is that of a context that ended;
// what was done until then is told with it.
func (w *Workspace) Restore(ctx context.Context, changes []Change, redo bool) (restored []Change, conflicts []string, err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	r := restoration{w: w, ctx: ctx}
	for _, name := range paths(changes) {
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("restoring was stopped; nothing was changed: %w", ctx.Err())
		}
		r.decide(name, changes, redo)
	}
	err = r.act()
	done := map[string]int{}
	for _, t := range r.todo {
		if t.done {
			done[t.path] = t.links
		}
	}
	return restorable(changes, redo, done), r.conflicts, err
}

// paths lists the paths of changes, each once, in their order.
func paths(changes []Change) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range changes {
		if !seen[c.Path] {
			seen[c.Path] = true
			out = append(out, c.Path)
		}
	}
	return out
}

// restorable gives the changes that were restored: of each path as many as
// fitted, counted from the end for an undo.
func restorable(changes []Change, redo bool, done map[string]int) []Change {
	var out []Change
	list := slices.Clone(changes)
	if !redo {
		slices.Reverse(list)
	}
	for _, c := range list {
		if done[c.Path] > 0 {
			done[c.Path]--
			out = append(out, c)
		}
	}
	if !redo {
		slices.Reverse(out)
	}
	return out
}

// restoration is a Restore under way.
type restoration struct {
	w         *Workspace
	ctx       context.Context
	todo      []*target
	conflicts []string
}

// target is what a path shall become.
type target struct {
	path   string
	now    standing
	state  *FileState // nil: nothing
	links  int        // how many changes of the path that takes back
	failed bool
	done   bool
}

func (r *restoration) conflict(name, why string) {
	r.conflicts = append(r.conflicts, visible.EscapedLine(name)+": "+why)
}

// fail takes a target out of the work.
func (r *restoration) fail(t *target, err error) {
	t.failed = true
	r.conflict(t.path, err.Error())
}

// decide finds out what a path shall become.
func (r *restoration) decide(name string, changes []Change, redo bool) {
	t := &target{path: name}
	var chain []Change // Before is what is there now, After what shall be
	for _, c := range changes {
		if c.Path == name {
			chain = append(chain, c)
		}
	}
	if !redo {
		slices.Reverse(chain)
		for i, c := range chain {
			chain[i].Before, chain[i].After = c.After, c.Before
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || name == "." {
		r.conflict(name, "it is not a path inside the workspace")
		return
	}
	now, err := r.w.present(name)
	if err != nil {
		r.conflict(name, err.Error())
		return
	}
	t.now, t.state = now, chain[0].Before
	for _, c := range chain {
		if unknown(c.Before) || unknown(c.After) {
			r.conflict(name, "its content was not kept (too large, or not readable); it was left alone")
			break
		}
		if !equal(t.state, c.Before) {
			r.conflict(name, "it was changed in between by somebody else; it is taken back to there")
			break
		}
		t.state = c.After
		t.links++
	}
	if t.links == 0 {
		return
	}
	if before := chain[0].Before; !equal(now.FileState, before) && !equal(now.FileState, t.state) && !halfway(now.FileState, before, t.state) {
		r.conflict(name, "it was changed since by somebody else; it was left alone")
		return
	}
	if _, err := r.content(t); err != nil {
		r.conflict(name, err.Error())
		return
	}
	r.todo = append(r.todo, t)
}

// halfway tells what a restoration that was cut off leaves of a path on its way
// between two states: a directory that its owner may work in, and nothing where
// a directory gives way to a file, or a file to a directory.
func halfway(now, from, to *FileState) bool {
	if now == nil {
		return from != nil && to != nil && (from.kind() == fs.ModeDir) != (to.kind() == fs.ModeDir)
	}
	opened := func(s *FileState) bool {
		return s != nil && s.kind() == fs.ModeDir && now.perm() == s.perm()|0o700
	}
	return now.kind() == fs.ModeDir && (opened(from) || opened(to))
}

// present is look without following a link in the directories above: what would
// be reached through one is not there.
func (w *Workspace) present(rel string) (standing, error) {
	if w.gone(rel) {
		return standing{}, nil
	}
	return w.look(rel)
}

// gone tells whether there is certainly nothing at a path.
func (w *Workspace) gone(rel string) bool {
	for _, dir := range append(above(rel), rel) {
		info, err := w.root.Lstat(dir)
		if err != nil {
			return errors.Is(err, fs.ErrNotExist)
		}
		if dir != rel && !info.IsDir() {
			return true
		}
	}
	return false
}

// content gets what a target shall hold, or says why it cannot be restored.
func (r *restoration) content(t *target) ([]byte, error) {
	if equal(t.now.FileState, t.state) {
		return nil, nil
	}
	if t.now.FileState != nil && t.now.Unkept {
		return nil, errors.New("what is there now was not kept, so that taking it away could not be undone; it was left alone")
	}
	if t.state == nil || t.state.kind() == fs.ModeDir {
		return nil, nil
	}
	if t.state.Unkept || r.w.blobs == nil {
		return nil, errors.New("what it held was not kept; it was left alone")
	}
	content, err := r.w.blobs.Get(r.ctx, t.state.Hash)
	if err == nil && hashOf(content) != t.state.Hash {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("what it held cannot be had: %w; it was left alone", err)
	}
	return content, nil
}

// equal tells whether two states are the same to the bit.
func equal(a, b *FileState) bool {
	return alike(a, b) && (a == nil || a.perm() == b.perm()) && !unknown(a) && !unknown(b)
}

// unknown is a state of which nobody can say whether it is another's equal.
func unknown(s *FileState) bool { return s != nil && s.Hash == "" && s.kind() != fs.ModeDir }

// act makes room first, from the leaves up, then builds from the top down, and
// sets the modes of directories last, since one may forbid what is to be done
// in it.
func (r *restoration) act() error {
	slices.SortFunc(r.todo, func(a, b *target) int { return comparePaths(a.path, b.path) })
	for _, t := range r.todo {
		if t.remains() {
			if err := r.w.root.Chmod(t.path, t.now.perm()|0o700); err != nil {
				r.fail(t, r.w.failed("change the mode of", t.path, err))
			}
		}
	}
	steps := []struct {
		down bool
		do   func(*target) error
	}{{true, r.clear}, {false, r.build}, {true, r.finish}}
	for _, s := range steps {
		list := slices.Clone(r.todo)
		if s.down {
			slices.Reverse(list)
		}
		for _, t := range list {
			// A directory that was opened up gets its mode even when the rest is stopped.
			if t.failed || r.ctx.Err() != nil && !t.remains() {
				continue
			}
			if err := s.do(t); err != nil {
				r.fail(t, err)
			}
		}
	}
	if err := r.ctx.Err(); err != nil {
		return fmt.Errorf("restoring was stopped on the way: %w", err)
	}
	return nil
}

// remains tells a directory that stays one and gets another mode.
func (t *target) remains() bool {
	return t.now.FileState != nil && t.state != nil && t.now.kind() == fs.ModeDir && t.state.kind() == fs.ModeDir &&
		t.now.perm() != t.state.perm()
}

// clear removes what shall not be there, or is in the way as another kind.
func (r *restoration) clear(t *target) error {
	if t.now.FileState == nil || equal(t.now.FileState, t.state) {
		return nil
	}
	isDir := t.now.kind() == fs.ModeDir
	if t.state != nil && isDir == (t.state.kind() == fs.ModeDir) {
		return nil
	}
	if isDir {
		if entries, err := entriesOf(r.w.root, t.path); err == nil && len(entries) > 0 {
			return errors.New("the directory holds other files; it was left alone")
		}
	} else if err := r.w.still(t.path, &t.now.stamp); err != nil {
		return r.w.failed("delete", t.path, err)
	}
	if err := r.w.root.Remove(t.path); err != nil {
		return r.w.failed("delete", t.path, err)
	}
	r.w.syncDir(path.Dir(t.path))
	t.now = standing{}
	t.done = t.state == nil
	return nil
}

// build puts what shall be there.
func (r *restoration) build(t *target) error {
	if t.state == nil || equal(t.now.FileState, t.state) {
		return nil
	}
	if t.state.kind() == fs.ModeDir {
		if t.now.FileState != nil {
			return nil
		}
		if err := r.w.above(t.path); err != nil {
			return err
		}
		err := r.w.root.Mkdir(t.path, 0o700)
		if err == nil {
			err = r.w.root.Chmod(t.path, t.state.perm()|0o700)
		}
		if err != nil {
			return r.w.failed("create the directory", t.path, err)
		}
		return nil
	}
	if err := r.w.above(t.path); err != nil {
		return err
	}
	content, err := r.content(t)
	if err != nil {
		return err
	}
	mode := t.state.perm()
	rep := replacement{path: t.path, content: content, mode: &mode, tag: rand.Text(), link: t.state.kind() == fs.ModeSymlink}
	if t.now.FileState != nil {
		rep.expect = &t.now.stamp
	}
	_, err = r.w.put(rep)
	t.done = err == nil
	return err
}

// above makes the directories above a file that are missing. A link among them
// would lead elsewhere.
func (w *Workspace) above(rel string) error {
	for _, dir := range above(rel) {
		if info, err := w.root.Lstat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is %s, not a directory", visible.Escaped(dir), kindOf(info.Mode()))
		}
	}
	if dir := path.Dir(rel); dir != "." {
		if err := w.root.MkdirAll(dir, 0o777); err != nil {
			return w.failed("create the directory", dir, err)
		}
	}
	return nil
}

// finish sets the mode of a directory, and takes note.
func (r *restoration) finish(t *target) error {
	if t.state != nil && t.state.kind() == fs.ModeDir && !equal(t.now.FileState, t.state) {
		if err := r.w.root.Chmod(t.path, t.state.perm()); err != nil {
			return r.w.failed("change the mode of", t.path, err)
		}
	}
	t.done = true
	return nil
}
