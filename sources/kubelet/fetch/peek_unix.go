//go:build unix

package fetch

import "syscall"

// peek reports whether to read from fd would not block. It reads nothing.
func peek(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return err != syscall.EAGAIN
}
