package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/go-json-experiment/json"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// plan is what a call that writes will do, decided before anything is done.
type plan struct {
	steps   []step
	text    string // what the model is told when it is done
	summary string // what people are told
}

// step is one file of a plan.
type step struct {
	path   string
	before standing
	after  standing // its mode is not known yet for a new file
}

func (s step) change() Change {
	return Change{Path: s.path, Before: s.before.FileState, After: s.after.FileState}
}

// writer is a Tool that changes files by a plan. What it would do can be shown
// before, and found out after a crash.
type writer[A any] struct {
	typed[A]
	w *Workspace
	// plan decides what a call does. Without a call it is only to be shown, and
	// what the session has read does not matter.
	plan func(ctx context.Context, call *Call, args A) (plan, error)
}

// Run decides, keeps what will be gone, and acts.
func (t *writer[A]) Run(ctx context.Context, call *Call) Result {
	args, err := arguments[A](call.Arguments)
	if err != nil {
		return failure(err)
	}
	t.w.writing.Lock()
	defer t.w.writing.Unlock()
	p, err := t.plan(ctx, call, args)
	if err == nil {
		err = t.w.keepAll(ctx, p)
	}
	if err != nil {
		return failure(err)
	}
	done, err := t.w.apply(ctx, call, p)
	r := TextResult(p.text)
	r.Summary = p.summary
	if err != nil {
		text := err.Error()
		if len(done) > 0 {
			text += fmt.Sprintf(" (%s changed before that)", were(len(done), "file"))
		}
		r = failure(errors.New(text))
	}
	for _, s := range done {
		r.Changes = append(r.Changes, s.change())
	}
	r.Diff = diffOf(done)
	return r
}

// Preview is the diff of what a call would do.
func (t *writer[A]) Preview(ctx context.Context, raw []byte) (string, error) {
	args, err := arguments[A](raw)
	if err != nil {
		return "", err
	}
	p, err := t.plan(ctx, nil, args)
	if err != nil {
		return "", err
	}
	return diffOf(p.steps), nil
}

// mark is a plan as it is remembered over a crash.
type mark struct {
	Changes []Change `json:"changes"`
	Text    string   `json:"text"`
	Summary string   `json:"summary"`
}

// Mark holds the hashes before, and those intended after. A call that will
// fail has an empty one.
func (t *writer[A]) Mark(ctx context.Context, call *Call) ([]byte, error) {
	args, err := arguments[A](call.Arguments)
	if err != nil {
		return nil, nil
	}
	t.w.writing.Lock()
	defer t.w.writing.Unlock()
	p, err := t.plan(ctx, call, args)
	if err != nil {
		return nil, nil
	}
	if err := t.w.keepAll(ctx, p); err != nil {
		return nil, err
	}
	m := mark{Text: p.text, Summary: p.summary}
	for _, s := range p.steps {
		m.Changes = append(m.Changes, s.change())
	}
	return json.Marshal(m)
}

// Probe compares what is there now with both sides of the mark.
func (t *writer[A]) Probe(ctx context.Context, call *Call, raw []byte) (Standing, Result) {
	var m mark
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return StandingUnknown, Result{}
	}
	files := 0
	for _, c := range m.Changes {
		if !c.directory() {
			files++
		}
	}
	done, undone := true, true
	var steps []step
	for _, c := range m.Changes {
		t.w.tidy(c.Path, call.tag())
		now, err := t.w.look(c.Path)
		if err != nil {
			return StandingUnknown, Result{}
		}
		// Directories alone say nothing: making them again is harmless.
		if files == 0 || !c.directory() {
			done = done && alike(now.FileState, c.After)
			undone = undone && alike(now.FileState, c.Before)
		}
		s := step{path: c.Path, before: standing{FileState: c.Before}, after: now}
		if c.Before != nil && !c.Before.Unkept && t.w.blobs != nil {
			s.before.content, _ = t.w.blobs.Get(ctx, c.Before.Hash)
		}
		steps = append(steps, s)
	}
	switch {
	case done:
		r := TextResult(m.Text)
		r.Summary, r.Diff = m.Summary, diffOf(steps)
		for _, s := range steps {
			r.Changes = append(r.Changes, s.change())
		}
		return StandingDone, r
	case undone:
		return StandingNotStarted, Result{}
	}
	return StandingUnknown, Result{}
}

// tag tells a call from those of other sessions.
func (c *Call) tag() string { return c.Session + "\x00" + c.ID }

// tidy removes the temporary file that a crash may have left.
func (w *Workspace) tidy(rel, tag string) {
	_ = w.root.Remove(temporary(rel, tag))
}

func (c Change) directory() bool {
	return (c.Before == nil || c.Before.kind() == fs.ModeDir) && (c.After == nil || c.After.kind() == fs.ModeDir)
}

// keepAll makes both sides of a plan durable, before anything is changed.
func (w *Workspace) keepAll(ctx context.Context, p plan) error {
	for _, s := range p.steps {
		for _, side := range []standing{s.before, s.after} {
			if err := w.keep(ctx, s.path, side.FileState, side.content); err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
		}
	}
	return nil
}

// apply carries a plan out, a step at a time, and gives those that are done,
// with their states as they came out. It stops at the first that fails.
func (w *Workspace) apply(ctx context.Context, call *Call, p plan) (done []step, err error) {
	for _, s := range p.steps {
		if ctx.Err() != nil {
			return done, fmt.Errorf("stopped before %s was changed", visible.Escaped(s.path))
		}
		applied, err := w.step(call.tag(), &s)
		if err != nil {
			return done, err
		}
		if !applied {
			continue
		}
		done = append(done, s)
		if s.after.FileState != nil && s.after.kind() == 0 {
			w.saw(call.Session, s.path, sighting{s.after.stamp, s.after.Hash})
		}
	}
	return done, nil
}

// step does one step and settles its state afterwards. It says false for a
// directory that somebody else has made meanwhile.
func (w *Workspace) step(tag string, s *step) (bool, error) {
	switch {
	case s.after.FileState == nil:
		if err := w.still(s.path, &s.before.stamp); err != nil {
			return false, w.failed("delete", s.path, err)
		}
		if err := w.root.Remove(s.path); err != nil {
			return false, w.failed("delete", s.path, err)
		}
		w.syncDir(path.Dir(s.path))
		return true, nil
	case s.after.kind() == fs.ModeDir:
		err := w.root.Mkdir(s.path, 0o777)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		} else if err != nil {
			return false, w.failed("create the directory", s.path, err)
		}
		info, err := w.root.Lstat(s.path)
		if err != nil {
			return false, w.failed("create the directory", s.path, err)
		}
		s.after.Mode = uint32(info.Mode())
		return true, nil
	}
	r := replacement{path: s.path, content: s.after.content, tag: tag}
	if s.before.FileState != nil {
		mode := s.before.perm()
		r.mode, r.expect = &mode, &s.before.stamp
	}
	stamp, err := w.put(r)
	if err != nil {
		return false, err
	}
	s.after.stamp, s.after.Mode = stamp, uint32(stamp.mode)
	return true, nil
}

// parents are the steps that make the missing directories above a file.
func (w *Workspace) parents(rel string) ([]step, error) {
	var steps []step
	for _, dir := range above(rel) {
		info, err := w.root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			steps = append(steps, step{path: dir, after: standing{FileState: &FileState{Mode: uint32(fs.ModeDir | 0o777)}}})
		case err != nil:
			return nil, w.failed("write", rel, err)
		case !info.IsDir():
			return nil, fmt.Errorf("cannot write %s: %s is %s, not a directory", visible.Escaped(rel), visible.Escaped(dir), kindOf(info.Mode()))
		}
	}
	return steps, nil
}

// contentOf is the state of a file that will hold a content.
func (w *Workspace) contentOf(content []byte) standing {
	return standing{
		FileState: &FileState{Hash: hashOf(content), Size: int64(len(content)), Unkept: w.blobs == nil || len(content) > keepFile},
		content:   content,
	}
}
