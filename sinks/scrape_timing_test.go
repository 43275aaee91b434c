package sinks_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// discard is a ResponseWriter that stores nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkScrape scrapes a memory sink with 1,000 nodes.
func BenchmarkScrape(b *testing.B) {
	m := memory.New(memory.Options{})
	for n := range 1000 {
		node := metric.NodeName(fmt.Sprintf("node-%04d", n))
		batch := &metric.Batch{Source: "s", Node: node, Ended: ended, Interval: 15 * time.Second, Resolution: time.Millisecond}
		add := func(e metric.Entity) {
			s := batch.Add(e)
			for _, g := range []metric.Group{metric.CPU, metric.Memory, metric.Spec} {
				s.Times[g], s.Reasons[g] = ended.UnixNano(), metric.Measured
			}
			for i, id := range []metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit, metric.Uptime} {
				s.Values.Set(id, 1e8/float64(1+i))
			}
		}
		add(metric.Entity{Kind: metric.Node, Node: node})
		for p := range 30 {
			e := metric.Entity{Kind: metric.Pod, Node: node, Namespace: metric.Namespace(fmt.Sprintf("team-%02d", p%10)), Pod: metric.PodName(fmt.Sprintf("app-%04d-%03d-7c5ddbdf54-x2x4z", n, p))}
			add(e)
			for c := range 2 {
				e.Kind, e.Name = metric.Container, fmt.Sprintf("container-%d", c)
				add(e)
			}
		}
		if err := m.Write(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	h := clustermetrics.New(func() clustermetrics.MetricsReader { return m.Snapshot() }, clustermetrics.Options{})
	r := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}
