package ui

import (
	"iter"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// countingReader is a View that counts the pods with numbers when somebody first goes
// through all of them: there may be very many, and what is missing needs that
// walk anyway.
type countingReader struct {
	explain.View
	counts *servedCounts // nil until they were gone through to the end
}

// servedCounts are how many pods have both numbers.
type servedCounts struct {
	in map[metric.Namespace]int
	on map[metric.NodeName]int
}

// Each calls do with what is served of the entities of a kind, each good until do
// returns, until do returns false.
func (c *countingReader) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	if kind != metric.Pod || c.counts != nil {
		each(c.View, kind, do)
		return
	}
	counts, whole := &servedCounts{map[metric.Namespace]int{}, map[metric.NodeName]int{}}, true
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
func (p *page) served() *servedCounts {
	c, ok := p.View.(*countingReader)
	if !ok {
		return &servedCounts{}
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

// podCount is of pods: how many should have numbers, and how many have.
type podCount struct{ expected, served int }

// podCounts counts the pods of each namespace.
func (p *page) podCounts() map[metric.Namespace]*podCount {
	counts := map[metric.Namespace]*podCount{}
	of := func(namespace metric.Namespace) *podCount {
		c := counts[namespace]
		if c == nil {
			c = &podCount{}
			counts[namespace] = c
		}
		return c
	}
	p.Facts.EachPod(func(f *cluster.Pod) bool {
		if c := of(f.Namespace); p.shouldHaveNumbers(f) {
			c.expected++
		}
		return true
	})
	for namespace, n := range p.served().in {
		of(namespace).served = n
	}
	return counts
}

// podCountOn counts the pods of a node.
func (p *page) podCountOn(node metric.NodeName) *podCount {
	c := &podCount{}
	if p.Facts == nil {
		c.served = p.served().on[node]
		return c
	}
	for _, f := range p.Facts.PodsOn(node) {
		if !p.shouldHaveNumbers(f) {
			continue
		}
		c.expected++
		k := knownPod{f.PodRef, node, f}
		if s, ok := p.View.Lookup(k.entity()); ok && complete(s) {
			c.served++
		}
	}
	return c
}

// shouldHaveNumbers reports whether a pod should have numbers: it runs, and so does one of
// its containers, on a node that is not left out.
func (p *page) shouldHaveNumbers(f *cluster.Pod) bool {
	return f.Phase == cluster.Running && !p.isExcluded(f.Node) && slices.ContainsFunc(f.Containers, func(c cluster.Container) bool {
		return c.Required()
	})
}

// isExcluded reports whether a node is not read on purpose.
func (p *page) isExcluded(node metric.NodeName) bool {
	if p.excludedNodes == nil {
		p.excludedNodes = map[metric.NodeName]bool{}
		for i := range p.Sources {
			if s := &p.Sources[i]; s.Unread != nil {
				p.excludedNodes[s.Node] = true
			}
		}
	}
	return p.excludedNodes[node]
}

// text writes "28 of 30", or "28" where all have or nobody says how many there
// should be.
func (c *podCount) text() string {
	switch {
	case c == nil:
		return "0"
	case c.expected > c.served:
		return humanize.Number(c.served) + " of " + humanize.Number(c.expected)
	}
	return humanize.Number(max(c.served, c.expected))
}
