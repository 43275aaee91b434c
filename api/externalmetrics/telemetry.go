package externalmetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
)

// The results of a query, as values of a label.
const (
	resultOK       = "ok"
	resultEmpty    = "empty"    // no series
	resultRefused  = "refused"  // a value that is not a number
	resultTimeout  = "timeout"  // the slot or the answer came too late, or the request ended
	resultError    = "error"    // Prometheus could not be reached or returned an error
	resultSelector = "selector" // not sent: the caller's selector has no meaning
)

// telemetry holds the metrics of a Provider about itself.
type telemetry struct {
	queries  *prometheus.CounterVec // by metric and result
	duration prometheus.Histogram
	running  prometheus.Gauge
	rules    prometheus.Gauge
	valid    prometheus.Gauge
	read     prometheus.Gauge
	reloads  *prometheus.CounterVec // by result
}

func newTelemetry(reg prometheus.Registerer) *telemetry {
	auto := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &telemetry{
		queries: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_external_queries_total",
			Help: "Requests for the metrics of rules, by rule and by what became of them.",
		}, []string{"metric", "result"}),
		duration: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_external_query_duration_seconds",
			Help:    "Time a query of a rule took, waiting for its turn included. Requests that share an answer are one query.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9), // 1 ms to 65 s
		}),
		running: gauge("weir_external_queries_in_flight", "Queries of rules that run now."),
		rules:   gauge("weir_external_rules", "Rules for custom and external metrics in use."),
		valid:   gauge("weir_external_rules_valid", "1 if the file of rules is in use as it stands, 0 if it has mistakes."),
		read:    gauge("weir_external_rules_changed_timestamp_seconds", "When the rules in use were read."),
		reloads: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_external_rules_reloads_total",
			Help: "Times a changed file of rules was read, by result: ok or error.",
		}, []string{"result"}),
	}
}

// forget deletes the counts of rules that are no longer there.
func (t *telemetry) forget(before, now *rules.Rules) {
	inUse := map[string]bool{}
	for i := range now.Metrics {
		inUse[now.Metrics[i].ID()] = true
	}
	for i := range before.Metrics {
		if id := before.Metrics[i].ID(); !inUse[id] {
			t.queries.DeletePartialMatch(map[string]string{"metric": id})
		}
	}
}
