//go:build unix

package recorder

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f until it is closed, so that no other process writes it.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another weir writes it: name another file")
	}
	return nil // some file systems have no locks
}
