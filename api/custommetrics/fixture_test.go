package custommetrics

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// noon is when everything was read.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixture is a real memory sink with its cluster facts.
type fixture struct {
	sink  *memory.Sink
	facts *cluster.Facts
	// sources is their state, for reasons.
	sources []explain.SourceState
}

func (w *fixture) options() Options {
	return Options{
		View: func() SampleReader {
			if s := w.sink.Snapshot(); s != nil && !s.At().IsZero() {
				return s
			}
			return nil
		},
		Facts:   func() *cluster.Facts { return w.facts },
		Sources: func() []explain.SourceState { return w.sources },
		Now:     func() time.Time { return noon.Add(time.Second) },
	}
}

func (w *fixture) write(t testing.TB, b *metric.Batch) {
	t.Helper()
	if err := w.sink.Write(t.Context(), b); err != nil {
		t.Fatalf("write %s: %v", b.Node, err)
	}
}

func batch(node metric.NodeName) *metric.Batch {
	return &metric.Batch{Source: "kubelet:summary", Node: node, Interval: 15 * time.Second, Resolution: time.Second, Began: noon, Ended: noon}
}

func pod(node, namespace, name string) metric.Entity {
	return metric.Entity{Kind: metric.Pod, Node: metric.NodeName(node), Namespace: metric.Namespace(namespace), Pod: metric.PodName(name)}
}

func container(of metric.Entity, name string) metric.Entity {
	of.Kind, of.Name = metric.Container, name
	return of
}

func part(e metric.Entity, name string) metric.Entity { e.Part = name; return e }

// add adds a sample with values. It was read age before noon, and its rates have this window.
func add(b *metric.Batch, e metric.Entity, age, window time.Duration, values map[metric.ID]float64) *metric.Sample {
	s := b.Add(e)
	at := noon.Add(-age).UnixNano()
	for id, v := range values {
		d := id.Describe()
		s.Values.Set(id, v)
		s.Times[d.Group], s.Reasons[d.Group] = at, metric.Measured
		if d.Type == metric.Rate {
			s.Rates[d.Group] = metric.Window{End: at, Length: window}
		}
	}
	return s
}

// village is a small cluster with one of each problem.
func village(t testing.TB) *fixture {
	w := &fixture{sink: memory.New(memory.Options{})}
	running := func(namespace, name, app string) *cluster.Pod {
		return &cluster.Pod{
			PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)},
			UID:    metric.PodUID(namespace + name), Node: "n1", Phase: cluster.Running, Labels: map[string]string{"app": app},
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}, {Name: "proxy", State: cluster.StateRunning}},
		}
	}
	web0, web1 := running("shop", "web-0", "web"), running("shop", "web-1", "web")
	done, young, lost, agent := running("shop", "web-done", "web"), running("shop", "web-young", "web"), running("shop", "web-lost", "web"), running("kube-system", "agent", "agent")
	done.Phase, young.Phase, young.Node, lost.Node, agent.HostNetwork = cluster.Succeeded, cluster.Pending, "", "n2", true
	w.facts = w.facts.With(cluster.FactsChange{
		Synced: true, At: noon,
		Nodes: []*cluster.Node{{Name: "n1", Ready: true, Labels: map[string]string{"zone": "a"}}, {Name: "n2", Labels: map[string]string{"zone": "b"}}},
		Pods:  []*cluster.Pod{web0, web1, done, young, lost, agent, running("shop", "api", "api")},
	})

	b := batch("n1")
	add(b, metric.Entity{Kind: metric.Node, Node: "n1"}, 2*time.Second, 15*time.Second, map[metric.ID]float64{
		metric.CPUUsageRate: 1_234_567_891, metric.MemoryWorkingSet: 3 << 30, metric.MemoryPageFaultsRate: 0.0004,
		metric.CPUNodeUtilization: 0.1234567, metric.Uptime: 90.5e9,
	})
	for _, d := range []struct {
		name string
		used float64
	}{{"device:/dev/vda1", 1 << 30}, {"device:/dev/vdb", 1 << 20}} {
		add(b, part(metric.Entity{Kind: metric.Node, Node: "n1"}, d.name), 2*time.Second, 0, map[metric.ID]float64{metric.FilesystemUsage: d.used})
	}
	for i, name := range []string{"web-0", "web-1"} {
		e := pod("n1", "shop", name)
		f := float64(i + 1)
		add(b, e, time.Duration(i)*time.Second, 30*time.Second, map[metric.ID]float64{
			metric.CPUUsageRate: f * 250e6, metric.MemoryWorkingSet: f * (100 << 20), metric.NetworkRxRate: f * 1000.25, metric.NetworkRx: f * 1e6,
			metric.MemoryPressureSomeRate: f * 0.25, metric.MemoryRequest: 64 << 20,
		})
		add(b, part(e, "interface:eth0"), time.Second, 30*time.Second, map[metric.ID]float64{metric.NetworkRxRate: f * 900})
		add(b, part(e, "interface:net1"), 3*time.Second, 31*time.Second, map[metric.ID]float64{metric.NetworkRxRate: f * 100.25})
		add(b, container(e, "app"), 0, 20*time.Second, map[metric.ID]float64{metric.CPUUsageRate: f * 200e6, metric.MemoryPressureSomeRate: 0.5})
		add(b, container(e, "proxy"), 0, 20*time.Second, map[metric.ID]float64{metric.CPUUsageRate: f * 50e6, metric.MemoryPressureSomeRate: 0.1})
		add(b, part(container(e, "app"), "device:/dev/vda1"), 0, 20*time.Second, map[metric.ID]float64{metric.DiskReadBytesRate: f * 10})
		add(b, part(container(e, "app"), "accelerator:0"), 0, 0, map[metric.ID]float64{metric.AcceleratorDutyCycle: 0.5})
		add(b, part(container(e, "app"), "accelerator:1"), 0, 0, map[metric.ID]float64{metric.AcceleratorDutyCycle: 0.25})
	}
	// The pod is not served because of this container.
	api := pod("n1", "shop", "api")
	add(b, api, 0, 0, map[metric.ID]float64{metric.NetworkRxRate: 1}).Rates[metric.Network] = metric.Window{End: noon.UnixNano()}
	s := &b.Samples[len(b.Samples)-1]
	s.Reasons[metric.CPU] = metric.Incomplete
	b.Verdicts = append(b.Verdicts, metric.Verdict{
		Entity: api, Group: metric.CPU, Reason: metric.Incomplete, Evidence: metric.Evidence{Name: "proxy", Cause: metric.FirstSample},
	})
	add(b, pod("n1", "kube-system", "agent"), 0, 15*time.Second, map[metric.ID]float64{metric.CPUUsageRate: 1e6}).Reasons[metric.Network] = metric.NotApplicable
	w.write(t, b)

	// This node does not answer; its pod has no numbers.
	away := batch("n2")
	away.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("deadline exceeded")}
	for _, e := range []metric.Entity{{Kind: metric.Node, Node: "n2"}, pod("n2", "shop", "web-lost")} {
		for _, g := range []metric.Group{metric.CPU, metric.Memory} {
			away.Verdicts = append(away.Verdicts, metric.Verdict{Entity: e, Group: g, Reason: metric.NodeTimeout, Evidence: metric.Evidence{Err: away.Err}})
		}
	}
	w.write(t, away)
	return w
}

// testCluster is a cluster of many pods in namespaces of 100. Each pod has two interfaces.
func testCluster(t testing.TB, nodes, pods int) *fixture {
	w := &fixture{sink: memory.New(memory.Options{})}
	change := cluster.FactsChange{Synced: true, At: noon}
	for n := range nodes {
		node := fmt.Sprintf("node-%04d", n)
		b := batch(metric.NodeName(node))
		change.Nodes = append(change.Nodes, &cluster.Node{Name: b.Node})
		for i := range pods {
			k := n*pods + i
			e := pod(node, fmt.Sprintf("team-%04d", k/100), fmt.Sprintf("app-%06d", k))
			add(b, e, 0, 15*time.Second, map[metric.ID]float64{metric.NetworkRxRate: float64(k)})
			add(b, part(e, "interface:eth0"), 0, 15*time.Second, map[metric.ID]float64{metric.NetworkRxRate: float64(k)})
			add(b, part(e, "interface:net1"), 0, 15*time.Second, map[metric.ID]float64{metric.NetworkRxRate: 0})
			change.Pods = append(change.Pods, &cluster.Pod{
				PodRef: e.PodRef(), Node: b.Node, Phase: cluster.Running, Labels: map[string]string{"half": fmt.Sprint(k % 2)},
			})
		}
		w.write(t, b)
	}
	w.facts = w.facts.With(change)
	return w
}
