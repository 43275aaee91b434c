//go:build !unix

package fetch

// isReadable returns true: on this system only a blocking read can tell.
func isReadable(uintptr) bool { return true }
