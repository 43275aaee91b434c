//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Lock locks f until it is closed. The error is ErrLocked if another process has locked it.
func Lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return nil // some file systems have no locks
}
