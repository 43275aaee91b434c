package notify

import "errors"

// ErrUnsupported says that this kernel, or this mount, cannot give the notice at all:
// asking again is of no use.
var ErrUnsupported = errors.New("not supported here")

// ErrClosed is returned for a Notifier that was closed.
var ErrClosed = errors.New("notifier is closed")

// Error is why a watch is not in force, or no longer follows.
type Error struct {
	Watch Watch
	Err   error
}

// Error says what failed, why, and what stands in.
func (e *Error) Error() string {
	return "watch " + e.Watch.String() + ": " + e.Err.Error() + "; in its place: the other watches and the timer"
}

// Unwrap is the cause; it may be ErrUnsupported.
func (e *Error) Unwrap() error { return e.Err }

// unsupported is an ErrUnsupported that says what is lacking.
type unsupported string

func (u unsupported) Error() string        { return string(u) }
func (u unsupported) Is(target error) bool { return target == ErrUnsupported }
