package ui

import (
	"iter"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// servedCounts is the number of pods with both CPU and memory.
type servedCounts struct {
	in map[metric.Namespace]int
	on map[metric.NodeName]int
}

// samples yields the served samples of a kind, without those of parts. A sample is valid until the
// next step.
func (p *page) samples(kind metric.Kind) iter.Seq[*metric.Sample] {
	return func(yield func(*metric.Sample) bool) {
		if p.View == nil {
			return
		}
		each := p.View.Samples(kind)
		if v, ok := p.View.(interface {
			Each(metric.Kind, func(*metric.Sample) bool)
		}); ok { // the memory sink has this method, which copies nothing
			each = func(do func(*metric.Sample) bool) { v.Each(kind, do) }
		}
		each(func(s *metric.Sample) bool { return s.Entity.Part != "" || yield(s) })
	}
}

// copiesOf returns copies of the samples of a kind on this node, or on all nodes if node is empty.
func (p *page) copiesOf(kind metric.Kind, node metric.NodeName) (all []*metric.Sample) {
	for s := range p.samples(kind) {
		if node == "" || s.Entity.Node == node {
			own := &metric.Sample{}
			own.CopyFrom(s)
			all = append(all, own)
		}
	}
	return all
}

// served returns the number of pods with numbers.
func (p *page) served() *servedCounts {
	if p.servedPods == nil {
		p.servedPods = &servedCounts{map[metric.Namespace]int{}, map[metric.NodeName]int{}}
		for s := range p.samples(metric.Pod) {
			if complete(s) {
				p.servedPods.in[s.Entity.Namespace]++
				p.servedPods.on[s.Entity.Node]++
			}
		}
	}
	return p.servedPods
}

// complete reports whether a sample has CPU and memory.
func complete(s *metric.Sample) bool {
	return value(s, metric.CPUUsageRate) >= 0 && value(s, metric.MemoryWorkingSet) >= 0
}

// podCount is how many pods should have numbers and how many have them.
type podCount struct {
	expected, served int
	unknown          bool // there is a sum of the pods, and no pod is known
}

// podCounts counts the pods of each namespace.
func (p *page) podCounts() map[metric.Namespace]*podCount {
	counts := map[metric.Namespace]*podCount{}
	countOf := func(namespace metric.Namespace) *podCount {
		c := counts[namespace]
		if c == nil {
			c = &podCount{}
			counts[namespace] = c
		}
		return c
	}
	for f := range p.Facts.EachPod {
		if c := countOf(f.Namespace); p.shouldHaveNumbers(f) {
			c.expected++
		}
	}
	for namespace, n := range p.served().in {
		countOf(namespace).served = n
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
		e := metric.Entity{Kind: metric.Pod, Node: node, Namespace: f.Namespace, Pod: f.Name}
		if s, ok := p.View.Lookup(e); ok && complete(s) {
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

// text writes "28 of 30", or "28" if all have numbers or the number of pods is unknown.
func (c *podCount) text() string {
	if c.expected > c.served {
		return humanize.Number(c.served) + " of " + humanize.Number(c.expected)
	}
	return humanize.Number(max(c.served, c.expected))
}
