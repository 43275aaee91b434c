package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
)

// kindExcluded is the source of the batches of nodes that are left out.
const kindExcluded = "excluded"

// excluded provides a source that is never read for each node that every
// node selector leaves out, so that the absence of the node and its pods has its
// reason.
type excluded struct {
	kubelets  []*kubelets     // whoever reads nodes
	host      metric.NodeName // the node this machine is, if it is read
	selectors string          // in words
	interval  time.Duration
	said      []manager.Spec // last, by these facts
	by        *cluster.Facts
}

// exclude returns the provider for what the kubelets leave out; nil if no
// selector does.
func exclude(all []*kubelets, host metric.NodeName) *excluded {
	e := &excluded{kubelets: all, host: host}
	var selectors []string
	for _, k := range all {
		if k.plan.Selector == nil || len(k.plan.Targets) > 0 {
			continue
		}
		selectors = append(selectors, fmt.Sprintf("%q", k.plan.Selector))
		if e.interval == 0 {
			e.interval = k.plan.Interval
		}
	}
	if len(selectors) == 0 {
		return nil
	}
	e.selectors = strings.Join(selectors, " or ")
	return e
}

// Sources returns a source for each node that is left out. It is called by the manager's
// goroutine alone, with each change of a pod.
func (e *excluded) Sources(facts *cluster.Facts) []manager.Spec {
	if !facts.SameNodes(e.by) {
		e.said = e.leftOut(facts)
	}
	e.by = facts
	return e.said
}

func (e *excluded) leftOut(facts *cluster.Facts) []manager.Spec {
	read := map[metric.NodeName]bool{e.host: true}
	for _, k := range e.kubelets {
		for _, t := range k.scraper.Targets(facts) {
			read[t.Node] = true
		}
	}
	var specs []manager.Spec
	facts.EachNode(func(n *cluster.Node) bool {
		if !read[n.Name] {
			specs = append(specs, manager.Spec{
				Name: kindExcluded + "/" + string(n.Name), Kind: kindExcluded, Node: n.Name, Interval: e.interval,
				Unread: &metric.ReadError{
					Reason: metric.NodeExcluded,
					Err:    fmt.Errorf("its labels do not match the node selector %s", e.selectors),
				},
			})
		}
		return true
	})
	return specs
}

// Close has nothing to close.
func (e *excluded) Close() error { return nil }
