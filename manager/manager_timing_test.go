package manager

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// quiet returns an opened source of a Manager that does not run, to measure a round without the
// clock.
func quiet(o Options, p *place) *runner {
	m := New(o)
	m.sourcesCtx = context.Background()
	r := m.start(p.spec("a", time.Hour, time.Minute), 1<<30)
	r.mu.timer.Stop()
	r.open()
	return r
}

func pipeline(Spec) []Processor {
	step := does(func(*cluster.Facts, *metric.Batch, time.Time) {})
	return []Processor{step, step, step, step}
}

// crowd reads 60 samples, as a node of 20 pods has.
func crowd() *place {
	return &place{read: func(_ context.Context, _ int, b *metric.Batch) error {
		for range 60 {
			b.Add(metric.Entity{Kind: metric.Container, Node: b.Node}).Values.Set(metric.MemoryWorkingSet, 1)
		}
		return nil
	}}
}

func TestRoundAllocatesOnlyItsDeadline(t *testing.T) {
	r := quiet(Options{Pipeline: pipeline}, crowd())
	// Everything after the read allocates nothing.
	b, _ := r.readSource()
	if n := testing.AllocsPerRun(100, func() {
		r.process(b, nil, time.Time{})
		r.recordRound(b)
		r.m.publish(b, item{}, r.pool)
		b = r.empty(r.pool.get())
	}); n != 0 {
		t.Errorf("allocations of process, note and publish: got %v, want 0", n)
	}
	// The context of a read is new each time, because a source may keep it.
	const deadline = 4
	if n := testing.AllocsPerRun(100, func() { r.round() }); n > deadline {
		t.Errorf("allocations of a round: got %v, want at most %d", n, deadline)
	}
	r.end()
}

func BenchmarkRound(b *testing.B) {
	r := quiet(Options{Pipeline: pipeline, Registerer: prometheus.NewRegistry()}, crowd())
	b.ReportAllocs()
	for b.Loop() {
		r.round()
	}
	r.end()
}

// BenchmarkManager runs a Manager with sources that are due far more often than real ones. It
// reports how many rounds two sinks get in a second.
func BenchmarkManager(b *testing.B) {
	const sources = 5000
	var specs []Spec
	for i := range sources {
		specs = append(specs, healthy().spec(fmt.Sprint(i), 20*time.Millisecond, time.Second))
	}
	var written atomic.Int64
	done := make(chan struct{})
	counts := writes(func(context.Context, *metric.Batch) error {
		if written.Add(1) == int64(b.N) {
			close(done)
		}
		return nil
	})
	ignores := writes(func(context.Context, *metric.Batch) error { return nil })
	m := New(Options{
		Providers:  []Provider{asks(func(*cluster.Facts) []Spec { return specs })},
		Pipeline:   pipeline,
		Registerer: prometheus.NewRegistry(),
		Sinks:      []NamedSink{{Name: "counts", Sink: counts, Queue: sources}, {Name: "ignores", Sink: ignores, Queue: sources}},
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- m.Run(ctx) }()
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// BenchmarkIdle reports the memory of a source between its rounds.
func BenchmarkIdle(b *testing.B) {
	const sources = 5000
	m := New(Options{Pipeline: pipeline})
	ctx, cancel := context.WithCancel(b.Context())
	m.sourcesCtx = ctx
	var bytes, stacks int64
	n := int64(0)
	for b.Loop() {
		before := memory()
		var all []*runner
		for i := range sources {
			r := m.start(healthy().spec(fmt.Sprint(i), time.Hour, time.Minute), 1<<30)
			r.open()
			all = append(all, r)
		}
		after := memory()
		bytes += int64(after.HeapAlloc) - int64(before.HeapAlloc)
		stacks += int64(after.StackInuse) - int64(before.StackInuse)
		n += sources
		for _, r := range all {
			r.stop()
		}
	}
	b.ReportMetric(float64(bytes/n), "B/source")
	b.ReportMetric(float64(stacks/n), "stack-B/source")
	cancel()
}

func memory() (s runtime.MemStats) {
	runtime.GC()
	runtime.GC() // the second collection sweeps what the first one found
	runtime.ReadMemStats(&s)
	return s
}
