package informer

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// podView is what weir keeps of a pod.
type podView struct {
	facts *cluster.Pod
	whole *v1.Pod // nil unless Options.Node is set
}

// nodePods are the complete pods of one node. They are never changed, only replaced.
type nodePods struct {
	all    map[metric.PodRef]*v1.Pod
	active []*v1.Pod // sorted by namespace and name
}

// NodePods returns the active pods of Options.Node: as for the kubelet, those that have not ended.
// They are sorted by namespace and name. It is nil until the API server, or the kubelet of
// Options.KubeletPods, has listed them, and always nil without Options.Node. Neither the slice nor the pods may be changed. It takes no lock.
func (c *Cluster) NodePods() []*v1.Pod {
	pods := c.pods.Load()
	if pods == nil {
		return nil
	}
	return pods.active
}

// with returns the pods after the changes in p. n may be nil, and the result is nil until pods have
// been listed.
func (n *nodePods) with(p *pending) *nodePods {
	if !p.listedPods || n != nil && !p.allPods && len(p.pods) == 0 {
		return n
	}
	next := &nodePods{all: map[metric.PodRef]*v1.Pod{}, active: []*v1.Pod{}}
	if n != nil && !p.allPods {
		next.all = maps.Clone(n.all)
	}
	for ref, facts := range p.pods {
		if facts == nil {
			delete(next.all, ref)
		} else {
			next.all[ref] = p.whole[ref]
		}
	}
	for _, pod := range next.all {
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			next.active = append(next.active, pod)
		}
	}
	slices.SortFunc(next.active, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return next
}
