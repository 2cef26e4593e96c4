package tool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// outputs is the private directory of what was too long for a result. It may be
// read by read_file and grep, though it lies outside of the workspace.
type outputs struct {
	dir  string
	root *os.Root
}

// keepOutputs is how long a saved output stays. Source: what other agents do
// (seven days), so that a session can still be resumed after a week.
const keepOutputs = 7 * 24 * time.Hour

// Outputs makes dir the private directory for what is too long for a result:
// it is created where it is missing, for this user alone, what is older than
// seven days at the given time is removed from it, and read_file and grep may
// read in it. What it gives is for Limit.
func (w *Workspace) Outputs(dir string, at time.Time) (save func(text string) (path string, err error), err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the directory for long outputs %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory for long outputs %q: %w", dir, cause(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the directory for long outputs %q: %w", dir, cause(err))
	}
	out := &outputs{dir: dir, root: root}
	out.sweep(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outputs != nil {
		_ = w.outputs.root.Close()
	}
	w.outputs = out
	return out.save, nil
}

// outputsPrefix begins the names of the files, so that nothing else is removed.
const outputsPrefix = "output-"

func (o *outputs) sweep(at time.Time) {
	dir, err := o.root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), outputsPrefix) && info.Mode().IsRegular() && at.Sub(info.ModTime()) > keepOutputs {
			_ = o.root.Remove(e.Name())
		}
	}
}

func (o *outputs) save(text string) (string, error) {
	name := outputsPrefix + strings.ToLower(rand.Text()) + ".txt"
	f, err := o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("cannot save the output in %q: %w", o.dir, cause(err))
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = o.root.Remove(name)
		return "", fmt.Errorf("cannot save the output in %q: %w", o.dir, cause(err))
	}
	return filepath.Join(o.dir, name), nil
}

// inside gives the name of a saved file by its absolute path.
func (o *outputs) inside(name string) (string, bool) {
	if o == nil || !filepath.IsAbs(name) {
		return "", false
	}
	rel, err := filepath.Rel(o.dir, filepath.Clean(name))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
