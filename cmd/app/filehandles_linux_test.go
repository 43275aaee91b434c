package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFileHandles opens a file by its handle, as who has CAP_DAC_READ_SEARCH may, before and after
// denyFileHandles, in a process of its own: a filter stays.
func TestFileHandles(t *testing.T) {
	const child = "WEIR_TEST_FILE_HANDLES"
	if os.Getenv(child) != "" {
		fmt.Println(triesHandle())
		if err := denyFileHandles(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		other := make(chan error)
		go func() {
			runtime.LockOSThread() // its thread ends with it
			other <- triesHandle()
		}()
		fmt.Println(triesHandle())
		fmt.Println(<-other)
		_, err := os.ReadFile("/proc/self/status") // all else works
		fmt.Println(err)
		os.Exit(0)
	}
	if err := triesHandle(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("needs root with CAP_DAC_READ_SEARCH, and a file system with handles: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileHandles$")
	cmd.Env = append(os.Environ(), child+"=1")
	got, err := cmd.CombinedOutput()
	const want = "<nil>\noperation not permitted\noperation not permitted\n<nil>\n"
	if err != nil || string(got) != want {
		t.Errorf("before, after, on another thread, and of an ordinary file: got\n%s%v, want\n%s", got, err, want)
	}
}

// triesHandle opens the working directory by its handle.
func triesHandle() error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, ".", 0)
	if err != nil {
		return err
	}
	mount, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_RDONLY)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
