// Package resourceusage is the rule that turns the measured numbers of a pod or node into the
// usage that metrics.k8s.io serves: which numbers may be served, how they are rounded, and
// which time they have.
//
// It is a package of its own so that every reader applies the same rule: the API
// (api/resourcemetrics), the autoscaler (autoscaler/live), explanations of missing numbers
// (explain), and the memory sink (sinks/memory), which applies it without decoding whole
// samples.
package resourceusage

import (
	"math"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Usage is the CPU and memory of a node or container.
type Usage struct {
	Name   string // of the container; empty for a node
	CPU    int64  // nanocores
	Memory int64  // bytes: the working set
}

// PodUsage is the usage of a pod. All its required containers were measured.
type PodUsage struct {
	// PodRef and UID identify the pod; the UID is empty where the source reports none.
	// They are pointers because a LIST recognises most pods by Index and reads neither.
	*metric.PodRef
	UID         *metric.PodUID
	Node        metric.NodeName // the node that reported it
	Window      metric.Window   // of the container with the oldest numbers
	LastKnownAt int64           // see the function LastKnownAt
	Containers  []Usage         // those with both numbers, by name
	// Generation and Index recognise a pod without its name: while a node's Generation is the
	// same, an Index of that node means the same pod name and UID. Generation 0 has no such
	// meaning.
	Generation uint64
	Index      int
}

// UsageOf returns the usage of a sample's entity, and its window. ok is false unless the sample
// has both CPU and memory. A CPU number without a window has the time of its group.
func UsageOf(s *metric.Sample) (u Usage, window metric.Window, ok bool) {
	cpu, ok := ValueOf(s, metric.CPUUsageRate)
	if !ok {
		return Usage{}, metric.Window{}, false
	}
	memory, ok := ValueOf(s, metric.MemoryWorkingSet)
	if !ok {
		return Usage{}, metric.Window{}, false
	}
	u, ok = NewUsage(cpu, memory)
	if !ok {
		return Usage{}, metric.Window{}, false
	}
	u.Name = s.Entity.Name
	if w := s.Rates[metric.CPU]; w.End != 0 {
		return u, w, true
	}
	return u, metric.Window{End: s.Times[metric.CPU]}, true
}

// NewUsage returns a usage without a name from nanocores and bytes. ok is false if one of
// them is negative, infinite or NaN.
func NewUsage(cpu, memory float64) (u Usage, ok bool) {
	if !isAmount(cpu) || !isAmount(memory) {
		return Usage{}, false
	}
	return Usage{CPU: roundToInt(cpu), Memory: roundToInt(memory)}, true
}

// OlderWindow returns the window that ended first; of two that ended together, the longer one.
// It is the window of a pod with two containers. A zero Window counts as no window.
func OlderWindow(a, b metric.Window) metric.Window {
	if a == (metric.Window{}) || b.End < a.End || b.End == a.End && b.Length > a.Length {
		return b
	}
	return a
}

// MayServe reports whether the numbers of a pod's own sample may be served. p is the pod as the
// API server knows it now; nil if it does not. s is nil if nothing was measured.
func MayServe(p *cluster.Pod, s *metric.Sample) bool {
	return IsComplete(s) && MayServePod(p, s.Instance.UID, LastKnownAt(s))
}

// MayServePod reports whether numbers that were measured under uid may be served for the pod p:
// it runs, its UID matches (an empty uid matches all), and, if its CPU is the last known value
// of lastKnownAt, no required container has ended since then. p is nil if the API server does
// not know the pod.
func MayServePod(p *cluster.Pod, uid metric.PodUID, lastKnownAt int64) bool {
	return p != nil && p.Phase == cluster.Running && (uid == "" || p.HasUID(uid)) && (lastKnownAt == 0 || !p.EndedSince(lastKnownAt))
}

// LastKnownAt returns the time of a pod's CPU, in nanoseconds since the Unix epoch, if the
// last read left a container out and its last known value is repeated; else 0. A read
// between two runs of a container leaves it out, and the API server may report the end of
// the first run only later.
func LastKnownAt(s *metric.Sample) int64 {
	switch {
	case s.LastKnown&(1<<metric.CPU) == 0:
		return 0
	case s.Rates[metric.CPU].End != 0:
		return s.Rates[metric.CPU].End
	}
	return s.Times[metric.CPU]
}

// IsComplete reports whether a node's or pod's own sample has both numbers. A pod's has
// them only if every required container has. s may be nil.
func IsComplete(s *metric.Sample) bool {
	if s == nil {
		return false
	}
	_, cpu := ValueOf(s, metric.CPUUsageRate)
	_, memory := ValueOf(s, metric.MemoryWorkingSet)
	return cpu && memory
}

// ValueOf returns the value of a metric. ok is false if there is none, if its group must
// not be served, or if it is negative, infinite or NaN.
func ValueOf(s *metric.Sample, id metric.ID) (v float64, ok bool) {
	v, ok = s.Values.Get(id)
	return v, ok && s.Servable(metric.Catalogue[id].Group) && isAmount(v)
}

// isAmount reports whether v is finite and not negative.
func isAmount(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// roundToInt returns the nearest integer, at most the largest int64.
func roundToInt(v float64) int64 {
	v = math.Round(v)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}
