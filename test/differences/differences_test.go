package differences_test

import (
	"testing"

	"github.com/weir-metrics/weir/test/differences"
)

func TestDifferenceIs(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"machine_*", "machine_cpu_cores", true},
		{"machine_*", "a_machine_cpu_cores", false},
		{"container_threads", "container_threads", true},
		{"container_threads", "container_threads_max", false},
		{"*.psi.*", "pods.containers.cpu.psi.some.total", true},
		{"*.psi.*", "pods.containers.cpu.time", false},
		{"*.pageFaults", "pods.memory.pageFaults", true},
		{"*.pageFaults", "pods.memory.majorPageFaults", false},
		{"node.runtime.*.usedBytes", "node.runtime.imageFs.usedBytes", true},
		{"node.runtime.*.usedBytes", "node.runtime.imageFs.inodesUsed", false},
		{"node.runtime.*.usedBytes", "node.fs.usedBytes", false},
	} {
		if d := (differences.Difference{Name: c.pattern}); d.Is(c.name) != c.want {
			t.Errorf("%q is about %q: got %t, want %t", c.pattern, c.name, !c.want, c.want)
		}
	}
}
