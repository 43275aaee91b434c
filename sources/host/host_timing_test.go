//go:build linux

package host

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// BenchmarkRead reads cgroups that are in every hierarchy, like those of a kubelet. The first case
// is the cost of the node alone.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{0, 10, 100} {
		b.Run(fmt.Sprintf("cgroups=%d", n), func(b *testing.B) {
			roots := cgroupRoot(b, "cpu", "cpuacct", "memory", "pids", "blkio")
			name := fmt.Sprintf("%s-%d", testName(b)[:20], n)
			for i := range n {
				makeCgroup(b, fmt.Sprintf("%s/c%d", name, i), roots...)
			}
			h := newHost(b, Options{Prefixes: []string{"/" + name}})
			var batch metric.Batch
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				if err := h.Read(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadCAdvisor reads the same cgroups for /metrics/cadvisor.
func BenchmarkReadCAdvisor(b *testing.B) {
	roots := cgroupRoot(b, "cpu", "cpuacct", "memory", "pids", "blkio")
	name := testName(b)
	for i := range 100 {
		makeCgroup(b, fmt.Sprintf("%s/c%d", name, i), roots...)
	}
	h := newHost(b, Options{Prefixes: []string{"/" + name}})
	b.ReportAllocs()
	for b.Loop() {
		readCAdvisor(b, h)
	}
}

// BenchmarkReadCounter reads the file from which rates are computed.
func BenchmarkReadCounter(b *testing.B) {
	dir := cgroupRoot(b, "cpuacct")[0]
	for b.Loop() {
		if _, err := readCPUTime(dir, false); err != nil {
			b.Fatal(err)
		}
	}
}
