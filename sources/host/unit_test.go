//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/cmptest"
)

func asReadError(t testing.TB, err error) *metric.ReadError {
	t.Helper()
	var re *metric.ReadError
	if !errors.As(err, &re) {
		t.Fatalf("error = %v, want a *metric.ReadError", err)
	}
	return re
}

func TestParseOptions(t *testing.T) {
	query, err := url.ParseQuery("node=n1&resolution=5s&prefix=/kubepods&prefix=/system.slice&rootfs=/host/&containerd=unix:///c.sock&containerd-namespace=ns&max-cgroups=7")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseOptions("", query)
	want := Options{Node: "n1", Resolution: 5 * time.Second, Prefixes: []string{"/kubepods", "/system.slice"}, RootFS: "/host",
		Containerd: "/c.sock", ContainerdNamespace: "ns", MaxCgroups: 7}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("err = %v (-want +got):\n%s", err, diff)
	}
	got, err = ParseOptions("", url.Values{"containerd": {"none"}})
	if diff := cmp.Diff(Options{}, got); err != nil || diff != "" {
		t.Errorf("none: err = %v (-want +got):\n%s", err, diff)
	}
	if got, err = ParseOptions("", nil); err != nil || got.Containerd != DefaultContainerd {
		t.Errorf("empty: %+v, %v, want the default socket", got, err)
	}
}

func TestParseOptionsBad(t *testing.T) {
	f := func(config, query string, want ...string) {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseOptions(config, q)
		if err == nil {
			t.Errorf("ParseOptions(%q, %q): no error, want one with %q", config, query, want)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("ParseOptions(%q, %q): %v\nwant it to say %q", config, query, err, w)
			}
		}
	}
	f("localhost", "", `no address, but "localhost" was given`, "host:?node=NAME")
	f("", "resolutoin=5s&x=1", `no option is called "resolutoin": there are node, resolution,`)
	f("", "resolution=5", "option resolution: ")
	f("", "resolution=-5s", "at least 1s")
	f("", "node=a&node=b", "option node is given 2 times")
	f("", "node=", "option node: it has no value")
	f("", "prefix=kubepods", `option prefix: "kubepods" must start with /`)
	f("", "rootfs=x", `option rootfs: "x" must be an absolute path`)
	f("", "containerd=y", `option containerd: "y" must be an absolute path or none`)
	f("", "max-cgroups=0", "0 is not above 0")
}

func TestOptionsDefaults(t *testing.T) {
	o, err := Options{}.withDefaults(func() (string, error) { return "box", nil })
	if want := (Options{Node: "box", RootFS: "/", ContainerdNamespace: "k8s.io", MaxCgroups: 20000}); err != nil || !cmp.Equal(o, want) {
		t.Errorf("defaults = %+v, %v, want %+v", o, err, want)
	}
	if _, err := (Options{}).withDefaults(func() (string, error) { return "", os.ErrNotExist }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v, want the host name's", err)
	}
}

// constructed returns an observation of a cgroup at 10 s, as from cAdvisor and libcontainer.
func constructed() *observation {
	at := time.Unix(10, 0)
	raw := cgroups.NewStats()
	raw.CpuStats.PSI = &cgroups.PSIStats{Some: cgroups.PSIData{Total: 7}, Full: cgroups.PSIData{Total: 5}}
	raw.MemoryStats.PSI = &cgroups.PSIStats{Some: cgroups.PSIData{Total: 3}}
	raw.MemoryStats.Stats = map[string]uint64{"pgfault": 11, "pgmajfault": 2, "total_pgfault": 111, "total_pgmajfault": 22}
	raw.PidsStats = cgroups.PidsStats{Current: 9, Limit: 0}
	o := &observation{
		cpu: cpuReading{nanoseconds: 123456789, at: time.Unix(10, 1)},
		raw: raw,
		stats: &model.ContainerStats{
			Cpu: &model.CpuStats{
				Usage: model.CpuUsage{Total: 1, User: 100, System: 23},
				CFS:   model.CpuCFS{Periods: 6, ThrottledPeriods: 4, ThrottledTime: 1e9},
			},
			Memory: &model.MemoryStats{
				Usage: 1000, WorkingSet: 800, RSS: 600, Cache: 300, MappedFile: 50, Swap: 10, Failcnt: 1,
				Events: model.MemoryEvents{Max: 2},
			},
			DiskIo: &model.DiskIoStats{IoServiceBytes: []model.PerDiskStats{
				{Device: "/dev/dm-0", Major: 253, Stats: map[string]uint64{"Read": 100, "Write": 10}},
				{Device: "/dev/vda", Major: 254, Stats: map[string]uint64{"Read": 101, "Write": 12}},
			}},
		},
		spec: model.ContainerSpec{
			HasCpu: true, Cpu: model.CpuSpec{Quota: 20000, Period: 100000},
			HasMemory: true, Memory: model.MemorySpec{Limit: 2000, SwapLimit: 2500},
		},
		times: map[controllerSet]int64{},
		ooms:  3,
		swap:  true,
	}
	for _, c := range controllers {
		o.times[c.bit] = at.UnixNano()
	}
	return o
}

func values(s *metric.Sample) map[string]float64 {
	m := map[string]float64{}
	for id, v := range s.Values.All() {
		m[id.String()] = v
	}
	return m
}

func TestFill(t *testing.T) {
	vda := func(major, _ uint64) bool { return major == 254 }
	common := map[string]float64{
		"cpu/usage": 123456789, "cpu/user": 100, "cpu/system": 23, "cpu/throttled": 1e9, "cpu/periods": 6, "cpu/throttled_periods": 4,
		"cpu/pressure_some": 7000, "cpu/pressure_full": 5000, "memory/pressure_some": 3000, "memory/pressure_full": 0,
		"memory/usage": 1000, "memory/working_set": 800, "memory/available": 1200, "memory/rss": 600, "memory/cache": 300,
		"memory/mapped_file": 50, "memory/swap": 10, "memory/oom_events": 3, "process/threads": 9,
		"disk/io_read_bytes": 101, "disk/io_write_bytes": 12, // dm-0 is not counted again
		"cpu/limit": 2e8, "memory/limit": 2000, "uptime": 9e9,
	}
	for v2, own := range map[bool]map[string]float64{
		false: {"memory/page_faults": 111, "memory/major_page_faults": 22, "memory/failures": 1, "memory/swap_limit": 500, "memory/swap_available": 490},
		true:  {"memory/page_faults": 11, "memory/major_page_faults": 2, "memory/failures": 2, "memory/swap_limit": 2500, "memory/swap_available": 2490},
	} {
		want := map[string]float64{}
		for _, m := range []map[string]float64{common, own} {
			for k, v := range m {
				want[k] = v
			}
		}
		s := &metric.Sample{Instance: metric.Instance{Start: 1e9}}
		o := constructed()
		o.v2 = v2
		fillCgroup(s, o)
		if n := len(fillIO(s, o, vda)); n != 2 {
			t.Errorf("devices = %d, want 2", n)
		}
		completeTimes(s, time.Unix(10, 0))
		cmptest.Equal(t, fmt.Sprintf("v2 %v", v2), want, values(s))
		if s.Times[metric.CPU] != 10e9+1 || s.Times[metric.Memory] != 10e9 {
			t.Errorf("times = %v, want the counter's for cpu", s.Times)
		}
	}
}

// TestFillWithoutFull checks that the time in which all threads wait for CPU is absent where the kernel does not report
// it, before Linux 5.13.
func TestFillWithoutFull(t *testing.T) {
	const some, full = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	for file, want := range map[string]bool{some: false, some + full: true} {
		o, s := constructed(), &metric.Sample{}
		o.raw.CpuStats.PSI.Full.Total = 0
		o.noCPUFull = !hasFull([]byte(file))
		fillCgroup(s, o)
		if got := s.Values.Has(metric.CPUPressureFull); got != want || !s.Values.Has(metric.CPUPressureSome) || !s.Values.Has(metric.MemoryPressureFull) {
			t.Errorf("%q: full is there: %v, want %v", file, got, want)
		}
	}
}

// TestFillUnread checks that what was not read is absent, although the structures have zeros.
func TestFillUnread(t *testing.T) {
	o := constructed()
	o.times = map[controllerSet]int64{memory: 1}
	o.cpu, o.ooms, o.spec = cpuReading{}, -1, model.ContainerSpec{}
	o.raw.CpuStats.PSI, o.raw.MemoryStats.PSI = nil, nil
	o.swap = false
	s := &metric.Sample{}
	fillCgroup(s, o)
	if devices := fillIO(s, o, func(_, _ uint64) bool { return true }); devices != nil {
		t.Errorf("devices = %v, want none", devices)
	}
	completeTimes(s, time.Unix(11, 0))
	want := map[string]float64{
		"memory/usage": 1000, "memory/working_set": 800, "memory/rss": 600, "memory/cache": 300, "memory/mapped_file": 50,
		"memory/page_faults": 111, "memory/major_page_faults": 22, "memory/failures": 1,
	}
	if diff := cmp.Diff(want, values(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// No block I/O was counted. On version 2 there was none; on version 1 it is not known.
	o = constructed()
	o.stats.DiskIo.IoServiceBytes = nil
	for v2, want := range map[bool]bool{false: false, true: true} {
		s := &metric.Sample{}
		o.v2 = v2
		fillIO(s, o, func(_, _ uint64) bool { return false })
		if got := s.Values.Has(metric.DiskReadBytes); got != want {
			t.Errorf("v2 %v: has disk bytes = %v, want %v", v2, got, want)
		}
	}
}

func TestFillUnlimited(t *testing.T) {
	for v2, limit := range map[bool]uint64{false: 9223372036854771712, true: math.MaxUint64} {
		o := constructed()
		o.spec.Memory = model.MemorySpec{Limit: limit, SwapLimit: limit}
		o.spec.Cpu.Quota = 0
		o.v2 = v2
		s := &metric.Sample{}
		fillCgroup(s, o)
		for _, id := range []metric.ID{metric.CPULimit, metric.MemoryLimit, metric.MemoryAvailable, metric.SwapLimit, metric.MemorySwapAvailable} {
			if v, ok := s.Values.Get(id); ok {
				t.Errorf("v2 %v: %v = %v, want absent", v2, id, v)
			}
		}
	}
}

func TestBlamed(t *testing.T) {
	r := &cgroupReader{observation: observation{v2: true}, cgroup: &cgroupDir{path: "/a"}}
	all := cpuacct | cpu | memory | pids | blkio
	err := errors.New("error while statting cgroup v2: [open /sys/fs/cgroup/a/memory.current: permission denied open /sys/fs/cgroup/a/pids.max: permission denied]")
	if got := r.failedControllers(all, err); got != memory|pids {
		t.Errorf("blamed = %b, want memory and pids", got)
	}
	if got := r.failedControllers(all, errors.New("something else")); got != all {
		t.Errorf("blamed = %b for an unknown error, want all", got)
	}
	r.v2 = false
	if got := r.failedControllers(memory, err); got != memory {
		t.Errorf("v1: blamed = %b, want memory", got)
	}
}

func TestDefaultRoute(t *testing.T) {
	v4 := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
		"eth1\t00000000\t010200C0\t0002\t0\t0\t0\t00000000\t0\t0\t0\n" + // this route is down
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	if got := routeFiles[0].defaultRoute([]byte(v4)); got != "eth0" {
		t.Errorf("defaultRoute = %q, want eth0", got)
	}
	if got := routeFiles[0].defaultRoute([]byte("Iface\n")); got != "" {
		t.Errorf("defaultRoute of none = %q", got)
	}
	zero := strings.Repeat("0", 32)
	v6 := zero + " 00 " + zero + " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     ens3\n" +
		zero + " 00 " + zero + " 00 " + zero + " ffffffff 00000001 00000000 00200200       lo\n"
	if got := routeFiles[1].defaultRoute([]byte(v6)); got != "ens3" {
		t.Errorf("the IPv6 route = %q, want ens3", got)
	}
}

func TestTrafficOwn(t *testing.T) {
	tr := traffic{interfaces: []model.InterfaceStats{{Name: "eth0", RxBytes: 5}, {Name: "eth1", RxBytes: 7}, {Name: "cni0", RxBytes: 100}}}
	physical := func(name string) bool { return strings.HasPrefix(name, "eth") }
	if got, ok := tr.total(physical); !ok || got.RxBytes != 12 {
		t.Errorf("without a route = %d, %v, want 12", got.RxBytes, ok)
	}
	tr.route = "cni0"
	if got, ok := tr.total(physical); !ok || got.RxBytes != 100 {
		t.Errorf("with a route = %d, %v, want 100", got.RxBytes, ok)
	}
}

// TestCensus checks that the processes of a parent include those of its children in the same
// hierarchy.
func TestCensus(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(file)
	}
	for _, fd := range []string{"1/fd/0", "1/fd/1", "7/fd/0", "8/fd/0"} {
		write("proc/"+fd, "")
	}
	places := []cgroupDir{
		{path: "/", dir: write("cg/cgroup.procs", "1\n")},
		{path: "/a", dir: write("cg/a/cgroup.procs", "")},
		{path: "/a/b", dir: write("cg/a/b/cgroup.procs", "7\n8\n9\n")}, // process 9 has just ended
		{path: "/m", hierarchy: 1, dir: write("cg2/m/cgroup.procs", "7\n")},
		{path: "/z", dir: write("cg/z/cgroup.procs", "0\n")}, // a process of another PID namespace
	}
	heads, errs := countProcesses(places, filepath.Join(dir, "proc"), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for p, want := range map[metric.CgroupPath]int32{"/": 5, "/a": 3, "/a/b": 3, "/m": 1, "/z": 1} {
		if got := heads[p].processes; got != want {
			t.Errorf("%s: processes = %d, want %d", p, got, want)
		}
	}
	if got := heads["/z"].files; got != -1 {
		t.Errorf("/z: open files = %d, want unknown", got)
	}
	if got := heads["/a"].files; got < 2 {
		t.Errorf("/a: open files = %d, want those of 7 and 8", got)
	}
	hidden, errs := countProcesses(places, filepath.Join(dir, "proc"), true)
	for p, c := range hidden {
		if c.processes != -1 || c.files != -1 || c.pid != 0 || len(errs) > 0 {
			t.Errorf("%s, hidden: %+v, %v; want nothing known", p, c, errs)
		}
	}
}

func TestReadError(t *testing.T) {
	var p cgroupfs.ErrorList
	if err := readError(context.Background(), &p); err != nil {
		t.Errorf("no problems = %v, want nil", err)
	}
	p.Add(errors.New("e"))
	if re := asReadError(t, readError(context.Background(), &p)); re.Error() != "NodeScrapeError: e" || re.Reason != metric.NodeScrapeError {
		t.Errorf("got %q for %v, want NodeScrapeError: e", re, re.Reason)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if re := asReadError(t, readError(ctx, &p)); re.Reason != metric.NodeTimeout {
		t.Errorf("out of time: reason = %v, want NodeTimeout", re.Reason)
	}
}

// TestPIDNamespace says for several places of weir whether it sees the processes of its node.
func TestPIDNamespace(t *testing.T) {
	const (
		pod     = "/kubepods/burstable/pod6c1bbb16-5d5c-4d8b-8c1d-3f5b0c1f8a55/"
		another = "/kubepods/burstable/pod7d2bbb16-5d5c-4d8b-8c1d-3f5b0c1f8a55/"
		nested  = "pid:[4026532281]"
	)
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	v1 := func(path string) string {
		return "9:name=systemd:" + path + "\n4:memory:" + path + "\n3:cpu,cpuacct:" + path + "\n0::/\n"
	}
	v2 := func(path string) string { return "0::" + path + "\n" }
	f := func(name string, n pidNamespace, want bool) {
		t.Helper()
		if got := n.isOwn(); got != want {
			t.Errorf("%s: own PID namespace %t, want %t", name, got, want)
		}
	}
	f("on the machine", pidNamespace{initPIDNamespace, 4711, v1("/"), v1("/user.slice")}, false)
	f("the first process of a virtual machine", pidNamespace{initPIDNamespace, 1, v2("/"), v2("/")}, false)
	f("a pod with hostPID", pidNamespace{initPIDNamespace, 4711, v2("/../../../../init.scope"), v2("/")}, false)
	f("a pod without", pidNamespace{nested, 1, v2("/"), v2("/")}, true)
	f("below an init process", pidNamespace{nested, 7, v1(pod + a), v1(pod + a)}, true)
	f("with shareProcessNamespace", pidNamespace{nested, 7, v1(pod + b), v1(pod + a)}, true)
	f("with shareProcessNamespace, version 2", pidNamespace{nested, 7, v2("/../" + b), v2("/")}, true)
	f("with shareProcessNamespace, version 2, systemd", pidNamespace{nested, 7, v2("/../cri-containerd-" + b + ".scope"), v2("/")}, true)
	f("below an init process in Docker", pidNamespace{nested, 7, v1("/docker/" + a), v1("/docker/" + a)}, true)
	f("a node that is a container, and a pod with hostPID", pidNamespace{nested, 4711, v2("/../../../../init.scope"), v2("/")}, false)
	f("the same, version 1", pidNamespace{nested, 4711, v1("/docker/" + b), v1("/docker/" + b + pod + a)}, false)
	f("the same, beside the node's init process", pidNamespace{nested, 4711, v2("/../init.scope"), v2("/")}, false)
	f("another pod's process is the first", pidNamespace{nested, 4711, v1(another + b), v1(pod + a)}, false)
	f("nothing can be read", pidNamespace{pid: 4711}, false)

	if n := readPIDNamespace(); n.link == "" || n.pid <= 0 || len(maps.Collect(cgroupfs.ProcessCgroups(n.first))) == 0 || len(maps.Collect(cgroupfs.ProcessCgroups(n.self))) == 0 {
		t.Errorf("here the namespace is %+v, want a link, a process ID and cgroups", n)
	}
}
