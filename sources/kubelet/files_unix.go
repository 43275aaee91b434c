//go:build unix

package kubelet

import "syscall"

// Connections returns how many connections a process should keep open at most: three
// quarters of the files that it may have open, so that reads under way, the API server and
// whoever asks have room too. It is 0 where there is no limit that is known.
func Connections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30) / 4 * 3)
}
