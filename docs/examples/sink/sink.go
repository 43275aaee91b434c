// Package sink is the example sink of docs/extending.md: it writes the memory that each
// pod uses as lines of text.
package sink

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/metric"
)

// Options configure a Sink.
type Options struct {
	// LeastBytes omits pods that use less memory, in bytes.
	LeastBytes float64
}

// Table has the options of --sink=example.
var Table = options.Table[Options]{
	{Name: "least", Help: "leave out pods that use fewer bytes (default 0)", Set: func(o *Options, v string) (err error) {
		o.LeastBytes, err = strconv.ParseFloat(v, 64)
		return err
	}},
}

// ParseOptions parses --sink=example:[?OPTIONS].
func ParseOptions(config string, query url.Values) (o Options, err error) {
	if err := options.NoConfig(config, "example:?least=1000"); err != nil {
		return o, err
	}
	return o, Table.Parse(&o, query)
}

// Sink writes lines to one writer.
type Sink struct {
	out  io.Writer
	opts Options
}

// New returns a Sink that writes to out.
func New(out io.Writer, o Options) *Sink { return &Sink{out, o} }

// Write writes a line for each pod of b. It neither changes nor keeps b, which other
// sinks read at the same time.
func (s *Sink) Write(ctx context.Context, b *metric.Batch) error {
	for i := range b.Samples {
		sample := &b.Samples[i]
		if sample.Entity.Kind != metric.Pod || !sample.Servable(metric.Memory) {
			continue
		}
		bytes, ok := sample.Values.Get(metric.MemoryWorkingSet)
		if !ok || bytes < s.opts.LeastBytes {
			continue
		}
		if _, err := fmt.Fprintf(s.out, "%s %.0f\n", sample.Entity, bytes); err != nil {
			return fmt.Errorf("write line: %w", err)
		}
	}
	return ctx.Err()
}
