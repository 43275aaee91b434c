package clustermetrics

import (
	"math"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// table holds the series of the entities of a kind, or of one kind of their
// parts. The format wants them by family, a snapshot gives them by entity:
// columns of plain numbers turn one into the other in one pass, eight bytes a
// number, and are used again by the next request.
type table struct {
	part    string
	pass    [metric.NumMetrics]bool
	labels  []byte // of all rows, as they are written
	ends    []int  // where each row's labels end
	columns [metric.NumMetrics]column
}

// column is one metric of all rows. It is shorter than the table if the last
// rows do not have the metric.
type column struct {
	values []float64 // absent where a row does not have the metric
	times  []int64   // milliseconds since the Unix epoch; only with timestamps
	series int
}

// absent is a NaN that no arithmetic makes, as bits.
const absent = 0x7ff8_0000_dead_beef

func isAbsent(v float64) bool { return math.Float64bits(v) == absent }

// reset empties t and keeps its memory.
func (t *table) reset(part string, pass [metric.NumMetrics]bool) {
	t.part, t.pass = part, pass
	t.labels, t.ends = t.labels[:0], t.ends[:0]
	for i := range t.columns {
		c := &t.columns[i]
		c.values, c.times, c.series = c.values[:0], c.times[:0], 0
	}
}

// add appends a row. It returns how many series it has.
func (t *table) add(l *series.Labels, s *metric.Sample, timestamps bool) (n int) {
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
		t.labels = appendLabels(t.labels, l)
		t.ends = append(t.ends, len(t.labels))
	}
	return n
}

// row returns the labels of row i, as they are written.
func (t *table) row(i int) []byte {
	if i == 0 {
		return t.labels[:t.ends[0]]
	}
	return t.labels[t.ends[i-1]:t.ends[i]]
}
