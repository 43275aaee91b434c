package run

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Record is what the API server reports of the runs of one container. The zero Record is of a
// container that it does not mention.
type Record struct {
	State State
	// ID and Start are of the present run; if none runs, ID is of the last one that the record names.
	ID    metric.ContainerID
	Start time.Time
	// LastID, LastStart and LastEnd are of the run that ended last; empty or zero if unknown.
	LastID    metric.ContainerID
	LastStart time.Time
	LastEnd   time.Time
	// First reports that no run has ended: the present run is the container's first.
	First bool
}

// State is whether a container runs.
type State uint8

// The states.
const (
	NotMentioned State = iota
	Running
	Stopped // it waits or has ended
)

// Seen is what reports show of one instance. Times are nanoseconds since the Unix epoch by the
// node's clock; 0 if unknown.
type Seen struct {
	ID     metric.ContainerID
	Start  int64
	Origin metric.StartOrigin
	Read   int64   // when its counter was read; 0 also if the time is by our clock
	CPU    float64 // its counter, in nanoseconds; 0 if unknown
}

// Limits are what is known of the node and of the endpoint that reported an instance.
type Limits struct {
	Resolution time.Duration // of the endpoint's times
	Cores      float64       // 0 if unknown
	// Now is the latest time that the node's clock may show now; 0 if unknown. What lies after it was
	// recorded before the clock was put back.
	Now int64
}

// Run is a run of a Record.
type Run uint8

// The runs. AnyRun means undecided.
const (
	AnyRun  Run = iota
	Present     // the run that the record names as running
	Ended       // an earlier one
	Newer       // one that the record does not name yet
)

// Basis is the evidence that decided.
type Basis uint8

// The kinds of evidence, strongest first.
const (
	ByNothing Basis = iota
	ByName          // container IDs
	ByStart         // the start lies in the interval of one run, and in no other
	ByReading       // the counter was read before the present run began, or before the last one ended
	ByCounter       // the counter is larger than the cores allow since the present run began
)

// Which returns the run of the record that an instance is. The strongest evidence decides.
func (r *Record) Which(s *Seen, l *Limits) (Run, Basis) {
	if r.State == NotMentioned {
		return AnyRun, ByNothing
	}
	if run, decided := r.byName(s); decided {
		return run, ByName
	}
	if run := r.byStart(s, l); run != AnyRun {
		return run, ByStart
	}
	if r.readBefore(s, l) {
		return Ended, ByReading
	}
	if r.overCores(s, l) {
		return Ended, ByCounter
	}
	return AnyRun, ByNothing
}

// IsPresent reports whether an instance is the present run: the IDs are equal or, if one is unknown,
// the starts. It is Which for the question that is asked most.
func (r *Record) IsPresent(id metric.ContainerID, start int64, resolution time.Duration) bool {
	switch {
	case r.State != Running:
		return false
	case id != "" && r.ID != "":
		return id == r.ID
	}
	return r.hasStart(start, resolution)
}

// hasStart reports whether a start is that of the present run.
func (r *Record) hasStart(start int64, resolution time.Duration) bool {
	return start != 0 && !r.Start.IsZero() && Apart(start, r.Start.UnixNano()) <= int64(Cut+resolution)
}

// byName decides by container IDs. IDs that both sides have and that differ are of an ended run, or
// of a newer one if the start is after the present run's; without a start nothing shows which.
func (r *Record) byName(s *Seen) (run Run, decided bool) {
	switch {
	case s.ID == "":
		return AnyRun, false
	case s.ID == r.LastID, r.State == Stopped && s.ID == r.ID:
		return Ended, true
	case r.State == Stopped || r.ID == "":
		return AnyRun, false
	case s.ID == r.ID:
		return Present, true
	case s.Start == 0:
		return AnyRun, true
	}
	began := r.Start.UnixNano()
	if !IsCut(s.Start) {
		began += int64(Cut)
	}
	if s.Start <= began {
		return Ended, true
	}
	return Newer, true
}

// byStart decides by the start of the instance and the times of the runs.
func (r *Record) byStart(s *Seen, l *Limits) Run {
	running := r.State == Running
	start := Reported(s.Start, s.Origin, l.Resolution)
	switch {
	case running && r.hasStart(s.Start, l.Resolution):
		return Present
	case !start.Known():
		return AnyRun
	case r.ended(s, start, l):
		return Ended
	case running && !r.First && !r.Start.IsZero() && Reported(s.Start, s.Origin, Far).EndsBefore(r.Start.UnixNano()):
		return Ended
	case running && Recorded(r.Start).Before(Reported(s.Start, s.Origin, Jitter)):
		return Newer
	}
	return AnyRun
}

// ended reports whether a start is that of the run that ended last, or before its end. A start that
// is nearer to the present run's is that run's, and jitters. Both runs must be by one clock.
func (r *Record) ended(s *Seen, start Interval, l *Limits) bool {
	if r.LastEnd.IsZero() {
		return false
	}
	end := Recorded(r.LastEnd)
	if r.State == Running {
		present := r.Start.UnixNano()
		nearer := !r.LastStart.IsZero() && s.Start-r.LastStart.UnixNano() > present-s.Start
		if Recorded(r.Start).Shift(l.Resolution).Before(Interval{r.LastEnd.UnixNano(), r.LastEnd.UnixNano()}) || present-s.Start <= int64(Jitter) || nearer {
			return false
		}
	} else if l.Now != 0 && r.LastEnd.UnixNano() > l.Now+int64(Cut+l.Resolution) {
		return false // the clock was put back since
	}
	// A node reports when a run was created, the API server when its process started.
	return start.Before(end) || !r.LastStart.IsZero() && start.Overlaps(Recorded(r.LastStart)) && s.Start < end.Latest
}

// readBefore reports whether the counter was read before the present run began or the last one
// ended. A time that is still to come was recorded before the node's clock was put back.
func (r *Record) readBefore(s *Seen, l *Limits) bool {
	since := r.LastEnd
	if r.State == Running {
		since = r.Start
	}
	return ReadBefore(s.Read, since, l)
}

// ReadBefore reports whether a reading is certainly from before a time that the API server reports. A
// time that is still to come was recorded before the node's clock was put back, and reports nothing.
func ReadBefore(read int64, since time.Time, l *Limits) bool {
	if read == 0 || since.IsZero() || l.Now != 0 && since.UnixNano() > l.Now {
		return false
	}
	return Interval{read, read + int64(l.Resolution)}.Before(Recorded(since))
}

// overCores reports whether an instance without a start has a larger counter than the cores allow
// since the present run began.
func (r *Record) overCores(s *Seen, l *Limits) bool {
	if r.State != Running || s.Start != 0 || r.Start.IsZero() || s.Read < r.Start.UnixNano() {
		return false
	}
	return CoresAllow(s.CPU, l.Cores, s.Read).EndsBefore(r.Start.Add(-Far).UnixNano())
}

// WouldName reports whether the API server would have named an instance by now, if that were the
// present run. at is when the record was learnt, by the node's clock, and lag how late it may be.
func WouldName(start int64, origin metric.StartOrigin, at int64, lag time.Duration) bool {
	return Reported(start, origin, 0).EndsBefore(at - int64(lag))
}
