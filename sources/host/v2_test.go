//go:build linux

package host

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/*.want")

// v2Env is set in the process that has cgroup version 2 at /sys/fs/cgroup.
const v2Env = "WEIR_HOST_TEST_V2"

// TestVersion2 runs the tests TestV2… in a process with its own mount namespace, in which
// /sys/fs/cgroup is cgroup version 2. cAdvisor and libcontainer check only once in a process what
// is mounted there.
func TestVersion2(t *testing.T) {
	if version2Mounted() {
		t.Skip("cgroup version 2 is at /sys/fs/cgroup: the tests TestV2 run by themselves")
	}
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot mount cgroup version 2 in a namespace")
	}
	args := []string{"-test.run=^TestV2", "-test.v"}
	if *rewrite {
		args = append(args, "-rewrite")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleEnv+"=mount2", v2Env+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte(cannotMount)) {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"--- PASS: TestV2Live", "--- PASS: TestV2Fixture"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

const cannotMount = "cannot mount cgroup version 2"

// mount2 mounts cgroup version 2 and then executes the test binary, because the packages under test
// must not have checked the mount before.
func mount2() {
	err := unix.Mount("none", "/sys/fs/cgroup", "cgroup2", 0, "")
	if err != nil {
		fmt.Println(cannotMount+":", err)
		os.Exit(1)
	}
	os.Unsetenv(roleEnv)
	fmt.Println(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	os.Exit(1)
}

func onlyV2(t *testing.T) {
	t.Helper()
	if os.Getenv(v2Env) == "" && !version2Mounted() {
		t.Skip("TestVersion2 runs it")
	}
}

// version2Mounted reports whether this machine has cgroup version 2 alone.
func version2Mounted() bool {
	var s unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC
}

// TestV2Live checks on a live kernel that every version 2 cgroup has CPU time, processes and
// pressure, with any controllers.
func TestV2Live(t *testing.T) {
	onlyV2(t)
	if unix.Access("/sys/fs/cgroup", unix.W_OK) != nil {
		t.Skip("cannot make cgroups: it takes root")
	}
	name := testName(t)
	outer := makeCgroup(t, name, "/sys/fs/cgroup")[0]
	inner := makeCgroup(t, name+"/nested", "/sys/fs/cgroup")[0]
	h := newHost(t, Options{Prefixes: []string{"/" + name}})
	if !h.mounts.v2 {
		t.Fatal("version 2 is not recognised")
	}
	hand := func(dir string) uint64 {
		c, err := readCPUTime(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		return c.nanoseconds
	}
	pressure := func(dir string) (float64, error) {
		data, err := os.ReadFile(filepath.Join(dir, "cpu.pressure"))
		if err != nil {
			return 0, err
		}
		p, err := cgroupfs.ParsePressure(data)
		if err != nil {
			t.Fatal(err)
		}
		// cAdvisor's model says nanoseconds, but the kernel's file is in microseconds.
		return float64(p.Some.Total) * 1000, nil
	}
	b := startBurner(t, nil, inner)
	b.do("burn 50ms")
	for range 3 {
		before := map[string]uint64{outer: hand(outer), inner: hand(inner)}
		least := map[string]float64{}
		for dir := range before {
			least[dir], _ = pressure(dir)
		}
		got := read(t, h)
		for dir, path := range map[string]string{outer: "/" + name, inner: "/" + name + "/nested"} {
			s := find(got, path)
			checkUsage(t, s, before[dir], hand(dir), 50e6)
			if s.Instance.Processes != 1 {
				t.Errorf("%s: processes = %d, want 1", path, s.Instance.Processes)
			}
			most, err := pressure(dir)
			if err != nil {
				t.Skipf("the kernel keeps no pressure: %v", err)
			}
			if v := value(t, s, metric.CPUPressureSome); v < least[dir] || v > most {
				t.Errorf("%s: cpu/pressure_some = %.0f, want between %.0f and %.0f", path, v, least[dir], most)
			}
		}
		b.do("burn 10ms")
	}
	node := find(read(t, h), "/")
	for _, id := range []metric.ID{metric.CPUUsage, metric.MemoryUsage, metric.MemoryWorkingSet, metric.CPUPressureSome} {
		if v := value(t, node, id); v <= 0 && id != metric.CPUPressureSome {
			t.Errorf("node: %v = %v, want more than 0", id, v)
		}
	}
	if gaps := strings.Join(h.Gaps(), "\n"); !strings.Contains(gaps, "memory controller is not available here") &&
		h.mounts.v2 && enabledControllers("/sys/fs/cgroup")&memory == 0 {
		t.Errorf("gaps = %s, want the memory controller", gaps)
	}
	b.stop()
}

// TestV2Fixture reads a tree of files through cAdvisor's own code for version 2.
func TestV2Fixture(t *testing.T) {
	onlyV2(t)
	root := unpack(t, "testdata/cgroup2-systemd.txt")
	cgroups.TestMode = true // otherwise libcontainer requires a cgroup file system
	t.Cleanup(func() { cgroups.TestMode = false })
	h := newHost(t, Options{Node: "n1"})
	h.mounts.dirs = map[string]string{"": root}
	h.mounts.hierarchies[0].dir = root
	h.mu.runtime.known["78eb55067a55a014a60f557683645300735b7daf5d6207c626f8c82dae94a055"] = containerNames{Sandbox: true}
	h.mu.runtime.known["550a49ead28c8f626c7026d5fad7b537003546386755f06a410a55a76055be87"] = containerNames{
		Namespace: "shop", Pod: "web", UID: "73296cad-fda8-4a1c-bff9-cb1de73626a6", Name: "app", Created: time.Unix(1e9, 0),
	}
	var b metric.Batch
	err := h.Read(context.Background(), &b)
	var out strings.Builder
	if err != nil {
		fmt.Fprintf(&out, "error: %s\n", strings.ReplaceAll(err.Error(), root, "ROOT"))
	}
	fmt.Fprintf(&out, "exhaustive: %v\n", b.Exhaustive)
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Kind == metric.Node && s.Entity.Part != "" {
			continue // this depends on the machine
		}
		fmt.Fprintf(&out, "\n%s\n", s.Entity)
		if s.Entity.Part == "" {
			fmt.Fprintf(&out, "  path=%s uid=%s id=%.12s processes=%d runtime=%v\n",
				s.Instance.Path, s.Instance.UID, s.Instance.ID, s.Instance.Processes, s.Instance.Origin == metric.StartRuntime)
		}
		for id, v := range s.Values.All() {
			switch g := id.Describe().Group; {
			case id == metric.Uptime, s.Entity.Kind == metric.Node && g != metric.CPU && id != metric.MemoryUsage && id != metric.MemoryWorkingSet:
			default:
				fmt.Fprintf(&out, "  %s %.0f\n", id, v)
			}
		}
	}
	const want = "testdata/cgroup2-systemd.want"
	if *rewrite {
		if err := os.WriteFile(want, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(want)
	if diff := cmp.Diff(string(data), out.String()); err != nil || diff != "" {
		t.Errorf("%s: %v (-want +got; -rewrite accepts):\n%s", want, err, diff)
	}
}

// unpack creates the files of a fixture: each has a line "== path", followed by its content.
func unpack(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	defer complete(t, root)
	for _, section := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, content, _ := strings.Cut(section, "\n")
		content = strings.TrimRight(content, "\n")
		if content != "" {
			content += "\n"
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// complete adds the files that every version 2 cgroup has.
func complete(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(dir string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		for name, content := range map[string]string{
			"cgroup.procs": "", "cgroup.controllers": "", "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n",
		} {
			if _, err := os.Stat(filepath.Join(dir, name)); os.IsNotExist(err) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
