//go:build e2e

package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/commands"
)

// burn uses CPU in a pattern until it is killed. The pattern is "busy/period"
// in milliseconds, or "idle".
func burn(pattern string) {
	runtime.GOMAXPROCS(1)
	busy, period, ok := strings.Cut(pattern, "/")
	if !ok {
		select {}
	}
	b, _ := strconv.Atoi(busy)
	p, _ := strconv.Atoi(period)
	for {
		for start := time.Now(); time.Since(start) < time.Duration(b)*time.Millisecond; {
			_ = start // spin
		}
		time.Sleep(time.Duration(p-b) * time.Millisecond)
	}
}

// hierarchies returns the mount points in which a cgroup must be created, and a
// function that reads a cgroup's CPU time in the first of them.
func hierarchies(t *testing.T) (roots []string, counter func(dir string) (int64, error)) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}, func(dir string) (int64, error) {
			body, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
			if err != nil {
				return 0, err
			}
			var us int64
			_, err = fmt.Sscanf(string(body), "usage_usec %d", &us)
			return us * 1000, err
		}
	}
	for _, controller := range []string{"cpuacct", "cpu", "memory", "pids", "blkio"} {
		roots = append(roots, filepath.Join("/sys/fs/cgroup", controller))
	}
	return roots, func(dir string) (int64, error) {
		body, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64)
	}
}

// makeCgroup creates a cgroup in every hierarchy and starts a burner in it.
func makeCgroup(t *testing.T, roots []string, path, pattern string) {
	t.Helper()
	burner := exec.Command(os.Args[0])
	burner.Env = append(os.Environ(), burnEnv+"="+pattern)
	if err := burner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = burner.Process.Kill()
		_ = burner.Wait()
		for _, root := range roots {
			// The kernel may need a moment until the cgroup is empty.
			for range 50 {
				if err := os.Remove(filepath.Join(root, path)); err == nil || os.IsNotExist(err) {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	for _, root := range roots {
		dir := filepath.Join(root, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skipf("making cgroups needs root and a writable cgroup hierarchy: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(burner.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// limit gives a cgroup a CPU limit and a memory limit that it never reaches.
func limit(t *testing.T, roots []string, path string) {
	t.Helper()
	set := func(root, file, value string) {
		if err := os.WriteFile(filepath.Join(root, path, file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(roots) == 1 {
		set(roots[0], "cpu.max", "200000 100000")
		set(roots[0], "memory.max", strconv.Itoa(1<<30))
		return
	}
	for _, root := range roots {
		switch filepath.Base(root) {
		case "cpu":
			set(root, "cpu.cfs_quota_us", "200000")
		case "memory":
			set(root, "memory.limit_in_bytes", strconv.Itoa(1<<30))
		case "pids":
			set(root, "pids.max", "100")
		}
	}
}

// watcher repeatedly reads a cgroup's own counter.
type watcher struct {
	mu     sync.Mutex
	times  []int64
	counts []int64
}

func (w *watcher) add(at, count int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times, w.counts = append(w.times, at), append(w.counts, count)
}

// at returns the counter at a moment, interpolated between two readings.
func (w *watcher) at(moment int64) (float64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.times); i++ {
		if w.times[i-1] <= moment && moment <= w.times[i] {
			share := float64(moment-w.times[i-1]) / float64(w.times[i]-w.times[i-1])
			return float64(w.counts[i-1]) + share*float64(w.counts[i]-w.counts[i-1]), true
		}
	}
	return 0, false
}

// TestThisMachine does what a new user does: weir run, weir top cgroups, curl.
// It creates some cgroups, and every rate that weir serves for them must agree
// with the kernel's counter over the same window.
func TestThisMachine(t *testing.T) {
	roots, counter := hierarchies(t)
	top := fmt.Sprintf("/weir-e2e-%d", os.Getpid())
	bursty, outer, inner, idle := top+"-bursty", top+"-outer", top+"-outer/inner", top+"-idle"
	makeCgroup(t, roots, bursty, "230/700") // the period of the bursts does not divide the time between two reads
	makeCgroup(t, roots, outer, "idle")
	makeCgroup(t, roots, inner, "30/100")
	makeCgroup(t, roots, idle, "idle")

	limit(t, roots, bursty)

	watchers := map[string]*watcher{bursty: {}, outer: {}, inner: {}, idle: {}}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
			for path, w := range watchers {
				if n, err := counter(filepath.Join(roots[0], path)); err == nil {
					w.add(time.Now().UnixNano(), n)
				}
			}
		}
	})
	defer watching.Wait()
	defer close(stop)

	began := time.Now()
	p := commands.Start(t, "weir", "run", "--listen=127.0.0.1:0")
	url := p.Address(t)
	for _, path := range []string{"/healthz", "/livez"} {
		if _, err := get(url + path); err != nil {
			t.Error(err)
		}
	}
	commands.Eventually(t, 30*time.Second, func() error {
		_, err := get(url + "/readyz")
		return err
	})
	t.Logf("ready %.1f s after it was started", time.Since(began).Seconds())

	t.Run("top", func(t *testing.T) {
		out, err := exec.Command(commands.Path(t, "weir"), "top", "cgroups", "--server="+url, "--sort-by=cpu").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for path := range watchers {
			if !bytes.Contains(out, []byte(path)) {
				t.Errorf("weir top cgroups does not show %s:\n%s", path, out)
			}
		}
		t.Logf("weir top cgroups:\n%s", out)
	})

	t.Run("cpu agrees with the kernel", func(t *testing.T) {
		seen := map[string]map[int64]bool{}
		wrong := 0
		deadline := time.Now().Add(35 * time.Second)
		for time.Now().Before(deadline) {
			list, err := used(url, usage.Cgroups, "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // let the watchers read beyond the ends of the windows
			for _, item := range list.Items {
				w := watchers[string(item.Cgroup)]
				if w == nil || item.CPU == nil {
					continue
				}
				end := item.CPU.Time.UnixNano()
				length := int64(item.CPU.WindowSeconds * 1e9)
				a, okA := w.at(end - length)
				b, okB := w.at(end)
				if !okA || !okB || seen[string(item.Cgroup)][end] {
					continue
				}
				if seen[string(item.Cgroup)] == nil {
					seen[string(item.Cgroup)] = map[int64]bool{}
				}
				seen[string(item.Cgroup)][end] = true
				want := (b - a) / float64(length) * 1e9
				got := float64(item.CPU.Nanocores)
				// The tolerance is 5% and a tenth of a millicore. An idle process uses almost
				// nothing, and the two reads are at different moments.
				if diff := got - want; max(diff, -diff) > 0.05*want+1e5 {
					wrong++
					t.Errorf("%s over %.3f s: %.2fm, the kernel counted %.2fm", item.Cgroup, item.CPU.WindowSeconds, got/1e6, want/1e6)
				} else {
					t.Logf("%s over %.3f s: %.2fm, the kernel counted %.2fm", item.Cgroup, item.CPU.WindowSeconds, got/1e6, want/1e6)
				}
			}
		}
		for path := range watchers {
			if len(seen[path]) < 3 {
				t.Errorf("%s: %d rates could be compared, want at least 3", path, len(seen[path]))
			}
		}
	})

	t.Run("exposition", func(t *testing.T) {
		body, err := get(url + "/metrics/cluster?profile=all")
		if err != nil {
			t.Fatal(err)
		}
		promtool(t, body)
		count := families(body)
		have, absent, parts := 0, 0, 0
		for _, kind := range []metric.Kind{metric.Node, metric.System} {
			for id := range metric.NumMetrics {
				d := id.Describe()
				reason := unsupported(kind, d)
				switch n := count[d.PrometheusName(kind)]; {
				case !d.Kinds.Has(kind):
				case n > 0:
					have++
				case reason == "":
					t.Errorf("no series of %s", d.PrometheusName(kind))
				default:
					absent++
					t.Logf("%s is absent: %s", d.PrometheusName(kind), reason)
				}
			}
		}
		for name := range count {
			if strings.Contains(name, "_interface_") || strings.Contains(name, "_device_") {
				parts++
			}
		}
		if parts == 0 {
			t.Error("no series of interfaces or devices")
		}
		t.Logf("%d metrics at their levels are there, %d cannot be; %d families in all", have, absent, len(count))
	})

	t.Run("its own health", func(t *testing.T) {
		body, err := get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		promtool(t, body)
		if !bytes.Contains(body, []byte("weir_")) {
			t.Error("/metrics says nothing of weir")
		}
	})
}

// promtool passes an exposition to promtool check metrics.
func promtool(t *testing.T, exposition []byte) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not installed: apt-get install prometheus")
		}
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	check := exec.Command(path, "check", "metrics")
	check.Stdin = bytes.NewReader(exposition)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// unsupported says why this machine, without a cluster, does not have this
// metric for this kind. It is empty if the machine must have it.
func unsupported(k metric.Kind, d *metric.Descriptor) string {
	v1 := true
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		v1 = false
	}
	switch d.ID {
	case metric.CPULoad:
		return "it needs the kernel's taskstats"
	case metric.EphemeralStorageUsage, metric.EphemeralStorageNodeCapacity, metric.EphemeralStorageNodeAllocatable,
		metric.EphemeralStorageNodeReservation, metric.EphemeralStorageNodeUtilization:
		return "only a kubelet tells it"
	case metric.CPURequest, metric.MemoryRequest, metric.EphemeralStorageRequest, metric.AcceleratorRequest, metric.EphemeralStorageLimit,
		metric.CPUNodeReservation, metric.MemoryNodeReservation, metric.CPUNodeAllocatable, metric.MemoryNodeAllocatable:
		return "only an API server tells it"
	case metric.SwapLimit:
		return "no cgroup here has a swap limit"
	}
	switch {
	case d.Group == metric.Accelerator:
		return "there is no accelerator"
	case k == metric.Node && (d.ID == metric.CPULimit || d.ID == metric.MemoryLimit):
		return "a node has no limit of its own"
	case k == metric.System && v1 && strings.Contains(d.Name, "pressure"):
		return "cgroup v1 keeps pressure for the whole node only"
	case k == metric.System && v1 && strings.HasPrefix(d.Name, "disk/"):
		return "cgroup v1 counts no I/O of a cgroup without a device policy"
	case k == metric.System && d.ID == metric.MemorySwapAvailable:
		return "no cgroup here has a swap limit"
	}
	return ""
}
