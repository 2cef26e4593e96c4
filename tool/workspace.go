package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// Workspace is the directory that an agent works in. Nothing that goes through
// it leaves the directory, neither by .. nor by a symbolic link, also if
// somebody exchanges files meanwhile (os.Root). Its methods are safe for
// concurrent use.
//
// Paths are given and taken relative to the directory, with slashes; absolute
// paths that lie inside are accepted.
type Workspace struct {
	dir   string   // absolute, symbolic links resolved
	given string   // absolute, as it was asked for
	root  *os.Root // of dir
	blobs Blobs    // nil: contents are not kept

	writing sync.Mutex // one writer at a time: check and change belong together

	mu      sync.Mutex
	seen    map[seenKey]sighting
	outputs *outputs // nil: Outputs was not called

	looks looks
}

// seenKey is a file as a session knows it.
type seenKey struct{ session, path string }

// sighting is how a file stood when a session last read or wrote it.
type sighting struct {
	stat stamp
	hash string // empty: it was too large to be read whole
}

// OpenWorkspace opens the directory. What is changed in it is kept in blobs
// before it is changed; with nil blobs nothing is kept, and nothing can be
// restored.
func OpenWorkspace(dir string, blobs Blobs) (*Workspace, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the workspace %q: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace %q: %w", dir, cause(err))
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace %q: %w", dir, cause(err))
	}
	return &Workspace{dir: real, given: given, root: root, blobs: blobs, seen: map[seenKey]sighting{}, looks: looks{bounds: trackBounds}}, nil
}

// Dir is the absolute path of the workspace, with symbolic links resolved.
func (w *Workspace) Dir() string { return w.dir }

// Close gives back what the workspace holds. No call may be running.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.root.Close(), w.looks.close())
	if w.outputs != nil {
		err = errors.Join(err, w.outputs.root.Close())
	}
	return err
}

// Resolve gives the path of a file or directory as it is judged, recorded and
// shown: relative to the workspace, with slashes, clean, "." for the workspace
// itself, and with every symbolic link on the way followed. The file need not
// exist. A path that leads out of the workspace is an error that says so.
func (w *Workspace) Resolve(name string) (rel string, err error) {
	return w.resolve(name, true)
}

// resolve follows the symbolic links on the way, and the last element too if
// follow is set.
func (w *Workspace) resolve(name string, follow bool) (string, error) {
	rel, err := w.inside(name)
	if err != nil {
		return "", err
	}
	done, rest := ".", strings.Split(rel, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		if len(rest) == 0 && !follow {
			return next, nil
		}
		info, err := w.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path.Join(append([]string{next}, rest...)...), nil
		case err != nil:
			return "", fmt.Errorf("cannot look at %s: %w", visible.Escaped(next), cause(err))
		case info.Mode().Type() != fs.ModeSymlink:
			if len(rest) > 0 && !info.IsDir() {
				return "", fmt.Errorf("%s does not exist: %s is %s, not a directory", visible.Escaped(name), visible.Escaped(next), kindOf(info.Mode()))
			}
			done = next
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("%s: the symbolic links go in a circle", visible.Escaped(name))
		}
		target, err := w.root.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("cannot read the link %s: %w", visible.Escaped(next), cause(err))
		}
		target = filepath.ToSlash(target)
		joined := path.Join(path.Dir(next), target)
		if path.IsAbs(target) || filepath.IsAbs(target) || !filepath.IsLocal(filepath.FromSlash(joined)) {
			return "", fmt.Errorf("%s is a symbolic link to %s; only links that are relative and stay inside the workspace (%s) are followed",
				visible.Escaped(next), visible.Escaped(target), visible.Escaped(w.dir))
		}
		// The target is walked from the top: it may hold links itself.
		rest = append(strings.Split(joined, "/"), rest...)
		done = "."
	}
	return done, nil
}

// inside makes a path relative to the workspace by its text alone.
func (w *Workspace) inside(name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the path contains a NUL character")
	}
	local := filepath.FromSlash(name)
	if filepath.IsAbs(local) {
		clean := filepath.Clean(local)
		for _, dir := range []string{w.dir, w.given} {
			if rel, err := filepath.Rel(dir, clean); err == nil && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel), nil
			}
		}
		return "", w.outside(name)
	}
	if !filepath.IsLocal(local) {
		return "", w.outside(name)
	}
	return filepath.ToSlash(filepath.Clean(local)), nil
}

func (w *Workspace) outside(name string) error {
	return fmt.Errorf("%s is outside the workspace (%s); use a path inside it, such as %q", visible.Escaped(name), visible.Escaped(w.dir), "src/main.go")
}

// hashOf is the SHA-256 of a content as FileState and Blobs give it.
func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// cause is the reason of a file error without its operation and path, which
// the caller names in its own words.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	if le := (*os.LinkError)(nil); errors.As(err, &le) {
		return le.Err
	}
	return err
}
