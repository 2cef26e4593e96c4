package tool

import (
	"io/fs"
	"os"
	"syscall"
)

// calm opens without waiting for the other side of a pipe or a device.
const calm = syscall.O_NONBLOCK

// born gives the time of the last change of a file's status, and its inode.
func born(info fs.FileInfo) (ctime int64, inode uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano(), st.Ino
	}
	return 0, 0
}

// inherit gives a file the owner of another, where that is allowed.
func inherit(f *os.File, like fs.FileInfo) {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
