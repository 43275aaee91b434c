package memoryload

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Clock returns the time of a clock that all processes share.
func Clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// Process is the child process.
type Process struct {
	PID int
	t   testing.TB
	in  io.Writer
	out *bufio.Scanner
}

// Command sends an order and returns the answer.
func (h *Process) Command(format string, args ...any) string {
	h.t.Helper()
	if _, err := fmt.Fprintf(h.in, format+"\n", args...); err != nil {
		h.t.Fatal(err)
	}
	if !h.out.Scan() || strings.HasPrefix(h.out.Text(), "failed") {
		h.t.Fatalf("%s: %q, %v", fmt.Sprintf(format, args...), h.out.Text(), h.out.Err())
	}
	return h.out.Text()
}

// CrossFigure makes the child use memory until the cgroup at dir uses figure
// bytes, and a little more. It returns a time of Clock shortly before that.
func (h *Process) CrossFigure(dir string, figure int64) time.Duration {
	h.t.Helper()
	answer := h.Command("cross %s %d", filepath.Join(dir, Version().MemoryUsage), figure)
	ns, err := strconv.ParseInt(answer, 10, 64)
	if err != nil {
		h.t.Fatal(err)
	}
	return time.Duration(ns)
}

// Start starts a child in these cgroups. It ends with the test.
func Start(t testing.TB, cgroups ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for _, dir := range cgroups {
		Join(t, dir, cmd.Process.Pid)
	}
	return &Process{cmd.Process.Pid, t, in, bufio.NewScanner(out)}
}

// Join moves a process into a cgroup.
func Join(t testing.TB, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Version returns the version of the cgroups that count memory, with the names
// of their files.
func Version() *cgroupfs.Version {
	if isVersion2("/sys/fs/cgroup") {
		return cgroupfs.V2
	}
	return cgroupfs.V1
}

func isVersion2(mount string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(mount, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// MemoryCgroup creates a cgroup that counts memory, and removes it at the end
// of the test. Version 1 has it below this process's cgroup, version 2 below
// the root. It skips the test if that is not possible.
func MemoryCgroup(t testing.TB) string {
	t.Helper()
	if Version() == cgroupfs.V2 {
		dir := cgroup(t, "/sys/fs/cgroup")
		if _, err := os.Stat(filepath.Join(dir, cgroupfs.V2.MemoryUsage)); err != nil {
			t.Skipf("the root does not hand the memory controller down: %v", err)
		}
		return dir
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			dir := cgroup(t, filepath.Join("/sys/fs/cgroup/memory", path))
			if _, err := os.Stat(filepath.Join(dir, "cgroup.event_control")); err != nil {
				t.Skipf("the memory cgroups have no event_control: %v", err)
			}
			return dir
		}
	}
	t.Skip("the memory controller is not of cgroup version 1 here")
	return ""
}

// UnifiedCgroup does the same with a cgroup of version 2.
func UnifiedCgroup(t testing.TB) string {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if isVersion2(mount) {
			return cgroup(t, mount)
		}
	}
	t.Skip("no cgroup version 2 is mounted")
	return ""
}

func cgroup(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "weir-hog-")
	if err != nil {
		t.Skipf("may not make a cgroup of our own: %v", err)
	}
	// Clean-ups run in reverse order, so the child has already ended. Only its
	// memory may remain.
	t.Cleanup(func() { Remove(t, dir) })
	return dir
}

// Remove removes a cgroup. It tries again, because the kernel may use the
// cgroup for a moment after its last process.
func Remove(t testing.TB, dir string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || os.IsNotExist(err) {
			return
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("remove cgroup: %v", err)
			return
		}
	}
}
