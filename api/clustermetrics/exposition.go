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
func (e *exposition) write(v MetricsReader, f filters) {
	for k := range metric.Kind(metric.NumKinds) {
		if !f.level(k) {
			continue
		}
		e.gather(v, k, f)
		for _, t := range e.tables[:e.used] {
			e.families(k, t)
		}
		if e.err != nil {
			return
		}
		if e.truncated && !e.openMetrics { // which has no comments
			e.buf = fmt.Appendf(e.buf, "# weir: stopped at the limit of %d series; ask for less with ?level=, ?metric=, ?namespace= or ?label=\n", e.limit)
		}
		if e.truncated {
			break
		}
	}
	if e.kubernetes {
		e.facts(e.known, kubernetesFacts, f)
	} else {
		e.facts(e.known, podInfo, f)
		e.facts(e.known, resizes(e.known), f)
		e.verdicts(v, f)
	}
	e.gauge("weir_exposition_series", "Series in this exposition.", e.series)
	truncated := 0
	if e.truncated {
		truncated = 1
	}
	e.gauge("weir_exposition_truncated", "1 if this exposition stopped at its limit of series.", truncated)
	if e.openMetrics {
		e.buf = append(e.buf, "# EOF\n"...)
	}
	e.flush()
}

// gather fills the tables with the entities of a kind, up to the limit.
func (e *exposition) gather(v MetricsReader, k metric.Kind, f filters) {
	e.used = 0
	e.table(k, "", f)
	seriesLeft := e.limit - e.series
	v.Each(k, func(s *metric.Sample) bool {
		labels, part := series.LabelsOf(&s.Entity)
		if !f.entity(&labels) {
			return true
		}
		seriesLeft -= e.table(k, part, f).add(&labels, s, e.timestamps, e.moreLabels(&s.Entity)...)
		// One series beyond the limit is added, so that the answer is known to be truncated.
		return seriesLeft >= 0 && e.err == nil
	})
}

// moreLabels returns the labels of e besides those of series.LabelsOf.
func (e *exposition) moreLabels(entity *metric.Entity) []series.Label {
	if !e.kubernetes || entity.Kind != metric.Container {
		return nil
	}
	e.more[0] = image(e.known, entity)
	return e.more[:]
}

// table returns the table for a kind of part. A new one is empty.
func (e *exposition) table(k metric.Kind, part string, f filters) *seriesTable {
	for _, t := range e.tables[:e.used] {
		if t.part == part {
			return t
		}
	}
	if e.used == len(e.tables) {
		e.tables = append(e.tables, new(seriesTable))
	}
	t := e.tables[e.used]
	e.used++
	if e.kubernetes {
		t.reset(part, f.kubernetesMetrics(k, part))
	} else {
		t.reset(part, f.metrics(k, part))
	}
	return t
}

// families writes the families of a table, in the catalogue's order.
func (e *exposition) families(k metric.Kind, t *seriesTable) {
	for id := range t.columns {
		c := &t.columns[id]
		if c.series == 0 || e.truncated {
			continue
		}
		if e.series == e.limit {
			e.truncated = true
			return
		}
		d := &metric.Catalogue[id]
		name, before := series.Name(k, t.part, d), ""
		if e.kubernetes {
			n := kubernetesNameOf(k, t.part, d.ID)
			name, before = n.name, n.labels
		}
		kind := "gauge"
		if d.Type == metric.Cumulative {
			kind = "counter"
		}
		e.header(name, series.Help(k, t.part, d), kind)
		for i, v := range c.values {
			if math.Float64bits(v) == absent {
				continue
			}
			if e.series == e.limit {
				e.truncated = true
				return
			}
			e.series++
			e.buf = append(e.buf, name...)
			row := t.row(i)
			if before != "" {
				e.buf = append(append(e.buf, '{'), before...)
				row = row[1:]
			}
			e.buf = append(e.buf, row...)
			e.buf = append(e.buf, ' ')
			e.buf = appendValue(e.buf, v, d.Unit)
			if e.timestamps && c.times[i] != 0 {
				e.buf = append(e.buf, ' ')
				e.buf = e.appendTime(e.buf, c.times[i])
			}
			e.buf = append(e.buf, '\n')
			if e.flushIfFull(); e.err != nil {
				return
			}
		}
	}
}

// appendTime appends a time in milliseconds since the Unix epoch. OpenMetrics has seconds.
func (e *exposition) appendTime(buf []byte, milliseconds int64) []byte {
	if e.openMetrics {
		return strconv.AppendFloat(buf, float64(milliseconds)/1e3, 'f', 3, 64)
	}
	return strconv.AppendInt(buf, milliseconds, 10)
}

// header writes what precedes the series of a family. In OpenMetrics the family of a counter has the
// counter's name without _total.
func (e *exposition) header(name, help, kind string) {
	if e.openMetrics && kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	for _, s := range [...]string{"# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"} {
		e.buf = append(e.buf, s...)
	}
}

func (e *exposition) gauge(name, help string, value int) {
	e.header(name, help, "gauge")
	e.buf = fmt.Appendf(e.buf, "%s %d\n", name, value)
}

func (e *exposition) flushIfFull() {
	if len(e.buf) >= flushBytes-1024 {
		e.flush()
	}
}

func (e *exposition) flush() {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.out.Write(e.buf)
	}
	e.buf = e.buf[:0]
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
