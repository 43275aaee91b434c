package custommetrics

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// podIndex finds the pods of a namespace. It is made anew when the facts have
// changed and someone asks: a namespace's autoscalers must not cost a walk over
// all the cluster's pods each.
type podIndex struct {
	mu struct {
		sync.Mutex
		facts *metric.Facts
		pods  map[metric.Namespace][]*metric.PodFacts
	}
}

// each calls do for the pods of a namespace, or for all if it is empty.
func (x *podIndex) each(facts *metric.Facts, namespace metric.Namespace, do func(*metric.PodFacts)) {
	if namespace == "" {
		facts.EachPod(func(p *metric.PodFacts) bool { do(p); return true })
		return
	}
	for _, p := range x.of(facts, namespace) {
		do(p)
	}
}

func (x *podIndex) of(facts *metric.Facts, namespace metric.Namespace) []*metric.PodFacts {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.facts != facts {
		pods := make(map[metric.Namespace][]*metric.PodFacts, len(x.mu.pods))
		facts.EachPod(func(p *metric.PodFacts) bool {
			pods[p.Namespace] = append(pods[p.Namespace], p)
			return true
		})
		x.mu.facts, x.mu.pods = facts, pods
	}
	return x.mu.pods[namespace]
}
