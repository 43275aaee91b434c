package guard

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/eviction/notify"
)

// metrics counts rounds, and exports the figures of the last round.
type metrics struct {
	guard   *Guard
	rounds  *prometheus.CounterVec
	polls   prometheus.Counter
	reads   prometheus.Histogram
	latency prometheus.Histogram

	available, capacity, stall, limit, distance, condition *prometheus.Desc
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_eviction_"+name, help, labels, nil)
}

// The values of the label source of weir_eviction_rounds_total.
const (
	byTimer     = "timer"
	byThreshold = "threshold"
	byTrigger   = "trigger"
	byPoll      = "poll"
)

func newMetrics(r prometheus.Registerer, g *Guard) *metrics {
	auto := promauto.With(r)
	m := &metrics{
		guard:   g,
		rounds:  auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_eviction_rounds_total", Help: "Rounds of reading the node and deciding, by what started them."}, []string{"source"}),
		polls:   auto.NewCounter(prometheus.CounterOpts{Name: "weir_eviction_memory_polls_total", Help: "Reads of a working set between rounds, at the pace of what could cross a threshold."}),
		reads:   auto.NewHistogram(prometheus.HistogramOpts{Name: "weir_eviction_read_seconds", Help: "Time a fresh read of the node took.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15)}),
		latency: auto.NewHistogram(prometheus.HistogramOpts{Name: "weir_eviction_decision_latency_seconds", Help: "Time from a notice to the decision.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18)}),

		available: newDesc("signal_available", "Available amount of an eviction signal, in bytes, inodes or process ids.", "signal"),
		capacity:  newDesc("signal_capacity", "Capacity of an eviction signal, in bytes, inodes or process ids.", "signal"),
		stall:     newDesc("signal_stall_percent", "Share of the time in which tasks stall, in percent, for pressure signals with a threshold.", "signal"),
		limit:     newDesc("signal_threshold", "Threshold of a signal at which pods are evicted, in its unit.", "signal", "kind"),
		distance:  newDesc("signal_distance", "Distance of a signal from its threshold, in its unit; zero or less if the threshold is met.", "signal", "kind"),
		condition: newDesc("condition", "Whether the node is under this pressure by this agent's thresholds; the node's own conditions may differ.", "condition"),
	}
	for _, s := range [...]string{byTimer, byThreshold, byTrigger, byPoll} {
		m.rounds.WithLabelValues(s)
	}
	if r != nil {
		r.MustRegister(m)
	}
	return m
}

func (m *metrics) observeRound(r *Round) {
	source := byTimer
	switch r.Notice.Sources[0].Watch.(type) {
	case notify.MemoryPoll:
		source = byThreshold
	case notify.StallTrigger:
		source = byTrigger
	case notify.Poll:
		source = byPoll
	}
	m.rounds.WithLabelValues(source).Inc()
	if source != byTimer {
		m.latency.Observe(max(0, r.DecidedAt.Sub(r.Notice.At)).Seconds())
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{m.available, m.capacity, m.stall, m.limit, m.distance, m.condition} {
		to <- d
	}
}

// Collect implements prometheus.Collector. A figure that is missing or in doubt has no sample.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	r := m.guard.Last()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	d := r.Decision
	for i := range d.Observations {
		o := &d.Observations[i]
		switch {
		case o.Doubt != "":
		case o.Signal.Pressure():
			gauge(m.stall, o.Stall, string(o.Signal))
		default:
			gauge(m.available, float64(o.Available), string(o.Signal))
			gauge(m.capacity, float64(o.Capacity), string(o.Signal))
		}
	}
	seen := map[[2]string]bool{} // for the first of two soft thresholds of a signal only
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		left, ok := t.Distance()
		labels := [2]string{string(t.Threshold.Signal), t.Threshold.Kind()}
		if !ok || t.Observation.Doubt != "" || seen[labels] {
			continue
		}
		seen[labels] = true
		at := t.Threshold.Value.Stall
		if !t.Threshold.Signal.Pressure() {
			at = t.Limit.AsApproximateFloat64()
		}
		gauge(m.limit, at, labels[:]...)
		gauge(m.distance, left, labels[:]...)
	}
	condition := func(kind corev1.NodeConditionType, reported bool) {
		value := 0.0
		if reported {
			value = 1
		}
		gauge(m.condition, value, string(kind))
	}
	for _, c := range d.Conditions {
		condition(c.Type, c.Reported)
	}
	for _, c := range d.Contention {
		condition(c.Condition, c.Reported)
	}
}
