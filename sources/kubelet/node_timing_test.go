package kubelet

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/capture"
)

// BenchmarkRead measures one read of a node over a kept connection, including the server's part.
func BenchmarkRead(b *testing.B) {
	plain := capture.Read(b, "01-steady/00/resource.prom")
	packed := gzipped(b, plain)
	for name, body := range map[string][]byte{"gzip": packed, "plain": plain} {
		b.Run(name, func(b *testing.B) {
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if name == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
				}
				w.Write(body)
			}))
			defer srv.Close()
			s, err := New(Options{Insecure: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			src := s.Open(Target{Node: "node1", Address: srv.Listener.Addr().String()})
			var batch metric.Batch
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				if err := src.Read(b.Context(), &batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
