package replicas

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/internal/feature"
)

// A request for the Lease ends in half of the time in which a leader renews, so that a second one can
// follow.
func TestRequestsForTheLeaseEnd(t *testing.T) {
	const want, slack = leader.DefaultRenew / 2, 2 * time.Second
	ended := make(chan time.Duration, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		select {
		case <-r.Context().Done():
		case <-time.After(want + slack):
		}
		ended <- time.Since(began)
	}))
	defer server.Close()
	r := &Replicas{LeaseName: "weir"}
	r.Join(10250, func(name string) string {
		return map[string]string{"POD_NAME": "weir-1", "POD_NAMESPACE": "weir-system", "POD_IP": "10.0.0.1"}[name]
	})
	h := &feature.Host{Log: zap.NewNop(), Logr: logr.Discard(), Registry: prometheus.NewRegistry(), Cluster: &feature.Cluster{Options: informer.Options{Master: server.URL}}}
	if err := r.Open(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, p := range h.Parts {
		if p.Run != nil {
			running.Go(func() { _ = p.Run(ctx) })
		}
	}
	select {
	case took := <-ended:
		if took >= want+slack {
			t.Errorf("a request that is not answered has not ended after %v, want %v", took, want)
		}
	case <-time.After(time.Minute):
		t.Error("there was no request in a minute")
	}
	cancel()
	running.Wait()
	for _, p := range h.Parts {
		if p.Close != nil {
			_ = p.Close()
		}
	}
}
