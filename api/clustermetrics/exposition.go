package clustermetrics

import (
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// MetricsReader is one immutable snapshot of samples and verdicts.
type MetricsReader interface {
	// Each calls do for every entity of a kind, and for its parts, with the values that may be
	// served, until do returns false. A sample is valid until do returns. No entity comes twice.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// Verdicts yields the verdicts on missing or doubtful numbers, each with the time since when it
	// is true. The verdicts of one node come together.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
}

// flushBytes is how many bytes are collected before a write.
const flushBytes = 64 << 10

// exposition writes one answer. Later answers use it again.
type exposition struct {
	out    io.Writer
	err    error // of the first failed write
	buf    []byte
	tables []*seriesTable
	used   int // how many tables are in use
	counts verdictCount
	more   [1]series.Label // of moreLabels

	known       *cluster.Facts
	kubernetes  bool // with KubernetesNames
	openMetrics bool // in OpenMetrics' format, not in Prometheus' own
	timestamps  bool
	series      int
	limit       int
	truncated   bool
}

// write writes all entities and verdicts of v that pass the filters.
func (x *exposition) write(v MetricsReader, f filters) {
	for k := range metric.Kind(metric.NumKinds) {
		if !f.level(k) {
			continue
		}
		x.gather(v, k, f)
		for _, t := range x.tables[:x.used] {
			x.families(k, t)
		}
		if x.err != nil {
			return
		}
		if x.truncated && !x.openMetrics { // which has no comments
			x.buf = fmt.Appendf(x.buf, "# weir: stopped at the limit of %d series; ask for less with ?level=, ?metric=, ?namespace= or ?label=\n", x.limit)
		}
		if x.truncated {
			break
		}
	}
	if x.kubernetes {
		x.facts(x.known, kubernetesFacts, f)
	} else {
		x.facts(x.known, podInfo, f)
		x.verdicts(v, f)
	}
	x.gauge("weir_exposition_series", "Series in this exposition.", x.series)
	truncated := 0
	if x.truncated {
		truncated = 1
	}
	x.gauge("weir_exposition_truncated", "1 if this exposition stopped at its limit of series.", truncated)
	if x.openMetrics {
		x.buf = append(x.buf, "# EOF\n"...)
	}
	x.flush()
}

// gather fills the tables with the entities of a kind, up to the limit.
func (x *exposition) gather(v MetricsReader, k metric.Kind, f filters) {
	x.used = 0
	x.table(k, "", f)
	seriesLeft := x.limit - x.series
	v.Each(k, func(s *metric.Sample) bool {
		labels, part := series.LabelsOf(&s.Entity)
		if !f.entity(&labels) {
			return true
		}
		seriesLeft -= x.table(k, part, f).add(&labels, s, x.timestamps, x.moreLabels(&s.Entity)...)
		// One series beyond the limit is added, so that the answer is known to be truncated.
		return seriesLeft >= 0 && x.err == nil
	})
}

// moreLabels returns the labels of e besides those of series.LabelsOf.
func (x *exposition) moreLabels(e *metric.Entity) []series.Label {
	if !x.kubernetes || e.Kind != metric.Container {
		return nil
	}
	x.more[0] = image(x.known, e)
	return x.more[:]
}

// table returns the table for a kind of part. A new one is empty.
func (x *exposition) table(k metric.Kind, part string, f filters) *seriesTable {
	for _, t := range x.tables[:x.used] {
		if t.part == part {
			return t
		}
	}
	if x.used == len(x.tables) {
		x.tables = append(x.tables, new(seriesTable))
	}
	t := x.tables[x.used]
	x.used++
	if x.kubernetes {
		t.reset(part, f.kubernetesMetrics(k, part))
	} else {
		t.reset(part, f.metrics(k, part))
	}
	return t
}

// families writes the families of a table, in the catalogue's order.
func (x *exposition) families(k metric.Kind, t *seriesTable) {
	for id := range t.columns {
		c := &t.columns[id]
		if c.series == 0 || x.truncated {
			continue
		}
		if x.series == x.limit {
			x.truncated = true
			return
		}
		d := &metric.Catalogue[id]
		name, before := series.Name(k, t.part, d), ""
		if x.kubernetes {
			n := kubernetesNameOf(k, t.part, d.ID)
			name, before = n.name, n.labels
		}
		x.header(name, series.Help(k, t.part, d), familyType(d))
		for i, v := range c.values {
			if isAbsent(v) {
				continue
			}
			if x.series == x.limit {
				x.truncated = true
				return
			}
			x.series++
			x.buf = append(x.buf, name...)
			row := t.row(i)
			if before != "" {
				x.buf = append(append(x.buf, '{'), before...)
				row = row[1:]
			}
			x.buf = append(x.buf, row...)
			x.buf = append(x.buf, ' ')
			x.buf = appendValue(x.buf, v, d.Unit)
			if x.timestamps && c.times[i] != 0 {
				x.buf = append(x.buf, ' ')
				x.buf = x.appendTime(x.buf, c.times[i])
			}
			x.buf = append(x.buf, '\n')
			if x.flushIfFull(); x.err != nil {
				return
			}
		}
	}
}

func familyType(d *metric.Descriptor) string {
	if d.Type == metric.Cumulative {
		return "counter"
	}
	return "gauge"
}

// appendTime appends a time in milliseconds since the Unix epoch. OpenMetrics has seconds.
func (x *exposition) appendTime(buf []byte, milliseconds int64) []byte {
	if x.openMetrics {
		return strconv.AppendFloat(buf, float64(milliseconds)/1e3, 'f', 3, 64)
	}
	return strconv.AppendInt(buf, milliseconds, 10)
}

// header writes what precedes the series of a family. In OpenMetrics the family of a counter has the
// counter's name without _total.
func (x *exposition) header(name, help, kind string) {
	if x.openMetrics && kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	for _, s := range [...]string{"# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"} {
		x.buf = append(x.buf, s...)
	}
}

func (x *exposition) gauge(name, help string, value int) {
	x.header(name, help, "gauge")
	x.buf = fmt.Appendf(x.buf, "%s %d\n", name, value)
}

func (x *exposition) flushIfFull() {
	if len(x.buf) >= flushBytes-1024 {
		x.flush()
	}
}

func (x *exposition) flush() {
	if x.err == nil && len(x.buf) > 0 {
		_, x.err = x.out.Write(x.buf)
	}
	x.buf = x.buf[:0]
}

// appendValue appends v in Prometheus' base unit. A whole number in the catalogue's unit has no
// exponent.
func appendValue(buf []byte, v float64, u metric.Unit) []byte {
	format := byte('g')
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		format = 'f'
	}
	return strconv.AppendFloat(buf, series.Value(v, u), format, -1, 64)
}

// seriesTable holds the series of all entities of a kind, or of one kind of their parts. The text
// format needs them by family, and a snapshot yields them by entity. Columns of plain numbers,
// eight bytes each, convert one into the other in one pass. The next request uses the memory again.
type seriesTable struct {
	part    string
	pass    [metric.NumMetrics]bool
	labels  []byte // of all rows, in the text format
	ends    []int  // where the labels of each row end
	columns [metric.NumMetrics]seriesColumn
}

// seriesColumn is one metric of all rows. It is shorter than the table if the last rows do not have
// the metric.
type seriesColumn struct {
	values []float64 // absent if a row does not have the metric
	times  []int64   // milliseconds since the Unix epoch; only with timestamps
	series int
}

// absent is the bits of a NaN that no arithmetic produces.
const absent = 0x7ff8_0000_dead_beef

func isAbsent(v float64) bool { return math.Float64bits(v) == absent }

// reset empties t and keeps its memory for the next use.
func (t *seriesTable) reset(part string, pass [metric.NumMetrics]bool) {
	t.part, t.pass = part, pass
	t.labels, t.ends = t.labels[:0], t.ends[:0]
	for i := range t.columns {
		c := &t.columns[i]
		c.values, c.times, c.series = c.values[:0], c.times[:0], 0
	}
}

// add appends a row with the labels l and more, and returns the number of its series.
func (t *seriesTable) add(l *series.Labels, s *metric.Sample, timestamps bool, more ...series.Label) (n int) {
	row := len(t.ends)
	for id, v := range s.Values.All() {
		if !t.pass[id] {
			continue
		}
		c := &t.columns[id]
		for len(c.values) < row {
			c.values = append(c.values, math.Float64frombits(absent))
		}
		c.values = append(c.values, v)
		c.series++
		n++
		if timestamps {
			for len(c.times) < row {
				c.times = append(c.times, 0)
			}
			c.times = append(c.times, series.Time(s, id)/1e6)
		}
	}
	if n > 0 {
		t.labels = appendLabels(t.labels, l, more...)
		t.ends = append(t.ends, len(t.labels))
	}
	return n
}

// row returns the labels of row i in the text format.
func (t *seriesTable) row(i int) []byte {
	if i == 0 {
		return t.labels[:t.ends[0]]
	}
	return t.labels[t.ends[i-1]:t.ends[i]]
}

// appendLabels appends {a="b",...}, or nothing if there are none.
func appendLabels(buf []byte, l *series.Labels, more ...series.Label) []byte {
	sep := byte('{')
	for _, all := range [...][]series.Label{l.All(), more} {
		for _, p := range all {
			buf = append(buf, sep)
			buf = append(buf, p.Name...)
			buf = append(buf, '=', '"')
			buf = append(buf, escaper.Replace(strings.ToValidUTF8(p.Value, "\uFFFD"))...)
			buf = append(buf, '"')
			sep = ','
		}
	}
	if sep == '{' {
		return buf
	}
	return append(buf, '}')
}

// escaper escapes the characters that a label value cannot contain.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
