package recording

import (
	"math/bits"

	"github.com/weir-metrics/weir/metric"
)

// track is what is remembered of one source: the rows of its last batch that had
// samples. The next batch is written as the difference from it.
type track struct {
	source string
	node   metric.NodeName
	rows   []row
	spare  []row // of the batch before, whose memory is used again

	interval, clock, bytes int64
	cores                  float64

	witness *track // nil until the first witness
}

type sourceKey struct {
	source string
	node   metric.NodeName
}

// row is one line of a source's report: what seldom changes, and its numbers at
// their last sight. Groups and metrics go by their numbers in the file.
type row struct {
	entity   metric.Entity
	instance metric.Instance // without Start and Processes, which are numbers
	shape

	start, processes int64
	times            []int64 // of the groups in timed
	lengths          []int64 // of the windows in rated
	values           []float64
}

// shape says which numbers a row has.
type shape struct {
	timed, rated   uint16 // groups with a time, and with a window
	received, held uint16
	judged         uint16 // groups with a reason
	reasons        [16]metric.Reason
	ids            []uint16 // metrics, ascending
}

// maxGroups is how many bits a mask of groups has.
const maxGroups = 16

// maxMetrics bounds how many metrics a file may name.
const maxMetrics = 1 << 12

// rowSize is about what a row and its sample take in memory, without its numbers.
const rowSize = 768

// rank returns where the number of group g lies among those of a mask.
func rank(mask uint16, g int) int { return bits.OnesCount16(mask & (1<<g - 1)) }

// become makes r a row with room for the numbers of its shape, all 0 but times, which
// are base.
func (r *row) become(base int64) {
	r.start, r.processes = 0, 0
	r.times = grown(r.times, bits.OnesCount16(r.timed))
	for i := range r.times {
		r.times[i] = base
	}
	r.lengths = grown(r.lengths, bits.OnesCount16(r.rated))
	clear(r.lengths)
	r.values = grown(r.values, len(r.ids))
	clear(r.values)
}

// grows returns how many bytes more r takes as a copy of o.
func (r *row) grows(o *row) int {
	return 8 * (max(0, len(o.times)-cap(r.times)) + max(0, len(o.lengths)-cap(r.lengths)) + max(0, len(o.values)-cap(r.values)))
}

// copyFrom makes r what o is, in memory of its own.
func (r *row) copyFrom(o *row) {
	c := *o
	c.times = copied(r.times, o.times)
	c.lengths = copied(r.lengths, o.lengths)
	c.values = copied(r.values, o.values)
	*r = c
}

// copied is from, in the memory of to if there is enough.
func copied[T any](to, from []T) []T { return append(to[:0], from...) }

// next returns the memory for the rows of the next batch.
func (t *track) next(n int) []row {
	if cap(t.spare) < n {
		t.spare = append(t.spare[:cap(t.spare)], make([]row, n-cap(t.spare))...)
	}
	return t.spare[:n]
}

// keep makes rows those of the last batch.
func (t *track) keep(rows []row) { t.rows, t.spare = rows, t.rows }
