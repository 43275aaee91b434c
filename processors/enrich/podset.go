package enrich

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// podSet is a set of the pods of one batch. In a batch of nothing but its Layout's
// samples a pod goes by the place of its first sample, else by its facts.
type podSet struct {
	round  uint32
	laid   bool // places serve for this batch
	layout *metric.Layout
	places []podPlace // by index in the Layout
	others map[*cluster.Pod]bool
}

type podPlace struct {
	first int32  // where the pod's first sample is
	round uint32 // there: of the last batch whose set had the pod
}

// begin empties the set for a new batch.
func (p *podSet) begin(b *metric.Batch) {
	p.round++
	if len(p.others) == 0 {
		p.others = nil // there is seldom need of it twice
	}
	clear(p.others)
	if p.laid = b.Layout != nil && len(b.Layout.Entities) == len(b.Samples); p.laid && b.Layout != p.layout {
		p.arrange(b.Layout)
	}
}

func (p *podSet) arrange(l *metric.Layout) {
	p.layout, p.places = l, make([]podPlace, len(l.Entities))
	firsts := make(map[metric.PodRef]int32, len(l.Entities)/2)
	for i := range l.Entities {
		ref := l.Entities[i].PodRef()
		if _, ok := firsts[ref]; !ok {
			firsts[ref] = int32(i)
		}
		p.places[i].first = firsts[ref]
	}
}

// add puts the pod of sample i into the set.
func (p *podSet) add(i int, pod *cluster.Pod) {
	switch {
	case p.laid:
		p.places[p.places[i].first].round = p.round
	case p.others == nil:
		p.others = map[*cluster.Pod]bool{pod: true}
	default:
		p.others[pod] = true
	}
}

// has reports whether the pod of sample i is in the set.
func (p *podSet) has(i int, pod *cluster.Pod) bool {
	if p.laid {
		return p.places[p.places[i].first].round == p.round
	}
	return p.others[pod]
}
