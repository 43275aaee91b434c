package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteCSV writes a line for each sync and run. The columns are time (RFC 3339,
// UTC), spec (the run's name), current, desired, ready, recommendation, demand (pods
// that would use the target exactly), use (of the target, 1 being the target),
// recorded, and why. What is not known is empty.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"time", "spec", "current", "desired", "ready", "recommendation", "demand", "use", "recorded", "why"}}
	number := func(v float64, digits int) string {
		if v < 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	for _, run := range r.Runs {
		for i := range run.Points {
			p := &run.Points[i]
			rows = append(rows, []string{
				p.At.UTC().Format(time.RFC3339), run.Name, strconv.Itoa(int(p.Current)), strconv.Itoa(int(p.Desired)), strconv.Itoa(int(p.Ready)),
				number(float64(p.Recommendation), 0), number(p.Demand, 3), number(p.Use, 4), number(float64(p.Recorded), 0), p.Why,
			})
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}
