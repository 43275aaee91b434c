// Package samplenodes has the shapes of nodes that the benchmarks and
// allocation tests of the pipeline share, so that the costs of its stages can
// be compared.
package samplenodes

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Node is the shape of a node: its number of pods, and of containers in each
// pod.
type Node struct{ Pods, Containers int }

// Nodes are the shapes for benchmarks: a small node, a usual one and a full
// one.
var Nodes = []Node{{Pods: 10, Containers: 1}, {Pods: 30, Containers: 2}, {Pods: 110, Containers: 3}}

// String returns the name of the shape, such as "30pods×2".
func (n Node) String() string { return fmt.Sprintf("%dpods×%d", n.Pods, n.Containers) }

// Name is the node's name in Facts and Batch.
const Name metric.NodeName = "node-1"

// Epoch is the time of round 0.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Interval is the time between two rounds.
const Interval = 15 * time.Second

// Facts returns the API server's facts about the node. All its pods run.
func (n Node) Facts() *cluster.Facts {
	started := Epoch.Add(-time.Hour)
	node := &cluster.Node{Name: Name, Ready: true}
	node.Spec.Set(metric.CPUNodeCapacity, 64e9)
	node.Spec.Set(metric.CPUNodeAllocatable, 63e9)
	change := cluster.FactsChange{Synced: true, At: Epoch, Nodes: []*cluster.Node{node}}
	n.each(func(p, c int) {
		if c < 0 {
			change.Pods = append(change.Pods, &cluster.Pod{PodRef: podRef(p), UID: uid(p), Node: Name,
				Phase: cluster.Running, Started: started, KnownAt: started, QoS: "Burstable"})
			return
		}
		pod := change.Pods[len(change.Pods)-1]
		pod.Containers = append(pod.Containers, cluster.Container{Name: containerName(c), State: cluster.StateRunning, ID: id(p, c), StartedAt: started})
	})
	return (*cluster.Facts)(nil).With(change)
}

// Batch returns a batch like one from /metrics/cadvisor: the node, and each pod
// with its containers.
func (n Node) Batch() *metric.Batch {
	b := &metric.Batch{Source: "bench", Node: Name, Interval: Interval, Resolution: time.Millisecond, Cores: 64}
	b.Add(metric.Entity{Kind: metric.Node, Node: Name})
	n.each(func(p, c int) {
		ref := podRef(p)
		e := metric.Entity{Kind: metric.Pod, Node: Name, Namespace: ref.Namespace, Pod: ref.Name}
		if c >= 0 {
			e.Kind, e.Name = metric.Container, containerName(c)
		}
		i := &b.Add(e).Instance
		i.UID, i.Start, i.Origin = uid(p), Epoch.Add(-time.Hour).UnixNano(), metric.StartReported
		if c >= 0 {
			i.ID = id(p, c)
		}
	})
	return b
}

// Round fills b with the read of round r, and returns the time of that round.
// Each sample has used a tenth of a core since the round before.
func (n Node) Round(b *metric.Batch, r int) time.Time {
	now := Epoch.Add(time.Duration(r) * Interval)
	b.Verdicts, b.Slots = b.Verdicts[:0], nil
	b.Began, b.Ended = now, now
	for i := range b.Samples {
		s := &b.Samples[i]
		s.Reasons = [metric.NumGroups]metric.Reason{}
		s.Rates = [metric.NumGroups]metric.Window{}
		s.Times[metric.CPU], s.Times[metric.Memory] = now.UnixNano(), now.UnixNano()
		s.Values.Set(metric.CPUUsage, 1e12+float64(r)*float64(Interval)/10)
		s.Values.Set(metric.MemoryWorkingSet, 1<<27)
	}
	return now
}

func (n Node) each(do func(pod, container int)) {
	for p := range n.Pods {
		do(p, -1)
		for c := range n.Containers {
			do(p, c)
		}
	}
}

func podRef(p int) metric.PodRef {
	return metric.PodRef{Namespace: metric.Namespace(fmt.Sprintf("team-%d", p%7)), Name: metric.PodName(fmt.Sprintf("web-6d4cf56db6-%05d", p))}
}

func uid(p int) metric.PodUID {
	return metric.PodUID(fmt.Sprintf("%08x-0000-4000-8000-%012x", p, p))
}

func id(p, c int) metric.ContainerID { return metric.ContainerID(fmt.Sprintf("%032x%032x", p, c)) }

func containerName(c int) string { return fmt.Sprintf("container-%d", c) }
