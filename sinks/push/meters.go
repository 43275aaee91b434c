package push

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-metrics/weir/internal/humanize"
)

// meters are the metrics of a sender.
type meters struct {
	sent, rejected, dropped, retries, walErrors prometheus.Counter
}

// newMeters registers them, with the receiver as a label. Their names begin with prefix, such as
// weir_remotewrite. things are what is sent: samples.
func newMeters(s *Sender, prefix, things string) *meters {
	factory := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"receiver": humanize.URL(s.o.URL)}, s.o.Registerer))
	results := factory.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "_" + things + "_total",
		Help: "Number of " + things + " by outcome: sent, rejected by the receiver, or dropped because the queue was full or weir ended.",
	}, []string{"result"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_queue_bytes",
		Help: "Size of the packed requests that wait for the receiver.",
	}, func() float64 { bytes, _, _ := s.queue.state(); return float64(bytes) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_queue_limit_bytes",
		Help: "Size at which the oldest requests are dropped.",
	}, func() float64 { return float64(s.o.Queue) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_queue_" + things,
		Help: "Number of " + things + " that wait for the receiver.",
	}, func() float64 { _, items, _ := s.queue.state(); return float64(items) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_queue_age_seconds",
		Help: "How long the oldest of the " + things + " has waited; 0 if none waits.",
	}, func() float64 {
		_, _, since := s.queue.state()
		if since.IsZero() {
			return 0
		}
		return time.Since(since).Seconds()
	})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_unlogged_" + things,
		Help: "Number of " + things + " that are lost if weir is killed, because they are not in the write-ahead log.",
	}, func() float64 { return float64(s.filling() + s.queue.unlogged()) })
	return &meters{
		sent: results.WithLabelValues("sent"), rejected: results.WithLabelValues("rejected"), dropped: results.WithLabelValues("dropped"),
		retries: factory.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_retries_total",
			Help: "Requests that were sent again because the receiver did not answer, or rejected them for the moment.",
		}),
		walErrors: factory.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_wal_errors_total",
			Help: "Failed writes of the write-ahead log. Until one succeeds, waiting requests are in memory only.",
		}),
	}
}
