package recording

import (
	"context"
	"errors"
	"math"
	"math/bits"

	"github.com/weir-metrics/weir/metric"
)

// The flags of a batch.
const (
	flagExhaustive = 1 << iota
	flagFailed
	flagWitness
	flagNodeTime
	flagVerdicts
	flagSteady   // Interval, Clock and Cores are those of the last batch
	flagSameRows // and in the same order
)

// batch is what encodes batches, with memory that is used again.
type batchEncoder struct {
	*encoder
	deltas []int64
	first  []int64
	at     []int32
	places []int32 // where in the last batch each row was; -1 for a new one
	index  map[rowKey]int32
}

type rowKey struct {
	entity   metric.Entity
	instance metric.Instance
}

func keyOf(s *metric.Sample) rowKey {
	k := rowKey{s.Entity, s.Instance}
	k.instance.Start, k.instance.Processes = 0, 0
	return k
}

// batch writes b as the difference from t's last.
func (e *batchEncoder) batch(t *track, b *metric.Batch) {
	e.instant(b.Began)
	e.instant(b.Ended)
	n := len(b.Samples)
	same := e.match(t, b)
	flags := uint64(0)
	set := func(f uint64, on bool) {
		if on {
			flags |= f
		}
	}
	steady := t.interval == int64(b.Interval) && t.clock == int64(b.Resolution) && math.Float64bits(t.cores) == math.Float64bits(b.Cores)
	set(flagExhaustive, b.Exhaustive)
	set(flagFailed, b.Err != nil)
	set(flagWitness, b.CrossCheck != nil)
	set(flagNodeTime, b.NodeTime != 0)
	set(flagVerdicts, len(b.Verdicts) > 0)
	set(flagSteady, steady)
	set(flagSameRows, same)
	e.unsigned(flags)
	if b.NodeTime != 0 {
		e.signed(b.NodeTime - e.wall)
	}
	if !steady {
		e.signed(int64(b.Interval))
		e.signed(int64(b.Resolution))
		e.float(b.Cores)
		t.interval, t.clock, t.cores = int64(b.Interval), int64(b.Resolution), b.Cores
	}
	e.signed(int64(b.Bytes) - t.bytes)
	t.bytes = int64(b.Bytes)
	if b.Err != nil {
		e.failure(b.Err)
	}
	rows := e.rows(t, b, same)
	e.numbers(rows, b)
	if n > 0 {
		t.keep(rows)
	}
	if len(b.Verdicts) > 0 {
		e.count(len(b.Verdicts))
		for i := range b.Verdicts {
			e.verdict(&b.Verdicts[i])
		}
	}
	if b.CrossCheck != nil {
		if t.witness == nil {
			t.witness = &track{}
		}
		// A witness' own witness there cannot be.
		w := b.CrossCheck
		inner := batchEncoder{encoder: e.encoder}
		inner.batch(t.witness, w)
	}
}

// match finds where each sample's row was in the last batch, and reports whether
// all are where they were.
func (e *batchEncoder) match(t *track, b *metric.Batch) (same bool) {
	n := len(b.Samples)
	e.places = grown(e.places, n)
	next, indexed := 0, false
	same = n == len(t.rows)
	for i := range b.Samples {
		s := &b.Samples[i]
		at := -1
		if next < len(t.rows) && t.rows[next].describes(s) {
			at = next
		} else {
			if !indexed {
				e.reindex(t)
				indexed = true
			}
			if found, ok := e.index[keyOf(s)]; ok && t.rows[found].describes(s) {
				at = int(found)
			}
		}
		e.places[i] = int32(at)
		same = same && at == i
		if at >= 0 {
			next = at + 1
		}
	}
	return same
}

func (e *batchEncoder) reindex(t *track) {
	if e.index == nil {
		e.index = map[rowKey]int32{}
	}
	clear(e.index)
	for i := range t.rows {
		e.index[rowKey{t.rows[i].entity, t.rows[i].instance}] = int32(i)
	}
}

// describes reports whether r is the row of s.
func (r *row) describes(s *metric.Sample) bool {
	in := s.Instance
	in.Start, in.Processes = 0, 0
	if r.entity != s.Entity || r.instance != in || r.received != s.Received || r.held != s.LastKnown {
		return false
	}
	for g := range metric.NumGroups {
		bit := uint16(1) << g
		if (r.timed&bit != 0) != (s.Times[g] != 0) || (r.rated&bit != 0) != (s.Rates[g] != metric.Window{}) || r.reasons[g] != s.Reasons[g] {
			return false
		}
	}
	if len(r.ids) != s.Values.Len() {
		return false
	}
	i := 0
	for id := range s.Values.All() {
		if r.ids[i] != uint16(id) {
			return false
		}
		i++
	}
	return true
}

// rows writes which row each sample is, and returns the rows with the numbers
// of their last sight.
func (e *batchEncoder) rows(t *track, b *metric.Batch, same bool) []row {
	n := len(b.Samples)
	if !same {
		e.count(n)
	}
	rows := t.next(n)
	next := 0
	for i := range rows {
		at := int(e.places[i])
		switch {
		case at < 0:
			e.unsigned(0)
			e.define(&rows[i], &b.Samples[i])
			continue
		case same:
		case at == next:
			e.unsigned(1)
		default:
			e.unsigned(uint64(at) + 2)
		}
		rows[i].copyFrom(&t.rows[at])
		next = at + 1
	}
	return rows
}

// define writes a new row.
func (e *batchEncoder) define(r *row, s *metric.Sample) {
	r.entity, r.instance = s.Entity, s.Instance
	r.instance.Start, r.instance.Processes = 0, 0
	r.shape = shape{received: s.Received, held: s.LastKnown, ids: make([]uint16, 0, s.Values.Len())}
	for g := range metric.NumGroups {
		bit := uint16(1) << g
		if s.Times[g] != 0 {
			r.timed |= bit
		}
		if s.Rates[g] != (metric.Window{}) {
			r.rated |= bit
		}
		if r.reasons[g] = s.Reasons[g]; r.reasons[g] != metric.Unjudged {
			r.judged |= bit
		}
	}
	for id := range s.Values.All() {
		r.ids = append(r.ids, uint16(id))
	}
	e.entity(&r.entity)
	e.instance(&r.instance)
	for _, mask := range [...]uint16{r.timed, r.rated, r.received, r.held, r.judged} {
		e.unsigned(uint64(mask))
	}
	for m := r.judged; m != 0; m &= m - 1 {
		e.unsigned(uint64(r.reasons[bits.TrailingZeros16(m)]))
	}
	e.count(len(r.ids))
	last := uint16(0)
	for _, id := range r.ids {
		e.unsigned(uint64(id - last))
		last = id
	}
	r.become(e.wall)
}

// numbers writes the columns: one number of all rows beside each other.
func (e *batchEncoder) numbers(rows []row, b *metric.Batch) {
	n := len(rows)
	if n == 0 {
		return
	}
	e.deltas, e.first, e.at = grown(e.deltas, n), grown(e.first, n), grown(e.at, n)
	var timed, rated uint16
	for i := range rows {
		in := &b.Samples[i].Instance
		e.deltas[i], rows[i].start = in.Start-rows[i].start, in.Start
		e.first[i] = int64(in.Processes) - rows[i].processes
		rows[i].processes = int64(in.Processes)
		timed, rated = timed|rows[i].timed, rated|rows[i].rated
	}
	e.column(e.deltas)
	e.column(e.first)
	e.times(rows, b, timed)
	e.windows(rows, b, rated)
	e.metrics(rows, b)
}

// times writes a column for each group: by how much its time advanced, less
// what that of the row's first group did.
func (e *batchEncoder) times(rows []row, b *metric.Batch, groups uint16) {
	for m := groups; m != 0; m &= m - 1 {
		g := bits.TrailingZeros16(m)
		e.deltas = e.deltas[:0]
		for i := range rows {
			r := &rows[i]
			if r.timed>>g&1 == 0 {
				continue
			}
			k := rank(r.timed, g)
			d := b.Samples[i].Times[g] - r.times[k]
			r.times[k] += d
			if k == 0 {
				e.first[i] = d
			} else {
				d -= e.first[i]
			}
			e.deltas = append(e.deltas, d)
		}
		e.column(e.deltas)
	}
}

// windows writes two columns for each group that has rates: their ends from the
// group's time, and by how much their lengths changed.
func (e *batchEncoder) windows(rows []row, b *metric.Batch, groups uint16) {
	for m := groups; m != 0; m &= m - 1 {
		g := bits.TrailingZeros16(m)
		e.deltas, e.first = e.deltas[:0], e.first[:0]
		for i := range rows {
			r := &rows[i]
			if r.rated>>g&1 == 0 {
				continue
			}
			s, k := &b.Samples[i], rank(r.rated, g)
			e.deltas = append(e.deltas, s.Rates[g].End-s.Times[g])
			e.first = append(e.first, int64(s.Rates[g].Length)-r.lengths[k])
			r.lengths[k] = int64(s.Rates[g].Length)
		}
		e.column(e.deltas)
		e.column(e.first)
	}
}

// metrics writes a column for each metric: of differences, if all of its values
// are whole numbers, else of what differs in their bits.
func (e *batchEncoder) metrics(rows []row, b *metric.Batch) {
	clear(e.at)
	var present [(int(metric.NumMetrics) + 63) / 64]uint64
	for i := range rows {
		for _, id := range rows[i].ids {
			present[id/64] |= 1 << (id % 64)
		}
	}
	for w, word := range present {
		for ; word != 0; word &= word - 1 {
			e.values1(rows, b, uint16(w*64+bits.TrailingZeros64(word)))
		}
	}
}

func (e *batchEncoder) values1(rows []row, b *metric.Batch, id uint16) {
	e.deltas = e.deltas[:0]
	integral := true
	for i := range rows {
		r, k := &rows[i], e.at[i]
		if int(k) == len(r.ids) || r.ids[k] != id {
			continue
		}
		v, _ := b.Samples[i].Values.Get(metric.ID(id))
		is, ok := whole(v)
		if !ok {
			integral = false
			break
		}
		was, _ := whole(r.values[k])
		e.deltas = append(e.deltas, is-was)
	}
	e.unsigned(uint64(boolean(!integral)))
	if integral {
		e.column(e.deltas)
	}
	for i := range rows {
		r, k := &rows[i], e.at[i]
		if int(k) == len(r.ids) || r.ids[k] != id {
			continue
		}
		v, _ := b.Samples[i].Values.Get(metric.ID(id))
		if !integral {
			e.unsigned(bits.ReverseBytes64(math.Float64bits(v) ^ math.Float64bits(r.values[k])))
		}
		r.values[k] = v
		e.at[i]++
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The flags of an error.
const (
	errPlain    = iota // text alone
	errRead            // a *metric.ReadError
	errWrapping        // one in another error
	errDeadline = 4    // added to those: a deadline passed
)

// failure writes why a read failed.
func (e *encoder) failure(err error) {
	var read *metric.ReadError
	form := uint64(errPlain)
	var text string
	if direct, ok := err.(*metric.ReadError); ok { //nolint:errorlint // whether it is wrapped is the question
		form, read, text = errRead, direct, errorText(direct.Err)
	} else {
		text = errorText(err)
		if errors.As(err, &read) {
			form = errWrapping
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		form += errDeadline
	}
	e.unsigned(form)
	if read != nil {
		e.unsigned(uint64(read.Reason))
	}
	e.text(text)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// verdict writes what a source judged itself.
func (e *encoder) verdict(v *metric.Verdict) {
	e.entity(&v.Entity)
	e.instance(&v.Instance)
	e.signed(v.Instance.Start)
	e.signed(int64(v.Instance.Processes))
	e.unsigned(uint64(v.Group))
	e.unsigned(uint64(v.Reason))
	ev := &v.Evidence
	encodeName(e, ev.Rule)
	encodeName(e, ev.Name)
	e.unsigned(uint64(ev.Cause))
	e.float(ev.Limit)
	e.signed(ev.Due)
	e.unsigned(uint64(boolean(ev.Err != nil)))
	if ev.Err != nil {
		e.failure(ev.Err)
	}
	for _, s := range [...]*metric.CounterReading{&ev.Got, &ev.Other} {
		e.signed(s.Time)
		e.signed(s.Start)
		e.float(s.Value)
		encodeName(e, s.UID)
		encodeName(e, s.ID)
		encodeName(e, s.Path)
	}
}
