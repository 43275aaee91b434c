package resourcemetrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// freshness counts how old the numbers are that are served.
type freshness struct{ nodes, pods prometheus.Observer }

// newFreshness registers the histogram with r, which may be nil.
func newFreshness(r prometheus.Registerer) (freshness, error) {
	ages := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_api_metric_freshness_seconds",
		Help: "Age of the numbers that metrics.k8s.io served, by resource, at the time of the answer.",
		// From a second to five minutes, as metrics-server has them.
		Buckets: prometheus.ExponentialBuckets(1, 1.364, 20),
	}, []string{"resource"})
	if r != nil {
		if err := r.Register(ages); err != nil {
			return freshness{}, fmt.Errorf("register weir_api_metric_freshness_seconds: %w", err)
		}
	}
	return freshness{nodes: ages.WithLabelValues("nodes"), pods: ages.WithLabelValues("pods")}, nil
}

// tell notes how old the numbers of r are that are being served, and returns the time.
func (a *api) tell(ages prometheus.Observer, r *readings) (now time.Time) {
	now = a.options.Now()
	for i := range r.items {
		ages.Observe(time.Duration(now.UnixNano() - r.items[i].over.End).Seconds())
	}
	return now
}
