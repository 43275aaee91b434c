package inspect

import (
	"io/fs"
	"syscall"
)

// inode returns a directory's inode; 0 if there is none.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
