//go:build linux

package vitals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// TestLivePod checks that the figures are equal to those read directly from the kernel while the
// processes sleep.
func TestLivePod(t *testing.T) {
	const pod = "/kubepods/burstable/pod" + uid
	m := newMachine(t, Options{Pod: func(of metric.PodUID) (PodNames, bool) {
		return PodNames{Namespace: "shop", Name: "web", Containers: map[string]string{id("a"): "app"}}, of == uid
	}})
	m.start(pod + "/" + id("a"))
	m.start(pod + "/" + id("a") + "/nested")
	m.start(pod + "/" + id("b"))
	m.write(filepath.Join(m.dirs[0], pod, m.version.MemoryLimit), "67108864")
	m.write(filepath.Join(m.dirs[0], "kubepods", m.version.MemoryLimit), "134217728")

	s := read(t, m.Reader, Containers)
	p := find(s, uid)
	if p == nil || len(s.Pods) != 1 {
		t.Fatalf("pods = %+v, want one", s.Pods)
	}
	if want := (stats.PodReference{Namespace: "shop", Name: "web", UID: uid}); p.PodRef != want {
		t.Errorf("pod = %+v, want %+v", p.PodRef, want)
	}
	if got := value(p.ProcessStats.ProcessCount); got != "2" {
		t.Errorf("processes = %s, want the container's two, without the sandbox's", got)
	}
	if len(p.Containers) != 1 || p.Containers[0].Name != "app" {
		t.Fatalf("containers = %+v, want app", p.Containers)
	}
	if len(s.Node.SystemContainers) != 1 || s.Node.SystemContainers[0].Name != "pods" {
		t.Fatalf("system containers = %+v, want pods", s.Node.SystemContainers)
	}
	memory := func(s *stats.Summary) map[string]*stats.MemoryStats {
		p := find(s, uid)
		return map[string]*stats.MemoryStats{
			pod: p.Memory, pod + "/" + id("a"): p.Containers[0].Memory, "/kubepods": s.Node.SystemContainers[0].Memory,
		}
	}
	var wrong []string
	for range 50 { // the kernel may return cached pages at any time
		wrong = nil
		for cgroup, got := range memory(s) {
			usage := m.number(cgroup, m.version.MemoryUsage)
			working := usage - m.stat(cgroup, m.version.InactiveFile)
			available := "absent"
			if cgroup != pod+"/"+id("a") {
				available = fmt.Sprint(m.number(cgroup, m.version.MemoryLimit) - working)
			}
			want := fmt.Sprint("usage ", usage, " working set ", working, " rss ", m.stat(cgroup, m.version.Anonymous), " available ", available)
			if got := fmt.Sprint("usage ", value(got.UsageBytes), " working set ", value(got.WorkingSetBytes), " rss ", value(got.RSSBytes),
				" available ", value(got.AvailableBytes)); got != want || usage == 0 {
				wrong = append(wrong, fmt.Sprintf("%s: %s, want %s", cgroup, got, want))
			}
		}
		if wrong == nil {
			break
		}
		s = read(t, m.Reader, Containers)
	}
	if wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
	if got, want := value(p.CPU.UsageCoreNanoSeconds), fmt.Sprint(m.cpuTime(pod)); got != want || p.CPU.UsageNanoCores != nil {
		t.Errorf("processor time = %s at %s, want %s and no rate on the first read", got, value(p.CPU.UsageNanoCores), want)
	}
	if s = read(t, m.Reader, Pods); len(s.Pods) != 1 || s.Pods[0].Containers != nil {
		t.Errorf("at depth Pods: %+v, want one without containers", s.Pods)
	}
}

// TestLivePodsComeAndGo checks that a pod is in the first read after its cgroup was created, and
// not in the first read after its removal. If it is created again with the same name, no figure of
// the old one is used, although its files were open.
func TestLivePodsComeAndGo(t *testing.T) {
	const pod = "/kubepods/besteffort/pod" + uid
	m := newMachine(t, Options{})
	if s := read(t, m.Reader, Pods); len(s.Pods) != 0 || s.Node.SystemContainers != nil {
		t.Errorf("before there was a kubepods cgroup: %+v", s.Pods)
	}
	m.mkdir("/kubepods/besteffort")
	m.mu.looked = m.mu.looked.Add(-rootSearchInterval) // this simulates that the interval has passed
	for round := range 3 {
		end := m.start(pod + "/" + id("a"))
		p := find(read(t, m.Reader, Containers), uid)
		if p == nil || value(p.ProcessStats.ProcessCount) != "1" || len(p.Containers) != 1 || p.Containers[0].Memory.UsageBytes == nil {
			t.Fatalf("round %d: pod = %+v, want one with a process", round, p)
		}
		end()
		m.rmdir(pod + "/" + id("a"))
		if p := find(read(t, m.Reader, Containers), uid); p == nil || value(p.ProcessStats.ProcessCount) != "0" || len(p.Containers) != 0 {
			t.Errorf("round %d: without its container, pod = %+v", round, p)
		}
		m.rmdir(pod)
		if round == 1 { // it is removed and created again between two reads
			m.mkdir(pod)
			if p := find(read(t, m.Reader, Pods), uid); p == nil || value(p.Memory.UsageBytes) != "0" || value(p.CPU.UsageCoreNanoSeconds) != "0" {
				t.Errorf("made again, pod = %+v, want one that used nothing yet", p)
			}
			m.rmdir(pod)
		}
		if s := read(t, m.Reader, Containers); len(s.Pods) != 0 {
			t.Errorf("round %d: gone, but pods = %+v", round, s.Pods)
		}
	}
	// The same applies to the kubepods cgroup itself.
	m.rmdir("/kubepods/besteffort")
	m.rmdir("/kubepods")
	m.start("/kubepods/pod" + uid)
	if p := find(read(t, m.Reader, Pods), uid); p == nil || value(p.ProcessStats.ProcessCount) != "1" {
		t.Errorf("below another kubepods cgroup, pod = %+v", p)
	}
}

// TestLiveTwoCgroups checks that, of two cgroups, the one with processes belongs to the pod.
func TestLiveTwoCgroups(t *testing.T) {
	m := newMachine(t, Options{})
	m.mkdir("/kubepods/burstable/pod" + uid + "/" + id("a"))
	m.start("/kubepods/besteffort/pod" + uid + "/" + id("b"))
	usage := func() uint64 { return m.number("/kubepods/besteffort/pod"+uid, m.version.MemoryUsage) }
	before := usage()
	s := read(t, m.Reader, Pods)
	after := usage() // it is less if the kernel returned cached pages
	if len(s.Pods) != 1 || *s.Pods[0].Memory.UsageBytes > before || *s.Pods[0].Memory.UsageBytes < after || after == 0 {
		t.Errorf("pods = %+v, want one that uses %d to %d bytes", s.Pods, after, before)
	}
	m.start("/kubepods/burstable/pod" + uid + "/" + id("a"))
	s, err := m.Read(context.Background(), Pods)
	if len(s.Pods) != 1 || s.Pods[0].Memory != nil || s.Pods[0].CPU != nil || s.Pods[0].ProcessStats != nil {
		t.Errorf("with a process in both, pods = %+v, want one of which nothing is known", s.Pods)
	}
	if err == nil || !strings.Contains(err.Error(), "read pod "+uid+": it has 2 cgroups") {
		t.Errorf("error = %v, want that it has two cgroups", err)
	}
}

// TestLiveHiddenProcesses checks that a reader in its own PID namespace, which sees no processes,
// reports an unknown number instead of zero. Version 2 lets it count them.
func TestLiveHiddenProcesses(t *testing.T) {
	m := newMachine(t, Options{})
	m.start("/kubepods/pod" + uid + "/" + id("a"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+strings.Join(m.dirs, ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("cannot start a process in a PID namespace: %v", err)
	}
	want := "processes: absent\nread /kubepods/pod" + uid +
		": count processes: its tasks are in another PID namespace: run with hostPID: true\n"
	if m.version == cgroupfs.V2 { // the kernel lists each of them as process 0
		want = "processes: 1\n<nil>\n"
	}
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// readOnce is the child of TestLiveHiddenProcesses.
func readOnce(dirs []string) {
	r, err := New(Options{Mount: "/sys/fs/cgroup"}) // /proc/self does not exist in the new PID namespace
	if err != nil {
		fmt.Println(err)
		return
	}
	r.cgroupDirs = dirsOf(dirs)
	s, err := r.Read(context.Background(), Pods)
	for _, p := range s.Pods {
		fmt.Print("processes: ")
		if p.ProcessStats == nil {
			fmt.Println("absent")
		} else {
			fmt.Println(value(p.ProcessStats.ProcessCount))
		}
	}
	fmt.Println(err)
}

// TestLiveNodeMemoryIsCAdvisors checks that the memory of the node agrees with cAdvisor's in
// package host: it is between the values before and after, with a margin for a busy machine.
func TestLiveNodeMemoryIsCAdvisors(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	t.Cleanup(func() { r.Close() })
	h, err := host.New(host.Options{Node: "n1", Prefixes: []string{"/none"}}) // this reads only the node
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	t.Cleanup(func() { h.Close() })
	const slack = 1 << 20
	var last []string
	for range 50 { // one success is enough: memory changes by megabytes
		before, _ := r.Read(context.Background(), Pods)
		var b metric.Batch
		if err := h.Read(context.Background(), &b); err != nil {
			t.Logf("host: %v", err)
		}
		after, _ := r.Read(context.Background(), Pods)
		last = nil
		for id, of := range map[metric.ID]func(*stats.MemoryStats) *uint64{
			metric.MemoryUsage:      func(m *stats.MemoryStats) *uint64 { return m.UsageBytes },
			metric.MemoryWorkingSet: func(m *stats.MemoryStats) *uint64 { return m.WorkingSetBytes },
			metric.MemoryRSS:        func(m *stats.MemoryStats) *uint64 { return m.RSSBytes },
			metric.MemoryAvailable:  func(m *stats.MemoryStats) *uint64 { return m.AvailableBytes },
		} {
			got, ok := b.Samples[0].Values.Get(id)
			x, y := of(before.Node.Memory), of(after.Node.Memory)
			if !ok || x == nil || y == nil || got < float64(min(*x, *y))-slack || got > float64(max(*x, *y))+slack {
				last = append(last, fmt.Sprintf("%v = %.0f (%v), here %s before and %s after", id, got, ok, value(x), value(y)))
			}
		}
		if last == nil {
			return
		}
	}
	t.Errorf("in none of 50 tries do the two agree, lastly not in\n%s", strings.Join(last, "\n"))
}

// TestLiveClose checks that Close leaves no file open.
func TestLiveClose(t *testing.T) {
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	m := newMachine(t, Options{})
	m.start("/kubepods/pod" + uid + "/" + id("a"))
	before := descriptors()
	read(t, m.Reader, Containers)
	open := descriptors()
	for range 5 {
		read(t, m.Reader, Containers)
		if now := descriptors(); now > open { // there may be fewer, because another test closed one
			t.Errorf("descriptors after more reads = %d, want %d at most, as before", now, open)
		}
	}
	if err := m.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if now := descriptors(); now > before || open <= before {
		t.Errorf("descriptors: %d before, %d while open, %d after Close, want no more than before", before, open, now)
	}
	if _, err := m.Read(context.Background(), Pods); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read after Close: %v, want os.ErrClosed", err)
	}
	if mount, pods := m.Cgroups(); mount == "" || pods != "" {
		t.Errorf("Cgroups after Close = %q, %q", mount, pods)
	}
}

// TestLiveContext checks that after the end of the context pods are missing and Read returns an
// error.
func TestLiveContext(t *testing.T) {
	m := newMachine(t, Options{})
	m.start("/kubepods/pod" + uid)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := m.Read(ctx, Pods)
	if !errors.Is(err, context.Canceled) || len(s.Pods) != 0 || s.Node.Memory == nil {
		t.Errorf("%d pods, node memory %v, error %v, want none, some, and that it was cancelled", len(s.Pods), s.Node.Memory, err)
	}
	if mount, pods := m.Cgroups(); mount != m.dirs[0] || pods != "/kubepods" {
		t.Errorf("Cgroups = %q, %q, want %q, /kubepods", mount, pods, m.dirs[0])
	}
}
