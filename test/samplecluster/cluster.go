// Package samplecluster makes small clusters and machines in known states, for
// tests of what people see. It defines what nodes report and what the API
// server says. The real pipeline and memory sink do the rest.
package samplecluster

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
)

// Noon is the time at which sample clusters are read.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// round is the time between two reads of a node.
const round = 15 * time.Second

// Cluster is a cluster, or a machine without one.
type Cluster struct {
	t      testing.TB
	began  time.Time
	memory *memory.Sink
	facts  *cluster.Facts
	nodes  []*Node
	scaled map[metric.PodRef][]string
}

// Node is a node of a sample cluster, with what it reports.
type Node struct {
	name     metric.NodeName
	source   string
	interval time.Duration
	cores    float64
	bytes    float64
	pipeline *processors.Pipeline
	batch    metric.Batch
	reports  []*report
	Fails    func(at time.Time) error // nil for a node that never fails
	Took     time.Duration            // how long its reads take
	leftOut  error
	status   explain.SourceState
	exhausts bool
	Alone    bool
}

// report is an entity that a node reports in each round.
type report struct {
	entity   metric.Entity
	instance metric.Instance
	cores    float64 // approximate usage
	bytes    float64
	swing    float64 // share of that which rises and falls
	limits   map[metric.ID]float64
	from     time.Time // earliest time at which it is reported
	noCPU    bool
}

// New returns a cluster without nodes and without reads.
func New(t testing.TB) *Cluster {
	return &Cluster{t: t, memory: memory.New(memory.Options{}), began: Noon.Add(-20 * time.Minute)}
}

// Node adds a node that is read from its kubelet.
func (w *Cluster) Node(name string, cores, gibibytes float64) *Node {
	n := &Node{
		name: metric.NodeName(name), source: "kubelet:cadvisor", interval: round, cores: cores, bytes: gibibytes * (1 << 30),
		pipeline: processors.New(processors.Options{}),
	}
	w.nodes = append(w.nodes, n)
	return n
}

// Itself makes the node report its own usage.
func (n *Node) Itself(cores, gibibytes float64) *Node {
	n.add(metric.Entity{Kind: metric.Node, Node: n.name}, cores, gibibytes*(1<<30)).swing = 0.2
	return n
}

func (n *Node) add(e metric.Entity, cores, bytes float64) *report {
	e.Node = n.name
	r := &report{entity: e, cores: cores, bytes: bytes, swing: 0.4}
	r.instance = metric.Instance{Start: Noon.Add(-30 * time.Hour).UnixNano(), Origin: metric.StartRuntime, Processes: -1}
	n.reports = append(n.reports, r)
	return r
}

// Container makes the node report a container.
func (n *Node) Container(namespace, pod, name string, cores, mebibytes float64) *report {
	r := n.add(metric.Entity{
		Kind: metric.Container, Namespace: metric.Namespace(namespace), Pod: metric.PodName(pod), Name: name,
	}, cores, mebibytes*(1<<20))
	r.instance.UID = UID(namespace, pod)
	r.instance.ID = id(namespace, pod, name)
	r.instance.Path = metric.CgroupPath("/kubepods/burstable/pod" + string(r.instance.UID) + "/" + string(r.instance.ID))
	return r
}

// System makes the node report a cgroup of no pod.
func (n *Node) System(path string, cores, mebibytes float64) *report {
	r := n.add(metric.Entity{Kind: metric.System, Name: path}, cores, mebibytes*(1<<20))
	r.instance.Path = metric.CgroupPath(path)
	return r
}

// UID returns the UID of the pod with that name.
func UID(namespace, pod string) metric.PodUID {
	h := hash(namespace + "/" + pod)
	return metric.PodUID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", h, h>>4&0xffff, h>>8&0xfff, h>>12&0xfff, uint64(h)*7919))
}

func id(namespace, pod, name string) metric.ContainerID {
	h := uint64(hash(namespace + "/" + pod + "/" + name))
	return metric.ContainerID(fmt.Sprintf("%016x%016x%016x%016x", h*7919, h*104729, h*1299709, h*15485863))
}

func hash(s string) (h uint32) {
	h = 2166136261
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// Run reads each node in its rounds, from the beginning to noon.
func (w *Cluster) Run() *Cluster {
	for at := w.began; !at.After(Noon.Add(-3 * time.Second)); at = at.Add(time.Second) {
		for i, n := range w.nodes {
			offset := time.Duration(i*4%15) * time.Second % n.interval
			if n.leftOut != nil && !n.status.LastRead.IsZero() || at.Sub(w.began)%n.interval != offset {
				continue
			}
			w.read(n, at)
		}
	}
	return w
}

// read reads a node once.
func (w *Cluster) read(n *Node, at time.Time) {
	b := &n.batch
	b.Reset()
	b.Source, b.Node, b.Interval, b.Resolution, b.Cores, b.Exhaustive = n.source, n.name, n.interval, time.Millisecond, n.cores, n.exhausts
	b.Began, b.Ended = at.Add(-20*time.Millisecond), at
	n.status.Name, n.status.Node, n.status.Interval = n.source, n.name, n.interval
	n.status.LastRead, n.status.Due, n.status.Err = at, at.Add(n.interval), nil
	n.status.Took, n.status.Bytes = max(n.Took, 20*time.Millisecond), 0
	switch {
	case n.leftOut != nil:
		b.Err, n.status.Unread = n.leftOut, n.leftOut
	case n.Fails != nil:
		b.Err = n.Fails(at)
		n.status.Err = b.Err
	}
	if b.Err == nil {
		n.status.LastSuccess, n.status.Bytes = at, 400*len(n.reports)
		for _, r := range n.reports {
			if !r.from.After(at) {
				r.fill(b, n, at)
			}
		}
	}
	n.pipeline.Process(w.facts, b, at)
	if err := w.memory.Write(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// fill adds to a batch what r reports: a usage that rises and falls, and its
// integral.
func (r *report) fill(b *metric.Batch, n *Node, at time.Time) {
	s := b.Add(r.entity)
	s.Instance = r.instance
	// Each entity has another phase and a period of some minutes.
	h := hash(r.entity.String())
	period := float64(120 + h%400)
	began := cmp.Or(r.instance.Start, Noon.Add(-30*time.Hour).UnixNano()) // not each source reports it
	since := at.Sub(time.Unix(0, began)).Seconds()
	turn := 2 * math.Pi * (since/period + float64(h%100)/100)
	used := r.cores * (since + r.swing*period/(2*math.Pi)*(1-math.Cos(turn)))
	when := at.Add(-time.Duration(h%900) * time.Millisecond).UnixNano()
	if !r.noCPU {
		s.Values.Set(metric.CPUUsage, math.Round(used*1e9))
		s.Times[metric.CPU] = when
	}
	s.Values.Set(metric.MemoryWorkingSet, math.Round(r.bytes*(1+0.2*r.swing*math.Sin(turn/2))))
	s.Times[metric.Memory] = when
	for id, v := range r.limits {
		s.Values.Set(id, v)
		s.Times[metric.Spec] = when
	}
	if r.entity.Kind == metric.Node && n.Alone {
		s.Values.Set(metric.CPUNodeCapacity, n.cores*1e9)
		s.Values.Set(metric.MemoryNodeCapacity, n.bytes)
		s.Times[metric.Spec] = when
	}
}

// Explainer returns the input of explanations, at noon.
func (w *Cluster) Explainer() *explain.Explainer {
	explainer := &explain.Explainer{Now: Noon, Facts: w.facts}
	if s := w.memory.Snapshot(); !s.At().IsZero() {
		explainer.View = s
	}
	for _, n := range w.nodes {
		explainer.Sources = append(explainer.Sources, n.status)
	}
	if w.scaled != nil {
		explainer.Autoscalers = func(p *cluster.Pod) []string { return w.scaled[p.PodRef] }
	}
	return explainer
}

// Points returns the history of a metric of an entity.
func (w *Cluster) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, p := range w.memory.Snapshot().History(e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// Knows adds a change to the facts of the API server.
func (w *Cluster) Knows(c cluster.FactsChange) {
	c.Synced, c.At = true, Noon.Add(-2*time.Second)
	w.facts = w.facts.With(c)
}
