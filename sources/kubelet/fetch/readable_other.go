//go:build !unix

package fetch

// isReadable returns true, because on this system only a blocking read can find out.
func isReadable(uintptr) bool { return true }
