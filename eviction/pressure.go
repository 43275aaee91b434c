package eviction

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Pressure is what the kernel's pressure stall information says of the whole node.
type Pressure struct {
	Memory, CPU, IO *Stalls
}

// Stalls tell how much of the time tasks waited for a resource.
type Stalls struct {
	// At is when it was read; zero if not known.
	At   time.Time `json:"at,omitzero"`
	Some Stall     `json:"some"` // at least one task
	Full Stall     `json:"full"` // all that were not idle
}

// Stall is a share of the time, in percent, averaged over so many seconds.
type Stall struct {
	Avg10  float64 `json:"avg10"`
	Avg60  float64 `json:"avg60"`
	Avg300 float64 `json:"avg300"`
}

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

// figure is the stall a signal names, and when it was read; false if it is not known.
func (p *Pressure) figure(s Signal) (stalled float64, at time.Time, known bool) {
	of, share, window, ok := s.stall()
	if p == nil || !ok {
		return 0, at, false
	}
	stalls := p.IO
	switch of {
	case "memory":
		stalls = p.Memory
	case "cpu":
		stalls = p.CPU
	}
	if stalls == nil {
		return 0, at, false
	}
	stall := stalls.Some
	if share == "full" {
		stall = stalls.Full
	}
	switch window {
	case "avg10":
		return stall.Avg10, stalls.At, true
	case "avg60":
		return stall.Avg60, stalls.At, true
	default:
		return stall.Avg300, stalls.At, true
	}
}
