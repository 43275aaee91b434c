package eviction

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Observation is the figure of a signal.
type Observation struct {
	Signal Signal
	// Available is the free part of Capacity, in bytes, inodes or process ids. Both are signed as in
	// the kubelet: a figure too large for 63 bits becomes negative.
	Available, Capacity int64
	// Stall is the figure of a pressure signal, in percent of the time.
	Stall float64
	// Time is the time of the measurement. Zero means that it is not known, and counts as now.
	Time time.Time
	// HugePages is what Available and Capacity of memory.available leave out because it is set aside
	// for huge pages, in bytes.
	HugePages uint64
	// Doubt is the reason why the figure cannot be right; empty if it can. The reasons are a capacity
	// of zero, more available than the capacity, a number that does not fit into 64 bits, and a time
	// in the future. Such a figure counts as missing, unless Settings.Parity is set: the signal's
	// thresholds are not met, and their grace periods begin again.
	Doubt string
}

// Quantity returns an amount of the signal in the format that the kubelet prints.
func (o *Observation) Quantity(n int64) *resource.Quantity {
	if o.Signal.countsBytes() {
		return resource.NewQuantity(n, resource.BinarySI)
	}
	return resource.NewQuantity(n, resource.DecimalSI)
}

// maxClockSkew is how far the time of a measurement may be ahead of the decision's time.
const maxClockSkew = time.Second

// observeSummary returns the signals for which the summary has figures, in the order of Signals.
func observeSummary(s *stats.Summary, now time.Time) []Observation {
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
		o.Doubt = cmp.Or(amountDoubt(*available, capacity, total), timeDoubt(at, now))
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
		list = append(list, observeProcesses(*r.MaxPID, *r.NumOfRunningProcesses, r.Time.Time, now))
	}
	return list
}

// subtractHugePages takes the memory for huge pages out of memory.available and its capacity. It is
// in MemTotal, but not in the working set. A kubelet takes it from the Node's capacity, which is that
// of the kubelet's start.
func subtractHugePages(list []Observation, hugePages uint64) {
	if o := findObservation(list, MemoryAvailable); o != nil && hugePages > 0 {
		o.HugePages = min(hugePages, uint64(o.Available))
		o.Available -= int64(o.HugePages)
		o.Capacity -= int64(o.HugePages)
	}
}

// observeMemoryLeft adds weir's own signals. m may be nil.
func observeMemoryLeft(list []Observation, m *MemoryLeft, now time.Time) []Observation {
	if m == nil {
		return list
	}
	add := func(signal Signal, available, capacity uint64) {
		list = append(list, Observation{
			Signal: signal, Available: int64(available), Capacity: int64(capacity), Time: m.At,
			Doubt: cmp.Or(amountDoubt(available, &capacity, nil), timeDoubt(m.At, now)),
		})
	}
	add(MemAvailable, m.Available, m.Total)
	if m.SwapTotal > 0 {
		add(SwapAvailable, m.SwapFree, m.SwapTotal)
	}
	return list
}

// allPods returns the memory of all pods together, which the kubelet reports as a system container.
// It is nil if not known.
func allPods(s *stats.Summary) *stats.MemoryStats {
	for i := range s.Node.SystemContainers {
		if c := &s.Node.SystemContainers[i]; c.Name == stats.SystemContainerPods {
			return c.Memory
		}
	}
	return nil
}

// observeProcesses returns the observation of process ids.
func observeProcesses(most, running int64, at, now time.Time) Observation {
	o := Observation{Signal: PIDAvailable, Available: most - running, Capacity: most, Time: at}
	switch {
	case most <= 0:
		o.Doubt = fmt.Sprintf("there can be %d processes", most)
	case running < 0:
		o.Doubt = fmt.Sprintf("%d processes are running", running)
	case running > most:
		o.Doubt = fmt.Sprintf("%d processes are running, and there can be %d", running, most)
	default:
		o.Doubt = timeDoubt(at, now)
	}
	return o
}

// observeStalls adds the pressure signals that have a threshold.
func observeStalls(list []Observation, thresholds []Threshold, node *stats.NodeStats, now time.Time) []Observation {
	for i := range thresholds {
		s := thresholds[i].Signal
		stall, at, ok := stallFigure(node, s)
		if !ok || findObservation(list, s) != nil {
			continue
		}
		o := Observation{Signal: s, Stall: stall, Time: at, Doubt: timeDoubt(at, now)}
		if !(stall >= 0 && stall <= 100) {
			o.Doubt = fmt.Sprintf("a stall of %v percent of the time", stall)
		}
		list = append(list, o)
	}
	return list
}

// amountDoubt returns the reason why an amount cannot be right; empty if it can.
func amountDoubt(available uint64, capacity, rest *uint64) string {
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

// timeDoubt returns the doubt about a time in the future. It is empty if now is zero.
func timeDoubt(at, now time.Time) string {
	if amount := at.Sub(now); !now.IsZero() && amount > maxClockSkew {
		return fmt.Sprintf("measured %v in the future", amount)
	}
	return ""
}

func findObservation(list []Observation, s Signal) *Observation {
	for i := range list {
		if list[i].Signal == s {
			return &list[i]
		}
	}
	return nil
}

// isUsable reports whether a decision uses an observation. With parity it uses every one.
func isUsable(o *Observation, parity bool) bool {
	return o != nil && (parity || o.Doubt == "")
}

// crosses reports whether the observation is beyond the threshold. If reclaim is set, it reports
// whether the minimum reclaim is not reached yet.
func (o *Observation) crosses(t *Threshold, reclaim bool) bool {
	if o.Signal.Pressure() {
		above := t.Value.Stall
		if reclaim && t.MinReclaim != nil {
			above = t.MinReclaim.Stall
		}
		return o.Stall > above
	}
	limit, goal := t.limitAndGoal(o.Capacity)
	if reclaim {
		limit = goal
	}
	return limit.Cmp(*o.Quantity(o.Available)) > 0
}

// ParsePressure parses a threshold of a pressure signal:
//
//	memory.pressure.some.avg10>20
//	memory.pressure.full.avg60>5 for 30s until 2
//
// A signal has the name memory, cpu or io, then some or full, then avg10, avg60 or avg300. The
// figures are percent of the time. With "for" the threshold is soft. With "until" a threshold in
// force ends at or below that figure.
//
// For memory, pods are ranked as for memory.available, and the condition is MemoryPressure. For
// cpu, pods are ranked by CPU usage in the same way, and the condition is CPUPressure. For io no
// pod is evicted, and only IOPressure is set: there is no statistic of how much a pod reads and
// writes, and a pod's own stall shows which pod waits, not which pod causes the wait.
func ParsePressure(s string) (Threshold, error) {
	fail := func(reason string) (Threshold, error) {
		return Threshold{}, fmt.Errorf("%q: %s; write it as memory.pressure.some.avg10>20 for 30s until 10", s, reason)
	}
	parts := pressurePattern.FindStringSubmatch(strings.TrimSpace(s))
	switch {
	case parts == nil:
		return fail("wrong form")
	case !Signal(parts[1]).Pressure():
		return fail("not a pressure signal")
	}
	t := Threshold{Signal: Signal(parts[1])}
	var ok bool
	if t.Value.Stall, ok = parsePercent(parts[2]); !ok || t.Value.Stall <= 0 || t.Value.Stall >= 100 {
		return fail("the threshold must be above 0 and below 100")
	}
	if parts[3] != "" {
		grace, err := time.ParseDuration(parts[3])
		if err != nil || grace < 0 {
			return fail("no duration after for")
		}
		t.Grace = grace
	}
	if parts[4] != "" {
		until, ok := parsePercent(parts[4])
		if !ok || until < 0 || until > t.Value.Stall {
			return fail("the figure after until must not be above the threshold")
		}
		t.MinReclaim = &ThresholdValue{Stall: until}
	}
	return t, nil
}

var pressurePattern = regexp.MustCompile(`^([^\s>]+)>(\S+)(?:\s+for\s+(\S+))?(?:\s+until\s+(\S+))?$`)

// parsePercent parses a number with or without "%". It returns false if it is not a number.
func parsePercent(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return f, err == nil && f == f
}

// settledAt returns the time from which the average of a pressure signal no longer includes the
// time before evicted; zero if that time has passed. The kernel's averages decay exponentially:
// after one window 37% of the weight is left, after two windows 14%.
func (s Signal) settledAt(evicted, now time.Time) time.Time {
	_, _, window, ok := s.splitPressure()
	if !ok || evicted.IsZero() {
		return time.Time{}
	}
	seconds := map[string]time.Duration{"avg10": 10, "avg60": 60, "avg300": 300}[window]
	if at := evicted.Add(2 * seconds * time.Second); at.After(now) {
		return at
	}
	return time.Time{}
}

// stallFigure returns the stall that a signal names, in percent of the time, and the time of the
// read. It returns false if the summary of the node does not have it.
func stallFigure(node *stats.NodeStats, s Signal) (stalled float64, at time.Time, known bool) {
	resource, share, window, ok := s.splitPressure()
	if !ok {
		return 0, at, false
	}
	var psi *stats.PSIStats
	switch {
	case resource == "memory" && node.Memory != nil:
		psi, at = node.Memory.PSI, node.Memory.Time.Time
	case resource == "cpu" && node.CPU != nil:
		psi, at = node.CPU.PSI, node.CPU.Time.Time
	case resource == "io" && node.IO != nil:
		psi, at = node.IO.PSI, node.IO.Time.Time
	}
	if psi == nil {
		return 0, time.Time{}, false
	}
	stall := psi.Some
	if share == "full" {
		stall = psi.Full
	}
	switch window {
	case "avg10":
		return stall.Avg10, at, true
	case "avg60":
		return stall.Avg60, at, true
	default:
		return stall.Avg300, at, true
	}
}
