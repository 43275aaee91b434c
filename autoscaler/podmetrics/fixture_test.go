package podmetrics_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/sinks/memory"
)

// noon is the time of the first read.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// view is a snapshot in the form that app uses.
type view struct{ *memory.Snapshot }

func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, p := range v.History(e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// fixture has a real memory sink, filled by the last step of the pipeline, and the cluster facts.
type fixture struct {
	t     testing.TB
	sink  *memory.Sink
	facts *cluster.Facts
	now   time.Time
}

func newFixture(t testing.TB) *fixture {
	return &fixture{t: t, sink: memory.New(memory.Options{}), now: noon}
}

// know adds pods and their nodes to the facts.
func (w *fixture) know(pods ...*cluster.Pod) {
	c := cluster.FactsChange{Synced: true, At: w.now, Pods: pods}
	for _, p := range pods {
		if p.Node != "" && w.facts.Node(p.Node) == nil {
			c.Nodes = append(c.Nodes, &cluster.Node{Name: p.Node, Ready: true})
		}
	}
	w.facts = w.facts.With(c)
}

func (w *fixture) options() podmetrics.Options {
	return podmetrics.Options{
		View: func() podmetrics.UsageReader {
			if s := w.sink.Snapshot(); !s.At().IsZero() {
				return view{s}
			}
			return nil
		},
		Facts: func() *cluster.Facts { return w.facts },
		Custom: custommetrics.New(custommetrics.Options{
			View:  func() custommetrics.SampleReader { return w.sink.Snapshot() },
			Facts: func() *cluster.Facts { return w.facts }, Sources: noSources,
		}),
		Explainer: func() *explain.Explainer {
			return &explain.Explainer{Now: w.now, View: w.sink.Snapshot(), Facts: w.facts}
		},
	}
}

// batch returns an empty batch of a read of a node at the current time.
func (w *fixture) batch(node metric.NodeName) *metric.Batch {
	return &metric.Batch{Source: "kubelet:resource", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: w.now, Ended: w.now}
}

// write aggregates b with the facts, as the pipeline does, and stores it.
func (w *fixture) write(b *metric.Batch) {
	w.t.Helper()
	a := aggregate.New()
	before := w.batch(b.Node) // the node has been read before, so no pod is too young
	before.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
	a.Process(w.facts, before, before.Ended)
	a.Process(w.facts, b, b.Ended)
	if err := w.sink.Write(w.t.Context(), b); err != nil {
		w.t.Fatalf("write %s: %v", b.Node, err)
	}
}

// measured adds the usage of a container (nanocores, bytes). age is the time from the measurement
// to the batch.
func measured(b *metric.Batch, p *cluster.Pod, name string, age, window time.Duration, cpu, bytes float64) *metric.Sample {
	s := b.Add(metric.Entity{Kind: metric.Container, Node: b.Node, Namespace: p.Namespace, Pod: p.Name, Name: name})
	at := b.Ended.Add(-age).UnixNano()
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		s.Times[g], s.Reasons[g] = at, metric.Measured
	}
	s.Rates[metric.CPU] = metric.Window{End: at, Length: window}
	s.Values.Set(metric.CPUUsageRate, cpu)
	s.Values.Set(metric.MemoryWorkingSet, bytes)
	return s
}

// running returns the facts of a pod with running containers.
func running(namespace, name string, node metric.NodeName, labels map[string]string, containers ...string) *cluster.Pod {
	p := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)},
		UID:    metric.PodUID(fmt.Sprintf("%s-%s", namespace, name)), Node: node, Phase: cluster.Running, Labels: labels,
		Started: noon.Add(-time.Hour), KnownAt: noon.Add(-time.Hour), Ready: cluster.ReadyTrue, ReadySince: noon.Add(-time.Hour),
	}
	for _, c := range containers {
		p.Containers = append(p.Containers, cluster.Container{Name: c, State: cluster.StateRunning, StartedAt: noon.Add(-time.Hour)})
	}
	return p
}

// noSources is the state of no source.
func noSources() []explain.SourceState { return nil }
