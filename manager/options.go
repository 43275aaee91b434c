package manager

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
)

// Options is what a Manager runs. The zero value runs nothing, and is valid.
type Options struct {
	// Providers say which sources there are. Names must be unique among all of
	// them; of two Specs of one name, the first counts.
	Providers []Provider
	// Pipeline returns the processors of a source, in the order they are
	// called, with fresh state. It is called once for each source, and again
	// after one of its processors panicked. nil means no processors.
	Pipeline func(Spec) []Processor
	// Sinks take the batches of all sources.
	Sinks []NamedSink
	// Player has rounds that were read before; nil, as nearly always, for none. With
	// it no provider is asked and no clock but the player's matters: its rounds go
	// through the pipeline one after the other, and wait for sinks that are slow.
	Player Player

	// Facts returns the facts of the moment, at little cost. nil, and returning
	// nil, both mean that there is no cluster to know anything of.
	Facts func() *cluster.Facts
	// FactsChanged receives when the facts may have changed in a way that
	// concerns providers. A buffer of one and a non-blocking send suffice. nil
	// means that there is no cluster; otherwise facts are waited for.
	FactsChanged <-chan struct{}

	// MaxReads bounds how many reads run at once; default 128. A quarter of
	// them is set apart for sources whose last read timed out, so that they
	// never keep a healthy one waiting.
	MaxReads int
	// Refresh is the longest time between two questions to the providers;
	// default 5 s.
	Refresh time.Duration
	// Shutdown bounds how long Run goes on after its context has ended: for
	// running reads to notice, and for sinks to write what they have queued;
	// default 10 s.
	Shutdown time.Duration

	// Logger takes one line an event; default none.
	Logger *zap.Logger
	// Registerer takes the weir_ metrics; default none. Two Managers cannot
	// share one.
	Registerer prometheus.Registerer
}

// NamedSink is a Sink with the bounds it runs in.
type NamedSink struct {
	// Name is unique among the sinks: "memory". It labels metrics.
	Name string
	Sink Sink
	// Recorder, instead of Sink, takes what the processors are given.
	Recorder Recorder
	// Queue is how many batches may wait for the sink; default 256.
	Queue int
	// Deadline is how long one Write may take; default 10 s.
	Deadline time.Duration
}

// The defaults of a Spec that leaves them open.
const (
	defaultInterval = 15 * time.Second
	defaultTimeout  = 10 * time.Second
)

// withDefaults returns o with every zero field replaced by its default. The
// caller's Sinks stay as they are.
func (o Options) withDefaults() Options {
	if o.Pipeline == nil {
		o.Pipeline = func(Spec) []Processor { return nil }
	}
	if o.Facts == nil {
		o.Facts = func() *cluster.Facts { return nil }
	}
	if o.MaxReads <= 0 {
		o.MaxReads = 128
	}
	if o.Refresh <= 0 {
		o.Refresh = 5 * time.Second
	}
	if o.Shutdown <= 0 {
		o.Shutdown = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	sinks := make([]NamedSink, len(o.Sinks))
	for i, s := range o.Sinks {
		if s.Queue <= 0 {
			s.Queue = 256
		}
		if s.Deadline <= 0 {
			s.Deadline = 10 * time.Second
		}
		sinks[i] = s
	}
	o.Sinks = sinks
	return o
}

// withDefaults returns s with its interval and timeout set.
func (s Spec) withDefaults() Spec {
	if s.Interval <= 0 {
		s.Interval = defaultInterval
	}
	if s.Timeout <= 0 {
		s.Timeout = min(defaultTimeout, s.Interval)
	}
	return s
}

// spareBatches is how many batches of one kind are kept to be filled again:
// enough for those that are in the hands of a processor or a sink at one
// moment, which is far fewer than there are sources.
func spareBatches(o Options) int { return min(o.MaxReads, 8*runtime.GOMAXPROCS(0)) }
