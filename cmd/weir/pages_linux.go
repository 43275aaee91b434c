package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropBinaryPages takes the pages of the binary that are only read out of this process. They
// stay in the kernel's cache of the file, and what is wanted again is mapped again at its
// next use. More than half of what is resident of the binary is what only the start ran:
// the making of Kubernetes' schemes, of protocols' descriptors and of command lines.
func dropBinaryPages() error {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var may string
		if !strings.HasSuffix(line, " "+binary+"\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s ", &from, &to, &may); err != nil {
			return fmt.Errorf("read what is mapped: %q: %w", line, err)
		}
		if strings.Contains(may, "w") {
			continue // variables
		}
		// unix.Madvise takes a slice, and this is no memory of Go's.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("let go of %q: %w", line, errno)
		}
	}
	return nil
}
