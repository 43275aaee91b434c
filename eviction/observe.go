package eviction

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Observation is a signal as it was found.
type Observation struct {
	Signal Signal
	// Available is what is left of Capacity, in bytes, inodes or process ids. Both
	// are the kubelet's 64-bit integers: a figure too large for one is negative.
	Available, Capacity int64
	// Stall is the figure of a pressure signal, in percent of the time.
	Stall float64
	// Time is when it was measured; zero if not known, which counts as now.
	Time time.Time
	// Doubt is why the figure cannot be right, empty if it can. Nobody is evicted
	// for one that cannot: it counts as missing (unless Settings.Parity).
	Doubt string
}

// Quantity is an amount of the signal in the format the kubelet prints it in.
func (o *Observation) Quantity(n int64) *resource.Quantity {
	if o.Signal.inBytes() {
		return resource.NewQuantity(n, resource.BinarySI)
	}
	return resource.NewQuantity(n, resource.DecimalSI)
}

// skew is by how much a measurement's time may be ahead of the decision's.
const skew = time.Second

// observe returns the signals a summary has the figures of, in the order of Signals.
func observe(s *stats.Summary, now time.Time) []Observation {
	list := make([]Observation, 0, 9)
	add := func(signal Signal, available, capacity, total *uint64, at time.Time) {
		if available == nil || (capacity == nil) == (total == nil) {
			return
		}
		o := Observation{Signal: signal, Available: int64(*available), Time: at}
		if capacity != nil {
			o.Capacity = int64(*capacity)
		} else {
			o.Capacity = int64(*available + *total)
		}
		o.Doubt = absurd(*available, capacity, total)
		if o.Doubt == "" {
			o.Doubt = ahead(at, now)
		}
		list = append(list, o)
	}
	memory := func(signal Signal, m *stats.MemoryStats) {
		if m != nil && m.WorkingSetBytes != nil {
			add(signal, m.AvailableBytes, nil, m.WorkingSetBytes, m.Time.Time)
		}
	}
	disk := func(bytes, inodes Signal, fs *stats.FsStats) {
		if fs == nil {
			return
		}
		if fs.CapacityBytes != nil {
			add(bytes, fs.AvailableBytes, fs.CapacityBytes, nil, fs.Time.Time)
		}
		if fs.Inodes != nil {
			add(inodes, fs.InodesFree, fs.Inodes, nil, fs.Time.Time)
		}
	}
	memory(MemoryAvailable, s.Node.Memory)
	memory(AllocatableMemoryAvailable, allPods(s))
	disk(NodeFsAvailable, NodeFsInodesFree, s.Node.Fs)
	if r := s.Node.Runtime; r != nil {
		disk(ImageFsAvailable, ImageFsInodesFree, r.ImageFs)
		disk(ContainerFsAvailable, ContainerFsInodesFree, r.ContainerFs)
	}
	if r := s.Node.Rlimit; r != nil && r.MaxPID != nil && r.NumOfRunningProcesses != nil {
		list = append(list, processes(*r.MaxPID, *r.NumOfRunningProcesses, r.Time.Time, now))
	}
	return list
}

// allPods returns the memory of all pods together, which the kubelet reports as a system
// container; nil if it is not known.
func allPods(s *stats.Summary) *stats.MemoryStats {
	for i := range s.Node.SystemContainers {
		if c := &s.Node.SystemContainers[i]; c.Name == stats.SystemContainerPods {
			return c.Memory
		}
	}
	return nil
}

// processes observes process ids.
func processes(most, running int64, at, now time.Time) Observation {
	o := Observation{Signal: PIDAvailable, Available: most - running, Capacity: most, Time: at}
	switch {
	case most <= 0:
		o.Doubt = fmt.Sprintf("there can be %d processes", most)
	case running < 0:
		o.Doubt = fmt.Sprintf("%d processes are running", running)
	case running > most:
		o.Doubt = fmt.Sprintf("%d processes are running, and there can be %d", running, most)
	default:
		o.Doubt = ahead(at, now)
	}
	return o
}

// stalled observes the pressure signals that thresholds ask for.
func stalled(list []Observation, thresholds []Threshold, node *stats.NodeStats, now time.Time) []Observation {
	for i := range thresholds {
		s := thresholds[i].Signal
		stall, at, ok := stallFigure(node, s)
		if !ok || find(list, s) != nil {
			continue
		}
		o := Observation{Signal: s, Stall: stall, Time: at, Doubt: ahead(at, now)}
		if !(stall >= 0 && stall <= 100) {
			o.Doubt = fmt.Sprintf("a stall of %v percent of the time", stall)
		}
		list = append(list, o)
	}
	return list
}

// absurd returns why an amount cannot be right; empty if it can.
func absurd(available uint64, capacity, rest *uint64) string {
	var whole uint64
	if capacity != nil {
		whole = *capacity
	} else {
		whole = available + *rest
		if whole < available {
			return fmt.Sprintf("%d available and %d in use are more than there can be", available, *rest)
		}
	}
	switch {
	case whole == 0:
		return "the capacity is zero"
	case whole > math.MaxInt64:
		return fmt.Sprintf("a capacity of %d is more than there can be", whole)
	case available > whole:
		return fmt.Sprintf("%d available is more than the capacity, %d", available, whole)
	}
	return ""
}

// ahead returns the doubt about a time in the future; none if now is not known.
func ahead(at, now time.Time) string {
	if by := at.Sub(now); !now.IsZero() && by > skew {
		return fmt.Sprintf("measured %v in the future", by)
	}
	return ""
}

func find(list []Observation, s Signal) *Observation {
	for i := range list {
		if list[i].Signal == s {
			return &list[i]
		}
	}
	return nil
}

// unusable is why decisions do not go by an observation, empty if they do.
func unusable(o *Observation) string {
	if o == nil {
		return "there is no figure"
	}
	return o.Doubt
}

// usable says whether decisions go by an observation: those of the kubelet by any.
func usable(o *Observation, parity bool) bool {
	return o != nil && (parity || o.Doubt == "")
}

// beyond says whether the observation is beyond the threshold; with reclaim, whether
// it is not yet back past it by the minimum.
func (o *Observation) beyond(t *Threshold, reclaim bool) bool {
	if o.Signal.Pressure() {
		above := t.Value.Stall
		if reclaim && t.MinReclaim != nil {
			above = t.MinReclaim.Stall
		}
		return o.Stall > above
	}
	limit, goal := t.limit(o.Capacity)
	if reclaim {
		limit = goal
	}
	return limit.Cmp(*o.Quantity(o.Available)) > 0
}
