package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// MemoryFile is the name of the file that holds what is remembered. Its lines
// of the form "- 2026-11-30: text" are the program's; all others are the user's
// and are never changed. "- 2026-11-30 (permanent): text" is never refined away.
const MemoryFile = "MEMORY.md"

// The files beside it.
const (
	archiveFile  = "MEMORY.archive.md" // what was put away as it was
	archiveOlder = "MEMORY.archive.1.md"
	dreamFile    = "MEMORY.state.json"
	lockFile     = "MEMORY.lock"

	// archiveBytes is how large an archive file grows before it becomes the older one.
	archiveBytes = 1 << 20
	// lockWait is how long another process may take with the files.
	lockWait = 5 * time.Second
)

const memoryTitle = `# Memory

What is remembered from earlier sessions. Dated lines are kept by the program; all else is yours, and so is what you change.

`

// memoryDir is a directory that holds a MEMORY.md.
type memoryDir struct {
	path string
	// own: it is the user's own, and nobody else's business. Otherwise it belongs
	// to a project, whose links may lead anywhere.
	own bool
}

func newMemoryDir(path string, own bool) *memoryDir {
	if path == "" {
		return nil
	}
	return &memoryDir{path, own}
}

// openDir is a directory whose files nobody else writes meanwhile.
type openDir struct {
	*memoryDir
	root *os.Root
}

var errBusy = errors.New("another process is busy with it")

// locked does something with the files while no other process of this program
// does. make says that the directory is made if there is none; otherwise nothing
// is done then.
func (d *memoryDir) locked(ctx context.Context, make bool, do func(*openDir) error) error {
	mode := fs.FileMode(0o755)
	if d.own {
		mode = 0o700
	}
	if make {
		if err := os.MkdirAll(d.path, mode); err != nil {
			return err
		}
	}
	info, err := os.Lstat(d.path)
	switch {
	case err != nil:
		if errors.Is(err, fs.ErrNotExist) && !make {
			return nil
		}
		return err
	case !d.own && info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link: nothing is written through it", shown(d.path))
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := root.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	for end := time.Now().Add(lockWait); ; {
		ok, err := tryLock(lock)
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w", shown(d.path), errBusy)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := (&openDir{d, root}).ignored(); err != nil {
		return err
	}
	return do(&openDir{d, root})
}

// ignored keeps what is remembered out of a project's repository, until the user
// decides otherwise.
func (d *openDir) ignored() error {
	if d.own {
		return nil
	}
	f, err := d.root.OpenFile(".gitignore", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("MEMORY*\n")
	return errors.Join(err, f.Close())
}

// read gives the MEMORY.md; empty where there is none.
func (d *openDir) read() (string, error) {
	info, err := d.root.Lstat(MemoryFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", MemoryFile)
	case info.Size() > most:
		return "", fmt.Errorf("%s has %d bytes: shorten it", MemoryFile, info.Size())
	}
	b, err := d.root.ReadFile(MemoryFile)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("%s is no UTF-8 text", MemoryFile)
	}
	return string(b), nil
}

// write puts text in the place of the MEMORY.md that read was, unless somebody
// has changed it meanwhile who takes no lock.
func (d *openDir) write(was, text string) error {
	if is, err := d.read(); err != nil {
		return err
	} else if is != was {
		return fmt.Errorf("%s was changed meanwhile and is left as it is", MemoryFile)
	}
	return d.replace(MemoryFile, []byte(text))
}

// replace writes a file so that it is there whole or as it was, whatever
// happens: a file beside it, made durable, takes its name.
func (d *openDir) replace(name string, content []byte) (err error) {
	mode := fs.FileMode(0o644)
	if d.own {
		mode = 0o600
	}
	if info, err := d.root.Lstat(name); err == nil {
		mode = info.Mode().Perm()
	}
	beside := "." + name + ".new"
	if err := d.root.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.root.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.root.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(beside))
	}
	return d.sync()
}

// sync makes names durable, where a directory can be synced.
func (d *openDir) sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// putAway appends to the archive.
func (d *openDir) putAway(text string) error {
	if info, err := d.root.Lstat(archiveFile); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", archiveFile)
		}
		if info.Size() > archiveBytes {
			if err := d.root.Rename(archiveFile, archiveOlder); err != nil {
				return err
			}
		}
	}
	f, err := d.root.OpenFile(archiveFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d *memoryDir) putAway(ctx context.Context, text string) error {
	return d.locked(ctx, true, func(o *openDir) error { return o.putAway(text) })
}

// entry is one line that the program remembers.
type entry struct {
	day       string
	permanent bool
	text      string
}

func (e entry) String() string {
	if e.permanent {
		return "- " + e.day + " (permanent): " + e.text
	}
	return "- " + e.day + ": " + e.text
}

var entryForm = regexp.MustCompile(`^- (\d{4}-\d\d-\d\d)( \(permanent\))?: (\S.*)$`)

func entryOf(line string) (entry, bool) {
	f := entryForm.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	if f == nil {
		return entry{}, false
	}
	return entry{f[1], f[2] != "", f[3]}, true
}

func entriesIn(text string) (list []entry) {
	for l := range strings.Lines(text) {
		if e, ok := entryOf(l); ok {
			list = append(list, e)
		}
	}
	return list
}

// add appends entries that are not there yet. Where the file would grow over
// limit bytes, the oldest entries that are not permanent are put away.
func (d *memoryDir) add(ctx context.Context, entries []entry, limit int) error {
	return d.locked(ctx, true, func(o *openDir) error {
		was, err := o.read()
		if err != nil {
			return err
		}
		text := was
		if strings.TrimSpace(text) == "" {
			text = memoryTitle
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		known := map[string]bool{}
		for _, e := range entriesIn(text) {
			known[e.text] = true
		}
		added := false
		for _, e := range entries {
			if !known[e.text] {
				known[e.text], added = true, true
				text += e.String() + "\n"
			}
		}
		if !added {
			return nil
		}
		var old []entry
		over := len(text) - limit
		for _, e := range entriesIn(text) {
			if over <= 0 {
				break
			}
			if !e.permanent {
				old = append(old, e)
				over -= len(e.String()) + 1
			}
		}
		if len(old) > 0 {
			var b strings.Builder
			b.WriteString("## entries that no longer had a place\n\n")
			for _, e := range old {
				b.WriteString(e.String() + "\n")
			}
			if err := o.putAway(b.String() + "\n"); err != nil {
				return err
			}
			text = replaceEntries(text, old, nil)
		}
		return o.write(was, text)
	})
}

// replaceEntries puts new entries where the first of the old ones was, and
// leaves every other line as it is.
func replaceEntries(text string, old, with []entry) string {
	gone := map[entry]int{}
	for _, e := range old {
		gone[e]++
	}
	var b strings.Builder
	put := false
	for l := range strings.Lines(text) {
		if e, ok := entryOf(l); ok && gone[e] > 0 {
			gone[e]--
			if !put {
				put = true
				for _, e := range with {
					b.WriteString(e.String() + "\n")
				}
			}
			continue
		}
		b.WriteString(l)
	}
	return b.String()
}
