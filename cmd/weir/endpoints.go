package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/serve"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
)

// endpoints returns everything a weir serves.
func endpoints(p *plan, s *sinks, registry *prometheus.Registry, m *manager.Manager, facts func() *metric.Facts) *serve.Mux {
	mux := serve.NewMux("weir")
	mux.HandleHealth(serve.Check{Name: "pipeline", Waits: func() []string {
		if err := m.Ready(); err != nil {
			return []string{err.Error()}
		}
		return nil
	}})
	mux.Handle("/metrics", "weir's own health, for Prometheus",
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.Handle("/metrics/cluster", "what everything uses, for Prometheus", s.prometheus)
	mux.Handle(usage.Path, "", usage.NewHandler(usage.Options{View: s.view, Facts: facts}))
	for _, r := range usage.Resources() {
		mux.List(usage.Path+string(r), "what "+string(r)+" use, as JSON")
	}
	if p.Pprof {
		mux.HandlePprof()
	}
	return mux
}
