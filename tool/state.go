package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// standing is a file as it is now.
type standing struct {
	*FileState        // nil: there is none
	content    []byte // of a file or link that is small enough to be kept; links have their target
	stamp      stamp
}

// look gives the present state of a path, whose last element it does not
// follow. The state is marked Unkept where its content cannot be kept.
func (w *Workspace) look(rel string) (standing, error) {
	p := location{root: w.root, name: rel, shown: rel}
	info, err := w.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return standing{}, nil
	} else if err != nil {
		return standing{}, p.failed("read", err)
	}
	s := standing{FileState: &FileState{Mode: uint32(info.Mode()), Size: info.Size()}, stamp: stampOf(info)}
	switch info.Mode().Type() {
	case fs.ModeDir:
		s.Size = 0
		return s, nil
	case fs.ModeSymlink:
		target, err := w.root.Readlink(rel)
		if err != nil {
			return standing{}, p.failed("read", err)
		}
		s.content, s.Size = []byte(target), int64(len(target))
	case 0:
		content, opened, whole, err := p.read(keepFile)
		if err != nil {
			return standing{}, err
		}
		s.stamp, s.Mode, s.Size = stampOf(opened), uint32(opened.Mode()), opened.Size()
		if !whole {
			s.Unkept = true
			return s, nil
		}
		s.content, s.Size = content, int64(len(content))
	default: // a pipe, a socket, a device
		s.Unkept = true
		return s, nil
	}
	s.Hash = hashOf(s.content)
	s.Unkept = w.blobs == nil
	return s, nil
}

// keep makes a content durable, so that it can be restored. A directory has none.
func (w *Workspace) keep(ctx context.Context, path string, s *FileState, content []byte) error {
	if s == nil || s.Unkept || s.kind() == fs.ModeDir {
		return nil
	}
	hash, err := w.blobs.Put(ctx, content)
	if err != nil {
		return fmt.Errorf("the content of %s cannot be kept for undo: %w", visible.Escaped(path), err)
	}
	if hash != s.Hash {
		return fmt.Errorf("the content of %s cannot be kept for undo: it was kept under another hash", visible.Escaped(path))
	}
	return nil
}

func (s *FileState) kind() fs.FileMode { return fs.FileMode(s.Mode).Type() }

// permissions are the bits that are kept and set again.
const permissions = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (s *FileState) perm() fs.FileMode { return fs.FileMode(s.Mode) & permissions }

// alike tells whether two states have the same kind and content; what was not
// kept is compared by its size.
func alike(a, b *FileState) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.kind() == b.kind() && a.Hash == b.Hash && a.Size == b.Size
}
