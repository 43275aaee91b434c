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

// distantPast is Interval.Earliest if only Latest is known.
const distantPast = math.MinInt64

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

// Known reports whether there is any evidence.
func (i Interval) Known() bool { return i != Interval{} }

// Shift returns i by a clock that was put forward by the given time since.
func (i Interval) Shift(d time.Duration) Interval {
	if !i.Known() {
		return i
	}
	if i.Earliest != distantPast {
		i.Earliest += int64(d)
	}
	i.Latest += int64(d)
	return i
}

// Overlaps reports whether both may be of one instance. Intervals that touch overlap.
func (i Interval) Overlaps(o Interval) bool { return !i.Before(o) && !o.Before(i) }

// Before reports whether i is certainly of an earlier instance than o.
func (i Interval) Before(o Interval) bool { return i.Known() && o.Known() && i.Latest < o.Earliest }

// EndsBefore reports whether i is certainly of an instance that began before the given time; false if
// either is unknown.
func (i Interval) EndsBefore(t int64) bool { return i.Known() && t != 0 && i.Latest < t }
