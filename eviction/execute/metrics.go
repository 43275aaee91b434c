package execute

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-metrics/weir/eviction"
)

type metrics struct {
	outcomes  *prometheus.CounterVec
	stopped   prometheus.Gauge
	acting    prometheus.Histogram
	cleanup   prometheus.Histogram
	timeouts  prometheus.Counter
	collected *prometheus.CounterVec
	bytes     *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	auto := promauto.With(r)
	m := &metrics{
		outcomes:  auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_eviction_outcomes_total", Help: "Outcomes of evictions and collections that were decided, by signal and outcome."}, []string{"signal", "outcome"}),
		stopped:   auto.NewGauge(prometheus.GaugeOpts{Name: "weir_evictions_stopped", Help: "1 if so many nodes of the cluster evicted pods that this agent only observes, at its last attempt."}),
		acting:    auto.NewHistogram(prometheus.HistogramOpts{Name: "weir_eviction_request_duration_seconds", Help: "Time from taking up a decision until the API server had answered for its pod.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
		cleanup:   auto.NewHistogram(prometheus.HistogramOpts{Name: "weir_eviction_cleanup_duration_seconds", Help: "Time from the API server's answer until the pod was gone, or was waited for no longer.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)}),
		timeouts:  auto.NewCounter(prometheus.CounterOpts{Name: "weir_eviction_cleanup_unfinished_total", Help: "Evicted pods that were still there when they were waited for no longer."}),
		collected: auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_eviction_reclaimed_items_total", Help: "Containers and images removed before pods were evicted."}, []string{"collection"}),
		bytes:     auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_eviction_reclaimed_bytes_total", Help: "Bytes freed by removed containers and images, as reported by the runtime."}, []string{"collection"}),
	}
	// The counters start at 0, so that none is absent.
	names := []string{eviction.EmptyDirLimit, eviction.PodLimit, eviction.ContainerLimit}
	for _, s := range eviction.Signals() {
		names = append(names, string(s))
	}
	for _, name := range names {
		for _, d := range [...]Result{Evicted, Killed, Requested, Blocked, Stopped, Failed} {
			m.outcomes.WithLabelValues(name, string(d))
		}
	}
	for _, c := range []eviction.Collection{eviction.UnusedContainers, eviction.UnusedImages} {
		m.collected.WithLabelValues(string(c))
		m.bytes.WithLabelValues(string(c))
	}
	return m
}

func (m *metrics) countOutcome(o *ActionOutcome) {
	m.outcomes.WithLabelValues(o.Signal, string(o.Result)).Inc()
}

func (m *metrics) observeRemoval(o *ActionOutcome) {
	m.cleanup.Observe(o.Waited.Seconds())
	if !o.Removed {
		m.timeouts.Inc()
	}
}

func (m *metrics) countFreed(c eviction.Collection, f Freed) {
	m.collected.WithLabelValues(string(c)).Add(float64(max(0, f.Items)))
	m.bytes.WithLabelValues(string(c)).Add(float64(max(0, f.Bytes)))
}
