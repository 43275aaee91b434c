package sinks_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/api/clustermetrics"
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
		if err := m.Write(context.Background(), nodeBatch(n)); err != nil {
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
