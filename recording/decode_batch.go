package recording

import (
	"context"
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// batchDecoder decodes batches, with memory that is used again.
type batchDecoder struct {
	*decoder
	deltas []int64
	first  []int64
	at     []int32
}

// batch fills b with what t's source said. Source and Node are set already.
func (d *batchDecoder) batch(t *track, b *metric.Batch) {
	d.read(t, b, true)
}

func (d *batchDecoder) read(t *track, b *metric.Batch, outer bool) {
	b.Began, b.Ended = d.instant(), d.instant()
	flags := d.unsigned()
	b.Exhaustive = flags&flagExhaustive != 0
	if flags&flagNodeTime != 0 {
		b.NodeTime = d.wall + d.signed()
	}
	if flags&flagSteady == 0 {
		t.interval, t.clock, t.cores = d.signed(), d.signed(), d.float()
	}
	b.Interval, b.Resolution, b.Cores = time.Duration(t.interval), time.Duration(t.clock), t.cores
	t.bytes += d.signed()
	b.Bytes = int(t.bytes)
	if flags&flagFailed != 0 {
		b.Err = d.failure()
	}
	rows := d.rows(t, flags&flagSameRows != 0)
	d.numbers(rows, b)
	if d.err != nil {
		return
	}
	if len(rows) > 0 {
		t.keep(rows)
	}
	if flags&flagVerdicts != 0 {
		for range d.count() {
			d.spend(0)
			v, known := d.verdict()
			if d.err != nil {
				return
			}
			if known {
				b.Verdicts = append(b.Verdicts, v)
			}
		}
	}
	if flags&flagWitness != 0 && outer {
		if t.witness == nil {
			t.witness = &track{}
			d.spend(rowSize)
		}
		b.CrossCheck = &metric.Batch{Source: b.Source, Node: b.Node}
		inner := batchDecoder{decoder: d.decoder}
		inner.read(t.witness, b.CrossCheck, false)
	}
}

// rows reads which rows the samples are, with the numbers of their last sight.
func (d *batchDecoder) rows(t *track, same bool) []row {
	n := len(t.rows)
	if !same {
		n = d.count()
	}
	if grow := n - cap(t.spare); grow > 0 {
		d.spend(rowSize * grow)
	}
	if d.err != nil {
		return nil
	}
	rows := t.next(n)
	next := 0
	for i := range rows {
		at := next
		if !same {
			switch op := d.unsigned(); {
			case op == 0:
				if d.define(&rows[i]); d.err != nil {
					return nil
				}
				continue
			case op > 1:
				at = int(min(op-2, math.MaxInt32))
			}
		}
		if at >= len(t.rows) || d.err != nil {
			d.fail(errPlace)
			return nil
		}
		if d.spend(rows[i].grows(&t.rows[at])); d.err != nil {
			return nil
		}
		rows[i].copyFrom(&t.rows[at])
		next = at + 1
	}
	return rows
}

// define reads a new row.
func (d *batchDecoder) define(r *row) {
	r.entity, r.instance = d.entity(), d.instance()
	r.shape = shape{}
	for _, mask := range [...]*uint16{&r.timed, &r.rated, &r.received, &r.held, &r.judged} {
		v := d.unsigned()
		if v>>len(d.names.groups) != 0 {
			d.fail(errPlace)
		}
		*mask = uint16(v)
	}
	for m := r.judged; m != 0; m &= m - 1 {
		r.reasons[bits.TrailingZeros16(m)] = d.reason()
	}
	n := d.count()
	if d.spend(12 * n); d.err != nil {
		return
	}
	r.ids = make([]uint16, n)
	last := uint64(0)
	for i := range r.ids {
		step := d.unsigned()
		last += step
		if last >= uint64(len(d.names.metrics)) || step == 0 && i > 0 || step > maxMetrics {
			d.fail(errPlace)
			return
		}
		r.ids[i] = uint16(last)
	}
	r.become(d.wall)
}

// numbers reads the columns, and makes samples of the rows.
func (d *batchDecoder) numbers(rows []row, b *metric.Batch) {
	n := len(rows)
	if n == 0 || d.err != nil {
		return
	}
	d.deltas = d.column(d.deltas, n)
	d.first = d.column(d.first, n)
	var timed, rated uint16
	for i := range rows {
		r := &rows[i]
		r.start += d.deltas[i]
		r.processes += d.first[i]
		timed, rated = timed|r.timed, rated|r.rated
		s := b.Add(r.entity)
		s.Instance = r.instance
		s.Instance.Start, s.Instance.Processes = r.start, int32(r.processes)
		s.Received, s.LastKnown = d.mask(r.received), d.mask(r.held)
		for m := r.judged; m != 0; m &= m - 1 {
			g := bits.TrailingZeros16(m)
			if here := d.names.groups[g]; here >= 0 {
				s.Reasons[here] = r.reasons[g]
			}
		}
	}
	d.times(rows, b, timed)
	d.windows(rows, b, rated)
	d.metrics(rows, b)
}

// mask translates groups.
func (d *batchDecoder) mask(file uint16) (here uint16) {
	for m := file; m != 0; m &= m - 1 {
		if g := d.names.groups[bits.TrailingZeros16(m)]; g >= 0 {
			here |= 1 << g
		}
	}
	return here
}

func having(rows []row, g int, of func(*row) uint16) (n int) {
	for i := range rows {
		n += int(of(&rows[i]) >> g & 1)
	}
	return n
}

func timedOf(r *row) uint16 { return r.timed }
func ratedOf(r *row) uint16 { return r.rated }

func (d *batchDecoder) times(rows []row, b *metric.Batch, groups uint16) {
	for m := groups; m != 0; m &= m - 1 {
		g := bits.TrailingZeros16(m)
		d.deltas = d.column(d.deltas, having(rows, g, timedOf))
		here, j := d.names.groups[g], 0
		for i := range rows {
			r := &rows[i]
			if r.timed>>g&1 == 0 {
				continue
			}
			delta, k := d.deltas[j], rank(r.timed, g)
			j++
			if k == 0 {
				d.first[i] = delta
			} else {
				delta += d.first[i]
			}
			r.times[k] += delta
			if here >= 0 {
				b.Samples[i].Times[here] = r.times[k]
			}
		}
	}
}

func (d *batchDecoder) windows(rows []row, b *metric.Batch, groups uint16) {
	for m := groups; m != 0; m &= m - 1 {
		g := bits.TrailingZeros16(m)
		n := having(rows, g, ratedOf)
		d.deltas = d.column(d.deltas, n)
		d.first = d.column(d.first, n)
		here, j := d.names.groups[g], 0
		for i := range rows {
			r := &rows[i]
			if r.rated>>g&1 == 0 {
				continue
			}
			k := rank(r.rated, g)
			r.lengths[k] += d.first[j]
			if here >= 0 {
				s := &b.Samples[i]
				s.Rates[here] = metric.Window{End: s.Times[here] + d.deltas[j], Length: time.Duration(r.lengths[k])}
			}
			j++
		}
	}
}

func (d *batchDecoder) metrics(rows []row, b *metric.Batch) {
	d.at = grown(d.at, len(rows))
	clear(d.at)
	var present [maxMetrics / 64]uint64
	for i := range rows {
		for _, id := range rows[i].ids {
			present[id/64] |= 1 << (id % 64)
		}
	}
	for w, word := range present {
		for ; word != 0; word &= word - 1 {
			d.values1(rows, b, uint16(w*64+bits.TrailingZeros64(word)))
		}
	}
}

func (d *batchDecoder) values1(rows []row, b *metric.Batch, id uint16) {
	n := 0
	for i := range rows {
		if k := d.at[i]; int(k) < len(rows[i].ids) && rows[i].ids[k] == id {
			n++
		}
	}
	raw := d.unsigned() != 0
	if !raw {
		d.deltas = d.column(d.deltas, n)
	}
	if d.err != nil {
		return
	}
	here, j := d.names.metrics[id], 0
	for i := range rows {
		r, k := &rows[i], d.at[i]
		if int(k) == len(r.ids) || r.ids[k] != id {
			continue
		}
		d.at[i]++
		if raw {
			r.values[k] = math.Float64frombits(bits.ReverseBytes64(d.unsigned()) ^ math.Float64bits(r.values[k]))
		} else {
			was, _ := whole(r.values[k])
			r.values[k] = float64(was + d.deltas[j])
			j++
		}
		if here >= 0 {
			b.Samples[i].Values.Set(metric.ID(here), r.values[k])
		}
	}
}

// failure reads why a read failed.
func (d *decoder) failure() error {
	form := d.unsigned()
	deadline := form&errDeadline != 0
	form &^= errDeadline
	var read *metric.ReadError
	if form == errRead || form == errWrapping {
		read = &metric.ReadError{Reason: d.reason()}
	}
	told := &toldError{text: d.text(), deadline: deadline}
	switch form {
	case errRead:
		read.Err = told
		return read
	case errWrapping:
		told.read = read
	}
	return told
}

// toldError is an error of which the recording kept what it said, the reason in
// it and whether a deadline had passed.
type toldError struct {
	text     string
	read     *metric.ReadError
	deadline bool
}

// Error returns what the error said.
func (e *toldError) Error() string { return e.text }

// As finds the reason.
func (e *toldError) As(target any) bool {
	if p, ok := target.(**metric.ReadError); ok && e.read != nil {
		*p = e.read
		return true
	}
	return false
}

// Is reports whether the error was one of a deadline.
func (e *toldError) Is(target error) bool {
	return e.deadline && target == context.DeadlineExceeded
}

// verdict reads a verdict, which is unknown if it is of a group that this weir does
// not have.
func (d *decoder) verdict() (v metric.Verdict, known bool) {
	v.Entity, v.Instance = d.entity(), d.instance()
	v.Instance.Start, v.Instance.Processes = d.signed(), int32(d.signed())
	v.Group, known = d.group()
	v.Reason = d.reason()
	ev := &v.Evidence
	ev.Rule, ev.Name = decodeName[string](d), decodeName[string](d)
	ev.Cause, ev.Limit, ev.Due = d.reason(), d.float(), d.signed()
	if d.unsigned() != 0 {
		ev.Err = d.failure()
	}
	for _, s := range [...]*metric.CounterReading{&ev.Got, &ev.Other} {
		*s = metric.CounterReading{
			Time: d.signed(), Start: d.signed(), Value: d.float(),
			UID: decodeName[metric.PodUID](d), ID: decodeName[metric.ContainerID](d), Path: decodeName[metric.CgroupPath](d),
		}
	}
	return v, known
}
