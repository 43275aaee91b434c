package server_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/api/server"
)

// BenchmarkRequest measures the server around a handler that does nothing: authentication, two
// access reviews from the cache, the library's filters, TLS.
func BenchmarkRequest(b *testing.B) {
	c := newCluster(b)
	token := c.user("u", "list pods.metrics.k8s.io", "list nodes.metrics.k8s.io")
	r := start(b, c, func(o *server.Options, _ *server.Config) {
		fresh := server.NewOptions()
		o.Authorization.AllowCacheTTL, o.Authentication.CacheTTL = fresh.Authorization.AllowCacheTTL, fresh.Authentication.CacheTTL
	}, model)
	for name, h2 := range map[string]bool{"http1": false, "http2": true} {
		b.Run(name, func(b *testing.B) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: h2}
			defer transport.CloseIdleConnections()
			request := httptest.NewRequest(http.MethodGet, "https://"+r.Address()+"/metrics/cluster", nil)
			request.RequestURI = ""
			bearer(token)(request, nil)
			b.ReportAllocs()
			for b.Loop() {
				response, err := transport.RoundTrip(request)
				if err != nil {
					b.Fatal(err)
				}
				if response.StatusCode != http.StatusOK {
					b.Fatalf("answered %d", response.StatusCode)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
}
