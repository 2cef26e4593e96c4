//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks the file against all other open files of that name, until it
// is closed; false if another has it.
func tryLock(f *os.File) (bool, error) { return lock(f, syscall.LOCK_EX) }

// tryShare locks the file against those who lock it alone; false if one has.
func tryShare(f *os.File) (bool, error) { return lock(f, syscall.LOCK_SH) }

func lock(f *os.File, how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
