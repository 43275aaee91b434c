package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Writer writes a recording. It is for one goroutine.
//
// After an error of the underlying writer every call returns that error; what
// was written before can be read.
type Writer struct {
	w      io.Writer
	o      Options
	z      *zstd.Encoder
	block  []byte
	packed []byte
	since  time.Time // of the first frame in block
	size   int64
	err    error

	// What frames may refer to.
	enc     batchEncoder
	begun   time.Time // the last Begin frame; zero: one is due
	sources map[sourceKey]uint64
	tracks  []*track
	facts   remembered
}

// NewWriter returns a Writer to w, which stands at the beginning of a file or
// after a whole block of one. Nothing is written before the first Flush, by whomever.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	o = o.withDefaults()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	return &Writer{w: w, o: o, z: z, enc: batchEncoder{encoder: &encoder{}}}, nil
}

// Size returns how many bytes were written.
func (w *Writer) Size() int64 { return w.size }

// Round writes a read of a source: b as it was filled, with its witness, and the
// facts and the moment that the processors are given beside it. Nothing of b is kept.
func (w *Writer) Round(b *metric.Batch, facts *cluster.Facts, now time.Time) error {
	if err := w.ready(now); err != nil {
		return err
	}
	ref, err := w.refer(facts, now)
	if err != nil {
		return err
	}
	return w.frame(Round, now, func(e *batchEncoder) {
		e.instant(now)
		e.unsigned(ref)
		e.batch(w.track(b.Source, b.Node), b)
	})
}

// Facts writes what the API server says, if that is news. Rounds bring
// their facts with them: there is no need to call it, but where facts change
// and no source is read.
func (w *Writer) Facts(facts *cluster.Facts, now time.Time) error {
	if err := w.ready(now); err != nil {
		return err
	}
	_, err := w.refer(facts, now)
	return err
}

// Gone writes that a source will not be read any more: what a pipeline knew of
// it is forgotten.
func (w *Writer) Gone(source string, node metric.NodeName) error {
	if w.err != nil || w.begun.IsZero() {
		return w.err // nothing was heard of it
	}
	// It may have been heard of before the last Begin only.
	return w.frame(Gone, w.since, func(*batchEncoder) {
		t := w.track(source, node)
		t.rows, t.spare, t.witness = nil, nil, nil
	})
}

// Scale writes what is known of a scale target.
func (w *Writer) Scale(t *Target, now time.Time) error {
	if err := w.ready(now); err != nil {
		return err
	}
	return w.frame(Scale, now, func(e *batchEncoder) {
		e.instant(now)
		encodeName(e.encoder, t.Group)
		encodeName(e.encoder, t.Resource)
		encodeName(e.encoder, t.Namespace)
		encodeName(e.encoder, t.Name)
		e.unsigned(uint64(boolean(t.Gone)))
		e.signed(int64(t.Replicas))
		e.signed(int64(t.Current))
		encodeName(e.encoder, t.Selector)
		encodeName(e.encoder, t.HPA)
		encodeName(e.encoder, string(t.Spec))
	})
}

// ready begins anew if that is due.
func (w *Writer) ready(now time.Time) error {
	if w.err != nil {
		return w.err
	}
	if !w.begun.IsZero() && now.Sub(w.begun) < w.o.Restart {
		return nil
	}
	w.enc.reset(w.o.Begin)
	fresh := !w.o.Continues
	w.o.Continues = true
	w.sources, w.tracks, w.facts = map[sourceKey]uint64{}, nil, remembered{}
	w.begun = now
	return w.frame(Begin, now, func(e *batchEncoder) {
		e.unsigned(uint64(boolean(fresh)))
		e.signed(w.o.Begin.UnixNano())
		e.instant(now)
		e.text(w.o.By)
		e.vocabulary()
	})
}

// refer returns by which number a frame refers to facts: 0 for none, else one
// more than how many newer ones there are.
func (w *Writer) refer(facts *cluster.Facts, now time.Time) (uint64, error) {
	if facts == nil {
		return 0, nil
	}
	if at := slices.Index(w.facts.facts, facts); at >= 0 {
		return uint64(at) + 1, nil
	}
	change := facts.Since(w.facts.newest())
	err := split(change, func(part *cluster.Change, more bool) error {
		return w.frame(Facts, now, func(e *batchEncoder) { e.change(part, more) })
	})
	w.facts.add(facts)
	return 1, err
}

// track writes which source is meant.
func (w *Writer) track(source string, node metric.NodeName) *track {
	key := sourceKey{source, node}
	at, known := w.sources[key]
	if !known {
		w.enc.unsigned(0)
		encodeName(w.enc.encoder, source)
		encodeName(w.enc.encoder, node)
		w.tracks = append(w.tracks, &track{source: source, node: node})
		w.sources[key] = uint64(len(w.tracks))
		return w.tracks[len(w.tracks)-1]
	}
	w.enc.unsigned(at)
	return w.tracks[at-1]
}

// frame appends a frame to the block, and writes the block if it is full or old.
func (w *Writer) frame(kind Kind, now time.Time, fill func(*batchEncoder)) error {
	if w.err != nil {
		return w.err
	}
	w.enc.buf = w.enc.buf[:0]
	fill(&w.enc)
	if len(w.enc.buf) > maxFrame {
		w.begun = time.Time{} // what it says is lost, and later frames must not refer to it
		return fmt.Errorf("record a %v: it takes %d bytes, at most %d can be read back", kind, len(w.enc.buf), maxFrame)
	}
	if len(w.block) > 0 && len(w.block)+len(w.enc.buf) > w.o.Block {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(w.block) == 0 {
		w.since = now
	}
	w.block = append(w.block, byte(kind))
	w.block = appendLength(w.block, len(w.enc.buf))
	w.block = append(w.block, w.enc.buf...)
	if w.o.Flush < 0 || now.Sub(w.since) >= w.o.Flush {
		return w.Flush()
	}
	return nil
}

// Flush writes what waits.
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
	appendBlockHead(w.packed[:from], blockFrames, w.packed[from+blockHead:])
	w.block = w.block[:0]
	n, err := w.w.Write(w.packed)
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write a recording: %w", err)
	}
	return w.err
}

// Close writes what waits, and frees what the Writer holds. It does not close
// the underlying writer.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.err == nil {
		w.err = errors.New("the recording is closed")
	}
	return errors.Join(err, w.z.Close())
}
