package run

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Interval is when an instance began: not before Earliest and not after Latest. Both are nanoseconds
// since the Unix epoch by the node's clock, as it is set now. The zero Interval is unknown: it
// overlaps every other one.
type Interval struct{ Earliest, Latest int64 }

// The bounds of an interval of which only one end is known.
const (
	distantPast   = math.MinInt64
	distantFuture = math.MaxInt64
)

// Reported returns the interval of a start that a node reports and that is off by at most spread. It
// is unknown without a start, and for the modification time of a cgroup, which moves.
func Reported(start int64, origin metric.StartOrigin, spread time.Duration) Interval {
	if start == 0 || origin == metric.StartCgroup {
		return Interval{}
	}
	return Interval{start - int64(spread), start + int64(spread)}
}

// Recorded returns the interval of a start that the API server reports, which is cut to the second.
func Recorded(start time.Time) Interval {
	if start.IsZero() {
		return Interval{}
	}
	return Interval{start.Add(-Cut).UnixNano(), start.Add(Cut).UnixNano()}
}

// CoresAllow returns the interval of an instance whose counter was cpu, in nanoseconds, at the given
// time: it lived for at least cpu / cores. It is unknown if the cores are, or the counter.
func CoresAllow(cpu, cores float64, at int64) Interval {
	if cores <= 0 || cpu <= 0 || at == 0 {
		return Interval{}
	}
	return Interval{distantPast, at - int64(min(cpu/cores, math.MaxInt64/4))}
}

// AbsentAt returns the interval of an instance that an answer from the given time lacks.
func AbsentAt(at int64) Interval { return Interval{at, distantFuture} }

// SeenAt returns the interval of an instance that was read at the given time.
func SeenAt(at int64) Interval { return Interval{distantPast, at} }

// Known reports whether there is any evidence.
func (i Interval) Known() bool { return i != Interval{} }

// And narrows i by other evidence. Evidence that contradicts i disproves it: only o is left.
func (i Interval) And(o Interval) Interval {
	switch {
	case !i.Known():
		return o
	case !o.Known():
		return i
	case !i.Overlaps(o):
		return o
	}
	return Interval{max(i.Earliest, o.Earliest), min(i.Latest, o.Latest)}
}

// Widen returns i with both ends moved outwards, such as by the size of a step of the node's clock.
func (i Interval) Widen(d time.Duration) Interval { return i.move(-int64(d), int64(d)) }

// Shift returns i by a clock that was put forward by the given time since.
func (i Interval) Shift(d time.Duration) Interval { return i.move(int64(d), int64(d)) }

// move moves the ends that are known.
func (i Interval) move(earliest, latest int64) Interval {
	if !i.Known() {
		return i
	}
	if i.Earliest != distantPast {
		i.Earliest += earliest
	}
	if i.Latest != distantFuture {
		i.Latest += latest
	}
	return i
}

// Overlaps reports whether both may be of one instance. Intervals that touch overlap.
func (i Interval) Overlaps(o Interval) bool { return !i.Before(o) && !o.Before(i) }

// Before reports whether i is certainly of an earlier instance than o.
func (i Interval) Before(o Interval) bool { return i.Known() && o.Known() && i.Latest < o.Earliest }

// EndsBefore reports whether i is certainly of an instance that began before the given time; false if
// either is unknown.
func (i Interval) EndsBefore(t int64) bool { return i.Known() && t != 0 && i.Latest < t }
