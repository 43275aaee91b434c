// Package sink is the example sink of docs/extending.md: it writes the memory that each
// pod uses as lines of text.
package sink

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a Sink.
type Options struct {
	// LeastBytes omits pods that use less memory, in bytes.
	LeastBytes float64
}

// OptionsHelp describes the options of ParseOptions, for weir help sinks.
func OptionsHelp() string {
	return `  least                 leave out pods that use fewer bytes (default 0)`
}

// ParseOptions parses the text after the name and its colon in --sink=example:[?OPTIONS].
func ParseOptions(spec string) (o Options, err error) {
	_, query, _ := strings.Cut(spec, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("read options %q: %w", query, err)
	}
	for name := range values {
		if name != "least" {
			return o, fmt.Errorf("no option is called %q: there is least", name)
		}
		if o.LeastBytes, err = strconv.ParseFloat(values.Get(name), 64); err != nil {
			return o, fmt.Errorf("read option least: %w", err)
		}
	}
	return o, nil
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
