package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// IsRemoved reports whether err may mean that a cgroup was removed: its directory does not
// exist, or was removed while it was open.
func IsRemoved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// IgnoreRemoved returns err, or nil if err may mean that a cgroup was removed.
func IgnoreRemoved(err error) error {
	if IsRemoved(err) {
		return nil
	}
	return err
}

// RetryInterrupted repeats a system call as long as a signal interrupts it.
func RetryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR { //nolint:errorlint // system calls do not wrap their errors
			return n, err
		}
	}
}

// maxErrors is the number of errors that an ErrorList keeps.
const maxErrors = 10

// ErrorList collects the errors of one read of a machine. It keeps the first few and counts the
// others, because an error about one cgroup often occurs for all of them. The zero ErrorList is
// empty.
type ErrorList struct {
	errs    []error
	omitted int
}

// Add adds the errors that are not nil.
func (l *ErrorList) Add(errs ...error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case len(l.errs) < maxErrors:
			l.errs = append(l.errs, err)
		default:
			l.omitted++
		}
	}
}

// Err returns the joined errors; nil if there are none.
func (l *ErrorList) Err() error {
	errs := l.errs
	if l.omitted > 0 {
		errs = append(errs[:len(errs):len(errs)], fmt.Errorf("and %d more", l.omitted))
	}
	return errors.Join(errs...)
}
