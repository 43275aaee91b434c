package kubelet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/api/kubelet"
	"github.com/weir-metrics/weir/internal/shapes"
	"github.com/weir-metrics/weir/metric"
)

// BenchmarkServe answers for nodes of several sizes.
func BenchmarkServe(b *testing.B) {
	for _, shape := range shapes.Nodes {
		round := shape.Batch()
		shape.Round(round, 1)
		for i := range round.Samples { // by which they are told in /metrics/cadvisor
			round.Samples[i].Instance.Path = metric.CgroupPath(fmt.Sprint("/kubepods/", i))
		}
		newest := kubelet.NewNewest(round.Source)
		if err := newest.Write(b.Context(), round); err != nil {
			b.Fatal(err)
		}
		facts := shape.Facts()
		h := kubelet.NewHandler(kubelet.Options{Newest: newest, Facts: func() *metric.Facts { return facts }})
		for _, path := range kubelet.Paths() {
			b.Run(shape.String()+path, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusOK {
						b.Fatalf("%d %s", w.Code, w.Body)
					}
				}
			})
		}
		b.Run(shape.String()+"/keep", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := newest.Write(b.Context(), round); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
