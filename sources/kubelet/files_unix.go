//go:build unix

package kubelet

import "syscall"

// MaxConnections returns how many idle connections this process should keep at most: three quarters
// of its limit on open files. The rest is for reads in progress, the API server and clients. It
// returns 0 if the limit is not known.
func MaxConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30) / 4 * 3)
}
