package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// house is a Manager with its environment, in a synctest bubble.
type house struct {
	t        *testing.T
	m        *Manager
	registry *prometheus.Registry
	logs     *observer.ObservedLogs
	changed  chan struct{}
	cancel   context.CancelFunc
	result   chan error
	start    time.Time

	mu    sync.Mutex
	specs []Spec
}

// Sources makes house a Provider. It returns the specs of provide.
func (h *house) Sources(*cluster.Facts) []Spec {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.specs)
}

// provide changes the sources and informs the Manager.
func (h *house) provide(specs ...Spec) {
	h.mu.Lock()
	h.specs = specs
	h.mu.Unlock()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// build runs a Manager with o. The house is its Provider.
func build(t *testing.T, o Options, specs ...Spec) *house {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	h := &house{
		t: t, registry: prometheus.NewRegistry(), logs: logs, specs: specs,
		changed: make(chan struct{}, 1), result: make(chan error, 1), start: time.Now(),
	}
	o.Providers = append(o.Providers, h)
	o.FactsChanged, o.Registerer, o.Logger = h.changed, h.registry, zap.New(core)
	h.m = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	go func() { h.result <- h.m.Run(ctx) }()
	return h
}

// until advances the time to at after the start, and waits until all goroutines are idle.
func (h *house) until(at time.Duration) {
	time.Sleep(at - time.Since(h.start))
	synctest.Wait()
}

// end stops the Manager, and returns what Run returned and how long it took.
func (h *house) end() (time.Duration, error) {
	h.cancel()
	began := time.Now()
	err := <-h.result
	return time.Since(began), err
}

// mustEnd stops the Manager, which must take no time and leave nothing behind.
func (h *house) mustEnd() {
	h.t.Helper()
	if took, err := h.end(); err != nil || took != 0 {
		h.t.Errorf("Run after its context ended: took %v, returned %v; want 0s, nil", took, err)
	}
}

// metric returns the value of a series; labels are "name=value".
func (h *house) metric(name string, labels ...string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			if hasLabels(m, labels) {
				switch f.GetType() {
				case dto.MetricType_COUNTER:
					return m.Counter.GetValue()
				case dto.MetricType_HISTOGRAM:
					return float64(m.Histogram.GetSampleCount())
				default:
					return m.Gauge.GetValue()
				}
			}
		}
	}
	return 0
}

func hasLabels(m *dto.Metric, want []string) bool {
	var got []string
	for _, l := range m.Label {
		got = append(got, l.GetName()+"="+l.GetValue())
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			return false
		}
	}
	return true
}

// wantMetric checks the value of a series.
func (h *house) wantMetric(want float64, name string, labels ...string) {
	h.t.Helper()
	if got := h.metric(name, labels...); got != want {
		h.t.Errorf("%s%v: got %v, want %v", name, labels, got, want)
	}
}

// wantLogs checks the warnings, errors and recoveries in the log.
func (h *house) wantLogs(want ...string) {
	h.t.Helper()
	var got []string
	for _, e := range h.logs.All() {
		recovered := []string{"the source answers again", "the source answers for the first time", "the sink works again", "the sink has caught up"}
		if e.Level >= zapcore.WarnLevel || slices.Contains(recovered, e.Message) {
			got = append(got, e.Message)
			if at, ok := e.ContextMap()["lastSuccess"].(time.Time); ok && at.IsZero() {
				h.t.Errorf("log: %q gives a last success that never was", e.Message)
			}
		}
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("log: got %q, want %q", got, want)
	}
}

// place is a Source that calls a function with the number of the read.
type place struct {
	read   func(ctx context.Context, round int, b *metric.Batch) error
	rounds atomic.Int32
	closed func()
}

func (p *place) Read(ctx context.Context, b *metric.Batch) error {
	return p.read(ctx, int(p.rounds.Add(1)), b)
}

func (p *place) Close() error {
	if p.closed != nil {
		p.closed()
	}
	return nil
}

// spec returns the Spec of a place on a node.
func (p *place) spec(node string, interval, timeout time.Duration) Spec {
	return Spec{
		Name: "test/" + node, Kind: "test", Node: metric.NodeName(node), Interval: interval, Timeout: timeout,
		Open: func() (Source, error) { return p, nil },
	}
}

// healthy reads one sample at once.
func healthy() *place {
	return &place{read: func(_ context.Context, _ int, b *metric.Batch) error {
		b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
		return nil
	}}
}

// hanging ignores its context until let is closed.
func hanging(let <-chan struct{}) *place {
	return &place{read: func(context.Context, int, *metric.Batch) error {
		<-let
		return nil
	}}
}

// diary is a Sink that stores its calls as lines.
type diary struct {
	start time.Time

	mu    sync.Mutex
	lines []string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) Write(_ context.Context, b *metric.Batch) error {
	line := fmt.Sprintf("%v %s %d", time.Since(d.start), b.Node, len(b.Samples))
	if b.Err != nil {
		line += " " + reasonOf(b.Err)
	}
	if b.CrossCheck != nil {
		line += fmt.Sprintf(" second %d", len(b.CrossCheck.Samples))
	}
	d.write(line)
	return nil
}

func (d *diary) Forget(source string, node metric.NodeName) {
	d.write(fmt.Sprintf("%v forget %s %s", time.Since(d.start), source, node))
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns the lines since it was last called.
func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func (d *diary) named() NamedSink { return NamedSink{Name: "diary", Sink: d} }

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %q\n want %q", what, got, want)
	}
}
