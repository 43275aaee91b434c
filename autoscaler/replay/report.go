package replay

import (
	"fmt"
	"time"
)

// Report is what one trace says of one or several specifications.
type Report struct {
	Namespace string    `json:"namespace"`
	Target    string    `json:"target"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	// Runs are in the order in which they are compared: what is changed, then what
	// to.
	Runs []Named `json:"runs"`
}

// Named is the result of a specification, and what to call it.
type Named struct {
	Name string `json:"name"`
	*Result
}

// NewReport returns a report without runs.
func NewReport(t *Trace) *Report {
	return &Report{Namespace: t.Namespace, Target: t.Target, From: t.From, To: t.To}
}

// Add adds a run.
func (r *Report) Add(name string, result *Result) { r.Runs = append(r.Runs, Named{name, result}) }

// recorded is how the workload really fared by the targets of the last run; nil if
// that is not known.
func (r *Report) recorded() *Totals {
	if len(r.Runs) == 0 {
		return nil
	}
	return r.Runs[len(r.Runs)-1].Recorded
}

// warnings are all runs', each once.
func (r *Report) warnings() (list []string) {
	seen := map[string]bool{}
	for _, run := range r.Runs {
		for _, w := range run.Warnings {
			if !seen[w] {
				seen[w] = true
				list = append(list, w)
			}
		}
	}
	return list
}

// gaps are all runs', each once.
func (r *Report) gaps() (list []Gap) {
	seen := map[Gap]bool{}
	for _, run := range r.Runs {
		for _, g := range run.Gaps {
			if !seen[g] {
				seen[g] = true
				list = append(list, g)
			}
		}
	}
	return list
}

// Change is what became of totals: of those of before, after.
type Change struct {
	// PodHours is the change in pod-hours, PodHoursShare as a share of those before; 0
	// if there were none.
	PodHours      float64
	PodHoursShare float64
	// Above and Events are the change in time above target, and in scale events.
	Above  time.Duration
	Events int
	Peak   int32
}

// Compare returns what changed from before to after.
func Compare(before, after *Totals) Change {
	c := Change{
		PodHours: after.PodHours - before.PodHours,
		Above:    (after.Above - before.Above).Duration(),
		Events:   after.Ups + after.Downs - before.Ups - before.Downs,
		Peak:     after.Peak - before.Peak,
	}
	if before.PodHours > 0 {
		c.PodHoursShare = c.PodHours / before.PodHours
	}
	return c
}

// String tells a gap: "cpu from 10:00:00 to 10:05:00 (5m0s)".
func (g Gap) String() string {
	return fmt.Sprintf("%s from %s to %s (%s)", g.Metric, clock(g.From), clock(g.To), g.To.Sub(g.From))
}

// clock is a time for people, in UTC.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
