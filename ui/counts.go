package ui

import (
	"iter"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// countingReader is a View that counts pods with numbers during the first complete walk over
// all pods. The report of missing numbers needs that walk anyway.
type countingReader struct {
	explain.View
	counts *servedCounts // nil until a walk reached the last pod
}

// servedCounts is the number of pods with both CPU and memory.
type servedCounts struct {
	in map[metric.Namespace]int
	on map[metric.NodeName]int
}

// Each calls do with each served sample of a kind until do returns false. A sample is valid
// until do returns.
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

// each calls do with each served sample of a kind. The memory sink has a method Each, which
// copies nothing.
func each(v explain.View, kind metric.Kind, do func(*metric.Sample) bool) {
	if v, ok := v.(interface {
		Each(metric.Kind, func(*metric.Sample) bool)
	}); ok {
		v.Each(kind, do)
		return
	}
	v.Samples(kind)(do)
}

// samples yields the served samples of a kind without those of parts. A sample is valid until
// the next one.
func (p *page) samples(kind metric.Kind) iter.Seq[*metric.Sample] {
	return func(yield func(*metric.Sample) bool) {
		if p.View != nil {
			each(p.View, kind, func(s *metric.Sample) bool { return s.Entity.Part != "" || yield(s) })
		}
	}
}

// served returns the number of pods with numbers.
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

// complete reports whether a sample has CPU and memory.
func complete(s *metric.Sample) bool {
	return value(s, metric.CPUUsageRate) >= 0 && value(s, metric.MemoryWorkingSet) >= 0
}

// podCount is how many pods should have numbers and how many have them.
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

// shouldHaveNumbers reports whether a pod should have numbers: the pod and one of its
// containers run, and its node is not excluded.
func (p *page) shouldHaveNumbers(f *cluster.Pod) bool {
	return f.Phase == cluster.Running && !p.isExcluded(f.Node) && slices.ContainsFunc(f.Containers, func(c cluster.Container) bool {
		return c.Required()
	})
}

// isExcluded reports whether a node is excluded from reading by the configuration.
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

// text writes "28 of 30", or "28" if all have numbers or the expected count is unknown.
func (c *podCount) text() string {
	switch {
	case c == nil:
		return "0"
	case c.expected > c.served:
		return humanize.Number(c.served) + " of " + humanize.Number(c.expected)
	}
	return humanize.Number(max(c.served, c.expected))
}
