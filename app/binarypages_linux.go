package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropBinaryPages takes the pages of the binary that are only read out of this process. They
// stay in the kernel's cache of the file, and what is wanted again is mapped again at its
// next use. More than half of what is resident of the binary is what only the start ran:
// the making of Kubernetes' schemes, of protocols' descriptors and of command lines. Measured:
// the binary's resident pages go from 58 to 33 MB (docs/performance.md).
func dropBinaryPages() error {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	all, err := onlyRead(string(smaps), binary)
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	for _, m := range all {
		// unix.Madvise takes a slice, and this is no memory of Go's.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("let go of %x-%x: %w", m.from, m.to, errno)
		}
	}
	return nil
}

// mapping is a stretch of addresses.
type mapping struct{ from, to uintptr }

// onlyRead returns the mappings of a binary that are as the file has them, by what
// /proc/PID/smaps says. Variables are not; nor is what a linker has written at the start
// and made read-only since, as it does with the addresses in a binary that may lie anywhere:
// without them the process ends at once.
func onlyRead(smaps, binary string) (all []mapping, err error) {
	var last mapping
	ours := false
	for line := range strings.Lines(smaps) {
		key, rest, _ := strings.Cut(line, " ")
		switch {
		case !strings.HasSuffix(key, ":"):
			var may string
			if _, err = fmt.Sscanf(line, "%x-%x %s ", &last.from, &last.to, &may); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			ours = strings.HasSuffix(line, " "+binary+"\n") && !strings.Contains(may, "w")
		case ours && key == "Anonymous:":
			if strings.TrimSpace(rest) == "0 kB" {
				all = append(all, last)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("nothing of the binary is only read")
	}
	return all, nil
}
