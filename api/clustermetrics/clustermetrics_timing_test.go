package clustermetrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// usual is a cluster with the metrics of /metrics/resource and of pod specs.
func usual(nodes, pods, containers int) *samples {
	all := new(samples)
	values := map[metric.ID]float64{
		metric.CPUUsage: 123456789012345, metric.CPUUsageRate: 1e8 / 3.0, metric.MemoryWorkingSet: 123 << 20,
		metric.CPURequest: 1e8, metric.CPULimit: 5e8, metric.MemoryRequest: 1 << 27, metric.MemoryLimit: 1 << 29, metric.Uptime: 3600e9,
	}
	for n := range nodes {
		e := metric.Entity{Kind: metric.Node, Node: metric.NodeName(fmt.Sprintf("node-%04d", n))}
		all.add(e, values)
		for p := range pods {
			e.Kind, e.Name = metric.Pod, ""
			e.Namespace = metric.Namespace(fmt.Sprintf("team-%02d", p%10))
			e.Pod = metric.PodName(fmt.Sprintf("app-%04d-%03d-7c5ddbdf54-x2x4z", n, p))
			all.add(e, values)
			for c := range containers {
				e.Kind, e.Name = metric.Container, fmt.Sprintf("container-%d", c)
				all.add(e, values)
			}
		}
	}
	return all
}

// discard is a ResponseWriter that only counts bytes.
type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return io.Discard.Write(p) }

func BenchmarkScrape(b *testing.B) {
	for _, s := range [][3]int{{10, 30, 2}, {1000, 30, 2}} {
		view := usual(s[0], s[1], s[2])
		for _, encoding := range []string{"", "gzip"} {
			b.Run(fmt.Sprintf("%dnodes×%dpods×%d/%s", s[0], s[1], s[2], encoding), func(b *testing.B) {
				h := handler(view, Options{})
				r := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil)
				r.Header.Set("Accept-Encoding", encoding)
				b.ReportAllocs()
				var w discard
				for b.Loop() {
					w = discard{header: http.Header{}}
					h.ServeHTTP(&w, r)
				}
				b.ReportMetric(float64(w.bytes)/(1<<20), "MiB")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(*view)*8), "ns/series")
			})
		}
	}
}
