package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// epoch is the time at which the tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeCluster makes the batches of nodes with numbers by a rule, so that tests know the
// expected values.
type fakeCluster struct {
	source           string
	nodes, pods, per int
	interval, clock  time.Duration
	batch            metric.Batch
}

func kubelet(nodes, pods, per int) *fakeCluster {
	return &fakeCluster{source: "kubelet:resource", nodes: nodes, pods: pods, per: per, interval: 15 * time.Second, clock: time.Millisecond}
}

func nodeName(n int) metric.NodeName { return metric.NodeName(fmt.Sprintf("node-%04d", n)) }

// names are made once, because sources reuse the strings of names.
type nodeNames struct {
	node       metric.Entity
	pods       []metric.Entity
	containers []metric.Entity
	ids        []metric.ContainerID
	slots      metric.SlotTable
}

func (c *fakeCluster) names(n int) *nodeNames {
	node := nodeName(n)
	nn := &nodeNames{node: metric.Entity{Kind: metric.Node, Node: node}}
	for p := range c.pods {
		pod := metric.Entity{
			Kind: metric.Pod, Node: node,
			Namespace: metric.Namespace(fmt.Sprintf("team-%02d", p%10)),
			Pod:       metric.PodName(fmt.Sprintf("app-%04d-%03d-7c5ddbdf54-x2x4z", n, p)),
		}
		nn.pods = append(nn.pods, pod)
		for i := range c.per {
			e := pod
			e.Kind, e.Name = metric.Container, fmt.Sprintf("container-%d", i)
			nn.containers = append(nn.containers, e)
			nn.ids = append(nn.ids, metric.ContainerID(fmt.Sprintf("%064d", n*100000+p*100+i)))
		}
	}
	return nn
}

// truth is the usage of entity i of a node in a round: CPU in nanocores, memory in bytes.
func truth(i, round int) (cpu, memory float64) {
	return float64(1e6+i*1e4) * (1 + 0.1*float64((i*7+round*13)%17)), float64(4096 * (1000 + 7*i + round))
}

// fill fills b with round `round` of node n. Entity i is read i milliseconds before the read
// ends.
func (c *fakeCluster) fill(b *metric.Batch, n *nodeNames, round int) *metric.Batch {
	b.Reset()
	b.Source, b.Node, b.Interval, b.Resolution = c.source, n.node.Node, c.interval, c.clock
	b.Ended = epoch.Add(time.Duration(round) * c.interval)
	b.Began = b.Ended.Add(-20 * time.Millisecond)
	i := 0
	add := func(e metric.Entity) *metric.Sample {
		s := b.Add(e)
		cpu, memory := truth(i, round)
		at := b.Ended.UnixNano() - int64(i)*int64(time.Millisecond)
		s.Instance.Start, s.Instance.Origin = epoch.Add(-time.Hour).UnixNano(), metric.StartReported
		measure(s, metric.CPU, at)
		measure(s, metric.Memory, at)
		measure(s, metric.Spec, at)
		s.Rates[metric.CPU] = metric.Window{End: at, Length: c.interval}
		s.Values.Set(metric.CPUUsage, 1e9*float64(3600+round*15))
		s.Values.Set(metric.CPUUsageRate, cpu)
		s.Values.Set(metric.MemoryWorkingSet, memory)
		i++
		return s
	}
	node := add(n.node)
	node.Values.Set(metric.CPUNodeCapacity, 4e9)
	node.Values.Set(metric.CPUNodeAllocatable, 3e9)
	node.Values.Set(metric.CPUNodeUtilization, 0.5)
	for _, e := range n.pods {
		add(e)
	}
	for j, e := range n.containers {
		s := add(e)
		s.Instance.ID = n.ids[j]
		s.Values.Set(metric.CPURequest, 1e8)
		s.Values.Set(metric.CPULimit, 5e8)
		s.Values.Set(metric.MemoryRequest, 64<<20)
		s.Values.Set(metric.MemoryLimit, 512<<20)
	}
	n.slots.Assign(b)
	b.Share(1, nil)
	return b
}

func measure(s *metric.Sample, g metric.Group, at int64) {
	s.Times[g], s.Reasons[g] = at, metric.Measured
}

// write writes b and then changes it, because batches are reused.
func write(t testing.TB, s *Sink, b *metric.Batch) {
	t.Helper()
	if err := s.Write(context.Background(), b); err != nil {
		t.Fatalf("Write: %v", err)
	}
	for i := range b.Samples {
		values := b.Samples[i].Values
		values.Reset()
		b.Samples[i] = metric.Sample{Values: values}
		b.Samples[i].Values.Set(metric.CPUUsageRate, -1)
	}
	for i := range b.Verdicts {
		b.Verdicts[i] = metric.Verdict{}
	}
	b.Reset()
}

// at returns an empty batch that was read this long after the epoch.
func at(source string, node metric.NodeName, after time.Duration) *metric.Batch {
	return &metric.Batch{
		Source: source, Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond,
		Began: epoch.Add(after), Ended: epoch.Add(after),
	}
}

func pod(namespace, name string) metric.Entity {
	return metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(namespace), Pod: metric.PodName(name)}
}

func on(node metric.NodeName, e metric.Entity) metric.Entity { e.Node = node; return e }

func containerOf(e metric.Entity, name string) metric.Entity {
	e.Kind, e.Name = metric.Container, name
	return e
}

// use adds a measured sample with a CPU rate and a working set.
func use(b *metric.Batch, e metric.Entity, cpu, memory float64) *metric.Sample {
	s := b.Add(e)
	at := b.Ended.UnixNano()
	measure(s, metric.CPU, at)
	measure(s, metric.Memory, at)
	s.Rates[metric.CPU] = metric.Window{End: at, Length: 15 * time.Second}
	s.Values.Set(metric.CPUUsageRate, cpu)
	s.Values.Set(metric.MemoryWorkingSet, memory)
	return s
}

func value(t testing.TB, s *metric.Sample, id metric.ID, want float64) {
	t.Helper()
	if got, ok := s.Values.Get(id); !ok || got != want {
		t.Errorf("%v of %v: got %v (present %v), want %v", id, s.Entity, got, ok, want)
	}
}
