package resourcemetrics

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// podIndex finds the pods of a namespace. It is made anew when the facts have
// changed and someone asks, so that each autoscaler's LIST does not cost a walk
// over all the cluster's pods.
type podIndex struct {
	mu struct {
		sync.Mutex
		facts *metric.Facts
		pods  map[metric.Namespace][]*metric.PodFacts
		count int
	}
}

// candidates returns the pods that c may choose, by namespace and in no order
// within one, and how many pods there are in all. The slices must not be
// changed.
func (x *podIndex) candidates(facts *metric.Facts, c *choice) (pods [][]*metric.PodFacts, all int) {
	byNamespace, all := x.of(facts)
	if c.namespace != "" && c.name != "" {
		if p := facts.Pod(metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); p != nil {
			return [][]*metric.PodFacts{{p}}, all
		}
		return nil, all
	}
	if c.namespace != "" {
		return [][]*metric.PodFacts{byNamespace[c.namespace]}, all
	}
	for _, in := range byNamespace {
		pods = append(pods, in)
	}
	return pods, all
}

func (x *podIndex) of(facts *metric.Facts) (map[metric.Namespace][]*metric.PodFacts, int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.facts != facts {
		pods, count := make(map[metric.Namespace][]*metric.PodFacts, len(x.mu.pods)), 0
		facts.EachPod(func(p *metric.PodFacts) bool {
			pods[p.Namespace] = append(pods[p.Namespace], p)
			count++
			return true
		})
		x.mu.facts, x.mu.pods, x.mu.count = facts, pods, count
	}
	return x.mu.pods, x.mu.count
}
