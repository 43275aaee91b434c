package replay

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// WriteTable writes the comparison for people. It has a line for each change of the number of pods,
// or for each span of every if that is not zero, and then the totals and the warnings.
func (co *Comparison) WriteTable(w io.Writer, every time.Duration) error {
	var p humanize.Page
	p.Line(0, humanize.Plain, fmt.Sprintf("%s %s from %s to %s (%s)", co.Namespace, co.Target, humanize.DateTime(co.From), humanize.DateTime(co.To), humanize.Duration(co.To.Sub(co.From))))
	p.Gap()
	p.Table(co.lines(every))
	p.Gap()
	p.Table(co.totals())
	co.writeUncertainties(&p)
	return p.Print(w)
}

// lines returns the rows with the numbers of pods over time.
func (co *Comparison) lines(every time.Duration) [][]string {
	head := []string{"TIME"}
	if co.recordedTotals() != nil {
		head = append(head, "RECORDED")
	}
	for _, run := range co.Runs {
		head = append(head, run.Name)
	}
	rows := [][]string{append(head, "DEMAND", "USE", "WHY")}
	var next time.Time
	for i := range co.Runs[0].Points {
		at := co.Runs[0].Points[i].At
		if every > 0 && at.Before(next) || every == 0 && i > 0 && !co.changes(i) {
			continue
		}
		next = at.Add(every)
		rows = append(rows, co.line(i, every > 0))
	}
	return rows
}

// changes reports whether any run scales at the i-th sync.
func (co *Comparison) changes(i int) bool {
	return slices.ContainsFunc(co.Runs, func(run NamedRun) bool { return run.Points[i].Current != run.Points[i].Desired })
}

// line returns the row of the i-th sync: the numbers of pods after it, and the reasons of those that
// changed.
func (co *Comparison) line(i int, all bool) []string {
	last := &co.Runs[len(co.Runs)-1].Points[i]
	cells := []string{humanize.DateTime(last.At)}
	if co.recordedTotals() != nil {
		cells = append(cells, numberOrDash(float64(last.Recorded), "%.0f"))
	}
	var reasons []string
	for _, run := range co.Runs {
		p := &run.Points[i]
		if p.Current != p.Desired {
			cells = append(cells, fmt.Sprintf("%d → %d", p.Current, p.Desired))
		} else {
			cells = append(cells, strconv.Itoa(int(p.Desired)))
		}
		if !all && p.Current == p.Desired && i > 0 {
			continue
		}
		if len(co.Runs) > 1 {
			reasons = append(reasons, run.Name+": "+p.Reason)
		} else {
			reasons = append(reasons, p.Reason)
		}
	}
	return append(cells, numberOrDash(last.Demand, "%.1f"), numberOrDash(last.Use*100, "%.0f%%"), strings.Join(reasons, " | "))
}

// numberOrDash formats a number; a negative number becomes a dash.
func numberOrDash(v float64, format string) string {
	if v < 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// totals returns rows with a column for the recorded workload and for each run. A further column has
// the change between the last two, if both have the same known time.
func (co *Comparison) totals() [][]string {
	head := []string{"TOTALS"}
	var all []*Totals
	if t := co.recordedTotals(); t != nil {
		head, all = append(head, "RECORDED"), append(all, t)
	}
	for i := range co.Runs {
		head, all = append(head, co.Runs[i].Name), append(all, &co.Runs[i].Totals)
	}
	before, after := all[max(len(all)-2, 0)], all[len(all)-1]
	compared, alike := len(all) > 1, before.Known == after.Known
	if compared {
		head = append(head, "CHANGE")
	}
	rows := [][]string{head}
	write := func(name, delta string, cell func(*Totals) string) {
		cells := []string{name}
		for _, t := range all {
			cells = append(cells, cell(t))
		}
		if compared && alike {
			cells = append(cells, delta)
		}
		rows = append(rows, cells)
	}
	if !alike {
		// A run with less known time has smaller sums, so the two cannot be compared.
		write("time counted", "", func(t *Totals) string { return humanize.Duration(t.Known.Duration()) })
	}
	share := 0.0
	if before.PodHours > 0 {
		share = (after.PodHours - before.PodHours) / before.PodHours
	}
	write("pod-hours", fmt.Sprintf("%+.2f (%+.0f%%)", after.PodHours-before.PodHours, share*100), func(t *Totals) string { return fmt.Sprintf("%.2f", t.PodHours) })
	write("above target", signedDuration((after.Above - before.Above).Duration()), func(t *Totals) string { return timeShare(t.Above, t) })
	write("above CPU limit", "", func(t *Totals) string { return timeShare(t.AboveLimit, t) })
	write("at maxReplicas", "", func(t *Totals) string { return timeShare(t.AtMax, t) })
	write("scale events", fmt.Sprintf("%+d", after.Ups+after.Downs-before.Ups-before.Downs), func(t *Totals) string { return fmt.Sprintf("%d (%d up, %d down)", t.Ups+t.Downs, t.Ups, t.Downs) })
	write("pods, least to most", "", func(t *Totals) string { return fmt.Sprintf("%d to %d", t.Least, t.Peak) })
	names := func(run NamedRun) (names []string) {
		for _, m := range run.Totals.Metrics {
			names = append(names, m.Name)
		}
		return names
	}
	for _, name := range eachOnce(co.Runs, names) {
		write(name+", mean and peak", "", func(t *Totals) string { return metricUse(t, name) })
	}
	return rows
}

// metricUse returns the used share of a metric's target.
func metricUse(t *Totals, name string) string {
	for _, m := range t.Metrics {
		if m.Name == name {
			return fmt.Sprintf("%.0f%%, %.0f%% of %s", m.Mean*100, m.Peak*100, m.Target)
		}
	}
	return "-"
}

// timeShare returns a time and its share of the known time.
func timeShare(s Seconds, t *Totals) string {
	if t.Known == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", humanize.Duration(s.Duration()), humanize.Percent(float64(s/t.Known)))
}

func signedDuration(d time.Duration) string {
	if d < 0 {
		return humanize.Duration(d)
	}
	return "+" + humanize.Duration(d)
}

// writeUncertainties writes gaps and warnings.
func (co *Comparison) writeUncertainties(p *humanize.Page) {
	const most = 10
	gaps := eachOnce(co.Runs, func(run NamedRun) []Gap { return run.Gaps })
	if len(gaps) > 0 {
		p.Title("Unknown:")
	}
	for _, g := range gaps[:min(most, len(gaps))] {
		p.Line(2, humanize.Plain, g.String())
	}
	if len(gaps) > most {
		p.Line(2, humanize.Plain, fmt.Sprintf("and %d more gaps", len(gaps)-most))
	}
	if warnings := eachOnce(co.Runs, func(run NamedRun) []string { return run.Warnings }); len(warnings) > 0 {
		p.Title("Warnings:")
		for _, text := range warnings {
			p.Line(2, humanize.Plain, text+".")
		}
	}
}
