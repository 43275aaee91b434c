package explain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/transcript"
)

// large is a cluster of 1,000 nodes with 30 pods of two containers each. One in every failing nodes
// fails.
func large(t testing.TB, failing int) *explain.Explainer {
	t.Helper()
	sink := memory.New(memory.Options{})
	change := cluster.FactsChange{Synced: true, At: transcript.Epoch}
	w := &explain.Explainer{Now: transcript.Epoch.Add(time.Second), Autoscalers: func(*cluster.Pod) []string { return []string{"shop/web"} }}
	for n := range 1000 {
		node := metric.NodeName(fmt.Sprintf("node-%04d", n))
		change.Nodes = append(change.Nodes, &cluster.Node{Name: node, Ready: true})
		w.Sources = append(w.Sources, explain.SourceState{Name: "kubelet:resource", Node: node, Interval: 15 * time.Second, LastRead: transcript.Epoch, LastSuccess: transcript.Epoch, Due: transcript.Epoch.Add(15 * time.Second)})
		for p := range 30 {
			pod := &cluster.Pod{
				PodRef: metric.PodRef{Namespace: metric.Namespace(fmt.Sprintf("team-%02d", p)), Name: metric.PodName(fmt.Sprintf("app-%04d-%02d-7c5ddbdf54-x2x4z", n, p))},
				Node:   node, Phase: cluster.Running,
			}
			for c := range 2 {
				pod.Containers = append(pod.Containers, cluster.Container{Name: fmt.Sprintf("container-%d", c), State: cluster.StateRunning})
			}
			change.Pods = append(change.Pods, pod)
		}
	}
	w.Facts = w.Facts.With(change)
	for n := range 1000 {
		node := change.Nodes[n].Name
		b := &metric.Batch{Source: "kubelet:resource", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: transcript.Epoch, Ended: transcript.Epoch}
		if n%failing == failing-1 {
			b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("it broke")}
		} else {
			use(b.Add(metric.Entity{Kind: metric.Node, Node: node}))
			for _, p := range change.Pods[30*n : 30*n+30] {
				for c := range p.Containers {
					use(b.Add(metric.Entity{Kind: metric.Container, Node: node, Namespace: p.Namespace, Pod: p.Name, Name: p.Containers[c].Name}))
				}
			}
		}
		aggregate.New().Process(w.Facts, b, b.Ended)
		if err := sink.Write(context.Background(), b); err != nil {
			t.Fatalf("write %s: %v", node, err)
		}
	}
	w.View = sink.Snapshot()
	return w
}

// use makes s a measured sample.
func use(s *metric.Sample) {
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		s.Times[g], s.Reasons[g] = transcript.Epoch.UnixNano(), metric.Measured
	}
	s.Rates[metric.CPU] = metric.Window{End: transcript.Epoch.UnixNano(), Length: 15 * time.Second}
	s.Values.Set(metric.CPUUsageRate, 1e8)
	s.Values.Set(metric.MemoryWorkingSet, 1<<20)
}

// If many nodes fail in the same way, this is one cause, and it has only a few names.
func TestManyFailAlike(t *testing.T) {
	w := large(t, 4)
	r := w.Missing()
	if got, want := r.Pods, (explain.Tally{Expected: 30_000, Served: 22_500}); got != want {
		t.Errorf("pods: got %+v, want %+v", got, want)
	}
	if got, want := r.Nodes, (explain.Tally{Expected: 1000, Served: 750}); got != want {
		t.Errorf("nodes: got %+v, want %+v", got, want)
	}
	if len(r.Causes) != 1 {
		t.Fatalf("got %d causes, want 1: %+v", len(r.Causes), r.Causes)
	}
	c := r.Causes[0]
	if c.Reason != "NodeTimeout" || c.Node != "" || c.Pods != 7500 || c.Nodes != 250 {
		t.Errorf("got %s on node %q of %d pods and %d nodes, want NodeTimeout on none of 7500 and 250", c.Reason, c.Node, c.Pods, c.Nodes)
	}
	if len(c.Names) != 10 || c.Names[0] != "node/node-0003" || c.Names[9] != "node/node-0039" {
		t.Errorf("names: got %v, want the first ten nodes that fail", c.Names)
	}
}

func BenchmarkMissing(b *testing.B) {
	for _, failing := range []int{1000, 4, 1} {
		w := large(b, failing)
		b.Run(fmt.Sprintf("nodes=1000/pods=30000/failing=%d", 1000/failing), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Missing()
			}
		})
	}
}

func BenchmarkPod(b *testing.B) {
	for _, failing := range []int{1000, 1} {
		w := large(b, failing)
		ref := metric.PodRef{Namespace: "team-07", Name: "app-0500-07-7c5ddbdf54-x2x4z"}
		pod := w.Facts.Pod(ref)
		for name, ask := range map[string]func(){"Pod": func() { w.Pod(ref) }, "Why": func() { w.Why(pod) }, "Node": func() { w.Node(pod.Node) }, "Namespace": func() { w.Namespace(ref.Namespace) }} {
			b.Run(fmt.Sprintf("%s/failing=%d", name, 1000/failing), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ask()
				}
			})
		}
	}
}
