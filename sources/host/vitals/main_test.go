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

// machine is a Reader of version 1 cgroups on the live kernel. It sees only the cgroups of this
// test.
type machine struct {
	*Reader
	t testing.TB
	// dirs are the test's directories in the memory, cpuacct and pids hierarchies.
	dirs []string
}

func newMachine(t testing.TB, o Options) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot make cgroups")
	}
	m := &machine{t: t}
	name := fmt.Sprintf("weir-test-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", "=", "-").Replace(t.Name()))
	for _, controller := range []string{"memory", "cpuacct", "pids"} {
		root := filepath.Join("/sys/fs/cgroup", controller)
		if unix.Access(root, unix.W_OK) != nil {
			t.Skipf("no writable cgroup v1 hierarchy at %s", root)
		}
		m.dirs = append(m.dirs, filepath.Join(root, name))
	}
	m.mkdir("")
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if want := (cgroupDirs{cgroupfs.V1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/pids"}); r.cgroupDirs != want {
		t.Fatalf("hierarchies = %+v, want %+v", r.cgroupDirs, want)
	}
	r.cgroupDirs = cgroupDirs{cgroupfs.V1, m.dirs[0], m.dirs[1], m.dirs[2]}
	m.Reader = r
	t.Cleanup(func() { r.Close() })
	return m
}

// mkdir creates a cgroup and its parents in each hierarchy. They are removed at the end of the
// test, after their processes ended.
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

// number reads a file of the hierarchy at an index of dirs.
func (m *machine) number(in int, cgroup, file string) uint64 {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dirs[in], cgroup, file))
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
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
