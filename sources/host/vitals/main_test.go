//go:build linux

package vitals

import (
	"bytes"
	"context"
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
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

const (
	uid  = "73296cad-fda8-4a1c-bff9-cb1de73626a6"
	uid2 = "8f296cad-fda8-4a1c-bff9-cb1de73626a6"
)

// id returns a container ID of one repeated digit.
func id(digit string) string { return strings.Repeat(digit, 64) }

// roleEnv is an environment variable with directories. It makes the test binary read them.
const roleEnv = "WEIR_VITALS_TEST_DIRS"

func TestMain(m *testing.M) {
	if dirs := os.Getenv(roleEnv); dirs != "" {
		readOnce(strings.Split(dirs, ":"))
		return
	}
	os.Exit(m.Run())
}

// machine is a Reader of cgroups on the live kernel, of the version that the machine has. It sees
// only the cgroups of this test.
type machine struct {
	*Reader
	t testing.TB
	// dirs are the test's directories in the memory, cpuacct and pids hierarchies; on version 2 there
	// is one.
	dirs []string
}

func newMachine(t testing.TB, o Options) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot make cgroups")
	}
	m := &machine{t: t}
	name := fmt.Sprintf("weir-test-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", "=", "-").Replace(t.Name()))
	roots := []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/pids"}
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		roots = []string{"/sys/fs/cgroup"}
	}
	for _, root := range roots {
		if unix.Access(root, unix.W_OK) != nil {
			t.Skipf("no writable cgroup hierarchy at %s", root)
		}
		m.dirs = append(m.dirs, filepath.Join(root, name))
	}
	m.mkdir("")
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if want := dirsOf(roots); r.cgroupDirs != want {
		t.Fatalf("hierarchies = %+v, want %+v", r.cgroupDirs, want)
	}
	r.cgroupDirs = dirsOf(m.dirs)
	m.Reader = r
	t.Cleanup(func() { r.Close() })
	return m
}

// dirsOf returns the hierarchies of machine.dirs.
func dirsOf(dirs []string) cgroupDirs {
	if len(dirs) == 1 {
		return cgroupDirs{version: cgroupfs.V2, memoryDir: dirs[0]}
	}
	return cgroupDirs{cgroupfs.V1, dirs[0], dirs[1], dirs[2]}
}

// mkdir creates a cgroup and its parents in each hierarchy. They are removed at the end of the
// test, after their processes ended. On version 2 it gives them the controllers, except below a
// cgroup that has processes.
func (m *machine) mkdir(cgroup string) {
	m.t.Helper()
	for _, root := range m.dirs {
		at := root
		for _, part := range strings.Split("."+cgroup, "/") {
			at = filepath.Join(at, part)
			dir := at
			if err := os.Mkdir(dir, 0o755); err == nil {
				m.t.Cleanup(func() {
					if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
						m.t.Errorf("tidy up: %v", err)
					}
				})
			} else if !os.IsExist(err) {
				m.t.Fatalf("make cgroup: %v", err)
			}
			if len(m.dirs) == 1 && at != filepath.Join(root, cgroup) {
				_ = os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+cpu +memory +pids"), 0) // the kernel refuses it if there are processes
			}
		}
	}
}

// rmdir removes a cgroup.
func (m *machine) rmdir(cgroup string) {
	m.t.Helper()
	for _, root := range m.dirs {
		if err := os.Remove(filepath.Join(root, cgroup)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// start creates a cgroup and starts a process in it that uses some memory and CPU time, and then
// sleeps. It returns a function that ends the process.
func (m *machine) start(cgroup string) (end func()) {
	m.t.Helper()
	m.mkdir(cgroup)
	cmd := exec.Command("sh", "-c", "read _; exec sleep 1000")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatalf("start a process: %v", err)
	}
	end = func() { // the second call does nothing
		cmd.Process.Kill()
		cmd.Wait()
	}
	m.t.Cleanup(end)
	for _, root := range m.dirs {
		m.write(filepath.Join(root, cgroup, "cgroup.procs"), strconv.Itoa(cmd.Process.Pid))
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		m.t.Fatalf("have the process go on: %v", err)
	}
	var stat []byte
	for late := time.Now().Add(10 * time.Second); !bytes.Contains(stat, []byte("(sleep) S")); time.Sleep(time.Millisecond) {
		if stat, err = os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)); err != nil || time.Now().After(late) {
			m.t.Fatalf("wait for the process to sleep: %q, %v", stat, err)
		}
	}
	return end
}

func (m *machine) write(file, text string) {
	m.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// stat returns a figure of memory.stat.
func (m *machine) stat(cgroup, name string) uint64 {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dirs[0], cgroup, "memory.stat"))
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			if err != nil {
				m.t.Fatal(err)
			}
			return n
		}
	}
	m.t.Fatalf("no %s in memory.stat", name)
	return 0
}

// number reads a file of one number in the hierarchy of memory.
func (m *machine) number(cgroup, file string) uint64 {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dirs[0], cgroup, file))
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// cpuTime returns the CPU time of a cgroup, in nanoseconds.
func (m *machine) cpuTime(cgroup string) uint64 {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dirs[min(1, len(m.dirs)-1)], cgroup, m.version.CPUTime))
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := m.version.ParseCPUTime(data)
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// read calls Read, and fails the test on an error.
func read(t testing.TB, r *Reader, d Depth) *stats.Summary {
	t.Helper()
	s, err := r.Read(context.Background(), d)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return s
}

// find returns a pod; nil if there is none.
func find(s *stats.Summary, uid metric.PodUID) *stats.PodStats {
	for i := range s.Pods {
		if s.Pods[i].PodRef.UID == string(uid) {
			return &s.Pods[i]
		}
	}
	return nil
}

// value returns the text of *p, or a text for nil.
func value[T any](p *T) string {
	if p == nil {
		return "absent"
	}
	return fmt.Sprint(*p)
}
