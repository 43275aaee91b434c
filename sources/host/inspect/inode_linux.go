package inspect

import (
	"io/fs"
	"syscall"
)

// inode returns the inode of a directory; 0 if it is not known.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
