package remotewrite

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// totals queues the sums of namespaces and of the cluster, which are in no batch.
func (s *Sink) totals(now time.Time) {
	if s.o.View == nil || !s.o.IsLeader() {
		return
	}
	view := s.o.View()
	if view == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feed(metric.SourceKey{Source: "sums"})
	f.round++
	for _, k := range [...]metric.Kind{metric.Cluster, metric.Namespaced} {
		view.Each(k, func(sample *metric.Sample) bool {
			s.take(f, sample, now.UnixMilli())
			return true
		})
	}
	s.drop(f)
}
