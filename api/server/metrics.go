package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // requests to the API server, counted
)

// metricsHandler serves own beside what Kubernetes' libraries count about
// themselves, requests to this API among it.
func metricsHandler(own prometheus.Gatherer) http.Handler {
	apimetrics.Register()
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return gather(own, legacyregistry.DefaultGatherer) })
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// gather returns the families of first, and those of second that first has not:
// both may tell of the process and of Go's runtime.
func gather(first, second prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	if first == nil {
		return second.Gather()
	}
	families, err := first.Gather()
	has := make(map[string]bool, len(families))
	for _, f := range families {
		has[f.GetName()] = true
	}
	rest, restErr := second.Gather()
	for _, f := range rest {
		if !has[f.GetName()] {
			families = append(families, f)
		}
	}
	if err == nil {
		err = restErr
	}
	return families, err
}
