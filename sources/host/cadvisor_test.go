//go:build linux

package host

import (
	"testing"

	"github.com/google/cadvisor/lib/model"
)

// readCAdvisor reads the cgroups of h.
func readCAdvisor(t testing.TB, h *Host) map[string]*model.ContainerInfo {
	t.Helper()
	now, err := h.ReadCAdvisor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := now.GetRequestedContainersInfo("/", model.RequestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCAdvisorEqualsKernel compares what ReadCAdvisor returns with the kernel's files.
func TestCAdvisorEqualsKernel(t *testing.T) {
	roots := cgroupRoot(t, "cpuacct", "cpu", "memory", "pids")
	name := testName(t)
	dirs := makeCgroup(t, name, roots...)
	b := startBurner(t, nil, dirs...)
	b.do("burn 30ms")
	h := newHost(t, Options{Node: "n1", Prefixes: []string{"/" + name}})
	before := kernelCPUTime(t, dirs[0])
	all := readCAdvisor(t, h)
	after := kernelCPUTime(t, dirs[0])
	c := all["/"+name]
	if c == nil || len(all) != 2 {
		t.Fatalf("got %d cgroups, want / and /%s", len(all), name)
	}
	s := c.Stats[0]
	if got := s.Cpu.Usage.Total; got < before || got > after {
		t.Errorf("CPU time = %d, want between %d and %d", got, before, after)
	}
	pairs := map[string][2]uint64{
		"memory":    {s.Memory.Usage, mustReadUint(t, dirs[2], version().MemoryUsage)},
		"threads":   {s.Processes.ThreadsCurrent, mustReadUint(t, dirs[3], "pids.current")},
		"processes": {s.Processes.ProcessCount, 1},
	}
	if version2Mounted() {
		pairs["peak memory"] = [2]uint64{s.Memory.MaxUsage, mustReadUint(t, dirs[2], "memory.peak")}
	} else {
		pairs["peak memory"] = [2]uint64{s.Memory.MaxUsage, mustReadUint(t, dirs[2], "memory.max_usage_in_bytes")}
		pairs["kernel"] = [2]uint64{s.Memory.KernelUsage, mustReadUint(t, dirs[2], "memory.kmem.usage_in_bytes")}
		pairs["shares"] = [2]uint64{c.Spec.Cpu.Limit, mustReadUint(t, dirs[1], "cpu.shares")}
		pairs["period"] = [2]uint64{c.Spec.Cpu.Period, mustReadUint(t, dirs[1], "cpu.cfs_period_us")}
	}
	for what, pair := range pairs {
		if pair[0] != pair[1] {
			t.Errorf("%s = %d, the kernel has %d", what, pair[0], pair[1])
		}
	}
	root := all["/"].Stats[0]
	if len(root.Filesystem) == 0 || root.Processes.ThreadsCurrent == 0 || root.Network == nil || all["/"].Spec.Memory.Limit == 0 {
		t.Errorf("the root has %d file systems, %d threads, network %v and a limit of %d",
			len(root.Filesystem), root.Processes.ThreadsCurrent, root.Network, all["/"].Spec.Memory.Limit)
	}
}

// TestCAdvisorAfterClose checks that a closed Host returns nothing.
func TestCAdvisorAfterClose(t *testing.T) {
	h := newHost(t, Options{})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := h.ReadCAdvisor(t.Context()); now != nil || err == nil {
		t.Errorf("got %v, %v; want an error only", now, err)
	}
}
