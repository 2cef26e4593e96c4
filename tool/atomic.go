package tool

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// replacement is a file that is about to take its place, whole or not at all.
type replacement struct {
	path    string
	content []byte
	// mode is what the file will have; nil leaves it to the umask.
	mode *fs.FileMode
	// link makes a symbolic link to content.
	link bool
	// tag tells the temporary file of this change from others.
	tag string
	// expect is what must be there at the last moment; nil for nothing.
	expect *stamp
}

// errMoved says that a file is not what was decided upon.
var errMoved = errors.New("it was changed meanwhile by somebody else; nothing was done to it. Read it again")

// The names of the files on the way to their place.
const (
	temporaryPrefix = ".ninelives-"
	temporarySuffix = ".tmp"
)

// temporary is where the content of a change is written first. It has the same
// name for the same tag, so that what a crash left can be found.
func temporary(file, tag string) string {
	sum := sha256.Sum256([]byte(tag + "\x00" + file))
	return path.Join(path.Dir(file), temporaryPrefix+hex.EncodeToString(sum[:8])+temporarySuffix)
}

// put carries a replacement out: it writes a temporary file beside the place,
// makes it durable, and moves it there. It gives the stamp of the new file.
func (w *Workspace) put(r replacement) (stamp, error) {
	temp := temporary(r.path, r.tag)
	err := w.draft(temp, r)
	if errors.Is(err, fs.ErrExist) { // it is somebody else's, or what a crash left
		temp = temporary(r.path, rand.Text())
		err = w.draft(temp, r)
	}
	if err != nil {
		return stamp{}, w.failed("write", r.path, err)
	}
	defer func() { _ = w.root.Remove(temp) }()
	if err := w.still(r.path, r.expect); err != nil {
		return stamp{}, w.failed("write", r.path, err)
	}
	if err := w.settle(temp, r); err != nil {
		return stamp{}, w.failed("write", r.path, err)
	}
	w.syncDir(path.Dir(r.path))
	info, err := w.root.Lstat(r.path)
	if err != nil {
		return stamp{}, w.failed("read", r.path, err)
	}
	return stampOf(info), nil
}

// draft writes the temporary file. What it leaves when it fails is removed.
func (w *Workspace) draft(temp string, r replacement) error {
	if r.link {
		return w.root.Symlink(string(r.content), temp)
	}
	perm := fs.FileMode(0o666)
	if r.mode != nil {
		perm = 0o600 // until it has its owner
	}
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(r.content)
	if err == nil && r.mode != nil {
		if old, e := w.root.Lstat(r.path); e == nil && old.Mode().IsRegular() {
			inherit(f, old)
		}
		err = f.Chmod(*r.mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = w.root.Remove(temp)
	}
	return err
}

// settle moves the temporary file to its place. A new file never takes the
// place of one that somebody else made meanwhile, where the file system has
// hard links.
func (w *Workspace) settle(temp string, r replacement) error {
	if r.expect == nil {
		err := w.root.Link(temp, r.path)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrExist):
			return errMoved
		}
	}
	return w.root.Rename(temp, r.path)
}

// still tells whether a path is as expected; nil expects nothing there.
func (w *Workspace) still(rel string, expect *stamp) error {
	info, err := w.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if expect == nil {
			return nil
		}
		return errMoved
	case err != nil:
		return err
	case expect == nil || stampOf(info) != *expect:
		return errMoved
	}
	return nil
}

// syncDir makes the names in a directory durable, where that can be done.
func (w *Workspace) syncDir(dir string) {
	if d, err := w.root.OpenFile(dir, os.O_RDONLY|calm, 0); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

func (w *Workspace) failed(verb, rel string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot %s %s: the user that runs this has no permission", verb, visible.Escaped(rel))
	}
	return fmt.Errorf("cannot %s %s: %w", verb, visible.Escaped(rel), cause(err))
}
