package ui_test

import (
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/test/samplecluster"
)

// BenchmarkPage draws pages of 1,000 nodes and 30,000 pods.
func BenchmarkPage(b *testing.B) {
	h := page(samplecluster.Large(b, 1000))
	for _, q := range []string{"", "nodes", "namespaces", "node=node-0001", "namespace=team-01", "pod=team-01/app-0001-01-7c5ddbdf54-x2x4z", "missing", "sources", "q=app"} {
		b.Run("?"+q, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/ui/?"+q, nil))
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "page-bytes")
		})
	}
}
