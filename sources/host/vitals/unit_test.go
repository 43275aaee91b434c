//go:build linux

package vitals

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestChooseDirs(t *testing.T) {
	unified := cgroupfs.Hierarchy{Name: "unified", Dir: "/u", Unified: true}
	memory := cgroupfs.Hierarchy{Name: "memory", Dir: "/m"}
	cpu := cgroupfs.Hierarchy{Name: "cpu,cpuacct", Dir: "/c"}
	pids := cgroupfs.Hierarchy{Name: "pids", Dir: "/p"}
	for name, of := range map[string]struct {
		have cgroupfs.Hierarchies
		want cgroupDirs
	}{
		"version 2":                     {cgroupfs.Hierarchies{unified}, cgroupDirs{version: cgroupfs.V2, memoryDir: "/u"}},
		"version 1":                     {cgroupfs.Hierarchies{cpu, memory, pids}, cgroupDirs{cgroupfs.V1, "/m", "/c", "/p"}},
		"both, memory in version 1":     {cgroupfs.Hierarchies{unified, memory}, cgroupDirs{version: cgroupfs.V1, memoryDir: "/m"}},
		"both, memory not in version 1": {cgroupfs.Hierarchies{cpu, unified}, cgroupDirs{version: cgroupfs.V2, memoryDir: "/u"}},
		"no memory":                     {cgroupfs.Hierarchies{cpu, pids}, cgroupDirs{}},
	} {
		if got := chooseDirs(of.have); got != of.want {
			t.Errorf("%s: %+v, want %+v", name, got, of.want)
		}
	}
}

func TestNewWithoutMemory(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(Options{Mount: dir}); err == nil || !strings.Contains(err.Error(), "find cgroup hierarchies") {
		t.Errorf("no hierarchies: error = %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "pids"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pids/cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Mount: dir}); err == nil || !strings.Contains(err.Error(), "find memory cgroups: none of the 1 hierarchies") {
		t.Errorf("no memory: error = %v", err)
	}
}

func TestRate(t *testing.T) {
	var r cpuRate
	start := time.Unix(1e9, 0)
	for _, step := range []struct {
		after time.Duration
		used  uint64 // in nanoseconds
		want  string
	}{
		{0, 5e9, "none"},
		{500 * time.Millisecond, 6e9, "none"},       // it is too soon for a rate
		{2 * time.Second, 7e9, "1000000000"},        // one core for two seconds
		{2010 * time.Millisecond, 7e9, "995024875"}, // shortly after: the rate since the same earlier reading
		{4 * time.Second, 7e9, "0"},
		{4500 * time.Millisecond, 8e9, "400000000"}, // the rate since 2s
		{5 * time.Second, 1e9, "none"},              // the counter of another cgroup
		{6 * time.Second, 2e9, "1000000000"},
	} {
		got := "none"
		if n, ok := r.update(cpuReading{start.Add(step.after), step.used}); ok {
			got = fmt.Sprint(n)
		}
		if got != step.want {
			t.Errorf("after %v: %s nanocores, want %s", step.after, got, step.want)
		}
	}
	if n, ok := r.update(cpuReading{start, 3e9}); ok {
		t.Errorf("the clock was set back: %d nanocores, want none", n)
	}
}

func TestFileSystem(t *testing.T) {
	at := metav1.Unix(7, 0)
	fs := fileSystemStats(&unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 100, Bfree: 40, Bavail: 30, Files: 10, Ffree: 4}, at)
	if got, want := fmt.Sprint(value(fs.CapacityBytes), value(fs.AvailableBytes), value(fs.UsedBytes), value(fs.Inodes), value(fs.InodesFree), value(fs.InodesUsed)),
		fmt.Sprint("409600", "122880", "245760", "10", "4", "6"); got != want || fs.Time != at {
		t.Errorf("got %s at %v, want %s", got, fs.Time, want)
	}
	// btrfs does not count inodes.
	if fs := fileSystemStats(&unix.Statfs_t{Bsize: 512, Blocks: 8, Bfree: 9}, at); fs.Inodes != nil || fs.InodesFree != nil || value(fs.UsedBytes) != "0" || value(fs.CapacityBytes) != "4096" {
		t.Errorf("without inodes: %+v", fs)
	}
}

// TestDisks checks that the node's file systems are those of its directories. /proc is always
// another file system.
func TestDisks(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "containerd", overlaySnapshots)
	if err := os.MkdirAll(images, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		kubelet, container, layers string
		want                       diskRoots
		images, containers         bool
	}{
		"one":            {dir, filepath.Dir(images), "", diskRoots{dir, images, images}, false, false},
		"images' own":    {dir, "/proc", "", diskRoots{dir, "/proc", "/proc"}, true, false},
		"split":          {dir, "/proc", dir, diskRoots{dir, "/proc", dir}, true, true},
		"layers' own":    {dir, dir, "/proc", diskRoots{dir, dir, "/proc"}, true, true},
		"all but images": {"/proc", dir, "/proc", diskRoots{"/proc", dir, "/proc"}, true, true},
	} {
		f := newFixture(t, 1)
		r, err := New(Options{Mount: filepath.Join(f.root, "cgroup"), Proc: filepath.Join(f.root, "proc"), KubeletRoot: of.kubelet, ContainerRoot: of.container, LayerRoot: of.layers})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.disks != of.want {
			t.Errorf("%s: %+v, want %+v", name, r.disks, of.want)
		}
		images, containers, err := r.Layout(context.Background())
		if images != of.images || containers != of.containers || err != nil {
			t.Errorf("%s: layout = %v, %v, %v, want %v, %v", name, images, containers, err, of.images, of.containers)
		}
		if name != "one" {
			continue
		}
		s := read(t, r, Pods)
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		for what, fs := range map[string]*struct{ got, want string }{
			"nodefs":  {value(s.Node.Fs.CapacityBytes), fmt.Sprint(st.Blocks * uint64(st.Frsize))},
			"imagefs": {value(s.Node.Runtime.ImageFs.CapacityBytes), fmt.Sprint(st.Blocks * uint64(st.Frsize))},
			"its use": {value(s.Node.Runtime.ImageFs.UsedBytes), "absent"},
		} {
			if fs.got != fs.want {
				t.Errorf("%s = %s, want %s", what, fs.got, fs.want)
			}
		}
	}
	f := newFixture(t, 1)
	r, err := New(Options{Mount: filepath.Join(f.root, "cgroup"), Proc: filepath.Join(f.root, "proc"), KubeletRoot: dir, ContainerRoot: filepath.Join(dir, "absent")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if images, containers, err := r.Layout(context.Background()); err == nil || images || containers || !strings.Contains(err.Error(), "find the file system of "+dir+"/absent") {
		t.Errorf("layout without one of the directories = %v, %v, %v", images, containers, err)
	}
	s, err := r.Read(context.Background(), Pods)
	if err == nil || s.Node.Runtime != nil || s.Node.Fs == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("without one of the directories: runtime = %v, nodefs = %v, %v, want none, some, and one error", s.Node.Runtime, s.Node.Fs, err)
	}
}

func TestMemoryLeft(t *testing.T) {
	f := newFixture(t, 2)
	r := f.open()
	defer r.Close()
	if _, err := r.MemoryLeft(); err == nil || !strings.Contains(err.Error(), "no number for MemAvailable, SwapFree, SwapTotal") {
		t.Errorf("an old kernel's file gives %v", err)
	}
	f.write("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 51200 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\nHugePages_Total: 2\nHugepagesize: 2048 kB\nHugetlb: 4096 kB\n")
	m, err := r.MemoryLeft()
	if m.At.IsZero() || err != nil {
		t.Errorf("got %+v, %v", m, err)
	}
	m.At = time.Time{}
	if want := (MemoryLeft{Available: 50 << 20, Total: 100 << 20, SwapFree: 1 << 20, SwapTotal: 2 << 20, HugePages: 4 << 20}); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestReadConcurrently(t *testing.T) {
	f := newFixture(t, 1)
	f.cgroup("/kubepods usage=4Mi anon=1Mi")
	f.cgroup("/kubepods/pod{A} usage=2Mi anon=1Mi procs=7")
	r := f.open()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				s, err := r.Read(context.Background(), Containers)
				if err != nil || len(s.Pods) != 1 || value(s.Pods[0].Memory.UsageBytes) != "2097152" {
					t.Errorf("pods = %+v, %v", s.Pods, err)
				}
				if _, pods := r.Cgroups(); pods != "/kubepods" {
					t.Errorf("Cgroups = %q", pods)
				}
			}
		})
	}
	wg.Wait()
}

// entry returns an entry in the form of getdents64(2).
func entry(inode uint64, kind byte, name string) []byte {
	e := append(make([]byte, 19), name...)
	e = append(e, make([]byte, 8-len(e)%8)...) // at least one zero
	binary.NativeEndian.PutUint64(e, inode)
	binary.NativeEndian.PutUint16(e[16:], uint16(len(e)))
	e[18] = kind
	return e
}

func entries(data []byte) (got []string) {
	parseEntries(data, func(name []byte, inode uint64) { got = append(got, fmt.Sprint(inode, " ", string(name))) })
	return got
}

// TestProcesses lists the processes of a pod's containers, also of cgroups in them, and of no others: not of
// its sandbox, nor of a helper of the runtime.
func TestProcesses(t *testing.T) {
	for v := range versions {
		f := newFixture(t, v)
		for _, line := range []string{
			"kubepods procs=2", "kubepods/burstable", "kubepods/burstable/pod{A} procs=3",
			"kubepods/burstable/pod{A}/<1> procs=10,11", "kubepods/burstable/pod{A}/<1>/init.scope procs=12",
			"kubepods/burstable/pod{A}/<2> procs=20", "kubepods/burstable/pod{A}/crio-conmon-<2> procs=21",
			"kubepods/burstable/pod{A}/<f> procs=90", "kubepods/burstable/pod{B}/<3> procs=30", "kubepods/pod{C}/<4> procs=0",
			"kubepods/pod{D}/<5>", "kubepods/pod{E}/<6> procs=60",
		} {
			f.cgroup(line)
		}
		for _, line := range []string{"{A} web/a 1=app 2=sidecar", "{B} web/b 3=app", "{C} web/c 4=app", "{D} web/d 5=app"} {
			f.pod(line) // {A} has a sandbox, and nothing names the container of {E}
		}
		list := func(uid, words string, want ...int) {
			t.Helper()
			got, err := f.open().Processes(metric.PodUID(expand(uid)))
			slices.Sort(got)
			if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("version %d, pod %s: error %v, want %q in it", v+1, uid, err, words)
			}
			if words == "" && !slices.Equal(got, want) {
				t.Errorf("version %d, pod %s: %v, want %v", v+1, uid, got, want)
			}
		}
		list("{A}", "", 10, 11, 12, 20)
		list("{B}", "", 30)
		list("{C}", "its tasks are in another PID namespace: run with hostPID: true")
		list("{D}", "no known container of pod")
		list("{E}", "no known container of pod")
		list("{F}", "no known container of pod")
		f.open().Close()
		list("{A}", "file already closed")
	}
}

func TestParseEntries(t *testing.T) {
	var data []byte
	for i, e := range []struct {
		kind byte
		name string
	}{{unix.DT_DIR, "."}, {unix.DT_DIR, ".."}, {unix.DT_REG, "memory.stat"}, {unix.DT_DIR, "burstable"}, {unix.DT_UNKNOWN, "odd"}, {unix.DT_LNK, "link"}, {unix.DT_DIR, "a"}} {
		data = append(data, entry(uint64(i+1), e.kind, e.name)...)
	}
	want := []string{"4 burstable", "5 odd", "7 a"}
	cmptest.Equal(t, "entries", want, entries(data))
	if got := entries(data[:len(data)-1]); len(got) != 2 {
		t.Errorf("cut short: %q, want the first two", got)
	}
}

func FuzzParseEntries(f *testing.F) {
	f.Add(append(entry(7, unix.DT_DIR, "pod"), entry(8, unix.DT_REG, "tasks")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		names := 0
		parseEntries(data, func(name []byte, _ uint64) {
			if names += len(name) + 19; len(name) == 0 || strings.ContainsRune(string(name), 0) {
				t.Errorf("%q: a name %q", data, name)
			}
		})
		if names > len(data) {
			t.Errorf("%q: names of %d bytes", data, names)
		}
	})
}

func FuzzParseMeminfo(f *testing.F) {
	f.Add("MemTotal: 102400 kB\nMemFree: 1 kB\nBuffers: 1024 kB\nCached: 20480 kB\nInactive(file): 4096 kB\nAnonPages: 10240 kB\n")
	f.Fuzz(func(t *testing.T, data string) {
		m, err := parseMeminfo([]byte(data))
		if err != nil {
			return
		}
		again := fmt.Sprintf("MemTotal: %d\n", m.total)
		if m.complete {
			again += fmt.Sprintf("AnonPages: %d\nCached: %d\nBuffers: 0 kB\nInactive(file): %d\n", m.Anonymous, m.Cache, m.InactiveFile)
		}
		other, err := parseMeminfo([]byte(again))
		if m.complete && other != m || other.total != m.total || err != nil {
			t.Errorf("%q: %+v, written again %+v, %v", data, m, other, err)
		}
	})
}

// TestTimesDoNotFollowTheClock checks that a change of the clock does not change the age of
// figures. Otherwise all figures would be too old after the clock was set back, and no pod would be
// evicted.
func TestTimesDoNotFollowTheClock(t *testing.T) {
	s, err := newFixture(t, 1).open().Read(t.Context(), Pods)
	if err != nil {
		t.Fatal(err)
	}
	n := &s.Node
	for what, at := range map[string]time.Time{
		"memory": n.Memory.Time.Time, "cpu": n.CPU.Time.Time, "io": n.IO.Time.Time, "tasks": n.Rlimit.Time.Time, "disk": n.Fs.Time.Time,
	} {
		if !strings.Contains(at.String(), " m=") {
			t.Errorf("%s: %v has no monotonic reading", what, at)
		}
	}
}
