package ui

import (
	"iter"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// counting is a View that counts the pods with numbers when somebody first goes
// through all of them: there may be very many, and what is missing needs that
// walk anyway.
type counting struct {
	explain.View
	counts *served // nil until they were gone through to the end
}

// served are how many pods have both numbers.
type served struct {
	in map[metric.Namespace]int
	on map[metric.NodeName]int
}

// Each calls do with what is served of the entities of a kind, each good until do
// returns, until do returns false.
func (c *counting) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	if kind != metric.Pod || c.counts != nil {
		each(c.View, kind, do)
		return
	}
	counts, whole := &served{map[metric.Namespace]int{}, map[metric.NodeName]int{}}, true
	each(c.View, kind, func(s *metric.Sample) bool {
		if s.Entity.Part == "" && complete(s) {
			counts.in[s.Entity.Namespace]++
			counts.on[s.Entity.Node]++
		}
		whole = do(s)
		return whole
	})
	if whole {
		c.counts = counts
	}
}

// each goes through the entities of a kind. The memory sink need not copy them for
// that.
func each(v explain.View, kind metric.Kind, do func(*metric.Sample) bool) {
	if v, ok := v.(interface {
		Each(metric.Kind, func(*metric.Sample) bool)
	}); ok {
		v.Each(kind, do)
		return
	}
	v.Samples(kind)(do)
}

// samples yields what is served of the entities of a kind, without their parts. A
// sample is good until the next.
func (p *page) samples(kind metric.Kind) iter.Seq[*metric.Sample] {
	return func(yield func(*metric.Sample) bool) {
		if p.View != nil {
			each(p.View, kind, func(s *metric.Sample) bool { return s.Entity.Part != "" || yield(s) })
		}
	}
}

// served returns how many pods have numbers.
func (p *page) served() *served {
	c, ok := p.View.(*counting)
	if !ok {
		return &served{}
	}
	for c.counts == nil {
		c.Each(metric.Pod, func(*metric.Sample) bool { return true })
	}
	return c.counts
}

// complete reports whether a sample has both numbers.
func complete(s *metric.Sample) bool {
	return value(s, metric.CPUUsageRate) >= 0 && value(s, metric.MemoryWorkingSet) >= 0
}
