package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// What can fail.
const (
	// What can fail.
	failedScale   = "Scale"   // the target's scale cannot be read
	failedMetrics = "Metrics" // no count; or some metrics failed; or the owner of the pods is unknown
	failedWrite   = "Write"   // the scale cannot be written
	failedStatus  = "Status"  // the status cannot be written
	failedPanic   = "Panic"   // a bug in weir
)

type metrics struct {
	decisions    *prometheus.CounterVec
	rescales     *prometheus.CounterVec
	errors       *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	statusWrites prometheus.Counter
	agreements   *prometheus.CounterVec
	differences  *prometheus.CounterVec
	undecided    *prometheus.CounterVec
}

func newMetrics(c *Controller) *metrics {
	auto := promauto.With(c.opts.Registerer)
	m := &metrics{
		decisions:    auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_decisions_total", Help: "Decisions made, by kind of object and by what they ask for: up, down, hold, or none."}, []string{"kind", "decision"}),
		rescales:     auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_rescales_total", Help: "Changes of targets written, by direction."}, []string{"direction"}),
		errors:       auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_errors_total", Help: "What failed, by what it was: reading a Scale, Metrics, a Write of a scale, or of a Status; or a Panic of weir's."}, []string{"reason"}),
		duration:     auto.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_autoscaler_sync_duration_seconds", Help: "Time one decision took, with reading the scale and writing it.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, []string{"kind"}),
		statusWrites: auto.NewCounter(prometheus.CounterOpts{Name: "weir_autoscaler_status_writes_total", Help: "Statuses of Autoscalers written."}),
		agreements:   auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_agreements_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that agree with what was done, by whether that was a rescale or a hold."}, []string{"decision"}),
		differences:  auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_differences_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that differ from what was done, by how."}, []string{"reason"}),
		undecided:    auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_undecided_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that cannot be compared, by why."}, []string{"reason"}),
	}
	// What never happened is 0, not absent.
	for _, reason := range []string{failedScale, failedMetrics, failedWrite, failedStatus, failedPanic} {
		m.errors.WithLabelValues(reason)
	}
	for _, direction := range []string{"up", "down"} {
		m.rescales.WithLabelValues(direction)
	}
	if c.opts.Shadow {
		for _, decision := range []string{"rescale", "hold"} {
			m.agreements.WithLabelValues(decision)
		}
		for _, reason := range []string{reasonNoDecision, reasonNoChange, reasonOpposite, reasonCount, reasonNotFollowed} {
			m.differences.WithLabelValues(reason)
		}
		for _, reason := range []string{reasonWarmingUp, reasonMissed} {
			m.undecided.WithLabelValues(reason)
		}
	}
	if c.opts.Registerer != nil {
		c.opts.Registerer.MustRegister(collector{c})
	}
	return m
}

func (m *metrics) observeDuration(kind string, d time.Duration) {
	m.duration.WithLabelValues(kind).Observe(d.Seconds())
}

func (m *metrics) countError(reason string) { m.errors.WithLabelValues(reason).Inc() }

func (m *metrics) countDecision(kind string, l *targetState, d *autoscaler.Decision, write error, wrote bool) {
	decision := "hold"
	switch {
	case len(d.Steps) == 0:
		decision = "none"
	case d.Desired > d.Current:
		decision = "up"
	case d.Desired < d.Current:
		decision = "down"
	}
	m.decisions.WithLabelValues(kind, decision).Inc()
	switch {
	case wrote:
		m.rescales.WithLabelValues(decision).Inc()
	case write != nil:
		m.countError(failedWrite)
	}
	switch {
	case l.ScaleErr != nil:
		m.countError(failedScale)
	case d.Err != nil:
		m.countError(failedMetrics)
	}
}

func (m *metrics) countComparisons(found []comparison, holds int) {
	if holds > 0 {
		m.agreements.WithLabelValues("hold").Add(float64(holds))
	}
	for _, f := range found {
		switch f.Result {
		case agreed:
			m.agreements.WithLabelValues("rescale").Inc()
		case differed:
			m.differences.WithLabelValues(f.Reason).Inc()
		case undecided:
			m.undecided.WithLabelValues(f.Reason).Inc()
		}
	}
}

// collector exports gauges of the current state.
type collector struct{ c *Controller }

// descriptions returns the descriptions of the gauges.
func (collector) descriptions() (watched, conflicts, queue, replicas, desired *prometheus.Desc) {
	object := []string{"kind", "namespace", "name"}
	return prometheus.NewDesc("weir_autoscaler_watched", "Objects that are watched, by kind.", []string{"kind"}, nil),
		prometheus.NewDesc("weir_autoscaler_conflicts", "Active Autoscalers whose target is another's.", nil, nil),
		prometheus.NewDesc("weir_autoscaler_queue_length", "Objects that wait for a worker.", nil, nil),
		prometheus.NewDesc("weir_autoscaler_current_replicas", "Replicas the target asked for when last decided on.", object, nil),
		prometheus.NewDesc("weir_autoscaler_desired_replicas", "Replicas the last decision asks for.", object, nil)
}

// Describe is part of prometheus.Collector.
func (k collector) Describe(out chan<- *prometheus.Desc) {
	watched, conflicts, queue, replicas, desired := k.descriptions()
	for _, d := range []*prometheus.Desc{watched, conflicts, queue, replicas, desired} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (k collector) Collect(out chan<- prometheus.Metric) {
	watched, conflicts, queue, replicas, desired := k.descriptions()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, kind := range []string{v1alpha1.Kind, hpaKind} {
		if kind == hpaKind || k.c.opts.Act {
			gauge(watched, float64(k.c.catalog.countKind(kind)), kind)
		}
	}
	waiting := 0
	if q := k.c.queue.Load(); q != nil {
		waiting = (*q).Len()
	}
	gauge(queue, float64(waiting))

	k.c.mu.Lock()
	last := make(map[objectKey]*decisionRecord, len(k.c.mu.entries))
	for name, e := range k.c.mu.entries {
		if t := e.lastDecision.Load(); t != nil {
			last[name] = t
		}
	}
	k.c.mu.Unlock()
	refused := 0
	for name, t := range last {
		if t.conflict != "" {
			refused++
		}
		if len(t.decision.Steps) > 0 {
			gauge(replicas, float64(t.decision.Current), name.kind, name.namespace, name.name)
			gauge(desired, float64(t.decision.Desired), name.kind, name.namespace, name.name)
		}
	}
	gauge(conflicts, float64(refused))
}
