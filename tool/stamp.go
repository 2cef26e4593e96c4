package tool

import (
	"io/fs"
	"time"
)

// stamp is what the file system tells about a file without its content being
// read. Equal stamps mean an unchanged file, unless it is too young (settled).
type stamp struct {
	size         int64
	mode         fs.FileMode
	mtime, ctime int64 // ns since 1970; ctime is 0 where the platform has none
	inode        uint64
}

// grain is the coarsest step in which file systems of today count time, with
// room to spare: within it a file may change twice under one stamp.
const grain = 50 * time.Millisecond

// settled tells whether a file that bore this stamp at a time could not be
// changed after it without getting another one.
func (s stamp) settled(at time.Time) bool {
	return max(s.mtime, s.ctime) < at.Add(-grain).UnixNano()
}

// stampOf reads the stamp off what Lstat gave.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if info.IsDir() {
		// Its size and times change with its entries, which are looked at themselves.
		return stamp{mode: info.Mode()}
	}
	s.ctime, s.inode = born(info)
	return s
}
