package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Reader reads a recording, of bytes that may be anyone's. It is for one
// goroutine.
type Reader struct {
	o      ReaderOptions
	blocks blocks
	z      *zstd.Decoder
	block  []byte // unpacked
	rest   []byte // of block, what is not read yet
	at     int64  // where the block began
	batch  metric.Batch
	err    error

	// What frames may refer to.
	dec     batchDecoder
	begun   bool
	tracks  []*track
	facts   remembered
	pending *cluster.Change // a change that goes on
	now     time.Time
}

// NewReader returns a Reader of what r holds. The error is a *NoRecordingError if
// that is no recording, and a *TruncatedError if it ends before it has begun.
func NewReader(r io.Reader) (*Reader, error) { return NewReaderOptions(r, ReaderOptions{}) }

// NewReaderOptions is NewReader with bounds other than the defaults.
func NewReaderOptions(r io.Reader, o ReaderOptions) (*Reader, error) {
	rd := &Reader{o: o.withDefaults(), blocks: blocks{r: r}, dec: batchDecoder{decoder: &decoder{}}}
	if err := rd.blocks.begin(); err != nil {
		return nil, err
	}
	var err error
	rd.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, fmt.Errorf("make a decompressor: %w", err)
	}
	return rd, nil
}

// Offset returns how many bytes were read, up to the end of the last whole block.
func (r *Reader) Offset() int64 { return r.blocks.at }

// Next returns the next frame. Its Batch is good until the next call. The error is
// io.EOF at the end, a *TruncatedError where the file ends within a block, and
// a *DamagedError where it is not what was written; after any of them there is
// nothing more to read.
func (r *Reader) Next() (Frame, error) { return r.Read(&r.batch) }

// Read is Next with the memory that a Round's batch is read into. It is emptied first.
func (r *Reader) Read(b *metric.Batch) (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	for {
		f, ok, err := r.next(b)
		if err != nil {
			r.err = err
			return Frame{}, err
		}
		if ok {
			return f, nil
		}
	}
}

// next reads a frame, and reports whether it is one to be told.
func (r *Reader) next(b *metric.Batch) (f Frame, ok bool, err error) {
	for len(r.rest) == 0 {
		if err := r.unpack(); err != nil {
			return f, false, err
		}
	}
	d := r.dec.decoder
	d.buf, d.err = r.rest, nil
	kind := Kind(d.byte())
	body := d.count()
	if d.err != nil {
		return f, false, r.damaged(d.err)
	}
	r.rest = d.buf[body:]
	d.buf = d.buf[:body]
	f, ok = r.decode(kind, b)
	if d.err != nil {
		return f, false, r.damaged(fmt.Errorf("read a %v frame: %w", kind, d.err))
	}
	return f, ok, nil
}

func (r *Reader) damaged(err error) error { return &DamagedError{r.at, err} }

// unpack reads the next block that this reader understands.
func (r *Reader) unpack() error {
	for {
		r.at = r.blocks.at
		kind, payload, err := r.blocks.next()
		if err != nil {
			return err
		}
		if kind != blockFrames {
			continue
		}
		if r.block, err = r.z.DecodeAll(payload, r.block[:0]); err != nil {
			return r.damaged(fmt.Errorf("unpack a block: %w", err))
		}
		r.rest = r.block
		return nil
	}
}

// decode reads the body of a frame. What later versions add at its end is passed
// over, as frames of kinds that they add are.
func (r *Reader) decode(kind Kind, b *metric.Batch) (f Frame, ok bool) {
	d := r.dec.decoder
	f = Frame{Kind: kind, Now: r.now}
	switch {
	case kind == Begin:
		r.begin(&f)
		return f, true
	case kind > Scale || kind == 0:
		return f, false
	case !r.begun:
		d.fail(errors.New("it comes before any beginning"))
		return f, false
	case kind == Facts:
		if !r.change() {
			return f, false
		}
		f.Facts = r.facts.newest()
		f.Now = f.Facts.At
	case kind == Round:
		r.round(&f, b)
	case kind == Gone:
		if t := r.track(); t != nil {
			f.Source, f.Node = t.source, t.node
			d.budget += int64(rowSize * (cap(t.rows) + cap(t.spare)))
			t.rows, t.spare, t.witness = nil, nil, nil
		}
		f.Facts = r.facts.newest()
	case kind == Scale:
		r.scale(&f)
		f.Facts = r.facts.newest()
	}
	r.now = f.Now
	return f, true
}

func (r *Reader) begin(f *Frame) {
	d := r.dec.decoder
	d.reset(r.o.Memory)
	r.begun, r.tracks, r.facts, r.pending = true, nil, remembered{}, nil
	f.Fresh = d.unsigned() != 0
	d.begin = d.signed()
	d.wall = d.begin
	f.Now = d.instant()
	r.now = f.Now
	f.By = d.text()
	d.vocabulary()
}

// change reads a change of facts, and reports whether it is whole now.
func (r *Reader) change() bool {
	d := r.dec.decoder
	c, more := d.change()
	if d.err != nil {
		return false
	}
	if p := r.pending; p != nil {
		p.Nodes, p.Pods = append(p.Nodes, c.Nodes...), append(p.Pods, c.Pods...)
		p.GoneNodes, p.GonePods = append(p.GoneNodes, c.GoneNodes...), append(p.GonePods, c.GonePods...)
		c = *p
	}
	if r.pending = nil; more {
		r.pending = &c
		return false
	}
	r.facts.add(r.facts.newest().With(c))
	return true
}

func (r *Reader) round(f *Frame, b *metric.Batch) {
	d := r.dec.decoder
	f.Now = d.instant()
	switch ref := d.unsigned(); {
	case ref > uint64(len(r.facts.facts)):
		d.fail(errPlace)
	case ref > 0:
		f.Facts = r.facts.facts[ref-1]
	}
	t := r.track()
	if t == nil {
		return
	}
	b.Reset()
	b.Resolution, b.Exhaustive, b.Cores = 0, false, 0
	b.Source, b.Node = t.source, t.node
	r.dec.batch(t, b)
	f.Batch, f.Source, f.Node = b, b.Source, b.Node
}

// track reads which source is meant.
func (r *Reader) track() *track {
	d := r.dec.decoder
	at := d.unsigned()
	if at == 0 {
		t := &track{source: decodeName[string](d), node: decodeName[metric.NodeName](d)}
		if d.spend(rowSize); d.err != nil {
			return nil
		}
		r.tracks = append(r.tracks, t)
		return t
	}
	if at > uint64(len(r.tracks)) || d.err != nil {
		d.fail(errPlace)
		return nil
	}
	return r.tracks[at-1]
}

func (r *Reader) scale(f *Frame) {
	d := r.dec.decoder
	f.Now = d.instant()
	t := &Target{
		Group: decodeName[string](d), Resource: decodeName[string](d), Namespace: decodeName[metric.Namespace](d), Name: decodeName[string](d),
		Gone: d.unsigned() != 0, Replicas: int32(d.signed()), Current: int32(d.signed()),
		Selector: decodeName[string](d), HPA: decodeName[string](d),
	}
	if spec := decodeName[string](d); spec != "" {
		t.Spec = json.RawMessage(spec)
	}
	f.Scale = t
}

// Skip goes to the end of the last whole block without reading what is in the blocks, and
// returns why there is no other: io.EOF, or one of Next's errors.
func (r *Reader) Skip() error {
	for r.err == nil {
		_, _, r.err = r.blocks.next()
	}
	return r.err
}

// Close frees what the Reader holds. It does not close the underlying reader.
func (r *Reader) Close() { r.z.Close() }
