package app

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denyFileHandles takes from this process, for good, the call that opens a file by its number in a
// file system (open_by_handle_at), whatever directory is mounted. CAP_DAC_READ_SEARCH, which
// measuring the disk usage of other users needs, allows that call: who takes over an agent could
// read the kubelet's key by it. The capability then serves only to read below what is mounted.
//
// It is a seccomp filter on all threads, and is kept by child processes. Calls of another
// architecture, which have other numbers, are denied, too.
func denyFileHandles() error {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("deny opening files by handle: no seccomp filter for %s", runtime.GOARCH)
	}
	const (
		load       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		ifEqual    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ifAtLeast  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		result     = unix.BPF_RET | unix.BPF_K
		numberAt   = 0 // in struct seccomp_data
		archAt     = 4
		x32Numbers = 0x40000000 // of the ABI with 32-bit pointers on amd64
	)
	filter := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: ifEqual, K: arch, Jf: 4},
		{Code: load, K: numberAt},
		{Code: ifAtLeast, K: x32Numbers, Jt: 2},
		{Code: ifEqual, K: unix.SYS_OPEN_BY_HANDLE_AT, Jt: 1},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
		{Code: result, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
	// Without this, only a process with CAP_SYS_ADMIN may install a filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("deny opening files by handle: set no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("deny opening files by handle: install the seccomp filter: %w", errno)
	}
	return nil
}

// dropReadSearch takes CAP_DAC_READ_SEARCH from all threads, for good.
func dropReadSearch() error {
	const bit = 1 << unix.CAP_DAC_READ_SEARCH
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // of the capabilities below 32, and of the others
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read the capabilities of this process: %w", err)
	}
	low := &sets[0]
	if (low.Permitted|low.Inheritable)&bit == 0 {
		return nil
	}
	low.Effective, low.Permitted, low.Inheritable = low.Effective&^bit, low.Permitted&^bit, low.Inheritable&^bit
	// Programs that root starts would get the capability back without this.
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("give up CAP_DAC_READ_SEARCH: set no_new_privs: %w", errno)
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0); errno != 0 {
		return fmt.Errorf("give up CAP_DAC_READ_SEARCH: %w", errno)
	}
	return nil
}
