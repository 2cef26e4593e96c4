package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// owners tells which processes are alive. Each has a file of its own in a
// directory beside the journal, and keeps it locked: the system gives the lock
// up when the process ends, however it ends, so there is no heartbeat to miss
// and no process id to confuse.
type owners struct {
	dir  string
	self string
	file *os.File
}

// setUpLock is the name of the file that those who open the journal lock in turn.
const setUpLock = "opening"

// ownerDigits is the length of an owner's name, in base 32.
const ownerDigits = 16

func isOwner(name string) bool {
	return len(name) == ownerDigits && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// join makes this process known.
func join(dir string) (*owners, error) {
	for {
		o := &owners{dir: dir, self: strings.ToLower(rand.Text())[:ownerDigits]}
		f, err := os.OpenFile(o.name(o.self), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		held, err := tryLock(f)
		if err == nil && held && isStill(f, o.name(o.self)) {
			o.file = f
			_, err = fmt.Fprintf(f, "process %d\n", os.Getpid())
			return o, err
		}
		// Someone took the file for that of a dead process, in the moment
		// before it was locked, and has removed it.
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
}

func (o *owners) name(owner string) string { return filepath.Join(o.dir, owner) }

// leave makes this process unknown.
func (o *owners) leave() error {
	err := o.file.Close()
	if gone := os.Remove(o.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// sweep removes the files of the dead, and leaves what is not an owner's.
func (o *owners) sweep() error {
	files, err := os.ReadDir(o.dir)
	for _, f := range files {
		o.alive(f.Name())
	}
	return err
}

// alive says whether the owner still runs, and removes the file of one that
// does not. Where it cannot be told it is taken to be alive.
func (o *owners) alive(owner string) bool {
	switch {
	case owner == o.self:
		return true
	case !isOwner(owner):
		return false // a name that was damaged must not lead to another file
	}
	f, err := os.OpenFile(o.name(owner), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	// Shared, so that two who look at once do not take each other for the owner.
	free, err := tryShare(f)
	if err != nil || !free {
		return true
	}
	_ = os.Remove(f.Name())
	return false
}

// lockSetUp waits for its turn to open the journal.
func lockSetUp(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, setUpLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	const turn = 10 * time.Millisecond
	for range int(patience / turn) {
		held, err := tryLock(f)
		if held {
			return f, nil
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		time.Sleep(turn)
	}
	return nil, errors.Join(fmt.Errorf("another process has been opening it for %v", patience), f.Close())
}

// isStill says whether the open file is the one of that name.
func isStill(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(name)
	return err == nil && os.SameFile(a, b)
}
