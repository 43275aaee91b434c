package cluster

import (
	"fmt"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// BenchmarkWith changes one pod, in a cluster with all pods in one namespace, and in one with
// 30 pods in each namespace.
func BenchmarkWith(b *testing.B) {
	for _, pods := range []int{30_000, 150_000} {
		for _, in := range []int{pods, 30} {
			var c FactsChange
			for i := range pods {
				c.Pods = append(c.Pods, &Pod{
					PodRef: metric.PodRef{Namespace: metric.Namespace(fmt.Sprint("ns-", i/in)), Name: metric.PodName(fmt.Sprint("web-5d4f8c7b9-", i))},
					Node:   metric.NodeName(fmt.Sprint("node-", i%(pods/30))),
				})
			}
			var none *Facts
			f := none.With(c)
			b.Run(fmt.Sprintf("pods=%d/namespace=%d", pods, in), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					p := *c.Pods[i%pods]
					f = f.With(FactsChange{Pods: []*Pod{&p}})
					i += 7919
				}
			})
		}
	}
}
