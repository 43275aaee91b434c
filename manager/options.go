package manager

import (
	"cmp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
)

// Options is what a Manager runs. The zero value runs nothing, and is valid.
type Options struct {
	// Providers return the sources. If two Specs have one name, the first counts.
	Providers []Provider
	// Pipeline returns the processors of a source in their order, with fresh state. It is called
	// once for each source, and again after one of its processors panicked. Default: none.
	Pipeline func(Spec) []Processor
	// Sinks take the batches of all sources.
	Sinks []NamedSink
	// Player has recorded rounds. If it is set, no provider is asked, and the player's clock is
	// used: its rounds go through the pipeline one after the other, and wait for slow sinks.
	Player Player

	// Facts returns the present facts, at little cost. Without a cluster it is nil or returns
	// nil.
	Facts func() *cluster.Facts
	// FactsChanged receives a value when the facts may have changed for providers. A buffer of
	// one and a non-blocking send suffice. Nil means that there is no cluster; otherwise the
	// manager waits for facts.
	FactsChanged <-chan struct{}

	// MaxReads is the largest number of reads at once, without those that have waited for their
	// source for half a second; default 128. So sources that hang never delay a healthy one.
	MaxReads int
	// Refresh is the longest time between two calls of the providers; default 5 s.
	Refresh time.Duration
	// Shutdown is the longest time from the end of Run's context until Run returns, in which
	// reads end and sinks write their queues; default 10 s.
	Shutdown time.Duration

	// Logger gets one line for each event; default none.
	Logger *zap.Logger
	// Registerer registers the weir_ metrics; default none. Two Managers cannot share one.
	Registerer prometheus.Registerer
}

// NamedSink is a Sink with its limits.
type NamedSink struct {
	// Name is unique among the sinks, such as "memory". It labels metrics.
	Name string
	Sink Sink
	// Recorder is set in place of Sink. It gets the batches before the processors.
	Recorder Recorder
	// Queue is how many batches may wait for the sink; default 256.
	Queue int
	// Deadline is how long one Write may take; default 10 s.
	Deadline time.Duration
	// Wait is how long a read waits while the queue is full, before its batch is dropped; default 0. It
	// is for a sink that is as fast as reads are, but not in the first seconds of a large cluster.
	Wait time.Duration
}

// The defaults of a Spec that leaves them open.
const (
	defaultInterval = 15 * time.Second
	defaultTimeout  = 10 * time.Second
)

// withDefaults returns o with defaults in place of numbers that are not positive and of what is nil. The
// caller's Sinks stay as they are.
func (o Options) withDefaults() Options {
	if o.Pipeline == nil {
		o.Pipeline = func(Spec) []Processor { return nil }
	}
	if o.Facts == nil {
		o.Facts = func() *cluster.Facts { return nil }
	}
	o.MaxReads = cmp.Or(max(o.MaxReads, 0), 128)
	o.Refresh = cmp.Or(max(o.Refresh, 0), 5*time.Second)
	o.Shutdown = cmp.Or(max(o.Shutdown, 0), 10*time.Second)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	sinks := make([]NamedSink, len(o.Sinks))
	for i, s := range o.Sinks {
		s.Queue = cmp.Or(max(s.Queue, 0), 256)
		s.Deadline = cmp.Or(max(s.Deadline, 0), 10*time.Second)
		sinks[i] = s
	}
	o.Sinks = sinks
	return o
}

// withDefaults returns s with its interval and timeout set.
func (s Spec) withDefaults() Spec {
	s.Interval = cmp.Or(max(s.Interval, 0), defaultInterval)
	s.Timeout = cmp.Or(max(s.Timeout, 0), min(defaultTimeout, s.Interval))
	return s
}

// spareBatches is how many batches of one kind are kept to be filled again. Processors and sinks
// have far fewer at one moment than there are sources.
func spareBatches(o Options) int { return min(o.MaxReads, 8*runtime.GOMAXPROCS(0)) }
