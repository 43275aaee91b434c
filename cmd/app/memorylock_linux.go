package app

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockMemory keeps each page in memory that this process has or will use. When a node thrashes, the
// kernel drops the pages of programs first, since it can read them again, and a guard that waits for
// its own code decides too late. A page counts as used at its first use (MCL_ONFAULT), so the
// process does not grow. It needs the capability CAP_IPC_LOCK.
func lockMemory() error {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		return fmt.Errorf("lock memory (CAP_IPC_LOCK): %w", err)
	}
	return nil
}
