//go:build !linux

package inspect

import "io/fs"

// inode returns 0, because only Linux has cgroups.
func inode(fs.FileInfo) uint64 { return 0 }
