package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// TestFileHandles opens a file by its handle, as who has CAP_DAC_READ_SEARCH may, before and after
// closeFileHandles, in a process of its own: a filter stays. Without a filter, the capability goes.
func TestFileHandles(t *testing.T) {
	const child = "WEIR_TEST_FILE_HANDLES"
	if how := os.Getenv(child); how != "" {
		deny := denyFileHandles
		if how == "without seccomp" {
			deny = func() error { return errors.New("no seccomp") }
		}
		fmt.Println(triesHandle())
		if err := closeFileHandles(deny, zap.NewNop()); err != nil {
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
	for _, how := range []string{"with seccomp", "without seccomp"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileHandles$")
		cmd.Env = append(os.Environ(), child+"="+how)
		got, err := cmd.CombinedOutput()
		if how == "without seccomp" && strings.Contains(string(got), unix.ENOTSUP.Error()) {
			continue // a test binary with C code, as the race detector's: weir itself has none
		}
		const want = "<nil>\noperation not permitted\noperation not permitted\n<nil>\n"
		if err != nil || string(got) != want {
			t.Errorf("%s: before, after, on another thread, and of an ordinary file: got\n%s%v, want\n%s", how, got, err, want)
		}
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

// TestMeasuringBeginsWithAFilter counts the filters of the process before and after weir has started.
func TestMeasuringBeginsWithAFilter(t *testing.T) {
	filters := func() int {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(status), "\nSeccomp_filters:")
		if !found {
			t.Skip("this kernel does not count filters")
		}
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := filters()
	begin(t, "run", "--listen=127.0.0.1:0")
	if after := filters(); after != before+1 {
		t.Errorf("the process has %d seccomp filters after weir has started, and %d before; want one more", after, before)
	}
}
