package push

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// addTotals queues the sums of namespaces and of the cluster, which are in no batch, if the next
// ones are due.
func (s *Sink[L]) addTotals(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.View == nil || !s.o.IsLeader() || now.Before(s.mu.nextTotals) {
		return
	}
	view := s.o.View()
	if view == nil {
		return
	}
	if s.mu.nextTotals = s.mu.nextTotals.Add(s.o.Interval); now.After(s.mu.nextTotals) {
		s.mu.nextTotals = now.Add(s.o.Interval) // some were left out
	}
	source := s.source(metric.SourceKey{Source: "sums"})
	source.begin()
	for _, k := range [...]metric.Kind{metric.Cluster, metric.Namespaced} {
		view.Each(k, func(sample *metric.Sample) bool {
			s.add(source, sample, now.UnixMilli())
			return true
		})
	}
	s.drop(source)
}
