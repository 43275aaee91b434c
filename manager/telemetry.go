package manager

import (
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The stages other than processors and sinks, as metrics name them.
const (
	stageProvider   = "provider"
	stageOpen       = "open"
	stageRead       = "read"
	stageSecondRead = "second_read"
)

// telemetry has the manager's own metrics. Their label is the kind of a source, never its name:
// 5,000 nodes make no more series than one.
type telemetry struct {
	duration  *prometheus.HistogramVec // stage, kind
	in, out   *prometheus.CounterVec   // stage, kind
	errors    *prometheus.CounterVec   // stage, kind, reason
	panics    *prometheus.CounterVec   // stage
	sources   *prometheus.GaugeVec     // kind
	failing   *prometheus.GaugeVec     // kind
	success   *prometheus.GaugeVec     // kind
	rounds    *prometheus.CounterVec   // kind
	skipped   *prometheus.CounterVec   // kind
	abandoned *prometheus.CounterVec   // kind
	stuck     *prometheus.GaugeVec     // kind
	overLimit *prometheus.CounterVec   // kind
	inFlight  prometheus.Gauge
	waiting   prometheus.Gauge
	dropped   *prometheus.CounterVec // sink
	timeouts  *prometheus.CounterVec // sink
	queued    func(sink string, capacity int, length func() int)

	mu struct {
		sync.Mutex
		kinds map[string]*kindMeters
	}
}

func newTelemetry(reg prometheus.Registerer) *telemetry {
	auto := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	t := &telemetry{
		duration: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_stage_duration_seconds",
			Help: "Time a stage took for one batch.",
			// From 10 µs, a step of a small node, to 42 s, a read with half a minute of time.
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 12),
		}, []string{"stage", "kind"}),
		in:        counter("weir_stage_samples_in_total", "Samples a stage was given.", "stage", "kind"),
		out:       counter("weir_stage_samples_out_total", "Samples a stage passed on, held and condemned ones included.", "stage", "kind"),
		errors:    counter("weir_stage_errors_total", "Batches in which a stage erred, by reason.", "stage", "kind", "reason"),
		panics:    counter("weir_panics_total", "Panics caught in a stage. Each is a bug worth reporting.", "stage"),
		sources:   gauge("weir_sources", "Sources that are read.", "kind"),
		failing:   gauge("weir_sources_failing", "Sources whose last round had an error.", "kind"),
		success:   gauge("weir_source_last_success_timestamp_seconds", "When any source of the kind was last read without error.", "kind"),
		rounds:    counter("weir_rounds_total", "Rounds begun.", "kind"),
		skipped:   counter("weir_skipped_rounds_total", "Rounds not begun because the source's previous one still ran.", "kind"),
		abandoned: counter("weir_abandoned_reads_total", "Reads that ignored their deadline and were left behind.", "kind"),
		stuck:     gauge("weir_reads_stuck", "Abandoned reads that still run.", "kind"),
		overLimit: counter("weir_read_over_limit_total", "Entities and names in answers that were dropped, because there were too many or they were too long.", "kind"),
		inFlight:  auto.NewGauge(prometheus.GaugeOpts{Name: "weir_reads_in_flight", Help: "Reads that hold a slot now."}),
		waiting:   auto.NewGauge(prometheus.GaugeOpts{Name: "weir_reads_waiting", Help: "Reads that are due and wait for a slot."}),
		dropped:   counter("weir_sink_dropped_batches_total", "Batches a sink did not get because its queue was full or weir shut down.", "sink"),
		timeouts:  counter("weir_sink_timeouts_total", "Writes that outlived the sink's deadline.", "sink"),
	}
	capacity := gauge("weir_sink_queue_capacity", "Batches a sink's queue can hold.", "sink")
	// A counter that first appears with 1 does not increase for Prometheus: an alert would miss it.
	t.panics.WithLabelValues(stageProvider)
	t.queued = func(sink string, limit int, length func() int) {
		t.dropped.WithLabelValues(sink)
		t.timeouts.WithLabelValues(sink)
		t.panics.WithLabelValues(sink)
		capacity.WithLabelValues(sink).Set(float64(limit))
		auto.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "weir_sink_queue_length",
			Help:        "Batches that wait for a sink.",
			ConstLabels: prometheus.Labels{"sink": sink},
		}, func() float64 { return float64(length()) })
	}
	t.mu.kinds = map[string]*kindMeters{}
	return t
}

// kindMeters are the meters of one kind of source.
type kindMeters struct {
	name                       string
	all                        *telemetry
	sources, failing, success  prometheus.Gauge
	rounds, skipped, abandoned prometheus.Counter
	stuck                      prometheus.Gauge
	overLimit                  prometheus.Counter
	read, crossCheck           *stageMeters

	mu struct {
		sync.Mutex
		stages map[string]*stageMeters
	}
}

// stageMeters are the meters of one stage for one kind of source.
type stageMeters struct {
	name     string
	duration prometheus.Observer
	in, out  prometheus.Counter
}

// kind returns the meters of a kind of source.
func (t *telemetry) kind(name string) *kindMeters {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.mu.kinds[name]; k != nil {
		return k
	}
	k := &kindMeters{
		name:      name,
		all:       t,
		sources:   t.sources.WithLabelValues(name),
		failing:   t.failing.WithLabelValues(name),
		success:   t.success.WithLabelValues(name),
		rounds:    t.rounds.WithLabelValues(name),
		skipped:   t.skipped.WithLabelValues(name),
		abandoned: t.abandoned.WithLabelValues(name),
		stuck:     t.stuck.WithLabelValues(name),
		overLimit: t.overLimit.WithLabelValues(name),
	}
	k.mu.stages = map[string]*stageMeters{}
	k.read, k.crossCheck = k.stage(stageRead), k.stage(stageSecondRead)
	t.mu.kinds[name] = k
	return k
}

// stage returns the meters of a stage for this kind of source.
func (k *kindMeters) stage(name string) *stageMeters {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.mu.stages[name]; s != nil {
		return s
	}
	s := &stageMeters{
		name:     name,
		duration: k.all.duration.WithLabelValues(name, k.name),
		in:       k.all.in.WithLabelValues(name, k.name),
		out:      k.all.out.WithLabelValues(name, k.name),
	}
	k.all.panics.WithLabelValues(name)
	k.mu.stages[name] = s
	return s
}

// erred counts an error of a stage, and a panic as such too.
func (k *kindMeters) erred(stage string, err error) {
	reason := reasonOf(err)
	k.all.errors.WithLabelValues(stage, k.name, reason).Inc()
	if reason == reasonPanic {
		k.all.panics.WithLabelValues(stage).Inc()
	}
}

// processorName is the label of a processor: its Name if it has that method, else its package:
// "*rate.Processor" is "rate".
func processorName(p Processor) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return n.Name()
	}
	pkg, _, _ := strings.Cut(strings.TrimLeft(fmt.Sprintf("%T", p), "*"), ".")
	return pkg
}
