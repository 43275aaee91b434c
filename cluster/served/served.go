// Package served is the rule by which weir serves what a pod or node uses: what
// may be served at all, in which whole numbers, and as of when. It is the rule of
// metrics.k8s.io, kept apart from the API so that whoever reads memory without the
// API (package autoscaler/live) finds the same numbers.
package served

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Use is what a node or container uses, as metrics.k8s.io tells it.
type Use struct {
	Name   string // of the container
	CPU    int64  // in nanocores
	Memory int64  // in bytes: the working set
}

// Span is the time that a use was measured over. The zero Span is none.
type Span struct {
	End    int64         // nanoseconds since the Unix epoch, by the node's clock
	Length time.Duration // 0 for a rate whose window nobody told
}

// UseOf returns what a sample says its entity uses, and over which time. ok is
// whether both numbers are there, without which there is no Use.
func UseOf(s *metric.Sample) (u Use, over Span, ok bool) {
	cpu, ok := Number(s, metric.CPUUsageRate)
	if !ok {
		return Use{}, Span{}, false
	}
	memory, ok := Number(s, metric.MemoryWorkingSet)
	if !ok {
		return Use{}, Span{}, false
	}
	u, ok = Amounts(cpu, memory)
	if !ok {
		return Use{}, Span{}, false
	}
	u.Name = s.Entity.Name
	if w := s.Rates[metric.CPU]; w.End != 0 {
		return u, Span{w.End, w.Length}, true
	}
	return u, Span{End: s.Times[metric.CPU]}, true
}

// Amounts returns the use of so many nanocores and bytes, without a name. ok is
// whether both are amounts: what is none would be served as one.
func Amounts(cpu, memory float64) (u Use, ok bool) {
	if !amount(cpu) || !amount(memory) {
		return Use{}, false
	}
	return Use{CPU: whole(cpu), Memory: whole(memory)}, true
}

// PodUse is what a pod uses that was measured whole, container by container.
type PodUse struct {
	// Who it is, and its UID, which is empty where the source tells none. They are
	// pointed at, for whoever knows the pod by its place need not fetch them.
	*metric.PodRef
	UID  *metric.PodUID
	Node metric.NodeName // that measured it
	Over Span
	Held int64 // see Held
	Uses []Use // of the containers with both numbers, by name
	// Among and Place say which pod of the node it is, where that can be said: Place is
	// of one pod, by reference and UID, as long as Among is equal. Among is nil where
	// nothing is known to be as it was.
	Among any
	Place int
}

// Oldest returns the span of a pod whose containers' are s and o: the one that
// ended first; of two that ended together, the longer. The zero Span is no
// container's.
func (s Span) Oldest(o Span) Span {
	if s == (Span{}) || o.End < s.End || o.End == s.End && o.Length > s.Length {
		return o
	}
	return s
}

// Pod reports whether the numbers of a pod may be served by what the API server
// says now, which may be newer than the numbers: it runs, and it is the one that
// was measured. p is nil if the API server does not know the pod, s if nothing was
// measured of it.
func Pod(p *cluster.Pod, s *metric.Sample) bool {
	return Whole(s) && Runs(p, s.Instance.UID, Held(s))
}

// Runs reports whether the pod that was measured under uid, which is empty where the
// source tells none, is p and runs; and if its numbers are held, whether all that was
// measured still does. p is nil if the API server does not know the pod.
func Runs(p *cluster.Pod, uid metric.PodUID, held int64) bool {
	return p != nil && p.Phase == cluster.Running && (uid == "" || p.HasUID(uid)) && (held == 0 || !p.EndedSince(held))
}

// Held returns as of when a pod's own sample tells its CPU, in nanoseconds since the Unix
// epoch, if a container's is held because the last read left it out; else 0. A read in
// the moment between two runs of a container does that, and the API server may know of
// it only after.
func Held(s *metric.Sample) int64 {
	switch {
	case s.LastKnown&(1<<metric.CPU) == 0:
		return 0
	case s.Rates[metric.CPU].End != 0:
		return s.Rates[metric.CPU].End
	}
	return s.Times[metric.CPU]
}

// Whole reports whether a node's or pod's own sample has both numbers. A pod's has
// them only if each container has that must run. s may be nil.
func Whole(s *metric.Sample) bool {
	if s == nil {
		return false
	}
	_, cpu := Number(s, metric.CPUUsageRate)
	_, memory := Number(s, metric.MemoryWorkingSet)
	return cpu && memory
}

// Number returns the value of a metric, and whether it may be served. What is no
// amount may not: it would be served as one.
func Number(s *metric.Sample, id metric.ID) (float64, bool) {
	v, ok := s.Values.Get(id)
	return v, ok && s.Servable(metric.Catalogue[id].Group) && amount(v)
}

// amount reports whether v is an amount: no less than zero, and finite.
func amount(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// whole returns the whole number nearest to v, within what an int64 holds.
func whole(v float64) int64 {
	v = math.Round(v)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}
