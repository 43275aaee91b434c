package eviction

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ParsePressure parses a threshold of a pressure signal:
//
//	memory.pressure.some.avg10>20
//	memory.pressure.full.avg60>5 for 30s until 2
//
// A signal is of memory, cpu or io, of some or full, and of avg10, avg60 or avg300; the
// figures are percent of the time. With "for" it is a soft threshold; with "until" it
// ends, once in force, only at or below that figure.
//
// What is done is as for the kubelet's signals. For memory, pods are ranked as for
// memory.available, and the condition is MemoryPressure. For cpu they are ranked likewise
// by what they use of it, and the condition is CPUPressure. For io nobody is evicted, only
// IOPressure is set: no statistic tells how much a pod reads and writes, and the stall of a
// pod tells who suffers, not who is to blame.
func ParsePressure(s string) (Threshold, error) {
	fail := func(why string) (Threshold, error) {
		return Threshold{}, fmt.Errorf("%q: %s; write it as memory.pressure.some.avg10>20 for 30s until 10", s, why)
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		return fail("empty")
	}
	name, above, ok := strings.Cut(words[0], ">")
	if !ok {
		return fail("no >")
	}
	t := Threshold{Signal: Signal(name)}
	if !t.Signal.Pressure() {
		return fail("no pressure signal")
	}
	if t.Value.Stall, ok = percent(above); !ok || t.Value.Stall <= 0 || t.Value.Stall >= 100 {
		return fail("the threshold must be above 0 and below 100")
	}
	words = words[1:]
	if len(words) >= 2 && words[0] == "for" {
		grace, err := time.ParseDuration(words[1])
		if err != nil || grace < 0 {
			return fail("no duration after for")
		}
		t.Grace, words = grace, words[2:]
	}
	if len(words) >= 2 && words[0] == "until" {
		until, ok := percent(words[1])
		if !ok || until < 0 || until > t.Value.Stall {
			return fail("what it lasts until must not be above the threshold")
		}
		t.MinReclaim, words = &Value{Stall: until}, words[2:]
	}
	if len(words) > 0 {
		return fail("what does " + words[0] + " mean")
	}
	return t, nil
}

// percent parses a plain number; false if it is none.
func percent(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return f, err == nil && f == f
}

// settles is when the average of a pressure signal has forgotten the time before evicted;
// zero if it has by now. The kernel's averages decay: after a window 37% of the weight is
// left, after two 14%.
func (s Signal) settles(evicted, now time.Time) time.Time {
	_, _, window, ok := s.stall()
	if !ok || evicted.IsZero() {
		return time.Time{}
	}
	seconds := map[string]time.Duration{"avg10": 10, "avg60": 60, "avg300": 300}[window]
	if at := evicted.Add(2 * seconds * time.Second); at.After(now) {
		return at
	}
	return time.Time{}
}

// stallFigure returns the stall that a signal names, in percent of the time, and when it was
// read; false if the node's summary does not have it.
func stallFigure(node *stats.NodeStats, s Signal) (stalled float64, at time.Time, known bool) {
	resource, share, window, ok := s.stall()
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
