//go:build linux

package host

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

var slowness = flag.Float64("slowness", 1, "how many times as long everything may take; an emulated machine needs more")

func newHost(t testing.TB, o Options) *Host {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

func read(t testing.TB, h *Host) *metric.Batch {
	t.Helper()
	var b metric.Batch
	if err := h.Read(context.Background(), &b); err != nil {
		t.Fatalf("Read: %v", err)
	}
	return &b
}

// find returns the sample of the cgroup at path, without its parts, or nil.
func find(b *metric.Batch, path string) *metric.Sample {
	for i := range b.Samples {
		if s := &b.Samples[i]; string(s.Instance.Path) == path && s.Entity.Part == "" {
			return s
		}
	}
	return nil
}

func value(t testing.TB, s *metric.Sample, id metric.ID) float64 {
	t.Helper()
	if s == nil {
		t.Fatalf("no sample to take %v from", id)
	}
	v, ok := s.Values.Get(id)
	if !ok {
		t.Fatalf("%v has no %v", s.Entity, id)
	}
	return v
}

// TestReadEqualsKernelCounter checks that the CPU time from Read is between the kernel's counters
// read directly before and after it. These are nearly equal, because the burner sleeps. The CPU
// time of a parent includes that of its children.
func TestReadEqualsKernelCounter(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct", "cpu", "memory", "pids")
	name := testName(t)
	outer := makeCgroup(t, name, roots...)
	inner := makeCgroup(t, name+"/nested", roots...)
	b := startBurner(t, nil, inner...)
	h := newHost(t, Options{Node: "n1", Prefixes: []string{"/" + name}})

	b.do("burn 30ms")
	for round := range 3 {
		before := map[string]uint64{}
		for _, dir := range []string{outer[0], inner[0]} {
			before[dir] = kernelCPUTime(t, dir)
		}
		got := read(t, h)
		for dir, path := range map[string]string{outer[0]: "/" + name, inner[0]: "/" + name + "/nested"} {
			s := find(got, path)
			checkUsage(t, s, before[dir], kernelCPUTime(t, dir), (round+1)*30e6)
			if want := (metric.Entity{Kind: metric.System, Node: "n1", Name: path}); s.Entity != want {
				t.Errorf("entity = %+v, want %+v", s.Entity, want)
			}
			if s.Instance.Processes != 1 || value(t, s, metric.ProcessCount) != 1 {
				t.Errorf("%s: processes = %d, want 1", path, s.Instance.Processes)
			}
			if v := value(t, s, metric.ProcessOpenFiles); v < 3 {
				t.Errorf("%s: open files = %v, want at least 3", path, v)
			}
			if v, want := value(t, s, metric.ProcessThreads), float64(mustReadUint(t, strings.Replace(dir, "cpuacct", "pids", 1), "pids.current")); v != want {
				t.Errorf("%s: threads = %v, want %v", path, v, want)
			}
			if s.Instance.Origin != metric.StartCgroup || s.Instance.Start == 0 {
				t.Errorf("%s: start = %d of origin %d, want the cgroup's", path, s.Instance.Start, s.Instance.Origin)
			}
		}
		b.do("burn 30ms")
	}
	// The kernel may charge the process's memory to this cgroup or to another one, so the test
	// compares with the kernel's own figure.
	for try := 1; ; try++ { // the kernel may take memory back at any time
		s := find(read(t, h), "/"+name+"/nested")
		got, want := value(t, s, metric.MemoryUsage), float64(mustReadUint(t, inner[2], version().MemoryUsage))
		if got == want {
			break
		}
		if try == 50 {
			t.Fatalf("memory/usage = %.0f, want %.0f", got, want)
		}
	}
}

// checkUsage compares the CPU time in s with the kernel's before and after. The burner answers
// before it sleeps, so it may use a little more.
func checkUsage(t *testing.T, s *metric.Sample, before, after uint64, least int) {
	t.Helper()
	got := value(t, s, metric.CPUUsage)
	if got < float64(before) || got > float64(after) || got < float64(least) || float64(after-before) > 5e6**slowness {
		t.Errorf("%v: cpu/usage = %.0f, want between %d and %d (%v ms apart at most), at least %d", s.Entity, got, before, after, 5**slowness, least)
	}
}

// TestReadIsFreshUnderLoad checks with a busy process that each value and its time are between
// direct reads before and after. The test reads until these are so near to each other, compared with
// the time between the first value and the last, that they know the rate within 1%. A busy machine
// needs more time for that.
func TestReadIsFreshUnderLoad(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct")
	name := testName(t)
	dir := makeCgroup(t, name, roots...)[0]
	spinner := startBurner(t, nil, dir)
	spinner.do("spin")
	pacer := startBurner(t, nil) // it is in another cgroup, and only makes time pass
	h := newHost(t, Options{Prefixes: []string{"/" + name}})

	type observation struct {
		value float64
		at    time.Time
	}
	hand := func() observation {
		c, err := readCPUTime(dir, version2Mounted())
		if err != nil {
			t.Fatal(err)
		}
		return observation{float64(c.nanoseconds), c.at}
	}
	look := func() (before, weir, after observation) {
		before = hand()
		s := find(read(t, h), "/"+name)
		weir = observation{value(t, s, metric.CPUUsage), s.Time(metric.CPU)}
		after = hand()
		if weir.value < before.value || weir.value > after.value {
			t.Errorf("cpu/usage = %.0f, want between %.0f and %.0f", weir.value, before.value, after.value)
		}
		if weir.at.Before(before.at.Round(0)) || weir.at.After(after.at.Round(0)) {
			t.Errorf("its time = %v, want between %v and %v", weir.at, before.at, after.at)
		}
		return before, weir, after
	}
	cores := func(value float64, from, to observation) float64 {
		return value / float64(to.at.Round(0).Sub(from.at.Round(0)))
	}
	before0, weir0, after0 := look()
	for deadline := time.Now().Add(time.Minute); ; {
		pacer.do("burn 500ms")
		before1, weir1, after1 := look()
		least := cores(before1.value-after0.value, before0, after1)
		most := cores(after1.value-before0.value, after0, before1)
		// The spinner's share of the CPU depends on the load of the machine.
		known := least >= 0.01 && most-least <= 0.01**slowness*least
		if known || time.Now().After(deadline) {
			if got := cores(weir1.value-weir0.value, weir0, weir1); !known || got < least || got > most {
				t.Errorf("rate = %.4f cores, want the kernel's: between %.4f and %.4f, at least 0.01 and within 1%%", got, least, most)
			}
			return
		}
	}
}

// TestReadSeesCgroupsComeAndGo checks that a cgroup is in the first read after its creation, and
// not in the first read after its removal. If it is created again, it is another instance.
func TestReadSeesCgroupsComeAndGo(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct")
	name := testName(t)
	h := newHost(t, Options{Prefixes: []string{"/" + name}})
	if s := find(read(t, h), "/"+name); s != nil {
		t.Fatalf("%v is there before it was made", s.Entity)
	}
	dir := makeCgroup(t, name+"/a/b", roots...)[0]
	b := read(t, h)
	for _, p := range []string{"/" + name, "/" + name + "/a", "/" + name + "/a/b"} {
		if find(b, p) == nil {
			t.Errorf("%s is missing from the first read after it was made", p)
		}
	}
	if !b.Exhaustive {
		t.Error("Exhaustive = false, want true")
	}
	first := find(b, "/"+name+"/a/b").Instance
	for range 2 {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if s := find(read(t, h), "/"+name+"/a/b"); s != nil {
			t.Errorf("%v is still there", s.Entity)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if again := find(read(t, h), "/"+name+"/a/b").Instance; again.Inode == first.Inode {
		t.Errorf("made again, inode = %d as before, want another", again.Inode)
	}
	if version2Mounted() {
		return // there is only one hierarchy
	}
	// A cgroup that is only in another hierarchy has no CPU time, instead of zero.
	memory := cgroupRoot(t, "memory")
	makeCgroup(t, name+"/m", memory...)
	s := find(read(t, h), "/"+name+"/m")
	if _, ok := s.Values.Get(metric.CPUUsage); ok || s.Times[metric.CPU] != 0 {
		t.Errorf("%v has cpu/usage though cpuacct has no such cgroup", s.Entity)
	}
	value(t, s, metric.MemoryUsage)
}

func TestLimits(t *testing.T) {
	roots := cgroupRoot(t, "cpu", "memory", "pids")
	name := testName(t)
	dirs := makeCgroup(t, name, roots...)
	files := map[string]string{
		dirs[0] + "/cpu.cfs_period_us":           "50000",
		dirs[0] + "/cpu.cfs_quota_us":            "75000",
		dirs[1] + "/memory.limit_in_bytes":       "67108864",
		dirs[1] + "/memory.memsw.limit_in_bytes": "100663296",
		dirs[2] + "/pids.max":                    "17",
	}
	if version2Mounted() {
		files = map[string]string{
			dirs[0] + "/cpu.max":         "75000 50000",
			dirs[1] + "/memory.max":      "67108864",
			dirs[1] + "/memory.swap.max": "33554432",
			dirs[2] + "/pids.max":        "17",
		}
	}
	for file, v := range files {
		if err := os.WriteFile(file, []byte(v), 0); err != nil {
			t.Skipf("cannot set a limit: %v", err)
		}
	}
	h := newHost(t, Options{Prefixes: []string{"/" + name}})
	s := find(read(t, h), "/"+name)
	for id, want := range map[metric.ID]float64{
		metric.CPULimit: 1.5e9, metric.MemoryLimit: 64 << 20, metric.SwapLimit: 32 << 20, metric.ProcessLimit: 17,
		metric.MemorySwapAvailable: 32 << 20, metric.MemoryAvailable: 64<<20 - value(t, s, metric.MemoryWorkingSet),
		metric.CPUThrottledPeriods: 0, metric.CPUThrottled: 0, metric.MemoryFailures: 0, metric.MemoryOOMEvents: 0,
	} {
		if got := value(t, s, id); got != want {
			t.Errorf("%v = %v, want %v", id, got, want)
		}
	}
	value(t, s, metric.CPUPeriods) // the kernel may count a period although nothing runs
	// A missing limit is absent, not a large number.
	makeCgroup(t, name+"-free", roots...)
	s = find(read(t, h), "/"+name+"-free")
	for _, id := range []metric.ID{metric.CPULimit, metric.MemoryLimit, metric.SwapLimit, metric.ProcessLimit, metric.MemoryAvailable} {
		if v, ok := s.Values.Get(id); ok {
			t.Errorf("%v = %v, want absent", id, v)
		}
	}
}

// TestPod checks that the cgroups of a pod are recognised, and that its network is that of its
// namespace.
func TestPod(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct", "memory")
	name := testName(t)
	const uid, id = "73296cad-fda8-4a1c-bff9-cb1de73626a6", "550a49ead28c8f626c7026d5fad7b537003546386755f06a410a55a76055be87"
	pod := name + "/kubepods/burstable/pod" + uid
	dirs := makeCgroup(t, pod+"/"+id, roots...)
	startBurner(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, dirs...).do("burn 1ms")
	h := newHost(t, Options{Node: "n1", Prefixes: []string{"/" + name}})
	b := read(t, h)

	if got, want := find(b, "/"+pod).Entity, (metric.Entity{Kind: metric.Pod, Node: "n1", Pod: uid}); got != want {
		t.Errorf("pod: entity = %+v, want %+v", got, want)
	}
	s := find(b, "/"+pod+"/"+id)
	if want := (metric.Entity{Kind: metric.Container, Node: "n1", Pod: uid, Name: id}); s.Entity != want {
		t.Errorf("container: entity = %+v, want %+v", s.Entity, want)
	}
	if s.Instance.UID != uid || s.Instance.ID != id || s.Instance.Processes != 1 {
		t.Errorf("container: instance = %+v, want its UID, ID and one process", s.Instance)
	}
	if got, want := find(b, "/"+name+"/kubepods/burstable").Entity.Kind, metric.System; got != want {
		t.Errorf("class: kind = %v, want %v", got, want)
	}
	// A new network namespace has its own interfaces (on some kernels tunnels) but no eth0, so the pod
	// as a whole has no traffic.
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Kind != metric.Pod {
			continue
		}
		if strings.HasSuffix(s.Entity.Part, ":eth0") || s.Entity.Part == "" && s.Values.Has(metric.NetworkRx) {
			t.Errorf("%v has the host's network", s.Entity)
		}
	}
}

// TestHostNetworkPod checks that a pod in the host's network namespace has no network of its own.
func TestHostNetworkPod(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct")
	name := testName(t)
	const uid, id = "73296cad-fda8-4a1c-bff9-cb1de73626a6", "550a49ead28c8f626c7026d5fad7b537003546386755f06a410a55a76055be87"
	dirs := makeCgroup(t, name+"/kubepods/pod"+uid+"/"+id, roots...)
	startBurner(t, nil, dirs...).do("burn 1ms")
	b := read(t, newHost(t, Options{Prefixes: []string{"/" + name}}))
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Entity.Kind == metric.Pod && (s.Times[metric.Network] != 0 || s.Entity.Part != "") {
			t.Errorf("%v has a network, want none", s.Entity)
		}
	}
}

func TestNode(t *testing.T) {
	h := newHost(t, Options{Node: "n1", Prefixes: []string{"/none"}})
	b := read(t, h)
	node := find(b, "/")
	if want := (metric.Entity{Kind: metric.Node, Node: "n1"}); node.Entity != want {
		t.Fatalf("entity = %+v, want %+v", node.Entity, want)
	}
	for _, id := range []metric.ID{
		metric.CPUUsage, metric.MemoryUsage, metric.MemoryWorkingSet, metric.MemoryNodeCapacity, metric.CPUNodeCapacity,
		metric.ProcessCount, metric.ProcessThreads, metric.ProcessLimit, metric.Uptime, metric.MemoryOOMEvents,
	} {
		if v := value(t, node, id); v <= 0 && id != metric.MemoryOOMEvents {
			t.Errorf("%v = %v, want more than 0", id, v)
		}
		if node.Times[id.Describe().Group] == 0 {
			t.Errorf("%v has no time", id)
		}
	}
	if b.Cores != value(t, node, metric.CPUNodeCapacity)/1e9 || b.Resolution != time.Nanosecond {
		t.Errorf("cores = %v, clock = %v, want the capacity and 1ns", b.Cores, b.Resolution)
	}
	if node.Instance.Origin != metric.StartRuntime || node.Instance.Start == 0 {
		t.Errorf("start = %d of origin %d, want the boot's", node.Instance.Start, node.Instance.Origin)
	}
	parts := map[string]int{}
	for i := range b.Samples {
		parts[b.Samples[i].Entity.Part]++
		if b.Samples[i].Entity.Kind != metric.Node {
			t.Errorf("%v is reported, want the node only", b.Samples[i].Entity)
		}
	}
	for part, n := range parts {
		if n != 1 {
			t.Errorf("part %q is reported %d times, want once", part, n)
		}
	}
}

func TestReadEnds(t *testing.T) {
	h := newHost(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var b metric.Batch
	err := h.Read(ctx, &b)
	if re := asReadError(t, err); re.Reason != metric.NodeTimeout || b.Exhaustive {
		t.Errorf("with an ended context: %v, exhaustive %v, want NodeTimeout, false", err, b.Exhaustive)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if re := asReadError(t, h.Read(context.Background(), &b)); re.Reason != metric.NodeScrapeError {
		t.Errorf("after Close: %v, want NodeScrapeError", re)
	}
}

func TestMaxCgroups(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct")
	name := testName(t)
	makeCgroup(t, name+"/a/b", roots...)
	h := newHost(t, Options{Prefixes: []string{"/" + name}, MaxCgroups: 2})
	var b metric.Batch
	err := h.Read(context.Background(), &b)
	if re := asReadError(t, err); !strings.Contains(re.Error(), "2 of 4 are over the limit") || b.Exhaustive || find(&b, "/"+name) == nil {
		t.Errorf("err = %v, exhaustive %v, want 2 of 4 over the limit and the first two reported", err, b.Exhaustive)
	}
}

// TestReadWithoutRoot checks that another user gets what every user may read, and gaps for the
// rest.
func TestReadWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot become another user; the other tests show what this one may read")
	}
	self, err := os.Open(os.Args[0]) // other users may have no access to its directory
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), roleEnv+"=reader")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"error: <nil>", "cpu: true", "memory: true", "gap: not root: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
