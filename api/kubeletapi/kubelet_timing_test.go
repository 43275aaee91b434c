package kubeletapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/samplenodes"
)

// BenchmarkServe answers for nodes of several sizes.
func BenchmarkServe(b *testing.B) {
	for _, shape := range samplenodes.Nodes {
		round := shape.Batch()
		shape.Round(round, 1)
		for i := range round.Samples { // /metrics/cadvisor identifies containers by their path
			round.Samples[i].Instance.Path = metric.CgroupPath(fmt.Sprint("/kubepods/", i))
		}
		newest := kubeletapi.NewNewest(round.Source)
		if err := newest.Write(b.Context(), round); err != nil {
			b.Fatal(err)
		}
		facts := shape.Facts()
		o := kubeletapi.Options{Newest: newest, Facts: func() *cluster.Facts { return facts }}
		setCAdvisor(&o, round)
		h := kubeletapi.NewHandler(o)
		for _, path := range kubeletapi.Paths() {
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
