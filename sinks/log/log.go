package log

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Sink writes batches to an io.Writer.
type Sink struct {
	out     io.Writer
	verbose bool
	append  func(buf []byte, b *metric.Batch, verbose bool) []byte
	buf     []byte // reused by each Write
}

// New returns a Sink that writes to out, with one call of out for each batch.
func New(out io.Writer, o Options) *Sink {
	s := &Sink{out: out, verbose: o.Verbose, append: appendText}
	if o.Format == JSON {
		s.append = appendJSON
	}
	return s
}

// Write writes the lines of one batch. It returns the error of out.
func (s *Sink) Write(ctx context.Context, b *metric.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	s.buf = s.append(s.buf[:0], b, s.verbose)
	if _, err := s.out.Write(s.buf); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// summary is the content of a batch's line.
type summary struct {
	measured int           // samples with a number to serve
	rejected int           // samples that identity rejected
	missing  []reasonCount // verdicts by reason, the most frequent first
	duration time.Duration // the read
}

type reasonCount struct {
	reason metric.Reason
	n      int
}

func summarize(b *metric.Batch) (s summary) {
	for i := range b.Samples {
		switch sample := &b.Samples[i]; {
		case sample.Rejected():
			s.rejected++
		case numbered(sample):
			s.measured++
		}
	}
	var counts [metric.NumReasons]int
	for i := range b.Verdicts {
		if r := b.Verdicts[i].Reason; int(r) < len(counts) && r > metric.Measured {
			counts[r]++
		}
	}
	for r, n := range counts {
		if n > 0 {
			s.missing = append(s.missing, reasonCount{metric.Reason(r), n})
		}
	}
	slices.SortStableFunc(s.missing, func(a, b reasonCount) int { return b.n - a.n })
	s.duration = b.Ended.Sub(b.Began)
	return s
}

// numbered reports whether any number of s may be served.
func numbered(s *metric.Sample) bool {
	for id := range s.Values.All() {
		if s.Servable(metric.Catalogue[id].Group) {
			return true
		}
	}
	return false
}
