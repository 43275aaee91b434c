// Package trace has measurements over time that a rule is tried on: what containers used, or how
// much load a service had. Read reads them from CSV, Series.Forward walks through one so that a rule
// sees only what was known at each time, and Bootstrap shows how far a result depends on which
// entities the trace happens to have.
//
// Files: trace.go has the trace; csv.go its format; forward.go the walk; bootstrap.go the intervals.
package trace

import (
	"slices"
	"sort"
	"time"
)

// Entity is what was measured: a container, a service, a machine.
type Entity struct {
	Name string
	// Metrics has a series for each column that is not empty.
	Metrics map[string]Series
}

// Series is the readings of one metric. Their times increase.
type Series []Reading

// Reading is one value. It is known from its time on, and is about the time since the reading before.
type Reading struct {
	At    time.Time
	Value float64
}

// Step returns the usual time between two readings, their median; 0 for fewer than two.
func (s Series) Step() time.Duration {
	if len(s) < 2 {
		return 0
	}
	gaps := make([]time.Duration, len(s)-1)
	for i := range gaps {
		gaps[i] = s[i+1].At.Sub(s[i].At)
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// Durations returns the time that each reading is about: since the reading before, but at most two and
// a half steps, so that a gap in the trace counts little. The first reading is about one step.
func (s Series) Durations() []time.Duration {
	step := s.Step()
	durations := make([]time.Duration, len(s))
	for i := range s {
		durations[i] = step
		if i > 0 {
			durations[i] = min(s[i].At.Sub(s[i-1].At), step*5/2)
		}
	}
	return durations
}

// Peak returns the highest value; 0 for none.
func (s Series) Peak() (peak float64) {
	for _, r := range s {
		peak = max(peak, r.Value)
	}
	return peak
}

// Through returns the readings at and before a time.
func (s Series) Through(at time.Time) Series {
	return s[:sort.Search(len(s), func(i int) bool { return s[i].At.After(at) })]
}

// At returns the last value at or before a time, if it is younger than hold.
func (s Series) At(at time.Time, hold time.Duration) (value float64, ok bool) {
	known := s.Through(at)
	if len(known) == 0 || at.Sub(known[len(known)-1].At) >= hold {
		return 0, false
	}
	return known[len(known)-1].Value, true
}
