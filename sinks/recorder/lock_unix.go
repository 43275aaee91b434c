//go:build unix

package recorder

import (
	"errors"
	"os"
	"syscall"
)

// lock makes f this process' until it is closed: two that wrote one file would
// write over each other.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another weir writes it: name another file")
	}
	return nil // some file systems have no locks
}
