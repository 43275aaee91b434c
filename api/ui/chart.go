package ui

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// shortestSpan is the span of the lines in tables, and the default span of charts. It is a choice of the
// page and one of its spans by name. It does not depend on how much the memory keeps.
const shortestSpan = 15 * time.Minute

// spans are the spans of charts that a query can ask for, with their names.
var spans = []struct {
	name string
	span time.Duration
}{
	{"15m", shortestSpan}, {"1h", time.Hour}, {"6h", 6 * time.Hour}, {"1d", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour},
}

// spanNamed returns the span with this name, or 0.
func spanNamed(name string) time.Duration {
	for _, s := range spans {
		if s.name == name {
			return s.span
		}
	}
	return 0
}

// timeline is a metric over a span of time, averaged in columns of equal width.
type timeline struct {
	from, to        time.Time
	width           int      // how many columns the span has
	columns         []column // those with values, in order of time
	low, high, last float64
	maxAge          time.Duration // the line has a gap between values that are further apart
	end             time.Time     // the time of the last value
	absent          time.Duration // how long no number was served
}

// column is the mean of the values in one column.
type column struct {
	at, n int
	sum   float64
	moves bool // this column is the first after a gap
}

func (c *column) mean() float64 { return c.sum / float64(c.n) }

// newTimeline reads the values of a metric in the span before now, as columns. Between two values
// that are further apart than maxAge no number was served.
func newTimeline(points iter.Seq2[time.Time, float64], now time.Time, span time.Duration, width int, maxAge time.Duration) *timeline {
	t := &timeline{from: now.Add(-span), to: now, width: width, low: math.Inf(1), high: math.Inf(-1), maxAge: max(maxAge, 2*span/time.Duration(width))}
	for at, v := range points {
		if at.Before(t.from) || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		t.low, t.high, t.last = min(t.low, v), max(t.high, v), v
		gap := !t.end.IsZero() && at.Sub(t.end) > t.maxAge
		if gap {
			t.absent += at.Sub(t.end)
		}
		// The clock of a node may be ahead of this one.
		i := min(int(int64(at.Sub(t.from))/int64(span/time.Duration(width))), width)
		if n := len(t.columns); n == 0 || gap || t.columns[n-1].at != i {
			t.columns = append(t.columns, column{at: i, moves: gap || n == 0})
		}
		c := &t.columns[len(t.columns)-1]
		c.sum += v
		c.n++
		t.end = at
	}
	if tail := now.Sub(t.end); len(t.columns) > 0 && tail > t.maxAge {
		t.absent += tail
	}
	return t
}

// path returns the line as an SVG path. A column is step wide. Zero is at foot, and top at head. Each
// point is written relative to the one before, which takes half of the bytes.
func (t *timeline) path(top float64, step, head, foot int) string {
	var path strings.Builder
	x, y := 0, 0
	for i := range t.columns {
		c := &t.columns[i]
		lastX, lastY := x, y
		x, y = c.at*step, foot
		if top > 0 {
			y -= int(math.Round(c.mean() / top * float64(foot-head)))
		}
		if !c.moves {
			fmt.Fprintf(&path, "l%d%+d", x-lastX, y-lastY)
			continue
		}
		fmt.Fprintf(&path, "M%d %d", x, y)
		if i+1 == len(t.columns) || t.columns[i+1].moves {
			path.WriteString("h0") // draws a dot
		}
	}
	return path.String()
}

// title describes the line. format formats a value.
func (t *timeline) title(name string, format func(float64) string) string {
	span := humanize.Duration(t.to.Sub(t.from))
	if len(t.columns) == 0 {
		return name + ": no number in the last " + span
	}
	title := fmt.Sprintf("%s in the last %s: lowest %s, highest %s, newest %s", name, span, format(t.low), format(t.high), format(t.last))
	if t.absent > 0 {
		title += "; no number for " + humanize.Duration(t.absent)
	}
	return title
}

// values returns the value that was served in each column, separated by "|". It is empty where no
// number was served.
func (t *timeline) values(format func(float64) string) string {
	var all strings.Builder
	next, last := 0, -1
	reach := int(int64(t.maxAge) * int64(t.width) / int64(t.to.Sub(t.from))) // columns
	for i := range t.width {
		for ; next < len(t.columns) && (t.columns[next].at <= i || i == t.width-1); next++ {
			last = next
		}
		gap := next < len(t.columns) && t.columns[next].moves
		if last >= 0 && (t.columns[last].at >= i || !gap && i-t.columns[last].at <= reach) {
			all.WriteString(format(t.columns[last].mean()))
		}
		if i < t.width-1 {
			all.WriteByte('|')
		}
	}
	return all.String()
}

// trend is the line of a metric in a table. The zero value draws nothing.
type trend struct {
	Path  string // path in an SVG image of 120 by 80; empty if there were no values
	Title string // describes the line

	line *timeline
}

// draw draws the line, if there is one, on a scale from zero to high.
func (t *trend) draw(name string, format func(float64) string, high float64) {
	if t.line != nil {
		t.Title = t.line.title(name, format)
		t.Path = t.line.path(high, 2, 2, 78) // a line on the edge would be cut in half
	}
}

// charts are the charts of all metrics of one entity.
type charts struct {
	Span   string
	Mean   string // each point is the mean of this time; empty if the time is short
	Spans  []anchor
	From   int64   // start of the span in seconds since 1970
	Step   float64 // width of a column in seconds
	Charts []chart
}

// chart is the chart of one metric.
type chart struct {
	Name, Help string
	Newest     string // the newest value, if it is not too old
	Title      string
	Line       string // path in an image of 600 by 200
	Grid       []tick // horizontal lines with values
	Times      []tick // vertical lines with times
	Marks      []mark
	Values     string // see timeline.values
}

// tick is a line of the grid. At is its place in percent.
type tick struct {
	At   float64
	Text string
}

// mark is a limit or a request.
type mark struct {
	Name, Text string
	Y          float64 // in percent from the top
	Above      bool    // it is too far above the values to be drawn
	Limit      bool
}

// chartWidth is the number of columns of a chart.
const chartWidth = 120

// charts returns the charts of every metric of e that has a history, or nil if there is none. The
// limits and requests are those in s or, without it, in spec. Both may be nil.
func (p *page) charts(e metric.Entity, s *metric.Sample, spec *metric.Values) *charts {
	if p.opts.Points == nil || p.View == nil {
		return nil
	}
	if s != nil {
		e = s.Entity // the sample has the node
	}
	span := max(spanNamed(p.query.span), shortestSpan)
	from := p.Now.Add(-span)
	c := &charts{Span: humanize.Duration(span), From: from.Unix(), Step: span.Seconds() / chartWidth}
	if span > shortestSpan {
		c.Mean = humanize.Duration(span / chartWidth)
	}
	ids := chartMetrics(e.Kind)
	lines := make([]*timeline, len(ids))
	var all sync.WaitGroup
	maxAge := p.maxSampleAge(e.Node)
	for i, id := range ids { // at once, because --history asks another server for each
		all.Go(func() {
			points := p.opts.Points(e, id, from, p.Now.Add(time.Minute))
			lines[i] = newTimeline(points, p.Now, span, chartWidth, maxAge)
		})
	}
	all.Wait()
	for i, line := range lines {
		if len(line.columns) > 0 {
			c.Charts = append(c.Charts, newChart(e.Kind, ids[i].Describe(), line, s, spec))
		}
	}
	if len(c.Charts) == 0 && span == shortestSpan {
		return nil
	}
	c.Spans = p.spanLinks(span)
	return c
}

// spanLinks returns the links to the other spans that have a history, or nil if there are none.
func (p *page) spanLinks(shown time.Duration) (links []anchor) {
	for _, s := range spans {
		if s.span <= max(p.opts.History, shortestSpan) {
			q := p.query
			if q.span = s.name; s.span == shortestSpan {
				q.span = ""
			}
			links = append(links, anchor{s.name, q.link(), s.span == shown})
		}
	}
	if len(links) == 1 {
		return nil
	}
	return links
}

// chartMetrics returns the metrics of entities of a kind that may have a chart, CPU and memory first.
func chartMetrics(kind metric.Kind) []metric.ID {
	ids := []metric.ID{metric.CPUUsageRate, metric.MemoryWorkingSet}
	for i := range metric.Catalogue {
		d := &metric.Catalogue[i]
		if d.Kinds.Has(kind) && d.Type != metric.Cumulative && d.Group != metric.Spec && !slices.Contains(ids, d.ID) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// newChart draws the line of an entity of some kind, with its axes and the marks of its metric.
func newChart(kind metric.Kind, d *metric.Descriptor, line *timeline, s *metric.Sample, spec *metric.Values) chart {
	c := chart{Name: chartName(d), Help: d.Help}
	top, largest := line.high, line.high
	for _, m := range marks[d.ID] {
		v := valueOr(s, spec, m.id)
		sum := kind == metric.Node || kind == metric.Namespaced || kind == metric.Cluster
		if v <= 0 || sum && m.name == "limit" { // not all pods have a limit
			continue
		}
		above := v > 3*line.high
		if !above {
			top = max(top, v)
		}
		name := m.name
		if sum && name == "request" {
			name = "requested by pods"
		}
		largest = max(largest, v)
		c.Marks = append(c.Marks, mark{Name: name, Y: v, Above: above, Limit: m.limit})
	}
	step := axisStep(top, d.Unit)
	top = max(math.Ceil(top/step)*step, step)
	format := formatOf(d.Unit, max(top, largest))
	c.Title, c.Values = line.title(c.Name, format), line.values(format)
	if line.to.Sub(line.end) <= line.maxAge {
		c.Newest = format(line.last)
	}
	for i := range c.Marks {
		c.Marks[i].Text = format(c.Marks[i].Y)
		c.Marks[i].Y = 100 - math.Round(c.Marks[i].Y/top*1000)/10
	}
	for v := 0.0; v <= top; v += step {
		c.Grid = append(c.Grid, tick{100 - math.Round(v/top*1000)/10, format(v)})
	}
	c.Times = timeTicks(line.from, line.to)
	c.Line = line.path(top, 5, 0, 200)
	return c
}

// marks are the limits and requests of metrics, as lines in their charts.
var marks = map[metric.ID][]struct {
	name  string
	id    metric.ID
	limit bool
}{
	metric.CPUUsageRate:          {{"request", metric.CPURequest, false}, {"limit", metric.CPULimit, true}, {"allocatable", metric.CPUNodeAllocatable, true}},
	metric.MemoryWorkingSet:      {{"request", metric.MemoryRequest, false}, {"limit", metric.MemoryLimit, true}, {"allocatable", metric.MemoryNodeAllocatable, true}},
	metric.MemoryUsage:           {{"limit", metric.MemoryLimit, true}, {"capacity", metric.MemoryNodeCapacity, true}},
	metric.EphemeralStorageUsage: {{"request", metric.EphemeralStorageRequest, false}, {"limit", metric.EphemeralStorageLimit, true}},
	metric.FilesystemUsage:       {{"size", metric.FilesystemLimit, true}},
}

// chartName returns the name of a metric in words: "Network rx".
func chartName(d *metric.Descriptor) string {
	name := strings.NewReplacer("/", " ", "_", " ", "cpu", "CPU", "rss", "RSS", "io read", "read", "io write", "write").
		Replace(strings.TrimSuffix(d.Name, "_rate"))
	return strings.ToUpper(name[:1]) + name[1:]
}

// formatOf returns the format of values of a unit that stand together, of which largest is the largest.
func formatOf(u metric.Unit, largest float64) func(float64) string {
	switch u {
	case metric.Nanocores:
		return humanize.CoresLike(largest)
	case metric.Nanoseconds:
		return func(v float64) string { return humanize.Duration(time.Duration(v)) }
	case metric.Bytes:
		return humanize.Bytes
	case metric.BytesPerSecond:
		return humanize.BytesPerSecond
	case metric.Ratio:
		return humanize.Percent
	case metric.PerSecond:
		return func(v float64) string { return humanize.Decimal(v, 1) + "/s" }
	}
	return func(v float64) string { return humanize.Decimal(v, 1) }
}

// axisStep returns the distance between the lines of the grid of an axis from zero to top: a round
// number in the unit that fits at most four times.
func axisStep(top float64, u metric.Unit) float64 {
	least := top / 4
	if least <= 0 {
		return 1
	}
	if u == metric.Bytes || u == metric.BytesPerSecond {
		return max(1, math.Exp2(math.Ceil(math.Log2(least))))
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, round := range []float64{1, 2, 5} {
		if round*power >= least {
			return round * power
		}
	}
	return 10 * power
}

// timeTicks returns round times in a span, at most seven, in UTC.
func timeTicks(from, to time.Time) (all []tick) {
	const day = 24 * time.Hour
	step, layout := day, "Jan 2"
	for _, s := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour} {
		if to.Sub(from) <= 6*s {
			step, layout = s, "15:04"
			break
		}
	}
	for at := from.UTC().Truncate(step).Add(step); !at.After(to); at = at.Add(step) {
		all = append(all, tick{math.Round(float64(at.Sub(from))/float64(to.Sub(from))*1000) / 10, at.Format(layout)})
	}
	return all
}
