//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// files makes sure that so many connections fit: Go raises the limit of open files to
// the hard one by itself, and beyond that only root can go.
func files(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	const others = 100
	need := uint64(connections + others)
	if limit.Max < need {
		return fmt.Errorf("%d connections need %d open files and the hard limit is %d: raise it (as root: ulimit -Hn %d, or LimitNOFILE= of the service, or --ulimit nofile=%d of the container), for the reader too; or give --connections, if the reader keeps fewer open",
			connections, need, limit.Max, need, need)
	}
	if limit.Cur < need {
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return fmt.Errorf("raise the limit of open files to %d: %w", limit.Max, err)
		}
	}
	return nil
}
