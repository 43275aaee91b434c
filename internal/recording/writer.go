package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// recordNames is the field of Record with new names. The fields of the kinds follow it.
const recordNames protowire.Number = 1

func (k FrameKind) field() protowire.Number { return protowire.Number(k) + recordNames }

// Writer writes a recording. It is not safe for concurrent use.
//
// After an error of the underlying writer every call returns that error. The records written
// before can be read.
type Writer struct {
	w      io.Writer
	o      Options
	z      *zstd.Encoder
	codec  codec
	block  []byte // records that are not written yet
	packed []byte
	since  time.Time // of the first record in block
	size   int64
	err    error

	begun     time.Time // time of the last Begin; zero if one is due
	announced bool      // a Begin has o.Missing, and may not be written yet
	facts     recentFacts
}

// NewWriter returns a Writer to w, which is at the beginning of a file or after a complete
// block. It writes nothing before the first Flush.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	return &Writer{w: w, o: o.withDefaults(), z: z}, nil
}

// Missing returns the time since which records are missing at the end of what was written. It is
// zero if none are.
func (w *Writer) Missing() time.Time { return w.o.Missing }

// Skip reports that records since a time are not written: the next record follows a Begin that reports that.
func (w *Writer) Skip(since time.Time) {
	if w.o.Missing.IsZero() || w.announced {
		w.o.Missing, w.announced = since, false
	}
	w.begun = time.Time{}
}

// Size returns how many bytes were written.
func (w *Writer) Size() int64 { return w.size }

// Round writes a read of a source: b as the source filled it, and the facts and the time that
// the processors get with it. The Writer keeps nothing of b.
func (w *Writer) Round(b *metric.Batch, facts *cluster.Facts, now time.Time) error {
	if err := w.beginIfDue(now); err != nil {
		return err
	}
	reference, err := w.referTo(facts, now)
	if err != nil {
		return err
	}
	return w.record(Round, now, func(c *codec) { c.round(&now, &reference, b) })
}

// Facts writes facts if they are new. A Round writes its facts itself. Facts is for changes
// while no source is read.
func (w *Writer) Facts(facts *cluster.Facts, now time.Time) error {
	if err := w.beginIfDue(now); err != nil {
		return err
	}
	_, err := w.referTo(facts, now)
	return err
}

// Gone writes that a source is no longer read.
func (w *Writer) Gone(source string, node metric.NodeName) error {
	if w.err != nil || w.begun.IsZero() {
		return w.err // the file has no round of the source
	}
	return w.record(Gone, w.since, func(c *codec) { c.source(1, &source, &node) })
}

// Scale writes the state of a scale target.
func (w *Writer) Scale(t *ScaleTarget, now time.Time) error {
	if err := w.beginIfDue(now); err != nil {
		return err
	}
	return w.record(Scale, now, func(c *codec) { c.scale(&now, t) })
}

// beginIfDue writes a Begin record if one is due.
func (w *Writer) beginIfDue(now time.Time) error {
	if w.err != nil {
		return w.err
	}
	if !w.begun.IsZero() && now.Sub(w.begun) < w.o.Restart {
		return nil
	}
	w.codec.reset(w.o.Begin, 0)
	w.facts, w.begun = recentFacts{}, now
	f := Frame{Now: now, Fresh: !w.o.Continues, By: w.o.By}
	if !w.announced {
		f.Missing = w.o.Missing
	}
	w.o.Continues = true
	err := w.record(Begin, now, func(c *codec) { c.beginning(&f) })
	w.announced = !w.o.Missing.IsZero()
	return err
}

// referTo returns the number by which a record refers to facts: 0 for none, 1 for the
// newest. It writes facts that are new.
func (w *Writer) referTo(facts *cluster.Facts, now time.Time) (uint64, error) {
	if facts == nil {
		return 0, nil
	}
	if at := slices.Index(w.facts.list, facts); at >= 0 {
		return uint64(at) + 1, nil
	}
	err := split(facts.Since(w.facts.newest()), func(part *cluster.FactsChange, more bool) error {
		return w.record(Facts, now, func(c *codec) { c.change(part, &more) })
	})
	w.facts.add(facts)
	return 1, err
}

// record appends a record to the block, and writes the block if it is full or old.
func (w *Writer) record(kind FrameKind, now time.Time, fill func(*codec)) error {
	if w.err != nil {
		return w.err
	}
	c := &w.codec
	c.buf, c.newNames = c.buf[:0], c.newNames[:0]
	outer, _ := c.begin(kind.field())
	fill(c)
	c.end(outer)
	size := len(c.newNames) + len(c.buf)
	if size > maxRecord {
		w.Skip(now) // later records must not refer to the names of this one
		return fmt.Errorf("record a %v: it has %d bytes, more than the %d that can be read", kind, size, maxRecord)
	}
	if len(w.block) > 0 && len(w.block)+size > w.o.Block {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(w.block) == 0 {
		w.since = now
	}
	w.block = protowire.AppendVarint(w.block, uint64(size))
	w.block = append(append(w.block, c.newNames...), c.buf...)
	if w.o.Flush < 0 || now.Sub(w.since) >= w.o.Flush {
		return w.Flush()
	}
	return nil
}

// Flush writes the records that were not written yet.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.block) == 0 {
		return w.err
	}
	w.packed = w.packed[:0]
	if w.size == 0 {
		w.packed = append(w.packed, header...)
	}
	from := len(w.packed)
	w.packed = append(w.packed, make([]byte, blockHead)...)
	w.packed = w.z.EncodeAll(w.block, w.packed)
	appendBlockHead(w.packed[:from], blockRecords, w.packed[from+blockHead:])
	w.block = w.block[:0]
	n, err := w.w.Write(w.packed)
	w.size += int64(n)
	switch {
	case err != nil:
		w.err = fmt.Errorf("write a recording: %w", err)
		if w.o.Missing.IsZero() {
			w.o.Missing = w.since
		}
	case w.announced:
		w.o.Missing, w.announced = time.Time{}, false
	}
	return w.err
}

// Close writes the remaining records and frees memory. It does not close the underlying writer.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.err == nil {
		w.err = errors.New("the recording is closed")
	}
	return errors.Join(err, w.z.Close())
}

// beginning describes a Begin record. Decoding it resets the codec.
func (c *codec) beginning(f *Frame) {
	began := c.began.UnixNano()
	signed(c, 1, &began)
	if c.decoding {
		c.began = time.Unix(0, began)
	}
	c.boolean(2, &f.Fresh)
	text(c, 3, &f.By)
	c.instant(4, &f.Now)
	c.catalogue(5)
	c.instant(8, &f.Missing)
}

// round describes a Round record.
func (c *codec) round(now *time.Time, facts *uint64, b *metric.Batch) {
	c.instant(1, now)
	unsigned(c, 2, facts)
	c.source(3, &b.Source, &b.Node)
	if outer, ok := c.begin(5); ok {
		c.batch(b, false)
		c.end(outer)
	}
}

// source describes the name and the node of a source, in two fields.
func (c *codec) source(first protowire.Number, source *string, node *metric.NodeName) {
	name(c, first, source)
	name(c, first+1, node)
}

// scale describes a Scale record.
func (c *codec) scale(now *time.Time, t *ScaleTarget) {
	c.instant(1, now)
	if outer, ok := c.begin(2); ok {
		c.target(t)
		c.end(outer)
	}
}
