package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropBinaryPages removes the read-only pages of the binary from this process. They stay in the
// kernel's page cache, and a page that is needed again is mapped again at its next use. More than
// half of the binary's resident pages are code that only runs at the start: it builds Kubernetes'
// schemes, protocol descriptors and command lines. Measured: the binary's resident pages go from 58
// to 33 MB (docs/performance.md).
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
		// unix.Madvise takes a slice, and this memory does not belong to Go.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise %x-%x: %w", m.from, m.to, errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// onlyRead returns the mappings of a binary that equal the file, according to /proc/PID/smaps.
// Variables differ from the file. So do pages that the dynamic linker wrote at the start and then
// made read-only, such as the addresses in a position-independent binary: without those pages the
// process would crash at once.
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
