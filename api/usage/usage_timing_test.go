package usage

import (
	"fmt"
	"io"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

func BenchmarkList(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		v := &fixed{}
		for n := range nodes {
			for p := range 30 {
				s := measured(pod(fmt.Sprint("n", n), "shop", fmt.Sprint("web-", n, "-", p)), 1e8, 1<<27)
				s.Values.Set(metric.MemoryRSS, 1<<26)
				s.Values.Set(metric.NetworkRxRate, 1234.5)
				v.samples = append(v.samples, s)
			}
		}
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", nodes, len(v.samples)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := writeList(io.Discard, Pods, Query{}, v, nil, marks{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(v.samples)), "ns/pod")
		})
	}
}
