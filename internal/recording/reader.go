package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Reader reads a recording, which may be damaged or forged. It is not safe for concurrent use.
type Reader struct {
	blocks blockReader
	memory int64 // approximate number of bytes that it may keep between two Begin records
	z      *zstd.Decoder
	block  []byte // decompressed
	rest   []byte // the records of block that are not read yet
	at     int64  // where the block begins
	batch  metric.Batch
	err    error

	codec   codec
	begun   bool
	facts   recentFacts
	pending *cluster.FactsChange // a change that the next record continues
	now     time.Time
}

// NewReader returns a Reader of r. The error is a *NoRecordingError if r is not a
// recording, and a *TruncatedError if it ends within the header.
func NewReader(r io.Reader) (*Reader, error) {
	rd := &Reader{memory: maxMemory, blocks: blockReader{r: bufio.NewReaderSize(r, 64<<10)}, codec: codec{decoding: true}}
	if err := rd.blocks.readHeader(); err != nil {
		return nil, err
	}
	var err error
	rd.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, fmt.Errorf("make a decompressor: %w", err)
	}
	return rd, nil
}

// Offset returns the end of the last complete block that was read, in bytes.
func (r *Reader) Offset() int64 { return r.blocks.at }

// Next returns the next frame. Its Batch is valid until the next call. The error is io.EOF at
// the end, a *TruncatedError if the file ends within a block, and a *DamagedError if the file
// has changed. After an error Next returns the same error.
func (r *Reader) Next() (Frame, error) { return r.Read(&r.batch) }

// Read is Next with a batch into which a Round is read. Read empties it first.
func (r *Reader) Read(b *metric.Batch) (Frame, error) {
	for r.err == nil {
		f, ok, err := r.nextRecord(b)
		if err == nil && ok {
			return f, nil
		}
		r.err = err
	}
	return Frame{}, r.err
}

// nextRecord reads a record. ok is false if it is not a frame: its kind is unknown, or it is a
// part of a change.
func (r *Reader) nextRecord(b *metric.Batch) (f Frame, ok bool, err error) {
	for len(r.rest) == 0 {
		if err := r.nextBlock(); err != nil {
			return f, false, err
		}
	}
	record, size := protowire.ConsumeBytes(r.rest)
	if size < 0 {
		return f, false, r.damaged(errShort)
	}
	r.rest = r.rest[size:]
	c := &r.codec
	c.buf, c.field, c.err = record, 0, nil
	for c.next(recordNames, protowire.BytesType) {
		s := string(c.bytes())
		c.spend(len(s) + 16)
		c.names = append(c.names, s)
	}
	for kind := Begin; kind < numKinds && c.err == nil; kind++ {
		outer, present := c.begin(kind.field())
		if !present {
			continue
		}
		f, ok = r.decode(kind, b)
		if c.err != nil {
			return f, false, r.damaged(fmt.Errorf("read a %v record: %w", kind, c.err))
		}
		c.end(outer)
		return f, ok, nil
	}
	if c.err != nil {
		return f, false, r.damaged(fmt.Errorf("read a record: %w", c.err))
	}
	return f, false, nil
}

func (r *Reader) damaged(err error) error { return &DamagedError{r.at, err} }

// nextBlock reads the next block of records.
func (r *Reader) nextBlock() error {
	for {
		r.at = r.blocks.at
		kind, payload, err := r.blocks.next()
		if err != nil {
			return err
		}
		if kind != blockRecords {
			continue
		}
		if r.block, err = r.z.DecodeAll(payload, r.block[:0]); err != nil {
			return r.damaged(fmt.Errorf("decompress a block: %w", err))
		}
		r.rest = r.block
		return nil
	}
}

// decode reads the message of a record.
func (r *Reader) decode(kind FrameKind, b *metric.Batch) (f Frame, ok bool) {
	c := &r.codec
	f = Frame{Kind: kind, Now: r.now}
	switch {
	case kind == Begin:
		c.reset(time.Time{}, r.memory)
		r.begun, r.facts, r.pending = true, recentFacts{}, nil
		c.beginning(&f)
	case !r.begun:
		c.fail(errors.New("there is no begin record before it"))
	case kind == Facts:
		if !r.change() {
			return f, false
		}
		f.Facts = r.facts.newest()
		f.Now = f.Facts.At
	case kind == Round:
		r.round(&f, b)
	case kind == Gone:
		c.source(1, &f.Source, &f.Node)
		f.Facts = r.facts.newest()
	case kind == Scale:
		f.Scale = new(ScaleTarget)
		c.scale(&f.Now, f.Scale)
		f.Facts = r.facts.newest()
	}
	r.now = f.Now
	return f, true
}

// change reads a change of facts, and reports whether it is complete.
func (r *Reader) change() bool {
	var change cluster.FactsChange
	var more bool
	r.codec.change(&change, &more)
	if r.codec.err != nil {
		return false
	}
	if p := r.pending; p != nil {
		p.Nodes, p.Pods = append(p.Nodes, change.Nodes...), append(p.Pods, change.Pods...)
		p.GoneNodes, p.GonePods = append(p.GoneNodes, change.GoneNodes...), append(p.GonePods, change.GonePods...)
		change = *p
	}
	if r.pending = nil; more {
		r.pending = &change
		return false
	}
	r.facts.add(r.facts.newest().With(change))
	return true
}

func (r *Reader) round(f *Frame, b *metric.Batch) {
	b.Reset()
	b.Resolution, b.Exhaustive, b.Cores = 0, false, 0
	var reference uint64
	r.codec.round(&f.Now, &reference, b)
	switch {
	case reference > uint64(len(r.facts.list)):
		r.codec.fail(errReference)
	case reference > 0:
		f.Facts = r.facts.list[reference-1]
	}
	f.Batch, f.Source, f.Node = b, b.Source, b.Node
}

// Skip reads to the end of the last complete block without decompressing blocks. It returns the
// error that ended this: io.EOF, or another error of Next.
func (r *Reader) Skip() error {
	for r.err == nil {
		_, _, r.err = r.blocks.next()
	}
	return r.err
}

// Close frees the memory of the Reader. It does not close the underlying reader.
func (r *Reader) Close() { r.z.Close() }
