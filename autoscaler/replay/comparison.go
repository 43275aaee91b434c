package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Comparison is the result of one trace with one or more specifications.
type Comparison struct {
	Namespace string    `json:"namespace"`
	Target    string    `json:"target"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	// Runs are the runs in the order of the comparison: the old specification, then the new one.
	Runs []NamedRun `json:"runs"`
}

// NamedRun is the result of a specification, with the specification's name.
type NamedRun struct {
	Name string `json:"name"`
	*RunResult
}

// NewComparison returns a comparison without runs.
func NewComparison(t *Trace) *Comparison {
	return &Comparison{Namespace: t.Namespace, Target: t.Target, From: t.From, To: t.To}
}

// Add adds a run.
func (co *Comparison) Add(name string, result *RunResult) {
	co.Runs = append(co.Runs, NamedRun{name, result})
}

// recordedTotals returns the totals of the recorded workload, measured by the targets of the last
// run; nil if they are not known.
func (co *Comparison) recordedTotals() *Totals {
	if len(co.Runs) == 0 {
		return nil
	}
	return co.Runs[len(co.Runs)-1].Recorded
}

// eachOnce returns the elements of the runs' lists without repetitions.
func eachOnce[T comparable](runs []NamedRun, list func(NamedRun) []T) (all []T) {
	for _, run := range runs {
		for _, e := range list(run) {
			if !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	return all
}

// String returns a gap as text: "cpu from 2026-01-05 10:00:00 UTC to 2026-01-05 10:05:00 UTC (5m)".
func (g Gap) String() string {
	return fmt.Sprintf("%s from %s to %s (%s)", g.Metric, humanize.DateTime(g.From), humanize.DateTime(g.To), humanize.Duration(g.To.Sub(g.From)))
}

// WriteCSV writes a line for each sync and run. The columns are time (RFC 3339, UTC), spec (the
// name of the run), current, desired, ready, recommendation, demand (the number of pods that would
// use exactly the target), use (share of the target), recorded, and reason. A value that is not
// known is empty.
func (co *Comparison) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"time", "spec", "current", "desired", "ready", "recommendation", "demand", "use", "recorded", "reason"}}
	number := func(v float64, digits int) string {
		if v < 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	for _, run := range co.Runs {
		for i := range run.Points {
			p := &run.Points[i]
			rows = append(rows, []string{
				p.At.UTC().Format(time.RFC3339), run.Name, strconv.Itoa(int(p.Current)), strconv.Itoa(int(p.Desired)), strconv.Itoa(int(p.Ready)),
				number(float64(p.Recommendation), 0), number(p.Demand, 3), number(p.Use, 4), number(float64(p.Recorded), 0), p.Reason,
			})
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}
