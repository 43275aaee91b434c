package hpaevents

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// fixture has the measurements of a test, in a real memory sink.
type fixture struct {
	t     *testing.T
	mu    sync.Mutex
	sink  *memory.Sink
	facts *cluster.Facts
}

func newFixture(t *testing.T) *fixture { return &fixture{t: t, sink: memory.New(memory.Options{})} }

// now returns what Options.Explainer must return.
func (w *fixture) now() *explain.Explainer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &explain.Explainer{Now: time.Now(), View: w.sink.Snapshot(), Facts: w.facts}
}

// runs sets the cluster facts to running pods, each on its own node.
func (w *fixture) runs(pods ...metric.PodName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := cluster.FactsChange{Synced: true, At: time.Now()}
	for _, name := range pods {
		node := metric.NodeName("node-of-" + name)
		c.Nodes = append(c.Nodes, &cluster.Node{Name: node, Ready: true})
		c.Pods = append(c.Pods, &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: name}, UID: metric.PodUID("uid-" + name),
			Node: node, Phase: cluster.Running, Labels: map[string]string{"app": "web"},
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}},
		})
	}
	w.facts = (*cluster.Facts)(nil).With(c)
}

// read stores a read of a pod's node. The pod has numbers if r is Measured.
func (w *fixture) read(pod metric.PodName, r metric.Reason) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	node := metric.NodeName("node-of-" + pod)
	b := &metric.Batch{Source: "kubelet:resource", Node: node, Began: time.Now(), Ended: time.Now(), Interval: 15 * time.Second, Resolution: time.Millisecond}
	e := metric.Entity{Kind: metric.Pod, Node: node, Namespace: "shop", Pod: pod}
	if r == metric.Measured {
		app := e
		app.Kind, app.Name = metric.Container, "app"
		for _, e := range []metric.Entity{e, app} {
			s := b.Add(e)
			s.Instance.UID = metric.PodUID("uid-" + pod)
			for _, g := range []metric.Group{metric.CPU, metric.Memory} {
				s.Times[g], s.Reasons[g] = time.Now().UnixNano(), r
			}
			s.Values.Set(metric.CPUUsageRate, 1e8)
			s.Values.Set(metric.MemoryWorkingSet, 1<<27)
		}
	} else {
		b.Err = &metric.ReadError{Reason: r, Err: errors.New("dial tcp 10.0.0.7:10250: i/o timeout")}
		for _, g := range []metric.Group{metric.CPU, metric.Memory} {
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: g, Reason: r, Evidence: metric.Evidence{Err: b.Err}})
		}
	}
	if err := w.sink.Write(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}
