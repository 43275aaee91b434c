//go:build unix

package fetch

import "syscall"

// isReadable reports whether a read from fd would return at once. It reads nothing.
func isReadable(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return err != syscall.EAGAIN
}
