package model

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// testCluster returns a namespace after fifteen minutes, and the names of its pods. Each pod has
// one container, and each node has 30 pods.
func testCluster(b *testing.B, pods int) (ModelReader, []string) {
	b.Helper()
	sink := memory.New(memory.Options{})
	var names []string
	for round := range 60 {
		for first := 0; first < pods; first += 30 {
			node := metric.NodeName(fmt.Sprintf("node-%03d", first/30))
			at := now.Add(time.Duration(round-60)*interval + time.Duration(first%1000)*time.Millisecond)
			batch := &metric.Batch{Source: "kubelet:resource", Node: node, Interval: interval, Resolution: time.Millisecond, Began: at, Ended: at}
			for i := first; i < min(first+30, pods); i++ {
				e := entity(metric.Pod, string(node), "team", fmt.Sprintf("web-6d4cf56db6-%05d", i), "")
				if round == 0 {
					names = append(names, string(e.Pod))
				}
				values := map[metric.ID]float64{metric.CPUUsageRate: 1e6 * float64(i+round), metric.MemoryWorkingSet: 1 << 27}
				use(batch, e, values)
				e.Kind, e.Name = metric.Container, "app"
				use(batch, e, values)
			}
			if err := sink.Write(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	return view{sink.Snapshot()}, names
}

// discard is a response writer that discards everything.
type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// BenchmarkPodList reads one metric of a whole namespace: what a dashboard asks for (fifteen
// minutes), and an old HPA (five).
func BenchmarkPodList(b *testing.B) {
	for _, pods := range []int{30, 1000} {
		v, names := testCluster(b, pods)
		h := handlerOf(v, nil)
		for _, c := range []struct{ name, query string }{
			{"15min", ""},
			{"5min", "?start=" + now.Add(-5*time.Minute).Format(time.RFC3339)},
		} {
			b.Run(fmt.Sprintf("%dpods/%s", pods, c.name), func(b *testing.B) {
				r := httptest.NewRequest(http.MethodGet, "/api/v1/model/namespaces/team/pod-list/"+strings.Join(names, ",")+"/metrics/cpu/usage_rate"+c.query, nil)
				w := &discard{header: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					h.ServeHTTP(w, r)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/pod")
				b.ReportMetric(float64(w.bytes)/float64(b.N*pods), "bytes/pod")
			})
		}
	}
}

// BenchmarkExport reads /api/v1/metric-export.
func BenchmarkExport(b *testing.B) {
	v, names := testCluster(b, 1000)
	h := handlerOf(v, nil)
	r := httptest.NewRequest(http.MethodGet, exportPath, nil)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(names)), "ns/pod")
}

// BenchmarkUsageList reads the list of a namespace, as the old HPA and kubectl top do.
func BenchmarkUsageList(b *testing.B) {
	v, names := testCluster(b, 1000)
	h := handlerOf(v, nil)
	r := httptest.NewRequest(http.MethodGet, usageRoot+"/namespaces/team/pods", nil)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(names)), "ns/pod")
}
