package controller

import (
	"cmp"
	"slices"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// Explain returns the last decision about an object, told; false if there is none.
// The kind is Autoscaler or HorizontalPodAutoscaler.
func (c *Controller) Explain(kind, namespace, name string) (*decisionreport.Report, bool) {
	t := c.last(key{kind, namespace, name})
	if t == nil {
		return nil, false
	}
	return t.tell(), true
}

// Memory returns what is remembered after the last decision about an object; false
// if there is none.
func (c *Controller) Memory(kind, namespace, name string) (autoscaler.Memory, bool) {
	t := c.last(key{kind, namespace, name})
	if t == nil {
		return autoscaler.Memory{}, false
	}
	return t.memory, true
}

// All returns the last decision about each object in a line, by namespace, name and
// kind.
func (c *Controller) All() []decisionreport.Brief {
	c.mu.Lock()
	last := make([]*told, 0, len(c.mu.entries))
	for _, e := range c.mu.entries {
		if t := e.last.Load(); t != nil {
			last = append(last, t)
		}
	}
	c.mu.Unlock()
	all := make([]decisionreport.Brief, len(last))
	for i, t := range last {
		all[i] = decisionreport.BriefOf(t.decision, t.context)
	}
	slices.SortFunc(all, func(a, b decisionreport.Brief) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

func (c *Controller) last(k key) *told {
	c.mu.Lock()
	e := c.mu.entries[k]
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.last.Load()
}
