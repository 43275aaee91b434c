package remotewrite

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meters are the metrics of the sink.
type meters struct {
	sent, rejected, dropped, retries prometheus.Counter
}

func newMeters(s *Sink) *meters {
	to := promauto.With(s.o.Registerer)
	samples := to.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_remotewrite_samples_total",
		Help: "Samples by what became of them: sent, rejected by the receiver, or dropped because the queue was full or weir ended.",
	}, []string{"result"})
	to.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_remotewrite_queue_bytes",
		Help: "Size of the packed requests that wait for the receiver.",
	}, func() float64 { bytes, _, _ := s.queue.state(); return float64(bytes) })
	to.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_remotewrite_queue_limit_bytes",
		Help: "Size at which the oldest requests are dropped.",
	}, func() float64 { return float64(s.o.Queue) })
	to.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_remotewrite_queue_samples",
		Help: "Samples that wait for the receiver.",
	}, func() float64 { _, samples, _ := s.queue.state(); return float64(samples) })
	to.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_remotewrite_queue_age_seconds",
		Help: "How long the oldest of them has waited; 0 if none does.",
	}, func() float64 {
		_, _, since := s.queue.state()
		if since.IsZero() {
			return 0
		}
		return time.Since(since).Seconds()
	})
	return &meters{
		sent: samples.WithLabelValues("sent"), rejected: samples.WithLabelValues("rejected"), dropped: samples.WithLabelValues("dropped"),
		retries: to.NewCounter(prometheus.CounterOpts{
			Name: "weir_remotewrite_retries_total",
			Help: "Requests that were sent again because the receiver did not answer, or said that it cannot now.",
		}),
	}
}
