// Package resourceusage is the rule that turns the measured numbers of a pod or node into the
// usage that metrics.k8s.io serves: which numbers may be served, how they are rounded, and
// which time they have.
//
// It is a package of its own so that every reader applies the same rule: the API
// (api/resourcemetrics), the autoscaler (autoscaler/podmetrics), explanations of missing numbers
// (explain), and the memory sink (sinks/memory), which applies it without decoding whole
// samples.
//
// The API server may learn of the end of a run between two reads of its node. The CPU and memory
// of that run are then no longer served (MayServePod), although they were right when they were
// read. The custom metrics API has that rule too (PodHasEnded). Heapster's model does not: it
// serves series, whose points have their own times.
package resourceusage

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// Usage is what a node or container uses.
type Usage struct {
	Name   string // of the container; empty for a node
	CPU    int64  // nanocores
	Memory int64  // bytes: the working set
	Swap   int64  // bytes; negative if it was not reported
}

// PodUsage is the usage of a pod. All its required containers were measured.
type PodUsage struct {
	// PodRef and UID identify the pod; the UID is empty where the source reports none.
	// They are pointers because a LIST recognises most pods by Index and reads neither.
	*metric.PodRef
	UID        *metric.PodUID
	Node       metric.NodeName // the node that reported it
	Window     metric.Window   // of the container with the oldest numbers
	MeasuredAt int64           // the earliest Run.MeasuredAt; 0 if unknown
	Containers []Usage         // those with both numbers, by name
	Runs       []Run           // what Containers were measured of, in their order
	// Generation and Index recognise a pod without its name: while a node's Generation is the
	// same, an Index of that node means the same pod name and UID. Generation 0 has no such
	// meaning.
	Generation uint64
	Index      int
}

// Run says in which run of a container a Usage was measured, and when. Times are nanoseconds since
// the Unix epoch by the node's clock.
type Run struct {
	Window     metric.Window      // of the CPU rate
	MeasuredAt int64              // when the older one of the two numbers was measured; 0 if unknown
	ID         metric.ContainerID // empty if unknown
	Start      int64              // when the run began; 0 if unknown
}

// Add adds a container.
func (u *PodUsage) Add(use Usage, r Run) {
	u.Containers, u.Runs = append(u.Containers, use), append(u.Runs, r)
	u.Window = OlderWindow(u.Window, r.Window)
	if r.MeasuredAt != 0 && (u.MeasuredAt == 0 || r.MeasuredAt < u.MeasuredAt) {
		u.MeasuredAt = r.MeasuredAt
	}
}

// RunOf returns the Run of a container's sample.
func RunOf(s *metric.Sample) Run {
	return NewRun(windowOf(s), s.Times[metric.Memory], s.Instance.ID, s.Instance.Start, s.Instance.Origin)
}

// windowOf returns the window of the CPU rate. A number without a window has the time of its group.
func windowOf(s *metric.Sample) metric.Window {
	if w := s.Rates[metric.CPU]; w.End != 0 {
		return w
	}
	return metric.Window{End: s.Times[metric.CPU]}
}

// NewRun returns the Run of a container from the window of its CPU rate, the time of its memory,
// and the ID and start of its instance.
func NewRun(w metric.Window, memoryAt int64, id metric.ContainerID, start int64, origin metric.StartOrigin) Run {
	r := Run{Window: w, MeasuredAt: w.End, ID: id, Start: start}
	if memoryAt != 0 && (memoryAt < w.End || w.End == 0) {
		r.MeasuredAt = memoryAt
	}
	if origin == metric.StartCgroup {
		r.Start = 0 // the time of a cgroup's last modification
	}
	return r
}

// HasEnded reports whether the API server knows that the run ended: it names another one in its
// place, or the run was measured before the record of c changed and is not the run that c has now.
// c may be nil. The node's clock may have been put back since c began. A run with the ID or the
// start of c is therefore the present one whatever the times say.
func (r *Run) HasEnded(c *cluster.Container) bool {
	if c == nil || r.MeasuredAt == 0 {
		return false
	}
	record := c.Record()
	which, basis := record.Which(&run.Seen{ID: r.ID, Start: r.Start}, &run.Limits{})
	switch {
	case which == run.Ended && basis == run.ByName:
		return true
	case r.MeasuredAt >= c.RunChangedAt():
		return false
	case c.State != cluster.StateRunning:
		return !c.EndUnknown() || !r.beganAfter(&record)
	case basis == run.ByName:
		return which != run.Present
	}
	return !r.beganWith(&record)
}

// beganAfter reports whether the run began after the last run of a record, whose end is unknown.
func (r *Run) beganAfter(record *run.Record) bool {
	return r.ID != record.ID && r.Start != 0 && !record.LastStart.IsZero() && time.Unix(0, r.Start).Sub(record.LastStart) > run.Jitter
}

// beganWith reports whether the run has the start of the present run of a record: no ended run began
// nearer to it. A process may start seconds after its cgroup: what began after the last run ended
// is the present run, too.
func (r *Run) beganWith(record *run.Record) bool {
	if r.Start == 0 {
		return false
	}
	apart := func(t time.Time) time.Duration { return t.Sub(time.Unix(0, r.Start)).Abs() }
	if !record.LastEnd.IsZero() && record.LastEnd.UnixNano() <= r.Start && r.Start <= record.Start.UnixNano() {
		return true
	}
	return apart(record.Start) <= run.Jitter && (record.LastStart.IsZero() || apart(record.Start) <= apart(record.LastStart))
}

// UsageOf returns the usage of a sample's entity, and its window. ok is false unless the sample
// has both CPU and memory.
func UsageOf(s *metric.Sample) (u Usage, window metric.Window, ok bool) {
	cpu, hasCPU := ValueOf(s, metric.CPUUsageRate)
	memory, hasMemory := ValueOf(s, metric.MemoryWorkingSet)
	swap, hasSwap := ValueOf(s, metric.MemorySwap)
	if !hasSwap {
		swap = -1
	}
	u, ok = NewUsage(cpu, memory, swap)
	if !ok || !hasCPU || !hasMemory {
		return Usage{}, metric.Window{}, false
	}
	u.Name = s.Entity.Name
	return u, windowOf(s), true
}

// NewUsage returns a usage without a name from nanocores and bytes. ok is false if CPU or memory is
// negative, infinite or NaN. Such a swap counts as not reported.
func NewUsage(cpu, memory, swap float64) (u Usage, ok bool) {
	if !isAmount(cpu) || !isAmount(memory) {
		return Usage{}, false
	}
	if !isAmount(swap) {
		swap = -1
	}
	return Usage{CPU: roundToInt(cpu), Memory: roundToInt(memory), Swap: roundToInt(swap)}, true
}

// OlderWindow returns the window that ended first; of two that ended together, the longer one.
// It is the window of a pod with two containers. A zero Window counts as no window.
func OlderWindow(a, b metric.Window) metric.Window {
	if a == (metric.Window{}) || b.End < a.End || b.End == a.End && b.Length > a.Length {
		return b
	}
	return a
}

// MayServePod reports whether u may be served for the pod p: p runs, its UID matches (an empty UID
// in u matches all), and the run of no required container ended after it was measured. It removes
// containers from u that no longer run. p is the pod as the API server knows it now; nil if it
// does not.
func MayServePod(p *cluster.Pod, u *PodUsage) bool {
	if p == nil || p.Phase != cluster.Running || *u.UID != "" && !p.HasUID(*u.UID) {
		return false
	}
	return u.MeasuredAt >= p.RunsChangedAt() || u.removeEnded(p)
}

// EndsWithRun reports whether a metric is that of a run, and is withheld when the run has ended: CPU, memory, and their shares of
// the requests.
func EndsWithRun(id metric.ID) bool {
	g := id.Describe().Group
	return g == metric.CPU || g == metric.Memory || id == metric.CPUUtilization || id == metric.MemoryUtilization
}

// PodHasEnded reports whether the CPU and memory of a pod are of a run that ended after they were
// measured, by the rule of MayServePod. p may be nil. r is the Run of the pod's own sample, and
// containers returns the samples of its containers. It is called only if a run of p changed since.
func PodHasEnded(p *cluster.Pod, r *Run, containers func() []*metric.Sample) bool {
	if p == nil || r.MeasuredAt == 0 || r.MeasuredAt >= p.RunsChangedAt() {
		return false
	}
	u := UsageOfContainers(containers())
	return len(u.Containers) > 0 && !u.removeEnded(p)
}

// UsageOfContainers returns the usage of a pod with these containers, without name and UID.
func UsageOfContainers(containers []*metric.Sample) *PodUsage {
	u := &PodUsage{UID: new(metric.PodUID)}
	for _, s := range containers {
		if use, _, ok := UsageOf(s); ok {
			u.Add(use, RunOf(s))
		}
	}
	return u
}

// removeEnded removes the containers that no longer run. It returns false if nothing is left, or
// if a required container began a new run after it was measured.
func (u *PodUsage) removeEnded(p *cluster.Pod) bool {
	containers, runs := u.Containers, u.Runs
	u.Containers, u.Runs, u.Window, u.MeasuredAt = containers[:0], runs[:0], metric.Window{}, 0
	for i := range containers {
		c := p.Container(containers[i].Name)
		switch {
		case !runs[i].HasEnded(c):
			u.Add(containers[i], runs[i])
		case c.Required():
			return false
		}
	}
	return len(u.Containers) > 0
}

// HasBothNumbers reports whether a node's or pod's own sample has both numbers. A pod's has
// them only if every required container has. s may be nil.
func HasBothNumbers(s *metric.Sample) bool {
	if s == nil {
		return false
	}
	_, cpu := ValueOf(s, metric.CPUUsageRate)
	_, memory := ValueOf(s, metric.MemoryWorkingSet)
	return cpu && memory
}

// ValueOf returns the value of a metric. ok is false if there is none, if its group must
// not be served, or if it is negative, infinite or NaN. An Ambiguous number must not be served:
// it may be of another instance, and metrics.k8s.io cannot mark it.
func ValueOf(s *metric.Sample, id metric.ID) (v float64, ok bool) {
	v, ok = s.Values.Get(id)
	g := metric.Catalogue[id].Group
	return v, ok && s.Servable(g) && s.Reasons[g] != metric.Ambiguous && isAmount(v)
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
