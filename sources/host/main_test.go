//go:build linux

package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// roleEnv is an environment variable that makes the test binary a burner, a pauser or a reader
// instead of a test: see TestMain.
const roleEnv = "WEIR_HOST_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "burner":
		burn()
		return
	case "pauser":
		syscall.Pause()
		return
	case "mount2":
		mount2()
	case "reader":
		readOnce()
		return
	}
	goleak.VerifyTestMain(m)
}

// burn executes commands from standard input: "burn 50ms" uses that much CPU time, "spin" starts to
// use as much as possible. It answers each command with a line.
func burn() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "burn":
			d, _ := time.ParseDuration(arg)
			for end := cpuTime() + d; cpuTime() < end; {
			}
		case "spin":
			go func() {
				for { //nolint:staticcheck // it must spin
				}
			}()
		}
		fmt.Println("done")
	}
}

// readOnce reads the machine as the current user, and prints the result.
func readOnce() {
	h, err := New(Options{Node: "n1"})
	if err != nil {
		fmt.Println("New:", err)
		return
	}
	var b metric.Batch
	err = h.Read(context.Background(), &b)
	node := find(&b, "/")
	fmt.Println("error:", err)
	fmt.Println("cpu:", node != nil && node.Values.Has(metric.CPUUsage))
	fmt.Println("memory:", node != nil && node.Values.Has(metric.MemoryWorkingSet))
	for _, gap := range h.Gaps() {
		fmt.Println("gap:", gap)
	}
}

func cpuTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// burner is a child process that uses CPU time on command.
type burner struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startBurner starts a burner and puts it into the cgroup directories. attr may be nil.
func startBurner(t testing.TB, attr *syscall.SysProcAttr, dirs ...string) *burner {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=burner", "GOMAXPROCS=1")
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start burner: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			t.Fatalf("move burner: %v", err)
		}
	}
	return &burner{t, cmd, in, bufio.NewScanner(out)}
}

// do sends a line and waits for the answer.
func (b *burner) do(line string) {
	b.t.Helper()
	if _, err := fmt.Fprintln(b.in, line); err != nil {
		b.t.Fatalf("tell burner: %v", err)
	}
	if !b.out.Scan() {
		b.t.Fatal("the burner died")
	}
}

// stop ends the burner and waits for it.
func (b *burner) stop() {
	b.in.Close()
	b.cmd.Process.Kill()
	b.cmd.Wait()
}

// cgroupRoot returns the mount point of each controller: on version 2 the same for all. It skips
// the test if cgroups cannot be created.
func cgroupRoot(t testing.TB, controllers ...string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot make cgroups")
	}
	dirs := make([]string, len(controllers))
	for i, c := range controllers {
		if version2Mounted() {
			c = ""
		}
		dirs[i] = filepath.Join("/sys/fs/cgroup", c)
		if unix.Access(dirs[i], unix.W_OK) != nil {
			t.Skipf("no writable cgroup hierarchy at %s", dirs[i])
		}
	}
	return dirs
}

// makeCgroup creates the cgroup name in each hierarchy and returns its directories. At the end of
// the test, after their processes have ended, it removes them and the parents that it created. On
// version 2 it gives them the controllers that their parents have.
func makeCgroup(t testing.TB, name string, roots ...string) []string {
	t.Helper()
	dirs := make([]string, len(roots))
	for i, root := range roots {
		dirs[i] = filepath.Join(root, name)
		for at, part := root, name; part != ""; {
			if version2Mounted() && at != root {
				for _, c := range []string{"+cpu", "+memory", "+pids"} {
					_ = os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte(c), 0) // the kernel refuses what it has not
				}
			}
			first, rest, _ := strings.Cut(part, "/")
			at, part = filepath.Join(at, first), rest
			if err := os.Mkdir(at, 0o755); err == nil {
				t.Cleanup(func() { os.Remove(at) })
			} else if !os.IsExist(err) {
				t.Fatalf("make cgroup: %v", err)
			}
		}
	}
	return dirs
}

// testName returns a name for a cgroup that no other test on the machine uses.
func testName(t testing.TB) string {
	return fmt.Sprintf("weir-test-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
}

// kernelCPUTime returns the CPU time that the kernel has counted, in nanoseconds.
func kernelCPUTime(t testing.TB, dir string) uint64 {
	t.Helper()
	c, err := readCPUTime(dir, version2Mounted())
	if err != nil {
		t.Fatal(err)
	}
	return c.nanoseconds
}

// version returns the version of this machine's cgroups.
func version() *cgroupfs.Version {
	if version2Mounted() {
		return cgroupfs.V2
	}
	return cgroupfs.V1
}

func mustReadUint(t testing.TB, dir, file string) uint64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
