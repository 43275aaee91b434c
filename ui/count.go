package ui

import (
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// count is of pods: how many should have numbers, and how many have.
type count struct{ expected, served int }

// count counts the pods of each namespace.
func (p *page) count() map[metric.Namespace]*count {
	counts := map[metric.Namespace]*count{}
	of := func(namespace metric.Namespace) *count {
		c := counts[namespace]
		if c == nil {
			c = &count{}
			counts[namespace] = c
		}
		return c
	}
	p.Facts.EachPod(func(f *cluster.Pod) bool {
		if c := of(f.Namespace); p.expects(f) {
			c.expected++
		}
		return true
	})
	for namespace, n := range p.served().in {
		of(namespace).served = n
	}
	return counts
}

// countOn counts the pods of a node.
func (p *page) countOn(node metric.NodeName) *count {
	c := &count{}
	if p.Facts == nil {
		c.served = p.served().on[node]
		return c
	}
	for _, f := range p.Facts.PodsOn(node) {
		if !p.expects(f) {
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

// expects reports whether a pod should have numbers: it runs, and so does one of
// its containers, on a node that is not left out.
func (p *page) expects(f *cluster.Pod) bool {
	return f.Phase == cluster.Running && !p.leavesOut(f.Node) && slices.ContainsFunc(f.Containers, func(c cluster.Container) bool {
		return c.Required()
	})
}

// leavesOut reports whether a node is not read on purpose.
func (p *page) leavesOut(node metric.NodeName) bool {
	if p.left == nil {
		p.left = map[metric.NodeName]bool{}
		for i := range p.Sources {
			if s := &p.Sources[i]; s.Unread != nil {
				p.left[s.Node] = true
			}
		}
	}
	return p.left[node]
}

// text writes "28 of 30", or "28" where all have or nobody says how many there
// should be.
func (c *count) text() string {
	switch {
	case c == nil:
		return "0"
	case c.expected > c.served:
		return grouped(c.served) + " of " + grouped(c.expected)
	}
	return grouped(max(c.served, c.expected))
}
