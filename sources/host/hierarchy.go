//go:build linux

package host

import (
	"fmt"
	"slices"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/opencontainers/cgroups"
)

// controller is a set of cgroup controllers whose files are read together.
type controller uint8

const (
	cpuacct controller = 1 << iota
	cpu
	memory
	pids
	blkio
)

// controllers lists them in the order of preference for a cgroup's home; see
// tree. On version 2 all have one home, and blkio is called io.
var controllers = [...]struct {
	bit    controller
	v1, v2 string
}{
	{cpuacct, "cpuacct", "cpu"},
	{cpu, "cpu", "cpu"},
	{memory, "memory", "memory"},
	{pids, "pids", "pids"},
	{blkio, "blkio", "io"},
}

// mounts is where the cgroup hierarchies are.
type mounts struct {
	v2 bool
	// dirs is cAdvisor's map: controller to mount point; on version 2 the only
	// key is empty.
	dirs map[string]string
	// roots are the distinct hierarchies, the preferred home first.
	roots []hierarchy
}

// hierarchy is one mounted tree of cgroups.
type hierarchy struct {
	dir  string
	bits controller // that it holds; on version 2 all that a cgroup may have
}

// listed are the metrics whose hierarchies cAdvisor should look for.
var listed = container.MetricSet{
	container.CpuUsageMetrics:    {},
	container.MemoryUsageMetrics: {},
	container.DiskIOMetrics:      {},
	container.ProcessMetrics:     {},
}

// findMounts asks cAdvisor where the hierarchies are.
func findMounts() (mounts, error) {
	dirs, err := libcontainer.GetCgroupSubsystems(listed)
	if err != nil {
		return mounts{}, fmt.Errorf("find cgroup mounts: %w", err)
	}
	m := mounts{v2: cgroups.IsCgroup2UnifiedMode(), dirs: dirs}
	if m.v2 {
		m.roots = []hierarchy{{dir: dirs[""], bits: cpuacct | cpu | memory | pids | blkio}}
		return m, nil
	}
	delete(dirs, "devices") // counts nothing
	for _, c := range controllers {
		dir, ok := dirs[c.v1]
		if !ok {
			continue
		}
		if i := slices.IndexFunc(m.roots, func(h hierarchy) bool { return h.dir == dir }); i >= 0 {
			m.roots[i].bits |= c.bit // mounted together
			continue
		}
		m.roots = append(m.roots, hierarchy{dir: dir, bits: c.bit})
	}
	if len(m.roots) == 0 {
		return mounts{}, fmt.Errorf("find cgroup mounts: no hierarchy of cpuacct, cpu, memory, pids or blkio is mounted")
	}
	return m, nil
}

// gaps says which controllers this machine lacks.
func (m *mounts) gaps() []string {
	var missing []string
	if m.v2 {
		here := enabled(m.dirs[""])
		for _, c := range controllers[1:] {
			if here&c.bit == 0 {
				missing = append(missing, fmt.Sprintf("cgroup v2: the %s controller is not available here", c.v2))
			}
		}
		return missing
	}
	for _, c := range controllers {
		if m.dirs[c.v1] == "" {
			missing = append(missing, fmt.Sprintf("cgroup v1: the %s controller is not mounted", c.v1))
		}
	}
	return append(missing, "cgroup v1: the kernel keeps pressure (PSI) for the whole node only")
}
