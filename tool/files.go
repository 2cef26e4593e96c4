package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// Files are the tools that work on the files of a workspace: read_file,
// list_dir, glob and grep, which only look, and write_file, edit_file and
// delete_file.
func Files(w *Workspace) []Tool {
	return []Tool{
		readFile(w), listDir(w), glob(w), grep(w),
		writeFile(w), editFile(w), deleteFile(w),
	}
}

// keepFile is the largest content that is kept so that it can be restored, and
// the largest file that is read whole to be edited.
const keepFile = 10 << 20

// location is a file that may be read: in the workspace or among the outputs.
type location struct {
	root  *os.Root
	name  string // below root
	shown string // as the model and people know it
	own   bool   // it is one of the outputs, which need no permission
}

// locate finds what a path means for reading.
func (w *Workspace) locate(name string) (location, error) {
	w.mu.Lock()
	out := w.outputs
	w.mu.Unlock()
	if rel, ok := out.inside(name); ok {
		return location{root: out.root, name: rel, shown: name, own: true}, nil
	}
	rel, err := w.Resolve(name)
	if err != nil {
		return location{}, err
	}
	return location{root: w.root, name: rel, shown: rel}, nil
}

// needs is what reading at a place needs.
func (p location) needs() []Need {
	if p.own {
		return nil
	}
	return []Need{{Kind: NeedRead, Target: p.shown}}
}

// readNeeds is the need of a tool that reads at a path.
func (w *Workspace) readNeeds(name string) ([]Need, error) {
	p, err := w.locate(name)
	if err != nil {
		return nil, err
	}
	return p.needs(), nil
}

// open opens a regular file. It never waits, whatever lies there, and what it
// opened is what bears the name: a file that was exchanged for a link
// meanwhile is refused.
func (p location) open() (*os.File, fs.FileInfo, error) {
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, nil, p.failed("read", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is %s, not a file", visible.Escaped(p.shown), kindOf(info.Mode()))
	}
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|calm, 0)
	if err != nil {
		return nil, nil, p.failed("read", err)
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("it was exchanged while it was opened; try again")
	}
	if err != nil {
		f.Close()
		return nil, nil, p.failed("read", err)
	}
	return f, opened, nil
}

// read reads a regular file whole if it has at most limit bytes; else it
// closes it and gives its state alone.
func (p location) read(limit int64) (content []byte, info fs.FileInfo, whole bool, err error) {
	f, info, err := p.open()
	if err != nil {
		return nil, nil, false, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, info, false, nil
	}
	content, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, false, p.failed("read", err)
	}
	if int64(len(content)) > limit { // it grew, or is a file that does not tell its size
		return nil, info, false, nil
	}
	return content, info, true, nil
}

// failed tells in a line what could not be done with a place. A missing file
// gets the names that were perhaps meant.
func (p location) failed(verb string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist%s", visible.Escaped(p.shown), p.hint())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot %s %s: the user that runs this has no permission", verb, visible.Escaped(p.shown))
	}
	return fmt.Errorf("cannot %s %s: %w", verb, visible.Escaped(p.shown), cause(err))
}

func (p location) hint() string {
	dir, err := p.root.OpenFile(path.Dir(p.name), os.O_RDONLY|calm, 0)
	if err != nil {
		return ""
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(10_000)
	if n := nearest.Name(path.Base(p.name), names); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", visible.Escaped(path.Join(path.Dir(p.name), n)))
	}
	return ""
}

// kindOf names a kind of file.
func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// saw remembers how a file stood when the session read or wrote it.
func (w *Workspace) saw(session, rel string, s sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[seenKey{session, rel}] = s
}

// fresh tells whether the session knows a file as it is now; the error says
// what the model should do.
func (w *Workspace) fresh(session, rel string, now stamp, hash string) error {
	w.mu.Lock()
	s, ok := w.seen[seenKey{session, rel}]
	w.mu.Unlock()
	switch {
	case !ok:
		return fmt.Errorf("%s exists and was not read in this session; read it first, so that nothing in it is lost", visible.Escaped(rel))
	case s.hash != "" && hash != "" && s.hash == hash, (s.hash == "" || hash == "") && s.stat == now:
		return nil
	}
	return fmt.Errorf("%s was changed since it was last read in this session; read it again before it is overwritten", visible.Escaped(rel))
}

// binary tells content that is no text by its beginning: it holds a NUL, as
// git and grep judge. UTF-16 is told before.
func binary(head []byte) bool {
	return strings.IndexByte(string(head[:min(len(head), 8000)]), 0) >= 0
}
