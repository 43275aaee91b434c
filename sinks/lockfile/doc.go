// Package lockfile locks the files of sinks, so that two processes do not write the same ones.
package lockfile

import "errors"

// ErrLocked is the error of a file that another process has locked.
var ErrLocked = errors.New("another weir writes it: name another one")
