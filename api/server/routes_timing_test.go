package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/weir-metrics/weir/api/rights"
)

// BenchmarkFind measures the lookup for a request with one of weir's own paths, and for another
// one.
func BenchmarkFind(b *testing.B) {
	routes := newRoutes(serializer.NewCodecFactory(newScheme()))
	routes.handle("/api/v1/model/namespaces/{namespace}/{rest...}", func(r *http.Request) []rights.Right {
		return []rights.Right{rights.ListPods(r.PathValue("namespace"))}
	}, http.NotFoundHandler())
	h := routes.matchRoute(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, path := range map[string]string{
		"own":   "/api/v1/model/namespaces/web/pods/p/metrics/cpu/usage_rate",
		"other": "/apis/metrics.k8s.io/v1beta1/namespaces/web/pods",
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(nil, r)
			}
		})
	}
}
