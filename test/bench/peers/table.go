//go:build linux

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// A row is one line of a table. A number that was not measured is NaN.
type row struct {
	title, unit string
	weir, peer  float64
	// bound is the largest allowed ratio of weir's number to metrics-server's. With
	// absolute, it is the largest allowed number of weir. 0 means no bound.
	bound    float64
	absolute bool
}

// ratio is weir's number divided by metrics-server's.
func (r row) ratio() float64 {
	if r.absolute {
		return math.NaN()
	}
	return r.weir / r.peer
}

// holds says whether the bound is kept: "yes", "NO", or "" if there is no bound
// or a number is missing.
func (r row) holds() string {
	v := r.ratio()
	if r.absolute {
		v = r.weir
	}
	switch {
	case r.bound == 0 || math.IsNaN(v):
		return ""
	case v <= r.bound:
		return "yes"
	default:
		return "NO"
	}
}

// wanted returns the bound as text.
func (r row) wanted() string {
	if r.bound == 0 {
		return ""
	}
	if r.absolute {
		return "weir ≤ " + number(r.bound)
	}
	return "ratio ≤ " + number(r.bound)
}

// rows returns the table of a scenario, from all its turns. A number is the
// median of the rounds. For each kind of request, quantiles are over the
// requests of all rounds.
func rows(turns []Turn, scenario string) []row {
	values := func(program, key string) []float64 {
		var vs []float64
		for _, t := range turns {
			if v, ok := t.Values[key]; ok && t.Scenario == scenario && t.Program == program {
				vs = append(vs, v)
			}
		}
		return vs
	}
	mid := func(program, key string) float64 { return median(values(program, key)) }
	most := func(program, key string) float64 { return quantile(values(program, key), 1) }
	took := func(program, key string, q float64) float64 {
		var all []float64
		for _, t := range turns {
			if t.Scenario == scenario && t.Program == program {
				all = append(all, t.Requests[key]...)
			}
		}
		return quantile(all, q)
	}
	both := func(of func(string, string) float64, key, title, unit string, bound float64) row {
		return row{title: title, unit: unit, weir: of(weirName, key), peer: of(peerName, key), bound: bound}
	}
	absolute := func(r row, bound float64) row {
		r.bound, r.absolute = bound, true
		return r
	}

	over := func(floor, title string) row {
		r, least := both(mid, "cpu", title, "×", 0), mid(floor, "cpu")
		r.weir, r.peer = r.weir/least, r.peer/least
		return r
	}
	table := []row{
		both(mid, "cpu", "CPU per node-scrape", "µs", 0.65),
		absolute(over(plainName, "the same over the plain fetch floor"), 1.25),
		over(beatFetch, "the same over that floor in weir's beats"),
		both(most, "failed", "reads of nodes that failed meanwhile", "", 0),
		full(turns, scenario, both(mid, "rss", "resident, steady", "MiB", 0.5)),
		both(most, "peak", "resident, peak", "MiB", 0),
		both(mid, "first", "first metric after start", "s", 0),
		both(mid, "most", "99% of nodes served after", "s", 0),
		both(mid, "served", "pods served", "", 0),
		absolute(both(most, "lag", "oldest sample served, behind its node's newest", "resolutions", 0), 1.2),
		both(mid, "lag p50", "median sample, behind its node's newest", "resolutions", 0),
		absolute(both(most, "lag loaded", "oldest sample after LISTs without a pause", "resolutions", 0), 1.2),
		both(most, "oldest", "age of the oldest sample served", "resolutions", 0),
		both(mid, "newest", "age of the newest sample served", "resolutions", 0),
		absolute(both(most, "rate error", "largest relative error of a rate", "", 0), 1e-6),
	}
	for _, r := range kinds() {
		table = append(table,
			row{r.title + ", p50", "ms", took(weirName, r.key, .5), took(peerName, r.key, .5), r.bound, false},
			row{r.title + ", p99", "ms", took(weirName, r.key, .99), took(peerName, r.key, .99), 0, false},
			both(mid, r.key+" cpu", r.title+", server's CPU", "ms", 0),
			both(mid, r.key+" bytes", r.title+", bytes", "B", 0))
	}
	return slices.DeleteFunc(table, func(r row) bool { return math.IsNaN(r.weir) && math.IsNaN(r.peer) })
}

// full uses weir's memory of the turn in which its history was full, if there
// was one. The title says whether there was.
func full(turns []Turn, scenario string, r row) row {
	const history = 15 * 60
	for _, t := range turns {
		if t.Scenario == scenario && t.Program == weirName && t.Values["age"] >= history {
			r.weir = t.Values["rss"]
			r.title += ", weir's 15 min of history full"
			return r
		}
	}
	r.title += ", history not yet full"
	return r
}

// number prints about three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a == 0:
		return "0"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.001:
		return fmt.Sprintf("%.3g", v)
	default:
		return fmt.Sprintf("%.1e", v)
	}
}

// A style prints a table. The first line of cells is the header.
type style func(cells [][]string) string

func plain(cells [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range cells {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	w.Flush() // a write to a Builder cannot fail
	return b.String()
}

func markdown(cells [][]string) string {
	var b strings.Builder
	for i, line := range cells {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(line)) + "\n")
		}
	}
	return b.String()
}

// render returns the header and a table for each scenario that was measured.
func (r *Result) render(as style) string {
	var b strings.Builder
	m, o := r.Machine, r.Options
	fmt.Fprintf(&b, "%s: %d cores of %s, %d MiB, Linux %s; load before: %.2f\n\n", m.Time.Format("2006-01-02 15:04 MST"), m.Cores, m.CPU, m.MemoryMB, m.Kernel, m.Load)
	for _, name := range []string{weirName, peerName} {
		fmt.Fprintf(&b, "%s: %s\n\n", name, m.Programs[name])
	}
	fmt.Fprintf(&b, "%d nodes × %d pods × %d containers, read every %v.\n", o.Shape.Nodes, o.Shape.Pods, o.Shape.Containers, o.Resolution)
	if o.Quick {
		b.WriteString("A quick run: short windows and few requests; not for comparing.\n")
	}
	if m.Load > 0.5 {
		b.WriteString("The machine was busy before it began: take the numbers with care.\n")
	}
	for _, scenario := range []string{staticScenario, churnScenario} {
		table := rows(r.Turns, scenario)
		if !slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Scenario == scenario }) {
			continue
		}
		cells := [][]string{{scenario, "unit", weirName, peerName, "ratio", "wanted", "holds"}}
		for _, l := range table {
			cells = append(cells, []string{l.title, l.unit, number(l.weir), number(l.peer), number(l.ratio()), l.wanted(), l.holds()})
		}
		fmt.Fprintf(&b, "\n%s", as(cells))
		for _, name := range []string{plainName, beatFetch, peerFetch} {
			fmt.Fprintf(&b, "\n%s: %s µs of CPU for %s bytes", name, number(r.middle(scenario, name, "cpu")), number(r.middle(scenario, name, "bytes")))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *Result) middle(scenario, program, key string) float64 {
	var vs []float64
	for _, t := range r.Turns {
		if t.Scenario == scenario && t.Program == program {
			vs = append(vs, t.Values[key])
		}
	}
	return median(vs)
}
