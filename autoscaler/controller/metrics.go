package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// The labels of failures.
const (
	failedScale   = "Scale"   // the target's scale cannot be read
	failedMetrics = "Metrics" // there is no count, some metrics failed, or the owner of the pods is not known
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
		errors:       auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_errors_total", Help: "Failures, by kind: Scale (a read of a scale), Metrics, Write (of a scale), Status (a write of a status), Panic."}, []string{"reason"}),
		duration:     auto.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_autoscaler_sync_duration_seconds", Help: "Time one decision took, with reading the scale and writing it.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, []string{"kind"}),
		statusWrites: auto.NewCounter(prometheus.CounterOpts{Name: "weir_autoscaler_status_writes_total", Help: "Statuses of Autoscalers written."}),
		agreements:   auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_agreements_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that agree with what was done, by whether that was a rescale or a hold."}, []string{"decision"}),
		differences:  auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_differences_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that differ from what was done, by how."}, []string{"reason"}),
		undecided:    auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_autoscaler_shadow_undecided_total", Help: "Decisions on shadowed HorizontalPodAutoscalers that cannot be compared, by why."}, []string{"reason"}),
	}
	// A failure that never happened has the value 0 instead of no value.
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
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_autoscaler_queue_length", Help: "Objects that wait for a worker."}, c.queueLength)
	for _, kind := range []string{v1alpha1.Kind, hpaKind} {
		if kind == hpaKind || c.opts.Act {
			auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_autoscaler_watched", Help: "Objects that are watched, by kind.", ConstLabels: prometheus.Labels{"kind": kind}},
				func() float64 { return float64(c.catalog.countKind(kind)) })
		}
	}
	if c.opts.Registerer != nil {
		c.opts.Registerer.MustRegister(decisionCollector{c})
	}
	return m
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

// queueLength returns the number of objects that wait for a worker.
func (c *Controller) queueLength() float64 {
	if queue := c.queue.Load(); queue != nil {
		return float64((*queue).Len())
	}
	return 0
}

// The gauges of the last decisions.
var (
	objectLabels  = []string{"kind", "namespace", "name"}
	conflictsDesc = prometheus.NewDesc("weir_autoscaler_conflicts", "Active Autoscalers whose target belongs to another autoscaler.", nil, nil)
	currentDesc   = prometheus.NewDesc("weir_autoscaler_current_replicas", "Replicas that the target requested at the last decision.", objectLabels, nil)
	desiredDesc   = prometheus.NewDesc("weir_autoscaler_desired_replicas", "Replicas that the last decision requests.", objectLabels, nil)
)

// decisionCollector exports gauges of the last decisions.
type decisionCollector struct{ *Controller }

// Describe implements prometheus.Collector.
func (c decisionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- conflictsDesc
	out <- currentDesc
	out <- desiredDesc
}

// Collect implements prometheus.Collector.
func (c decisionCollector) Collect(out chan<- prometheus.Metric) {
	conflicts := 0
	for k, t := range c.lastDecisions() {
		if t.conflict != "" {
			conflicts++
		}
		if len(t.decision.Steps) > 0 {
			out <- prometheus.MustNewConstMetric(currentDesc, prometheus.GaugeValue, float64(t.decision.Current), k.kind, k.namespace, k.name)
			out <- prometheus.MustNewConstMetric(desiredDesc, prometheus.GaugeValue, float64(t.decision.Desired), k.kind, k.namespace, k.name)
		}
	}
	out <- prometheus.MustNewConstMetric(conflictsDesc, prometheus.GaugeValue, float64(conflicts))
}
